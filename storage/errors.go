package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of errors, for errors.Is. Some are the values of package fs, so that
// errors of package os match too.
var (
	ErrNotExist    = fs.ErrNotExist
	ErrExist       = fs.ErrExist
	ErrPermission  = fs.ErrPermission
	ErrUnsupported = errors.ErrUnsupported
	ErrChanged     = errors.New("changed while it was read")
	ErrUnavailable = errors.New("storage unavailable")
	ErrNoSpace     = errors.New("no space left")
)

// Error is the error of a store: the operation, the object and the cause. Err
// must not hold credentials; credentials in Name, which may be a URI, are left
// out of the message.
type Error struct {
	Op   string // "read", "stat", "list", "create", "write", "commit", …
	Name string
	Err  error
	Hint string // what the user can do; "" if unknown
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %v", e.Op, safeName(e.Name), e.Err)
}

// SafeName returns Name as used in the message: without credentials.
func (e *Error) SafeName() string { return safeName(e.Name) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// safeName returns a name for a message: without the user part and the query of a
// URI, which can hold credentials and signatures, and without control characters.
func safeName(name string) string {
	if scheme, rest, ok := strings.Cut(name, "://"); ok {
		rest, _, cut := strings.Cut(rest, "?")
		host, path, slash := strings.Cut(rest, "/")
		at := strings.LastIndexByte(host, '@')
		if _, port, ok := strings.Cut(host, ":"); ok && at < 0 && strings.Trim(port, "0123456789") != "" {
			at = strings.LastIndexByte(rest, '@') // not a port: a secret with a "/" in it
			host, path, slash = strings.Cut(rest[at+1:], "/")
		} else {
			host = host[at+1:]
		}
		name = scheme + "://" + host
		if slash {
			name += "/" + path
		}
		if cut {
			name += "?…"
		}
	}
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

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
	case errors.Is(err, ErrChanged):
		return InputChanged
	case errors.Is(err, ErrUnavailable):
		return Transient
	}
	return Permanent
}

// Span turns the off and n of ReadRange into positions in an object, for callers
// to which a short range is an error: a range past the end returns
// io.ErrUnexpectedEOF, wrapped.
func Span(op string, info Info, off, n int64) (start, end int64, err error) {
	start, end = Clip(info.Size, off, n)
	if off > info.Size || (n >= 0 && end-start < n) {
		return 0, 0, &Error{Op: op, Name: info.Name, Err: fmt.Errorf("%d bytes at %d are past the end at %d: %w", n, off, info.Size, io.ErrUnexpectedEOF)}
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
