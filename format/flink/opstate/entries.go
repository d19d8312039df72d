package opstate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/framed"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/internal/mapcursor"
)

// Entries opens a cursor on the map of a broadcast state (spec flink-operator-state
// A6: int count, then keys and values). It returns format.ErrUnsupported if the
// serializer of keys or values is not supported. The cursor reads 256 KiB ahead and
// holds one entry, also of a compressed map.
func (c *Codec) Entries(ctx context.Context, src format.Source, h *format.OperatorHandle, state string) (format.MapCursor, error) {
	if err := checkCodec(h); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(h.States, func(s format.NamedState) bool { return s.Name.String() == state })
	if i < 0 {
		return nil, errNoState(state)
	}
	cur, err := c.entries(ctx, src, h, i)
	return cur, format.At(err, "state %q", state)
}

func (c *Codec) entries(ctx context.Context, src format.Source, h *format.OperatorHandle, i int) (format.MapCursor, error) {
	s := &h.States[i]
	if s.Mode != format.ModeBroadcast || h.Codec == format.CodecRaw {
		return nil, format.Errorf(format.ErrUnsupported, "expected broadcast state, found %v state", s.Mode)
	}
	if n := s.Offsets.Len(); n > 1 { // Flink reads the first only; the others must not be lost
		return nil, format.Errorf(format.ErrCorrupt, "expected 1 map of broadcast state, found %d", n)
	}
	layout, err := c.mapLayout(ctx, src, h, s)
	if err != nil {
		return nil, err
	}
	cur, err := c.open(ctx, src, h, i, 0)
	if err != nil {
		return nil, err
	}
	start, end, err := cur.b.extent(0)
	if err != nil {
		return nil, err
	}
	read := func(off, n int64) ([]byte, error) {
		return cur.w.bytes(start+off, min(n, end-start-off))
	}
	if cur.compressed {
		if err := cur.b.shared(0, true, start, end); err != nil {
			return nil, err
		}
		read = (&inflater{w: &cur.w, at: start, end: end}).bytes
	}
	return mapcursor.Open(read, layout, cur.max)
}

// mapLayout returns the layout with the codecs of the keys and values of a
// broadcast state.
func (c *Codec) mapLayout(ctx context.Context, src format.Source, h *format.OperatorHandle, s *format.NamedState) (mapcursor.Layout, error) {
	schemas, err := c.Schema(ctx, src, h)
	if err != nil && !errors.Is(err, format.ErrUnsupported) {
		return mapcursor.Layout{}, err
	}
	for _, schema := range schemas {
		if schema.Name != s.Name || schema.Mode != s.Mode {
			continue
		}
		key, ok := types.CodecOf(schema.Serializer("KEY_SERIALIZER"))
		value, vok := types.CodecOf(schema.Serializer("VALUE_SERIALIZER"))
		if ok && vok {
			return mapcursor.Layout{Head: mapHead, Key: key, Value: value}, nil
		}
	}
	return mapcursor.Layout{}, format.Errorf(format.ErrUnsupported, "the types of its keys or values are not supported")
}

func mapHead(p []byte) (entries int64, n int, err error) {
	if len(p) < 4 {
		return 0, 0, format.Errorf(format.ErrTruncated, "cut short: expected the number of entries, %d bytes left", len(p))
	}
	entries = int64(int32(binary.BigEndian.Uint32(p)))
	if entries < 0 {
		return 0, 0, format.Errorf(format.ErrCorrupt, "entries: invalid count %d", entries)
	}
	return entries, 4, nil
}

// inflater decompresses a map from start to end, chunk by chunk.
type inflater struct {
	w       *window
	at, end int64 // range of unread chunks in the stream
	pos     int64 // offset of buf in the map
	buf     []byte
}

// bytes implements mapcursor.Source.
func (f *inflater) bytes(off, n int64) ([]byte, error) {
	f.buf = f.buf[:copy(f.buf, f.buf[min(off-f.pos, int64(len(f.buf))):])]
	f.pos = off
	for int64(len(f.buf)) < n && f.at < f.end {
		var err error
		if f.buf, f.at, err = f.w.inflateChunk(f.buf, f.at, f.end, int64(len(f.buf))+framed.MaxData); err != nil {
			return nil, err
		}
	}
	return f.buf[:min(n, int64(len(f.buf)))], nil
}

func errNoState(name string) error { return fmt.Errorf("the handle has no state %q", name) }
