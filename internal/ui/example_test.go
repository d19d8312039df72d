package ui_test

import (
	"fmt"
	"os"

	"github.com/savepoint-tools/spt/internal/ui"
)

func ExampleDocument() {
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle},
		ui.Column{Header: "KIND"},
		ui.Column{Header: "ELEMENTS", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right},
	)
	t.Row("paimon-writer", "", "", ui.Bytes(100_019_558))
	t.Child(1, "committable-state", ui.Look("union"), ui.Count(1_000_000), ui.Bytes(100_000_000))
	t.Child(1, "bucket-assign", "list", ui.Count(1204), ui.Bytes(19_558))
	var d ui.Document
	d.Heading("savepoint, 3 operators")
	d.Blank()
	d.Add(t)
	d.Remark("committable-state looks duplicated")
	term := ui.Term{} // a pipe; ui.Detect looks at a real one
	if err := d.Write(os.Stdout, term); err != nil {
		fmt.Println(err)
	}
	// Output:
	// savepoint, 3 operators
	//
	// OPERATOR / STATE     KIND    ELEMENTS     BYTES
	// paimon-writer                          95.4 MiB
	//   committable-state  union  1,000,000  95.4 MiB
	//   bucket-assign      list       1,204  19.1 KiB
	// ! committable-state looks duplicated
}

func ExampleQuote() {
	fmt.Println(ui.Quote("kafka-orders"), ui.Quote("kafka\x1b[2Jorders"))
	// Output: kafka-orders "kafka\x1b[2Jorders"
}
