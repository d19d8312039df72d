package diff

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/tally"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

func diffOf(t testing.TB, a, b format.View, o Options) *Result {
	t.Helper()
	d, err := Savepoints(t.Context(), a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// differences is what a diff says, in words.
func differences(d *Result) []string {
	var all []string
	for _, x := range d.Differences {
		s := string(x.Kind) + ":"
		if x.Operator != nil {
			s += " " + x.Operator.Operator().Label()
		}
		if x.State != nil {
			s += "/" + x.State.State().Name
		}
		all = append(all, s+" "+x.Text)
	}
	return all
}

// diffFolders are the folders of all snapshots of the corpus.
func diffFolders(t testing.TB) []string {
	t.Helper()
	return testenv.Snapshots(t)
}

// TestDiffCorpus: every snapshot is the same as itself, and as the .spt made
// from it, whatever is compared.
func TestDiffCorpus(t *testing.T) {
	stores := sptest.Stores()
	var same, packed, missing int
	var elements, groups, files int64
	for i, dir := range diffFolders(t) {
		a, b := sptest.OpenIn(t, stores, dir), sptest.OpenIn(t, stores, dir)
		d, err := Savepoints(t.Context(), a.View(), b.View(), Options{Placement: true})
		if errors.Is(err, format.ErrMissing) {
			missing++
			continue
		}
		if err != nil || len(d.Differences) > 0 {
			t.Errorf("%s against itself: %v, %q", dir, err, differences(d))
			continue
		}
		same++
		for _, op := range d.Operators {
			for _, st := range op.States {
				if e := st.Elements; e != nil {
					elements += e.New
					if e.OldDistinct != e.NewDistinct || e.Moved != 0 || e.Factor != 1 && e.New > 0 && st.New.Kind != "broadcast" {
						t.Errorf("%s: %q: %+v", dir, st.New.Name, e)
					}
				}
				if k := st.Keyed; k != nil {
					groups += k.SameGroups
					files += k.SameFiles
				}
			}
		}
		target := fmt.Sprintf("mem://diff/%d.spt", i)
		if _, err := writer.Write(t.Context(), a.View(), target, &writer.Options{Stores: stores}); err != nil {
			continue // of damaged references; the writer's tests tell of them
		}
		c := sptest.OpenIn(t, stores, target)
		if d := diffOf(t, a.View(), c.View(), Options{Placement: true}); len(d.Differences) > 0 {
			t.Errorf("%s against its .spt: %q", dir, differences(d))
		}
		packed++
	}
	t.Logf("%d snapshots the same as themselves (%d elements, %d key groups, %d files), %d as their .spt; of %d files are missing", same, elements, groups, files, packed, missing)
	testenv.Found(t, "snapshots", same+missing, testenv.Manifest(t).Snapshots)
	testenv.Found(t, "snapshots as their .spt", packed, same)
}

// TestDiffRescaled: a rescaled copy holds the same elements and key groups in
// other subtasks.
func TestDiffRescaled(t *testing.T) {
	var copies, refused int
	var moved int64
	for _, k := range testenv.KnownSnapshots(t) {
		in := sptest.Open(t, k.Location).View()
		for _, to := range []int32{1, 3, 5} {
			out, _, err := transform.Rescale(t.Context(), in, transform.RescaleOptions{To: to})
			if err != nil {
				if out.Savepoint != in.Savepoint {
					t.Errorf("%s to %d: another savepoint with the error %v", k.Name, to, err)
				}
				refused++
				continue
			}
			d := diffOf(t, in, out, Options{Placement: true, Ignore: map[Kind]bool{KindParallelism: true, KindHandles: true, KindSubtasks: true}})
			copies++
			for _, x := range d.Differences {
				switch {
				case x.Kind == KindPlacement:
					if e := x.State.Elements; e != nil && e.Moved > 0 {
						moved += e.Moved
					}
				case x.State != nil && x.State.New != nil && x.State.New.Kind == "broadcast":
					// Fewer subtasks take over fewer of the maps that differ.
					if e := x.State.Elements; e.Added > 0 || e.Removed == 0 || to >= x.Operator.old.Parallelism {
						t.Errorf("%s to %d: %s", k.Name, to, x.Text)
					}
				case x.State != nil && x.State.New != nil && x.State.New.Kind == "union":
					t.Errorf("%s to %d: union %s", k.Name, to, x.Text)
				default:
					t.Errorf("%s to %d: %q", k.Name, to, differences(d))
				}
			}
		}
	}
	t.Logf("%d rescaled copies hold the same; %d elements moved; %d rescales refused", copies, moved, refused)
	testenv.Found(t, "rescales written or refused", copies+refused, 3*testenv.Manifest(t).Known)
	testenv.Some(t, "elements moved", moved, moved > 0)
}

// TestDiffTruth: what the diff of two snapshots of different releases counts is
// what their subtasks held, as the state backends themselves told.
func TestDiffTruth(t *testing.T) {
	type pair struct{ a, b testenv.KnownSnapshot }
	var pairs []pair
	byShape := map[string][]testenv.KnownSnapshot{}
	for _, k := range testenv.KnownSnapshots(t) {
		if k.Unaligned {
			continue
		}
		shape, _, _ := strings.Cut(k.Shape, "-")
		for _, other := range byShape[shape] {
			pairs = append(pairs, pair{other, k})
		}
		byShape[shape] = append(byShape[shape], k)
	}
	var states, differing, inBoth, expected int
	for _, p := range pairs {
		a, b := sptest.Open(t, p.a.Location).View(), sptest.Open(t, p.b.Location).View()
		d := diffOf(t, a, b, Options{List: 5, Ignore: map[Kind]bool{KindKeyed: true}})
		held, now := truthElements(sptest.TruthOf(t, p.a.Dir)), truthElements(sptest.TruthOf(t, p.b.Dir))
		for key := range held {
			if now[key] != nil {
				expected++
			}
		}
		for _, op := range d.Operators {
			if op.Old == nil || op.New == nil || op.Renamed != nil {
				continue
			}
			for _, st := range op.States {
				key := op.Operator().ID.String() + "/" + st.State().Name
				x, y := held[key], now[key]
				if st.Elements == nil || st.New.Kind == "broadcast" || x == nil && y == nil {
					continue
				}
				states++
				if x != nil && y != nil {
					inBoth++
				}
				var added, removed int64
				for e := range either(x, y) {
					added += max(y[e]-x[e], 0)
					removed += max(x[e]-y[e], 0)
				}
				e := st.Elements
				if e.Added != added || e.Removed != removed || e.OldDistinct != int64(len(x)) || e.NewDistinct != int64(len(y)) {
					t.Errorf("%s → %s, %s: +%d -%d of %d and %d different ones; held +%d -%d of %d and %d", p.a.Name, p.b.Name, key, e.Added, e.Removed, e.OldDistinct, e.NewDistinct, added, removed, len(x), len(y))
				}
				if added+removed > 0 {
					differing++
				}
				checkList(t, b, e.AddedList, func(v string) bool { return y[v] > x[v] }, min(5, len(surplus(y, x))))
				checkList(t, a, e.RemovedList, func(v string) bool { return x[v] > y[v] }, min(5, len(surplus(x, y))))
			}
		}
	}
	t.Logf("%d pairs, %d states, of which %d differ, as their subtasks told", len(pairs), states, differing)
	testenv.Found(t, "states of both", inBoth, expected)
	testenv.Some(t, "states that differ", differing, differing > 0)
}

func checkList(t *testing.T, in format.View, list []ElementChange, right func(string) bool, n int) {
	t.Helper()
	if len(list) != n {
		t.Errorf("%d elements listed, want %d", len(list), n)
	}
	for _, c := range list {
		p, err := c.Value(t.Context(), in)
		if err != nil || !right(sptest.Reported(p)) {
			t.Errorf("%s is listed: %v", sptest.Reported(p), err)
		}
	}
}

func either(x, y map[string]int64) map[string]bool {
	all := map[string]bool{}
	for k := range x {
		all[k] = true
	}
	for k := range y {
		all[k] = true
	}
	return all
}

func surplus(x, y map[string]int64) (all []string) {
	for k, n := range x {
		if n > y[k] {
			all = append(all, k)
		}
	}
	return all
}

// truthElements is how often each element was held, by operator and state.
func truthElements(c sptest.Truth) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for _, op := range c.Operators {
		for _, sub := range op.Subtasks {
			for name, st := range sub.OperatorState {
				if st.Kind == "broadcast" {
					continue
				}
				key := op.ID + "/" + name
				if all[key] == nil {
					all[key] = map[string]int64{}
				}
				for _, e := range st.Raw {
					all[key][e]++
				}
			}
		}
	}
	return all
}

// TestDiffPruned: copies that restores made are named, and so is their removal.
func TestDiffPruned(t *testing.T) {
	named, unions := 0, 0
	for _, k := range testenv.KnownSnapshots(t) {
		if k.Shape != "union-inflated" {
			continue
		}
		states := map[string]bool{}
		for _, op := range sptest.TruthOf(t, k.Dir).Operators {
			for _, s := range op.Subtasks {
				for name, st := range s.OperatorState {
					if st.Kind == "union" {
						states[op.ID+"/"+name] = true
					}
				}
			}
		}
		unions += len(states)
		in := sptest.Open(t, k.Location).View()
		out, pruned, err := transform.PruneUnion(t.Context(), in, transform.PruneOptions{Keep: transform.KeepDistinct})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pruned.States {
			if p.Skipped != "" || p.Elements%p.Kept != 0 {
				t.Fatalf("%s: %+v", k.Name, p)
			}
			for _, tt := range []struct {
				a, b format.View
				want string
			}{
				{out, in, fmt.Sprintf("%d → %d elements, %d distinct unchanged: multiplied by %d", p.Kept, p.Elements, p.Kept, p.Elements/p.Kept)},
				{in, out, fmt.Sprintf("%d → %d elements, %d distinct unchanged: divided by %d", p.Elements, p.Kept, p.Kept, p.Elements/p.Kept)},
			} {
				if got := differences(diffOf(t, tt.a, tt.b, Options{})); len(got) != 1 || !strings.HasSuffix(got[0], tt.want) {
					t.Errorf("%s: %q, want %q", k.Name, got, tt.want)
				}
			}
			named++
		}
	}
	testenv.Found(t, "multiplied union states", named, unions)
}

// listInput is one operator with a union state of the values given, in so many
// subtasks, dealt out in turn.
func listInput(subtasks int, values []string) format.View {
	op := &format.Operator{UID: format.NewText("op"), ID: format.OperatorIDOf("op"), Parallelism: int32(subtasks), MaxParallelism: 128}
	for i := range subtasks {
		var offsets format.OffsetSlice
		var data []byte
		for k := i; k < len(values); k += subtasks {
			offsets = append(offsets, int64(len(data)))
			data = append(data, values[k]...)
		}
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: &format.OperatorHandle{
			Codec: format.CodecRaw, Data: &format.Inline{Data: format.NewBytes(data)},
			States: []format.NamedState{{Name: format.NewText("s"), Mode: format.ModeList, Offsets: offsets}},
		}})
	}
	return sptest.View(op)
}

