package opstate_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// endless is a stream that takes no memory: a head, and one element again and
// again.
type endless struct {
	head, element string
	n             int64
	tail          string // after the elements
	reads, bytes  atomic.Int64
}

func (e *endless) size() int64 { return int64(len(e.head)) + e.n*int64(len(e.element)) }

func (e *endless) ReadAt(_ context.Context, _ format.Stream, p []byte, off int64) (int, error) {
	e.reads.Add(1)
	e.bytes.Add(int64(len(p)))
	if off < 0 || off+int64(len(p)) > e.size()+int64(len(e.tail)) {
		return 0, format.Errorf(format.ErrTruncated, "bytes %d to %d of %d", off, off+int64(len(p)), e.size())
	}
	all := len(p)
	if end := off + int64(len(p)); end > e.size() {
		from := max(e.size(), off)
		copy(p[from-off:], e.tail[from-e.size():])
		p = p[:from-off]
	}
	n := 0
	if off < int64(len(e.head)) {
		n = copy(p, e.head[off:])
	}
	for n < len(p) {
		at := (off + int64(n) - int64(len(e.head))) % int64(len(e.element))
		n += copy(p[n:], e.element[at:])
	}
	return all, nil
}

// steps is n offsets, from first on, step apart.
type steps struct{ first, step, n int64 }

func (s steps) Len() int64 { return s.n }

func (s steps) Read(_ context.Context, dst []int64, from int64) (int, error) {
	n := int(min(int64(len(dst)), s.n-from))
	for i := range dst[:n] {
		dst[i] = s.first + (from+int64(i))*s.step
	}
	return n, nil
}

