//go:build unix

package metadata_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestShrunkMetadata: a mapped _metadata that shrinks, before it is decoded or
// after, is an error and no crash.
func TestShrunkMetadata(t *testing.T) {
	var b bytes.Buffer
	if err := sptest.WriteUnion(&b, sptest.UnionOptions{Subtasks: 2, Elements: 20_000, ElementSize: 20}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "_metadata")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := unix.Mmap(int(f.Fd()), 0, b.Len(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		testenv.Missing(t, "no mapping", err)
	}
	defer func() { _ = unix.Munmap(p) }()
	mapped := format.MappedBytes(p)
	sp, err := metadata.Decode(mapped, metadata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, int64(b.Len()/2)); err != nil {
		t.Fatal(err)
	}
	if err := metadata.Encode(context.Background(), io.Discard, sp, nil); !errors.Is(err, format.ErrChanged) {
		t.Errorf("written: %v", err)
	}
	// The rest of a page reads as zeros, which may be found out before a fault.
	if sp, err := metadata.Decode(mapped, metadata.Options{}); sp != nil || !errors.Is(err, format.ErrChanged) && !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("decoded: %v, %v", sp, err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if sp, err := metadata.Decode(mapped, metadata.Options{}); sp != nil || !errors.Is(err, format.ErrChanged) {
		t.Errorf("decoded: %v, %v", sp, err)
	}
	if sp, err := metadata.Salvage(mapped, metadata.Options{}); sp != nil || !errors.Is(err, format.ErrChanged) {
		t.Errorf("salvaged: %v, %v", sp, err)
	}
}
