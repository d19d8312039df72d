package transform

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/internal/tally"
)

// DiffKind says what a difference is about.
type DiffKind string

// The kinds of differences.
const (
	DiffID             DiffKind = "id" // says nothing of the state
	DiffSnapshot       DiffKind = "kind"
	DiffMasters        DiffKind = "masters"
	DiffOperators      DiffKind = "operators"
	DiffNames          DiffKind = "names"
	DiffParallelism    DiffKind = "parallelism"
	DiffMaxParallelism DiffKind = "max-parallelism"
	DiffSubtasks       DiffKind = "subtasks"
	DiffCoordinator    DiffKind = "coordinator"
	DiffStates         DiffKind = "states"
	DiffTypes          DiffKind = "types"
	DiffElements       DiffKind = "elements"
	DiffOffsets        DiffKind = "offsets"
	DiffPlacement      DiffKind = "placement"
	DiffKeyed          DiffKind = "keyed"
	DiffInFlight       DiffKind = "in-flight"
	DiffLegacy         DiffKind = "legacy"
	DiffHandles        DiffKind = "handles"
)

// DiffKinds are all kinds, in the order in which they are reported, and what
// each is about.
var DiffKinds = []struct {
	Kind DiffKind
	Help string
}{
	{DiffID, "the checkpoint id; alone it is no difference"},
	{DiffSnapshot, "savepoint or checkpoint, canonical or native, unaligned"},
	{DiffMasters, "state of the checkpoint coordinator's hooks"},
	{DiffOperators, "operators added or removed"},
	{DiffNames, "uid or name of an operator, where both snapshots store one"},
	{DiffParallelism, "parallelism of an operator"},
	{DiffMaxParallelism, "max parallelism of an operator"},
	{DiffSubtasks, "subtasks that had finished or are missing"},
	{DiffCoordinator, "bytes of an operator's coordinator"},
	{DiffStates, "states added or removed, or of another mode"},
	{DiffTypes, "how an operator state describes its serializers"},
	{DiffElements, "elements of list, union, broadcast and raw state"},
	{DiffOffsets, "elements of sources' own states, which are positions and move on"},
	{DiffPlacement, "which subtask holds what (only with --placement)"},
	{DiffKeyed, "keyed state, by key groups and files"},
	{DiffInFlight, "in-flight data"},
	{DiffLegacy, "state of Flink's oldest interface"},
	{DiffHandles, "where state is stored: inline, next to _metadata, elsewhere, merged"},
}

// positionStates are the operator states in which sources keep how far they
// have read: that of Flink's sources, and of the older Kafka and Kinesis ones.
var positionStates = []string{"SourceReaderState", "topic-partition-offset-states", "Kinesis-Stream-Shard-State"}

// DiffOptions say what is compared.
type DiffOptions struct {
	// TempDir is the directory of temporary files; "": that of the system.
	TempDir string
	// Ignore is not compared, and not read for it.
	Ignore map[DiffKind]bool
	// Placement compares which subtask holds an element, or which handle a key
	// group, too.
	Placement bool
	// List is how many elements of each state are listed as added, and as
	// removed; 0: they are only counted.
	List int
	// types.Schemas tell how the states of operators of each side are serialized, for the
	// search for renamed operators; nil: only operator states have names then.
	Schemas [2]types.Schemas
	// Whole are the savepoints that the compared operators were picked from, so
	// that a renamed operator is not taken for another one; nil: nothing was left
	// out.
	Whole [2]*format.Savepoint
	// Entries takes the map of a broadcast state apart, for one side (0: old) and
	// handle; nil where its types are not known. Equal entries must give equal
	// texts.
	Entries func(ctx context.Context, side int, h *format.OperatorHandle, state int) (func(p []byte) ([]MapEntry, error), error)
	// Progress is told of bytes that were read, from several goroutines.
	Progress func(n int64)
}

// MapEntry is an entry of a broadcast state in some stable textual form.
type MapEntry struct{ Key, Value string }

