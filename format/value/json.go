package value

import (
	"fmt"

	"github.com/savepoint-tools/spt/format"
)

// JSONCodec is a [Codec] that also reads the JSON of its values, see docs/json.md.
type JSONCodec interface {
	Codec
	// FromJSON returns the value of the type that p, which is one JSON value,
	// represents. If p does not represent a value of the type, the error is a
	// *JSONError.
	FromJSON(p []byte) (Value, error)
}

// JSONError is the error for JSON that does not represent a value of a type. It
// matches format.ErrUnsupported.
type JSONError struct {
	Path    string // the part of the value, such as ".items[3].name"; "" for all of it
	Problem string // "expected an integer, found a string"
}

// Error implements error.
func (e *JSONError) Error() string {
	if e.Path == "" {
		return e.Problem
	}
	return fmt.Sprintf("%s: %s", e.Path, e.Problem)
}

// Unwrap returns format.ErrUnsupported.
func (e *JSONError) Unwrap() error { return format.ErrUnsupported }

// FromJSON returns the value of the codec's type that p represents. It returns a
// format.ErrUnsupported if the codec is not a [JSONCodec].
func FromJSON(c Codec, p []byte) (Value, error) {
	j, ok := c.(JSONCodec)
	if !ok {
		return Value{}, format.Errorf(format.ErrUnsupported, "values of this type cannot be read from JSON")
	}
	return j.FromJSON(p)
}
