package reader_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
)

// combined combines and gives the stream of each.
func combined(t *testing.T, a, b *reader.Snapshot) (both *reader.Snapshot, mine, theirs format.Stream) {
	t.Helper()
	both, from, err := reader.Combine(ctx, a, b)
	if err != nil {
		t.Fatal(err)
	}
	return both, both.Operators[0].Subtasks[0].Managed.Data, from.Operators[0].Subtasks[0].Managed.Data
}

// TestCombine: what has the same name in two snapshots is told apart, in folders
// and in .spt files.
func TestCombine(t *testing.T) {
	folder := func(data string) string {
		return write(t, map[string]string{"_metadata": referring(t, relative("f", int64(len(data)))), "f": data})
	}
	packed := func(data string) string {
		return write(t, map[string]string{"x.spt": string(pack(t, model(list(inline(data), 0))))}) + "/x.spt"
	}
	for _, tt := range []struct{ name, a, b string }{
		{"folders", folder("mine"), folder("theirs")},
		{"a folder and an .spt", folder("mine"), packed("theirs")},
		{"an .spt and a folder", packed("mine"), folder("theirs")},
		{"two .spt", packed("mine"), packed("theirs")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := open(t, tt.a, options()), open(t, tt.b, options())
			both, mine, theirs := combined(t, a, b)
			if mine.Key() == theirs.Key() {
				t.Errorf("both have the key %s", mine.Key())
			}
			if got := content(t, both, mine); got != "mine" {
				t.Errorf("mine: %q", got)
			}
			if got := content(t, both, theirs); got != "theirs" {
				t.Errorf("theirs: %q", got)
			}
			rope := &format.Concat{Parts: []format.Part{{Of: mine, Off: 1, N: 3}, {Of: theirs, Off: 2, N: 4}}}
			if got := content(t, both, rope); got != "ineeirs" {
				t.Errorf("a rope of both: %q", got)
			}
			if len(both.Others()) != 1 || len(a.Others()) != 0 {
				t.Error("the others")
			}
			// Combined once more, b's streams stay b's.
			again, from, err := reader.Combine(ctx, a, both.With(&format.Savepoint{Operators: model(list(theirs, 0)).Operators}))
			if err != nil {
				t.Fatal(err)
			}
			if got := content(t, again, from.Operators[0].Subtasks[0].Managed.Data); got != "theirs" {
				t.Errorf("combined twice: %q", got)
			}
		})
	}
}

// TestCombineMovedFile: a file found elsewhere than b says is found by both.
func TestCombineMovedFile(t *testing.T) {
	dir := write(t, map[string]string{"job/chk-1/_metadata": referring(t, absolute("file:/gone/job/shared/f", 6)), "job/shared/f": "theirs"})
	a := open(t, write(t, map[string]string{"_metadata": referring(t, absolute("file:/gone/job/shared/f", 6))}), options())
	b := open(t, filepath.Join(dir, "job/chk-1"), options())
	both, mine, theirs := combined(t, a, b)
	if got := content(t, both, theirs); got != "theirs" {
		t.Errorf("%q", got)
	}
	if _, err := both.Locate(ctx, mine); !errors.Is(err, format.ErrMissing) {
		t.Errorf("the file of a: %v", err)
	}
}

func TestCombineMissingFile(t *testing.T) {
	a := open(t, write(t, map[string]string{"_metadata": referring(t, relative("f", 4)), "f": "mine"}), options())
	b := open(t, write(t, map[string]string{"_metadata": referring(t, relative("f", 6))}), options())
	if _, _, err := reader.Combine(ctx, a, b); !errors.Is(err, format.ErrMissing) {
		t.Errorf("a relative file that is not there: %v", err)
	}
	// An absolute one keeps its name, and is missing wherever it is read.
	b = open(t, write(t, map[string]string{"_metadata": referring(t, absolute("/gone/f", 6))}), options())
	both, _, theirs := combined(t, a, b)
	if path, _, _ := format.Reference(theirs); path.String() != "/gone/f" {
		t.Errorf("named %q", path)
	}
	if _, err := both.Locate(ctx, theirs); !errors.Is(err, format.ErrMissing) {
		t.Errorf("an absolute file that is not there: %v", err)
	}
}

func TestCombineNoticesChanges(t *testing.T) {
	a := open(t, write(t, map[string]string{"_metadata": referring(t, inline("mine"))}), options())
	dir := write(t, map[string]string{"_metadata": referring(t, inline("theirs"))})
	both, _, _ := combined(t, a, open(t, dir, options()))
	if err := both.Unchanged(ctx); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "_metadata")); err != nil {
		t.Fatal(err)
	}
	if err := both.With(both.Savepoint).Unchanged(ctx); !errors.Is(err, format.ErrChanged) {
		t.Errorf("%v", err)
	}
}
