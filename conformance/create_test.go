package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/writer"
)

// A savepoint that was created from the values and the types of the states of a job is
// restored by that job: each subtask holds what the job held.
func TestCreate(t *testing.T) {
	cases := map[string]Options{
		"operator":       caseNamed(t, "operator").options,
		"tutorial":       caseNamed(t, "tutorial").options,
		"union":          caseNamed(t, "union-modulo").options,
		"heap, long":     caseNamed(t, "keyed-heap").options,
		"heap, string":   {Shape: "keyed", Format: "native", KeyType: "string", InlineThreshold: Bytes(0)},
		"rocksdb, tuple": caseNamed(t, "keyed-rocksdb").options,
		"rocksdb, wide":  {Shape: "counts", Backend: "rocksdb", KeyType: "string", MaxParallelism: 1000, Keys: 300, Elements: 900, Seed: 311},
	}
	eachVersion(t, func(t *testing.T, version Version) {
		for name, options := range cases {
			t.Run(name, func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, options)
				out, created := standsFor(t, s)
				b, entries := createdLike(t, opened(t, s), flink.MustRelease(string(version)))
				defer b.Close() //nolint:errcheck // temporary files
				view, err := b.View(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := writer.Write(context.Background(), view, out, &writer.Options{Stores: stores, ReadBack: true}); err != nil {
					t.Fatal(err)
				}
				snap := openedAt(t, out)
				judgeModel(t, f, created, snap)
				truth := ofOperators(mustTruth(t, s), snap.Operators)
				if len(truth.Operators) != len(snap.Operators) || len(truth.Operators) == 0 {
					t.Fatalf("the truth has %d of the %d operators", len(truth.Operators), len(snap.Operators))
				}
				for _, p := range []int{0, 3} {
					got := ofOperators(Restore(t, f, created, Choices{Parallelism: p}), snap.Operators)
					for _, wrong := range CheckRedistributed(truth, got) {
						t.Errorf("restored with parallelism %d: %s", p, wrong)
					}
				}
				t.Logf("%d entries", entries)
			})
		}
	})
}

