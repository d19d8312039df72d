package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type trendOptions struct {
	operators, states []string
	limit             ui.Size
	limitElements     int64
	depth, top        int
}

func (o *trendOptions) addFlags(fs *pflag.FlagSet) {
	operatorFlag(fs, &o.operators, "only these operators")
	stateFlag(fs, &o.states, "only these states")
	fs.Var(&o.limit, "limit", "predict when the bytes of each state reach `SIZE`, such as 1GiB")
	fs.Int64Var(&o.limitElements, "limit-elements", 0, "predict when the elements of each state reach `N`")
	fs.IntVar(&o.depth, "depth", 8, "search `N` levels of directories below a ROOT")
	fs.IntVar(&o.top, "top", 20, "in a table: print the `N` states that grew most; 0: all, also those that did not change")
}

func (o *trendOptions) validate(given *pflag.FlagSet) error {
	switch {
	case given.Changed("limit") && o.limit == 0:
		return usagef("--limit 0: at least 1 byte")
	case given.Changed("limit-elements") && o.limitElements < 1:
		return usagef("--limit-elements %d: at least 1", o.limitElements)
	case o.depth < 1:
		return usagef("--depth %d: at least 1", o.depth)
	case o.top < 0:
		return usagef("--top %d: not a number of rows", o.top)
	}
	p := pick{operators: o.operators, states: o.states}
	return p.validate()
}

