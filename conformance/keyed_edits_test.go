package conformance

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// keyedEncodings are jobs whose keyed state is stored in each encoding.
var keyedEncodings = []struct {
	name    string
	options Options
}{
	{"canonical", Options{Shape: "keyed", Backend: "rocksdb", KeyType: "string", Seed: 401}},
	{"heap", Options{Shape: "keyed", Backend: "hashmap", Format: "native", KeyType: "tuple", Seed: 402}},
	{"compressed", Options{Shape: "keyed", Backend: "hashmap", Format: "native", Compress: true, KeyType: "string", Seed: 406}},
	{"native", Options{Shape: "keyed", Backend: "rocksdb", Format: "native", KeyType: "long", Seed: 403}},
	{"incremental", Options{Shape: "keyed", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 2, HeapTimers: true, KeyType: "string", Seed: 404}},
	{"changelog", Options{Shape: "keyed", Backend: "hashmap", Checkpoint: true, Changelog: true, KeyType: "long", Elements: 8, Seed: 405}},
}

// keyedRewrite is an edit of keyed state, and what it makes of the keyed state and the
// timers of a job.
type keyedRewrite struct {
	name string
	edit func(t *testing.T, in format.View) (format.View, error)
	// The job of the restore. 0: as before.
	parallelism, maxParallelism int

	state func(name string) string // its new name
	entry func(state string, e Entry) (Entry, bool)
	timer func(service string, event bool, t Timer) (Timer, bool)
}

const (
	dropped   = "label"
	shiftedBy = 2 * time.Hour
)

var keyedRewrites = []keyedRewrite{
	{
		name: "convert",
		edit: func(_ *testing.T, in format.View) (format.View, error) {
			v, _, err := transform.Canonical(context.Background(), in, transform.CanonicalOptions{})
			return v, err
		},
	},
	{
		name: "rescale",
		edit: func(_ *testing.T, in format.View) (format.View, error) {
			v, _, err := transform.Rescale(context.Background(), in, transform.RescaleOptions{To: 3, Operators: format.Selector{"keyed", "window"}, Keyed: transform.KeyedCanonical})
			return v, err
		},
		parallelism: 3,
	},
	{
		name: "drop",
		edit: func(_ *testing.T, in format.View) (format.View, error) {
			v, _, err := transform.Drop(context.Background(), in, transform.DropOptions{States: format.Globs{dropped}})
			return v, err
		},
		entry: func(state string, e Entry) (Entry, bool) { return e, state != dropped },
	},
	{
		name: "rename", // one away, to a name that the job does not register, and one away and back
		edit: func(_ *testing.T, in format.View) (format.View, error) {
			for _, names := range []map[string]string{{dropped: "unknown", "counts": "away"}, {"away": "counts"}} {
				var err error
				if in, _, err = transform.Rename(context.Background(), in, transform.RenameOptions{States: names}); err != nil {
					return in, err
				}
			}
			return in, nil
		},
		state: func(name string) string {
			if name == dropped {
				return "unknown"
			}
			return name
		},
	},
	{
		name: "filter",
		edit: func(_ *testing.T, in format.View) (format.View, error) {
			v, _, err := transform.Filter(context.Background(), in, transform.FilterOptions{KeepEntries: func(transform.FilterHandle) (func(*format.KeyedEntry) (bool, error), error) {
				return func(e *format.KeyedEntry) (bool, error) { return e.KeyGroup%2 == 0, nil }, nil
			}})
			return v, err
		},
		entry: func(_ string, e Entry) (Entry, bool) { return e, e.KeyGroup%2 == 0 },
		timer: func(_ string, _ bool, t Timer) (Timer, bool) { return t, t.KeyGroup%2 == 0 },
	},
	{
		name:  "filter-keys",
		edit:  filterKeys,
		entry: func(_ string, e Entry) (Entry, bool) { return e, e.KeyGroup%2 == 0 },
		timer: func(_ string, _ bool, t Timer) (Timer, bool) { return t, t.KeyGroup%2 == 0 },
	},
	{
		name: "expire",
		edit: func(_ *testing.T, in format.View) (format.View, error) {
			v, done, err := transform.Expire(context.Background(), in, transform.ExpireOptions{TTL: time.Hour, At: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)})
			if err == nil && len(done.States) != 3 {
				err = fmt.Errorf("%d states with a time to live", len(done.States))
			}
			return v, err
		},
		entry: func(state string, e Entry) (Entry, bool) {
			return e, !slices.Contains([]string{"ttl-last", "ttl-words", "ttl-counts"}, state)
		},
	},
	{
		name: "shift-timers",
		edit: func(_ *testing.T, in format.View) (format.View, error) {
			v, _, err := transform.ShiftTimers(context.Background(), in, transform.ShiftTimersOptions{By: shiftedBy, States: format.Globs{"_timer_state/event_*"}})
			return v, err
		},
		timer: func(service string, event bool, t Timer) (Timer, bool) {
			if event && service == "user-timers" {
				t.Timestamp += shiftedBy.Milliseconds()
			}
			return t, true
		},
	},
	{
		name:  "patched",
		edit:  patchKeyed,
		entry: patchedEntry,
		timer: func(service string, event bool, t Timer) (Timer, bool) {
			if event && service == "user-timers" {
				t.Timestamp += shiftedBy.Milliseconds()
			}
			return t, true
		},
	},
	{
		name: "max-parallelism",
		edit: func(_ *testing.T, in format.View) (format.View, error) {
			v, done, err := transform.Regroup(context.Background(), in, transform.RegroupOptions{MaxParallelism: 300})
			if err == nil && done.Operators[0].Operator.MaxParallelism != 128 {
				err = fmt.Errorf("%+v", done)
			}
			return v, err
		},
		maxParallelism: 300,
	},
}

