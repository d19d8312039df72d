package spt_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt"
)

// decode reads a snapshot folder; ok is false where files are missing or the
// _metadata is not one that is read.
func decode(t testing.TB, dir string) (*format.Savepoint, bool) {
	t.Helper()
	p, err := os.ReadFile(filepath.Join(dir, "_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	sp, err := metadata.Decode(format.NewBytes(p), metadata.Options{})
	if err != nil {
		t.Logf("%s: %v", dir, err)
		return nil, false
	}
	complete := true
	err = sp.EachStream(func(_ format.Place, s format.Stream) error {
		if f, ok := s.(*format.File); ok && f.Relative {
			info, err := os.Stat(filepath.Join(dir, f.Path.String()))
			complete = complete && err == nil && info.Size() == f.Length
		}
		return nil
	})
	return sp, err == nil && complete
}

func TestCorpusRoundTrip(t *testing.T) {
	var read, skipped, chunks int
	var stored, raw, referenced int64
	for _, dir := range corpus(t) {
		sp, ok := decode(t, dir)
		if !ok {
			skipped++
			continue
		}
		src := source{dir}
		p := pack(t, sp, src, spt.Options{})
		f := mustOpen(t, p)
		sameModel(t, f, sp, src)
		err := f.Verify(context.Background(), func(e format.Error) { t.Errorf("%s: %v", dir, &e) })
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		// And once more, from .spt to .spt.
		again := pack(t, f.Savepoint(), f, spt.Options{Compression: spt.S2, Jobs: 1})
		sameModelOfFiles(t, mustOpen(t, again), f)
		read++
		st := f.Stats()
		chunks += st.Chunks
		stored += st.StoredBytes
		raw += st.RawBytes
		referenced += st.ReferencedBytes
	}
	t.Logf("%d savepoints (%d incomplete left out): %d chunks, %d bytes referenced, %d kept, stored in %d", read, skipped, chunks, referenced, raw, stored)
	if read == 0 {
		t.Error("no savepoint was read")
	}
}

// sameModelOfFiles compares two files that hold the same savepoint.
func sameModelOfFiles(t testing.TB, f, want *spt.File) {
	t.Helper()
	sameModel(t, f, want.Savepoint(), want)
}
