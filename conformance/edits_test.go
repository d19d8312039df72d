package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// editVersions judge the edits.
var editVersions = Versions()

// edited are the kinds of snapshots that edits are judged on, and the operator
// whose state matters.
var edited = []struct{ of, uid string }{
	{"operator", "lists"},              // canonical
	{"keyed-rocksdb-native", "keyed"},  // native
	{"counts-incremental", "counts"},   // incremental checkpoint
	{"keyed-unaligned", "keyed"},       // in-flight data
	{"keyed-changelog", "keyed"},       // changelog
	{"operator-compressed", "lists"},   // snappy frames
	{"operator-file-merging", "lists"}, // segments
}

// eachEdited runs f for each kind of snapshot on each version.
func eachEdited(t *testing.T, f func(t *testing.T, e *editJudge)) {
	eachFitting(t, func(Version, string, Options) bool { return true }, f)
}

// eachFitting is eachEdited for those to which an edit applies.
func eachFitting(t *testing.T, fits func(v Version, uid string, o Options) bool, f func(t *testing.T, e *editJudge)) {
	for _, version := range editVersions {
		for _, x := range edited {
			if !fits(version, x.uid, caseNamed(t, x.of).options) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", version, x.of), func(t *testing.T) {
				flink := Use(t, version)
				f(t, &editJudge{f: flink, s: madeOnce(t, flink, caseNamed(t, x.of).options), uid: x.uid})
			})
		}
	}
}

// editJudge has Flink restore what an edit made of a snapshot.
type editJudge struct {
	f   *Flink
	s   Snapshot
	uid string
}

func (j *editJudge) id() format.OperatorID { return format.OperatorIDOf(j.uid) }

// edit writes what change makes of the snapshot, to stand where it does.
func (j *editJudge) edit(t *testing.T, change func(in format.View) (format.View, error)) Snapshot {
	t.Helper()
	snap := opened(t, j.s)
	sp, err := change(inputOf(snap))
	if err != nil {
		t.Fatal(err)
	}
	return j.write(t, snap, sp.Savepoint, writer.Options{})
}

func (j *editJudge) write(t *testing.T, snap *reader.Snapshot, sp *format.Savepoint, o writer.Options) Snapshot {
	t.Helper()
	out, rewritten := standsFor(t, j.s)
	seal(t, snap.With(sp), out, o)
	return rewritten
}

// same compares two contents; order is left out where it cannot be known.
func (j *editJudge) same(t *testing.T, want, got Content) {
	t.Helper()
	full := func(_ Operator, _ Subtask, _ string, state OperatorState) (OperatorState, bool) {
		return state, held(state) > 0
	}
	want, got = withoutOrder(withOperatorStates(want, full)), withoutOrder(withOperatorStates(got, full))
	compareContent(t, j.f, j.s.Options, 0, want, got)
}

// The job whose operator has the new uid is handed all its state; the job with
// the old uid is refused, for the state of the new one has no taker.
func TestEditRename(t *testing.T) {
	eachEdited(t, func(t *testing.T, j *editJudge) {
		rewritten := j.edit(t, func(in format.View) (format.View, error) {
			out, done, err := transform.Rename(t.Context(), in, transform.RenameOptions{UIDs: map[string]string{j.uid: "renamed"}})
			if err != nil || len(done.Operators) != 1 {
				t.Fatalf("%+v renamed, %v", done, err)
			}
			return out, nil
		})
		want := restoredOnce(t, j.f, j.s, Choices{})
		got := Restore(t, j.f, rewritten, Choices{UIDs: map[string]string{j.uid: "renamed"}})
		got.Operators = slices.Clone(got.Operators)
		for i := range got.Operators {
			if o := &got.Operators[i]; o.ID == format.OperatorIDOf("renamed").String() {
				o.ID = j.id().String()
				if o.UID == "renamed" {
					o.UID = j.uid
				}
			}
		}
		byID := func(a, b Operator) int { return strings.Compare(a.ID, b.ID) }
		want.Operators = slices.Clone(want.Operators)
		slices.SortFunc(got.Operators, byID)
		slices.SortFunc(want.Operators, byID)
		j.same(t, want, got)
		JudgeRefused(t, j.f, rewritten, Choices{}, "Cannot map checkpoint/savepoint state for operator "+format.OperatorIDOf("renamed").String())
	})
}

