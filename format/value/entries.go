package value

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
)

// EntryCodecs are the codecs of the parts of the entries of one keyed state, see
// [format.KeyedEntry]: one set whatever the encoding of the handle is. The codec of a
// part that the state does not have, or that is not decoded, is nil. Each part is all
// of its bytes: use [ReadAll].
type EntryCodecs struct {
	Key, Namespace Codec
	UserKey        Codec // of a map that is stored as one entry per map key
	// Value is nil for timers. The value of list state is the whole list, the value of
	// an entry of a map can be null.
	Value Codec
	// TTL is set if the value, or each element of a list, is a list of a time (ms) and
	// the value of the user.
	TTL bool
	// Time returns when a value with TTL that is not a list was last updated, in ms since
	// 1970, also if values are not decoded. ok is false for a null map value. Time is nil
	// without TTL and for lists.
	Time func(value []byte) (ms int64, ok bool, err error)
	// List is set if the value is a list with one element per element of list state.
	List bool
	// Why is why the first part that is not decoded is not; nil if all are.
	Why error
	// KeyHash returns the hash code of a key from its bytes, which determines its key
	// group, see [format.KeyGroupOfHash]. It is nil if the bytes do not determine the
	// hash code; WhyNoHash is why.
	KeyHash   func(key []byte) (int32, error)
	WhyNoHash error
}

// Part returns the bytes of a part of an entry, such as its key, that is given as JSON or
// as it is stored. Without either it is the JSON null; of a part that c does not decode,
// it is nil. Stored bytes must be a value of c, unless it is nil.
func Part(c Codec, text, stored []byte) ([]byte, error) {
	switch {
	case stored != nil:
		if c == nil {
			return stored, nil
		}
		_, err := ReadAll(c, stored)
		return stored, err
	case c == nil && (text == nil || string(text) == "null"):
		return nil, nil
	case c == nil:
		return nil, errors.New("it is not decoded, so it is given as bytes")
	case text == nil:
		text = []byte("null")
	}
	v, err := FromJSONLike(c, Null(), text)
	if err != nil {
		return nil, err
	}
	return c.Append([]byte{}, v)
}

// KeyedCodec is a [format.KeyedCodec] that also decodes entries.
type KeyedCodec interface {
	format.KeyedCodec
	// EntryCodecs returns the codecs of the states of a handle, in the order of
	// Describe.
	EntryCodecs(ctx context.Context, src format.Source, h format.KeyedHandle) ([]EntryCodecs, error)
}

// EntryCodecsOf returns the codecs of the states of a handle. It returns
// format.ErrUnsupported if codec is not a [KeyedCodec].
func EntryCodecsOf(ctx context.Context, src format.Source, codec format.KeyedCodec, h format.KeyedHandle) ([]EntryCodecs, error) {
	c, ok := codec.(KeyedCodec)
	if !ok {
		return nil, format.Errorf(format.ErrUnsupported, "a codec that does not decode entries of keyed state")
	}
	return c.EntryCodecs(ctx, src, h)
}

// Updated returns when a value with TTL was last updated, in ms since 1970: of list
// state its oldest and its newest element. ok is false if the value has no time: a
// null map value. The state must have TTL.
func (c *EntryCodecs) Updated(p []byte) (oldest, newest int64, ok bool, err error) {
	if c.Value == nil {
		return 0, 0, false, c.Why
	}
	v, err := ReadAll(c.Value, p)
	if err != nil {
		return 0, 0, false, err
	}
	if !c.List {
		t, ok := timeOf(v)
		return t, t, ok, nil
	}
	for i := range v.Len() {
		t, has := timeOf(v.At(i))
		switch {
		case !has:
		case !ok:
			oldest, newest, ok = t, t, true
		default:
			oldest, newest = min(oldest, t), max(newest, t)
		}
	}
	return oldest, newest, ok, nil
}

// Expire removes from a value with TTL what was last updated at until or before, in ms
// since 1970: of list state elements. left is false if nothing is left; otherwise value is
// what is left, p itself if nothing was removed. The state must have TTL.
func (c *EntryCodecs) Expire(p []byte, until int64) (value []byte, left bool, err error) {
	if !c.List {
		ms, ok, err := c.Time(p)
		return p, !ok || ms > until, err
	}
	if c.Value == nil {
		return nil, false, c.Why
	}
	v, err := ReadAll(c.Value, p)
	if err != nil {
		return nil, false, err
	}
	kept := make([]Value, 0, v.Len())
	for i := range v.Len() {
		if ms, ok := timeOf(v.At(i)); !ok || ms > until {
			kept = append(kept, v.At(i))
		}
	}
	switch len(kept) {
	case 0:
		return nil, false, nil
	case v.Len():
		return p, true, nil
	}
	value, err = c.Value.Append(nil, List(kept))
	return value, true, err
}

// timeOf returns the time of a pair of a time and a value.
func timeOf(v Value) (int64, bool) {
	if v.Kind() != KindList && v.Kind() != KindRecord || v.Len() != 2 || v.At(0).Kind() != KindInt {
		return 0, false
	}
	return v.At(0).Int(), true
}

// ElementCodecs are the codecs of one operator state of a handle: Element of the
// elements of list, union and raw state, Key and Value of the entries of broadcast
// state. If they are nil, values are not decoded, and Why is the reason.
type ElementCodecs struct {
	Element    Codec
	Key, Value Codec
	Why        string
}