// allCompressed checks that all streams with a header are compressed.
func allCompressed(t *testing.T, out string) {
	t.Helper()
	written := openedAt(t, out)
	headers, err := written.Headers(t.Context(), written.Operators)
	if err != nil {
		t.Fatal(err)
	}
	streams := 0
	for _, h := range headers {
		streams += h.Read
		if h.Compressed != h.Read {
			t.Errorf("%d of %d streams are compressed", h.Compressed, h.Read)
		}
	}
	if streams == 0 {
		t.Error("no stream was read")
	}
}

// filterKeys keeps the keys of every other key group: those that spt cat prints.
func filterKeys(t *testing.T, in format.View) (format.View, error) {
	dir := t.TempDir()
	from := filepath.Join(dir, "all")
	if _, err := writer.Write(t.Context(), in, from, &writer.Options{Stores: stores}); err != nil {
		return in, err
	}
	for _, operator := range []string{"keyed", "window"} {
		keys, out := filepath.Join(dir, operator+".jsonl"), filepath.Join(dir, operator)
		lines := spt(t, "cat", from, "--operator", operator, "--keys-only", "--where", "key_group % 2 == 0")
		if err := os.WriteFile(keys, []byte(lines), 0o600); err != nil {
			return in, err
		}
		spt(t, "filter", from, out, "--operator", operator, "--keys", keys)
		from = out
	}
	return openedAt(t, from).View(), nil
}

