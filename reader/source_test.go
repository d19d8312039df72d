package reader_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// locate opens a snapshot with one reference and looks for its file.
func locate(t *testing.T, location string, o reader.Options) (*reader.Snapshot, reader.Found, error) {
	t.Helper()
	snap := open(t, location, o)
	found, err := snap.Locate(ctx, snap.Operators[0].Subtasks[0].Managed.Data)
	return snap, found, err
}

func referring(t *testing.T, s format.Stream) string { return string(encode(t, model(list(s, 0)))) }

func TestMappings(t *testing.T) {
	tests := []struct {
		name string
		ref  string
		maps []format.Mapping
		want string // below the folder; "": none of the mappings is for it
	}{
		{"folder", "s3://b/job/shared/x", []format.Mapping{{Old: "s3://b/job", New: "{dir}/new"}}, "new/shared/x"},
		{"slash behind the old", "s3://b/job/shared/x", []format.Mapping{{Old: "s3://b/job/", New: "{dir}/new"}}, "new/shared/x"},
		{"slash behind the new", "s3://b/job/shared/x", []format.Mapping{{Old: "s3://b/job", New: "{dir}/new/"}}, "new/shared/x"},
		{"slash behind both", "s3://b/job/shared/x", []format.Mapping{{Old: "s3://b/job/", New: "{dir}/new/"}}, "new/shared/x"},
		{"the file itself", "s3://b/job/x", []format.Mapping{{Old: "s3://b/job/x", New: "{dir}/y"}}, "y"},
		{"longest first", "s3://b/job/shared/x", []format.Mapping{{Old: "s3://b/job", New: "{dir}/a"}, {Old: "s3://b/job/shared", New: "{dir}/b"}, {Old: "s3://b", New: "{dir}/c"}}, "b/x"},
		{"longest by what it means", "file:/a/b/x", []format.Mapping{{Old: "file:///a", New: "{dir}/a"}, {Old: "file:/a/b", New: "{dir}/b"}}, "b/x"},
		{"s3a for s3", "s3://b/job/x", []format.Mapping{{Old: "s3a://b/job", New: "{dir}/a"}}, "a/x"},
		{"s3 for s3p", "s3p://b/job/x", []format.Mapping{{Old: "s3://b/job", New: "{dir}/a"}}, "a/x"},
		{"file:/// for file:", "file:/old/x", []format.Mapping{{Old: "file:///old", New: "{dir}/a"}}, "a/x"},
		{"a path for file:", "file:/old/x", []format.Mapping{{Old: "/old", New: "{dir}/a"}}, "a/x"},
		{"file: for a path", "/old/x", []format.Mapping{{Old: "file:/old", New: "{dir}/a"}}, "a/x"},
		{"root", "hdfs://n/x", []format.Mapping{{Old: "hdfs://n/", New: "{dir}"}}, "x"},
		{"new is a URI", "hdfs://n/x", []format.Mapping{{Old: "hdfs://n", New: "file:{dir}/u"}}, "u/x"},
		{"inside a name", "s3://b/job2/x", []format.Mapping{{Old: "s3://b/job", New: "{dir}/a"}}, ""},
		{"other bucket", "s3://bb/x", []format.Mapping{{Old: "s3://b", New: "{dir}/a"}}, ""},
		{"relative is not mapped", "", []format.Mapping{{Old: "state", New: "{dir}/a"}}, "sp/state"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := format.Stream(absolute(tt.ref, 5))
			if tt.ref == "" {
				st = relative("state", 5)
			}
			dir := write(t, map[string]string{"sp/_metadata": referring(t, st), "sp/state": "state"})
			for _, decoy := range []string{"a/shared/x", "b/x", "c/job/shared/x", "a/x", "a/b/x", "new/shared/x", "y", "x", "u/x", "newshared/x", "a2/x", "ab/x"} {
				put(t, filepath.Join(dir, decoy), decoy)
			}
			o := options()
			for _, m := range tt.maps {
				o.Map = append(o.Map, format.Mapping{Old: m.Old, New: strings.ReplaceAll(m.New, "{dir}", dir)})
			}
			_, found, err := locate(t, dir+"/sp", o)
			if tt.want == "" {
				if !errors.Is(err, format.ErrNotChecked) || errors.Is(err, format.ErrMissing) {
					t.Fatalf("found %q, %v", found.Name, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := filepath.Clean(found.Name), filepath.Join(dir, tt.want); got != want || found.Name != got || found.Instead != "" {
				t.Errorf("found %q, want %q", found.Name, want)
			}
		})
	}
}

// A mapping says where to look: what is not there is missing, and what the
// mapping is for is not looked for anywhere else.
func TestMappingThatLeadsNowhere(t *testing.T) {
	dir := write(t, map[string]string{"job/chk-1/_metadata": referring(t, absolute("s3://b/job/shared/x", 5)), "job/shared/x": "right", "old/x": "12345"})
	o := options()
	o.Map = []format.Mapping{{Old: "s3://b/job", New: dir + "/nowhere"}}
	_, _, err := locate(t, dir+"/job/chk-1", o)
	is(t, err, dir+"/nowhere/shared/x is missing", "", format.ErrMissing, storage.ErrNotExist)
}

// A snapshot that was copied away from where it was written.
func TestFallbacks(t *testing.T) {
	const job = "000000000000000000000000005b707a"
	tests := []struct{ name, ref, at string }{
		{"shared", "s3://old/base/" + job + "/shared/x", "job/shared/x"},
		{"merged shared", "s3://old/" + job + "/shared/job_1_op_2_0_2/x", "job/shared/job_1_op_2_0_2/x"},
		{"task owned", "file:/no/such/" + job + "/taskowned/x", "job/taskowned/x"},
		{"other checkpoint", "s3://old/" + job + "/chk-2/x", "job/chk-2/x"},
		{"same checkpoint, absolute", "s3://old/" + job + "/chk-3/x", "job/chk-3/x"},
		{"beside", "hdfs://n/savepoint-1/x", "job/chk-3/x"},
		{"changelog beside the job", "file:/no/dstl/" + job + "/dstl/x", "dstl/" + job + "/dstl/x"},
		{"changelog in the job", "file:/no/dstl/" + job + "/dstl/x", "job/dstl/" + job + "/dstl/x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, map[string]string{"job/chk-3/_metadata": referring(t, absolute(tt.ref, 5)), tt.at: "moved", "link/": ""})
			if err := os.Symlink(dir+"/job/chk-3", dir+"/link/latest"); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			check := func(location string) {
				t.Helper()
				snap, found, err := locate(t, location, options())
				if err != nil {
					t.Errorf("from %s: %v", location, err)
					return
				}
				real, err := filepath.Abs(found.Name)
				if err != nil || found.Instead != tt.ref {
					t.Errorf("from %s: found %q instead of %q", location, found.Name, found.Instead)
				}
				if want := filepath.Join(dir, tt.at); real != want && !sameFile(t, real, want) {
					t.Errorf("from %s: found %q, want %q", location, real, want)
				}
				if got := content(t, snap, snap.Operators[0].Subtasks[0].Managed.Data); got != "moved" {
					t.Errorf("from %s: %q", location, got)
				}
				_, name, err := options().Stores.Resolve(ctx, found.URI)
				if err != nil || !sameFile(t, name, real) {
					t.Errorf("from %s: URI %q", location, found.URI)
				}
			}
			for _, location := range []string{dir + "/job/chk-3", "job/chk-3", "./job/chk-3/", "job/chk-3/_metadata", "link/latest", "file:" + dir + "/job/chk-3"} {
				check(location)
			}
			t.Chdir(dir + "/job")
			check("chk-3")
			t.Chdir(dir + "/job/chk-3")
			check(".")
			check("_metadata")
		})
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// In an object store too, whose names are below a bucket.
func TestFallbacksInAnObjectStore(t *testing.T) {
	for ref, at := range map[string]string{"s3://old/job/shared/x": "job/shared/x", "file:/old/y": "job/chk-1/y", "s3://old/dstl/j/dstl/x": "dstl/j/dstl/x"} {
		store := inMemory(t, map[string]string{"job/chk-1/_metadata": referring(t, absolute(ref, 5)), at: "moved"})
		_, found, err := locate(t, "mem://job/chk-1", options("mem", store))
		if err != nil || found.Name != at || found.URI != "mem://"+at || found.Instead != ref {
			t.Errorf("%s: %+v, %v", ref, found, err)
		}
	}
	// At the top there is no folder of a job.
	store := inMemory(t, map[string]string{"_metadata": referring(t, absolute("s3://old/job/shared/x", 5)), "shared/x": "other"})
	if _, found, err := locate(t, "mem://_metadata", options("mem", store)); !errors.Is(err, format.ErrNotChecked) {
		t.Errorf("%+v, %v", found, err)
	}
}

// What is where the reference says is taken, whatever is nearer: where the user
// does not allow that, nothing is taken for it.
func TestFallbackIsTheLastResort(t *testing.T) {
	base := t.TempDir()
	ref := "file:" + base + "/job/shared/x"
	dir := write(t, map[string]string{"job/chk-1/_metadata": referring(t, absolute(ref, 5)), "job/shared/x": "decoy"})
	put(t, base+"/job/shared/x", "right")
	if _, found, err := locate(t, dir+"/job/chk-1", options()); !errors.Is(err, format.ErrOutside) || found.Instead != "" {
		t.Errorf("%+v, %v", found, err)
	}
	o := options()
	o.Follow = []string{base}
	snap, found, err := locate(t, dir+"/job/chk-1", o)
	if err != nil || found.Instead != "" || found.URI != ref {
		t.Errorf("%+v, %v", found, err)
	}
	if got := content(t, snap, snap.Operators[0].Subtasks[0].Managed.Data); got != "right" {
		t.Errorf("%q", got)
	}
	// And where nobody can tell whether it is, nothing else is taken for it.
	for _, cause := range []error{storage.ErrUnavailable, storage.ErrPermission} {
		far := hooked{inMemory(t, nil), func(string, string) error { return cause }}
		dir := write(t, map[string]string{"job/chk-1/_metadata": referring(t, absolute("mem://job/shared/x", 5)), "job/shared/x": "decoy"})
		o := options("mem", far)
		o.Follow = []string{"mem://job"}
		_, found, err := locate(t, dir+"/job/chk-1", o)
		if !errors.Is(err, cause) || found.Name != "" {
			t.Errorf("%v: found %q, %v", cause, found.Name, err)
		}
	}
}

// References that no Flink writes: never followed out of the snapshot.
func TestHostileReferences(t *testing.T) {
	dir := write(t, map[string]string{"secret": "keep!", "sub/secret": "keep!", "job/x": "keep!", "job/shared/": "", "job/dstl/": "", "dstl/": ""})
	for _, name := range []string{"../secret", "..", ".", "sub/../../secret", "/etc/passwd", dir + "/secret", `..\secret`, "a\x00b", "", "sub/secret", "file:/etc/passwd"} {
		put(t, dir+"/sp/_metadata", referring(t, relative(name, 5)))
		snap, found, err := locate(t, dir+"/sp", options())
		if !errors.Is(err, format.ErrUnsupported) || !errors.Is(err, format.ErrOutside) || found.Store != nil {
			t.Errorf("%q: found %+v, %v", name, found, err)
		}
		if _, err := snap.Source().ReadAt(ctx, snap.Operators[0].Subtasks[0].Managed.Data, make([]byte, 1), 0); !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%q is read: %v", name, err)
		}
		if strings.ContainsRune(err.Error(), 0) {
			t.Errorf("%q: raw in %q", name, err)
		}
		_, findings := verify(t, snap)
		if len(findings) != 1 || findings[0].Code != "path" || findings[0].Severity != finding.Error {
			t.Errorf("%q: %+v", name, findings)
		}
	}
	// Fallbacks do not climb either.
	for _, ref := range []string{"s3://b/shared/../../secret", "s3://b/shared/../secret", "s3://b/dstl/../../secret", "s3://b/chk-../secret", "s3://b/x/..", "s3://b/shared/\x00", "s3://b/"} {
		put(t, dir+"/job/chk-1/_metadata", referring(t, absolute(ref, 5)))
		if _, found, err := locate(t, dir+"/job/chk-1", options()); !errors.Is(err, format.ErrNotChecked) || found.Store != nil {
			t.Errorf("%q: found %+v, %v", ref, found, err)
		}
	}
	// A folder is no state file.
	put(t, dir+"/sp/_metadata", referring(t, absolute("file:"+dir+"/sub", 5)))
	if _, _, err := locate(t, dir+"/sp", options()); !errors.Is(err, format.ErrMissing) {
		t.Error(err)
	}
}

// Inline names look like paths and are never opened.
func TestInlineNamesAreNotFollowed(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/secret", "keep!")
	sp := model(list(&format.Inline{Name: text("file:" + dir + "/secret"), Data: format.NewBytes([]byte("mine!"))}, 0))
	put(t, dir+"/sp/_metadata", string(encode(t, sp)))
	snap := open(t, dir+"/sp", options())
	if got := content(t, snap, snap.Operators[0].Subtasks[0].Managed.Data); got != "mine!" {
		t.Errorf("%q", got)
	}
	if v, found := described(t, snap); len(found) != 0 || !v.Relocatable() || v.Files != 0 {
		t.Errorf("%+v, %+v", v, found)
	}
}

func TestSourceBounds(t *testing.T) {
	seg := &format.Segment{Path: text("file:{}"), Start: 2, Length: 3}
	dir := write(t, map[string]string{"merged": "0123456789", "state": "hello"})
	seg.Path = text("file:" + dir + "/merged")
	put(t, dir+"/_metadata", string(encode(t, model(list(relative("state", 50), 0)))))
	snap := open(t, dir, options())
	src := snap.Source()
	read := func(s format.Stream, off int64, n int) (string, error) {
		p := make([]byte, n)
		k, err := src.ReadAt(ctx, s, p, off)
		return string(p[:k]), err
	}
	state := snap.Operators[0].Subtasks[0].Managed.Data
	rope := &format.Concat{Parts: []format.Part{{Of: seg, Off: 1, N: 2}, format.Literal([]byte("-")), {Of: inline("abc"), Off: 1, N: 0}, {Of: state, Off: 0, N: 2}}}
	for _, tt := range []struct {
		s    format.Stream
		off  int64
		n    int
		want string
	}{
		{seg, 0, 3, "234"}, {seg, 2, 1, "4"}, {seg, 3, 0, ""},
		{state, 1, 4, "ello"},
		{&format.KeyGroupStream{Data: seg}, 1, 2, "34"},
		{rope, 0, 5, "34-he"}, {rope, 1, 3, "4-h"}, {rope, 4, 1, "e"},
		{&format.EmptySegment{}, 0, 0, ""},
	} {
		if got, err := read(tt.s, tt.off, tt.n); err != nil || got != tt.want {
			t.Errorf("%T %d+%d: %q, %v", tt.s, tt.off, tt.n, got, err)
		}
	}
	for _, tt := range []struct {
		s   format.Stream
		off int64
		n   int
	}{
		{seg, 0, 4}, {seg, -1, 1}, {seg, 4, 1}, {seg, 1 << 62, 1}, // never into what is another's
		{&format.Segment{Path: seg.Path, Start: 9, Length: 5}, 0, 5},
		{&format.Segment{Path: seg.Path, Start: 1 << 62, Length: 1 << 62}, 1 << 61, 5},
		{&format.Segment{Path: seg.Path, Start: -5, Length: 5}, 0, 5},
		{&format.Segment{Path: seg.Path, Start: math.MaxInt64 - 1, Length: 5}, 3, 2}, // the sum overflows
		{state, 0, 6}, {state, 5, 1}, {state, 100, 1},
		{inline("abc"), 2, 2}, {inline("abc"), -1, 1},
		{rope, 3, 3}, {&format.EmptySegment{}, 0, 1},
	} {
		if got, err := read(tt.s, tt.off, tt.n); !errors.Is(err, format.ErrTruncated) {
			t.Errorf("%T %d+%d: %q, %v", tt.s, tt.off, tt.n, got, err)
		}
	}
}

// A context that was over is not remembered as the file's absence.
func TestLookupAfterCancel(t *testing.T) {
	dir := write(t, map[string]string{"_metadata": referring(t, relative("state", 5)), "state": "hello"})
	snap := open(t, dir, options())
	s, err := summary.Of(ctx, snap.Savepoint)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := snap.Files(over, s.Files); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if files, err := snap.Files(ctx, s.Files); err != nil || files[0].Missing() {
		t.Errorf("%+v, %v", files, err)
	}
}

// OpenFile streams, with the version pinned, and says when less came.
func TestOpenFile(t *testing.T) {
	dir := write(t, map[string]string{"_metadata": referring(t, relative("state", 5)), "state": "hello"})
	snap := open(t, dir, options())
	st := snap.Operators[0].Subtasks[0].Managed.Data
	body, err := snap.OpenFile(ctx, st, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 10)
	n, err := body.Read(p)
	if string(p[:n]) != "ell" || err != nil {
		t.Errorf("%q, %v", p[:n], err)
	}
	put(t, dir+"/state", "hell")
	if _, err = body.Read(p); !errors.Is(err, format.ErrChanged) {
		t.Errorf("after it shrank: %v", err)
	}
	body.Close()
	if _, err := snap.OpenFile(ctx, st, 0, 5); !errors.Is(err, format.ErrChanged) {
		t.Errorf("%v", err)
	}
}
