package keyed

import (
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// RenameState returns a state, as Describe returned it, with another name.
func (c *Codec) RenameState(s format.KeyedState, name string) (format.KeyedState, error) {
	version, meta, err := decodeWire(s.Wire)
	if err != nil {
		return s, err
	}
	at := 0 // where the name starts, see state
	if version < optionsVersion {
		at = 4
	}
	if len(meta) < at {
		return s, format.Errorf(format.ErrUnsupported, "its encoding in a header is not known")
	}
	in := java.Of(meta[at:])
	in.Name()
	if err := in.Err(); err != nil {
		return s, err
	}
	s.Name = format.NewText(name)
	p, err := java.AppendText(slices.Clone(meta[:at]), s.Name)
	if err != nil {
		return s, err
	}
	s.Wire = encodeWire(version, append(p, meta[at+in.Offset():]...))
	return s, nil
}
