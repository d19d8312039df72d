package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// TestCheckKnownFiles: the snapshots of known content, as Flink restored them:
// with their files where a mapping says, no obstacle to a restore found; with a mapping
// to where nothing is, those that name absolute places miss files, and no others.
// Without one, the places are asked for themselves, and may hold what a test of
// real Flink put there.
func TestCheckKnownFiles(t *testing.T) {
	abouts, _ := filepath.Glob(filepath.Join(testenv.CorpusDir(t), "known", "*", "about.json"))
	own, _ := filepath.Glob("../../../testdata/savepoints/*/about.json")
	if len(abouts) == 0 {
		t.Log("NO CORPUS: set SPT_CORPUS; only the snapshots of testdata are checked")
	}
	counts := map[string]int{}
	for _, file := range append(abouts, own...) {
		var about struct {
			Snapshot string
			Options  struct{ At string }
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &about)
		}
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(file)
		location := filepath.Join(dir, about.Snapshot)
		check := func(args ...string) *CheckResult {
			var out, errs bytes.Buffer
			env := &Env{Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }, Now: time.Now, Stores: route.New(local.New())}
			code := Main(t.Context(), append([]string{"check", location, "-o", "json"}, args...), env)
			var r CheckResult
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || errs.Len() > 0 {
				t.Fatalf("%s: %v: %s", location, err, errs.Bytes())
			}
			if (r.Errors > 0) != (code == exitFindings) || r.Restorable != (r.Errors == 0) {
				t.Errorf("%s: exit %d with %d errors", location, code, r.Errors)
			}
			return &r
		}
		before := tree(t, dir)
		// What the reader of the truth knows lay at At lies in dir, but for the
		// folder of a savepoint, which is that of its name.
		at := "file:" + about.Options.At
		for _, f := range check("--map", at+"="+strings.TrimSuffix(filepath.Join(dir, first(about.Snapshot)), "/")).Findings {
			counts[f.Severity+" "+f.Code]++
			if f.Severity == "error" || strings.HasPrefix(f.Code, "file-") {
				t.Errorf("%s: %s %s: %s", location, f.Severity, f.Code, f.Message)
			}
		}
		metadata, err := os.ReadFile(filepath.Join(location, "_metadata"))
		if err != nil {
			t.Fatal(err)
		}
		shared := bytes.Contains(metadata, []byte("/shared/")) || bytes.Contains(metadata, []byte("/taskowned/")) || bytes.Contains(metadata, []byte("/dstl/"))
		missing := slices.ContainsFunc(check("--map", at+"="+t.TempDir()).Findings, func(f report.Finding) bool { return f.Code == "file-missing" && f.Severity == "error" })
		if missing != shared {
			t.Errorf("%s: files said to be missing: %t, named by absolute places: %t", location, missing, shared)
		}
		if missing {
			counts["where nothing is: error file-missing"]++
		}
		if after := tree(t, dir); after != before {
			t.Errorf("%s changed", dir)
		}
	}
	t.Logf("%d snapshots", len(abouts)+len(own))
	for _, c := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d %s", counts[c], c)
	}
}

// first is the first element of a path.
func first(path string) string {
	name, _, _ := strings.Cut(path, "/")
	if name != "savepoint" {
		return ""
	}
	return name
}

// tree is what stands in a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		p, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s\n", path, format.OperatorIDOf(string(p)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
