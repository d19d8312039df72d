package keyed_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// entriesOf returns copies of the selected entries.
func entriesOf(t testing.TB, src format.Source, c format.KeyedCodec, h format.KeyedHandle, sel format.KeyedSelection) (all []format.KeyedEntry, ordered bool, err error) {
	t.Helper()
	cur, err := c.Entries(t.Context(), src, h, sel)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if cerr := cur.Close(); err == nil {
			err = cerr
		}
	}()
	for {
		e, err := cur.Next()
		if err == io.EOF {
			return all, cur.Ordered(), nil
		}
		if err != nil {
			return all, false, err
		}
		all = append(all, e.Clone())
	}
}

func sameEntry(a, b format.KeyedEntry) bool {
	return a.KeyGroup == b.KeyGroup && a.State == b.State && a.Time == b.Time && bytes.Equal(a.Stored, b.Stored) &&
		bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Namespace, b.Namespace) && bytes.Equal(a.UserKey, b.UserKey) && bytes.Equal(a.Value, b.Value)
}

func byStored(a, b format.KeyedEntry) int {
	if a.State != b.State {
		return a.State - b.State
	}
	return bytes.Compare(a.Stored, b.Stored)
}

// rebuilt returns a canonical handle of entries.
func rebuilt(t testing.TB, c *keyed.Codec, schema format.KeyedSchema, h format.KeyedHandle, all []format.KeyedEntry) (*format.KeyGroups, error) {
	t.Helper()
	var w bytes.Buffer
	b, err := c.Build(t.Context(), schema, h.KeyGroups(), &w)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if err := b.Add(e); err != nil {
			return nil, err
		}
	}
	out, err := b.Handle()
	if err != nil {
		return nil, err
	}
	out.Data = &format.Inline{Data: format.NewBytes(w.Bytes())}
	return out, nil
}

// TestEntriesOfCorpus reads the entries of every keyed handle of real snapshots, each
// selection of them, and builds canonical state from them.
func TestEntriesOfCorpus(t *testing.T) {
	var n struct{ snapshots, handles, entries, groups, missing, empty, selections, whole, rebuilt, equal, compressed int }
	encodings, refused := map[string]int{}, map[string]int{}
	for _, dir := range testenv.Snapshots(t) {
		snap := sptest.Open(t, dir)
		n.snapshots++
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				for _, h := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
					if h == nil {
						continue
					}
					where := fmt.Sprintf("%s: operator %q: subtask %d", dir, op.Label(), sub.Index)
					c := &keyed.Codec{MaxParallelism: op.MaxParallelism}
					all, ordered, err := entriesOf(t, snap.Source(), c, h, format.KeyedSelection{})
					var u *types.UnknownClass
					switch {
					case errors.Is(err, format.ErrMissing):
						n.missing++
						continue
					case errors.As(err, &u):
						refused["class "+u.Class]++
						continue
					case errors.Is(err, format.ErrUnsupported):
						refused[err.Error()]++
						continue
					case err != nil:
						t.Errorf("%s: %v", where, err)
						continue
					}
					n.handles++
					encodings[sptest.KeyedEncoding(h)]++
					n.entries += len(all)
					if len(all) == 0 {
						n.empty++
					}
					groups := map[int32]bool{}
					for i, e := range all {
						groups[e.KeyGroup] = true
						if r := h.KeyGroups(); e.KeyGroup < r.First || e.KeyGroup > r.Last() {
							t.Errorf("%s: key group %d of %v", where, e.KeyGroup, r)
						}
						if i > 0 && e.KeyGroup < all[i-1].KeyGroup {
							t.Errorf("%s: key group %d after %d", where, e.KeyGroup, all[i-1].KeyGroup)
						}
						if ordered && i > 0 && e.KeyGroup == all[i-1].KeyGroup && byStored(all[i-1], e) >= 0 {
							t.Errorf("%s: entry %d is not in order", where, i)
						}
					}
					n.groups += len(groups)
					schema, err := c.Describe(t.Context(), snap.Source(), h)
					if err != nil {
						t.Fatal(err)
					}
					n.whole += whole(t, where, snap.Source(), c, h, all)
					n.selections += selections(t, where, snap.Source(), c, h, schema, all)
					out, err := rebuilt(t, c, schema, h, all)
					if errors.Is(err, format.ErrUnsupported) {
						refused["rebuilt: "+err.Error()]++
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", where, err)
						continue
					}
					n.rebuilt++
					again, _, err := entriesOf(t, sptest.Memory{}, c, out, format.KeyedSelection{})
					if err != nil || !slices.EqualFunc(all, again, sameEntry) {
						t.Errorf("%s: built again it has %d entries, not %d: %v", where, len(again), len(all), err)
					}
					if schema.Compressed {
						n.compressed++
						if is, err := c.Describe(t.Context(), sptest.Memory{}, out); err != nil || !is.Compressed {
							t.Errorf("%s: it was compressed, and built again it is not: %v", where, err)
						}
						schema.Compressed = false
						if out, err = rebuilt(t, c, schema, h, all); err != nil {
							t.Errorf("%s: %v", where, err)
							continue
						}
					}
					if k, ok := h.(*format.KeyGroups); ok && k.Savepoint {
						n.equal += equalBytes(t, where, snap.Source(), k, out)
					}
				}
			}
		}
	}
	t.Logf("%+v; handles %v", n, encodings)
	for _, why := range slices.Sorted(mapKeys(refused)) {
		t.Logf("%d handles refused: %s", refused[why], why)
	}
	if n.handles == 0 || n.rebuilt == 0 || n.compressed == 0 || n.whole == 0 {
		t.Error("nothing was read")
	}
}

