package sptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// KeyedStates are the entries of keyed states and the timers by the names of the states,
// sorted. An entry is its key group, and key, namespace and value as JSON; a map of a key
// is one entry, and the value of a timer is its time.
type KeyedStates map[string][]string

// keyedLine returns an entry as text.
func keyedLine(group int32, parts ...any) string {
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

// KeyedTruth reads what a truth.json says of the keyed state of operators, by their ids.
func KeyedTruth(t testing.TB, file string) map[string]KeyedStates {
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
	out := map[string]KeyedStates{}
	for _, op := range all.Operators {
		states := KeyedStates{}
		for _, s := range op.Subtasks {
			for name, st := range s.Keyed {
				for _, e := range st.Entries {
					states[name] = append(states[name], keyedLine(e.Group, e.Key, e.Namespace, e.Value))
				}
			}
			for service, queues := range s.Timers {
				for prefix, list := range map[string][]timer{"_timer_state/event_": queues.Event, "_timer_state/processing_": queues.Processing} {
					for _, x := range list {
						states[prefix+service] = append(states[prefix+service], keyedLine(x.Group, x.Key, x.Namespace, x.Timestamp))
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

// truthValue returns a value as truth.json writes it.
func truthValue(v value.Value) any {
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
			all[i] = truthValue(v.At(i))
		}
		return all
	case value.KindRecord:
		m := map[string]any{}
		for i := range v.Len() {
			m[v.Name(i)] = truthValue(v.At(i))
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

func decoders(t testing.TB, c format.KeyedCodec, src format.Source, h format.KeyedHandle) ([]decoder, error) {
	t.Helper()
	schema, err := c.Describe(t.Context(), src, h)
	if err != nil {
		return nil, err
	}
	codecs, err := value.EntryCodecsOf(t.Context(), src, c, h)
	if err != nil {
		return nil, err
	}
	all := make([]decoder, len(schema.States))
	for i, s := range schema.States {
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
	return truthValue(v)
}

// withTTL writes a value with its time as truth.json does.
func (d *decoder) withTTL(v any) any {
	if pair, ok := v.([]any); ok && d.TTL && len(pair) == 2 {
		return map[string]any{"ttl_timestamp": pair[0], "value": pair[1]}
	}
	return v
}

// KeyedRead is keyed state that was read as truth.json has it.
type KeyedRead struct {
	Handles, Entries, Groups map[string]int // by encoding; Groups are key groups with entries
	// Undecoded are the states whose entries are not decoded, and why. They are not among
	// the States.
	Undecoded map[string]error

	states map[string][]string
	maps   map[string]map[string]*mapOfKey // by state, then key group, key and namespace
}

type mapOfKey struct {
	group          int32
	key, namespace any
	pairs          [][2]any
}

func (c *KeyedRead) add(t testing.TB, d *decoder, e format.KeyedEntry) {
	t.Helper()
	key, ns := d.read(t, d.Key, e.Key), d.read(t, d.Namespace, e.Namespace)
	switch d.kind {
	case types.Timers:
		c.states[d.name] = append(c.states[d.name], keyedLine(e.KeyGroup, key, ns, json.Number(fmt.Sprint(e.Time))))
	case "list":
		all := d.read(t, d.Value, e.Value).([]any)
		for i := range all {
			all[i] = d.withTTL(all[i])
		}
		c.states[d.name] = append(c.states[d.name], keyedLine(e.KeyGroup, key, ns, all))
	case "map":
		if c.maps[d.name] == nil {
			c.maps[d.name] = map[string]*mapOfKey{}
		}
		name := keyedLine(e.KeyGroup, key, ns)
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
		c.states[d.name] = append(c.states[d.name], keyedLine(e.KeyGroup, key, ns, d.withTTL(d.read(t, d.Value, e.Value))))
	}
}

// States returns the entries.
func (c *KeyedRead) States() KeyedStates {
	out := KeyedStates(maps.Clone(c.states))
	for name, keys := range c.maps {
		for _, m := range keys {
			slices.SortFunc(m.pairs, func(a, b [2]any) int {
				return strings.Compare(keyedLine(0, a[0]), keyedLine(0, b[0]))
			})
			out[name] = append(out[name], keyedLine(m.group, m.key, m.namespace, m.pairs))
		}
	}
	for _, list := range out {
		slices.Sort(list)
	}
	return out
}

// KeyedEncoding names the encoding of a keyed handle.
func KeyedEncoding(h format.KeyedHandle) string {
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

// ReadKeyed reads the keyed state of an operator. What cannot be read is an error of the
// test.
func ReadKeyed(t testing.TB, in format.View, op *format.Operator) *KeyedRead {
	t.Helper()
	c := &KeyedRead{
		Handles: map[string]int{}, Entries: map[string]int{}, Groups: map[string]int{}, Undecoded: map[string]error{},
		states: map[string][]string{}, maps: map[string]map[string]*mapOfKey{},
	}
	for _, sub := range op.Subtasks {
		for _, h := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
			if h == nil {
				continue
			}
			if err := c.handle(t, in, op, h); err != nil {
				t.Errorf("operator %q: subtask %d: %v", op.Label(), sub.Index, err)
			}
		}
	}
	return c
}

func (c *KeyedRead) handle(t testing.TB, in format.View, op *format.Operator, h format.KeyedHandle) (err error) {
	t.Helper()
	codec, err := in.KeyedCodec(op, h)
	if err != nil {
		return err
	}
	d, err := decoders(t, codec, in.Source, h)
	if err != nil {
		return err
	}
	encoding, seen := KeyedEncoding(h), map[int32]bool{}
	c.Handles[encoding]++
	cur, err := codec.Entries(t.Context(), in.Source, h, format.KeyedSelection{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cur.Close()) }()
	for {
		e, err := cur.Next()
		if err == io.EOF {
			c.Groups[encoding] += len(seen)
			return nil
		}
		if err != nil {
			return err
		}
		seen[e.KeyGroup] = true
		c.Entries[encoding]++
		if s := &d[e.State]; s.Why != nil {
			c.Undecoded[s.name] = s.Why
		} else {
			c.add(t, s, e)
		}
	}
}

// DiffKeyed compares what was read with what the job held. A state that is in the schema
// but has no entries is the same as one that is not.
func DiffKeyed(want, got KeyedStates) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !slices.Equal(want[name], got[name]) {
			fmt.Fprintf(&b, "state %q:\nread\n\t%s\nexpected\n\t%s\n", name, strings.Join(got[name], "\n\t"), strings.Join(want[name], "\n\t"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok && len(got[name]) > 0 {
			fmt.Fprintf(&b, "state %q, which the job did not have: %d entries\n", name, len(got[name]))
		}
	}
	return b.String()
}
