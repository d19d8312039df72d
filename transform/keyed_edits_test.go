package transform_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// eachKeyed calls f with the snapshots of the known corpus and of the fixtures that have
// keyed state and no in-flight data.
func eachKeyed(t *testing.T, f func(t *testing.T, v format.View)) {
	t.Helper()
	for _, top := range []string{"../testdata/savepoints", filepath.Join(testenv.Corpus(t), "known")} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() != reader.MetadataName {
				return err
			}
			snap, err := reader.Open(context.Background(), filepath.Dir(path), nil)
			if err != nil {
				return err
			}
			defer snap.Close() //nolint:errcheck // nothing was written
			keyed, inFlight := false, false
			for _, op := range snap.Operators {
				keyed, inFlight = keyed || op.HasKeyed(), inFlight || op.HasInFlight()
			}
			if !keyed || inFlight {
				return nil
			}
			_, _, err = transform.Canonical(context.Background(), snap.View(), transform.CanonicalOptions{})
			if errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrOutside) {
				return nil // its files are elsewhere
			}
			t.Run(strings.ReplaceAll(strings.TrimPrefix(path, top), "/", " "), func(t *testing.T) { f(t, snap.View()) })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// allEntries returns the entries of all operators by their names, see entriesOf.
func allEntries(t *testing.T, v format.View) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, op := range v.Operators {
		for e, n := range entriesOf(t, v, op) {
			all[op.Label()+" "+e] += n
		}
	}
	return all
}

// without returns the entries that do not have a text.
func without(all map[string]int, text string) map[string]int {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(e string, _ int) bool { return strings.Contains(e, text) })
	return out
}

// Keys whose hash codes are computed are in other key groups with another max parallelism,
// and in the old ones again with the old one. Entries that do not fit into memory are
// sorted with a temporary file.
func TestRegroupAndBack(t *testing.T) {
	regrouped := 0
	eachKeyed(t, func(t *testing.T, v format.View) {
		was := allEntries(t, v)
		old := v.Operators[0].MaxParallelism
		for _, max := range []int32{1000, 7} {
			there, done, err := transform.Regroup(t.Context(), v, transform.RegroupOptions{MaxParallelism: max, TempDir: t.TempDir(), Memory: 300})
			if errors.Is(err, format.ErrUnsupported) && strings.Contains(err.Error(), "user code computes the hash code") {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range there.Operators {
				if op.MaxParallelism != max {
					t.Errorf("%s has max parallelism %d", op.Label(), op.MaxParallelism)
				}
			}
			back, again, err := transform.Regroup(t.Context(), there, transform.RegroupOptions{MaxParallelism: old})
			if err != nil {
				t.Fatal(err)
			}
			if now := allEntries(t, back); !maps.Equal(was, now) {
				t.Errorf("%d entries, %d before", len(now), len(was))
			}
			if err := errors.Join(done.Close(), again.Close()); err != nil {
				t.Error(err)
			}
			regrouped++
		}
	})
	if regrouped < 20 {
		t.Errorf("only %d snapshots", regrouped)
	}
}

// A key that is not in the key group of its hash code is not moved.
func TestRegroupRefusesOtherHashes(t *testing.T) {
	v, _ := benchKeyed(t, 1000) // key groups by number
	_, _, err := transform.Regroup(t.Context(), v, transform.RegroupOptions{MaxParallelism: 256})
	if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "leads to key group") {
		t.Errorf("got %v", err)
	}
	var limit *transform.ParallelismError
	c := *v.Operators[0]
	c.Parallelism = 3
	sp := *v.Savepoint
	sp.Operators = []*format.Operator{&c}
	if _, _, err := transform.Regroup(t.Context(), v.With(&sp), transform.RegroupOptions{MaxParallelism: 2}); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
}

