package transform_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// patched calls transform.Patch with changes and the types of a snapshot.
func patched(ctx context.Context, snap *reader.Snapshot, changes ...transform.PatchChange) (format.View, *transform.PatchReport, error) {
	return transform.Patch(ctx, snap.View(), transform.PatchOptions{Values: snap.Values, Changes: func(yield func(transform.PatchChange, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}})
}

// place is an element or entry: where it is, and what is stored.
type place struct {
	transform.PatchChange
	of    placeState
	codec value.Codec
	value value.Value
	key   []byte // JSON, of an entry
}

type placeState struct {
	op    format.OperatorID
	state string
}

// places returns the elements and entries of a snapshot, each with a change to the value
// that is stored.
func places(t *testing.T, snap *reader.Snapshot) (all []place) {
	t.Helper()
	for _, op := range snap.Operators {
		for _, sub := range op.Subtasks {
			for _, h := range []*format.OperatorHandle{sub.Managed, sub.Raw} {
				if h == nil {
					continue
				}
				codec, err := snap.Codec(h.Codec)
				if err != nil {
					t.Fatal(err)
				}
				for k := range h.States {
					st := &h.States[k]
					values, err := snap.Values(t.Context(), h, k)
					if err != nil {
						t.Fatal(err)
					}
					of := placeState{op.ID, st.Name.String()}
					c := transform.PatchChange{Operator: op.ID, State: of.state, Raw: h == sub.Raw, Subtask: sub.Index}
					add := func(c transform.PatchChange, codec value.Codec, stored, key []byte) {
						c.Value.Stored = slices.Clone(stored)
						p := place{PatchChange: c, of: of, codec: codec, key: key}
						if codec != nil {
							if v, err := value.ReadAll(codec, stored); err == nil {
								p.value = v
								p.Value = transform.PatchValue{JSON: v.AppendJSON(nil, nil, nil)}
							}
						}
						all = append(all, p)
					}
					if values.Key != nil {
						err = format.EachEntry(t.Context(), snap.Source(), codec, h, of.state, func(e format.MapEntry) error {
							key, err := value.ReadAll(values.Key, e.Key)
							if err != nil {
								return err
							}
							c.Index = e.Index
							add(c, values.Value, e.Value, key.AppendJSON(nil, nil, nil))
							return nil
						})
					} else {
						err = format.EachElement(t.Context(), snap.Source(), codec, h, of.state, func(e format.Element) error {
							c.Index = e.Index
							add(c, values.Element, e.Value, nil)
							return nil
						})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	return all
}

// text returns where a place is and what it holds.
func (p *place) text() string {
	stored := string(p.Value.JSON)
	if p.Value.JSON == nil {
		stored = fmt.Sprintf("%x", p.Value.Stored)
	}
	return fmt.Sprintf("%v %s raw=%v %d[%d] %s", p.of.op, p.of.state, p.Raw, p.Subtask, p.Index, stored)
}

// otherValue returns a value of the same type as v with another JSON, if it finds one: one
// of its numbers, strings or booleans is another.
func otherValue(c value.Codec, v value.Value) (value.Value, bool) {
	fits := func(w value.Value) bool {
		p, err := c.Append(nil, w)
		if err != nil {
			return false
		}
		back, err := value.ReadAll(c, p)
		return err == nil && back.String() == w.String() && back.String() != v.String()
	}
	var leaves func(v value.Value, put func(value.Value) value.Value) (value.Value, bool)
	leaves = func(v value.Value, put func(value.Value) value.Value) (value.Value, bool) {
		var to []value.Value
		switch v.Kind() {
		case value.KindInt:
			to = []value.Value{value.Int(v.Int() ^ 1)}
		case value.KindBool:
			to = []value.Value{value.Bool(!v.Bool())}
		case value.KindString:
			to = []value.Value{value.String(v.Text() + "é"), value.String("2")}
		case value.KindFloat64:
			to = []value.Value{value.Float64(0x3ff8000000000000)}
		}
		for _, leaf := range to {
			if w := put(leaf.WithClass(v.Class())); fits(w) {
				return w, true
			}
		}
		for i := range v.Len() {
			if w, ok := leaves(v.At(i), func(part value.Value) value.Value { return put(v.WithAt(i, part)) }); ok {
				return w, true
			}
		}
		return v, false
	}
	return leaves(v, func(w value.Value) value.Value { return w })
}

// TestPatchEverywhere: in each snapshot of the corpus, values that are given back as JSON
// change nothing; and of each state, one value that is changed is the only one.
func TestPatchEverywhere(t *testing.T) {
	ctx := t.Context()
	dirs := testenv.Snapshots(t)
	for _, k := range testenv.KnownSnapshots(t) {
		dirs = append(dirs, k.Location)
	}
	for _, name := range []string{"sp-012.spt", "sp-013.spt", "sp-014.spt"} {
		dirs = append(dirs, filepath.Join(testenv.ModuleRoot(t), "testdata/savepoints", name))
	}
	var n struct{ snapshots, same, changed, none, refused int }
	for _, dir := range dirs {
		snap, err := reader.Open(ctx, dir, nil)
		if err != nil {
			continue // other tests count those
		}
		func() {
			defer snap.Close() //nolint:errcheck // read only
			before := places(t, snap)
			if len(before) == 0 {
				return
			}
			n.snapshots++
			var changes []transform.PatchChange
			for _, p := range before {
				changes = append(changes, p.PatchChange)
			}
			out, r, err := patched(ctx, snap, changes...)
			if err != nil || out.Savepoint != snap.Savepoint || len(r.Commits)+len(r.Splits) > 0 {
				t.Errorf("%s: %v, another savepoint: %v", dir, err, out.Savepoint != snap.Savepoint)
				return
			}
			n.same += len(before)

			var want []string
			done := map[placeState]*place{}
			changes = nil
			for _, p := range before {
				first := done[p.of]
				if first == nil && p.Value.JSON != nil {
					if v, ok := otherValue(p.codec, p.value); ok {
						p.Value.JSON = v.AppendJSON(nil, nil, nil)
						first = new(p)
						done[p.of] = first
						c := p.PatchChange
						if p.key != nil { // in all replicas
							c.Key, c.Subtask, c.Index = p.key, transform.AllSubtasks, transform.NoIndex
						}
						changes = append(changes, c)
					} else {
						n.none++
					}
				} else if first != nil && p.key != nil && string(p.key) == string(first.key) {
					p.Value.JSON = first.Value.JSON
				}
				want = append(want, p.text())
			}
			if len(changes) == 0 {
				return
			}
			out, _, err = patched(ctx, snap, changes...)
			if err != nil {
				if !errors.Is(err, format.ErrUnsupported) {
					t.Errorf("%s: %v", dir, err)
				}
				n.refused++ // before version 5 of operator state
				return
			}
			var got []string
			after := places(t, snap.With(out.Savepoint))
			for i := range after {
				got = append(got, after[i].text())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d places, expected %d", dir, len(got), len(want))
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Errorf("got  %.300s\nwant %.300s", got[i], want[i])
						break
					}
				}
			}
			n.changed += len(changes)
		}()
	}
	t.Logf("%d snapshots, %d values given back, %d changed, %d without another value, %d snapshots refused", n.snapshots, n.same, n.changed, n.none, n.refused)
	testenv.Some(t, "values", n.same, true)
	testenv.Some(t, "changed values", n.changed, true)
}

// TestPatchProblems: each change that is wrong is named once, by its number, and nothing
// else is done.
func TestPatchProblems(t *testing.T) {
	snap := sptest.Open(t, filepath.Join(testenv.ModuleRoot(t), "testdata/savepoints/sp-009"))
	lists := format.OperatorIDOf("lists")
	change := func(c transform.PatchChange) transform.PatchChange {
		c.Operator = lists
		if c.State == "" {
			c.State = "largest"
		}
		return c
	}
	number := func(text string) transform.PatchValue { return transform.PatchValue{JSON: []byte(text)} }
	all := []transform.PatchChange{
		{Operator: format.OperatorIDOf("nobody"), State: "largest", Value: number("1")},
		change(transform.PatchChange{State: "nothing", Value: number("1")}),
		change(transform.PatchChange{Value: number(`"x"`)}),
		change(transform.PatchChange{}),
		change(transform.PatchChange{Op: "move", Value: number("1")}),
		change(transform.PatchChange{Op: transform.PatchRemove, Value: number("1")}),
		change(transform.PatchChange{Op: transform.PatchAdd, Value: number("1"), Was: number("1")}),
		change(transform.PatchChange{Op: transform.PatchAdd, Index: 7, Value: number("1")}),
		change(transform.PatchChange{Index: transform.NoIndex, Value: number("1")}),
		change(transform.PatchChange{Subtask: transform.AllSubtasks, Value: number("1")}),
		change(transform.PatchChange{Index: 1, Value: transform.PatchValue{JSON: []byte("1"), Stored: make([]byte, 8)}}),
		change(transform.PatchChange{Index: 2, Value: number("1")}),
		change(transform.PatchChange{Index: 2, Value: number("2")}),
		change(transform.PatchChange{State: "owner", Subtask: transform.AllSubtasks, Index: 0, Value: number("2")}),
		change(transform.PatchChange{State: "owner", Op: transform.PatchAdd, Index: 0, Key: []byte(`"a"`), Value: number("2")}),
		change(transform.PatchChange{State: "owner", Op: transform.PatchAdd, Subtask: 1, Index: transform.NoIndex, Key: []byte(`"a"`), Value: number("2")}),
		change(transform.PatchChange{State: "owner", Index: 9, Value: number("2")}),
		change(transform.PatchChange{State: "owner", Index: 0, Value: transform.PatchValue{Stored: []byte("the whole map")}}),
	}
	for i := range all {
		all[i].Number = int64(i)
	}
	_, _, err := patched(t.Context(), snap, all...)
	var wrong *transform.PatchError
	if !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	want := map[int64]string{
		0: "no operator matches", 1: "no operator state matches", 2: "expected an integer", 3: "has no value", 4: `operation "move"`, 5: "has no new value", 6: "had no value before", 7: "elements 0 to 5", 8: "index is missing",
		9: "subtask is missing", 10: "given twice", 12: "another change", 13: "subtask is missing", 14: "a key and no index", 15: "replicas of a broadcast state would differ", 16: "has 2 entries", 17: "entry by entry",
	}
	for _, p := range wrong.Problems {
		if text := want[p.Number]; text == "" || !strings.Contains(p.Err.Error(), text) {
			t.Errorf("%d: %v, want %q", p.Number, p.Err, text)
		}
		delete(want, p.Number)
	}
	if len(want) > 0 || wrong.More != 0 {
		t.Errorf("not named: %v, and %d more", want, wrong.More)
	}
	stopped := errors.New("stopped")
	_, _, err = transform.Patch(t.Context(), snap.View(), transform.PatchOptions{Values: snap.Values, Changes: func(yield func(transform.PatchChange, error) bool) { yield(transform.PatchChange{}, stopped) }})
	if !errors.Is(err, stopped) {
		t.Error(err)
	}
}

// TestPatchMany: changes in any order, in several batches, are made where they belong; of
// a million that are wrong a thousand are kept.
func TestPatchMany(t *testing.T) {
	const n = 70_000
	var changes []transform.PatchChange
	snap := sptest.Open(t, filepath.Join(testenv.ModuleRoot(t), "testdata/savepoints/sp-009"))
	add := transform.PatchChange{Op: transform.PatchAdd, Operator: format.OperatorIDOf("lists"), State: "largest", Index: transform.NoIndex}
	for i := range n {
		add.Value.JSON = fmt.Appendf(nil, "%d", i)
		changes = append(changes, add)
	}
	out, _, err := patched(t.Context(), snap, changes...)
	if err != nil {
		t.Fatal(err)
	}
	large := snap.With(out.Savepoint)
	changes = nil
	for i := range n { // each once, in an order without sense
		k := int64(i) * 30_011 % n
		c := add
		c.Op, c.Index = transform.PatchReplace, 6+k
		c.Value.JSON = fmt.Appendf(nil, "%d", k+5*(k%2)) // every second one is another
		changes = append(changes, c)
	}
	out, r, err := patched(t.Context(), large, changes...)
	if err != nil || r.States[0].Same != n/2 || r.States[0].Replaced != n/2 {
		t.Fatalf("%+v, %v", r, err)
	}
	i := int64(-7)
	for _, p := range places(t, large.With(out.Savepoint)) {
		if p.State != "largest" || p.Subtask != 0 {
			continue
		}
		if i++; i >= 0 && p.value.Int() != i+5*(i%2) {
			t.Fatalf("element %d is %v", i, p.value)
		}
	}
	if i != n-1 {
		t.Errorf("%d elements", i+1)
	}
	for i := range changes {
		changes[i].Index, changes[i].Number = 1<<40, int64(i)
	}
	_, _, err = patched(t.Context(), large, changes...)
	var wrong *transform.PatchError
	if !errors.As(err, &wrong) || len(wrong.Problems)+int(wrong.More) != n {
		t.Errorf("%v", err)
	}
}
