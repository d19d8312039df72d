package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
)

var ctx = context.Background()

func write(t *testing.T, name, data string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

// tree lists all that is below a folder, also empty folders and temporary files.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			names = append(names, filepath.ToSlash(strings.TrimPrefix(path, dir)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func wantTree(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func wantErr(t *testing.T, err, want error) *storage.Error {
	t.Helper()
	e, ok := errors.AsType[*storage.Error](err)
	if !ok || !errors.Is(err, want) {
		t.Fatalf("got %v, want a *storage.Error of %v", err, want)
	}
	return e
}

func create(t *testing.T, s *Store, name string, o storage.CreateOptions) storage.Writer {
	t.Helper()
	w, err := s.Create(ctx, name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Abort(ctx) })
	return w
}

// Every way in which a file can change under a read ends in ErrChanged.
func TestChangedWhileRead(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, name string) error{
		"cut":     func(_ *testing.T, name string) error { return os.Truncate(name, 3) },
		"emptied": func(_ *testing.T, name string) error { return os.Truncate(name, 0) },
		"grown":   func(_ *testing.T, name string) error { return os.Truncate(name, 100) },
		"touched": func(_ *testing.T, name string) error {
			return os.Chtimes(name, time.Time{}, time.Unix(1, 0))
		},
		"written": func(t *testing.T, name string) error {
			write(t, name, "9876543210")
			return os.Chtimes(name, time.Time{}, time.Unix(2, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			file := filepath.Join(t.TempDir(), "x")
			write(t, file, "0123456789")
			f := storetest.NewFailing(s, storetest.Faults{OneByte: true, Change: func() {
				if err := change(t, file); err != nil {
					t.Error(err)
				}
			}})
			_, err := ranged.NewReader(f, file, "").ReadRange(ctx, 0, -1)
			wantErr(t, err, storage.ErrChanged)
		})
	}
}

// A file replaced by rename has another version, even with the same size and time.
func TestReplacedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no inodes")
	}
	s := New()
	dir := t.TempDir() + "/"
	for _, name := range []string{"x", "y"} {
		write(t, dir+name, name)
		if err := os.Chtimes(dir+name, time.Time{}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	old, err := s.Stat(ctx, dir+"x")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+"y", dir+"x"); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.ReadRange(ctx, dir+"x", 0, 1, old.Version)
	wantErr(t, err, storage.ErrChanged)
}

func TestFolderHint(t *testing.T) {
	_, err := New().Stat(ctx, t.TempDir())
	if e := wantErr(t, err, storage.ErrNotExist); e.Hint == "" {
		t.Error("no hint")
	}
}

func TestFoldersMadeAndRemoved(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	if err := os.Mkdir(dir+"mine", 0o777); err != nil {
		t.Fatal(err)
	}
	a := create(t, s, dir+"mine/new/a", storage.CreateOptions{})
	b := create(t, s, dir+"mine/new/deep/b", storage.CreateOptions{})
	if err := a.Abort(ctx); err != nil { // made new/, which b still needs
		t.Fatal(err)
	}
	if _, err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "mine", "mine/new", "mine/new/deep", "mine/new/deep/b")
	write(t, dir+"mine/new/other", "")
	if err := s.Delete(ctx, dir+"mine/new/deep/b"); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "mine", "mine/new", "mine/new/other")
	if err := s.Delete(ctx, dir+"mine/new/other"); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "mine") // duplicate state
}

