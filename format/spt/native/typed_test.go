package native_test

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/writer"
)

type user struct {
	Name string
	Age  int
}

// typedSnapshot is a snapshot of a Go program: an operator with list, union,
// broadcast and keyed state in three subtasks, and one without state.
func typedSnapshot(t *testing.T) *reader.Snapshot {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.spt")
	b, err := writer.NewBuilder(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	op := b.Operator("op", 3, 16)
	keys := make([][]int, 3)
	for key := range 30 {
		i, err := op.SubtaskOf(key)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = append(keys[i], key)
	}
	for i := range int32(3) {
		s := op.Subtask(i)
		s.List("users").Add(user{"a", int(i)}, user{"b", int(i)})
		s.Union("numbers").Add(int(i), int(i)+10)
		m := s.Broadcast("config")
		m.Put("x", []int{1})
		m.Put("y", []int{2, 3})
		k := s.Keyed(native.KeyedState{Name: "n", Kind: native.KindValue}, native.KeyedState{Name: "w", Kind: native.KindValue})
		for _, key := range keys[i] {
			k.Put("n", key, nil, user{"k", key * key})
			if key == 7 {
				k.Put("w", key, "window", 70)
			}
		}
	}
	b.Operator("empty", 1, 16).Subtask(0)
	if _, err := b.Seal(t.Context()); err != nil { // the first error of all calls
		t.Fatal(err)
	}
	return openTyped(t, path)
}

func openTyped(t *testing.T, path string) *reader.Snapshot {
	t.Helper()
	snap, err := reader.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	})
	return snap
}

// all returns what a loop gives until its error; it fails the test if anything
// follows that.
func all[T any](t *testing.T, seq iter.Seq2[T, error]) (values []T, err error) {
	t.Helper()
	for v, e := range seq {
		if err != nil {
			t.Error("a loop goes on after its error")
		}
		if err = e; err == nil {
			values = append(values, v)
		}
	}
	return values, err
}

func TestTyped(t *testing.T) {
	v := typedSnapshot(t).View()
	users, err := all(t, native.List[user](t.Context(), v, "op", "users"))
	if want := []user{{"a", 0}, {"b", 0}, {"a", 1}, {"b", 1}, {"a", 2}, {"b", 2}}; err != nil || !slices.Equal(users, want) {
		t.Errorf("%v, %v", users, err)
	}
	numbers, err := all(t, native.List[int64](t.Context(), v, format.OperatorIDOf("op").String(), "numbers"))
	if want := []int64{0, 10, 1, 11, 2, 12}; err != nil || !slices.Equal(numbers, want) {
		t.Errorf("%v, %v", numbers, err)
	}
	config, err := native.Broadcast[string, []int](t.Context(), v, "op", "config")
	if err != nil || len(config) != 2 || !slices.Equal(config["x"], []int{1}) || !slices.Equal(config["y"], []int{2, 3}) {
		t.Errorf("%v, %v", config, err)
	}
	entries, err := all(t, native.Keyed[int, user](t.Context(), v, "op", "n"))
	got, group := map[int]int{}, int32(0)
	for _, e := range entries {
		if p, err := native.Marshal(e.Key); err != nil || e.KeyGroup != native.KeyGroup(p, 16) || e.KeyGroup < group || e.Namespace != nil {
			t.Errorf("%+v, %v", e, err)
		}
		got[e.Key], group = e.Value.Age, e.KeyGroup
	}
	if err != nil || len(entries) != 30 || len(got) != 30 || got[29] != 29*29 || got[0] != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	windows, err := all(t, native.Keyed[int, int](t.Context(), v, "op", "w"))
	if err != nil || len(windows) != 1 || windows[0].Key != 7 || windows[0].Value != 70 || string(windows[0].Namespace) != "\xa6window" {
		t.Errorf("%+v, %v", windows, err)
	}
	for key := range 30 {
		u, found, err := native.Get[int, user](t.Context(), v, "op", "n", key)
		if err != nil || !found || u != (user{"k", key * key}) {
			t.Errorf("%d: %v, %t, %v", key, u, found, err)
		}
	}
	if u, found, err := native.Get[int, user](t.Context(), v, "op", "n", 30); err != nil || found || u != (user{}) {
		t.Errorf("%v, %t, %v", u, found, err)
	}
	if n, found, err := native.Get[int, int](t.Context(), v, "op", "w", 7); err != nil || found { // it has a namespace
		t.Errorf("%v, %t, %v", n, found, err)
	}
	// A loop that ends early, and one that is run twice.
	for range 2 {
		for u, err := range native.List[user](t.Context(), v, "op", "users") {
			if err != nil || u != (user{"a", 0}) {
				t.Errorf("%v, %v", u, err)
			}
			break
		}
		for e, err := range native.Keyed[int, user](t.Context(), v, "op", "n") {
			if err != nil || e.Key != entries[0].Key || e.Value != entries[0].Value {
				t.Errorf("%v, %v", e, err)
			}
			break
		}
	}
}

