package reader

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

// A rope of thousands of parts, near and far, forwards and backwards, nested and
// empty, reads as its parts say, at any place and length, and close parts cost
// one request together.
func TestRopesReadAsTheirParts(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(7, 7))
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	store := storetest.NewCounting(mem.New())
	storetest.Put(t, store, "sp/u1", string(data))
	f := &found{store: store, name: "sp/_metadata"}
	src := newSource(f, Options{Stores: route.New(store)}, nil, &format.Savepoint{})
	file := &format.File{Path: format.NewText("u1"), Relative: true, Length: int64(len(data))}
	inline := &format.Inline{Data: format.NewBytes([]byte("inline bytes"))}
	var want []byte
	var parts []format.Part
	add := func(of format.Stream, from []byte, off, n int64) {
		parts = append(parts, format.Part{Of: of, Off: off, N: n})
		want = append(want, from[off:off+n]...)
	}
	at := int64(0)
	for i := range 4000 {
		switch {
		case i%500 == 499:
			add(inline, []byte("inline bytes"), 2, 5)
			at = r.Int64N(1 << 20)
		case i%700 == 0:
			add(file, data, at, 0)
		default:
			n := 1 + r.Int64N(200)
			add(file, data, at, n)
			at += n + r.Int64N(300)
		}
	}
	nested := &format.Concat{Parts: parts[:100]}
	parts = append(parts, format.Part{Of: nested, Off: 3, N: nested.Size() - 3})
	var head []byte
	for _, p := range parts[:100] {
		if p.Of == format.Stream(file) {
			head = append(head, data[p.Off:p.Off+p.N]...)
		} else {
			head = append(head, "inline bytes"[p.Off:p.Off+p.N]...)
		}
	}
	want = append(want, head[3:]...)
	rope := &format.Concat{Parts: parts}
	if rope.Size() != int64(len(want)) {
		t.Fatalf("%d bytes, want %d", rope.Size(), len(want))
	}
	got := make([]byte, len(want))
	before := store.Count("read")
	if _, err := src.ReadAt(ctx, rope, got, 0); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the whole rope differs, or %v", err)
	}
	if n := store.Count("read") - before; n > 60 {
		t.Errorf("%d reads for 4,000 parts that lie close together", n)
	}
	for range 2000 {
		off := r.Int64N(int64(len(want)))
		n := min(1+r.Int64N(5000), int64(len(want))-off)
		p := make([]byte, n)
		if _, err := src.ReadAt(ctx, rope, p, off); err != nil || !bytes.Equal(p, want[off:off+n]) {
			t.Fatalf("%d bytes at %d differ, or %v", n, off, err)
		}
	}
	if _, err := src.ReadAt(ctx, rope, make([]byte, 10), int64(len(want))-5); err == nil {
		t.Error("bytes past the end were read")
	}
}