func TestFailuresLeaveNothing(t *testing.T) {
	dir := t.TempDir() + "/"
	for name, f := range map[string]storetest.Faults{
		"disk full": {Space: 5, Err: storage.ErrNoSpace},
		"write":     {Write: 2},
		"commit":    {Commit: 1},
	} {
		if f.Err == nil {
			f.Err = storage.ErrUnavailable
		}
		s := storetest.NewFailing(New(), f)
		w, err := s.Create(ctx, dir+"a/b/x", storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err = w.Write([]byte("1234")); err != nil {
				break
			}
		}
		if err == nil {
			_, err = w.Commit(ctx)
		}
		if !errors.Is(err, f.Err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := w.Commit(ctx); err == nil {
			t.Errorf("%s: Commit after a failure", name)
		}
		if err := w.Abort(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantTree(t, dir)
	}
}

func TestSpaceIsCheckedFirst(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	free, err := s.FreeSpace(ctx, dir+"not/there/yet")
	if errors.Is(err, storage.ErrUnsupported) {
		testenv.Missing(t, "free space is not known", err)
	}
	if err != nil || free <= 0 {
		t.Fatal(free, err)
	}
	_, err = s.Create(ctx, dir+"a/x", storage.CreateOptions{Size: 1 << 62})
	if e := wantErr(t, err, storage.ErrNoSpace); e.Hint == "" {
		t.Error("no hint")
	}
	wantTree(t, dir)
}

func TestCreateRefuses(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	write(t, dir+"file", "mine")
	for name, want := range map[string]error{
		dir:              storage.ErrUnsupported,
		dir + "x/..":     storage.ErrUnsupported,
		dir[:len(dir)-1]: storage.ErrExist,
		dir + "file/x":   storage.ErrNotExist,
	} {
		_, err := s.Create(ctx, name, storage.CreateOptions{})
		wantErr(t, err, want)
	}
	_, err := s.Create(ctx, dir+"file", storage.CreateOptions{IfAbsent: true})
	wantErr(t, err, storage.ErrExist) // at once, not after a terabyte was written
	wantTree(t, dir, "file")
}

// The ways of not replacing that other systems need work too.
func TestMoveWithoutCall(t *testing.T) {
	dir := t.TempDir() + "/"
	for _, folder := range []bool{false, true} {
		put := func(name string) {
			if folder {
				if err := os.Mkdir(dir+name, 0o777); err != nil {
					t.Fatal(err)
				}
				name += "/in"
			}
			write(t, dir+name, "data")
		}
		put("a")
		put("b")
		if err := (disk{ctx}).moveWithoutCall(dir+"a", dir+"b", folder); !errors.Is(err, fs.ErrExist) {
			t.Errorf("onto another: %v", err)
		}
		before := tree(t, dir)
		if err := (disk{ctx}).moveWithoutCall(dir+"missing", dir+"c", folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of nothing: %v", err)
		}
		wantTree(t, dir, before...)
		if runtime.GOOS == "windows" && folder {
			continue
		}
		if err := (disk{ctx}).moveWithoutCall(dir+"a", dir+"c", folder); err != nil {
			t.Error(err)
		}
		if folder {
			wantTree(t, dir, "b", "b/in", "c", "c/in")
		} else {
			wantTree(t, dir, "b", "c")
		}
		os.RemoveAll(dir + "b")
		os.RemoveAll(dir + "c")
	}
}

func TestListLinks(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	if err := os.MkdirAll(dir+"a/b", 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"a/b/x", "x")
	for link, to := range map[string]string{"a/b/up": "..", "file": "a/b/x", "folder": "a/b", "dangling": "nowhere"} {
		if err := os.Symlink(to, dir+link); err != nil {
			testenv.Missing(t, "no symbolic link", err)
		}
	}
	// Not folder/up/b/x: folder/up/b is folder again.
	want := []string{dir + "a/b/x", dir + "file", dir + "folder/x"}
	got := storetest.Names(t, s, dir, "")
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	want = []string{dir + "a/", dir + "file", dir + "folder/"}
	if got := storetest.Names(t, s, dir, "/"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, err := range s.List(ctx, dir, ":") {
		wantErr(t, err, storage.ErrUnsupported)
	}
}

// A link that leads to itself hides no other object, and says what it is when it
// is opened.
func TestListLoop(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	write(t, dir+"a", "a")
	write(t, dir+"z", "z")
	if err := os.Symlink("loop", dir+"loop"); err != nil {
		testenv.Missing(t, "no symbolic link", err)
	}
	for _, delimiter := range []string{"", "/"} {
		want := []string{dir + "a", dir + "loop", dir + "z"}
		if got := storetest.Names(t, s, dir, delimiter); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if _, err := s.Stat(ctx, dir+"loop"); err == nil || errors.Is(err, storage.ErrNotExist) {
		t.Errorf("stat of a loop: %v", err)
	}
}

// Deleting never takes a folder, nor what a link leads to.
func TestDeleteCare(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	if err := os.Mkdir(dir+"empty", 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"x", "x")
	write(t, dir+"y", "y")
	wantErr(t, s.Delete(ctx, dir+"empty", dir+"x"), storage.ErrUnsupported)
	wantTree(t, dir, "empty", "y") // the rest was deleted all the same
	if err := os.Symlink("y", dir+"link"); err != nil {
		testenv.Missing(t, "no symbolic link", err)
	}
	if err := s.Delete(ctx, dir+"link"); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "empty", "y")
}

func TestContents(t *testing.T) {
	w := create(t, New(), t.TempDir()+"/x", storage.CreateOptions{})
	for _, want := range []string{"", "hello", "hello, world"} {
		data, release, err := w.(ability.Contents).Contents()
		if want != "" {
			if err := release(); err != nil {
				t.Fatal(err)
			}
			if _, err = io.WriteString(w, want[len(data):]); err != nil {
				t.Fatal(err)
			}
			data, release, err = w.(ability.Contents).Contents()
		}
		if err != nil || string(data) != want {
			t.Fatalf("%q, %v", data, err)
		}
		if err := release(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.(ability.Contents).Contents(); err == nil {
		t.Error("contents after Commit")
	}
}

func TestMap(t *testing.T) {
	s := New()
	name := t.TempDir() + "/x"
	write(t, name, "")
	m, err := s.Map(ctx, name, "")
	if errors.Is(err, storage.ErrUnsupported) {
		testenv.Missing(t, "no mapping", err)
	}
	if err != nil || len(m.Data) != 0 {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}

	write(t, name, strings.Repeat("0123456789abcdef", 4096))
	if m, err = s.Map(ctx, name, ""); err != nil || len(m.Data) != 65536 || string(m.Data[65530:]) != "abcdef" {
		t.Fatal(err)
	}
	_, err = s.Map(ctx, name, "another")
	wantErr(t, err, storage.ErrChanged)

	// A bug in f is not taken for a change.
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a nil pointer was swallowed")
			}
		}()
		guard(func() error { var p *int; *p = 1; return nil }) //nolint:govet // a fault that is not the file's
	}()
	if err := guard(func() error { return io.ErrNoProgress }); err != io.ErrNoProgress {
		t.Errorf("got %v", err)
	}

	if err := os.Truncate(name, 10); err != nil {
		t.Fatal(err)
	}
	sum := 0
	p := make([]byte, len(m.Data))
	for i, f := range []func(){func() {
		for _, b := range m.Data {
			sum += int(b)
		}
	}, func() { copy(p, m.Data) }} {
		if err := guard(func() error { f(); return nil }); !errors.Is(err, format.ErrChanged) {
			t.Errorf("access %d: %v", i, err)
		}
	}
	wantErr(t, m.Close(), storage.ErrChanged)
	if err := m.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

func TestLink(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	write(t, dir+"x", "data")
	src, err := s.Stat(ctx, dir+"x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Link(ctx, dir+"new/y", storetest.NewCounting(s), dir+"x", "", true); !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("of a foreign store: %v", err)
	}
	_, err = s.Link(ctx, dir+"new/y", s, dir+"x", "another", true)
	wantErr(t, err, storage.ErrChanged)
	_, err = s.Link(ctx, dir+"new/y", s, dir+"missing", "", true)
	wantErr(t, err, storage.ErrNotExist)
	wantTree(t, dir, "x")

	info, err := s.Link(ctx, dir+"new/y", s, dir+"x", src.Version, true)
	if errors.Is(err, storage.ErrUnsupported) {
		testenv.Missing(t, "no hard link", err)
	}
	if err != nil || info.Version != src.Version || info.Name != dir+"new/y" {
		t.Fatal(info, err)
	}
	_, err = s.Link(ctx, dir+"new/y", s, dir+"x", "", true)
	wantErr(t, err, storage.ErrExist)
	// The rename of one name of a file onto another does nothing.
	if _, err = s.Link(ctx, dir+"new/y", s, dir+"x", src.Version, false); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "new", "new/y", "x")
	if err := os.Symlink("x", dir+"link"); err != nil {
		testenv.Missing(t, "no symbolic link", err)
	}
	if _, err = s.Link(ctx, dir+"z", s, dir+"link", src.Version, false); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Lstat(dir + "z"); err != nil || !fi.Mode().IsRegular() {
		t.Errorf("a link to the link: %v, %v", fi, err)
	}
}

func TestMoveAndRemove(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	storetest.Put(t, s, dir+"old/x", "x")
	storetest.Put(t, s, dir+"file", "file")
	if err := os.Mkdir(dir+"empty", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, onto := range []string{"file", "empty", "old"} {
		wantErr(t, s.Move(ctx, dir+"old", dir+onto), storage.ErrExist)
		wantErr(t, s.Move(ctx, dir+"file", dir+onto), storage.ErrExist)
	}
	wantErr(t, s.Move(ctx, dir+"missing", dir+"y"), storage.ErrNotExist)
	if err := s.Move(ctx, dir+"old/", dir+"new/"); err != nil {
		t.Fatal(err)
	}
	if err := s.Move(ctx, dir+"file", dir+"new/file"); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "empty", "new", "new/file", "new/x")

	for _, name := range []string{"", ".", "..", "/", dir + ".."} {
		wantErr(t, s.RemoveTree(ctx, name), storage.ErrUnsupported)
	}
	if err := s.RemoveTree(ctx, dir+"new/"); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "empty")
}

func TestExchange(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	storetest.Put(t, s, dir+"folder/x", "x")
	storetest.Put(t, s, dir+"file", "file")
	err := s.Exchange(ctx, dir+"folder/", dir+"file")
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		wantErr(t, err, storage.ErrUnsupported)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "file", "file/x", "folder")
	wantErr(t, s.Exchange(ctx, dir+"file", dir+"missing"), storage.ErrNotExist)
	wantErr(t, s.Exchange(ctx, dir+"missing", dir+"file"), storage.ErrNotExist)
	wantTree(t, dir, "file", "file/x", "folder")
}

