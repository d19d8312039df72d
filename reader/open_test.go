package reader_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/fingerprint"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
)

// Whatever a user may write leads to the snapshot, and to its state file.
func TestOpenByAnyName(t *testing.T) {
	flink := string(encode(t, model(list(relative("state", 5), 0))))
	packed := string(pack(t, model(list(inline("hello"), 0))))
	dir := write(t, map[string]string{
		"sp/_metadata": flink, "sp/state": "hello",
		"copy/renamed.bin": flink, "copy/state": "hello",
		"one.spt": packed, "other.bin": packed, "folder.spt/_metadata": flink, "folder.spt/state": "hello",
		"elsewhere/far/_metadata": flink, "elsewhere/far/state": "hello", "elsewhere/away.spt": packed,
	})
	for link, to := range map[string]string{"link": "sp", "filelink": "sp/_metadata", "link.spt": "one.spt"} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	o := options()
	o.Path = []string{"nowhere", filepath.Join(dir, "elsewhere")}
	tests := []struct {
		name, location string
		family         reader.Family
	}{
		{"sp", "sp", reader.Flink},
		{"sp/", "sp", reader.Flink},
		{"sp//", "sp", reader.Flink},
		{"./sp", "./sp", reader.Flink},
		{"sp/_metadata", "sp", reader.Flink},
		{"copy/renamed.bin", "copy", reader.Flink},
		{"link", "link", reader.Flink},
		{"link/", "link", reader.Flink},
		{"one.spt", "one.spt", reader.SPT},
		{"./one.spt", "./one.spt", reader.SPT},
		{"link.spt", "link.spt", reader.SPT},
		{"one", "one.spt", reader.SPT},
		{"other.bin", "other.bin", reader.SPT},
		{"folder.spt", "folder.spt", reader.Flink},
		{"folder.spt/", "folder.spt", reader.Flink},
		{"far", "{dir}/elsewhere/far", reader.Flink},
		{"away", "{dir}/elsewhere/away.spt", reader.SPT},
		{"away.spt", "{dir}/elsewhere/away.spt", reader.SPT},
		{"{dir}/sp", "{dir}/sp", reader.Flink},
		{"{dir}/sp/_metadata", "{dir}/sp", reader.Flink},
		{"file:{dir}/sp", "file:{dir}/sp", reader.Flink},
		{"file://{dir}/sp/", "file://{dir}/sp", reader.Flink},
		{"file://localhost{dir}/one.spt", "file://localhost{dir}/one.spt", reader.SPT},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			snap := open(t, strings.ReplaceAll(tt.name, "{dir}", dir), o)
			if want := strings.ReplaceAll(tt.location, "{dir}", dir); snap.Location != want {
				t.Errorf("location %q, want %q", snap.Location, want)
			}
			if snap.Container.Family != tt.family || snap.ID != 7 || len(snap.Operators) != 1 {
				t.Errorf("%+v", snap.Container)
			}
			if got := content(t, snap, snap.Operators[0].Subtasks[0].Managed.Data); got != "hello" {
				t.Errorf("state %q", got)
			}
		})
	}
	// A link to the file alone leads to a folder without state files.
	snap := open(t, "filelink", o)
	if _, err := snap.Source().ReadAt(ctx, snap.Operators[0].Subtasks[0].Managed.Data, make([]byte, 5), 0); !errors.Is(err, format.ErrMissing) {
		t.Errorf("error %v", err)
	}
	// From inside.
	t.Chdir("sp")
	for _, name := range []string{".", "./", "_metadata", "./_metadata"} {
		snap := open(t, name, o)
		if snap.Location != "." || content(t, snap, snap.Operators[0].Subtasks[0].Managed.Data) != "hello" {
			t.Errorf("%s: location %q", name, snap.Location)
		}
	}
}

