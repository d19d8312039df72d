package diff

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/internal/elements"
)

// Kind is what a difference is about.
type Kind string

// The kinds of differences.
const (
	KindID             Kind = "id" // not about the state
	KindSnapshot       Kind = "kind"
	KindMasters        Kind = "masters"
	KindOperators      Kind = "operators"
	KindNames          Kind = "names"
	KindParallelism    Kind = "parallelism"
	KindMaxParallelism Kind = "max-parallelism"
	KindSubtasks       Kind = "subtasks"
	KindCoordinator    Kind = "coordinator"
	KindStates         Kind = "states"
	KindTypes          Kind = "types"
	KindElements       Kind = "elements"
	KindOffsets        Kind = "offsets"
	KindPlacement      Kind = "placement"
	KindKeyed          Kind = "keyed"
	KindInFlight       Kind = "in-flight"
	KindLegacy         Kind = "legacy"
	KindHandles        Kind = "handles"
)

// Kinds are all kinds, in the order in which they are reported, with
// descriptions.
var Kinds = []struct {
	Kind Kind
	Help string
}{
	{KindID, "the checkpoint id; not a difference by itself"},
	{KindSnapshot, "savepoint or checkpoint, canonical or native, unaligned"},
	{KindMasters, "state of the checkpoint coordinator's hooks"},
	{KindOperators, "operators added or removed"},
	{KindNames, "uid or name of an operator, if both snapshots store one"},
	{KindParallelism, "parallelism of an operator"},
	{KindMaxParallelism, "max parallelism of an operator"},
	{KindSubtasks, "subtasks that had finished or are missing"},
	{KindCoordinator, "bytes of an operator's coordinator"},
	{KindStates, "states added, removed, or with another mode"},
	{KindTypes, "serializer snapshots of operator states"},
	{KindElements, "elements of list, union, broadcast and raw state"},
	{KindOffsets, "elements of sources' own states: positions, which advance"},
	{KindPlacement, "which subtask holds what"},
	{KindKeyed, "keyed state, by entries where its bytes differ"},
	{KindInFlight, "in-flight data"},
	{KindLegacy, "legacy operator state"},
	{KindHandles, "where state is stored: inline, next to _metadata, elsewhere, merged"},
}

// Options are the options of Savepoints.
type Options struct {
	// TempDir is the directory of temporary files; "" means the system's.
	TempDir string
	// Jobs is the number of ranges of elements, or of key groups, read at once; 0 means
	// one per processor. The result does not depend on it.
	Jobs int
	// Ignore are the kinds that are not compared, and not read to be compared.
	Ignore map[Kind]bool
	// Placement also compares which subtask holds an element, and which handle a key
	// group.
	Placement bool
	// List is the number of elements of each state to list as added, and as removed;
	// 0 only counts them.
	List int
	// Schemas return how the states of operators of each side are serialized, for the
	// search for renamed operators; if nil, only operator states have names.
	Schemas [2]types.Schemas
	// Whole are the savepoints from which the compared operators were selected, so
	// that a renamed operator is not mistaken for another; nil if nothing was left
	// out.
	Whole [2]*format.Savepoint
	// EntryText returns a function that formats the entries of a broadcast state, for
	// one side (0 is old) and handle; nil if its types are unknown. Equal entries
	// must have equal texts.
	EntryText func(ctx context.Context, side int, h *format.OperatorHandle, state int) (func(format.MapEntry) (key, value string, err error), error)
	// Progress is called with the number of bytes read, from several goroutines.
	Progress func(n int64)
}

// Result is how two savepoints differ.
type Result struct {
	Old, New *summary.Summary
	// Operators are the operators of both, sorted by growth, then by label.
	Operators []*Operator
	// Differences are in a defined order: of the snapshot, then by operator and
	// state.
	Differences []Difference
	// Renames are the operators that the new savepoint likely has under other ids.
	Renames *transform.Renames
	// KeyedCompared is set if keyed state was compared.
	KeyedCompared bool
	// ByDigest is the number of bytes of streams of two .spt files that were found
	// equal by the digests of their chunks, without reading.
	ByDigest int64
	// Absent is the number of files that both name equally and neither has: their
	// content is unknown.
	Absent int64
	// NotChecked is the number of files that both name equally and that could not be
	// looked up, for example in an unsupported store.
	NotChecked int64
}

// Difference is one thing in which two savepoints differ.
type Difference struct {
	Kind     Kind
	Operator *Operator   // nil for the snapshot
	State    *State      // nil for the operator
	Keyed    *KeyedState // of State, that Text is about; nil for all of it
	Text     string      // what differs, in words; names in it are quoted
}

// Same reports whether the state is the same: nothing differs but the checkpoint id.
func (d *Result) Same() bool {
	return !slices.ContainsFunc(d.Differences, func(x Difference) bool { return x.Kind != KindID })
}

// Savepoints compares two savepoints in any containers.
//
// Elements of operator state are compared as multisets, by digests with random
// keys. State is read once, or twice if it has more than three million elements:
// their digests are first summed in 4096 parts, and only elements in parts that
// differ are counted. Counting takes at most 100 MiB of memory; the rest is
// written to temporary files, 40 bytes for each distinct element. Keyed state is
// compared by bytes, and its entries, by key, where these differ: also between state
// backends, encodings and max parallelisms. Timers that are raw keyed state on one side are
// compared with the managed keyed state of the other side.
func Savepoints(ctx context.Context, a, b format.View, o Options) (*Result, error) {
	return newDiffer(ctx, a, b, o).run()
}

func newDiffer(ctx context.Context, a, b format.View, o Options) *differ {
	d := &differ{ctx: ctx, a: a, b: b, o: o, hash: hash128.New(), memory: 80 << 20, exact: maxExact, unit: entryUnit, out: &Result{}}
	for i, in := range []format.View{a, b} {
		// Units name handles in the snapshot, not among the selected operators.
		if whole := o.Whole[i]; whole != nil && holds(whole, in.Operators) {
			in.Savepoint = whole
		}
		d.readers[i] = elements.NewReader(in, d.hash, d.progress)
	}
	return d
}

// holds reports whether a savepoint has all of some operators.
func holds(sp *format.Savepoint, all []*format.Operator) bool {
	has := map[*format.Operator]bool{}
	for _, op := range sp.Operators {
		has[op] = true
	}
	return !slices.ContainsFunc(all, func(op *format.Operator) bool { return !has[op] })
}

type differ struct {
	ctx         context.Context
	a, b        format.View
	o           Options
	readers     [2]*elements.Reader // of the whole savepoints
	hash        hash128.Hasher
	memory      int64 // of the tables that count elements
	exact       int64 // elements of both sides up to which all different ones are counted
	unit        int64 // see entryUnit
	out         *Result
	sameStreams map[[2]format.Stream]sameness // see sameReference
	counted     map[string]bool               // see unread
	described   map[describedOf]map[string]*envelopesOf
}

func (d *differ) add(k Kind, op *Operator, st *State, format string, args ...any) {
	if !d.o.Ignore[k] {
		d.out.Differences = append(d.out.Differences, Difference{Kind: k, Operator: op, State: st, Text: fmt.Sprintf(format, args...)})
	}
}

func (d *differ) progress(n int64) {
	if d.o.Progress != nil {
		d.o.Progress(n)
	}
}

func (d *differ) run() (*Result, error) {
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
	slices.SortStableFunc(d.out.Operators, func(x, y *Operator) int {
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
