package command

import (
	"cmp"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/work"
)

// catState is one state of an operator, in the subtasks that hold it.
type catState struct {
	op          *format.Operator
	label       string // of the operator
	name        string
	kind        string
	mode        format.Mode
	shown       report.CatState
	parts       []catPart
	unknownSaid bool
}

func newCatState(env *Env, op *format.Operator, st *format.NamedState, raw bool) *catState {
	s := &catState{op: op, label: operatorName(env, op), name: st.Name.String(), kind: st.Mode.String(), mode: st.Mode}
	if raw {
		s.kind = "raw"
	}
	s.shown = report.CatState{Operator: env.hidden(s.label), ID: op.ID.String(), Name: env.hidden(s.name), Kind: s.kind}
	return s
}

// catPart is a state in one subtask.
type catPart struct {
	place   format.Place
	subtask int32
	h       *format.OperatorHandle
	state   int         // in h
	handle  work.Handle // the location of h
}

// catStates finds the states of sp in the order they are printed. sp is what was
// picked of whole.
func (o *catOptions) catStates(env *Env, sp, whole *format.Savepoint) ([]*catState, error) {
	type id struct {
		name format.Text
		mode format.Mode
		raw  bool
	}
	var all []*catState
	var names []string
	positions := map[*format.Subtask]work.Handle{}
	for i, op := range whole.Operators {
		for k, sub := range op.Subtasks {
			positions[sub] = work.Handle{Operator: i, Subtask: k, ID: op.ID, Index: sub.Index}
		}
	}
	for _, op := range sp.Operators {
		byID := map[id]*catState{}
		subs := slices.Clone(op.Subtasks)
		slices.SortStableFunc(subs, func(a, b *format.Subtask) int { return cmp.Compare(a.Index, b.Index) })
		for _, raw := range []bool{false, true} {
			for _, sub := range subs {
				h, slot := sub.Managed, format.SlotManaged
				if raw {
					h, slot = sub.Raw, format.SlotRaw
				}
				if h == nil {
					continue
				}
				for k := range h.States {
					st := &h.States[k]
					key := id{st.Name, st.Mode, raw}
					s := byID[key]
					if s == nil {
						names = append(names, st.Name.String())
						s = newCatState(env, op, st, raw)
						byID[key] = s
						if matches(o.states, s.name) {
							all = append(all, s)
						}
					}
					at := positions[sub]
					at.Slot = slot
					s.parts = append(s.parts, catPart{format.Place{Operator: op, Subtask: sub, Slot: slot}, sub.Index, h, k, at})
				}
			}
		}
	}
	if err := env.checkGlobs(o.states, names, "operator state", "no operator state (keyed state is not shown)"); err != nil {
		return nil, err
	}
	return all, nil
}

// operatorName returns the best name of an operator, as the snapshot or --names has it.
func operatorName(env *Env, op *format.Operator) string {
	if uid := env.run.Learned(op.ID.String()); uid != "" && op.UID.String() == "" && op.Name.String() == "" {
		return uid
	}
	return op.Label()
}

// hidden returns a name as cat shows it: --format is for values, except that redacted
// hides names too.
func (e *Env) hidden(name string) string {
	if e.run.Format == ui.FormatRedacted {
		return e.run.Text(name)
	}
	return name
}
