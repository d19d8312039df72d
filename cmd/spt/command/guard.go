package command

import (
	"strings"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/expression"
	"github.com/savepoint-tools/spt/internal/report"
)

// guard is the expression of --fail-if, or of a rule of watch. One that names only the snapshot's
// numbers holds or not for the snapshot; else it is asked of each state.
type guard struct {
	what     string // it is for, in errors
	program  *expression.Program
	perState bool
	counts   bool // it names counts of entries
}

// snapshotVars are the numbers of the whole snapshot, in the order of the help.
var snapshotVars = []struct {
	name, help string
	value      func(r *report.Inspect) int64
}{
	{"total_bytes", "bytes of state, inline and in files", func(r *report.Inspect) int64 { return r.Bytes.Total }},
	{"total_inline_bytes", "of them, inline in _metadata", func(r *report.Inspect) int64 { return r.Bytes.Inline }},
	{"container_bytes", "size of _metadata or of the .spt file", func(r *report.Inspect) int64 { return r.Size }},
	{"missing_files", "files that do not exist", func(r *report.Inspect) int64 { return int64(len(r.MissingFiles)) }},
	{"not_checked_files", "files that were not looked for, such as in a store that is not supported: they may exist", func(r *report.Inspect) int64 { return int64(len(r.NotChecked)) }},
	{"outside_files", "files outside the snapshot that are not read without --follow", func(r *report.Inspect) int64 { return int64(len(r.OutsideFiles)) }},
	{"wrong_files", "files whose length is not the recorded one", func(r *report.Inspect) int64 { return int64(len(r.WrongFiles)) }},
	{"operator_count", "operators", func(r *report.Inspect) int64 { return int64(r.OperatorCount) }},
	{"checkpoint_id", "id of the checkpoint", func(r *report.Inspect) int64 { return r.CheckpointID }},
}

// stateVars are the facts of one state and its operator.
var stateVars = []struct {
	name, help string
	kind       expression.Type
	value      func(op *report.InspectOperator, st *report.InspectState) value.Value
}{
	{"operator", "its operator: uid, else name, else id", expression.String, func(op *report.InspectOperator, _ *report.InspectState) value.Value { return value.String(op.Label()) }},
	{"state", "its name", expression.String, func(_ *report.InspectOperator, st *report.InspectState) value.Value { return value.String(st.Name) }},
	{"kind", "list, union, broadcast, raw, keyed, raw keyed, in-flight data, coordinator, legacy, serializers; of keyed states that were counted value, map, reducing, aggregating, timers", expression.String, func(_ *report.InspectOperator, st *report.InspectState) value.Value { return value.String(st.Kind) }},
	{"parallelism", "of the operator", expression.Int, func(op *report.InspectOperator, _ *report.InspectState) value.Value {
		return value.Int(int64(op.Parallelism))
	}},
	{"max_parallelism", "of the operator", expression.Int, func(op *report.InspectOperator, _ *report.InspectState) value.Value {
		return value.Int(int64(op.MaxParallelism))
	}},
	{"elements", "elements of list and union state, replicas of broadcast state", expression.Int, func(_ *report.InspectOperator, st *report.InspectState) value.Value {
		return value.Int(elementsOf(st, ""))
	}},
	{"union_elements", "elements, for union state; else 0", expression.Int, func(_ *report.InspectOperator, st *report.InspectState) value.Value {
		return value.Int(elementsOf(st, "union"))
	}},
	{"list_elements", "elements, for list state; else 0", expression.Int, func(_ *report.InspectOperator, st *report.InspectState) value.Value {
		return value.Int(elementsOf(st, "list"))
	}},
	{"bytes", "its bytes", expression.Int, func(_ *report.InspectOperator, st *report.InspectState) value.Value {
		return value.Int(st.Bytes)
	}},
	{"inline_bytes", "of them, inline in _metadata", expression.Int, func(_ *report.InspectOperator, st *report.InspectState) value.Value {
		return value.Int(st.InlineBytes)
	}},
	{"offset_bytes", "bytes of its offsets in _metadata", expression.Int, func(_ *report.InspectOperator, st *report.InspectState) value.Value {
		return value.Int(st.OffsetBytes)
	}},
	{"coordinator_bytes", "bytes, for a coordinator; else 0", expression.Int, func(_ *report.InspectOperator, st *report.InspectState) value.Value {
		if st.Kind != "coordinator" {
			return value.Int(0)
		}
		return value.Int(st.Bytes)
	}},
	{"union_restore_bytes", "for union state the bytes that a restore assigns to all subtasks, else 0", expression.Int, func(_ *report.InspectOperator, st *report.InspectState) value.Value {
		return value.Int(st.UnionRestoreBytes)
	}},
	{"may_be_multiplied", "true for union state that a restore may have multiplied", expression.Bool, func(_ *report.InspectOperator, st *report.InspectState) value.Value {
		return value.Bool(st.MayBeMultiplied)
	}},
}

