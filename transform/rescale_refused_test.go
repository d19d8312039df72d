package transform

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/internal/sptest"
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
			op := sptest.Operator("op", nil, nil)
			for i, h := range []*format.OperatorHandle{a, b} {
				if raw {
					op.Subtasks[i].Raw = h
				} else {
					op.Subtasks[i].Managed = h
				}
			}
			in := sptest.View(op)
			sp, err := plan(t, in, RescaleOptions{To: 1, Strategy: tt.strategy}).Apply(t.Context())
			if !tt.refused {
				if err != nil {
					t.Errorf("%s, raw %v: %v", name, raw, err)
				}
				continue
			}
			if sp.Savepoint != in.Savepoint || !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "Flink loses 3 elements") {
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
		op := sptest.Operator("op", list("1"), list("2"))
		change(op)
		return op
	}
	native := nativeHandle("n", st{"t", format.ModeList, []string{"a"}})
	for name, tt := range map[string]struct {
		op   *format.Operator
		want string
	}{
		"nothing in the way": {with(func(*format.Operator) {}), ""},
		"in-flight input": {with(func(op *format.Operator) {
			op.Subtasks[1].Input = []*format.ChannelHandle{{Data: sptest.Inline("c", "x")}}
		}), "in-flight data"},
		"in-flight output": {with(func(op *format.Operator) {
			op.Subtasks[0].Output = []*format.ChannelHandle{{Data: sptest.Inline("c", "x")}}
		}), "in-flight data"},
		"legacy state": {with(func(op *format.Operator) { op.Subtasks[1].Legacy = []format.Stream{sptest.Inline("l", "x")} }), "legacy operator state"},
		"two codecs":   {with(func(op *format.Operator) { op.Subtasks[1].Managed = native }), "different encodings"},
	} {
		in := sptest.View(tt.op)
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
	in := sptest.View(sptest.Operator("op",
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
				text += st.Name.String() + "=" + strings.Join(sptest.Elements(t, in, s.Managed, st.Name.String()), "") + " "
			}
		}
		got = append(got, text)
	}
	if want := []string{"l=a u=y none= ", "-", "-"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRescaleKeepsEmptyStates: states without any element stay registered, with
// subtask 0.
func TestRescaleKeepsEmptyStates(t *testing.T) {
	in := sptest.View(sptest.Operator("op", namedStates("1", st{"l", format.ModeList, nil}), nil))
	sp, err := plan(t, in, RescaleOptions{To: 3}).Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sp.Operators[0].Subtasks {
		if (s.Managed != nil) != (i == 0) || i == 0 && (len(s.Managed.States) != 1 || s.Managed.States[0].Offsets.Len() != 0) {
			t.Errorf("subtask %d: %+v", i, s.Managed)
		}
	}
}

// TestRescaleLeavesAlone: operators that were not selected, or are of another
// parallelism, stay as they are, with every strategy.
func TestRescaleLeavesAlone(t *testing.T) {
	op := sptest.Operator("op", namedStates("1", st{"l", format.ModeList, []string{"a", "b", "c"}}), namedStates("2", st{"l", format.ModeList, []string{"d"}}))
	for _, strategy := range []Strategy{StrategyFlink, StrategyRoundRobin, StrategyBalancedBytes} {
		for name, o := range map[string]RescaleOptions{
			"not selected":        {To: 2, Strategy: strategy, Operators: format.ByID()},
			"another parallelism": {To: 2, Strategy: strategy, From: 3},
			"another, and more":   {To: 4, Strategy: strategy, From: 3},
		} {
			sp, err := plan(t, sptest.View(op), o).Apply(t.Context())
			if err != nil || sp.Operators[0] != op {
				t.Errorf("%s, %s: %v", strategy, name, err)
			}
		}
		// At an unchanged parallelism only Flink's own strategy changes nothing.
		sp, err := plan(t, sptest.View(op), RescaleOptions{To: 2, From: 2, Strategy: strategy}).Apply(t.Context())
		if err != nil || (sp.Operators[0] == op) != (strategy == StrategyFlink) {
			t.Errorf("%s at the same parallelism: %v", strategy, err)
		}
	}
}

// says is a codec that describes the states of some handles in another way.
type says struct {
	format.OperatorCodec
	of map[*format.OperatorHandle]func(*format.StateMeta)
}

func (c says) Describe(ctx context.Context, src format.Source, h *format.OperatorHandle) ([]format.StateMeta, error) {
	metas, err := c.OperatorCodec.Describe(ctx, src, h)
	for i := range metas {
		if change := c.of[h]; change != nil {
			change(&metas[i])
		}
	}
	return metas, err
}

// TestRescaleOfOtherDescriptions: elements that subtasks describe differently, or
// whose streams have other encodings, cannot share a stream.
func TestRescaleOfOtherDescriptions(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*format.StateMeta)
		refused bool
	}{
		"the same":         {nil, false},
		"other types":      {func(m *format.StateMeta) { m.Envelope = []byte("other") }, true},
		"another encoding": {func(m *format.StateMeta) { m.Encoding += "\x01" }, true},
	} {
		a, b := namedStates("1", st{"l", format.ModeList, []string{"a"}}), namedStates("2", st{"l", format.ModeList, []string{"b"}})
		in := sptest.View(sptest.Operator("op", a, b))
		raw, err := in.Codec(format.CodecRaw)
		if err != nil {
			t.Fatal(err)
		}
		in.Codecs = sptest.CodecsFunc(func(format.CodecID) (format.OperatorCodec, error) {
			return says{raw, map[*format.OperatorHandle]func(*format.StateMeta){b: tt.change}}, nil
		})
		_, err = plan(t, in, RescaleOptions{To: 1}).Apply(t.Context())
		if (err != nil) != tt.refused || tt.refused && (!errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), `its subtasks have different serializer snapshots of state "l"`)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRescaleLimits: a parallelism is 1 to 32768, and at most an operator's max
