//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// terminal is a terminal of tmux in which a shell runs.
type terminal struct {
	t      *testing.T
	socket string
}

// startTerminal starts a terminal of 60 columns and 20 lines whose shell is in dir, where
// spt is this program.
func startTerminal(t *testing.T, dir string, env ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		testenv.Missing(t, "tmux", err)
	}
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "spt")); err != nil {
		t.Fatal(err)
	}
	socket, err := os.MkdirTemp("", "tmux") // a socket has a short path
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t, filepath.Join(socket, "s")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", term.socket, "kill-server").Run() // the shell may have ended
		_ = os.RemoveAll(socket)
	})
	args := []string{"-f", os.DevNull, "new-session", "-d", "-x", "60", "-y", "20", "-c", dir, "env", "-u", "NO_COLOR", "LC_ALL=C.UTF-8", "PATH=" + bin + ":" + os.Getenv("PATH"), "PS1=ready> ", "TZ=UTC"}
	term.tmux(append(append(args, env...), "sh")...)
	term.until(`^ready>`)
	return term
}

// tmux runs a command of tmux.
func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", term.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// text returns what is on the screen.
func (term *terminal) text() string {
	term.t.Helper()
	return strings.TrimRight(term.tmux("capture-pane", "-p"), "\n")
}

// until waits until the screen matches all patterns, in which ^ is the start of a line,
// and returns it.
func (term *terminal) until(patterns ...string) string {
	term.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		text := term.text()
		missing := ""
		for _, p := range patterns {
			if !regexp.MustCompile("(?m)" + p).MatchString(text) {
				missing = p
			}
		}
		if missing == "" {
			return text
		}
		if time.Now().After(deadline) {
			term.t.Fatalf("%q is not on the screen:\n%s", missing, text)
		}
		time.Sleep(20 * time.Millisecond) // between looks
	}
}

// keys presses keys, as tmux names them.
func (term *terminal) keys(keys ...string) {
	term.t.Helper()
	term.tmux(append([]string{"send-keys"}, keys...)...)
}

// typing types text and presses Enter.
func (term *terminal) typing(text string) {
	term.t.Helper()
	term.tmux("send-keys", "-l", text)
	term.keys("Enter")
}

// left waits until spt has ended with exit code 0, and the shell's screen is back.
func (term *terminal) left() {
	term.t.Helper()
	term.until(`^ready>$`) // what is typed before is lost
	term.typing("echo code=$?")
	text := term.until(`^code=0$`)
	if strings.Contains(text, "OPERATOR") || strings.Contains(text, "Enter open") || !strings.Contains(text, "spt browse") {
		term.t.Errorf("the screen of the shell is not back:\n%s", text)
	}
	if on := strings.TrimSpace(term.tmux("display", "-p", "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{bracket_paste_flag}")); !strings.HasPrefix(on, "0 0 1") {
		term.t.Errorf("alternate screen, mouse, cursor: %s", on)
	}
}

