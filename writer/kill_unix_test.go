//go:build unix

package writer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/savepoint-tools/spt/internal/fault"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
)

const killEnv = "SPT_TEST_KILL" // "MODE CALL DIR OUT"

// TestKilled kills a process before each of the system calls by which it changes
// the disk: OUT is then the old snapshot or the new one, whole, everything else
// is recognised as a leftover, the input is as it was, and the next run works.
func TestKilled(t *testing.T) {
	if job := os.Getenv(killEnv); job != "" {
		sealAndDie(t, job)
		return
	}
	dir := folderOf(t, nil)
	for name, data := range severalFiles(t) {
		if name != "m" && name != "sp/_metadata" {
			putFile(t, dir+"/a/"+name, data)
		}
	}
	putFile(t, dir+"/a/sp/_metadata", encoded(t, modelOf(handleOf(relative("f0", 300<<10), 0), handleOf(relative("f1", 300<<10), 0), handleOf(relative("f2", 300<<10), 0), handleOf(relative("f3", 300<<10), 0), handleOf(inlined(noise(5, 50<<10)), 0))))
	putFile(t, dir+"/b/sp/_metadata", encoded(t, modelOf(handleOf(relative("0g0", 500<<10), 0), handleOf(relative("1g1", 10), 0), handleOf(inlined("b"), 0))))
	putFile(t, dir+"/b/sp/0g0", noise(8, 500<<10))
	putFile(t, dir+"/b/sp/1g1", noise(9, 10))
	want := map[string][]string{}
	for _, which := range []string{"a", "b"} {
		want[which] = streamsOf(t, openAt(t, dir+"/"+which+"/sp", stores()))
	}
	before := tree(t, dir)
	for _, mode := range []string{"flink", "spt", "flink-jobs", "flink-overwrite", "spt-overwrite", "flink-two-steps-overwrite", "spt-two-steps-overwrite"} {
		figures := map[string]int{}
		for n := 1; ; n++ {
			if n > 500 {
				t.Fatalf("%s never ends", mode)
			}
			k := killed{mode: mode, in: dir + "/a/sp", dir: folderOf(t, nil), want: want, figures: figures}
			k.out = k.dir + "/sp"
			if strings.HasPrefix(mode, "spt") {
				k.out += ".spt"
			}
			if k.overwrites() {
				sealAt(t, dir+"/b/sp", k.out, Options{Stores: stores()})
			}
			done := k.run(t, n)
			if !maps.Equal(before, tree(t, dir)) {
				t.Fatalf("%s: the input changed", mode)
			}
			k.look(t, done)
			k.again(t)
			if t.Failed() {
				t.Fatalf("%s: killed before call %d", mode, n)
			}
			if done {
				figures["calls"] = n - 1
				break
			}
		}
		t.Logf("%s: %v", mode, figures)
		if figures["leftovers"] == 0 || figures["new"] == 0 || strings.HasSuffix(mode, "overwrite") && figures["old"] == 0 {
			t.Errorf("%s: %v", mode, figures)
		}
		// The system can exchange names here, and two steps leave a moment.
		if aside := figures["moved aside"]; (aside > 0) != (mode == "flink-two-steps-overwrite") {
			t.Errorf("%s: no target %d times: %v", mode, aside, figures)
		}
	}
}

// killed is one run that is killed.
type killed struct {
	mode, in, dir, out string
	want               map[string][]string // what the snapshots hold: a is written, b was there
	figures            map[string]int
}

func (k killed) overwrites() bool { return strings.HasSuffix(k.mode, "overwrite") }

// run seals in a process that is killed before its call n. It reports whether
// the process was done before.
func (k killed) run(t *testing.T, n int) (done bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s %s", killEnv, k.mode, n, k.in, k.out))
	said, err := cmd.CombinedOutput()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() == syscall.SIGKILL {
		return false
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", k.mode, err, said)
	}
	return true
}

