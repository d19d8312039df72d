//go:build unix

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/savepoint-tools/spt/internal/fault"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/tempname"
)

const killEnv = "SPT_TEST_KILLED_COMMAND" // a killing, as JSON

// killing is a command line, and before which of the system calls by which it
// changes the disk it ends, and by which signal.
type killing struct {
	Args   []string
	Call   int64
	Signal syscall.Signal
}

// killed is every command that writes, on a snapshot with state in files.
var killed = []writing{
	{"convert to spt", nil, "in", "out.spt", []string{"convert", "IN", "OUT"}},
	{"convert to flink", nil, "in.spt", "out", []string{"convert", "IN", "OUT", "--inline-threshold", "1KiB"}},
	{"rescale", nil, "in", "out", []string{"rescale", "IN", "OUT", "--to", "3", "--inline-threshold", "1KiB"}},
	{"prune-union", nil, "in", "out", []string{"prune-union", "IN", "OUT", "--state", "elements", "--keep", "distinct", "--inline-threshold", "1KiB"}},
	{"drop", nil, "in", "out", []string{"drop", "IN", "OUT", "--operator", "lists"}},
	{"filter", nil, "in", "out", []string{"filter", "IN", "OUT", "--state", "elements", "--where", "index > 0", "--inline-threshold", "1KiB"}},
	{"patch", nil, "in", "out", []string{"patch", "IN", "OUT", "--changes", "ROOT/changes.jsonl", "--inline-threshold", "1KiB"}},
	{"rename", nil, "in", "out", []string{"rename", "IN", "OUT", "--operator", "union", "--state-name", "elements=items"}},
	{"relocate", nil, "absolute", "out", []string{"relocate", "IN", "OUT", "--map", "file:ROOT/sp-003=file:ROOT/moved"}},
	{"set", nil, "in", "out", []string{"set", "IN", "OUT", "--operator", "union", "--state", "elements", "--mode", "list"}},
	{"merge", nil, "in", "out", []string{"merge", "IN", "OUT", "--from", "ROOT/" + sp003, "--operator", "counts"}},
	{"apply", nil, "in", "out", []string{"apply", "IN", "OUT", "--recipe", "ROOT/recipe.yaml"}},
}

