package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type catOptions struct {
	pick
	where    string
	limit    int64
	distinct bool
	stats    bool
	raw      bool

	filter *catFilter
	output ui.Output // json lines unless -o says otherwise
}

func (o *catOptions) addFlags(fs *pflag.FlagSet) {
	o.pick.addFlags(fs)
	fs.StringVar(&o.where, "where", "", "only elements for which `EXPR` is true, such as 'size > 1 * KiB and subtask == 0'")
	fs.Int64Var(&o.limit, "limit", 0, "print at most `N` lines; 0: all (default: 100 in a table, else all)")
	fs.BoolVar(&o.distinct, "distinct", false, "print each distinct element of a state once, at its first position, with its count")
	fs.BoolVar(&o.stats, "stats", false, "print no elements but, for each state, their number, how many are distinct, and their sizes")
	fs.BoolVar(&o.raw, "raw", false, "print values as they are stored, not decoded; for broadcast state whole maps")
}

func (o *catOptions) validate(env *Env, given *pflag.FlagSet) error {
	o.output = env.common.output
	if !given.Changed("output") && !o.stats {
		o.output = ui.OutputJSONL
	}
	switch {
	case o.limit < 0:
		return usagef("--limit %d: must be 0 or more", o.limit)
	case o.stats && (o.distinct || o.limit > 0):
		return usagef("--stats counts all elements: it goes neither with --distinct nor with --limit")
	}
	if o.where != "" {
		f, err := newCatFilter(o.where)
		if err != nil {
			return err
		}
		o.filter = f
	}
	return o.pick.validate()
}

