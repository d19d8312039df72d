package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/hdfs"
)

var ctx = context.Background()

// open returns a store for a server.
func open(t testing.TB, h *servertest.HDFS, o hdfs.Options) *hdfs.Store {
	t.Helper()
	if o.Hadoop == nil {
		o.Getenv = func(name string) string {
			if name == "HADOOP_CONF_DIR" {
				return h.Conf
			}
			return ""
		}
	}
	s, err := hdfs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// wantErr checks an error and returns it.
func wantErr(t testing.TB, err, kind error) *storage.Error {
	t.Helper()
	var e *storage.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		t.Fatalf("got error %v, want %v", err, kind)
	}
	return e
}

// wantTree checks the names below a prefix.
func wantTree(t testing.TB, s storage.Storage, prefix string, want ...string) {
	t.Helper()
	var got []string
	for _, name := range storetest.Names(t, s, prefix, "") {
		got = append(got, strings.TrimPrefix(name, prefix))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// noise returns bytes that repeat nowhere.
func noise(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p) // never fails
	return p
}

func create(t testing.TB, s storage.Storage, name string, o storage.CreateOptions) storage.Writer {
	t.Helper()
	w, err := s.Create(ctx, name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Abort(ctx) }) // most are committed
	return w
}

// makeDirectory makes an empty directory.
func makeDirectory(t testing.TB, s *hdfs.Store, name string) {
	t.Helper()
	storetest.Put(t, s, name+"/x", "x")
	other, err := hdfs.New(hdfs.Options{Hadoop: map[string]string{}}) // it did not make the directory, so it keeps it
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Delete(ctx, name+"/x"); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestServer(t *testing.T) {
	testenv.Long(t, "starts a NameNode and a DataNode")
	h := servertest.StartHDFS(t, t.TempDir(), servertest.HDFSOptions{Site: map[string]string{"dfs.ls.limit": "3"}})
	s := open(t, h, hdfs.Options{})
	var n atomic.Int64
	fresh := func() string { return fmt.Sprintf("%s/t/%d/", h.URI, n.Add(1)) }
	t.Run("Suite", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) (storage.Storage, string) { return s, fresh() })
	})
	t.Run("SuiteWrapped", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) (storage.Storage, string) {
			return storetest.NewFailing(storetest.NewCounting(s).WithAbilities(), storetest.Faults{}).WithAbilities(), fresh()
		})
	})
	for name, run := range map[string]func(*testing.T, *servertest.HDFS, *hdfs.Store, string){
		"Blocks": testBlocks, "Listing": testListing, "Move": testMove, "Remove": testRemove, "Leftovers": testLeftovers,
		"Permission": testPermission, "Refused": testRefused, "Quota": testQuota, "Access": testAccess, "BeingWritten": testBeingWritten,
	} {
		t.Run(name, func(t *testing.T) { run(t, h, s, fresh()) })
	}
}

// Objects of several blocks, also with an end at the end of a block.
func testBlocks(t *testing.T, _ *servertest.HDFS, s *hdfs.Store, prefix string) {
	const block = 1 << 20
	for _, size := range []int{block - 1, block, block + 1, 2 * block, 3*block + 777} {
		data := noise(size)
		name := fmt.Sprintf("%s%d", prefix, size)
		w := create(t, s, name, storage.CreateOptions{IfAbsent: true, Size: int64(size)})
		for p := data; len(p) > 0; {
			n := min(len(p), 300_000)
			if n, err := w.Write(p[:n]); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
			p = p[n:]
		}
		info, err := w.Commit(ctx)
		if err != nil || info.Size != int64(size) {
			t.Fatalf("%d bytes: %+v, %v", size, info, err)
		}
		r := ranged.NewReader(s, name, info.Version)
		for _, off := range []int{0, 1, 511, 512, 100_000, block - 1, block, 2*block - 5} {
			if off >= size {
				continue
			}
			for _, n := range []int{1, 511, 70_000, size} {
				n = min(n, size-off)
				if got, err := r.ReadRange(ctx, int64(off), int64(n)); err != nil || !bytes.Equal(got, data[off:off+n]) {
					t.Fatalf("%d bytes at %d of %d: %d bytes, %v", n, off, size, len(got), err)
				}
			}
		}
	}
}

