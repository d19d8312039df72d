package html

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/internal/picture"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
)

// chart is lines over the same steps.
type chart struct {
	About       string // for readers that do not see it
	Lines       []line
	Ticks       []tick
	First, Last string // what the first and the last step are
}

type line struct {
	Class string
	Path  string // in a frame of 100 by 100
}

// tick is a label at a height, in percent from the top.
type tick struct {
	At   string
	Text string
}

// square is the frame of lines and bars, which the page stretches.
var square = picture.Rect{W: 100, H: 100}

// union is a union state, and what the next restores load of it.
type union struct {
	Name, Operator, Status string
	Look                   bool
	About                  string
	Chart                  chart
	Rows                   []growth
	Command                string
}

type growth struct{ Restore, Elements, Kept, Bytes string }

const (
	maxUnions    = 6
	nextRestores = 4
)

// unions returns the union states that cost most in the next restores, first those that
// are or may be multiplied.
func unions(x *report.Inspect) (all []union, left string) {
	type found struct {
		op *report.InspectOperator
		st *report.InspectState
	}
	var states []found
	for i := range x.Operators {
		op := &x.Operators[i]
		for k := range op.States {
			if st := &op.States[k]; st.UnionRestoreBytes > 0 && st.Elements != nil && op.Parallelism > 1 {
				states = append(states, found{op, st})
			}
		}
	}
	slices.SortStableFunc(states, func(a, b found) int {
		if a.st.MayBeMultiplied != b.st.MayBeMultiplied {
			return map[bool]int{true: -1, false: 1}[a.st.MayBeMultiplied]
		}
		return cmp.Compare(b.st.UnionRestoreBytes, a.st.UnionRestoreBytes)
	})
	for _, f := range states[:min(len(states), maxUnions)] {
		all = append(all, newUnion(x.Path, f.op, f.st))
	}
	return all, more(len(states)-maxUnions, "union state", "spt prune-union "+shell.Quote(x.Path))
}

func newUnion(path string, op *report.InspectOperator, st *report.InspectState) union {
	n, p := *st.Elements, op.Parallelism
	u := union{Name: name(st.Name), Operator: name(op.Label()), Look: st.MayBeMultiplied, Command: "spt prune-union " + shell.Quote(path)}
	switch {
	case st.Verdict != "":
		u.Status = st.Verdict
	case st.MayBeMultiplied:
		u.Status = "may be multiplied"
	default:
		u.Status = "no sign of duplicates"
	}
	rows := report.NewGrowth(n, p, nextRestores)
	var readded, kept []int64
	bytes := st.UnionRestoreBytes // what the next restore loads
	for i, r := range rows {
		readded, kept = append(readded, r.Assigned), append(kept, number.Times(r.Kept, int64(p)))
		u.Rows = append(u.Rows, growth{ui.Count(int64(i + 1)), ui.Count(r.Assigned), ui.Count(kept[i]), ui.Bytes(bytes)})
		bytes = number.Times(bytes, int64(p))
	}
	top := slices.Max(readded)
	u.Chart = chart{First: "next restore", Last: fmt.Sprintf("restore %d", len(rows)), Lines: []line{
		{"again", picture.Path(picture.LogLine(readded, top, square))}, {"kept", picture.Path(picture.LogLine(kept, top, square))},
	}}
	u.Chart.Ticks = []tick{{"0", ui.Count(top)}, {"100", "1"}}
	u.Chart.About = fmt.Sprintf("Elements that the next %d restores assign, on a logarithmic scale: from %s to %s if every subtask adds again what it gets, %s each time if each element is kept once.",
		len(rows), ui.Count(readded[0]), ui.Count(top), ui.Count(kept[0]))
	u.About = fmt.Sprintf("%s in %s. A restore assigns all of them to each subtask: %s elements, %s.",
		ui.Plural(n, "element"), ui.Plural(int64(st.Subtasks), "subtask"), ui.Count(readded[0]), ui.Bytes(st.UnionRestoreBytes))
	return u
}

// groups is the distribution of an operator's keyed state.
type groups struct {
	ID, Operator string
	About        string // of the key groups
	Height       int    // of the heat map, in pixels
	Cells        []cell
	Each         int // key groups in a cell
	Values       string
	Parallelism  int32
	Max          int
	Subtasks     string // what subtasks hold at the parallelism
	Bars         string // the same as a path in a frame of 100 by 100
}

type cell struct {
	X     string // percent
	Y     int    // pixels
	Shade int
	Text  string
}

const (
	cellColumns = 32
	maxCells    = 256
	cellHeight  = 14
	shades      = 6
)

func groupMaps(of report.KeyGroupsOf) (all []groups, left string) {
	for i, g := range of.Operators {
		all = append(all, newGroups(i, g))
	}
	if of.Left > 0 {
		left = fmt.Sprintf("%s with keyed state not shown", ui.Plural(int64(of.Left), "operator"))
		if of.Unknown > 0 {
			left += fmt.Sprintf(", %d of them because only their entries show to which key groups they belong (tables of RocksDB and ForSt, and changelogs): spt report --verify reads them", of.Unknown)
		}
		left += "."
	}
	return all, left
}