// A state that was dropped is gone, and nothing else; merged from the original it is back.
// A renamed state is under its new name.
func TestSingleKeyedStates(t *testing.T) {
	states := 0
	eachKeyed(t, func(t *testing.T, v format.View) {
		was := allEntries(t, v)
		for _, name := range []string{"words", "last", "window-contents"} {
			less, done, err := transform.Drop(t.Context(), v, transform.DropOptions{States: format.Globs{name}})
			if errors.Is(err, format.ErrNoMatch) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			states += len(done.States)
			op := done.States[0].Operator.Label() + " "
			want := without(was, op+name+" ")
			if now := allEntries(t, less); len(want) == len(was) || !maps.Equal(want, now) {
				t.Errorf("without %s: %d entries, expected %d", name, len(now), len(want))
			}
			both, merged, err := transform.Merge(t.Context(), less, transform.MergeOptions{From: v.Savepoint, States: format.Globs{name}})
			if err != nil {
				t.Fatal(err)
			}
			if now := allEntries(t, both); !maps.Equal(was, now) || int(merged.States[0].Elements) != len(was)-len(want) {
				t.Errorf("with %s again: %d entries of %+v, expected %d", name, len(now), merged.States, len(was))
			}
			renamed, _, err := transform.Rename(t.Context(), v, transform.RenameOptions{States: map[string]string{name: "été"}})
			if err != nil {
				t.Fatal(err)
			}
			want = map[string]int{}
			for e, n := range was {
				want[strings.Replace(e, op+name+" ", op+"été ", 1)] = n
			}
			if now := allEntries(t, renamed); !maps.Equal(want, now) {
				t.Errorf("%s as été: %d entries, expected %d", name, len(now), len(want))
			}
			var collision *transform.CollisionError
			if _, _, err := transform.Merge(t.Context(), v, transform.MergeOptions{From: v.Savepoint, States: format.Globs{name}}); !errors.As(err, &collision) {
				t.Errorf("merged into itself: %v", err)
			}
		}
	})
	if states < 40 {
		t.Errorf("only %d states", states)
	}
}

