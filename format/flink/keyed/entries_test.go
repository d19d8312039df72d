package keyed_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// truth is what the subtasks of a job held, by operator id.
type truth map[string]map[string][]string // operator: state: entries, sorted

// entry is how the tests write an entry of state: key group, key, namespace and value
// as JSON.
func entry(group int32, parts ...any) string {
	s := fmt.Sprint(group)
	for _, p := range parts {
		t, err := json.Marshal(p)
		if err != nil {
			panic(err)
		}
		s += " " + string(t)
	}
	return s
}

// readTruth reads truth.json.
func readTruth(t testing.TB, file string) truth {
	t.Helper()
	p, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type timer struct {
		Group     int32 `json:"key_group"`
		Key       any
		Namespace any
		Timestamp json.Number
	}
	var all struct {
		Operators []struct {
			ID       string
			Subtasks []struct {
				Keyed map[string]struct {
					Kind    string
					TTL     any
					Entries []struct {
						Group                 int32 `json:"key_group"`
						Key, Namespace, Value any
					}
				} `json:"keyed_state"`
				Timers map[string]struct{ Event, Processing []timer }
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(p))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	out := truth{}
	for _, op := range all.Operators {
		states := map[string][]string{}
		for _, s := range op.Subtasks {
			for name, st := range s.Keyed {
				for _, e := range st.Entries {
					states[name] = append(states[name], entry(e.Group, e.Key, e.Namespace, e.Value))
				}
			}
			for service, queues := range s.Timers {
				for prefix, list := range map[string][]timer{"_timer_state/event_": queues.Event, "_timer_state/processing_": queues.Processing} {
					for _, x := range list {
						states[prefix+service] = append(states[prefix+service], entry(x.Group, x.Key, x.Namespace, x.Timestamp))
					}
				}
			}
		}
		for _, list := range states {
			slices.Sort(list)
		}
		out[op.ID] = states
	}
	return out
}

// plain is a value as truth.json writes it.
func plain(v value.Value) any {
	switch v.Kind() {
	case value.KindNull:
		return nil
	case value.KindBool:
		return v.Bool()
	case value.KindInt:
		return json.Number(fmt.Sprint(v.Int()))
	case value.KindUint:
		return json.Number(fmt.Sprint(v.Uint()))
	case value.KindFloat32, value.KindFloat64:
		if f := v.Float(); f == math.Trunc(f) && math.Abs(f) < 1e7 {
			return json.Number(fmt.Sprintf("%.1f", f))
		}
		return json.Number(fmt.Sprint(v.Float()))
	case value.KindBytes:
		return map[string]string{"hex": fmt.Sprintf("%x", v.Text())}
	case value.KindList:
		all := make([]any, v.Len())
		for i := range all {
			all[i] = plain(v.At(i))
		}
		return all
	case value.KindRecord:
		m := map[string]any{}
		for i := range v.Len() {
			m[v.Name(i)] = plain(v.At(i))
		}
		return m
	}
	return v.String()
}

// decoder decodes the entries of a state.
type decoder struct {
	name string
	kind string
	value.EntryCodecs
}

func decoders(t testing.TB, c *keyed.Codec, src format.Source, h format.KeyedHandle) ([]decoder, error) {
	t.Helper()
	schema, err := c.Describe(t.Context(), src, h)
	if err != nil {
		return nil, err
	}
	codecs, err := c.EntryCodecs(t.Context(), src, h)
	if err != nil {
		return nil, err
	}
	all := make([]decoder, len(schema.States))
	for i, s := range schema.States {
		if codecs[i].Why != nil {
			t.Errorf("state %q: %v", s.Name, codecs[i].Why)
		}
		all[i] = decoder{s.Name.String(), s.Kind, codecs[i]}
	}
	return all, nil
}

func (d *decoder) read(t testing.TB, c value.Codec, p []byte) any {
	t.Helper()
	v, err := testenv.ReadBack(t, c, p)
	if err != nil {
		t.Fatalf("state %q: % x: %v", d.name, p, err)
	}
	return plain(v)
}

// withTTL writes a value with its time as truth.json does.
func (d *decoder) withTTL(v any) any {
	if pair, ok := v.([]any); ok && d.TTL && len(pair) == 2 {
		return map[string]any{"ttl_timestamp": pair[0], "value": pair[1]}
	}
	return v
}

// collected are entries as truth.json has them: a map is one entry.
type collected struct {
	states map[string][]string
	maps   map[string]map[string]*mapOfKey // by state, then key group, key and namespace
	n      int
}

type mapOfKey struct {
	group          int32
	key, namespace any
	pairs          [][2]any
}

func (c *collected) add(t testing.TB, d *decoder, e format.KeyedEntry) {
	t.Helper()
	c.n++
	key, ns := d.read(t, d.Key, e.Key), d.read(t, d.Namespace, e.Namespace)
	switch d.kind {
	case types.Timers:
		c.states[d.name] = append(c.states[d.name], entry(e.KeyGroup, key, ns, json.Number(fmt.Sprint(e.Time))))
	case "list":
		all := d.read(t, d.Value, e.Value).([]any)
		for i := range all {
			all[i] = d.withTTL(all[i])
		}
		c.states[d.name] = append(c.states[d.name], entry(e.KeyGroup, key, ns, all))
	case "map":
		if c.maps[d.name] == nil {
			c.maps[d.name] = map[string]*mapOfKey{}
		}
		name := entry(e.KeyGroup, key, ns)
		m := c.maps[d.name][name]
		if m == nil {
			m = &mapOfKey{group: e.KeyGroup, key: key, namespace: ns}
			c.maps[d.name][name] = m
		}
		v := d.withTTL(d.read(t, d.Value, e.Value))
		if null := v == nil; null != (e.Value[0] == 1) {
			t.Errorf("state %q: null is %v, the flag of an entry is %d", d.name, null, e.Value[0])
		}
		m.pairs = append(m.pairs, [2]any{d.read(t, d.UserKey, e.UserKey), v})
	default:
		c.states[d.name] = append(c.states[d.name], entry(e.KeyGroup, key, ns, d.withTTL(d.read(t, d.Value, e.Value))))
	}
}

// all returns the entries by state, sorted.
func (c *collected) all() map[string][]string {
	out := maps.Clone(c.states)
	for name, keys := range c.maps {
		for _, m := range keys {
			slices.SortFunc(m.pairs, func(a, b [2]any) int {
				return strings.Compare(entry(0, a[0]), entry(0, b[0]))
			})
			out[name] = append(out[name], entry(m.group, m.key, m.namespace, m.pairs))
		}
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}

// encodingOf names the encoding of a keyed handle.
func encodingOf(h format.KeyedHandle) string {
	switch h := h.(type) {
	case *format.KeyGroups:
		switch {
		case h.Codec == format.CodecRaw:
			return "raw"
		case h.Savepoint:
			return "canonical"
		}
		return "heap"
	case *format.Incremental:
		return "rocksdb"
	case *format.Changelog:
		return "changelog"
	}
	return fmt.Sprintf("%T", h)
}

// known is a snapshot and the file that says what the job held.
type known struct{ name, dir, truth string }

// fixtures are the snapshots of testdata with a truth.
func fixtures(t *testing.T) (all []known) {
	t.Helper()
	root := filepath.Join(testenv.ModuleRoot(t), "testdata", "savepoints")
	one, err := filepath.Glob(filepath.Join(root, "*", "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := filepath.Glob(filepath.Join(root, "*.truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(one, two...) {
		name := strings.TrimSuffix(filepath.Base(file), ".truth.json")
		if name == "truth.json" {
			name = filepath.Base(filepath.Dir(file))
		}
		if name != "sp-005" { // unaligned: the truth is what the job held after it had processed in-flight data
			all = append(all, known{name, testenv.Fixture(t, name), file})
		}
	}
	return all
}

// TestTruth reads the entries of the snapshots of testdata, and compares them with
// what the running job held.
func TestTruth(t *testing.T) {
	if n := compareTruth(t, fixtures(t)); n < 1000 {
		t.Errorf("%d entries", n)
	}
}

// TestKnownTruth is TestTruth with the known snapshots of the corpus.
func TestKnownTruth(t *testing.T) {
	var all []known
	for _, k := range testenv.KnownSnapshots(t) {
		if !k.Unaligned {
			all = append(all, known{k.Name, k.Location, filepath.Join(k.Dir, "truth.json")})
		}
	}
	n := compareTruth(t, all)
	testenv.Some(t, "keyed entries of which the truth is known", n, n > 0)
}

func compareTruth(t *testing.T, all []known) int {
	t.Helper()
	snapshots, compared := 0, 0
	entries, groups, handles := map[string]int{}, map[string]int{}, map[string]int{}
	for _, k := range all {
		want := readTruth(t, k.truth)
		snap := sptest.Open(t, k.dir)
		used := false
		for _, op := range snap.Operators {
			got := &collected{states: map[string][]string{}, maps: map[string]map[string]*mapOfKey{}}
			for _, sub := range op.Subtasks {
				for _, h := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
					if h == nil {
						continue
					}
					used = true
					c := &keyed.Codec{MaxParallelism: op.MaxParallelism}
					d, err := decoders(t, c, snap.Source(), h)
					if err != nil {
						t.Errorf("%s: operator %q: subtask %d: %v", k.name, op.Label(), sub.Index, err)
						continue
					}
					before, seen := got.n, map[int32]bool{}
					cur, err := c.Entries(t.Context(), snap.Source(), h, format.KeyedSelection{})
					if err != nil {
						t.Errorf("%s: operator %q: subtask %d: %v", k.name, op.Label(), sub.Index, err)
						continue
					}
					for {
						e, err := cur.Next()
						if err == io.EOF {
							break
						}
						if err != nil {
							t.Errorf("%s: operator %q: subtask %d: %v", k.name, op.Label(), sub.Index, err)
							break
						}
						seen[e.KeyGroup] = true
						got.add(t, &d[e.State], e)
					}
					if err := cur.Close(); err != nil {
						t.Error(err)
					}
					enc := encodingOf(h)
					handles[enc]++
					entries[enc] += got.n - before
					groups[enc] += len(seen)
				}
			}
			all := got.all()
			for name, list := range want[op.ID.String()] {
				if !slices.Equal(all[name], list) {
					t.Errorf("%s: operator %q: state %q:\nread\n\t%s\nexpected\n\t%s", k.name, op.Label(), name, strings.Join(all[name], "\n\t"), strings.Join(list, "\n\t"))
				}
				compared += len(list)
				delete(all, name)
			}
			for name, list := range all {
				if len(list) > 0 && want[op.ID.String()] != nil {
					t.Errorf("%s: operator %q: state %q, which the job did not have: %d entries", k.name, op.Label(), name, len(list))
				}
			}
		}
		if used {
			snapshots++
		}
	}
	t.Logf("%d snapshots with keyed state: handles %v, entries %v, key groups with entries %v; %d entries compared with the truth", snapshots, handles, entries, groups, compared)
	return compared
}
