package format

import (
	"runtime"
	"runtime/debug"
)

// Bytes is a read-only view of bytes that were read or mapped. A view of a
// mapped file can lose its ground when the file shrinks, which a processor
// reports as a fault; Bytes turns that into ErrChanged, and is therefore the
// only way to such bytes. The zero value is empty. Safe for concurrent use.
type Bytes struct {
	p      []byte
	mapped bool
}

// NewBytes is a view of p, which must not change any more.
func NewBytes(p []byte) Bytes { return Bytes{p: p} }

// MappedBytes is a view of a mapped file. It must not be used after the
// mapping is gone.
func MappedBytes(p []byte) Bytes { return Bytes{p: p, mapped: true} }

// Len is the number of bytes.
func (b Bytes) Len() int { return len(b.p) }

// Slice is the part [from, to) of the view. It panics on a range outside, as
// a slice does.
func (b Bytes) Slice(from, to int) Bytes { return Bytes{p: b.p[from:to:to], mapped: b.mapped} }

// ReadAt copies bytes starting at off and returns how many there were. It
// never returns io.EOF: the caller knows Len.
func (b Bytes) ReadAt(dst []byte, off int64) (n int, err error) {
	if off < 0 || off > int64(len(b.p)) {
		return 0, Errorf(ErrTruncated, "byte %d of %d was asked for", off, len(b.p))
	}
	err = b.View(func(p []byte) error {
		n = copy(dst, p[off:])
		return nil
	})
	return n, err
}

// View calls f with the bytes. f must not keep or change them. A fault while f
// runs, because a mapped file shrank, ends f and becomes ErrChanged.
func (b Bytes) View(f func(p []byte) error) (err error) {
	if !b.mapped {
		return f(b.p)
	}
	return guard(func() error { return f(b.p) })
}

// guard runs f so that a fault on a mapped file becomes ErrChanged instead of
// the end of the process. Nothing else is caught. It holds for this goroutine.
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