func newTrendCommand(env *Env) *cobra.Command {
	var o trendOptions
	cmd := &cobra.Command{
		Use:   "trend SP...|ROOT",
		Short: "Show what grew over many snapshots, and when it reaches a limit",
		Long: `Shows how the states of several snapshots grew: those given, in their order, or
those found under the folder ROOT, oldest first: by checkpoint id, or by time
where two have the same id. Largest growth first.

PER CHECKPOINT is the growth from the first to the last, by the difference of
their checkpoint ids where those go up, else by the number of snapshots. With
--limit and --limit-elements it says when each reaches the limit: a straight
line through the first and the last, which knows nothing of what is between.

It reads the description of each snapshot, and no state. As CSV it gives a row
for each state in each snapshot.`,
		Example: `  spt trend /data/flink/orders --limit 1GiB
  spt trend chk-4100 chk-4150 chk-4211 --state committable-state
  spt trend /data/flink/orders -o csv > growth.csv`,
		Args: between(1, -1, "snapshots, or a folder that holds them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return runTrend(cmd.Context(), o, env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// TrendResult is the answer of trend.
type TrendResult struct {
	Snapshots   []TrendSnapshot `json:"snapshots" jsonschema:"description=in their order, oldest first"`
	LeftOut     []string        `json:"left_out,omitempty" jsonschema:"description=what could not be read: under ROOT, or of three snapshots and more"`
	Why         []string        `json:"left_out_reasons,omitempty" jsonschema:"description=why, in the order of left_out"`
	Checkpoints int64           `json:"checkpoints" jsonschema:"description=from the first to the last; what per_checkpoint divides by"`
	Seconds     int64           `json:"seconds,omitempty" jsonschema:"description=from the first to the last, if their times go up"`
	Rows        []TrendRow      `json:"rows" jsonschema:"description=the whole, its description, then states by how much they grew"`

	picked  bool
	damaged bool // one of them
}

// TrendSnapshot is one of the snapshots.
type TrendSnapshot struct {
	Path         string     `json:"path"`
	CheckpointID int64      `json:"checkpoint_id"`
	Time         *time.Time `json:"time,omitempty"`
}

// TrendRow is one state, or all together, over the snapshots.
type TrendRow struct {
	What     string      `json:"what" jsonschema:"enum=total,enum=description,enum=state,description=description is _metadata or the .spt file"`
	Operator string      `json:"operator,omitempty"`
	ID       string      `json:"id,omitempty"`
	State    string      `json:"state,omitempty"`
	Kind     string      `json:"kind,omitempty"`
	Bytes    []int64     `json:"bytes" jsonschema:"description=in each snapshot; 0 where it is not there"`
	Elements []int64     `json:"elements,omitempty" jsonschema:"description=in each snapshot, of list, union, broadcast and raw state"`
	Growth   int64       `json:"growth_bytes" jsonschema:"description=from the first to the last"`
	Per      int64       `json:"per_checkpoint_bytes" jsonschema:"description=rounded"`
	More     int64       `json:"growth_elements,omitempty"`
	MorePer  int64       `json:"per_checkpoint_elements,omitempty" jsonschema:"description=rounded"`
	Limit    *TrendLimit `json:"limit,omitempty" jsonschema:"description=with --limit: of bytes"`
	LimitOf  *TrendLimit `json:"limit_elements,omitempty" jsonschema:"description=with --limit-elements"`

	key trendKey
}

// TrendLimit is when a limit is reached, by linear extrapolation.
type TrendLimit struct {
	Limit       int64  `json:"limit"`
	Reached     bool   `json:"reached" jsonschema:"description=by the last snapshot"`
	Checkpoints *int64 `json:"checkpoints,omitempty" jsonschema:"description=after the last, by a straight line through the first and the last; absent if it is reached or never will be"`
	Seconds     *int64 `json:"seconds,omitempty" jsonschema:"description=the same in time, if it is known"`
}

type trendKey struct {
	id   format.OperatorID
	kind string
	name string
}

func runTrend(ctx context.Context, o trendOptions, env *Env, args []string) error {
	res := &TrendResult{Snapshots: []TrendSnapshot{}, Rows: []TrendRow{}, picked: len(o.operators)+len(o.states) > 0}
	paths := args
	if len(args) == 1 {
		var err error
		if paths, err = o.find(ctx, env, args[0], res); err != nil {
			return err
		}
	}
	if len(paths) < 2 && len(res.LeftOut) > 0 {
		return tooFewRead(len(paths), res)
	}
	if len(paths) < 2 {
		return &usageError{fmt.Sprintf("%s: a trend needs at least two", ui.Plural(int64(len(paths)), "snapshot")), "spt ls " + shell.Quote(args[0]) + "   shows what there is"}
	}
	t := &trend{env: env, o: o, res: res, n: len(paths), rows: map[trendKey]*TrendRow{}, none: map[string]error{}}
	progress := env.progress()
	progress.StartCount(int64(len(paths)), "opening snapshots")
	defer progress.Stop()
	for _, p := range paths {
		i := len(res.Snapshots)
		if err := t.add(ctx, i, p); err != nil {
			if ctx.Err() != nil || len(paths) == 2 {
				return err
			}
			t.undo(i)
			res.leaveOut(env, p, err) // and go on with the others
		}
		progress.Add(1)
	}
	progress.Stop()
	if len(res.Snapshots) < 2 {
		return tooFewRead(len(res.Snapshots), res)
	}
	if err := t.finish(); err != nil {
		return err
	}
	if err := t.render(); err != nil {
		return err
	}
	if n := len(res.LeftOut); n > 0 {
		return &findings{fmt.Sprintf("%s left out, which cannot be read: %s\n  %s", ui.Plural(int64(n), "snapshot"), report.Shorten(quoteAll(res.LeftOut)), res.reasons())}
	}
	return nil
}

// leaveOut notes a snapshot that cannot be read.
func (r *TrendResult) leaveOut(env *Env, path string, err error) {
	r.LeftOut = append(r.LeftOut, path)
	r.damaged = r.damaged || errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrLimit)
	why := env.run.Hide(err.Error())
	if !strings.HasPrefix(why, path) { // most errors name it
		why = ui.Quote(path) + ": " + why
	}
	r.Why = append(r.Why, why)
}

// reasons is why snapshots were left out, one a line.
func (r *TrendResult) reasons() string {
	const most = 20
	why, more := r.Why, ""
	if len(why) > most {
		more = fmt.Sprintf("\n  … and %d more", len(why)-most)
		why = why[:most]
	}
	return printableLines(strings.Join(why, "\n  ")) + more
}

// tooFewRead returns the error of a trend without two snapshots that can be read.
func tooFewRead(n int, res *TrendResult) error {
	text := fmt.Sprintf("%s that can be read: a trend needs at least two; left out:\n  %s", ui.Plural(int64(n), "snapshot"), res.reasons())
	if !res.damaged { // they may be whole
		return errors.New(text)
	}
	return format.Errorf(format.ErrCorrupt, "%s", text)
}

// find lists the snapshots under a root, oldest first.
func (o *trendOptions) find(ctx context.Context, env *Env, root string, res *TrendResult) ([]string, error) {
	entries, err := env.list(ctx, root, reader.ListOptions{Options: env.readerOptions(), Depth: o.depth, Jobs: env.common.jobs})
	if err != nil {
		return nil, env.suggestPath(ctx, root, err)
	}
	var found []reader.Entry
	ids := map[int64]bool{}
	for _, e := range entries {
		switch {
		case e.State == reader.Damaged, e.State == reader.Unreadable:
			res.LeftOut = append(res.LeftOut, e.Path)
			res.damaged = res.damaged || e.State == reader.Damaged
			res.Why = append(res.Why, ui.Quote(e.Path)+": "+env.run.Hide(cmp.Or(e.Reason, e.Problem)))
		case e.Container.Name != "": // else there is nothing to read yet, or any more
			found = append(found, e)
			ids[e.ID] = true
		}
	}
	byID := len(ids) == len(found) // a copy has lost its times, but not its ids
	slices.SortStableFunc(found, func(a, b reader.Entry) int {
		if byID {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Path, b.Path))
	})
	var paths []string
	for _, e := range found {
		paths = append(paths, e.Path)
	}
	return paths, nil
}

// trend collects rows, one snapshot after the other.
type trend struct {
	env   *Env
	o     trendOptions
	res   *TrendResult
	n     int
	rows  map[trendKey]*TrendRow
	order []*TrendRow
	names []string         // of states, for who picked none
	none  map[string]error // of each --operator that picked none so far
}

func (t *trend) row(key trendKey) *TrendRow {
	r := t.rows[key]
	if r == nil {
		r = &TrendRow{key: key, Bytes: make([]int64, t.n)}
		t.rows[key] = r
		t.order = append(t.order, r)
	}
	return r
}

func (t *trend) add(ctx context.Context, i int, path string) (err error) {
	snap, err := t.env.open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	s, err := summary.Of(ctx, snap.Savepoint)
	if err != nil {
		return format.InFile(err, snap.Container.Name)
	}
	at := TrendSnapshot{Path: path, CheckpointID: snap.ID}
	if !snap.Container.ModTime.IsZero() {
		when := snap.Container.ModTime.UTC()
		at.Time = &when
	}
	t.res.Snapshots = append(t.res.Snapshots, at)
	if !t.res.picked {
		total := t.row(trendKey{kind: "total"})
		total.What, total.Bytes[i] = "total", s.Bytes.State()
		own := t.row(trendKey{kind: "description"})
		own.What, own.Bytes[i] = "description", snap.Container.Size
	}
	picked := among(t.pick(snap))
	for _, op := range s.Operators {
		if !picked(op.Operator) {
			continue
		}
		for _, st := range op.States {
			if st.Name != "" {
				t.names = append(t.names, st.Name)
			}
			if len(t.o.states) > 0 && (st.Name == "" || !matches(t.o.states, st.Name)) {
				continue
			}
			r := t.row(trendKey{op.ID, string(st.Kind), st.Name})
			r.What, r.Operator, r.ID, r.State, r.Kind = "state", t.env.run.Label(op.Operator), op.ID.String(), t.env.run.Text(st.Name), string(st.Kind)
			r.Bytes[i] += st.Bytes
			if st.Elements >= 0 && st.Name != "" {
				if r.Elements == nil {
					r.Elements = make([]int64, t.n)
				}
				r.Elements[i] += st.Elements
			}
		}
	}
	return nil
}

// pick is the operators of a snapshot that --operator names: it need not have
// each, if another has.
func (t *trend) pick(snap *reader.Snapshot) []*format.Operator {
	if len(t.o.operators) == 0 {
		return snap.Operators
	}
	var picked []*format.Operator
	for _, want := range t.o.operators {
		p := pick{operators: []string{want}}
		ops, err := p.pickOperators(t.env, snap.Operators)
		if before, again := t.none[want]; err == nil || !again || before != nil {
			t.none[want] = err
		}
		picked = append(picked, ops...)
	}
	return picked
}

// undo takes out what add noted of a snapshot that changed while it was read.
func (t *trend) undo(i int) {
	t.res.Snapshots = t.res.Snapshots[:i]
	for _, r := range t.order {
		r.Bytes[i] = 0
		if r.Elements != nil {
			r.Elements[i] = 0
		}
	}
}

// finish computes growth and limits, and sorts.
func (t *trend) finish() error {
	t.n = len(t.res.Snapshots) // less than at first if some were left out
	for _, r := range t.order {
		r.Bytes = r.Bytes[:t.n]
		r.Elements = r.Elements[:min(len(r.Elements), t.n)]
	}
	for _, want := range t.o.operators {
		if err := t.none[want]; err != nil {
			return err
		}
	}
	if err := t.env.checkGlobs(t.o.states, t.names, "state", "no operator picked has a state with a name"); err != nil {
		return err
	}
	first, last := t.res.Snapshots[0], t.res.Snapshots[t.n-1]
	t.res.Checkpoints = last.CheckpointID - first.CheckpointID
	increasing := slices.IsSortedFunc(t.res.Snapshots, func(a, b TrendSnapshot) int { return cmp.Compare(a.CheckpointID, b.CheckpointID) })
	if !increasing || t.res.Checkpoints < 1 {
		t.res.Checkpoints = int64(t.n - 1)
	}
	timed := !slices.ContainsFunc(t.res.Snapshots, func(s TrendSnapshot) bool { return s.Time == nil }) &&
		slices.IsSortedFunc(t.res.Snapshots, func(a, b TrendSnapshot) int { return a.Time.Compare(*b.Time) })
	if timed {
		t.res.Seconds = int64(last.Time.Sub(*first.Time) / time.Second)
	}
	for _, r := range t.order {
		r.Growth, r.Per, r.Limit = t.measure(r.Bytes, int64(t.o.limit))
		if r.Elements != nil {
			r.More, r.MorePer, r.LimitOf = t.measure(r.Elements, t.o.limitElements)
		}
	}
	rank := func(r *TrendRow) int { return slices.Index([]string{"total", "description", "state"}, r.What) }
	slices.SortStableFunc(t.order, func(a, b *TrendRow) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Growth, a.Growth), cmp.Compare(b.More, a.More), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.State, b.State), cmp.Compare(a.Kind, b.Kind))
	})
	for _, r := range t.order {
		t.res.Rows = append(t.res.Rows, *r)
	}
	return nil
}

