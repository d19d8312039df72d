package keyed

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/framed"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// Codec reads the keyed state of an operator in every encoding of Flink, and builds
// canonical state. It is safe for concurrent use.
//
// Entries are the same in all encodings, the entries of a canonical savepoint (spec
// flink-keyed-state 3.5, 3.7): the values of a list are joined by a comma, a map has
// one entry per map key, whose value starts with a null flag, and a timer has no
// value. So the entries of two snapshots can be compared, and entries of any snapshot
// can be added to a builder.
//
// A key is split into its parts by the serializers of key and namespace. If one of
// them is not known, an entry has only Stored, which is enough to copy it. The
// encoding of the heap backend, which has no lengths, cannot be read then.
type Codec struct {
	// MaxParallelism of the operator determines the length of a key group in a key.
	MaxParallelism int32
	// Key is the serializer of keys for changelogs that do not record it: those
	// without materialized state and timers. nil: not known.
	Key *types.Snapshot
	// Types are facts about values that their serializers do not record.
	Types types.Options
	// Override returns types in place of serializers, see [types.Override]. nil: none.
	Override types.Override
	// MaxEntry is the limit for the bytes of one entry. 0 means 1 GiB.
	MaxEntry int64
}

var _ value.KeyedCodec = (*Codec)(nil)

func (c *Codec) max() int64 {
	if c.MaxEntry > 0 {
		return c.MaxEntry
	}
	return 1 << 30
}

// Describe returns the states of a handle. It reads the headers of its streams, and
// the changes of a changelog.
func (c *Codec) Describe(ctx context.Context, src format.Source, h format.KeyedHandle) (format.KeyedSchema, error) {
	o, err := c.open(ctx, src, h)
	if err != nil {
		return format.KeyedSchema{}, err
	}
	return o.schema(), nil
}

// Schema returns the serializers of the states of a handle, in the order of Describe.
func (c *Codec) Schema(ctx context.Context, src format.Source, h format.KeyedHandle) (types.Schema, error) {
	o, err := c.open(ctx, src, h)
	if err != nil {
		return types.Schema{}, err
	}
	return o.header.Schema, nil
}

// Entries opens a cursor on the selected entries of a handle, which also limits the
// key groups: entries of others, which the files of RocksDB hold after a rescale, are
// left out.
//
// The cursor goes from key group to key group. Its order is defined for RocksDB: by
// key group, state and stored key. Its memory is one entry, one entry of a map, or
// one list, and what is read ahead: 256 KiB, for RocksDB per table that is merged.
// A changelog takes memory for its changes.
func (c *Codec) Entries(ctx context.Context, src format.Source, h format.KeyedHandle, sel format.KeyedSelection) (format.KeyedCursor, error) {
	o, err := c.open(ctx, src, h)
	if err != nil {
		return nil, err
	}
	return o.entries(ctx, src, sel)
}

// opened is a handle whose header was read.
type opened struct {
	c      *Codec
	header *Header
	access []access
	groups format.KeyGroupRange
	// entries opens a cursor on the handle itself.
	cursor func(ctx context.Context, src format.Source, sel selection) (format.KeyedCursor, error)
}

// selection is a selection of existing states and of key groups of the handle.
type selection struct {
	first, last int32
	states      []bool
	key         []byte
	whole       bool // stored keys are not split
}

func (s *selection) has(e *format.KeyedEntry) bool {
	return s.key == nil || e.Key != nil && string(e.Key) == string(s.key)
}

func (o *opened) schema() format.KeyedSchema {
	s := format.KeyedSchema{Wire: encodeWire(o.header.Version, o.header.key), Compressed: o.header.Compressed}
	for i, st := range o.header.States {
		s.States = append(s.States, format.KeyedState{Name: st.Name, Kind: st.Keyed, Wire: encodeWire(o.header.Version, o.header.meta[i])})
	}
	return s
}

// encodeWire returns the encoded serializer of keys or the encoded entry of a state,
// with the version of its header.
func encodeWire(version int32, p []byte) format.Wire {
	return format.Wire(binary.BigEndian.AppendUint32(nil, uint32(version))) + format.Wire(p)
}

func (o *opened) entries(ctx context.Context, src format.Source, sel format.KeyedSelection) (format.KeyedCursor, error) {
	groups := o.groups
	if sel.Groups.Count > 0 {
		groups = groups.Intersect(sel.Groups)
	}
	s := selection{first: groups.First, last: groups.Last(), states: make([]bool, len(o.header.States)), key: sel.Key, whole: sel.Whole && sel.Key == nil}
	for i := range s.states {
		s.states[i] = sel.States == nil || slices.Contains(sel.States, i)
	}
	for _, i := range sel.States {
		if i < 0 || i >= len(s.states) {
			return nil, fmt.Errorf("state %d is out of range: the schema has %d", i, len(s.states))
		}
	}
	if sel.Key != nil {
		for i := range o.access {
			if s.states[i] && !o.access[i].splits {
				return nil, format.At(format.Errorf(format.ErrUnsupported, "keys of %s and %s are not split", o.access[i].key.class, o.access[i].namespace.class), "state %q", o.access[i].name)
			}
		}
	}
	if groups.Count <= 0 {
		return &emptyCursor{}, nil
	}
	return o.cursor(ctx, src, s)
}

// emptyCursor has no entries.
type emptyCursor struct{}

func (emptyCursor) Next() (format.KeyedEntry, error) { return format.KeyedEntry{}, io.EOF }
func (emptyCursor) Ordered() bool                    { return true }
func (emptyCursor) Close() error                     { return nil }