// Diff is how two savepoints differ.
type Diff struct {
	Old, New *summary.Summary
	// Operators of both, by how much they grew, then by label.
	Operators []*OperatorDiff
	// Differences in a defined order: of the snapshot, then by operator and
	// state.
	Differences []Difference
	// Renames are the operators that the new savepoint likely has under other ids.
	Renames *Renames
	// KeyedCompared: keyed state was compared, by bytes and not by entries.
	KeyedCompared bool
	// ByDigest is the bytes of streams of two .spt files that were told to be the
	// same by the digests of their chunks, and not read.
	ByDigest int64
	// Absent is how many files both name alike, and neither has: nothing is known
	// of what is in them.
	Absent int64
	// NotChecked is how many files both name alike, where nobody could look, such as
	// those in a store that is not supported here.
	NotChecked int64
}

// Difference is one thing in which two savepoints differ.
type Difference struct {
	Kind     DiffKind
	Operator *OperatorDiff // nil: the snapshot
	State    *StateDiff    // nil: the operator
	Text     string        // what differs, in words; names in it are quoted
}

// Same reports whether the state is the same: nothing differs but the checkpoint id.
func (d *Diff) Same() bool {
	return !slices.ContainsFunc(d.Differences, func(x Difference) bool { return x.Kind != DiffID })
}

// OperatorDiff is an operator of either savepoint, or of both.
type OperatorDiff struct {
	Old, New *summary.Operator // nil: not there
	// Renamed is why New is likely Old under another id; nil where the ids are
	// equal.
	Renamed []string
	// States by how much they grew, then by name.
	States []*StateDiff

	old, new *format.Operator // as their sources read them
	// oldRead and newRead are those without what cannot be read on either side.
	oldRead, newRead *format.Operator
}

// Operator is the operator in the newer savepoint that has it.
func (o *OperatorDiff) Operator() *format.Operator {
	if o.new != nil {
		return o.new
	}
	return o.old
}

// Bytes of the operator before and after.
func (o *OperatorDiff) Bytes() (old, now int64) {
	if o.Old != nil {
		old = o.Old.Bytes.State()
	}
	if o.New != nil {
		now = o.New.Bytes.State()
	}
	return old, now
}

// StateDiff is a state of either savepoint, or of both.
type StateDiff struct {
	Old, New *summary.State // nil: not there
	Elements *ElementsDiff  // nil: there are none to compare, or they were not
	Keyed    *KeyedDiff     // nil: not keyed, or not compared
}

// State is the state in the newer savepoint that has it.
func (s *StateDiff) State() *summary.State {
	if s.New != nil {
		return s.New
	}
	return s.Old
}

// Bytes of the state before and after.
func (s *StateDiff) Bytes() (old, now int64) {
	if s.Old != nil {
		old = s.Old.Bytes
	}
	if s.New != nil {
		now = s.New.Bytes
	}
	return old, now
}

// DiffSavepoints compares two savepoints, whatever they are kept in.
//
// Elements of operator state are compared as multisets, by digests with random
// keys. State is read once, and twice if it has more than three million elements:
// these are summed up first in 4096 parts of the digests, and only elements in
// parts that differ are counted. Counting takes 100 MiB of memory at most; what
// does not fit is written to temporary files, 40 bytes for each distinct element.
// Keyed state is compared by bytes, and its entries are not looked at.
func DiffSavepoints(ctx context.Context, a, b format.View, o DiffOptions) (*Diff, error) {
	return newDiffer(ctx, a, b, o).run()
}

func newDiffer(ctx context.Context, a, b format.View, o DiffOptions) *differ {
	return &differ{ctx: ctx, a: a, b: b, o: o, hash: tally.NewHasher(), memory: 80 << 20, exact: maxExact, out: &Diff{}}
}

