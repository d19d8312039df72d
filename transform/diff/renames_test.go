package diff

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
)

// reported is a snapshot on which spt once failed.
func reported(t *testing.T, name string) format.View {
	t.Helper()
	return sptest.Open(t, filepath.Join("../../testdata/reported", name)).View()
}

// suggestions is what diff and check suggest, in words. Both must suggest the same.
func suggestions(t *testing.T, a, b format.View, schemas [2]types.Schemas) []string {
	t.Helper()
	words := func(r *transform.Renames) []string {
		all := []string{}
		for _, n := range r.Likely {
			all = append(all, fmt.Sprintf("likely %s = %s", n.Label(), n.From[0].Operator.Label()))
		}
		for _, n := range r.Open {
			var from []string
			for _, f := range n.From {
				from = append(from, f.Operator.Label())
			}
			all = append(all, fmt.Sprintf("open %s = %s", n.Label(), strings.Join(from, " or ")))
		}
		for _, n := range r.Names {
			all = append(all, fmt.Sprintf("name %s: %s → %s", n.Old.Label(), n.Old.Name, n.New.Name))
		}
		slices.Sort(all)
		return all
	}
	d := diffOf(t, a, b, Options{Schemas: schemas})
	c, err := check.Run(t.Context(), a, check.Options{Schema: schemas[0], Like: &check.Like{Savepoint: b.Savepoint, Schema: schemas[1]}})
	if err != nil {
		t.Fatal(err)
	}
	got := words(d.Renames)
	if x := cmp.Diff(got, words(c.Renames)); x != "" {
		t.Errorf("diff (-) and check (+) suggest other renames:\n%s", x)
	}
	// One command does all that is likely.
	uids := map[string]string{}
	for _, n := range d.Renames.Likely {
		uids[n.From[0].Operator.ID.String()] = n.UID
		if format.OperatorIDOf(n.UID) != n.ID {
			t.Errorf("%s has the uid %q", n.ID, n.UID)
		}
	}
	if _, _, err := transform.Rename(t.Context(), a, transform.RenameOptions{UIDs: uids}); err != nil {
		t.Errorf("what is likely cannot be done: %v", err)
	}
	return got
}

// source is an operator as the SQL planner makes it: a coordinator, and list state
// of a name that all sources have.
func source(uid, name string) *format.Operator {
	op := sptest.Operator(uid, rawStates(st{"SourceReaderState", format.ModeList, []string{"0123456789"}}))
	op.Name = format.NewText(name)
	op.Coordinator = sptest.Inline(uid, "sixteen bytes of "+uid[:1])
	return op
}

// stateful is an operator with list states of a user's names.
func stateful(uid, name string, states ...string) *format.Operator {
	var all []st
	for _, s := range states {
		all = append(all, st{s, format.ModeList, []string{"0123456789"}})
	}
	op := sptest.Operator(uid, rawStates(all...))
	op.Name = format.NewText(name)
	return op
}

