package connector

import (
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// Or returns a codec that reads what c reads, otherwise what base reads. base is the
// codec of the serializer of the state; nil if it has none. Elements that neither reads
// are an ErrUnsupported: their serializer may still read them.
func Or(c, base value.Codec) value.Codec { return either{c, base} }

type either struct{ c, base value.Codec }

// Skip implements [value.Codec].
func (e either) Skip(p []byte) (int, error) {
	if e.base != nil {
		return e.base.Skip(p)
	}
	_, n, err := e.Read(p)
	return n, err
}

// Read implements [value.Codec].
func (e either) Read(p []byte) (value.Value, int, error) {
	v, n, err := e.c.Read(p)
	switch {
	case err == nil:
		return v, n, nil
	case e.base != nil:
		return e.base.Read(p)
	case errors.Is(err, format.ErrTruncated), errors.Is(err, format.ErrLimit):
		return v, n, err
	}
	return v, n, format.Errorf(format.ErrUnsupported, "not as the connector writes it: %v", err)
}

// Append implements [value.Codec].
func (e either) Append(dst []byte, v value.Value) ([]byte, error) {
	if e.base != nil && v.Kind() != value.KindRecord {
		return e.base.Append(dst, v)
	}
	return e.c.Append(dst, v)
}