func (t *trend) measure(values []int64, limit int64) (growth, per int64, l *TrendLimit) {
	last := values[len(values)-1]
	growth = last - values[0]
	per = int64(math.Round(float64(growth) / float64(t.res.Checkpoints)))
	if limit <= 0 {
		return growth, per, nil
	}
	l = &TrendLimit{Limit: limit, Reached: last >= limit}
	if l.Reached || growth <= 0 {
		return growth, per, l
	}
	l.Checkpoints = share(limit-last, t.res.Checkpoints, growth)
	if t.res.Seconds > 0 {
		l.Seconds = share(limit-last, t.res.Seconds, growth)
	}
	return growth, per, l
}

// share is a·b/c, rounded up; nil where that is no int64.
func share(a, b, c int64) *int64 {
	x := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	x.Add(x, big.NewInt(c-1)).Div(x, big.NewInt(c))
	if !x.IsInt64() {
		return nil
	}
	n := x.Int64()
	return &n
}

func (t *trend) render() error {
	env := t.env
	switch env.common.output {
	case ui.OutputJSON:
		return ui.JSON(env.Stdout, t.res)
	case ui.OutputJSONL:
		l := ui.NewJSONLines(env.Stdout)
		for i := range t.res.Rows {
			if err := l.Encode(&t.res.Rows[i]); err != nil {
				return err
			}
		}
		return l.Flush()
	case ui.OutputCSV:
		return t.csv()
	}
	return t.table()
}

