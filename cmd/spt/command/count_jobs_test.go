package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestCountJobs: what diff and prune-union print and write, and on which errors they
// end, is the same for any number of jobs.
func TestCountJobs(t *testing.T) {
	dirs := append(testenv.Snapshots(t), bigSavepoint(t, 3))
	hostile, err := filepath.Glob("../../../testdata/hostile/*")
	if err != nil || len(hostile) == 0 {
		t.Fatal(hostile, err)
	}
	dirs = append(dirs, hostile...)
	codes := map[string]map[int]int{"diff": {}, "prune-union": {}}
	compare := func(args ...string) {
		t.Helper()
		var expected string
		for _, jobs := range []string{"1", "8"} {
			var out, errs bytes.Buffer
			env := OSEnv()
			env.Stdout, env.Stderr, env.Getenv = &out, &errs, func(string) string { return "" }
			more := []string{"--jobs", jobs}
			written := ""
			if args[len(args)-1] == "--keep" {
				written = filepath.Join(t.TempDir(), "out")
				more = append([]string{"distinct", written, "--accept-unproven"}, more...)
			}
			code := Main(t.Context(), append(args[:len(args):len(args)], more...), env)
			got := fmt.Sprintf("%s\n%s\nexit %d", out.String(), errs.String(), code)
			if written != "" {
				p, err := os.ReadFile(filepath.Join(written, "_metadata"))
				got = fmt.Sprintf("exit %d, %x, %v", code, p, err != nil)
			}
			if jobs == "1" {
				expected = got
				codes[args[0]][code]++
			} else if got != expected {
				t.Errorf("%q: with %s jobs %.500s\nwith 1 job %.500s", args, jobs, got, expected)
			}
		}
	}
	for i, dir := range dirs {
		args := []string{"diff", dir, dirs[(i+1)%len(dirs)], "-v"}
		if i%8 == 0 {
			args[2] = dir
		}
		if i%2 == 0 {
			args = append(args, "-o", "json", "--placement")
		}
		compare(args...)
		if args = []string{"prune-union", dir}; i%3 == 0 {
			args = append(args, "--keep")
		}
		compare(args...)
	}
	t.Logf("exit codes of %d snapshots: %v", len(dirs), codes)
	for command, all := range codes {
		if all[exitOK] == 0 || all[exitInput] == 0 || command == "diff" && all[exitFindings] == 0 {
			t.Errorf("%s: too little was compared", command)
		}
	}
}
