package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// A writing is a command line that writes. In its arguments IN is the snapshot,
// OUT the target, ROOT the folder that holds the copies of the fixtures.
type writing struct {
	name     string
	fixtures []string // copied below ROOT; the first holds IN
	in       string   // below ROOT
	out      string   // name of the target
	args     []string
}

// sp003 is the incremental checkpoint, and where its references point.
const (
	sp003     = "sp-003/000000000000000000000000005b706e/chk-3"
	sp003Base = "file:/spt-fixtures/2.3-counts-rocksdb-incremental"
)

// writings is every command that writes, on snapshots of which it writes files.
var writings = []writing{
	{"convert to spt", []string{"sp-009"}, "sp-009", "out.spt", []string{"convert", "IN", "OUT", "--to", "spt"}},
	{"convert to flink", []string{"sp-012.spt"}, "sp-012.spt", "out", []string{"convert", "IN", "OUT", "--inline-threshold", "100B"}},
	{"convert a checkpoint", []string{"sp-003"}, sp003, "out", []string{"convert", "IN", "OUT"}},
	{"rescale", []string{"sp-002"}, "sp-002", "out", []string{"rescale", "IN", "OUT", "--to", "3", "--inline-threshold", "100B"}},
	{"prune-union", []string{"sp-007"}, "sp-007", "out", []string{"prune-union", "IN", "OUT", "--state", "offsets", "--keep", "distinct", "--inline-threshold", "10B"}},
	{"drop", []string{"sp-009"}, "sp-009", "out", []string{"drop", "IN", "OUT", "--operator", "lists", "--state", "alpha"}},
	{"filter", []string{"sp-009"}, "sp-009", "out", []string{"filter", "IN", "OUT", "--state", "alpha", "--where", "index > 0"}},
	{"patch", []string{"sp-009"}, "sp-009", "out", []string{"patch", "IN", "OUT", "--changes", "ROOT/changes.jsonl"}},
	{"rename", []string{"sp-009"}, "sp-009", "out", []string{"rename", "IN", "OUT", "--uid", "lists=listed"}},
	{"relocate", []string{"sp-003"}, sp003, "out", []string{"relocate", "IN", "OUT", "--map", sp003Base + "=file:ROOT/sp-003"}},
	{"set", []string{"sp-009"}, "sp-009", "out", []string{"set", "IN", "OUT", "--operator", "lists", "--state", "alpha", "--mode", "union"}},
	{"merge", []string{"sp-003", "sp-009"}, sp003, "out", []string{"merge", "IN", "OUT", "--from", "ROOT/sp-009", "--operator", "lists"}},
	{"apply", []string{"sp-009"}, "sp-009", "out", []string{"apply", "IN", "OUT", "--recipe", "ROOT/recipe.yaml"}},
}

const safetyRecipe = `steps:
  - drop: {operator: nameless}
  - filter: {operator: lists, state: alpha, where: index > 0}
  - rename: {uid: {lists: listed}}
`

const safetyChanges = `{"operator": "lists", "state": "largest", "subtask": 0, "index": 0, "value": -1}
`

// safety is a writing that is tried, and the exit codes of the whole matrix.
type safety struct {
	writing
	root  string            // of the copies
	tree  map[string]string // as they were
	codes *exitCodes
}

// exitCodes counts exit codes.
type exitCodes struct {
	mu sync.Mutex
	n  map[int]int
}

func (c *exitCodes) add(code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[code]++
}

func newSafety(t *testing.T, w writing, codes *exitCodes) *safety {
	t.Helper()
	s := &safety{writing: w, root: realTemp(t), codes: codes}
	for _, f := range w.fixtures {
		copyTree(t, "../../../testdata/savepoints/"+f, s.root+"/"+f)
	}
	put(t, s.root+"/recipe.yaml", safetyRecipe)
	put(t, s.root+"/changes.jsonl", safetyChanges)
	s.tree = treeOf(t, s.root)
	return s
}

// line is the command line for a snapshot and a target.
func (s *safety) line(in, out string, more ...string) []string {
	var args []string
	for _, a := range s.args {
		switch a {
		case "IN":
			a = in
		case "OUT":
			a = out
		}
		args = append(args, strings.ReplaceAll(a, "ROOT", s.root))
	}
	return append(args, more...)
}

func (s *safety) from() string { return s.root + "/" + s.in }

