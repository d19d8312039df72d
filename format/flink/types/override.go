package types

import (
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// Part is a part of a state that has a type of its own.
type Part uint8

// The parts.
const (
	PartValue     Part = iota // the value; of a list and of operator state, an element; of a map, one value
	PartUserKey               // the key of a map or of broadcast state
	PartKey                   // the key of keyed state; it is of all states of an operator
	PartNamespace             // the namespace of keyed state
)

// Override returns the type of a part of a state in place of the serializer that a file
// records, or nil for that serializer. recorded is nil if the file records none. Types
// come from [Language.Parse], or from [Given] with a codec.
type Override func(state string, part Part, recorded *Snapshot) *Snapshot

// Of returns the type of a part, and whether it is not the recorded one. A payload in
// place of byte arrays of Flink is in the byte arrays.
func (f Override) Of(state string, part Part, recorded *Snapshot) (s *Snapshot, given bool) {
	if f == nil {
		return recorded, false
	}
	s = f(state, part, recorded)
	if s == nil {
		return recorded, false
	}
	if o := original(recorded); s.IsPayload() && o != nil && typeWord(o) == "bytes" && len(o.Nested) == 0 {
		s = InBytes(s)
	}
	return s, true
}

// Strict returns a codec for a type s that replaces a serializer: an error names the type
// and the byte, and bytes that c does not decode are format.ErrCorrupt too.
func Strict(c value.Codec, s *Snapshot) value.Codec {
	return strict{c, TypeOf(s, Options{Kryo: kryo5}).Short(nil)}
}

type strict struct {
	of  value.Codec
	typ string
}

// Type returns the type of the values.
func (c strict) Type() *Type { return c.of.(interface{ Type() *Type }).Type() }

// wrap returns an error of reading p.
func (c strict) wrap(p []byte, err error) error {
	e, ok := err.(*format.Error) // codecs do not wrap them
	if !ok {
		return err
	}
	n := *e
	n.Msg = fmt.Sprintf("not %s: %s", c.typ, e.Msg)
	if e.Offset >= 0 {
		n.Msg = fmt.Sprintf("not %s: byte %d of %d: %s", c.typ, e.Offset, len(p), e.Msg)
	}
	if errors.Is(err, format.ErrUnsupported) {
		n.Err = format.ErrCorrupt
	}
	return &n
}

func (c strict) Skip(p []byte) (int, error) {
	n, err := c.of.Skip(p)
	return n, c.wrap(p, err)
}

func (c strict) Read(p []byte) (value.Value, int, error) {
	v, n, err := c.of.Read(p)
	return v, n, c.wrap(p, err)
}

func (c strict) ReadIn(a *value.Arena, p []byte, v *value.Value) (n int, err error) {
	if in, ok := c.of.(value.ArenaCodec); ok {
		n, err = in.ReadIn(a, p, v)
	} else {
		*v, n, err = c.of.Read(p)
	}
	return n, c.wrap(p, err)
}

func (c strict) Append(dst []byte, v value.Value) ([]byte, error) { return c.of.Append(dst, v) }

func (c strict) FromJSON(p []byte) (value.Value, error) { return value.FromJSON(c.of, p) }
