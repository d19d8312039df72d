package diff

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/tally"
	"github.com/savepoint-tools/spt/internal/work"
)

// rescaled leaves out the kinds of differences that another parallelism makes.
var rescaled = map[Kind]bool{KindParallelism: true, KindMaxParallelism: true, KindSubtasks: true, KindHandles: true}

// changesOf is how an entry comparison ended: the counts, and the key groups and keys of
// what is listed, in order.
func changesOf(t *testing.T, d *differ) (all []string) {
	t.Helper()
	r, err := d.run()
	if err != nil {
		t.Fatal(err)
	}
	k := r.Operators[0].States[0].Keyed
	if k == nil || k.NotCompared != nil {
		t.Fatalf("not compared: %+v", k)
	}
	for _, st := range slices.SortedFunc(slices.Values(k.States), func(a, b *KeyedState) int { return cmp.Compare(a.Name, b.Name) }) {
		all = append(all, fmt.Sprintf("%s: %d removed, %d changed, %d added", st.Name, st.Removed, st.Changed, st.Added))
		for _, change := range st.Changes {
			all = append(all, fmt.Sprintf("%s: %s → %s", st.Name, textOf(change.Old), textOf(change.New)))
		}
	}
	return all
}

func textOf(at *KeyedAt) string {
	if at == nil {
		return "nothing"
	}
	if at.Handle.KeyGroups().Intersect(format.KeyGroupRange{First: at.Entry.KeyGroup, Count: 1}).Count == 0 || keyedIn(at.Subtask, at.Slot) != at.Handle {
		return fmt.Sprintf("an entry of key group %d in another handle", at.Entry.KeyGroup)
	}
	return fmt.Sprintf("%d %s=%s", at.Entry.KeyGroup, at.Entry.Key[2:], at.Entry.Value[2:])
}

// TestEntryUnits: in one unit or in one for each key group, with any number of jobs and
// at any parallelism, the counts are the same, and so are the listed entries and their
// order: by key group, then by key.
func TestEntryUnits(t *testing.T) {
	const maxParallelism, most = 128, 25
	old, now := map[[2]string]string{}, map[[2]string]string{}
	type entry struct {
		group int32
		key   string
	}
	differ := map[string]*[3][]entry{"a": {}, "b": {}, "c": {}} // by state: removed, changed, added
	for i := range 4000 {
		k := [2]string{[]string{"a", "b", "c"}[i%3], fmt.Sprintf("key-%04d", i)}
		at := entry{native.KeyGroup(msgText(k[1]), maxParallelism), k[1]}
		d := differ[k[0]]
		switch i / 3 % 9 {
		case 0:
			old[k] = "x"
			d[0] = append(d[0], at)
		case 1:
			old[k], now[k] = "x", "y"
			d[1] = append(d[1], at)
		case 2:
			now[k] = "y"
			d[2] = append(d[2], at)
		default:
			old[k], now[k] = "x", "x"
		}
	}
	var want []string
	for _, name := range slices.Sorted(maps.Keys(differ)) {
		d := differ[name]
		want = append(want, fmt.Sprintf("%s: %d removed, %d changed, %d added", name, len(d[0]), len(d[1]), len(d[2])))
		for i, text := range []string{"%s: %d %s=x → nothing", "%s: %d %s=x → %[2]d %[3]s=y", "%s: nothing → %d %s=y"} {
			slices.SortFunc(d[i], func(a, b entry) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.key, b.key)) })
			for _, e := range d[i][:most] {
				want = append(want, fmt.Sprintf(text, name, e.group, e.key))
			}
		}
	}
	a := keyedView(t, 2, maxParallelism, old)
	for _, parallelism := range []int32{2, 40} {
		b := keyedView(t, parallelism, maxParallelism, now)
		for _, jobs := range []int{1, 2, 8} {
			for _, unit := range []int64{1, 300, entryUnit} {
				for _, memory := range []int64{80 << 20, 1 << 10} {
					d := newDiffer(t.Context(), a, b, Options{List: most, Jobs: jobs, TempDir: t.TempDir(), Ignore: rescaled})
					d.unit, d.memory = unit, memory
					if got := changesOf(t, d); !slices.Equal(got, want) {
						t.Errorf("parallelism %d, %d jobs, units of %d bytes, %d bytes of memory:\n%q\nexpected\n%q", parallelism, jobs, unit, memory, got, want)
					}
				}
			}
		}
	}
}

// TestMisplacedKey: a key in another key group is removed and added, wherever units end,
// unless the max parallelism differs too, which puts all keys in other key groups.
func TestMisplacedKey(t *testing.T) {
	values := map[[2]string]string{}
	for i := range 100 {
		values[[2]string{"a", fmt.Sprint("key-", i)}] = fmt.Sprint(i)
	}
	misplaced := msgText("key-7")
	for _, away := range []int32{1, 64} {
		for _, maxParallelism := range []int32{128, 256} {
			correct := native.KeyGroup(misplaced, maxParallelism)
			wrong := (correct + away) % maxParallelism
			b := keyedViewIn(t, 2, maxParallelism, values, func(key []byte) int32 {
				if bytes.Equal(key, misplaced) {
					return wrong
				}
				return native.KeyGroup(key, maxParallelism)
			})
			want := []string{"a: 0 removed, 0 changed, 0 added"}
			if maxParallelism == 128 {
				want = []string{"a: 1 removed, 0 changed, 1 added", fmt.Sprintf("a: %d key-7=7 → nothing", correct), fmt.Sprintf("a: nothing → %d key-7=7", wrong)}
			}
			want = append(want, "b: 0 removed, 0 changed, 0 added", "c: 0 removed, 0 changed, 0 added")
			for _, unit := range []int64{1, entryUnit} {
				d := newDiffer(t.Context(), keyedView(t, 3, 128, values), b, Options{List: 5, Ignore: rescaled})
				d.unit = unit
				if got := changesOf(t, d); !slices.Equal(got, want) {
					t.Errorf("%d of %d, units of %d bytes: %q, expected %q", wrong, maxParallelism, unit, got, want)
				}
			}
		}
	}
}

