package keyed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/internal/framed"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// Build writes the header of a canonical stream and returns a builder for its entries,
// which must be added key group by key group. Within one the entries of a state should be
// added together: each time the state changes, a run of entries starts. If the schema says
// so, key groups are compressed, as Flink does with
// execution.checkpointing.snapshot-compression.
//
// The schema is one that Describe returned, or consists of states of several such
// schemas with the same serializer of keys. A state can have another name. States of the
// asynchronous API become classic ones, whose entries are the same: no backend restores
// the others from canonical state.
func (c *Codec) Build(_ context.Context, schema format.KeyedSchema, groups format.KeyGroupRange, w io.Writer) (format.KeyedBuilder, error) {
	version, key, err := decodeWire(schema.Wire)
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		return nil, format.Errorf(format.ErrUnsupported, "the serializers of these timers have no snapshots, which a header needs")
	}
	if len(schema.States) > math.MaxInt16 {
		return nil, format.Errorf(format.ErrLimit, "%d states, a stream has at most %d", len(schema.States), math.MaxInt16)
	}
	p := binary.BigEndian.AppendUint32(nil, uint32(version))
	if version >= flagVersion {
		compressed := byte(0)
		if schema.Compressed {
			compressed = 1
		}
		p = append(p, compressed)
	}
	p = append(p, key...)
	p = binary.BigEndian.AppendUint16(p, uint16(len(schema.States)))
	for _, s := range schema.States {
		v, meta, err := decodeWire(s.Wire)
		switch {
		case err == nil && v != version:
			err = format.Errorf(format.ErrUnsupported, "it is of version %d, the stream of version %d", v, version)
		case err == nil && len(meta) == 0:
			err = format.Errorf(format.ErrUnsupported, "its encoding in a header is not known")
		case err == nil:
			if meta, err = classic(meta, version); err == nil {
				meta, err = renamed(meta, version, s.Name)
			}
		}
		if err != nil {
			return nil, format.At(err, "state %q", s.Name)
		}
		p = append(p, meta...)
	}
	header, err := parse(p)
	if err != nil {
		return nil, err
	}
	b := &builder{
		w: w, access: c.accesses(header), state: -1, group: -1, compressed: header.Compressed,
		h: &format.KeyGroups{Codec: format.CodecFlink, Savepoint: true, Range: groups}, offsets: make(format.OffsetSlice, max(groups.Count, 0)),
	}
	return b, b.write(p)
}

// classic returns the encoded entry of a state in a header, and if it is one of the
// asynchronous API, the entry that the classic API writes for the same state.
func classic(meta []byte, version int32) ([]byte, error) {
	c := java.NewCursor(meta)
	s := state(c, version)
	if c.Err() != nil || !s.Asynchronous {
		return meta, c.Err()
	}
	p := s.Parts()
	if s.Keyed == kindOfMap && p.UserKey == nil {
		return nil, format.Errorf(format.ErrUnsupported, "the serializer of its map keys is not recorded: the first releases of the asynchronous API did not write it")
	}
	value, err := classicTTL(s.Serializer(valueKey))
	if err != nil {
		return nil, err
	}
	n := NewState{Name: s.Name, Kind: s.Keyed, Namespace: p.Namespace, UserKey: p.UserKey, Value: value}
	return n.meta(flink.Latest(), nil)
}

// The serializers of values with TTL have the same bytes in both APIs, and different
// classes, which Flink takes for incompatible. Wire format: never change.
const (
	ttlClass             = flink.Package + "runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot"
	ttlClassAsynchronous = flink.Package + "runtime.state.v2.ttl.TtlStateFactory$TtlSerializerSnapshot"
)

// classicTTL returns the snapshot of values with TTL as the classic API records it, and any
// other one as it is.
func classicTTL(s *types.Snapshot) (*types.Snapshot, error) {
	inner := unwrapped(s)
	if inner == nil || inner.Class != ttlClassAsynchronous {
		return s, nil
	}
	p := s.Raw[:len(s.Raw)-len(inner.Raw)] // of the wrappers, whose last part it is
	p, err := java.AppendText(slices.Clip(p), format.NewText(ttlClass))
	if err != nil {
		return nil, err
	}
	s, _, err = types.SkipVersioned(append(p, inner.Raw[2+len(inner.Class):]...))
	return s, err
}

// renamed returns the encoded entry of a state in a header with the given name.
func renamed(meta []byte, version int32, name format.Text) ([]byte, error) {
	at := 0
	if version < optionsVersion {
		at = 4 // after the type
	}
	c := java.NewCursor(meta[min(at, len(meta)):])
	if old := c.Name(); c.Err() != nil || old == name {
		return meta, c.Err()
	}
	p, err := java.AppendText(slices.Clone(meta[:at]), name)
	return append(p, meta[at+c.Offset():]...), err
}

