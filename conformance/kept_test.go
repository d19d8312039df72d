package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
)

// kept is what several tests look at and Flink need do only once: snapshots
// that were made, and what was restored from them.
var kept struct {
	mu       sync.Mutex
	dir      string
	made     map[string]*once[Snapshot]
	restored map[string]*once[Content]
}

// once is a value that the first to ask for makes.
type once[T any] struct {
	sync.Once
	value T
	err   error
}

func (o *once[T]) get(f func() (T, error)) (T, error) {
	o.Do(func() { o.value, o.err = f() })
	return o.value, o.err
}

func entry[T any](m *map[string]*once[T], key ...any) *once[T] {
	text, err := json.Marshal(key)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if *m == nil {
		*m = map[string]*once[T]{}
	}
	o := (*m)[string(text)]
	if o == nil {
		o = &once[T]{}
		(*m)[string(text)] = o
	}
	return o
}

// keptDir is a new folder that lives until the process ends.
func keptDir() (string, error) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.dir == "" {
		dir, err := os.MkdirTemp("", "spt-conformance-")
		if err != nil {
			return "", err
		}
		kept.dir = dir
	}
	return os.MkdirTemp(kept.dir, "made-")
}

// removeKept removes all that was kept.
func removeKept() error {
	if kept.dir == "" {
		return nil
	}
	return os.RemoveAll(kept.dir)
}

// madeOnce makes a snapshot, unless a test of this process made it already.
func madeOnce(t testing.TB, f *Flink, options Options) Snapshot {
	t.Helper()
	s, err := entry(&kept.made, f.Version(), options).get(func() (Snapshot, error) {
		dir, err := keptDir()
		if err != nil {
			return Snapshot{}, err
		}
		return f.Make(options, dir)
	})
	if err != nil {
		t.Fatalf("make %+v: %s", options, explain(err))
	}
	return s
}

// restoredOnce restores a snapshot that nobody changes, unless that was done.
// The content is shared: it must not be changed.
func restoredOnce(t testing.TB, f *Flink, s Snapshot, choices Choices) Content {
	t.Helper()
	if choices.Parallelism == 0 {
		choices.Parallelism = parallelismOf(s)
	}
	content, err := entry(&kept.restored, f.Version(), s.Dir, choices).get(func() (Content, error) {
		return f.Restore(s, choices)
	})
	if err != nil {
		t.Fatalf("restore %s with %+v on Flink %s: %s", s.Dir, choices, f.Version(), explain(err))
	}
	return content
}

// parallelismOf is that of the job that made the snapshot.
func parallelismOf(s Snapshot) int {
	if s.Options.Parallelism == 0 {
		return 2 // the default of the Java side
	}
	return s.Options.Parallelism
}

// eachVersion runs a test for every version, side by side: each has its own
// process, which works on one request at a time.
func eachVersion(t *testing.T, f func(t *testing.T, version Version)) {
	t.Helper()
	for _, version := range Versions() {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel()
			f(t, version)
		})
	}
}

// judged is the line that says how much real Flink has looked at.
func judged() string {
	all, parts := 0, ""
	for _, v := range Versions() {
		if n := Judged()[v]; n > 0 {
			all += n
			parts += fmt.Sprintf(", %d on Flink %s", n, v)
		}
	}
	return fmt.Sprintf("judged %d restores%s", all, parts)
}