func (t *trend) csv() error {
	c := ui.NewCSV(t.env.Stdout, "path", "checkpoint_id", "time", "what", "operator", "id", "state", "kind", "bytes", "elements")
	for i, s := range t.res.Snapshots {
		when := ""
		if s.Time != nil {
			when = s.Time.Format(time.RFC3339)
		}
		for _, r := range t.res.Rows {
			elements := ""
			if r.Elements != nil {
				elements = strconv.FormatInt(r.Elements[i], 10)
			}
			err := c.Row(s.Path, strconv.FormatInt(s.CheckpointID, 10), when, r.What, r.Operator, r.ID, r.State, r.Kind, strconv.FormatInt(r.Bytes[i], 10), elements)
			if err != nil {
				return err
			}
		}
	}
	return c.Flush()
}

// sparkMost is how many bars a trend has at most: of more snapshots, several
// share a bar, which is that of the largest.
const sparkMost = 24

func spark(values []int64) string {
	if len(values) <= sparkMost {
		return ui.Sparkline(values)
	}
	bars := make([]int64, sparkMost)
	for i := range bars {
		from, to := i*len(values)/sparkMost, (i+1)*len(values)/sparkMost
		bars[i] = slices.Max(values[from:to])
	}
	return ui.Sparkline(bars)
}