func newGroups(i int, k report.KeyGroups) groups {
	g := groups{ID: strconv.Itoa(i), Operator: name(k.Operator), Max: len(k.Bytes), Parallelism: max(1, min(k.Parallelism, int32(len(k.Bytes))))}
	var sums []int64
	sums, g.Each = picture.Sum(k.Bytes, maxCells)
	top := slices.Max(sums)
	for n, r := range picture.Grid(len(sums), cellColumns, whole) {
		first := n * g.Each
		what := fmt.Sprintf("key group %d", first)
		if g.Each > 1 {
			what = fmt.Sprintf("key groups %d–%d", first, min(first+g.Each, len(k.Bytes))-1)
		}
		g.Cells = append(g.Cells, cell{strconv.FormatFloat(r.X, 'f', -1, 64), n / cellColumns * cellHeight, picture.Shade(sums[n], top, shades), what + ": " + ui.Bytes(sums[n])})
	}
	g.Height = (len(sums) + cellColumns - 1) / cellColumns * cellHeight
	source := "as stored"
	if k.Counted {
		source = "of entries"
	}
	whole := spreadOf(k.Bytes)
	g.About = fmt.Sprintf("%s %s in %s: largest %s (key group %d), median %s, smallest %s.",
		ui.Bytes(whole.sum), source, ui.Plural(int64(len(k.Bytes)), "key group"), ui.Bytes(whole.largest), whole.at, ui.Bytes(whole.median), ui.Bytes(whole.smallest))
	texts := make([]string, len(k.Bytes))
	for i, n := range k.Bytes {
		texts[i] = strconv.FormatInt(n, 10)
	}
	g.Values = strings.Join(texts, " ")
	held := make([]int64, g.Parallelism)
	for i := range held {
		r := format.KeyGroupsOf(int32(i), g.Parallelism, int32(len(k.Bytes)))
		for _, n := range k.Bytes[r.First : r.First+r.Count] {
			held[i] += n
		}
	}
	at := spreadOf(held)
	g.Subtasks = fmt.Sprintf("largest subtask %s (%d), median %s, smallest %s", ui.Bytes(at.largest), at.at, ui.Bytes(at.median), ui.Bytes(at.smallest))
	bars, _ := picture.Sum(held, maxBars)
	g.Bars = picture.Bars(bars, square)
	return g
}

// maxBars is how many bars the page draws; the script has the same number.
const maxBars = 512

type spread struct {
	sum, largest, median, smallest int64
	at                             int
}

func spreadOf(all []int64) (s spread) {
	for i, n := range all {
		s.sum += n
		if n > all[s.at] {
			s.at = i
		}
	}
	sorted := slices.Sorted(slices.Values(all))
	s.largest, s.median, s.smallest = sorted[len(sorted)-1], sorted[(len(sorted)-1)/2], sorted[0]
	return s
}

// trend is how states grew over several snapshots.
type trend struct {
	Span    string
	Charts  []trendChart
	Left    string
	LeftOut []string
}

type trendChart struct {
	Name, First, Last, Per string
	Chart                  chart
}

const maxTrends = 12

func newTrend(t *report.Trend) *trend {
	if t == nil {
		return nil
	}
	out := &trend{}
	ids := t.Snapshots
	first, last := ids[0], ids[len(ids)-1]
	out.Span = fmt.Sprintf("%s, checkpoint %s to %s", ui.Plural(int64(len(ids)), "snapshot"), ui.Count(first.CheckpointID), ui.Count(last.CheckpointID))
	for i, path := range t.LeftOut {
		out.LeftOut = append(out.LeftOut, name(path)+": "+sentence(t.Why[i]))
	}
	var rows []report.TrendRow
	for _, r := range t.All {
		if r.What != "state" || r.Growth != 0 || r.More != 0 {
			rows = append(rows, r)
		}
	}
	for _, r := range rows[:min(len(rows), maxTrends)] {
		label := map[string]string{"total": "all state", "description": "description (_metadata or .spt file)"}[r.What]
		if r.What == "state" {
			label = name(r.Operator) + "/(" + r.Kind + ")"
			if r.State != "" {
				label = name(r.Operator) + "/" + name(r.State)
			}
		}
		top := max(slices.Max(r.Bytes), 1)
		c := trendChart{Name: label, First: ui.Bytes(r.Bytes[0]), Last: ui.Bytes(r.Bytes[len(r.Bytes)-1]), Per: ui.Signed(r.Per, ui.Bytes) + " per checkpoint"}
		marks := picture.Ticks(top, 1024)
		high := marks[len(marks)-1]
		for _, m := range marks {
			c.Chart.Ticks = append(c.Chart.Ticks, tick{fmt.Sprintf("%.1f", 100-100*float64(m)/float64(high)), ui.Bytes(m)})
		}
		c.Chart.Lines = []line{{"grown", picture.Path(picture.Line(r.Bytes, high, square))}}
		c.Chart.First, c.Chart.Last = "checkpoint "+ui.Count(first.CheckpointID), ui.Count(last.CheckpointID)
		c.Chart.About = fmt.Sprintf("Bytes of %s in %s: first %s, last %s, largest %s.", label, ui.Plural(int64(len(ids)), "snapshot"), c.First, c.Last, ui.Bytes(slices.Max(r.Bytes)))
		out.Charts = append(out.Charts, c)
	}
	if n := len(rows) - maxTrends; n > 0 {
		out.Left = "… and " + ui.Plural(int64(n), "state") + " that grew less; all of them:  spt trend"
	}
	return out
}
