package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// earlierEdit is a step of a recipe that moved or removed elements, or changed how
// they are redistributed: what subtasks hold after it need not show any more that
// restores multiplied a union state.
type earlierEdit struct {
	word   string
	line   int
	before *reader.Snapshot
	// ids are the operators that it changed: the id now, and the one before.
	ids map[format.OperatorID]format.OperatorID
}

// remember keeps what later steps need to know of a step.
func (e *Env) remember(s *recipeStep, before, after *reader.Snapshot) {
	switch s.word {
	case "rename": // the operators stay where they are in the list
		for _, earlier := range e.earlier {
			ids := map[format.OperatorID]format.OperatorID{}
			for i, op := range before.Operators {
				if id, ok := earlier.ids[op.ID]; ok {
					ids[after.Operators[i].ID] = id
				}
			}
			earlier.ids = ids
		}
	case "filter", "patch", "rescale", "set":
		old := map[format.OperatorID]*format.Operator{}
		for _, op := range before.Operators {
			old[op.ID] = op
		}
		edit := &earlierEdit{word: s.word, line: s.line, before: before, ids: map[format.OperatorID]format.OperatorID{}}
		for _, op := range after.Operators {
			if was := old[op.ID]; was != nil && was != op {
				edit.ids[op.ID] = op.ID
			}
		}
		if len(edit.ids) > 0 {
			e.earlier = append(e.earlier, edit)
		}
	}
}

// wrongOrder returns an error where a step before prune-union made a state
// unproven that was proven to be duplicated by restores. left reports whether
// prune-union leaves a state as it is.
func (e *Env) wrongOrder(ctx context.Context, left func(id format.OperatorID, state string) bool) error {
	for _, earlier := range e.earlier {
		now := map[format.OperatorID]format.OperatorID{} // by the id before
		for id, before := range earlier.ids {
			now[before] = id
		}
		before := earlier.before.View()
		ops, states := format.ByID(), format.ByName()
		for _, op := range before.Operators {
			id, changed := now[op.ID]
			for _, name := range unionNames(op) {
				if changed && left(id, name) {
					ops, states = append(ops, op.ID.String()), append(states, format.ByName(name)...)
				}
			}
		}
		slices.Sort(states)
		states = slices.Compact(states)
		reports, err := transform.DiagnoseUnions(ctx, before, transform.UnionOptions{Operators: ops, States: states, TempDir: e.common.tmp, Jobs: e.common.jobs})
		if err != nil {
			return err
		}
		for _, r := range reports {
			if r.Verdict == transform.VerdictProduct && left(now[r.Operator.ID], r.State) {
				return &usageError{
					fmt.Sprintf("%s/%s is proven to be duplicated by restores (%s) before the %s on line %d, and no longer after it", ui.Quote(e.run.Label(r.Operator)), ui.Quote(e.run.Text(r.State)), r.Why, earlier.word, earlier.line),
					fmt.Sprintf("put prune-union before the %s on line %d", earlier.word, earlier.line),
				}
			}
		}
	}
	return nil
}

// unionNames returns the names of the union states of an operator.
func unionNames(op *format.Operator) []string {
	var names []string
	for _, sub := range op.Subtasks {
		if sub.Managed == nil {
			continue
		}
		for i := range sub.Managed.States {
			if st := &sub.Managed.States[i]; st.Mode == format.ModeUnion {
				names = append(names, st.Name.String())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// listNow returns the states that choose picks and that are list state.
func listNow(sp *format.Savepoint, choose func(*format.Operator, string) bool) map[stateID]bool {
	all := map[stateID]bool{}
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			if sub.Managed == nil {
				continue
			}
			for _, st := range sub.Managed.States {
				if name := st.Name.String(); st.Mode == format.ModeList && choose(op, name) {
					all[stateID{op.ID, name}] = true
				}
			}
		}
	}
	return all
}

// stateID names a state of an operator.
type stateID struct {
	id    format.OperatorID
	state string
}