// open reads the header of a handle.
func (c *Codec) open(ctx context.Context, src format.Source, handle format.KeyedHandle) (*opened, error) {
	switch h := handle.(type) {
	case *format.KeyGroups:
		switch h.Codec {
		case format.CodecFlink:
			return c.openGroups(ctx, src, h)
		case format.CodecRaw:
			return c.openRaw(ctx, src, h)
		}
		return nil, format.Errorf(format.ErrUnsupported, "keyed state of codec %q is not Flink's", h.Codec)
	case *format.Incremental:
		return c.openNative(ctx, src, h)
	case *format.Changelog:
		return c.openChangelog(ctx, src, h)
	}
	return nil, format.Errorf(format.ErrUnsupported, "keyed state in a handle of type %T", handle)
}

// openWith returns a handle with a header.
func (c *Codec) openWith(h *Header, groups format.KeyGroupRange) *opened {
	return &opened{c: c, header: h, access: c.accesses(h), groups: groups}
}

func (c *Codec) openGroups(ctx context.Context, src format.Source, h *format.KeyGroups) (*opened, error) {
	if h.Data == nil || h.Data.Size() == 0 {
		o := c.openWith(&Header{Version: maxVersion}, h.Range)
		o.cursor = func(context.Context, format.Source, selection) (format.KeyedCursor, error) { return emptyCursor{}, nil }
		return o, nil
	}
	size, err := format.StreamSize(ctx, src, h.Data)
	if err != nil {
		return nil, err
	}
	header, err := ReadHeader(ctx, src, h.Data)
	if err != nil {
		return nil, err
	}
	o := c.openWith(header, h.Range)
	groups, err := groupsOf(ctx, h, size)
	if err != nil {
		return nil, err
	}
	if len(groups) > 0 && groups[0].start != header.Size {
		return nil, format.Errorf(format.ErrCorrupt, "expected the first key group at %d, the end of the header, found %d", header.Size, groups[0].start)
	}
	canonical := h.Savepoint
	if !canonical && len(groups) > 0 {
		if canonical, err = c.sniff(ctx, src, h, header, groups); err != nil {
			return nil, err
		}
	}
	o.cursor = func(ctx context.Context, src format.Source, sel selection) (format.KeyedCursor, error) {
		w := walk{
			in: input{ctx: ctx, src: src, s: h.Data, max: c.max()}, access: o.access, sel: sel,
			first: h.Range.First, groups: groups, compressed: header.Compressed,
		}
		if canonical {
			return &canonicalCursor{walk: w}, nil
		}
		if err := o.heapReads(); err != nil {
			return nil, err
		}
		return &heapCursor{walk: w}, nil
	}
	return o, nil
}

// sniff reports whether a stream that is not marked as canonical is in the canonical
// format, as RocksDB wrote it up to Flink 1.12, and not in the format of the heap
// backend, in which a key group starts with its number (spec flink-keyed-state 1.3).
func (c *Codec) sniff(ctx context.Context, src format.Source, h *format.KeyGroups, header *Header, groups []group) (bool, error) {
	g := groups[len(groups)-1]
	number := uint32(h.Range.First) + uint32(g.index)
	var p [14]byte
	n := min(g.end-g.start, int64(len(p)))
	if _, err := src.ReadAt(ctx, h.Data, p[:n], g.start); err != nil {
		return false, err
	}
	if n < 4 || binary.BigEndian.Uint32(p[:]) != number {
		return true, nil
	}
	if number > 0 || header.Compressed {
		return false, nil
	}
	// The number 0 may be state 0 and the first bytes of a length.
	in := &input{ctx: ctx, src: src, s: h.Data, max: c.max()}
	in.open(g.start, g.end, false)
	return checkEntries(bufio.NewReader(&reading{in})) == nil, nil
}

// reading makes an input an io.Reader.
type reading struct{ in *input }

func (r *reading) Read(p []byte) (int, error) {
	if end, err := r.in.ended(); end || err != nil {
		if err == nil {
			err = io.EOF
		}
		return 0, err
	}
	n := copy(p, r.in.have())
	r.in.consume(n)
	return n, nil
}

// walk goes through the selected key groups of a stream.
type walk struct {
	in         input
	access     []access
	sel        selection
	first      int32 // key group of index 0
	groups     []group
	compressed bool
	number     int32 // the current key group
	entry      int64 // number of entries in it
	closed     bool
}

// nextGroup moves to the next selected key group that has entries, or returns
// io.EOF. lead is the number of bytes before a framed stream.
func (w *walk) nextGroup(lead int64) error {
	for len(w.groups) > 0 {
		g := w.groups[0]
		w.groups = w.groups[1:]
		w.number = w.first + int32(g.index)
		if w.number < w.sel.first || w.number > w.sel.last {
			continue
		}
		w.entry = 0
		if g.end-g.start < lead {
			return w.at(format.Errorf(format.ErrCorrupt, "a key group of %d bytes", g.end-g.start))
		}
		w.in.open(g.start+lead, g.end, w.compressed)
		if w.compressed && g.end-g.start-lead < int64(len(framed.Header)) {
			return w.at(format.Errorf(format.ErrCorrupt, "a compressed key group of %d bytes", g.end-g.start))
		}
		return w.in.ctx.Err()
	}
	return io.EOF
}

func (w *walk) at(err error) error {
	return format.At(err, "key group %d/entry %d", w.number, w.entry)
}

// errClosed is the error of a cursor after Close.
var errClosed = fmt.Errorf("internal error: cursor used after Close")

// scanOptions are the options of RocksDB's reader.
func (c *Codec) scanOptions() rocksdb.Options {
	if c.MaxEntry > 0 {
		return rocksdb.Options{MaxBlock: c.MaxEntry + 1<<20}
	}
	return rocksdb.Options{}
}
