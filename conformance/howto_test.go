package conformance

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHowToHeadingsAreFlinks: the headings of docs/howto.md that quote Flink are
// what its classes hold, on every version, so that a search for an error finds them.
func TestHowToHeadingsAreFlinks(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "howto.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, errorsPart, found := strings.Cut(string(text), "\n## Errors that Flink prints\n")
	if !found {
		t.Fatal("docs/howto.md has no section of errors")
	}
	// These are not one message of Flink's: they name a class, or what is seen.
	own := []string{"A checkpoint cannot be restored", "The job restores without", "EOFException at ", "java.io.FileNotFoundException"}
	var parts []string
	for line := range strings.Lines(errorsPart) {
		heading, isHeading := strings.CutPrefix(strings.TrimSpace(line), "### ")
		if !isHeading || slices.ContainsFunc(own, func(s string) bool { return strings.HasPrefix(heading, s) }) {
			continue
		}
		heading = strings.NewReplacer("NO_CLAIM", "…", "CLAIM", "…").Replace(heading)
		for part := range strings.SplitSeq(heading, "…") {
			if part = strings.TrimSpace(part); len(part) > 3 {
				parts = append(parts, part)
			}
		}
	}
	if len(parts) < 20 {
		t.Fatalf("%d parts of headings: that is not all", len(parts))
	}
	eachVersion(t, func(t *testing.T, version Version) {
		Use(t, version)
		p, err := build(version)
		if err != nil {
			t.Fatal(err)
		}
		missing := slices.Clone(parts)
		for _, jar := range filepath.SplitList(p.classPath) {
			name := filepath.Base(jar)
			if strings.HasPrefix(name, "flink-runtime-") || strings.HasPrefix(name, "flink-streaming-java-") {
				missing = withoutThoseIn(t, jar, missing)
			}
		}
		for _, part := range missing {
			t.Errorf("no class of Flink %s holds %q", version, part)
		}
	})
}

// withoutThoseIn returns the texts that no class of a jar holds.
func withoutThoseIn(t *testing.T, jar string, texts []string) []string {
	t.Helper()
	archive, err := zip.OpenReader(jar)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, ".class") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		class, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		texts = slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return bytes.Contains(class, []byte(s)) })
	}
	return texts
}
