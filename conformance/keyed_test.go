package conformance

import (
	"context"
	"testing"

	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

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
				v, done, err := transform.Canonical(context.Background(), snap.View(), transform.CanonicalOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if done.Entries == 0 || len(done.Kept) > 0 {
					t.Fatalf("%+v", done)
				}
				sp := v.Savepoint
				seal(t, snap.With(sp), out, writer.Options{ReadBack: true})
				judgeModel(t, f, rewritten, openedAt(t, out))
				judgeSame(t, f, s, rewritten, false)
				want := restoredOnce(t, f, s, Choices{Parallelism: 3})
				got := Restore(t, f, rewritten, Choices{Parallelism: 3})
				compareContent(t, f, s.Options, 3, withoutUnionOrder(want), withoutUnionOrder(got))
				t.Logf("%d entries", done.Entries)
			})
		}
	})
}