// run runs a command line on stores, nil for those of the process, and fails
// unless its exit code is one of those that are expected and the input is as
// it was.
func (s *safety) run(ctx context.Context, t *testing.T, what string, stores storage.Resolver, args []string, want ...int) int {
	t.Helper()
	code, msg := runMain(ctx, stores, args)
	s.codes.add(code)
	if !slices.Contains(want, code) {
		t.Errorf("%s: exit %d, want %v: %q: %s", what, code, want, args, msg)
	}
	if code != exitOK && code != exitFindings && !strings.Contains(msg, "spt: ") {
		t.Errorf("%s: exit %d without a word: %q", what, code, msg)
	}
	if now := treeOf(t, s.root); !maps.Equal(now, s.tree) {
		t.Fatalf("%s: the input changed: %q", what, args)
	}
	return code
}

func runMain(ctx context.Context, stores storage.Resolver, args []string) (code int, stderr string) {
	var out, errs bytes.Buffer
	env := OSEnv()
	env.Stdout, env.Stderr, env.stdoutFile, env.stderrFile = &out, &errs, nil, nil
	env.Getenv = func(string) string { return "" }
	if stores != nil {
		env.Stores = stores
	}
	return Main(ctx, args, env), errs.String()
}

// whole fails unless verify finds nothing in a snapshot.
func whole(t *testing.T, name string) {
	t.Helper()
	if code, msg := runMain(context.Background(), nil, []string{"verify", name}); code != exitOK {
		t.Errorf("verify %s: exit %d: %s", name, code, msg)
	}
}

// only fails unless a folder holds exactly these names.
func only(t *testing.T, what, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: in the folder of OUT: %q, want %q", what, got, want)
	}
}

// TestSafety holds every command that writes to the rules that protect the
// user: the input is never changed, a target that is not ours is refused, and
// whatever fails leaves nothing behind.
func TestSafety(t *testing.T) {
	codes := &exitCodes{n: map[int]int{}}
	t.Run("all", func(t *testing.T) {
		for _, w := range writings {
			t.Run(w.name, func(t *testing.T) {
				t.Parallel() // a store that fails is asked again after a while
				s := newSafety(t, w, codes)
				t.Run("success", s.success)
				t.Run("targets", s.targets)
				t.Run("damage", s.damage)
				t.Run("faults", s.faults)
				t.Run("cancelled", s.cancelled)
			})
		}
	})
	t.Logf("exit codes: %v", codes.n)
	for _, c := range ExitCodes {
		if codes.n[c.Code] == 0 {
			t.Errorf("exit code %d was never reached", c.Code)
		}
	}
}

func (s *safety) success(t *testing.T) {
	dir := realTemp(t)
	s.run(t.Context(), t, "plain", nil, s.line(s.from(), dir+"/"+s.out), exitOK)
	whole(t, dir+"/"+s.out)
	s.run(t.Context(), t, "read back", nil, s.line(s.from(), dir+"/back-"+s.out, "--read-back"), exitOK)
	whole(t, dir+"/back-"+s.out)
	s.run(t.Context(), t, "dry run", nil, s.line(s.from(), dir+"/dry-"+s.out, "--dry-run"), exitOK)
	link := dir + "/link"
	if strings.HasSuffix(s.in, ".spt") {
		link += ".spt"
	}
	symlink(t, s.from(), link)
	s.run(t.Context(), t, "IN is a link", nil, s.line(link, dir+"/linked-"+s.out), exitOK)
	whole(t, dir+"/linked-"+s.out)
	if to, err := os.Readlink(link); err != nil || to != s.from() {
		t.Errorf("the link is to %s, %v", to, err)
	}
	only(t, "success", dir, slices.Sorted(slices.Values([]string{s.out, "back-" + s.out, "linked-" + s.out, filepath.Base(link)}))...)
}

