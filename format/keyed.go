package format

import (
	"bytes"
	"context"
	"io"
	"slices"
)

// KeyedCodec reads and builds the entries of keyed state, whatever their encoding.
// It is safe for concurrent use.
type KeyedCodec interface {
	// Describe returns the states of a handle, by what its streams say of them.
	Describe(ctx context.Context, src Source, h KeyedHandle) (KeyedSchema, error)
	// Entries opens a cursor on the selected entries. It reads the description of
	// the states, and nothing before the first selected key group.
	Entries(ctx context.Context, src Source, h KeyedHandle, sel KeyedSelection) (KeyedCursor, error)
	// Build writes a new stream of a range of key groups to w.
	Build(ctx context.Context, schema KeyedSchema, groups KeyGroupRange, w io.Writer) (KeyedBuilder, error)
}

// KeyedSchema is the states of a keyed stream, in its order: an entry has the index
// of its state.
type KeyedSchema struct {
	States []KeyedState
	Wire   Wire // what only the codec understands, such as the serializer of keys
}

// KeyedState is one state of a keyed stream.
type KeyedState struct {
	Name Text
	Kind string // "value", "list", "map", and others of the codec, such as timers
	Wire Wire   // what only the codec understands, such as serializer snapshots
}

// KeyedSelection chooses entries. The zero value chooses all.
type KeyedSelection struct {
	Groups KeyGroupRange // those that the handle has; no groups: all
	States []int         // indexes in the schema; nil: all
	Key    []byte        // the only key; nil: all
}

// Has reports whether an entry is chosen.
func (s KeyedSelection) Has(e KeyedEntry) bool {
	if s.Groups.Count > 0 && (e.KeyGroup < s.Groups.First || e.KeyGroup > s.Groups.Last()) {
		return false
	}
	if s.States != nil && !slices.Contains(s.States, e.State) {
		return false
	}
	return s.Key == nil || bytes.Equal(s.Key, e.Key)
}

// KeyedEntry is one entry of keyed state, in the bytes of its codec.
type KeyedEntry struct {
	KeyGroup  int32
	State     int // index in the schema
	Key       []byte
	Namespace []byte // nil: none
	UserKey   []byte // of an entry of a map state that is stored entry by entry; else nil
	Value     []byte
}

// Clone returns a copy that outlives the cursor's next step.
func (e KeyedEntry) Clone() KeyedEntry {
	for _, p := range []*[]byte{&e.Key, &e.Namespace, &e.UserKey, &e.Value} {
		*p = bytes.Clone(*p)
	}
	return e
}

// KeyedCursor walks entries of keyed state.
type KeyedCursor interface {
	// Next returns the next entry, valid until the next call, or io.EOF after the
	// last.
	Next() (KeyedEntry, error)
	// Ordered reports whether the order of the entries is defined.
	Ordered() bool
	Close() error
}

// KeyedBuilder writes a stream of keyed state.
type KeyedBuilder interface {
	// Add appends an entry. Entries come in the order that the codec defines, key
	// group by key group.
	Add(e KeyedEntry) error
	// Handle ends the stream and returns its handle, whose Data is nil: the caller
	// knows where the bytes are.
	Handle() (*KeyGroups, error)
}

// EachKeyedEntry calls f with every selected entry of a handle, until f fails or ctx
// ends. An entry is valid until f returns.
func EachKeyedEntry(ctx context.Context, src Source, codec KeyedCodec, h KeyedHandle, sel KeyedSelection, f func(KeyedEntry) error) error {
	cur, err := codec.Entries(ctx, src, h, sel)
	if err != nil {
		return err
	}
	return drain(ctx, cur.Next, cur.Close, f)
}
