package native

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
	"github.com/savepoint-tools/spt/format/value"
)

// KeyedCodec reads and builds native keyed state. It implements
// [format.KeyedCodec], and is safe for concurrent use. Keys, namespaces and values
// are msgpack; a map state is one value per key.
type KeyedCodec struct{}

var _ value.KeyedCodec = KeyedCodec{}

// EntryCodecs implements [value.KeyedCodec].
func (c KeyedCodec) EntryCodecs(ctx context.Context, src format.Source, h format.KeyedHandle) ([]value.EntryCodecs, error) {
	schema, err := c.Describe(ctx, src, h)
	if err != nil {
		return nil, err
	}
	all := make([]value.EntryCodecs, len(schema.States))
	for i := range all {
		all[i] = value.EntryCodecs{Key: ValueCodec{}, Namespace: ValueCodec{}, Value: ValueCodec{}, KeyHash: hashOfKey}
	}
	return all, nil
}

func hashOfKey(key []byte) (int32, error) { return hash(key), nil }

// Describe returns the states. It reads the header of the stream but no entry.
func (KeyedCodec) Describe(ctx context.Context, src format.Source, h format.KeyedHandle) (format.KeyedSchema, error) {
	c, err := openKeyed(ctx, src, h, format.KeyedSelection{})
	if err != nil {
		return format.KeyedSchema{}, err
	}
	s := format.KeyedSchema{States: make([]format.KeyedState, len(c.states))}
	for i, st := range c.states {
		s.States[i] = format.KeyedState{Name: format.NewText(st.Name), Kind: string(st.Kind)}
	}
	return s, c.Close()
}

