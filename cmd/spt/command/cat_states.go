package command

import (
	"cmp"
	"context"
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
	keyed       []*keyedHandle // instead of parts: the handles that have it
	unknownSaid bool
}

func newCatState(env *Env, op *format.Operator, st *format.NamedState, raw bool) *catState {
	kind := st.Mode.String()
	if raw {
		kind = "raw"
	}
	s := namedCatState(env, op, st.Name.String(), kind)
	s.mode = st.Mode
	return s
}

func namedCatState(env *Env, op *format.Operator, name, kind string) *catState {
	s := &catState{op: op, label: operatorName(env, op), name: name, kind: kind}
	s.shown = report.CatState{Operator: env.hidden(s.label), ID: op.ID.String(), Name: env.hidden(s.name), Kind: s.kind}
	return s
}

// catPart is a state in one subtask.
type catPart struct {
	place   format.Place
	subtask int32
	h       *format.OperatorHandle
	state   int         // in h; work.All of keyed state
	handle  work.Handle // the location of h
	keyed   *keyedRead  // instead of h: keyed state
}

// catStates finds the states of sp in the order they are printed: by operator, its
// operator states, then its keyed states. sp is what was picked of the snapshot.
func (c *catter) catStates(ctx context.Context, sp *format.Savepoint) ([]*catState, error) {
	type id struct {
		name format.Text
		mode format.Mode
		raw  bool
	}
	var all []*catState
	var names []string
	positions := map[*format.Subtask]work.Handle{}
	for i, op := range c.snap.Operators {
		for k, sub := range op.Subtasks {
			positions[sub] = work.Handle{Operator: i, Subtask: k, ID: op.ID, Index: sub.Index}
		}
	}
	keyed, err := c.keyedHandles(ctx, sp, positions)
	if err != nil {
		return nil, err
	}
	for _, op := range sp.Operators {
		byID := map[id]*catState{}
		subs := bySubtask(op)
		for _, raw := range []bool{false, true} {
			for _, sub := range subs {
				h, slot := sub.Managed, format.SlotManaged
				if raw {
					h, slot = sub.Raw, format.SlotRaw
				}
				if h == nil || c.entriesOnly() {
					continue
				}
				for k := range h.States {
					st := &h.States[k]
					key := id{st.Name, st.Mode, raw}
					s := byID[key]
					if s == nil {
						names = append(names, st.Name.String())
						s = newCatState(c.env, op, st, raw)
						byID[key] = s
						if matches(c.states, s.name) {
							all = append(all, s)
						}
					}
					at := positions[sub]
					at.Slot = slot
					s.parts = append(s.parts, catPart{place: format.Place{Operator: op, Subtask: sub, Slot: slot}, subtask: sub.Index, h: h, state: k, handle: at})
				}
			}
		}
		all = append(all, c.keyedStates(op, keyed[op], &names)...)
	}
	what, none := "state", "no state"
	if c.entriesOnly() {
		what, none = "keyed state", "no keyed state"
	}
	if err := c.env.checkGlobs(c.states, names, what, none); err != nil {
		return nil, err
	}
	if err := c.readKeys(ctx, all); err != nil {
		return nil, err
	}
	return all, c.checkEntries(all)
}

// bySubtask returns the subtasks of an operator in the order of their indexes.
func bySubtask(op *format.Operator) []*format.Subtask {
	subs := slices.Clone(op.Subtasks)
	slices.SortStableFunc(subs, func(a, b *format.Subtask) int { return cmp.Compare(a.Index, b.Index) })
	return subs
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
