package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/ui"
)

func findings(term ui.Term, all ...ui.Finding) string {
	var d ui.Document
	d.Add(ui.Findings(all))
	var b strings.Builder
	if err := d.Write(&b, term); err != nil {
		panic(err)
	}
	return b.String()
}

// TestFindings300 shows many findings of one kind as one, with a count and three
// examples, and keeps others apart.
func TestFindings300(t *testing.T) {
	var same, alike []ui.Finding
	for i := range 300 {
		at := fmt.Sprintf("operator %q/subtask %d", "sink", i)
		same = append(same, ui.Finding{Level: ui.LevelError, Kind: "read", Place: at, Text: "permission denied", Advice: "ask somebody"})
		alike = append(alike, ui.Finding{Level: ui.LevelWarning, Kind: "file-missing", Place: at, Text: fmt.Sprintf("file %08x-aa is missing at %d", i*7919, i)})
	}
	got := findings(ui.Term{}, append(same, ui.Finding{Level: ui.LevelNote, Kind: "orphan", Text: "2 files"})...)
	want := `  error  300 times: permission denied
        operator "sink"/subtask 0
        operator "sink"/subtask 1
        operator "sink"/subtask 2
        and 297 more; -o json lists all
        ask somebody
  note  2 files
`
	if got != want {
		t.Errorf("got:\n%s", got)
	}
	got = findings(ui.Term{}, alike...)
	want = `  warning  300 of this kind, such as:
        operator "sink"/subtask 0: file 00000000-aa is missing at 0
        operator "sink"/subtask 1: file 00001eef-aa is missing at 1
        operator "sink"/subtask 2: file 00003dde-aa is missing at 2
        and 297 more; -o json lists all
`
	if got != want {
		t.Errorf("got:\n%s", got)
	}
	// Three are shown one by one, and so is what differs in words.
	if got := findings(ui.Term{}, same[:3]...); strings.Count(got, "permission denied") != 3 || strings.Contains(got, "times") {
		t.Errorf("got:\n%s", got)
	}
	mixed := append(same[:2:2], ui.Finding{Level: ui.LevelError, Kind: "read", Text: "a broken disk"}, ui.Finding{Level: ui.LevelNote, Kind: "read", Text: "permission denied"})
	if got := findings(ui.Term{}, mixed...); strings.Count(got, "\n") != 6 || strings.Contains(got, "times") {
		t.Errorf("got:\n%s", got)
	}
}

// TestFindingsWrap wraps on a terminal only, with a hanging indent. A command stays
// one that can be copied.
func TestFindingsWrap(t *testing.T) {
	f := ui.Finding{Level: ui.LevelError, Place: "operator \"x\"", Text: strings.Repeat("word ", 12) + "end",
		Advice: "rewrite what is missing, for it is elsewhere:  spt relocate /a/very/long/path/to/a/snapshot /another/long/path --map .=/x"}
	got := findings(ui.Term{IsTTY: true, Width: 40}, f)
	want := `  error  operator "x": word word word
        word word word word word word
        word word word end
        rewrite what is missing, for it
        is elsewhere:
          spt relocate \
              /a/very/long/path/to/a/snapshot \
              /another/long/path --map \
              .=/x
`
	if got != want {
		t.Errorf("got:\n%s", got)
	}
	if got := findings(ui.Term{}, f); strings.Count(got, "\n") != 2 {
		t.Errorf("got:\n%s", got)
	}
	// What is not printable never reaches a terminal.
	if got := findings(ui.Term{}, ui.Finding{Level: ui.LevelNote, Place: "a\x1b[2J", Text: "b\x07", Detail: "c\x1b", Advice: "d\r"}); strings.ContainsAny(got, "\x1b\x07\r") {
		t.Errorf("got %q", got)
	}
}