// targets that are refused, whatever is said, and those that --overwrite may take.
func (s *safety) targets(t *testing.T) {
	for name, make := range map[string]func(out string){
		"file":   func(out string) { put(t, out, "mine") },
		"folder": func(out string) { put(t, out+"/notes", "mine") },
		"snapshot with a foreign file": func(out string) {
			copyTree(t, "../../../testdata/savepoints/sp-001", out)
			put(t, out+"/notes/of/mine", "mine")
		},
		"snapshot": func(out string) {
			old := "sp-001"
			if strings.HasSuffix(s.out, ".spt") { // a file cannot replace a directory, nor a directory a file
				old = "sp-012.spt"
			}
			copyTree(t, "../../../testdata/savepoints/"+old, out)
		},
	} {
		dir := realTemp(t)
		out := dir + "/" + s.out
		make(out)
		before := treeOf(t, dir)
		s.run(t.Context(), t, name, nil, s.line(s.from(), out), exitUsage)
		s.run(t.Context(), t, name+", dry", nil, s.line(s.from(), out, "--dry-run"), exitUsage)
		if !maps.Equal(treeOf(t, dir), before) {
			t.Errorf("OUT is a %s, and changed", name)
		}
		if name == "snapshot" {
			s.run(t.Context(), t, name, nil, s.line(s.from(), out, "--overwrite"), exitOK)
			whole(t, out)
			only(t, name, dir, s.out)
			continue
		}
		s.run(t.Context(), t, name+", with --overwrite", nil, s.line(s.from(), out, "--overwrite"), exitUsage)
		if !maps.Equal(treeOf(t, dir), before) {
			t.Errorf("OUT is a %s, and changed with --overwrite", name)
		}
	}
	dir := realTemp(t)
	symlink(t, s.from(), dir+"/to-in")
	symlink(t, filepath.Dir(s.from()), dir+"/above")
	before := treeOf(t, dir)
	for name, out := range map[string]string{
		"IN":                    s.from(),
		"inside IN":             s.from() + "/" + s.out,
		"around IN":             filepath.Dir(s.from()),
		"far around IN":         s.root,
		"a link to IN":          dir + "/to-in",
		"inside, by a link":     dir + "/to-in/" + s.out,
		"a link to the folder":  dir + "/above",
		"IN by a link above it": dir + "/above/" + filepath.Base(s.from()),
		"IN by dots":            s.from() + "/../" + filepath.Base(s.from()),
	} {
		for _, more := range [][]string{nil, {"--overwrite"}, {"--dry-run", "--overwrite"}} {
			s.run(t.Context(), t, "OUT is "+name, nil, s.line(s.from(), out, more...), exitUsage)
		}
	}
	if !maps.Equal(treeOf(t, dir), before) {
		t.Error("a link changed")
	}
	// A part of the path is a file, which once was taken for a missing input.
	put(t, dir+"/file", "mine")
	s.run(t.Context(), t, "OUT is below a file", nil, s.line(s.from(), dir+"/file/"+s.out), exitUsage)
	only(t, "below a file", dir, "above", "file", "to-in")
}

// damage is input that is cut, of an unknown version, or not complete.
func (s *safety) damage(t *testing.T) {
	for name, c := range map[string]struct {
		change func(description string)
		more   []string
		want   int
	}{
		"cut":            {func(d string) { edited(t, d, func(p []byte) []byte { return p[:len(p)-len(p)/3] }) }, nil, exitInput},
		"nothing there":  {func(d string) { remove(t, d) }, nil, exitInput},
		"newer":          {func(d string) { edited(t, d, func(p []byte) []byte { p[7] = 99; return p }) }, nil, exitUnsupported},
		"a file less":    {func(d string) { removeState(t, d) }, nil, exitInput},
		"bare reference": {func(d string) { removeState(t, d) }, []string{"--missing", "keep"}, exitFindings},
	} {
		spt := strings.HasSuffix(s.in, ".spt")
		less := name == "a file less" || name == "bare reference"
		if less && !slices.Contains([]string{"drop", "rename", "set"}, s.args[0]) || spt && name == "newer" {
			continue
		}
		root := realTemp(t)
		copyTree(t, s.root+"/"+s.fixtures[0], root+"/"+s.fixtures[0])
		d := root + "/" + s.in
		if !spt {
			d += "/_metadata"
		}
		c.change(d)
		damaged := treeOf(t, root)
		dir := realTemp(t)
		out := dir + "/" + s.out
		s.run(t.Context(), t, name, nil, s.line(root+"/"+s.in, out, c.more...), c.want)
		if c.want == exitFindings {
			only(t, name, dir, s.out)
		} else {
			only(t, name, dir)
		}
		if !maps.Equal(treeOf(t, root), damaged) {
			t.Errorf("%s: the damaged input changed", name)
		}
	}
}

var errDisk = errors.New("a broken disk")

