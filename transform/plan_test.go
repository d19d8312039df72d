package transform

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

func plan(t *testing.T, in format.View, o RescaleOptions) *RescalePlan {
	t.Helper()
	p, err := PlanRescale(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// picture is who gets what of a state: "0[0..1] 1[2]" for each new subtask.
func picture(st *StatePlan) (all []string) {
	for _, sub := range st.Subtasks {
		var parts []string
		for _, s := range sub.Sources {
			parts = append(parts, fmt.Sprintf("%d[%d+%d]", s.Old, s.First, s.Count))
		}
		all = append(all, strings.Join(parts, " "))
	}
	return all
}

func chars(s string) (all []string) {
	for _, r := range s {
		all = append(all, string(r))
	}
	return all
}

// TestTutorials: the three examples that tutorials teach.
func TestTutorials(t *testing.T) {
	two := sptest.View(sptest.Operator("op", nativeHandle("a", st{"s", format.ModeList, chars("abc")}), nativeHandle("b", st{"s", format.ModeList, chars("def")})))
	three := sptest.View(sptest.Operator("op", nativeHandle("a", st{"s", format.ModeList, chars("ab")}), nativeHandle("b", st{"s", format.ModeList, chars("cd")}), nativeHandle("c", st{"s", format.ModeList, chars("ef")})))
	for _, c := range []struct {
		in       format.View
		to       int32
		strategy Strategy
		want     []string
	}{
		{two, 3, StrategyRoundRobin, []string{"ad", "be", "cf"}}, // i % p
		{two, 3, StrategyFlink, []string{"ab", "cd", "ef"}},
		{three, 4, StrategyFlink, []string{"ab", "cd", "e", "f"}}, // contiguous blocks
		{three, 4, StrategyRoundRobin, []string{"ae", "bf", "c", "d"}},
		{three, 4, StrategyBalancedBytes, []string{"ab", "c", "de", "f"}},
		{two, 2, StrategyFlink, []string{"abc", "def"}},
		{two, 2, StrategyRoundRobin, []string{"ace", "bdf"}},
		{two, 1, StrategyFlink, []string{"abcdef"}},
		{two, 7, StrategyFlink, []string{"a", "b", "c", "d", "e", "f", ""}},
	} {
		p := plan(t, c.in, RescaleOptions{To: c.to, Strategy: c.strategy})
		sp, err := p.Apply(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var planned, written []string
		for i := range c.to {
			var own []string
			if h := sp.Operators[0].Subtasks[i].Managed; h != nil {
				own = sptest.Elements(t, sp, h, "s")
			}
			got := handed(t, c.in, c.in.Operators[0], p.Operators[0].States[0], int(i))
			planned, written = append(planned, letters(got)), append(written, letters(own))
		}
		if !slices.Equal(planned, c.want) || !slices.Equal(written, c.want) {
			t.Errorf("to %d by %s: planned %q, wrote %q, not %q", c.to, c.strategy, planned, written, c.want)
		}
	}
}

// letters takes the msgpack heads off.
func letters(all []string) (s string) {
	for _, e := range all {
		s += e[1:]
	}
	return s
}

// TestTwentyElements: the exercise of 20 elements from 2 to 4, list and union.
func TestTwentyElements(t *testing.T) {
	for strategy, want := range map[Strategy][]string{
		StrategyFlink:         {"0[0+5]", "0[5+5]", "1[0+5]", "1[5+5]"},
		StrategyBalancedBytes: {"0[0+5]", "0[5+5]", "1[0+5]", "1[5+5]"},
		StrategyRoundRobin: {
			"0[0+1] 0[4+1] 0[8+1] 1[2+1] 1[6+1]", "0[1+1] 0[5+1] 0[9+1] 1[3+1] 1[7+1]",
			"0[2+1] 0[6+1] 1[0+1] 1[4+1] 1[8+1]", "0[3+1] 0[7+1] 1[1+1] 1[5+1] 1[9+1]",
		},
	} {
		p, err := Simulate(t.Context(), 20, 2, 4, strategy)
		if err != nil {
			t.Fatal(err)
		}
		op := p.Operators[0]
		all := "0[0+10] 1[0+10]"
		if d := cmp.Diff(want, picture(op.States[0])); d != "" || op.States[0].Mode != format.ModeList {
			t.Errorf("%s:\n%s", strategy, d)
		}
		if d := cmp.Diff([]string{all, all, all, all}, picture(op.States[1])); d != "" || op.States[1].Mode != format.ModeUnion || op.States[1].OrderVaries {
			t.Errorf("%s, union:\n%s", strategy, d)
		}
		if op.Order != "" || op.PlaceOrder {
			t.Errorf("the order of a simulation is %q", op.Order)
		}
	}
}

// TestSimulateLarge: a simulation takes no memory for its elements.
func TestSimulateLarge(t *testing.T) {
	p, err := Simulate(t.Context(), 1e12, 100, 200, StrategyFlink)
	if err != nil {
		t.Fatal(err)
	}
	for i, sub := range p.Operators[0].States[0].Subtasks {
		if sub.Elements != 5e9 || len(sub.Sources) != 1 {
			t.Fatalf("subtask %d gets %+v", i, sub)
		}
	}
	if got := p.Operators[0].States[1].Subtasks[199]; got.Elements != 1e12 || got.Bytes != 1e12 {
		t.Errorf("of union state: %d elements, %d bytes", got.Elements, got.Bytes)
	}
	if _, err := Simulate(t.Context(), -1, 1, 2, StrategyFlink); err == nil {
		t.Error("-1 elements")
	}
	for _, p := range [][2]int32{{0, 1}, {1, 0}, {1, format.MaxKeyGroups + 1}, {-1, 1}} {
		if _, err := Simulate(t.Context(), 10, p[0], p[1], StrategyFlink); err == nil {
			t.Errorf("from %d to %d", p[0], p[1])
		}
	}
}

// TestPlanProperties: whatever the strategy, of a list every element goes to
// one subtask, bytes add up, and blocks are as even as the strategy says.
func TestPlanProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		from, to := int32(1+rnd.IntN(6)), int32(1+rnd.IntN(9))
		var handles []*format.OperatorHandle
		count := map[string]int64{}
		var largest int64
		total := map[string]int64{}
		for i := range from {
			if rnd.IntN(5) == 0 {
				handles = append(handles, nil)
				continue
			}
			var states []st
			for _, name := range []string{"alpha", "zeta", "pending"} {
				s := st{Name: name, Mode: format.ModeList}
				for range rnd.IntN(12) {
					s.Elements = append(s.Elements, strings.Repeat("x", rnd.IntN(30)))
					n := int64(1 + len(s.Elements[len(s.Elements)-1]))
					largest = max(largest, n)
					total[name] += n
					count[name]++
				}
				states = append(states, s)
			}
			states = append(states, st{"union", format.ModeUnion, chars("uvw")[:rnd.IntN(4)]})
			handles = append(handles, nativeHandle(fmt.Sprint("h", i), states...))
		}
		in := sptest.View(sptest.Operator("op", handles...))
		for _, strategy := range []Strategy{StrategyFlink, StrategyRoundRobin, StrategyBalancedBytes} {
			p := plan(t, in, RescaleOptions{To: to, Strategy: strategy})
			for _, s := range p.Operators[0].States {
				if s.Mode != format.ModeList {
					continue
				}
				if s.Elements != count[s.Name] || s.Bytes != total[s.Name] || len(s.Subtasks) != int(to) {
					t.Fatalf("%s: %d elements of %d bytes, not %d of %d", s.Name, s.Elements, s.Bytes, count[s.Name], total[s.Name])
				}
				seen := map[ElementSource]int{}
				var bytes int64
				lo, hi := int64(1<<62), int64(0)
				for _, sub := range s.Subtasks {
					bytes += sub.Bytes
					lo, hi = min(lo, sub.Elements), max(hi, sub.Elements)
					var mine, size int64
					for _, src := range sub.Sources {
						mine += src.Count
						for k := range src.Count {
							seen[ElementSource{src.Old, src.First + k, 1}]++
						}
						size += src.Count
					}
					if mine != sub.Elements {
						t.Fatalf("%d elements in the sources, %d said", mine, sub.Elements)
					}
					if strategy == StrategyBalancedBytes && sub.Bytes > s.Bytes/int64(to)+1+largest {
						t.Errorf("balanced: %d of %d bytes for one of %d subtasks; the largest element has %d", sub.Bytes, s.Bytes, to, largest)
					}
				}
				for e, n := range seen {
					if n != 1 {
						t.Errorf("%s of %s: element %+v comes %d times", strategy, s.Name, e, n)
					}
				}
				if int64(len(seen)) != s.Elements || bytes != s.Bytes {
					t.Errorf("%s of %s: %d elements of %d, %d bytes of %d", strategy, s.Name, len(seen), s.Elements, bytes, s.Bytes)
				}
				if strategy != StrategyBalancedBytes && hi-lo > 1 && !(strategy == StrategyFlink && from == to) {
					t.Errorf("%s of %s: between %d and %d elements", strategy, s.Name, lo, hi)
				}
			}
		}
	}
}

// TestPartOf: positions are claims of a file.
func TestPartOf(t *testing.T) {
	const big = 1<<63 - 1
	for _, c := range [][4]int64{
		{0, 10, 3, 0}, {3, 10, 3, 0}, {4, 10, 3, 1}, {6, 10, 3, 1}, {7, 10, 3, 2}, {9, 10, 3, 2},
		{10, 10, 3, 2}, {11, 10, 3, 2}, {-1, 10, 3, 0}, {5, 0, 3, 0}, {0, 0, 1, 0}, {5, -1, 3, 0},
		{big - 1, big, 32768, 32767}, {big / 2, big, 2, 0}, {big/2 + 1, big, 2, 1}, {-big, big, 7, 0},
	} {
		if got := partOf(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("position %d of %d in %d parts: %d, not %d", c[0], c[1], c[2], got, c[3])
		}
	}
}

// TestPlanGuards: who is left alone, and what cannot be.
func TestPlanGuards(t *testing.T) {
	h := func(name string) *format.OperatorHandle {
		return nativeHandle(name, st{"s", format.ModeList, chars("abcd")})
	}
	one, two, gone := sptest.Operator("one", h("a")), sptest.Operator("two", h("b"), h("c")), sptest.Operator("gone")
	gone.Parallelism, gone.Finished = 5, true
	two.MaxParallelism = 6
	in := sptest.View(one, two, gone)

	p := plan(t, in, RescaleOptions{To: 3, From: 2, Operators: format.ByID(one.ID, two.ID)})
	var left []string
	for _, op := range p.Operators {
		left = append(left, op.Left)
	}
	if d := cmp.Diff([]string{"it has parallelism 1", "", "not selected"}, left); d != "" || p.Rescaled() != 1 {
		t.Errorf("%d rescaled; left: %s", p.Rescaled(), d)
	}
	sp, err := p.Apply(t.Context())
	if err != nil || sp.Operators[0] != one || sp.Operators[2] != gone || sp.Operators[1].Parallelism != 3 || two.Parallelism != 2 {
		t.Errorf("%v: %+v", err, sp)
	}
	// Nothing to do gives the savepoint itself.
	p = plan(t, in, RescaleOptions{To: 3, From: 9})
	if sp, err := p.Apply(t.Context()); err != nil || sp.Savepoint != in.Savepoint || p.Rescaled() != 0 {
		t.Errorf("%v: another savepoint", err)
	}
	// A finished operator is only renumbered.
	p = plan(t, in, RescaleOptions{To: 3})
	if sp, err = p.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g := sp.Operators[2]; !g.Finished || g.Parallelism != 3 || len(g.Subtasks) != 0 || gone.Parallelism != 5 {
		t.Errorf("finished: %+v", g)
	}

	var tooMany *ParallelismError
	_, err = PlanRescale(t.Context(), in, RescaleOptions{To: 7})
	if !errors.As(err, &tooMany) || tooMany.Operator != "two" || tooMany.To != 7 || tooMany.Max != 6 || tooMany.Remedies() == nil || !strings.Contains(err.Error(), `operator "two" cannot run at parallelism 7: its max parallelism is 6`) {
		t.Errorf("beyond max parallelism: %v", err)
	}
	if _, err := PlanRescale(t.Context(), in, RescaleOptions{To: 7, Operators: format.ByID(one.ID)}); err != nil {
		t.Errorf("an operator that may: %v", err)
	}
	for _, to := range []int32{0, -1, format.MaxKeyGroups + 1} {
		if _, err := PlanRescale(t.Context(), in, RescaleOptions{To: to}); !errors.Is(err, assign.ErrParallelism) {
			t.Errorf("to %d: %v", to, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := PlanRescale(ctx, in, RescaleOptions{To: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestPlanBrokenOperators: what a damaged file may claim is an error, never a
// crash.
func TestPlanBrokenOperators(t *testing.T) {
	h := nativeHandle("h", st{"s", format.ModeList, chars("abcd")})
	for name, change := range map[string]func(*format.Operator){
		"subtask 9 of an operator of parallelism 1": func(op *format.Operator) { op.Subtasks[0].Index = 9 },
		"subtask -1 of an operator":                 func(op *format.Operator) { op.Subtasks[0].Index = -1 },
		"a parallelism of 0":                        func(op *format.Operator) { op.Parallelism = 0 },
		"a parallelism of -3":                       func(op *format.Operator) { op.Parallelism = -3 },
		"a parallelism of 1073741824":               func(op *format.Operator) { op.Parallelism = 1 << 30 },
	} {
		op := sptest.Operator("op", h)
		change(op)
		if _, err := PlanRescale(t.Context(), sptest.View(op), RescaleOptions{To: 2}); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, offsets := range []format.OffsetSlice{{-5, 3, 4}, {3, 2, 1}, {1 << 62, -1 << 62, 0}, {-1 << 63, 1<<63 - 1, 5}, {0, 1 << 40, 2}} {
		for _, strategy := range []Strategy{StrategyFlink, StrategyRoundRobin, StrategyBalancedBytes} {
			broken := nativeHandle("h", st{"s", format.ModeList, chars("abc")})
			broken.States[0].Offsets = offsets
			p := plan(t, sptest.View(sptest.Operator("op", broken, h)), RescaleOptions{To: 3, Strategy: strategy})
			var n int64
			for _, sub := range p.Operators[0].States[0].Subtasks {
				n += sub.Elements
			}
			if n != 7 {
				t.Errorf("offsets %v by %s: %d elements", offsets, strategy, n)
			}
		}
	}
}

// TestPlanMissingAndFinishedSubtasks: they contribute nothing, and the new
// subtasks are all there.
func TestPlanMissingAndFinishedSubtasks(t *testing.T) {
	op := sptest.Operator("op",
		nativeHandle("a", st{"s", format.ModeList, chars("ab")}, st{"u", format.ModeUnion, chars("x")}, st{"m", format.ModeBroadcast, nil}),
		nil,
		nativeHandle("c", st{"s", format.ModeList, chars("cdef")}, st{"u", format.ModeUnion, chars("yz")}, st{"m", format.ModeBroadcast, nil}))
	for _, i := range []int{0, 2} { // a map of one entry
		h := op.Subtasks[i].Managed
		p := append(sptest.Bytes(t, sptest.Memory{}, h.Data), 0x81, 0xa1, 'k', byte(i))
		h.States[2].Offsets = format.OffsetSlice{int64(len(p)) - 4}
		h.Data = &format.Inline{Name: h.Data.(*format.Inline).Name, Data: format.NewBytes(p)}
	}
	op.Subtasks[1].Finished = true
	op.Parallelism = 4 // subtask 3 is missing
	in := sptest.View(op)
	p := plan(t, in, RescaleOptions{To: 3})
	want := map[string][]string{"s": {"0[0+2]", "2[0+2]", "2[2+2]"}, "u": {"0[0+1] 2[0+2]", "0[0+1] 2[0+2]", "0[0+1] 2[0+2]"}, "m": {"0[0+1]", "2[0+1]", "0[0+1]"}}
	for _, s := range p.Operators[0].States {
		if d := cmp.Diff(want[s.Name], picture(s)); d != "" {
			t.Errorf("%s:\n%s", s.Name, d)
		}
	}
	sp, err := p.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := sp
	for i, s := range sp.Operators[0].Subtasks {
		if s.Finished || s.Index != int32(i) {
			t.Errorf("subtask %d: %+v", i, s)
		}
		for _, name := range []string{"s", "m"} {
			at := slices.IndexFunc(p.Operators[0].States, func(s *StatePlan) bool { return s.Name == name })
			if got, want := sptest.Elements(t, out, s.Managed, name), handed(t, in, op, p.Operators[0].States[at], i); !slices.Equal(got, want) {
				t.Errorf("subtask %d holds of %s %q, not %q", i, name, got, want)
			}
		}
	}
}

// TestPlanOrder: what the order of blocks depends on is said.
func TestPlanOrder(t *testing.T) {
	made := func(streams ...format.Stream) format.View {
		op := sptest.Operator("op")
		for i, s := range streams {
			h := &format.OperatorHandle{Codec: format.CodecFlink, Data: s, States: []format.NamedState{{Name: format.NewText("u"), Mode: format.ModeUnion, Offsets: format.OffsetSlice{10, 20}}}}
			op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: h})
		}
		op.Parallelism = int32(len(streams))
		return sptest.View(op)
	}
	file := func(name string, relative bool) format.Stream {
		return &format.File{Path: format.NewText(name), Relative: relative, Length: 30}
	}
	segment := func(name string) format.Stream {
		return &format.Segment{Path: format.NewText("file:/f"), Length: 30, LogicalID: format.NewText(name)}
	}
	for name, c := range map[string]struct {
		in               format.View
		undefined, place bool
	}{
		"relative": {made(file("a", true), file("b", true)), false, true},
		"absolute": {made(file("file:/a", false), file("file:/b", false)), false, false},
		"segments": {made(segment("a"), segment("b")), true, false},
		"one":      {made(segment("a")), false, false},
	} {
		op := plan(t, c.in, RescaleOptions{To: 3, At: "s3://bucket/sp"}).Operators[0]
		if (op.Order != "") != c.undefined || op.PlaceOrder != c.place {
			t.Errorf("%s: order %q, by place %t", name, op.Order, op.PlaceOrder)
		}
	}
	// Of relative files, the place decides; the plan says which it took.
	in := made(file("a", true), file("b", true), file("c", true), file("d", true), file("e", true))
	orders := map[string]string{}
	for _, at := range []string{"s3://bucket/one", "hdfs://nn:8020/two", "file:/three/four", "file:/five"} {
		p := plan(t, in, RescaleOptions{To: 1, At: at})
		if p.At != at {
			t.Errorf("at %q, not %q", p.At, at)
		}
		orders[picture(p.Operators[0].States[0])[0]] = at
	}
	if len(orders) < 2 {
		t.Errorf("one order everywhere: %v", orders)
	}
	if p := plan(t, in, RescaleOptions{To: 1}); p.At != in.Location {
		t.Errorf("at %q without At", p.At)
	}
}

// TestPlanKeyedKinds: every kind of keyed handle is planned; nothing of it is
// read.
func TestPlanKeyedKinds(t *testing.T) {
	kinds := map[string]func(r format.KeyGroupRange) format.KeyedHandle{
		"full": func(r format.KeyGroupRange) format.KeyedHandle {
			return &format.KeyGroups{Codec: format.CodecFlink, Range: r, Offsets: counting{100, int64(r.Count)}}
		},
		"savepoint": func(r format.KeyGroupRange) format.KeyedHandle {
			return &format.KeyGroups{Codec: format.CodecFlink, Range: r, Offsets: counting{100, int64(r.Count)}, Savepoint: true}
		},
		"incremental": func(r format.KeyGroupRange) format.KeyedHandle { return &format.Incremental{Range: r} },
		"changelog":   func(r format.KeyGroupRange) format.KeyedHandle { return &format.Changelog{Range: r} },
	}
	for name, make := range kinds {
		for _, raw := range []bool{false, true} {
			op := sptest.Operator("op", nil, nil)
			for i, s := range op.Subtasks {
				h := make(format.KeyGroupRange{First: int32(64 * i), Count: 64})
				if s.ManagedKeyed = h; raw {
					s.ManagedKeyed, s.RawKeyed = nil, h
				}
			}
			p := plan(t, sptest.View(op), RescaleOptions{To: 3})
			if k := p.Operators[0].Keyed; len(k) != 1 || k[0].Raw != raw {
				t.Fatalf("%s: %+v", name, k)
			}
			var got []string
			for _, d := range p.Operators[0].Keyed[0].Subtasks {
				s := d.Range.String() + ":"
				for _, piece := range d.Pieces {
					s += fmt.Sprintf(" %d[%s of %s]", piece.Old, piece.Groups, piece.Handle.KeyGroups())
				}
				got = append(got, s)
			}
			want := []string{"0–42: 0[0–42 of 0–42]", "43–85: 0[43–63 of 43–63] 1[64–85 of 64–85]", "86–127: 1[86–127 of 86–127]"}
			if name == "incremental" {
				want = []string{"0–42: 0[0–42 of 0–63]", "43–85: 0[43–63 of 0–63] 1[64–85 of 64–127]", "86–127: 1[86–127 of 64–127]"}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s, raw %t:\n%s", name, raw, d)
			}
		}
	}
}

// TestPlanRawAndInFlight: raw operator state is planned and written like
// managed state; in-flight data is reported, and refused in Apply.
func TestPlanRawAndInFlight(t *testing.T) {
	rawHandle := func(name, elems string) *format.OperatorHandle {
		h := &format.OperatorHandle{Codec: format.CodecRaw, Data: &format.Inline{Name: format.NewText(name), Data: format.NewBytes([]byte(elems))}}
		h.States = []format.NamedState{{Name: format.NewText("_default_"), Mode: format.ModeList, Offsets: counting{0, int64(len(elems))}}}
		return h
	}
	op := sptest.Operator("op", nativeHandle("a", st{"s", format.ModeList, chars("ab")}), nil)
	op.Subtasks[0].Raw, op.Subtasks[1].Raw = rawHandle("ra", "wxyz"), rawHandle("rb", "12")
	in := sptest.View(op)
	p := plan(t, in, RescaleOptions{To: 3})
	states := p.Operators[0].States
	if len(states) != 2 || states[0].Raw || !states[1].Raw || states[1].Name != "_default_" || states[1].Elements != 6 || states[1].Bytes != 6 {
		t.Fatalf("%+v", states)
	}
	if d := cmp.Diff([]string{"0[0+2]", "0[2+2]", "1[0+2]"}, picture(states[1])); d != "" {
		t.Error(d)
	}
	sp, err := p.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"wx", "yz", "12"} {
		s := sp.Operators[0].Subtasks[i]
		if s.Raw.Codec != format.CodecRaw || string(sptest.Bytes(t, in.Source, s.Raw.Data)) != want || !slices.Equal(sptest.OffsetsOf(t, s.Raw.States[0].Offsets), []int64{0, 1}) {
			t.Errorf("raw state of subtask %d: %q", i, sptest.Bytes(t, in.Source, s.Raw.Data))
		}
		if i == 2 && s.Managed != nil {
			t.Errorf("subtask %d got %+v", i, s.Managed)
		}
	}
	op.Subtasks[1].Input = []*format.ChannelHandle{{}}
	p = plan(t, in, RescaleOptions{To: 3})
	if !p.Operators[0].InFlight {
		t.Error("in-flight data is not reported")
	}
	if sp, err := p.Apply(t.Context()); sp.Savepoint != in.Savepoint || !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), `operator "op": it has in-flight data`) {
		t.Errorf("%v", err)
	}
	if sp, err := plan(t, in, RescaleOptions{To: 2}).Apply(t.Context()); err != nil || sp.Savepoint != in.Savepoint {
		t.Errorf("at its own parallelism: %v", err)
	}
	op.Subtasks[1].Input = nil
	op.Subtasks[1].Legacy = []format.Stream{&format.Inline{}}
	if _, err := plan(t, in, RescaleOptions{To: 3}).Apply(t.Context()); !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "legacy operator state") {
		t.Errorf("legacy: %v", err)
	}
}

// TestPlanWholeCorpus: every snapshot there is has a plan, or a parallelism
// that is too high; none makes planning or applying fail otherwise.
func TestPlanWholeCorpus(t *testing.T) {
	var plans, written, refused, tooHigh int
	for _, dir := range testenv.Snapshots(t) {
		snap := sptest.Open(t, dir)
		for _, to := range []int32{1, 3} {
			p, err := PlanRescale(t.Context(), snap.View(), RescaleOptions{To: to})
			var tooMany *ParallelismError
			if errors.As(err, &tooMany) {
				if !slices.ContainsFunc(snap.Operators, func(op *format.Operator) bool { return op.MaxParallelism < to }) {
					t.Errorf("%s to %d: %v", dir, to, err)
				}
				tooHigh++
				continue
			}
			if err != nil {
				t.Errorf("%s to %d: %v", dir, to, err)
				continue
			}
			plans++
			_, err = p.Apply(t.Context())
			switch {
			case err == nil:
				written++
			case errors.Is(err, format.ErrUnsupported), errors.Is(err, format.ErrMissing):
				refused++
			default:
				t.Errorf("%s to %d: %v", dir, to, err)
			}
		}
	}
	t.Logf("%d plans; %d applied, %d refused", plans, written, refused)
	testenv.Found(t, "plans", plans+tooHigh, 2*testenv.Manifest(t).Snapshots)
	testenv.Found(t, "plans applied or refused", written+refused, plans)
}
