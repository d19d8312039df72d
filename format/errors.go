package format

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The kinds of trouble that an input can be. Every error of a decoder matches
// one of them with [errors.Is]; io.EOF alone means a clean end between two
// elements and is none of them.
var (
	// ErrCorrupt: the bytes break the format.
	ErrCorrupt = errors.New("corrupt")
	// ErrTruncated: the input ends before what it promised. It is an
	// ErrCorrupt too.
	ErrTruncated = fmt.Errorf("%w: cut short", ErrCorrupt)
	// ErrUnsupported: valid, or perhaps valid, but not read or written by us.
	ErrUnsupported = errors.New("not supported")
	// ErrVersion: a version that no release has. It is an ErrUnsupported too.
	ErrVersion = fmt.Errorf("%w: unknown version", ErrUnsupported)
	// ErrLimit: larger than the limits allow; refused before allocating.
	ErrLimit = errors.New("limit exceeded")
	// ErrChanged: the input changed or shrank while it was read.
	ErrChanged = errors.New("input changed while it was read")
	// ErrMissing: a stream is referred to and is not there.
	ErrMissing = errors.New("missing")
	// ErrOutside: a reference leads out of the folders whose files are read. It
	// says nothing about the file.
	ErrOutside = errors.New("outside the snapshot")
	// ErrNotChecked: nobody looked whether the file of a reference is there, such
	// as one in a store that is not supported here. It says nothing about the
	// file.
	ErrNotChecked = errors.New("not checked")
)

// Limit is the ErrLimit of one field of [Limits], by the name that people know it
// by: "memory", "chunk-refs".
type Limit string

// Error names the limit.
func (l Limit) Error() string { return "limit exceeded: " + string(l) }

// Unwrap is ErrLimit.
func (l Limit) Unwrap() error { return ErrLimit }

// NoFile reports whether an error says that the bytes of a reference cannot be read here: its
// file is missing, is not read because of where it is, or was not looked for.
func NoFile(err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, ErrOutside) || errors.Is(err, ErrNotChecked)
}

// Error says where in an input something went wrong. Decoders build it from
// the inside out with [At]; File is added by whoever opened the file.
type Error struct {
	File   string // as the user named it, or ""
	Offset int64  // byte position in File, or -1
	Path   string // place inside: `operator[3] "sink"/subtask 1`
	Msg    string // what is wrong, with the numbers
	Err    error  // a sentinel of this package, or what was wrapped
}

// Error gives "file @0x1f3a, path: message", leaving out what is not known.
// The text of a sentinel is added only where there is no message of its own.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Offset >= 0 {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "@0x%x", e.Offset)
	}
	if e.Path != "" {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(e.Path)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	switch {
	case e.Msg != "":
		b.WriteString(e.Msg)
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the kind, for errors.Is.
func (e *Error) Unwrap() error { return e.Err }

// Is lets a truncation match io.ErrUnexpectedEOF as well.
func (e *Error) Is(target error) bool {
	return target == io.ErrUnexpectedEOF && errors.Is(e.Err, ErrTruncated)
}

// Errorf makes an [Error] of a kind, with its message, at no place yet.
func Errorf(kind error, msg string, args ...any) *Error {
	return &Error{Offset: -1, Msg: fmt.Sprintf(msg, args...), Err: kind}
}

// At puts one step of the path in front of an error, on its way out. An error
// that is not an *Error becomes one.
func At(err error, step string, args ...any) error {
	if err == nil {
		return nil
	}
	step = fmt.Sprintf(step, args...)
	e, ok := err.(*Error) // not errors.As: what wraps it has something to say
	if !ok {
		return &Error{Offset: -1, Path: step, Err: err}
	}
	c := *e
	if c.Path == "" {
		c.Path = step
	} else {
		c.Path = step + "/" + c.Path
	}
	return &c
}

// InFile names the file an error belongs to, unless it already names one.
func InFile(err error, file string) error {
	if err == nil {
		return nil
	}
	var inner *Error
	for in := err; errors.As(in, &inner); in = inner.Err {
		if inner.File != "" {
			return err
		}
	}
	e, ok := err.(*Error)
	if !ok {
		return &Error{File: file, Offset: -1, Err: err}
	}
	c := *e
	c.File = file
	return &c
}