// parallelism.
func TestRescaleLimits(t *testing.T) {
	in := sptest.View(sptest.Operator("op", nil))
	for to, ok := range map[int32]bool{-1: false, 0: false, 1: true, 128: true, 129: false, 32768: false, 32769: false} {
		_, err := PlanRescale(t.Context(), in, RescaleOptions{To: to})
		var limit *ParallelismError
		switch {
		case ok != (err == nil):
			t.Errorf("%d: %v", to, err)
		case !ok && to > 0 && to <= format.MaxKeyGroups && !errors.As(err, &limit):
			t.Errorf("%d: %v", to, err)
		case !ok && (to < 1 || to > format.MaxKeyGroups) && !errors.Is(err, assign.ErrParallelism):
			t.Errorf("%d: %v", to, err)
		}
	}
	for index, ok := range map[int32]bool{-1: false, 0: true, 1: false} {
		op := sptest.Operator("op", nil)
		op.Subtasks[0].Index = index
		if _, err := PlanRescale(t.Context(), sptest.View(op), RescaleOptions{To: 2}); (err == nil) != ok || !ok && !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("subtask %d of one: %v", index, err)
		}
	}
}

// A raw broadcast state without a map is registered nowhere: nothing is left of a
// handle that has no other, which is no failure.
func TestRescaleEmptyBroadcast(t *testing.T) {
	op := sptest.Operator("x", nil)
	op.Subtasks = []*format.Subtask{{Raw: &format.OperatorHandle{
		Codec: format.CodecRaw, Data: &format.Inline{Name: format.NewText("n"), Data: format.NewBytes([]byte("abc"))},
		States: []format.NamedState{{Name: format.NewText("s"), Mode: format.ModeBroadcast, Offsets: format.OffsetSlice{}}},
	}}}
	p, err := PlanRescale(t.Context(), sptest.View(op), RescaleOptions{To: 3})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Savepoint.Operators[0]; got.Parallelism != 3 {
		t.Errorf("parallelism %d", got.Parallelism)
	}
}

// TestRescaleUnnamedElements: a handle without states whose stream holds elements
// is refused: they would be left out of what is written.
func TestRescaleUnnamedElements(t *testing.T) {
	in := sptest.Open(t, "../testdata/savepoints/flink-1.20-operator/savepoint").View()
	emptied := 0
	for _, op := range in.Operators {
		for _, sub := range op.Subtasks {
			h := sub.Managed
			if h == nil || len(h.States) != 1 || h.States[0].Offsets.Len() == 0 {
				continue
			}
			states := h.States
			h.States = nil
			out, err := plan(t, in, RescaleOptions{To: 3}).Apply(t.Context())
			if !errors.Is(err, format.ErrCorrupt) || out.Savepoint != in.Savepoint {
				t.Errorf("%s, subtask %d: %v", op.Label(), sub.Index, err)
			}
			h.States = states
			emptied++
		}
	}
	if emptied == 0 {
		t.Fatal("no handle with one state")
	}
}

// TestRescaleKeyGroupsOutside: keyed state of key groups that the operator does not
// have is refused: no new subtask would be given it.
func TestRescaleKeyGroupsOutside(t *testing.T) {
	for _, path := range []string{"flink-1.20-keyed-rocksdb", "flink-1.20-keyed-native"} {
		in := sptest.Open(t, "../testdata/savepoints/"+path+"/savepoint").View()
		moved := 0
		for _, op := range in.Operators {
			for _, sub := range op.Subtasks {
				h, ok := sub.ManagedKeyed.(*format.KeyGroups)
				if !ok {
					continue
				}
				was := h.Range.First
				for _, first := range []int32{-1 - h.Range.Count, op.MaxParallelism} {
					h.Range.First = first
					out, err := plan(t, in, RescaleOptions{To: 3}).Apply(t.Context())
					if !errors.Is(err, format.ErrCorrupt) || out.Savepoint != in.Savepoint {
						t.Errorf("%s, %s, subtask %d, from %d: %v", path, op.Label(), sub.Index, first, err)
					}
					moved++
				}
				h.Range.First = was
			}
		}
		if moved == 0 {
			t.Fatalf("%s: no keyed state", path)
		}
	}
}