// More entries than the NameNode gives in one answer, and empty directories.
func testListing(t *testing.T, _ *servertest.HDFS, s *hdfs.Store, prefix string) {
	var want []string
	for i := range 11 {
		name := fmt.Sprintf("f%02d", i)
		storetest.Put(t, s, prefix+name, name)
		want = append(want, name)
	}
	wantTree(t, s, prefix, want...)
	makeDirectory(t, s, prefix+"empty")
	wantTree(t, s, prefix, want...)
	if got := storetest.Names(t, s, prefix+"e", "/"); len(got) != 1 || got[0] != prefix+"empty/" {
		t.Errorf("%q", got)
	}
	_, err := s.Stat(ctx, prefix+"empty")
	wantErr(t, err, storage.ErrNotExist)
	for _, err := range s.List(ctx, prefix, "-") {
		wantErr(t, err, storage.ErrUnsupported)
	}
	for _, odd := range []string{"a b+c%25#x?ü=1", "ключ", `back\slash`, "~tilde", "…"} {
		storetest.Put(t, s, prefix+"odd/"+odd, odd)
		if got := storetest.Read(t, s, prefix+"odd/"+odd); got != odd {
			t.Errorf("%q: read %q", odd, got)
		}
	}
	for _, no := range []string{"a//b", "a/../b", "a/./b", "a:b"} {
		_, err := s.Stat(ctx, prefix+no)
		wantErr(t, err, storage.ErrNotExist)
		_, err = s.Create(ctx, prefix+no, storage.CreateOptions{})
		if err == nil {
			t.Errorf("%s was created", no)
		}
	}
}

func testMove(t *testing.T, _ *servertest.HDFS, s *hdfs.Store, prefix string) {
	storetest.Put(t, s, prefix+"dir/a", "a")
	storetest.Put(t, s, prefix+"dir/sub/b", "b")
	storetest.Put(t, s, prefix+"file", "file")
	storetest.Put(t, s, prefix+"full/x", "x")
	makeDirectory(t, s, prefix+"empty")
	for old, taken := range map[string][]string{"dir": {"full", "empty", "file"}, "file": {"full", "empty", "dir/a"}} {
		for _, name := range taken {
			wantErr(t, s.Move(ctx, prefix+old, prefix+name), storage.ErrExist)
		}
	}
	wantErr(t, s.Move(ctx, prefix+"missing", prefix+"new"), storage.ErrNotExist)
	wantErr(t, s.Move(ctx, prefix+"dir", prefix+"no/parent"), storage.ErrNotExist)
	wantErr(t, s.Move(ctx, prefix+"dir", "hdfs://elsewhere/x"), storage.ErrUnsupported)
	wantErr(t, s.Exchange(ctx, prefix+"dir", prefix+"full"), storage.ErrUnsupported)
	for old, name := range map[string]string{"dir": "new", "file": "full/file"} {
		if err := s.Move(ctx, prefix+old, prefix+name); err != nil {
			t.Fatal(err)
		}
	}
	wantTree(t, s, prefix, "full/file", "full/x", "new/a", "new/sub/b")
}

func testRemove(t *testing.T, _ *servertest.HDFS, s *hdfs.Store, prefix string) {
	for _, name := range []string{"dir/a", "dir/sub/b", "kept", "one/x"} {
		storetest.Put(t, s, prefix+name, name)
	}
	wantErr(t, s.RemoveEmpty(ctx, prefix+"kept"), storage.ErrUnsupported)
	if err := s.RemoveEmpty(ctx, prefix+"one"); err == nil {
		t.Error("a directory with a file was removed")
	} else if e := wantErr(t, err, err); !strings.Contains(e.Hint, "not empty") {
		t.Errorf("%v: hint %q", e, e.Hint)
	}
	wantErr(t, s.RemoveEmpty(ctx, prefix+"missing"), storage.ErrNotExist)
	wantErr(t, s.Delete(ctx, prefix+"one"), storage.ErrUnsupported)
	for _, name := range []string{"dir", "missing"} {
		if err := s.RemoveTree(ctx, prefix+name+"/"); err != nil {
			t.Fatal(err)
		}
	}
	wantTree(t, s, prefix, "kept", "one/x")
	authority, _, _ := strings.Cut(strings.TrimPrefix(prefix, "hdfs://"), "/")
	wantErr(t, s.RemoveTree(ctx, "hdfs://"+authority+"/"), storage.ErrUnsupported)
	if free, err := s.FreeSpace(ctx, prefix+"new/x"); err != nil || free <= 0 {
		t.Errorf("%d bytes free, %v", free, err)
	}
}