// Entries opens a cursor on the selected entries, in stream order: by key group,
// state, key and namespace. It reads the header of the stream and 64 KiB ahead, and
// holds one entry.
//
// The cursor checks that whole entries in order fill each key group. A handle does
// not record the max parallelism, so the caller must check with [KeyGroup] that
// keys are in their key groups.
func (KeyedCodec) Entries(ctx context.Context, src format.Source, h format.KeyedHandle, sel format.KeyedSelection) (format.KeyedCursor, error) {
	c, err := openKeyed(ctx, src, h, sel)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Build writes the header, and returns a builder that writes entries. They must be
// added in the order of key group, state, key and namespace.
func (KeyedCodec) Build(_ context.Context, schema format.KeyedSchema, groups format.KeyGroupRange, w io.Writer) (format.KeyedBuilder, error) {
	b := &keyedBuilder{w: w, next: groups.First, h: &format.KeyGroups{Codec: format.CodecNative, Range: groups}}
	for _, st := range schema.States {
		b.states = append(b.states, KeyedState{Name: st.Name.String(), Kind: Kind(st.Kind)})
	}
	header, err := AppendHeader(nil, b.states)
	if err != nil {
		return nil, err
	}
	return b, b.write(header)
}

// keyedBuilder writes a stream.
type keyedBuilder struct {
	w       io.Writer
	states  []KeyedState
	h       *format.KeyGroups
	offsets format.OffsetSlice
	n       int64 // bytes written
	next    int32 // the first key group that is not started
	last    rawEntry
	keys    []byte // holds the key and namespace of last
	buf     []byte
}

func (b *keyedBuilder) write(p []byte) error {
	n, err := b.w.Write(p)
	b.n += int64(n)
	return err
}

// start starts all key groups before end.
func (b *keyedBuilder) start(end int32) {
	for ; b.next < end; b.next++ {
		b.offsets = append(b.offsets, b.n)
		b.last = rawEntry{state: -1}
	}
}

// Add implements [format.KeyedBuilder].
func (b *keyedBuilder) Add(e format.KeyedEntry) error {
	switch {
	case e.KeyGroup < b.h.Range.First || e.KeyGroup > b.h.Range.Last():
		return fmt.Errorf("key group %d is outside %v", e.KeyGroup, b.h.Range)
	case e.KeyGroup < b.next-1:
		return fmt.Errorf("entry of key group %d after an entry of key group %d", e.KeyGroup, b.next-1)
	case e.State < 0 || e.State >= len(b.states):
		return fmt.Errorf("state %d is out of range: the schema has %d", e.State, len(b.states))
	case e.UserKey != nil:
		return format.Errorf(format.ErrUnsupported, "native state stores a map as one value")
	}
	b.start(e.KeyGroup + 1)
	b.buf = appendEntry(b.buf[:0], e.State, e.Key, e.Namespace, e.Value)
	raw, n, err := decodeEntry(b.buf, b.states)
	switch {
	case err != nil:
		return truncated(err, len(b.buf))
	case n < len(b.buf):
		return format.Errorf(format.ErrCorrupt, "%d bytes after an entry", len(b.buf)-n)
	case n > MaxValue:
		return tooLarge("an entry", int64(n), MaxValue)
	case b.last.state >= 0 && compareEntries(b.last, raw) >= 0:
		return fmt.Errorf("key group %d: entries must ascend by state, key and namespace", e.KeyGroup)
	}
	b.last, b.keys = raw.withoutValue(b.keys)
	return b.write(b.buf)
}

// Handle implements [format.KeyedBuilder].
func (b *keyedBuilder) Handle() (*format.KeyGroups, error) {
	b.start(b.h.Range.First + b.h.Range.Count)
	b.h.Offsets = b.offsets
	return b.h, nil
}

// keyedCursor walks the entries of keyed state in stream order. It holds one entry
// and reads 64 KiB ahead.
type keyedCursor struct {
	h       *format.KeyGroups
	states  []KeyedState
	first   int64 // end of the header
	w       *window
	run     []int64 // offsets of the key groups after the current one
	group   int64   // index of the current key group in the handle
	groups  int64   // end of the selected key groups
	sel     format.KeyedSelection
	at, end int64 // start of the next entry and end of the group in the stream
	entry   int64 // number of entries read in the group
	last    rawEntry
	buf     []byte // holds the key and namespace of last
	err     error
}

// openKeyed opens a cursor at the first selected key group.
func openKeyed(ctx context.Context, src format.Source, handle format.KeyedHandle, sel format.KeyedSelection) (*keyedCursor, error) {
	h, ok := handle.(*format.KeyGroups)
	if !ok {
		return nil, format.Errorf(format.ErrUnsupported, "keyed state is not native")
	}
	if h.Codec != format.CodecNative || h.Savepoint {
		return nil, format.Errorf(format.ErrUnsupported, "state of codec %q is not native", h.Codec)
	}
	n := count(h.Offsets)
	if n != int64(h.Range.Count) {
		return nil, format.Errorf(format.ErrCorrupt, "%d offsets for %d key groups", n, h.Range.Count)
	}
	from, end := int64(0), n
	if sel.Groups.Count > 0 {
		first := int64(sel.Groups.First) - int64(h.Range.First)
		from, end = min(max(first, 0), n), min(max(first+int64(sel.Groups.Count), 0), n)
	}
	w, err := newWindow(ctx, src, h.Data)
	if err != nil {
		return nil, err
	}
	c := &keyedCursor{h: h, sel: sel, w: w, group: from - 1, groups: max(from, end)}
	if n > 0 {
		if err := c.header(); err != nil {
			return nil, format.At(err, "header")
		}
	}
	return c, nil
}

// header reads the states. The header ends at the first key group.
func (c *keyedCursor) header() error {
	end, err := format.OffsetAt(c.w.ctx, c.h.Offsets, 0)
	if err != nil {
		return err
	}
	if end > maxHeader && end <= c.w.size {
		return format.Errorf(format.ErrLimit, "%d bytes, the limit is %d", end, maxHeader)
	}
	if end <= 0 || end > c.w.size {
		return errRange(0, end, c.w.size)
	}
	p, err := c.w.bytes(0, end)
	if err != nil {
		return err
	}
	c.w.ahead = false // the key group may be anywhere
	c.first = end
	c.states, err = decodeHeader(p)
	return err
}

// Next implements [format.KeyedCursor]. After an error it returns that error again.
func (c *keyedCursor) Next() (format.KeyedEntry, error) {
	for c.err == nil {
		if c.at == c.end {
			c.err = c.nextGroup()
			continue
		}
		e, err := c.read()
		if err != nil {
			c.err = format.At(err, "key group %d/entry %d", c.keyGroup(), c.entry)
			break
		}
		c.entry++
		out := format.KeyedEntry{KeyGroup: c.keyGroup(), State: e.state, Key: e.key, Namespace: e.namespace, Value: e.value}
		if e.namespace[0] == msg.Nil {
			out.Namespace = nil
		}
		if c.sel.Has(out) {
			return out, nil
		}
	}
	return format.KeyedEntry{}, c.err
}

func (c *keyedCursor) keyGroup() int32 { return c.h.Range.First + int32(c.group) }

// nextGroup moves to the next key group, which may be empty.
func (c *keyedCursor) nextGroup() error {
	n := int64(c.h.Range.Count)
	c.group++
	if c.group >= c.groups {
		return io.EOF
	}
	if len(c.run) < 2 && c.group+int64(len(c.run)) < n {
		size := int64(2) // at first, only the offsets that one key group needs
		if c.run != nil {
			size = aheadOffsets
		}
		buf := make([]int64, min(size, n-c.group))
		k, err := c.h.Offsets.Read(c.w.ctx, buf, c.group)
		if err != nil {
			return format.At(err, "key group %d", c.keyGroup())
		}
		if k < len(buf) {
			return fmt.Errorf("internal error: %d offsets end at %d", n, c.group+int64(k))
		}
		c.run = buf
	}
	start, end := c.run[0], c.w.size
	if c.run = c.run[1:]; len(c.run) > 0 {
		end = c.run[0]
	}
	if start < c.first || start > end || end > c.w.size {
		return format.At(format.Errorf(format.ErrCorrupt, "range [%d, %d) is outside the key groups (%d to %d)", start, end, c.first, c.w.size), "key group %d", c.keyGroup())
	}
	c.at, c.end, c.entry = start, end, 0
	return nil
}

// read decodes the next entry of the group.
func (c *keyedCursor) read() (rawEntry, error) {
	left := c.end - c.at
	want := min(left, c.w.buffered(c.at))
	if want == 0 {
		want = min(left, readAhead)
	}
	for {
		p, err := c.w.bytes(c.at, want)
		if err != nil {
			return rawEntry{}, err
		}
		e, n, err := decodeEntry(p, c.states)
		if errors.Is(err, errShort) && want < left {
			want = min(left, max(2*want, readAhead))
			continue
		}
		if errors.Is(err, errShort) {
			err = format.Errorf(format.ErrCorrupt, "an entry does not end within the remaining %d bytes of its key group", left)
		}
		if err == nil && int64(n) > c.w.most {
			err = tooLarge("an entry", int64(n), c.w.most)
		}
		if err == nil && c.entry > 0 && compareEntries(c.last, e) >= 0 {
			err = format.Errorf(format.ErrCorrupt, "entries are not in the order of state, key and namespace")
		}
		if err != nil {
			return rawEntry{}, err
		}
		c.at += int64(n)
		c.last, c.buf = e.withoutValue(c.buf)
		return e, nil
	}
}

// Ordered returns true: the format defines the order.
func (c *keyedCursor) Ordered() bool { return true }

// Close implements [format.KeyedCursor].
func (c *keyedCursor) Close() error {
	c.w.buf, c.err = nil, errClosed
	return nil
}
