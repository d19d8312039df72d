package reader_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

func ls(t *testing.T, root string, o reader.ListOptions) []reader.Entry {
	t.Helper()
	if o.Stores == nil {
		o.Options = options()
	}
	entries, err := reader.List(ctx, root, o)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestList(t *testing.T) {
	flink := func(id int64) string {
		sp := model(list(relative("state", 5), 0))
		sp.ID = id
		return string(encode(t, sp))
	}
	dir := write(t, map[string]string{
		"job/chk-3/_metadata": flink(3), "job/chk-3/state": "hello",
		"job/chk-4/_metadata":  flink(4), // its file is gone
		"job/chk-5/state":      "hello",  // not finished
		"job/shared/_metadata": "never looked at", "job/taskowned/chk-9/x": "nor this",
		"savepoint-0a/_metadata": flink(2), "savepoint-0a/state": "hello", "savepoint-0a/below/_metadata": "nor this",
		"savepoint-0b/state":                  "hello",
		"broken/_metadata":                    flink(9)[:40],
		"one.spt":                             string(pack(t, model(list(inline("x"), 0)))),
		"cut.spt":                             string(pack(t, model(list(inline("x"), 0))))[:60],
		".spt-tmp-0123456789ab-x.spt":         "half",
		".spt-tmp-0123456789ab-sp/state":      "half",
		".spt-tmp-0123456789ab-old/_metadata": flink(1),
		"notes.txt":                           "hello", "other/folder/x": "y",
	})
	start := time.Now().Truncate(time.Second)
	for i, name := range []string{"one.spt", "broken/_metadata", "job/chk-4/_metadata", "job/chk-3/_metadata", "savepoint-0a/_metadata", "cut.spt"} {
		at := start.Add(-time.Duration(i) * time.Hour)
		if name == "one.spt" {
			at = start.Add(-50 * time.Hour)
		}
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	entries := ls(t, dir+"/", reader.ListOptions{})
	got := map[string]reader.Entry{}
	var order []string
	for _, e := range entries {
		path, ok := strings.CutPrefix(e.Path, dir+"/")
		if !ok {
			t.Errorf("path %q", e.Path)
		}
		got[path] = e
		if e.State == reader.Complete || e.State == reader.Damaged {
			order = append(order, path)
		}
	}
	want := map[string]struct {
		state   reader.EntryState
		problem string
		newest  bool
	}{
		"job/chk-3":                   {reader.Complete, "", true},
		"job/chk-4":                   {reader.Incomplete, "1 file missing", false},
		"job/chk-5":                   {reader.Incomplete, "it has no _metadata", false},
		"savepoint-0a":                {reader.Complete, "", false},
		"savepoint-0b":                {reader.Incomplete, "it has no _metadata", false},
		"broken":                      {reader.Damaged, "cut short", false},
		"one.spt":                     {reader.Complete, "", false},
		"cut.spt":                     {reader.Damaged, "not sealed", false},
		".spt-tmp-0123456789ab-x.spt": {reader.Leftover, "interrupted", false},
		".spt-tmp-0123456789ab-sp":    {reader.Leftover, "interrupted", false},
		".spt-tmp-0123456789ab-old":   {reader.Leftover, "interrupted", false},
	}
	for path, w := range want {
		e, ok := got[path]
		if !ok {
			t.Errorf("%s is not listed", path)
		} else if e.State != w.state || !strings.Contains(e.Problem, w.problem) || w.problem == "" && e.Problem != "" || e.Newest != w.newest {
			t.Errorf("%s: %+v", path, e)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s is listed", path)
		}
	}
	if order := strings.Join(order, " "); order != "broken job/chk-3 savepoint-0a cut.spt one.spt" {
		t.Errorf("order %s", order)
	}
	if e := got["job/chk-3"]; e.ID != 3 || e.Operators != 1 || e.Bytes != int64(len(flink(3)))+5 || e.Kind.Type != "checkpoint" || e.Container.Family != reader.Flink {
		t.Errorf("%+v", e)
	}
	if e := got["job/chk-4"]; e.Missing != 1 || e.ID != 4 {
		t.Errorf("%+v", e)
	}
	if e := got["job/chk-5"]; e.ID != 5 || e.Time.IsZero() {
		t.Errorf("%+v", e)
	}
	if e := got["one.spt"]; e.Container.Family != reader.SPT || e.ID != 7 {
		t.Errorf("%+v", e)
	}
}

func TestListDepth(t *testing.T) {
	flink := string(encode(t, model(list(inline("x"), 0))))
	dir := write(t, map[string]string{"a/_metadata": flink, "b/c/_metadata": flink, "1/2/3/4/5/6/7/_metadata": flink, "1/2/3/4/5/6/7x/8/_metadata": flink})
	for depth, want := range map[int]int{1: 0, 2: 1, 3: 2, 0: 3, 9: 4} {
		if n := len(ls(t, dir, reader.ListOptions{Depth: depth})); n != want {
			t.Errorf("depth %d: %d snapshots, want %d", depth, n, want)
		}
	}
}

func TestListRoots(t *testing.T) {
	flink := string(encode(t, model(list(inline("x"), 0))))
	dir := write(t, map[string]string{"sp/_metadata": flink, "x.spt": string(pack(t, model(list(inline("x"), 0)))), "empty/": "", "chk-1/y": "1"})
	for root, want := range map[string]string{"sp": "sp", "sp/": "sp", "sp/_metadata": "sp/_metadata", "x.spt": "x.spt", "./sp": "./sp"} {
		t.Chdir(dir)
		if e := ls(t, root, reader.ListOptions{}); len(e) != 1 || e[0].Path != want || e[0].State != reader.Complete || !e[0].Newest {
			t.Errorf("%s: %+v", root, e)
		}
	}
	if e := ls(t, ".", reader.ListOptions{}); len(e) != 3 || e[0].Path == "" {
		t.Errorf("%+v", e)
	}
	if e := ls(t, "empty", reader.ListOptions{}); len(e) != 0 {
		t.Errorf("%+v", e)
	}
	if e := ls(t, "chk-1", reader.ListOptions{}); len(e) != 1 || e[0].State != reader.Incomplete {
		t.Errorf("%+v", e)
	}
	if _, err := reader.List(ctx, dir+"/none", reader.ListOptions{Options: options()}); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := reader.List(ctx, "gs://x", reader.ListOptions{Options: options()}); !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := reader.List(over, dir, reader.ListOptions{Options: options()}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A folder that may not be looked into does not hide the others.
func TestListWithoutPermission(t *testing.T) {
	flink := string(encode(t, model(list(inline("x"), 0))))
	store := inMemory(t, map[string]string{"ckpts/open/_metadata": flink, "ckpts/closed/_metadata": flink, "ckpts/unread/_metadata": flink})
	h := hooked{store, func(op, name string) error {
		if op == "list" && name == "ckpts/closed/" || op == "read" && strings.HasPrefix(name, "ckpts/unread") {
			return storage.ErrPermission
		}
		return nil
	}}
	entries := ls(t, "mem://ckpts", reader.ListOptions{Options: options("mem", h)})
	for _, e := range entries { // an object below a prefix that may not be listed can be read
		if want := map[string]reader.EntryState{"mem://ckpts/unread": reader.Unreadable}[e.Path]; want != "" && e.State != want || want == "" && e.State != reader.Complete {
			t.Errorf("%+v", e)
		}
	}
	entries = ls(t, "mem://ckpts", reader.ListOptions{Options: options("mem", near{h})})
	if len(entries) != 3 {
		t.Fatalf("%+v", entries)
	}
	for _, e := range entries {
		switch e.Path {
		case "mem://ckpts/open":
			if e.State != reader.Complete || !e.Newest {
				t.Errorf("%+v", e)
			}
		case "mem://ckpts/closed", "mem://ckpts/unread":
			if e.State != reader.Unreadable || !strings.Contains(e.Problem, "permission") {
				t.Errorf("%+v", e)
			}
		default:
			t.Errorf("%+v", e)
		}
	}
}

// Nor does one that the disk does not give.
func TestListUnreadable(t *testing.T) {
	flink := encode(t, model(list(inline("x"), 0)))
	unknown := append([]byte(nil), flink...)
	unknown[7] = 77
	store := inMemory(t, map[string]string{"ckpts/open/_metadata": string(flink), "ckpts/bad/_metadata": string(flink), "ckpts/worse/_metadata": string(flink), "ckpts/new/_metadata": string(unknown), "ckpts/cut/_metadata": string(flink[:20])})
	h := hooked{store, func(op, name string) error {
		if op == "list" && name == "ckpts/bad/" || op == "read" && strings.HasPrefix(name, "ckpts/worse") {
			return errors.New("input/output error")
		}
		return nil
	}}
	got := map[string]reader.EntryState{}
	for _, e := range ls(t, "mem://ckpts", reader.ListOptions{Options: options("mem", near{h})}) {
		got[strings.TrimPrefix(e.Path, "mem://ckpts/")] = e.State
	}
	want := map[string]reader.EntryState{"open": reader.Complete, "bad": reader.Unreadable, "worse": reader.Unreadable, "new": reader.Unreadable, "cut": reader.Damaged}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// Every snapshot of the corpus is found, and all are complete.
func TestListCorpus(t *testing.T) {
	entries := ls(t, testenv.Corpus(t), reader.ListOptions{})
	kinds := map[summary.Kind]int{}
	newest := 0
	for i, e := range entries {
		if e.State != reader.Complete {
			t.Errorf("%+v", e)
		}
		if e.Newest {
			newest++
		}
		if i > 0 && e.Time.After(entries[i-1].Time) {
			t.Errorf("%s comes too late", e.Path)
		}
		kinds[e.Kind]++
	}
	if len(entries) != len(testenv.Snapshots(t)) || newest != 1 {
		t.Errorf("%d entries, %d snapshots, %d newest", len(entries), len(testenv.Snapshots(t)), newest)
	}
	t.Logf("%d snapshots of %d kinds", len(entries), len(kinds))
}

// Links to folders are followed, and whatever several of them lead to is one
// snapshot: under its own name if that is below the root.
func TestListFollowsLinksOnce(t *testing.T) {
	flink := string(encode(t, model(list(inline("x"), 0))))
	spt := string(pack(t, model(list(inline("x"), 0))))
	dir := write(t, map[string]string{
		"ckpts/job/chk-3/_metadata": flink, "ckpts/job/chk-4/_metadata": flink, "ckpts/job/one.spt": spt,
		"away/deep/sp/_metadata": flink, "away/two.spt": spt,
	})
	for link, to := range map[string]string{
		"ckpts/a-latest":        "job/chk-4",    // sorts before the job
		"ckpts/job/z-latest":    "chk-4",        // after it
		"ckpts/again":           dir + "/ckpts", // a loop
		"ckpts/job/up":          "..",           // another
		"ckpts/job/chk-4/up":    "../..",        // in a snapshot, of which nothing is listed
		"ckpts/first":           dir + "/away",  // a diamond, outside
		"ckpts/second":          "../away/deep", // its other side
		"ckpts/third":           "first/deep/sp",
		"ckpts/b.spt":           "job/one.spt",
		"ckpts/job/self":        "self",
		"ckpts/nowhere":         "gone",
		"ckpts/job/shared":      dir + "/away", // not looked into by this name
		"away/back":             "../ckpts",
		"away/deep/sideways":    "../../ckpts/job",
		"ckpts/no-metadata-but": "job/one.spt",
	} {
		if err := os.Symlink(to, dir+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]bool{"ckpts/job/chk-3": true, "ckpts/job/chk-4": true, "ckpts/job/one.spt": true, "ckpts/first/deep/sp": true, "ckpts/first/two.spt": true}
	for _, root := range []string{dir + "/ckpts", dir + "/ckpts/", dir + "/ckpts/again"} {
		got := map[string]bool{}
		for _, e := range ls(t, root, reader.ListOptions{}) {
			path := strings.Replace(strings.TrimPrefix(e.Path, dir+"/"), "ckpts/again", "ckpts", 1)
			if got[path] || e.State != reader.Complete || e.Real == "" {
				t.Errorf("%s: %+v", root, e)
			}
			got[path] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v", root, got)
		}
	}
}

// denying is the local store of a user who may not look at some names: as the
// system answers, a list has only the name of such an entry.
type denying struct {
	*local.Store
	names map[string]bool
}

func (s denying) err(op, name string) error {
	if s.names[filepath.Base(name)] {
		return &storage.Error{Op: op, Name: name, Err: storage.ErrPermission}
	}
	return nil
}

func (s denying) Stat(ctx context.Context, name string) (storage.Info, error) {
	if err := s.err("stat", name); err != nil {
		return storage.Info{}, err
	}
	return s.Store.Stat(ctx, name)
}

func (s denying) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := s.err("list", strings.TrimSuffix(prefix, "/")); err != nil {
			yield(storage.Info{}, err)
			return
		}
		for info, err := range s.Store.List(ctx, prefix, delimiter) {
			if name := strings.TrimSuffix(info.Name, "/"); err == nil && filepath.Base(name) == "m" {
				info = storage.Info{Name: name}
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// One entry that cannot be looked at does not hide those next to it.
func TestListGoesOn(t *testing.T) {
	flink := string(encode(t, model(list(inline("x"), 0))))
	dir := write(t, map[string]string{"ckpts/a/_metadata": flink, "ckpts/m/_metadata": flink, "ckpts/z/_metadata": flink, "ckpts/closed/sp/_metadata": flink})
	store := denying{local.New(), map[string]bool{"m": true, "closed": true}}
	states := map[string]reader.EntryState{}
	for _, e := range ls(t, dir+"/ckpts", reader.ListOptions{Options: reader.Options{Stores: route.New(store)}}) {
		states[strings.TrimPrefix(e.Path, dir+"/ckpts/")] = e.State
	}
	if want := map[string]reader.EntryState{"a": reader.Complete, "z": reader.Complete, "m": reader.Unreadable, "closed": reader.Unreadable}; !maps.Equal(states, want) {
		t.Errorf("%v", states)
	}
}

// What nobody could look for is not missing, and what is outside is counted.
func TestListCountsWhatIsNotRead(t *testing.T) {
	dir := write(t, map[string]string{"away/x": "hello", "ckpts/s3/_metadata": string(encode(t, model(list(absolute("s3://b/x", 5), 0), list(absolute("s3://b/y", 5), 0))))})
	put(t, dir+"/ckpts/out/_metadata", string(encode(t, model(list(absolute("file:"+dir+"/away/x", 5), 0)))))
	put(t, dir+"/ckpts/host/_metadata", string(encode(t, model(list(absolute("file://other"+dir+"/away/x", 5), 0)))))
	put(t, dir+"/ckpts/both/_metadata", string(encode(t, model(list(relative("gone", 5), 0), list(absolute("s3://b/x", 5), 0)))))
	type counts struct {
		state                   reader.EntryState
		missing, unchecked, out int
		problem                 string
	}
	got := map[string]counts{}
	for _, e := range ls(t, dir+"/ckpts", reader.ListOptions{}) {
		got[filepath.Base(e.Path)] = counts{e.State, e.Missing, e.NotChecked, e.Outside, e.Problem}
	}
	want := map[string]counts{
		"s3":   {reader.Unchecked, 0, 2, 0, "2 files not checked"},
		"out":  {reader.Complete, 0, 0, 1, ""},
		"host": {reader.Unchecked, 0, 0, 1, "1 file not checked"},
		"both": {reader.Incomplete, 1, 1, 0, "1 file missing"},
	}
	if !maps.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// What is larger than the limits may be sound.
func TestListOfWhatIsTooLarge(t *testing.T) {
	dir := write(t, map[string]string{"a/_metadata": string(encode(t, model(list(inline("x"), 0), list(inline("y"), 0))))})
	o := options()
	o.Limits.Subtasks = 1
	if all := ls(t, dir, reader.ListOptions{Options: o}); len(all) != 1 || all[0].State != reader.Unreadable || !strings.Contains(all[0].Problem, "limit") {
		t.Errorf("%+v", all)
	}
}
