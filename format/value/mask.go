package value

import (
	"slices"
	"unsafe"

	"github.com/savepoint-tools/spt/format"
)

// Mask replaces the parts of values by others, equal parts by equal ones.
type Mask interface {
	// Leaf returns a replacement for a value without parts that is not null.
	Leaf(v Value) (Value, error)
	// Name returns a replacement for a string that names something, such as a topic
	// or a file: its punctuation stays.
	Name(v Value) (Value, error)
	// Choice returns a replacement for the constant with index i of n.
	Choice(i, n int) int
}

// Masker is a [Codec] that knows which parts of its values a [Mask] can replace: the
// number of a window, for one, has a meaning for Flink.
type Masker interface {
	Codec
	// Mask returns v, a value of the codec, with its parts replaced. The error matches
	// format.ErrUnsupported if a part cannot be replaced.
	Mask(v Value, m Mask) (Value, error)
}

// Masked returns v with its parts replaced: as the codec does it if it is a [Masker],
// otherwise all parts.
func Masked(c Codec, v Value, m Mask) (Value, error) {
	if c, ok := c.(Masker); ok {
		return c.Mask(v, m)
	}
	return v.MapLeaves(m.Leaf)
}

// MapLeaves returns v with each value in it that has no parts and is not null replaced
// by the result of f. Its other details stay: classes, names of fields, variants.
func (v Value) MapLeaves(f func(Value) (Value, error)) (Value, error) {
	switch {
	case v.kind == KindNull:
		return v, nil
	case v.kind < KindList:
		out, err := f(v)
		out.variant, out.shape = v.variant, v.shape
		return out, err
	}
	return v.MapParts(func(_ int, p Value) (Value, error) { return p.MapLeaves(f) })
}

// MapParts returns v, a list, a record or a map, with each element, field, key and
// value of an entry replaced by the result of f, which is called with its index; the
// key of entry i has the index 2i, and its value 2i+1.
func (v Value) MapParts(f func(i int, p Value) (Value, error)) (Value, error) {
	if v.kind < KindList {
		return v, format.Errorf(format.ErrUnsupported, "expected a value with parts, found %v", v.kind)
	}
	parts := slices.Clone(v.parts())
	for i, p := range parts {
		var err error
		if parts[i], err = f(i, p); err != nil {
			return v, err
		}
	}
	v.data = unsafe.Pointer(unsafe.SliceData(parts))
	return v, nil
}
