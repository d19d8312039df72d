package keyed_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestKeyGroupsOfCorpus: the key group of every entry of real snapshots is the one that
// the hash code of its key determines.
func TestKeyGroupsOfCorpus(t *testing.T) {
	hashed, refused := map[string]int{}, map[string]int{}
	for _, dir := range testenv.Snapshots(t) {
		snap := sptest.Open(t, dir)
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				for _, h := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
					if h == nil {
						continue
					}
					where := fmt.Sprintf("%s: operator %q: subtask %d", dir, op.Label(), sub.Index)
					c := &keyed.Codec{MaxParallelism: op.MaxParallelism, Types: types.Options{Kryo: 5}}
					codecs, err := c.EntryCodecs(t.Context(), snap.Source(), h)
					if errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrUnsupported) {
						continue // other tests count them
					}
					if err != nil {
						t.Errorf("%s: %v", where, err)
						continue
					}
					schema, err := c.Schema(t.Context(), snap.Source(), h)
					if err != nil {
						t.Errorf("%s: %v", where, err)
						continue
					}
					class := "unknown"
					if schema.Key != nil {
						class = schema.Key.Class
					}
					all, _, err := entriesOf(t, snap.Source(), c, h, format.KeyedSelection{})
					if err != nil && !errors.Is(err, format.ErrMissing) && !errors.Is(err, format.ErrUnsupported) {
						t.Errorf("%s: %v", where, err)
					}
					for _, e := range all {
						s := codecs[e.State]
						if s.KeyHash == nil {
							refused[s.WhyNoHash.Error()]++
							continue
						}
						if e.Key == nil {
							continue
						}
						n, err := s.KeyHash(e.Key)
						if err != nil {
							t.Fatalf("%s: key %x: %v", where, e.Key, err)
						}
						if g := format.KeyGroupOfHash(n, op.MaxParallelism); g != e.KeyGroup {
							t.Errorf("%s: key %x of %s is in key group %d, its hash code determines %d", where, e.Key, class, e.KeyGroup, g)
							break
						}
						hashed[class]++
					}
				}
			}
		}
	}
	for _, n := range []struct {
		what   string
		counts map[string]int
	}{{"entries in the key group of their hash codes", hashed}, {"entries without a hash code", refused}} {
		for _, k := range slices.Sorted(maps.Keys(n.counts)) {
			t.Logf("%d %s: %s", n.counts[k], n.what, k)
		}
	}
	if len(hashed) < 3 {
		t.Error("too few types of keys")
	}
}