type differ struct {
	ctx         context.Context
	a, b        format.View
	o           DiffOptions
	hash        tally.Hasher
	memory      int64 // of the tables that count elements
	exact       int64 // elements of both sides up to which all different ones are counted
	out         *Diff
	sameStreams map[[2]format.Stream]sameness // see sameReference
	counted     map[string]bool               // see unread
	described   map[describedOf]map[string]*envelopesOf
}

func (d *differ) add(k DiffKind, op *OperatorDiff, st *StateDiff, format string, args ...any) {
	if !d.o.Ignore[k] {
		d.out.Differences = append(d.out.Differences, Difference{k, op, st, fmt.Sprintf(format, args...)})
	}
}

func (d *differ) progress(n int64) {
	if d.o.Progress != nil {
		d.o.Progress(n)
	}
}

func (d *differ) run() (*Diff, error) {
	var ops [2][]opFigures
	for i, in := range []format.View{d.a, d.b} {
		s, all, err := figures(d.ctx, in)
		if err != nil {
			return nil, format.InFile(err, in.Location)
		}
		ops[i] = all
		if i == 0 {
			d.out.Old = s
		} else {
			d.out.New = s
		}
	}
	d.match(ops[0], ops[1])
	for i, sp := range d.o.Whole {
		if sp == nil {
			continue
		}
		in := [2]format.View{d.a, d.b}[i]
		in.Savepoint = sp
		var err error
		if _, ops[i], err = figures(d.ctx, in); err != nil {
			return nil, format.InFile(err, in.Location)
		}
	}
	if err := d.renamed(ops[0], ops[1]); err != nil {
		return nil, err
	}
	for _, op := range d.out.Operators {
		op.matchStates()
	}
	slices.SortStableFunc(d.out.Operators, func(x, y *OperatorDiff) int {
		return cmp.Or(cmp.Compare(growth(y), growth(x)), cmp.Compare(x.Operator().Label(), y.Operator().Label()))
	})
	d.snapshot()
	for _, op := range d.out.Operators {
		if err := d.operator(op); err != nil {
			return nil, format.At(err, "operator %q", op.Operator().Label())
		}
	}
	return d.out, nil
}

func growth(x interface{ Bytes() (int64, int64) }) int64 {
	old, now := x.Bytes()
	return now - old
}

type opFigures struct {
	sum *summary.Operator
	op  *format.Operator
}

// figures sums a savepoint up as if it stood in the container it came from, so
// that an .spt and what it was made from give the same.
func figures(ctx context.Context, in format.View) (*summary.Summary, []opFigures, error) {
	sp, err := in.MapStreams(func(_ format.Place, s format.Stream) (format.Stream, error) { return writtenAs(s), nil })
	if err != nil {
		return nil, nil, err
	}
	s, err := summary.Of(ctx, sp)
	if err != nil {
		return nil, nil, err
	}
	byOp := map[*format.Operator]*summary.Operator{}
	for _, op := range s.Operators {
		byOp[op.Operator] = op
	}
	all := make([]opFigures, len(sp.Operators))
	for i, op := range sp.Operators {
		all[i] = opFigures{byOp[op], in.Operators[i]}
	}
	return s, all, nil
}

// writtenAs is the stream that chunks of an .spt were made from, where that
// refers to a file: what it says of the file is kept.
func writtenAs(s format.Stream) format.Stream {
	if c, ok := s.(*format.Chunks); ok && c.As != nil {
		if _, _, ok := format.Reference(c.As); ok {
			return c.As
		}
	}
	return s
}

