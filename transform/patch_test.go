package transform_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
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
				if v, ok := value.Null(), false; first == nil && p.Value.JSON != nil {
					if v, ok = otherValue(p.codec, p.value); ok {
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