// browseFixtures copies savepoints of testdata into a directory, where they have short
// names.
func browseFixtures(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(testenv.Fixture(t, name))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestBrowseWalk: down to an entry, and what docs/browse.md shows.
func TestBrowseWalk(t *testing.T) {
	term := startTerminal(t, browseFixtures(t, "sp-002"))
	term.typing("spt browse sp-002")
	shown := []string{term.until(`^sp-002$`, `^> keyed +26.2 KiB +2 +█+$`, `^  window-sink`, `^row 1 of 5$`)}
	term.keys("Enter")
	shown = append(shown, term.until(`^sp-002 › keyed$`, `^> average +aggregating$`, `^  ttl-words +list$`))
	term.keys("Down", "Down", "Up", "Up", "Enter")
	term.until(`^sp-002 › keyed › average$`, `^> subtask 0 +13.2 KiB +0–63`)
	term.keys("Enter")
	shown = append(shown, term.until(`^> "key-4" → \[20,2\] +23 B +19`, `^  "key-1" → \[14,2\] +23 B +54`, `^row 1 of 3$`)) // as truth.json says
	term.keys("Down", "Enter")
	term.until(`^  "key": "key-3",$`, `^  "key_group": 20,$`)
	term.keys("Escape")
	term.until(`^> "key-3"`)
	term.keys("y")
	term.until(`^spt cat sp-002 --operator keyed --state average --subtask 0$`)
	term.keys("q")
	term.left()

	const doc = "../../docs/browse.md"
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	with := regexp.MustCompile("(?s)```\nsp-002.*?\n```\n").ReplaceAllStringFunc(string(text), func(old string) string {
		if next++; next > len(shown) {
			return old
		}
		return "```\n" + regexp.MustCompile(`\n{3,}`).ReplaceAllString(shown[next-1], "\n\n") + "\n```\n"
	})
	switch {
	case next != len(shown):
		t.Errorf("%s has %d screens, want %d", doc, next, len(shown))
	case *update:
		if err := os.WriteFile(doc, []byte(with), 0o666); err != nil {
			t.Fatal(err)
		}
	case with != string(text):
		t.Errorf("the screens of %s are out of date: go test ./cmd/spt -run TestBrowseWalk -update\n%s", doc, with)
	}
}

func TestBrowseSearchKeyAndHelp(t *testing.T) {
	term := startTerminal(t, browseFixtures(t, "sp-002"))
	term.typing("spt browse sp-002")
	term.until(`^row 1 of 5$`)
	term.keys("/")
	term.until(`^search: `)
	term.typing("window-s")
	term.until(`^> window-sink`)
	term.keys("/")
	term.typing("nowhere")
	term.until(`not found below row 5: nowhere`, `^> window-sink`)
	term.keys("Home", "Enter")
	term.until(`^> average`)
	term.keys("f")
	term.until(`^key \(JSON\): `)
	term.typing(`"key-4"`)
	term.until(`^sp-002 › keyed › key "key-4"$`, `average: "key-4" → \[20,2\]`, `^row 1 of 14$`)
	term.keys("?")
	term.until(`^Enter, → +open the row`, `^lines 1–16 of `)
	term.keys("End")
	term.until(`^y +the command of spt that shows the same$`)
	term.keys("Escape")
	term.until(`^row 1 of 14$`)
	term.keys("Escape")
	term.until(`^row 1 of 15$`)
	term.keys("f")
	term.typing("key-4")
	term.until(`JSON`, `^> average`)
	term.keys("s")
	term.until(`^sp-002 › keyed › types$`, `^  item +value +pojo`)
	term.keys("C-c")
	term.left()
}

// TestBrowseResize: types come next to the rows on a wide terminal, and go.
func TestBrowseResize(t *testing.T) {
	term := startTerminal(t, browseFixtures(t, "sp-002"))
	term.typing("spt browse sp-002")
	term.until(`^row 1 of 5$`)
	term.keys("Enter")
	term.until(`^> average`)
	term.tmux("resize-window", "-x", "120", "-y", "30")
	term.until(`^> average +.*│ .*`, `│ +item +value +pojo`, `s types  y command$`)
	term.tmux("resize-window", "-x", "40", "-y", "10")
	for _, line := range strings.Split(term.until(`^> average\s*$`, `^row 1 of 15$`), "\n") {
		if strings.Contains(line, "│") {
			t.Errorf("types on a narrow terminal: %s", line)
		}
	}
	term.keys("End")
	term.until(`^> all keyed state`)
	term.keys("q")
	term.left()
}

// TestBrowseColor: without colour nothing is lost, and no attribute is on the screen.
func TestBrowseColor(t *testing.T) {
	for _, env := range []string{"NO_COLOR=1", "SPT_UNUSED=1"} {
		term := startTerminal(t, browseFixtures(t, "sp-002"), env)
		term.typing("spt browse sp-002")
		term.until(`^> keyed +26.2 KiB`, `^row 1 of 5$`)
		styled := strings.Contains(term.tmux("capture-pane", "-p", "-e"), "\x1b[")
		if want := env != "NO_COLOR=1"; styled != want {
			t.Errorf("%s: attributes on the screen: %v", env, styled)
		}
		term.keys("Escape")
		term.left()
	}
}

func TestBrowseCompareScreen(t *testing.T) {
	term := startTerminal(t, browseFixtures(t, "sp-001", "sp-007"))
	term.typing("spt browse sp-007")
	term.until(`^row 1 of `)
	term.keys("d")
	term.until(`^compare with: `)
	term.typing("sp-001")
	term.until(`^sp-007 › compared$`, `^different: operators, offsets$`, `^checkpoint +1 → 3$`, `removed$`)
	term.keys("y")
	term.until(`^spt diff sp-001 sp-007$`)
	term.keys("Escape")
	term.until(`^checkpoint `)
	term.keys("Escape")
	term.until(`^row 1 of `)
	term.keys("d")
	term.typing("nothing-there")
	term.until(`nothing-there`, `^> `)
	term.keys("q")
	term.left()
}

// TestBrowseCutFile: a file that is cut short is an error in its place, and the rest is
// shown.
func TestBrowseCutFile(t *testing.T) {
	dir := browseFixtures(t, "sp-002")
	files, err := filepath.Glob(filepath.Join(dir, "sp-002", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files { // of subtask 0 of the operator keyed
		if info, err := os.Stat(file); err == nil && info.Size() == 13470 {
			if err := os.Truncate(file, 3000); err != nil {
				t.Fatal(err)
			}
		}
	}
	term := startTerminal(t, dir)
	term.typing("spt browse sp-002")
	term.until(`^row 1 of 5$`)
	term.keys("Enter")
	term.until(`^> keyed state ! `, `^  average`)
	term.keys("Down", "Enter")
	term.until(`^> subtask 0 ! `, `^  subtask 1 `)
	term.keys("Enter")
	term.until(`cut short`)
	term.keys("Down", "Enter")
	term.until(`^sp-002 › keyed › average › subtask 1$`, `"key-2" → \[16,2\] .* 126`)
	term.keys("q")
	term.left()
}

// TestBrowseSignal: SIGTERM ends it, and the screen of the shell is back.
func TestBrowseSignal(t *testing.T) {
	term := startTerminal(t, browseFixtures(t, "sp-002"))
	term.typing("spt browse sp-002; echo ended=$?")
	term.until(`^row 1 of 5$`)
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strings.TrimSpace(term.tmux("display", "-p", "#{pane_pid}"))).Output()
	if err != nil || len(strings.Fields(string(out))) != 1 {
		t.Fatalf("%q, %v", out, err)
	}
	if err := exec.Command("kill", strings.TrimSpace(string(out))).Run(); err != nil {
		t.Fatal(err)
	}
	if text := term.until(`^ended=130$`, `^spt: cancelled$`); strings.Contains(text, "OPERATOR") {
		t.Errorf("the screen of the shell is not back:\n%s", text)
	}
}
