package format

import (
	"runtime"
	"runtime/debug"
)

// Bytes is a read-only view of bytes in memory or in a mapped file. Touching a
// mapped page past the end of a file that was truncated raises SIGBUS; the methods
// of Bytes return ErrChanged instead, so mapped bytes are accessed only through
// them. The zero value is empty. Bytes is safe for concurrent use.
type Bytes struct {
	p      []byte
	mapped bool
}

// NewBytes returns a view of p, which must not change afterwards.
func NewBytes(p []byte) Bytes { return Bytes{p: p} }

// MappedBytes returns a view of a mapped file. It must not be used after the file
// is unmapped.
func MappedBytes(p []byte) Bytes { return Bytes{p: p, mapped: true} }

// Len returns the number of bytes.
func (b Bytes) Len() int { return len(b.p) }

// Slice returns the part [from, to) of the view. It panics if the range is outside
// the view, as slicing does.
func (b Bytes) Slice(from, to int) Bytes { return Bytes{p: b.p[from:to:to], mapped: b.mapped} }

// ReadAt copies bytes from off on into dst and returns their number, which is less
// than len(dst) only at the end. It never returns io.EOF; the length is Len.
func (b Bytes) ReadAt(dst []byte, off int64) (n int, err error) {
	if off < 0 || off > int64(len(b.p)) {
		return 0, Errorf(ErrTruncated, "offset %d is outside the %d bytes", off, len(b.p))
	}
	err = b.View(func(p []byte) error {
		n = copy(dst, p[off:])
		return nil
	})
	return n, err
}

// View calls f with the bytes, which f must neither keep nor change. If a mapped
// file shrinks while f runs, View aborts f and returns ErrChanged.
func (b Bytes) View(f func(p []byte) error) (err error) {
	if !b.mapped {
		return f(b.p)
	}
	return guard(func() error { return f(b.p) })
}

// guard calls f and returns ErrChanged if f faults because a mapped file shrank. It
// covers the goroutine that calls f only, and recovers no other panic.
func guard(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		r := recover()
		if r == nil {
			return
		}
		if _, ok := r.(interface {
			runtime.Error
			Addr() uintptr
		}); ok {
			err = Errorf(ErrChanged, "the file shrank while it was read")
			return
		}
		panic(r)
	}()
	return f()
}