// renamed finds operators that are likely one under two ids. Where both are on
// one side only, they are one operator in the diff.
func (d *differ) renamed(old, now []opFigures) error {
	schemas := d.o.Schemas
	if d.o.Ignore[DiffKeyed] {
		schemas = [2]types.Schemas{} // whose headers would be read
	}
	var sides [2][]RenameOperator
	for i, all := range [][]opFigures{old, now} {
		for _, f := range all {
			sides[i] = append(sides[i], RenameOperatorOf(f.op, f.sum, schemas[i]))
		}
	}
	r, err := FindRenames(d.ctx, sides[0], sides[1])
	if err != nil {
		return err
	}
	d.out.Renames = r
	diffs := map[*format.Operator]*OperatorDiff{} // of those that are compared
	for _, o := range d.out.Operators {
		for _, op := range []*format.Operator{o.old, o.new} {
			if op != nil {
				diffs[op] = o
			}
		}
	}
	other := func(n LikelyRename) bool {
		return diffs[n.Operator] == nil && !slices.ContainsFunc(n.From, func(f RenameSource) bool { return diffs[f.Operator] != nil })
	}
	if !slices.ContainsFunc(r.Likely, func(n LikelyRename) bool { return !other(n) }) {
		r.Likely = nil // else all of them, which one command does
	}
	r.Open = slices.DeleteFunc(r.Open, other)
	r.Names = slices.DeleteFunc(r.Names, func(n NameChange) bool { return d.o.Ignore[DiffNames] || diffs[n.New] == nil })
	for _, n := range r.Likely {
		x, y := diffs[n.From[0].Operator], diffs[n.Operator]
		if x == nil || y == nil || x.New != nil || y.Old != nil {
			continue // not compared, or the id is that of another operator too
		}
		x.New, x.new, x.Renamed = y.New, y.new, n.From[0].Reasons
		y.New = nil // is gone from the list
	}
	if d.o.Ignore[DiffOperators] {
		r.Likely, r.Open, r.Skipped = nil, nil, false
	}
	d.out.Operators = slices.DeleteFunc(d.out.Operators, func(o *OperatorDiff) bool { return o.Old == nil && o.New == nil })
	return nil
}

// match pairs operators of one id.
func (d *differ) match(old, now []opFigures) {
	byID := map[format.OperatorID][]*OperatorDiff{}
	for _, f := range old {
		o := &OperatorDiff{Old: f.sum, old: f.op}
		byID[f.op.ID] = append(byID[f.op.ID], o)
		d.out.Operators = append(d.out.Operators, o)
	}
	for _, f := range now {
		if free := byID[f.op.ID]; len(free) > 0 {
			free[0].New, free[0].new = f.sum, f.op
			byID[f.op.ID] = free[1:]
			continue
		}
		d.out.Operators = append(d.out.Operators, &OperatorDiff{New: f.sum, new: f.op})
	}
}

// stateGroup is what a state is, apart from its mode.
func stateGroup(k summary.StateKind) summary.StateKind {
	switch k {
	case summary.Union, summary.Broadcast:
		return summary.List
	}
	return k
}

type stateKey struct {
	group summary.StateKind
	name  string
}

// matchStates pairs states of one name.
func (o *OperatorDiff) matchStates() {
	byKey := map[stateKey]*StateDiff{}
	each := func(op *summary.Operator, set func(*StateDiff, *summary.State)) {
		if op == nil {
			return
		}
		for _, st := range op.States {
			key := stateKey{stateGroup(st.Kind), st.Name}
			s := byKey[key]
			if s == nil {
				s = &StateDiff{}
				byKey[key] = s
				o.States = append(o.States, s)
			}
			set(s, st)
		}
	}
	each(o.Old, func(s *StateDiff, st *summary.State) { s.Old = st })
	each(o.New, func(s *StateDiff, st *summary.State) { s.New = st })
	slices.SortStableFunc(o.States, func(x, y *StateDiff) int {
		return cmp.Or(cmp.Compare(growth(y), growth(x)), cmp.Compare(x.State().Name, y.State().Name), cmp.Compare(x.State().Kind, y.State().Kind))
	})
}

