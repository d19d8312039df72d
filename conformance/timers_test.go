package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/transform"
)

// overdue moves the timers of processing time, which are in 2100, to 2000.
const overdue = -100 * 365 * 24 * time.Hour

// timerRewrites are the rewrites that touch timers, and one of timers alone.
func timerRewrites() []keyedRewrite {
	all := slices.DeleteFunc(slices.Clone(keyedRewrites), func(r keyedRewrite) bool {
		return !slices.Contains([]string{"convert", "rescale", "rename", "filter", "shift-timers", "patched", "max-parallelism"}, r.name)
	})
	return append(all, keyedRewrite{
		name: "filter-timers",
		edit: func(_ *testing.T, in format.View) (format.View, error) {
			v, _, err := transform.Filter(context.Background(), in, transform.FilterOptions{
				Operators: format.Selector{"keyed"},
				Keyed:     func(s format.KeyedState) bool { return s.Kind == types.Timers },
				KeepEntries: func(transform.FilterHandle) (func(*format.KeyedEntry) (bool, error), error) {
					return func(e *format.KeyedEntry) (bool, error) { return e.Time%2 == 0, nil }, nil
				},
			})
			return v, err
		},
		timer: func(service string, _ bool, t Timer) (Timer, bool) {
			return t, service != "user-timers" || t.Timestamp%2 == 0
		},
	})
}

// Timers fire in a job that is restored from rewritten state, each under its key and at its
// time, once: timers of processing time that are overdue at once, those of event time and
// windows when the watermark has passed them. The windows then have the contents that they
// had.
func TestTimersFire(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		for i, rewrite := range timerRewrites() {
			t.Run(rewrite.name, func(t *testing.T) {
				f := Use(t, version)
				encoding := keyedEncodings[i%len(keyedEncodings)].options
				backend := []string{"hashmap", "rocksdb"}[i/2%2]
				s := madeOnce(t, f, encoding)
				truth := rewrite.truth(t, f, s, encoding)
				edit := rewrite.edit
				rewrite.edit = func(t *testing.T, in format.View) (format.View, error) {
					v, err := edit(t, in)
					if err == nil {
						v, _, err = transform.ShiftTimers(t.Context(), v, transform.ShiftTimersOptions{By: overdue, States: format.Globs{"_timer_state/processing_*"}})
					}
					return v, err
				}
				want, median := rewrite.fires(t, truth)
				watermarks := []int64{math.MinInt64, median, math.MaxInt64} // the first one is not emitted
				steps := make([][]Fired, len(watermarks))
				counts := make([]int, len(watermarks))
				for _, x := range want {
					step := 0
					if x.Domain == "event" {
						step = slices.IndexFunc(watermarks, func(w int64) bool { return w >= x.Timestamp })
					}
					steps[step] = append(steps[step], x)
					counts[step]++
				}
				if slices.Min(counts) == 0 {
					t.Fatalf("expected timers in each step, found %v", counts)
				}
				got, err := f.Fire(rewrite.of(t, s, backend), Choices{Parallelism: rewrite.parallelism}, watermarks, counts)
				if err != nil {
					t.Fatal(explain(err))
				}
				for _, step := range got {
					slices.SortFunc(step, compareFired)
				}
				if diff := gocmp.Diff(steps, got); diff != "" {
					t.Errorf("timers that fired (-expected +Flink):\n%s", diff)
				}
				t.Logf("%s state, restored into %s: %d timers of processing time fired at once, %d up to the watermark %d, %d at the end", keyedEncodings[i%len(keyedEncodings)].name, backend, counts[0], counts[1], median, counts[2])
			})
		}
	})
}

func compareFired(a, b Fired) int {
	return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Key, b.Key))
}

// fires returns what fires in a job with rewritten state, and the median of the event times.
func (r *keyedRewrite) fires(t *testing.T, truth Content) (all []Fired, median int64) {
	t.Helper()
	var events []int64
	for _, op := range truth.Operators {
		averages := map[string]float64{} // by key and window
		for _, sub := range op.Subtasks {
			for _, e := range sub.KeyedState["window-contents"].Entries {
				var sum [2]float64
				if err := json.Unmarshal([]byte(e.Value), &sum); err != nil {
					t.Fatal(err)
				}
				averages[fmt.Sprint(e.Key, e.Namespace)] = sum[0] / sum[1]
			}
		}
		for _, sub := range op.Subtasks {
			for service, timers := range sub.Timers {
				add := func(x Timer, event bool) {
					ok := true
					if r.timer != nil {
						x, ok = r.timer(service, event, x)
					}
					if !ok {
						return
					}
					fired := Fired{Operator: op.Name, Domain: "event", Key: x.Key, Timestamp: x.Timestamp}
					if event {
						events = append(events, x.Timestamp)
					} else {
						fired.Domain = "processing"
						fired.Timestamp += overdue.Milliseconds()
					}
					if service == "window-timers" {
						average, ok := averages[fmt.Sprint(x.Key, x.Namespace)]
						if !ok {
							t.Fatalf("a timer of window %s of key %s, which is empty", x.Namespace, x.Key)
						}
						fired.Value = &average
					}
					all = append(all, fired)
				}
				for _, x := range timers.Event {
					add(x, true)
				}
				for _, x := range timers.Processing {
					add(x, false)
				}
			}
		}
	}
	slices.SortFunc(all, compareFired)
	slices.Sort(events)
	return all, events[len(events)/2]
}
