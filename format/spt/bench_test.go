package spt_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
)

// inflatedList is the stream of a union state as a restored job leaves it in
// every subtask: elements of a key, a counter and a padded text.
func inflatedList(elements int) (p []byte, offsets format.OffsetSlice) {
	rng := rand.New(rand.NewPCG(1, 2))
	p = append(p, "a header, as the envelope of a stream is"...)
	for i := range elements {
		offsets = append(offsets, int64(len(p)))
		p = binary.BigEndian.AppendUint64(p, rng.Uint64()>>16)
		p = binary.BigEndian.AppendUint64(p, uint64(i))
		p = append(p, fmt.Sprintf("element %08d of topic orders, partition %03d, host worker-%02d.cluster.example, region eu-%d", i, rng.IntN(200), rng.IntN(40), rng.IntN(4))...)
	}
	return p, offsets
}

// inflated is a savepoint of one union state, with the same list in each of
// the subtasks.
func inflated(subtasks, elements int) (*format.Savepoint, int64) {
	p, offsets := inflatedList(elements)
	op := &format.Operator{ID: format.OperatorIDOf("union"), Parallelism: int32(subtasks), MaxParallelism: 128}
	for i := range subtasks {
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: &format.OperatorHandle{
			Codec:  format.CodecFlink,
			States: []format.NamedState{{Name: format.NewText("offsets"), Mode: format.ModeUnion, Offsets: offsets}},
			Data:   inline(fmt.Sprintf("file:/savepoint/%d", i), p),
		}})
	}
	return &format.Savepoint{ID: 1, Operators: []*format.Operator{op}}, int64(len(p)) * int64(subtasks)
}

// BenchmarkInflated writes 100 copies of a list of about 1 MB. The bar is
// `tar | zstd -3 --long=27` over the same bytes: about 0.3 s. Set
// SPT_BENCH_DIR to have the streams and the file written there.
func BenchmarkInflated(b *testing.B) {
	sp, n := inflated(100, 10_000)
	var written countWriter
	b.SetBytes(n)
	for b.Loop() {
		written = 0
		if _, _, err := spt.Write(context.Background(), &written, sp, source{}, nil, spt.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(written), "file-bytes")
	if dir := os.Getenv("SPT_BENCH_DIR"); dir != "" {
		for i, s := range sp.Operators[0].Subtasks {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("subtask-%d", i)), content(b, source{}, s.Managed.Data), 0o666); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkOpen opens the file of such a savepoint.
func BenchmarkOpen(b *testing.B) {
	sp, _ := inflated(100, 10_000)
	p := pack(b, sp, source{}, spt.Options{})
	for b.Loop() {
		mustOpen(b, p)
	}
}

type countWriter int64

func (w *countWriter) Write(p []byte) (int, error) {
	*w += countWriter(len(p))
	return len(p), nil
}

var _ io.Writer = (*countWriter)(nil)

// BenchmarkWide writes and opens a savepoint of 100,000 subtasks: what the
// model costs where there is little state.
func BenchmarkWide(b *testing.B) {
	sp := wide(1000, 100)
	var p []byte
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p = pack(b, sp, source{}, spt.Options{})
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mustOpen(b, p)
		}
	})
}
