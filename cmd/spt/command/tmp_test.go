package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/writer"
)

// TestTempDirMissing: temporary files that cannot be made are neither damage nor
// absence of the input: every command that counts elements ends with exit code 2
// and writes nothing.
func TestTempDirMissing(t *testing.T) {
	dir := t.TempDir()
	in, missing := filepath.Join(dir, "in.spt"), filepath.Join(dir, "missing")
	b, err := writer.NewBuilder(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	op := b.Operator("op", 2, 8)
	l := op.Subtask(0).Union("u")
	for i := range 1_600_000 { // more than are counted in memory
		if err := l.Add(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := op.Subtask(1).Union("u").Add(1); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"prune-union", in},
		{"prune-union", in, filepath.Join(dir, "out.spt"), "--keep", "distinct", "--accept-unproven"},
		{"inspect", "--deep", in},
		{"check", in},
	} {
		code, stdout, stderr := runAll(t, append(args, "--tmp", missing))
		if code != exitFailed || stdout != "" || strings.Count(stderr, "temporary file: open "+missing) != 1 ||
			!strings.HasSuffix(stderr, "\nhint: --tmp DIR chooses another directory for temporary files\n") || strings.Count(stderr, `operator "op"`) != 1 {
			t.Errorf("%s: exit code %d, %q, %q", args[0], code, stdout, stderr)
		}
	}
	if code, _, stderr := runAll(t, []string{"prune-union", in, filepath.Join(dir, "out.spt"), "--keep", "distinct", "--accept-unproven", "--tmp", dir}); code != exitOK {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 { // in.spt, out.spt
		t.Errorf("%v, %v", files, err)
	}
}
