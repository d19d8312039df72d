package local

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestCanonicalSeesThroughLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "real", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "real", "dangling": "real/new", "loop": "loop"} {
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
