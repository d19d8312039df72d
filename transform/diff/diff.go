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

// Kind says what a difference is about.
type Kind string

// The kinds of differences.
const (
	KindID             Kind = "id" // says nothing of the state
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

// Kinds are all kinds, in the order in which they are reported, and what
// each is about.
var Kinds = []struct {
	Kind Kind
	Help string
}{
	{KindID, "the checkpoint id; alone it is no difference"},
	{KindSnapshot, "savepoint or checkpoint, canonical or native, unaligned"},
	{KindMasters, "state of the checkpoint coordinator's hooks"},
	{KindOperators, "operators added or removed"},
	{KindNames, "uid or name of an operator, where both snapshots store one"},
	{KindParallelism, "parallelism of an operator"},
	{KindMaxParallelism, "max parallelism of an operator"},
	{KindSubtasks, "subtasks that had finished or are missing"},
	{KindCoordinator, "bytes of an operator's coordinator"},
	{KindStates, "states added or removed, or of another mode"},
	{KindTypes, "how an operator state describes its serializers"},
	{KindElements, "elements of list, union, broadcast and raw state"},
	{KindOffsets, "elements of sources' own states, which are positions and move on"},
	{KindPlacement, "which subtask holds what"},
	{KindKeyed, "keyed state, by key groups and files"},
	{KindInFlight, "in-flight data"},
	{KindLegacy, "state of Flink's oldest interface"},
	{KindHandles, "where state is stored: inline, next to _metadata, elsewhere, merged"},
}

// Options say what is compared.
type Options struct {
	// TempDir is the directory of temporary files; "": that of the system.
	TempDir string
	// Jobs is how many ranges of elements are read at once; 0: one per processor.
	// The result does not depend on it.
	Jobs int
	// Ignore is not compared, and not read for it.
	Ignore map[Kind]bool
	// Placement compares which subtask holds an element, or which handle a key
	// group, too.
	Placement bool
	// List is how many elements of each state are listed as added, and as
	// removed; 0: they are only counted.
	List int
	// Schemas tell how the states of operators of each side are serialized, for the
	// search for renamed operators; nil: only operator states have names then.
	Schemas [2]types.Schemas
	// Whole are the savepoints that the compared operators were picked from, so
	// that a renamed operator is not taken for another one; nil: nothing was left
	// out.
	Whole [2]*format.Savepoint
	// EntryText returns what makes texts of the entries of a broadcast state, for one
	// side (0: old) and handle; nil where its types are not known. Equal entries must
	// have equal texts.
	EntryText func(ctx context.Context, side int, h *format.OperatorHandle, state int) (func(format.MapEntry) (key, value string, err error), error)
	// Progress is told of bytes that were read, from several goroutines.
	Progress func(n int64)
}

// Result is how two savepoints differ.
type Result struct {
	Old, New *summary.Summary
	// Operators of both, by how much they grew, then by label.
	Operators []*Operator
	// Differences in a defined order: of the snapshot, then by operator and
	// state.
	Differences []Difference
	// Renames are the operators that the new savepoint likely has under other ids.
	Renames *transform.Renames
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
	Kind     Kind
	Operator *Operator // nil: the snapshot
	State    *State    // nil: the operator
	Text     string    // what differs, in words; names in it are quoted
}

// Same reports whether the state is the same: nothing differs but the checkpoint id.
func (d *Result) Same() bool {
	return !slices.ContainsFunc(d.Differences, func(x Difference) bool { return x.Kind != KindID })
}

// Savepoints compares two savepoints, whatever they are kept in.
//
// Elements of operator state are compared as multisets, by digests with random
// keys. State is read once, and twice if it has more than three million elements:
// these are summed up first in 4096 parts of the digests, and only elements in
// parts that differ are counted. Counting takes 100 MiB of memory at most; what
// does not fit is written to temporary files, 40 bytes for each distinct element.
// Keyed state is compared by bytes, and its entries are not looked at.
func Savepoints(ctx context.Context, a, b format.View, o Options) (*Result, error) {
	return newDiffer(ctx, a, b, o).run()
}

func newDiffer(ctx context.Context, a, b format.View, o Options) *differ {
	d := &differ{ctx: ctx, a: a, b: b, o: o, hash: hash128.New(), memory: 80 << 20, exact: maxExact, out: &Result{}}
	for i, in := range []format.View{a, b} {
		// Units name handles in the snapshot, not among the operators that were picked.
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
	out         *Result
	sameStreams map[[2]format.Stream]sameness // see sameReference
	counted     map[string]bool               // see unread
	described   map[describedOf]map[string]*envelopesOf
}

func (d *differ) add(k Kind, op *Operator, st *State, format string, args ...any) {
	if !d.o.Ignore[k] {
		d.out.Differences = append(d.out.Differences, Difference{k, op, st, fmt.Sprintf(format, args...)})
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
