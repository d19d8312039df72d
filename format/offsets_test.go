package format_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// failing are offsets that end or fail before their Len.
type failing struct {
	format.OffsetSlice
	err error
}

func (o failing) Len() int64 { return o.OffsetSlice.Len() + 1 }

func (o failing) Read(ctx context.Context, dst []int64, from int64) (int, error) {
	if from == o.OffsetSlice.Len() {
		return 0, o.err
	}
	return o.OffsetSlice.Read(ctx, dst, from)
}

func TestOffsets(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{0, 1, 2, 63, 64, 65, 4095, 4096, 4097, 10_000} {
		var want format.OffsetSlice
		var raw []byte
		for i := range n {
			v := int64(i)*1_000_003 - 1<<40
			want = append(want, v)
			raw = binary.BigEndian.AppendUint64(raw, uint64(v))
		}
		raw = append(raw, "tail"[:n%5]...) // bytes that are no whole offset
		view := format.OffsetBytes{Data: format.NewBytes(raw)}
		for name, o := range map[string]format.Offsets{"slice": want, "bytes": view, "pointer": &view} {
			if o.Len() != int64(n) {
				t.Errorf("%s: %d of %d", name, o.Len(), n)
			}
			var got []int64
			next := int64(0)
			err := format.EachOffset(ctx, o, func(first int64, run []int64) error {
				if first != next || len(run) == 0 {
					return fmt.Errorf("a run of %d at %d, after %d", len(run), first, next)
				}
				next += int64(len(run))
				got = append(got, run...)
				return nil
			})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %d read of %d, %v", name, len(got), n, err)
			}
			dst := make([]int64, 3)
			for _, from := range []int{0, n / 2, n - 1, n} {
				if from < 0 {
					continue
				}
				k, err := o.Read(ctx, dst, int64(from))
				if rest := want[from:]; err != nil || k != min(3, len(rest)) || !slices.Equal(dst[:k], rest[:k]) {
					t.Errorf("%s: from %d of %d: %v, %v", name, from, n, dst[:k], err)
				}
			}
			for _, from := range []int64{-1, int64(n) + 1} {
				if k, err := o.Read(ctx, dst, from); err == nil || k != 0 {
					t.Errorf("%s: from %d of %d: %d, %v", name, from, n, k, err)
				}
			}
			if n > 0 {
				if v, err := format.OffsetAt(ctx, o, int64(n-1)); err != nil || v != want[n-1] {
					t.Errorf("%s: the last is %d, %v", name, v, err)
				}
			}
			if _, err := format.OffsetAt(ctx, o, int64(n)); err != io.ErrUnexpectedEOF {
				t.Errorf("%s: behind the end: %v", name, err)
			}
		}
	}
}

func TestEachOffsetStops(t *testing.T) {
	ctx := context.Background()
	stop := errors.New("stop")
	if err := format.EachOffset(ctx, make(format.OffsetSlice, 10_000), func(int64, []int64) error { return stop }); err != stop {
		t.Error(err)
	}
	nothing := func(int64, []int64) error { return nil }
	if err := format.EachOffset(ctx, failing{make(format.OffsetSlice, 100), stop}, nothing); err != stop {
		t.Error(err)
	}
	if err := format.EachOffset(ctx, failing{make(format.OffsetSlice, 100), nil}, nothing); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
}

// TestOffsetsAllocateNothing: reading a view costs no memory per offset.
func TestOffsetsAllocateNothing(t *testing.T) {
	var o format.Offsets = &format.OffsetBytes{Data: format.MappedBytes(make([]byte, 8<<10))}
	dst := make([]int64, 128)
	if n := testing.AllocsPerRun(10, func() {
		for from := int64(0); from < o.Len(); from += 128 {
			if _, err := o.Read(context.Background(), dst, from); err != nil {
				t.Fatal(err)
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
