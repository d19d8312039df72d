package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// checkGlobs returns an error if one of the globs of --state matches none of names,
// the names of what. none says what there is instead of names.
func (e *Env) checkGlobs(globs, names []string, what, none string) error {
	want, miss := unmatched(globs, names, globMatches)
	if !miss {
		return nil
	}
	return &usageError{fmt.Sprintf("--state %s matches no %s", ui.Quote(want), what), e.available(want, names, none)}
}

// shown returns names as they are shown, quoted.
func (e *Env) shown(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = ui.Quote(e.run.Text(name))
	}
	return out
}

// namesOfStates returns the names of the operator states and of the keyed states of the
// chosen operators. Keyed state that cannot be read has none.
func namesOfStates(ctx context.Context, snap *reader.Snapshot, chosen func(*format.Operator) bool) (operator, keyed []string) {
	for _, op := range snap.Operators {
		if !chosen(op) {
			continue
		}
		for _, sub := range op.Subtasks {
			if sub.Managed != nil {
				for i := range sub.Managed.States {
					operator = append(operator, sub.Managed.States[i].Name.String())
				}
			}
			for _, h := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
				if h == nil {
					continue
				}
				codec, err := snap.KeyedCodec(op, h)
				if err != nil {
					continue
				}
				schema, err := codec.Describe(ctx, snap.Source(), h)
				if err != nil {
					continue
				}
				for _, st := range schema.States {
					keyed = append(keyed, st.Name.String())
				}
			}
		}
	}
	return operator, keyed
}

// checkStates returns an error if something that a flag asks for matches no state of the
// chosen operators.
func (e *Env) checkStates(ctx context.Context, snap *reader.Snapshot, flag string, wanted []string, match func(want, name string) bool, chosen func(*format.Operator) bool) error {
	operator, keyed := namesOfStates(ctx, snap, chosen)
	names := append(operator, keyed...)
	want, miss := unmatched(wanted, names, match)
	if !miss {
		return nil
	}
	return &usageError{fmt.Sprintf("%s %s matches no state", flag, ui.Quote(want)), e.available(want, names, "no state with a name")}
}

// checkOperatorStates is checkStates for an edit that keyed state does not have: one that
// matches keyed state only is format.ErrUnsupported.
func (e *Env) checkOperatorStates(ctx context.Context, snap *reader.Snapshot, flag string, wanted []string, chosen func(*format.Operator) bool) error {
	operator, keyed := namesOfStates(ctx, snap, chosen)
	want, miss := unmatched(wanted, operator, globMatches)
	if !miss {
		return nil
	}
	if i := slices.IndexFunc(keyed, func(name string) bool { return globMatches(want, name) }); i >= 0 {
		return format.Errorf(format.ErrUnsupported, "%s %s: %s is keyed state, whose keys determine the subtask", flag, ui.Quote(want), ui.Quote(e.run.Text(keyed[i])))
	}
	return &usageError{fmt.Sprintf("%s %s matches no operator state", flag, ui.Quote(want)), e.available(want, operator, "no operator state")}
}

// applyStates keeps the states that were picked, and the operators that have one.
func (p *pick) applyStates(env *Env, s *summary.Summary, headers map[*format.Operator]*reader.Headers) error {
	if len(p.states) == 0 {
		return nil
	}
	var names []string
	var ops []*summary.Operator
	for _, op := range s.Operators {
		var rows []*summary.State
		for _, st := range op.States {
			if st.Name != "" {
				names = append(names, st.Name)
			}
			keyed := (st.Kind == summary.Keyed || st.Kind == summary.RawKeyed) && p.keyedStates(headers[op.Operator], st.Kind == summary.RawKeyed, &names)
			if keyed || st.Name != "" && matches(p.states, st.Name) {
				rows = append(rows, st)
			}
		}
		if len(rows) > 0 {
			op.States = rows
			ops = append(ops, op)
		}
	}
	if err := env.checkGlobs(p.states, names, "state", "no operator picked has a state with a name"); err != nil {
		return err
	}
	s.Operators = ops
	s.Bytes, s.Subtasks = summary.Bytes{}, 0
	for _, op := range ops {
		op.Framing, op.Bytes = summary.Bytes{}, summary.Bytes{}
		for _, st := range op.States {
			op.Bytes.Add(st.Stored)
		}
		s.Bytes.Add(op.Bytes)
		s.Subtasks += op.Present
	}
	return nil
}

// keyedStates removes from the headers of an operator the keyed states, or the states of
// raw keyed state, that were not picked, and reports whether any is left. It adds the names of all of them to names.
func (p *pick) keyedStates(h *reader.Headers, raw bool, names *[]string) bool {
	if h == nil {
		return false
	}
	var kept []reader.StateHeader
	found := false
	for _, st := range h.States {
		if st.Keyed() && st.Raw == raw {
			*names = append(*names, st.Name())
			if !matches(p.states, st.Name()) {
				continue
			}
			found = true
		}
		kept = append(kept, st)
	}
	h.States = kept
	return found
}

// listOr lists names, each once and sorted, or returns none if names is empty.
func listOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	slices.Sort(names)
	return report.Shorten(slices.Compact(names))
}
