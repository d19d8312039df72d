package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
)

func TestCanonicalSeesThroughLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.NotTested(t, "NOT TESTED: symbolic links need a privilege on Windows")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "real", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "real", "dangling": "real/new", "loop": "loop", "far": "real/sub", "real/sub/up": "../new"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"real/sub":         "real/sub",
		"link/sub":         "real/sub",
		"link/sub/../x/y":  "real/x/y",
		"link/new/deep":    "real/new/deep",
		"dangling":         "real/new",
		"dangling/deep":    "real/new/deep",
		"real/sub/up":      "real/new",
		"far/up/deep":      "real/new/deep",
		"nothing/at/all":   "nothing/at/all",
		"./real//sub/././": "real/sub",
	} {
		got, err := New().Canonical(context.Background(), dir+"/"+name)
		if err != nil || got != filepath.ToSlash(filepath.Join(dir, want)) {
			t.Errorf("Canonical(%s) = %s, %v, want …/%s", name, got, err, want)
		}
	}
	if got, err := New().Canonical(context.Background(), dir+"/loop"); err == nil {
		t.Errorf("a link to itself resolves to %s", got)
	}
}

// What is below a folder is described, and nothing to which a link leads from it.
func TestStatBelow(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.NotTested(t, "NOT TESTED: symbolic links need a privilege on Windows")
	}
	ctx := context.Background()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ckpts/a/x", "ckpts/x", "out/x", "ckpts-evil/x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"ckpts/in": "a/x", "ckpts/out": "../out/x", "ckpts/far": dir + "/out", "ckpts/abs": dir + "/ckpts/x", "ckpts/loop": "loop", "linked": "ckpts"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	s := New()
	root, err := s.Directory(ctx, dir+"/ckpts")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"x": nil, "a/x": nil, "in": nil, "a/../x": nil,
		"gone": storage.ErrNotExist, "a": storage.ErrNotExist, "a/x/y": storage.ErrNotExist,
		"out": storage.ErrChanged, "far/x": storage.ErrChanged, "../out/x": storage.ErrChanged, "abs": storage.ErrChanged, dir + "/ckpts/x": storage.ErrChanged,
	} {
		info, err := s.StatBelow(ctx, root, name)
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want != nil {
			continue
		}
		seen, err := s.Stat(ctx, dir+"/ckpts/"+name)
		if err != nil || seen.Version != info.Version || seen.Size != info.Size || info.Size == 0 {
			t.Errorf("%s: %+v, %+v, %v", name, info, seen, err)
		}
	}
	if _, err := s.StatBelow(ctx, root, "loop"); err == nil {
		t.Error("a link to itself is described")
	}
	for _, name := range []string{"/linked", "/ckpts/x", "/gone"} {
		if f, err := s.Directory(ctx, dir+name); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	// Written to, it is the same folder; another one under its name is not.
	if err := os.WriteFile(dir+"/ckpts/new", []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.StatBelow(ctx, root, "new"); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Rename(dir+"/ckpts", dir+"/old"), os.Rename(dir+"/ckpts-evil", dir+"/ckpts")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.StatBelow(ctx, root, "x"); !errors.Is(err, storage.ErrChanged) {
		t.Error(err)
	}
	if _, err := s.StatBelow(ctx, ability.Directory{Name: dir + "/ckpts"}, "x"); err != nil {
		t.Error(err)
	}
}

// TestURI: the URI of an object, on every system.
func TestURI(t *testing.T) {
	for path, want := range map[string]string{
		"/data/sp/f":    "file:/data/sp/f",
		"/":             "file:/",
		"C:/data/f":     "file:/C:/data/f",
		"//server/sp/f": "file:////server/sp/f",
	} {
		if got := uriOf(path); got != want {
			t.Errorf("%s: %s, expected %s", path, got, want)
		}
	}
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	s := New()
	for name, want := range map[string]string{"": real, ".": real, "f": filepath.Join(real, "f"), dir + "/a/../f": filepath.Join(real, "f")} {
		got, err := s.URI(t.Context(), name)
		if want = uriOf(filepath.ToSlash(want)); err != nil || got != want {
			t.Errorf("%q: %s, expected %s: %v", name, got, want, err)
		}
	}
}
