package report

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/internal/ui"
)

// Reasons returns why snapshots were left out, one a line.
func (t *Trend) Reasons() string {
	const most = 20
	why, more := t.Why, ""
	if len(why) > most {
		more = fmt.Sprintf("\n  … and %d more", len(why)-most)
		why = why[:most]
	}
	return ui.PrintableLines(strings.Join(why, "\n  ")) + more
}

// Lines implements [Lines].
func (t *Trend) Lines() iter.Seq[any] { return each(t.All) }

// Header implements [Rows].
func (t *Trend) Header() []string {
	return []string{"path", "checkpoint_id", "time", "what", "operator", "id", "state", "kind", "bytes", "elements"}
}

// Rows implements [Rows]: a row for each state in each snapshot.
func (t *Trend) Rows() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for i, s := range t.Snapshots {
			for k := range t.All {
				r := &t.All[k]
				elements := ""
				if r.Elements != nil {
					elements = strconv.FormatInt(r.Elements[i], 10)
				}
				if !yield([]string{s.Path, strconv.FormatInt(s.CheckpointID, 10), timeText(s.Time), r.What, r.Operator, r.ID, r.State, r.Kind, strconv.FormatInt(r.Bytes[i], 10), elements}) {
					return
				}
			}
		}
	}
}

// Document implements [Report].
func (t *Trend) Document() *ui.Document {
	var d ui.Document
	n := len(t.Snapshots)
	head := fmt.Sprintf("%s · checkpoint %s → %s", ui.Plural(int64(n), "snapshot"), ui.Count(t.Snapshots[0].CheckpointID), ui.Count(t.Snapshots[n-1].CheckpointID))
	if t.Seconds > 0 {
		head += " · " + ui.Duration(time.Duration(t.Seconds)*time.Second)
	}
	d.Heading("%s", head)
	d.Blank()
	tab := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 2, Cut: ui.CutMiddle, Min: 16}, ui.Column{Header: "TREND", Drop: 1},
		ui.Column{Header: "FIRST", Align: ui.Right}, ui.Column{Header: "LAST", Align: ui.Right}, ui.Column{Header: "PER CHECKPOINT", Align: ui.Right},
		ui.Column{Header: "LIMIT", Shrink: 1, Min: 14, Wrap: true},
	)
	d.Add(tab)
	shown, less, still := 0, 0, 0
	for i := range t.All {
		r := &t.All[i]
		if r.What == "state" && t.show.Top > 0 {
			if flat(r.Bytes) && flat(r.Elements) {
				still++
				continue
			}
			if shown++; shown > t.show.Top {
				less++
				continue
			}
		}
		tab.Row(r.name(), spark(r.Bytes), ui.Bytes(r.Bytes[0]), ui.Bytes(r.Bytes[n-1]), ui.Signed(r.Per, ui.Bytes), r.Limit.text())
		if r.Elements != nil {
			tab.Child(1, "elements", spark(r.Elements), ui.Count(r.Elements[0]), ui.Count(r.Elements[n-1]), ui.Signed(r.MorePer, ui.Count), r.LimitOf.text())
		}
	}
	if less > 0 {
		d.Line("%s", ui.Dim(fmt.Sprintf("… and %s that grew less", ui.Plural(int64(less), "state"))))
	}
	if still > 0 {
		d.Line("%s", ui.Dim(fmt.Sprintf("… and %s that did not change", ui.Plural(int64(still), "state"))))
	}
	if t.show.Limit > 0 || t.show.LimitElements > 0 {
		d.Blank()
		d.Line("LIMIT: if all goes on as from the first to the last, in a straight line.")
	}
	return &d
}

func (r *TrendRow) name() string {
	switch {
	case r.What != "state":
		return "(" + r.What + ")"
	case r.State == "":
		return ui.Quote(r.Operator) + "/(" + r.Kind + ")"
	}
	return ui.Quote(r.Operator) + "/" + ui.Quote(r.State)
}

// sparkMost is how many bars a trend has at most. Of more snapshots several share a
// bar, which shows the largest value.
const sparkMost = 24

func spark(values []int64) string { return sparkOf(values, sparkMost) }

// sparkOf is spark with at most n bars.
func sparkOf(values []int64, n int) string {
	if len(values) <= n {
		return ui.Sparkline(values)
	}
	bars := make([]int64, n)
	for i := range bars {
		from, to := i*len(values)/n, (i+1)*len(values)/n
		bars[i] = slices.Max(values[from:to])
	}
	return ui.Sparkline(bars)
}

func flat(values []int64) bool {
	return !slices.ContainsFunc(values, func(v int64) bool { return v != values[0] })
}

func (l *TrendLimit) text() string {
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