// countVars are the counts of one keyed state, 0 for other states.
var countVars = []struct {
	name, help string
	value      func(e *report.InspectEntries) int64
}{
	{"entries", "entries of keyed state, with --count", func(e *report.InspectEntries) int64 { return e.Entries }},
	{"keys", "its distinct keys; 0 if they are not known", func(e *report.InspectEntries) int64 { return orZero(e.Keys) }},
	{"entry_bytes", "bytes of its stored keys and values", func(e *report.InspectEntries) int64 { return e.Bytes }},
	{"dead_entries", "entries in tables that are overwritten or deleted, or that delete", func(e *report.InspectEntries) int64 { return e.DeadEntries }},
	{"dead_bytes", "their bytes", func(e *report.InspectEntries) int64 { return e.DeadBytes }},
	{"expired_entries", "entries that have expired, with --ttl", func(e *report.InspectEntries) int64 { return orZero(e.ExpiredEntries) }},
	{"expired_bytes", "their bytes", func(e *report.InspectEntries) int64 { return orZero(e.ExpiredBytes) }},
	{"overdue_timers", "timers that fire at --at or before", func(e *report.InspectEntries) int64 {
		if e.Timers == nil {
			return 0
		}
		return e.Timers.Overdue
	}},
	{"far_timers", "timers that fire in more than 100 years", func(e *report.InspectEntries) int64 {
		if e.Timers == nil {
			return 0
		}
		return e.Timers.Far
	}},
}

