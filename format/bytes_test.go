package format_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

func TestBytes(t *testing.T) {
	for name, b := range map[string]format.Bytes{"read": format.NewBytes([]byte("abcdef")), "mapped": format.MappedBytes([]byte("abcdef"))} {
		if b.Len() != 6 {
			t.Errorf("%s: %d bytes", name, b.Len())
		}
		s := b.Slice(2, 5)
		err := s.View(func(p []byte) error {
			if string(p) != "cde" || cap(p) != 3 {
				t.Errorf("%s: %q, cap %d", name, p, cap(p))
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		buf := make([]byte, 4)
		for _, x := range []struct {
			off  int64
			want string
		}{{0, "abcd"}, {3, "def"}, {6, ""}} {
			n, err := b.ReadAt(buf, x.off)
			if err != nil || string(buf[:n]) != x.want {
				t.Errorf("%s: at %d: %q, %v", name, x.off, buf[:n], err)
			}
		}
		for _, off := range []int64{-1, 7, 1 << 62} {
			if n, err := b.ReadAt(buf, off); n != 0 || !errors.Is(err, format.ErrTruncated) {
				t.Errorf("%s: at %d: %d, %v", name, off, n, err)
			}
		}
		stop := errors.New("stop")
		if err := b.View(func([]byte) error { return stop }); err != stop {
			t.Errorf("%s: %v", name, err)
		}
	}
	var zero format.Bytes
	if zero.Len() != 0 || zero.View(func(p []byte) error { return nil }) != nil {
		t.Error("the zero value is not empty")
	}
}

// TestGuardLetsPanicsThrough: only faults on memory are turned into errors.
func TestGuardLetsPanicsThrough(t *testing.T) {
	for name, f := range map[string]func(){
		"a panic of ours":      func() { panic("internal error: so it goes") },
		"an index":             func() { _ = []int{}[len(name(t))] },
		"a nil pointer":        func() { var p *bytes.Buffer; p.WriteByte(1) },
		"an error that panics": func() { panic(errors.New("x")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was swallowed", name)
				}
			}()
			err := guard(func() error { f(); return nil })
			t.Errorf("%s became %v", name, err)
		}()
	}
}

func name(t *testing.T) string { return t.Name() }

// guard runs f as format.Bytes runs what reads a mapped file.
func guard(f func() error) error {
	return format.MappedBytes(nil).View(func([]byte) error { return f() })
}
