package keyed

import (
	"context"
	"errors"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// Versions of the header (spec flink-keyed-state 2.1, 2.4). Wire format: never
// change.
const (
	minVersion     = 1 // Flink 1.2
	maxVersion     = 6 // Flink 1.7 and later
	blockVersion   = 3 // from here on serializers have snapshots
	flagVersion    = 4 // from here on the header says whether data is compressed
	optionsVersion = 5 // from here on states have a kind and options

	kindValue   = 0 // KEY_VALUE
	kindTimers  = 3 // PRIORITY_QUEUE
	kindValueV2 = 4 // KEY_VALUE_V2

	typeOption = "KEYED_STATE_TYPE"

	namespaceKey = "NAMESPACE_SERIALIZER"
	valueKey     = "VALUE_SERIALIZER"
	userKeyKey   = "USER_KEY_SERIALIZER"
)

// kinds are the kinds of keyed state by their numbers before version 5, and by
// their names, in capitals, from then on.
var kinds = [...]string{"unknown", "value", "list", "reducing", "folding", "aggregating", "map"}

var kindNames = map[string]string{
	"UNKNOWN": "unknown", "VALUE": "value", "LIST": "list", "REDUCING": "reducing", "FOLDING": "folding", "AGGREGATING": "aggregating", "MAP": "map",
}

// Header is the head of a stream of keyed state.
type Header struct {
	Version    int32
	Compressed bool // the streams of key groups are snappy-framed
	// Schema has no serializers before Flink 1.4, which wrote Java objects only. The
	// index of a state is its number in the entries.
	types.Schema
	Size int64 // encoded length in bytes

	key  []byte   // the encoded serializer of keys
	meta [][]byte // one per state: its encoded entry
}

// maxHeader is larger than any header.
const maxHeader = 64 << 20

// ReadHeader reads the header of a stream, in growing steps. If the error matches
// *types.UnknownClass, the header has what precedes that class.
func ReadHeader(ctx context.Context, src format.Source, s format.Stream) (*Header, error) {
	limit, err := format.StreamSize(ctx, src, s)
	if err != nil {
		return nil, err
	}
	var p []byte
	for want := int64(4 << 10); ; want *= 2 {
		have := int64(len(p))
		n := min(want, limit)
		p = slices.Grow(p, int(n-have))[:n]
		if n > have {
			if _, err := src.ReadAt(ctx, s, p[have:], have); err != nil {
				return nil, err
			}
		}
		h, err := parse(p)
		var u *types.UnknownClass
		switch {
		case err == nil:
			return h, nil
		case errors.As(err, &u):
			return h, err
		case n == limit || !errors.Is(err, format.ErrTruncated):
			return nil, err
		case n >= maxHeader:
			return nil, format.Errorf(format.ErrLimit, "the header of keyed state is larger than %d bytes", n)
		}
	}
}

// parse reads a header:
//
//	int    version
//	bool   compressed            from version 4
//	       key serializer        a Java object; from version 3 a block of one; from 6 a snapshot
//	short  n, n states
//
// With ErrTruncated, p may be only the start of a header.
func parse(p []byte) (*Header, error) {
	c := java.NewCursor(p)
	h := &Header{Version: c.I32()}
	if c.Err() == nil && (h.Version < minVersion || h.Version > maxVersion) {
		c.Fail(0, format.ErrVersion, "unknown version %d of keyed state; supported: %d to %d", h.Version, minVersion, maxVersion)
	}
	if h.Version >= flagVersion {
		h.Compressed = c.Bool("the compression flag")
	}
	at := c.Offset()
	switch {
	case c.Err() != nil:
	case h.Version < blockVersion:
		javaObject(c)
	case h.Version < maxVersion:
		if all := block(c, 1); len(all) == 1 {
			h.Key = all[0]
		}
	default:
		h.Key = java.Part(c, types.Skip)
	}
	if err := c.Err(); err != nil {
		return h, format.At(err, "key serializer")
	}
	h.key = c.Since(at)
	off := c.Offset()
	n := int(int16(c.U16()))
	c.CheckCount(off, n, "states", 4)
	for range n {
		if c.Err() != nil {
			break
		}
		at := c.Offset()
		s := state(c, h.Version)
		if err := c.Err(); err != nil {
			return h, format.At(err, "state %q", s.Name)
		}
		h.States = append(h.States, s)
		h.meta = append(h.meta, c.Since(at))
	}
	h.Size = int64(c.Offset())
	return h, c.Err()
}

// state reads the entry of one state:
//
//	version  1, 2             3, 4             5                6
//	         int type         int type         UTF name         UTF name
//	         UTF name         UTF name         int kind         int kind
//	                                           int n, n x 2 UTF int n, n x 2 UTF   options
//	                                           int n, n UTF     int n, n x (UTF, snapshot)
//	         2 Java objects   block of two     block of n
func state(c *java.Cursor, version int32) (s types.StateSchema) {
	if version < optionsVersion {
		off := c.Offset()
		k := c.I32()
		s.Name = c.Name()
		if c.Err() == nil && (k < 0 || int(k) >= len(kinds)) {
			c.Fail(off, format.ErrCorrupt, "unknown type %d of a state", k)
		}
		if c.Err() != nil {
			return s
		}
		s.Keyed = kinds[k]
		if version < blockVersion {
			javaObject(c)
			javaObject(c)
			return s
		}
		s.Serializers = named([]string{namespaceKey, valueKey}, block(c, 2))
		return s
	}
	s.Name = c.Name()
	off := c.Offset()
	switch k := c.I32(); {
	case c.Err() != nil:
	case k == kindTimers:
		s.Keyed = types.Timers
	case k != kindValue && k != kindValueV2:
		c.Fail(off, format.ErrCorrupt, "unexpected kind %d of a keyed state", k)
	default:
		s.Asynchronous = k == kindValueV2
	}
	for range c.Count("options", 4) {
		key, at := c.Name().String(), c.Offset()
		value := c.Name().String()
		if key != typeOption || c.Err() != nil {
			continue
		}
		if s.Keyed = kindNames[value]; s.Keyed == "" {
			c.Fail(at, format.ErrCorrupt, "unknown kind of keyed state %q", value)
		}
	}
	if c.Err() == nil && s.Keyed == "" {
		s.Keyed = kinds[0]
	}
	var keys []string
	for range c.Count("serializers", 2) {
		key := c.Name().String()
		if version < maxVersion {
			keys = append(keys, key)
			continue
		}
		snap := java.Part(c, types.Skip)
		if c.Err() != nil {
			return s
		}
		s.Serializers = append(s.Serializers, types.Serializer{Key: key, Snapshot: snap})
	}
	if version < maxVersion {
		s.Serializers = named(keys, block(c, len(keys)))
	}
	return s
}

func named(keys []string, all []*types.Snapshot) (out []types.Serializer) {
	for i := range all {
		out = append(out, types.Serializer{Key: keys[i], Snapshot: all[i]})
	}
	return out
}

// block reads a block of n serializers.
func block(c *java.Cursor, n int) []*types.Snapshot {
	off := c.Offset()
	all := java.Part(c, types.SkipBlock)
	if c.Err() == nil && len(all) != n {
		c.Fail(off, format.ErrCorrupt, "expected %d serializers, found %d", n, len(all))
	}
	if c.Err() != nil {
		return nil
	}
	return all
}

// javaObject reads a serializer as Flink 1.2 and 1.3 wrote it: int 1, int length, a
// Java object.
func javaObject(c *java.Cursor) {
	off := c.Offset()
	if v := c.I32(); c.Err() == nil && v != 1 {
		c.Fail(off, format.ErrCorrupt, "expected a serializer object of version 1, found %d", v)
	}
	c.Blob("a serializer object")
}
