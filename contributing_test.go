package spt_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContributing: the files that CONTRIBUTING.md names exist, and so do the tests
// that its commands run.
func TestContributing(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("(?:`|\\./|\\()([a-z.]+/[a-z_/]*(?:\\.[a-z]+)?)[`) ]").FindAllStringSubmatch(string(text), -1)
	tests := regexp.MustCompile(`-(?:run|fuzz) '?((?:Test|Fuzz)[A-Za-z]+)`).FindAllStringSubmatch(string(text), -1)
	if len(paths) < 10 || len(tests) < 5 {
		t.Fatalf("%d paths, %d tests: the patterns do not fit", len(paths), len(tests))
	}
	for _, m := range paths {
		if _, err := os.Stat(m[1]); err != nil {
			t.Error(err)
		}
	}
	var code strings.Builder
	if err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		p, err := os.ReadFile(name)
		code.Write(p)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, m := range tests {
		if !strings.Contains(code.String(), "\nfunc "+m[1]) {
			t.Errorf("no test %s", m[1])
		}
	}
	if lines := strings.Count(string(text), "\n"); lines > 120 {
		t.Errorf("%d lines", lines)
	}
}
