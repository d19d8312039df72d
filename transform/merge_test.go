package transform

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// merged merges b into a, writes the result and opens it.
func merged(t *testing.T, stores storage.Resolver, a, b *reader.Snapshot, target string, o MergeOptions) (*reader.Snapshot, *MergeReport, error) {
	t.Helper()
	var err error
	picked := *b.Savepoint
	if picked.Operators, err = o.Operators.Operators(b.Savepoint); err != nil {
		return nil, nil, err
	}
	both, from, err := reader.Combine(t.Context(), a, b.With(&picked))
	if err != nil {
		return nil, nil, err
	}
	sp, done, err := Merge(t.Context(), both.View(), MergeOptions{From: from, States: o.States})
	if err != nil {
		return nil, nil, err
	}
	return sealed(t, stores, both, sp, target), done, nil
}

// contents is every stream of an operator, and every element of its operator
// state, by place. A state's name does not tell where in a stream it lies.
func contents(t *testing.T, snap *reader.Snapshot, id format.OperatorID) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	in := snap.View()
	for _, op := range snap.Operators {
		if op.ID != id {
			continue
		}
		one := &format.Savepoint{Operators: []*format.Operator{op}}
		err := one.EachStream(func(p format.Place, s format.Stream) error {
			if p.Slot != format.SlotManaged {
				all[p.String()] = append(all[p.String()], string(sptest.Bytes(t, in.Source, s)))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, sub := range op.Subtasks {
			if sub.Managed != nil {
				for _, st := range sub.Managed.States {
					all[fmt.Sprintf("%d %s %s", sub.Index, st.Name, st.Mode)] = sptest.Elements(t, in, sub.Managed, st.Name.String())
				}
			}
		}
	}
	return all
}

func byLabel(snap *reader.Snapshot, label string) (format.Selector, format.OperatorID) {
	var id format.OperatorID
	for _, op := range snap.Operators {
		if op.Label() == label || op.ID == format.OperatorIDOf(label) {
			id = op.ID
		}
	}
	return format.ByID(id), id
}

// TestMergeOperators: operators of every kind of state, from folders and from
// .spt files into either, hold afterwards what they held, and the others too.
func TestMergeOperators(t *testing.T) {
	n := 0
	for _, v := range []string{"1.20", "2.0", "2.3"} {
		for _, b := range []struct{ name, operator string }{
			{"operator", "lists"}, {"operator-files-compressed", "lists"}, {"operator", "rules"},
			{"keyed-native", "keyed"}, {"keyed-rocksdb", "keyed"}, {"counts-incremental", "counts"},
		} {
			for _, families := range [][2]string{{"", ""}, {"", ".spt"}, {".spt", ""}, {".spt", ".spt"}} {
				t.Run(fmt.Sprintf("%s-%s %s%v", v, b.name, b.operator, families), func(t *testing.T) {
					stores := sptest.Stores()
					open := func(name, family string) *reader.Snapshot {
						snap := sptest.OpenIn(t, stores, testenv.Fixture(t, "flink-"+name))
						if family == "" {
							return snap
						}
						return sealed(t, stores, snap, snap.View(), "mem://"+name+family)
					}
					a, from := open(v+"-tutorial", families[0]), open(v+"-"+b.name, families[1])
					pick, id := byLabel(from, b.operator)
					for _, out := range []string{"mem://out", "mem://out.spt"} {
						got, done, err := merged(t, stores, a, from, out, MergeOptions{Operators: pick})
						if err != nil {
							t.Fatal(err)
						}
						if len(done.Operators) != 1 || len(got.Operators) != len(a.Operators)+1 {
							t.Fatalf("%d operators taken over, %d in all", len(done.Operators), len(got.Operators))
						}
						want := contents(t, from, id)
						if len(want) == 0 {
							t.Fatal("nothing to take over")
						}
						if d := cmp.Diff(want, contents(t, got, id)); d != "" {
							t.Errorf("%s: -want +got\n%.2000s", out, d)
						}
						for _, op := range a.Operators {
							if d := cmp.Diff(contents(t, a, op.ID), contents(t, got, op.ID)); d != "" {
								t.Errorf("%s: operator %s: -want +got\n%.2000s", out, op.Label(), d)
							}
						}
						n++
					}
				})
			}
		}
	}
	t.Logf("%d merges", n)
}

// TestMergeNamesCollide: a file of one snapshot never takes the place of one of
// the other that has the same name.
func TestMergeNamesCollide(t *testing.T) {
	stores := sptest.Stores()
	from := sptest.OpenIn(t, stores, filepath.Join("..", "testdata", "savepoints", "sp-010"))
	pick, id := byLabel(from, "lists")
	other := format.OperatorIDOf("elsewhere")
	// A has the files of B under the same names, with other bytes in them: of
	// two operators, the files of one are named after those of the other.
	var lists, rules *format.Operator
	for _, op := range from.Operators {
		switch op.Label() {
		case "lists":
			lists = op
		case "rules":
			rules = op
		}
	}
	c := *rules
	c.ID, c.Subtasks = other, nil
	for i, sub := range rules.Subtasks {
		s, h := *sub, *sub.Managed
		size := h.Data.Size()
		h.Data = &format.Concat{As: storedLike(lists.Subtasks[i].Managed.Data, size), Parts: []format.Part{{Of: sub.Managed.Data, N: size}}}
		s.Managed = &h
		c.Subtasks = append(c.Subtasks, &s)
	}
	sp := *from.Savepoint
	sp.Operators = []*format.Operator{&c}
	a := sealed(t, stores, from, from.View().With(&sp), "mem://a")
	names := func(snap *reader.Snapshot, id format.OperatorID) map[string]bool {
		all := map[string]bool{}
		for _, op := range snap.Operators {
			if op.ID == id {
				_ = (&format.Savepoint{Operators: []*format.Operator{op}}).EachStream(func(_ format.Place, s format.Stream) error {
					if path, _, ok := format.Reference(s); ok {
						all[path.String()] = true
					}
					return nil
				})
			}
		}
		return all
	}
	if d := cmp.Diff(names(from, id), names(a, other)); d != "" {
		t.Fatalf("the names were to be the same: %s", d)
	}
	for _, b := range []*reader.Snapshot{from, sealed(t, stores, from, from.View(), "mem://b.spt")} {
		got, _, err := merged(t, stores, a, b, "mem://"+filepath.Base(b.Location)+"-out", MergeOptions{Operators: pick})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(contents(t, from, id), contents(t, got, id)); d != "" {
			t.Errorf("taken over: -want +got\n%.2000s", d)
		}
		if d := cmp.Diff(contents(t, a, other), contents(t, got, other)); d != "" {
			t.Errorf("mine: -want +got\n%.2000s", d)
		}
		if d := cmp.Diff(names(a, other), names(got, other)); d != "" {
			t.Errorf("names of mine: -want +got\n%s", d)
		}
	}
}

// TestMergeStates: what was dropped and is taken back is what was there.
func TestMergeStates(t *testing.T) {
	stores := sptest.Stores()
	whole := sptest.OpenIn(t, stores, filepath.Join("..", "testdata", "savepoints", "sp-010"))
	pick, id := byLabel(whole, "lists")
	gone := map[string]bool{"alpha": true, "owner": true, "topic-partition-offset-states": true}
	names := format.Globs{"alpha", "owner", "topic-partition-offset-states"}
	sp, _, err := Drop(t.Context(), whole.View(), DropOptions{Operators: pick, States: names})
	if err != nil {
		t.Fatal(err)
	}
	less := sealed(t, stores, whole, sp, "mem://less")
	want := contents(t, whole, id)
	if len(want) <= len(contents(t, less, id)) {
		t.Fatal("nothing was dropped")
	}
	got, done, err := merged(t, stores, less, whole, "mem://again", MergeOptions{Operators: pick, States: names})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, contents(t, got, id)); d != "" {
		t.Errorf("-want +got\n%.2000s", d)
	}
	counts := map[string]int64{}
	for _, s := range done.States {
		counts[s.Name] = s.Elements
	}
	if d := cmp.Diff(map[string]int64{"alpha": 6, "owner": 3, "topic-partition-offset-states": 25}, counts); d != "" {
		t.Errorf("counts: -want +got\n%s", d)
	}
	// Into a snapshot without the operator, the states become one.
	sp, _, err = Drop(t.Context(), whole.View(), DropOptions{Operators: pick})
	if err != nil {
		t.Fatal(err)
	}
	without := sealed(t, stores, whole, sp, "mem://without")
	got, _, err = merged(t, stores, without, whole, "mem://alone", MergeOptions{Operators: pick, States: names})
	if err != nil {
		t.Fatal(err)
	}
	for place := range want {
		var i int
		var name, mode string
		if _, err := fmt.Sscan(place, &i, &name, &mode); err != nil || !gone[name] {
			delete(want, place)
		}
	}
	if d := cmp.Diff(want, contents(t, got, id)); d != "" || len(want) == 0 {
		t.Errorf("alone: -want +got\n%.2000s", d)
	}
	// What is there already is refused.
	var collision *CollisionError
	if _, _, err := merged(t, stores, got, whole, "mem://x", MergeOptions{Operators: pick, States: names}); !errors.As(err, &collision) {
		t.Errorf("states twice: %v", err)
	}
	if _, _, err := merged(t, stores, got, whole, "mem://x", MergeOptions{Operators: pick}); !errors.As(err, &collision) {
		t.Errorf("an operator twice: %v", err)
	}
}

func TestMergeWhatCannotBe(t *testing.T) {
	list := func(name string, n int) *format.Operator {
		var all []*format.OperatorHandle
		for i := range n {
			all = append(all, nativeHandle(fmt.Sprint(name, i), st{name, format.ModeList, []string{"x"}}))
		}
		return sptest.Operator("a", all...)
	}
	channels := list("l", 1)
	channels.Subtasks[0].Output = []*format.ChannelHandle{{Data: sptest.Inline("c", "x")}}
	flink := sptest.ListOperator("a", 1)
	halfDone := list("l", 2)
	halfDone.Subtasks[1] = &format.Subtask{Index: 1, Finished: true}
	done := &format.Operator{ID: format.OperatorIDOf("a"), Parallelism: 2, MaxParallelism: 128, Finished: true}
	any := format.Globs{"*"}
	for _, tt := range []struct {
		name  string
		a, b  *format.Operator
		o     MergeOptions
		check func(error) bool
	}{
		{"in-flight data", nil, channels, MergeOptions{}, isMerge},
		{"another parallelism", list("l", 2), list("m", 3), MergeOptions{States: any}, isMerge},
		{"a finished subtask", halfDone, list("m", 2), MergeOptions{States: any}, isMerge},
		{"a finished operator", done, list("m", 2), MergeOptions{States: any}, isMerge},
		{"another codec", list("m", 1), flink, MergeOptions{States: any}, func(err error) bool { return errors.Is(err, format.ErrUnsupported) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := sptest.View()
			if tt.a != nil {
				in = sptest.View(tt.a)
			}
			tt.o.From = &format.Savepoint{Operators: []*format.Operator{tt.b}}
			sp, _, err := Merge(t.Context(), in, tt.o)
			if err == nil || !tt.check(err) {
				t.Errorf("%v, %v", sp, err)
			}
		})
	}
	// Beside a subtask without state, and one that is not there.
	a := list("l", 3)
	a.Subtasks[1].Managed = nil
	a.Subtasks = a.Subtasks[:2]
	sp, _, err := Merge(t.Context(), sptest.View(a), MergeOptions{From: &format.Savepoint{Operators: []*format.Operator{list("m", 3)}}, States: any})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sp.Operators[0].Subtasks {
		for _, st := range s.Managed.States {
			got = append(got, fmt.Sprint(s.Index, st.Name))
		}
	}
	if d := cmp.Diff([]string{"0 l", "0 m", "1 m", "2 m"}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(a.Subtasks) != 2 || a.Subtasks[1].Managed != nil {
		t.Error("the base changed")
	}
}

func isMerge(err error) bool {
	var m *MergeError
	return errors.As(err, &m)
}
