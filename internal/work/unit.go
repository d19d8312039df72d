package work

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/savepoint-tools/spt/format"
)

// Job is the operation of a unit. It is part of the encoding: never change one.
type Job string

// The jobs.
const (
	CheckHeader    Job = "check-header"    // read and check the description of a handle in its stream
	CheckElements  Job = "check-elements"  // decode elements of operator state
	CheckEntries   Job = "check-entries"   // decode entries of keyed state: of key groups, or of a table of RocksDB
	CheckNative    Job = "check-native"    // decode all of a handle in spt's own encoding
	CheckFile      Job = "check-file"      // read a file
	CheckChunks    Job = "check-chunks"    // check chunks of an .spt file
	ReadElements   Job = "read-elements"   // decode, filter and render elements of operator state
	CountElements  Job = "count-elements"  // compute digests of elements of operator state
	SumElements    Job = "sum-elements"    // add up digests of elements of operator state
	CountEntries   Job = "count-entries"   // count entries of keyed state
	CompareEntries Job = "compare-entries" // compare entries of keyed state of an operator in two snapshots: of key groups
	WriteFile      Job = "write-file"      // write a file of a snapshot
	ReadBack       Job = "read-back"       // read back a written file, and compare checksums
)

// All means all states as the state of a unit, and all that follow as its count.
const All = -1

// Unit is a part of a job.
type Unit struct {
	Job    Job
	Handle Handle
	State  int    // index of a state in the handle, or All
	First  int64  // element of the state, key group or table of the handle, or chunk of the file
	Count  int64  // number of elements, key groups, tables or chunks; All: up to the last
	Target string // name of the file to write
	Parts  []Part // ranges to read
}

// Part is a range of a stream.
type Part struct {
	Stream    string // see Identity
	Off, Size int64  // Size is All if the end is unknown
}

// Handle is the location of a handle in a snapshot. The id and the index serve to
// detect a different snapshot. The zero value means no handle.
type Handle struct {
	Operator, Subtask int // positions in Savepoint.Operators and Operator.Subtasks
	ID                format.OperatorID
	Index             int32 // of the subtask
	Slot              format.Slot
	Nested            int // number of the handle in the order of format.EachKeyed
}

// Size returns the number of bytes that the unit reads, if known.
func (u Unit) Size() (n int64) {
	for _, p := range u.Parts {
		n += max(p.Size, 0)
	}
	return n
}

// Key returns a digest of the encoding: units with equal keys are equal.
func (u Unit) Key() [sha256.Size]byte { return sha256.Sum256(u.Append(nil)) }

// Whole returns the part of a unit that reads all of a stream.
func Whole(st format.Stream) []Part {
	if st == nil {
		return nil
	}
	return []Part{{Identity(st), 0, max(st.Size(), All)}}
}

// Identity returns equal texts for streams that the snapshot describes in the
// same way. Unlike [format.Stream].Key it reads no bytes: an inline stream is
// identified by its name and its size, and a rope by its parts.
func Identity(st format.Stream) string {
	switch s := st.(type) {
	case nil:
		return ""
	case *format.Inline:
		return format.StreamKey{Kind: format.KindInline, Name: s.Name.String(), Size: s.Size()}.String()
	case *format.Concat:
		h := sha256.New()
		for _, p := range s.Parts {
			fmt.Fprintf(h, "%s@%d+%d\n", Identity(p.Of), p.Off, p.N)
		}
		return format.StreamKey{Kind: format.KindConcat, Name: hex.EncodeToString(h.Sum(nil)), Size: s.Size()}.String()
	}
	return st.Key().String()
}

// subtask returns the operator and the subtask of the handle in a snapshot. The
// error matches format.ErrChanged if it is a different snapshot.
func (h Handle) subtask(sp *format.Savepoint) (*format.Operator, *format.Subtask, error) {
	if uint(h.Operator) < uint(len(sp.Operators)) {
		op := sp.Operators[h.Operator]
		if op.ID == h.ID && uint(h.Subtask) < uint(len(op.Subtasks)) && op.Subtasks[h.Subtask].Index == h.Index {
			return op, op.Subtasks[h.Subtask], nil
		}
	}
	return nil, nil, fmt.Errorf("%w: the snapshot has no operator %s with subtask %d at position %d", format.ErrChanged, h.ID, h.Index, h.Operator)
}

// Location returns the location of the handle for messages.
func (h Handle) Location(sp *format.Savepoint) (format.Place, error) {
	op, sub, err := h.subtask(sp)
	return format.Place{Operator: op, Subtask: sub, Slot: h.Slot}, err
}

// OperatorHandle returns the handle of operator state that the unit reads. The
// error matches format.ErrChanged if the snapshot has a different one.
func (u Unit) OperatorHandle(sp *format.Savepoint) (*format.OperatorHandle, error) {
	_, sub, err := u.Handle.subtask(sp)
	if err != nil {
		return nil, err
	}
	var h *format.OperatorHandle
	switch u.Handle.Slot {
	case format.SlotManaged:
		h = sub.Managed
	case format.SlotRaw:
		h = sub.Raw
	}
	if h == nil || u.State < All || u.State >= len(h.States) || !u.reads(h.Data) {
		return nil, u.changed()
	}
	return h, nil
}

// KeyedHandle is OperatorHandle for keyed state.
func (u Unit) KeyedHandle(sp *format.Savepoint) (format.KeyedHandle, error) {
	_, sub, err := u.Handle.subtask(sp)
	if err != nil {
		return nil, err
	}
	outer := sub.ManagedKeyed
	if u.Handle.Slot == format.SlotRawKeyed {
		outer = sub.RawKeyed
	}
	var found format.KeyedHandle
	n := 0
	format.EachKeyed(outer, func(h format.KeyedHandle) {
		if n == u.Handle.Nested {
			found = h
		}
		n++
	})
	if found == nil || !u.reads(Described(found)) {
		return nil, u.changed()
	}
	return found, nil
}

// Described returns the stream of a keyed handle that begins with a header, or
// nil.
func Described(h format.KeyedHandle) format.Stream {
	switch h := h.(type) {
	case *format.KeyGroups:
		return h.Data
	case *format.Incremental:
		return h.Meta
	}
	return nil
}

// reads reports whether the unit has a part of a stream.
func (u Unit) reads(st format.Stream) bool {
	return len(u.Parts) == 0 && st == nil || len(u.Parts) == 1 && u.Parts[0].Stream == Identity(st)
}

func (u Unit) changed() error {
	return fmt.Errorf("%w: operator %s, subtask %d has a different %s", format.ErrChanged, u.Handle.ID, u.Handle.Index, u.Handle.Slot)
}
