package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/reader"
)

// catItem is one element, or one entry of a broadcast map. It is valid until
// the next.
type catItem struct {
	part       *catPart
	index      int64
	stored     []byte // the element, or the entry, in the bytes of its codec
	decoded    bool   // value, and key if it is an entry, are what it says
	entry      bool
	key, value value.Value
	count      int64 // with --distinct
	// keyed is set of an entry of keyed state. Then stored is what --distinct compares:
	// its value, or the key of a timer.
	keyed *report.CatKeyed
	state int // of keyed state: in its handle
}

// size returns the bytes of an element or entry.
func (it *catItem) size() int64 {
	if it.keyed != nil {
		return it.keyed.Size
	}
	return int64(len(it.stored))
}

// shown is how elements are printed.
func (c *catter) shown() report.CatOptions {
	return report.CatOptions{Output: c.output, Format: c.env.run.Format, Distinct: c.distinct, Raw: c.raw}
}

// decodes reports whether values are decoded, rather than printed as stored.
func (c *catter) decodes() bool {
	o := c.shown()
	return o.Decode()
}

// shown returns the element of a state as it is printed.
func (it *catItem) shown(st *catState) report.CatItem {
	return report.CatItem{State: &st.shown, Subtask: it.part.subtask, Index: it.index, Stored: it.stored,
		Decoded: it.decoded, Entry: it.entry, Key: it.key, Value: it.value, Count: it.count, Keyed: it.keyed}
}

// placed returns an error with the stream of the snapshot that it is about.
func (c *catter) placed(err error, at *catPart) error {
	value, isValue := err.(*notReadable) // not errors.As: nothing wraps it
	if isValue {
		err = value.error
	}
	var e *format.Error
	if errors.As(err, &e) && e.Offset >= 0 {
		inner := *e
		inner.Offset = -1 // it is one of the value, or of the stream, not of the file
		err = &inner
	}
	err = format.InFile(format.At(err, "%v", at.place), c.snap.Container.Name)
	if isValue {
		return &notReadable{err}
	}
	return err
}

// errPiece ends a walk through a map after a piece of it.
var errPiece = errors.New("internal: a piece")

// part calls f with it for each element of a unit. Of a map, these are the entries
// from c.from on; next is the one that follows a piece, if there may be one.
func (c *catter) part(ctx context.Context, u work.Unit, st *catState, it *catItem, f func() error) (next int64, err error) {
	h := it.part.h
	c.arena.Views = true // values are used before the next element is read
	for k := range it.part.state {
		if h.States[k].Name == h.States[it.part.state].Name {
			return 0, format.Errorf(format.ErrUnsupported, "two states of the name %q in one handle", st.name)
		}
	}
	var values reader.Values
	decode := c.decodes() || c.filter != nil && c.filter.looks == looksAtValues
	if decode {
		if values, err = c.snap.Values(ctx, h, it.part.state); err != nil {
			err = format.At(err, "state %q", st.name)
			if c.storedReadable(ctx, h, st.name) {
				err = &notReadable{err}
			}
			return 0, err
		}
	}
	codec, err := c.snap.Codec(h.Codec)
	if err != nil {
		return 0, err
	}
	if decode && values.Key != nil && c.decodes() {
		var done error
		var bytes, entries int64
		err := format.EachEntry(ctx, c.snap.Source(), codec, h, st.name, func(e format.MapEntry) error {
			if e.Index < c.from {
				return nil
			}
			*it = catItem{part: it.part}
			if done = c.decodeEntry(st, it, values, e); done == nil {
				it.stored = c.keep(it.stored)
				done = f()
			}
			bytes, entries = bytes+int64(len(e.Stored)), entries+1
			if c.piece && done == nil && (bytes >= catBytes || entries >= catElements) {
				next, done = e.Index+1, errPiece
			}
			return done
		})
		if errors.Is(err, errPiece) {
			return next, nil
		}
		if err != nil && done == nil && errors.Is(err, format.ErrCorrupt) && c.storedReadable(ctx, h, st.name) {
			err = &notReadable{err}
		}
		return 0, err
	}
	return 0, u.EachElement(ctx, c.snap.Source(), codec, h, func(e format.Element) error {
		*it = catItem{part: it.part, index: e.Index, stored: c.keep(e.Value)}
		switch {
		case !decode:
		case values.Key != nil: // the map is one element, though --where looks into it
			if err := c.decodeMap(ctx, codec, st, it, values); err != nil {
				return err
			}
		default:
			if err := c.decode(st, it, values); err != nil {
				return err
			}
		}
		return f()
	})
}

