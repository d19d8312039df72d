package orphans_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/transform/orphans"
)

var (
	ctx = context.Background()
	now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	old = now.Add(-30 * 24 * time.Hour)
	fix = "../../testdata/savepoints"
)

const (
	week = 7 * 24 * time.Hour
	// Names as Flink makes them; all begin alike, so that tests can tell them apart.
	planted = "0f0e0d0c-0b0a-0908-0706-0504030201"
	jobA    = "00000000000000000000000000000015" // of counts-incremental
	jobM    = "00000000000000000000000000000018" // of counts-file-merging
)

// tree is a copy of the checkpoints of some fixtures, all old.
func tree(t *testing.T, fixtures ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "flink")
	for _, f := range fixtures {
		add(t, root, f)
	}
	return root
}

func add(t *testing.T, root, fixture string) {
	t.Helper()
	check(t, os.MkdirAll(root, 0o777))
	from := filepath.Join(fixture, "savepoint")
	if !filepath.IsAbs(fixture) {
		from = filepath.Join(fix, fixture, "savepoint")
	}
	check(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(root, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o777)
		}
		p, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(to, p, 0o666), os.Chtimes(to, old, old))
	}))
}

// plant writes a file of that age.
func plant(t *testing.T, at time.Time, elements ...string) string {
	t.Helper()
	name := filepath.Join(elements...)
	check(t, os.MkdirAll(filepath.Dir(name), 0o777))
	check(t, os.WriteFile(name, []byte("planted"), 0o666))
	check(t, os.Chtimes(name, at, at))
	return name
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, o orphans.Options, roots ...string) *orphans.Result {
	t.Helper()
	o.Now = now
	if o.OlderThan == 0 {
		o.OlderThan = week
	}
	r, err := orphans.Find(ctx, roots, o)
	check(t, err)
	return r
}

// kept are the unreferenced files and why each is kept.
func kept(r *orphans.Result) map[string]orphans.Reason {
	all := map[string]orphans.Reason{}
	for _, f := range r.Files {
		all[f.Path] = f.Kept
	}
	return all
}

func expect(t *testing.T, r *orphans.Result, want map[string]orphans.Reason) {
	t.Helper()
	if got := kept(r); !maps.Equal(got, want) {
		t.Errorf("found %v\nexpected %v", got, want)
	}
}

func sound(t *testing.T, r *orphans.Result) *orphans.Result {
	t.Helper()
	if err := r.Err(); err != nil {
		t.Errorf("problems: %v", err)
	}
	return r
}

// problems are the kinds of problems.
func problems(r *orphans.Result) (all []orphans.ProblemKind) {
	for _, p := range r.Problems {
		all = append(all, p.Kind)
	}
	return all
}

// remove removes what can be removed, and returns the error of each file.
func remove(t *testing.T, r *orphans.Result, to *orphans.Archive) map[string]error {
	t.Helper()
	all := map[string]error{}
	check(t, r.Remove(ctx, r.Removable(), to, func(f *orphans.File, err error) error {
		all[f.Path] = err
		return nil
	}))
	return all
}

// names are all names below a directory.
func names(t *testing.T, root string) (all []string) {
	t.Helper()
	check(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	}))
	return all
}

// rewrite changes the streams of a _metadata.
func rewrite(t *testing.T, dir string, f func(format.Stream) format.Stream) {
	t.Helper()
	snap, err := reader.Open(ctx, dir, nil)
	check(t, err)
	defer snap.Close()
	sp, err := snap.MapStreams(func(_ format.Place, s format.Stream) (format.Stream, error) { return f(s), nil })
	check(t, err)
	var b bytes.Buffer
	check(t, metadata.Encode(ctx, &b, sp, snap.Source()))
	name := filepath.Join(dir, "_metadata")
	check(t, os.WriteFile(name, b.Bytes(), 0o666))
	check(t, os.Chtimes(name, old, old))
}

// Every kind of retained checkpoint and savepoint that real Flink wrote: all its files
// are referenced, and exactly what is planted is found and removed.
func TestFindsExactlyWhatIsPlanted(t *testing.T) {
	known := filepath.Join(testenv.Corpus(t), "known")
	entries, err := os.ReadDir(known)
	check(t, err)
	tried, kinds := 0, map[orphans.Kind]int{}
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(known, e.Name(), "savepoint")); err != nil {
			continue
		}
		tried++
		t.Run(e.Name(), func(t *testing.T) {
			abs, err := filepath.Abs(filepath.Join(known, e.Name()))
			check(t, err)
			root := tree(t, abs)
			before := names(t, root)
			r := sound(t, find(t, orphans.Options{}, root))
			expect(t, r, map[string]orphans.Reason{})
			if r.Snapshots != 1 {
				t.Errorf("%d snapshots", r.Snapshots)
			}
			if r.Total.Files < 1 {
				t.Errorf("no files")
			}
			want := map[string]orphans.Reason{}
			for i, dir := range before { // in every directory in which there is a file
				if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
					continue
				}
				name := fmt.Sprintf("%s%02d", planted, i)
				switch base := filepath.Base(dir); {
				case base == "_metadata", filepath.Base(filepath.Dir(dir)) == "dstl", base == "flink" && strings.Contains(strings.Join(before, " "), "chk-"), base == "dstl" && filepath.Dir(dir) == root, filepath.Dir(dir) == root:
					plant(t, old, dir, name) // not a directory of state: left alone
				default:
					want[plant(t, old, dir, name)] = ""
				}
			}
			r = sound(t, find(t, orphans.Options{}, root))
			expect(t, r, want)
			for _, f := range r.Files {
				kinds[f.Dir.Kind]++
			}
			check(t, r.Unchanged(ctx))
			for path, err := range remove(t, r, nil) {
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
			for _, name := range before {
				if _, err := os.Lstat(name); err != nil {
					t.Error(err)
				}
			}
			for name := range want {
				if _, err := os.Lstat(name); err == nil {
					t.Errorf("%s is still there", name)
				}
			}
			expect(t, sound(t, find(t, orphans.Options{}, root)), map[string]orphans.Reason{})
		})
	}
	testenv.Found(t, "known snapshots", tried, testenv.Manifest(t).Known)
	for _, p := range []orphans.Kind{orphans.Shared, orphans.TaskOwned, orphans.Checkpoint, orphans.Changelog, orphans.Snapshot} {
		if kinds[p] == 0 {
			t.Errorf("nothing was planted in a directory of kind %s", p)
		}
	}
}