func mapKeys(m map[string]int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// equalBytes compares a canonical stream with the stream built from its entries.
func equalBytes(t *testing.T, where string, src format.Source, a, b *format.KeyGroups) int {
	t.Helper()
	plain, err := keyed.Recompress(t.Context(), src, a, false)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return 0
	}
	p, q := make([]byte, plain.Data.Size()), make([]byte, b.Data.Size())
	if _, err := src.ReadAt(t.Context(), plain.Data, p, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := (sptest.Memory{}).ReadAt(t.Context(), b.Data, q, 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(p, q) {
		t.Errorf("%s: built again, its %d bytes are others (%d)", where, len(p), len(q))
		return 0
	}
	return 1
}

// whole compares entries that are not split with those that are, and returns how many the
// codec did not split.
func whole(t *testing.T, where string, src format.Source, c *keyed.Codec, h format.KeyedHandle, all []format.KeyedEntry) (n int) {
	t.Helper()
	got, _, err := entriesOf(t, src, c, h, format.KeyedSelection{Whole: true})
	if err != nil || len(got) != len(all) {
		t.Errorf("%s: %d entries that are not split, expected %d: %v", where, len(got), len(all), err)
		return 0
	}
	for i, e := range all {
		if got[i].Key == nil && e.Key != nil {
			n++
			e = format.KeyedEntry{KeyGroup: e.KeyGroup, State: e.State, Stored: e.Stored, Value: e.Value}
		}
		if !sameEntry(got[i], e) || !bytes.Equal(got[i].Stored, e.Stored) {
			t.Errorf("%s: entry %d is %v, expected %v", where, i, got[i], e)
		}
	}
	return n
}

// selections compares selections of key groups, states and a key with what they are
// selected from.
func selections(t *testing.T, where string, src format.Source, c *keyed.Codec, h format.KeyedHandle, schema format.KeyedSchema, all []format.KeyedEntry) (n int) {
	t.Helper()
	var sels []format.KeyedSelection
	for s := range schema.States {
		sels = append(sels, format.KeyedSelection{States: []int{s}})
	}
	for i, e := range all {
		if i%7 == 0 {
			sels = append(sels, format.KeyedSelection{Groups: format.KeyGroupRange{First: e.KeyGroup, Count: 2}})
		}
		if i%5 == 0 && e.Key != nil {
			sels = append(sels, format.KeyedSelection{Key: e.Key, States: []int{e.State}}, format.KeyedSelection{Key: e.Key, Groups: format.KeyGroupRange{First: e.KeyGroup, Count: 1}, States: []int{e.State}})
		}
		if len(sels) > 60 {
			break
		}
	}
	for _, sel := range sels {
		var want []format.KeyedEntry
		for _, e := range all {
			if sel.Has(e) {
				want = append(want, e)
			}
		}
		got, _, err := entriesOf(t, src, c, h, sel)
		slices.SortFunc(got, byStored)
		slices.SortFunc(want, byStored)
		if err != nil || !slices.EqualFunc(got, want, sameEntry) {
			t.Errorf("%s: %+v: %d entries, expected %d: %v", where, sel, len(got), len(want), err)
		}
		n++
	}
	return n
}

// TestSeveralDatabases: a subtask after a rescale, whose handle has the databases of
// several subtasks, complete, has the entries of its key groups, and each of them.
func TestSeveralDatabases(t *testing.T) {
	joined := 0
	for _, dir := range testenv.Snapshots(t) {
		snap := sptest.Open(t, dir)
		for _, op := range snap.Operators {
			var parts []format.KeyedHandle
			var all []format.KeyedEntry
			c := &keyed.Codec{MaxParallelism: op.MaxParallelism}
			for _, sub := range op.Subtasks {
				h, ok := sub.ManagedKeyed.(*format.Incremental)
				if !ok {
					continue
				}
				part, _, err := entriesOf(t, snap.Source(), c, h, format.KeyedSelection{})
				var u *types.UnknownClass
				if errors.As(err, &u) {
					continue // of the job's own
				}
				if err != nil {
					t.Errorf("%s: %v", dir, err)
				}
				schema, err := c.Describe(t.Context(), snap.Source(), h)
				if err != nil {
					t.Fatal(err)
				}
				if len(parts) > 0 {
					first, err := c.Describe(t.Context(), snap.Source(), parts[0])
					if err != nil || !slices.Equal(schema.States, first.States) {
						continue // numbered otherwise: the entries could not be compared
					}
				}
				parts, all = append(parts, h), append(all, part...)
			}
			if len(parts) < 2 {
				continue
			}
			joined++
			slices.Reverse(parts)
			max := op.MaxParallelism
			for _, groups := range []format.KeyGroupRange{{Count: max}, {First: max / 3, Count: max / 2}, format.KeyGroupsOf(1, 3, max)} {
				h := &format.Changelog{Range: groups, Materialized: parts}
				got, _, err := entriesOf(t, snap.Source(), c, h, format.KeyedSelection{})
				var want []format.KeyedEntry
				for _, e := range all {
					if e.KeyGroup >= groups.First && e.KeyGroup <= groups.Last() {
						want = append(want, e)
					}
				}
				slices.SortFunc(got, byStored)
				slices.SortFunc(want, byStored)
				if err != nil || !slices.EqualFunc(got, want, sameEntry) {
					t.Errorf("%s: operator %q: key groups %v: %d entries, expected %d: %v", dir, op.Label(), groups, len(got), len(want), err)
				}
			}
			twice := &format.Changelog{Range: format.KeyGroupRange{Count: max}, Materialized: append(parts, parts[0])}
			if _, _, err := entriesOf(t, snap.Source(), c, twice, format.KeyedSelection{}); !errors.Is(err, format.ErrUnsupported) {
				t.Errorf("%s: a database twice: %v", dir, err)
			}
		}
	}
	t.Logf("%d operators", joined)
}

// TestTimersOfFlink14: the job of these snapshots sets for each key an event timer at the
// watermark, which is still Long.MIN_VALUE, plus 10, with the key as namespace.
func TestTimersOfFlink14(t *testing.T) {
	for _, name := range []string{"stateful-udf-migration-itcase-flink1.4-savepoint", "stateful-udf-migration-itcase-flink1.4-rocksdb-savepoint"} {
		snap := sptest.Open(t, filepath.Join(testenv.Corpus(t), "savepoints", name))
		v := snap.View()
		var got []string
		for _, op := range v.Operators {
			for _, sub := range op.Subtasks {
				if h := sub.RawKeyed; h != nil {
					all, _, err := entriesOf(t, v.Source, &keyed.Codec{MaxParallelism: op.MaxParallelism}, h, format.KeyedSelection{})
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range all {
						if e.Time < 0 {
							got = append(got, fmt.Sprintf("%x in %x at MIN+%d", e.Key, e.Namespace, e.Time-math.MinInt64))
						}
					}
				}
			}
		}
		slices.Sort(got)
		var want []string
		for key := range 4 {
			want = append(want, fmt.Sprintf("%016x in %016x at MIN+10", key, key))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", name, got, want)
		}
	}
}