// boundedDiffer keeps so many distinct elements of each side in memory, and counts
// all distinct elements only where that is a million.
func boundedDiffer(t testing.TB, a, b format.View, o Options, distinct int64) *differ {
	o.TempDir = t.TempDir()
	d := newDiffer(t.Context(), a, b, o)
	if d.memory = 2 * tally.MemoryFor(distinct); distinct < 1<<20 {
		d.exact = 0
	}
	return d
}

// passesOf runs a diff and returns how often it went through both sides.
func passesOf(t *testing.T, d *differ, bytes int64) (*Elements, float64) {
	t.Helper()
	var mu sync.Mutex
	var read int64
	d.o.Progress = func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		read += n
	}
	out, err := d.run()
	if err != nil {
		t.Fatal(err)
	}
	return out.Operators[0].States[0].Elements, float64(read) / float64(bytes)
}

// TestDiffSpilled: the counts are right however few elements are in memory at
// once, and however they are spread.
func TestDiffSpilled(t *testing.T) {
	number := func(i int) string {
		var p [8]byte
		binary.BigEndian.PutUint64(p[:], uint64(i)*0x9e3779b97f4a7c15)
		return string(p[:])
	}
	var base []string
	for i := range 20_000 {
		base = append(base, number(i))
	}
	changed := slices.Clone(base)
	changed[17], changed[4000] = "first new", "second new"
	var tripled []string
	for range 3 {
		tripled = append(tripled, base...)
	}
	other := make([]string, 15_000)
	for i := range other {
		other[i] = number(1_000_000 + i)
	}
	for _, tt := range []struct {
		name                             string
		a, b                             []string
		added, removed, factor, distinct int64
		list                             []string
	}{
		{"same", base, base, 0, 0, 1, -1, nil},
		{"changed", base, changed, 2, 2, 0, -1, []string{"first new", "second new"}},
		{"tripled", base, tripled, 40_000, 0, 3, 20_000, base[:3]},
		{"all other", base, other, 15_000, 20_000, 0, 15_000, other[:3]},
		{"from nothing", nil, base, 20_000, 0, 0, 20_000, base[:3]},
		{"to nothing", base, nil, 0, 20_000, 0, 0, nil},
		{"nothing", nil, nil, 0, 0, 0, 0, nil},
	} {
		for _, limit := range []int64{12, 700, 40_000, 1 << 20} {
			// As each subtask holds a share of its own, the order is that of one.
			a, b := listInput(1, tt.a), listInput(1, tt.b)
			out, err := boundedDiffer(t, a, b, Options{List: 3}, limit).run()
			if err != nil {
				t.Fatal(err)
			}
			e := out.Operators[0].States[0].Elements
			if e.Added != tt.added || e.Removed != tt.removed {
				t.Errorf("%s, %d at once: +%d -%d, want +%d -%d", tt.name, limit, e.Added, e.Removed, tt.added, tt.removed)
			}
			distinct, factor := tt.distinct, tt.factor
			if limit == 1<<20 {
				distinct = int64(len(slices.Compact(slices.Sorted(slices.Values(tt.b)))))
			} else if tt.name == "same" {
				factor = 0 // was not counted
			}
			if e.NewDistinct != distinct || e.Factor != factor {
				t.Errorf("%s, %d at once: %d distinct, factor %d", tt.name, limit, e.NewDistinct, e.Factor)
			}
			var list []string
			for _, c := range e.AddedList {
				p, err := c.Value(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, string(p))
			}
			if !slices.Equal(list, tt.list) {
				t.Errorf("%s, %d at once: listed %q, want %q", tt.name, limit, list, tt.list)
			}
		}
	}
}