// keyedLinesOf returns the keyed state and the timers of all operators as lines, changed by a
// rewrite.
func (r *keyedRewrite) keyedLinesOf(t *testing.T, c Content, changed bool) []string {
	t.Helper()
	var lines []string
	for _, op := range c.Operators {
		op.Subtasks = slices.Clone(op.Subtasks)
		for i := range op.Subtasks {
			s := &op.Subtasks[i]
			states, timers := map[string]KeyedState{}, map[string]Timers{}
			for name, st := range s.KeyedState {
				entries := st.Entries
				st.Entries = nil
				for _, e := range entries {
					ok := true
					if changed && r.entry != nil {
						e, ok = r.entry(name, e)
					}
					if ok {
						st.Entries = append(st.Entries, e)
					}
				}
				if changed && r.state != nil {
					name = r.state(name)
				}
				states[name] = st
			}
			for service, all := range s.Timers {
				of := func(timers []Timer, event bool) (left []Timer) {
					for _, x := range timers {
						ok := true
						if changed && r.timer != nil {
							x, ok = r.timer(service, event, x)
						}
						if ok {
							left = append(left, x)
						}
					}
					return left
				}
				timers[service] = Timers{Event: of(all.Event, true), Processing: of(all.Processing, false)}
			}
			s.KeyedState, s.Timers = states, timers
		}
		say := func(string, ...any) {}
		if !changed {
			say = func(text string, args ...any) { t.Errorf(text, args...) }
		}
		for _, line := range keyedLines(op, say) {
			lines = append(lines, op.ID+" "+line)
		}
	}
	return sorted(lines)
}

// truth returns what the job held; Flink says in which key groups the keys are.
func (r *keyedRewrite) truth(t *testing.T, f *Flink, s Snapshot, o Options) Content {
	t.Helper()
	if r.maxParallelism == 0 {
		return mustTruth(t, s)
	}
	o.MaxParallelism = r.maxParallelism
	return mustTruth(t, madeOnce(t, f, o))
}

// of rewrites a snapshot for a job with a backend.
func (r *keyedRewrite) of(t *testing.T, s Snapshot, backend string) Snapshot {
	t.Helper()
	v, err := r.edit(t, opened(t, s).View())
	own := backend == s.Options.Backend
	if err == nil && !own {
		v, _, err = transform.Canonical(t.Context(), v, transform.CanonicalOptions{})
	}
	out, rewritten := standsFor(t, s)
	if err == nil {
		_, err = writer.Write(t.Context(), v, out, &writer.Options{Stores: stores, ReadBack: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.Options.Compress {
		allCompressed(t, out)
	}
	rewritten.Options.Backend, rewritten.Options.MaxParallelism = backend, max(r.maxParallelism, s.Options.MaxParallelism)
	rewritten.Options.HeapTimers = own && s.Options.HeapTimers // Flink loses raw timers otherwise
	rewritten.Options.Changelog = own && s.Options.Changelog
	return rewritten
}

// Flink restores each rewrite of keyed state, of each encoding, into the backends of heap
// and of RocksDB, and holds what the rewrite says: each entry under its key, and each timer
// where it was, or was moved to. The backend of the job restores a snapshot in which only
// the operators that were edited are canonical, the other one needs all to be. The log is
// a matrix.
func TestKeyedRewrites(t *testing.T) {
	var mu sync.Mutex
	matrix := map[string]int{}
	eachVersion(t, func(t *testing.T, version Version) {
		for _, encoding := range keyedEncodings {
			for _, rewrite := range keyedRewrites {
				for _, backend := range []string{"hashmap", "rocksdb"} {
					t.Run(encoding.name+"/"+rewrite.name+"/"+backend, func(t *testing.T) {
						f := Use(t, version)
						s := madeOnce(t, f, encoding.options)
						truth := rewrite.truth(t, f, s, encoding.options)
						rewritten := rewrite.of(t, s, backend)
						got := Restore(t, f, rewritten, Choices{Parallelism: rewrite.parallelism})
						if s.Options.Changelog {
							truth, got = Loosened(truth), Loosened(got)
						}
						want, have := rewrite.keyedLinesOf(t, truth, true), rewrite.keyedLinesOf(t, got, false)
						if len(want) == 0 || !slices.Equal(want, have) {
							t.Errorf("keyed state or timers differ (-expected +Flink):\n%s", cmp.Diff(want, have))
							return
						}
						mu.Lock()
						matrix[fmt.Sprintf("%-16s %-12s %-8s", rewrite.name, encoding.name, backend)]++
						mu.Unlock()
					})
				}
			}
		}
	})
	t.Cleanup(func() {
		for _, line := range slices.Sorted(maps.Keys(matrix)) {
			t.Logf("%s restored by %d releases", line, matrix[line])
		}
	})
}