// snapshot compares what is said of the whole.
func (d *differ) snapshot() {
	if d.a.ID != d.b.ID {
		d.add(DiffID, nil, nil, "checkpoint %d → %d", d.a.ID, d.b.ID)
	}
	if x, y := kindText(d.out.Old.Kind), kindText(d.out.New.Kind); x != y {
		d.add(DiffSnapshot, nil, nil, "%s → %s", x, y)
	}
	old, now := mastersText(d.a.Masters), mastersText(d.b.Masters)
	switch {
	case len(d.a.Masters) != len(d.b.Masters):
		d.add(DiffMasters, nil, nil, "%d → %d master states", len(d.a.Masters), len(d.b.Masters))
	case old != now:
		d.add(DiffMasters, nil, nil, "the master states differ")
	}
}

func kindText(k summary.Kind) string {
	parts := []string{k.Type}
	if k.Format != "" {
		parts = append(parts, k.Format)
	}
	if k.Stopped {
		parts = append(parts, "taken to stop the job")
	}
	if k.Changelog {
		parts = append(parts, "changelog")
	}
	if k.Unaligned {
		parts = append(parts, "unaligned")
	}
	return strings.Join(parts, ", ")
}

func mastersText(all []format.MasterState) string {
	var b strings.Builder
	for _, m := range all {
		in := &format.Inline{Data: m.Data}
		fmt.Fprintf(&b, "%q %d %s\n", m.Name.String(), m.Version, in.Key())
	}
	return b.String()
}

// operator compares one.
func (d *differ) operator(o *OperatorDiff) error {
	switch {
	case o.Old == nil:
		d.add(DiffOperators, o, nil, "added")
		return nil
	case o.New == nil:
		d.add(DiffOperators, o, nil, "removed")
		return nil
	case o.Renamed != nil:
		d.add(DiffOperators, o, nil, "likely renamed from %q: %s", o.old.Label(), strings.Join(o.Renamed, ", "))
	default:
		for _, n := range []struct {
			what     string
			old, now format.Text
		}{{"uid", o.old.UID, o.new.UID}, {"name", o.old.Name, o.new.Name}} {
			// Releases before 2.0 store neither.
			if n.old.String() != "" && n.now.String() != "" && n.old.String() != n.now.String() {
				d.add(DiffNames, o, nil, "%s %q → %q", n.what, n.old.String(), n.now.String())
			}
		}
	}
	if o.old.Parallelism != o.new.Parallelism {
		d.add(DiffParallelism, o, nil, "parallelism %d → %d", o.old.Parallelism, o.new.Parallelism)
	}
	if o.old.MaxParallelism != o.new.MaxParallelism {
		d.add(DiffMaxParallelism, o, nil, "max parallelism %d → %d", o.old.MaxParallelism, o.new.MaxParallelism)
	}
	if x, y := o.Old.Finished, o.New.Finished; x != y {
		d.add(DiffSubtasks, o, nil, "subtasks that had finished %d → %d", x, y)
	}
	if x, y := o.Old.Missing, o.New.Missing; x != y {
		d.add(DiffSubtasks, o, nil, "subtasks without an entry %d → %d", x, y)
	}
	var err error
	if o.oldRead, o.newRead, err = d.readable(o); err != nil {
		return err
	}
	for _, st := range o.States {
		if err := d.state(o, st); err != nil {
			if st.State().Name != "" {
				return err // its codec names the state
			}
			return format.At(err, "%s", st.State().Kind)
		}
	}
	d.handles(o)
	return nil
}

func (d *differ) state(o *OperatorDiff, st *StateDiff) error {
	kind := st.State().Kind
	if kind == summary.Coordinator {
		return d.coordinator(o, st)
	}
	if st.State().Name == "" && kind != summary.Keyed && kind != summary.RawKeyed && kind != summary.InFlight && kind != summary.Legacy {
		return nil // the envelope of a handle without states
	}
	switch {
	case kind == summary.InFlight:
		return d.inFlight(o, st)
	case st.Old == nil:
		d.add(DiffStates, o, st, "%s state added", kind)
		return nil
	case st.New == nil:
		d.add(DiffStates, o, st, "%s state removed", kind)
		return nil
	case st.Old.Kind != st.New.Kind:
		d.add(DiffStates, o, st, "mode %s → %s", st.Old.Kind, st.New.Kind)
	}
	switch kind {
	case summary.Keyed, summary.RawKeyed:
		return d.keyed(o, st)
	case summary.Legacy:
		return d.legacy(o, st)
	}
	if err := d.operatorState(o, st); err != nil {
		return err
	}
	return d.types(o, st)
}