// A dropped operator starts empty, and the others as ever; no permission to leave
// state behind is needed. In-flight data still reaches it, unless it is
// dropped too.
func TestEditDropOperator(t *testing.T) {
	eachEdited(t, func(t *testing.T, j *editJudge) {
		inFlight := j.s.Options.Unaligned
		rewritten := j.edit(t, func(in format.View) (format.View, error) {
			sp, d, err := transform.Drop(context.Background(), in, transform.DropOptions{Operators: format.ByID(j.id())})
			if err != nil || len(d.Operators) != 1 {
				t.Fatalf("%d operators dropped, %v", len(d.Operators), err)
			}
			sp, d, err = transform.Drop(context.Background(), sp, transform.DropOptions{Channels: true})
			if inFlight != (len(d.Channels) > 0) {
				t.Errorf("in-flight data of %d operators dropped", len(d.Channels))
			}
			return sp, err
		})
		want := restoredOnce(t, j.f, j.s, Choices{})
		if holds(operatorOf(want, j.id().String())) == 0 {
			t.Error("the operator held nothing before")
		}
		for _, allow := range []bool{false, true} {
			got := Restore(t, j.f, rewritten, Choices{AllowNonRestored: allow})
			if n := holds(operatorOf(got, j.id().String())); n != 0 {
				t.Errorf("the dropped operator holds %d things", n)
			}
			if !inFlight { // they would have changed what the others hold
				j.same(t, without(want, j.id()), without(got, j.id()))
			}
		}
	})
}

// holds counts what an operator holds.
func holds(op *Operator) (n int) {
	if op == nil {
		return 0
	}
	for _, sub := range op.Subtasks {
		for _, state := range sub.OperatorState {
			n += held(state)
		}
		for _, state := range sub.KeyedState {
			n += len(state.Entries)
		}
	}
	return n
}

func without(c Content, id format.OperatorID) Content {
	c.Operators = slices.DeleteFunc(slices.Clone(c.Operators), func(o Operator) bool { return o.ID == id.String() })
	return c
}

// statesOf is the names of states of a kind that hold something.
func (j *editJudge) statesOf(t *testing.T, kind string) []string {
	t.Helper()
	names := map[string]bool{}
	for _, sub := range operatorOf(mustTruth(t, j.s), j.id().String()).Subtasks {
		for name, state := range sub.OperatorState {
			if state.Kind == kind && len(state.Raw) > 0 {
				names[name] = true
			}
		}
	}
	if len(names) == 0 {
		t.Fatalf("no %s state", kind)
	}
	return slices.Sorted(maps.Keys(names))
}

// onlyOperatorState runs f for the snapshots of lists.
func onlyOperatorState(t *testing.T, f func(t *testing.T, j *editJudge)) {
	eachFitting(t, func(_ Version, uid string, _ Options) bool { return uid == "lists" }, f)
}

// A state dropped alone is empty, the others of its stream are as they were.
func TestEditDropState(t *testing.T) {
	onlyOperatorState(t, func(t *testing.T, j *editJudge) {
		gone := j.statesOf(t, "list")[0]
		rewritten := j.edit(t, func(in format.View) (format.View, error) {
			sp, _, err := transform.Drop(context.Background(), in, transform.DropOptions{Operators: format.ByID(j.id()), States: format.ByName(gone)})
			return sp, err
		})
		want := withOperatorStates(restoredOnce(t, j.f, j.s, Choices{}), func(o Operator, _ Subtask, name string, state OperatorState) (OperatorState, bool) {
			return state, o.ID != j.id().String() || name != gone
		})
		j.same(t, want, Restore(t, j.f, rewritten, Choices{}))
	})
}

