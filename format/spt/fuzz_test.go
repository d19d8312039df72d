package spt

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// fuzzLimits keep what is accepted small.
func fuzzLimits() format.Limits {
	return format.Limits{Operators: 1000, Subtasks: 1000, Nodes: 10_000, Depth: 8, Manifest: 1 << 20, Chunk: 1 << 20}.WithDefaults(1 << 20)
}

// seedManifests are manifests of files, and a few by hand.
func seedManifests(f *testing.F) [][]byte {
	f.Helper()
	var all [][]byte
	for _, v := range []any{
		withTree(m{}),
		withState(uvarints(0, 2, 4)),
		withState(arr{3, uvarints(0, 1)}),
		withOperator("coordinator", m{"count", 1, "data", 0}, "id", make([]byte, 16), "name", arr{"x", []byte("y")}),
		withOperator("id", make([]byte, 16), "subtasks", arr{m{"legacy", arr{nil, 0}, "managed-keyed", arr{keyChangelog, m{"changes", arr{nil, arr{keyChangelogMemory, m{"changes", arr{m{"data", []byte("d")}}}}}}}}}),
		withStream("as", arr{fromSegment, m{"path", "s3://b/k", "start", 7}}),
		withStream("as", arr{fromFile, m{"length", -1, "path", "x", "relative", true}}, "chunks", uvarints(0, 1), "size", 5),
	} {
		all = append(all, marshal(f, v))
	}
	if len(all) == 0 {
		f.Fatal("no seeds")
	}
	return all
}

// FuzzManifest: no panic, and what is accepted encodes to a manifest that says
// the same and encodes to itself.
func FuzzManifest(f *testing.F) {
	for _, p := range seedManifests(f) {
		f.Add(p, uint16(0))
		f.Add(p, uint16(1))
	}
	f.Fuzz(func(t *testing.T, raw []byte, minor uint16) {
		first, err := decodeManifest(raw, headerSize+5, minor, fuzzLimits(), 0)
		if err != nil {
			kindOf(t, err)
			return
		}
		once := encodeAgain(t, first)
		second, err := decodeManifest(once, headerSize+5, Minor, fuzzLimits(), 0)
		if err != nil {
			t.Fatalf("encoded again it does not decode: %v", err)
		}
		if twice := encodeAgain(t, second); !bytes.Equal(once, twice) {
			t.Fatalf("encoding is not stable:\n%x\n%x", once, twice)
		}
	})
}

// encodeAgain writes a decoded manifest with a writer that has its chunks and
// streams, and compares what it says.
func encodeAgain(t *testing.T, in *manifest) []byte {
	t.Helper()
	w, err := NewWriter(&bytes.Buffer{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.table = *in.table
	for _, s := range in.streams {
		c, _ := s.ref.(*format.Chunks)
		e := entry{as: s.ref, chunks: c, runs: s.runs}
		if c != nil {
			e.as = c.As
		} else {
			continue // the encoder adds those that are used, at the end
		}
		w.entries = append(w.entries, e)
	}
	n := 0
	for _, s := range in.streams {
		if c, ok := s.ref.(*format.Chunks); ok {
			c.Index = n
			n++
		}
	}
	for _, o := range in.arrays {
		o.writer = w
	}
	raw, stored, err := w.manifest(context.Background(), in.savepoint)
	if err != nil {
		t.Fatal(err)
	}
	out, err := decodeManifest(raw, headerSize+5, Minor, fuzzLimits(), 0)
	if err != nil {
		t.Fatalf("what was accepted does not decode when encoded: %v", err)
	}
	if at := difference(in.savepoint, out.savepoint, stored); at != "" {
		t.Fatalf("what was accepted differs when encoded, at %s", at)
	}
	return raw
}

func kindOf(t *testing.T, err error) {
	t.Helper()
	var e *format.Error
	if !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) && !errors.Is(err, format.ErrLimit) || !errors.As(err, &e) {
		t.Fatalf("an error of no kind: %v", err)
	}
}

// FuzzOpen: no panic on any file, through all of reading.
func FuzzOpen(f *testing.F) {
	for _, p := range seedManifests(f) {
		f.Add([]byte(sealRaw(f, header{major: Major}, []byte("chunk"), p)))
	}
	f.Fuzz(func(t *testing.T, p []byte) { readEverything(t, p) })
}

// FuzzSealed is the same behind checksums that are right.
func FuzzSealed(f *testing.F) {
	for _, p := range seedManifests(f) {
		f.Add([]byte("chunk"), p)
	}
	f.Fuzz(func(t *testing.T, chunks, raw []byte) {
		readEverything(t, sealRaw(t, header{major: Major}, chunks, raw))
	})
}

func readEverything(t *testing.T, p bytesAt) {
	ctx := context.Background()
	file, err := Open(ctx, p, int64(len(p)), fuzzLimits())
	if err != nil {
		kindOf(t, err)
		return
	}
	if err := file.Verify(ctx, func(e format.Error) { kindOf(t, &e) }); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	err = file.Savepoint().EachStream(func(_ format.Place, s format.Stream) error {
		if c, ok := s.(*format.Chunks); ok {
			n := min(c.Length, int64(len(buf)))
			if _, err := file.ReadAt(ctx, s, buf[:n], c.Length-n); err != nil {
				kindOf(t, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range file.m.arrays {
		if _, err := format.OffsetAt(ctx, o, o.n-1); err != nil {
			kindOf(t, err)
		}
	}
}