func testLeftovers(t *testing.T, h *servertest.HDFS, s *hdfs.Store, prefix string) {
	for name, data := range map[string]string{
		"x": "mine", "a/b/.spt-tmp-0123456789ab-file": "12345",
		".spt-tmp-0123456789ac-dir/one": "1", ".spt-tmp-0123456789ac-dir/deep/two": "22",
		".spt-old-0123456789ae-gone/_metadata": "old", ".spt-old-0123456789af-x/_metadata": "old", ".spt-tmp-short": "?",
	} {
		storetest.Put(t, s, prefix+name, data)
	}
	w := create(t, s, prefix+"written", storage.CreateOptions{})
	of := func(depth int) map[string]ability.Leftover {
		all := map[string]ability.Leftover{}
		for l, err := range s.Leftovers(ctx, prefix, depth) {
			if err != nil {
				t.Errorf("%s: %v", l.Name, err)
			}
			name := strings.TrimPrefix(l.Name, prefix)
			if strings.HasSuffix(name, "-written") {
				name = "written"
			}
			all[name] = l
		}
		return all
	}
	got := of(8)
	want := map[string]ability.Leftover{
		"a/b/.spt-tmp-0123456789ab-file": {Files: 1, Bytes: 5},
		".spt-tmp-0123456789ac-dir":      {Files: 2, Bytes: 3},
		".spt-old-0123456789ae-gone":     {Files: 1, Bytes: 3, Displaced: prefix + "gone"},
		".spt-old-0123456789af-x":        {Files: 1, Bytes: 3},
		".spt-tmp-short":                 {Foreign: "spt creates no such name"},
		"written":                        {Files: 1, InUse: true},
	}
	for name, w := range want {
		g, ok := got[name]
		if g.ModTime.IsZero() {
			t.Errorf("%s: no time", name)
		}
		g.Name, g.ModTime = "", time.Time{}
		if !ok || g != w {
			t.Errorf("%s: %+v, want %+v", name, g, w)
		}
	}
	if len(got) != len(want) || len(of(2)) != len(want)-1 {
		t.Errorf("%d leftovers, want %d; %d within two directories", len(got), len(want), len(of(2)))
	}
	wantErr(t, s.RemoveLeftover(ctx, got["written"]), storage.ErrChanged)
	wantErr(t, s.RemoveLeftover(ctx, got[".spt-tmp-short"]), storage.ErrChanged)
	wantErr(t, s.RemoveLeftover(ctx, ability.Leftover{Name: prefix + "x"}), storage.ErrChanged)
	l := got[".spt-tmp-0123456789ac-dir"]
	storetest.Put(t, s, prefix+".spt-tmp-0123456789ac-dir/one", "changed")
	wantErr(t, s.RemoveLeftover(ctx, l), storage.ErrChanged)
	l, err := s.Leftover(ctx, l.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []ability.Leftover{l, got["a/b/.spt-tmp-0123456789ab-file"]} {
		if err := s.RemoveLeftover(ctx, l); err != nil {
			t.Error(err)
		}
	}
	if err := w.Abort(ctx); err != nil {
		t.Fatal(err)
	}
	wantTree(t, s, prefix, ".spt-old-0123456789ae-gone/_metadata", ".spt-old-0123456789af-x/_metadata", ".spt-tmp-short", "x")
	_, err = s.Leftover(ctx, l.Name)
	wantErr(t, err, storage.ErrNotExist)
}

// What the NameNode refuses is told with its reason, which names the user.
func testPermission(t *testing.T, h *servertest.HDFS, s *hdfs.Store, prefix string) {
	storetest.Put(t, s, prefix+"shown/x", "x")
	storetest.Put(t, s, prefix+"hidden/x", "x")
	_, path, _ := strings.Cut(strings.TrimPrefix(prefix, "hdfs://"), "/")
	if err := errors.Join(h.Shell("-chmod", "700", "/"+path+"hidden"), h.Shell("-chmod", "600", "/"+path+"shown/x")); err != nil {
		t.Fatal(err)
	}
	alice := open(t, h, hdfs.Options{User: "alice"})
	if _, err := alice.Stat(ctx, prefix+"shown/x"); err != nil {
		t.Error(err)
	}
	read := func(name string) error { _, _, err := alice.ReadRange(ctx, name, 0, -1, ""); return err }
	create := func(name string) error { _, err := alice.Create(ctx, name, storage.CreateOptions{}); return err }
	list := func(name string) (last error) {
		for _, last = range alice.List(ctx, name, "") {
		}
		return last
	}
	for what, err := range map[string]error{
		"read": read(prefix + "shown/x"), "read hidden": read(prefix + "hidden/x"), "create": create(prefix + "shown/y"), "create below": create(prefix + "new/y"),
		"list": list(prefix + "hidden/"), "delete": alice.Delete(ctx, prefix+"shown/x"), "move": alice.Move(ctx, prefix+"shown/x", prefix+"y"), "tree": alice.RemoveTree(ctx, prefix+"shown"),
	} {
		if !errors.Is(err, storage.ErrPermission) {
			t.Errorf("%s: error %v", what, err)
			continue
		}
		if e := wantErr(t, err, storage.ErrPermission); !strings.Contains(e.Error(), "user=alice") || e.Setting != storage.SettingCredentials {
			t.Errorf("%s: %v, setting %q", what, err, e.Setting)
		}
	}
	wantTree(t, s, prefix, "hidden/x", "shown/x")
}

// Content that the client cannot read or write is refused before anything is written.
func testRefused(t *testing.T, h *servertest.HDFS, s *hdfs.Store, prefix string) {
	makeDirectory(t, s, prefix+"coded")
	_, path, _ := strings.Cut(strings.TrimPrefix(prefix, "hdfs://"), "/")
	h.ErasureCode("XOR-2-1-1024k", "/"+path+"coded")
	_, err := s.Create(ctx, prefix+"coded/x", storage.CreateOptions{})
	if e := wantErr(t, err, storage.ErrUnsupported); !strings.Contains(e.Error(), "erasure coded") {
		t.Error(err)
	}
	wantTree(t, s, prefix)
	for _, name := range []string{prefix, prefix + "..", prefix + "."} {
		_, err := s.Create(ctx, name, storage.CreateOptions{})
		wantErr(t, err, storage.ErrUnsupported)
	}
	makeDirectory(t, s, prefix+"dir")
	_, err = s.Create(ctx, prefix+"dir", storage.CreateOptions{})
	wantErr(t, err, storage.ErrExist)
	storetest.Put(t, s, prefix+"file", "x")
	_, err = s.Create(ctx, prefix+"file/x", storage.CreateOptions{})
	wantErr(t, err, storage.ErrNotExist)
}

// A quota that is used up is no space left.
func testQuota(t *testing.T, h *servertest.HDFS, s *hdfs.Store, prefix string) {
	makeDirectory(t, s, prefix+"q")
	_, path, _ := strings.Cut(strings.TrimPrefix(prefix, "hdfs://"), "/")
	h.Admin("-setSpaceQuota", "1500000", "/"+path+"q")
	w := create(t, s, prefix+"q/x", storage.CreateOptions{})
	data := noise(3 << 20)
	_, err := w.Write(data)
	if err == nil {
		_, err = w.Commit(ctx)
	}
	if e := wantErr(t, err, storage.ErrNoSpace); !strings.Contains(e.Hint, "quota") {
		t.Errorf("%v: hint %q", err, e.Hint)
	}
	if err := w.Abort(ctx); err != nil {
		t.Fatal(err)
	}
	wantTree(t, s, prefix)
}

func testAccess(t *testing.T, h *servertest.HDFS, s *hdfs.Store, prefix string) {
	a, err := s.Access(ctx, prefix+"x")
	if err != nil || a.Service != "HDFS" || a.Endpoint != h.URI || a.Identity != h.User || !strings.Contains(a.Credentials, "operating system") || !strings.Contains(strings.Join(a.Details, "; "), h.Conf) {
		t.Errorf("%+v, %v", a, err)
	}
	bob, err := hdfs.New(hdfs.Options{Hadoop: map[string]string{}, Getenv: func(name string) string {
		return map[string]string{"HADOOP_USER_NAME": "bob"}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := bob.Access(ctx, prefix); err != nil || a.Identity != "bob" || a.Credentials != "HADOOP_USER_NAME" {
		t.Errorf("%+v, %v", a, err)
	}
	if uri, err := s.URI(ctx, prefix+"x"); err != nil || uri != prefix+"x" {
		t.Errorf("%q, %v", uri, err)
	}
}

// The name of a file that is not committed does not exist, and the temporary one is
// next to it.
func testBeingWritten(t *testing.T, _ *servertest.HDFS, s *hdfs.Store, prefix string) {
	w := create(t, s, prefix+"new/x", storage.CreateOptions{IfAbsent: true})
	if _, err := w.Write(noise(100)); err != nil {
		t.Fatal(err)
	}
	names := storetest.Names(t, s, prefix, "")
	if len(names) != 1 || !tempname.IsOwn(names[0]) {
		t.Fatalf("%q", names)
	}
	storetest.Put(t, s, prefix+"new/x", "of another")
	_, err := w.Commit(ctx)
	wantErr(t, err, storage.ErrExist)
	if err := w.Abort(ctx); err != nil {
		t.Fatal(err)
	}
	wantTree(t, s, prefix, "new/x")
	// A file that changes while it is read.
	data := string(noise(300_000))
	storetest.Put(t, s, prefix+"y", data)
	body, _, err := s.ReadRange(ctx, prefix+"y", 0, -1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	storetest.Put(t, s, prefix+"y", data)
	_, err = io.ReadAll(body)
	wantErr(t, err, storage.ErrChanged)
}
