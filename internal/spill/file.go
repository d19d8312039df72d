package spill

import (
	"errors"
	"io"
	"os"

	"github.com/savepoint-tools/spt/internal/tally"
)

// File is a temporary file. Bytes are appended, and can be read once Flush was called.
// If the system allows it, the file has no name, and so disappears when the process ends
// in any way. Errors are *tally.TempError.
type File struct {
	f       *os.File
	removed bool
	buf     []byte
	size    int64
}

const bufferSize = 256 << 10

// NewFile creates a file in a directory; "" is the directory of the system.
func NewFile(dir string) (*File, error) {
	f, err := os.CreateTemp(dir, "spt-spill-*.tmp")
	if err != nil {
		return nil, &tally.TempError{Err: err}
	}
	return &File{f: f, removed: os.Remove(f.Name()) == nil, buf: make([]byte, 0, bufferSize)}, nil
}

// Size returns the number of bytes that were written.
func (f *File) Size() int64 { return f.size }

// Write appends bytes.
func (f *File) Write(p []byte) (int, error) {
	if len(f.buf)+len(p) > cap(f.buf) {
		if err := f.Flush(); err != nil {
			return 0, err
		}
	}
	f.size += int64(len(p))
	if len(p) <= cap(f.buf) {
		f.buf = append(f.buf, p...)
		return len(p), nil
	}
	n, err := f.f.Write(p)
	if err != nil {
		err = &tally.TempError{Err: err}
	}
	return n, err
}

// Flush makes what was written readable.
func (f *File) Flush() error {
	_, err := f.f.Write(f.buf)
	f.buf = f.buf[:0]
	if err != nil {
		return &tally.TempError{Err: err}
	}
	return nil
}

// ReadAt implements io.ReaderAt. It is safe for concurrent use after the last Flush.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &tally.TempError{Err: err}
	}
	return n, err
}

// Close closes and removes the file.
func (f *File) Close() error {
	err := f.f.Close()
	if !f.removed {
		err = errors.Join(err, os.Remove(f.f.Name()))
	}
	if err != nil {
		return &tally.TempError{Err: err}
	}
	return nil
}