func TestKeeps(t *testing.T) {
	root := tree(t, "flink-2.3-counts-incremental")
	job := filepath.Join(root, jobA)
	add(t, filepath.Join(root, "renamed"), "flink-2.3-operator")
	want := map[string]orphans.Reason{
		plant(t, old, job, "shared", planted+"00"):                                           "",
		plant(t, old, job, "shared", "any-name"):                                             "",
		plant(t, old, job, "chk-1", planted+"01"):                                            "",
		plant(t, old, job, "chk-1", "._metadata.inprogress."+planted+"02"):                   "",
		plant(t, now.Add(-week), job, "shared", planted+"03"):                                "",
		plant(t, now.Add(time.Second-week), job, "shared", planted+"04"):                     orphans.Young,
		plant(t, now.Add(time.Hour), job, "shared", planted+"05"):                            orphans.UnknownAge,
		plant(t, old, job, "shared", "op_AsyncKeyed_1_2__attempt_0", "db", planted+"06"):     orphans.InUse,
		plant(t, old, job, "shared", "op_AsyncKeyed_1_2__attempt_0", "db", "CURRENT"):        orphans.InUse,
		plant(t, old, root, "renamed", planted+"07"):                                         "",
		plant(t, old, root, "renamed", "NOTES.txt"):                                          orphans.OtherName,
		plant(t, old, root, "savepoint-5b706e-0123456789ab", planted+"08"):                   "",
		plant(t, old, root, "savepoint-5b706e-0123456789ab", "README"):                       orphans.OtherName,
		plant(t, old, root, "dstl", jobA, "dstl", planted+"09"):                              "",
		plant(t, old, root, "dstl", strings.Repeat("0", 31)+"1", "dstl", planted+"10"):       orphans.JobUnread,
		plant(t, old, root, strings.Repeat("0", 31)+"2", "shared", planted+"11"):             "", // a job without checkpoints
		plant(t, old, root, "no-id", "chk-1", planted+"12"):                                  "",
		plant(t, old, root, "no-id", "shared", planted+"13"):                                 "",
		plant(t, old, root, strings.Repeat("0", 31)+"2", "taskowned", "job_x", planted+"14"): "",
	}
	// None of these are files of state.
	for _, elements := range [][]string{
		{"ha", "cluster", "completedCheckpoint0123"}, {"ha", "cluster", "submittedJobGraph0123"}, {"ha", "cluster", "blob", "job_" + jobA, "blob_p-1"},
		{"ha", "cluster", jobA, "shared", planted + "20"}, // below a directory of high availability nothing is
		{"job-result-store", "cluster", jobA + ".json"}, {"job-result-store", "c", jobA, "chk-1", planted + "21"},
		{"shared", planted + "22"}, {"logs", "taskmanager.log"}, {jobA, planted + "23"}, {planted + "24"}, {"savepoint-mine", planted + "25"},
		{jobA, "shared", ".spt-tmp-0123456789ab-x"}, {".spt-tmp-0123456789ab-sp", "chk-1", planted + "26"}, {".spt-old-0123456789ab-sp", planted + "27"},
	} {
		plant(t, old, append([]string{root}, elements...)...)
	}
	r := sound(t, find(t, orphans.Options{}, root))
	expect(t, r, want)
	if r.Elsewhere.Files != 11 || len(r.Leftovers) != 3 {
		t.Errorf("elsewhere %+v, leftovers %+v", r.Elsewhere, r.Leftovers)
	}
	removed := remove(t, r, nil)
	for path, why := range want {
		_, err := os.Lstat(path)
		if gone := errors.Is(err, os.ErrNotExist); gone != (why == "") {
			t.Errorf("%s, kept %q: gone %v", path, why, gone)
		}
		if err, tried := removed[path]; err != nil || tried != (why == "") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A merged file is referenced while one byte of it is.
func TestSegments(t *testing.T) {
	for _, version := range []string{"1.20", "2.0", "2.3"} {
		root := tree(t, "flink-"+version+"-counts-file-merging")
		dirs, err := filepath.Glob(filepath.Join(root, "*", "chk-*"))
		check(t, err)
		if len(dirs) != 1 {
			t.Fatal(dirs)
		}
		segments := map[string]bool{}
		rewrite(t, dirs[0], func(s format.Stream) format.Stream {
			if seg, ok := s.(*format.Segment); ok {
				segments[filepath.Base(seg.Path.String())] = true
			}
			return s
		})
		if len(segments) < 2 {
			t.Fatalf("%d merged files", len(segments))
		}
		var last format.Text
		rewrite(t, dirs[0], func(s format.Stream) format.Stream {
			seg, ok := s.(*format.Segment)
			if !ok {
				return s
			}
			if last.String() == "" {
				last = seg.Path
			}
			c := *seg
			c.Path, c.Start, c.Length = last, 5, 1
			return &c
		})
		delete(segments, filepath.Base(last.String()))
		r := sound(t, find(t, orphans.Options{}, root))
		for _, f := range r.Files {
			if !segments[filepath.Base(f.Path)] || f.Kept != "" {
				t.Errorf("%s is not one of %v, or kept: %s", f.Path, segments, f.Kept)
			}
			delete(segments, filepath.Base(f.Path))
		}
		if len(segments) > 0 {
			t.Errorf("not found: %v", segments)
		}
	}
}

func TestRefusesWhatCannotBeRead(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"cut":      func(dir string) error { return os.Truncate(filepath.Join(dir, "_metadata"), 100) },
		"empty":    func(dir string) error { return os.Truncate(filepath.Join(dir, "_metadata"), 0) },
		"no magic": func(dir string) error { return os.WriteFile(filepath.Join(dir, "_metadata"), []byte("hello"), 0o666) },
		"spt":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "..", "x.spt"), []byte("hello"), 0o666) },
		"nested": func(dir string) error { // where nobody would look
			sub := filepath.Join(dir, "..", "shared", "a", "b")
			return errors.Join(os.MkdirAll(sub, 0o777), os.WriteFile(filepath.Join(sub, "_metadata"), []byte("x"), 0o666))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, "flink-2.3-counts-incremental", "flink-2.3-counts-file-merging")
			planted := plant(t, old, root, jobA, "shared", planted+"00")
			check(t, damage(filepath.Join(root, jobA, "chk-2")))
			r := find(t, orphans.Options{}, root)
			if got := problems(r); !slices.Equal(got, []orphans.ProblemKind{orphans.Unread}) {
				t.Errorf("problems %v", r.Problems)
			}
			tried := 0
			err := r.Remove(ctx, r.Removable(), nil, func(*orphans.File, error) error { tried++; return nil })
			if err == nil || tried > 0 {
				t.Errorf("%d files were tried, %v", tried, err)
			}
			if _, err := os.Lstat(planted); err != nil {
				t.Error(err)
			}
		})
	}
}

