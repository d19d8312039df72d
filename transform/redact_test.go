package transform_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// TestRedactAll redacts every snapshot of the corpus and of the fixtures; what is refused
// is dropped by the names that the error lists.
func TestRedactAll(t *testing.T) {
	snapshots, states, keys, why := 0, 0, 0, map[string]int{}
	var elements, entries, kept int64
	for _, top := range []string{"../testdata/savepoints", testenv.Corpus(t)} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() != reader.MetadataName {
				return err
			}
			snap, err := reader.Open(context.Background(), filepath.Dir(path), nil)
			if err != nil {
				return nil //nolint:nilerr // other tests say which snapshots can be opened
			}
			defer snap.Close() //nolint:errcheck // nothing was written
			o := transform.RedactOptions{Key: []byte("secret"), Values: snap.Values}
			var refused *transform.NotRedactedError
			v, done, err := transform.Redact(context.Background(), snap.View(), o)
			if errors.As(err, &refused) {
				for _, p := range refused.Parts {
					why[p.Why]++
					o.Drop = append(o.Drop, p.Part)
				}
				v, done, err = transform.Redact(context.Background(), snap.View(), o)
			}
			if errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrOutside) {
				return nil
			}
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return nil
			}
			want, got := structureOf(t, snap.View()), structureOf(t, v)
			for state, s := range got {
				if s != want[state] {
					t.Errorf("%s: %s:\n%s, before\n%s", path, state, s, want[state])
				}
			}
			states += len(got)
			keys += inTheirGroups(t, v)
			snapshots++
			elements, entries, kept = elements+done.Elements, entries+done.Entries, kept+done.KeptKeys
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if snapshots < 400 || states < 1000 || elements < 10000 || entries < 9000 || keys < 9000 || kept > entries/10 {
		t.Errorf("only %d snapshots with %d states", snapshots, states)
	}
	t.Logf("%d snapshots, %d elements, %d entries, %d keys kept", snapshots, elements, entries, kept)
	for w, n := range why {
		t.Logf("%4d %s", n, w)
	}
}

// inTheirGroups checks that each key is in the key group of its hash code, as Flink would
// look for it, and returns the number of entries.
func inTheirGroups(t *testing.T, v format.View) (n int) {
	t.Helper()
	ctx := context.Background()
	for _, op := range v.Operators {
		for _, sub := range op.Subtasks {
			if sub.ManagedKeyed == nil {
				continue
			}
			codec, err := v.KeyedCodec(op, sub.ManagedKeyed)
			if err != nil {
				t.Fatal(err)
			}
			all, err := value.EntryCodecsOf(ctx, v.Source, codec, sub.ManagedKeyed)
			if err != nil {
				t.Fatal(err)
			}
			err = format.EachKeyedEntry(ctx, v.Source, codec, sub.ManagedKeyed, format.KeyedSelection{}, func(e format.KeyedEntry) error {
				n++
				hash, err := all[e.State].KeyHash(e.Key)
				if g := format.KeyGroupOfHash(hash, op.MaxParallelism); err != nil || g != e.KeyGroup {
					t.Errorf("operator %q: a key of key group %d is in key group %d, %v", op.Label(), g, e.KeyGroup, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	return n
}

// structureOf returns of each state of a subtask the lengths of its elements or entries,
// how often each occurs, and the key groups.
func structureOf(t *testing.T, v format.View) map[string]string {
	t.Helper()
	ctx, out := context.Background(), map[string]string{}
	add := func(counts map[string]int, p ...[]byte) {
		key := ""
		for _, part := range p {
			key += fmt.Sprintf("%d:%s", len(part), part)
		}
		counts[key]++
	}
	sum := func(counts map[string]int) string {
		var all []string
		for key, n := range counts {
			all = append(all, fmt.Sprintf("%d x %d", n, len(key)))
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	for _, op := range v.Operators {
		for _, sub := range op.Subtasks {
			at := fmt.Sprintf("%s[%d]/", op.ID, sub.Index)
			if h := sub.Managed; h != nil && h.Data != nil {
				codec, err := v.Codec(h.Codec)
				if err != nil {
					t.Fatal(err)
				}
				for _, st := range h.States {
					counts := map[string]int{}
					if st.Mode == format.ModeBroadcast {
						err = format.EachEntry(ctx, v.Source, codec, h, st.Name.String(), func(e format.MapEntry) error { add(counts, e.Key, e.Value); return nil })
					} else {
						err = format.EachElement(ctx, v.Source, codec, h, st.Name.String(), func(e format.Element) error { add(counts, e.Value); return nil })
					}
					if err == nil {
						out[at+st.Name.String()] = sum(counts)
					}
				}
			}
			if h := sub.ManagedKeyed; h != nil {
				codec, err := v.KeyedCodec(op, h)
				if err != nil {
					continue
				}
				schema, err := codec.Describe(ctx, v.Source, h)
				if err != nil {
					continue
				}
				counts := make([]map[string]int, len(schema.States))
				err = format.EachKeyedEntry(ctx, v.Source, codec, h, format.KeyedSelection{}, func(e format.KeyedEntry) error {
					if counts[e.State] == nil {
						counts[e.State] = map[string]int{}
					}
					add(counts[e.State], e.Key, e.Namespace, e.UserKey, e.Value, fmt.Appendf(nil, "%d %d", e.KeyGroup, e.Time))
					return nil
				})
				for i, c := range counts {
					if err == nil && c != nil {
						out[at+"keyed "+schema.States[i].Name.String()] = sum(c)
					}
				}
			}
		}
	}
	return out
}
