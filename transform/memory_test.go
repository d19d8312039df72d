package transform

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// generated is a Source of elements that are made when they are read: numbers
// in msgpack, nine bytes each. Those of a stream begin with base.
type generated struct {
	base map[format.Stream]uint64
	mu   sync.Mutex // of what follows
	peak uint64
	read int64
}

const generatedSize = 9

func (g *generated) ReadAt(ctx context.Context, s format.Stream, p []byte, off int64) (int, error) {
	g.mu.Lock()
	if g.read += int64(len(p)); g.read > 64<<20 {
		g.read = 0
		g.peak = max(g.peak, live())
	}
	g.mu.Unlock()
	var e [generatedSize]byte
	e[0] = 0xcf
	for n := 0; n < len(p); {
		i, skip := off/generatedSize, off%generatedSize
		binary.BigEndian.PutUint64(e[1:], g.base[s]+uint64(i))
		k := copy(p[n:], e[skip:])
		n, off = n+k, off+int64(k)
	}
	return len(p), ctx.Err()
}

// spaced is the offsets of elements of one size.
type spaced struct{ n int64 }

func (s spaced) Len() int64 { return s.n }

func (s spaced) Read(_ context.Context, dst []int64, from int64) (int, error) {
	n := int(min(int64(len(dst)), s.n-from))
	for i := range n {
		dst[i] = (from + int64(i)) * generatedSize
	}
	return n, nil
}

// live is the heap that the last collection found in use, and what was
// allocated since at most.
func live() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}

// generatedUnion is a union state of lists of n elements in subtasks; copies:
// all lists are equal.
func generatedUnion(subtasks int, n int64, copies bool) (format.View, *generated) {
	g := &generated{base: map[format.Stream]uint64{}}
	op := sptest.Operator("op")
	op.Parallelism = int32(subtasks)
	for i := range subtasks {
		data := &format.Concat{Parts: []format.Part{{Of: &format.Inline{Name: format.NewText(fmt.Sprint("h", i))}, N: n * generatedSize}}}
		if !copies {
			g.base[data] = uint64(int64(i) * n)
		}
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: &format.OperatorHandle{
			Codec: format.CodecNative, Data: data, States: []format.NamedState{{Name: format.NewText("u"), Mode: format.ModeUnion, Offsets: spaced{n}}},
		}})
	}
	in := sptest.View(op)
	in.Source = g
	return in, g
}

// TestConstantMemory: a hundred million elements are diagnosed and pruned in
// memory that does not depend on their number: a table of up to three million
// different ones, and a bit an element for what stays.
func TestConstantMemory(t *testing.T) {
	testenv.Long(t, "reads a hundred million elements")
	const subtasks, n = 100, 1_000_000
	in, g := generatedUnion(subtasks, n, true)
	runtime.GC()
	debug.SetGCPercent(50)
	defer debug.SetGCPercent(100)
	sp, all, err := PruneUnion(t.Context(), in, PruneOptions{Keep: KeepDistinct})
	if err != nil {
		t.Fatal(err)
	}
	p := all.States[0]
	if p.Elements != subtasks*n || p.Distinct != n || p.Factor != subtasks || p.Verdict != VerdictProduct || p.Kept != n || p.BytesAfter != n*generatedSize {
		t.Errorf("%+v", p)
	}
	for i, s := range sp.Operators[0].Subtasks {
		if got := s.Managed.States[0].Offsets.Len(); got != n && i == 0 || got != 0 && i > 0 {
			t.Errorf("subtask %d holds %d elements", i, got)
		}
	}
	t.Logf("%d elements, at most %d MB in use", p.Elements, g.peak>>20)
	if g.peak == 0 || g.peak > 256<<20 {
		t.Errorf("%d MB in use", g.peak>>20)
	}
}

// TestManyPasses: more different elements than the table takes are counted in
// passes, in the memory of one.
func TestManyPasses(t *testing.T) {
	testenv.Long(t, "makes fifty million look-ups")
	const subtasks, n = 2, 4_000_000 // two passes of them
	in, g := generatedUnion(subtasks, n, true)
	runtime.GC()
	debug.SetGCPercent(50)
	defer debug.SetGCPercent(100)
	reports, err := DiagnoseUnions(t.Context(), in, UnionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r := reports[0]; r.Elements != subtasks*n || r.Distinct != n || r.DistinctBytes != n*generatedSize || r.Bytes != subtasks*n*generatedSize || r.Factor != subtasks || !r.Equal || r.MinCopies != 2 || r.MaxCopies != 2 {
		t.Errorf("%+v", r)
	}
	t.Logf("at most %d MB in use", g.peak>>20)
	if g.peak == 0 || g.peak > 256<<20 {
		t.Errorf("%d MB in use", g.peak>>20)
	}
}
