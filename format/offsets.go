package format

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// Offsets are the byte positions of elements or key groups in a stream. They are a
// view of the input and do not copy it. Offsets are safe for concurrent use.
type Offsets interface {
	// Len returns the number of offsets. It reads nothing.
	Len() int64
	// Read fills dst with the offsets from index from on and returns their number,
	// which is less than len(dst) only at the end. It never returns io.EOF. Only
	// offsets that are stored in chunks of an .spt file use ctx.
	Read(ctx context.Context, dst []int64, from int64) (int, error)
}

// OffsetSlice is offsets in memory.
type OffsetSlice []int64

// Len returns the number of offsets.
func (o OffsetSlice) Len() int64 { return int64(len(o)) }

// Read implements [Offsets].
func (o OffsetSlice) Read(_ context.Context, dst []int64, from int64) (int, error) {
	if err := checkFrom(from, int64(len(o))); err != nil {
		return 0, err
	}
	return copy(dst, o[from:]), nil
}

// OffsetBytes is a view of big-endian 8-byte offsets, as Flink writes them.
type OffsetBytes struct{ Data Bytes }

// Len returns the number of offsets.
func (o OffsetBytes) Len() int64 { return int64(o.Data.Len() / 8) }

// Read implements [Offsets].
func (o OffsetBytes) Read(_ context.Context, dst []int64, from int64) (int, error) {
	if err := checkFrom(from, o.Len()); err != nil {
		return 0, err
	}
	n := int(min(int64(len(dst)), o.Len()-from))
	err := o.Data.View(func(p []byte) error {
		p = p[from*8:]
		for i := range dst[:n] {
			dst[i] = int64(binary.BigEndian.Uint64(p[i*8:]))
		}
		return nil
	})
	return n, err
}

func checkFrom(from, n int64) error {
	if from < 0 || from > n {
		return fmt.Errorf("internal error: read of offset %d of %d", from, n)
	}
	return nil
}

// OffsetAt returns the offset at index i.
func OffsetAt(ctx context.Context, o Offsets, i int64) (int64, error) {
	var one [1]int64
	n, err := o.Read(ctx, one[:], i)
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	return one[0], err
}

var offsetBuffers = sync.Pool{New: func() any { return new([4096]int64) }}

// EachOffset calls f with runs of offsets, in order; first is the index of the
// first offset of a run. The run is valid until f returns. It stops at the first
// error.
func EachOffset(ctx context.Context, o Offsets, f func(first int64, run []int64) error) error {
	n := o.Len()
	var few [64]int64
	buf := few[:]
	if n > int64(len(few)) {
		// A walk for each of thousands of subtasks would leave much garbage.
		large := offsetBuffers.Get().(*[4096]int64)
		defer offsetBuffers.Put(large)
		buf = large[:]
	}
	for at := int64(0); at < n; {
		k, err := o.Read(ctx, buf, at)
		if err != nil {
			return err
		}
		if k == 0 {
			return io.ErrUnexpectedEOF
		}
		if err := f(at, buf[:k]); err != nil {
			return err
		}
		at += int64(k)
	}
	return nil
}
