package transform_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/transform"
)

// patchEntries calls transform.Patch with changes of keyed state.
func patchEntries(ctx context.Context, v format.View, changes []transform.PatchChange) (format.View, *transform.PatchReport, error) {
	return transform.Patch(ctx, v, transform.PatchOptions{
		Values: func(context.Context, *format.OperatorHandle, int) (value.ElementCodecs, error) {
			return value.ElementCodecs{}, errors.New("no operator state is patched")
		},
		Changes: func(yield func(transform.PatchChange, error) bool) {
			for i, c := range changes {
				c.Number = int64(i)
				if !yield(c, nil) {
					return
				}
			}
		},
	})
}

// keyedPlace is an entry, as a change to what is stored, and the text that allEntries has
// of it.
type keyedPlace struct {
	transform.PatchChange
	codecs value.EntryCodecs
	stored []byte // value
	text   string // without the value
	hashed bool
}

// with returns the text with a value.
func (p *keyedPlace) with(stored []byte) string { return fmt.Sprintf("%s%x", p.text, stored) }

// keyedPlaces returns the entries of keyed state whose key and value are decoded.
func keyedPlaces(t *testing.T, v format.View) (all []keyedPlace) {
	t.Helper()
	for _, op := range v.Operators {
		for _, sub := range op.Subtasks {
			for _, h := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
				if h == nil {
					continue
				}
				codec, err := v.KeyedCodec(op, h)
				if err != nil {
					t.Fatal(err)
				}
				schema, err := codec.Describe(t.Context(), v.Source, h)
				if err != nil {
					t.Fatal(err)
				}
				codecs, err := value.EntryCodecsOf(t.Context(), v.Source, codec, h)
				if err != nil {
					t.Fatal(err)
				}
				err = format.EachKeyedEntry(t.Context(), v.Source, codec, h, format.KeyedSelection{}, func(e format.KeyedEntry) error {
					st := schema.States[e.State]
					c := codecs[e.State]
					e = e.Clone()
					p := keyedPlace{codecs: c, stored: e.Value, hashed: c.KeyHash != nil, text: fmt.Sprintf("%s %s %d %x %x %x %d ", op.Label(), st.Name, e.KeyGroup, e.Key, e.Namespace, e.UserKey, e.Time)}
					p.PatchChange = transform.PatchChange{Operator: op.ID, State: st.Name.String(), Subtask: sub.Index, Index: transform.NoIndex, Entry: &transform.PatchEntry{KeyGroup: &e.KeyGroup}}
					part := func(c value.Codec, p []byte) (g transform.PatchValue) {
						if p == nil {
							return g
						}
						if c != nil {
							if v, err := value.ReadAll(c, p); err == nil {
								if _, err := value.FromJSONLike(c, v, v.AppendJSON(nil, nil, nil)); err == nil {
									return transform.PatchValue{JSON: v.AppendJSON(nil, nil, nil)}
								}
							}
						}
						return transform.PatchValue{Stored: p}
					}
					switch {
					case e.Key == nil:
						p.Entry.Stored = e.Stored
					default:
						key := part(c.Key, e.Key)
						p.Key, p.Entry.Key = key.JSON, key.Stored
						p.Entry.Namespace, p.Entry.UserKey = part(c.Namespace, e.Namespace), part(c.UserKey, e.UserKey)
					}
					if st.Kind == "timers" {
						p.Entry.Time = &e.Time
					} else if p.Value = part(c.Value, e.Value); c.TTL && p.Value.JSON != nil {
						p.Value = transform.PatchValue{Stored: e.Value} // the JSON of the pair is not what a change has
					}
					all = append(all, p)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return all
}

// In each snapshot of the corpus and of the fixtures, entries of keyed state that are given
// back change nothing. Of each state one entry is replaced, then removed, and then added
// again: nothing else changes.
func TestPatchKeyedEverywhere(t *testing.T) {
	var n struct{ same, replaced, added int }
	eachKeyed(t, func(t *testing.T, v format.View) {
		all := keyedPlaces(t, v)
		var same []transform.PatchChange
		for _, p := range all {
			same = append(same, p.PatchChange)
		}
		out, r, err := patchEntries(t.Context(), v, same)
		if err != nil || out.Savepoint != v.Savepoint || r.Entries > 0 {
			t.Errorf("%v, another savepoint: %v", err, out.Savepoint != v.Savepoint)
			return
		}
		n.same += len(same)

		var replace, remove, add []transform.PatchChange
		want, without := allEntries(t, v), allEntries(t, v)
		seen := map[placeState]bool{}
		take := func(all map[string]int, text string) {
			if all[text]--; all[text] == 0 {
				delete(all, text)
			}
		}
		for _, p := range all {
			id := placeState{p.Operator, p.State}
			if seen[id] || !p.hashed || p.Entry.Stored != nil {
				continue
			}
			seen[id] = true
			gone := p.PatchChange
			gone.Op, gone.Value, gone.Was = transform.PatchRemove, transform.PatchValue{}, gone.Value
			remove = append(remove, gone)
			take(without, p.with(p.stored))
			again := p.PatchChange
			again.Op, again.Subtask = transform.PatchAdd, transform.AllSubtasks
			entry := *again.Entry
			entry.KeyGroup = nil
			again.Entry = &entry
			if again.Value.JSON != nil {
				v, err := value.FromJSONLike(p.codecs.Value, value.Null(), again.Value.JSON)
				data := []byte{}
				if err == nil {
					data, err = p.codecs.Value.Append(data, v)
				}
				if err != nil || !bytes.Equal(data, p.stored) { // a null of a map has two encodings
					again.Value = transform.PatchValue{Stored: p.stored}
				}
			}
			add = append(add, again)
			if p.codecs.Value == nil || p.codecs.TTL {
				continue
			}
			stored, err := value.ReadAll(p.codecs.Value, p.stored)
			if err != nil {
				continue
			}
			other, ok := otherValue(p.codecs.Value, stored)
			if !ok {
				continue
			}
			data, err := p.codecs.Value.Append(nil, other)
			if err != nil {
				t.Fatal(err)
			}
			p.Value = transform.PatchValue{JSON: other.AppendJSON(nil, nil, nil)}
			replace = append(replace, p.PatchChange)
			take(want, p.with(p.stored))
			want[p.with(data)]++
		}
		if out, _, err = patchEntries(t.Context(), v, replace); err != nil {
			t.Fatal(err)
		}
		if now := allEntries(t, out); !maps.Equal(now, want) {
			t.Errorf("replaced: %d entries, expected %d", len(now), len(want))
		}
		n.replaced += len(replace)
		if out, _, err = patchEntries(t.Context(), v, remove); err != nil {
			t.Fatal(err)
		}
		if now := allEntries(t, out); !maps.Equal(now, without) {
			t.Errorf("removed: %d entries, expected %d", len(now), len(without))
		}
		if out, r, err = patchEntries(t.Context(), out, add); err != nil {
			t.Fatal(err)
		}
		if now, was := allEntries(t, out), allEntries(t, v); !maps.Equal(now, was) {
			t.Errorf("added again: %d entries, expected %d", len(now), len(was))
		}
		for _, st := range r.States {
			n.added += int(st.Added)
		}
	})
	t.Logf("%d entries given back, %d replaced, %d removed and added", n.same, n.replaced, n.added)
	testenv.Some(t, "entries", n.same, true)
	testenv.Some(t, "replaced entries", n.replaced, true)
	testenv.Some(t, "added entries", n.added, true)
}

// Only subtasks in which entries change are built again, if the others are canonical.
func TestPatchKeyedKeepsOthers(t *testing.T) {
	eachKeyed(t, func(t *testing.T, v format.View) {
		v, _, err := transform.Canonical(t.Context(), v, transform.CanonicalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all := keyedPlaces(t, v)
		if len(all) == 0 {
			return
		}
		c := all[0].PatchChange
		c.Op, c.Value = transform.PatchRemove, transform.PatchValue{}
		out, _, err := patchEntries(t.Context(), v, []transform.PatchChange{c})
		if err != nil {
			t.Fatal(err)
		}
		for i, op := range v.Operators {
			for k, sub := range op.Subtasks {
				changed := op.ID == c.Operator && sub.Index == c.Subtask
				if same := sub.ManagedKeyed == out.Operators[i].Subtasks[k].ManagedKeyed; same == changed {
					t.Errorf("%s, subtask %d: the same: %v", op.Label(), sub.Index, same)
				}
			}
		}
	})
}

// Each change of keyed state that is wrong is named once, by its number.
func TestPatchKeyedProblems(t *testing.T) {
	snapshots := 0
	eachKeyed(t, func(t *testing.T, v format.View) {
		if !strings.Contains(t.Name(), "sp-002") {
			return
		}
		snapshots++
		keyed := format.OperatorIDOf("keyed")
		one, group, far, at := []byte("1"), int32(3), int32(128), int64(5)
		change := func(state string, op transform.PatchOp, e transform.PatchEntry, val string) transform.PatchChange {
			c := transform.PatchChange{Operator: keyed, State: state, Op: op, Subtask: transform.AllSubtasks, Index: transform.NoIndex, Key: []byte(`"key-4"`), Entry: &e}
			if val != "" {
				c.Value.JSON = []byte(val)
			}
			return c
		}
		json := func(text string) transform.PatchValue { return transform.PatchValue{JSON: []byte(text)} }
		const replace, add, remove = transform.PatchReplace, transform.PatchAdd, transform.PatchRemove
		at1 := change("sum", replace, transform.PatchEntry{}, "7")
		at1.Subtask = 1
		number := change("last", replace, transform.PatchEntry{}, "7")
		number.Key = one
		newKey := change("last", remove, transform.PatchEntry{}, "")
		newKey.Key = []byte(`"nobody"`)
		unknown := change("last", replace, transform.PatchEntry{}, "7")
		unknown.Operator = format.OperatorIDOf("nobody")
		noKey := change("last", replace, transform.PatchEntry{}, "7")
		noKey.Key = nil
		cases := []struct {
			c    transform.PatchChange
			want string
		}{
			{unknown, "no operator matches"},
			{change("nothing", replace, transform.PatchEntry{}, "7"), "no keyed state matches"},
			{change("last", replace, transform.PatchEntry{}, ""), "has no value"},
			{change("last", replace, transform.PatchEntry{}, `"x"`), "expected an integer"},
			{noKey, "key is missing"},
			{number, "key: expected a string"},
			{newKey, "no such entry in key group"},
			{at1, "key group 19 is in subtask 0"},
			{change("item", remove, transform.PatchEntry{KeyGroup: &group}, ""), "belongs to key group 19"},
			{change("item", remove, transform.PatchEntry{KeyGroup: &far}, ""), "key groups 0 to 127"},
			{change("label", add, transform.PatchEntry{}, `"x"`), "has this entry already"},
			{change("label", remove, transform.PatchEntry{}, ""), "another change"},
			{change("label", replace, transform.PatchEntry{Time: &at}, `"x"`), "have no time"},
			{change("label", replace, transform.PatchEntry{UserKey: json("1")}, `"x"`), "user_key"},
			{change("label", replace, transform.PatchEntry{TTL: one}, `"x"`), "no time to live"},
			{change("counts", replace, transform.PatchEntry{}, "1"), "user_key is missing"},
			{change("_timer_state/event_user-timers", add, transform.PatchEntry{}, ""), "time of the timer is missing"},
			{change("_timer_state/event_user-timers", add, transform.PatchEntry{Time: &at}, "1"), "a timer has no value"},
			{change("_timer_state/event_user-timers", remove, transform.PatchEntry{Time: &at}, ""), "no such entry"},
			{change("ttl-last", remove, transform.PatchEntry{TTL: one}, "1"), "has no new value"},
			{change("ttl-words", replace, transform.PatchEntry{}, `["x"]`), "their number is another one"},
			{change("ttl-counts", add, transform.PatchEntry{UserKey: json(`"new"`)}, "1"), "ttl_timestamp is missing"},
			{change("numbers", add, transform.PatchEntry{Namespace: json(`{"start":0,"end":1}`)}, "[1]"), "namespace"},
		}
		var changes []transform.PatchChange
		for _, c := range cases {
			changes = append(changes, c.c)
		}
		_, _, err := patchEntries(t.Context(), v, changes)
		var wrong *transform.PatchError
		if !errors.As(err, &wrong) {
			t.Fatal(err)
		}
		for i, c := range cases {
			k := slices.IndexFunc(wrong.Problems, func(p transform.PatchProblem) bool { return p.Number == int64(i) })
			if k < 0 || !strings.Contains(wrong.Problems[k].Err.Error(), c.want) {
				t.Errorf("%d: expected %q, found %v", i, c.want, wrong.Problems[max(k, 0)])
			}
		}
		if len(wrong.Problems) != len(cases) {
			t.Errorf("%d problems, expected %d", len(wrong.Problems), len(cases))
		}
	})
	testenv.Found(t, "snapshots", snapshots, 1)
}
