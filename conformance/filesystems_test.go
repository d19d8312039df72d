package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/hdfs"
	"github.com/savepoint-tools/spt/transform"
)

// servedFileSystem is a file system for Flink and spt, and the server behind it.
type servedFileSystem struct {
	FileSystem
	base string   // the URI of an empty directory of it
	env  []string // variables of the environment by which spt reaches it, NAME=value
	// move renames a directory by means other than spt. nil: it cannot be renamed.
	move func(t *testing.T, from, to string)
}

// fileSystems are those that Flink keeps snapshots on and spt edits them on, and the
// versions that judge them.
var fileSystems = []struct {
	name     string
	versions []Version
	start    func(t *testing.T, v Version) servedFileSystem
}{
	{"hdfs", []Version{V1_20, V2_3}, startHDFS},
}

func startHDFS(t *testing.T, _ Version) servedFileSystem {
	h := servertest.StartHDFS(t, t.TempDir(), servertest.HDFSOptions{})
	env := "HADOOP_CONF_DIR=" + h.Conf
	return servedFileSystem{
		FileSystem: FileSystem{
			Name: "hdfs",
			Jars: []string{"org.apache.hadoop:hadoop-client-api:3.4.2", "org.apache.hadoop:hadoop-client-runtime:3.4.2"},
			Env:  []string{env},
			// Without a key Flink's file systems are not told of its configuration.
			Config: map[string]string{"flink.hadoop.dfs.replication": "1"},
		},
		base: h.URI + "/flink",
		env:  []string{env},
		move: func(t *testing.T, from, to string) {
			t.Helper()
			s, err := hdfs.New(hdfs.Options{Getenv: func(name string) string {
				value, _ := strings.CutPrefix(env, name+"=")
				if value == env {
					return ""
				}
				return value
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(storage.Mover(s).Move(context.Background(), from, to), s.Close()); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// onFileSystems are the kinds of snapshots that Flink writes there.
var onFileSystems = []struct {
	name    string
	options Options
	rescale int // 0: not
}{
	{"savepoint", Options{Shape: "operator", Parallelism: 4, States: 7, InlineThreshold: Bytes(0), Seed: 2}, 3},
	{"native", Options{Shape: "keyed", Backend: "rocksdb", Format: "native", KeyType: "pojo", Elements: 8, InlineThreshold: Bytes(0)}, 3},
	{"incremental", Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 3, InlineThreshold: Bytes(0)}, 4},
	{"union", Options{Shape: "union-inflated", Elements: 10, Restores: 2, Seed: 8, InlineThreshold: Bytes(0)}, 0},
}

// Flink writes snapshots to a file system; spt reads them there, copies them within it,
// to local files and back, and edits them; Flink restores each result from where it is.
func TestFileSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("Flink does not run with -short")
	}
	spt := buildSpt(t)
	for _, c := range fileSystems {
		for _, version := range c.versions {
			t.Run(c.name+"/"+string(version), func(t *testing.T) {
				j := &fileSystemJudge{servedFileSystem: c.start(t, version), spt: spt}
				var err error
				if j.f, err = StartWith(version, j.FileSystem); errors.Is(err, ErrUnavailable) {
					testenv.Missing(t, "Flink", err)
				} else if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("Flink %s logged:\n%s", version, j.f.logSince(0))
					}
					if err := j.f.Close(); err != nil {
						t.Error(err)
					}
				})
				for _, x := range onFileSystems {
					t.Run(x.name, func(t *testing.T) { j.judge(t, x.name, x.options, x.rescale) })
				}
			})
		}
	}
}

// buildSpt builds the program.
func buildSpt(t *testing.T) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "spt")
	command := exec.Command("go", "build", "-o", binary, "./cmd/spt")
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return binary
}

type fileSystemJudge struct {
	servedFileSystem
	f   *Flink
	spt string // the program
}

