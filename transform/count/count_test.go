package count_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/transform/count"
)

// counts is what the truth says of one state.
type counts struct {
	entries, keys, expired int64
	timers                 [5]int64
	groups                 map[int32]int64 // entries by key group
	hash                   map[string]bool // keys
}

// at and ttl are what the truths are counted with: the times of entries with TTL of
// the known snapshots are around 5000 s, some timers are in the year 2100.
var (
	at  = time.UnixMilli(4_102_444_800_000 - 3_000_000) // 50 minutes before 2100
	ttl = 24 * time.Hour
)

type truthEntry struct {
	Group     int32 `json:"key_group"`
	Key       json.RawMessage
	Namespace json.RawMessage
	Value     json.RawMessage
	Timestamp int64
}

// readTruth counts what a truth.json holds, by operator id and name of a state.
func readTruth(t *testing.T, file string) map[string]map[string]*counts {
	t.Helper()
	p, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Operators []struct {
			ID       string
			Subtasks []struct {
				Keyed map[string]struct {
					Kind    string
					TTL     any
					Entries []truthEntry
				} `json:"keyed_state"`
				Timers map[string]struct{ Event, Processing []truthEntry }
			}
		}
	}
	if err := json.Unmarshal(p, &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]*counts{}
	for _, op := range all.Operators {
		states := map[string]*counts{}
		of := func(name string) *counts {
			if states[name] == nil {
				states[name] = &counts{groups: map[int32]int64{}, hash: map[string]bool{}}
			}
			return states[name]
		}
		for _, s := range op.Subtasks {
			for name, st := range s.Keyed {
				c := of(name)
				for _, e := range st.Entries {
					n := int64(1)
					times := [][]byte{e.Value}
					if st.Kind == "map" {
						var pairs [][2]json.RawMessage
						if err := json.Unmarshal(e.Value, &pairs); err != nil {
							t.Fatal(err)
						}
						n, times = int64(len(pairs)), nil
						for _, p := range pairs {
							times = append(times, p[1])
						}
					}
					if st.TTL != nil {
						for _, v := range times {
							c.expired += expired(t, v, st.Kind)
						}
					}
					c.add(e, n)
				}
			}
			for service, queues := range s.Timers {
				for prefix, list := range map[string][]truthEntry{"_timer_state/event_": queues.Event, "_timer_state/processing_": queues.Processing} {
					c := of(prefix + service)
					for _, e := range list {
						c.add(e, 1)
						c.timers[bucket(time.UnixMilli(e.Timestamp))]++
					}
				}
			}
		}
		out[op.ID] = states
	}
	return out
}

func (c *counts) add(e truthEntry, n int64) {
	c.entries += n
	c.groups[e.Group] += n
	if !c.hash[string(e.Key)] {
		c.hash[string(e.Key)] = true
		c.keys++
	}
}

// expired returns 1 if every element of a value was last updated a ttl before at.
func expired(t *testing.T, p json.RawMessage, kind string) int64 {
	type timed struct {
		At *int64 `json:"ttl_timestamp"`
	}
	all := make([]timed, 1)
	if kind == "list" {
		all = nil
		if err := json.Unmarshal(p, &all); err != nil {
			t.Fatal(err)
		}
	} else if err := json.Unmarshal(p, &all[0]); err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if x.At == nil {
			t.Fatalf("a value without time: %s", p)
		}
		if time.UnixMilli(*x.At).Add(ttl).After(at) {
			return 0
		}
	}
	return 1
}

func bucket(when time.Time) int {
	switch d := when.Sub(at); {
	case d <= 0:
		return 0
	case d <= time.Hour:
		return 1
	case d <= 24*time.Hour:
		return 2
	case d <= 100*365*24*time.Hour:
		return 3
	}
	return 4
}

// keyedCounts counts a snapshot.
func keyedCounts(t *testing.T, dir string, o count.Options) *count.Report {
	t.Helper()
	r, err := count.Keyed(t.Context(), sptest.Open(t, dir).View(), o)
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return r
}

// TestTruth compares the counts of the snapshots of testdata with what the running
// job held.
func TestTruth(t *testing.T) {
	root := filepath.Join(testenv.ModuleRoot(t), "testdata", "savepoints")
	files, err := filepath.Glob(filepath.Join(root, "*.truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(root, "*", "truth.json"))
	if err != nil || len(files) < 10 || len(made) < 20 {
		t.Fatalf("%d and %d files: %v", len(files), len(made), err)
	}
	n := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".truth.json")
		if name != "sp-005" { // the truth is what the job held after it had processed in-flight data
			n += compare(t, name, testenv.Fixture(t, name), file)
		}
	}
	for _, file := range made { // ForSt is among them
		name := filepath.Base(filepath.Dir(file))
		n += compare(t, name, testenv.Fixture(t, name), file)
	}
	if n < 20 {
		t.Errorf("%d states compared", n)
	}
}

// TestKnown is TestTruth with the known snapshots of the corpus, in every encoding.
func TestKnown(t *testing.T) {
	n := 0
	for _, k := range testenv.KnownSnapshots(t) {
		if !k.Unaligned {
			n += compare(t, k.Name, k.Location, filepath.Join(k.Dir, "truth.json"))
		}
	}
	testenv.Some(t, "keyed states of which the truth is known", n, n > 0)
}

