package conformance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// restores counts what Flink restored in this process.
var restores tally

type tally struct {
	mu         sync.Mutex
	perVersion map[Version]int
}

func (t *tally) count(v Version) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.perVersion == nil {
		t.perVersion = map[Version]int{}
	}
	t.perVersion[v]++
}

// Judged returns the number of restores by each version in this process.
func Judged() map[Version]int {
	restores.mu.Lock()
	defer restores.mu.Unlock()
	counts := map[Version]int{}
	for v, n := range restores.perVersion {
		counts[v] = n
	}
	return counts
}

var running struct {
	mu     sync.Mutex
	flinks map[string]*Flink // by version and file system
}

// Use returns the Flink of a version, one per process. It skips the test, with
// a line on standard error, without a JDK or Maven (with CI=true it fails), and with
// -short. If the test fails, it shows what Flink logged during it. Call
// CloseAll from TestMain.
func Use(t testing.TB, version Version) *Flink {
	t.Helper()
	return use(t, version, string(version), func() (*Flink, error) { return Start(version) })
}

// UseWith is Use with a file system: one JVM for each name and configuration, which has
// the address of the server.
func UseWith(t testing.TB, version Version, system FileSystem) *Flink {
	t.Helper()
	return use(t, version, fmt.Sprint(version, system.Name, system.Configuration), func() (*Flink, error) { return StartWith(version, system) })
}

// needsFlink skips a test with -short, with a line on standard error. A test calls it
// before it starts a server that only Flink uses.
func needsFlink(t testing.TB) {
	t.Helper()
	testenv.Long(t, "runs Flink")
}

func use(t testing.TB, version Version, key string, start func() (*Flink, error)) *Flink {
	t.Helper()
	needsFlink(t)
	running.mu.Lock()
	defer running.mu.Unlock()
	f := running.flinks[key]
	if f == nil {
		var err error
		f, err = start()
		switch {
		case errors.Is(err, ErrUnavailable):
			testenv.Missing(t, "conformance with Flink", err)
		case err != nil:
			t.Fatal(err)
		}
		if running.flinks == nil {
			running.flinks = map[string]*Flink{}
		}
		running.flinks[key] = f
	}
	from := f.logSize()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Flink %s logged:\n%s", version, f.logSince(from))
		}
	})
	return f
}

// CloseAll ends all JVMs that Use started.
func CloseAll() error {
	running.mu.Lock()
	defer running.mu.Unlock()
	var errs []error
	for _, f := range running.flinks {
		errs = append(errs, f.Close())
	}
	running.flinks = nil
	return errors.Join(append(errs, RemoveBase())...)
}

// Make makes a snapshot in a directory of the test.
func Make(t testing.TB, f *Flink, options Options) Snapshot {
	t.Helper()
	s, err := f.Make(options, t.TempDir())
	if err != nil {
		t.Fatalf("make %+v: %s", options, explain(err))
	}
	return s
}

// Restore restores, and fails the test if Flink refuses.
func Restore(t testing.TB, f *Flink, s Snapshot, choices Choices) Content {
	t.Helper()
	content, err := f.Restore(s, choices)
	if err != nil {
		t.Fatalf("restore %s with %+v on Flink %s: %s", s.Dir, choices, f.Version(), explain(err))
	}
	return content
}

// JudgeEqual restores a snapshot and a rewritten copy of it at a parallelism (0
// means the parallelism of the job), and fails the test unless every subtask got
// the same content in the same order.
func JudgeEqual(t testing.TB, f *Flink, original, rewritten Snapshot, parallelism int) {
	t.Helper()
	want := Restore(t, f, original, Choices{Parallelism: parallelism})
	got := Restore(t, f, rewritten, Choices{Parallelism: parallelism})
	compareContent(t, f, original.Options, parallelism, want, got)
}

// compareContent fails the test unless two restores assigned the same content.
func compareContent(t testing.TB, f *Flink, options Options, parallelism int, want, got Content) {
	t.Helper()
	if options.Unaligned || options.Changelog {
		want, got = Loosened(want), Loosened(got)
	}
	if diff := Diff(want, got); diff != "" {
		t.Errorf("restored with parallelism %d on Flink %s, the rewritten snapshot differs (-original +rewritten):\n%s",
			parallelism, f.Version(), diff)
	}
}

// JudgeRefused fails the test unless Flink refuses the restore with a root
// cause that contains the text.
func JudgeRefused(t testing.TB, f *Flink, s Snapshot, choices Choices, text string) {
	t.Helper()
	_, err := f.Restore(s, choices)
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Cause, text) {
		t.Errorf("restore with %+v: got %v, want a refusal with %q", choices, err, text)
	}
}

func explain(err error) string {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return strings.Join(refused.Chain, "\n  caused by ")
	}
	return err.Error()
}