// closed is a store of local files in which one directory may not be read.
type closed struct{ *local.Store }

func (c closed) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	if !strings.HasSuffix(prefix, "/closed/") {
		return c.Store.List(ctx, prefix, delimiter)
	}
	return func(yield func(storage.Info, error) bool) {
		yield(storage.Info{}, &storage.Error{Op: "list", Name: prefix, Err: storage.ErrPermission})
	}
}

func TestRefusesWhatCannotBeListed(t *testing.T) {
	root := tree(t, "flink-2.3-counts-incremental")
	planted := plant(t, old, root, jobA, "shared", planted+"00")
	plant(t, old, root, "closed", "chk-7", "_metadata")
	o := orphans.Options{Reader: reader.Options{Stores: route.New(closed{local.New()})}}
	r := find(t, o, root)
	if got := problems(r); !slices.Equal(got, []orphans.ProblemKind{orphans.Unlisted}) || !errors.Is(r.Err(), storage.ErrPermission) {
		t.Errorf("problems %v", r.Problems)
	}
	if err := r.Remove(ctx, r.Removable(), nil, nil); !errors.Is(err, storage.ErrPermission) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(planted); err != nil {
		t.Error(err)
	}
}

// Two roots whose checkpoints share files: each alone is refused, or cannot know.
func TestOutside(t *testing.T) {
	base := t.TempDir()
	a, b := filepath.Join(base, "a"), filepath.Join(base, "b")
	add(t, a, "flink-2.3-counts-incremental")
	add(t, b, "flink-2.3-counts-incremental")
	// The job in b was restored from the checkpoint in a and still uses its files.
	var shared []string
	rewrite(t, filepath.Join(b, jobA, "chk-2"), func(s format.Stream) format.Stream {
		f, ok := s.(*format.File)
		if !ok || f.Relative {
			return s
		}
		c := *f
		name := filepath.Base(f.Path.String())
		shared = append(shared, name)
		c.Path = format.NewText("file:" + filepath.ToSlash(filepath.Join(a, jobA, "shared", name)))
		return &c
	})
	check(t, os.RemoveAll(filepath.Join(a, jobA, "chk-2")))
	check(t, os.RemoveAll(filepath.Join(b, jobA, "shared")))
	if len(shared) == 0 {
		t.Fatal("nothing is shared")
	}
	extra := plant(t, old, a, jobA, "shared", planted+"00")
	want := map[string]orphans.Reason{extra: ""}
	expect(t, sound(t, find(t, orphans.Options{}, a, b)), want)
	expect(t, sound(t, find(t, orphans.Options{}, base)), want)
	expect(t, sound(t, find(t, orphans.Options{Also: []string{b}}, a)), want)
	expect(t, sound(t, find(t, orphans.Options{Also: []string{a}}, b)), map[string]orphans.Reason{})
	r := find(t, orphans.Options{}, b)
	if got := problems(r); len(got) != 4 || slices.ContainsFunc(got, func(k orphans.ProblemKind) bool { return k != orphans.Outside }) {
		t.Errorf("problems %v", r.Problems)
	}
	// A directory whose name only begins alike is outside.
	check(t, os.Rename(a, b+"-2"))
	if r := find(t, orphans.Options{}, b); len(r.Problems) == 0 {
		t.Error("no problem with references to a directory that is not there")
	}
}

