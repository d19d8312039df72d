package transform

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// ShiftTimersOptions are the options of ShiftTimers.
type ShiftTimersOptions struct {
	// Operators and States select states that are timers; nil means all.
	Operators format.Selector
	States    format.Globs
	// By is added to the time of each timer; a part of a millisecond is not.
	By time.Duration
}

// TimersShifted is timers that fire at another time.
type TimersShifted struct {
	Operator *format.Operator // before
	State    string
	Entries  int64
	First    int64 // when the first fires now, in ms since 1970
}

// ShiftTimersReport describes what ShiftTimers changed.
type ShiftTimersReport struct {
	States []*TimersShifted
	// Windows are operators whose timers end windows and did not move.
	Windows []*format.Operator
	Entries int64 // of keyed state that were built again
	Unread  []KeptHandle
}

// ShiftTimers moves timers: each fires earlier or later by the same time. A time that is
// out of range becomes the first or last one, which Flink uses for timers that never
// fire. Timers that end windows stay: a window whose timer fires at another time than its
// end is not evaluated.
//
// Keyed state of an operator that has such timers is canonical, see [Canonical].
func ShiftTimers(ctx context.Context, in format.View, o ShiftTimersOptions) (format.View, *ShiftTimersReport, error) {
	by := o.By.Milliseconds()
	report, filtered := &ShiftTimersReport{}, &FilterReport{}
	sp, names, err := filtered.rebuildKeyed(ctx, in, o.Operators, func(k *keyedOperator) (keyedRebuild, error) {
		byName := map[string]*TimersShifted{}
		timers := func(st format.KeyedState) bool {
			name := st.Name.String()
			return st.Kind == types.Timers && o.States.Match(name) && !strings.HasSuffix(name, windowTimers)
		}
		if slices.ContainsFunc(k.names(), func(name string) bool { return o.States.Match(name) && strings.HasSuffix(name, windowTimers) }) {
			report.Windows = append(report.Windows, k.op)
		}
		if by == 0 {
			timers = func(format.KeyedState) bool { return false }
		}
		return keyedRebuild{touches: timers, jobs: 1, edit: func(_ *format.Subtask, s *keyedSource) (keyedEdit, error) {
			states := make([]*TimersShifted, len(s.schema.States))
			for i, st := range s.schema.States {
				if !timers(st) {
					continue
				}
				name := st.Name.String()
				if byName[name] == nil {
					byName[name] = &TimersShifted{Operator: k.op, State: name, First: math.MaxInt64}
					report.States = append(report.States, byName[name])
				}
				states[i] = byName[name]
			}
			return keyedEdit{
				keep: func(e *format.KeyedEntry) (bool, error) {
					if t := states[e.State]; t != nil {
						t.Entries++
						t.First = min(t.First, shifted(e.Time, by))
					}
					return true, nil
				},
				change: func(e *format.KeyedEntry) error {
					if states[e.State] != nil {
						e.Time, e.Stored = shifted(e.Time, by), nil
					}
					return nil
				},
			}, nil
		}}, nil
	})
	if err == nil {
		err = o.States.Check("state", names)
	}
	if err != nil {
		return in, nil, err
	}
	report.Entries, report.Unread = filtered.Entries, filtered.Unread
	return in.With(sp), report, nil
}

// windowTimers is the end of the names of the timers with which Flink ends windows.
const windowTimers = "_window-timers"

// shifted returns a time by ms later. Flink fires a timer at the largest time at the end
// of its input only: it stays where it is.
func shifted(at, by int64) int64 {
	switch {
	case at == math.MaxInt64 || by > 0 && at > math.MaxInt64-by:
		return math.MaxInt64
	case by < 0 && at < math.MinInt64-by:
		return math.MinInt64
	}
	return at + by
}
