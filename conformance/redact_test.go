package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// A redacted snapshot is to Flink one of the same structure: each subtask holds as many
// elements, entries and timers, in the same key groups and as often equal, and no text of
// the original.
func TestRedact(t *testing.T) {
	cases := map[string]Options{
		"operator":            caseNamed(t, "operator").options,
		"operator compressed": caseNamed(t, "operator-compressed").options,
		"rocksdb incremental": {Shape: "keyed", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 3, KeyType: "string", Seed: 302},
		"rocksdb canonical":   {Shape: "keyed", Backend: "rocksdb", KeyType: "tuple", Seed: 308, MaxParallelism: 1000},
		"heap native":         {Shape: "keyed", Backend: "hashmap", Format: "native", KeyType: "long", Seed: 305},
	}
	eachVersion(t, func(t *testing.T, version Version) {
		for name, options := range cases {
			t.Run(name, func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, options)
				snap := opened(t, s)
				out, rewritten := standsFor(t, s)
				v, done, err := transform.Redact(context.Background(), snap.View(), transform.RedactOptions{Key: []byte(name), Values: snap.Values})
				if err != nil {
					t.Fatal(err)
				}
				if done.Elements+done.Entries == 0 {
					t.Fatalf("%+v", done)
				}
				seal(t, snap.With(v.Savepoint), out, writer.Options{ReadBack: true})
				judgeModel(t, f, rewritten, openedAt(t, out))
				for _, p := range []int{0, 3} {
					want, got := restoredOnce(t, f, s, Choices{Parallelism: p}), Restore(t, f, rewritten, Choices{Parallelism: p})
					if leaked := leaks(want, got); len(leaked) > 0 {
						t.Errorf("texts of the original: %q", leaked)
					}
					compareContent(t, f, s.Options, p, counted(want), counted(got))
				}
				// With other names no operator takes the state, but Flink reads all of it.
				o := transform.RedactOptions{Key: []byte(name), Names: true, Values: snap.Values}
				if v, _, err = transform.Redact(context.Background(), snap.View(), o); err != nil {
					t.Fatal(err)
				}
				out, rewritten = standsFor(t, s)
				seal(t, snap.With(v.Savepoint), out, writer.Options{ReadBack: true})
				judgeModel(t, f, rewritten, openedAt(t, out))
				Restore(t, f, rewritten, Choices{AllowNonRestored: true})
				t.Logf("%d elements, %d entries, %d keys kept", done.Elements, done.Entries, done.KeptKeys)
			})
		}
	})
}

// leaks returns the strings of a content that another one has.
func leaks(want, got Content) (all []string) {
	texts := map[string]bool{}
	eachText(want, func(s string) { texts[s] = true })
	eachText(got, func(s string) {
		if texts[s] {
			all = append(all, s)
		}
	})
	return all
}

// eachText calls f with the strings of at least four characters in the values of a
// content, apart from names of fields.
func eachText(c Content, f func(string)) {
	value := func(v Value) {
		parts := strings.Split(string(v), `"`)
		for i := 1; i+1 < len(parts); i += 2 {
			if len(parts[i]) >= 4 && !strings.HasPrefix(parts[i+1], ":") {
				f(parts[i])
			}
		}
	}
	for _, op := range c.Operators {
		for _, sub := range op.Subtasks {
			for _, st := range sub.OperatorState {
				for _, v := range slices.Concat(st.Elements, st.Entries) {
					value(v)
				}
			}
			for _, st := range sub.KeyedState {
				for _, e := range st.Entries {
					value(e.Key)
					value(e.Value)
				}
			}
		}
	}
}

// counted replaces the values of a content by how often they occur in their state. Order
// has no meaning then.
func counted(c Content) Content {
	c.Operators = slices.Clone(c.Operators)
	for i := range c.Operators {
		op := &c.Operators[i]
		op.Subtasks = slices.Clone(op.Subtasks)
		for k := range op.Subtasks {
			sub := &op.Subtasks[k]
			states := map[string]OperatorState{}
			for name, st := range sub.OperatorState {
				st.Elements, st.Entries, st.Raw = counts(st.Elements), counts(st.Entries), nil
				states[name] = st
			}
			keyed := map[string]KeyedState{}
			for name, st := range sub.KeyedState {
				st.Entries = countedEntries(st.Entries)
				keyed[name] = st
			}
			timers := map[string]Timers{}
			for name, all := range sub.Timers {
				timers[name] = Timers{Event: countedTimers(all.Event), Processing: countedTimers(all.Processing)}
			}
			sub.OperatorState, sub.KeyedState, sub.Timers = states, keyed, timers
		}
	}
	return c
}

func counts(all []Value) (out []Value) {
	n := map[Value]int{}
	for _, v := range all {
		n[v]++
	}
	for _, v := range all {
		out = append(out, Value(fmt.Sprint(n[v])))
	}
	slices.Sort(out)
	return out
}

func countedEntries(all []Entry) (out []Entry) {
	n := map[string]int{}
	for _, e := range all {
		n["key "+string(e.Key)]++
		n["value "+string(e.Value)]++
	}
	for _, e := range all {
		e.Key, e.Value = Value(fmt.Sprint(n["key "+string(e.Key)])), Value(fmt.Sprint(n["value "+string(e.Value)]))
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.KeyGroup, b.KeyGroup), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Value, b.Value))
	})
	return out
}

func countedTimers(all []Timer) (out []Timer) {
	for _, t := range all {
		t.Key = "0"
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Timer) int {
		return cmp.Or(cmp.Compare(a.KeyGroup, b.KeyGroup), cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out
}