// A snapshot misses a file, and one of its name is unreferenced elsewhere: see
// FLINK-39964.
func TestKeepsWhatIsMissed(t *testing.T) {
	root := tree(t, "flink-2.3-counts-incremental")
	files, err := filepath.Glob(filepath.Join(root, jobA, "chk-2", "*-*"))
	check(t, err)
	if len(files) == 0 {
		t.Fatal("no private files")
	}
	to := filepath.Join(root, "savepoint-5b706e-0123456789ab", filepath.Base(files[0]))
	check(t, os.MkdirAll(filepath.Dir(to), 0o777))
	check(t, os.Rename(files[0], to))
	expect(t, sound(t, find(t, orphans.Options{}, root)), map[string]orphans.Reason{to: orphans.Wanted})
}

func TestPartsOfAJobAreRefused(t *testing.T) {
	root := tree(t, "flink-2.3-counts-incremental", "flink-2.3-counts-file-merging")
	check(t, os.Rename(filepath.Join(root, jobM), filepath.Join(root, "no-id")))
	deep, err := filepath.Glob(filepath.Join(root, "no-id", "shared", "job_*"))
	check(t, err)
	parts := append(deep, filepath.Join(root, jobA, "shared"), filepath.Join(root, jobA, "chk-2"), filepath.Join(root, "no-id", "shared"), filepath.Join(root, "no-id", "taskowned"))
	for _, part := range parts {
		r, err := orphans.Find(ctx, []string{part}, orphans.Options{OlderThan: week, Now: now})
		var refused *orphans.RootError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, %v", part, r, err)
		}
	}
	// With the snapshots of the job it is all right.
	part := filepath.Join(root, "no-id", "shared")
	expect(t, sound(t, find(t, orphans.Options{Also: []string{root}}, part)), map[string]orphans.Reason{})
	// A directory of that name above the checkpoints is not one of a job.
	above := filepath.Join(t.TempDir(), "shared", "flink")
	add(t, above, "flink-2.3-counts-incremental")
	expect(t, sound(t, find(t, orphans.Options{}, above)), map[string]orphans.Reason{})
	for _, bad := range []string{filepath.Join(root, "none"), filepath.Join(root, jobA, "chk-2", "_metadata")} {
		if r, err := orphans.Find(ctx, []string{bad}, orphans.Options{}); err == nil {
			t.Errorf("%s: %v", bad, r)
		}
	}
}