// TestDiffPasses: however many elements differ and however few fit into memory, a
// diff goes through them twice: for the sums, and to count.
func TestDiffPasses(t *testing.T) {
	number := func(i int) string {
		return string(binary.BigEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15))
	}
	var often, more, all, other []string
	for i := range 100_000 {
		often = append(often, number(i%50))
		more = append(more, number(i%51))
		all = append(all, number(i))
		other = append(other, number(1_000_000+i))
	}
	e, passes := passesOf(t, boundedDiffer(t, listInput(1, often), listInput(1, more), Options{}, 100), 8*200_000)
	if passes != 2 || e.NewDistinct != 51 || e.Added != 1960 || e.Removed != e.Added {
		t.Errorf("few elements: %v passes, %+v", passes, e)
	}
	e, passes = passesOf(t, boundedDiffer(t, listInput(1, all), listInput(1, other), Options{}, 100), 8*200_000)
	if passes != 2 || e.Added != 100_000 || e.Removed != 100_000 {
		t.Errorf("all other: %v passes; %+v", passes, e)
	}
}

// TestDiffListed: of many that differ the first are listed, in the order in
// which they occur, and however many there are.
func TestDiffListed(t *testing.T) {
	var old, now []string
	for i := range 30_000 {
		old = append(old, fmt.Sprint("old", i/2))
		now = append(now, fmt.Sprint("new", i/2))
	}
	for _, distinct := range []int64{500, 1 << 20} {
		for _, n := range []int{1, 100, 9_000} {
			d := boundedDiffer(t, listInput(1, old), listInput(1, now), Options{List: n}, distinct)
			e, _ := passesOf(t, d, 1)
			for side, list := range [][]ElementChange{e.RemovedList, e.AddedList} {
				if len(list) != n {
					t.Errorf("%d in memory: %d listed, want %d", distinct, len(list), n)
				}
				for i, x := range list {
					if x.Index != int64(2*i) || x.Old != int64(2-2*side) || x.New != int64(2*side) {
						t.Fatalf("%d in memory: number %d of those listed is %+v", distinct, i, x)
					}
				}
			}
		}
	}
}

