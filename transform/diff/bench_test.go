package diff

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// unionFile writes a _metadata of union state and opens it.
func unionFile(t testing.TB, o sptest.UnionOptions) format.View {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := sptest.WriteUnion(w, o); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return sptest.Open(t, dir).View()
}

// peakHeap runs f and gives the largest heap that was seen meanwhile, of what
// f added.
func peakHeap(f func()) int64 {
	var before, m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak atomic.Int64
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), int64(m.HeapInuse)-int64(before.HeapInuse)))
			}
		}
	}()
	f()
	close(done)
	<-stopped
	return peak.Load()
}

// BenchmarkDiffElements compares operator state of SPT_BENCH_MIB MiB each side
// (128 unless set): both the same, one subtask in a hundred other, all other.
// Bytes are those of both sides.
func BenchmarkDiffElements(b *testing.B) {
	mib := int64(128)
	if n, err := strconv.ParseInt(os.Getenv("SPT_BENCH_MIB"), 10, 64); err == nil {
		mib = n
	}
	o := sptest.UnionOfSize(mib << 20)
	x := unionFile(b, o)
	other := o
	other.Seed += uint64(max(o.Subtasks/100, 1)) // its subtasks but the last are those of x but the first
	few := unionFile(b, other)
	other.Seed = 1 << 40
	all := unionFile(b, other)
	for _, tt := range []struct {
		name string
		b    format.View
	}{{"same", x}, {"few", few}, {"all", all}} {
		b.Run(tt.name, func(b *testing.B) {
			b.SetBytes(2 * o.Size())
			peak := peakHeap(func() {
				for b.Loop() {
					d, err := Savepoints(b.Context(), x, tt.b, Options{List: 10})
					if err != nil || d.Same() != (tt.name == "same") {
						b.Fatal(err, d.Differences)
					}
				}
			})
			b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
		})
	}
}

// TestDiffMemory: a few million elements that all differ stay within a bound
// that does not grow with them.
func TestDiffMemory(t *testing.T) {
	testenv.Long(t, "writes 200 MB")
	o := sptest.UnionOptions{Subtasks: 64, Elements: 40_000, ElementSize: 24, Seed: 1}
	a := unionFile(t, o)
	o.Seed = 1000
	b := unionFile(t, o)
	const distinct = 100_000 // in memory
	var e *Elements
	var passes float64
	n := int64(o.Subtasks * o.Elements)
	peak := peakHeap(func() {
		e, passes = passesOf(t, boundedDiffer(t, a, b, Options{List: 10}, distinct), 2*n*int64(4+o.ElementSize))
	})
	if e.Added != n || e.Removed != n || len(e.AddedList) != 10 {
		t.Errorf("+%d -%d, want %d", e.Added, e.Removed, n)
	}
	// One for the sums, and one to count, however few fit into memory.
	if passes != 2 {
		t.Errorf("%.1f passes, expected 2", passes)
	}
	t.Logf("%d elements of which all differ, in %.1f passes, at most %d MiB", e.Added+e.Removed, passes, peak>>20)
	// Two tables take 20 MiB, and as much garbage while they grow; in memory, all
	// elements would take 200.
	if peak > 64<<20 {
		t.Errorf("%d MiB", peak>>20)
	}
}