func compare(t *testing.T, name, dir, file string) (n int) {
	t.Helper()
	want := readTruth(t, file)
	r := keyedCounts(t, dir, count.Options{At: at, TTL: ttl, Jobs: 1})
	if again := keyedCounts(t, dir, count.Options{At: at, TTL: ttl, Jobs: 7}); len(r.Operators) != len(again.Operators) {
		t.Errorf("%s: %d operators with 7 jobs, %d with one", name, len(again.Operators), len(r.Operators))
	} else {
		for i, op := range r.Operators {
			if !reflect.DeepEqual(op.States, again.Operators[i].States) || !slices.Equal(op.Groups, again.Operators[i].Groups) {
				t.Errorf("%s: operator %q: the counts with 7 jobs are others", name, op.Label())
			}
		}
	}
	for _, op := range r.Operators {
		truth := want[op.ID.String()]
		groups := map[int32]int64{}
		bytes := int64(0)
		for _, st := range op.States {
			c := truth[st.Name]
			bytes += st.Bytes
			if c == nil {
				if st.Entries > 0 && truth != nil {
					t.Errorf("%s: operator %q: state %q, which the job did not have: %d entries", name, op.Label(), st.Name, st.Entries)
				}
				continue
			}
			n++
			h := st.Horizon
			got := counts{entries: st.Entries, keys: st.Keys, expired: st.Expired.Entries, timers: [5]int64{h.Overdue, h.Hour, h.Day, h.Later, h.Far}}
			if got.entries != c.entries || got.keys != c.keys || got.expired != c.expired || got.timers != c.timers {
				t.Errorf("%s: operator %q: state %q: entries, keys, expired, timers: %d %d %d %d, expected %d %d %d %d", name, op.Label(), st.Name,
					got.entries, got.keys, got.expired, got.timers, c.entries, c.keys, c.expired, c.timers)
			}
			for g, k := range c.groups {
				groups[g] += k
			}
			delete(truth, st.Name)
		}
		for state, c := range truth {
			if c.entries > 0 {
				t.Errorf("%s: operator %q: state %q was not counted: it has %d entries", name, op.Label(), state, c.entries)
			}
		}
		found := map[int32]int64{}
		sum := int64(0)
		for g, k := range op.Groups {
			if k.Entries > 0 {
				found[int32(g)] = k.Entries
			}
			sum += k.Bytes
		}
		if truth != nil && !maps.Equal(groups, found) {
			t.Errorf("%s: operator %q: entries by key group: %v, expected %v", name, op.Label(), found, groups)
		}
		for _, p := range []int32{1, 3, op.MaxParallelism} {
			if s := op.Subtasks(p); s.Sum != bytes || sum != bytes || s.Count != int(p) {
				t.Errorf("%s: operator %q: %d bytes, %d in key groups, %d in %d of %d subtasks", name, op.Label(), bytes, sum, s.Sum, s.Count, p)
			}
		}
	}
	return n
}

// TestStates counts some states only.
func TestStates(t *testing.T) {
	dir := testenv.Fixture(t, "sp-002")
	r := keyedCounts(t, dir, count.Options{States: format.Globs{"ttl-*"}})
	var names []string
	for _, op := range r.Operators {
		for _, st := range op.States {
			names = append(names, st.Name)
		}
	}
	slices.Sort(names)
	if want := []string{"ttl-counts", "ttl-last", "ttl-words"}; !slices.Equal(names, want) {
		t.Errorf("%q, expected %q", names, want)
	}
	if !slices.Contains(r.Names, "counts") || !slices.IsSorted(r.Names) {
		t.Errorf("names %q", r.Names)
	}
	for _, op := range keyedCounts(t, dir, count.Options{States: format.Globs{"nothing"}}).Operators {
		if len(op.States) > 0 {
			t.Errorf("states %v of a name that no state has", op.States)
		}
	}
}

// TestHostileRange: a range of key groups that the operator does not have is an error,
// and takes no memory.
func TestHostileRange(t *testing.T) {
	for _, r := range []format.KeyGroupRange{{First: 0, Count: 1<<31 - 1}, {First: 100, Count: 29}, {First: -1, Count: 2}, {First: 1<<31 - 1, Count: 1}} {
		view := sptest.Open(t, testenv.Fixture(t, "sp-003")).View()
		for _, op := range view.Operators {
			for _, sub := range op.Subtasks {
				if h, ok := sub.ManagedKeyed.(*format.Incremental); ok {
					h.Range = r
				}
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := count.Keyed(t.Context(), view, count.Options{Jobs: 1})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, format.ErrCorrupt) || n > 16<<20 {
			t.Errorf("%v: %v, %d bytes allocated", r, err, n)
		}
	}
}

// TestSkew distributes bytes by Flink's rule: subtask i of p has the key groups from
// ceil(i*max/p) on.
func TestSkew(t *testing.T) {
	op := &count.Operator{Groups: []count.Group{{Bytes: 10}, {Bytes: 1}, {Bytes: 2}, {Bytes: 3}, {Bytes: 0}}}
	for _, x := range []struct {
		got, want count.Skew
	}{
		{op.Skew(), count.Skew{Count: 5, Largest: 10, Median: 2, Smallest: 0, Index: 0, Sum: 16}},
		{op.Subtasks(1), count.Skew{Count: 1, Largest: 16, Median: 16, Smallest: 16, Sum: 16}},
		{op.Subtasks(2), count.Skew{Count: 2, Largest: 13, Median: 3, Smallest: 3, Sum: 16}},           // 0-2, 3-4
		{op.Subtasks(3), count.Skew{Count: 3, Largest: 11, Median: 5, Smallest: 0, Index: 0, Sum: 16}}, // 0-1, 2-3, 4
		{op.Subtasks(5), op.Skew()},
	} {
		if x.got != x.want {
			t.Errorf("%+v, expected %+v", x.got, x.want)
		}
	}
}
