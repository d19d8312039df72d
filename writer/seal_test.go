package writer

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
)

// Design §2, identity: what goes through an .spt, or is copied, is what it was,
// byte for byte.
func TestIdentity(t *testing.T) {
	var identical, byDefault, withFiles int
	var bytesOfState int64
	for _, dir := range testenv.Snapshots(t) {
		store := mem.New()
		o := Options{Stores: stores("mem", store)}
		in := openAt(t, dir, o.Stores)
		var absoluteRefs bool
		want := map[string]string{}
		err := in.EachStream(func(_ format.Place, s format.Stream) error {
			path, rel, ok := format.Reference(s)
			if ok && !rel {
				absoluteRefs = true
			}
			if ok && rel {
				p, err := os.ReadFile(filepath.Join(dir, path.String()))
				if errors.Is(err, os.ErrNotExist) {
					return nil
				}
				want[path.String()] = string(p)
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		p, err := os.ReadFile(dir + "/_metadata")
		if err != nil {
			t.Fatal(err)
		}
		want["_metadata"] = string(p)
		same := func(what, prefix string) {
			got := objects(t, store, prefix)
			if !maps.Equal(got, want) {
				t.Errorf("%s %s: %d files, want %d; _metadata equal: %v", dir, what, len(got), len(want), got["_metadata"] == want["_metadata"])
			}
		}
		keep := o
		keep.KeepReferences, keep.KeepMissing = true, true
		if _, err := Write(background, in.View(), "mem://x.spt", &keep); err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		packed := openAt(t, "mem://x.spt", o.Stores)
		for what, from := range map[string]*reader.Snapshot{"packed": packed, "copied": in} {
			if _, err := Write(background, from.View(), "mem://"+what, &keep); err != nil {
				t.Errorf("%s %s: %v", dir, what, err)
				continue
			}
			same(what+" with references kept", what+"/")
		}
		identical++
		if len(want) > 1 {
			withFiles++
		}
		for _, p := range want {
			bytesOfState += int64(len(p))
		}
		if !absoluteRefs {
			for what, from := range map[string]*reader.Snapshot{"packed-default": packed, "copied-default": in} {
				if _, err := Write(background, from.View(), "mem://"+what, &o); err != nil {
					t.Errorf("%s %s: %v", dir, what, err)
					continue
				}
				same(what, what+"/")
			}
			byDefault++
		}
		in.Close()
	}
	t.Logf("%d snapshots are identical after flink -> .spt -> flink and flink -> flink with references kept, %d of them by default; %d have files; %d bytes", identical, byDefault, withFiles, bytesOfState)
}

// A checkpoint that refers to absolute places becomes one that can be moved,
// with the same content.
func TestSelfContained(t *testing.T) {
	var count, shared, streams int
	for _, dir := range testenv.Snapshots(t) {
		if !strings.Contains(dir, "chk-") {
			continue
		}
		if p, err := os.ReadFile(filepath.Join(dir, "_metadata")); err != nil {
			t.Fatal(err)
		} else if bytes.Contains(p, []byte("/shared/")) || bytes.Contains(p, []byte("/taskowned/")) || bytes.Contains(p, []byte("/dstl/")) {
			shared++
		}
		store := mem.New()
		o := Options{Stores: stores("mem", store)}
		in := openAt(t, dir, o.Stores)
		handles := 0
		fileref.EachAbsolute(in.Savepoint, func(format.Place, string) { handles++ })
		if handles == 0 {
			continue
		}
		count++
		root := filepath.Dir(filepath.Dir(dir)) // of the job's directory, with shared
		unchanged(t, root, func() {
			report, direct := sealAt(t, dir, "mem://direct", o)
			_, packed := sealAt(t, dir, "mem://x.spt", o)
			_, unpacked := sealAt(t, "mem://x.spt", "mem://unpacked", o)
			for _, out := range []*reader.Snapshot{direct, unpacked, packed} {
				if v := sound(t, out); !v.Relocatable() {
					t.Errorf("%s: %s is not relocatable", dir, out.Location)
				}
				streams += sameStreams(t, out, in)
			}
			for _, out := range []*reader.Snapshot{direct, unpacked} {
				for _, op := range out.Operators {
					for _, sub := range op.Subtasks {
						if sub.Managed != nil && sub.Managed.Merging != nil {
							t.Errorf("%s: subtask %d is still merged", dir, sub.Index)
						}
					}
				}
			}
			// Each reference that changed is said, once, and leads to a file.
			said := map[string]bool{}
			written := objects(t, store, "direct/")
			for _, r := range report.Plan.Rewrites {
				if _, ok := written[r.To]; !ok || said[r.To] {
					t.Errorf("%s: %s becomes %s", dir, r.From, r.To)
				}
				said[r.To] = true
			}
			if len(report.Plan.Substituted) == 0 || len(written) != len(report.Plan.Files)+1 {
				t.Errorf("%s: %d found elsewhere, %d files of %d", dir, len(report.Plan.Substituted), len(written), len(report.Plan.Files))
			}
			// Moved as a whole, it is still all there.
			for name, data := range written {
				storetest.Put(t, store, "far/away/"+name, data)
			}
			sameStreams(t, openAt(t, "mem://far/away", o.Stores), in)
		})
		in.Close()
	}
	t.Logf("%d checkpoints made self-contained: %d streams compared", count, streams)
	testenv.Found(t, "checkpoints with absolute references", count, shared)
}

// On a local disk: the same, for one snapshot of each shape.
func TestLocalCopies(t *testing.T) {
	for _, name := range []string{"sp-001", "sp-009", "sp-004", "sp-006", "sp-005", "flink-2.0-keyed-rocksdb", "flink-2.0-keyed-native"} {
		dir := testenv.Fixture(t, name)
		out := folderOf(t, nil)
		o := Options{Stores: stores(), ReadBack: true}
		unchanged(t, filepath.Join("../testdata/savepoints", name), func() {
			r, a := sealAt(t, dir, out+"/folder/deep/sp", o)
			if !r.ReadBack || r.Written == 0 {
				t.Errorf("%+v", r)
			}
			_, b := sealAt(t, dir, out+"/x.spt", o)
			_, c := sealAt(t, out+"/x.spt", out+"/again", o)
			in := openAt(t, dir, o.Stores)
			for _, snap := range []*reader.Snapshot{a, b, c} {
				sound(t, snap)
				sameStreams(t, snap, in)
			}
			if !maps.Equal(files(t, out+"/folder/deep/sp"), files(t, out+"/again")) {
				t.Errorf("%s: the copy and the one from the .spt differ", name)
			}
		})
		if got := names(tree(t, out)); slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tempname.Prefix) }) {
			t.Errorf("left over: %v", got)
		}
	}
}

