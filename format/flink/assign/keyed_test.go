package assign_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
)

func groups(first, last int32) format.KeyGroupRange {
	return format.KeyGroupRange{First: first, Count: last - first + 1}
}

// full is a full handle whose offset for key group g is 100*g.
func full(first, last int32) *format.KeyGroups {
	h := &format.KeyGroups{Range: groups(first, last), Data: streamOf("relative:x"), HandleID: format.NewText("id"), Wire: "w"}
	var o format.OffsetSlice
	for g := first; g <= last; g++ {
		o = append(o, 100*int64(g))
	}
	h.Offsets = o
	return h
}

// keyedPlan writes a plan as "0-42: old0 0-42, old1 …" per subtask.
func keyedPlan(t *testing.T, old []format.KeyedHandle, to, maxP int32) []string {
	t.Helper()
	plan, err := assign.Keyed(old, int32(len(old)), to, maxP)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, sub := range plan {
		var pieces []string
		for _, p := range sub.Pieces {
			pieces = append(pieces, fmt.Sprintf("h%d %s", p.Old, p.Groups))
		}
		out = append(out, fmt.Sprintf("%s: %s", sub.Range, strings.Join(pieces, ", ")))
	}
	return out
}

func TestKeyedRanges(t *testing.T) {
	two := []format.KeyedHandle{full(0, 63), full(64, 127)}
	for _, c := range []struct {
		old  []format.KeyedHandle
		to   int32
		maxP int32
		want []string
	}{
		{two, 3, 128, []string{"0–42: h0 0–42", "43–85: h0 43–63, h1 64–85", "86–127: h1 86–127"}},
		{two, 1, 128, []string{"0–127: h0 0–63, h1 64–127"}},
		{two, 5, 128, []string{"0–25: h0 0–25", "26–51: h0 26–51", "52–76: h0 52–63, h1 64–76", "77–102: h1 77–102", "103–127: h1 103–127"}},
		{[]format.KeyedHandle{full(0, 9)}, 3, 10, []string{"0–3: h0 0–3", "4–6: h0 4–6", "7–9: h0 7–9"}},
		// A subtask without state, and one whose state is not where it belongs.
		{[]format.KeyedHandle{nil, full(64, 127)}, 4, 128, []string{"0–31: ", "32–63: ", "64–95: h1 64–95", "96–127: h1 96–127"}},
		{[]format.KeyedHandle{full(64, 127), nil}, 2, 128, []string{"0–63: h0 64–127", "64–127: "}},
		{[]format.KeyedHandle{full(0, 1)}, 2, 2, []string{"0: h0 0", "1: h0 1"}},
	} {
		if got := keyedPlan(t, c.old, c.to, c.maxP); !slices.Equal(got, c.want) {
			t.Errorf("to %d of %d:\n%q, want\n%q", c.to, c.maxP, got, c.want)
		}
	}
}

// Full handles are cut with their offsets; all else of them stays.
func TestKeyedCut(t *testing.T) {
	h := full(0, 63)
	savepoint := full(64, 127)
	savepoint.Savepoint = true
	plan, err := assign.Keyed([]format.KeyedHandle{h, savepoint}, 2, 3, 128)
	if err != nil {
		t.Fatal(err)
	}
	if got := plan[1].Pieces[0].Handle.(*format.KeyGroups); got.Data != h.Data || got.HandleID != h.HandleID || got.Wire != h.Wire || got.Savepoint {
		t.Errorf("%+v", got)
	}
	if o := offsets(t, plan[1].Pieces[0].Handle.(*format.KeyGroups).Offsets); len(o) != 21 || o[0] != 4300 || o[20] != 6300 {
		t.Errorf("offsets %v", o)
	}
	cut := plan[1].Pieces[1].Handle.(*format.KeyGroups)
	if cut.Range != groups(64, 85) || !cut.Savepoint {
		t.Errorf("%+v", cut)
	}
	if o := offsets(t, cut.Offsets); len(o) != 22 || o[0] != 6400 || o[21] != 8500 {
		t.Errorf("offsets %v", o)
	}
	if last, err := format.OffsetAt(t.Context(), cut.Offsets, 21); err != nil || last != 8500 {
		t.Errorf("last offset %d, %v", last, err)
	}
	if _, err := format.OffsetAt(t.Context(), cut.Offsets, 22); err == nil {
		t.Error("an offset beyond the cut")
	}
	if _, err := cut.Offsets.Read(t.Context(), make([]int64, 1), 23); err == nil {
		t.Error("read from beyond the cut")
	}
	if h.Range != groups(0, 63) || h.Offsets.Len() != 64 {
		t.Error("the old handle changed")
	}
	// What is not cut is the handle itself.
	same, err := assign.Keyed([]format.KeyedHandle{h, savepoint}, 2, 2, 128)
	if err != nil || same[0].Pieces[0].Handle != format.KeyedHandle(h) {
		t.Errorf("%v, %v", same, err)
	}
	one, err := assign.Keyed([]format.KeyedHandle{h, savepoint}, 2, 1, 128)
	if err != nil || one[0].Pieces[1].Handle != format.KeyedHandle(savepoint) {
		t.Errorf("%v, %v", one, err)
	}
}

