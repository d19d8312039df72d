package transform_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// inMemory is the source of one file, and of what is computed of it.
type inMemory []byte

func (p inMemory) ReadAt(ctx context.Context, s format.Stream, to []byte, off int64) (int, error) {
	if c, ok := s.(*format.Concat); ok {
		return len(to), c.Parts[0].Of.(*format.Computed).Maker.MakeAt(ctx, p, to, off)
	}
	return copy(to, p[off:]), nil
}

// benchKeyed returns an operator of one subtask whose state "label" has n entries of
// strings, in the format of RocksDB before Flink 1.13, which has the entries of a
// canonical savepoint.
func benchKeyed(tb testing.TB, n int) (v format.View, size int64) {
	tb.Helper()
	snap, err := reader.Open(tb.Context(), "../testdata/savepoints/sp-002", nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := snap.Close(); err != nil {
			tb.Error(err)
		}
	})
	op, err := format.Selector{"keyed"}.Operator(snap.Savepoint)
	if err != nil {
		tb.Fatal(err)
	}
	codec, err := snap.KeyedCodec(op, op.Subtasks[0].ManagedKeyed)
	if err != nil {
		tb.Fatal(err)
	}
	schema, err := codec.Describe(tb.Context(), snap.Source(), op.Subtasks[0].ManagedKeyed)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range schema.States {
		if schema.States[i].Name.String() == "label" {
			schema.States = schema.States[i : i+1]
			break
		}
	}
	var out bytes.Buffer
	b, err := codec.Build(tb.Context(), schema, format.KeyGroupRange{Count: op.MaxParallelism}, &out)
	if err != nil {
		tb.Fatal(err)
	}
	text := func(s string) []byte { return append([]byte{byte(len(s) + 1)}, s...) }
	value := text(string(bytes.Repeat([]byte("x"), 80)))
	for i := range n {
		key := text(fmt.Sprintf("user-%08d", i))
		e := format.KeyedEntry{KeyGroup: int32(int64(i) * int64(op.MaxParallelism) / int64(n)), Key: key, Namespace: []byte{0}, Value: value}
		if err := b.Add(e); err != nil {
			tb.Fatal(err)
		}
	}
	h, err := b.Handle()
	if err != nil {
		tb.Fatal(err)
	}
	size = int64(out.Len())
	h.Data, h.Savepoint = &format.File{Path: format.NewText("f"), Length: size}, false
	c := *op
	c.Parallelism, c.Subtasks = 1, []*format.Subtask{{ManagedKeyed: h}}
	sp := *snap.Savepoint
	sp.Operators = []*format.Operator{&c}
	return format.View{Savepoint: &sp, Source: inMemory(out.Bytes()), Codecs: snap}, size
}

// keepAll returns KeepEntries of the options of Filter that keeps the entries of all
// handles for which keep returns true.
func keepAll(keep func(*format.KeyedEntry) bool) func(transform.FilterHandle) (func(*format.KeyedEntry) (bool, error), error) {
	return func(transform.FilterHandle) (func(*format.KeyedEntry) (bool, error), error) {
		return func(e *format.KeyedEntry) (bool, error) { return keep(e), nil }, nil
	}
}

// drain reads the keyed state of the first subtask.
func drain(tb testing.TB, v format.View) {
	tb.Helper()
	g := v.Operators[0].Subtasks[0].ManagedKeyed.(*format.KeyGroups)
	p := make([]byte, 1<<20)
	for at := int64(0); at < g.Data.Size(); at += int64(len(p)) {
		p = p[:min(int64(len(p)), g.Data.Size()-at)]
		if _, err := v.ReadAt(tb.Context(), g.Data, p, at); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkKeyed builds keyed state again, and reads the result once, as a writer does.
func BenchmarkKeyed(b *testing.B) {
	v, size := benchKeyed(b, 1<<20)
	for _, x := range []struct {
		name string
		edit func() (format.View, error)
	}{
		{"canonical", func() (format.View, error) {
			out, _, err := transform.Canonical(b.Context(), v, transform.CanonicalOptions{})
			return out, err
		}},
		{"filter", func() (format.View, error) {
			out, _, err := transform.Filter(b.Context(), v, transform.FilterOptions{KeepEntries: keepAll(func(e *format.KeyedEntry) bool { return e.KeyGroup%2 == 0 })})
			return out, err
		}},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				out, err := x.edit()
				if err != nil {
					b.Fatal(err)
				}
				drain(b, out)
			}
		})
	}
}
