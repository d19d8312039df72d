package format

import (
	"context"
	"io"
	"iter"
)

// CodecID names the encoding of the elements or entries of a handle.
type CodecID string

// The known codecs.
const (
	CodecFlink  CodecID = "flink"  // envelope with serializer snapshots, then elements
	CodecRaw    CodecID = "raw"    // bytes of user code; only offsets are known
	CodecNative CodecID = "native" // msgpack, written by Go programs
)

// OperatorCodec reads and builds the streams of operator handles. It is safe
// for concurrent use.
type OperatorCodec interface {
	// Describe returns the states of a handle as its stream describes them.
	Describe(ctx context.Context, src Source, h *OperatorHandle) ([]StateMeta, error)
	// Elements opens a cursor on one state at element from. It reads no element
	// before from.
	Elements(ctx context.Context, src Source, h *OperatorHandle, state string, from int64) (Cursor, error)
	// Entries opens a cursor on the map of a broadcast state. The error matches
	// ErrUnsupported if the codec cannot determine where an entry ends.
	Entries(ctx context.Context, src Source, h *OperatorHandle, state string) (MapCursor, error)
	// Build returns a new handle whose Data is a rope (a [Concat]) of ranges of the
	// runs' streams. It reads no element.
	Build(ctx context.Context, src Source, states []StateRuns) (*OperatorHandle, error)
}

// EachElement calls f with each element of a state of a handle, in order. It stops
// at the first error of f and when ctx ends. The element is valid until f returns.
func EachElement(ctx context.Context, src Source, codec OperatorCodec, h *OperatorHandle, state string, f func(Element) error) error {
	cur, err := codec.Elements(ctx, src, h, state, 0)
	if err != nil {
		return err
	}
	return EachIn(ctx, cur, f)
}

// EachIn calls f with each remaining element of the cursor, in order, and closes
// the cursor. It stops at the first error of f and when ctx ends. The element is
// valid until f returns.
func EachIn(ctx context.Context, cur Cursor, f func(Element) error) error {
	return drain(ctx, cur.Next, cur.Close, f)
}

// StateMeta is one state as its stream describes it.
type StateMeta struct {
	Name     Text
	Mode     Mode
	Envelope []byte // state meta info from the stream, verbatim
	// Encoding is the encoding of the stream (version, compression). It is opaque
	// to all but its codec. Only states with equal Encodings can share a stream.
	Encoding Wire
}

// StateRuns is the new content of one state: runs of elements of existing handles,
// in order.
type StateRuns struct {
	StateMeta
	Runs []ElementRun
	// Map is the entries of a broadcast state, if Runs is its map; nil keeps all.
	Map *MapCut
}

// MapCut is the new content of a broadcast state's map: entries that are kept, and new
// ones.
type MapCut struct {
	Count  int64      // number of entries
	Ranges []MapRange // their bytes, in order
}

// MapRange is the bytes [Off, Off+N) of a map: whole entries. If New is not nil, it is
// entries that the map does not have, in the encoding of the codec, and the other fields
// are not used.
type MapRange struct {
	Off, N int64
	New    []byte
}

// ElementRun is the elements First … First+Count-1 of a state of a handle. A
// broadcast state has one element, its map. If New is not nil, the run is elements that
// no handle has, in the encoding of the codec, and the other fields are not used.
type ElementRun struct {
	Handle       *OperatorHandle
	State        int // index in Handle.States
	First, Count int64
	New          [][]byte
}

// Cursor walks the elements of one state.
type Cursor interface {
	// Next returns the next element, valid until the next call, or io.EOF at the
	// end.
	Next() (Element, error)
	// Ordered reports whether the order of the elements is defined.
	Ordered() bool
	Close() error
}

// Element is one element of a list or union state, or the whole map of a broadcast
// state, in its codec's encoding.
type Element struct {
	Index int64
	Value []byte
}

// MapCursor walks the entries of the map of a broadcast state in stream order.
type MapCursor interface {
	// Next returns the next entry, valid until the next call, or io.EOF at the end.
	Next() (MapEntry, error)
	Close() error
}

// MapEntry is one entry of the map of a broadcast state, in its codec's encoding.
type MapEntry struct {
	Index      int64
	Off        int64  // offset in the map
	Stored     []byte // the whole entry: key and value
	Key, Value []byte
}

// EachEntry calls f with each entry of the map of a broadcast state of a handle, in
// order. It stops at the first error of f and when ctx ends. The entry is valid
// until f returns.
func EachEntry(ctx context.Context, src Source, codec OperatorCodec, h *OperatorHandle, state string, f func(MapEntry) error) (err error) {
	cur, err := codec.Entries(ctx, src, h, state)
	if err != nil {
		return err
	}
	next := func() (MapEntry, error) {
		e, err := cur.Next()
		if err != nil && err != io.EOF {
			err = At(err, "state %q", state)
		}
		return e, err
	}
	return drain(ctx, next, cur.Close, f)
}

// drain calls f with what next returns until io.EOF, then calls closing.
func drain[T any](ctx context.Context, next func() (T, error), closing func() error, f func(T) error) (err error) {
	defer func() {
		if cerr := closing(); err == nil {
			err = cerr
		}
	}()
	for n := 0; ; n++ {
		e, err := next()
		if err == io.EOF {
			return nil
		}
		if err == nil && n%4096 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
	}
}

// Clone returns a copy of e that stays valid after the cursor moves on.
func (e Element) Clone() Element {
	e.Value = append([]byte(nil), e.Value...)
	return e
}

// All returns an iterator over the remaining elements of a cursor. It closes the
// cursor at the end.
func All(c Cursor) iter.Seq2[Element, error] {
	return func(yield func(Element, error) bool) {
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