func TestUnchanged(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(t *testing.T, root string)
		changed bool
	}{
		"nothing":          {func(*testing.T, string) {}, false},
		"a log":            {func(t *testing.T, root string) { plant(t, now, root, "logs", "x") }, false},
		"a new checkpoint": {func(t *testing.T, root string) { plant(t, now, root, jobA, "chk-4", "_metadata") }, true},
		"a file in shared": {func(t *testing.T, root string) { plant(t, now, root, jobA, "shared", planted+"01") }, true},
		"a shared file gone": {func(t *testing.T, root string) {
			check(t, os.Remove(plant(t, old, root, jobA, "shared", planted+"00")))
		}, true},
		"a _metadata written again": {func(t *testing.T, root string) {
			check(t, os.Chtimes(filepath.Join(root, jobA, "chk-2", "_metadata"), now, now))
		}, true},
		"a checkpoint gone": {func(t *testing.T, root string) { check(t, os.RemoveAll(filepath.Join(root, jobA, "chk-2"))) }, true},
		"a savepoint":       {func(t *testing.T, root string) { add(t, filepath.Join(root, "logs"), "flink-2.3-operator") }, true},
		"a new job":         {func(t *testing.T, root string) { plant(t, now, root, strings.Repeat("0", 32), "shared", planted+"02") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, "flink-2.3-counts-incremental")
			plant(t, old, root, jobA, "shared", planted+"00")
			plant(t, old, root, "logs", "y")
			r := sound(t, find(t, orphans.Options{}, root))
			c.change(t, root)
			err := r.Unchanged(ctx)
			if c.changed != errors.Is(err, storage.ErrChanged) || !c.changed && err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

// What is another file, or a link, at the moment of its removal stays.
func TestChecksEachFileAgain(t *testing.T) {
	precious := plant(t, old, t.TempDir(), "precious", planted+"00")
	dir := filepath.Dir(precious)
	for name, change := range map[string]func(t *testing.T, name string){
		"written again": func(t *testing.T, name string) { plant(t, now, name) },
		"touched":       func(t *testing.T, name string) { check(t, os.Chtimes(name, now, now)) },
		"longer": func(t *testing.T, name string) {
			check(t, os.WriteFile(name, []byte("longer than it was"), 0o666))
			check(t, os.Chtimes(name, old, old))
		},
		"a link": func(t *testing.T, name string) {
			check(t, os.Remove(name))
			check(t, os.Symlink(precious, name))
		},
		"a hard link to another": func(t *testing.T, name string) {
			check(t, os.Remove(name))
			check(t, os.Link(precious, name))
		},
		"its directory is a link": func(t *testing.T, name string) {
			check(t, os.Rename(filepath.Dir(name), filepath.Dir(name)+"-2"))
			check(t, os.Symlink(dir, filepath.Dir(name)))
		},
		"its directory is another": func(t *testing.T, name string) {
			check(t, os.Rename(filepath.Dir(name), filepath.Dir(name)+"-2"))
			check(t, os.Mkdir(filepath.Dir(name), 0o777))
			check(t, os.Link(precious, name))
		},
		"a directory": func(t *testing.T, name string) {
			check(t, os.Remove(name))
			check(t, os.Mkdir(name, 0o777))
		},
	} {
		for _, archive := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, archive %v", name, archive), func(t *testing.T) {
				root := tree(t, "flink-2.3-counts-incremental")
				name := plant(t, old, root, jobA, "taskowned", planted+"00")
				r := sound(t, find(t, orphans.Options{}, root))
				var to *orphans.Archive
				attic := filepath.Join(t.TempDir(), "attic")
				if archive {
					var err error
					to, err = r.NewArchive(ctx, attic)
					check(t, err)
				}
				change(t, name)
				got := remove(t, r, to)
				if err := got[name]; len(got) != 1 || err == nil {
					t.Errorf("%v", got)
				}
				if _, err := os.Lstat(name); err != nil {
					t.Errorf("it is gone: %v", err)
				}
				if p, err := os.ReadFile(precious); err != nil || string(p) != "planted" {
					t.Errorf("the other file: %q, %v", p, err)
				}
				if left, err := filepath.Glob(filepath.Join(attic, "*", "*", "*", "*")); err != nil || len(left) > 0 {
					t.Errorf("in the archive: %v, %v", left, err)
				}
			})
		}
	}
}

// Links are neither followed nor removed, and one that leads outside is a reason to
// remove nothing: snapshots there may refer to files here.
func TestLinks(t *testing.T) {
	base := t.TempDir()
	root, other := filepath.Join(base, "jobs"), filepath.Join(base, "other")
	add(t, root, "flink-2.3-counts-incremental")
	add(t, other, "flink-2.3-counts-incremental")
	outside := plant(t, old, other, jobA, "shared", planted+"00")
	check(t, os.Symlink(root, filepath.Join(root, "loop")))
	check(t, os.Symlink(filepath.Join(root, jobA), filepath.Join(root, strings.Repeat("0", 32))))
	check(t, os.Symlink("nowhere", filepath.Join(root, jobA, "shared", planted+"01")))
	link := filepath.Join(root, jobA, "shared", planted+"02")
	check(t, os.Symlink(outside, link))
	real := plant(t, old, root, jobA, "shared", planted+"03")
	r := sound(t, find(t, orphans.Options{}, root))
	expect(t, r, map[string]orphans.Reason{link: orphans.Link, real: ""})
	if r.Snapshots != 1 {
		t.Errorf("%d snapshots", r.Snapshots)
	}
	if _, err := orphans.Find(ctx, []string{filepath.Join(root, "loop")}, orphans.Options{}); err == nil {
		t.Error("a root that is a link is searched")
	}
	for _, at := range []string{filepath.Join(root, strings.Repeat("0", 31)+"1"), filepath.Join(root, jobA, "shared", "linked")} {
		check(t, os.Symlink(filepath.Join(other, jobA), at))
		r := find(t, orphans.Options{}, root)
		if got := problems(r); !slices.Equal(got, []orphans.ProblemKind{orphans.Outside}) || len(r.Removable()) > 0 {
			t.Errorf("%s: problems %v, removable %d", at, r.Problems, len(r.Removable()))
		}
		r = sound(t, find(t, orphans.Options{Also: []string{other}}, root))
		expect(t, r, map[string]orphans.Reason{link: orphans.Link, real: ""})
		if r.Snapshots != 2 {
			t.Errorf("%d snapshots, expected also the linked one", r.Snapshots)
		}
		check(t, r.Unchanged(ctx))
		check(t, os.Remove(at))
	}
	remove(t, sound(t, find(t, orphans.Options{}, root)), nil)
	for _, name := range []string{outside, link} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(real); err == nil {
		t.Error("it is still there")
	}
	// References that lead through a link reach the file itself.
	through := tree(t, "flink-2.3-counts-incremental")
	alias := filepath.Join(t.TempDir(), "alias")
	check(t, os.Symlink(through, alias))
	rewrite(t, filepath.Join(through, jobA, "chk-2"), func(s format.Stream) format.Stream {
		if f, ok := s.(*format.File); ok && !f.Relative {
			c := *f
			c.Path = format.NewText(filepath.Join(alias, jobA, "shared", filepath.Base(f.Path.String())))
			return &c
		}
		return s
	})
	expect(t, sound(t, find(t, orphans.Options{}, through)), map[string]orphans.Reason{})
}

