package value

import (
	"errors"

	"github.com/savepoint-tools/spt/format"
)

// Codec reads and writes the values of one type. It is safe for concurrent use.
//
// The three methods agree: where Read succeeds, Skip returns the same length, and
// Append of the value returns the bytes that were read. Skip checks no more than it
// needs to find the end, so it may accept what Read refuses.
//
// Bytes that end inside a value are a format.ErrTruncated; bytes that are not a
// value of the type a format.ErrCorrupt. A value whose bytes are valid but that
// cannot be represented is a format.ErrUnsupported.
type Codec interface {
	// Skip returns the length of the value at the start of p.
	Skip(p []byte) (n int, err error)
	// Read returns the value at the start of p and its length. Nothing in the
	// value refers to p.
	Read(p []byte) (v Value, n int, err error)
	// Append appends the bytes of a value. Where v is not a value of the type, it
	// returns dst and an error.
	Append(dst []byte, v Value) ([]byte, error)
}

// ReadAll reads a value that takes up all of p.
func ReadAll(c Codec, p []byte) (Value, error) {
	v, n, err := c.Read(p)
	if err == nil && n < len(p) {
		e := format.Errorf(format.ErrCorrupt, "%d bytes are left over", len(p)-n)
		e.Offset = int64(n)
		return Value{}, e
	}
	return v, err
}

// IsShort reports whether an error of Skip or Read says that p ends inside the
// value: more bytes may complete it.
func IsShort(err error) bool { return errors.Is(err, format.ErrTruncated) }
