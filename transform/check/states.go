package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/internal/renames"
)

// otherStates reports the states of an operator that the job does not register,
// and the states that it registers but the snapshot does not have. If that is all
// of them, the operator restores without an error and without its state: its uid
// may be another operator's.
func (c *checker) otherStates(op *format.Operator, was, now []types.StateSchema, unasked, empty []*types.StateSchema) {
	like := alikeStates(unasked, empty)
	if allOther(was, unasked) && allOther(now, empty) {
		f := Finding{Severity: finding.Warning, Code: "all-state-unread", Operator: op,
			Message: fmt.Sprintf("the job registers none of its states (%s), and the states that it registers start empty (%s): Flink restores it without an error, and without its state", stateNames(unasked), stateNames(empty))}
		f.Advice = c.whose(op)
		for _, st := range unasked {
			if l := like[st]; len(l) > 0 {
				f.Advice = append(f.Advice, renamedState(op, st, l))
			}
		}
		if f.Advice == nil {
			f.Advice = []finding.Remedy{{Words: "if its uid was given to another operator, give the state its new uid", Action: finding.RenameOperator}}
		}
		c.add(f)
		return
	}
	for _, st := range unasked {
		f := Finding{Severity: finding.Note, Code: "state-not-asked", Operator: op, State: st.Name.String(),
			Message: fmt.Sprintf("the job has no %s state of this name: its content is not read, and is copied to every later snapshot", st.Kind())}
		if l := like[st]; len(l) > 0 {
			f.Advice = []finding.Remedy{renamedState(op, st, l)}
		}
		c.add(f)
	}
	for _, st := range empty {
		f := Finding{Severity: finding.Note, Code: "state-starts-empty", Operator: op, State: st.Name.String(), Message: fmt.Sprintf("the snapshot has no %s state of this name: it starts empty", st.Kind())}
		var from []*types.StateSchema
		for _, was := range unasked {
			if slices.Contains(like[was], st) {
				from = append(from, was)
			}
		}
		if len(from) > 0 {
			f.Advice = finding.Words(fmt.Sprintf("it may be %s under another name", stateNames(from)))
		}
		c.add(f)
	}
}

// allOther reports whether the given states are all states of an operator, or all
// that identify it by name.
func allOther(all []types.StateSchema, some []*types.StateSchema) bool {
	in := func(st *types.StateSchema) bool {
		return slices.ContainsFunc(some, func(s *types.StateSchema) bool { return s.Name == st.Name && s.Scope() == st.Scope() })
	}
	telling, whole := 0, len(all) > 0
	for i := range all {
		whole = whole && in(&all[i])
		if renames.Generic(all[i].Name.String()) {
			continue
		}
		telling++
		if !in(&all[i]) {
			return false
		}
	}
	return whole || telling > 0
}

// alikeStates returns states of other names with the same kind and the same
// types. An unknown type matches nothing.
func alikeStates(unasked, empty []*types.StateSchema) map[*types.StateSchema][]*types.StateSchema {
	like := map[*types.StateSchema][]*types.StateSchema{}
	for _, a := range unasked {
		for _, b := range empty {
			if a.Kind() != b.Kind() || a.Scope() != b.Scope() || renames.Generic(a.Name.String()) || renames.Generic(b.Name.String()) {
				continue
			}
			known, same := false, true
			for _, k := range a.Serializers {
				if other := b.Serializer(k.Key); other != nil && k.Snapshot != nil {
					known = true
					same = same && types.Compare(k.Snapshot, other).Compatibility == types.CompatibleAsIs
				}
			}
			if known && same {
				like[a] = append(like[a], b)
			}
		}
	}
	return like
}

// renamedState returns advice for a state that the job may have under another
// name.
func renamedState(op *format.Operator, st *types.StateSchema, like []*types.StateSchema) finding.Remedy {
	has := "has"
	if len(like) > 1 {
		has = "have"
	}
	m := finding.Remedy{Also: true, Words: fmt.Sprintf("%s of the job %s the same type: if %q was renamed, ", stateNames(like), has, st.Name)}
	switch {
	case len(like) > 1:
		m.Words += "it is one of these"
	case st.Keyed != "":
		m.Words += "use the old name in the job"
	default:
		m.Words += "rename it here too"
		m.Action, m.Operator, m.State, m.To = finding.RenameState, op.Label(), st.Name.String(), like[0].Name.String()
	}
	return m
}

// stateNames returns a list of states for a message.
func stateNames(all []*types.StateSchema) string {
	const most = 3
	var names []string
	for _, st := range all[:min(len(all), most)] {
		names = append(names, fmt.Sprintf("%q", st.Name))
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// whose describes which operator of the job registers the states of an operator,
// and whose states the operator itself registers, if known.
func (c *checker) whose(op *format.Operator) []finding.Remedy {
	if c.report.Renames == nil {
		return nil
	}
	var parts []string
	for k, list := range [][]transform.LikelyRename{c.report.Renames.Likely, c.report.Renames.Open} {
		is := "is likely"
		if k == 1 {
			is = "may be"
		}
		for i := range list {
			for _, f := range list[i].From {
				if f.Operator == op {
					parts = append(parts, fmt.Sprintf("its state %s the state of %q in the job", is, list[i].Label()))
				}
				if list[i].ID == op.ID {
					parts = append(parts, fmt.Sprintf("what it registers %s the state of %q", is, f.Operator.Label()))
				}
			}
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []finding.Remedy{{Words: strings.Join(parts[:min(len(parts), 4)], "; ") + ": give a state another uid", Action: finding.RenameOperator}}
}

// inSubtasks names the subtasks of an operator with a description that others do
// not have; "" if all have it.
func inSubtasks(subtasks []int32, op *format.Operator) string {
	if len(subtasks) == 0 {
		return ""
	}
	return fmt.Sprintf(" in %s of %d", number.Subtasks(subtasks), op.Parallelism)
}
