//go:build unix

package command

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/writer"
)

// unionFile writes an .spt file whose operators each hold a union state.
func unionFile(t *testing.T, state string, lists map[string][][]any, order ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in it.spt")
	b, err := writer.NewBuilder(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, uid := range order {
		op := b.Operator(uid, int32(len(lists[uid])), 128)
		for i, list := range lists[uid] {
			if err := op.Subtask(int32(i)).Union(state).Add(list...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := b.Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestOneEach: subtasks that hold one equal element each, such as a counter, are
// not said to be multiplied, and --fail-if does not fire.
func TestOneEach(t *testing.T) {
	in := unionFile(t, "u", map[string][][]any{"op": {{"x"}, {"x"}, {"x"}}}, "op")
	code, stdout, stderr := runAll(t, []string{"inspect", "--deep", in, "-o", "json", "--fail-if", "may_be_multiplied"})
	var r report.Inspect
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v, %s", code, err, stderr)
	}
	want := "u of op may be multiplied by restores: all 3 subtasks hold the same list, one each, which also happens if each subtask writes one equal value"
	if len(r.Warnings) != 1 || r.Warnings[0].Code != "union_repeats" || r.Warnings[0].Message != want {
		t.Errorf("%+v", r.Warnings)
	}
	if code, stdout, stderr = runAll(t, []string{"check", in}); strings.Contains(stdout, "multiplied") {
		t.Errorf("exit code %d, %s, %s", code, stdout, stderr)
	}
	// Where they are pruned, that is said.
	recipe := filepath.Join(filepath.Dir(in), "recipe.yaml")
	put(t, recipe, "steps:\n  - prune-union: {keep: distinct}\n")
	for _, args := range [][]string{{"prune-union", in, "--keep", "distinct"}, {"apply", in, "--recipe", recipe}} {
		if code, stdout, stderr := runAll(t, args); code != exitOK || !strings.Contains(stdout, "! op/u: all 3 subtasks hold the same list, one each, which also happens") {
			t.Errorf("%s: exit code %d, %s, %s", args[0], code, stdout, stderr)
		}
	}
}

// TestShownCommands: the commands that prune-union and inspect --deep show can be run
// as they are, where paths and names have spaces, quotes and pattern characters, and
// where another operator has a state of the same name.
func TestShownCommands(t *testing.T) {
	for _, state := range []string{"u", "it's a $(state) [1]*"} {
		in := unionFile(t, state, map[string][][]any{"a": {{1, 2}, {2, 1}}, "b": {{1, 2, 3}, {2, 1}}}, "a", "b")
		ran := 0
		for _, args := range [][]string{{"prune-union", in}, {"inspect", "--deep", in}, {"prune-union", in, "--format", "hex"}, {"inspect", "--deep", in, "--format", "hex"}} {
			code, stdout, stderr := runAll(t, args)
			if code != exitOK {
				t.Fatalf("exit code %d, %s", code, stderr)
			}
			for _, line := range strings.Split(stdout, "\n") {
				_, command, ok := strings.Cut(line, "  spt ")
				if !ok {
					continue
				}
				out := filepath.Join(t.TempDir(), "out.spt")
				script := "for a in " + strings.Replace(command, " OUT.spt ", " "+out+" ", 1) + `; do printf '%s\n' "$a"; done`
				words, err := exec.Command("sh", "-c", script).Output() // what a shell makes of it
				if err != nil {
					t.Fatalf("%s: %v", command, err)
				}
				args := strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")
				code, stdout, stderr := runAll(t, args)
				if code != exitOK || args[1] != in {
					t.Errorf("%s: exit code %d, %s", command, code, stderr)
				}
				if args[0] == "cat" && (strings.Count(stdout, "\n") < 3 || strings.Contains(stdout, `"operator":"a"`)) {
					t.Errorf("%s: %s", command, stdout)
				}
				ran++
			}
		}
		// Names that are redacted choose nothing.
		for _, args := range [][]string{{"prune-union", in}, {"inspect", "--deep", in}} {
			code, stdout, stderr := runAll(t, append(args, "--format", "redacted"))
			if code != exitOK || strings.Contains(stdout, "--state") || !strings.Contains(stdout, "distinct, each 1 to 2 times") {
				t.Errorf("%s: exit code %d, %s, %s", args[0], code, stdout, stderr)
			}
		}
		if ran != 8 {
			t.Errorf("%d commands, expected 8", ran)
		}
	}
}