// operatorVars are the distribution of the keyed state of the operator, with --count.
var operatorVars = []struct {
	name, help string
	value      func(s *report.InspectSkew) int64
}{
	{"largest_key_group", "entry bytes of the largest key group of the operator, with --count", func(s *report.InspectSkew) int64 { return s.KeyGroups.Largest }},
	{"median_key_group", "of its median key group", func(s *report.InspectSkew) int64 { return s.KeyGroups.Median }},
	{"largest_subtask", "of its largest subtask at --parallelism", func(s *report.InspectSkew) int64 { return s.Subtasks.Largest }},
	{"median_subtask", "of its median subtask", func(s *report.InspectSkew) int64 { return s.Subtasks.Median }},
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func elementsOf(st *report.InspectState, kind string) int64 {
	if st.Elements == nil || kind != "" && st.Kind != kind {
		return 0
	}
	return *st.Elements
}

func guardHelp() string {
	var b strings.Builder
	line := func(name, help string) { entry(&b, helpWidth, 2, 22, name, help) }
	for _, v := range stateVars {
		line(v.name, v.help)
	}
	for _, v := range countVars {
		line(v.name, v.help)
	}
	for _, v := range operatorVars {
		line(v.name, v.help)
	}
	for _, v := range snapshotVars {
		line(v.name, v.help)
	}
	line("KiB, MiB, GiB", "1024, 1024², 1024³")
	languageHelp(&b, 22)
	return strings.TrimRight(b.String(), "\n")
}

// languageHelp is what can be done with the names.
func languageHelp(b *strings.Builder, column int) {
	b.WriteByte('\n')
	entry(b, helpWidth, 2, column, "operators", "== != < <= > >= + - * / % ** and or not in contains startsWith endsWith matches ?: ?? .. [0] [1:3] .name ?.name")
	entry(b, helpWidth, 2, column, "functions", strings.Join(expression.Functions(), ", "))
	b.WriteString("docs/expressions.md describes them.")
}

// units are constants of all expressions.
func units() []expression.Name {
	return []expression.Name{
		{Name: "KiB", Type: expression.Int, Constant: value.Int(1 << 10)},
		{Name: "MiB", Type: expression.Int, Constant: value.Int(1 << 20)},
		{Name: "GiB", Type: expression.Int, Constant: value.Int(1 << 30)},
	}
}

// newGuard compiles an expression; what is the flag or the key that has it.
func newGuard(what, text string) (*guard, error) {
	var names []expression.Name
	for _, v := range snapshotVars {
		names = append(names, expression.Name{Name: v.name, Type: expression.Int})
	}
	for _, v := range stateVars {
		names = append(names, expression.Name{Name: v.name, Type: v.kind})
	}
	counts := len(names)
	for _, v := range countVars {
		names = append(names, expression.Name{Name: v.name, Type: expression.Int})
	}
	for _, v := range operatorVars {
		names = append(names, expression.Name{Name: v.name, Type: expression.Int})
	}
	all := len(names)
	p, err := expression.Compile(text, append(names, units()...))
	if err != nil {
		return nil, notCompiled(what+" "+text, err, "inspect")
	}
	g := &guard{what: what, program: p}
	for i := len(snapshotVars); i < all; i++ {
		g.perState = g.perState || p.Uses(i)
		g.counts = g.counts || i >= counts && p.Uses(i)
	}
	return g, nil
}

// check names what the expression holds for.
func (g *guard) check(r *report.Inspect) ([]string, error) {
	vars := expression.Vars{Values: make([]value.Value, len(snapshotVars)+len(stateVars)+len(countVars)+len(operatorVars))}
	for i, v := range snapshotVars {
		vars.Values[i] = value.Int(v.value(r))
	}
	if !g.perState {
		ok, err := g.holds(&vars)
		if err != nil || !ok {
			return nil, err
		}
		return []string{r.Path}, nil
	}
	var all []string
	for i := range r.Operators {
		op := &r.Operators[i]
		for k := range op.States {
			rows := []report.InspectState{op.States[k]}
			entries := []*report.InspectEntries{nil}
			for _, st := range op.States[k].States {
				if st.Count != nil { // counted: it has numbers of its own
					rows = append(rows, report.InspectState{Name: st.Name, Kind: st.Kind, Subtasks: op.States[k].Subtasks})
					entries = append(entries, st.Count)
				}
			}
			for n := range rows {
				g.set(vars.Values[len(snapshotVars):], op, &rows[n], entries[n])
				ok, err := g.holds(&vars)
				if err != nil {
					return nil, err
				}
				if ok {
					name := rows[n].Name
					if name == "" {
						name = "(" + rows[n].Kind + ")"
					}
					all = append(all, op.Label()+"/"+name)
				}
			}
		}
	}
	return all, nil
}

// set sets the values of a state; e is nil if it has no counts.
func (g *guard) set(to []value.Value, op *report.InspectOperator, st *report.InspectState, e *report.InspectEntries) {
	for i, v := range stateVars {
		to[i] = v.value(op, st)
	}
	to = to[len(stateVars):]
	for i, v := range countVars {
		to[i] = value.Int(0)
		if e != nil {
			to[i] = value.Int(v.value(e))
		}
	}
	to = to[len(countVars):]
	for i, v := range operatorVars {
		to[i] = value.Int(0)
		if op.Skew != nil && st.Kind == "keyed" {
			to[i] = value.Int(v.value(op.Skew))
		}
	}
}

func (g *guard) holds(vars *expression.Vars) (bool, error) {
	ok, err := g.program.Eval(vars)
	if err != nil {
		return false, usagef("%s: %v", g.what, err)
	}
	return ok, nil
}