// A list state made union state: the job that asks for it so is handed every
// element in every subtask; one that asks for a list is refused. And a union
// state made list state: each subtask is handed its own.
func TestEditMode(t *testing.T) {
	onlyOperatorState(t, func(t *testing.T, j *editJudge) {
		truth := operatorOf(mustTruth(t, j.s), j.id().String())
		for _, x := range []struct {
			from, to string
			mode     format.Mode
		}{{"list", "union", format.ModeUnion}, {"union", "list", format.ModeList}} {
			name := j.statesOf(t, x.from)[0]
			rewritten := j.edit(t, func(in format.View) (format.View, error) {
				out, done, err := transform.Set(t.Context(), in, transform.SetOptions{Operators: format.ByID(j.id()), States: format.ByName(name), Mode: &x.mode})
				if err != nil || len(done.Modes) != 1 {
					t.Fatalf("%+v set, %v", done, err)
				}
				return out, nil
			})
			got := Restore(t, j.f, rewritten, Choices{Modes: map[string]string{name: x.to}})
			var all []string
			for _, sub := range truth.Subtasks {
				all = append(all, sub.OperatorState[name].Raw...)
			}
			for i, sub := range operatorOf(got, j.id().String()).Subtasks {
				want := truth.Subtasks[i].OperatorState[name].Raw
				if x.to == "union" {
					want = all
				}
				if state := sub.OperatorState[name]; state.Kind != x.to || !sameBag(want, state.Raw) {
					t.Errorf("%s as %s, subtask %d: %s of %d elements, want %d", name, x.to, i, state.Kind, len(state.Raw), len(want))
				}
			}
			JudgeRefused(t, j.f, rewritten, Choices{Modes: map[string]string{name: x.from}}, "Incompatible state assignment modes")
		}
	})
}

// Of list and union state the elements of even number stay: Flink hands out
// those, and no other.
func TestEditFilter(t *testing.T) {
	onlyOperatorState(t, func(t *testing.T, j *editJudge) {
		rewritten := j.edit(t, func(in format.View) (format.View, error) {
			elements := append(j.statesOf(t, "list"), j.statesOf(t, "union")...)
			sp, _, err := transform.Filter(context.Background(), in, transform.FilterOptions{
				Operators: format.ByID(j.id()), States: format.ByName(elements...),
				Keep: func(e transform.FilterElement) (bool, error) { return e.Index%2 == 0, nil },
			})
			return sp, err
		})
		truth := operatorOf(mustTruth(t, j.s), j.id().String())
		got := operatorOf(Restore(t, j.f, rewritten, Choices{}), j.id().String())
		compared := 0
		for _, kind := range []string{"list", "union"} {
			for _, name := range j.statesOf(t, kind) {
				var all []string
				kept := make([][]string, len(truth.Subtasks))
				for i, sub := range truth.Subtasks {
					for n, raw := range sub.OperatorState[name].Raw {
						if n%2 == 0 {
							kept[i] = append(kept[i], raw)
						}
					}
					all = append(all, kept[i]...)
				}
				for i, sub := range got.Subtasks {
					want := kept[i]
					if kind == "union" {
						want = all
					}
					if state := sub.OperatorState[name]; !sameBag(want, state.Raw) {
						t.Errorf("%s state %s, subtask %d: %d elements, want %d", kind, name, i, len(state.Raw), len(want))
					}
					compared += len(want)
				}
			}
		}
		if compared < 10 {
			t.Errorf("%d elements compared", compared)
		}
	})
}

