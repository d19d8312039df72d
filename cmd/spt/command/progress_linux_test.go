package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCommandsShowProgress: every command that can read for long shows on a
// terminal how much of how much it has done and when it will be ready, and removes
// that; with --quiet, with JSON and in a pipe it shows nothing.
func TestCommandsShowProgress(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{"sp-001": "sp-001", "sp-002": "sp-002", "sp-007": "sp-007", "sp-010": "sp-010", "sp-012.spt": "sp-012.spt"} {
		copyTree(t, filepath.Join("../../../testdata/savepoints", from), filepath.Join(dir, to))
	}
	put(t, filepath.Join(dir, "recipe"), "steps:\n  - filter: {operator: lists, state: alpha, where: index > 0}\n")
	withProgress(t, dir, "drop", "sp-010", "less", "--state", "alpha")
	for _, x := range []struct {
		args []string
		what string
	}{
		{[]string{"cat", "sp-010", "-o", "csv", "--limit", "1000000"}, "reading"},
		{[]string{"cat", "sp-010", "--stats"}, "reading"},
		{[]string{"diff", "sp-001", "sp-007"}, "comparing"},
		{[]string{"diff", "sp-012.spt", "sp-007"}, "comparing"},
		{[]string{"verify", "--read", "sp-002"}, "verifying"},
		{[]string{"verify", "sp-012.spt"}, "verifying"},
		{[]string{"verify", "sp-002"}, "checking files"},
		{[]string{"check", "sp-002"}, "checking operators"},
		// Of these, only the first bytes of streams are read: how many is not known.
		{[]string{"rescale", "sp-010", "--to", "2"}, "reading*"},
		{[]string{"drop", "sp-010", "--state", "alpha"}, "reading*"},
		{[]string{"merge", "less", "--from", "sp-010", "--operator", "lists", "--state", "alpha"}, "reading*"},
		{[]string{"convert", "sp-010", "--flink", "1.20"}, "reading*"},
		{[]string{"prune-union", "sp-007"}, "reading"},
		{[]string{"prune-union", "sp-007", "--keep", "distinct"}, "reading"},
		{[]string{"filter", "sp-010", "--operator", "lists", "--state", "alpha", "--where", "index > 0"}, "reading"},
		{[]string{"apply", "sp-010", "--recipe", "recipe"}, "reading"},
		{[]string{"convert", "sp-010", "--state-compression", "none"}, "reading"},
		{[]string{"convert", "sp-010", "out-convert", "--read-back"}, "writing"},
		{[]string{"convert", "sp-010", "out.spt"}, "writing"},
		{[]string{"ls", "."}, "opening snapshots"},
		{[]string{"trend", "."}, "opening snapshots"},
		{[]string{"trend", "sp-001", "sp-007"}, "opening snapshots"},
		{[]string{"inspect", "sp-001", "sp-007"}, "opening snapshots"},
	} {
		t.Run(strings.Join(x.args, " "), func(t *testing.T) {
			drawn, shown := withProgress(t, dir, x.args...)
			if what, unknown := strings.CutSuffix(x.what, "*"); unknown {
				if !regexp.MustCompile(what + `  [\d,.]+ [KMG]?i?B`).MatchString(drawn) {
					t.Errorf("nothing like that is shown:\n%q", drawn)
				}
				return
			}
			line := regexp.MustCompile(x.what + `  [\d,.]+( [KMG]?i?B)? of [\d,.]+( [KMG]?i?B)?  [<>]?\d+ %`)
			if !line.MatchString(drawn) {
				t.Errorf("no line like %v:\n%q", line, drawn)
			}
			if !strings.Contains(drawn, " left") && !strings.Contains(drawn, "100 %") {
				t.Errorf("it never says how long it takes:\n%q", drawn)
			}
			if strings.TrimSpace(shown) != "" && !strings.Contains(shown, "spt: ") && !strings.Contains(shown, "left out") {
				t.Errorf("this stays: %q", shown)
			}
			for _, not := range [][]string{{"--quiet"}, {"-o", "json"}} {
				if x.args[len(x.args)-1] == "1000000" && not[0] == "-o" {
					continue // it is csv
				}
				_ = os.RemoveAll(filepath.Join(dir, "out-rescale"))
				_ = os.RemoveAll(filepath.Join(dir, "out-convert"))
				_ = os.RemoveAll(filepath.Join(dir, "out.spt"))
				if drawn, _ := withProgress(t, dir, append(x.args, not...)...); strings.Contains(drawn, " of ") && strings.Contains(drawn, "%") {
					t.Errorf("%v: %q", not, drawn)
				}
			}
		})
	}
}

// withProgress runs a command whose clock goes on by a second each time it is
// asked, with a terminal for stderr. It returns all that is drawn there, and what
// is left in the end.
func withProgress(t *testing.T, dir string, args ...string) (drawn, shown string) {
	t.Helper()
	screen, tty := terminal(t, 100)
	read := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, screen) // ends with an error when the terminal is closed
		read <- b.String()
	}()
	env := OSEnv()
	env.Stdout, env.stdoutFile, env.Stderr, env.stderrFile = io.Discard, nil, tty, tty
	var mu sync.Mutex
	now := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	env.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
	t.Chdir(dir)
	Main(context.Background(), args, env)
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	drawn = strings.ReplaceAll(<-read, "\r\n", "\n")
	for line := range strings.SplitSeq(drawn, "\n") {
		shown += line[strings.LastIndexByte(line, '\r')+1:] + "\n"
	}
	return drawn, shown
}
