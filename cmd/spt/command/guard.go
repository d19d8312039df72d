package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/savepoint-tools/spt/internal/report"
)

// guard is the expression of --fail-if. One that names only the snapshot's
// numbers holds or not for the snapshot; else it is asked of each state.
type guard struct {
	program  *vm.Program
	perState bool
}

// snapshotVars are the numbers of the whole snapshot, in the order of the help.
var snapshotVars = []struct {
	name, help string
	value      func(r *report.Inspect) any
}{
	{"total_bytes", "bytes of state, inline and in files", func(r *report.Inspect) any { return int(r.Bytes.Total) }},
	{"total_inline_bytes", "of them, inline in _metadata", func(r *report.Inspect) any { return int(r.Bytes.Inline) }},
	{"container_bytes", "size of _metadata or of the .spt file", func(r *report.Inspect) any { return int(r.Size) }},
	{"missing_files", "files that do not exist", func(r *report.Inspect) any { return len(r.MissingFiles) }},
	{"not_checked_files", "files that were not looked for, such as in a store that is not supported: they may exist", func(r *report.Inspect) any { return len(r.NotChecked) }},
	{"outside_files", "files outside the snapshot that are not read without --follow", func(r *report.Inspect) any { return len(r.OutsideFiles) }},
	{"wrong_files", "files whose length is not the recorded one", func(r *report.Inspect) any { return len(r.WrongFiles) }},
	{"operator_count", "operators", func(r *report.Inspect) any { return r.OperatorCount }},
	{"checkpoint_id", "id of the checkpoint", func(r *report.Inspect) any { return int(r.CheckpointID) }},
}

// stateVars are the facts of one state and its operator.
var stateVars = []struct {
	name, help string
	value      func(op *report.InspectOperator, st *report.InspectState) any
}{
	{"operator", "its operator: uid, else name, else id", func(op *report.InspectOperator, _ *report.InspectState) any { return op.Label() }},
	{"state", "its name", func(_ *report.InspectOperator, st *report.InspectState) any { return st.Name }},
	{"kind", "list, union, broadcast, raw, keyed, raw keyed, in-flight data, coordinator, legacy, serializers", func(_ *report.InspectOperator, st *report.InspectState) any { return st.Kind }},
	{"parallelism", "of the operator", func(op *report.InspectOperator, _ *report.InspectState) any { return int(op.Parallelism) }},
	{"max_parallelism", "of the operator", func(op *report.InspectOperator, _ *report.InspectState) any { return int(op.MaxParallelism) }},
	{"elements", "elements of list and union state, copies of broadcast state", func(_ *report.InspectOperator, st *report.InspectState) any { return elementsOf(st, "") }},
	{"union_elements", "elements, for union state; else 0", func(_ *report.InspectOperator, st *report.InspectState) any { return elementsOf(st, "union") }},
	{"list_elements", "elements, for list state; else 0", func(_ *report.InspectOperator, st *report.InspectState) any { return elementsOf(st, "list") }},
	{"bytes", "its bytes", func(_ *report.InspectOperator, st *report.InspectState) any { return int(st.Bytes) }},
	{"inline_bytes", "of them, inline in _metadata", func(_ *report.InspectOperator, st *report.InspectState) any { return int(st.InlineBytes) }},
	{"offset_bytes", "bytes of its offsets in _metadata", func(_ *report.InspectOperator, st *report.InspectState) any { return int(st.OffsetBytes) }},
	{"coordinator_bytes", "bytes, for a coordinator; else 0", func(_ *report.InspectOperator, st *report.InspectState) any {
		if st.Kind != "coordinator" {
			return 0
		}
		return int(st.Bytes)
	}},
	{"union_restore_bytes", "for union state the bytes that a restore assigns to all subtasks, else 0", func(_ *report.InspectOperator, st *report.InspectState) any { return int(st.UnionRestoreBytes) }},
	{"may_be_multiplied", "true for union state that a restore may have multiplied", func(_ *report.InspectOperator, st *report.InspectState) any { return st.MayBeMultiplied }},
}

func elementsOf(st *report.InspectState, kind string) int {
	if st.Elements == nil || kind != "" && st.Kind != kind {
		return 0
	}
	return int(*st.Elements)
}

func guardHelp() string {
	var b strings.Builder
	line := func(name, help string) { entry(&b, helpWidth, 2, 22, name, help) }
	for _, v := range stateVars {
		line(v.name, v.help)
	}
	for _, v := range snapshotVars {
		line(v.name, v.help)
	}
	line("KiB, MiB, GiB", "1024, 1024², 1024³")
	return strings.TrimRight(b.String(), "\n")
}

func units() map[string]any {
	return map[string]any{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
}

func snapshotEnv(r *report.Inspect) map[string]any {
	env := units()
	for _, v := range snapshotVars {
		env[v.name] = v.value(r)
	}
	return env
}

func stateEnv(r *report.Inspect, op *report.InspectOperator, st *report.InspectState) map[string]any {
	env := snapshotEnv(r)
	for _, v := range stateVars {
		env[v.name] = v.value(op, st)
	}
	return env
}

func newGuard(text string) (*guard, error) {
	r, op, st := &report.Inspect{}, &report.InspectOperator{}, &report.InspectState{}
	if p, err := expr.Compile(text, expr.Env(snapshotEnv(r)), expr.AsBool()); err == nil {
		return &guard{program: p}, nil
	}
	p, err := expr.Compile(text, expr.Env(stateEnv(r, op, st)), expr.AsBool())
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, &usageError{fmt.Sprintf("--fail-if %s: %s", text, first), exprHint(err, slices.Collect(maps.Keys(stateEnv(r, op, st))), "inspect")}
	}
	return &guard{program: p, perState: true}, nil
}

// check names what the expression holds for.
func (g *guard) check(r *report.Inspect) ([]string, error) {
	holds := func(env map[string]any) (bool, error) {
		v, err := expr.Run(g.program, env)
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			return false, usagef("--fail-if: %s", first)
		}
		return v.(bool), nil
	}
	if !g.perState {
		ok, err := holds(snapshotEnv(r))
		if err != nil || !ok {
			return nil, err
		}
		return []string{r.Path}, nil
	}
	var all []string
	for i := range r.Operators {
		op := &r.Operators[i]
		for k := range op.States {
			st := &op.States[k]
			ok, err := holds(stateEnv(r, op, st))
			if err != nil {
				return nil, err
			}
			if ok {
				name := st.Name
				if name == "" {
					name = "(" + st.Kind + ")"
				}
				all = append(all, op.Label()+"/"+name)
			}
		}
	}
	return all, nil
}
