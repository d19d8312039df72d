package transform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// PatchOptions are the options of Patch.
type PatchOptions struct {
	// Changes are the changes, in any order. Patch reads them once; an error ends it.
	// It is required.
	Changes iter.Seq2[PatchChange, error]
	// Values returns the codecs of the values of a state of a handle. It is required.
	Values func(ctx context.Context, h *format.OperatorHandle, state int) (value.ElementCodecs, error)
	// Unchecked accepts new bytes of values that are not decoded, whose type cannot be
	// checked.
	Unchecked bool
}

// PatchOp is what a change does.
type PatchOp string

// The operations.
const (
	PatchReplace PatchOp = "replace"
	PatchAdd     PatchOp = "add"
	PatchRemove  PatchOp = "remove"
)

// Values of PatchChange.Subtask and PatchChange.Index.
const (
	AllSubtasks int32 = -1 // of an entry of broadcast state: every subtask
	NoIndex     int64 = -1 // an entry is found by its key, an element is added at the end
)

// PatchChange is a change of one element of list, union or raw operator state, of one
// entry of broadcast or keyed state, or of the state of a coordinator. Indexes are of the input, whatever other changes do.
type PatchChange struct {
	Number   int64   // identifies the change in errors, such as the number of its line
	Op       PatchOp // "" means PatchReplace
	Operator format.OperatorID
	State    string
	Raw      bool // a state of the raw operator state
	// Coordinator is a change of the state of the coordinator, which is one value. It has
	// no State, Subtask, Index or Key, and is replaced only.
	Coordinator bool
	// Subtask is where the element or entry is. A change of an entry of keyed state finds
	// it with AllSubtasks as well.
	Subtask int32
	// Index is the number of the element or entry in its subtask. An element is added
	// before the one with this index.
	Index int64
	// Key is the JSON of the key of an entry of broadcast or keyed state. It finds the
	// entry if Index is not set, otherwise it must be the key of the entry with the Index.
	Key   []byte
	Entry *PatchEntry // of an entry of keyed state, otherwise nil
	Value PatchValue  // new value; of PatchRemove and of timers not used
	Was   PatchValue  // if given, the value that must be stored
}

// PatchValue is a value, or nothing.
type PatchValue struct {
	JSON   []byte // as docs/json.md describes
	Stored []byte // as stored; of a value that is not decoded
}

func (v *PatchValue) given() bool { return v.JSON != nil || v.Stored != nil }

func (v *PatchValue) twice() bool { return v.JSON != nil && v.Stored != nil }

// PatchReport describes what Patch changed.
type PatchReport struct {
	States []*PatchedState // those that changes name, in the order of the first one
	// Commits is what a restore would have committed, aborted or resumed of the states
	// that were changed, before the patch.
	Commits []*SinkPending
	// Splits is the splits that were removed from the readers of sources, while the
	// state of their coordinator stays.
	Splits []*RemovedSplits
	// Entries is the number of entries of keyed state that were built again.
	Entries int64
}

// PatchedState is the result for one state. The entries of every replica of a broadcast
// state count.
type PatchedState struct {
	Operator                 *format.Operator // before the patch
	State                    string
	Mode                     format.Mode
	Raw                      bool
	Coordinator              bool   // the state of the coordinator, which has no name and mode
	Keyed                    string // the kind of a keyed state, which has no mode
	Replaced, Added, Removed int64
	Same                     int64 // changes to the value that was stored
}

// Changed reports whether the state was changed.
func (s *PatchedState) Changed() bool { return s.Replaced+s.Added+s.Removed > 0 }

// PatchError is the error for changes that are wrong. Nothing was changed.
type PatchError struct {
	Problems []PatchProblem // by Number, one of each change; the first ones
	More     int64          // number of other problems
}

// PatchProblem is what is wrong with a change.
type PatchProblem struct {
	Number int64 // of the change
	Err    error
}

