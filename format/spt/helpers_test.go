package spt_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// memory is a file in memory that counts reads.
type memory struct {
	p     []byte
	reads atomic.Int64
}

func (m *memory) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	m.reads.Add(1)
	if off < 0 || off > int64(len(m.p)) || int64(len(p)) > int64(len(m.p))-off {
		return 0, format.Errorf(format.ErrTruncated, "bytes %d+%d of %d", off, len(p), len(m.p))
	}
	return copy(p, m.p[off:]), nil
}

func open(p []byte) (*spt.File, error) {
	return spt.Open(context.Background(), &memory{p: p}, int64(len(p)), format.Limits{})
}

func mustOpen(t testing.TB, p []byte) *spt.File {
	t.Helper()
	f, err := open(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// source reads inline streams, files of a folder, and literals of tests.
type source struct{ dir string }

func (s source) ReadAt(ctx context.Context, st format.Stream, p []byte, off int64) (int, error) {
	short := func(n int, err error) (int, error) {
		if err == nil && n < len(p) {
			err = format.Errorf(format.ErrTruncated, "%d of %d bytes", n, len(p))
		}
		return n, err
	}
	switch st := st.(type) {
	case *format.Inline:
		return short(st.Data.ReadAt(p, off))
	case *format.File:
		return s.file(st.Path.String(), p, off)
	case *format.Concat:
		n := 0
		for _, part := range st.Parts {
			if off >= part.N {
				off -= part.N
				continue
			}
			k := int(min(int64(len(p)-n), part.N-off))
			if _, err := s.ReadAt(ctx, part.Of, p[n:n+k], part.Off+off); err != nil {
				return n, err
			}
			n, off = n+k, 0
			if n == len(p) {
				break
			}
		}
		return short(n, nil)
	}
	return 0, format.Errorf(format.ErrMissing, "%v", st.Key())
}

func (s source) file(name string, p []byte, off int64) (int, error) {
	f, err := os.Open(filepath.Join(s.dir, name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(p, off)
}

// absolute claims the streams whose bytes a folder does not hold.
func absolute(s format.Stream) bool {
	switch format.Kind(s) {
	case format.KindAbsolute, format.KindSegment, format.KindEmpty:
		return true
	}
	return false
}

// pack writes a savepoint.
func pack(t testing.TB, sp *format.Savepoint, src format.Source, o spt.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, _, err := spt.Write(context.Background(), &b, sp, src, absolute, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// noise is n bytes that do not compress.
func noise(seed uint64, n int) []byte {
	p := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(p) //nolint:errcheck // never fails
	return p
}

func inline(name string, p []byte) *format.Inline {
	return &format.Inline{Name: format.NewText(name), Data: format.NewBytes(p)}
}

// content is all bytes of a stream.
func content(t testing.TB, src format.Source, s format.Stream) []byte {
	t.Helper()
	p := make([]byte, s.Size())
	if _, err := src.ReadAt(context.Background(), s, p, 0); err != nil {
		t.Fatalf("%v: %v", s.Key(), err)
	}
	return p
}

// allOffsets is all of an array.
func allOffsets(t testing.TB, o format.Offsets) []int64 {
	t.Helper()
	all := []int64{}
	err := format.EachOffset(context.Background(), o, func(_ int64, run []int64) error {
		all = append(all, run...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sameModel fails unless the file holds the savepoint, every byte and offset
// of it. It is a second comparison, apart from the one that Seal makes: here
// streams are compared by what they hold.
func sameModel(t testing.TB, f *spt.File, want *format.Savepoint, src format.Source) {
	t.Helper()
	c := modelComparer{t: t, f: f, src: src, seen: make(map[[2]format.Stream]bool)}
	c.value("savepoint", reflect.ValueOf(want), reflect.ValueOf(f.Savepoint()))
}

type modelComparer struct {
	t    testing.TB
	f    *spt.File
	src  format.Source
	seen map[[2]format.Stream]bool
}

func (c *modelComparer) value(at string, a, b reflect.Value) {
	c.t.Helper()
	if a.Type() == reflect.TypeFor[format.Offsets]() && a.IsNil() { // read, an array is never nil
		if o, ok := b.Interface().(format.Offsets); !ok || o.Len() != 0 {
			c.t.Fatalf("%s: no offsets became %v", at, b)
		}
		return
	}
	if a.Kind() == reflect.Interface && (a.IsNil() || b.IsNil()) {
		if a.IsNil() != b.IsNil() {
			c.t.Fatalf("%s: %v became %v", at, a, b)
		}
		return
	}
	switch x := a.Interface().(type) {
	case format.Text:
		if y := b.Interface().(format.Text); x != y {
			c.t.Fatalf("%s: %q became %q", at, x, y)
		}
		return
	case format.Bytes:
		y := b.Interface().(format.Bytes)
		p, q := make([]byte, x.Len()), make([]byte, y.Len())
		x.ReadAt(p, 0) //nolint:errcheck // compared below
		y.ReadAt(q, 0) //nolint:errcheck // compared below
		if !bytes.Equal(p, q) {
			c.t.Fatalf("%s: %x became %x", at, p, q)
		}
		return
	case format.Offsets:
		p, q := allOffsets(c.t, x), allOffsets(c.t, b.Interface().(format.Offsets))
		if !reflect.DeepEqual(p, q) {
			c.t.Fatalf("%s: offsets differ: %d and %d of them", at, len(p), len(q))
		}
		return
	case *format.KeyGroupStream: // as a struct, below
	case format.Stream:
		c.stream(at, x, b.Interface().(format.Stream))
		return
	}
	switch a.Kind() {
	case reflect.Interface:
		if a.Elem().Type() != b.Elem().Type() {
			c.t.Fatalf("%s: %T became %T", at, a.Interface(), b.Interface())
		}
		c.value(at, a.Elem(), b.Elem())
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				c.t.Fatalf("%s: %v became %v", at, a, b)
			}
			return
		}
		c.value(at, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			c.value(at+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case reflect.Slice:
		if a.Len() != b.Len() {
			c.t.Fatalf("%s: %d became %d", at, a.Len(), b.Len())
		}
		for i := range a.Len() {
			c.value(at+"[]", a.Index(i), b.Index(i))
		}
	default:
		if !a.Equal(b) {
			c.t.Fatalf("%s: %v became %v", at, a, b)
		}
	}
}

func (c *modelComparer) stream(at string, a, b format.Stream) {
	c.t.Helper()
	pair := [2]format.Stream{a, b}
	if c.seen[pair] {
		return
	}
	c.seen[pair] = true
	chunks, ok := b.(*format.Chunks)
	if !ok {
		if !reflect.DeepEqual(a, b) {
			c.t.Fatalf("%s: %v became %v", at, a.Key(), b.Key())
		}
		return
	}
	switch a := a.(type) {
	case *format.Inline:
		if as, ok := chunks.As.(*format.Inline); !ok || as.Name != a.Name || as.Data.Len() != 0 {
			c.t.Fatalf("%s: came from %v, and is said to come from %v", at, a, chunks.As)
		}
	case *format.File, *format.Segment:
		if !reflect.DeepEqual(a, chunks.As) {
			c.t.Fatalf("%s: came from %v, and is said to come from %v", at, a, chunks.As)
		}
	}
	if p, q := content(c.t, c.src, a), content(c.t, c.f, b); !bytes.Equal(p, q) {
		c.t.Fatalf("%s: %d bytes became %d others", at, len(p), len(q))
	}
}

// corpus gives every folder of real snapshots that holds a _metadata.
func corpus(t testing.TB) []string {
	t.Helper()
	return testenv.Snapshots(t)
}
