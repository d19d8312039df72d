package transform_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// TestRedactAll redacts every snapshot of the corpus and of the fixtures; what is refused
// is dropped by the names that the error lists.
func TestRedactAll(t *testing.T) {
	snapshots, why := 0, map[string]int{}
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
			_, done, err := transform.Redact(context.Background(), snap.View(), o)
			if errors.As(err, &refused) {
				for _, p := range refused.Parts {
					why[p.Why]++
					o.Drop = append(o.Drop, p.Part)
				}
				_, done, err = transform.Redact(context.Background(), snap.View(), o)
			}
			if errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrOutside) {
				return nil
			}
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return nil
			}
			snapshots++
			elements, entries, kept = elements+done.Elements, entries+done.Entries, kept+done.KeptKeys
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d snapshots, %d elements, %d entries, %d keys kept", snapshots, elements, entries, kept)
	for w, n := range why {
		t.Logf("%4d %s", n, w)
	}
}
