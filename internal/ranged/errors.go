package ranged

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/storage"
)

// Class is what a caller can do about an error.
type Class int

const (
	// Permanent errors recur when the operation is repeated.
	Permanent Class = iota
	// Transient errors may not recur: the store was temporarily unavailable.
	Transient
	// InputChanged means that the object is no longer the one that was opened;
	// what was read of it so far must not be used.
	InputChanged
)

// Classify returns the class of an error of a store. An error that wraps the end
// of a context is permanent.
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

// Span turns the off and n of ReadRange into positions in an object, for callers
// to which a short range is an error: a range past the end returns
// io.ErrUnexpectedEOF, wrapped.
func Span(op string, info storage.Info, off, n int64) (start, end int64, err error) {
	start, end = Clip(info.Size, off, n)
	if off > info.Size || (n >= 0 && end-start < n) {
		return 0, 0, &storage.Error{Op: op, Name: info.Name, Err: fmt.Errorf("%d bytes at %d are past the end at %d: %w", n, off, info.Size, io.ErrUnexpectedEOF)}
	}
	return start, end, nil
}

// Clip turns the off and n of ReadRange into positions in an object of the given
// size, clipped at its end.
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
