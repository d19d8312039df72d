package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
)

// TestLargeUnion: from 64 MiB on inspect says what a restore hands out of a union
// state whose elements do not look multiplied.
func TestLargeUnion(t *testing.T) {
	for _, c := range []struct {
		subtasks int
		length   int64 // of the state of each subtask
		want     string
	}{
		{1404, 1 << 20, "u of op is large for union state: at a restore each of 1,404 subtasks loads all 7,021 elements, 1.9 TiB in total"},
		{4, 4 << 20, "u of op is large for union state: at a restore each of 4 subtasks loads all 21 elements, 64.0 MiB in total"},
		{4, 4<<20 - 1, ""},
	} {
		op := &format.Operator{UID: format.NewText("op"), ID: format.OperatorIDOf("op"), Parallelism: int32(c.subtasks), MaxParallelism: 2048}
		for i := range c.subtasks {
			offsets := format.OffsetSlice{0, 1, 2, 3, 4}
			if i == 0 {
				offsets = append(offsets, 5)
			}
			op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: &format.OperatorHandle{
				Codec: format.CodecFlink, Data: &format.File{Path: format.NewText(fmt.Sprint("f", i)), Relative: true, Length: c.length},
				States: []format.NamedState{{Name: format.NewText("u"), Mode: format.ModeUnion, Offsets: offsets}},
			}})
		}
		sum, err := summary.Of(t.Context(), &format.Savepoint{Operators: []*format.Operator{op}})
		if err != nil {
			t.Fatal(err)
		}
		run := &Run{}
		r := &Inspect{Path: "sp", Operators: []InspectOperator{run.inspectOperator(sum.Operators[0], nil)}, run: run}
		r.addUnions(sum, nil)
		got := ""
		for _, w := range r.Warnings {
			got += w.Message
			if w.Code != "union_large" || w.Command != "spt prune-union sp" {
				t.Errorf("%+v", w)
			}
		}
		if got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
		if n := r.Operators[0].States[0].UnionRestoreBytes; n != c.length*int64(c.subtasks)*int64(c.subtasks) {
			t.Errorf("%d bytes in %d subtasks: %d at a restore", c.length, c.subtasks, n)
		}
	}
}

// TestManyRemarks: of many remarks of one kind three are printed, and counted.
func TestManyRemarks(t *testing.T) {
	r := &Inspect{}
	for i := range 300 {
		r.Warnings = append(r.Warnings, InspectWarning{Code: "union_large", Message: fmt.Sprintf("state %d is large", i)})
	}
	r.Warnings = append(r.Warnings, InspectWarning{Code: "may_be_multiplied", Message: "another may be multiplied"})
	var d ui.Document
	r.appendRemarks(&d)
	want := "\n! state 0 is large.\n! state 1 is large.\n! state 2 is large.\n! another may be multiplied.\n! 297 more of union_large; -o json lists all.\n"
	if got := text(t, &d, ui.Term{}); got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// text renders a document.
func text(t *testing.T, d *ui.Document, term ui.Term) string {
	t.Helper()
	var b strings.Builder
	if err := d.Write(&b, term); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
