package command

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type filterOptions struct {
	writeOptions
	where             string
	invert            bool
	operators, states []string

	filter *catFilter
}

func (o *filterOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.StringVar(&o.where, "where", "", "keep the elements for which `EXPR` holds, such as 'value > 20'")
	fs.BoolVar(&o.invert, "invert", false, "keep those for which it does not hold")
	fs.StringArrayVar(&o.operators, "operator", nil, "only in operators of this uid, name, id or unambiguous beginning of the id; `NAME` may be a glob; repeatable")
	fs.StringArrayVar(&o.states, "state", nil, "only in operator states of this `NAME`, which may be a glob; repeatable")
}

func (o *filterOptions) validate(env *Env) error {
	if o.where == "" {
		return &usageError{"nothing says which elements to keep", "--where EXPR does, such as 'value > 20'"}
	}
	var err error
	if o.filter, err = newCatFilter(o.where); err != nil {
		return err
	}
	if o.invert {
		if o.filter, err = newCatFilter("not (" + o.where + "\n)"); err != nil {
			return err
		}
	}
	p := pick{operators: o.operators, states: o.states}
	if err := p.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

func newFilterCommand(env *Env) *cobra.Command {
	var o filterOptions
	cmd := &cobra.Command{
		Use:   "filter IN [OUT]",
		Short: "Keep the elements of list and union state for which an expression holds",
		Long: `Keeps the elements of list and union state for which an expression holds; the
others go. Those that stay are copied byte for byte, in their order, and so is
all other state. A state of which no element is left stays, empty.

These names can stand in --where, as in that of spt cat, which shows first what
would stay:
` + catWhereHelp() + `

An expression that looks at values is refused for a state whose values are not
decoded: --state leaves it out. So is one that would take entries out of a
broadcast state: its map cannot be cut.`,
		Example: `  spt filter sp-001 small --state even-ids --where 'value > 20'
  spt filter sp-001 small --operator sink --where 'size > 1 * MiB' --invert
  spt filter sp-001 one --where 'subtask == 0'`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			return edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *EditResult, error) {
				return o.keep(cmd.Context(), env, snap)
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *filterOptions) keep(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *EditResult, error) {
	chosen, err := env.chooseOperators(o.operators, snap.Operators)
	if err != nil {
		return nil, nil, err
	}
	if len(o.states) > 0 {
		if err := env.checkStates(o.states, chosen, snap.Operators); err != nil {
			return nil, nil, err
		}
	}
	c := &catter{env: env, snap: snap, catOptions: catOptions{pick: pick{states: o.states}, filter: o.filter}}
	if err := o.checkBroadcast(ctx, c, chosen); err != nil {
		return nil, nil, err
	}
	asked := &asker{ctx: ctx, c: c}
	sp, done, err := transform.Filter(ctx, env.input(snap), func(op *format.Operator, state string) bool { return chosen(op) && matches(o.states, state) }, asked.keep)
	if err != nil {
		return nil, nil, err
	}
	if len(done) == 0 {
		return nil, nil, usagef("there is no list or union state to filter")
	}
	r := &EditResult{Changes: []EditChange{}}
	for _, f := range done {
		what := "filtered"
		if f.Dropped == 0 {
			what = "kept whole"
		}
		r.Changes = append(r.Changes, EditChange{What: what, Operator: env.label(f.Operator), ID: f.Operator.ID.String(), State: env.text(f.State),
			Elements: f.Kept, Bytes: f.KeptBytes, Dropped: &f.Dropped, DroppedBytes: f.DroppedBytes})
	}
	return sp, r, nil
}

// checkBroadcast refuses an expression that does not hold for an entry of a
// broadcast state: it would have to go.
func (o *filterOptions) checkBroadcast(ctx context.Context, c *catter, chosen func(*format.Operator) bool) error {
	view := *c.snap.Savepoint
	view.Operators = nil
	for _, op := range c.snap.Operators {
		if chosen(op) {
			view.Operators = append(view.Operators, op)
		}
	}
	states, err := c.catStates(c.env, &view)
	if err != nil {
		return err
	}
	for _, st := range states {
		if st.mode != format.ModeBroadcast || st.kind == "raw" {
			continue
		}
		var it catItem
		for i := range st.parts {
			it.part = &st.parts[i]
			var answer error
			err := c.part(ctx, st, &it, func() error {
				ok, err := c.holds(ctx, st, &it)
				if err == nil && !ok {
					err = format.Errorf(format.ErrUnsupported, "%s/%s is broadcast state: --where does not hold for an entry of subtask %d, and its map cannot be cut; --state leaves it out",
						ui.Quote(c.name(st.label)), ui.Quote(c.name(st.name)), it.part.subtask)
				}
				answer = err
				return err
			})
			if answer != nil {
				return answer
			}
			if err != nil {
				return format.At(readable(err), "%v", it.part.place)
			}
		}
	}
	return nil
}

// readable is the error itself where cat would advise one of its own flags.
func readable(err error) error {
	var n *notReadable
	if errors.As(err, &n) {
		return n.error
	}
	return err
}

// holds is whether the expression holds. One that looks at values needs them
// decoded: as nil they would be dropped for what they may not be.
func (c *catter) holds(ctx context.Context, st *catState, it *catItem) (bool, error) {
	if c.filter.values && !it.decoded {
		why := "values like these are not decoded"
		if v, err := c.snap.Values(ctx, it.part.h, it.part.state); err == nil && v.Why != "" {
			why = v.Why
		}
		return false, format.Errorf(format.ErrUnsupported, "--where looks at values, and of %s/%s: %s; --state leaves it out", ui.Quote(c.name(st.label)), ui.Quote(c.name(st.name)), why)
	}
	return c.filter.holds(c, st, it)
}

// asker answers a filter by the expression.
type asker struct {
	ctx    context.Context
	c      *catter
	st     catState
	part   *catPart
	values reader.Values
}

func (a *asker) keep(e transform.FilterElement) (bool, error) {
	h := e.Subtask.Managed
	if a.part == nil || a.part.h != h || a.part.state != e.State {
		s := &h.States[e.State]
		a.part = &catPart{place: format.Place{Operator: e.Operator, Subtask: e.Subtask, Slot: format.SlotManaged}, subtask: e.Subtask.Index, h: h, state: e.State}
		a.st = catState{op: e.Operator, label: operatorName(a.c.env, e.Operator), name: s.Name.String(), kind: s.Mode.String(), mode: s.Mode}
		if a.c.filter.values {
			var err error
			if a.values, err = a.c.snap.Values(a.ctx, h, e.State); err != nil {
				return false, format.At(err, "%v/state %q", a.part.place, a.st.name)
			}
		}
	}
	it := catItem{part: a.part, index: e.Index, stored: e.Value}
	if a.c.filter.values {
		var ok bool
		var answer error
		err := a.c.decode(&a.st, &it, a.values, func() error {
			ok, answer = a.c.holds(a.ctx, &a.st, &it)
			return answer
		})
		if err != nil && answer == nil {
			err = format.At(readable(err), "%v", a.part.place)
		}
		return ok, err
	}
	return a.c.holds(a.ctx, &a.st, &it)
}
