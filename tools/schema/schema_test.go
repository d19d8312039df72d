// Package schema_test holds what the commands print against the schemas that
// docs/schema promises.
package schema_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/savepoint-tools/spt/cmd/spt/command"
)

const product = "../.."

// load compiles a schema. Properties it does not name are refused: what a
// command prints must be written down, though a reader may not refuse more.
func load(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(product, "docs/schema", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	closeObjects(doc)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("mem:"+name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeObjects(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, sub := range v {
			closeObjects(sub)
		}
	case []any:
		for _, sub := range v {
			closeObjects(sub)
		}
	}
}

func run(args ...string) (stdout, stderr []byte, code int) {
	var out, errs bytes.Buffer
	env := command.OSEnv()
	env.Stdout, env.Stderr = &out, &errs
	env.Getenv = func(string) string { return "" }
	code = command.Main(context.Background(), args, env)
	return out.Bytes(), errs.Bytes(), code
}

func validate(t *testing.T, s *jsonschema.Schema, data []byte) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if err := s.Validate(doc); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
}

// snapshots are those of testdata/savepoints, by their places.
func snapshots(t *testing.T) []string {
	t.Helper()
	root := filepath.Join(product, "testdata/savepoints")
	var all []string
	for _, pattern := range []string{"sp-*/_metadata", "sp-*/*/chk-*/_metadata", "sp-*.spt"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, names...)
	}
	if len(all) < 10 {
		t.Fatalf("%d snapshots", len(all))
	}
	return all
}