func (e *PatchError) Error() string {
	first := e.Problems[0]
	text := fmt.Sprintf("change %d: %v", first.Number, first.Err)
	if n := e.More + int64(len(e.Problems)) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// ErrNotChecked is the problem of new bytes whose type cannot be checked. See
// PatchOptions.Unchecked.
var ErrNotChecked = errors.New("it is not decoded, so new bytes cannot be checked")

// ErrDiverges is the problem of a change after which replicas of a broadcast state that
// were equal would differ.
var ErrDiverges = errors.New("the replicas of a broadcast state would differ")

const (
	// A batch of changes is ordered by element, so that elements are read in their order.
	batchChanges = 1 << 16
	batchBytes   = 16 << 20
	// maxProblems limits the problems that are kept.
	maxProblems = 1000
)

// Patch changes single elements of list, union and raw operator state, single entries
// of broadcast and keyed state, and the state of coordinators. It checks all changes before it changes anything: if any of them is
// wrong, the error is a *PatchError that lists them. A change to the value that is stored
// changes nothing, also if the value would be encoded otherwise today.
//
// An element of union state is changed in the subtask that stores it. An entry of broadcast
// state can be changed in all replicas at once, or in each by a change of its own; changes
// after which equal replicas differ are problems (ErrDiverges).
//
// An entry of keyed state is found in the key group of its key, if that is given or the hash
// code of the key can be computed, otherwise all key groups are read. A list that has no
// element any more is removed. Keyed state of an operator in which entries change is
// canonical, see [Canonical].
//
// The state of a coordinator is a value as [connector.Coordinator] decodes it. One that is
// not decoded, or in part, is changed only if Unchecked is set.
//
// Patch reads the elements that changes name, the maps of broadcast states that they name,
// and the key groups of entries. It holds a batch of changes of up to 16 MiB, what is new, a
// bit for each element of a state that a change names, and 16 bytes for each entry of keyed
// state.
func Patch(ctx context.Context, in format.View, o PatchOptions) (format.View, *PatchReport, error) {
	if o.Changes == nil || o.Values == nil {
		return in, nil, errors.New("Patch needs Changes and Values")
	}
	p := &patch{in: in, o: o, report: &PatchReport{}, ops: map[format.OperatorID]*format.Operator{}, states: map[patchID]*patchState{}, keyed: map[format.OperatorID]*keyedPatch{}, coordinators: map[*format.Operator]*patchCoordinator{}, hash: hash128.New()}
	for _, op := range in.Operators {
		p.ops[op.ID] = op
	}
	if err := p.read(ctx); err != nil {
		return in, nil, err
	}
	edits := handleEdits{}
	for _, st := range p.order {
		if err := st.finish(ctx, p, edits); err != nil {
			return in, nil, format.At(err, "operator %q", st.Operator.Label())
		}
	}
	if err := p.wrong(); err != nil {
		return in, nil, err
	}
	built, err := p.buildKeyed(ctx)
	if err != nil {
		return in, nil, err
	}
	sp, err := editHandles(ctx, in.With(built), edits)
	if err == nil {
		sp, err = p.applyCoordinators(sp)
	}
	if err != nil {
		return in, nil, err
	}
	var changed changedStates
	for _, st := range p.order {
		if st.Changed() && !st.Raw {
			changed.add(st.Operator, st.State)
		}
	}
	if p.report.Commits, p.report.Splits, err = changed.lost(ctx, in, sp); err != nil {
		return in, nil, err
	}
	return in.With(sp), p.report, nil
}

// patch is an edit in progress.
type patch struct {
	in           format.View
	o            PatchOptions
	report       *PatchReport
	ops          map[format.OperatorID]*format.Operator
	states       map[patchID]*patchState
	order        []*patchState
	keyed        map[format.OperatorID]*keyedPatch
	coordinators map[*format.Operator]*patchCoordinator
	hash         hash128.Hasher
	problems     []PatchProblem
	more         int64
}

// patchID identifies a state.
type patchID struct {
	op    format.OperatorID
	state string
	raw   bool
}

// patchState is a state that changes name.
type patchState struct {
	*PatchedState
	number int                    // in the order of states
	parts  []*patchPart           // by subtask
	keys   map[string]*patchedKey // of a broadcast state: entries that change, by the JSON of the key
}

// patchPart is a state in one subtask.
type patchPart struct {
	*patchState
	subtask int32
	h       *format.OperatorHandle
	k       int // index of the state in h
	n       int64
	codec   format.OperatorCodec
	values  value.ElementCodecs
	ready   bool // codec and values are set

	named bitmap // elements that a change replaces or removes
	edits []elementEdit
	first *value.Value // of the first element; see like
}

func (p *patch) problem(number int64, err error) {
	if len(p.problems) == maxProblems {
		p.more++
		return
	}
	p.problems = append(p.problems, PatchProblem{number, err})
}

// wrong returns the error for all problems, or nil.
func (p *patch) wrong() error {
	if len(p.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(p.problems, func(a, b PatchProblem) int { return cmp.Compare(a.Number, b.Number) })
	first := slices.CompactFunc(p.problems, func(a, b PatchProblem) bool { return a.Number == b.Number })
	return &PatchError{first, p.more}
}

// located is a change and its state.
type located struct {
	PatchChange
	st   *patchState
	part *patchPart // nil: of all subtasks
}

// read reads all changes, batch by batch.
func (p *patch) read(ctx context.Context) error {
	var batch []located
	var keyed []*keyedChange
	size := 0
	flush := func() error {
		err := p.batch(ctx, batch)
		if err == nil {
			err = p.keyedBatch(ctx, keyed)
		}
		batch, keyed, size = batch[:0], keyed[:0], 0
		return err
	}
	for c, err := range p.o.Changes {
		if err != nil {
			return err
		}
		if c.Op == "" {
			c.Op = PatchReplace
		}
		if c.Coordinator {
			if err := p.coordinator(ctx, &c); err != nil {
				return err
			}
			continue
		}
		if c.Entry != nil {
			located, wrong, err := p.locate(ctx, c)
			switch {
			case err != nil:
				return err
			case wrong != nil:
				p.problem(c.Number, wrong)
				continue
			}
			keyed = append(keyed, located)
			size += len(located.text) + int(located.entry.Size()) + len(c.Entry.TTL)
		} else {
			st, part, err := p.find(&c)
			if err != nil {
				p.problem(c.Number, err)
				continue
			}
			batch = append(batch, located{c, st, part})
		}
		size += len(c.Key) + len(c.Value.JSON) + len(c.Value.Stored) + len(c.Was.JSON) + len(c.Was.Stored)
		if len(batch)+len(keyed) < batchChanges && size < batchBytes {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return flush()
}

// checkOp returns what is wrong with the operation of a change.
func (c *PatchChange) checkOp() error {
	switch {
	case c.Op != PatchReplace && c.Op != PatchAdd && c.Op != PatchRemove:
		return fmt.Errorf("operation %q: expected %s, %s or %s", c.Op, PatchReplace, PatchAdd, PatchRemove)
	case c.Op == PatchRemove && c.Value.given():
		return errors.New("what is removed has no new value")
	case c.Op == PatchAdd && c.Was.given():
		return errors.New("what is added had no value before")
	case c.Value.twice() || c.Was.twice():
		return errors.New("a value is given twice")
	}
	return nil
}

var errNoValue = errors.New("it has no value")

// find returns the state of a change, and its part; nil for all subtasks.
func (p *patch) find(c *PatchChange) (*patchState, *patchPart, error) {
	if err := c.checkOp(); err != nil {
		return nil, nil, err
	}
	if c.Op != PatchRemove && !c.Value.given() {
		return nil, nil, errNoValue
	}
	st, err := p.state(c)
	if err != nil {
		return nil, nil, err
	}
	broadcast := st.Mode == format.ModeBroadcast
	switch {
	case !broadcast && c.Key != nil:
		return nil, nil, fmt.Errorf("elements of %v state have no key", st.Mode)
	case !broadcast && c.Subtask == AllSubtasks:
		return nil, nil, errors.New("the subtask is missing")
	case !broadcast && c.Index == NoIndex && c.Op != PatchAdd:
		return nil, nil, errors.New("the index is missing")
	case broadcast && c.Op == PatchAdd && (c.Key == nil || c.Index != NoIndex):
		return nil, nil, errors.New("an entry that is added has a key and no index")
	case broadcast && c.Key == nil && c.Index == NoIndex:
		return nil, nil, errors.New("an entry of broadcast state needs a key or an index")
	case broadcast && c.Subtask == AllSubtasks && c.Index != NoIndex:
		return nil, nil, errors.New("an entry has an index in one subtask: the subtask is missing")
	}
	if c.Subtask == AllSubtasks {
		return st, nil, nil
	}
	i, ok := slices.BinarySearchFunc(st.parts, c.Subtask, func(part *patchPart, i int32) int { return cmp.Compare(part.subtask, i) })
	if !ok {
		return nil, nil, fmt.Errorf("subtask %d does not have the state %q", c.Subtask, c.State)
	}
	return st, st.parts[i], nil
}

// state returns the state of a change.
func (p *patch) state(c *PatchChange) (*patchState, error) {
	id := patchID{c.Operator, c.State, c.Raw}
	if st := p.states[id]; st != nil {
		return st, nil
	}
	op := p.ops[c.Operator]
	if op == nil {
		return nil, &format.NoMatchError{What: "operator", Want: c.Operator.String()}
	}
	var st *patchState
	var names []string
	for _, sub := range op.Subtasks {
		h := sub.Managed
		if c.Raw {
			h = sub.Raw
		}
		if h == nil {
			continue
		}
		for k := range h.States {
			s := &h.States[k]
			names = append(names, s.Name.String())
			if s.Name.String() != c.State {
				continue
			}
			if st == nil {
				st = &patchState{PatchedState: &PatchedState{Operator: op, State: c.State, Mode: s.Mode, Raw: c.Raw}, number: len(p.order)}
			}
			if s.Mode != st.Mode || len(st.parts) > 0 && st.parts[len(st.parts)-1].h == h {
				return nil, format.Errorf(format.ErrUnsupported, "several states named %q", c.State)
			}
			st.parts = append(st.parts, &patchPart{patchState: st, subtask: sub.Index, h: h, k: k, n: s.Offsets.Len()})
		}
	}
	if st == nil {
		slices.Sort(names)
		return nil, &format.NoMatchError{What: "operator state", Want: c.State, Available: slices.Compact(names)}
	}
	slices.SortFunc(st.parts, func(a, b *patchPart) int { return cmp.Compare(a.subtask, b.subtask) })
	p.states[id] = st
	p.order = append(p.order, st)
	p.report.States = append(p.report.States, st.PatchedState)
	return st, nil
}

// batch reads the elements that changes name, and keeps what is new.
func (p *patch) batch(ctx context.Context, all []located) error {
	slices.SortStableFunc(all, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.st.number, b.st.number), cmp.Compare(a.Subtask, b.Subtask), cmp.Compare(uint64(a.Index), uint64(b.Index)))
	})
	for len(all) > 0 {
		st, part := all[0].st, all[0].part
		broadcast := st.Mode == format.ModeBroadcast
		n := 1
		for n < len(all) && all[n].st == st && (broadcast || all[n].part == part) {
			n++
		}
		var err error
		if broadcast {
			err = st.entries(ctx, p, all[:n])
		} else {
			err = part.elements(ctx, p, all[:n])
		}
		if err != nil {
			return format.At(err, "operator %q", st.Operator.Label())
		}
		all = all[n:]
	}
	return nil
}

// open sets the codecs of a part.
func (part *patchPart) open(ctx context.Context, p *patch) (err error) {
	if part.ready {
		return nil
	}
	if part.codec, err = p.in.Codec(part.h.Codec); err == nil {
		part.values, err = p.o.Values(ctx, part.h, part.k)
	}
	part.ready = err == nil
	return part.at(err)
}

func (part *patchPart) at(err error) error {
	return format.At(format.At(err, "state %q", part.State), "subtask %d", part.subtask)
}

// finish records the edits of a state.
func (st *patchState) finish(ctx context.Context, p *patch, edits handleEdits) error {
	if st.Mode == format.ModeBroadcast {
		return st.finishMaps(ctx, p, edits)
	}
	for _, part := range st.parts {
		if len(part.edits) > 0 {
			edits.add(part.h, part.k, stateEdit{runs: part.runs()})
		}
	}
	return nil
}