// sealAndDie is the process.
func sealAndDie(t *testing.T, job string) {
	parts := strings.Fields(job)
	at, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	k := killed{mode: parts[0], in: parts[2], out: parts[3]}
	o := Options{Stores: stores(), Overwrite: k.overwrites(), Jobs: 1}
	if k.mode == "flink-jobs" {
		o.Jobs = 4
	}
	snap := openAt(t, k.in, o.Stores)
	var calls atomic.Int64
	ctx := fault.With(background, func(_ context.Context, call, _ string) error {
		if calls.Add(1) == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // it never returns
			select {}
		}
		if call == "exchange" && strings.Contains(k.mode, "two-steps") {
			return errors.ErrUnsupported
		}
		return nil
	})
	if _, err := Write(ctx, snap.View(), k.out, &o); err != nil {
		t.Fatal(err)
	}
}

// again is the next run. It recovers what the killed one left.
func (k killed) again(t *testing.T) {
	t.Helper()
	_, aside := os.Lstat(k.out)
	report, out := sealAt(t, k.in, k.out, Options{Stores: stores(), Overwrite: true})
	if got := streamsOf(t, out); !slices.Equal(got, k.want["a"]) {
		t.Errorf("%s: the next run wrote something else", k.mode)
	}
	if recovers := report.Plan.Recovers != ""; recovers != (k.overwrites() && aside != nil) || recovers && !report.Plan.Replaces {
		t.Errorf("%s: recovered %q", k.mode, report.Plan.Recovers)
	}
	for name := range namesIn(t, k.dir) {
		if _, aside := tempname.IsAside(name); aside && k.dir+"/"+name == report.Plan.Recovers {
			t.Errorf("%s: %s is still there", k.mode, name)
		}
	}
	// What is left now can go, and nothing else does.
	store := local.New()
	for l, err := range store.Leftovers(background, k.dir, 8) {
		if err != nil || l.InUse || l.Foreign != "" || l.Displaced != "" {
			t.Errorf("%s: %+v, %v", k.mode, l, err)
			continue
		}
		if err := store.RemoveLeftover(background, l); err != nil {
			t.Error(err)
		}
	}
	if left := names(namesIn(t, k.dir)); len(left) != 1 || k.dir+"/"+left[0] != k.out {
		t.Errorf("%s: left over: %v", k.mode, left)
	}
	sound(t, openAt(t, k.out, stores()))
}

// look looks at what is there.
func (k killed) look(t *testing.T, done bool) {
	t.Helper()
	holds := func(name string) string {
		snap := openAt(t, name, stores())
		sound(t, snap)
		got := streamsOf(t, snap)
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
		for which, w := range k.want {
			if slices.Equal(got, w) {
				return which
			}
		}
		t.Errorf("%s: %s holds something else", k.mode, name)
		return ""
	}
	entries, err := reader.List(background, k.dir, reader.ListOptions{Options: reader.Options{Stores: stores()}})
	if err != nil {
		t.Fatal(err)
	}
	found, listed := "", map[string]bool{}
	var leftovers []string
	var displaced []reader.Entry
	for _, e := range entries {
		listed[strings.TrimPrefix(e.Path, k.dir+"/")] = true
		switch {
		case e.State == reader.Complete && e.Path == k.out:
			found = holds(e.Path)
		case e.State == reader.Leftover && tempname.IsOwn(e.Path):
			leftovers = append(leftovers, e.Path)
			if _, err := os.Stat(e.Path + "/" + reader.MetadataName); err == nil {
				holds(e.Path) // nothing that has a _metadata is in part
			}
		case e.State == reader.Displaced:
			displaced = append(displaced, e)
		default:
			t.Errorf("%s: %+v", k.mode, e)
		}
	}
	for name := range namesIn(t, k.dir) {
		if !listed[name] {
			t.Errorf("%s: %s is not listed", k.mode, name)
		}
	}
	switch {
	case found == "a":
		k.figures["new"]++
	case done:
		t.Errorf("%s: it is done, and there is %q", k.mode, found)
	case found == "b" && k.overwrites():
		k.figures["old"]++
	case found == "" && !k.overwrites():
		k.figures["none"]++
	case found == "":
		k.movedAside(t, displaced, holds)
	default:
		t.Errorf("%s: found %q", k.mode, found)
	}
	if len(displaced) > 0 && found != "" {
		t.Errorf("%s: %+v", k.mode, displaced)
	}
	if done && len(leftovers) > 0 {
		t.Errorf("%s: it is done, and leaves %v", k.mode, leftovers)
	}
	k.figures["leftovers"] += len(leftovers)
}

