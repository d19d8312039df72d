package transform_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// entriesOf returns how often each entry occurs in the keyed state of an operator and
// in its raw timers, by state, key group, key, namespace, user key, time and value.
func entriesOf(t *testing.T, v format.View, op *format.Operator) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, sub := range op.Subtasks {
		for _, h := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
			if h == nil {
				continue
			}
			codec, err := v.KeyedCodec(op, h)
			if err != nil {
				t.Fatal(err)
			}
			schema, err := codec.Describe(context.Background(), v.Source, h)
			if err != nil {
				t.Fatal(err)
			}
			err = format.EachKeyedEntry(context.Background(), v.Source, codec, h, format.KeyedSelection{}, func(e format.KeyedEntry) error {
				all[fmt.Sprintf("%s %d %x %x %x %d %x", schema.States[e.State].Name, e.KeyGroup, e.Key, e.Namespace, e.UserKey, e.Time, e.Value)]++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// Canonical changes the encoding of keyed state, and no entry: of every snapshot of the
// corpus and of the fixtures.
func TestCanonicalKeepsEntries(t *testing.T) {
	snapshots, rebuilt, kept, entries := 0, 0, map[string]int{}, 0
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
			before := snap.View()
			after, done, err := transform.Canonical(context.Background(), before, transform.CanonicalOptions{})
			var inFlight *transform.InFlightError
			if errors.As(err, &inFlight) || errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrOutside) {
				return nil
			}
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return nil
			}
			snapshots++
			rebuilt += done.Handles
			for _, k := range done.Kept {
				kept[k.Why] += k.Handles
			}
			if done.Handles == 0 {
				return nil
			}
			for i, op := range before.Operators {
				now := after.Operators[i]
				if op == now || len(done.Kept) > 0 {
					continue
				}
				was, is := entriesOf(t, before, op), entriesOf(t, after, now)
				entries += len(was)
				if !maps.Equal(was, is) {
					t.Errorf("%s, operator %s: %d entries, %d before", path, op.Label(), len(is), len(was))
				}
				inPieces(t, after, now)
			}
			writesCanonical(t, path, after)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d snapshots, %d handles built again with %d entries; kept: %v", snapshots, rebuilt, entries, kept)
	if rebuilt < 40 || entries < 500 {
		t.Errorf("only %d handles with %d entries", rebuilt, entries)
	}
}

// writesCanonical writes a snapshot with keyed state that was built: version 2 of _metadata cannot
// mark it as canonical.
func writesCanonical(t *testing.T, path string, v format.View) {
	t.Helper()
	_, err := writer.Write(context.Background(), v, "out", &writer.Options{Stores: route.New(mem.New())})
	version, _ := metadata.VersionOf(v.Savepoint)
	if version == metadata.V2 {
		var canonical *writer.CanonicalError
		if !errors.As(err, &canonical) {
			t.Errorf("%s: %v, expected a CanonicalError", path, err)
		}
	} else if err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// inPieces reads each built stream backwards and forwards: the bytes are the same.
func inPieces(t *testing.T, v format.View, op *format.Operator) {
	t.Helper()
	for _, sub := range op.Subtasks {
		g, ok := sub.ManagedKeyed.(*format.KeyGroups)
		if !ok {
			continue
		}
		whole := make([]byte, g.Data.Size())
		if _, err := v.Source.ReadAt(context.Background(), g.Data, whole, 0); err != nil {
			t.Fatal(err)
		}
		const piece = 700
		for at := len(whole) / piece * piece; at >= 0; at -= 3 * piece {
			p := make([]byte, min(piece, len(whole)-at))
			if _, err := v.Source.ReadAt(context.Background(), g.Data, p, int64(at)); err != nil || !bytes.Equal(p, whole[at:at+len(p)]) {
				t.Fatalf("%d bytes at %d differ, %v", len(p), at, err)
			}
		}
	}
}
