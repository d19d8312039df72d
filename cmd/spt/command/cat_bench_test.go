package command

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/writer"
)

// BenchmarkCat prints a million elements of 100 bytes.
func BenchmarkCat(b *testing.B) {
	file := bigSavepoint(b, 100)
	for _, args := range [][]string{{}, {"--jobs", "1"}, {"--raw"}, {"--where", "size > 90"}, {"--where", `value contains "abc"`}, {"--distinct"}, {"--stats"}, {"-o", "csv"}} {
		b.Run(strings.Join(append([]string{"cat"}, args...), " "), func(b *testing.B) { benchmarkCat(b, file, 1_000_000, args...) })
	}
}

// BenchmarkCatElements prints a million elements of real jobs on one processor.
func BenchmarkCatElements(b *testing.B) {
	for _, x := range []struct{ name, fixture, state string }{
		{"POJO", "flink-1.20-operator-files-compressed", "counts"},
		{"tuple", "flink-1.20-operator", "zeta"},
		{"string", "flink-1.20-operator", "state"},
		{"long", "flink-1.20-operator", "largest"},
		{"split", "flink-1.20-operator", "SourceReaderState"},
	} {
		const elements = 1_000_000
		dir, size := repeated(b, x.fixture, x.state, elements)
		b.Run(x.name, func(b *testing.B) {
			b.SetBytes(size)
			benchmarkCat(b, dir, elements, "--jobs", "1", "--state", x.state)
		})
	}
}

func benchmarkCat(b *testing.B, location string, elements float64, args ...string) {
	b.ReportAllocs()
	for b.Loop() {
		env := OSEnv()
		env.Stdout, env.Getenv = io.Discard, func(string) string { return "" }
		if code := Main(context.Background(), append([]string{"cat", location}, args...), env); code != 0 {
			b.Fatal(code)
		}
	}
	b.ReportMetric(float64(b.N)*elements/b.Elapsed().Seconds()/1e6, "Melements/s")
}

// repeated writes a snapshot with the elements of one state of a fixture, n in all, and
// returns their size in bytes.
func repeated(b *testing.B, fixture, state string, n int64) (dir string, size int64) {
	b.Helper()
	snap := sptest.Open(b, testenv.Fixture(b, fixture))
	sp, err := snap.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		return op.MapManaged(func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
			k := slices.IndexFunc(h.States, func(s format.NamedState) bool { return s.Name.String() == state })
			if k < 0 || size > 0 {
				return nil, nil
			}
			codec, err := snap.Codec(h.Codec)
			if err != nil {
				return nil, err
			}
			metas, err := codec.Describe(b.Context(), snap.Source(), h)
			if err != nil {
				return nil, err
			}
			described := slices.IndexFunc(metas, func(m format.StateMeta) bool { return m.Name.String() == state })
			once := h.States[k].Offsets.Len()
			runs := slices.Repeat([]format.ElementRun{{Handle: h, State: k, Count: once}}, int(n/once))
			runs = append(runs, format.ElementRun{Handle: h, State: k, Count: n % once})
			err = format.EachElement(b.Context(), snap.Source(), codec, h, state, func(e format.Element) error {
				size += int64(len(e.Value)) * n / once
				return nil
			})
			if err != nil {
				return nil, err
			}
			return codec.Build(b.Context(), snap.Source(), []format.StateRuns{{StateMeta: metas[described], Runs: runs}})
		})
	})
	if err != nil || size == 0 {
		b.Fatal(err, size)
	}
	dir = filepath.Join(b.TempDir(), "repeated-"+strconv.FormatInt(n, 10))
	if _, err := writer.Write(b.Context(), snap.View().With(sp), dir, nil); err != nil {
		b.Fatal(err)
	}
	return dir, size
}