// Entries of broadcast state taken out: every subtask, at the old parallelism
// and at another one, is handed what the original hands it without them.
func TestEditFilterBroadcast(t *testing.T) {
	onlyOperatorState(t, func(t *testing.T, j *editJudge) {
		snap := opened(t, j.s)
		goes := func(key string) bool { return key == "twice" || key == "1" }
		sp, done, err := transform.Filter(t.Context(), inputOf(snap), transform.FilterOptions{
			States: format.Globs{"owner", "rules"},
			Keep: func(e transform.FilterElement) (bool, error) {
				values, err := snap.Values(t.Context(), e.Subtask.Managed, e.State)
				if err != nil {
					return false, err
				}
				key, err := value.ReadAll(values.Key, e.Entry.Key)
				return !goes(key.String()), err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(done.States) != 2 {
			t.Errorf("%d states filtered", len(done.States))
		}
		rewritten := j.write(t, snap, sp.Savepoint, writer.Options{})
		kept, gone := 0, 0
		for _, c := range []Choices{{}, {Parallelism: j.s.Options.Parallelism + 1}} {
			want, got := restoredOnce(t, j.f, j.s, c), Restore(t, j.f, rewritten, c)
			for _, w := range want.Operators {
				for i, sub := range w.Subtasks {
					for name, state := range sub.OperatorState {
						if state.Kind != "broadcast" {
							continue
						}
						left := slices.DeleteFunc(slices.Clone(state.Entries), func(e Value) bool {
							return strings.HasPrefix(string(e), `["twice",`) || strings.HasPrefix(string(e), `[1,`)
						})
						kept, gone = kept+len(left), gone+len(state.Entries)-len(left)
						if have := operatorOf(got, w.ID).Subtasks[i].OperatorState[name]; have.Kind != "broadcast" || !slices.Equal(left, have.Entries) {
							t.Errorf("%s, subtask %d of %s: %v, want %v", name, i, w.Name, have.Entries, left)
						}
					}
				}
			}
		}
		if t.Logf("%d entries kept, %d taken out", kept, gone); kept < 10 || gone < 4 {
			t.Error("too few to show anything")
		}
	})
}

// patchedValue is another value of the type of an element, as a person writes it in JSON,
// and as Flink's job shows it.
func patchedValue(t *testing.T, element Value) (written string, shown Value) {
	t.Helper()
	text := string(element)
	switch {
	case strings.HasPrefix(text, "{") && !strings.Contains(text, `"name"`): // bytes, or of many a hash
		return `{"base64":"AP8="}`, `{"hex":"00ff"}`
	case strings.HasPrefix(text, "{"): // a POJO
		return `{"name":"patched ✓𝄞","id":-1,"flag":true,"count":null}`, `{"count":null,"flag":true,"id":-1,"name":"patched ✓𝄞"}`
	case strings.HasPrefix(text, "["): // a tuple
		return `["patched",-42]`, `["patched",-42]`
	case strings.HasPrefix(text, `"`):
		return `"patched ✓𝄞"`, `"patched ✓𝄞"`
	case strings.ContainsAny(text, ".eE"):
		return `-0.5`, `-0.5`
	}
	if _, err := strconv.Atoi(text); err != nil {
		t.Fatalf("%s: of no type that is known here", text)
	}
	return `-42`, `-42`
}

// Elements of list and union state and entries of broadcast state that were replaced,
// added and removed: Flink's serializers read what spt wrote, and each subtask is handed
// what the lines say.
func TestEditPatch(t *testing.T) {
	onlyOperatorState(t, func(t *testing.T, j *editJudge) {
		snap := opened(t, j.s)
		truth := operatorOf(mustTruth(t, j.s), j.id().String())
		kept := map[string][][]Value{} // by state and subtask
		types := map[byte]bool{}
		var changes []transform.PatchChange
		for _, kind := range []string{"list", "union"} {
			for _, name := range j.statesOf(t, kind) {
				for i, sub := range truth.Subtasks {
					elements := slices.Clone(sub.OperatorState[name].Elements)
					if n := int64(len(elements)); n > 0 {
						written, shown := patchedValue(t, elements[0])
						types[written[0]] = true
						c := transform.PatchChange{Operator: j.id(), State: name, Subtask: int32(sub.Index), Value: transform.PatchValue{JSON: []byte(written)}}
						elements[0] = shown
						changes = append(changes, c)
						if n > 2 {
							remove := c
							remove.Op, remove.Index, remove.Value = transform.PatchRemove, n-1, transform.PatchValue{}
							changes = append(changes, remove)
							elements = elements[:n-1]
						}
						add := c
						add.Op, add.Index = transform.PatchAdd, 1
						changes = append(changes, add)
						elements = slices.Insert(elements, 1, shown)
					}
					if kept[name] == nil {
						kept[name] = make([][]Value, len(truth.Subtasks))
					}
					kept[name][i] = elements
				}
			}
		}
		entry := func(op transform.PatchOp, uid, state, key, value string) {
			c := transform.PatchChange{Op: op, Operator: format.OperatorIDOf(uid), State: state, Subtask: transform.AllSubtasks, Index: transform.NoIndex, Key: []byte(key)}
			if value != "" {
				c.Value.JSON = []byte(value)
			}
			changes = append(changes, c)
		}
		entry("", "rules", "rules", "1", `"patched"`)
		entry(transform.PatchRemove, "rules", "rules", "0", "")
		entry(transform.PatchAdd, "rules", "rules", "-9", `"added"`)
		entry("", "lists", "owner", `"twice"`, "77")
		out, done, err := transform.Patch(t.Context(), inputOf(snap), transform.PatchOptions{Values: snap.Values, Changes: func(yield func(transform.PatchChange, error) bool) {
			for _, c := range changes {
				if !yield(c, nil) {
					return
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		rewritten := j.write(t, snap, out.Savepoint, writer.Options{})
		content := Restore(t, j.f, rewritten, Choices{})
		got := operatorOf(content, j.id().String())
		compared := 0
		for _, kind := range []string{"list", "union"} {
			for _, name := range j.statesOf(t, kind) {
				all := slices.Concat(kept[name]...)
				for i, sub := range got.Subtasks {
					want := kept[name][i]
					if kind == "union" {
						want = all
					}
					if state := sub.OperatorState[name]; !sameValues(want, state.Elements) {
						t.Errorf("%s state %s, subtask %d: %v, want %v", kind, name, i, state.Elements, want)
					}
					compared += len(want)
				}
			}
		}
		for _, c := range []struct {
			uid, state string
			want       func(before []Value) []Value
		}{
			{"rules", "rules", func(before []Value) []Value {
				return append([]Value{`[-9,"added"]`, `[1,"patched"]`}, slices.DeleteFunc(before, func(v Value) bool {
					return strings.HasPrefix(string(v), "[0,") || strings.HasPrefix(string(v), "[1,")
				})...)
			}},
			{"lists", "owner", func(before []Value) []Value {
				return append([]Value{`["twice",77]`}, slices.DeleteFunc(before, func(v Value) bool { return strings.HasPrefix(string(v), `["twice",`) })...)
			}},
		} {
			id := format.OperatorIDOf(c.uid).String()
			before := operatorOf(restoredOnce(t, j.f, j.s, Choices{}), id)
			for i, sub := range operatorOf(content, id).Subtasks {
				want := c.want(slices.Clone(before.Subtasks[i].OperatorState[c.state].Entries))
				if have := sub.OperatorState[c.state].Entries; !sameValues(want, have) {
					t.Errorf("%s, subtask %d: %v, want %v", c.state, i, have, want)
				}
				compared += len(want)
			}
		}
		if t.Logf("%d changes of %d states, %d elements and entries compared", len(changes), len(done.States), compared); compared < 20 || len(types) < 3 {
			t.Errorf("too little to show anything: %d types", len(types))
		}
	})
}

// sameValues compares values without their order.
func sameValues(a, b []Value) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Another checkpoint id, as Flink's own reader sees it; the rest as ever.
func TestEditID(t *testing.T) {
	eachEdited(t, func(t *testing.T, j *editJudge) {
		rewritten := j.edit(t, func(in format.View) (format.View, error) {
			id := int64(4242)
			out, _, err := transform.Set(t.Context(), in, transform.SetOptions{ID: &id})
			return out, err
		})
		m, err := j.f.Metadata(rewritten)
		if err != nil || m.CheckpointID != 4242 {
			t.Errorf("checkpoint %d, %v", m.CheckpointID, err)
		}
		j.same(t, restoredOnce(t, j.f, j.s, Choices{}), Restore(t, j.f, rewritten, Choices{}))
	})
}

// Files that were moved, and references that were told so: nothing is in the old
// place while Flink restores.
func TestEditRelocate(t *testing.T) {
	for _, version := range editVersions {
		for _, of := range []string{"counts-incremental", "keyed-changelog", "operator-file-merging"} {
			t.Run(fmt.Sprintf("%s/%s", version, of), func(t *testing.T) {
				f := Use(t, version)
				j := &editJudge{f: f, s: madeOnce(t, f, caseNamed(t, of).options)}
				want := restoredOnce(t, f, j.s, Choices{})
				from, old := j.s.Dir, j.s.At // the snapshot is in the one, and names the other
				if j.s.Options.Changelog {   // whose files are not the snapshot's own
					old = filepath.Join(f.scratch, "changelog")
					from = old
				}
				moved := filepath.Join(t.TempDir(), "moved")
				if err := copyTree(from, moved); err != nil {
					t.Fatal(err)
				}
				snap := opened(t, j.s)
				sp, r, err := transform.Relocate(t.Context(), inputOf(snap), transform.RelocateOptions{Prefixes: []format.Mapping{{Old: "file:" + old, New: "file:" + moved}}})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Changed) == 0 || len(r.Unmatched) > 0 {
					t.Fatalf("%+v", r)
				}
				rewritten := j.write(t, snap, sp.Savepoint, writer.Options{KeepReferences: true})
				if j.s.Options.Changelog {
					if err := os.Rename(old, old+".away"); err != nil {
						t.Fatal(err)
					}
					defer func() {
						if err := os.Rename(old+".away", old); err != nil {
							t.Error(err)
						}
					}()
				}
				j.same(t, want, Restore(t, f, rewritten, Choices{}))
			})
		}
	}
}

// The form of older releases: a snapshot of each version as 1.17 reads it is
// still read by the version itself (operator state of version 5, metadata 4).
func TestEditForRelease(t *testing.T) {
	// Compressed operator state is refused before 1.18, RocksDB files of Flink 2
	// for any 1.x.
	fits := func(v Version, _ string, o Options) bool {
		return !o.Compress && (o.Backend != "rocksdb" || v == V1_20)
	}
	eachFitting(t, fits, func(t *testing.T, j *editJudge) {
		r := flink.MustRelease("1.17")
		rewritten := j.edit(t, func(in format.View) (format.View, error) {
			sp, _, err := transform.Reencode(context.Background(), in, transform.ReencodeOptions{Release: r})
			if err != nil {
				return in, err
			}
			out, _, err := metadata.ForRelease(sp.Savepoint, r)
			return sp.With(out), err
		})
		j.same(t, restoredOnce(t, j.f, j.s, Choices{}), Restore(t, j.f, rewritten, Choices{}))
	})
}

// What Flink 2.3 wrote, for 1.20, which reads and restores it: all but the files
// of its RocksDB, which are refused.
func TestEditDowngrade(t *testing.T) {
	for _, x := range edited {
		t.Run(x.of, func(t *testing.T) {
			newer, older := Use(t, V2_3), Use(t, V1_20)
			j := &editJudge{f: older, s: madeOnce(t, newer, caseNamed(t, x.of).options), uid: x.uid}
			from := opened(t, j.s)
			sp, lost, err := metadata.ForRelease(from.Savepoint, flink.MustRelease("1.20"))
			if j.s.Options.Backend == "rocksdb" {
				if !errors.Is(err, format.ErrUnsupported) {
					t.Errorf("got %v, want %v", err, format.ErrUnsupported)
				}
				return
			}
			if err != nil || len(lost) != 1 { // names and uids
				t.Fatalf("lost %q, %v", lost, err)
			}
			rewritten := j.write(t, from, sp, writer.Options{})
			snap := opened(t, rewritten)
			if v, _ := metadata.VersionOf(snap.Savepoint); v != metadata.V4 {
				t.Errorf("metadata %v", v)
			}
			judgeModel(t, older, rewritten, snap)
			want, got := restoredOnce(t, newer, j.s, Choices{}), Restore(t, older, rewritten, Choices{})
			want.Flink = got.Flink
			j.same(t, want, got)
		})
	}
}

// Max parallelism is compared for operators without state too, where the job
// sets its own.
func TestEditMaxParallelismRefused(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		j := &editJudge{f: f, s: madeOnce(t, f, Options{Shape: "operator", MaxParallelism: 128}), uid: "sink"}
		rewritten := j.edit(t, func(in format.View) (format.View, error) {
			out, done, err := transform.Set(t.Context(), in, transform.SetOptions{Operators: format.ByID(j.id()), MaxParallelism: 64})
			if err != nil || len(done.MaxParallelism) != 1 {
				t.Fatalf("%+v set, %v", done, err)
			}
			return out, nil
		})
		JudgeRefused(t, j.f, rewritten, Choices{}, "Max parallelism mismatch between checkpoint/savepoint state and new program")
	})
}
