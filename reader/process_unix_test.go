//go:build unix

package reader_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/fingerprint"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/reader"
)

// TestTruncatedWhileMapped cuts a mapped _metadata under a process that uses
// it. In a process of its own: a fault that is not caught ends it.
func TestTruncatedWhileMapped(t *testing.T) {
	if dir := os.Getenv("SPT_TEST_MAPPED"); dir != "" {
		useWhileCut(t, dir)
		return
	}
	var b bytes.Buffer
	if err := sptest.WriteUnion(&b, sptest.UnionOfSize(6<<20)); err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string]string{"_metadata": b.String()})
	cmd := exec.Command(os.Args[0], "-test.run=^TestTruncatedWhileMapped$", "-test.v")
	cmd.Env = append(os.Environ(), "SPT_TEST_MAPPED="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all uses end as changed") {
		t.Errorf("%v: %s", err, out)
	}
}

func useWhileCut(t *testing.T, dir string) {
	snap, err := reader.Open(ctx, dir, new(options()))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "_metadata"), 4096); err != nil {
		t.Fatal(err)
	}
	changed := func(what string, err error) {
		if !errors.Is(err, format.ErrChanged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	data := snap.Operators[0].Subtasks[3].Managed.Data
	_, err = snap.Source().ReadAt(ctx, data, make([]byte, 1000), 0)
	changed("reading inline state", err)
	_, err = summary.Of(ctx, snap.Savepoint)
	changed("adding up", err)
	_, err = snap.Verify(ctx, reader.VerifyOptions{}, func(f finding.Finding) { t.Errorf("%+v", f) })
	changed("verifying", err)
	_, err = fingerprint.Same(ctx, snap.Savepoint, snap.Savepoint, snap.Source())
	changed("comparing", err)
	changed("asking", snap.Unchanged(ctx))
	changed("closing", snap.Close())
	if !t.Failed() {
		fmt.Println("all uses end as changed")
	}
}
