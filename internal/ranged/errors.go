package ranged

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/storage"
)

// Class says what can be done about an error.
type Class int

const (
	// Permanent errors come again when the same thing is tried.
	Permanent Class = iota
	// Transient errors may not: the store was out of reach for a moment.
	Transient
	// InputChanged means that the object is no longer the one that was opened;
	// what was read of it so far must not be used.
	InputChanged
)

// Classify says what can be done about an error of a store. A context that is
// over is permanent, whatever else went wrong with it.
func Classify(err error) Class {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Permanent
	case errors.Is(err, storage.ErrChanged):
		return InputChanged
	case errors.Is(err, storage.ErrUnavailable):
		return Transient
	}
	return Permanent
}

// Span turns the off and n of ReadRange into positions in an object, for those
// who must not read less than they asked for: past the end is an error that
// wraps io.ErrUnexpectedEOF.
func Span(op string, info storage.Info, off, n int64) (start, end int64, err error) {
	start, end = Clip(info.Size, off, n)
	if off > info.Size || (n >= 0 && end-start < n) {
		return 0, 0, &storage.Error{Op: op, Name: info.Name, Err: fmt.Errorf("%d bytes at %d are past the end at %d: %w", n, off, info.Size, io.ErrUnexpectedEOF)}
	}
	return start, end, nil
}

// Clip turns the off and n of ReadRange into positions in an object of that size,
// cut at its end. Stores and Reader share it.
func Clip(size, off, n int64) (start, end int64) {
	if off < 0 {
		off = max(0, size+off)
	}
	start = min(off, size)
	if n < 0 || n > size-start {
		n = size - start
	}
	return start, start + n
}
