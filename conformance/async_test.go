package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

func TestKeyedReadsExplore(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		if version == V1_20 {
			return
		}
		f := Use(t, version)
		o := Options{Shape: "keyed", Backend: "forst", Asynchronous: true, Checkpoint: true, Incremental: true, Checkpoints: 2, KeyType: "string", Seed: 518}
		s := madeOnce(t, f, o)
		truth := mustTruth(t, s)
		plain := &keyedRewrite{}
		want := plain.keyedLinesOf(t, truth, true)
		v, done, err := transform.Canonical(t.Context(), opened(t, s).View(), transform.CanonicalOptions{})
		t.Logf("%+v %v", done, err)
		if err != nil {
			return
		}
		out, rewritten := standsFor(t, s)
		seal(t, opened(t, s).With(v.Savepoint), out, writer.Options{ReadBack: true})
		for _, backend := range []string{"hashmap", "rocksdb", "forst"} {
			for _, async := range []bool{false, true} {
				for _, p := range []int{2, 3} {
					for name, r := range map[string]Snapshot{"original": s, "canonical": rewritten} {
						if p == 3 && name == "canonical" {
							continue
						}
						r.Options.Backend, r.Options.Asynchronous = backend, async
						r.Options.HeapTimers = false
						got, err := f.Restore(r, Choices{Parallelism: p})
						switch {
						case err != nil:
							t.Logf("RESULT %s %s async %v p%d %s: %.300s", version, backend, async, p, name, err)
						case !slices.Equal(want, plain.keyedLinesOf(t, got, false)):
							t.Logf("RESULT %s %s async %v p%d %s: differs: %d lines, expected %d", version, backend, async, p, name, len(plain.keyedLinesOf(t, got, false)), len(want))
						default:
							t.Logf("RESULT %s %s async %v p%d %s: equal", version, backend, async, p, name)
						}
					}
				}
			}
		}
		fmt.Println()
	})
}
