package transform

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/writer"
)

// A union state of 10,000 elements of 100 bytes that one restore has multiplied
// by 100: a million elements, 107 MB.
const (
	benchSubtasks = 100
	benchElements = 10_000
)

func benchUnion(b *testing.B, copies bool) (storage.Resolver, *reader.Snapshot) {
	b.Helper()
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, "_metadata"))
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	err = sptest.WriteUnion(w, sptest.UnionOptions{Subtasks: benchSubtasks, Elements: benchElements, ElementSize: 96, Copies: copies, Seed: 1})
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	stores := route.New(local.New())
	return stores, sptest.OpenIn(b, stores, dir)
}

func perSecond(b *testing.B) {
	b.ReportMetric(float64(b.N)*benchSubtasks*benchElements/b.Elapsed().Seconds()/1e6, "Melements/s")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys)/1e6, "MB-heap")
}

func BenchmarkDiagnose(b *testing.B) {
	for name, copies := range map[string]bool{"copies": true, "distinct": false} {
		b.Run(name, func(b *testing.B) {
			_, snap := benchUnion(b, copies)
			b.ReportAllocs()
			for b.Loop() {
				r, err := DiagnoseUnions(b.Context(), snap.View(), UnionOptions{})
				if err != nil || copies != (r[0].Verdict == VerdictProduct) {
					b.Fatal(r, err)
				}
			}
			perSecond(b)
		})
	}
}

func BenchmarkRedact(b *testing.B) {
	_, snap := benchUnion(b, false)
	for b.Loop() {
		_, done, err := Redact(b.Context(), snap.View(), RedactOptions{Key: []byte("secret"), Values: snap.Values})
		if err != nil || done.Elements != benchSubtasks*benchElements {
			b.Fatal(done, err)
		}
	}
	perSecond(b)
}

func BenchmarkPrune(b *testing.B) {
	for _, keep := range []Keep{KeepDistinct, KeepCopies, KeepModulo} {
		for _, target := range []string{"out", "out.spt"} {
			b.Run(string(keep)+"/"+target, func(b *testing.B) {
				stores, snap := benchUnion(b, true)
				dir := b.TempDir()
				b.ReportAllocs()
				for b.Loop() {
					sp, all, err := PruneUnion(b.Context(), snap.View(), PruneOptions{Keep: keep})
					if err != nil || all.States[0].Kept != benchElements {
						b.Fatal(all, err)
					}
					if _, err := writer.Write(b.Context(), sp, filepath.Join(dir, target), &writer.Options{Stores: stores, Overwrite: true}); err != nil {
						b.Fatal(err)
					}
				}
				perSecond(b)
			})
		}
	}
}