// run runs spt, which must succeed, and returns what it prints.
func (j *fileSystemJudge) run(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.Command(j.spt, args...)
	command.Env = append(os.Environ(), j.env...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		t.Fatalf("spt %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

func (j *fileSystemJudge) judge(t *testing.T, name string, options Options, rescale int) {
	made, err := j.f.MakeAt(options, j.base+"/made/"+name, t.TempDir())
	if err != nil {
		t.Fatalf("make: %s", explain(err))
	}
	at := made.Location()
	truth := mustTruth(t, made)
	held := func(what, location string, parallelism int) {
		t.Helper()
		restored, err := j.f.RestoreAt(made, location, Choices{Parallelism: parallelism})
		if err != nil {
			t.Fatalf("%s: Flink does not restore %s: %s", what, location, explain(err))
		}
		for _, wrong := range CheckRedistributed(truth, restored) {
			t.Errorf("%s, restored from %s: %s", what, location, wrong)
		}
	}
	held("what Flink wrote", at, 0)
	j.run(t, "inspect", at)
	if said := j.run(t, "verify", at); !strings.Contains(said, "sound") || strings.Contains(said, "not checked") {
		t.Errorf("verify: %s", said)
	}
	copied, local, back := j.base+"/copied/"+name, filepath.Join(t.TempDir(), name), j.base+"/back/"+name
	j.run(t, "convert", at, copied)
	held("a copy", copied, 0)
	j.run(t, "convert", at, local)
	held("a local copy", "file:"+local, 0)
	j.run(t, "convert", local, back)
	held("a copy that was local", back, 0)
	j.run(t, "diff", copied, back)
	sealed := j.base + "/sealed/" + name + ".spt"
	j.run(t, "convert", at, sealed)
	j.run(t, "convert", sealed, j.base+"/unsealed/"+name)
	held("a copy that was an .spt file", j.base+"/unsealed/"+name, 0)
	j.run(t, "relocate", back, j.base+"/absolute/"+name, "--absolute", back)
	held("references made absolute", j.base+"/absolute/"+name, 0)
	if rescale > 0 {
		rescaled := j.base + "/rescaled/" + name
		j.run(t, "rescale", at, rescaled, "--to", fmt.Sprint(rescale))
		held("a rescaled copy", rescaled, rescale)
	} else {
		j.pruned(t, made, truth)
	}
	if options.Checkpoint && j.move != nil { // the files are where the references do not say
		moved := j.base + "/moved-" + name
		j.move(t, made.At, moved)
		if _, err := j.f.RestoreAt(made, moved+strings.TrimPrefix(at, made.At), Choices{}); err == nil {
			t.Error("Flink restores a checkpoint whose files were moved")
		}
		j.run(t, "relocate", moved+strings.TrimPrefix(at, made.At), j.base+"/relocated/"+name, "--map", made.At+"="+moved)
		held("relocated references", j.base+"/relocated/"+name, 0)
	}
}

// pruned prunes union state, and compares what every subtask is given of it.
func (j *fileSystemJudge) pruned(t *testing.T, made Snapshot, truth Content) {
	t.Helper()
	out := j.base + "/pruned"
	j.run(t, "prune-union", made.Location(), out, "--keep", "distinct")
	union := operatorNamed(t, truth, "union")
	var lists [][]string
	for _, sub := range union.Subtasks {
		lists = append(lists, sub.OperatorState["offsets"].Raw)
	}
	kept := slices.Concat(keptOf(t, lists, transform.KeepDistinct)...)
	if len(kept) == 0 || len(kept) >= len(slices.Concat(lists...)) {
		t.Fatalf("%d of %d elements are kept: nothing is shown", len(kept), len(slices.Concat(lists...)))
	}
	restored, err := j.f.RestoreAt(made, out, Choices{})
	if err != nil {
		t.Fatal(explain(err))
	}
	for _, sub := range operatorNamed(t, restored, "union").Subtasks {
		if !sameBag(kept, sub.OperatorState["offsets"].Raw) {
			t.Errorf("subtask %d is given %d elements, expected the %d that are kept", sub.Index, len(sub.OperatorState["offsets"].Raw), len(kept))
		}
	}
}