// TestTypedErrors: each function says what is wrong, and where.
func TestTypedErrors(t *testing.T) {
	v := typedSnapshot(t).View()
	list := func(v format.View, op, state string) func() error {
		return func() error { _, err := all(t, native.List[user](t.Context(), v, op, state)); return err }
	}
	broadcast := func(v format.View, op, state string) func() error {
		return func() error { _, err := native.Broadcast[string, []int](t.Context(), v, op, state); return err }
	}
	keyed := func(v format.View, op, state string) func() error {
		return func() error { _, err := all(t, native.Keyed[int, user](t.Context(), v, op, state)); return err }
	}
	get := func(v format.View, op, state string) func() error {
		return func() error {
			_, found, err := native.Get[int, user](t.Context(), v, op, state, 3)
			if found {
				t.Error("found")
			}
			return err
		}
	}
	for _, c := range []struct {
		name string
		call func() error
		kind error
		text string // is in the error
	}{
		{"list", list(v, "other", "users"), format.ErrNoMatch, `no operator matches "other"`},
		{"broadcast", broadcast(v, "other", "config"), format.ErrNoMatch, `no operator matches "other"`},
		{"keyed", keyed(v, "other", "n"), format.ErrNoMatch, `no operator matches "other"`},
		{"get", get(v, "other", "n"), format.ErrNoMatch, `no operator matches "other"`},
		{"list", list(v, "op", "us*"), format.ErrNoMatch, `operator "op": no state matches "us*"`},
		{"broadcast", broadcast(v, "op", "no"), format.ErrNoMatch, `operator "op": no state matches "no"`},
		{"keyed", keyed(v, "op", "users"), format.ErrNoMatch, `operator "op": no state matches "users"`},
		{"get", get(v, "op", "users"), format.ErrNoMatch, `operator "op": no state matches "users"`},
		{"list", list(v, "empty", "users"), format.ErrNoMatch, `operator "empty": no state matches "users"`},
		{"keyed", keyed(v, "empty", "n"), format.ErrNoMatch, `operator "empty": no state matches "n"`},
		{"get", get(v, "empty", "n"), format.ErrNoMatch, `operator "empty": no state matches "n"`},
		// the wrong kind
		{"list", list(v, "op", "config"), format.ErrUnsupported, `operator "op"/subtask 0: state "config": expected list or union state, found broadcast state`},
		{"broadcast", broadcast(v, "op", "users"), format.ErrUnsupported, `operator "op"/subtask 0: state "users": expected broadcast state, found list state`},
		{"broadcast", broadcast(v, "op", "numbers"), format.ErrUnsupported, `state "numbers": expected broadcast state, found union state`},
		// the wrong Go type
		{"list", list(v, "op", "numbers"), format.ErrUnsupported, `operator "op"/subtask 0/state "numbers"/element 0: msgpack`},
		{"broadcast", func() error { _, err := native.Broadcast[int, int](t.Context(), v, "op", "config"); return err }, format.ErrUnsupported, `operator "op"/subtask 0: msgpack`},
		{"keyed", func() error {
			_, err := all(t, native.Keyed[string, user](t.Context(), v, "op", "n"))
			return err
		}, format.ErrUnsupported, "/key: msgpack"},
		{"keyed", func() error {
			_, err := all(t, native.Keyed[int, string](t.Context(), v, "op", "n"))
			return err
		}, format.ErrUnsupported, "/value: msgpack"},
		{"get", func() error {
			_, _, err := native.Get[int, []int](t.Context(), v, "op", "n", 3)
			return err
		}, format.ErrUnsupported, "/value: msgpack"},
		{"get", func() error {
			_, _, err := native.Get[chan int, int](t.Context(), v, "op", "n", nil)
			return err
		}, nil, "chan int"},
	} {
		err := c.call()
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, expected %s", c.name, err, c.text)
		}
	}
	// State of Flink, of each kind that a snapshot has.
	tried := map[string]int{}
	for _, name := range []string{"sp-002", "sp-010"} {
		f := openTyped(t, "../../../testdata/savepoints/"+name).View()
		for _, op := range f.Operators {
			id := op.ID.String()
			for _, sub := range op.Subtasks {
				if sub.ManagedKeyed != nil {
					tried["keyed"] += 2
					for _, call := range []func() error{keyed(f, id, "n"), get(f, id, "n")} {
						if err := call(); !errors.Is(err, format.ErrUnsupported) {
							t.Errorf("keyed state of Flink: %v", err)
						}
					}
				}
				if sub.Managed == nil {
					continue
				}
				for _, st := range sub.Managed.States {
					name, call := st.Name.String(), list
					if st.Mode == format.ModeBroadcast {
						call = broadcast
					}
					tried[st.Mode.String()]++
					if err := call(f, id, name)(); !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "is not native") {
						t.Errorf("%s of Flink: %v", name, err)
					}
				}
			}
		}
	}
	if tried["keyed"] == 0 || tried["broadcast"] == 0 || tried["list"] == 0 || tried["union"] == 0 {
		t.Errorf("tried %v", tried)
	}
	// Cancelled.
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all(t, native.List[user](cancelled, v, "op", "users")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	// An invalid max parallelism.
	op := *v.Operators[0]
	op.MaxParallelism = 0
	v.Savepoint = &format.Savepoint{Operators: []*format.Operator{&op}}
	if err := get(v, "op", "n")(); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("%v", err)
	}
}