func TestArchive(t *testing.T) {
	root := tree(t, "flink-2.3-counts-incremental")
	one := plant(t, old, root, jobA, "shared", planted+"00")
	two := plant(t, old, root, jobA, "chk-1", planted+"01")
	r := sound(t, find(t, orphans.Options{}, root))
	for _, bad := range []string{root, filepath.Join(root, "attic"), filepath.Dir(root)} {
		if _, err := r.NewArchive(ctx, bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	attic := filepath.Join(t.TempDir(), "attic")
	to, err := r.NewArchive(ctx, attic)
	check(t, err)
	there := plant(t, old, attic, "flink", jobA, "chk-1", planted+"01") // a file of that name: not replaced
	check(t, os.WriteFile(there, []byte("mine"), 0o666))
	got := remove(t, r, to)
	if len(got) != 2 || got[one] != nil || !errors.Is(got[two], storage.ErrExist) {
		t.Errorf("%v", got)
	}
	want := filepath.Join(attic, "flink", jobA, "shared", planted+"00")
	if p, err := os.ReadFile(want); err != nil || string(p) != "planted" || to.Path(&r.Files[1]) != want {
		t.Errorf("%q, %v, %s", p, err, to.Path(&r.Files[1]))
	}
	if p, err := os.ReadFile(there); err != nil || string(p) != "mine" {
		t.Errorf("%q, %v", p, err)
	}
	if _, err := os.Lstat(one); err == nil {
		t.Error("it was not moved")
	}
	if _, err := os.Lstat(two); err != nil {
		t.Error(err)
	}
}

// stores are local files and mem: for objects.
func stores(objects storage.Storage) *route.Router {
	r := route.New(local.New())
	r.Add("mem", func(_ context.Context, uri string) (storage.Storage, string, error) {
		return objects, strings.TrimPrefix(uri, "mem:"), nil
	})
	return r
}

// upload puts a local tree into a store, with references that lead there.
func upload(t *testing.T, objects storage.Storage, root, prefix string) {
	t.Helper()
	check(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		check(t, err)
		p, err := os.ReadFile(path)
		check(t, err)
		storetest.Put(t, objects, prefix+"/"+filepath.ToSlash(rel), string(p))
		return nil
	}))
}

// uploads is a store of objects with unfinished uploads, as S3 is.
type uploads struct {
	*storetest.Counting
	all []ability.Leftover
}

func (u *uploads) Leftover(context.Context, string) (ability.Leftover, error) {
	return ability.Leftover{}, storage.ErrUnsupported
}

func (u *uploads) RemoveLeftover(context.Context, ability.Leftover) error {
	return storage.ErrUnsupported
}

func (u *uploads) Uploads(_ context.Context, _ string, _ int) iter.Seq2[ability.Leftover, error] {
	return func(yield func(ability.Leftover, error) bool) {
		for _, l := range u.all {
			if !yield(l, nil) {
				return
			}
		}
	}
}

func (u *uploads) Leftovers(ctx context.Context, name string, depth int) iter.Seq2[ability.Leftover, error] {
	for range u.List(ctx, name+"/", "") {
	}
	return u.Uploads(ctx, name, depth)
}

