//go:build unix

package format_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// mapFile maps a file of n bytes and gives the view and a way to truncate it.
func mapFile(t *testing.T, n int) (format.Bytes, func(to int64)) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "file"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	p, err := unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		testenv.Missing(t, "no mapping", err)
	}
	t.Cleanup(func() { _ = unix.Munmap(p) })
	return format.MappedBytes(p), func(to int64) {
		if err := f.Truncate(to); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShrunkFile: a mapped file that shrinks while it is in use is an error
// wherever its bytes are touched, and the process lives.
func TestShrunkFile(t *testing.T) {
	page := os.Getpagesize()
	b, truncate := mapFile(t, 4*page)
	inline := &format.Inline{Data: b}
	whole := inline.Key()
	truncate(int64(page))

	buf := make([]byte, 4*page)
	for name, touch := range map[string]func() error{
		"ReadAt": func() error { _, err := b.ReadAt(buf, 0); return err },
		"View": func() error {
			return b.View(func(p []byte) error { buf[0] = p[3*page]; return nil })
		},
		"Slice": func() error { _, err := b.Slice(2*page, 3*page).ReadAt(buf, 0); return err },
		"Offsets": func() error {
			_, err := format.OffsetAt(context.Background(), format.OffsetBytes{Data: b}, int64(3*page/8))
			return err
		},
	} {
		if err := touch(); !errors.Is(err, format.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.ReadAt(buf[:page], 0); err != nil {
		t.Errorf("what is still there: %v", err)
	}
	if k := inline.Key(); k == whole || k == (&format.Inline{Data: b}).Key() {
		t.Errorf("the key of bytes that are gone equals another: %v", k)
	}
}
