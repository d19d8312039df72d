package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/savepoint-tools/spt/format"
)

// Entry is one entry of keyed state: key, namespace and value are msgpack.
type Entry struct {
	KeyGroup  int32
	State     string
	Kind      Kind
	Key       []byte
	Namespace []byte // nil: none
	Value     []byte
}

// Clone is a copy that outlives the cursor's next step.
func (e Entry) Clone() Entry {
	all := make([]byte, 0, len(e.Key)+len(e.Namespace)+len(e.Value))
	keep := func(p []byte) []byte {
		if p == nil {
			return nil
		}
		at := len(all)
		all = append(all, p...)
		return all[at:len(all):len(all)]
	}
	e.Key, e.Namespace, e.Value = keep(e.Key), keep(e.Namespace), keep(e.Value)
	return e
}

// EntryCursor walks the entries of keyed state in the order of the stream. It
// holds one entry and reads 64 KiB ahead.
type EntryCursor struct {
	h       *format.KeyGroups
	states  []KeyedState
	first   int64 // where the header ends
	w       *window
	run     []int64 // offsets of the key groups behind the present one
	group   int64   // the present key group, by its place in the handle
	at, end int64   // of the next entry, and of the group, in the stream
	entry   int64   // how many of the group were read
	last    rawEntry
	buf     []byte // holds key and namespace of last
	err     error
}

// Entries opens a cursor on native keyed state at a key group of the handle's
// range, or at that behind the last. Of what stands before, it reads the header
// of the stream only.
//
// The cursor verifies that each key group is filled by whole entries in order.
// A handle does not say how many key groups there are in all: whether a key
// belongs where it stands is for the caller to ask of [KeyGroup].
func Entries(ctx context.Context, src format.Source, h *format.KeyGroups, fromKeyGroup int32) (*EntryCursor, error) {
	if h.Codec != format.CodecNative || h.Savepoint {
		return nil, format.Errorf(format.ErrUnsupported, "state of codec %q is not native", h.Codec)
	}
	n := count(h.Offsets)
	if n != int64(h.Range.Count) {
		return nil, format.Errorf(format.ErrCorrupt, "%d offsets for %d key groups", n, h.Range.Count)
	}
	group := int64(fromKeyGroup) - int64(h.Range.First)
	if group < 0 || group > n {
		return nil, fmt.Errorf("the handle holds key groups %v: there is no %d", h.Range, fromKeyGroup)
	}
	w, err := newWindow(ctx, src, h.Data)
	if err != nil {
		return nil, err
	}
	c := &EntryCursor{h: h, w: w, group: group - 1}
	if n > 0 {
		if err := c.header(); err != nil {
			return nil, format.At(err, "header")
		}
	}
	return c, nil
}

// header reads the states; it ends where the first key group starts.
func (c *EntryCursor) header() error {
	end, err := format.OffsetAt(c.w.ctx, c.h.Offsets, 0)
	if err != nil {
		return err
	}
	if end > maxHeader && end <= c.w.size {
		return format.Errorf(format.ErrLimit, "%d bytes, over the limit of %d", end, maxHeader)
	}
	if end <= 0 || end > c.w.size {
		return errRange(0, end, c.w.size)
	}
	p, err := c.w.bytes(0, end)
	if err != nil {
		return err
	}
	c.w.warm = false // the key group may stand anywhere
	c.first = end
	c.states, err = decodeHeader(p)
	return err
}

// States lists the states of the stream.
func (c *EntryCursor) States() []KeyedState { return c.states }

// Next gives the next entry, valid until the next call, or io.EOF after the
// last. After an error it gives that error again.
func (c *EntryCursor) Next() (Entry, error) {
	for c.err == nil && c.at == c.end {
		c.err = c.nextGroup()
	}
	if c.err != nil {
		return Entry{}, c.err
	}
	e, err := c.read()
	if err != nil {
		c.err = format.At(err, "key group %d/entry %d", c.keyGroup(), c.entry)
		return Entry{}, c.err
	}
	c.entry++
	out := Entry{
		KeyGroup: c.keyGroup(), State: c.states[e.state].Name, Kind: c.states[e.state].Kind,
		Key: e.key, Namespace: e.namespace, Value: e.value,
	}
	if e.namespace[0] == 0xc0 {
		out.Namespace = nil
	}
	return out, nil
}

func (c *EntryCursor) keyGroup() int32 { return c.h.Range.First + int32(c.group) }

// nextGroup goes to the next key group, which may be empty.
func (c *EntryCursor) nextGroup() error {
	n := int64(c.h.Range.Count)
	c.group++
	if c.group >= n {
		return io.EOF
	}
	if len(c.run) < 2 && c.group+int64(len(c.run)) < n {
		size := int64(2) // the first time only what one key group takes
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
func (c *EntryCursor) read() (rawEntry, error) {
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
			err = format.Errorf(format.ErrCorrupt, "an entry that does not end within the %d bytes left of its key group", left)
		}
		if err == nil && int64(n) > c.w.most {
			err = tooLarge("an entry", int64(n), c.w.most)
		}
		if err == nil && c.entry > 0 && compareEntries(c.last, e) >= 0 {
			err = format.Errorf(format.ErrCorrupt, "entries that do not ascend by state, key and namespace")
		}
		if err != nil {
			return rawEntry{}, err
		}
		c.at += int64(n)
		c.buf = append(append(c.buf[:0], e.key...), e.namespace...)
		c.last = rawEntry{state: e.state, key: c.buf[:len(e.key)], namespace: c.buf[len(e.key):]}
		return e, nil
	}
}

// Ordered is true: the format defines the order.
func (c *EntryCursor) Ordered() bool { return true }

// Close ends the cursor. There is nothing to give back.
func (c *EntryCursor) Close() error {
	c.w.buf, c.err = nil, errClosed
	return nil
}

// All walks the cursor to its end and closes it.
func (c *EntryCursor) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		defer c.Close() //nolint:errcheck // nothing was written
		for {
			e, err := c.Next()
			if err == io.EOF {
				return
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