// TestDivide: units are in order and hold each compared key group once, and both sides
// can hold what is in a unit in their tables. The key groups of a changelog are in one.
func TestDivide(t *testing.T) {
	full := func(first, count int32, size int) format.KeyedHandle {
		return &format.KeyGroups{Range: format.KeyGroupRange{First: first, Count: count}, Data: sptest.Inline(fmt.Sprint("part ", first, count), string(make([]byte, size)))}
	}
	changelog := func(first, count int32) format.KeyedHandle {
		return &format.Changelog{Range: format.KeyGroupRange{First: first, Count: count}}
	}
	for _, tt := range []struct {
		name   string
		a, b   []format.KeyedHandle
		groups []int32
		want   [][2]int64 // first and last key group
	}{
		{"nothing", nil, nil, nil, nil},
		{"small", []format.KeyedHandle{full(0, 8, 90)}, []format.KeyedHandle{full(0, 4, 10), full(4, 4, 10)}, nil, [][2]int64{{0, 7}}},
		{"the larger side counts", []format.KeyedHandle{full(0, 8, 390)}, []format.KeyedHandle{full(0, 8, 10)}, nil, [][2]int64{{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
		{"a large handle at the end", []format.KeyedHandle{full(0, 4, 10)}, []format.KeyedHandle{full(4, 4, 190)}, nil, [][2]int64{{0, 5}, {6, 7}}},
		{"large key groups", []format.KeyedHandle{full(3, 2, 10_000)}, nil, nil, [][2]int64{{3, 3}, {4, 4}}},
		{"only some", []format.KeyedHandle{full(0, 8, 390)}, []format.KeyedHandle{full(0, 8, 390)}, []int32{1, 6, 7}, [][2]int64{{1, 6}, {7, 7}}},
		{"changelog", []format.KeyedHandle{full(0, 8, 790)}, []format.KeyedHandle{full(0, 2, 10), changelog(2, 4), full(6, 2, 10)}, nil, [][2]int64{{0, 0}, {1, 1}, {2, 5}, {6, 6}, {7, 7}}},
		{"changelogs of two subtasks", []format.KeyedHandle{changelog(0, 4), changelog(4, 4)}, []format.KeyedHandle{full(0, 8, 790)}, nil, [][2]int64{{0, 3}, {4, 7}}},
		{"changelogs that overlap", []format.KeyedHandle{changelog(0, 4), changelog(4, 4)}, []format.KeyedHandle{changelog(0, 5), changelog(5, 3)}, nil, [][2]int64{{0, 7}}},
		{"no valid range", []format.KeyedHandle{full(-1, 8, 10)}, nil, nil, [][2]int64{{0, -2}}},
		{"too many", []format.KeyedHandle{full(1, format.MaxKeyGroups, 10)}, nil, nil, [][2]int64{{0, -2}}},
	} {
		c := &keyedEntries{d: &differ{unit: 100}, byGroup: true, groups: tt.groups}
		for side, handles := range [][]format.KeyedHandle{tt.a, tt.b} {
			for _, h := range handles {
				c.handles[side] = append(c.handles[side], &entryHandle{KeyedAt: KeyedAt{Handle: h}})
			}
		}
		var got [][2]int64
		for _, u := range c.divide() {
			got = append(got, [2]int64{u.First, u.First + u.Count - 1})
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, expected %v", tt.name, got, tt.want)
		}
		c.byGroup = false
		if all := c.divide(); len(all) != 1 || all[0].Count != work.All {
			t.Errorf("%s: of different max parallelisms: %+v", tt.name, all)
		}
	}
}

// TestEntriesWithoutTemporaryFiles: a temporary file that cannot be written ends the
// comparison, with any number of jobs: the entries could be compared.
func TestEntriesWithoutTemporaryFiles(t *testing.T) {
	old, now := map[[2]string]string{}, map[[2]string]string{}
	for i := range 1000 {
		k := [2]string{"a", fmt.Sprint("key-", i)}
		old[k], now[k] = "x", "y"
	}
	for _, jobs := range []int{1, 8} {
		d := newDiffer(t.Context(), keyedView(t, 2, 128, old), keyedView(t, 3, 128, now), Options{Jobs: jobs, TempDir: t.TempDir() + "/not there", Ignore: rescaled})
		d.memory = 1 << 10
		var temp *tally.TempError
		if _, err := d.run(); !errors.As(err, &temp) {
			t.Errorf("%d jobs: %v", jobs, err)
		}
	}
}