func (t *trend) table() error {
	env, res := t.env, t.res
	term := env.term()
	first, last := res.Snapshots[0], res.Snapshots[t.n-1]
	head := fmt.Sprintf("%s · checkpoint %s → %s", ui.Plural(int64(t.n), "snapshot"), ui.Count(first.CheckpointID), ui.Count(last.CheckpointID))
	if res.Seconds > 0 {
		head += " · " + ui.Duration(time.Duration(res.Seconds)*time.Second)
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s\n\n", ui.Bold(head)); err != nil {
		return err
	}
	tab := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 2, Cut: ui.CutMiddle, Min: 16}, ui.Column{Header: "TREND", Drop: 1},
		ui.Column{Header: "FIRST", Align: ui.Right}, ui.Column{Header: "LAST", Align: ui.Right}, ui.Column{Header: "PER CHECKPOINT", Align: ui.Right},
		ui.Column{Header: "LIMIT", Shrink: 1, Min: 14, Wrap: true},
	)
	shown, left, still := 0, 0, 0
	for _, r := range res.Rows {
		name := "(" + r.What + ")"
		switch {
		case r.What == "state" && r.State == "":
			name = ui.Quote(r.Operator) + "/(" + r.Kind + ")"
		case r.What == "state":
			name = ui.Quote(r.Operator) + "/" + ui.Quote(r.State)
		}
		if r.What == "state" && t.o.top > 0 {
			if flat(r.Bytes) && flat(r.Elements) {
				still++
				continue
			}
			if shown++; shown > t.o.top {
				left++
				continue
			}
		}
		tab.Row(name, spark(r.Bytes), ui.Bytes(r.Bytes[0]), ui.Bytes(r.Bytes[t.n-1]), ui.Signed(r.Per, ui.Bytes), t.limitText(r.Limit))
		if r.Elements != nil {
			tab.Child(1, "elements", spark(r.Elements), ui.Count(r.Elements[0]), ui.Count(r.Elements[t.n-1]), ui.Signed(r.MorePer, ui.Count), t.limitText(r.LimitOf))
		}
	}
	if err := tab.Write(env.Stdout, term); err != nil {
		return err
	}
	var b strings.Builder
	if left > 0 {
		fmt.Fprintf(&b, "%s\n", ui.Dim(fmt.Sprintf("… and %s that grew less", ui.Plural(int64(left), "state"))))
	}
	if still > 0 {
		fmt.Fprintf(&b, "%s\n", ui.Dim(fmt.Sprintf("… and %s that did not change", ui.Plural(int64(still), "state"))))
	}
	if t.o.limit > 0 || t.o.limitElements > 0 {
		b.WriteString("\nLIMIT: if all goes on as from the first to the last, in a straight line.\n")
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}

func flat(values []int64) bool {
	return !slices.ContainsFunc(values, func(v int64) bool { return v != values[0] })
}

func (t *trend) limitText(l *TrendLimit) string {
	switch {
	case l == nil:
		return ""
	case l.Reached:
		return ui.Bad("reached")
	case l.Checkpoints == nil:
		return ui.Dim("not at this rate")
	}
	text := fmt.Sprintf("in %s", ui.Plural(*l.Checkpoints, "checkpoint"))
	if l.Seconds != nil && *l.Seconds < int64(math.MaxInt64/time.Second) {
		text += ", " + ui.Duration(time.Duration(*l.Seconds)*time.Second)
	}
	return text
}