func TestRenames(t *testing.T) {
	ops := func(all ...*format.Operator) []*format.Operator { return all }
	wider := func(op *format.Operator) *format.Operator {
		op.Parallelism = 2
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: 1})
		return op
	}
	// types says for each state and uid which serializer it has; "Long" by itself.
	typed := func(other ...string) types.Schemas {
		return func(_ context.Context, op *format.Operator) (s types.Schema, _ []error, _ error) {
			for _, sub := range op.Subtasks {
				if sub.Managed == nil {
					continue
				}
				for _, st := range sub.Managed.States {
					of := "Long"
					if slices.Contains(other, op.UID.String()+"/"+st.Name.String()) {
						of = "String"
					}
					s.States = append(s.States, sptest.StateSchema(st.Name.String(), st.Mode, of))
				}
			}
			return s, nil, nil
		}
	}
	known := [2]types.Schemas{typed(), typed()}
	for _, tt := range []struct {
		name     string
		old, now []*format.Operator
		schemas  [2]types.Schemas
		want     []string
	}{
		{"shifted", ops(source("1_source", "Source: Users[1]"), source("3_source", "Source: Orders[3]"), source("5_source", "Source: Payments[5]")),
			ops(source("1_source", "Source: Users[1]"), source("2_source", "Source: Orders[2]"), source("3_source", "Source: Payments[3]")), [2]types.Schemas{},
			[]string{"likely 2_source = 3_source", "likely 3_source = 5_source", "name 3_source: Source: Orders[3] → Source: Payments[3]"}},
		{"shifted by one, in a chain", ops(source("1", "a[1]"), source("2", "b[2]"), source("3", "c[3]")),
			ops(source("2", "a[2]"), source("3", "b[3]"), source("4", "c[4]")), [2]types.Schemas{},
			[]string{"likely 2 = 1", "likely 3 = 2", "likely 4 = 3", "name 2: b[2] → a[2]", "name 3: c[3] → b[3]"}},
		{"exchanged", ops(source("1", "a"), source("2", "b")), ops(source("1", "b"), source("2", "a")), [2]types.Schemas{},
			[]string{"likely 1 = 2", "likely 2 = 1", "name 1: a → b", "name 2: b → a"}},
		{"around in a circle", ops(source("1", "a"), source("2", "b"), source("3", "c")), ops(source("1", "c"), source("2", "a"), source("3", "b")), [2]types.Schemas{},
			[]string{"likely 1 = 3", "likely 2 = 1", "likely 3 = 2", "name 1: a → c", "name 2: b → a", "name 3: c → b"}},
		{"no names stored, the same structure", ops(source("1", ""), source("3", ""), source("5", "")), ops(source("1", ""), source("2", ""), source("3", "")), [2]types.Schemas{},
			[]string{"open 2 = 5 or 1 or 3"}},
		{"no names stored, one of its kind", ops(source("1", ""), stateful("x", "", "a")), ops(source("2", ""), stateful("x", "", "a")), [2]types.Schemas{},
			[]string{"likely 2 = 1"}},
		{"the number in brackets, the uid stays", ops(source("1", "a[1]"), source("2", "b [2]")), ops(source("1", "a[7]"), source("2", "b")), [2]types.Schemas{}, []string{}},
		{"brackets that are part of the name", ops(source("1", "a[x]")), ops(source("1", "a[y]")), [2]types.Schemas{}, []string{"name 1: a[x] → a[y]"}},
		{"only a new name", ops(source("1", "a"), source("2", "b")), ops(source("1", "z"), source("2", "b")), [2]types.Schemas{}, []string{"name 1: a → z"}},
		{"other names, sources", ops(source("1", "a")), ops(source("2", "b")), [2]types.Schemas{}, []string{}},
		{"other names, the same states of the user", ops(stateful("1", "a", "x", "y")), ops(stateful("2", "b", "x", "y")), known, []string{"open 2 = 1"}},
		{"other names, the same states of unknown types", ops(stateful("1", "a", "x", "y")), ops(stateful("2", "b", "x", "y")), [2]types.Schemas{}, []string{}},
		{"one name of two, told by the states", ops(stateful("1", "Map", "x"), stateful("2", "Map", "y")), ops(stateful("3", "Map", "x"), stateful("4", "Map", "y")), [2]types.Schemas{},
			[]string{"likely 3 = 1", "likely 4 = 2"}},
		{"one name and one structure", ops(stateful("1", "Map", "x"), stateful("2", "Map", "x")), ops(stateful("3", "Map", "x"), stateful("2", "Map", "x")), [2]types.Schemas{},
			[]string{"open 3 = 1 or 2"}},
		{"one operator became two", ops(stateful("1", "", "x", "y", "z")), ops(stateful("2", "", "x"), stateful("3", "", "y", "z")), [2]types.Schemas{},
			[]string{"open 2 = 1", "open 3 = 1"}},
		{"one operator became two of its name", ops(stateful("1", "n", "x", "y", "z")), ops(stateful("2", "n", "x"), stateful("3", "n", "y", "z")), [2]types.Schemas{},
			[]string{"open 2 = 1", "open 3 = 1"}},
		{"other states", ops(stateful("1", "", "x")), ops(stateful("2", "", "y")), [2]types.Schemas{}, []string{}},
		{"other types", ops(stateful("1", "", "x")), ops(stateful("2", "", "x")), [2]types.Schemas{typed(), typed("2/x")}, []string{}},
		{"the same name, other types", ops(stateful("1", "n", "x")), ops(stateful("2", "n", "x")), [2]types.Schemas{typed(), typed("2/x")}, []string{"open 2 = 1"}},
		{"the same types", ops(stateful("1", "", "x")), ops(stateful("2", "", "x")), known, []string{"likely 2 = 1"}},
		{"the same name and one state more", ops(stateful("1", "n", "x")), ops(stateful("2", "n", "x", "y")), known, []string{"likely 2 = 1"}},
		{"another parallelism", ops(stateful("1", "", "x")), ops(wider(stateful("2", "", "x"))), known, []string{"likely 2 = 1"}},
		{"the id is still in use", ops(source("3", "Orders[3]"), source("5", "Payments[5]")), ops(source("3", "Payments[3]")), [2]types.Schemas{},
			[]string{"name 3: Orders[3] → Payments[3]", "open 3 = 5"}},
		{"names on one side only", ops(source("1", "")), ops(source("1", "a")), [2]types.Schemas{}, []string{}},
		{"two for one", ops(stateful("1", "", "x"), stateful("2", "", "x")), ops(stateful("3", "", "x")), known, []string{"open 3 = 1 or 2"}},
		{"one for two", ops(stateful("1", "", "x")), ops(stateful("2", "", "x"), stateful("3", "", "x")), known, []string{"open 2 = 1", "open 3 = 1"}},
		{"sizes apart, with nothing else to tell", ops(sptest.Operator("1", rawStates(st{"SourceReaderState", format.ModeList, []string{"0"}}))),
			ops(sptest.Operator("2", rawStates(st{"SourceReaderState", format.ModeList, []string{strings.Repeat("0", 500)}}))), [2]types.Schemas{}, []string{"open 2 = 1"}},
		{"sizes apart, with a name of the user's", ops(stateful("1", "", "x")), ops(sptest.Operator("2", rawStates(st{"x", format.ModeList, []string{strings.Repeat("0", 500)}}))), [2]types.Schemas{}, []string{"likely 2 = 1"}},
		{"one that stayed fits best", ops(stateful("1", "", "x", "y"), stateful("5", "", "x")), ops(stateful("5", "", "x"), stateful("2", "", "x")), known, []string{"open 2 = 5 or 1"}},
		{"without state", ops(sptest.Operator("1", nil)), ops(sptest.Operator("2", nil)), [2]types.Schemas{}, []string{}},
		{"states exchanged, no names", ops(stateful("1", "", "x"), stateful("2", "", "y")), ops(stateful("1", "", "y"), stateful("2", "", "x")), [2]types.Schemas{},
			[]string{"likely 1 = 2", "likely 2 = 1"}},
	} {
		if got := suggestions(t, sptest.View(tt.old...), sptest.View(tt.now...), tt.schemas); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestRenamesOfPicked: operators that were not picked are still seen, so a renamed
// one is not taken for another.
func TestRenamesOfPicked(t *testing.T) {
	a := sptest.View(source("1", ""), source("3", ""), source("5", ""))
	b := sptest.View(source("1", ""), source("2", ""), source("3", ""))
	only := func(in format.View, uids ...string) format.View {
		sp := *in.Savepoint
		sp.Operators = slices.DeleteFunc(slices.Clone(sp.Operators), func(op *format.Operator) bool { return !slices.Contains(uids, op.UID.String()) })
		in.Savepoint = &sp
		return in
	}
	d := diffOf(t, only(a, "5"), only(b, "2"), Options{Whole: [2]*format.Savepoint{a.Savepoint, b.Savepoint}})
	if r := d.Renames; len(r.Likely) != 0 || len(r.Open) != 1 || len(r.Open[0].From) != 3 || len(d.Operators) != 2 {
		t.Errorf("%+v, %d operators", r, len(d.Operators))
	}
	// What is about others is left out.
	d = diffOf(t, only(a, "1"), only(b, "1"), Options{Whole: [2]*format.Savepoint{a.Savepoint, b.Savepoint}})
	if r := d.Renames; len(r.Likely)+len(r.Names) != 0 || len(r.Open) != 1 || len(d.Differences) > 0 {
		t.Errorf("%+v, %q", r, differences(d))
	}
	a, b = reported(t, "shifted-ids/old"), reported(t, "shifted-ids/new")
	d = diffOf(t, only(a, "1_source"), only(b, "1_source"), Options{Whole: [2]*format.Savepoint{a.Savepoint, b.Savepoint}})
	if r := d.Renames; len(r.Likely)+len(r.Open)+len(r.Names) != 0 || len(d.Differences) > 0 {
		t.Errorf("%+v, %q", r, differences(d))
	}
	d = diffOf(t, only(a, "5_source"), only(b, "2_source"), Options{Whole: [2]*format.Savepoint{a.Savepoint, b.Savepoint}})
	if r := d.Renames; len(r.Likely) != 2 || len(r.Open)+len(r.Names) != 0 || len(d.Operators) != 2 {
		t.Errorf("%+v, %d operators", r, len(d.Operators))
	}
}

// TestRenamesReported: uids that the planner shifted, and keyed operators whose
// uids were exchanged (testdata/reported).
func TestRenamesReported(t *testing.T) {
	a, b := reported(t, "shifted-ids/old"), reported(t, "shifted-ids/new")
	want := []string{"likely 2_source = 3_source", "likely 3_source = 5_source", "name 3_source: Source: Orders[3] → Source: Payments[3]"}
	if got := suggestions(t, a, b, [2]types.Schemas{}); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	// What Flink restores goes by id, and so do the differences.
	got := differences(diffOf(t, a, b, Options{}))
	slices.Sort(got)
	if x := cmp.Diff([]string{"coordinator: 3_source/ state of the coordinator changed, 16 → 16 bytes", `names: 3_source name "Source: Orders[3]" → "Source: Payments[3]"`, "operators: 2_source added", "operators: 5_source removed"}, got); x != "" {
		t.Errorf("-want +got\n%s", x)
	}
	old, like := sptest.Open(t, "../../testdata/reported/swapped-keyed/old"), sptest.Open(t, "../../testdata/reported/swapped-keyed/like")
	d := diffOf(t, old.View(), like.View(), Options{Schemas: [2]types.Schemas{old.Schema, like.Schema}})
	if r := d.Renames; len(r.Likely) != 2 || len(r.Open) != 0 || r.Likely[0].From[0].Operator.ID != r.Likely[1].ID || r.Likely[1].From[0].Operator.ID != r.Likely[0].ID {
		t.Errorf("%+v", r)
	}
}

// TestRenamesAreRight: whatever operators get new uids, what is called likely is
// what happened, with stored names and without, also where names or structures
// repeat.
func TestRenamesAreRight(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	likely, open := 0, 0
	for round := range 400 {
		named, n := round%2 == 0, 2+rnd.IntN(6)
		var old, now []*format.Operator
		uid := func(i int) string { return fmt.Sprint("uid-", i) }
		to := rnd.Perm(n + 2)[:n] // operator i gets uid to[i]
		if round%4 > 1 {          // only some change
			to = rnd.Perm(n)
			for i := range to {
				to[i] = i
			}
			to[rnd.IntN(n)] = n
		}
		truth := map[string]string{} // new uid -> old uid
		for i := range n {
			kind, name := rnd.IntN(3), ""
			if named {
				name = fmt.Sprint("operator ", rnd.IntN(2*n))
			}
			made := func(uid string) *format.Operator {
				if kind == 0 {
					return source(uid, name)
				}
				return stateful(uid, name, fmt.Sprint("state ", kind))
			}
			old, now = append(old, made(uid(i))), append(now, made(uid(to[i])))
			truth[uid(to[i])] = uid(i)
		}
		rnd.Shuffle(n, func(i, j int) { now[i], now[j] = now[j], now[i] })
		d := diffOf(t, sptest.View(old...), sptest.View(now...), Options{})
		for _, r := range d.Renames.Likely {
			likely++
			if truth[r.UID] != r.From[0].Operator.UID.String() {
				t.Errorf("round %d: %q was %q, not %q", round, r.UID, truth[r.UID], r.From[0].Operator.UID)
			}
		}
		open += len(d.Renames.Open)
	}
	t.Logf("%d renames are likely, and right; %d are open", likely, open)
	if likely < 200 || open < 100 {
		t.Error("too few")
	}
}

// TestRenamesOfTooMany: so many operators that each cannot be compared with each
// are not compared, and that is said.
func TestRenamesOfTooMany(t *testing.T) {
	for n, skipped := range map[int]bool{512: false, 513: true} {
		var old, now []*format.Operator
		for i := range n {
			old = append(old, sptest.Operator(fmt.Sprint("old ", i), nil))
			now = append(now, sptest.Operator(fmt.Sprint("new ", i), nil))
		}
		d := diffOf(t, sptest.View(old...), sptest.View(now...), Options{})
		if d.Renames.Skipped != skipped || len(d.Differences) != 2*n {
			t.Errorf("%d: %t, %d differences", n, d.Renames.Skipped, len(d.Differences))
		}
	}
}

// TestRenamesIgnoreKeyed: where keyed state is not compared, its headers are not
// read for renames either.
func TestRenamesIgnoreKeyed(t *testing.T) {
	in := func(uid string) format.View {
		op := sptest.KeyedOperator(2, sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 0, "a", "b"))
		op.UID, op.ID = format.NewText(uid), format.OperatorIDOf(uid)
		return sptest.View(op)
	}
	for _, ignore := range []bool{false, true} {
		calls := 0
		schema := func(context.Context, *format.Operator) (types.Schema, []error, error) {
			calls++
			return types.Schema{}, nil, nil
		}
		diffOf(t, in("a"), in("b"), Options{Schemas: [2]types.Schemas{schema, schema}, Ignore: map[Kind]bool{KindKeyed: ignore}})
		if (calls > 0) == ignore {
			t.Errorf("ignored %t: %d descriptions read", ignore, calls)
		}
	}
}
