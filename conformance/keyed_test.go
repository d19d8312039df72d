package conformance

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/writer"
)

// canonical returns an operator whose managed keyed state was built again, in the
// canonical format, from its entries.
func canonical(t *testing.T, src format.Source, op *format.Operator) (*format.Operator, int) {
	t.Helper()
	ctx, entries := context.Background(), 0
	codec := &keyed.Codec{MaxParallelism: op.MaxParallelism}
	out, err := op.MapSubtasks(func(sub *format.Subtask) (*format.Subtask, error) {
		if sub.ManagedKeyed == nil {
			return sub, nil
		}
		schema, err := codec.Describe(ctx, src, sub.ManagedKeyed)
		if err != nil {
			return nil, err
		}
		var w bytes.Buffer
		b, err := codec.Build(ctx, schema, sub.ManagedKeyed.KeyGroups(), &w)
		if err != nil {
			return nil, err
		}
		err = format.EachKeyedEntry(ctx, src, codec, sub.ManagedKeyed, format.KeyedSelection{}, func(e format.KeyedEntry) error {
			entries++
			return b.Add(e)
		})
		if err != nil {
			return nil, err
		}
		h, err := b.Handle()
		if err != nil {
			return nil, err
		}
		h.Data = &format.Inline{Name: format.NewText(fmt.Sprintf("canonical-%s-%d", op.ID, sub.Index)), Data: format.NewBytes(w.Bytes())}
		c := *sub
		c.ManagedKeyed = h
		return &c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, entries
}

// Canonical state built from the entries of every encoding is to Flink the state that
// it was, at the parallelism of the job and at another.
func TestKeyedCanonical(t *testing.T) {
	cases := map[string]Options{
		"rocksdb native":      {Shape: "keyed", Backend: "rocksdb", Format: "native", KeyType: "pojo", Seed: 301},
		"rocksdb incremental": {Shape: "keyed", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 3, KeyType: "string", Seed: 302},
		"rocksdb rescaled":    {Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 2, Keys: 50, Seed: 303, Parallelism: 2, Via: []int{4}, Restores: 2},
		"rocksdb wide":        {Shape: "keyed", Backend: "rocksdb", Format: "native", KeyType: "tuple", Seed: 304, MaxParallelism: 1000},
		"heap native":         {Shape: "keyed", Backend: "hashmap", Format: "native", KeyType: "long", Seed: 305},
		"heap compressed":     {Shape: "keyed", Backend: "hashmap", Checkpoint: true, Compress: true, KeyType: "pojo", Seed: 306},
	}
	eachVersion(t, func(t *testing.T, version Version) {
		for name, options := range cases {
			t.Run(name, func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, options)
				snap := opened(t, s)
				out, rewritten := standsFor(t, s)
				entries := 0
				sp, err := snap.MapOperators(func(op *format.Operator) (*format.Operator, error) {
					c, n := canonical(t, snap.Source(), op)
					entries += n
					return c, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if entries == 0 {
					t.Fatal("no entries")
				}
				seal(t, snap.With(sp), out, writer.Options{ReadBack: true})
				judgeModel(t, f, rewritten, openedAt(t, out))
				judgeSame(t, f, s, rewritten, false)
				want := restoredOnce(t, f, s, Choices{Parallelism: 3})
				got := Restore(t, f, rewritten, Choices{Parallelism: 3})
				compareContent(t, f, s.Options, 3, withoutUnionOrder(want), withoutUnionOrder(got))
				t.Logf("%d entries", entries)
			})
		}
	})
}
