package command

import (
	"context"
	"errors"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
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
	fs.StringVar(&o.where, "where", "", "keep the elements for which `EXPR` is true, such as 'value > 20'")
	fs.BoolVar(&o.invert, "invert", false, "keep the elements for which EXPR is false")
	operatorFlag(fs, &o.operators, "filter only these operators")
	stateFlag(fs, &o.states, "filter only these operator states")
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
	o.filter.hint = "use --operator and --state to choose others; the others stay whole"
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
		Short: "Keep the elements of operator state that match an expression",
		Long: `Keeps the elements of list and union state, and the entries of broadcast state,
for which an expression holds; the others go. Those that stay are copied byte
for byte, in their order, and so is all other state. A state of which no element
is left stays, empty.

These names can be used in --where, as with spt cat, which shows first what
would stay:
` + catWhereHelp() + `

An expression that looks at values is refused for a state whose values are not
decoded: --state leaves it out. A map of broadcast state that is not decoded
stays or loses all, by what the expression says of its state and subtask.

Each subtask has a copy of a broadcast state. An expression on subtask leaves
copies that differ, and says so.`,
		Example: `  spt filter sp-001 small --state even-ids --where 'value > 20'
  spt filter sp-001 small --operator buffering-sink --where 'size > 1 * KiB' --invert
  spt filter sp-009 fewer --state rules --where 'not (key in [7, 8])'`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			return edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
				return o.keep(cmd.Context(), env, snap)
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *filterOptions) keep(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	chosen, err := env.chooseOperators(o.operators, snap.Operators)
	if err != nil {
		return nil, nil, err
	}
	if len(o.states) > 0 {
		if err := env.checkStates(ctx, snap, "--state", o.states, globMatches, chosen); err != nil {
			return nil, nil, err
		}
	}
	c := &catter{env: env, snap: snap, catOptions: catOptions{pick: pick{states: o.states}, filter: o.filter}}
	asked := &asker{ctx: ctx, c: c}
	stop := env.reading("reading", someState(ctx, snap, statesOf(snap.Savepoint, func(op *format.Operator, st *format.NamedState) bool {
		return chosen(op) && matches(o.states, st.Name.String())
	})))
	defer stop()
	v, done, err := transform.Filter(ctx, snap.View(), transform.FilterOptions{
		Operators: selectorOf(snap.Operators, chosen), States: o.states,
		Keep: asked.keep, Entries: asked.entries,
	})
	if err != nil {
		return nil, nil, err
	}
	if len(done.States) == 0 {
		if slices.ContainsFunc(snap.Operators, func(op *format.Operator) bool { return chosen(op) && op.HasKeyed() }) {
			return nil, nil, keyedError("there is no operator state to filter, and entries of keyed state stay as they are")
		}
		return nil, nil, usagef("there is no operator state to filter")
	}
	r := env.run.NewEdit()
	r.Filtered(done.States)
	return v.Savepoint, r, nil
}

// readable is the error itself where cat would advise one of its own flags.
func readable(err error) error {
	var n *notReadable
	if errors.As(err, &n) {
		return n.error
	}
	return err
}

// holds reports whether the expression holds. One that looks at values needs them
// decoded: as nil they would be dropped for what they may not be.
func (c *catter) holds(ctx context.Context, st *catState, it *catItem) (bool, error) {
	if c.filter.looks == looksAtValues && !it.decoded {
		return false, c.notTold(ctx, st, it, "looks at values")
	}
	return c.filter.holds(c, st, it)
}

// notTold refuses an expression that does what cannot be done without decoding.
func (c *catter) notTold(ctx context.Context, st *catState, it *catItem, does string) error {
	why := ""
	if v, err := c.snap.Values(ctx, it.part.h, it.part.state); err == nil && v.Why != "" {
		why = " (" + v.Why + ")"
	}
	return format.Errorf(format.ErrUnsupported, "--where %s, and those of %s/%s are not decoded%s; use --operator and --state to choose others", does, ui.Quote(c.name(st.label)), ui.Quote(c.name(st.name)), why)
}

// asker answers a filter by the expression.
type asker struct {
	ctx    context.Context
	c      *catter
	st     catState
	part   *catPart
	values reader.Values
}

// at turns to a state of a handle.
func (a *asker) at(e transform.FilterElement) error {
	h := e.Subtask.Managed
	if a.part != nil && a.part.h == h && a.part.state == e.State {
		return nil
	}
	s := &h.States[e.State]
	a.part = &catPart{place: format.Place{Operator: e.Operator, Subtask: e.Subtask, Slot: format.SlotManaged}, subtask: e.Subtask.Index, h: h, state: e.State}
	a.st = catState{op: e.Operator, label: operatorName(a.c.env, e.Operator), name: s.Name.String(), kind: s.Mode.String(), mode: s.Mode}
	if a.c.filter.looks < looksAtValues {
		return nil
	}
	var err error
	a.values, err = a.c.snap.Values(a.ctx, h, e.State)
	return format.At(err, "%v/state %q", a.part.place, a.st.name)
}

// entries takes the maps of a broadcast state apart, where its types are known.
func (a *asker) entries(ctx context.Context, h *format.OperatorHandle, state int) (func(p []byte) ([]format.Entry, error), error) {
	values, err := a.c.snap.Values(ctx, h, state)
	return values.Entries, err
}

func (a *asker) keep(e transform.FilterElement) (bool, error) {
	if err := a.at(e); err != nil {
		return false, err
	}
	it := catItem{part: a.part, index: e.Index, stored: e.Value}
	switch {
	case e.Entry != nil:
		it.setEntry(e.Index, e.Entry, e.Value)
	case a.st.mode == format.ModeBroadcast: // a map that is not taken apart
		if a.c.filter.looks > looksAtState {
			return false, a.c.notTold(a.ctx, &a.st, &it, "asks about entries")
		}
	case a.c.filter.looks == looksAtValues:
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
