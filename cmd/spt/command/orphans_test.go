package command

import (
	"bytes"
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

const orphanName = "0f0e0d0c-0b0a-0908-0706-050403020100"

// withOrphan is a checkpoint with a file that it does not refer to.
func withOrphan(t *testing.T) (root, orphan string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "jobs")
	if err := os.CopyFS(root, os.DirFS("../../../testdata/savepoints/flink-2.3-counts-incremental/savepoint")); err != nil {
		t.Fatal(err)
	}
	orphan = filepath.Join(root, "00000000000000000000000000000015", "shared", orphanName)
	if err := os.WriteFile(orphan, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	return root, orphan
}

// relisted calls change before a directory is listed for the second time.
type relisted struct {
	*local.Store
	dir    string
	times  int
	change func()
}

func (r *relisted) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	if prefix == r.dir+"/" {
		if r.times++; r.times == 2 {
			r.change()
		}
	}
	return r.Store.List(ctx, prefix, delimiter)
}

func runWith(store storage.Storage, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env := &Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" },
		Now: func() time.Time { return time.Now().Add(time.Hour) }, Stores: route.New(store)}
	code = Main(context.Background(), args, env)
	return code, out.String(), errs.String()
}

// A job that completes a checkpoint while spt decides: nothing is deleted.
func TestOrphansRefusesWhatChanges(t *testing.T) {
	for _, action := range []string{"--delete", "--archive=ATTIC"} {
		root, orphan := withOrphan(t)
		attic := filepath.Join(t.TempDir(), "attic")
		store := &relisted{Store: local.New(), dir: root, change: func() {
			job := filepath.Dir(filepath.Dir(orphan))
			if err := os.CopyFS(filepath.Join(job, "chk-3"), os.DirFS(filepath.Join(job, "chk-2"))); err != nil {
				t.Error(err)
			}
		}}
		code, stdout, stderr := runWith(store, "orphans", "--yes", "--older-than", "1m", strings.ReplaceAll(action, "ATTIC", attic), root)
		if code != exitInput || store.times != 2 {
			t.Errorf("%s: exit code %d after %d lists\n%s%s", action, code, store.times, stdout, stderr)
		}
		for _, want := range []string{"nothing was removed", "run it again"} {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: no %q in %s", action, want, stderr)
			}
		}
		if !strings.Contains(stdout, "a job or another program wrote there") || strings.Contains(stdout, "deleted "+root) {
			t.Errorf("%s: %s", action, stdout)
		}
		if _, err := os.Lstat(orphan); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(attic); err == nil {
			t.Error("there is an archive")
		}
		// A second run, in which nothing changes, deletes it.
		if code, stdout, stderr := runWith(local.New(), "orphans", "--yes", "--older-than", "1m", "--delete", root); code != 0 || !strings.Contains(stdout, "removed 1 file") {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		if _, err := os.Lstat(orphan); err == nil {
			t.Error("it is still there")
		}
	}
}

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes\n": true, "y": true, "": false, "\n": false, "n\n": false, "yes please\n": false} {
		var errs bytes.Buffer
		env := &Env{Stdin: strings.NewReader(answer), Stderr: &errs}
		if got, err := env.confirm("Delete? "); got != want || err != nil || errs.String() != "Delete? " {
			t.Errorf("%q: %v, %v, %q", answer, got, err, errs.String())
		}
	}
}

// Without a terminal, nothing is removed unless --yes allows it, and nothing is read.
func TestOrphansNeedsYes(t *testing.T) {
	root, orphan := withOrphan(t)
	store := &relisted{Store: local.New(), dir: root, change: func() {}}
	code, _, stderr := runWith(store, "orphans", "--older-than", "0s", "--delete", root)
	if code != exitUsage || !strings.Contains(stderr, "--yes") || store.times != 0 {
		t.Errorf("exit code %d, %d lists: %s", code, store.times, stderr)
	}
	if _, err := os.Lstat(orphan); err != nil {
		t.Error(err)
	}
}
