package transform

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// namedStates is rawStates in a stream of its own name.
func namedStates(name string, states ...st) *format.OperatorHandle {
	h := rawStates(states...)
	h.Data.(*format.Inline).Name = format.NewText(name)
	return h
}

// TestRescaleRefusesLoss: where two subtasks name one file, Flink's hash map has
// one entry for both, and what is dealt of the second replaces what is dealt of
// the first (spec flink-operator-state B4). spt does not write that. With another
// strategy nothing is lost.
func TestRescaleRefusesLoss(t *testing.T) {
	list := func(elems ...string) *format.OperatorHandle {
		return namedStates(elems[0], st{"s", format.ModeList, elems})
	}
	for _, raw := range []bool{false, true} {
		for name, tt := range map[string]struct {
			alike    bool
			strategy Strategy
			refused  bool
		}{
			"two files":            {false, StrategyFlink, false},
			"one file":             {true, StrategyFlink, true},
			"one file, in turn":    {true, StrategyRoundRobin, false},
			"one file, by bytes":   {true, StrategyBalancedBytes, false},
			"two files, in turn":   {false, StrategyRoundRobin, false},
			"two files, per bytes": {false, StrategyBalancedBytes, false},
		} {
			a, b := list("a", "b", "c"), list("d", "e", "f")
			if tt.alike {
				b.Data = a.Data
			}
			op := operator("op", nil, nil)
			for i, h := range []*format.OperatorHandle{a, b} {
				if raw {
					op.Subtasks[i].Raw = h
				} else {
					op.Subtasks[i].Managed = h
				}
			}
			in := memoryInput(op)
			sp, err := plan(t, in, RescaleOptions{To: 1, Strategy: tt.strategy}).Apply(t.Context())
			if !tt.refused {
				if err != nil {
					t.Errorf("%s, raw %v: %v", name, raw, err)
				}
				continue
			}
			if sp.Savepoint != in.Savepoint || !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "Flink loses 3 elements of it") {
				t.Errorf("%s, raw %v: %v", name, raw, err)
			}
		}
	}
}

// TestRescaleRefusals: what cannot be written for another parallelism is refused
// with its reason, and at the same parallelism left as it is.
func TestRescaleRefusals(t *testing.T) {
	list := func(name string) *format.OperatorHandle {
		return namedStates(name, st{"s", format.ModeList, []string{"a"}})
	}
	with := func(change func(*format.Operator)) *format.Operator {
		op := operator("op", list("1"), list("2"))
		change(op)
		return op
	}
	native := nativeHandle("n", st{"t", format.ModeList, []string{"a"}})
	for name, tt := range map[string]struct {
		op   *format.Operator
		want string
	}{
		"nothing in the way": {with(func(*format.Operator) {}), ""},
		"in-flight input":    {with(func(op *format.Operator) { op.Subtasks[1].Input = []*format.ChannelHandle{{Data: inlineOf("c", "x")}} }), "records in flight"},
		"in-flight output":   {with(func(op *format.Operator) { op.Subtasks[0].Output = []*format.ChannelHandle{{Data: inlineOf("c", "x")}} }), "records in flight"},
		"legacy state":       {with(func(op *format.Operator) { op.Subtasks[1].Legacy = []format.Stream{inlineOf("l", "x")} }), "Flink dropped after 1.3"},
		"two codecs":         {with(func(op *format.Operator) { op.Subtasks[1].Managed = native }), "different encodings"},
	} {
		in := memoryInput(tt.op)
		for _, to := range []int32{1, 3} {
			sp, err := plan(t, in, RescaleOptions{To: to}).Apply(t.Context())
			if tt.want == "" && (err != nil || sp.Operators[0].Parallelism != to) {
				t.Errorf("%s to %d: %v", name, to, err)
			}
			if tt.want != "" && (sp.Savepoint != in.Savepoint || !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s to %d: %v", name, to, err)
			}
		}
		same, err := plan(t, in, RescaleOptions{To: 2}).Apply(t.Context())
		if err != nil || same.Operators[0] != tt.op {
			t.Errorf("%s to 2: %v", name, err)
		}
	}
}

// TestRescaleEmptySubtasks: a new subtask without elements has no handle, but for
// subtask 0, which keeps the states; a broadcast state is with those that have a
// copy; union state is with subtask 0 alone.
func TestRescaleEmptySubtasks(t *testing.T) {
	in := memoryInput(operator("op",
		namedStates("1", st{"l", format.ModeList, []string{"a"}}, st{"u", format.ModeUnion, nil}, st{"none", format.ModeList, nil}),
		namedStates("2", st{"u", format.ModeUnion, []string{"y"}})))
	sp, err := plan(t, in, RescaleOptions{To: 3}).Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sp.Operators[0].Subtasks {
		text := "-"
		if s.Managed != nil {
			text = ""
			for _, st := range s.Managed.States {
				text += st.Name.String() + "=" + strings.Join(elements(t, in, s.Managed, st.Name.String()), "") + " "
			}
		}
		got = append(got, text)
	}
	if want := []string{"l=a u=y none= ", "-", "-"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
