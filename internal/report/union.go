package report

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
)

// Unions is the answer of prune-union with IN.
type Unions []Union

// Union is what prune-union knows of one union state.
type Union struct {
	Operator      string `json:"operator"`
	ID            string `json:"id"`
	State         string `json:"state"`
	Kind          string `json:"kind" jsonschema:"enum=union,enum=broadcast,description=of broadcast state each replica of the map is an element"`
	Subtasks      int    `json:"subtasks"`
	Elements      int64  `json:"elements"`
	Distinct      int64  `json:"distinct"`
	MinCopies     int64  `json:"min_copies" jsonschema:"description=how often an element occurs at least"`
	MaxCopies     int64  `json:"max_copies" jsonschema:"description=and at most"`
	Bytes         int64  `json:"bytes"`
	DistinctBytes int64  `json:"distinct_bytes"`
	Equal         bool   `json:"subtasks_equal" jsonschema:"description=every subtask holds the same elements, each equally often, in any order"`
	SameOrder     bool   `json:"subtasks_same_order" jsonschema:"description=and in the same order"`
	Fewest        int64  `json:"min_in_subtask" jsonschema:"description=elements of the subtask that holds the fewest"`
	Most          int64  `json:"max_in_subtask" jsonschema:"description=elements of the subtask that holds the most"`
	Common        int64  `json:"in_all_subtasks" jsonschema:"description=different elements that every one of several subtasks holds"`
	Factor        int64  `json:"factor" jsonschema:"description=largest power of the number of subtasks that divides every count; 1 if none"`
	MaxFactor     int64  `json:"max_factor" jsonschema:"description=greatest common divisor of the counts: the highest factor by which restores can have multiplied all elements; 0 without elements"`
	Verdict       string `json:"verdict" jsonschema:"enum=duplicated by restores,enum=not sure,enum=nothing repeats,enum=replicas equal,enum=replicas differ"`
	Why           string `json:"why"`
	Assigned      int64  `json:"assigned" jsonschema:"description=elements that a restore loads, in all subtasks together"`
	AssignedBytes int64  `json:"assigned_bytes"`

	Kept          *int64 `json:"kept,omitempty" jsonschema:"description=elements that stay"`
	KeptBytes     *int64 `json:"kept_bytes,omitempty"`
	AssignedAfter *int64 `json:"assigned_after,omitempty" jsonschema:"description=assigned of what is kept"`
	MinKept       int64  `json:"kept_min_copies,omitempty" jsonschema:"description=how often an element that stays occurs at least"`
	MaxKept       int64  `json:"kept_max_copies,omitempty" jsonschema:"description=and at most"`
	Remaining     int64  `json:"remaining_duplicates,omitempty" jsonschema:"description=elements that stay beyond one of each"`
	RemainingWhy  string `json:"remaining_why,omitempty" jsonschema:"description=of a state that was pruned: why duplicates remain"`
	Skipped       string `json:"skipped,omitempty" jsonschema:"description=why it is left as it is"`

	of         *transform.UnionReport // nil: broadcast
	restoredAt int64                  // the parallelism that Assigned is for
	in, choose string                 // snapshot, and the flags that choose the state; "" where the names are redacted
}

// The verdicts on broadcast state.
const (
	replicasEqual  = "replicas equal"
	replicasDiffer = "replicas differ"
)

// NewUnions reports union and broadcast states of the snapshot at in. The cost of a
// restore is that at a parallelism, or if it is 0 at the operator's.
func (r *Run) NewUnions(in string, unions []*transform.UnionReport, broadcasts []*transform.BroadcastReport, parallelism int32) Unions {
	all := Unions{}
	named := map[string]int{} // how many operators have a union state of a name
	for _, u := range unions {
		named[u.State]++
	}
	for _, u := range unions {
		row := r.newUnion(u, parallelism)
		row.in = in
		if r.Format != ui.FormatRedacted {
			row.choose = selectState(row.ID, u.State, named[u.State] > 1)
		}
		all = append(all, row)
	}
	for _, b := range broadcasts {
		all = append(all, r.newBroadcast(b))
	}
	return all
}