// endlessHandle is a handle of n elements.
func endlessHandle(t testing.TB, w how, element string, n int64) (*endless, *format.OperatorHandle) {
	t.Helper()
	h := stream(w, state{name: "s", elements: []string{element}})
	p := flatten(h.Data)
	first := find(h, "s").Offsets.(format.OffsetSlice)[0]
	e := &endless{head: string(p[:first]), element: string(p[first:]), n: n}
	h.Data = &format.File{Length: e.size()}
	h.States[0].Offsets = steps{first, int64(len(e.element)), n}
	return e, h
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestConstantMemory walks gigabytes, and builds a handle from a hundred
// million elements, in a few megabytes.
func TestConstantMemory(t *testing.T) {
	testenv.Long(t, "reads gigabytes")
	for _, w := range []how{{version: 6}, {version: 6, framed: "one header"}} {
		e, h := endlessHandle(t, w, text(5000, 1), 700_000) // 3.5 GB
		codec := &opstate.Codec{}
		before := heap()
		cur, err := codec.Elements(t.Context(), e, h, "s", 0)
		if err != nil {
			t.Fatal(err)
		}
		most, n := int64(0), int64(0)
		for {
			el, err := cur.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if n++; len(el.Value) != 5000 {
				t.Fatalf("%d bytes", len(el.Value))
			}
			if n%100_000 == 1 {
				most = max(most, heap()-before)
			}
		}
		if n != e.n || most > 2<<20 || e.bytes.Load() != e.size()-int64(len(e.head))+5 {
			t.Errorf("%v: %d elements, %d bytes of heap, %d bytes read", w, n, most, e.bytes.Load())
		}
		t.Logf("%v: %d elements, %d bytes in %d reads, %d bytes of heap", w, n, e.bytes.Load(), e.reads.Load(), most)
	}
	e, h := endlessHandle(t, how{version: 6}, text(100, 1), 100_000_000)
	codec := &opstate.Codec{}
	metas, err := codec.Describe(t.Context(), e, h)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	built, err := codec.Build(t.Context(), e, []format.StateRuns{{StateMeta: metas[0], Runs: []format.ElementRun{
		{Handle: h, First: 60_000_000, Count: 40_000_000}, {Handle: h, Count: 60_000_000}}}})
	if err != nil {
		t.Fatal(err)
	}
	if used := heap() - before; used > 1<<20 || built.States[0].Offsets.Len() != 100_000_000 {
		t.Errorf("%d bytes of heap", used)
	}
	if at, err := format.OffsetAt(t.Context(), built.States[0].Offsets, 40_000_000); err != nil || at != int64(len(e.head))+4_000_000_000 {
		t.Error(at, err)
	}
	runtime.KeepAlive(built)
}

// TestReads: what is read, and how much, does not depend on the size of state.
func TestReads(t *testing.T) {
	e, h := endlessHandle(t, how{version: 6}, text(100, 1), 1<<40)
	codec := &opstate.Codec{}
	check := func(what string, reads, bytes int64) {
		t.Helper()
		if r, b := e.reads.Swap(0), e.bytes.Swap(0); r != reads || b > bytes {
			t.Errorf("%s: %d reads of %d bytes, want %d of at most %d", what, r, b, reads, bytes)
		}
	}
	if _, err := codec.Describe(t.Context(), e, h); err != nil {
		t.Fatal(err)
	}
	check("describe", 2, 5+4096)
	cur, err := codec.Elements(t.Context(), e, h, "s", 1<<39)
	if err != nil {
		t.Fatal(err)
	}
	check("open", 0, 0)
	for range 2000 {
		if el, err := cur.Next(); err != nil || string(el.Value) != text(100, 1) {
			t.Fatal(err)
		}
	}
	check("2000 elements", 1, 256<<10)
	metas, err := codec.Describe(t.Context(), e, h)
	if err != nil {
		t.Fatal(err)
	}
	check("describe again", 1, 4096)
	if _, err := codec.Build(t.Context(), e, runs(t, h, metas)); err != nil {
		t.Fatal(err)
	}
	check("build", 0, 0)
	if _, err := codec.Elements(t.Context(), e, h, "s", 1<<40); err != nil {
		t.Fatal(err)
	}
	check("open at the end", 0, 0)

	// A long envelope is read in steps, never further than the first element.
	var states []state
	for i := range 300 {
		states = append(states, state{name: fmt.Sprint("state ", i), elements: []string{text(100, 1)}})
	}
	big := stream(how{version: 6}, states...)
	src := &memory{}
	if _, err := (&opstate.Codec{}).Describe(t.Context(), src, big); err != nil {
		t.Fatal(err)
	}
	end := find(big, "state 0").Offsets.(format.OffsetSlice)[0]
	if r, b := src.reads.Load(), src.bytes.Load(); r > 7 || b != end+5 {
		t.Errorf("an envelope of %d bytes: %d reads of %d bytes", end, r, b)
	}
}

// TestLengthIsAClaim: an element said to be huge takes no more memory than is
// really there.
func TestLengthIsAClaim(t *testing.T) {
	h := stream(how{version: 6}, state{name: "s", elements: []string{"x"}})
	p := flatten(h.Data)
	h.Data = &format.File{Length: 1 << 29}
	before := heap()
	if _, err := elements(t.Context(), &opstate.Codec{}, cut(p), h, "s", 0); err == nil {
		t.Fatal("accepted")
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if used := int64(m.HeapAlloc) - before; used > 1<<20 {
		t.Errorf("%d bytes of heap", used)
	}
}

// TestBuffersAreUsedAgain: cursors one after another read into the same memory,
// and those open at the same time do not.
func TestBuffersAreUsedAgain(t *testing.T) {
	codec := &opstate.Codec{}
	open := func(element string) format.Cursor {
		e, h := endlessHandle(t, how{version: 6}, element, 200)
		cur, err := codec.Elements(t.Context(), e, h, "s", 0)
		if err != nil {
			t.Fatal(err)
		}
		return cur
	}
	const size, cursors = 5000, 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range cursors {
		a, b := open(text(size, byte(i))), open(text(size, byte(i+1)))
		for range 3 {
			x, err := a.Next()
			y, err2 := b.Next()
			if err != nil || err2 != nil || string(x.Value) != text(size, byte(i)) || string(y.Value) != text(size, byte(i+1)) {
				t.Fatalf("cursor %d: %v, %v, or other elements", i, err, err2)
			}
		}
		// The second time there is nothing to give back.
		for _, cur := range []format.Cursor{a, a, b} {
			if err := cur.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.ReadMemStats(&after)
	// The race detector has a pool forget some.
	if n := after.TotalAlloc - before.TotalAlloc; n > 2*cursors*(256<<10) {
		t.Errorf("%d cursors took %d bytes", 2*cursors, n)
	}
}
