package format

import (
	"bytes"
	"context"
	"io"
	"slices"
)

// KeyedCodec reads and builds keyed state of one encoding. It is safe for
// concurrent use.
type KeyedCodec interface {
	// Describe returns the states of a handle as its streams describe them.
	Describe(ctx context.Context, src Source, h KeyedHandle) (KeyedSchema, error)
	// Entries opens a cursor on the selected entries. Apart from the header of the
	// stream, it reads nothing before the first selected key group.
	Entries(ctx context.Context, src Source, h KeyedHandle, sel KeyedSelection) (KeyedCursor, error)
	// Build starts a new stream for a range of key groups, written to w.
	Build(ctx context.Context, schema KeyedSchema, groups KeyGroupRange, w io.Writer) (KeyedBuilder, error)
}

// KeyedSchema is the states of a keyed stream, in stream order. Entries refer to a
// state by its index.
type KeyedSchema struct {
	States []KeyedState
	Wire   Wire // opaque to all but the codec, such as the serializer of keys
	// Compressed is set if the stream of the handle is compressed, rather than files in
	// it. Build then compresses too.
	Compressed bool
}

// KeyedState is one state of a keyed stream.
type KeyedState struct {
	Name Text
	Kind string // "value", "list", "map", or another kind of the codec, such as timers
	Wire Wire   // opaque to all but the codec, such as serializer snapshots
}

// KeyedSelection selects entries. The zero value selects all.
type KeyedSelection struct {
	Groups KeyGroupRange // within the range of the handle; empty: all
	States []int         // indexes in the schema; nil: all
	Key    []byte        // one key; nil: all
	// Whole asks for entries that are not split, where a codec has Stored: of these only
	// State, KeyGroup, Stored and Value are set. It does not apply with Key.
	Whole bool
}

// Has reports whether the entry is selected.
func (s KeyedSelection) Has(e KeyedEntry) bool {
	if s.Groups.Count > 0 && (e.KeyGroup < s.Groups.First || e.KeyGroup > s.Groups.Last()) {
		return false
	}
	if s.States != nil && !slices.Contains(s.States, e.State) {
		return false
	}
	return s.Key == nil || bytes.Equal(s.Key, e.Key)
}

// KeyedEntry is one entry of keyed state: a value of a key and namespace, or one entry
// of a map, or a timer. Its parts are in its codec's encoding.
type KeyedEntry struct {
	KeyGroup int32
	State    int    // index in the schema
	Key      []byte // nil if the codec cannot split Stored
	// Namespace is nil if the codec has none, or cannot split Stored.
	Namespace []byte
	UserKey   []byte // map key, if map state is stored as one entry per map key; otherwise nil
	Value     []byte // empty for timers
	Time      int64  // at which a timer fires, in ms; 0 for other states
	// Stored is the key as Flink's canonical savepoints and RocksDB store it: key
	// group, key, namespace and map key. Key, Namespace and UserKey are parts of it.
	// Codecs of other encodings leave it nil.
	Stored []byte
}

// Size returns the bytes of the parts of e: key, namespace, map key and value. It does
// not depend on the encoding; if the codec cannot split Stored, it counts as a whole.
func (e *KeyedEntry) Size() int64 {
	n := len(e.Key) + len(e.Namespace) + len(e.UserKey) + len(e.Value)
	if e.Key == nil {
		n += len(e.Stored)
	}
	return int64(n)
}

// Clone returns a copy of e that stays valid after the cursor moves on.
func (e KeyedEntry) Clone() KeyedEntry {
	for _, p := range []*[]byte{&e.Key, &e.Namespace, &e.UserKey, &e.Value, &e.Stored} {
		*p = bytes.Clone(*p)
	}
	return e
}

// KeyedCursor walks entries of keyed state.
type KeyedCursor interface {
	// Next returns the next entry, valid until the next call, or io.EOF at the end.
	Next() (KeyedEntry, error)
	// Ordered reports whether the order of the entries is defined.
	Ordered() bool
	Close() error
}

// DeadCounter is a [KeyedCursor] over files that also hold entries that it does not
// return, because they are overwritten or deleted, or delete others.
type DeadCounter interface {
	KeyedCursor
	// Dead returns what was skipped of a state so far.
	Dead(state int) DeadEntries
}

// DeadEntries are entries that take space and are not part of the state.
type DeadEntries struct {
	Entries int64
	Bytes   int64 // of their keys and values, before compression
}

// Add adds o to d.
func (d *DeadEntries) Add(o DeadEntries) {
	d.Entries += o.Entries
	d.Bytes += o.Bytes
}

// KeyedBuilder writes a stream of keyed state.
type KeyedBuilder interface {
	// Add appends an entry. Entries must be added in the order that the codec
	// defines, key group by key group.
	Add(e KeyedEntry) error
	// Handle ends the stream and returns its handle. The caller sets Data, which is
	// nil.
	Handle() (*KeyGroups, error)
}

// EachKeyedEntry calls f with each selected entry of a handle. It stops at the
// first error of f and when ctx ends. The entry is valid until f returns.
func EachKeyedEntry(ctx context.Context, src Source, codec KeyedCodec, h KeyedHandle, sel KeyedSelection, f func(KeyedEntry) error) error {
	cur, err := codec.Entries(ctx, src, h, sel)
	if err != nil {
		return err
	}
	return drain(ctx, cur.Next, cur.Close, f)
}
