package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// nativeKeyed are the codecs of keyed state of Go programs.
type nativeKeyed struct{ sptest.CodecsFunc }

func (nativeKeyed) KeyedCodec(*format.Operator, format.KeyedHandle) (format.KeyedCodec, error) {
	return native.KeyedCodec{}, nil
}

// keyedView stores values by state and key.
func keyedView(t *testing.T, parallelism, max int32, values map[[2]string]string) format.View {
	t.Helper()
	return keyedViewIn(t, parallelism, max, values, func(key []byte) int32 { return native.KeyGroup(key, max) })
}

// keyedViewIn is keyedView with keys in the key groups that group returns.
func keyedViewIn(t *testing.T, parallelism, max int32, values map[[2]string]string, group func(key []byte) int32) format.View {
	t.Helper()
	states := []string{"b", "a", "c"}
	if parallelism%2 == 1 { // numbered otherwise
		slices.Reverse(states)
	}
	var handles []format.KeyedHandle
	for i := range parallelism {
		groups := format.KeyGroupsOf(i, parallelism, max)
		var schema format.KeyedSchema
		for _, name := range states {
			schema.States = append(schema.States, format.KeyedState{Name: format.NewText(name), Kind: "value"})
		}
		var all []format.KeyedEntry
		for k, v := range values {
			key := msgText(k[1])
			e := format.KeyedEntry{KeyGroup: group(key), State: slices.Index(states, k[0]), Key: key, Namespace: []byte{0xc0}, Value: msgText(v)}
			if groups.Intersect(format.KeyGroupRange{First: e.KeyGroup, Count: 1}).Count > 0 && e.State >= 0 {
				all = append(all, e)
			}
		}
		slices.SortFunc(all, func(a, b format.KeyedEntry) int {
			return cmp.Or(cmp.Compare(a.KeyGroup, b.KeyGroup), cmp.Compare(a.State, b.State), bytes.Compare(a.Key, b.Key))
		})
		var w bytes.Buffer
		b, err := native.KeyedCodec{}.Build(t.Context(), schema, groups, &w)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if err := b.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		h, err := b.Handle()
		if err != nil {
			t.Fatal(err)
		}
		h.Data = sptest.Inline(fmt.Sprint("part ", parallelism, max, i), w.String())
		handles = append(handles, h)
	}
	v := sptest.View(sptest.KeyedOperator(max, handles...))
	v.Codecs = nativeKeyed{sptest.Codecs()}
	return v
}

// msgText is a short text in msgpack.
func msgText(s string) []byte { return append([]byte{0xd9, byte(len(s))}, s...) }

// TestKeyedEntries: what is added, removed and changed is found by key, at any
// parallelism and max parallelism, in memory or not.
func TestKeyedEntries(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	old, now := map[[2]string]string{}, map[[2]string]string{}
	want := map[string]*[3]int64{"b": {}, "a": {}, "c": {}} // added, removed, changed
	for i := range 3000 {
		k := [2]string{[]string{"a", "b", "c"}[random.IntN(3)], fmt.Sprint("key-", i)}
		v := fmt.Sprint(random.IntN(1000))
		switch n := want[k[0]]; random.IntN(8) {
		case 0:
			now[k] = v
			n[0]++
		case 1:
			old[k] = v
			n[1]++
		case 2:
			old[k], now[k] = v, v+"x"
			n[2]++
		default:
			old[k], now[k] = v, v
		}
	}
	a := keyedView(t, 2, 128, old)
	for _, c := range []struct{ parallelism, max int32 }{{2, 128}, {5, 128}, {1, 128}, {3, 1000}, {3, 32}} {
		for _, memory := range []int64{80 << 20, 1 << 10} {
			b := keyedView(t, c.parallelism, c.max, now)
			d := newDiffer(t.Context(), a, b, Options{List: 50, TempDir: t.TempDir(), Ignore: map[Kind]bool{KindParallelism: true, KindMaxParallelism: true, KindSubtasks: true, KindHandles: true}})
			d.memory = memory
			r, err := d.run()
			if err != nil {
				t.Fatal(err)
			}
			got := r.Operators[0].States[0].Keyed
			if got.NotCompared != nil || len(got.States) != 3 {
				t.Fatalf("%+v: %+v", c, got)
			}
			for _, st := range got.States {
				n := want[st.Name]
				if st.Added != n[0] || st.Removed != n[1] || st.Changed != n[2] {
					t.Errorf("%+v: %s: %d added, %d removed, %d changed; expected %v", c, st.Name, st.Added, st.Removed, st.Changed, *n)
				}
				if most := int(min(n[0], 50) + min(n[1], 50) + min(n[2], 50)); len(st.Changes) != most {
					t.Errorf("%+v: %s: %d listed, expected %d", c, st.Name, len(st.Changes), most)
				}
				for _, change := range st.Changes {
					for side, at := range []*KeyedAt{change.Old, change.New} {
						other := []map[[2]string]string{old, now}[side]
						if at == nil {
							continue
						}
						if v := other[[2]string{st.Name, string(at.Entry.Key[2:])}]; v != string(at.Entry.Value[2:]) {
							t.Errorf("%+v: %s: %q has %q, not %q", c, st.Name, at.Entry.Key[2:], at.Entry.Value[2:], v)
						}
					}
					if change.Old != nil && change.New != nil && (!bytes.Equal(change.Old.Entry.Key, change.New.Entry.Key) || bytes.Equal(change.Old.Entry.Value, change.New.Entry.Value)) {
						t.Errorf("%+v: %s: %q → %q", c, st.Name, change.Old.Entry.Key, change.New.Entry.Key)
					}
				}
			}
			if same, err := Savepoints(t.Context(), keyedView(t, 2, 128, now), b, Options{Ignore: d.o.Ignore}); err != nil || !same.Same() {
				t.Errorf("%+v: the same state differs: %v, %v", c, differences(same), err)
			}
		}
	}
}