// keep returns p, or a copy where elements outlive their cursor.
func (c *catter) keep(p []byte) []byte {
	if c.kept == nil {
		return p
	}
	return c.kept.copy(p)
}

// storedReadable reports whether elements can be read as they are stored: bytes that
// are missing are missing in any encoding.
func (c *catter) storedReadable(ctx context.Context, h *format.OperatorHandle, name string) bool {
	codec, err := c.snap.Codec(h.Codec)
	if err != nil {
		return false
	}
	err = format.EachElement(ctx, c.snap.Source(), codec, h, name, func(format.Element) error { return errEnough })
	return errors.Is(err, errEnough)
}

// decode reads the value of an element.
func (c *catter) decode(st *catState, it *catItem, values reader.Values) error {
	if values.Element == nil {
		c.notDecoded(st, values.Why)
		return nil
	}
	c.arena.Reset()
	err := c.readValue(values.Element, it.stored, &it.value)
	if ok, err := c.decoded(st, err, "element", it.index); !ok {
		return err
	}
	it.decoded = true
	return nil
}

// readValue reads a value that is valid as long as its element.
func (c *catter) readValue(codec value.Codec, p []byte, v *value.Value) (err error) {
	if c.kept == nil {
		return value.ReadAllIn(&c.arena, codec, p, v)
	}
	*v, err = value.ReadAll(codec, p)
	return err
}

// decodeEntry makes it an entry of a broadcast state. One that is not decoded is
// shown as stored, without a key.
func (c *catter) decodeEntry(st *catState, it *catItem, values reader.Values, e format.MapEntry) error {
	it.index, it.stored = e.Index, e.Stored
	c.arena.Reset()
	err := c.readValue(values.Key, e.Key, &it.key)
	if err == nil {
		err = c.readValue(values.Value, e.Value, &it.value)
	}
	if ok, err := c.decoded(st, err, "entry", e.Index); !ok {
		it.key = value.Null()
		return err
	}
	it.decoded, it.entry = true, true
	return nil
}

// decodeMap reads the whole map of a broadcast state.
func (c *catter) decodeMap(ctx context.Context, codec format.OperatorCodec, st *catState, it *catItem, values reader.Values) error {
	var pairs []value.Value
	err := format.EachEntry(ctx, c.snap.Source(), codec, it.part.h, st.name, func(e format.MapEntry) error {
		k, err := value.ReadAll(values.Key, e.Key)
		if err != nil {
			return err
		}
		v, err := value.ReadAll(values.Value, e.Value)
		pairs = append(pairs, k, v)
		return err
	})
	if ok, err := c.decoded(st, err, "element", it.index); !ok {
		return err
	}
	it.decoded, it.value = true, value.Map(pairs)
	return nil
}

// decoded reports whether a value was read; one that is valid and still not decoded
// is noted.
func (c *catter) decoded(st *catState, err error, part string, index int64) (bool, error) {
	switch {
	case errors.Is(err, format.ErrUnsupported):
		c.notDecoded(st, err.Error())
		return false, nil
	case err != nil:
		return false, &notReadable{format.At(err, "state %q/%s %d", st.name, part, index)}
	}
	return true, nil
}

// notDecoded notes, once for a state, that its values are shown as stored.
func (c *catter) notDecoded(st *catState, why string) {
	if st.unknownSaid || !c.decodes() || st.kind == "raw" {
		return
	}
	st.unknownSaid = true
	c.unknown = append(c.unknown, fmt.Sprintf("%s/%s (%s)", ui.Quote(st.label), ui.Quote(st.name), ui.Printable(why)))
}

// notReadable is a value, or state meta info, that breaks its
// format. The elements around it can still be read.
type notReadable struct{ error }

func (e *notReadable) Unwrap() error { return e.error }
func (e *notReadable) Hint() string {
	return "--raw shows elements as they are stored, without reading values; is the snapshot sound?  spt verify"
}
