package transform

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
)

// asFile is the _metadata of a savepoint without streams of ours: the whole
// model, to see that an edit left its input alone.
func asFile(t testing.TB, sp *format.Savepoint) string {
	t.Helper()
	var b bytes.Buffer
	if err := metadata.Encode(t.Context(), &b, sp, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// eachManaged calls f for every managed operator handle, with its subtask.
func eachManaged(sp *format.Savepoint, f func(op *format.Operator, sub *format.Subtask)) {
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			if sub.Managed != nil {
				f(op, sub)
			}
		}
	}
}

// holdings is what every state of every managed handle holds: list and union
// states by element, broadcast states as their map.
func holdings(t testing.TB, in format.View) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	eachManaged(in.Savepoint, func(op *format.Operator, sub *format.Subtask) {
		for _, st := range sub.Managed.States {
			key := fmt.Sprintf("%v/%d/%v/%s", op.ID, sub.Index, st.Mode, st.Name)
			all[key] = sptest.Elements(t, in, sub.Managed, st.Name.String())
		}
	})
	return all
}

// streams is the bytes of every managed stream.
func streams(t testing.TB, in format.View) map[string]string {
	t.Helper()
	all := map[string]string{}
	eachManaged(in.Savepoint, func(op *format.Operator, sub *format.Subtask) {
		all[fmt.Sprintf("%v/%d", op.ID, sub.Index)] = string(sptest.Bytes(t, in.Source, sub.Managed.Data))
	})
	return all
}