func decodeWire(w format.Wire) (version int32, p []byte, err error) {
	if len(w) < 4 {
		return 0, nil, format.Errorf(format.ErrUnsupported, "the schema is not one of Flink's keyed state")
	}
	p = []byte(w)
	return int32(binary.BigEndian.Uint32(p)), p[4:], nil
}

// builder writes canonical state (spec flink-keyed-state 3.2).
type builder struct {
	w       io.Writer
	access  []access
	h       *format.KeyGroups
	offsets format.OffsetSlice
	n       int64 // bytes written
	group   int32 // of the last entry, -1: none
	state   int   // of the last entry
	// The last entry, whose key is at out[last], is written when it is known whether its
	// state has another one.
	out, buf []byte
	last     int
	// Of a compressed stream, each key group is a framed stream (spec 3.6).
	compressed bool
	opened     bool   // the stream of the current key group has its header
	framed     []byte // out, compressed
}

// flushAt is the number of bytes that a builder collects before it writes them.
const flushAt = 256 << 10

func (b *builder) write(p []byte) error {
	n, err := b.w.Write(p)
	b.n += int64(n)
	return err
}

// emit writes what was collected: of a compressed stream, bytes of the current key group.
func (b *builder) emit() error {
	p := b.out
	b.out = b.out[:0]
	if !b.compressed || len(p) == 0 {
		return b.write(p)
	}
	b.framed = b.framed[:0]
	if !b.opened {
		b.opened = true
		b.framed = append(b.framed, framed.Header...)
	}
	b.framed = framed.Append(b.framed, p)
	return b.write(b.framed)
}

// Add implements [format.KeyedBuilder]. If the entry has no Stored, its parts are
// joined.
func (b *builder) Add(e format.KeyedEntry) error {
	switch {
	case e.KeyGroup < b.h.Range.First || e.KeyGroup > b.h.Range.Last():
		return fmt.Errorf("key group %d is outside %v", e.KeyGroup, b.h.Range)
	case e.KeyGroup < b.group:
		return fmt.Errorf("an entry of key group %d after an entry of key group %d", e.KeyGroup, b.group)
	case e.State < 0 || e.State >= len(b.access):
		return fmt.Errorf("state %d is out of range: the schema has %d", e.State, len(b.access))
	}
	a := &b.access[e.State]
	if e.Stored == nil {
		if e.Key == nil || e.Namespace == nil {
			return fmt.Errorf("an entry of state %q without a key", a.name)
		}
		b.buf = a.join(&e, b.buf)
	}
	if g := groupOf(e.Stored, a.prefix); g != e.KeyGroup {
		return fmt.Errorf("an entry of key group %d has a key of key group %d", e.KeyGroup, g)
	}
	if len(e.Stored) > math.MaxInt32 || len(e.Value) > math.MaxInt32 {
		return format.Errorf(format.ErrLimit, "an entry of %d and %d bytes", len(e.Stored), len(e.Value))
	}
	if err := b.flush(e.KeyGroup == b.group && e.State == b.state); err != nil {
		return err
	}
	if e.KeyGroup != b.group {
		if err := b.endGroup(); err != nil {
			return err
		}
		b.offsets[e.KeyGroup-b.h.Range.First] = b.n + int64(len(b.out))
		b.group, b.state, b.opened = e.KeyGroup, -1, false
	}
	if e.State != b.state {
		b.out = binary.BigEndian.AppendUint16(b.out, uint16(e.State))
		b.state = e.State
	}
	b.out = binary.BigEndian.AppendUint32(b.out, uint32(len(e.Stored)))
	b.last = len(b.out)
	b.out = append(b.out, e.Stored...)
	b.out = binary.BigEndian.AppendUint32(b.out, uint32(len(e.Value)))
	b.out = append(b.out, e.Value...)
	return nil
}

// flush completes the last entry. more reports whether its state has another one.
func (b *builder) flush(more bool) error {
	if b.group < 0 {
		return nil
	}
	if !more {
		b.out[b.last] |= lastOfRun
	}
	if len(b.out) < flushAt {
		return nil
	}
	return b.emit()
}

// endGroup ends the current key group.
func (b *builder) endGroup() error {
	if b.group < 0 {
		return nil
	}
	b.out = binary.BigEndian.AppendUint16(b.out, endOfGroup)
	if b.compressed { // only then is it known where the next one starts
		return b.emit()
	}
	return nil
}

// Handle implements [format.KeyedBuilder].
func (b *builder) Handle() (*format.KeyGroups, error) {
	if err := b.flush(false); err != nil {
		return nil, err
	}
	err := errors.Join(b.endGroup(), b.emit())
	b.group = -1
	b.h.Offsets = b.offsets
	return b.h, err
}