// movedAside makes sure that the old snapshot is whole under another name, and
// that everyone who looks for it is told.
func (k killed) movedAside(t *testing.T, displaced []reader.Entry, holds func(string) string) {
	t.Helper()
	k.figures["moved aside"]++
	if len(displaced) != 1 || holds(displaced[0].Path) != "b" {
		t.Errorf("%s: the old snapshot is lost: %+v", k.mode, displaced)
		return
	}
	at := displaced[0].Path
	back := "mv " + at + " " + k.out
	if !strings.Contains(displaced[0].Problem, back) {
		t.Errorf("%s: the list does not say how to get it back: %s", k.mode, displaced[0].Problem)
	}
	for _, location := range []string{k.out, k.out + "/", k.out + "/" + reader.MetadataName} {
		_, err := reader.Open(background, location, &reader.Options{Stores: stores()})
		if !errors.Is(err, storage.ErrNotExist) || !strings.Contains(err.Error(), at) || !strings.Contains(fmt.Sprint(reader.Remedies(err)), back) {
			t.Errorf("%s: %s: %v; %v", k.mode, location, err, reader.Remedies(err))
		}
	}
	_, err := Prepare(background, openAt(t, k.in, stores()).View(), k.out, &Options{Stores: stores()})
	refusedTarget(t, err, "left the snapshot under "+at)
	var target *TargetError
	if errors.As(err, &target) && !strings.Contains(fmt.Sprint(target.Remedies()), back) {
		t.Errorf("%s: %v", k.mode, target.Remedies())
	}
}

// What a run that goes on has made is in use, whatever its age, and not removed.
func TestRunningIsNoLeftover(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		testenv.NotTested(t, "NOT TESTED: this system cannot mark what is in use: the age protects it")
	}
	dir := folderOf(t, severalFiles(t))
	o := Options{Stores: stores("in", prefixed{local.New(), dir + "/"})}
	snap := openAt(t, dir+"/sp", o.Stores)
	other := local.New() // of another process
	for _, target := range []string{"out", "out.spt"} {
		for _, o.Overwrite = range []bool{false, true} {
			for _, twoSteps := range []bool{false, true} {
				to := folderOf(t, nil)
				if o.Overwrite {
					sealAt(t, dir+"/sp", to+"/"+target, Options{Stores: o.Stores})
				}
				var mu sync.Mutex // files are written at the same time
				inUse, not := 0, 0
				ctx := fault.With(background, func(_ context.Context, call, name string) error {
					mu.Lock()
					defer mu.Unlock()
					for l, err := range other.Leftovers(background, to, 8) {
						if err != nil || !l.InUse {
							not++
							if call == "sync directory" && l.Files == 0 { // a folder just made
								continue
							}
							// A file that is whole and closed, right before its rename.
							if base := strings.TrimPrefix(name, to+"/"); err != nil || base != target || !strings.HasPrefix(call, "rename") && call != "exchange" {
								if call != "remove" || target != "out.spt" { // the old file
									t.Errorf("%s: at %s of %s: %+v, %v", target, call, name, l, err)
								}
							}
							continue
						}
						inUse++
						if err := other.RemoveLeftover(background, l); !errors.Is(err, storage.ErrChanged) {
							t.Errorf("%s: at %s of %s: removed: %v", target, call, name, err)
						}
					}
					if call == "exchange" && twoSteps {
						return errors.ErrUnsupported
					}
					return nil
				})
				if _, err := Write(ctx, snap.View(), to+"/"+target, &o); err != nil {
					t.Fatal(err)
				}
				sound(t, openAt(t, to+"/"+target, o.Stores))
				t.Logf("%s, overwrite %v, two steps %v: in use %d times, just made or about to be renamed %d times", target, o.Overwrite, twoSteps, inUse, not)
				if inUse == 0 {
					t.Errorf("%s: nothing was in use", target)
				}
			}
		}
	}
}