// makeKilled makes what the killed commands read: a snapshot with state in files,
// the same as an .spt file, and one with references to other folders too.
func makeKilled(t *testing.T, root string) {
	t.Helper()
	var big bytes.Buffer
	if err := sptest.WriteUnion(&big, sptest.UnionOptions{Subtasks: 4, Elements: 500, ElementSize: 100, Copies: true, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	put(t, root+"/big/_metadata", big.String())
	const fixtures = "../../../testdata/savepoints/"
	copyTree(t, fixtures+"sp-003", root+"/sp-003")
	copyTree(t, fixtures+"sp-003", root+"/moved")
	put(t, root+"/changes.jsonl", safetyChanges)
	put(t, root+"/recipe.yaml", "steps:\n  - filter: {operator: lists, state: alpha, where: index > 0}\n  - rename: {uid: {lists: listed}}\n")
	for _, args := range [][]string{
		{"merge", root + "/big", root + "/in", "--from", fixtures + "sp-009", "--operator", "lists", "--inline-threshold", "1KiB"},
		{"merge", root + "/in", root + "/absolute", "--from", root + "/" + sp003, "--operator", "counts", "--keep-references"},
		{"convert", root + "/in", root + "/in.spt"},
	} {
		if code, msg := runMain(t.Context(), nil, args); code != exitOK {
			t.Fatalf("%q: exit %d: %s", args, code, msg)
		}
	}
}

// TestKilledCommands kills each command that writes before each of the system
// calls by which it changes the disk: OUT is then absent or whole, ls knows
// what is left for what it is, and the input is as it was.
func TestKilledCommands(t *testing.T) {
	if job := os.Getenv(killEnv); job != "" {
		os.Exit(runAndDie(t, job))
	}
	root := realTemp(t)
	makeKilled(t, root)
	tree := treeOf(t, root)
	for i, w := range killed {
		s := &safety{writing: w, root: root}
		for _, overwrite := range []bool{false, true} {
			figures := map[string]int{}
			step := 1
			if i > 1 { // there is one way to write: the two of convert go through all of it
				step = 5
			}
			for n := 1; ; n += step {
				if n > 1000 {
					t.Fatalf("%s never ends", w.name)
				}
				dir := realTemp(t)
				var more []string
				if overwrite {
					old := "sp-001"
					if strings.HasSuffix(w.out, ".spt") {
						old = "sp-012.spt"
					}
					copyTree(t, "../../../testdata/savepoints/"+old, dir+"/"+w.out)
					more = []string{"--overwrite"}
				}
				died := s.killOne(t, dir, killing{s.line(s.from(), dir+"/"+s.out, more...), int64(n), syscall.SIGKILL})
				figures["runs"]++
				s.afterKill(t, dir, overwrite, figures)
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(treeOf(t, root), tree) {
					t.Fatalf("%s: the input changed", w.name)
				}
				if t.Failed() {
					t.Fatalf("%s: killed before call %d, overwrite %v", w.name, n, overwrite)
				}
				if !died {
					break
				}
			}
			t.Logf("%s, overwrite %v: %v", w.name, overwrite, figures)
			if figures["with leftovers"] == 0 || figures["OUT whole"] == 0 {
				t.Errorf("%s: %v", w.name, figures)
			}
		}
	}
}

// runAndDie is the process that is killed.
func runAndDie(t *testing.T, job string) int {
	var k killing
	if err := json.Unmarshal([]byte(job), &k); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	ctx := fault.With(context.Background(), func(context.Context, string, string) error {
		if calls.Add(1) == k.Call {
			syscall.Kill(os.Getpid(), k.Signal) //nolint:errcheck // it never returns
			select {}
		}
		return nil
	})
	return Main(ctx, k.Args, OSEnv())
}

// killOne runs the command in a process of its own and reports whether that was
// killed before it was done.
func (s *safety) killOne(t *testing.T, dir string, k killing) bool {
	t.Helper()
	job, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledCommands$")
	cmd.Env = append(os.Environ(), killEnv+"="+string(job))
	said, err := cmd.CombinedOutput()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() == k.Signal {
		return true
	}
	if err != nil {
		t.Fatalf("%s: it ended by itself: %v: %s", s.name, err, said)
	}
	return false
}

// afterKill looks at what a kill left in the folder of OUT. Where OUT was to
// replace a snapshot, that or the new one is there.
func (s *safety) afterKill(t *testing.T, dir string, overwrite bool, figures map[string]int) {
	t.Helper()
	there, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(there) == 0 && !overwrite {
		figures["nothing there"]++
		return
	}
	var out, errs bytes.Buffer
	env := OSEnv()
	env.Stdout, env.Stderr, env.Getenv = &out, &errs, func(string) string { return "" }
	code := Main(t.Context(), []string{"ls", dir, "-o", "json"}, env)
	var listed []struct{ Path, State string }
	if err := json.Unmarshal(out.Bytes(), &listed); err != nil {
		t.Fatalf("%s: ls: exit %d, %v: %s", s.name, code, err, errs.String())
	}
	states := map[string]string{}
	for _, l := range listed {
		states[filepath.Base(l.Path)] = l.State
	}
	present, left := false, false
	for _, e := range there {
		switch state := states[e.Name()]; {
		case e.Name() == s.out:
			present = true
			figures["OUT whole"]++
			if state != "complete" {
				t.Errorf("%s: ls says of OUT: %q", s.name, state)
			}
			whole(t, dir+"/"+s.out)
		case tempname.Is(e.Name()):
			left = true
			if state != "leftover" {
				t.Errorf("%s: ls says of the leftover %s: %q", s.name, e.Name(), state)
			}
		default:
			t.Errorf("%s: %s was left", s.name, e.Name())
		}
	}
	if overwrite && !present { // writer tests the systems that cannot exchange two names
		t.Errorf("%s: OUT is gone", s.name)
	}
	if left {
		figures["with leftovers"]++
	}
}
