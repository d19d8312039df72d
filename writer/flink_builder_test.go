package writer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/reader"
)

// Entries of several operators, added in any order and sorted in little memory, are read
// back: each key once, in a key group of its subtask.
func TestFlinkBuilderSpills(t *testing.T) {
	dir := t.TempDir()
	b, err := NewFlinkBuilder(&FlinkOptions{Release: flink.MustRelease("2.0"), SortBytes: 1000, TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	const keys, parallelism = 3000, 3
	want := map[string]bool{}
	var states []*FlinkStateBuilder
	for i := range 3 {
		op, err := b.Operator(FlinkOperator{UID: fmt.Sprint("op-", i), Parallelism: parallelism, MaxParallelism: 300, Key: "string"})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			s, err := op.Keyed(FlinkState{Name: name, Kind: "value", Type: "long"})
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, s)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, k := range r.Perm(keys) {
		i := k % len(states)
		if err := states[i].Add(FlinkEntry{Key: value.String(fmt.Sprint("key-", k)), Value: value.Int(int64(k))}); err != nil {
			t.Fatal(err)
		}
		want[fmt.Sprintf("op-%d/%s %q %d", i/2, []string{"a", "b"}[i%2], fmt.Sprint("key-", k), k)] = true
	}
	view, err := b.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := dir + "/out"
	if _, err := Write(t.Context(), view, out, &Options{Stores: stores(), ReadBack: true}); err != nil {
		t.Fatal(err)
	}
	snap, err := reader.Open(t.Context(), out, &reader.Options{Stores: stores()})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close() //nolint:errcheck // read only
	for _, op := range snap.Operators {
		if len(op.Subtasks) != parallelism {
			t.Fatalf("%d subtasks", len(op.Subtasks))
		}
		for _, sub := range op.Subtasks {
			codec, err := snap.KeyedCodec(op, sub.ManagedKeyed)
			if err != nil {
				t.Fatal(err)
			}
			codecs, err := value.EntryCodecsOf(t.Context(), snap.Source(), codec, sub.ManagedKeyed)
			if err != nil {
				t.Fatal(err)
			}
			last := ""
			err = format.EachKeyedEntry(t.Context(), snap.Source(), codec, sub.ManagedKeyed, format.KeyedSelection{}, func(e format.KeyedEntry) error {
				if g := format.KeyGroupsOf(sub.Index, parallelism, 300); e.KeyGroup < g.First || e.KeyGroup > g.Last() {
					t.Errorf("key group %d in subtask %d", e.KeyGroup, sub.Index)
				}
				if order := fmt.Sprintf("%05d %d %s", e.KeyGroup, e.State, e.Key); order <= last {
					t.Errorf("%q after %q", order, last)
				} else {
					last = order
				}
				key, _ := value.ReadAll(codecs[e.State].Key, e.Key)
				v, _ := value.ReadAll(codecs[e.State].Value, e.Value)
				line := fmt.Sprintf("%s/%s %q %d", op.UID, []string{"a", "b"}[e.State], key.Text(), v.Int())
				if !want[line] {
					t.Errorf("not expected, or twice: %s", line)
				}
				delete(want, line)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("%d entries are missing", len(want))
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestFlinkBuilderRefuses(t *testing.T) {
	b, err := NewFlinkBuilder(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close() //nolint:errcheck // nothing was added
	op := func(o FlinkOperator) error {
		_, err := b.Operator(o)
		return err
	}
	good, err := b.Operator(FlinkOperator{UID: "good", Parallelism: 90, Key: "string"})
	if err != nil {
		t.Fatal(err)
	}
	if n := good.MaxParallelism(); n != 256 { // 90 + 45, rounded up to a power of two
		t.Errorf("max parallelism %d", n)
	}
	state := func(s FlinkState) error {
		_, err := good.State(s)
		return err
	}
	keyed := func(s FlinkState) error {
		_, err := good.Keyed(s)
		return err
	}
	count, err := good.Keyed(FlinkState{Name: "count", Kind: "value", Type: "long"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := good.State(FlinkState{Name: "list", Kind: "list", Type: "long"})
	if err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"needs a uid or an id":            op(FlinkOperator{Parallelism: 1}),
		"from which its id follows":       op(FlinkOperator{UID: "a", ID: format.OperatorIDOf("b"), Parallelism: 1}),
		"two operators have the id":       op(FlinkOperator{UID: "good", Parallelism: 1}),
		"expected 1 ≤ parallelism":        op(FlinkOperator{UID: "a", Parallelism: 2, MaxParallelism: 1}),
		"unknown kind \"value\" of op":    state(FlinkState{Name: "a", Kind: "value", Type: "long"}),
		"duplicate state":                 keyed(FlinkState{Name: "count", Kind: "value", Type: "long"}),
		"type of the keys of the map":     keyed(FlinkState{Name: "a", Kind: "map", Type: "long"}),
		"timers are named":                keyed(FlinkState{Name: "a", Kind: "timers"}),
		"all states but timers":           keyed(FlinkState{Name: "a", Kind: "value"}),
		"only lists have elements":        keyed(FlinkState{Name: "a", Kind: "value", Type: "long", Elements: true}),
		"a state needs a name":            state(FlinkState{Kind: "list", Type: "long"}),
		"key: ":                           count.Add(FlinkEntry{Key: value.Null(), Value: value.Int(1)}),
		"value: ":                         count.Add(FlinkEntry{Key: value.String("a"), Value: value.String("b")}),
		"the operator has subtasks 0 to":  list.AddTo(90, FlinkEntry{Value: value.Int(1)}),
		"only elements of list and union": count.AddTo(0, FlinkEntry{Key: value.String("a"), Value: value.Int(1)}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error with %q, found %v", want, err)
		}
	}
}

func TestFlinkBuilderDuplicates(t *testing.T) {
	for _, last := range []bool{false, true} {
		b, err := NewFlinkBuilder(&FlinkOptions{LastWins: last})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close() //nolint:errcheck // temporary files
		op, err := b.Operator(FlinkOperator{UID: "a", Parallelism: 1, Key: "long"})
		if err != nil {
			t.Fatal(err)
		}
		s, err := op.Keyed(FlinkState{Name: "s", Kind: "map", MapKey: "string", Type: "int", Namespace: "TimeWindow"})
		if err != nil {
			t.Fatal(err)
		}
		window, err := value.FromJSON(s.Codecs().Namespace, []byte(`{"start":0,"end":5}`))
		if err != nil {
			t.Fatal(err)
		}
		for row := range int64(30) {
			if err := s.Add(FlinkEntry{Key: value.Int(7), Namespace: window, UserKey: value.String("k"), Value: value.Int(row), Row: row + 1}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = b.View(t.Context())
		var twice *DuplicateError
		if errors.As(err, &twice) == last {
			t.Fatal(err)
		}
		if last {
			continue
		}
		d := twice.Duplicates
		if len(d) != 20 || twice.More != 9 || d[1] != (Duplicate{"a", "s", `key 7, namespace {"start":0,"end":5}, map key "k"`, 1, 3}) {
			t.Errorf("%d, %d more: %+v", len(d), twice.More, d[:min(2, len(d))])
		}
		if !errors.Is(err, format.ErrCorrupt) {
			t.Error(err)
		}
	}
}