// A filter keeps what it is asked to keep, counts the rest, and changes nothing where
// nothing is lost.
func TestFilterEntries(t *testing.T) {
	eachKeyed(t, func(t *testing.T, v format.View) {
		same, done, err := transform.Filter(t.Context(), v, transform.FilterOptions{KeepEntries: keepAll(func(*format.KeyedEntry) bool { return true })})
		if err != nil || same.Savepoint != v.Savepoint || done.Entries != 0 {
			t.Fatalf("%d entries were built, %v", done.Entries, err)
		}
		was := allEntries(t, v)
		even := keepAll(func(e *format.KeyedEntry) bool { return e.KeyGroup%2 == 0 })
		odd := keepAll(func(e *format.KeyedEntry) bool { return e.KeyGroup%2 == 1 })
		a, done, err := transform.Filter(t.Context(), v, transform.FilterOptions{KeepEntries: even, Jobs: 8})
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := transform.Filter(t.Context(), v, transform.FilterOptions{KeepEntries: odd, Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		left, other := allEntries(t, a), allEntries(t, b)
		kept, dropped := int64(0), int64(0)
		for _, s := range done.States {
			kept += s.Kept
			dropped += s.Dropped
		}
		if kept != int64(len(left)) || dropped != int64(len(other)) {
			t.Errorf("%d kept and %d dropped, found %d and %d", kept, dropped, len(left), len(other))
		}
		maps.Copy(left, other)
		if !maps.Equal(was, left) {
			t.Errorf("%d entries in both parts, %d before", len(left), len(was))
		}
	})
}

// Values whose time to live had not ended stay. Timers that were moved and moved back are
// where they were; those that end windows stay.
func TestExpireAndShift(t *testing.T) {
	withTTL, withTimers := 0, 0
	eachKeyed(t, func(t *testing.T, v format.View) {
		was := allEntries(t, v)
		kept, done, err := transform.Expire(t.Context(), v, transform.ExpireOptions{TTL: time.Hour, At: time.UnixMilli(-1)})
		if err != nil || kept.Savepoint != v.Savepoint {
			t.Fatalf("something had expired before 1970: %v", err)
		}
		gone, _, err := transform.Expire(t.Context(), v, transform.ExpireOptions{TTL: time.Hour, At: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		want := was
		for _, s := range done.States {
			want = without(want, " "+s.State+" ")
			withTTL++
		}
		if now := allEntries(t, gone); !maps.Equal(want, now) {
			t.Errorf("%d entries, expected %d", len(now), len(want))
		}
		later, moved, err := transform.ShiftTimers(t.Context(), v, transform.ShiftTimersOptions{By: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := transform.ShiftTimers(t.Context(), later, transform.ShiftTimersOptions{By: -time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if now := allEntries(t, back); !maps.Equal(was, now) {
			t.Errorf("%d entries, %d before", len(now), len(was))
		}
		now := allEntries(t, later)
		for _, s := range moved.States {
			if s.Entries > 0 && (s.First < 60_000 || s.First == math.MaxInt64) {
				t.Errorf("the first of %s fires at %d", s.State, s.First)
			}
			withTimers++
			was, now = without(was, " "+s.State+" "), without(now, " "+s.State+" ")
		}
		if !maps.Equal(was, now) {
			t.Errorf("other entries changed")
		}
	})
	if withTTL < 20 || withTimers < 20 {
		t.Errorf("only %d states with a time to live and %d with timers", withTTL, withTimers)
	}
}

// State that cannot be moved as it is stored is built at the new parallelism: each subtask
// has the key groups that Flink assigns to it.
func TestRescaleCanonical(t *testing.T) {
	built := 0
	eachKeyed(t, func(t *testing.T, v format.View) {
		was := allEntries(t, v)
		for _, to := range []int32{1, 3} {
			out, plan, err := transform.Rescale(t.Context(), v, transform.RescaleOptions{To: to, Keyed: transform.KeyedCanonical})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range plan.Operators {
				if p.Built {
					built++
				}
			}
			if now := allEntries(t, out); !maps.Equal(was, now) {
				t.Errorf("at %d: %d entries, %d before", to, len(now), len(was))
			}
			for _, op := range out.Operators {
				for _, sub := range op.Subtasks {
					want := format.KeyGroupsOf(sub.Index, to, op.MaxParallelism)
					if h := sub.ManagedKeyed; h != nil && h.KeyGroups() != want {
						t.Errorf("%s, subtask %d of %d has key groups %v, expected %v", op.Label(), sub.Index, to, h.KeyGroups(), want)
					}
				}
			}
		}
	})
	if built < 10 {
		t.Errorf("only %d operators were built", built)
	}
}

// Raw timers of releases before 1.6 record the serializer of their keys otherwise than the
// managed state. They stay raw when a managed state goes, with all their entries.
func TestDropNextToRawTimers(t *testing.T) {
	dropped, raw := 0, 0
	dirs, err := filepath.Glob(filepath.Join(testenv.Corpus(t), "savepoints", "*-flink1.[345]*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		snap, err := reader.Open(t.Context(), dir, nil)
		if err != nil || strings.Contains(dir, "type-serializer") { // not a snapshot by itself; types of user code
			continue
		}
		for _, op := range snap.Operators {
			if op.HasInFlight() || len(op.Subtasks) == 0 || op.Subtasks[0].RawKeyed == nil || op.Subtasks[0].ManagedKeyed == nil {
				continue
			}
			h := op.Subtasks[0].ManagedKeyed
			codec, err := snap.View().KeyedCodec(op, h)
			if err != nil {
				t.Fatal(err)
			}
			schema, err := codec.Describe(t.Context(), snap.Source(), h)
			if err != nil {
				t.Fatal(err)
			}
			for _, st := range schema.States {
				name := st.Name.String()
				v, _, err := transform.Drop(t.Context(), snap.View(), transform.DropOptions{Operators: format.Selector{op.ID.String()}, States: format.Globs{name}})
				if err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(dir), name, err)
					continue
				}
				dropped++
				for i, sub := range v.Operators[operatorAt(t, v, op.ID)].Subtasks {
					if sub.RawKeyed != op.Subtasks[i].RawKeyed {
						t.Errorf("%s: %s: the raw timers of subtask %d changed", filepath.Base(dir), name, i)
					}
					raw++
				}
				was, now := entriesOf(t, snap.View(), op), entriesOf(t, v, v.Operators[operatorAt(t, v, op.ID)])
				if want := without(was, name+" "); !maps.Equal(want, now) {
					t.Errorf("%s: without %s: %d entries, expected %d of %d", filepath.Base(dir), name, len(now), len(want), len(was))
				}
			}
		}
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d states dropped, %d subtasks with raw keyed state", dropped, raw)
	if dropped < 10 {
		t.Errorf("only %d states", dropped)
	}
}

func operatorAt(t *testing.T, v format.View, id format.OperatorID) int {
	t.Helper()
	i := slices.IndexFunc(v.Operators, func(op *format.Operator) bool { return op.ID == id })
	if i < 0 {
		t.Fatal(id)
	}
	return i
}
