package format

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The kinds of errors. Each error of a decoder matches one of them with
// [errors.Is]. io.EOF is not one: it means the end of input between two elements,
// without an error.
var (
	// ErrCorrupt: the bytes break the format.
	ErrCorrupt = errors.New("corrupt")
	// ErrTruncated: the input is shorter than it records. It matches ErrCorrupt.
	ErrTruncated = fmt.Errorf("%w: cut short", ErrCorrupt)
	// ErrUnsupported: the input is or may be valid, but this module does not read
	// or write it.
	ErrUnsupported = errors.New("not supported")
	// ErrVersion: a version that no release has. It matches ErrUnsupported.
	ErrVersion = fmt.Errorf("%w: unknown version", ErrUnsupported)
	// ErrLimit: larger than [Limits] allow; detected before allocating.
	ErrLimit = errors.New("limit exceeded")
	// ErrChanged: the input changed or shrank while it was read.
	ErrChanged = errors.New("input changed while it was read")
	// ErrMissing: a stream that a handle refers to does not exist.
	ErrMissing = errors.New("missing")
	// ErrOutside: a reference leads outside the directories from which files may be
	// read. The file may or may not exist.
	ErrOutside = errors.New("outside the snapshot")
	// ErrNotChecked: the file of a reference was not looked for, for example
	// because it is in a store that is not supported or was not asked. The file may or may not exist.
	ErrNotChecked = errors.New("not checked")
)

// Limit is the error for one field of [Limits]. It matches ErrLimit. Its text is
// the name of the field for users, such as "memory" or "chunk-refs".
type Limit string

// Error implements error.
func (l Limit) Error() string { return "limit exceeded: " + string(l) }

// Unwrap returns ErrLimit.
func (l Limit) Unwrap() error { return ErrLimit }

// NoFile reports whether err says that a referenced file cannot be read here: it is
// missing, outside the readable directories, or was not looked for.
func NoFile(err error) bool {
	return errors.Is(err, ErrMissing) || errors.Is(err, ErrOutside) || errors.Is(err, ErrNotChecked)
}

// Error is an error with its location in the input. Decoders add the path from the
// inside out with [At]; the caller that opened the file adds File with [InFile].
type Error struct {
	File   string // as the user named it; "" if unknown
	Offset int64  // byte offset in File; -1 if unknown
	Path   string // path inside the snapshot: `operator[3] "sink"/subtask 1`
	Msg    string // what is wrong, with the values found
	Err    error  // a sentinel of this package, or the wrapped error
}

// Error returns "file @0x1f3a, path: message" without the unknown parts. The text
// of Err is added only if Msg is empty.
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

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Is makes truncations match io.ErrUnexpectedEOF as well.
func (e *Error) Is(target error) bool {
	return target == io.ErrUnexpectedEOF && errors.Is(e.Err, ErrTruncated)
}

// Errorf returns an [Error] of a kind with a message, and no file, offset or path.
func Errorf(kind error, msg string, args ...any) *Error {
	return &Error{Offset: -1, Msg: fmt.Sprintf(msg, args...), Err: kind}
}

// At returns err with a step prepended to its path; nil if err is nil. An error
// that is not an *Error is wrapped in one.
func At(err error, step string, args ...any) error {
	if err == nil {
		return nil
	}
	step = fmt.Sprintf(step, args...)
	e := bare(err)
	if e == nil {
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

// bare returns err if it is an *Error, also one that errors.Join returned because closing
// something did not fail; otherwise nil: a wrapper adds context that must be kept.
func bare(err error) *Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) == 1 {
		err = joined.Unwrap()[0]
	}
	e, _ := err.(*Error)
	return e
}

// InFile returns err with the name of its file, unless it already has one.
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
	e := bare(err)
	if e == nil {
		return &Error{File: file, Offset: -1, Err: err}
	}
	c := *e
	c.File = file
	return &c
}
