package local

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
)

// leftoversOf is what Leftovers yields, by name below dir.
func leftoversOf(t *testing.T, s *Store, dir string, depth int) map[string]ability.Leftover {
	t.Helper()
	all := map[string]ability.Leftover{}
	for l, err := range s.Leftovers(ctx, dir, depth) {
		if err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
		rel, err := filepath.Rel(dir, l.Name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.ToSlash(rel)] = l
	}
	return all
}

func TestLeftovers(t *testing.T) {
	s := New()
	dir := t.TempDir() + "/"
	for name, data := range map[string]string{
		"x": "mine", "a/b/.spt-tmp-0123456789ab-file": "12345",
		".spt-tmp-0123456789ac-dir/one": "1", ".spt-tmp-0123456789ac-dir/deep/two": "22", ".spt-tmp-0123456789ac-dir/.spt-tmp-0123456789ad-three": "333",
		".spt-old-0123456789ae-gone/_metadata": "old", ".spt-old-0123456789af-x/_metadata": "old", ".spt-tmp-short": "?", "other/.spt-tmp-0123456789b0-far": "4",
	} {
		storetest.Put(t, s, dir+name, data)
	}
	if err := os.Symlink(dir+"other", dir+"link"); err != nil {
		testenv.Missing(t, "no symbolic link", err)
	}
	if err := os.Symlink("x", dir+".spt-tmp-0123456789b1-link"); err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(dir+".spt-tmp-0123456789ac-dir/deep/two", old.Add(time.Hour), old.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".spt-tmp-0123456789ac-dir", ".spt-tmp-0123456789ac-dir/one", ".spt-tmp-0123456789ac-dir/deep", ".spt-tmp-0123456789ac-dir/.spt-tmp-0123456789ad-three"} {
		if err := os.Chtimes(dir+name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	got := leftoversOf(t, s, dir, 8)
	want := map[string]ability.Leftover{
		"a/b/.spt-tmp-0123456789ab-file":  {Files: 1, Bytes: 5},
		".spt-tmp-0123456789ac-dir":       {Files: 3, Bytes: 6, ModTime: old.Add(time.Hour)}, // the newest in it
		".spt-old-0123456789ae-gone":      {Files: 1, Bytes: 3, Displaced: filepath.ToSlash(dir) + "gone"},
		".spt-old-0123456789af-x":         {Files: 1, Bytes: 3},
		".spt-tmp-short":                  {Foreign: "spt creates no such name"},
		".spt-tmp-0123456789b1-link":      {Foreign: "it is a symbolic link"},
		"other/.spt-tmp-0123456789b0-far": {Files: 1, Bytes: 1},
	}
	for name, w := range want {
		g, ok := got[name]
		if !w.ModTime.IsZero() && !w.ModTime.Equal(g.ModTime) {
			t.Errorf("%s: last written %v, want %v", name, g.ModTime, w.ModTime)
		}
		g.Name, g.ModTime, w.ModTime = "", time.Time{}, time.Time{}
		if !ok || g != w {
			t.Errorf("%s: %+v, want %+v", name, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d leftovers, want %d: %v", len(got), len(want), got)
	}
	if got := leftoversOf(t, s, dir, 2); len(got) != len(want)-1 {
		t.Errorf("two folders deep: %v", got)
	}
	// One that is named itself.
	if got := leftoversOf(t, s, dir+".spt-tmp-0123456789ac-dir", 8); len(got) != 1 || got["."].Files != 3 {
		t.Errorf("%v", got)
	}

	// What was written since is kept, and what is not ours.
	got = leftoversOf(t, s, dir, 8)
	l := got[".spt-tmp-0123456789ac-dir"]
	write(t, dir+".spt-tmp-0123456789ac-dir/one", "changed")
	wantErr(t, s.RemoveLeftover(ctx, l), storage.ErrChanged)
	for _, name := range []string{".spt-tmp-short", ".spt-tmp-0123456789b1-link"} {
		wantErr(t, s.RemoveLeftover(ctx, got[name]), storage.ErrChanged)
	}
	wantErr(t, s.RemoveLeftover(ctx, ability.Leftover{Name: dir + "x"}), storage.ErrChanged)
	if l, err := s.Leftover(ctx, l.Name); err != nil || s.RemoveLeftover(ctx, l) != nil {
		t.Errorf("%+v, %v", l, err)
	}
	wantTree(t, dir, ".spt-old-0123456789ae-gone", ".spt-old-0123456789ae-gone/_metadata", ".spt-old-0123456789af-x", ".spt-old-0123456789af-x/_metadata",
		".spt-tmp-0123456789b1-link", ".spt-tmp-short", "a", "a/b", "a/b/.spt-tmp-0123456789ab-file", "link", "other", "other/.spt-tmp-0123456789b0-far", "x")
	wantErr(t, func() error { _, err := s.Leftover(ctx, l.Name); return err }(), storage.ErrNotExist)
}

// A folder that is held is in use, and its release frees it.
func TestHold(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		testenv.NotTested(t, "NOT TESTED: this system cannot mark what is in use: the age protects it")
	}
	s := New()
	dir := t.TempDir() + "/"
	temp := tempname.New(dir + "new/out")
	release, err := s.Hold(ctx, temp, true)
	if err != nil {
		t.Fatal(err)
	}
	again, err := New().Hold(ctx, temp, false) // another process, as two that replace one target do
	if err != nil {
		t.Fatal(err)
	}
	for i, free := range []func() error{release, again} {
		l, err := s.Leftover(ctx, temp)
		if err != nil || !l.InUse {
			t.Errorf("%d: %+v, %v", i, l, err)
		}
		wantErr(t, s.RemoveLeftover(ctx, l), storage.ErrChanged)
		if err := free(); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.Leftover(ctx, temp)
	if err != nil || l.InUse {
		t.Errorf("%+v, %v", l, err)
	}
	if err := s.RemoveLeftover(ctx, l); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Hold(ctx, dir+"missing", false); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
