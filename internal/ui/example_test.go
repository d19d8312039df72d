package ui_test

import (
	"fmt"
	"os"

	"github.com/savepoint-tools/spt/internal/ui"
)

func ExampleTable() {
	term := ui.Term{} // a pipe; ui.Detect looks at a real one
	style := term.Style()

	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle},
		ui.Column{Header: "KIND"},
		ui.Column{Header: "ELEMENTS", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right},
	)
	t.Row("paimon-writer", "", "", ui.Bytes(100_019_558))
	t.Child(1, "committable-state", style.Look("union"), ui.Count(1_000_000), ui.Bytes(100_000_000))
	t.Child(1, "bucket-assign", "list", ui.Count(1204), ui.Bytes(19_558))
	if err := t.Write(os.Stdout, term); err != nil {
		fmt.Println(err)
	}
	// Output:
	// OPERATOR / STATE     KIND    ELEMENTS     BYTES
	// paimon-writer                          95.4 MiB
	//   committable-state  union  1,000,000  95.4 MiB
	//   bucket-assign      list       1,204  19.1 KiB
}

func ExampleQuote() {
	fmt.Println(ui.Quote("kafka-orders"), ui.Quote("kafka\x1b[2Jorders"))
	// Output: kafka-orders "kafka\x1b[2Jorders"
}