func sameHoldings(t *testing.T, what string, want, got map[string][]string) {
	t.Helper()
	for key, w := range want {
		if g, ok := got[key]; !ok || !slices.Equal(w, g) {
			t.Errorf("%s: %s holds %d elements, not %d, or others (there: %v)", what, key, len(g), len(w), ok)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d states, not %d", what, len(got), len(want))
	}
}

// eachKnown runs f on every known snapshot, and checks that its model is as it
// was afterwards.
func eachKnown(t *testing.T, f func(t *testing.T, k testenv.KnownSnapshot, in format.View)) {
	t.Helper()
	n := 0
	for _, k := range testenv.KnownSnapshots(t) {
		snap := sptest.Open(t, k.Location)
		was := asFile(t, snap.Savepoint)
		f(t, k, snap.View())
		if asFile(t, snap.Savepoint) != was {
			t.Errorf("%s: the input changed", k.Name)
		}
		n++
	}
	t.Logf("%d snapshots", n)
}

// heldStates counts the operator states of each subtask, of the kinds.
func heldStates(t *testing.T, k testenv.KnownSnapshot, kinds ...string) (n int) {
	for _, op := range sptest.TruthOf(t, k.Dir).Operators {
		for _, s := range op.Subtasks {
			for _, st := range s.OperatorState {
				if slices.Contains(kinds, st.Kind) {
					n++
				}
			}
		}
	}
	return n
}

// TestRenameOperatorsCorpus: in every snapshot there is, each operator gets a new
// uid; subtasks are shared, and nothing but id, uid and coordinator changes.
func TestRenameOperatorsCorpus(t *testing.T) {
	operators, files := 0, 0
	for _, dir := range testenv.Snapshots(t) {
		snap, err := reader.Open(t.Context(), dir, &reader.Options{Stores: sptest.Stores()})
		if err != nil {
			t.Fatal(err)
		}
		was := asFile(t, snap.Savepoint)
		uids := map[string]string{}
		for i, op := range snap.Operators {
			uids[op.ID.String()] = fmt.Sprint("new ", i)
		}
		sp, done, err := Rename(t.Context(), snap.View(), RenameOptions{UIDs: uids})
		if err != nil || len(done.Operators) != len(snap.Operators) {
			t.Fatalf("%s: %+v renamed, %v", dir, done, err)
		}
		for i, op := range sp.Operators {
			old := snap.Operators[i]
			version, _ := metadata.VersionOf(snap.Savepoint)
			stored := version >= 5
			if op.ID != format.OperatorIDOf(fmt.Sprint("new ", i)) || stored != (op.UID.String() == fmt.Sprint("new ", i)) {
				t.Errorf("%s: operator %d is %v, uid %q", dir, i, op.ID, op.UID)
			}
			if in, ok := op.Coordinator.(*format.Inline); ok && old.Coordinator.(*format.Inline).Name.String() == old.ID.String() && in.Name.String() != op.ID.String() {
				t.Errorf("%s: the coordinator of operator %d is that of %s", dir, i, in.Name)
			}
			if op.Name != old.Name || len(op.Subtasks) != len(old.Subtasks) || op.Parallelism != old.Parallelism {
				t.Errorf("%s: operator %d has changed beyond its uid", dir, i)
			}
			for k := range op.Subtasks {
				if op.Subtasks[k] != old.Subtasks[k] {
					t.Fatalf("%s: a subtask is not shared", dir)
				}
			}
			operators++
		}
		if asFile(t, snap.Savepoint) != was {
			t.Errorf("%s: the input changed", dir)
		}
		files++
		_ = snap.Close()
	}
	testenv.Found(t, "snapshots", files, testenv.Manifest(t).Snapshots)
	t.Logf("%d operators of %d snapshots", operators, files)
}

func TestRenameOperators(t *testing.T) {
	a, b, c := sptest.Operator("a"), sptest.Operator("b"), sptest.Operator("c")
	c.UID = format.Text{} // before 2.0
	a.Coordinator = &format.Inline{Name: format.NewText(a.ID.String()), Data: format.NewBytes([]byte("x"))}
	b.Coordinator = &format.Inline{Name: format.NewText("a name of its own"), Data: format.NewBytes([]byte("y"))}
	in := sptest.View(a, b, c)
	sp := in.Savepoint
	rename := func(in format.View, uids map[string]string) (format.View, *RenameReport, error) {
		return Rename(t.Context(), in, RenameOptions{UIDs: uids})
	}
	// A swap, all at once.
	out, done, err := rename(in, map[string]string{"a": "b", "b": "a"})
	if err != nil || len(done.Operators) != 2 {
		t.Fatalf("%v, %v", done, err)
	}
	if x := out.Operators[0]; x.ID != format.OperatorIDOf("b") || x.UID.String() != "b" || x.Coordinator.(*format.Inline).Name.String() != x.ID.String() {
		t.Errorf("%+v", x)
	}
	if x := out.Operators[1]; x.ID != format.OperatorIDOf("a") || x.Coordinator != b.Coordinator {
		t.Errorf("%+v", x)
	}
	if out.Operators[2] != c || a.UID.String() != "a" || sp.Operators[0] != a {
		t.Error("what is not renamed is not shared, or the input changed")
	}
	// What has no uid gets one where others have theirs, and none in a file without.
	if out, _, _ := rename(in, map[string]string{"c": "d"}); out.Operators[2].UID.String() != "d" || out.Operators[2].ID != format.OperatorIDOf("d") {
		t.Errorf("%+v", out.Operators[2])
	}
	if out, _, _ := rename(sptest.View(c), map[string]string{"c": "d"}); out.Operators[0].UID.String() != "" || out.Operators[0].ID != format.OperatorIDOf("d") {
		t.Errorf("%+v", out.Operators[0])
	}
	// In an .spt the name of a coordinator's handle is that of what it was.
	chunks := &format.Chunks{As: &format.Inline{Name: format.NewText(a.ID.String())}, Length: 1, Digest: "x"}
	p := *a
	p.Coordinator = chunks
	out, _, err = rename(sptest.View(&p), map[string]string{"a": "new"})
	if err != nil {
		t.Fatal(err)
	}
	if x, ok := out.Operators[0].Coordinator.(*format.Chunks); !ok || x.As.(*format.Inline).Name.String() != format.OperatorIDOf("new").String() || x.Digest != "x" || chunks.As.(*format.Inline).Name.String() != a.ID.String() {
		t.Errorf("%+v, from %+v", out.Operators[0].Coordinator, chunks)
	}
	// Nothing to do gives the base itself.
	if out, done, err := rename(in, map[string]string{"a": "a"}); out.Savepoint != sp || len(done.Operators) > 0 || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	if out, _, _ := rename(in, nil); out.Savepoint != sp {
		t.Error("another savepoint")
	}
	var collision *CollisionError
	for _, uids := range []map[string]string{{"a": "b"}, {"a": "x", "b": "x"}, {"c": "a"}} {
		if _, _, err := rename(in, uids); !errors.As(err, &collision) {
			t.Errorf("%v: %v", uids, err)
		}
	}
	if _, _, err := rename(in, map[string]string{"a": ""}); err == nil {
		t.Error("an empty uid")
	}
	if _, _, err := rename(in, map[string]string{"nobody": "x"}); !errors.Is(err, format.ErrNoMatch) {
		t.Errorf("an operator that is not there: %v", err)
	}
	// An operator that an earlier edit changed is chosen all the same.
	less, _, err := Drop(t.Context(), in, DropOptions{Operators: format.Selector{"a"}, Coordinators: true})
	if err != nil {
		t.Fatal(err)
	}
	if out, done, err := rename(less, map[string]string{"a": "z"}); err != nil || len(done.Operators) != 1 || out.Operators[0].ID != format.OperatorIDOf("z") {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestRenameStatesKnown: states under new names hold what they held; renamed
// back, streams are what they were, byte for byte.
func TestRenameStatesKnown(t *testing.T) {
	n, held := 0, 0
	eachKnown(t, func(t *testing.T, k testenv.KnownSnapshot, in format.View) {
		held += heldStates(t, k, "list", "union", "broadcast")
		there, back := map[string]string{}, map[string]string{}
		eachManaged(in.Savepoint, func(_ *format.Operator, sub *format.Subtask) {
			for _, st := range sub.Managed.States {
				name := st.Name.String()
				there[name], back[name+"-renamed ✓"] = name+"-renamed ✓", name
			}
		})
		sp, changed, err := Rename(t.Context(), in, RenameOptions{States: there})
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		for _, d := range changed.States {
			n += d.Handles
		}
		want := map[string][]string{}
		for key, all := range holdings(t, in) {
			want[key+"-renamed ✓"] = all
		}
		sameHoldings(t, k.Name, want, holdings(t, sp))
		again, _, err := Rename(t.Context(), sp, RenameOptions{States: back})
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		was, is := streams(t, in), streams(t, again)
		for key := range was {
			if was[key] != is[key] {
				t.Errorf("%s: the stream of %s is another", k.Name, key)
			}
		}
		if _, _, err := Rename(t.Context(), in, RenameOptions{States: map[string]string{"no such state": "x"}}); !errors.Is(err, format.ErrNoMatch) {
			t.Errorf("%s: a state that is not there: %v", k.Name, err)
		}
	})
	testenv.Found(t, "states in handles", n, held)
	t.Logf("%d states renamed", n)
}

func TestRenameStates(t *testing.T) {
	h := nativeHandle("n", st{"a", format.ModeList, []string{"1", "2"}}, st{"b", format.ModeUnion, []string{"3"}}, st{"m", format.ModeBroadcast, []string{"map"}})
	other := nativeHandle("o", st{"c", format.ModeList, []string{"4"}})
	in := sptest.View(sptest.Operator("x", h, other), sptest.Operator("y", nativeHandle("p", st{"a", format.ModeList, nil})))
	rename := func(states map[string]string) (format.View, *RenameReport, error) {
		return Rename(t.Context(), in, RenameOptions{Operators: format.Selector{"x"}, States: states})
	}
	// A swap.
	sp, done, err := rename(map[string]string{"a": "b", "b": "a"})
	x := in.Operators[0]
	one := int64(len(packed("1")))
	if err != nil || !slices.Equal(done.States, []RenamedState{{x, "a", "b", 1, false, 2, 2 * one}, {x, "b", "a", 1, false, 1, one}}) {
		t.Fatalf("%+v, %v", done, err)
	}
	got := sp.Operators[0].Subtasks[0].Managed
	if e := sptest.Elements(t, sp, got, "b"); !slices.Equal(e, []string{packed("1"), packed("2")}) || got.States[0].Name.String() != "b" || got.States[0].Mode != format.ModeList || got.States[1].Mode != format.ModeUnion {
		t.Errorf("%q, %+v", e, got.States)
	}
	if sp.Operators[1] != in.Operators[1] || sp.Operators[0].Subtasks[1] != in.Operators[0].Subtasks[1] || h.States[0].Name.String() != "a" {
		t.Error("what is not renamed is not shared, or the input changed")
	}
	if name := got.Data.(*format.Concat).As.(*format.Inline).Name.String(); name != "n" {
		t.Errorf("the stream is called %q", name)
	}
	var collision *CollisionError
	if _, _, err := rename(map[string]string{"a": "b"}); !errors.As(err, &collision) {
		t.Error(err)
	}
	if _, _, err := rename(map[string]string{"a": "z", "m": "z"}); !errors.As(err, &collision) {
		t.Error(err)
	}
}

// TestDropKnown: each operator state of each snapshot dropped alone: it is gone,
// all others hold what they held.
func TestDropKnown(t *testing.T) {
	n, held := 0, 0
	eachKnown(t, func(t *testing.T, k testenv.KnownSnapshot, in format.View) {
		inTruth := map[string]bool{}
		for _, op := range sptest.TruthOf(t, k.Dir).Operators {
			for _, s := range op.Subtasks {
				for name := range s.OperatorState {
					inTruth[name] = true
				}
			}
		}
		held += len(inTruth)
		names := map[string]bool{}
		eachManaged(in.Savepoint, func(_ *format.Operator, sub *format.Subtask) {
			for _, st := range sub.Managed.States {
				names[st.Name.String()] = true
			}
		})
		all := holdings(t, in)
		for name := range names {
			sp, d, err := Drop(t.Context(), in, DropOptions{States: format.ByName(name)})
			if err != nil || len(d.States) == 0 {
				t.Fatalf("%s: %v, %v", k.Name, d, err)
			}
			n++
			want := map[string][]string{}
			for key, e := range all {
				if !strings.HasSuffix(key, "/"+name) {
					want[key] = e
				}
			}
			sameHoldings(t, k.Name+" without "+name, want, holdings(t, sp))
			for i, op := range in.Operators {
				shared := true
				for _, s := range d.States {
					shared = shared && s.Operator != op
				}
				if shared && sp.Operators[i] != op {
					t.Errorf("%s: operator %v is not shared", k.Name, op.ID)
				}
			}
		}
	})
	t.Logf("%d states dropped, one at a time", n)
	testenv.Found(t, "names of states", n, held)
}

// TestDropParts: operators, coordinators, in-flight data and what is empty,
// in every snapshot there is.
func TestDropParts(t *testing.T) {
	var operators, coordinators, channels, empty int
	var has struct{ operators, coordinators, channels, empty int }
	for _, dir := range testenv.Snapshots(t) {
		snap, err := reader.Open(t.Context(), dir, &reader.Options{Stores: sptest.Stores()})
		if err != nil {
			t.Fatal(err)
		}
		in := snap.View()
		was := asFile(t, snap.Savepoint)
		for _, op := range snap.Operators {
			has.operators++
			if op.Coordinator != nil {
				has.coordinators++
			}
			if slices.ContainsFunc(op.Subtasks, func(s *format.Subtask) bool { return len(s.Input)+len(s.Output) > 0 }) {
				has.channels++
			}
			if !op.Finished && op.Coordinator == nil && !slices.ContainsFunc(op.Subtasks, func(s *format.Subtask) bool {
				return s.Finished || s.Managed != nil && format.Kind(s.Managed.Data) != format.KindEmpty || s.Raw != nil || s.ManagedKeyed != nil || s.RawKeyed != nil || len(s.Input)+len(s.Output)+len(s.Legacy) > 0
			}) {
				has.empty++
			}
		}
		for i, gone := range snap.Operators {
			sp, d, err := Drop(t.Context(), in, DropOptions{Operators: format.ByID(gone.ID)})
			if err != nil || !slices.Equal(d.Operators, []*format.Operator{gone}) || !slices.Equal(sp.Operators, slices.Delete(slices.Clone(snap.Operators), i, i+1)) {
				t.Fatalf("%s: %v", dir, err)
			}
			operators++
		}
		sp, d, err := Drop(t.Context(), in, DropOptions{Coordinators: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, op := range sp.Operators {
			if op.Coordinator != nil || (snap.Operators[i].Coordinator == nil) != (op == snap.Operators[i]) {
				t.Errorf("%s: coordinators", dir)
			}
		}
		coordinators += len(d.Coordinators)
		if sp, d, err = Drop(t.Context(), in, DropOptions{Channels: true}); err != nil {
			t.Fatal(err)
		}
		for i, op := range sp.Operators {
			for k, sub := range op.Subtasks {
				old := snap.Operators[i].Subtasks[k]
				had := len(old.Input)+len(old.Output) > 0
				if len(sub.Input)+len(sub.Output) > 0 || had == (sub == old) || sub.ManagedKeyed != old.ManagedKeyed || sub.Managed != old.Managed {
					t.Errorf("%s: channels", dir)
				}
			}
		}
		channels += len(d.Channels)
		if sp, d, err = Drop(t.Context(), in, DropOptions{Empty: true}); err != nil || len(sp.Operators)+len(d.Operators) != len(snap.Operators) {
			t.Fatal(err)
		}
		if len(d.Operators) == 0 && sp.Savepoint != snap.Savepoint {
			t.Errorf("%s: nothing dropped gives another savepoint", dir)
		}
		for _, op := range d.Operators {
			one := &format.Savepoint{Operators: []*format.Operator{op}}
			_ = one.EachStream(func(p format.Place, s format.Stream) error {
				if format.Kind(s) != format.KindEmpty {
					t.Errorf("%s: %v is not empty", dir, p)
				}
				return nil
			})
		}
		empty += len(d.Operators)
		if asFile(t, snap.Savepoint) != was {
			t.Errorf("%s: the input changed", dir)
		}
		_ = snap.Close()
	}
	testenv.Found(t, "operators", operators, has.operators)
	testenv.Found(t, "coordinators", coordinators, has.coordinators)
	testenv.Found(t, "operators with in-flight data", channels, has.channels)
	testenv.Found(t, "operators without state", empty, has.empty)
	t.Logf("%d operators, %d coordinators, %d with in-flight data, %d empty", operators, coordinators, channels, empty)
}

func TestDropLastState(t *testing.T) {
	in := sptest.View(sptest.Operator("x", nativeHandle("n", st{"a", format.ModeList, []string{"1"}})))
	sp, d, err := Drop(t.Context(), in, DropOptions{States: format.Globs{"a"}})
	if err != nil || len(d.States) != 1 || sp.Operators[0].Subtasks[0].Managed != nil || in.Operators[0].Subtasks[0].Managed == nil {
		t.Errorf("%+v, %v", sp.Operators[0].Subtasks[0], err)
	}
	// Then the operator is empty, and goes at the next pass.
	sp, d, err = Drop(t.Context(), sp, DropOptions{Empty: true})
	if err != nil || len(d.Operators) != 1 || len(sp.Operators) != 0 {
		t.Errorf("%v, %v", d, err)
	}
	// Having finished is state.
	done, some := sptest.Operator("done"), sptest.Operator("some", nil)
	done.Finished, some.Subtasks[0].Finished = true, true
	in = sptest.View(done, some)
	if sp, d, err := Drop(t.Context(), in, DropOptions{Empty: true}); err != nil || d.Any() || sp.Savepoint != in.Savepoint {
		t.Errorf("%v, %v", d, err)
	}
	// Parts go together; unpicked operators stay.
	op := sptest.Operator("x", nativeHandle("n", st{"a", format.ModeList, []string{"1"}}, st{"b", format.ModeList, nil}))
	op.Coordinator = &format.Inline{Data: format.NewBytes([]byte("c"))}
	op.Subtasks[0].Input = []*format.ChannelHandle{{Channels: make([]format.Channel, 1)}}
	other := sptest.Operator("y", nativeHandle("n", st{"a", format.ModeList, nil}))
	in = sptest.View(op, other)
	sp, d, err = Drop(t.Context(), in, DropOptions{Operators: format.Selector{"x"}, Coordinators: true, Channels: true, States: format.Globs{"a"}})
	got := sp.Operators[0]
	if err != nil || got.Coordinator != nil || got.Subtasks[0].Input != nil || len(got.Subtasks[0].Managed.States) != 1 || sp.Operators[1] != other {
		t.Errorf("%+v, %v", got, err)
	}
	if len(d.States)+len(d.Coordinators)+len(d.Channels) != 3 || d.States[0].Operator != op || op.Coordinator == nil || len(op.Subtasks[0].Input) != 1 {
		t.Errorf("%+v, or the input changed", d)
	}
}

func relocated(t *testing.T, v format.View, prefixes []format.Mapping) (format.View, *RelocateReport) {
	t.Helper()
	out, r, err := Relocate(t.Context(), v, RelocateOptions{Prefixes: prefixes})
	if err != nil {
		t.Fatal(err)
	}
	return out, r
}

// TestRelocateCorpus: every absolute reference of every snapshot moves, and back
// again gives the file that was; inline names never change.
func TestRelocateCorpus(t *testing.T) {
	moved, inline, uris := 0, 0, false
	for _, dir := range testenv.Snapshots(t) {
		snap, err := reader.Open(t.Context(), dir, &reader.Options{Stores: sptest.Stores()})
		if err != nil {
			t.Fatal(err)
		}
		was := asFile(t, snap.Savepoint)
		uris = uris || strings.Contains(was, "/shared/") || strings.Contains(was, "/taskowned/") || strings.Contains(was, "/dstl/")
		there := map[string]bool{}
		_ = snap.EachStream(func(_ format.Place, s format.Stream) error {
			if p, relative, ok := format.Reference(s); ok && !relative {
				there[p.String()] = true
			}
			if s, ok := s.(*format.Inline); ok {
				inline++
				if s.Name.String() != "" {
					there[s.Name.String()] = false
				}
			}
			return nil
		})
		for path, reference := range there {
			out, r := relocated(t, snap.View(), []format.Mapping{{Old: path, New: "s3://elsewhere/x"}})
			if !reference {
				if out.Savepoint != snap.Savepoint || len(r.Changed) > 0 {
					t.Errorf("%s: the inline name %s was moved", dir, path)
				}
				continue
			}
			moved++
			if len(r.Changed) != 1 || r.Changed[0].From != path || r.Changed[0].To != "s3://elsewhere/x" || r.Changed[0].Handles < 1 {
				t.Fatalf("%s: %+v", dir, r.Changed)
			}
			if bytes := asFile(t, out.Savepoint); strings.Contains(bytes, "s3://elsewhere/x") == false {
				t.Errorf("%s: %s stands where it was", dir, path)
			}
			back, _ := relocated(t, out, []format.Mapping{{Old: "s3://elsewhere/x", New: path}})
			if asFile(t, back.Savepoint) != was {
				t.Errorf("%s: there and back is another file", dir)
			}
		}
		if out, r := relocated(t, snap.View(), []format.Mapping{{Old: "file:/no/such/folder", New: "x"}}); out.Savepoint != snap.Savepoint || len(r.Changed) > 0 {
			t.Errorf("%s: what does not fit was moved", dir)
		}
		if asFile(t, snap.Savepoint) != was {
			t.Errorf("%s: the input changed", dir)
		}
		_ = snap.Close()
	}
	testenv.Some(t, "absolute references", moved, uris)
	testenv.Some(t, "inline handles", inline, inline > 0)
	t.Logf("%d references moved and back, %d inline handles", moved, inline)
}

// TestRelocatePlaceholder: the folders of file merging are references too, also
// where nothing else is.
func TestRelocatePlaceholder(t *testing.T) {
	h := &format.OperatorHandle{Data: &format.EmptySegment{}, Merging: &format.FileMerging{TaskOwnedDir: format.NewText("file:/a/own"), Placeholder: true}}
	sp := sptest.View(sptest.Operator("x", h))
	out, r := relocated(t, sp, []format.Mapping{{Old: "file:/a", New: "file:/b"}})
	if m := out.Operators[0].Subtasks[0].Managed.Merging; m.TaskOwnedDir.String() != "file:/b/own" || m.SharedDir.String() != "" || !m.Placeholder {
		t.Errorf("%+v", m)
	}
	if len(r.Changed) != 1 || len(r.Unmatched) != 0 {
		t.Errorf("%+v", r)
	}
	if out, _ := relocated(t, sp, []format.Mapping{{Old: "file:/c", New: "file:/b"}}); out.Savepoint != sp.Savepoint {
		t.Error("what does not fit was moved")
	}
}

func TestRelocate(t *testing.T) {
	file := func(path string) *format.File { return &format.File{Path: format.NewText(path), Length: 1} }
	h := func(s format.Stream) *format.OperatorHandle { return &format.OperatorHandle{Data: s} }
	merged := &format.OperatorHandle{Data: &format.Segment{Path: format.NewText("file:/a/b/taskowned/f"), Length: 3, LogicalID: format.NewText("id")},
		Merging: &format.FileMerging{TaskOwnedDir: format.NewText("file:/a/b/taskowned"), SharedDir: format.NewText("file:/elsewhere/shared")}}
	relative := &format.File{Path: format.NewText("file"), Relative: true}
	op := sptest.Operator("x", h(file("file:/a/b/c/1")), h(file("file:/a/bc/2")), h(file("s3a://bucket/a/3")), h(relative), merged, h(file("file:/a/b/c/1")), h(&format.Inline{Name: format.NewText("file:/a/b/c/1")}))
	out, r := relocated(t, sptest.View(op), []format.Mapping{{Old: "file:/a/b", New: "file:/long"}, {Old: "file:/a/b/c/", New: "hdfs://n/c/"}, {Old: "s3://bucket/a", New: "gs://g"}})
	var got []string
	for _, sub := range out.Operators[0].Subtasks {
		p, _, _ := format.Reference(sub.Managed.Data)
		got = append(got, p.String())
	}
	// The longest prefix first, whole elements only, spellings of S3 alike.
	if want := []string{"hdfs://n/c/1", "file:/a/bc/2", "gs://g/3", "file", "file:/long/taskowned/f", "hdfs://n/c/1", ""}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	m := out.Operators[0].Subtasks[4].Managed.Merging
	if m.TaskOwnedDir.String() != "file:/long/taskowned" || m.SharedDir.String() != "file:/elsewhere/shared" || merged.Merging.TaskOwnedDir.String() != "file:/a/b/taskowned" {
		t.Errorf("%+v", m)
	}
	if len(r.Changed) != 4 || r.Changed[0].Handles != 2 || r.Changed[3].From != "file:/a/b/taskowned" || len(r.Unmatched) != 2 || r.Unmatched[0].From != "file:/a/bc/2" || r.Relative != 1 {
		t.Errorf("%+v", r)
	}
	for i, sub := range op.Subtasks {
		if changed := i == 0 || i == 2 || i == 4 || i == 5; changed == (out.Operators[0].Subtasks[i] == sub) {
			t.Errorf("subtask %d", i)
		}
	}
}

// TestSetModeKnown: list states become union states and union states list
// states, elements stay; back again gives the same streams.
func TestSetModeKnown(t *testing.T) {
	n, held := 0, 0
	eachKnown(t, func(t *testing.T, k testenv.KnownSnapshot, in format.View) {
		held += heldStates(t, k, "list", "union")
		for _, mode := range []format.Mode{format.ModeList, format.ModeUnion} {
			other := format.ModeList + format.ModeUnion - mode
			names := map[string]bool{}
			eachManaged(in.Savepoint, func(_ *format.Operator, sub *format.Subtask) {
				for _, st := range sub.Managed.States {
					if st.Mode == other {
						names[st.Name.String()] = true
					}
				}
			})
			states := format.ByName(slices.Collect(maps.Keys(names))...)
			sp, done, err := Set(t.Context(), in, SetOptions{States: states, Mode: &mode})
			if err != nil || (len(names) == 0) != (sp.Savepoint == in.Savepoint) {
				t.Fatalf("%s: %v", k.Name, err)
			}
			for _, d := range done.Modes {
				if d.From != other || d.Handles == 0 {
					t.Errorf("%+v", d)
				}
				n += d.Handles
			}
			want := map[string][]string{}
			for key, e := range holdings(t, in) {
				if _, name, _ := strings.Cut(key, "/"+other.String()+"/"); names[name] {
					key = strings.Replace(key, "/"+other.String()+"/", "/"+mode.String()+"/", 1)
				}
				want[key] = e
			}
			sameHoldings(t, k.Name, want, holdings(t, sp))
			eachManaged(sp.Savepoint, func(_ *format.Operator, sub *format.Subtask) { // what the stream says
				codec, _ := in.Codec(sub.Managed.Codec)
				metas, err := codec.Describe(t.Context(), in.Source, sub.Managed)
				if err != nil {
					t.Errorf("%s: %v", k.Name, err)
				}
				for _, m := range metas {
					if m.Mode == other && names[m.Name.String()] {
						t.Errorf("%s: %s is %v in its stream", k.Name, m.Name, m.Mode)
					}
				}
			})
			back, _, err := Set(t.Context(), sp, SetOptions{States: states, Mode: &other})
			if err != nil {
				t.Fatal(err)
			}
			was, is := streams(t, in), streams(t, back)
			for key := range was {
				if was[key] != is[key] {
					t.Errorf("%s: the stream of %s is another", k.Name, key)
				}
			}
		}
	})
	t.Logf("%d handles", n)
	testenv.Found(t, "states in handles", n, held)
}

func TestSetMode(t *testing.T) {
	a := nativeHandle("n", st{"u", format.ModeUnion, []string{"1", "2"}}, st{"a", format.ModeList, []string{"3"}})
	a.Wire = "kept"
	b := nativeHandle("o", st{"u", format.ModeUnion, []string{"1"}})
	in := sptest.View(sptest.Operator("x", a, b, nativeHandle("p", st{"a", format.ModeList, nil})))
	list := format.ModeList
	sp, set, err := Set(t.Context(), in, SetOptions{States: format.Globs{"u"}, Mode: &list})
	if err != nil || len(set.Modes) != 1 {
		t.Fatalf("%v, %v", set, err)
	}
	done := set.Modes
	if *done[0] != (ModeSet{Operator: in.Operators[0], State: "u", From: format.ModeUnion, Handles: 2, Elements: 3}) {
		t.Errorf("%+v", done[0])
	}
	got := sp.Operators[0].Subtasks
	if h := got[0].Managed; h.Wire != "kept" || h.States[0].Mode != format.ModeList || h.States[1].Mode != format.ModeList || a.States[0].Mode != format.ModeUnion {
		t.Errorf("%+v", h)
	}
	if got[2] != in.Operators[0].Subtasks[2] {
		t.Error("a subtask without the state is not shared")
	}
}

func TestSetModeRefused(t *testing.T) {
	in := sptest.View(sptest.Operator("x", nativeHandle("n", st{"a", format.ModeList, []string{"1"}}, st{"m", format.ModeBroadcast, []string{"map"}})))
	all := format.Globs{"*"}
	for _, mode := range []format.Mode{format.ModeList, format.ModeUnion, format.ModeBroadcast} {
		if _, _, err := Set(t.Context(), in, SetOptions{States: all, Mode: &mode}); !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%v: %v", mode, err)
		}
	}
	union := format.ModeUnion
	if _, _, err := Set(t.Context(), in, SetOptions{States: format.Globs{"nothing"}, Mode: &union}); !errors.Is(err, format.ErrNoMatch) {
		t.Errorf("a state that is not there: %v", err)
	}
	// Without names, all list and union states: a broadcast state stays.
	if sp, done, err := Set(t.Context(), in, SetOptions{Mode: &union}); err != nil || len(done.Modes) != 1 || sp.Operators[0].Subtasks[0].Managed.States[1].Mode != format.ModeBroadcast {
		t.Errorf("%+v, %v", done, err)
	}
	if sp, done, err := Set(t.Context(), in, SetOptions{}); sp.Savepoint != in.Savepoint || len(done.Modes) > 0 || err != nil {
		t.Errorf("%v, %v", done, err)
	}
}

func TestSetIDAndMaxParallelism(t *testing.T) {
	op, keyed := sptest.Operator("x", nativeHandle("n", st{"a", format.ModeList, []string{"1"}}), nil), sptest.Operator("y", nil)
	keyed.Subtasks[0].RawKeyed = &format.KeyGroups{}
	in := sptest.View(op, keyed)
	in.ID = 3
	nine, three := int64(9), int64(3)
	if out, was, err := Set(t.Context(), in, SetOptions{ID: &nine}); err != nil || out.ID != 9 || in.ID != 3 || out.Operators[0] != op || was.OldID != 3 {
		t.Error("the id")
	}
	if out, _, err := Set(t.Context(), in, SetOptions{ID: &three}); err != nil || out.Savepoint != in.Savepoint {
		t.Error("the same id gives another savepoint")
	}
	setMax := func(in format.View, sel format.Selector, max int32) (format.View, []MaxSet, error) {
		out, was, err := Set(t.Context(), in, SetOptions{Operators: sel, MaxParallelism: max})
		if err != nil {
			return out, nil, err
		}
		return out, was.MaxParallelism, nil
	}
	out, done, err := setMax(in, format.Selector{"x"}, 2)
	if err != nil || len(done) != 1 || done[0].From != 128 || out.Operators[0].MaxParallelism != 2 || op.MaxParallelism != 128 || out.Operators[1] != keyed || out.Operators[0].Subtasks[0] != op.Subtasks[0] {
		t.Errorf("%v, %v", done, err)
	}
	var low *ParallelismError
	if _, _, err := setMax(in, format.Selector{"x"}, 1); !errors.As(err, &low) {
		t.Error(err)
	}
	if _, _, err := setMax(in, format.Selector{"y"}, 256); !errors.Is(err, format.ErrUnsupported) {
		t.Error(err)
	}
	keyed.Subtasks[0].RawKeyed, keyed.Subtasks[0].ManagedKeyed = nil, &format.Incremental{}
	if _, _, err := setMax(in, nil, 256); !errors.Is(err, format.ErrUnsupported) {
		t.Error(err)
	}
	if out, done, err := setMax(in, nil, 128); out.Savepoint != in.Savepoint || len(done) > 0 || err != nil {
		t.Error("what is so already changed")
	}
}

// keepIf is a filter of all states.
func keepIf(keep func(FilterElement) (bool, error)) FilterOptions { return FilterOptions{Keep: keep} }

// firstEntries gives a map with every second of its entries, and how many it
// has. The entries are cut here: of rules a number of eight bytes and a string,
// of the others a string and a number of four. A string is u8 length+1 and that
// many characters of one byte.
func firstEntries(t *testing.T, key, m string) (cut string, n int64) {
	t.Helper()
	before, after := 0, 4
	if strings.HasSuffix(key, "/rules") {
		before, after = 8, 0
	}
	at := 4
	for ; at < len(m); n++ {
		size := at + before
		end := size + int(m[size]) + after
		if m[size] == 0 || m[size] > 0x7f || end > len(m) {
			t.Fatalf("% x is no map of this kind", m)
		}
		if n%2 == 0 {
			cut += m[at:end]
		}
		at = end
	}
	if n != int64(binary.BigEndian.Uint32([]byte(m))) {
		t.Fatalf("%d entries in % x", n, m)
	}
	return string(binary.BigEndian.AppendUint32(nil, uint32(n+1)/2)) + cut, n
}

// TestFilterKnown: of every state the elements, and entries, of even number
// stay; handles that lose nothing are shared.
func TestFilterKnown(t *testing.T) {
	var kept, dropped, entries, held, heldEntries int64
	eachKnown(t, func(t *testing.T, k testenv.KnownSnapshot, in format.View) {
		for _, op := range sptest.TruthOf(t, k.Dir).Operators {
			for _, s := range op.Subtasks {
				for _, st := range s.OperatorState {
					held += int64(len(st.Raw) + len(st.Entries))
					heldEntries += int64(len(st.Entries))
				}
			}
		}
		o := FilterOptions{Keep: func(e FilterElement) (bool, error) { return e.Index%2 == 0, nil }}
		sp, all, err := Filter(t.Context(), in, o)
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		want := map[string][]string{}
		var wantKept, wantDropped int64
		for key, e := range holdings(t, in) {
			want[key] = nil
			if strings.Contains(key, "/broadcast/") {
				cut, of := firstEntries(t, key, e[0])
				want[key] = []string{cut}
				wantKept += (of + 1) / 2
				wantDropped += of / 2
				entries += of
				continue
			}
			for i, v := range e {
				if i%2 == 0 {
					want[key] = append(want[key], v)
					wantKept++
				} else {
					wantDropped++
				}
			}
		}
		sameHoldings(t, k.Name, want, holdings(t, sp))
		var gotKept, gotDropped int64
		for _, f := range all.States {
			gotKept, gotDropped = gotKept+f.Kept, gotDropped+f.Dropped
		}
		if gotKept != wantKept || gotDropped != wantDropped {
			t.Errorf("%s: %d kept and %d dropped, not %d and %d", k.Name, gotKept, gotDropped, wantKept, wantDropped)
		}
		kept, dropped = kept+gotKept, dropped+gotDropped
		// Kept whole: the savepoint itself.
		if same, _, err := Filter(t.Context(), in, keepIf(func(FilterElement) (bool, error) { return true, nil })); same.Savepoint != in.Savepoint || err != nil {
			t.Errorf("%s: another savepoint, %v", k.Name, err)
		}
		// All dropped: states stay, empty.
		none, _, err := Filter(t.Context(), in, keepIf(func(FilterElement) (bool, error) { return false, nil }))
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		for key, e := range holdings(t, none) {
			if strings.Contains(key, "/broadcast/") && !slices.Equal(e, []string{"\x00\x00\x00\x00"}) || !strings.Contains(key, "/broadcast/") && len(e) > 0 {
				t.Errorf("%s: %s holds %d", k.Name, key, len(e))
			}
		}
	})
	t.Logf("%d kept, %d dropped; of them %d entries of maps", kept, dropped, entries)
	testenv.Found(t, "elements and entries", kept+dropped, held)
	testenv.Found(t, "entries", entries, heldEntries)
}

func TestFilter(t *testing.T) {
	a := nativeHandle("n", st{"a", format.ModeList, []string{"1", "22", "3"}}, st{"u", format.ModeUnion, []string{"1"}}, st{"m", format.ModeBroadcast, []string{"map"}})
	b := nativeHandle("o", st{"a", format.ModeList, []string{"22", "22"}})
	in := sptest.View(sptest.Operator("x", a, b))
	sp, all, err := Filter(t.Context(), in, FilterOptions{States: format.Globs{"a"}, Keep: func(e FilterElement) (bool, error) {
		if want := in.Operators[0].Subtasks[e.Subtask.Index]; e.Operator != in.Operators[0] || e.Subtask != want || want.Managed.States[e.State].Name.String() != "a" {
			t.Errorf("asked about %+v", e)
		}
		return string(e.Value) == packed("22"), nil
	}})
	if err != nil || len(all.States) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	f := *all.States[0]
	f.Operator = nil
	if f != (FilteredState{State: "a", Kept: 3, Dropped: 2, KeptBytes: 9, DroppedBytes: 4}) {
		t.Errorf("%+v", f)
	}
	if sp.Operators[0].Subtasks[1] != in.Operators[0].Subtasks[1] || sp.Operators[0].Subtasks[0] == in.Operators[0].Subtasks[0] || a.States[0].Offsets.Len() != 3 {
		t.Error("a subtask that lost nothing is not shared, or the input changed")
	}
	// What is asked answers with an error: that very one.
	trouble := errors.New("trouble")
	if _, _, err := Filter(t.Context(), in, keepIf(func(FilterElement) (bool, error) { return false, trouble })); err != trouble {
		t.Error(err)
	}
	// Trouble of reading has its place.
	in.Source = failing{}
	_, _, err = Filter(t.Context(), in, keepIf(func(FilterElement) (bool, error) { return true, nil }))
	var at *format.Error
	if !errors.As(err, &at) || at.Path != `operator "x"/subtask 0/state "a"/element 0` {
		t.Errorf("%v", err)
	}
}

// TestReencodeKnown: for releases before 1.18 streams are described as
// version 5, elements stay; compressed ones are refused; others are shared.
func TestReencodeKnown(t *testing.T) {
	rebuilt, refused, handles, compressed := 0, 0, 0, 0
	eachKnown(t, func(t *testing.T, k testenv.KnownSnapshot, in format.View) {
		if sp, done, err := Reencode(t.Context(), in, ReencodeOptions{Release: flink.MustRelease("1.18")}); sp.Savepoint != in.Savepoint || done.Handles != 0 || err != nil {
			t.Errorf("%s: 1.18 changes %d, %v", k.Name, done.Handles, err)
		}
		if k.Compress && heldStates(t, k, "list", "union", "broadcast") > 0 {
			compressed++
		}
		sp, done, err := Reencode(t.Context(), in, ReencodeOptions{Release: flink.MustRelease("1.17")})
		if errors.Is(err, format.ErrUnsupported) {
			refused++
			snappy := false
			eachManaged(in.Savepoint, func(_ *format.Operator, sub *format.Subtask) {
				p := sptest.Bytes(t, in.Source, sub.Managed.Data)
				snappy = snappy || len(p) > 4 && p[4] == 1
			})
			if !snappy {
				t.Errorf("%s: %v", k.Name, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		rebuilt += done.Handles
		for _, p := range streams(t, in) {
			if len(p) > 4 && p[3] == 6 {
				handles++
			}
		}
		sameHoldings(t, k.Name, holdings(t, in), holdings(t, sp))
		was := streams(t, in)
		for key, p := range streams(t, sp) {
			if was[key] == "" { // a placeholder of file merging
				continue
			}
			// The same bytes, in version 5 and without the mark of compression.
			if want := "\x00\x00\x00\x05" + was[key][5:]; p != want {
				t.Errorf("%s: the stream of %s is another", k.Name, key)
			}
		}
	})
	t.Logf("%d handles described anew, %d snapshots refused", rebuilt, refused)
	testenv.Found(t, "handles", rebuilt, handles)
	testenv.Found(t, "snapshots with compressed operator state", refused, compressed)
}

// failing is a source that fails.
type failing struct{}

func (failing) ReadAt(context.Context, format.Stream, []byte, int64) (int, error) {
	return 0, format.Errorf(format.ErrMissing, "gone")
}
