package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Diff compares two contents operator by operator, subtask by subtask, in
// order. It returns "" if they are equal. It ignores the version of Flink and the
// order of the operators.
func Diff(want, got Content) string {
	return cmp.Diff(want, got,
		cmpopts.IgnoreFields(Content{}, "Flink"),
		cmpopts.SortSlices(func(a, b Operator) bool { return a.ID < b.ID }),
		cmpopts.EquateEmpty())
}

// DiffMetadata compares two views of a _metadata file, handle by handle.
func DiffMetadata(want, got Metadata) string {
	return cmp.Diff(want, got,
		cmpopts.SortSlices(func(a, b MetadataOperator) bool { return a.ID < b.ID }),
		cmpopts.EquateEmpty())
}

// CheckRedistributed compares the restored content, at any parallelism, with the
// stored content, independently of how Flink redistributes: nothing is lost or
// duplicated, lists are balanced, union state is complete in every subtask, and
// each key is in the subtask of its key group. It returns one line for each
// fault.
func CheckRedistributed(truth, restored Content) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	byID := map[string]Operator{}
	for _, o := range restored.Operators {
		byID[o.ID] = o
	}
	for _, before := range truth.Operators {
		after, ok := byID[before.ID]
		if !ok {
			say("operator %s (%s) is missing", before.ID, before.Name)
			continue
		}
		delete(byID, before.ID)
		if len(after.Subtasks) != after.Parallelism {
			say("%s: %d subtasks at parallelism %d", before.Name, len(after.Subtasks), after.Parallelism)
		}
		checkOperatorState(before, after, say)
		checkKeyed(before, after, say)
	}
	for _, o := range byID {
		say("operator %s (%s) is new", o.ID, o.Name)
	}
	return wrong
}

func checkOperatorState(before, after Operator, say func(string, ...any)) {
	for _, name := range stateNames(before, after) {
		at := before.Name + "/" + name
		kind, stored := gather(before, name)
		kindNow, held := gather(after, name)
		if kindNow == "" && len(slices.Concat(stored...)) == 0 {
			continue // a state without elements may disappear
		}
		if kind != kindNow {
			say("%s: kind %q, was %q", at, kindNow, kind)
			continue
		}
		switch kind {
		case "list":
			if !sameBag(slices.Concat(stored...), slices.Concat(held...)) {
				say("%s: other elements than before", at)
			}
			least, most := len(held[0]), len(held[0])
			for _, elements := range held {
				least, most = min(least, len(elements)), max(most, len(elements))
			}
			if before.Parallelism != after.Parallelism && most-least > 1 {
				say("%s: from %d to %d elements in a subtask", at, least, most)
			}
			if before.Parallelism == after.Parallelism && !slices.EqualFunc(stored, held, slices.Equal[[]string]) {
				say("%s: moved although the parallelism is the same", at)
			}
		case "union":
			for i, elements := range held {
				if !sameBag(slices.Concat(stored...), elements) {
					say("%s: subtask %d holds other elements than all had before", at, i)
				}
			}
		case "broadcast":
			for i, entries := range held {
				if !slices.ContainsFunc(stored, func(s []string) bool { return slices.Equal(s, entries) }) {
					say("%s: subtask %d holds what no subtask had", at, i)
				}
			}
		default:
			say("%s: kind %q", at, kind)
		}
	}
}

func stateNames(operators ...Operator) []string {
	names := map[string]bool{}
	for _, o := range operators {
		for _, s := range o.Subtasks {
			for name := range s.OperatorState {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// gather returns the kind of a state and, for each subtask, its elements with
// their bytes, or its entries.
func gather(o Operator, name string) (kind string, perSubtask [][]string) {
	for _, s := range o.Subtasks {
		state, ok := s.OperatorState[name]
		var elements []string
		if ok {
			kind = state.Kind
			for i, e := range state.Elements {
				elements = append(elements, string(e)+" = "+state.Raw[i])
			}
			for _, e := range state.Entries {
				elements = append(elements, string(e))
			}
		}
		perSubtask = append(perSubtask, elements)
	}
	return kind, perSubtask
}

func checkKeyed(before, after Operator, say func(string, ...any)) {
	stored, held := keyedLines(before, nil), keyedLines(after, say)
	if !sameBag(stored, held) {
		say("%s: keyed state or timers differ:\n%s", before.Name, cmp.Diff(sorted(stored), sorted(held)))
	}
	next := 0
	for _, s := range after.Subtasks {
		if len(s.KeyGroups) != 2 {
			continue
		}
		if s.KeyGroups[0] != next {
			say("%s: subtask %d starts at key group %d, not %d", before.Name, s.Index, s.KeyGroups[0], next)
		}
		next = s.KeyGroups[1] + 1
	}
}

// keyedLines turns all keyed state of an operator into lines, and checks that
// each is in its subtask's key groups.
func keyedLines(o Operator, say func(string, ...any)) []string {
	var lines []string
	add := func(s Subtask, group int, what string) {
		lines = append(lines, what)
		if say != nil && (len(s.KeyGroups) != 2 || group < s.KeyGroups[0] || group > s.KeyGroups[1]) {
			say("%s: subtask %d holds key group %d", o.Name, s.Index, group)
		}
	}
	for _, s := range o.Subtasks {
		for name, state := range s.KeyedState {
			for _, e := range state.Entries {
				add(s, e.KeyGroup, fmt.Sprint(name, " ", state.Kind, " ", state.TTL, " ", e))
			}
		}
		for service, timers := range s.Timers {
			for _, t := range timers.Event {
				add(s, t.KeyGroup, fmt.Sprint(service, " event ", t))
			}
			for _, t := range timers.Processing {
				add(s, t.KeyGroup, fmt.Sprint(service, " processing ", t))
			}
		}
	}
	return lines
}

func sameBag(a, b []string) bool { return slices.Equal(sorted(a), sorted(b)) }

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// Loosened removes what differs between two runs with in-flight data, or with a
// clock that advances: the order within keyed lists, and the last access of values
// with time to live.
func Loosened(c Content) Content {
	loose := c
	loose.Operators = slices.Clone(c.Operators)
	for i, o := range loose.Operators {
		o.Subtasks = slices.Clone(o.Subtasks)
		for j, s := range o.Subtasks {
			states := map[string]KeyedState{}
			for name, state := range s.KeyedState {
				state.Entries = slices.Clone(state.Entries)
				for k, e := range state.Entries {
					state.Entries[k].Value = loosenedValue(e.Value, state)
				}
				states[name] = state
			}
			o.Subtasks[j].KeyedState = states
		}
		loose.Operators[i] = o
	}
	return loose
}

func loosenedValue(v Value, state KeyedState) Value {
	if !state.TTL && state.Kind != "list" {
		return v
	}
	decoder := json.NewDecoder(strings.NewReader(string(v)))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		panic("internal error: " + err.Error())
	}
	decoded = withoutTTL(decoded)
	if list, ok := decoded.([]any); ok && state.Kind == "list" {
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return Value(text)
}

func withoutTTL(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["ttl_timestamp"]; ok {
			return withoutTTL(v["value"])
		}
		for name, inner := range v {
			v[name] = withoutTTL(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = withoutTTL(inner)
		}
	}
	return v
}