func TestRemoveEmpty(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	storetest.Put(t, s, dir+"full/x", "x")
	storetest.Put(t, s, dir+"file", "file")
	if err := os.Mkdir(dir+"empty", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveEmpty(ctx, dir+"full"); err == nil {
		t.Error("a folder that is not empty is removed")
	}
	wantErr(t, s.RemoveEmpty(ctx, dir+"file"), storage.ErrUnsupported)
	wantErr(t, s.RemoveEmpty(ctx, dir+"missing"), storage.ErrNotExist)
	if err := s.RemoveEmpty(ctx, dir+"empty/"); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, "file", "full", "full/x")
}

func TestReadLink(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	storetest.Put(t, s, dir+"file", "file")
	if err := os.Symlink("nowhere", dir+"link"); err != nil {
		testenv.Missing(t, "no symbolic link", err)
	}
	for name, want := range map[string]string{"file": "", "missing": "", "link": "nowhere", "link/": "nowhere", "": ""} {
		if to, err := s.ReadLink(ctx, dir+name); to != want || err != nil {
			t.Errorf("%s: %q, %v", name, to, err)
		}
	}
}

// guard runs f as format.Bytes runs what reads a mapped file.
func guard(f func() error) error {
	return format.MappedBytes(nil).View(func([]byte) error { return f() })
}

