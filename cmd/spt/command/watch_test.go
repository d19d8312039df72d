package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/internal/watch"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

// metadataOf returns the _metadata of a savepoint of testdata.
func metadataOf(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.ModuleRoot(t), "testdata/savepoints", name, "_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// watchingOf is a run of watch with flags, on the s3: URIs of a store.
func watchingOf(t *testing.T, store storage.Storage, roots []string, flags ...string) *watching {
	t.Helper()
	r := route.New(local.New())
	r.Add("s3", func(_ context.Context, uri string) (storage.Storage, string, error) {
		return store, format.CanonicalURI(uri), nil
	})
	var o watchOptions
	fs := pflag.NewFlagSet("watch", pflag.ContinueOnError)
	o.addFlags(fs)
	if err := fs.Parse(flags); err != nil {
		t.Fatal(err)
	}
	env := &Env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }, Now: time.Now, Stores: r}
	w, err := newWatching(t.Context(), o, env, roots)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watching) mustLook(t *testing.T) {
	t.Helper()
	if problems, err := w.watcher.Look(t.Context()); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
}

// TestWatchBudget: one list for each directory of a job, and one read for each new
// checkpoint.
func TestWatchBudget(t *testing.T) {
	store := mem.New()
	c := storetest.NewCounting(store)
	w := watchingOf(t, c, []string{"s3://b/chk"})
	const job = "s3://b/chk/00000000000000000000000000005b70"
	look := func(what, want string) {
		t.Helper()
		c.Reset()
		w.mustLook(t)
		got := requestsOf(c)
		t.Logf("%s: %s", what, got)
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	look("nothing", "1 page")
	for id := range 5 {
		storetest.Put(t, store, fmt.Sprintf("%s/chk-%d/_metadata", job, id+1), metadataOf(t, "sp-001"))
	}
	storetest.Put(t, store, job+"/shared/f", "x")
	look("five at the start", "5 read, 2 page")
	look("nothing new", "2 page")
	storetest.Put(t, store, job+"/chk-6/f", "x")
	look("one is being written", "1 read, 2 page")
	storetest.Put(t, store, job+"/chk-6/_metadata", metadataOf(t, "sp-007"))
	look("it is complete", "1 read, 2 page")
	look("nothing new", "2 page")
	jobs := w.watcher.Status()[0].Jobs
	if len(jobs) != 1 || jobs[0].Newest.Path != job+"/chk-6" || jobs[0].Directories != 6 {
		t.Fatalf("%+v", jobs)
	}
	w = watchingOf(t, c, []string{job})
	look("the directory of the job", "6 read, 1 page")
	look("nothing new", "1 page")
}

// TestWatchSubsumed: Flink removes a checkpoint between the read of its _metadata and the
// look for its files. Its files are not missing.
func TestWatchSubsumed(t *testing.T) {
	store := bucketOfFiles(t, 3, 256) // s3://b/sp
	for i := range 3 {
		name := fmt.Sprintf("f%04d", i)
		storetest.Put(t, store, "s3://b/chk-7/"+name, storetest.Read(t, store, "s3://b/sp/"+name))
	}
	storetest.Put(t, store, "s3://b/chk-7/_metadata", storetest.Read(t, store, "s3://b/sp/_metadata"))
	remove := []string{"s3://b/chk-7/_metadata", "s3://b/chk-7/f0000", "s3://b/chk-7/f0001", "s3://b/chk-7/f0002"}
	read := false
	c := storetest.NewCounting(store).WithWait(func(kind, name string) {
		if kind == "read" && strings.HasSuffix(name, "_metadata") {
			read = true
		} else if read && kind == "page" {
			if err := store.Delete(t.Context(), remove...); err != nil {
				t.Error(err)
			}
		}
	})
	w := watchingOf(t, c, []string{"s3://b"}, "--check-files")
	w.mustLook(t)
	w.mustLook(t)
	if jobs := w.watcher.Status()[0].Jobs; !read || len(jobs) != 0 {
		t.Errorf("%+v", jobs)
	}
	// A file that is missing while _metadata is still there is missing.
	storetest.Put(t, store, "s3://b/chk-8/_metadata", storetest.Read(t, store, "s3://b/sp/_metadata"))
	w = watchingOf(t, store, []string{"s3://b"}, "--check-files")
	w.mustLook(t)
	if j := w.watcher.Status()[0].Jobs[0]; j.Newest.MissingFiles != 3 || j.Complete != nil {
		t.Errorf("%+v", j)
	}
}

// TestWatchFacts: what is kept of a checkpoint is what Flink's own reader says of it.
func TestWatchFacts(t *testing.T) {
	var states, inTruth int
	for _, known := range testenv.KnownSnapshots(t) {
		text, err := os.ReadFile(filepath.Join(known.Dir, "metadata.json"))
		if err != nil {
			t.Fatal(err)
		}
		var truth struct {
			ID        int64 `json:"checkpoint_id"`
			Operators []struct {
				ID       string
				Subtasks map[string]struct {
					Operator []struct {
						States []struct {
							Name, Mode string
							Offsets    []int64
						}
					} `json:"managed_operator"`
				}
			}
		}
		if err := json.Unmarshal(text, &truth); err != nil {
			t.Fatal(err)
		}
		kinds := map[string]string{"SPLIT_DISTRIBUTE": "list", "UNION": "union", "BROADCAST": "broadcast"}
		want := map[watch.StateID]int64{}
		for _, op := range truth.Operators {
			for _, sub := range op.Subtasks {
				for _, h := range sub.Operator {
					for _, st := range h.States {
						want[watch.StateID{Operator: op.ID, Kind: kinds[st.Mode], Name: st.Name}] += int64(len(st.Offsets))
					}
				}
			}
		}
		inTruth += len(want)
		w := watchingOf(t, mem.New(), []string{known.Location})
		c, err := w.read(t.Context(), known.Location)
		if err != nil {
			t.Fatal(err)
		}
		if c.ID != truth.ID {
			t.Errorf("%s: checkpoint %d, Flink says %d", known.Name, c.ID, truth.ID)
		}
		for _, st := range c.States {
			if n, ok := want[st.StateID]; ok {
				states++
				if st.Elements != n {
					t.Errorf("%s: %+v: %d elements, Flink says %d", known.Name, st.StateID, st.Elements, n)
				}
			}
		}
	}
	testenv.Found(t, "states", states, inTruth)
}

// TestWatchWebhook: an event is sent as it is printed, and no secret is.
func TestWatchWebhook(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("chk/chk-7/_metadata", metadataOf(t, "sp-007"))
	rules := put("rules.yaml", "webhook: {url-env: HOOK, bearer-env: TOKEN}\nrules: [{name: large, fail-if: union_elements > 30}]\n")
	for _, status := range []int{200, 403} {
		var body, token string
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body) // a cut body does not compare
			body, token = string(text), r.Header.Get("Authorization")
			w.WriteHeader(status)
		}))
		var out, errs bytes.Buffer
		env := &Env{Stdout: &out, Stderr: &errs, Now: time.Now, Stores: route.New(local.New()), Getenv: func(name string) string {
			return map[string]string{"HOOK": hook.URL + "/T0/B0/hunter2?k=hunter2", "TOKEN": "hunter2"}[name]
		}}
		code := Main(t.Context(), []string{"watch", "--once", filepath.Join(dir, "chk"), "--rules", rules}, env)
		hook.Close()
		if code != 1 || body+"\n" != out.String() || token != "Bearer hunter2" {
			t.Errorf("exit %d, sent %s, printed %s", code, body, &out)
		}
		if strings.Contains(out.String()+errs.String(), "hunter2") || strings.Contains(errs.String(), "webhook, attempt 1: status 403") != (status == 403) {
			t.Errorf("status %d: %s%s", status, &out, &errs)
		}
		var e report.WatchEvent
		if err := json.Unmarshal([]byte(body), &e); err != nil || e.State != report.Firing || e.CheckpointID != 3 || len(e.For) != 1 || e.For[0] != "a83608de/offsets" {
			t.Errorf("%+v, %v", e, err)
		}
	}
}