// faults lets storage fail at chosen moments.
func (s *safety) faults(t *testing.T) {
	counting := storetest.NewCounting(local.New())
	dir := realTemp(t)
	s.run(t.Context(), t, "counted", resolverOf(moving(counting)), s.line(s.from(), dir+"/"+s.out), exitOK)
	_, written := counting.Bytes()
	if written == 0 || counting.Count("commit") == 0 {
		t.Fatalf("nothing was written: %v", counting.Counts())
	}
	tried := map[string]int{}
	for kind, f := range map[string]struct {
		of    int // how many there are
		fault func(n int) storetest.Faults
		want  []int
	}{
		"read": {counting.Count("read"), func(n int) storetest.Faults { return storetest.Faults{Read: n, Err: errDisk} }, []int{exitFailed}},
		"broken": {300, func(n int) storetest.Faults {
			return storetest.Faults{Broken: 1 << 30, BreakAfter: int64(n), Err: errDisk}
		}, []int{exitFailed}},
		// The file is as long as it was, so this is no short input: the store fails.
		"cut short": {1, func(int) storetest.Faults {
			return storetest.Faults{Broken: 1 << 30, BreakAfter: 100, BreakSilently: true}
		}, []int{exitFailed}},
		"create":    {counting.Count("create"), func(n int) storetest.Faults { return storetest.Faults{Create: n, Err: errDisk} }, []int{exitFailed}},
		"commit":    {counting.Count("commit"), func(n int) storetest.Faults { return storetest.Faults{Commit: n, Err: errDisk} }, []int{exitFailed}},
		"write":     {counting.Count("commit"), func(n int) storetest.Faults { return storetest.Faults{Write: n, Err: errDisk} }, []int{exitFailed}},
		"disk full": {int(written) - 1, func(n int) storetest.Faults { return storetest.Faults{Space: int64(n)} }, []int{exitFailed}},
	} {
		for _, n := range moments(f.of, 7) {
			what := fmt.Sprintf("%s %d of %d", kind, n, f.of)
			dir := realTemp(t)
			failing := storetest.NewFailing(local.New(), f.fault(n))
			store := moving(failing)
			if kind == "commit" || kind == "create" { // files are copied by the system too
				store = failing.WithAbilities()
			}
			s.run(t.Context(), t, what, resolverOf(store), s.line(s.from(), dir+"/"+s.out), f.want...)
			only(t, what, dir)
			tried[kind]++
		}
	}
	t.Logf("points of failure: %v", tried)
}

// cancelled ends the context at chosen moments.
func (s *safety) cancelled(t *testing.T) {
	at := func(n int) (code, ticks int, dir string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &ticking{Storage: local.New(), at: n, then: cancel}
		dir = realTemp(t)
		want := []int{exitCancelled}
		if n == 0 {
			want = []int{exitOK}
		}
		code = s.run(ctx, t, fmt.Sprintf("cancelled at %d", n), resolverOf(moving(c)), s.line(s.from(), dir+"/"+s.out), want...)
		return code, c.n, dir
	}
	_, ticks, _ := at(0)
	for _, n := range moments(ticks, 12) {
		_, _, dir := at(n)
		only(t, fmt.Sprintf("cancelled at %d of %d", n, ticks), dir)
	}
}

// moments is some of the numbers from 1 to n, with the ends.
func moments(n, some int) []int {
	var all []int
	for i := range some {
		all = append(all, 1+i*(n-1)/(some-1))
	}
	return slices.Compact(all)
}

// moving is a store that has what a local one can do, but for copying and
// mapping: all bytes go through its readers and writers.
func moving(s storage.Storage) storage.Storage {
	l := local.New()
	return struct {
		storage.Storage
		ability.Canonicalizer
		storage.Namer
		storage.Mover
		storage.Remover
		storage.SpaceReporter
	}{s, l, l, l, l, l}
}

func resolverOf(s storage.Storage) storage.Resolver { return route.New(s) }

// ticking counts what is asked of a store, and does something at one of the
// requests.
type ticking struct {
	storage.Storage
	mu    sync.Mutex
	n, at int
	then  func()
}

func (c *ticking) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.n == c.at {
		c.then()
	}
}

func (c *ticking) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	c.tick()
	return c.Storage.ReadRange(ctx, name, off, n, pin)
}

func (c *ticking) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	c.tick()
	w, err := c.Storage.Create(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return &tickingWriter{w, c}, nil
}

type tickingWriter struct {
	storage.Writer
	c *ticking
}

func (w *tickingWriter) Write(p []byte) (int, error) {
	w.c.tick()
	return w.Writer.Write(p)
}

func (w *tickingWriter) Commit(ctx context.Context) (storage.Info, error) {
	w.c.tick()
	return w.Writer.Commit(ctx)
}

// realTemp is a new folder by its real name.
func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, name, data string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(data), 0o666)); err != nil {
		t.Fatal(err)
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		p, err := os.ReadFile(path)
		put(t, to+strings.TrimPrefix(path, from), string(p))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func edited(t *testing.T, name string, edit func([]byte) []byte) {
	t.Helper()
	p, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	put(t, name, string(edit(p)))
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

// removeState takes a state file of another operator than "lists" from sp-009.
func removeState(t *testing.T, description string) {
	t.Helper()
	remove(t, filepath.Dir(description)+"/1f4fa774-4fda-4a03-854c-de351bb925a5")
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		testenv.Missing(t, "no symbolic link", err)
	}
}

// treeOf is everything under a folder: names, kinds, times, contents.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			p, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(p))
		}
		all[strings.TrimPrefix(path, dir)] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