// Where uploads have a list of their own, the objects are listed once, and leftovers of
// both kinds are found.
func TestLeftoversOfObjects(t *testing.T) {
	objects := mem.New()
	const own = ".spt-tmp-0123456789ab-x"
	storetest.Put(t, objects, "ckpt/"+jobA+"/shared/"+own, "12345")
	storetest.Put(t, objects, "ckpt/"+jobA+"/shared/.spt-tmp-not-ours", "12345")
	u := &uploads{storetest.NewCounting(objects), []ability.Leftover{{Name: "ckpt/a/x", Upload: "7", Files: 1, Bytes: 9}}}
	r, err := orphans.Find(ctx, []string{"mem:ckpt"}, orphans.Options{Reader: reader.Options{Stores: stores(u)}})
	check(t, err)
	var got []string
	for _, l := range r.Leftovers {
		got = append(got, fmt.Sprintf("%s %s %d", l.Name, l.Upload, l.Bytes))
	}
	if want := []string{"mem:ckpt/" + jobA + "/shared/" + own + "  5", "mem:ckpt/a/x 7 9"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n := u.Count("list"); n != 1 {
		t.Errorf("%d lists", n)
	}
}

// A store of objects: one list for the root, one read for each snapshot, nothing else;
// and files are moved between stores by copying.
func TestObjects(t *testing.T) {
	root := tree(t, "flink-2.3-counts-incremental", "flink-2.3-counts-file-merging")
	for _, dir := range []string{jobA + "/chk-2", jobM + "/chk-1"} {
		rewrite(t, filepath.Join(root, dir), func(s format.Stream) format.Stream {
			inStore := func(p format.Text) format.Text {
				_, rest, _ := strings.Cut(p.String(), "/000000")
				return format.NewText("mem:ckpt/000000" + rest)
			}
			switch s := s.(type) {
			case *format.File:
				if !s.Relative {
					c := *s
					c.Path = inStore(s.Path)
					return &c
				}
			case *format.Segment:
				c := *s
				c.Path = inStore(s.Path)
				return &c
			}
			return s
		})
	}
	objects := mem.New()
	upload(t, objects, root, "ckpt")
	storetest.Put(t, objects, "ckpt/"+jobA+"/shared/"+planted+"00", "planted")
	storetest.Put(t, objects, "ckpt-other/"+jobA+"/shared/"+planted+"01", "not below the root")
	counting := storetest.NewCounting(objects)
	o := orphans.Options{Reader: reader.Options{Stores: stores(counting)}, Now: time.Now().Add(2 * week), OlderThan: week}
	r, err := orphans.Find(ctx, []string{"mem:ckpt"}, o)
	check(t, err)
	name := "mem:ckpt/" + jobA + "/shared/" + planted + "00"
	expect(t, sound(t, r), map[string]orphans.Reason{name: ""})
	if got := counting.Counts(); got["list"] != 1 || got["read"] != 2 || got["stat"] != 1 {
		t.Errorf("requests %v", got) // stat: the root, which might be an object
	}
	attic := filepath.Join(t.TempDir(), "attic")
	to, err := r.NewArchive(ctx, attic)
	check(t, err)
	check(t, r.Unchanged(ctx))
	if got := remove(t, r, to); len(got) != 1 || got[name] != nil {
		t.Errorf("%v", got)
	}
	if p, err := os.ReadFile(filepath.Join(attic, "ckpt", jobA, "shared", planted+"00")); err != nil || string(p) != "planted" {
		t.Errorf("%q, %v", p, err)
	}
	if _, err := objects.Stat(ctx, strings.TrimPrefix(name, "mem:")); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := objects.Stat(ctx, "ckpt-other/"+jobA+"/shared/"+planted+"01"); err != nil {
		t.Error(err)
	}
	if r, err := orphans.Find(ctx, []string{"mem:none"}, o); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("%v, %v", r, err)
	}
	// An object that was written again stays.
	storetest.Put(t, objects, "ckpt/"+jobA+"/shared/"+planted+"02", "planted")
	r, err = orphans.Find(ctx, []string{"mem:ckpt"}, o)
	check(t, err)
	storetest.Put(t, objects, "ckpt/"+jobA+"/shared/"+planted+"02", "planted")
	for path, err := range remove(t, r, nil) {
		if !errors.Is(err, storage.ErrChanged) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := r.Unchanged(ctx); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("%v", err)
	}
}

// With entropy in its addresses, Flink puts the state files of a job where its
// snapshots are not. A root that has only the files must not make them unreferenced.
func TestEntropy(t *testing.T) {
	root := tree(t, "flink-2.3-counts-incremental")
	dir := filepath.Join(root, jobA, "chk-2")
	rewrite(t, dir, func(s format.Stream) format.Stream {
		if f, ok := s.(*format.File); ok && !f.Relative {
			c := *f
			_, rest, _ := strings.Cut(f.Path.String(), "/000000")
			c.Path = format.NewText("mem://b/x9Zz/ck/000000" + rest)
			return &c
		}
		return s
	})
	objects := mem.New()
	upload(t, objects, root, "mem://b/x9Zz/ck")
	for _, name := range storetest.Names(t, objects, "mem://b/x9Zz/ck/"+jobA+"/chk-2/", "") { // what is next to _metadata is there too
		storetest.Put(t, objects, strings.Replace(name, "/x9Zz", "", 1), storetest.Read(t, objects, name))
		check(t, objects.Delete(ctx, name))
	}
	name := "mem://b/x9Zz/ck/" + jobA + "/shared/" + planted + "00"
	storetest.Put(t, objects, name, "planted")
	r := route.New(local.New())
	r.Add("mem", func(_ context.Context, uri string) (storage.Storage, string, error) { return objects, uri, nil })
	o := orphans.Options{Reader: reader.Options{Stores: r}, Now: time.Now().Add(2 * week), OlderThan: week}

	find := func(root string) *orphans.Result {
		t.Helper()
		r, err := orphans.Find(ctx, []string{root}, o)
		check(t, err)
		return r
	}
	expect(t, sound(t, find("mem://b")), map[string]orphans.Reason{name: ""})

	shared := storetest.Names(t, objects, "mem://b/x9Zz/ck/"+jobA+"/shared/", "")
	want := map[string]orphans.Reason{}
	for _, name := range shared {
		want[name] = orphans.JobUnread
	}
	if len(want) < 3 {
		t.Fatalf("only %d shared files", len(want))
	}
	expect(t, find("mem://b/x9Zz"), want)

	// Without a snapshot anywhere, they are garbage.
	for _, name := range storetest.Names(t, objects, "mem://b/ck/", "") {
		check(t, objects.Delete(ctx, name))
	}
	for name := range want {
		want[name] = ""
	}
	expect(t, find("mem://b/x9Zz"), want)
}