// coordinator compares bytes.
func (d *differ) coordinator(o *OperatorDiff, st *StateDiff) error {
	if d.o.Ignore[DiffCoordinator] {
		return nil
	}
	switch {
	case o.old.Coordinator == nil:
		d.add(DiffCoordinator, o, st, "state of the coordinator added")
		return nil
	case o.new.Coordinator == nil:
		d.add(DiffCoordinator, o, st, "state of the coordinator removed")
		return nil
	}
	same, err := d.sameBytes(o.old.Coordinator, o.new.Coordinator)
	if err == nil && !same {
		d.add(DiffCoordinator, o, st, "state of the coordinator changed, %d → %d bytes", st.Old.Bytes, st.New.Bytes)
	}
	return err
}

// types compares how a state describes itself in all subtasks, where both streams
// have the same encoding: another release or compression makes other bytes of the
// same types.
func (d *differ) types(o *OperatorDiff, st *StateDiff) error {
	if d.o.Ignore[DiffTypes] || st.Old.Kind != st.New.Kind {
		return nil
	}
	old, err := d.envelopes(d.a, o.oldRead, st.Old)
	if err != nil {
		return format.InFile(err, d.a.Location)
	}
	now, err := d.envelopes(d.b, o.newRead, st.New)
	if err != nil {
		return format.InFile(err, d.b.Location)
	}
	gone, come := onlyIn(old, now), onlyIn(now, old)
	switch whole := old.whole || now.whole; {
	case len(gone)+len(come) == 0:
		return nil
	case whole && !sameStates(o):
		return nil // which is a difference itself, and explains this one
	case whole && len(o.States) > 1:
		d.add(DiffTypes, o, st, "the description of the types of this and the other states changed, and cannot be split")
		return nil
	case len(gone) == old.handles() && len(come) == now.handles():
		gone, come = nil, nil
	}
	d.add(DiffTypes, o, st, "the description of its types changed%s", changedIn(gone, come))
	return nil
}

// changedIn says in which subtasks something is new, and from which it is gone;
// "" where that is all.
func changedIn(gone, come []int32) string {
	var parts []string
	if len(come) > 0 {
		parts = append(parts, "new in "+number.Subtasks(come))
	}
	if len(gone) > 0 {
		parts = append(parts, "gone from "+number.Subtasks(gone))
	}
	if len(parts) == 0 {
		return ""
	}
	return " in some subtasks: " + strings.Join(parts, ", ")
}

// envelopesOf are the different descriptions of a state, by the encoding of their
// streams and a digest, with the subtasks that have them.
type envelopesOf struct {
	by    map[format.Wire]map[tally.Digest][]int32
	whole bool // one describes all states of a handle, and could not be split
}

func (e *envelopesOf) handles() (n int) {
	for _, all := range e.by {
		for _, subtasks := range all {
			n += len(subtasks)
		}
	}
	return n
}

// onlyIn returns the subtasks, ascending, whose description the other side does
// not have, although it has descriptions in that encoding.
func onlyIn(a, b *envelopesOf) (subtasks []int32) {
	for form, all := range a.by {
		other, ok := b.by[form]
		if !ok {
			continue
		}
		for sum, in := range all {
			if _, both := other[sum]; !both {
				subtasks = append(subtasks, in...)
			}
		}
	}
	slices.Sort(subtasks)
	return subtasks
}

// sameStates reports whether both operators have operator states of the same
// names.
func sameStates(o *OperatorDiff) bool {
	return !slices.ContainsFunc(o.States, func(st *StateDiff) bool {
		return (st.Old == nil || st.New == nil) && stateGroup(st.State().Kind) == summary.List
	})
}

