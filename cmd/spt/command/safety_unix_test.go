//go:build unix

package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/storage"
)

const killEnv = "SPT_TEST_COMMAND_LINE" // a command line, as JSON

// killed is every command that writes, on a snapshot large enough to be met in
// the middle.
var killed = []writing{
	{"convert to spt", nil, "in", "out.spt", []string{"convert", "IN", "OUT"}},
	{"convert to flink", nil, "in.spt", "out", []string{"convert", "IN", "OUT", "--inline-threshold", "1KiB"}},
	{"rescale", nil, "in", "out", []string{"rescale", "IN", "OUT", "--to", "3", "--inline-threshold", "1KiB"}},
	{"prune-union", nil, "in", "out", []string{"prune-union", "IN", "OUT", "--state", "elements", "--keep", "distinct", "--inline-threshold", "1KiB"}},
	{"drop", nil, "in", "out", []string{"drop", "IN", "OUT", "--operator", "lists"}},
	{"filter", nil, "in", "out", []string{"filter", "IN", "OUT", "--state", "elements", "--where", "index > 0", "--inline-threshold", "1KiB"}},
	{"rename", nil, "in", "out", []string{"rename", "IN", "OUT", "--operator", "union", "--state-name", "elements=items"}},
	{"relocate", nil, "absolute", "out", []string{"relocate", "IN", "OUT", "--map", "file:ROOT/sp-003=file:ROOT/moved"}},
	{"set", nil, "in", "out", []string{"set", "IN", "OUT", "--operator", "union", "--state", "elements", "--mode", "list"}},
	{"merge", nil, "in", "out", []string{"merge", "IN", "OUT", "--from", "ROOT/" + sp003, "--operator", "counts"}},
	{"apply", nil, "in", "out", []string{"apply", "IN", "OUT", "--recipe", "ROOT/recipe.yaml"}},
}

// makeLarge makes what the killed commands read: a snapshot with megabytes in
// files, the same as an .spt file, and one with references to other folders too.
func makeLarge(t *testing.T, root string) {
	t.Helper()
	var big bytes.Buffer
	if err := sptest.WriteUnion(&big, sptest.UnionOptions{Subtasks: 4, Elements: 75_000, ElementSize: 100, Copies: true, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	put(t, root+"/big/_metadata", big.String())
	const fixtures = "../../../testdata/savepoints/"
	copyTree(t, fixtures+"sp-003", root+"/sp-003")
	copyTree(t, fixtures+"sp-003", root+"/moved")
	put(t, root+"/recipe.yaml", safetyRecipe)
	for _, args := range [][]string{
		{"merge", root + "/big", root + "/in", "--from", fixtures + "sp-009", "--operator", "*", "--inline-threshold", "1KiB"},
		{"merge", root + "/in", root + "/absolute", "--from", root + "/" + sp003, "--operator", "counts", "--keep-references"},
		{"convert", root + "/in", root + "/in.spt"},
	} {
		if code, msg := runMain(t.Context(), nil, args); code != exitOK {
			t.Fatalf("%q: exit %d: %s", args, code, msg)
		}
	}
}

// TestKilledCommands kills each command that writes, at moments over all of its
// run: OUT is then absent or whole, ls knows what is left for what it is, and
// the input is as it was.
func TestKilledCommands(t *testing.T) {
	if line := os.Getenv(killEnv); line != "" {
		var args []string
		if err := json.Unmarshal([]byte(line), &args); err != nil {
			t.Fatal(err)
		}
		fmt.Println("go")
		os.Exit(Main(context.Background(), args, OSEnv()))
	}
	times := 8
	if testing.Short() {
		times = 2
	}
	root := realTemp(t)
	makeLarge(t, root)
	tree := treeOf(t, root)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	figures := map[string]int{}
	for _, w := range killed {
		s := &safety{writing: w, root: root}
		dir := realTemp(t)
		start := time.Now()
		if s.killOne(t, dir, time.Hour) {
			t.Fatalf("%s: it was killed, and should not have been", w.name)
		}
		whole(t, dir+"/"+w.out)
		took := time.Since(start)
		kills := 0
		for i := 0; kills < times && i < 4*times; i++ {
			overwrite := kills%4 == 3
			// Spread over the run, which is shorter than was measured with its
			// start and the look at the result.
			at := time.Duration((float64(kills) + rng.Float64()) / float64(times) * float64(took) * 0.7)
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
			if !s.killOne(t, dir, at, more...) {
				figures["done before"]++
				took = took * 9 / 10
				whole(t, dir+"/"+w.out)
			} else {
				kills++
				figures["kills"]++
				s.afterKill(t, dir, overwrite, figures)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		if kills < times {
			t.Errorf("%s: only %d kills", w.name, kills)
		}
		if !maps.Equal(treeOf(t, root), tree) {
			t.Fatalf("%s: the input changed", w.name)
		}
	}
	t.Logf("%v", figures)
	if figures["with leftovers"] < figures["kills"]/6 {
		t.Error("the moments were not well chosen")
	}
}

// killOne runs the command in a process of its own, kills it a while after it
// began, and says whether it was still running.
func (s *safety) killOne(t *testing.T, dir string, after time.Duration, more ...string) bool {
	t.Helper()
	line, err := json.Marshal(s.line(s.from(), dir+"/"+s.out, more...))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledCommands$")
	cmd.Env = append(os.Environ(), killEnv+"="+string(line))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(stdout)
	if line, err := r.ReadString('\n'); err != nil || line != "go\n" {
		t.Fatalf("the process said %q, %v: %s", line, err, errs.String())
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	defer timer.Stop()
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
	cmd.Wait() //nolint:errcheck // its code is looked at
	switch code := cmd.ProcessState.ExitCode(); code {
	case -1:
		return true
	case exitOK:
		return false
	default:
		t.Fatalf("%s: it ended by itself with %d: %s", s.name, code, errs.String())
		return false
	}
}

// afterKill looks at what a kill left in the folder of OUT. Where OUT was to
// replace a snapshot, that or the new one is there, or it was moved aside.
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
	present, left, aside := false, false, ""
	for _, e := range there {
		switch state := states[e.Name()]; {
		case e.Name() == s.out:
			present = true
			figures["OUT whole"]++
			if state != "complete" {
				t.Errorf("%s: ls says of OUT: %q", s.name, state)
			}
			whole(t, dir+"/"+s.out)
		case storage.IsTemp(e.Name()):
			left = true
			if _, err := os.Stat(dir + "/" + e.Name() + "/_metadata"); err == nil {
				aside = dir + "/" + e.Name()
			}
			if state != "leftover" {
				t.Errorf("%s: ls says of the leftover %s: %q", s.name, e.Name(), state)
			}
		default:
			t.Errorf("%s: %s was left", s.name, e.Name())
		}
	}
	if overwrite && !present {
		figures["OUT moved aside"]++
		whole(t, aside)
	}
	if left {
		figures["with leftovers"]++
	}
}
