package metadata_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// sink hides io.Discard's own methods, so that nothing takes a short cut.
type sink struct{ n int64 }

func (s *sink) Write(p []byte) (int, error) { s.n += int64(len(p)); return len(p), nil }

var _ io.Writer = (*sink)(nil)

// BenchmarkInline is 100 subtasks of 1 MB inline and 10,000 offsets each.
func BenchmarkInline(b *testing.B) {
	var file bytes.Buffer
	if err := sptest.WriteUnion(&file, sptest.UnionOptions{Subtasks: 100, Elements: 10_000, ElementSize: 100}); err != nil {
		b.Fatal(err)
	}
	benchRoundTrip(b, file.Bytes())
}

// BenchmarkSmall is 200 operators of 32 subtasks with some 600 bytes each.
func BenchmarkSmall(b *testing.B) {
	var file bytes.Buffer
	if err := sptest.SmallStates(&file, sptest.SmallOptions{Operators: 200, Subtasks: 32, ElementSize: 32}); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d bytes a subtask", file.Len()/6400)
	benchRoundTrip(b, file.Bytes())
}

func benchRoundTrip(b *testing.B, file []byte) {
	for _, how := range []struct {
		name  string
		bytes format.Bytes
	}{{"read", format.NewBytes(file)}, {"mapped", format.MappedBytes(file)}} {
		b.Run(how.name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				sp, err := metadata.Decode(how.bytes, metadata.Options{})
				if err != nil {
					b.Fatal(err)
				}
				var out sink
				if err := metadata.Encode(context.Background(), &out, sp, nil); err != nil {
					b.Fatal(err)
				}
				if out.n != int64(len(file)) {
					b.Fatalf("%d bytes out of %d", out.n, len(file))
				}
			}
		})
	}
}
