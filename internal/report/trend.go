package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/trend"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/count"
)

// Trend is the answer of trend.
type Trend struct {
	Snapshots   []TrendSnapshot `json:"snapshots" jsonschema:"description=in their order, oldest first"`
	LeftOut     []string        `json:"left_out,omitempty" jsonschema:"description=what could not be read: under ROOT, or of three snapshots and more"`
	Why         []string        `json:"left_out_reasons,omitempty" jsonschema:"description=why, in the order of left_out"`
	Checkpoints int64           `json:"checkpoints" jsonschema:"description=from the first to the last; what per_checkpoint divides by"`
	Seconds     int64           `json:"seconds,omitempty" jsonschema:"description=from the first to the last, if their times go up"`
	All         []TrendRow      `json:"rows" jsonschema:"description=the whole, its description, then states by how much they grew"`

	show TrendOptions
	run  *Run
	rows map[trendKey]*TrendRow
}

// TrendOptions is what a trend shows.
type TrendOptions struct {
	Limit, LimitElements int64 // to predict; 0: none
	Top                  int   // states that a person is shown; 0: all
	Picked               bool  // only some operators or states
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
	Bytes    []int64     `json:"bytes" jsonschema:"description=in each snapshot; 0 where it is not there; with --count of keyed states the bytes of stored keys and values"`
	Elements []int64     `json:"elements,omitempty" jsonschema:"description=in each snapshot, of list, union, broadcast and raw state; with --count entries of keyed states"`
	Growth   int64       `json:"growth_bytes" jsonschema:"description=from the first to the last"`
	Per      int64       `json:"per_checkpoint_bytes" jsonschema:"description=rounded"`
	More     int64       `json:"growth_elements,omitempty"`
	MorePer  int64       `json:"per_checkpoint_elements,omitempty" jsonschema:"description=rounded"`
	Limit    *TrendLimit `json:"limit,omitempty" jsonschema:"description=with --limit: of bytes"`
	LimitOf  *TrendLimit `json:"limit_elements,omitempty" jsonschema:"description=with --limit-elements"`
}

// TrendLimit is when a limit is reached, by linear extrapolation.
type TrendLimit struct {
	Limit       int64  `json:"limit"`
	Reached     bool   `json:"reached" jsonschema:"description=by the last snapshot"`
	Checkpoints *int64 `json:"checkpoints,omitempty" jsonschema:"description=after the last, by a straight line through the first and the last; absent if it is reached or never will be"`
	Seconds     *int64 `json:"seconds,omitempty" jsonschema:"description=the same in time, if it is known"`
}

// trendKey identifies the row of a state.
type trendKey struct {
	id   format.OperatorID
	kind summary.StateKind
	name string
}

// NewTrend returns a trend without snapshots. [Trend.Add] adds them in their order;
// [Trend.Finish] computes the rows.
func (r *Run) NewTrend(o TrendOptions) *Trend {
	return &Trend{Snapshots: []TrendSnapshot{}, All: []TrendRow{}, show: o, run: r, rows: map[trendKey]*TrendRow{}}
}

// Add adds a snapshot, and of it the states that picked reports true for.
func (t *Trend) Add(path string, snap *reader.Snapshot, s *summary.Summary, picked func(*summary.Operator, *summary.State) bool) {
	i := len(t.Snapshots)
	at := TrendSnapshot{Path: path, CheckpointID: snap.ID}
	if !snap.Container.ModTime.IsZero() {
		at.Time = new(snap.Container.ModTime.UTC())
	}
	t.Snapshots = append(t.Snapshots, at)
	if !t.show.Picked {
		addTo(&t.row(trendKey{kind: "total"}, TrendRow{What: "total"}).Bytes, i, s.Bytes.State())
		addTo(&t.row(trendKey{kind: "description"}, TrendRow{What: "description"}).Bytes, i, snap.Container.Size)
	}
	for _, op := range s.Operators {
		for _, st := range op.States {
			if !picked(op, st) {
				continue
			}
			row := t.row(trendKey{op.ID, st.Kind, st.Name}, TrendRow{What: "state", ID: op.ID.String(), State: t.run.Text(st.Name), Kind: string(st.Kind)})
			row.Operator = t.run.Label(op.Operator)
			addTo(&row.Bytes, i, st.Bytes)
			if st.Elements >= 0 && st.Name != "" {
				addTo(&row.Elements, i, st.Elements)
			}
		}
	}
}

// AddCount adds the entries of keyed state of the snapshot that was added last.
func (t *Trend) AddCount(c *count.Report) {
	i := len(t.Snapshots) - 1
	for _, op := range c.Operators {
		for _, st := range op.States {
			row := t.row(trendKey{op.ID, summary.StateKind("keyed " + st.Kind), st.Name}, TrendRow{What: "state", ID: op.ID.String(), State: t.run.Text(st.Name), Kind: st.Kind})
			row.Operator = t.run.Label(op.Operator)
			addTo(&row.Bytes, i, st.Bytes)
			addTo(&row.Elements, i, st.Entries)
		}
	}
}

func (t *Trend) row(key trendKey, empty TrendRow) *TrendRow {
	r := t.rows[key]
	if r == nil {
		r = &empty
		t.rows[key] = r
	}
	return r
}

// addTo adds n to values[i], which it grows for that.
func addTo(values *[]int64, i int, n int64) {
	extend(values, i+1)
	(*values)[i] += n
}

func extend(values *[]int64, n int) {
	*values = append(*values, make([]int64, n-len(*values))...)
}

// LeaveOut notes a snapshot that cannot be read.
func (t *Trend) LeaveOut(path, why string) {
	why = t.run.Hide(why)
	if !strings.HasPrefix(why, path) { // most errors name it
		why = ui.Quote(path) + ": " + why
	}
	t.LeftOut, t.Why = append(t.LeftOut, path), append(t.Why, why)
}

// Finish computes growth and limits, and sorts the rows.
func (t *Trend) Finish() {
	n := len(t.Snapshots)
	points := make([]trend.Point, n)
	for i, s := range t.Snapshots {
		points[i].ID = s.CheckpointID
		if s.Time != nil {
			points[i].Time = *s.Time
		}
	}
	span := trend.SpanOf(points)
	t.Checkpoints, t.Seconds = span.Checkpoints, span.Seconds
	for _, r := range t.rows {
		extend(&r.Bytes, n)
		r.Growth, r.Per, r.Limit = measure(span, r.Bytes, t.show.Limit)
		if r.Elements != nil {
			extend(&r.Elements, n)
			r.More, r.MorePer, r.LimitOf = measure(span, r.Elements, t.show.LimitElements)
		}
		t.All = append(t.All, *r)
	}
	rank := func(r *TrendRow) int { return slices.Index([]string{"total", "description", "state"}, r.What) }
	slices.SortFunc(t.All, func(a, b TrendRow) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(b.Growth, a.Growth), cmp.Compare(b.More, a.More), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.State, b.State), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
}

func measure(span trend.Span, values []int64, limit int64) (growth, per int64, l *TrendLimit) {
	first, last := values[0], values[len(values)-1]
	growth, per = last-first, span.Per(first, last)
	if limit <= 0 {
		return growth, per, nil
	}
	at := span.Until(first, last, limit)
	return growth, per, &TrendLimit{Limit: limit, Reached: at.Reached, Checkpoints: at.Checkpoints, Seconds: at.Seconds}
}
