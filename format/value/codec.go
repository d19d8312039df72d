package value

import (
	"errors"

	"github.com/savepoint-tools/spt/format"
)

// Codec reads and writes the values of one type. It is safe for concurrent use.
//
// The three methods are consistent: if Read succeeds, Skip returns the same length,
// and Append of the value returns the bytes that were read. Skip checks only what
// it needs to find the end, so it may accept bytes for which Read fails.
//
// If the bytes end within a value, the error matches format.ErrTruncated; if they
// are not a value of the type, format.ErrCorrupt; if the value is valid but cannot
// be represented, format.ErrUnsupported.
type Codec interface {
	// Skip returns the length of the value at the start of p.
	Skip(p []byte) (n int, err error)
	// Read returns the value at the start of p and its length. The value does not
	// refer to p.
	Read(p []byte) (v Value, n int, err error)
	// Append appends the encoding of v. If v is not a value of the type, it returns
	// dst and an error.
	Append(dst []byte, v Value) ([]byte, error)
}

// ArenaCodec is a [Codec] that can read values into memory that is used again.
type ArenaCodec interface {
	Codec
	// ReadIn reads the value at the start of p into v, which is null after an error, and
	// returns its length. The value may be used until the arena is reset.
	ReadIn(a *Arena, p []byte, v *Value) (n int, err error)
}

// ReadAll reads a value that is all of p.
func ReadAll(c Codec, p []byte) (Value, error) {
	v, n, err := c.Read(p)
	if err == nil && n < len(p) {
		return Value{}, trailing(p, n)
	}
	return v, err
}

// ReadAllIn reads a value that is all of p into v, which is null after an error. The
// value may be used until the arena is reset.
func ReadAllIn(a *Arena, c Codec, p []byte, v *Value) (err error) {
	in, ok := c.(ArenaCodec)
	if !ok {
		*v, err = ReadAll(c, p)
		return err
	}
	n, err := in.ReadIn(a, p, v)
	if err == nil && n < len(p) {
		*v, err = Value{}, trailing(p, n)
	}
	return err
}

func trailing(p []byte, n int) error {
	e := format.Errorf(format.ErrCorrupt, "%d trailing bytes after a value of %d", len(p)-n, n)
	e.Offset = int64(n)
	return e
}

// IsShort reports whether an error of Skip or Read means that p ends within the
// value, so that more bytes may complete it.
func IsShort(err error) bool { return errors.Is(err, format.ErrTruncated) }