func newCatCommand(env *Env) *cobra.Command {
	var o catOptions
	cmd := &cobra.Command{
		Use:   "cat SP",
		Short: "Print the elements of operator state, one JSON object per line",
		Long: `Prints the elements of list, union, broadcast and raw operator state, one JSON
object a line: by operator in the order of the snapshot, then by state, subtask
and index. Broadcast state comes entry by entry, with key and value. Keyed state
is not shown.

Values whose types are known are JSON in "value": numbers, strings, booleans,
tuples, lists and rows as arrays, POJOs as objects, maps as arrays of pairs,
moments and dates as ISO 8601, timers and windows as objects. JSON has no bytes:
a byte array is {"base64": "…"}, and an element whose type is not decoded comes
as it is stored, in "value_base64" instead of "value". With --format hex and
text they are hexadecimal or text, in "value_hex" and
"value_text". --format redacted shows length and hash of every element, and no
value or name.

--where is asked of each element, or entry. These names can be used in it:
` + catWhereHelp() + `

It reads pieces of 256 KiB, as many at a time as --jobs says, and prints them in
order; with --limit it reads no more than it prints. --distinct reads twice.
What was printed before an error stays: lines are whole, and the array of
--output json has no "]" then, so that no reader takes a part for the whole.`,
		Example: `  spt cat sp-001
  spt cat sp-001 --state even-ids --where 'value > 20' --limit 10
  spt cat sp-007 --state offsets --distinct | jq -c '[.count, .value]'
  spt cat sp-009 --stats`,
		Args: exactly(1, "one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env, cmd.Flags()); err != nil {
				return err
			}
			return runCat(cmd.Context(), o, env, args[0])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runCat(ctx context.Context, o catOptions, env *Env, location string) (err error) {
	snap, err := env.open(ctx, location)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	sp, err := o.apply(env, snap.Savepoint)
	if err != nil {
		return err
	}
	states, err := o.catStates(env, sp, snap.Savepoint)
	if err != nil {
		return err
	}
	c := &catter{env: env, catOptions: o, snap: snap}
	if o.stats {
		return c.printStats(ctx, states)
	}
	return c.print(ctx, states)
}

// catter reads the states of a snapshot.
type catter struct {
	env *Env
	catOptions
	snap *reader.Snapshot
	// unknown is why values are not decoded, by state, in the order found.
	unknown []string
	kept    *arena // where elements are kept; nil: they are valid until the next
	most    int64  // elements that are looked at of a unit; 0: all
}

// bytesOf is how much is read of states.
func (c *catter) bytesOf(ctx context.Context, states []*catState) func() int64 {
	return someState(ctx, c.snap, func(yield func(*format.OperatorHandle, int) bool) {
		for _, st := range states {
			for _, part := range st.parts {
				if !yield(part.h, part.state) {
					return
				}
			}
		}
	})
}

// errEnough ends a walk that has all it wants.
var errEnough = errors.New("internal: enough")

// tableRows is how many elements a table shows unless --limit says.
const tableRows = 100

const listMost = 12

// print prints elements. What was printed before an error stays.
func (c *catter) print(ctx context.Context, states []*catState) error {
	limit := c.limit
	if limit == 0 && c.output == ui.OutputTable {
		limit = tableRows
	}
	stop := func() {}
	if !c.env.term().IsTTY || c.output == ui.OutputTable { // else elements and progress would be mixed
		stop = c.env.reading("reading", c.bytesOf(ctx, states))
	}
	defer func() { stop() }()
	w := c.newWriter()
	if c.most = limit; limit > 0 && c.output == ui.OutputTable {
		c.most++ // to learn whether there is one more
	}
	var lines int64
	more := false
	err := c.lines(ctx, states, func(st *catState, it *catItem) error {
		if limit > 0 && lines == limit {
			more = true
			return errEnough
		}
		lines++
		if err := w.line(st, it); err != nil {
			return err
		}
		if lines == limit && c.output != ui.OutputTable {
			return errEnough // none is read to learn that there is one more
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	stop()
	if cerr := w.end(err == nil); cerr != nil && err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return c.remark(len(states), lines, more)
}

// lines calls f with what is printed, in order.
func (c *catter) lines(ctx context.Context, states []*catState, f func(*catState, *catItem) error) error {
	if !c.distinct {
		return c.each(ctx, states, c.output.JSON(), f)
	}
	for i, st := range states {
		one := states[i : i+1]
		n := transform.NewCounter()
		err := c.each(ctx, one, false, func(_ *catState, it *catItem) error {
			if !n.Add(it.stored) {
				return &usageError{fmt.Sprintf("--distinct: more than %s different elements in %s", ui.Count(transform.MaxDistinct), ui.Quote(st.name)),
					"--stats counts any number of them; --where and --subtask leave fewer"}
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = c.each(ctx, one, false, func(_ *catState, it *catItem) error {
			count, first := n.Again(it.stored)
			if !first {
				return nil
			}
			it.count = count
			return f(st, it)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// remark says on stderr, once, what the lines do not.
func (c *catter) remark(states int, lines int64, more bool) error {
	if c.env.common.quiet || c.env.common.output.JSON() {
		return nil
	}
	var b strings.Builder
	switch {
	case states == 0:
		b.WriteString("no operator state: nothing to show (keyed state is not shown)\n")
	case lines == 0 && c.filter != nil:
		b.WriteString("--where holds for no element\n")
	case lines == 0:
		b.WriteString("the state has no element\n")
	case more && c.limit == 0:
		fmt.Fprintf(&b, "the first %d elements: --limit N shows more, -o jsonl all\n", lines)
	}
	if len(c.unknown) > 0 {
		fmt.Fprintf(&b, "not decoded, shown as stored: %s\n", strings.Join(c.unknown[:min(len(c.unknown), listMost)], "; "))
		if n := len(c.unknown) - listMost; n > 0 {
			fmt.Fprintf(&b, "  and %s more\n", ui.Plural(int64(n), "state"))
		}
	}
	_, err := fmt.Fprint(c.env.Stderr, b.String())
	return err
}

// CatStats is the elements of one state in numbers.
type CatStats struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	State    string `json:"state"`
	Kind     string `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast,enum=raw"`
	Subtasks int    `json:"subtasks" jsonschema:"description=that have an element, of those picked"`
	Elements int64  `json:"elements" jsonschema:"description=of broadcast state: copies of its map"`
	Distinct int64  `json:"distinct" jsonschema:"description=different ones, by their bytes"`
	Bytes    int64  `json:"bytes" jsonschema:"description=of the elements, decompressed; inspect shows what they take as stored"`
	Min      int64  `json:"min_bytes" jsonschema:"description=of the smallest element; 0 if there is none"`
	Max      int64  `json:"max_bytes" jsonschema:"description=of the largest element"`
}

func (c *catter) printStats(ctx context.Context, states []*catState) error {
	c.raw = true // an element is its bytes
	stop := c.env.reading("reading", c.bytesOf(ctx, states))
	defer stop()
	rows := []CatStats{}
	for i, st := range states {
		var row CatStats
		distinct, err := transform.CountDistinct(func(visit func(p []byte) error) error {
			row = CatStats{Operator: c.name(st.label), ID: st.op.ID.String(), State: c.name(st.name), Kind: st.kind}
			subtask := int32(-1)
			return c.each(ctx, states[i:i+1], false, func(_ *catState, it *catItem) error {
				n := int64(len(it.stored))
				if row.Elements == 0 || n < row.Min {
					row.Min = n
				}
				row.Max = max(row.Max, n)
				row.Elements++
				row.Bytes += n
				if it.part.subtask != subtask {
					subtask = it.part.subtask
					row.Subtasks++
				}
				return visit(it.stored)
			})
		}, c.env.common.tmp)
		if err != nil {
			return err
		}
		row.Distinct = distinct
		rows = append(rows, row)
	}
	stop()
	slices.SortStableFunc(rows, func(a, b CatStats) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return c.renderStats(rows)
}

func (c *catter) renderStats(rows []CatStats) error {
	env := c.env
	done, err := renderRows(env, c.output, rows, []string{"operator", "id", "state", "kind", "subtasks", "elements", "distinct", "bytes", "min_bytes", "max_bytes"}, func(r *CatStats) []string {
		return []string{r.Operator, r.ID, r.State, r.Kind, fmt.Sprint(r.Subtasks), fmt.Sprint(r.Elements), fmt.Sprint(r.Distinct), fmt.Sprint(r.Bytes), fmt.Sprint(r.Min), fmt.Sprint(r.Max)}
	})
	if done {
		return err
	}
	if len(rows) == 0 {
		return c.remark(0, 0, false)
	}
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16}, ui.Column{Header: "KIND", Drop: 1},
		ui.Column{Header: "ELEMENTS", Align: ui.Right}, ui.Column{Header: "DISTINCT", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right}, ui.Column{Header: "SMALLEST", Align: ui.Right, Drop: 3}, ui.Column{Header: "LARGEST", Align: ui.Right, Drop: 2},
	)
	for _, r := range rows {
		smallest, largest := "", ""
		if r.Elements > 0 {
			smallest, largest = ui.Bytes(r.Min), ui.Bytes(r.Max)
		}
		t.Row(ui.Quote(r.Operator)+"/"+ui.Quote(r.State), r.Kind, ui.Count(r.Elements), ui.Count(r.Distinct), ui.Bytes(r.Bytes), smallest, largest)
	}
	return t.Write(env.Stdout, env.term())
}
