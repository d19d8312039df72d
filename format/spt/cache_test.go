package spt_test

import (
	"context"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
)

// The cache holds what was asked for last, and lets go of what was asked for
// first: a file that is read from end to end takes no more memory than the cache
// may.
func TestCacheIsBounded(t *testing.T) {
	const size = spt.CacheSize + 8<<20
	sp := &format.Savepoint{Operators: []*format.Operator{{Parallelism: 1, MaxParallelism: 1, Subtasks: []*format.Subtask{{Managed: &format.OperatorHandle{Codec: format.CodecFlink, Data: inline("x", noise(1, size))}}}}}}
	m := &memory{p: pack(t, sp, source{}, spt.Options{Compression: spt.None})}
	f, err := spt.Open(context.Background(), m, int64(len(m.p)), format.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	st := f.Savepoint().Operators[0].Subtasks[0].Managed.Data
	read := func(off int64) {
		t.Helper()
		if _, err := f.ReadAt(context.Background(), st, make([]byte, 1), off); err != nil {
			t.Fatal(err)
		}
	}
	lengths := spt.ChunkLengths(f)
	if len(lengths) < 100 {
		t.Fatalf("%d chunks", len(lengths))
	}
	var most, off int64
	for _, n := range lengths {
		read(off)
		read(off + int64(n) - 1) // out of the cache
		most = max(most, spt.Held(f))
		off += int64(n)
	}
	if off != size || most > spt.CacheSize || most < spt.CacheSize-1<<20 {
		t.Errorf("%d bytes of %d, up to %d held, at most %d may be", off, size, most, spt.CacheSize)
	}
	opened := m.reads.Load()
	read(size - 1)
	if n := m.reads.Load() - opened; n != 0 {
		t.Errorf("the last chunk was read %d times more", n)
	}
	read(0)
	if n := m.reads.Load() - opened; n != 1 {
		t.Errorf("the first chunk is still held: %d reads", n)
	}
	t.Logf("%d chunks, %d bytes, up to %d held", len(lengths), size, most)
}