// TestDiffStructure: two made savepoints with known differences.
func TestDiffStructure(t *testing.T) {
	op := func(uid string, p int32, states ...st) *format.Operator {
		o := &format.Operator{UID: format.NewText(uid), ID: format.OperatorIDOf(uid), Parallelism: p, MaxParallelism: 128}
		for i := range p {
			o.Subtasks = append(o.Subtasks, &format.Subtask{Index: i, Managed: rawStates(states...)})
		}
		return o
	}
	a := sptest.View(
		op("same", 2, st{"x", format.ModeList, []string{"1", "2"}}),
		op("moves", 2, st{"kept", format.ModeList, []string{"1", "2"}}, st{"gone", format.ModeList, []string{"3"}}, st{"mode", format.ModeList, []string{"4"}}),
		op("away", 1, st{"only here", format.ModeList, []string{"1"}}),
		op("enrich-v1", 1, st{"cache", format.ModeList, []string{"abc", "def"}}, st{"seen", format.ModeUnion, []string{"g"}}),
	)
	b := sptest.View(
		op("same", 2, st{"x", format.ModeList, []string{"1", "2"}}),
		op("moves", 3, st{"kept", format.ModeList, []string{"1", "2"}}, st{"mode", format.ModeUnion, []string{"4"}}, st{"come", format.ModeList, []string{"5"}}),
		op("enrich", 1, st{"cache", format.ModeList, []string{"abc", "xyz"}}, st{"seen", format.ModeUnion, []string{"g"}}),
		op("new", 1, st{"only there", format.ModeList, []string{"1"}}),
	)
	a.ID, b.ID = 4100, 4211
	b.Operators[1].MaxParallelism = 256
	b.Operators[1].Coordinator = &format.Inline{Data: format.NewBytes([]byte("positions"))}
	want := []string{
		"id: checkpoint 4100 → 4211",
		"coordinator: moves/ state of the coordinator added",
		"elements: moves/kept 4 → 6 elements, 2 distinct unchanged: more copies",
		"elements: moves/mode 2 → 3 elements, 1 distinct unchanged: more copies",
		"max-parallelism: moves max parallelism 128 → 256",
		"operators: away removed",
		`operators: enrich likely renamed from "enrich-v1": the same 2 states, the same size, the same parallelism`,
		"elements: enrich/cache elements: 1 added, 1 removed",
		"operators: new added",
		"parallelism: moves parallelism 2 → 3",
		"states: moves/come list state added",
		"states: moves/gone list state removed",
		"states: moves/mode mode list → union",
	}
	d := diffOf(t, a, b, Options{})
	got := differences(d)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// What is ignored is not said, whatever it is.
	for _, k := range Kinds {
		left := differences(diffOf(t, a, b, Options{Ignore: map[Kind]bool{k.Kind: true}}))
		for _, x := range left {
			if strings.HasPrefix(x, string(k.Kind)+":") {
				t.Errorf("%s is ignored, and said: %s", k.Kind, x)
			}
		}
		n := 0
		for _, x := range want {
			if strings.HasPrefix(x, string(k.Kind)+":") {
				n++
			}
		}
		if len(left) != len(want)-n {
			t.Errorf("ignoring %s leaves %d of %d", k.Kind, len(left), len(want))
		}
	}
	// The other way round.
	back := diffOf(t, b, a, Options{})
	if len(back.Differences) != len(d.Differences) {
		t.Errorf("%d differences there, %d back: %q", len(d.Differences), len(back.Differences), differences(back))
	}
}