func TestDeleteBelow(t *testing.T) {
	s := New()
	base := t.TempDir()
	dir := filepath.Join(base, "dir")
	write := func(name string) storage.Version {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte("x"), 0o666)); err != nil {
			t.Fatal(err)
		}
		info, err := s.Stat(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Version
	}
	file, other := filepath.Join(dir, "file"), filepath.Join(base, "other", "file")
	pin, precious := write(file), write(other)
	in, err := s.Directory(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir  ability.Directory
		file string
		pin  storage.Version
		err  error
	}{
		"another version":   {in, "file", precious, storage.ErrChanged},
		"no version":        {in, "file", "", storage.ErrChanged},
		"a link":            {in, "link", precious, storage.ErrChanged},
		"not there":         {in, "none", pin, storage.ErrNotExist},
		"another directory": {ability.Directory{Name: filepath.Dir(other), Version: in.Version}, "file", precious, storage.ErrChanged},
	} {
		if err := s.DeleteBelow(ctx, c.dir, c.file, c.pin); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.DeleteBelow(ctx, in, "../other/file", precious); err == nil {
		t.Error("a name that leads out of the directory is deleted")
	}
	for _, name := range []string{file, other, filepath.Join(dir, "link")} {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
	if err := s.DeleteBelow(ctx, in, "file", pin); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
