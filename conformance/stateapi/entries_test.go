package stateapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/conformance"
	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
)

// restored is the keyed state of a subtask after a restore by Flink. See KeyedEntries.java.
type restored struct {
	Operator string
	Subtask  int32
	Backend  string
	States   []struct{ Name, Kind string }
	Entries  []entry
	Refused  string // why Flink does not restore it
}

// entry is an entry as Flink or spt read it, in hexadecimal digits.
type entry struct {
	State     string
	KeyGroup  int32 `json:"key_group"`
	Stored    string
	Key       string
	Namespace string
	UserKey   string `json:"user_key"`
	Value     string
	Time      int64
}

// release is the minor number of a release 1.x in the name of a snapshot.
var release = regexp.MustCompile(`[-k]1\.(\d+)(-|$)`)

// older are the snapshots of the corpus that Flink 1.3 to 1.16 wrote, by that release.
func older(t *testing.T) (dirs []string, minor map[string]int) {
	t.Helper()
	minor = map[string]int{}
	for _, dir := range testenv.Snapshots(t) {
		m := release.FindStringSubmatch(filepath.Base(dir))
		if m == nil || filepath.Base(filepath.Dir(dir)) != "savepoints" {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil && n <= 16 {
			dirs = append(dirs, dir)
			minor[dir] = n
		}
	}
	if len(dirs) == 0 {
		testenv.NotTested(t, "NOT TESTED: this corpus has no snapshots of Flink 1.3 to 1.16")
	}
	return dirs, minor
}

// absent are classes that a job brings: the jars of Flink do not have them.
var absent = regexp.MustCompile(`^java\.lang\.ClassNotFoundException: org\.apache\.flink\.(test|api\.scala|avro\.generated)\.`)

// ended are refusals of what was written before Flink 1.8.
var ended = regexp.MustCompile(`from pre Flink 1\.8 savepoints|Please upgrade first to Flink 1\.16|is no longer supported|ClassNotFoundException: org\.apache\.flink\.\S+(ConfigSnapshot|SerializerConfig)$`)

// TestEntriesOfOlderReleases: of every snapshot of Flink 1.3 to 1.16 that the State
// Processor API restores, spt reads the states and entries that the backend holds then.
// Flink 1.20 restores what 1.8 and later wrote, 1.16 all. The only reason not to compare
// is that Flink does not have the class of a serializer.
func TestEntriesOfOlderReleases(t *testing.T) {
	t.Parallel()
	for _, judge := range []struct {
		version string
		oldest  int // release 1.x that it reads
	}{{"1.16", 3}, {"1.20", 8}} {
		t.Run(judge.version, func(t *testing.T) {
			t.Parallel()
			dirs, minor := older(t)
			cmd := conformance.Command(t, "stateapi", "flink-"+judge.version, "spt.stateapi.KeyedEntries")
			cmd.Stdin = strings.NewReader(strings.Join(dirs, "\n") + "\n")
			lines := strings.Split(strings.TrimSpace(conformance.Output(t, cmd)), "\n")
			if len(lines) != len(dirs) {
				t.Fatalf("%d answers for %d snapshots", len(lines), len(dirs))
			}
			var n struct{ snapshots, subtasks, states, entries, timers, without int }
			refused := map[string]int{}
			for i, dir := range dirs {
				var answer struct{ Subtasks []restored }
				if err := json.Unmarshal([]byte(lines[i]), &answer); err != nil {
					t.Fatalf("%s: %v", dir, err)
				}
				snap := sptest.Open(t, dir)
				ours := keyedSubtasks(snap)
				if len(ours) != len(answer.Subtasks) {
					t.Errorf("%s: %d subtasks with keyed state, Flink has %d", dir, len(ours), len(answer.Subtasks))
				}
				compared := 0
				for _, want := range answer.Subtasks {
					where := fmt.Sprintf("%s: operator %s: subtask %d", filepath.Base(dir), want.Operator, want.Subtask)
					if why := want.Refused; why != "" {
						refused[why]++
						if !absent.MatchString(why) && (minor[dir] >= judge.oldest || !ended.MatchString(why)) {
							t.Errorf("%s: Flink does not restore it: %s", where, why)
						}
						continue
					}
					sub, ok := ours[subtaskID{want.Operator, want.Subtask}]
					if !ok {
						t.Errorf("%s: not found", where)
						continue
					}
					got := entriesOf(t, where, snap, sub)
					if diff := cmp.Diff(slices.Sorted(maps.Keys(statesOf(want))), slices.Sorted(maps.Keys(statesOf(got)))); diff != "" {
						t.Errorf("%s: states (-Flink +spt):\n%s", where, diff)
					}
					if diff := cmp.Diff(sorted(want.Entries), sorted(got.Entries)); diff != "" {
						t.Errorf("%s, restored by %s: entries (-Flink +spt):\n%s", where, want.Backend, diff)
					}
					compared++
					n.subtasks++
					n.states += len(want.States)
					n.entries += len(want.Entries)
					for _, e := range want.Entries {
						if strings.HasPrefix(e.State, "_timer_state/") {
							n.timers++
						}
					}
				}
				switch {
				case compared > 0:
					n.snapshots++
				case len(answer.Subtasks) == 0:
					n.without++
				}
			}
			testenv.Some(t, "keyed entries of Flink 1.3 to 1.16", n.entries, true)
			t.Logf("Flink %s: compared %d of %d snapshots: %d subtasks, %d states, %d entries, %d of them timers; %d have no keyed state",
				judge.version, n.snapshots, len(dirs), n.subtasks, n.states, n.entries, n.timers, n.without)
			for _, why := range slices.Sorted(maps.Keys(refused)) {
				t.Logf("not compared: %d subtasks: %s", refused[why], why)
			}
		})
	}
}

// subtaskID is a subtask of an operator.
type subtaskID struct {
	operator string
	index    int32
}

// subtask is a subtask with keyed state.
type subtask struct {
	op  *format.Operator
	sub *format.Subtask
}

func keyedSubtasks(snap *reader.Snapshot) map[subtaskID]subtask {
	all := map[subtaskID]subtask{}
	for _, op := range snap.Operators {
		for _, sub := range op.Subtasks {
			if sub.ManagedKeyed != nil || sub.RawKeyed != nil {
				all[subtaskID{op.ID.String(), sub.Index}] = subtask{op, sub}
			}
		}
	}
	return all
}

// entriesOf returns the keyed state of a subtask as spt reads it.
func entriesOf(t *testing.T, where string, snap *reader.Snapshot, s subtask) (all restored) {
	t.Helper()
	for _, h := range []format.KeyedHandle{s.sub.ManagedKeyed, s.sub.RawKeyed} {
		if h == nil {
			continue
		}
		codec, err := snap.KeyedCodec(s.op, h)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		schema, err := codec.Describe(t.Context(), snap.Source(), h)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		for _, st := range schema.States {
			all.States = append(all.States, struct{ Name, Kind string }{st.Name.String(), st.Kind})
		}
		err = format.EachKeyedEntry(t.Context(), snap.Source(), codec, h, format.KeyedSelection{}, func(e format.KeyedEntry) error {
			hex := func(p []byte) string { return fmt.Sprintf("%x", p) }
			all.Entries = append(all.Entries, entry{
				State: schema.States[e.State].Name.String(), KeyGroup: e.KeyGroup, Stored: hex(e.Stored),
				Key: hex(e.Key), Namespace: hex(e.Namespace), UserKey: hex(e.UserKey), Value: hex(e.Value), Time: e.Time,
			})
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	return all
}

// statesOf are the names and kinds of states.
func statesOf(r restored) map[string]bool {
	all := map[string]bool{}
	for _, s := range r.States {
		all[s.Name+" "+s.Kind] = true
	}
	return all
}

// sorted returns entries in an order that does not depend on the backend.
func sorted(all []entry) []entry {
	return slices.SortedFunc(slices.Values(all), func(a, b entry) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}
