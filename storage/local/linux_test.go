package local

import (
	"os"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
)

// /dev/full answers every write as a full disk does.
func TestNoSpace(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		testenv.Missing(t, "no /dev/full", err)
	}
	s := New()
	dir := t.TempDir() + "/"
	write(t, dir+"src", "data")
	for name, put := range map[string]func(w storage.Writer) error{
		"write": func(w storage.Writer) error { _, err := w.Write([]byte("x")); return err },
		"copy":  func(w storage.Writer) error { return s.CopyRange(ctx, w, s, dir+"src", 0, -1, "") },
	} {
		w := create(t, s, dir+"new/x", storage.CreateOptions{}).(*writer)
		file := w.f
		w.f = full
		e := wantErr(t, put(w), storage.ErrNoSpace)
		if e.Name != dir+"new/x" {
			t.Errorf("%s: names %s", name, e.Name)
		}
		_, err := w.Commit(ctx)
		wantErr(t, err, storage.ErrNoSpace)
		w.f = file
		if err := w.Abort(ctx); err != nil {
			t.Fatal(err)
		}
		wantTree(t, dir, "src")
	}
}