// merged is a handle on a segment, as file merging writes it.
func merged(path string, start, n int64, id string) *format.OperatorHandle {
	h := handleOf(&format.Segment{Path: text(path), Start: start, Length: n, LogicalID: text(id)}, 0)
	h.Merging = &format.FileMerging{TaskOwnedDir: text("file:/a"), SharedDir: text("file:/b")}
	return h
}

// Names that are taken get a suffix, whatever their case, and every file is
// copied once.
func TestNamesAndSharedFiles(t *testing.T) {
	dir := folderOf(t, map[string]string{"a/x": "first", "b/x": "second", "c/X": "third", "sp/x": "beside", "m": "0123456789", "_metadata": "evil"})
	ref := func(name string, n int) *format.File { return absoluteFile("file:"+dir+"/"+name, n) }
	sp := modelOf(
		handleOf(ref("a/x", 5), 0), handleOf(ref("b/x", 6), 0), handleOf(ref("c/X", 5), 0), handleOf(relative("x", 6), 0),
		handleOf(ref("a/x", 5), 0), handleOf(relative("x", 6), 0), handleOf(&format.File{Path: text("file://" + dir + "/a/x"), Length: 5}, 0),
		merged("file:"+dir+"/m", 0, 4, "x"), merged("file:"+dir+"/m", 4, 6, "logical"), merged("file:"+dir+"/m", 4, 6, "logical"), merged("file:"+dir+"/m", 0, 4, "no/plain/name"),
		handleOf(ref("_metadata", 4), 0),
		&format.OperatorHandle{Data: &format.EmptySegment{}, Merging: &format.FileMerging{TaskOwnedDir: text("file:/a"), SharedDir: text("file:/b"), Placeholder: true}},
	)
	putFile(t, dir+"/sp/_metadata", encoded(t, sp))
	o := Options{Stores: stores()}
	report, out := sealAt(t, dir+"/sp", dir+"/out", o)
	got := files(t, dir+"/out")
	delete(got, "_metadata")
	want := map[string]string{"x": "beside", "x-2": "first", "x-3": "second", "X-4": "third", "x-5": "0123", "logical": "456789", "_metadata-2": "evil"}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if v := sound(t, out); !v.Relocatable() || v.Files != len(want) {
		t.Errorf("%+v", v)
	}
	sameStreams(t, out, openAt(t, dir+"/sp", o.Stores))
	if last := out.Operators[0].Subtasks[12]; last.Managed != nil {
		t.Errorf("the placeholder is still there: %+v", last.Managed)
	}
	if n := len(report.Plan.Rewrites); n != 6 {
		t.Errorf("%d rewrites: %v", n, report.Plan.Rewrites)
	}
	// Through an .spt, where equal bytes are one, they stay files of their own.
	_, packed := sealAt(t, dir+"/sp", dir+"/x.spt", o)
	sound(t, packed)
	sealAt(t, dir+"/x.spt", dir+"/again", o)
	if again := files(t, dir+"/again"); !maps.Equal(again, files(t, dir+"/out")) {
		t.Errorf("through an .spt: %v", names(again))
	}
}

