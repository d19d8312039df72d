package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// Run tests a store. open returns the store and an unused prefix that ends in
// "/".
func Run(t *testing.T, open func(t *testing.T) (s storage.Storage, prefix string)) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, storage.Storage, string)
	}{
		{"ReadRange", testReadRange},
		{"Pin", testPin},
		{"Info", testInfo},
		{"NotExist", testNotExist},
		{"List", testList},
		{"Invisible", testInvisible},
		{"Abort", testAbort},
		{"Finished", testFinished},
		{"Replace", testReplace},
		{"ReplaceVersion", testReplaceVersion},
		{"IfAbsent", testIfAbsent},
		{"IfAbsentConcurrent", testIfAbsentConcurrent},
		{"Size", testSize},
		{"Delete", testDelete},
		{"Cancelled", testCancelled},
		{"CopyRange", testCopyRange},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, prefix := open(t)
			c.run(t, s, prefix)
		})
	}
}

// Put creates an object in one write.
func Put(t testing.TB, s storage.Storage, name, data string) storage.Info {
	t.Helper()
	w, err := s.Create(context.Background(), name, storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort(context.Background())
	if _, err := io.WriteString(w, data); err != nil {
		t.Fatal(err)
	}
	info, err := w.Commit(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Read returns a whole object.
func Read(t testing.TB, s storage.Storage, name string) string {
	t.Helper()
	return readRange(t, s, name, 0, -1)
}

// Names returns the listed names.
func Names(t testing.TB, s storage.Storage, prefix, delimiter string) []string {
	t.Helper()
	names := []string{}
	for info, err := range s.List(context.Background(), prefix, delimiter) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	return names
}

func readRange(t testing.TB, s storage.Storage, name string, off, n int64) string {
	t.Helper()
	rc, _, err := s.ReadRange(context.Background(), name, off, n, "")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(rc)
	if err := errors.Join(err, rc.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
	var e *storage.Error
	if !errors.As(err, &e) {
		t.Fatalf("%#v is not a *storage.Error", err)
	}
}

func wantNames(t testing.TB, got []string, prefix string, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = prefix + want[i]
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func testReadRange(t *testing.T, s storage.Storage, prefix string) {
	name := prefix + "digits"
	Put(t, s, name, "0123456789")
	for _, c := range []struct {
		off, n int64
		want   string
	}{
		{0, -1, "0123456789"}, {0, 10, "0123456789"}, {0, 11, "0123456789"}, {3, 4, "3456"}, {3, -1, "3456789"},
		{9, 1, "9"}, {9, 1 << 62, "9"}, {10, 1, ""}, {11, 5, ""}, {1 << 62, 1 << 62, ""}, {4, 0, ""},
		{-3, -1, "789"}, {-3, 3, "789"}, {-3, 2, "78"}, {-3, 9, "789"}, {-10, 4, "0123"}, {-20, -1, "0123456789"}, {-20, 2, "01"},
	} {
		if got := readRange(t, s, name, c.off, c.n); got != c.want {
			t.Errorf("ReadRange(%d, %d) = %q, want %q", c.off, c.n, got, c.want)
		}
	}
	Put(t, s, prefix+"empty", "")
	for _, off := range []int64{0, 5, -5} {
		if got := readRange(t, s, prefix+"empty", off, 5); got != "" {
			t.Errorf("ReadRange(%d, 5) of nothing = %q", off, got)
		}
	}
}

func testPin(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	name := prefix + "x"
	old := Put(t, s, name, "old")
	rc, _, err := s.ReadRange(ctx, name, 0, -1, old.Version)
	if err != nil {
		t.Fatal(err)
	}
	rc.Close()
	now := Put(t, s, name, "new") // the same size
	if old.Version == now.Version {
		t.Fatalf("both versions are %q", now.Version)
	}
	_, _, err = s.ReadRange(ctx, name, 0, -1, old.Version)
	wantErr(t, err, storage.ErrChanged)
	if err := s.Delete(ctx, name); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.ReadRange(ctx, name, 0, -1, now.Version)
	wantErr(t, err, storage.ErrNotExist)
}

// All methods that describe an object agree.
func testInfo(t *testing.T, s storage.Storage, prefix string) {
	name := prefix + "dir/x"
	want := Put(t, s, name, "hello")
	if want.Name != name || want.Size != 5 || want.Version == "" {
		t.Errorf("Commit: %+v", want)
	}
	same := func(what string, got storage.Info, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if want.ModTime.IsZero() { // Commit does not say
			want.ModTime = got.ModTime
		}
		if got.ModTime.IsZero() || got.Name != want.Name || got.Size != want.Size || got.Version != want.Version || !got.ModTime.Equal(want.ModTime) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	got, err := s.Stat(context.Background(), name)
	same("Stat", got, err)
	rc, got, err := s.ReadRange(context.Background(), name, 4, 1, "")
	same("ReadRange", got, err)
	rc.Close()
	for got, err := range s.List(context.Background(), name, "") {
		same("List", got, err)
	}
}

func testNotExist(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	Put(t, s, prefix+"dir/x", "x")
	for _, name := range []string{prefix + "y", prefix + "dir", prefix + "dir/", prefix + "dir/x/y", prefix + "z/y"} {
		if _, err := s.Stat(ctx, name); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("Stat of %s: %v", name, err)
		}
		if _, _, err := s.ReadRange(ctx, name, 0, 1, ""); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("ReadRange of %s: %v", name, err)
		}
	}
}

func testList(t *testing.T, s storage.Storage, prefix string) {
	// "a-b" < "a.b" < "a/…" < "a0": the order of the names, not of a walk.
	for _, name := range []string{"a/z", "a0", "a.b", "a-b", "a/b/c", "a/b-", "b", "B", "ä"} {
		Put(t, s, prefix+name, name)
	}
	wantNames(t, Names(t, s, prefix, ""), prefix, "B", "a-b", "a.b", "a/b-", "a/b/c", "a/z", "a0", "b", "ä")
	wantNames(t, Names(t, s, prefix, "/"), prefix, "B", "a-b", "a.b", "a/", "a0", "b", "ä")
	wantNames(t, Names(t, s, prefix+"a", "/"), prefix, "a-b", "a.b", "a/", "a0")
	wantNames(t, Names(t, s, prefix+"a", ""), prefix, "a-b", "a.b", "a/b-", "a/b/c", "a/z", "a0")
	wantNames(t, Names(t, s, prefix+"a/", "/"), prefix, "a/b-", "a/b/", "a/z")
	wantNames(t, Names(t, s, prefix+"a/b", ""), prefix, "a/b-", "a/b/c")
	wantNames(t, Names(t, s, prefix+"b", "/"), prefix, "b")
	wantNames(t, Names(t, s, prefix+"nothing", "/"), prefix)
	wantNames(t, Names(t, s, prefix+"no/thing", ""), prefix)
	wantNames(t, Names(t, s, prefix+"b/", "/"), prefix)
	for range s.List(context.Background(), prefix, "") {
		break // must not be called again
	}
}

func testInvisible(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	name := prefix + "new/x"
	w, err := s.Create(ctx, name, storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort(ctx)
	if _, err := io.WriteString(w, "hello"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Stat(ctx, name)
	wantErr(t, err, storage.ErrNotExist)
	for _, n := range Names(t, s, prefix, "") {
		if !tempname.Is(n) {
			t.Errorf("%s is visible", n)
		}
	}
	if _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(ctx); err != nil { // now without effect
		t.Fatal(err)
	}
	wantNames(t, Names(t, s, prefix, ""), prefix, "new/x")
	if got := Read(t, s, name); got != "hello" {
		t.Errorf("got %q", got)
	}
}

func testAbort(t *testing.T, s storage.Storage, prefix string) {
	ctx, cancel := context.WithCancel(context.Background())
	var writers []storage.Writer
	for _, name := range []string{"a/b/c/x", "a/b/y", "z"} {
		w, err := s.Create(ctx, prefix+name, storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "hello"); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	cancel()
	for _, w := range writers {
		for range 2 {
			if err := w.Abort(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantNames(t, Names(t, s, prefix, "/"), prefix) // with "/": no empty directories either
}

func testFinished(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	for _, finish := range []func(storage.Writer) error{
		func(w storage.Writer) error { _, err := w.Commit(ctx); return err },
		func(w storage.Writer) error { return w.Abort(ctx) },
	} {
		w, err := s.Create(ctx, prefix+"x", storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := finish(w); err != nil {
			t.Fatal(err)
		}
		if n, err := io.WriteString(w, "late"); err == nil || n != 0 {
			t.Errorf("a late Write: %d, %v", n, err)
		}
		if _, err := w.Commit(ctx); err == nil {
			t.Error("a late Commit succeeds")
		}
	}
}

func testReplace(t *testing.T, s storage.Storage, prefix string) {
	Put(t, s, prefix+"x", "a long one")
	Put(t, s, prefix+"x", "short")
	if got := Read(t, s, prefix+"x"); got != "short" {
		t.Errorf("got %q", got)
	}
	wantNames(t, Names(t, s, prefix, ""), prefix, "x")
}

// Only the given version is replaced.
func testReplaceVersion(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	replace := func(v storage.Version) error {
		w, err := s.Create(ctx, prefix+"x", storage.CreateOptions{Replace: v})
		if err != nil {
			return err
		}
		defer w.Abort(ctx)
		if _, err := w.Write([]byte("new")); err != nil {
			t.Fatal(err)
		}
		_, err = w.Commit(ctx)
		return err
	}
	old := Put(t, s, prefix+"x", "old").Version
	if err := replace(old); err != nil {
		t.Fatal(err)
	}
	if got := Read(t, s, prefix+"x"); got != "new" {
		t.Errorf("got %q", got)
	}
	Put(t, s, prefix+"x", "of others")
	wantErr(t, replace(old), storage.ErrChanged)
	if got := Read(t, s, prefix+"x"); got != "of others" {
		t.Errorf("got %q", got)
	}
	if err := s.Delete(ctx, prefix+"x"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, replace(old), storage.ErrChanged)
	wantNames(t, Names(t, s, prefix, ""), prefix)
}

func testIfAbsent(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	create := func() error {
		w, err := s.Create(ctx, prefix+"x", storage.CreateOptions{IfAbsent: true})
		if err != nil {
			return err
		}
		defer w.Abort(ctx)
		_, err = w.Commit(ctx)
		return err
	}
	if err := create(); err != nil {
		t.Fatal(err)
	}
	Put(t, s, prefix+"x", "mine")
	wantErr(t, create(), storage.ErrExist)
	if got := Read(t, s, prefix+"x"); got != "mine" {
		t.Errorf("got %q", got)
	}
	wantNames(t, Names(t, s, prefix, ""), prefix, "x")
}

func testIfAbsentConcurrent(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	name := prefix + "dir/x"
	var created, wait sync.WaitGroup
	var errs [8]error
	created.Add(len(errs))
	for i := range errs {
		wait.Go(func() {
			w, err := s.Create(ctx, name, storage.CreateOptions{IfAbsent: true})
			created.Done()
			if err != nil {
				errs[i] = err
				return
			}
			defer w.Abort(ctx)
			fmt.Fprintf(w, "creator %d", i)
			created.Wait() // so that all commit at the same time
			_, errs[i] = w.Commit(ctx)
		})
	}
	wait.Wait()
	winner := slices.Index(errs[:], nil)
	if winner < 0 {
		t.Fatal(errs)
	}
	for i, err := range errs {
		if i != winner {
			wantErr(t, err, storage.ErrExist)
		}
	}
	if got, want := Read(t, s, name), fmt.Sprintf("creator %d", winner); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wantNames(t, Names(t, s, prefix, ""), prefix, "dir/x")
}

func testSize(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	for written, ok := range map[string]bool{"1234": false, "12345": true, "123456": false} {
		w, err := s.Create(ctx, prefix+"x", storage.CreateOptions{Size: 5})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.WriteString(w, written); err == nil {
			_, err = w.Commit(ctx)
		}
		if (err == nil) != ok {
			t.Errorf("%d of 5 bytes: %v", len(written), err)
		}
		if err := w.Abort(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func testDelete(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	for _, name := range []string{"a/b/x", "a/y", "z"} {
		Put(t, s, prefix+name, name)
	}
	if err := s.Delete(ctx, prefix+"a/y", prefix+"missing", prefix+"a/b/missing", prefix+"a/b/x"); err != nil {
		t.Fatal(err)
	}
	wantNames(t, Names(t, s, prefix, "/"), prefix, "z")
	if err := s.Delete(ctx); err != nil {
		t.Fatal(err)
	}
}

func testCancelled(t *testing.T, s storage.Storage, prefix string) {
	name := prefix + "x"
	Put(t, s, name, "hello")
	ctx, cancel := context.WithCancel(context.Background())
	rc, _, err := s.ReadRange(ctx, name, 0, -1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	w, err := s.Create(ctx, prefix+"y", storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = rc.Read(make([]byte, 5))
	wantErr(t, err, context.Canceled)
	_, err = w.Write([]byte("x"))
	wantErr(t, err, context.Canceled)
	_, err = w.Commit(context.Background()) // a failed write stays failed
	wantErr(t, err, context.Canceled)
	if err := w.Abort(ctx); err != nil {
		t.Fatal(err)
	}
	_, err = s.Stat(ctx, name)
	wantErr(t, err, context.Canceled)
	_, _, err = s.ReadRange(ctx, name, 0, 1, "")
	wantErr(t, err, context.Canceled)
	_, err = s.Create(ctx, prefix+"y", storage.CreateOptions{})
	wantErr(t, err, context.Canceled)
	wantErr(t, s.Delete(ctx, name), context.Canceled)
	err = nil
	for _, err = range s.List(ctx, prefix, "") {
	}
	wantErr(t, err, context.Canceled)
	if got := Read(t, s, name); got != "hello" {
		t.Errorf("got %q", got)
	}
}

// The store's own copy, if it has one, and the fallback have the same result.
func testCopyRange(t *testing.T, s storage.Storage, prefix string) {
	ctx := context.Background()
	data := string(bytes.Repeat([]byte("0123456789abcdef"), 200<<10/16))
	src := Put(t, s, prefix+"src", data)
	for kind, from := range map[string]storage.Storage{"own": s, "foreign": NewCounting(s)} {
		w, err := s.Create(ctx, prefix+"dst", storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "<")
		for _, c := range []struct{ off, n int64 }{{0, -1}, {5, 100 << 10}, {-7, -1}, {-9, 2}, {3, 0}, {200 << 10, 0}} {
			if err := ranged.CopyRange(ctx, s, w, from, src.Name, c.off, c.n, src.Version); err != nil {
				t.Fatalf("%s %+v: %v", kind, c, err)
			}
		}
		io.WriteString(w, ">")
		if _, err := w.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		want := "<" + data + data[5:5+100<<10] + "9abcdef" + "78" + ">"
		if got := Read(t, s, prefix+"dst"); got != want {
			t.Errorf("%s: a copy of %d bytes, want %d", kind, len(got), len(want))
		}

		w, err = s.Create(ctx, prefix+"bad", storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort(ctx)
		wantErr(t, ranged.CopyRange(ctx, s, w, from, src.Name, 1, 200<<10, ""), io.ErrUnexpectedEOF)
		wantErr(t, ranged.CopyRange(ctx, s, w, from, src.Name, 201<<10, -1, ""), io.ErrUnexpectedEOF)
		wantErr(t, ranged.CopyRange(ctx, s, w, from, src.Name, 0, 1, "another"), storage.ErrChanged)
	}
}
