package command

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// thousands are the separators in numbers.
var thousands = regexp.MustCompile(`\b,\b`)

// TestDiffOutputsAgree: for pairs of snapshots of testdata, the table, JSON and
// JSON lines say the same, and so does the exit code: 0 if and only if they are
// the same.
func TestDiffOutputsAgree(t *testing.T) {
	var all []string
	err := filepath.WalkDir("../../../testdata", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "examples" || d.Name() == "hostile" {
			return fs.SkipDir // snapshots that cannot be read whole
		}
		if err == nil && !d.IsDir() && (d.Name() == "_metadata" || filepath.Ext(path) == ".spt") {
			all = append(all, strings.TrimSuffix(path, "/_metadata"))
		}
		return err
	})
	if err != nil || len(all) < 40 {
		t.Fatalf("%d snapshots: %v", len(all), err)
	}
	call := func(args ...string) (string, string, int) {
		var out, errs bytes.Buffer
		env := &Env{Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }, Now: time.Now, Stores: route.New(local.New())}
		code := Main(t.Context(), append([]string{"diff"}, args...), env)
		return out.String(), errs.String(), code
	}
	run := func(args ...string) (string, int) {
		t.Helper()
		out, errs, code := call(args...)
		if errs != "" {
			t.Errorf("diff %q: %s", args, errs)
		}
		return out, code
	}
	all = slices.DeleteFunc(all, func(a string) bool { // files of some reported ones are missing
		out, _, code := call(a, a)
		return code == exitInput || strings.Contains(out, "was not compared")
	})
	if len(all) < 40 {
		t.Fatalf("%d snapshots whose state can be read", len(all))
	}
	var same, different, differences, renames int
	for i, a := range all {
		for _, b := range []string{a, all[(i+1)%len(all)], all[(i+7)%len(all)]} {
			text, code := run(a, b)
			object, jsonCode := run(a, b, "-o", "json")
			lines, linesCode := run(a, b, "-o", "jsonl")
			var r report.Diff
			if err := json.Unmarshal([]byte(object), &r); err != nil {
				t.Fatalf("%s: %v", object, err)
			}
			if code != jsonCode || code != linesCode || r.Same != (code == exitOK) || !r.Same && code != exitFindings || r.Same != strings.HasPrefix(text, "same") {
				t.Errorf("%s %s: exit codes %d, %d, %d; same %t: %s", a, b, code, jsonCode, linesCode, r.Same, text)
			}
			var of []report.DiffLine
			for line := range strings.Lines(lines) {
				var l report.DiffLine
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				of = append(of, l)
			}
			if d := cmp.Diff(r.Differences, append([]report.DiffLine{}, of...)); d != "" {
				t.Errorf("%s %s: JSON (-), lines (+)\n%s", a, b, d)
			}
			for _, l := range r.Differences {
				want := l.Text
				if l.Kind == "id" {
					want = strings.TrimPrefix(want, "checkpoint ")
				}
				if differences++; !strings.Contains(text, want) && !strings.Contains(thousands.ReplaceAllString(text, ""), want) {
					t.Errorf("%s %s: the table does not say %q\n%s", a, b, want, text)
				}
			}
			for _, n := range r.Renames {
				renames++
				if !strings.Contains(text, "\n"+ui.Quote(n.Operator)+" ") {
					t.Errorf("%s %s: the table does not suggest %q\n%s", a, b, n.Operator, text)
				}
			}
			if !strings.Contains(text, r.RenameCommand) || strings.Contains(text, "spt rename ") != (r.RenameCommand != "") && !strings.Contains(text, "--names FILE can tell") {
				t.Errorf("%s %s: the command %q\n%s", a, b, r.RenameCommand, text)
			}
			if r.Same {
				same++
			} else {
				different++
			}
		}
	}
	t.Logf("%d pairs are the same and %d are not, with %d differences and %d suggestions", same, different, differences, renames)
	if same < 40 || different < 80 || differences < 500 || renames < 4 {
		t.Error("too few")
	}
}