// Version 2 has no relative references.
func TestVersion2(t *testing.T) {
	var dir string
	for _, d := range testenv.Snapshots(t) {
		snap := openAt(t, d, stores())
		inline, version := 0, metadata.Version(snap.Container.Metadata)
		if err := snap.EachStream(func(_ format.Place, s format.Stream) error {
			if format.Kind(s) == format.KindInline && format.SizeOf(s) > 50 {
				inline++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		snap.Close()
		if version == metadata.V2 && inline > 0 {
			dir = d
			break
		}
	}
	if dir == "" {
		testenv.NotTested(t, "NOT TESTED: this corpus has no snapshot of version 2 with inline state")
	}
	out := folderOf(t, nil)
	o := Options{Stores: stores(), InlineThreshold: new(int64(50))}
	if err := os.Symlink(out, out+"/link"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(out)
	report, snap := sealAt(t, dir, "link/v2", o) // relative, and through a link
	if metadata.Version(snap.Container.Metadata) != metadata.V2 || len(report.Plan.Files) == 0 {
		t.Fatalf("%s, %d files", metadata.Version(snap.Container.Metadata), len(report.Plan.Files))
	}
	n := 0
	fileref.EachAbsolute(snap.Savepoint, func(_ format.Place, path string) {
		n++
		if !strings.HasPrefix(path, "file:"+out+"/v2/") {
			t.Errorf("reference %q", path)
		}
	})
	if n != len(report.Plan.Files) {
		t.Errorf("%d absolute handles, %d files", n, len(report.Plan.Files))
	}
	sound(t, snap)
	in := openAt(t, dir, o.Stores)
	sameStreams(t, snap, in)
	o.MetadataVersion = int32(metadata.V3)
	_, snap = sealAt(t, dir, "v3", o)
	if v := sound(t, snap); metadata.Version(snap.Container.Metadata) != metadata.V3 || !v.Relocatable() {
		t.Errorf("%s: %+v", metadata.Version(snap.Container.Metadata), v)
	}
	sameStreams(t, snap, in)
	// Down is not possible.
	if _, err := Write(background, openAt(t, "v3", o.Stores).View(), "down", &Options{Stores: o.Stores, MetadataVersion: int32(metadata.V2)}); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

func TestInlineThreshold(t *testing.T) {
	big := strings.Repeat("state", 20)
	sp := modelOf(handleOf(inlined(big), 0), handleOf(inlined(big), 0), handleOf(inlined("small"), 0), handleOf(inlined(big[:60]), 0))
	sp.Operators[0].Coordinator = inlined(big + big)
	sp.Operators[0].Subtasks[0].ManagedKeyed = &format.KeyGroups{Codec: format.CodecFlink, Range: format.KeyGroupRange{Count: 1}, Offsets: format.OffsetSlice{0}, Data: inlined(big)}
	dir := folderOf(t, map[string]string{"sp/_metadata": encoded(t, sp)})
	o := Options{Stores: stores(), InlineThreshold: new(int64(60))}
	for _, in := range []string{"sp", "x.spt"} {
		if in == "x.spt" {
			sealAt(t, dir+"/sp", dir+"/x.spt", Options{Stores: stores()})
		}
		report, out := sealAt(t, dir+"/"+in, dir+"/out-"+in+"/sp", o)
		// Equal bytes in files of their own: Flink tells handles apart by file.
		if got := files(t, dir+"/out-"+in+"/sp"); len(got) != 4 || len(report.Plan.Files) != 3 {
			t.Errorf("%s: %v", in, names(got))
		}
		for i, want := range []format.StreamKind{format.KindRelative, format.KindRelative, format.KindInline, format.KindInline} {
			if got := format.Kind(out.Operators[0].Subtasks[i].Managed.Data); got != want {
				t.Errorf("%s: subtask %d is %s", in, i, got)
			}
		}
		if format.Kind(out.Operators[0].Coordinator) != format.KindInline {
			t.Errorf("%s: the coordinator moved out", in)
		}
		sound(t, out)
		sameStreams(t, out, openAt(t, dir+"/sp", o.Stores))
	}
}

// A threshold of 0 is not the same as none: all state that has bytes moves.
func TestInlineThresholdZero(t *testing.T) {
	sp := modelOf(handleOf(inlined("x"), 0), handleOf(inlined("")))
	sp.Operators[0].Coordinator = inlined("c")
	dir := folderOf(t, map[string]string{"sp/_metadata": encoded(t, sp)})
	sealAt(t, dir+"/sp", dir+"/x.spt", Options{Stores: stores()})
	for _, in := range []string{"sp", "x.spt"} {
		report, out := sealAt(t, dir+"/"+in, dir+"/out-"+in+"/sp", Options{Stores: stores(), InlineThreshold: new(int64)})
		if n := len(report.Plan.Files); n != 1 {
			t.Errorf("%s: %d files", in, n)
		}
		for i, want := range []format.StreamKind{format.KindRelative, format.KindInline} {
			if got := format.Kind(out.Operators[0].Subtasks[i].Managed.Data); got != want {
				t.Errorf("%s: subtask %d is %s", in, i, got)
			}
		}
		if format.Kind(out.Operators[0].Coordinator) != format.KindInline {
			t.Errorf("%s: the coordinator moved out", in)
		}
	}
}

func TestFilesLink(t *testing.T) {
	dir := folderOf(t, map[string]string{"sp/state": "hello", "other/far": "world!", "m": "0123456789"})
	sp := modelOf(handleOf(relative("state", 5), 0), handleOf(absoluteFile("file:"+dir+"/other/far", 6), 0), merged("file:"+dir+"/m", 2, 3, "seg"))
	putFile(t, dir+"/sp/_metadata", encoded(t, sp))
	o := Options{Stores: stores(), Files: Link, ReadBack: true}
	report, out := sealAt(t, dir+"/sp", dir+"/out", o)
	sound(t, out)
	sameStreams(t, out, openAt(t, dir+"/sp", o.Stores))
	inode := func(name string) os.FileInfo {
		fi, err := os.Stat(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return fi
	}
	if !os.SameFile(inode("sp/state"), inode("out/state")) || !os.SameFile(inode("other/far"), inode("out/far")) || os.SameFile(inode("sp/_metadata"), inode("out/_metadata")) {
		t.Error("not linked, or too much is")
	}
	if report.Linked != 2 || report.Written != 3+inode("out/_metadata").Size() {
		t.Errorf("%d linked, %d bytes written", report.Linked, report.Written)
	}
	// Where there are no links, they are copies.
	store := mem.New()
	o.Stores = stores("mem", store)
	report, out = sealAt(t, dir+"/sp", "mem://out", o)
	sound(t, out)
	if report.Linked != 0 {
		t.Errorf("%d linked", report.Linked)
	}
	// A link to a link is one to the file.
	if err := os.Rename(dir+"/sp/state", dir+"/real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"/real", dir+"/sp/state"); err != nil {
		t.Fatal(err)
	}
	o.Stores = stores()
	sealAt(t, dir+"/sp", dir+"/out2", o)
	if fi, err := os.Lstat(dir + "/out2/state"); err != nil || !fi.Mode().IsRegular() || !os.SameFile(fi, inode("real")) {
		t.Errorf("%v, %v", fi, err)
	}
}

func TestFilesReference(t *testing.T) {
	dir := folderOf(t, map[string]string{"job/chk-1/state": "hello", "other/far": "world!", "m": "0123456789", "job/shared/moved": "moved"})
	sp := modelOf(handleOf(relative("state", 5), 0), handleOf(absoluteFile("file:///"+dir[1:]+"/other/far", 6), 0), merged("file:"+dir+"/m", 2, 3, "seg"),
		handleOf(absoluteFile("s3://old/job/shared/moved", 5), 0), handleOf(inlined("inline"), 0))
	putFile(t, dir+"/job/chk-1/_metadata", encoded(t, sp))
	o := Options{Stores: stores(), Files: Reference}
	if err := os.Symlink(dir+"/job", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	report, out := sealAt(t, dir+"/link/chk-1", dir+"/out", o)
	if got := names(files(t, dir+"/out")); !slices.Equal(got, []string{"_metadata"}) || len(report.Plan.Files) != 0 {
		t.Errorf("%v", got)
	}
	var refs []string
	fileref.EachAbsolute(out.Savepoint, func(_ format.Place, path string) { refs = append(refs, path) })
	want := []string{"file:" + dir + "/job/chk-1/state", "file:///" + dir[1:] + "/other/far", "file:" + dir + "/m", "file:" + dir + "/job/shared/moved"}
	if !slices.Equal(refs, want) {
		t.Errorf("%v, want %v", refs, want)
	}
	sound(t, out)
	sameStreams(t, out, openAt(t, dir+"/job/chk-1", o.Stores))
	if !slices.Equal(report.Plan.Outside, want) || len(report.Plan.Rewrites) != 2 {
		t.Errorf("outside %v, rewrites %v", report.Plan.Outside, report.Plan.Rewrites)
	}
	// In a store that is reached by URIs, they are URIs.
	store := mem.New()
	o.Stores = stores("mem", store)
	storetest.Put(t, store, "job/chk-1/_metadata", encoded(t, modelOf(handleOf(relative("state", 5), 0), handleOf(absoluteFile("s3://old/shared/moved", 5), 0))))
	storetest.Put(t, store, "job/chk-1/state", "hello")
	storetest.Put(t, store, "job/shared/moved", "moved")
	report, out = sealAt(t, "mem://job/chk-1", "mem://out", o)
	if want := []string{"mem://job/chk-1/state", "mem://job/shared/moved"}; !slices.Equal(report.Plan.Outside, want) {
		t.Errorf("outside %v, want %v", report.Plan.Outside, want)
	}
	sound(t, out)
	// Both at once is a contradiction.
	o.KeepReferences = true
	if _, err := Write(background, openAt(t, "mem://job/chk-1", o.Stores).View(), "mem://both", &o); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

func TestMissingFiles(t *testing.T) {
	sp := modelOf(handleOf(relative("gone", 5), 0), handleOf(relative("short", 9), 0), handleOf(absoluteFile("s3://b/far", 5), 0), handleOf(relative("there", 5), 0), handleOf(relative("gone", 5), 0), merged("file:/no/m", 1, 2, "seg"))
	dir := folderOf(t, map[string]string{"sp/_metadata": encoded(t, sp), "sp/there": "hello", "sp/short": "hi"})
	unchanged(t, dir, func() {
		for _, target := range []string{"/out", "/x.spt"} {
			_, err := Write(background, openAt(t, dir+"/sp", stores()).View(), dir+target, &Options{Stores: stores()})
			var missing *MissingError
			if !errors.As(err, &missing) || !errors.Is(err, format.ErrMissing) || len(missing.Files) != 4 || missing.Remedies() == nil {
				t.Fatalf("%s: %v", target, err)
			}
			for _, what := range []string{"gone is missing", "expected 9 bytes, it has 2", "s3", "/no/m is missing"} {
				if !strings.Contains(err.Error(), what) {
					t.Errorf("%s: %q is not in %v", target, what, err)
				}
			}
		}
	})
	o := Options{Stores: stores(), KeepMissing: true}
	report, out := sealAt(t, dir+"/sp", dir+"/out", o)
	if got := names(files(t, dir+"/out")); !slices.Equal(got, []string{"_metadata", "there"}) {
		t.Errorf("%v", got)
	}
	want := []string{"gone", "short", "s3://b/far", "file:/no/m"}
	if !slices.Equal(report.Plan.Missing, want) {
		t.Errorf("missing %v", report.Plan.Missing)
	}
	if a, b := files(t, dir+"/sp")["_metadata"], files(t, dir+"/out")["_metadata"]; a != b {
		t.Error("_metadata changed")
	}
	report, packed := sealAt(t, dir+"/sp", dir+"/x.spt", o)
	if !slices.Equal(report.Plan.Missing, want) {
		t.Errorf("missing %v", report.Plan.Missing)
	}
	if _, err := Write(background, packed.View(), dir+"/back", &Options{Stores: stores()}); !errors.Is(err, format.ErrMissing) {
		t.Errorf("error %v", err)
	}
	_ = out
	o.KeepReferences = true
	sealAt(t, dir+"/x.spt", dir+"/back", o)
	if a, b := files(t, dir+"/sp")["_metadata"], files(t, dir+"/back")["_metadata"]; a != b {
		t.Error("_metadata changed on the way through an .spt")
	}
}

// A store that is out of reach for a moment is no reason to leave state out.
func TestUnavailableIsNotMissing(t *testing.T) {
	far := hooks{mem.New(), func(string, string) error { return nil }}
	down := unavailable{far}
	dir := folderOf(t, map[string]string{"sp/_metadata": encoded(t, modelOf(handleOf(absoluteFile("far://x", 5), 0)))})
	o := Options{Stores: stores("far", down), KeepMissing: true}
	for _, target := range []string{"/out", "/x.spt"} {
		_, err := Write(background, openAt(t, dir+"/sp", o.Stores).View(), dir+target, &o)
		if !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("%s: %v", target, err)
		}
		if _, err := os.Lstat(dir + target); err == nil {
			t.Errorf("%s exists", target)
		}
	}
}

// Nothing is written under names that lead out of the target, or that are the
// description's own.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"../up", "/abs", "a/b", `a\b`, "..", ".", "a\x00b", "_metadata", "_METADATA"} {
		dir := folderOf(t, map[string]string{"sp/_metadata": encoded(t, modelOf(handleOf(relative(name, -1), 0))), "up": "12345", "sp/a/b": "12345"})
		before := tree(t, dir)
		for _, o := range []Options{{}, {KeepMissing: true}, {KeepReferences: true}, {KeepReferences: true, KeepMissing: true}, {Files: Link}} {
			o.Stores = stores()
			snap, err := reader.Open(background, dir+"/sp", &reader.Options{Stores: o.Stores})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Write(background, snap.View(), dir+"/out", &o); err == nil {
				t.Errorf("%q is written with %+v", name, o)
			}
			snap.Close()
		}
		if after := tree(t, dir); !maps.Equal(before, after) {
			t.Errorf("%q: something changed: %v", name, names(after))
		}
	}
	// A name that the user allows to be followed is not one to write under either.
	for name, want := range map[string]string{"../up": "up", "a/b": "b"} {
		dir := folderOf(t, map[string]string{"sp/_metadata": encoded(t, modelOf(handleOf(relative(name, -1), 0))), "up": "12345", "sp/a/b": "12345"})
		before := tree(t, dir)
		_, out := sealAt(t, dir+"/sp", dir+"/out", Options{Stores: stores()})
		path, relative, _ := format.Reference(out.Operators[0].Subtasks[0].Managed.Data)
		got := contentsOf(t, dir+"/out")
		if path.String() != want || !relative || got[want] != "12345" && got["/"+want] != "12345" {
			t.Errorf("%q is written as %q", name, path)
		}
		after := tree(t, dir)
		for _, made := range []string{"", "/out", "/out/_metadata", "/out/" + want} {
			if _, ok := after[made]; !ok {
				t.Errorf("%q: no %s", name, made)
			}
			delete(after, made)
		}
		delete(before, "")
		if !maps.Equal(before, after) {
			t.Errorf("%q: something else changed: %v", name, names(after))
		}
	}
}

// Names of control characters and of great length are not used for new files.
func TestStrangeNames(t *testing.T) {
	dir := folderOf(t, map[string]string{"\x1b[31m": "12345"})
	putFile(t, dir+"/sp/_metadata", encoded(t, modelOf(handleOf(absoluteFile("file:"+dir+"/\x1b[31m", 5), 0))))
	sealAt(t, dir+"/sp", dir+"/out", Options{Stores: stores()})
	for name := range files(t, dir+"/out") {
		if strings.ContainsRune(name, '\x1b') {
			t.Errorf("%q", name)
		}
	}
}

// How much is done at once does not show.
func TestJobsGiveTheSameBytes(t *testing.T) {
	in := map[string]string{}
	var handles []*format.OperatorHandle
	for i := range 20 {
		name := fmt.Sprintf("f%02d", i)
		in["sp/"+name] = noise(uint64(i), 100<<10)
		handles = append(handles, handleOf(relative(name, 100<<10), 0, 50000, 99999))
	}
	in["sp/_metadata"] = encoded(t, modelOf(handles...))
	dir := folderOf(t, in)
	for _, c := range []spt.Compression{spt.Zstd, spt.S2, spt.None} {
		store := mem.New()
		for _, jobs := range []int{1, 4, 16} {
			o := Options{Stores: stores("mem", store), Jobs: jobs, Compression: c}
			sealAt(t, dir+"/sp", fmt.Sprintf("mem://%d.spt", jobs), o)
			sealAt(t, dir+"/sp", fmt.Sprintf("mem://%d", jobs), o)
		}
		for _, jobs := range []string{"4", "16"} {
			if storetest.Read(t, store, "1.spt") != storetest.Read(t, store, jobs+".spt") {
				t.Errorf("%s: %s jobs give other bytes", c, jobs)
			}
			if !maps.Equal(objects(t, store, "1/"), objects(t, store, jobs+"/")) {
				t.Errorf("%s jobs give another folder", jobs)
			}
		}
	}
}

// Prepare says what Write does, and does nothing.
func TestPlan(t *testing.T) {
	dir := folderOf(t, map[string]string{"sp/state": "hello", "far/x": "world!"})
	putFile(t, dir+"/sp/_metadata", encoded(t, modelOf(handleOf(relative("state", 5), 0), handleOf(absoluteFile("file:"+dir+"/far/x", 6), 0), handleOf(inlined("12"), 0))))
	o := Options{Stores: stores()}
	unchanged(t, dir, func() {
		for _, target := range []string{"", dir + "/out", dir + "/x.spt"} {
			p, err := Prepare(background, openAt(t, dir+"/sp", o.Stores).View(), target, &o)
			if err != nil {
				t.Fatal(err)
			}
			switch p.Family {
			case reader.SPT:
				if p.Bytes != 13 {
					t.Errorf("%d bytes", p.Bytes)
				}
			default:
				if p.Bytes != 11 || len(p.Files) != 2 || len(p.Rewrites) != 1 || p.MetadataBytes == 0 {
					t.Errorf("%+v", p)
				}
			}
		}
	})
	p, err := Prepare(background, openAt(t, dir+"/sp", o.Stores).View(), dir+"/out", &o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(background); err != nil {
		t.Fatal(err)
	}
	got := files(t, dir+"/out")
	if int64(len(got["_metadata"])) != p.MetadataBytes || len(got) != 3 {
		t.Errorf("%v", names(got))
	}
	if _, err := ParseFiles("hard"); err == nil {
		t.Error("hard is accepted")
	}
	if f, err := ParseFiles("link"); f != Link || err != nil {
		t.Error(f, err)
	}
}
