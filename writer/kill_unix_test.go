//go:build unix

package writer

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

const killEnv = "SPT_TEST_SEAL_FOREVER" // "MODE DIR"

// TestKilled kills a process that seals, at random moments: what then stands
// under a target's name is whole, everything else is known for a leftover, and
// the input is as it was.
func TestKilled(t *testing.T) {
	if job := os.Getenv(killEnv); job != "" {
		sealForever(t, job)
		return
	}
	times := 18
	if testing.Short() {
		times = 4
	}
	in := severalFiles(t)
	delete(in, "m")
	dir := folderOf(t, nil)
	in["sp/_metadata"] = encoded(t, modelOf(handleOf(relative("f0", 300<<10), 0), handleOf(relative("f1", 300<<10), 0), handleOf(relative("f2", 300<<10), 0), handleOf(relative("f3", 300<<10), 0), handleOf(inlined(noise(5, 50<<10)), 0)))
	for name, data := range in {
		putFile(t, dir+"/in/a/"+name, data)
	}
	putFile(t, dir+"/in/b/sp/_metadata", encoded(t, modelOf(handleOf(relative("g0", 500<<10), 0), handleOf(inlined("b"), 0))))
	putFile(t, dir+"/in/b/sp/g0", noise(8, 500<<10))
	before := tree(t, dir+"/in")
	want := map[int64][]string{} // by the number of subtasks: what a snapshot holds
	for _, which := range []string{"a", "b"} {
		snap := openAt(t, dir+"/in/"+which+"/sp", stores())
		want[int64(len(snap.Operators[0].Subtasks))] = streamsOf(t, snap)
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	figures := map[string]int{}
	for _, mode := range []string{"flink", "spt", "flink-overwrite", "spt-overwrite"} {
		for i := range times {
			out := fmt.Sprintf("%s/%s-%d", dir, mode, i)
			if err := os.Mkdir(out, 0o777); err != nil {
				t.Fatal(err)
			}
			killOne(t, mode+" "+dir+" "+out, time.Duration(rng.IntN(30_000))*time.Microsecond)
			figures["kills"]++
			afterKill(t, mode, out, want, figures)
			if !maps.Equal(before, tree(t, dir+"/in")) {
				t.Fatalf("%s: the input changed", mode)
			}
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%v", figures)
	if figures["leftovers"] == 0 || figures["whole"] == 0 {
		t.Error("the moments were not well chosen")
	}
}

// killOne starts a process that seals without end and kills it a while after
// it began.
func killOne(t *testing.T, job string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), killEnv+"="+job)
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "go\n" {
		t.Errorf("the process said %q, %v", line, err)
	}
	timer := time.NewTimer(after)
	<-timer.C
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	cmd.Wait() //nolint:errcheck // it was killed
	if code := cmd.ProcessState.ExitCode(); code != -1 {
		t.Errorf("it ended by itself with %d", code)
	}
}

func sealForever(t *testing.T, job string) {
	parts := strings.Fields(job)
	mode, dir, out := parts[0], parts[1], parts[2]
	o := Options{Stores: stores(), Overwrite: strings.HasSuffix(mode, "overwrite")}
	a, b := openAt(t, dir+"/in/a/sp", o.Stores), openAt(t, dir+"/in/b/sp", o.Stores)
	fmt.Println("go")
	for i := 0; ; i++ {
		snap, target := a, out+"/sp"
		if i%2 == 1 {
			snap = b
		}
		if !o.Overwrite {
			target = fmt.Sprint(target, i)
		}
		if strings.HasPrefix(mode, "spt") {
			target += ".spt"
		}
		if _, err := Seal(background, snap, target, o); err != nil {
			t.Fatal(err)
		}
	}
}

func afterKill(t *testing.T, mode, out string, want map[int64][]string, figures map[string]int) {
	t.Helper()
	whole := func(name string) {
		snap := openAt(t, name, stores())
		if n, err := snap.Verify(background, reader.VerifyOptions{Read: true, DescriptionOnly: true}, func(f reader.Finding) { t.Errorf("%s: %+v", mode, f) }); err != nil || n.Streams == 0 {
			t.Errorf("%s: %+v, %v", mode, n, err)
		}
		got := streamsOf(t, snap)
		if w := want[int64(len(snap.Operators[0].Subtasks))]; strings.Join(got, "\n") != strings.Join(w, "\n") {
			t.Errorf("%s: %s holds something else", mode, name)
		}
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
		figures["whole"]++
	}
	entries, err := reader.List(background, out, reader.ListOptions{Options: reader.Options{Stores: stores()}})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	complete := 0
	var leftovers []string
	for _, e := range entries {
		listed[strings.TrimPrefix(e.Path, out+"/")] = true
		switch e.State {
		case reader.Complete:
			complete++
			whole(e.Path)
		case reader.Leftover:
			leftovers = append(leftovers, e.Path)
		default:
			t.Errorf("%s: %+v", mode, e)
		}
	}
	figures["leftovers"] += len(leftovers)
	for name := range namesIn(t, out) {
		if !listed[name] {
			t.Errorf("%s: %s is not listed", mode, name)
		}
		if strings.HasPrefix(name, "sp") == storage.IsTemp(name) {
			t.Errorf("%s: %s", mode, name)
		}
	}
	if complete > 0 || !strings.HasSuffix(mode, "overwrite") {
		return
	}
	// Nothing stands under the name: either the first write was not done, or
	// the old snapshot was moved aside and the new one did not yet come; then
	// it is whole under its temporary name.
	for _, name := range leftovers {
		if _, err := os.Stat(name + "/" + reader.MetadataName); err == nil {
			whole(name)
			figures["moved aside"]++
			return
		}
	}
	figures["before the first"]++
}