// rawStates is a handle of raw codec: elements one after another.
func rawStates(states ...st) *format.OperatorHandle {
	var all []sptest.State
	for _, s := range states {
		all = append(all, sptest.State(s))
	}
	return sptest.RawHandle(all...)
}

// TestDiffBroadcastByKey: entries count, not the order in which a map has them.
func TestDiffBroadcastByKey(t *testing.T) {
	in := func(copies ...string) format.View {
		o := &format.Operator{UID: format.NewText("op"), ID: format.OperatorIDOf("op"), Parallelism: int32(len(copies)), MaxParallelism: 128}
		for i, c := range copies {
			o.Subtasks = append(o.Subtasks, &format.Subtask{Index: int32(i), Managed: rawStates(st{"rules", format.ModeBroadcast, []string{c}})})
		}
		return wordMaps(sptest.View(o))
	}
	o := Options{List: 9, Ignore: map[Kind]bool{KindParallelism: true}, EntryText: wordText}
	for _, tt := range []struct {
		a, b format.View
		want string
	}{
		{in("a=1 b=2", "a=1 b=2"), in("b=2 a=1"), ""},
		{in("a=1 b=2"), in("a=1 b=2", "a=1 b=2"), ""},
		{in("a=1 b=2 c=3"), in("a=1 b=5 d=4"), "keys: 1 added, 1 removed, 1 changed"},
		{in("a=1", "a=2"), in("a=2", "a=2"), "keys: 1 changed"},
	} {
		got := strings.Join(differences(diffOf(t, tt.a, tt.b, o)), "; ")
		if tt.want != "" {
			tt.want = "elements: op/rules " + tt.want
		}
		if got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	d := diffOf(t, in("a=1 b=2 c=3"), in("a=1 b=5 d=4"), o)
	want := []EntryChange{{"b", []string{"2"}, []string{"5"}}, {"c", []string{"3"}, nil}, {"d", nil, []string{"4"}}}
	if got := fmt.Sprint(d.Operators[0].States[0].Elements.Entries.Changes); got != fmt.Sprint(want) {
		t.Errorf("%s, want %v", got, want)
	}
	o.EntryText = nil
	if got := differences(diffOf(t, in("a=1 b=2"), in("b=2 a=1"), o)); len(got) != 1 || got[0] != "elements: op/rules different maps: 1 added, 1 removed" {
		t.Errorf("whole maps: %q", got)
	}
}

// TestDiffKindsAreAllThere: the help names every kind once.
func TestDiffKindsAreAllThere(t *testing.T) {
	seen := map[Kind]bool{}
	for _, k := range Kinds {
		if k.Help == "" || seen[k.Kind] {
			t.Errorf("%s: %q", k.Kind, k.Help)
		}
		seen[k.Kind] = true
	}
	if len(seen) != 18 {
		t.Errorf("%d kinds: %v", len(seen), slices.Sorted(maps.Keys(seen)))
	}
}

// TestDiffRandom: counts, moves and lists are those of a count by hand, however
// few elements are in memory at once and whichever subtasks are passed over.
func TestDiffRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	var passed, moved int
	for round := range 200 {
		var sides [2][][]string // elements by subtask
		for s := range sides {
			sides[s] = make([][]string, 1+rnd.IntN(5))
			for i := range sides[s] {
				for range rnd.IntN(60) {
					sides[s][i] = append(sides[s][i], fmt.Sprint(rnd.IntN(1+round)))
				}
			}
		}
		if round%2 == 0 { // some subtasks hold the same as one of the other side
			for i := range sides[1] {
				if rnd.IntN(2) == 0 {
					sides[1][i] = slices.Clone(sides[0][rnd.IntN(len(sides[0]))])
					rnd.Shuffle(len(sides[1][i]), func(x, y int) { sides[1][i][x], sides[1][i][y] = sides[1][i][y], sides[1][i][x] })
				}
			}
		}
		var inputs [2]format.View
		var held, placed [2]map[string]int64
		for s, all := range sides {
			op := &format.Operator{UID: format.NewText("op"), ID: format.OperatorIDOf("op"), Parallelism: int32(len(all)), MaxParallelism: 128}
			held[s], placed[s] = map[string]int64{}, map[string]int64{}
			for i, elements := range all {
				op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: rawStates(st{"s", format.ModeList, elements})})
				for _, e := range elements {
					held[s][e]++
					placed[s][fmt.Sprint(i, " ", e)]++
				}
			}
			inputs[s] = sptest.View(op)
		}
		count := func(m [2]map[string]int64) (added, removed int64) {
			for e := range either(m[0], m[1]) {
				added += max(m[1][e]-m[0][e], 0)
				removed += max(m[0][e]-m[1][e], 0)
			}
			return added, removed
		}
		limit := []int64{12, 100, 1 << 20}[round%3]
		d := boundedDiffer(t, inputs[0], inputs[1], Options{List: []int{1, 5, 1000, 1000}[round%4], Placement: true}, limit)
		out, err := d.run()
		if err != nil {
			t.Fatal(err)
		}
		e := out.Operators[0].States[0].Elements
		added, removed := count(held)
		placedAdded, _ := count(placed)
		if e.Added != added || e.Removed != removed || e.Moved != placedAdded-added {
			t.Fatalf("round %d: +%d -%d, %d moved; want +%d -%d, %d", round, e.Added, e.Removed, e.Moved, added, removed, placedAdded-added)
		}
		if e.Moved > 0 {
			moved++
		}
		if limit < 1000 && e.NewDistinct < 0 {
			passed++
		}
		over := [2]map[int]bool{}
		if limit < 1000 {
			over = sameSubtasks(sides)
		}
		for s, list := range [][]ElementChange{e.RemovedList, e.AddedList} {
			var got, want []string
			for _, c := range list {
				got = append(got, fmt.Sprint(c.Subtask, " ", c.Index))
			}
			met := map[string]bool{}
			for i, elements := range sides[s] {
				for k, e := range elements {
					if !over[s][i] && !met[e] && held[s][e] > held[1-s][e] && len(want) < d.o.List {
						met[e] = true
						want = append(want, fmt.Sprint(i, " ", k))
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("round %d: listed are %q, want %q", round, got, want)
			}
			for _, c := range list {
				p, err := c.Value(t.Context(), inputs[s])
				if err != nil || c.Old != held[0][string(p)] || c.New != held[1][string(p)] {
					t.Fatalf("round %d: %q %d → %d, want %d → %d (%v)", round, p, c.Old, c.New, held[0][string(p)], held[1][string(p)], err)
				}
			}
		}
	}
	if passed < 20 || moved < 20 {
		t.Errorf("%d rounds passed something over, %d moved something", passed, moved)
	}
}