func (r *Run) newUnion(u *transform.UnionReport, parallelism int32) Union {
	at := int64(u.Operator.Parallelism)
	if parallelism > 0 {
		at = int64(parallelism)
	}
	return Union{
		Operator: r.Label(u.Operator), ID: u.Operator.ID.String(), State: r.Text(u.State), Kind: format.ModeUnion.String(), Subtasks: u.Subtasks,
		Elements: u.Elements, Distinct: u.Distinct, MinCopies: u.MinCopies, MaxCopies: u.MaxCopies, Bytes: u.Bytes, DistinctBytes: u.DistinctBytes,
		Equal: u.Equal, SameOrder: u.SameOrder, Fewest: u.Fewest, Most: u.Most, Common: u.Common, Factor: u.Factor, MaxFactor: u.MaxFactor, Verdict: string(u.Verdict), Why: u.Why,
		Assigned: number.Times(u.Elements, at), AssignedBytes: number.Times(u.Bytes, at), of: u, restoredAt: at,
	}
}

func (r *Run) newBroadcast(b *transform.BroadcastReport) Union {
	equal := len(b.Versions) <= 1
	row := Union{
		Operator: r.Label(b.Operator), ID: b.Operator.ID.String(), State: r.Text(b.State), Kind: format.ModeBroadcast.String(),
		Distinct: int64(len(b.Versions)), Bytes: b.Bytes, Factor: 1, Equal: equal, SameOrder: equal,
		Verdict: replicasEqual, Why: "every subtask holds the same map", Fewest: 1, Most: 1, MaxFactor: 1, AssignedBytes: b.Bytes,
	}
	var parts []string
	for _, v := range b.Versions {
		n := int64(len(v.Subtasks))
		row.Elements += n
		row.DistinctBytes += v.Bytes
		if row.MinCopies == 0 || n < row.MinCopies {
			row.MinCopies = n
		}
		row.MaxCopies = max(row.MaxCopies, n)
		var subtasks []string
		for _, i := range v.Subtasks {
			subtasks = append(subtasks, strconv.Itoa(int(i)))
		}
		parts = append(parts, fmt.Sprintf("%s in subtask %s", ui.Bytes(v.Bytes), Shorten(subtasks)))
	}
	row.Subtasks, row.Assigned = int(row.Elements), row.Elements
	if equal && row.Subtasks > 1 {
		row.Common = 1
	}
	if !equal {
		row.Verdict, row.Why = replicasDiffer, fmt.Sprintf("%d maps: %s", len(b.Versions), Shorten(parts))
	}
	return row
}

// Lines implements [Lines].
func (all Unions) Lines() iter.Seq[any] { return each(all) }

// Header implements [Rows].
func (all Unions) Header() []string {
	return []string{"operator", "id", "state", "kind", "subtasks", "elements", "distinct", "min_copies", "max_copies", "bytes", "distinct_bytes", "subtasks_equal", "factor", "verdict", "why", "subtasks_same_order", "min_in_subtask", "max_in_subtask", "max_factor", "in_all_subtasks"}
}

// Rows implements [Rows].
func (all Unions) Rows() iter.Seq[[]string] {
	return rows(all, func(u *Union) []string {
		return []string{u.Operator, u.ID, u.State, u.Kind, strconv.Itoa(u.Subtasks), fmt.Sprint(u.Elements), fmt.Sprint(u.Distinct), fmt.Sprint(u.MinCopies), fmt.Sprint(u.MaxCopies),
			fmt.Sprint(u.Bytes), fmt.Sprint(u.DistinctBytes), strconv.FormatBool(u.Equal), fmt.Sprint(u.Factor), u.Verdict, u.Why,
			strconv.FormatBool(u.SameOrder), fmt.Sprint(u.Fewest), fmt.Sprint(u.Most), fmt.Sprint(u.MaxFactor), fmt.Sprint(u.Common)}
	})
}