// describedOf is the managed or raw operator state of an operator.
type describedOf struct {
	op  *format.Operator
	raw bool
}

// envelopes returns the descriptions of a state. Those of all states of the
// operator are read at once.
func (d *differ) envelopes(in format.View, op *format.Operator, st *summary.State) (*envelopesOf, error) {
	of := describedOf{op, st.Kind == summary.Raw}
	all, known := d.described[of]
	if !known {
		var err error
		if all, err = d.describe(in, of); err != nil {
			return nil, err
		}
		if d.described == nil {
			d.described = map[describedOf]map[string]*envelopesOf{}
		}
		d.described[of] = all
	}
	if e := all[st.Name]; e != nil {
		return e, nil
	}
	return &envelopesOf{}, nil
}

func (d *differ) describe(in format.View, of describedOf) (map[string]*envelopesOf, error) {
	all := map[string]*envelopesOf{}
	for _, sub := range of.op.Subtasks {
		h := operatorHandle(sub, of.raw)
		if h == nil || len(h.States) == 0 {
			continue
		}
		codec, err := in.Codec(h.Codec)
		if err != nil {
			return nil, err
		}
		metas, err := codec.Describe(d.ctx, in.Source, h)
		if err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
		splits, _ := codec.(interface {
			Encoding(format.Wire) (format.Wire, []byte)
		})
		for _, m := range metas {
			e := all[m.Name.String()]
			if e == nil {
				e = &envelopesOf{by: map[format.Wire]map[tally.Digest][]int32{}}
				all[m.Name.String()] = e
			}
			encoding, description := m.Form, m.Envelope
			if splits != nil {
				if other, whole := splits.Encoding(m.Form); whole != nil {
					encoding, description, e.whole = other, whole, true
				}
			}
			if e.by[encoding] == nil {
				e.by[encoding] = map[tally.Digest][]int32{}
			}
			sum := d.hash.Sum(description)
			e.by[encoding][sum] = append(e.by[encoding][sum], sub.Index)
		}
	}
	return all, nil
}

func operatorHandle(sub *format.Subtask, raw bool) *format.OperatorHandle {
	switch {
	case sub.Finished:
		return nil
	case raw:
		return sub.Raw
	}
	return sub.Managed
}

// handles compares in which kinds of places the state of each slot lies. What
// is only in one of them is a state added or removed.
func (d *differ) handles(o *OperatorDiff) {
	if d.o.Ignore[DiffHandles] {
		return
	}
	old, now := places(o.old), places(o.new)
	for slot := range old {
		if x, y := old[slot], now[slot]; x != 0 && y != 0 && x != y {
			d.add(DiffHandles, o, nil, "%s is stored %s → %s", format.Slot(slot), x, y)
		}
	}
}

// placeSet is a set of kinds of streams.
type placeSet uint

var placeWords = [...]string{
	format.KindInline: "inline", format.KindRelative: "next to _metadata", format.KindAbsolute: "in files elsewhere",
	format.KindSegment: "in merged files", format.KindEmpty: "nowhere", format.KindChunks: "in chunks",
}

func (s placeSet) String() string {
	var all []string
	for k, word := range placeWords {
		if s>>k&1 != 0 {
			all = append(all, word)
		}
	}
	return strings.Join(all, " and ")
}

func places(op *format.Operator) (sets [8]placeSet) {
	sp := format.Savepoint{Operators: []*format.Operator{op}}
	_ = sp.EachStream(func(p format.Place, s format.Stream) error { // gives only the errors of f
		switch c := s.(type) {
		case *format.Chunks:
			if c.As != nil {
				s = c.As
			}
		case *format.Concat:
			return nil // lies nowhere yet
		}
		sets[p.Slot] |= 1 << format.Kind(s)
		return nil
	})
	return sets
}