// sameSubtasks is the subtasks of each side that hold the same elements as one of
// the other, which are passed over where elements do not fit.
func sameSubtasks(sides [2][][]string) (over [2]map[int]bool) {
	var n [2]int
	sorted := map[string][]int{}
	over = [2]map[int]bool{{}, {}}
	for s, all := range sides {
		for i, elements := range all {
			n[s] += len(elements)
			if len(elements) == 0 {
				continue
			}
			key := fmt.Sprintf("%q", slices.Sorted(slices.Values(elements)))
			if s == 0 {
				sorted[key] = append(sorted[key], i)
			} else if like := sorted[key]; len(like) > 0 {
				over[0][like[0]], over[1][i] = true, true
				sorted[key] = like[1:]
			}
		}
	}
	if lo, hi := min(n[0], n[1]), max(n[0], n[1]); lo == 0 || lo != hi && hi%lo == 0 {
		return [2]map[int]bool{}
	}
	return over
}

// TestDiffCopies: a state of which every subtask holds what one held before was
// multiplied, though each of them alone has its like.
func TestDiffCopies(t *testing.T) {
	var elements []string
	for i := range 500 {
		elements = append(elements, fmt.Sprint(i))
	}
	in := func(mode format.Mode, copies int) format.View {
		op := &format.Operator{UID: format.NewText("op"), ID: format.OperatorIDOf("op"), Parallelism: 3, MaxParallelism: 128}
		for i := range copies {
			held := elements
			if mode == format.ModeBroadcast {
				held = []string{"a map"}
			}
			op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: rawStates(st{"s", mode, held})})
		}
		return sptest.View(op)
	}
	for _, tt := range []struct {
		mode            format.Mode
		old, now        int
		factor, divided int64
		added           int64
	}{
		{format.ModeUnion, 1, 3, 3, 0, 1000},
		{format.ModeUnion, 3, 1, 0, 3, 0},
		{format.ModeUnion, 2, 3, 0, 0, 500},
		{format.ModeBroadcast, 2, 3, 0, 0, 0},
	} {
		d := boundedDiffer(t, in(tt.mode, tt.old), in(tt.mode, tt.now), Options{}, 256)
		out, err := d.run()
		if err != nil {
			t.Fatal(err)
		}
		e := out.Operators[0].States[0].Elements
		if max(e.Factor, 1) != max(tt.factor, 1) || max(e.Divided, 1) != max(tt.divided, 1) || e.Added != tt.added {
			t.Errorf("%v %d → %d: %+v", tt.mode, tt.old, tt.now, e)
		}
	}
}
