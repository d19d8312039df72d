package opstate_test

import (
	"io"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
)

// BenchmarkElements walks elements of 100 bytes.
func BenchmarkElements(b *testing.B) {
	for _, w := range []how{{version: 6}, {version: 6, framed: "one header"}} {
		b.Run(w.String(), func(b *testing.B) {
			const n = 1_000_000
			e, h := endlessHandle(b, w, text(100, 1), n)
			b.SetBytes(n * 100)
			codec := &opstate.Codec{}
			for b.Loop() {
				cur, err := codec.Elements(b.Context(), e, h, "s", 0)
				if err != nil {
					b.Fatal(err)
				}
				for {
					if _, err := cur.Next(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Melements/s")
		})
	}
}

// BenchmarkBuild lays out a million runs of one element each, no two of which
// are neighbours.
func BenchmarkBuild(b *testing.B) {
	const n = 1_000_000
	e, h := endlessHandle(b, how{version: 6}, text(100, 1), 2*n)
	codec := &opstate.Codec{}
	metas, err := codec.Describe(b.Context(), e, h)
	if err != nil {
		b.Fatal(err)
	}
	s := format.StateRuns{StateMeta: metas[0]}
	for i := range int64(n) {
		s.Runs = append(s.Runs, format.ElementRun{Handle: h, First: 2 * i, Count: 1})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := codec.Build(b.Context(), e, []format.StateRuns{s}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mruns/s")
}