// Incremental handles go whole to everyone who needs a part.
func TestKeyedIncremental(t *testing.T) {
	a, b := &format.Incremental{Range: groups(0, 63)}, &format.Incremental{Range: groups(64, 127)}
	plan, err := assign.Keyed([]format.KeyedHandle{a, b}, 2, 3, 128)
	if err != nil {
		t.Fatal(err)
	}
	mid := plan[1].Pieces
	if len(plan[0].Pieces) != 1 || len(mid) != 2 || len(plan[2].Pieces) != 1 {
		t.Fatalf("%+v", plan)
	}
	if mid[0].Handle != format.KeyedHandle(a) || mid[1].Handle != format.KeyedHandle(b) || mid[0].Groups != groups(43, 63) || mid[1].Groups != groups(64, 85) {
		t.Errorf("%+v", mid)
	}
}

// A changelog is cut in all its parts; changes in memory go whole where there is
// one for the range, and those of the metadata (key group -1) do not count.
func TestKeyedChangelog(t *testing.T) {
	near := &format.ChangelogMemory{Range: groups(0, 127), Changes: []format.Change{{KeyGroup: -1}, {KeyGroup: 5}}}
	far := &format.ChangelogMemory{Range: groups(0, 127), Changes: []format.Change{{KeyGroup: -1}, {KeyGroup: 100}}}
	stream := &format.ChangelogStream{Range: groups(0, 127), StateSize: 7, Streams: []format.OffsetStream{{Offset: 3}}}
	h := &format.Changelog{
		Range:        groups(0, 127),
		Materialized: []format.KeyedHandle{full(0, 63), nil, full(64, 127)},
		Changes:      []format.KeyedHandle{near, far, stream},
		CheckpointID: 9,
	}
	plan, err := assign.Keyed([]format.KeyedHandle{h}, 1, 4, 128)
	if err != nil {
		t.Fatal(err)
	}
	cut := plan[0].Pieces[0].Handle.(*format.Changelog)
	if cut.Range != groups(0, 31) || cut.CheckpointID != 9 || len(cut.Materialized) != 1 || len(cut.Changes) != 2 {
		t.Fatalf("%+v", cut)
	}
	if m := cut.Materialized[0].(*format.KeyGroups); m.Range != groups(0, 31) || m.Offsets.Len() != 32 {
		t.Errorf("%+v", m)
	}
	if cut.Changes[0] != format.KeyedHandle(near) {
		t.Errorf("%+v", cut.Changes[0])
	}
	if s := cut.Changes[1].(*format.ChangelogStream); s.Range != groups(0, 31) || len(s.Streams) != 1 || s.Streams[0].Offset != 3 {
		t.Errorf("%+v", s)
	}
	if last := plan[3].Pieces[0].Handle.(*format.Changelog); len(last.Changes) != 2 || last.Changes[0] != format.KeyedHandle(far) {
		t.Errorf("%+v", last)
	}
	if len(h.Materialized) != 3 || h.Range != groups(0, 127) || stream.Range != groups(0, 127) {
		t.Error("the old handle changed")
	}
}

func TestKeyedRefuses(t *testing.T) {
	for _, c := range [][2]int32{{0, 128}, {129, 128}, {1, 0}, {1, format.MaxKeyGroups + 1}} {
		if _, err := assign.Keyed(nil, 0, c[0], c[1]); !errors.Is(err, assign.ErrParallelism) {
			t.Errorf("parallelism %d of %d: %v", c[0], c[1], err)
		}
	}
	short := full(0, 127)
	short.Offsets = format.OffsetSlice{1, 2}
	if _, err := assign.Keyed([]format.KeyedHandle{nil, short}, 2, 3, 128); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "subtask 1") {
		t.Errorf("two offsets for 128 key groups: %v", err)
	}
}

// TestChangelogMemoryGroups: a new subtask gets the changes of a changelog that
// stand in _metadata where one of them is of its key groups, from the first to the
// last; those of -1, which are about no key group, alone lead nowhere.
func TestChangelogMemoryGroups(t *testing.T) {
	for group, want := range map[int32]string{
		-1: "", 0: "0", 42: "0", 43: "1", 44: "1", 85: "1", 86: "2", 127: "2",
	} {
		h := &format.ChangelogMemory{Range: groups(0, 127), Changes: []format.Change{{KeyGroup: -1}, {KeyGroup: group}}}
		plan, err := assign.Keyed([]format.KeyedHandle{h}, 1, 3, 128)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i, sub := range plan {
			for _, p := range sub.Pieces {
				if p.Handle != h {
					t.Errorf("key group %d: %v", group, p.Handle)
				}
				got += fmt.Sprint(i)
			}
		}
		if got != want {
			t.Errorf("a change of key group %d goes to subtasks %q, want %q", group, got, want)
		}
	}
}