// createdLike returns a builder with the states of a snapshot, apart from sources, whose
// coordinators have state, and states with a time to live. Values pass through JSON.
func createdLike(t *testing.T, snap *reader.Snapshot, release flink.Release) (b *writer.FlinkBuilder, entries int64) {
	t.Helper()
	ctx := context.Background()
	b, err := writer.NewFlinkBuilder(&writer.FlinkOptions{Release: release, SortBytes: 2000, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range snap.Operators {
		if op.Coordinator != nil || !op.HasState() {
			continue
		}
		ty, err := snap.Types(ctx, op)
		if err != nil {
			t.Fatal(err)
		}
		o := writer.FlinkOperator{ID: op.ID, Parallelism: op.Parallelism, MaxParallelism: op.MaxParallelism}
		if len(ty.Keys) > 0 {
			o.Key = ty.Keys[0].String()
		}
		to, err := b.Operator(o)
		if err != nil {
			t.Fatal(err)
		}
		states := map[string]*writer.FlinkStateBuilder{} // by scope and name
		for _, st := range ty.States {
			if st.TTL || st.Name.String() == "owner" { // its replicas differ
				continue
			}
			states[st.Scope()+st.Name.String()] = createdState(t, to, st)
		}
		for _, sub := range op.Subtasks {
			addElements(t, snap, ty, states, sub)
			addKeyed(t, snap, op, states, sub)
		}
		for _, s := range states {
			entries += s.Count()
		}
	}
	return b, entries
}

func createdState(t *testing.T, op *writer.FlinkOperatorBuilder, st reader.StateTypes) *writer.FlinkStateBuilder {
	t.Helper()
	text := func(of *types.Type) string {
		if of == nil {
			return ""
		}
		return of.String()
	}
	s := writer.FlinkState{Name: st.Name.String(), Kind: st.Kind(), Type: text(st.Value), MapKey: text(st.UserKey), Namespace: text(st.Namespace)}
	add := op.Keyed
	if st.Keyed == "" {
		add = op.State
	}
	b, err := add(s)
	if err != nil {
		t.Fatalf("state %s: %v", s.Name, err)
	}
	return b
}

// again passes a value through JSON.
func again(t *testing.T, from, to value.Codec, p []byte) value.Value {
	t.Helper()
	if to == nil {
		return value.Null()
	}
	v, err := value.ReadAll(from, p)
	if err == nil {
		v, err = value.FromJSON(to, v.AppendJSON(nil, nil, nil))
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// addElements adds the operator state of a subtask.
func addElements(t *testing.T, snap *reader.Snapshot, ty reader.OperatorTypes, states map[string]*writer.FlinkStateBuilder, sub *format.Subtask) {
	t.Helper()
	if sub.Managed == nil {
		return
	}
	ctx := context.Background()
	codec, err := snap.Codec(sub.Managed.Codec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ty.States {
		st := &ty.States[i]
		to := states[st.Scope()+st.Name.String()]
		if st.Keyed != "" || to == nil {
			continue
		}
		of := func(s *types.Snapshot) value.Codec {
			c, _ := types.CodecOf(s)
			return c
		}
		parts, c := st.Parts(), to.Codecs()
		if st.Mode == format.ModeBroadcast {
			err = format.EachEntry(ctx, snap.Source(), codec, sub.Managed, st.Name.String(), func(e format.MapEntry) error {
				return to.Add(writer.FlinkEntry{Key: again(t, of(parts.UserKey), c.Key, e.Key), Value: again(t, of(parts.Value), c.Value, e.Value)})
			})
		} else {
			err = format.EachElement(ctx, snap.Source(), codec, sub.Managed, st.Name.String(), func(e format.Element) error {
				return to.AddTo(sub.Index, writer.FlinkEntry{Value: again(t, of(parts.Value), c.Value, e.Value)})
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// addKeyed adds the keyed state of a subtask.
func addKeyed(t *testing.T, snap *reader.Snapshot, op *format.Operator, states map[string]*writer.FlinkStateBuilder, sub *format.Subtask) {
	t.Helper()
	if sub.ManagedKeyed == nil {
		return
	}
	ctx := context.Background()
	codec, err := snap.KeyedCodec(op, sub.ManagedKeyed)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := codec.Describe(ctx, snap.Source(), sub.ManagedKeyed)
	if err != nil {
		t.Fatal(err)
	}
	codecs, err := value.EntryCodecsOf(ctx, snap.Source(), codec, sub.ManagedKeyed)
	if err != nil {
		t.Fatal(err)
	}
	err = format.EachKeyedEntry(ctx, snap.Source(), codec, sub.ManagedKeyed, format.KeyedSelection{}, func(e format.KeyedEntry) error {
		to := states["keyed"+schema.States[e.State].Name.String()]
		if to == nil {
			return nil
		}
		from, c := codecs[e.State], to.Codecs()
		return to.Add(writer.FlinkEntry{
			Key: again(t, from.Key, c.Key, e.Key), Namespace: again(t, from.Namespace, c.Namespace, e.Namespace),
			UserKey: again(t, from.UserKey, c.UserKey, e.UserKey), Value: again(t, from.Value, c.Value, e.Value), Time: e.Time,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ofOperators returns the content of some operators, without the states that createdLike
// leaves out.
func ofOperators(c Content, all []*format.Operator) Content {
	var out []Operator
	for _, op := range c.Operators {
		if !slices.ContainsFunc(all, func(o *format.Operator) bool { return o.ID.String() == op.ID }) {
			continue
		}
		op.Subtasks = slices.Clone(op.Subtasks)
		for i := range op.Subtasks {
			sub := &op.Subtasks[i]
			operator, keyed := map[string]OperatorState{}, map[string]KeyedState{}
			for name, st := range sub.OperatorState {
				if name != "owner" {
					operator[name] = st
				}
			}
			for name, st := range sub.KeyedState {
				if !st.TTL && !strings.HasPrefix(name, "ttl-") {
					keyed[name] = st
				}
			}
			sub.OperatorState, sub.KeyedState = operator, keyed
		}
		out = append(out, op)
	}
	c.Operators = out
	return c
}