// Document implements [Report]: a table of union states, then what each verdict rests
// on, and what to do.
func (all Unions) Document() *ui.Document {
	var d ui.Document
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16},
		ui.Column{Header: "ELEMENTS", Align: ui.Right}, ui.Column{Header: "DISTINCT", Align: ui.Right}, ui.Column{Header: "COPIES", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right}, ui.Column{Header: "VERDICT", Shrink: 2, Min: 10, Wrap: true},
	)
	unions, equal := 0, 0
	for _, u := range all {
		switch {
		case u.of != nil:
			unions++
			t.Row(u.name(), ui.Count(u.Elements), ui.Count(u.Distinct), u.copies(), ui.Bytes(u.Bytes), u.verdict())
		case u.Verdict == replicasEqual:
			equal++
		}
	}
	if unions == 0 {
		d.Line("no union state")
	}
	d.Add(t)
	for i := range all {
		all[i].appendTo(&d)
	}
	if equal > 0 {
		d.Blank()
		d.Line("%s with equal replicas: nothing to prune, an .spt file stores them once.", ui.Plural(int64(equal), "broadcast state"))
	}
	return &d
}

func (u *Union) name() string { return ui.Quote(u.Operator) + "/" + ui.Quote(u.State) }

func (u *Union) copies() string {
	switch {
	case u.Elements == 0:
		return ""
	case u.MinCopies == u.MaxCopies:
		return ui.Count(u.MinCopies) + " each"
	}
	return fmt.Sprintf("%s–%s", ui.Count(u.MinCopies), ui.Count(u.MaxCopies))
}

func (u *Union) verdict() string {
	switch transform.Verdict(u.Verdict) {
	case transform.VerdictProduct:
		return ui.Bad(u.Verdict)
	case transform.VerdictNotSure:
		return ui.Look(u.Verdict)
	}
	return ui.Proved(u.Verdict)
}

// appendTo appends what the verdict rests on, and what to do.
func (u *Union) appendTo(d *ui.Document) {
	switch {
	case u.Verdict == replicasDiffer:
		d.Blank()
		d.Remark("broadcast state %s has replicas that differ, %s.", u.name(), u.Why)
		d.Line("  Each subtask gets one of them at a restore: which are read depends on the parallelism.")
	case u.of == nil:
	case u.of.Verdict == transform.VerdictProduct:
		u.appendDuplicated(d)
	default:
		if u.of.Verdict == transform.VerdictNotSure {
			u.appendNotSure(d)
		}
		if u.AssignedBytes >= check.LargeUnion {
			d.Blank()
			u.appendLarge(d, u.Elements, u.AssignedBytes)
		}
	}
}

func (u *Union) appendDuplicated(d *ui.Document) {
	d.Blank()
	d.Line("%s: %s.", u.name(), u.Why)
	for _, line := range factorText(u.of) {
		d.Line("%s", line)
	}
	d.Line("--keep distinct on %s would keep %s, %s (%s).", ui.Quote(u.State), ui.Plural(u.Distinct, "element"), ui.Bytes(u.DistinctBytes), ui.Percent(u.DistinctBytes, u.Bytes))
	d.Line("A restore now loads %s, %s, in all subtasks together.", ui.Plural(u.Assigned, "element"), ui.Bytes(u.AssignedBytes))
	if u.choose != "" {
		d.Line("Nothing written. Add an output to write it:  spt prune-union %s %s %s --keep distinct", shell.Quote(u.in), outLike(u.in), u.choose)
	}
}

func (u *Union) appendNotSure(d *ui.Document) {
	d.Blank()
	d.Line("%s: %s.", u.name(), u.Why)
	switch {
	case !u.of.Repeats():
	case u.choose == "":
		d.Line("%s.", u.of.Numbers())
	default:
		d.Line("%s. How often each occurs:", u.of.Numbers())
		d.Line("  spt cat %s %s --distinct", shell.Quote(u.in), u.choose)
	}
}

// appendLarge warns that a restore loads many bytes.
func (u *Union) appendLarge(d *ui.Document, elements, bytes int64) {
	d.Remark("%s: a restore at parallelism %s hands all %s to every subtask: %s in total.", u.name(), ui.Count(u.restoredAt), ui.Plural(elements, "element"), ui.Bytes(bytes))
}

// outLike returns the name of an output in a command that is shown: of the family of
// the input, because only an .spt file can hold state in spt's own encoding.
func outLike(in string) string {
	if strings.HasSuffix(in, ".spt") {
		return "OUT.spt"
	}
	return "OUT"
}