// TestAnswersFollowTheirSchemas goes over every snapshot and every command.
func TestAnswersFollowTheirSchemas(t *testing.T) {
	root := filepath.Join(product, "testdata/savepoints")
	inspect, rows, several := load(t, "inspect"), load(t, "inspect-rows"), load(t, "inspect-several")
	verify, list, convert := load(t, "verify"), load(t, "ls"), load(t, "convert")
	cat, stats, rescale := load(t, "cat"), load(t, "cat-stats"), load(t, "rescale")
	unions, prune := load(t, "prune-union-states"), load(t, "prune-union")
	n := 0
	answer := func(s *jsonschema.Schema, args ...string) {
		t.Helper()
		n++
		out, errs, code := run(append(args, "-o", "json")...)
		if code > 1 {
			t.Fatalf("%q: exit %d, %s", args, code, errs)
		}
		validate(t, s, out)
	}
	for _, sp := range snapshots(t) {
		answer(inspect, "inspect", sp)
		answer(inspect, "inspect", sp, "--fail-if", "bytes > 10", "--top", "1")
		answer(several, "inspect", sp, sp)
		for _, by := range []string{"operator", "state", "subtask", "handle", "file"} {
			answer(rows, "inspect", sp, "--by", by)
		}
		answer(cat, "cat", sp)
		for _, form := range []string{"text", "hex", "base64", "redacted"} {
			answer(cat, "cat", sp, "--format", form)
			answer(cat, "cat", sp, "--format", form, "--raw")
		}
		answer(cat, "cat", sp, "--distinct", "--limit", "5")
		answer(cat, "cat", sp, "--where", "size > 1 * GiB")
		answer(stats, "cat", sp, "--stats")
		answer(rescale, "rescale", sp, "--to", "3")
		answer(rescale, "rescale", sp, "--to", "7", "--keyed", "leave", "--strategy", "round-robin")
		answer(unions, "prune-union", sp)
		answer(prune, "prune-union", sp, "--keep", "distinct")
		answer(prune, "prune-union", sp, filepath.Join(t.TempDir(), "out.spt"), "--keep", "copies")
		answer(verify, "verify", sp)
		answer(convert, "convert", sp, filepath.Join(t.TempDir(), "out.spt"))
		if filepath.Base(sp) == "sp-014.spt" {
			continue // spt's own encoding: Flink could not read it
		}
		answer(convert, "convert", sp)
		answer(convert, "convert", sp, filepath.Join(t.TempDir(), "out"))
	}
	answer(verify, append([]string{"verify"}, snapshots(t)...)...)
	answer(list, "ls", root)
	answer(list, "ls", t.TempDir())
	left := t.TempDir()
	for _, name := range []string{".spt-tmp-0123456789ab-x", ".spt-old-0123456789ab-y", ".spt-tmp-z"} {
		if err := os.Mkdir(filepath.Join(left, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	answer(list, "ls", left)
	answer(load(t, "clean"), "clean", left)
	answer(load(t, "clean"), "clean", left, "--older-than", "0s", "--dry-run")
	answer(load(t, "clean"), "clean", left, "--older-than", "0s")
	answer(load(t, "clean"), "clean", t.TempDir())
	answer(load(t, "hash"), "hash", "numbers", "gone", "--in", filepath.Join(root, "sp-001"))
	answer(load(t, "hash"), "hash", "numbers")
	answer(load(t, "version"), "version")
	answer(rescale, "rescale", "--from", "2", "--to", "4")
	answer(convert, "rescale", filepath.Join(root, "sp-001"), filepath.Join(t.TempDir(), "out"), "--to", "4")
	answer(load(t, "prune-union-growth"), "prune-union", "--restores", "3")
	t.Logf("%d answers", n)
}

// TestDamageFollowsItsSchemas: what is missing, damaged and unfinished.
func TestDamageFollowsItsSchemas(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	if err := os.CopyFS(gone, os.DirFS(filepath.Join(product, "testdata/savepoints/sp-002"))); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut")
	if err := os.CopyFS(cut, os.DirFS(filepath.Join(product, "testdata/savepoints/sp-009"))); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(gone, "*-*"))
	if err != nil || len(files) != 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(cut, "_metadata"), 3000); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		schema string
		code   int
		args   []string
	}{
		{"inspect", 0, []string{"inspect", gone}},
		{"inspect-rows", 0, []string{"inspect", gone, "--by", "file"}},
		{"inspect-several", 4, []string{"inspect", gone, cut, "nowhere"}},
		{"inspect", 4, []string{"inspect", cut, "--salvage"}},
		{"verify", 1, []string{"verify", gone}},
		{"verify", 4, []string{"verify", gone, cut}},
		{"ls", 0, []string{"ls", dir}},
		{"convert", 1, []string{"convert", gone, "--missing", "keep"}},
	} {
		out, errs, code := run(append(tt.args, "-o", "json")...)
		if code != tt.code {
			t.Errorf("%q: exit %d, %s", tt.args, code, errs)
		}
		validate(t, load(t, tt.schema), out)
	}
}

// TestErrorsFollowTheirSchema: one line of JSON on stderr, nothing on stdout.
func TestErrorsFollowTheirSchema(t *testing.T) {
	s := load(t, "error")
	damaged := filepath.Join(t.TempDir(), "_metadata")
	data, err := os.ReadFile(filepath.Join(product, "testdata/savepoints/sp-001/_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damaged, data[:1000], 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"inspect", "nope"}, {"inspect"}, {"inspect", "--bad"}, {"inspect", damaged}, {"ls", "nope"}, {"convert", damaged, "out"},
		{"inspect", "s3://bucket/sp"}, {"frobnicate"},
	} {
		for _, form := range []string{"json", "jsonl"} {
			out, errs, code := run(append(args, "-o", form)...)
			if code < 2 || len(out) > 0 || strings.Count(string(errs), "\n") != 1 {
				t.Errorf("%q: exit %d, stdout %q, stderr %q", args, code, out, errs)
				continue
			}
			validate(t, s, errs)
			var e struct {
				Code int `json:"exit_code"`
			}
			if err := json.Unmarshal(errs, &e); err != nil || e.Code != code {
				t.Errorf("%q: says %d, exits %d, %v", args, e.Code, code, err)
			}
		}
	}
}
