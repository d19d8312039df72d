package command

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// TestStateCompression: for every real snapshot, state that was compressed and
// decompressed again has the bytes that it had, state that Flink compressed gives
// the same elements, and every new stream opens in its middle.
func TestStateCompression(t *testing.T) {
	var n struct{ snapshots, streams, compressed, decompressed, equal, elements, kept, refused int }
	options := map[string]testenv.Options{}
	if testenv.Manifest(t).Known > 0 {
		for _, k := range testenv.KnownSnapshots(t) {
			options[k.Location] = k.Options
		}
	}
	for _, dir := range testenv.Snapshots(t) {
		env := OSEnv()
		snap, err := env.open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		n.snapshots++
		to := func(view *reader.Snapshot, compress bool) (*reader.Snapshot, *transform.RecompressReport, error) {
			sp, done, err := transform.Recompress(t.Context(), view.View(), transform.RecompressOptions{Compress: compress, Keyed: keyed.Recompress})
			if err != nil {
				return nil, nil, err
			}
			return view.With(sp.Savepoint), done, nil
		}
		none, down, err := to(snap, false)
		if format.NoFile(err) || errors.Is(err, format.ErrCorrupt) {
			n.refused++ // its files are not in the corpus, or FLINK-34063
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		snappy, up, err := to(none, true)
		if err != nil {
			if !errors.Is(err, format.ErrMissing) {
				t.Fatalf("%s: %v", dir, err)
			}
			n.refused++
			continue
		}
		again, _, err := to(snappy, false)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if o, ok := options[dir]; ok && o.Backend == "hashmap" && o.Compress != (down.Handles > 0) {
			t.Errorf("%s: %d handles decompressed, and the job compressed state: %t", dir, down.Handles, o.Compress)
		}
		n.compressed += up.Handles
		n.decompressed += down.Handles
		n.kept += len(up.Kept)
		for i, op := range snap.Operators {
			for k, sub := range op.Subtasks {
				a, b := none.Operators[i].Subtasks[k], again.Operators[i].Subtasks[k]
				if sub.Managed != nil {
					if a.Managed.Data != nil {
						n.streams++
					}
					n.equal += sameBytes(t, dir, snap, a.Managed.Data, b.Managed.Data)
					n.elements += sameElements(t, dir, snap, sub.Managed, a.Managed)
					n.elements += sameElements(t, dir, snap, sub.Managed, snappy.Operators[i].Subtasks[k].Managed)
				}
				x, ok := a.ManagedKeyed.(*format.KeyGroups)
				if !ok {
					continue
				}
				y := b.ManagedKeyed.(*format.KeyGroups)
				n.streams++
				n.equal += sameBytes(t, dir, snap, x.Data, y.Data)
				for g := range x.Offsets.Len() {
					p, _ := format.OffsetAt(t.Context(), x.Offsets, g)
					q, err := format.OffsetAt(t.Context(), y.Offsets, g)
					if err != nil || p != q {
						t.Fatalf("%s: key group %d at %d, not %d: %v", dir, g, q, p, err)
					}
				}
			}
		}
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%+v", n)
	testenv.Found(t, "streams", n.equal, n.streams)
}

// sameBytes compares two streams, the second read in odd pieces from its end.
func sameBytes(t *testing.T, dir string, snap *reader.Snapshot, a, b format.Stream) int {
	t.Helper()
	if a == nil && b == nil {
		return 0
	}
	size, err := format.StreamSize(t.Context(), snap.Source(), a)
	if errors.Is(err, format.ErrMissing) {
		return 0
	}
	if err != nil || size != b.Size() && a != b {
		t.Fatalf("%s: %d bytes, there were %d: %v", dir, b.Size(), size, err)
	}
	p, q := make([]byte, size), make([]byte, size)
	if _, err := snap.Source().ReadAt(t.Context(), a, p, 0); err != nil {
		if errors.Is(err, format.ErrMissing) {
			return 0
		}
		t.Fatal(dir, err)
	}
	const piece = 777
	for off := size / piece * piece; off >= 0; off -= piece {
		if _, err := snap.Source().ReadAt(t.Context(), b, q[off:min(off+piece, size)], off); err != nil {
			t.Fatal(dir, err)
		}
	}
	if !bytes.Equal(p, q) {
		t.Fatalf("%s: other bytes", dir)
	}
	return 1
}

func sameElements(t *testing.T, dir string, snap *reader.Snapshot, a, b *format.OperatorHandle) (n int) {
	t.Helper()
	if a == b {
		return 0
	}
	all := func(h *format.OperatorHandle, state string) (out [][]byte) {
		var codec opstate.Codec
		err := format.EachElement(context.Background(), snap.Source(), &codec, h, state, func(e format.Element) error {
			out = append(out, e.Clone().Value)
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %q: %v", dir, state, err)
		}
		return out
	}
	for i, st := range a.States {
		if b.States[i].Name != st.Name || b.States[i].Mode != st.Mode {
			t.Fatalf("%s: state %q became %q", dir, st.Name, b.States[i].Name)
		}
		x, y := all(a, st.Name.String()), all(b, st.Name.String())
		if len(x) != len(y) {
			t.Fatalf("%s: %q: %d elements, there were %d", dir, st.Name, len(y), len(x))
		}
		for k := range x {
			if !bytes.Equal(x[k], y[k]) {
				t.Fatalf("%s: %q: element %d is another", dir, st.Name, k)
			}
		}
		n += len(x)
	}
	return n
}
