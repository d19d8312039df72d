package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

type patchOptions struct {
	writeOptions
	typeFlags
	changes string
	raw     bool
}

func (o *patchOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	o.typeFlags.addFlags(fs)
	fs.StringVar(&o.changes, "changes", "", "read the changes from `FILE`: lines that spt cat printed, edited; - is standard input")
	fs.BoolVar(&o.raw, "raw", false, "accept new bytes (value_base64, value_hex) of values that are not decoded, although nothing can check them")
}

func (o *patchOptions) validate(env *Env) error {
	if o.changes == "" {
		return &usageError{"nothing says what to change", "--changes FILE does: lines that spt cat printed, edited"}
	}
	return o.writeOptions.validate(env)
}

func newPatchCommand(env *Env) *cobra.Command {
	var o patchOptions
	cmd := &cobra.Command{
		Use:   "patch IN [OUT]",
		Short: "Change single values of state, as edited output of cat says",
		Long: `Changes single elements of list, union and raw operator state, single entries of
broadcast and keyed state, and the state of coordinators. What is not changed is
copied byte for byte.

The changes are lines as spt cat prints them: the line of an element with
another value replaces the value. Lines with the value that is stored change
nothing, so all that cat printed can be passed back. A line needs the operator
(or id), the state, subtask and index, and the value. More:
  "op": "remove"   removes the element; the line needs no value
  "op": "add"      adds an element before the one with the index, or without
                   an index at the end of the subtask's elements
  "was": VALUE     the line is wrong if another value is stored
An index is the number of an element in IN, whatever other lines do.

Each subtask has a replica of the map of broadcast state. A line with a key and
without subtask and index is for all replicas. Lines with a subtask are for
one; they are wrong if replicas that agree on the key would differ.

An entry of keyed state is found by its state, key, namespace and user_key, a
timer by its time as well. The state of a coordinator is one value: a line of
spt cat --coordinator, with another value. Operators whose entries change are
written in the canonical format, which any backend but ForSt restores.

All lines are checked before anything is written: that the elements exist, their
types, duplicates. If any is wrong, nothing is written, and the first 20 are
named with their numbers. See docs/patch.md.`,
		Example: `  spt cat chk-7 --operator sink --state buffer >lines.jsonl
  spt patch chk-7 fixed --changes lines.jsonl
  spt cat sp-001 --state even-ids | jq -c 'select(.value > 20) | .op = "remove" | del(.value)' | spt patch sp-001 fewer --changes -`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			if err := env.readTypes(cmd.Context(), o.typeFlags); err != nil {
				return err
			}
			return edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
				return o.patch(cmd.Context(), env, snap)
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *patchOptions) patch(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	p := &patcher{env: env, snap: snap, label: func(n int64) string { return placeOfLine(o.changes, n) }}
	return p.patch(ctx, o.raw, p.changes(env.readChanges(ctx, "--changes", o.changes)))
}

// patcher makes changes of a file or of flags.
type patcher struct {
	env   *Env
	snap  *reader.Snapshot
	label func(number int64) string // of a change, for errors
	wrong []transform.PatchProblem  // that name nothing in the snapshot
	more  int64
	known map[[2]string]operatorOrError
}

// operatorOrError is the operator that a change names, or why it is not found.
type operatorOrError struct {
	id  format.OperatorID
	err error
}

const (
	// maxWrong is the number of changes that are kept if they are wrong, and
	// shownWrong the number of those that are printed.
	maxWrong   = 1000
	shownWrong = 20
)

// changes returns the changes of lines. Lines that are wrong are kept.
func (p *patcher) changes(lines iter.Seq2[*changeLine, error]) iter.Seq2[transform.PatchChange, error] {
	return func(yield func(transform.PatchChange, error) bool) {
		for l, err := range lines {
			var wrong *lineError
			var c transform.PatchChange
			switch {
			case errors.As(err, &wrong):
				p.fail(wrong.line, err)
				continue
			case err == nil:
				if c, err = p.change(l); err != nil {
					p.fail(l.number, err)
					continue
				}
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

func (p *patcher) fail(number int64, err error) {
	if len(p.wrong) == maxWrong {
		p.more++
		return
	}
	p.wrong = append(p.wrong, transform.PatchProblem{Number: number, Err: err})
}

// change returns the change of a line.
func (p *patcher) change(l *changeLine) (c transform.PatchChange, err error) {
	c = transform.PatchChange{Number: l.number, Op: transform.PatchOp(l.Op), State: l.State, Raw: l.Kind == "raw", Subtask: transform.AllSubtasks, Index: transform.NoIndex, Key: l.Key}
	if c.Operator, err = p.operator(l.Operator, l.ID); err != nil {
		return c, err
	}
	if l.Kind == coordinatorKind {
		c.Coordinator = true
	} else if l.ofEntry() || l.Kind != "raw" && p.onlyKeyed(c.Operator, l.State) {
		if len(l.pair) == 2 {
			c.Key, l.UserKey = l.pair[0], l.pair[1]
		}
		if c.Entry, err = l.entry(); err != nil {
			return c, err
		}
	} else if err = l.setIndex(); err != nil {
		return c, err
	}
	if l.Subtask != nil {
		c.Subtask = *l.Subtask
	}
	if l.Index != nil {
		c.Index = *l.Index
	}
	c.Value.JSON, c.Was.JSON = l.Value, l.Was
	if c.Value.Stored, err = storedBytes(l.ValueBase64, l.ValueHex); err != nil {
		return c, fmt.Errorf("value: %w", err)
	}
	if c.Was.Stored, err = storedBytes(l.WasBase64, l.WasHex); err != nil {
		return c, fmt.Errorf("was: %w", err)
	}
	if c.Op == transform.PatchRemove { // a line of cat has its value
		if !given(c.Was) {
			c.Was = c.Value
		}
		c.Value = transform.PatchValue{}
	}
	return c, nil
}

// onlyKeyed reports whether an operator has keyed state and no operator state with a name.
func (p *patcher) onlyKeyed(id format.OperatorID, state string) bool {
	i := slices.IndexFunc(p.snap.Operators, func(op *format.Operator) bool { return op.ID == id })
	return i >= 0 && p.snap.Operators[i].HasKeyed() && !slices.ContainsFunc(p.snap.Operators[i].Subtasks, func(sub *format.Subtask) bool {
		return sub.Managed != nil && slices.ContainsFunc(sub.Managed.States, func(st format.NamedState) bool { return st.Name.String() == state })
	})
}

func given(v transform.PatchValue) bool { return v.JSON != nil || v.Stored != nil }

// operator returns the operator with a name and an id; one of them may be "".
func (p *patcher) operator(name, id string) (format.OperatorID, error) {
	key := [2]string{name, id}
	if o, ok := p.known[key]; ok {
		return o.id, o.err
	}
	if p.known == nil {
		p.known = map[[2]string]operatorOrError{}
	}
	var o operatorOrError
	o.id, o.err = p.findOperator(name, id)
	if len(p.known) < maxWrong {
		p.known[key] = o
	}
	return o.id, o.err
}

func (p *patcher) findOperator(name, id string) (format.OperatorID, error) {
	find := func(want, field string) ([]*format.Operator, error) {
		pick := pick{operators: []string{want}, flag: field}
		ops, err := pick.pickOperators(p.env, p.snap.Operators)
		if exact := slices.DeleteFunc(slices.Clone(ops), func(op *format.Operator) bool { return operatorName(p.env, op) != want && op.ID.String() != want }); len(exact) > 0 {
			ops = exact
		}
		return ops, err
	}
	var byName, byID []*format.Operator
	var err error
	if name != "" {
		if byName, err = find(name, "operator"); err != nil && id == "" {
			return format.OperatorID{}, err
		}
	}
	if id != "" {
		if byID, err = find(id, "id"); err != nil {
			return format.OperatorID{}, err
		}
		if name != "" && !slices.Contains(byName, byID[0]) {
			return format.OperatorID{}, fmt.Errorf("the operator with the id %s is not %s", id, ui.Quote(name))
		}
		byName = byID
	}
	if len(byName) > 1 {
		return format.OperatorID{}, fmt.Errorf("operator %s: %d operators fit; the id names one", ui.Quote(name), len(byName))
	}
	return byName[0].ID, nil
}

// patch makes changes, all or none.
func (p *patcher) patch(ctx context.Context, unchecked bool, changes iter.Seq2[transform.PatchChange, error]) (*format.Savepoint, *report.Edit, error) {
	v, done, err := transform.Patch(ctx, p.snap.View(), transform.PatchOptions{Changes: changes, Values: p.snap.Values, Unchecked: unchecked})
	var wrong *transform.PatchError
	switch {
	case errors.As(err, &wrong):
		p.wrong = append(p.wrong, wrong.Problems...)
		p.more += wrong.More
	case err != nil:
		return nil, nil, err
	}
	if len(p.wrong) > 0 {
		return nil, nil, p.problems()
	}
	r := p.env.run.NewEdit()
	r.Patched(done)
	return v.Savepoint, r, nil
}

// problems returns the error for all changes that are wrong.
func (p *patcher) problems() error {
	slices.SortStableFunc(p.wrong, func(a, b transform.PatchProblem) int { return int(a.Number - b.Number) })
	var lines []string
	for _, w := range p.wrong[:min(len(p.wrong), shownWrong)] {
		lines = append(lines, p.label(w.Number)+": "+w.Err.Error())
	}
	e := &usageError{msg: lines[0], hint: patchHint(p.wrong[0].Err)}
	if n := p.more + int64(len(p.wrong)); n > 1 {
		e.msg = fmt.Sprintf("%s are wrong, and nothing was changed\n  %s", ui.Plural(n, "change"), strings.Join(lines, "\n  "))
		if more := n - int64(len(lines)); more > 0 {
			e.msg += fmt.Sprintf("\n  and %s more", ui.Count(more))
		}
	}
	return e
}

// patchHint returns what can be done about a problem.
func patchHint(err error) string {
	var hinted interface{ Hint() string }
	switch {
	case errors.Is(err, transform.ErrNotChecked):
		return "--raw accepts the bytes as they are"
	case errors.Is(err, transform.ErrDiverges):
		return "without subtask and index, a change is for all replicas"
	case errors.As(err, &hinted):
		return hinted.Hint()
	}
	return ""
}
