package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/orphans"
)

// withOrphans are the cases whose files are searched for unreferenced ones together: each
// kind of file that Flink shares between checkpoints, and a savepoint.
var withOrphans = []string{"counts-incremental", "counts-rescaled", "counts-file-merging", "operator-file-merging", "keyed-changelog", "operator-files"}

// Unreferenced files are put among retained checkpoints, found and deleted; Flink
// restores each of the checkpoints as before.
func TestOrphansDeleted(t *testing.T) {
	for _, version := range editVersions {
		t.Run(string(version), func(t *testing.T) {
			f := Use(t, version)
			made := map[string]Snapshot{}
			for _, name := range withOrphans {
				made[name] = madeOnce(t, f, caseNamed(t, name).options)
			}
			deleteOrphans(t, f, made)
			for _, claim := range []bool{false, true} { // a checkpoint that uses files of another job
				next, err := f.Proceed(made["counts-incremental"], Choices{Claim: claim}, t.TempDir())
				if err != nil {
					t.Fatal(explain(err))
				}
				deleteOrphans(t, f, map[string]Snapshot{fmt.Sprintf("claimed-%v", claim): next})
			}
		})
	}
}

func deleteOrphans(t *testing.T, f *Flink, made map[string]Snapshot) {
	t.Helper()
	ctx, root := context.Background(), t.TempDir()
	o := orphans.Options{Reader: reader.Options{Stores: stores}, Now: time.Now().Add(time.Hour), OlderThan: time.Minute}
	cleaned, planted, snapshots := map[string]Snapshot{}, map[string]bool{}, 0
	for name, s := range made {
		c := s
		c.Dir, c.Known = filepath.Join(root, name), ""
		if err := os.CopyFS(c.Dir, os.DirFS(s.Dir)); err != nil {
			t.Fatal(err)
		}
		cleaned[name] = c
		o.Reader.Map = append(o.Reader.Map, format.Mapping{Old: "file:" + s.At, New: c.Dir})
		dirs, snapshot := 0, filepath.Join(c.Dir, s.Path)
		err := filepath.WalkDir(c.Dir, func(path string, d os.DirEntry, err error) error {
			base := filepath.Base(path)
			if base == "_metadata" {
				snapshots++
			}
			if err != nil || !d.IsDir() || path != snapshot && base != "shared" && base != "taskowned" && !strings.HasPrefix(base, "job_") {
				return err
			}
			dirs++
			file := filepath.Join(path, fmt.Sprintf("0f0e0d0c-0b0a-0908-0706-%012d", dirs))
			planted[file] = true
			return os.WriteFile(file, []byte("not referenced"), 0o666)
		})
		if err != nil || dirs == 0 {
			t.Fatalf("%s: %d directories, %v", name, dirs, err)
		}
	}
	r, err := orphans.Find(ctx, []string{root}, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := made["keyed-changelog"]; ok {
		// The changelog of the running cluster is elsewhere: without it nothing is deleted.
		for _, p := range r.Problems {
			if at := strings.Index(p.File, "/changelog/"); p.Kind == orphans.Outside && at > 0 {
				o.Also = append(o.Also, p.File[:at+len("/changelog")])
			}
		}
		if len(o.Also) == 0 || len(r.Removable()) > 0 {
			t.Errorf("files outside are not noticed: %v", r.Problems)
		}
		if r, err = orphans.Find(ctx, []string{root}, o); err != nil {
			t.Fatal(err)
		}
	}
	if r.Err() != nil || r.Snapshots != snapshots {
		t.Fatalf("%d snapshots of %d, %v", r.Snapshots, snapshots, r.Err())
	}
	if err := r.Unchanged(ctx); err != nil {
		t.Fatal(err)
	}
	deleted := 0
	err = r.Remove(ctx, r.Removable(), nil, func(file *orphans.File, err error) error {
		if deleted++; !planted[file.Path] {
			t.Logf("%s was left by Flink itself", file.Path)
			deleted--
		}
		return err
	})
	if err != nil || deleted != len(planted) {
		t.Fatalf("%d of %d files deleted: %v", deleted, len(planted), err)
	}
	for name, s := range made {
		want := restoredOnce(t, f, s, Choices{})
		got := Restore(t, f, cleaned[name], Choices{Parallelism: parallelismOf(s)})
		compareContent(t, f, s.Options, 0, want, got)
	}
}