// What is here goes before what is in the search path.
func TestBareNameHereFirst(t *testing.T) {
	dir := write(t, map[string]string{
		"a/x.spt": string(pack(t, model(list(inline("near"), 0)))),
		"b/x.spt": string(pack(t, model(list(inline("far!"), 0)))),
		"b/y.spt": string(pack(t, model(list(inline("only"), 0)))),
	})
	t.Chdir(filepath.Join(dir, "a"))
	o := options()
	o.Path = []string{filepath.Join(dir, "b")}
	for name, want := range map[string]string{"x": "near", "x.spt": "near", "y": "only"} {
		snap := open(t, name, o)
		if got := content(t, snap, snap.Operators[0].Subtasks[0].Managed.Data); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// A name with a folder in it is no bare name.
	if _, err := reader.Open(ctx, "./y", &o); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("./y: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	snap := open(t, testenv.Fixture(t, "sp-001"), options())
	if got, want := snap.Container.Describe(), "metadata v4 (Flink 1.16–1.20)"; !strings.HasPrefix(got, "metadata v") || got != want && snap.Container.Metadata == int32(metadata.V4) {
		t.Errorf("%q, want %q", got, want)
	}
	own := write(t, map[string]string{"x.spt": string(pack(t, model(list(inline("x"), 0))))})
	if got := open(t, own+"/x.spt", options()).Container.Describe(); got != "spt 1.0" {
		t.Errorf("%q", got)
	}
}

// The budgets of design §6.
func TestRequestBudgets(t *testing.T) {
	many := model()
	for i := range 200 {
		many.Operators[0].Subtasks = append(many.Operators[0].Subtasks, &format.Subtask{Index: int32(i), Managed: list(relative(fmt.Sprintf("f%d", i), 3), 0)})
	}
	many.Operators[0].Parallelism, many.Operators[0].MaxParallelism = 200, 200
	files := map[string]string{"sp/_metadata": string(encode(t, many))}
	for i := range 200 {
		files[fmt.Sprintf("sp/f%d", i)] = "abc"
	}
	// Noise, so that the .spt is larger than the one read of a small one.
	noise := make([]byte, 3<<20)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	files["big.spt"] = string(pack(t, model(list(inline(string(noise)), 0, 9000))))
	files["small.spt"] = string(pack(t, model(list(inline("hello"), 0))))
	c := storetest.NewCounting(inMemory(t, files))
	counted := func(what string, f func()) map[string]int {
		before := c.Counts()
		f()
		after := c.Counts()
		for k, n := range before {
			if after[k] -= n; after[k] == 0 {
				delete(after, k)
			}
		}
		t.Logf("%s: %v", what, after)
		return after
	}
	o := options("mem", c)

	var snap *reader.Snapshot
	var s *summary.Summary
	n := counted("open and sum up a folder", func() {
		snap = open(t, "mem://sp", o)
		var err error
		if s, err = summary.Of(ctx, snap.Savepoint); err != nil {
			t.Fatal(err)
		}
	})
	if n["read"] != 1 || len(n) != 1 {
		t.Errorf("%v, want one read", n)
	}
	n = counted("look up 200 files", func() {
		states, err := snap.Files(ctx, s.Files)
		if err != nil || len(states) != 200 {
			t.Fatal(len(states), err)
		}
		for _, f := range states {
			if f.Missing() || f.Found.Info.Size != 3 {
				t.Fatalf("%+v", f)
			}
		}
	})
	if n["stat"]+n["list"] > 8 || n["read"] != 0 {
		t.Errorf("%v, want a handful", n)
	}
	n = counted("the same again", func() {
		if _, err := snap.Files(ctx, s.Files); err != nil {
			t.Fatal(err)
		}
	})
	if len(n) != 0 {
		t.Errorf("%v, want none", n)
	}
	n = counted("read an element", func() { content(t, snap, snap.Operators[0].Subtasks[150].Managed.Data) })
	if n["read"] != 1 || len(n) != 1 {
		t.Errorf("%v, want one read", n)
	}
	n = counted("open a small .spt", func() { open(t, "mem://small.spt", o) })
	if n["read"] > 2 || len(n) != 1 {
		t.Errorf("%v, want at most two reads", n)
	}
	before, _ := c.Bytes()
	n = counted("open an .spt", func() { snap = open(t, "mem://big.spt", o) })
	if n["read"] != 2 || len(n) != 1 {
		t.Errorf("%v, want two reads", n)
	}
	after, _ := c.Bytes()
	t.Logf("%d bytes read of %d", after-before, len(files["big.spt"]))
	n = counted("sum it up", func() {
		if _, err := summary.Of(ctx, snap.Savepoint); err != nil {
			t.Fatal(err)
		}
	})
	if n["read"] > 1 {
		t.Errorf("%v, want at most one read, for offsets", n)
	}
	n = counted("not there", func() {
		if _, err := reader.Open(ctx, "mem://none", &o); !errors.Is(err, storage.ErrNotExist) {
			t.Error(err)
		}
	})
	if n["read"]+n["stat"]+n["list"] > 5 {
		t.Errorf("%v", n)
	}
}

// What stands before the cut is given, with the damage.
func TestSalvage(t *testing.T) {
	sp := model(list(inline("hello"), 0), list(inline("world"), 0))
	whole := encode(t, sp)
	dir := t.TempDir()
	name := filepath.Join(dir, "_metadata")
	var most int
	for cut := range len(whole) {
		put(t, name, string(whole[:cut]))
		snap, damage, err := reader.Salvage(ctx, dir, new(options()))
		if err != nil {
			if !errors.Is(err, format.ErrTruncated) || snap != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			continue
		}
		if damage == nil || !errors.Is(damage, format.ErrTruncated) && !errors.Is(damage, format.ErrCorrupt) || snap.Location != dir {
			t.Fatalf("cut at %d: damage %v", cut, damage)
		}
		if snap.Describes(snap.Savepoint) {
			t.Fatalf("cut at %d: it is said to be all of the file", cut)
		}
		if snap.ID == 7 && len(snap.Operators) == 1 {
			most = max(most, len(snap.Operators[0].Subtasks))
			if subs := snap.Operators[0].Subtasks; len(subs) > 0 && subs[0].Managed != nil && content(t, snap, subs[0].Managed.Data) != "hello" {
				t.Errorf("cut at %d: wrong state", cut)
			}
		}
		snap.Close()
	}
	if most != 2 {
		t.Errorf("at most %d subtasks were salvaged", most)
	}
	put(t, name, string(whole))
	if snap, damage, err := reader.Salvage(ctx, dir, new(options())); err != nil || damage != nil || len(snap.Operators[0].Subtasks) != 2 {
		t.Errorf("%v, %v", damage, err)
	}
	put(t, name, "")
	if _, _, err := reader.Salvage(ctx, dir, new(options())); !errors.Is(err, format.ErrTruncated) {
		t.Error(err)
	}
	// An .spt has its description at the end: nothing to salvage.
	put(t, dir+"/x.spt", string(pack(t, sp))[:100])
	if _, _, err := reader.Salvage(ctx, dir+"/x.spt", new(options())); !errors.Is(err, format.ErrTruncated) {
		t.Error(err)
	}
}

// Mapped, read in two, read in one: the same.
func TestLargeMetadata(t *testing.T) {
	for _, size := range []int64{1<<20 - 5000, 1<<20 + 5000, 4<<20 + 5000} {
		var b bytes.Buffer
		if err := sptest.WriteUnion(&b, sptest.UnionOfSize(size)); err != nil {
			t.Fatal(err)
		}
		dir := write(t, map[string]string{"sp/_metadata": b.String()})
		snap := open(t, dir+"/sp", options())
		sum, err := summary.Of(ctx, snap.Savepoint)
		if err != nil {
			t.Fatal(err)
		}
		store := inMemory(t, map[string]string{"sp/_metadata": b.String()})
		other := open(t, "mem://sp", options("mem", store))
		want, err := summary.Of(ctx, other.Savepoint)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Bytes != want.Bytes || sum.Bytes.Inline == 0 {
			t.Errorf("%+v mapped, %+v read", sum.Bytes, want.Bytes)
		}
		a, errA := fingerprint.Of(ctx, snap.Savepoint, snap.Source())
		c, errC := fingerprint.Of(ctx, other.Savepoint, other.Source())
		if a != c || errA != nil || errC != nil {
			t.Errorf("%d bytes: the two say different things: %v, %v", b.Len(), errA, errC)
		}
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
		if err := snap.Close(); err != nil {
			t.Error("second close:", err)
		}
	}
}

// A file that is another one at the second read is no longer the input.
func TestReplacedBetweenReads(t *testing.T) {
	flink := string(encode(t, model(list(relative("state", 5), 0))))
	t.Run("local", func(t *testing.T) {
		dir := write(t, map[string]string{"_metadata": flink, "state": "hello"})
		snap := open(t, dir, options())
		data := snap.Operators[0].Subtasks[0].Managed.Data
		content(t, snap, data)
		if err := os.Remove(dir + "/state"); err != nil {
			t.Fatal(err)
		}
		put(t, dir+"/state.new", "HELLO")
		if err := os.Rename(dir+"/state.new", dir+"/state"); err != nil {
			t.Fatal(err)
		}
		if _, err := snap.Source().ReadAt(ctx, data, make([]byte, 5), 0); !errors.Is(err, format.ErrChanged) || !errors.Is(err, storage.ErrChanged) {
			t.Errorf("replaced: %v", err)
		}
		if err := os.Remove(dir + "/state"); err != nil {
			t.Fatal(err)
		}
		if _, err := snap.Source().ReadAt(ctx, data, make([]byte, 5), 0); !errors.Is(err, format.ErrChanged) {
			t.Errorf("deleted: %v", err)
		}
		if err := snap.Unchanged(ctx); err != nil {
			t.Error(err)
		}
		put(t, dir+"/_metadata", flink+"x")
		if err := snap.Unchanged(ctx); !errors.Is(err, format.ErrChanged) {
			t.Errorf("changed _metadata: %v", err)
		}
		if err := os.Remove(dir + "/_metadata"); err != nil {
			t.Fatal(err)
		}
		if err := snap.Unchanged(ctx); !errors.Is(err, format.ErrChanged) {
			t.Errorf("deleted _metadata: %v", err)
		}
	})
	t.Run("second half", func(t *testing.T) {
		var b bytes.Buffer
		if err := sptest.WriteUnion(&b, sptest.UnionOfSize(2<<20)); err != nil {
			t.Fatal(err)
		}
		store := inMemory(t, map[string]string{"sp/_metadata": b.String()})
		once := false
		h := hooked{store, func(op, name string) error {
			if op == "read" && once {
				replace(t, store, name, b.String()) // the same bytes, another version
			}
			once = op == "read"
			return nil
		}}
		if _, err := reader.Open(ctx, "mem://sp", new(options("mem", h))); !errors.Is(err, format.ErrChanged) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("spt", func(t *testing.T) {
		store := inMemory(t, map[string]string{"x.spt": string(pack(t, model(list(inline(strings.Repeat("hello ", 100)), 0))))})
		snap := open(t, "mem://x.spt", options("mem", store))
		replace(t, store, "x.spt", "something else")
		if _, err := snap.Source().ReadAt(ctx, snap.Operators[0].Subtasks[0].Managed.Data, make([]byte, 5), 0); !errors.Is(err, format.ErrChanged) {
			t.Errorf("error %v", err)
		}
	})
}

// A store that cannot answer says nothing of the snapshot.
func TestUnchangedWhenUnavailable(t *testing.T) {
	store := inMemory(t, map[string]string{"sp/_metadata": string(encode(t, model(list(relative("x", 1), 0)))), "sp/x": "x"})
	down := false
	snap := open(t, "mem://sp", options("mem", hooked{store, func(op, _ string) error {
		switch {
		case op == "list": // else the list shows the version
			return storage.ErrUnsupported
		case down:
			return storage.ErrUnavailable
		}
		return nil
	}}))
	content(t, snap, snap.Operators[0].Subtasks[0].Managed.Data)
	down = true
	if err := snap.Unchanged(ctx); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, format.ErrChanged) {
		t.Errorf("error %v", err)
	}
}

func TestView(t *testing.T) {
	dir := write(t, map[string]string{"_metadata": string(encode(t, model(list(relative("state", 5), 0)))), "state": "hello"})
	snap := open(t, dir, options())
	c := *snap.Savepoint
	c.ID = 99
	view := snap.With(&c)
	if view.ID != 99 || snap.ID != 7 || content(t, view, view.Operators[0].Subtasks[0].Managed.Data) != "hello" {
		t.Errorf("id %d", view.ID)
	}
}

func TestOptionsAreRequiredOfStores(t *testing.T) {
	_, err := reader.Open(ctx, "gs://bucket/sp", new(options("mem", mem.New())))
	is(t, err, `no storage for scheme "gs"`, "copy it to a local directory", storage.ErrUnsupported)
	_, err = reader.Open(ctx, "", new(options()))
	is(t, err, "no snapshot named", "give the directory", format.ErrMissing)
}

func TestParseMapping(t *testing.T) {
	for s, want := range map[string]format.Mapping{
		"a=b":              {Old: "a", New: "b"},
		"s3://b/x=/data/x": {Old: "s3://b/x", New: "/data/x"},
		"a=":               {Old: "a"},
		"a=b=c":            {Old: "a", New: "b=c"},
	} {
		if got, err := format.ParseMapping(s); err != nil || got != want {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "a", "=b"} {
		if _, err := format.ParseMapping(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}
