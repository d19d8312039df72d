package format

import (
	"context"
	"io"
	"iter"
)

// CodecID names how the bytes of one handle hold elements or entries.
type CodecID string

// The codecs.
const (
	CodecFlink  CodecID = "flink"  // envelope with serializer snapshots, then elements
	CodecRaw    CodecID = "raw"    // bytes of user code; only offsets are known
	CodecNative CodecID = "native" // msgpack, written by Go programs
)

// OperatorCodec reads and builds the streams of operator handles. It is safe
// for concurrent use.
type OperatorCodec interface {
	// Describe lists the states of a handle with what the stream says of them.
	Describe(ctx context.Context, src Source, h *OperatorHandle) ([]StateMeta, error)
	// Elements opens a cursor on one state at element from, reading nothing
	// before it.
	Elements(ctx context.Context, src Source, h *OperatorHandle, state string, from int64) (Cursor, error)
	// Entries opens a cursor on the map of a broadcast state. It is an
	// ErrUnsupported where the codec does not know where an entry ends.
	Entries(ctx context.Context, src Source, h *OperatorHandle, state string) (MapCursor, error)
	// Build describes a new handle; its Data is a rope over the streams of the
	// runs. No element is read.
	Build(ctx context.Context, src Source, states []StateRuns) (*OperatorHandle, error)
}

// EachElement calls f with every element of a state of a handle, in order, until
// f fails or ctx ends. An element is valid until f returns.
func EachElement(ctx context.Context, src Source, codec OperatorCodec, h *OperatorHandle, state string, f func(Element) error) error {
	cur, err := codec.Elements(ctx, src, h, state, 0)
	if err != nil {
		return err
	}
	return EachIn(ctx, cur, f)
}

// EachIn calls f with every element that the cursor has left, in order, until f
// fails or ctx ends, and closes the cursor. An element is valid until f returns.
func EachIn(ctx context.Context, cur Cursor, f func(Element) error) error {
	return drain(ctx, cur.Next, cur.Close, f)
}

// StateMeta describes one state of a stream.
type StateMeta struct {
	Name     Text
	Mode     Mode
	Envelope []byte // the state's description in the stream, verbatim
	// Encoding is how the stream around it is made (version, compression): only
	// its codec understands it, and only states of one form share a stream.
	Encoding Wire
}

// StateRuns is the new content of one state as runs of elements of existing
// handles, in order.
type StateRuns struct {
	StateMeta
	Runs []ElementRun
	// Map is which entries stay of the map that Runs has, of a broadcast state;
	// nil: all.
	Map *MapCut
}

// MapCut is a map of a broadcast state without some of its entries.
type MapCut struct {
	Count  int64      // entries that stay
	Ranges []MapRange // where they are, ascending
}

// MapRange is N bytes of a map from Off on: whole entries.
type MapRange struct{ Off, N int64 }

// ElementRun is the elements First … First+Count-1 of a state of a handle. Of a
// broadcast state there is one element, its map.
type ElementRun struct {
	Handle       *OperatorHandle
	State        int // index in Handle.States
	First, Count int64
}

// Cursor walks the elements of one state.
type Cursor interface {
	// Next returns the next element, valid until the next call, or io.EOF after the
	// last.
	Next() (Element, error)
	// Ordered reports whether the order of the elements is defined.
	Ordered() bool
	Close() error
}

// Element is one element of a list or union state, or the whole map of a
// broadcast state, in the bytes of its codec.
type Element struct {
	Index int64
	Value []byte
}

// MapCursor walks the entries of the map of a broadcast state, in the order of the
// file.
type MapCursor interface {
	// Next returns the next entry, valid until the next call, or io.EOF after the
	// last.
	Next() (MapEntry, error)
	Close() error
}

// MapEntry is one entry of the map of a broadcast state, in the bytes of its codec.
type MapEntry struct {
	Index      int64
	Off        int64  // where it starts in the map
	Stored     []byte // the whole entry: key and value
	Key, Value []byte
}

// EachEntry calls f with every entry of the map of a broadcast state of a handle, in
// order, until f fails or ctx ends. An entry is valid until f returns.
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

// drain calls f with all that next returns before io.EOF, and closes.
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

// Clone returns a copy that outlives the cursor's next step.
func (e Element) Clone() Element {
	e.Value = append([]byte(nil), e.Value...)
	return e
}

// All walks a cursor to its end and closes it.
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
