package scratch

import (
	"errors"
	"os"
)

// File is a temporary file.
type File struct {
	*os.File
	removed bool
}

// Create creates a file in a directory; "" means the directory of the system. If the system
// allows it, the file has no name from here on, and so disappears when the process ends
// in any way. The error is an *Error.
func Create(dir, pattern string) (*File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, &Error{err}
	}
	return &File{File: f, removed: os.Remove(f.Name()) == nil}, nil
}

// Close closes and removes the file. The error is an *Error.
func (f *File) Close() error {
	err := f.File.Close()
	if !f.removed {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	if err != nil {
		return &Error{err}
	}
	return nil
}

// Error is an error of a temporary file. It does not unwrap: a missing or full directory
// must not be mistaken for an error of what was read.
type Error struct{ Err error }

func (e *Error) Error() string { return "temporary file: " + e.Err.Error() }