func TestShares(t *testing.T) {
	root := tree(t, "flink-2.3-counts-incremental", "flink-2.3-operator-files-compressed")
	job := filepath.Join(root, jobA)
	size := func(elements ...string) (n int64) {
		fi, err := os.Stat(filepath.Join(elements...))
		check(t, err)
		return fi.Size()
	}
	// A later checkpoint: of the files in shared it uses all but one.
	check(t, os.CopyFS(filepath.Join(job, "chk-4"), os.DirFS(filepath.Join(job, "chk-2"))))
	dropped := ""
	rewrite(t, filepath.Join(job, "chk-4"), func(s format.Stream) format.Stream {
		f, ok := s.(*format.File)
		if !ok || f.Relative || dropped != "" && !strings.HasSuffix(f.Path.String(), dropped) {
			return s
		}
		dropped = filepath.Base(f.Path.String())
		return &format.Inline{Data: format.NewBytes([]byte("x"))}
	})
	all, found, err := orphans.Shares(ctx, []string{root}, orphans.Options{})
	check(t, err)
	if len(found) > 0 || len(all) != 3 {
		t.Fatalf("%+v, %v", all, found)
	}
	three, four, apart := all[1], all[2], all[0]
	if !strings.HasSuffix(four.Path, "chk-4") {
		three, four, apart = all[0], all[1], all[2]
	}
	shared, err := filepath.Glob(filepath.Join(job, "shared", "*"))
	check(t, err)
	var total int64
	for _, name := range shared {
		total += size(name)
	}
	total -= size(job, "shared", dropped)
	if three.Shared != four.Shared || three.Shared != (orphans.Sum{Files: len(shared) - 1, Bytes: total}) {
		t.Errorf("shared: %+v and %+v, expected %d files, %d bytes", three.Shared, four.Shared, len(shared)-1, total)
	}
	private := func(chk string) (sum orphans.Sum) {
		files, err := filepath.Glob(filepath.Join(job, chk, "*"))
		check(t, err)
		for _, name := range files {
			sum.Files++
			sum.Bytes += size(name)
		}
		return sum
	}
	freed := private("chk-2")
	freed.Files++
	freed.Bytes += size(job, "shared", dropped)
	if three.Freed != freed || four.Freed != private("chk-4") {
		t.Errorf("freed: %+v and %+v, expected %+v and %+v", three.Freed, four.Freed, freed, private("chk-4"))
	}
	if !slices.Equal(three.With, []string{four.Path}) || !slices.Equal(four.With, []string{three.Path}) || apart.Others != 0 || apart.Shared.Files != 0 || apart.Freed != apart.Total {
		t.Errorf("%+v", all)
	}
}

// FLINK-39964: a checkpoint refers to files of the claimed native savepoint as if they
// were next to it. Even without the savepoint's _metadata they are kept.
func TestClaimedNative(t *testing.T) {
	root := filepath.Join(t.TempDir(), "jobs")
	check(t, os.CopyFS(root, os.DirFS("../../testdata/reported/claimed-native")))
	sp := filepath.Join(root, "savepoint-5b706e-0123456789ab")
	check(t, os.Rename(filepath.Join(root, "sp"), sp))
	o := orphans.Options{OlderThan: time.Nanosecond}
	expect(t, sound(t, find(t, o, root)), map[string]orphans.Reason{})
	check(t, os.Remove(filepath.Join(sp, "_metadata")))
	want := map[string]orphans.Reason{plant(t, old, sp, planted+"00"): ""}
	files, err := os.ReadDir(sp)
	check(t, err)
	for _, f := range files {
		if name := filepath.Join(sp, f.Name()); !strings.HasPrefix(f.Name(), planted) {
			check(t, os.Chtimes(name, old, old))
			want[name] = orphans.Wanted
		}
	}
	if len(want) != 9 {
		t.Fatalf("%d files", len(want))
	}
	expect(t, sound(t, find(t, o, root)), want)
}

// A removal that is cancelled, or whose log cannot be written, has reported every file
// that is gone.
func TestRemoveIsCancelled(t *testing.T) {
	failed := errors.New("the log cannot be written")
	for _, want := range []error{context.Canceled, failed} {
		root := tree(t, "flink-2.3-counts-incremental")
		for i := range 300 {
			plant(t, old, root, jobA, "shared", fmt.Sprintf("%s%03d", planted[:33], i))
		}
		r := sound(t, find(t, orphans.Options{}, root))
		all := r.Removable()
		if len(all) < 100 {
			t.Fatalf("%d files", len(all))
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		reported := map[string]bool{}
		err := r.Remove(ctx, all, nil, func(f *orphans.File, err error) error {
			check(t, err)
			reported[f.Path] = true
			if want == failed {
				if len(reported) == 64 {
					return failed
				}
				return nil
			}
			cancel()
			return nil
		})
		if !errors.Is(err, want) || len(reported) == len(all) {
			t.Errorf("%v after %d of %d files", err, len(reported), len(all))
		}
		for _, f := range all {
			if _, err := os.Lstat(f.Path); errors.Is(err, os.ErrNotExist) != reported[f.Path] {
				t.Errorf("%s: reported %v, %v", f.Path, reported[f.Path], err)
			}
		}
	}
}
