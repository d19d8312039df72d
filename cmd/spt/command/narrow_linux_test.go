package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/savepoint-tools/spt/internal/ui"
)

// terminal is a pseudo terminal of so many columns.
func terminal(t *testing.T, width int) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	var n uint32
	unlock := 0
	for _, call := range []struct {
		request uintptr
		arg     unsafe.Pointer
	}{{unix.TIOCSPTLCK, unsafe.Pointer(&unlock)}, {unix.TIOCGPTN, unsafe.Pointer(&n)}} {
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, screen.Fd(), call.request, uintptr(call.arg)); e != 0 {
			t.Fatal(e)
		}
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	return screen, tty
}

// onTerminal runs a command on a terminal and returns what it shows.
func onTerminal(t *testing.T, width int, dir string, args ...string) string {
	t.Helper()
	screen, tty := terminal(t, width)
	shown := make(chan string)
	go func() {
		var b bytes.Buffer
		_, _ = io.Copy(&b, screen) // ends with an error when the terminal is closed
		shown <- b.String()
	}()
	env := OSEnv()
	env.Stdout, env.Stderr, env.stdoutFile, env.stderrFile = tty, tty, tty, tty
	env.Now = func() time.Time { return time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC) } // no progress is due
	env.Getenv = func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] }
	t.Chdir(dir)
	Main(context.Background(), args, env)
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(<-shown, "\r\n", "\n")
}

// piped runs a command as in a pipe.
func piped(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var b bytes.Buffer
	env := OSEnv()
	env.Stdout, env.Stderr, env.stdoutFile, env.stderrFile = &b, &b, nil, nil
	t.Chdir(dir)
	Main(context.Background(), args, env)
	return b.String()
}

// number is a number as tables and remarks show it, with its unit.
var number = regexp.MustCompile(`\d[\d,.]*\d|\d`)

// TestNarrowTerminal: on a terminal of any width no line is wider than it, and the
// numbers that matter are there, whole. In a pipe nothing is cut.
func TestNarrowTerminal(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{
		"savepoints/sp-001": "sp-001", "savepoints/sp-002": "sp-002", "savepoints/sp-003": "job",
		"savepoints/sp-007": "sp-007", "savepoints/sp-010": "sp-010", "savepoints/sp-011": "sp-011",
	} {
		copyTree(t, filepath.Join("../../../testdata", from), filepath.Join(dir, to))
	}
	alone, err := os.ReadFile(filepath.Join(dir, "sp-002", "_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "bare", "_metadata"), string(alone))
	left := filepath.Join(dir, "left", ".spt-tmp-0123456789ab-of-a-long-name-that-was-written.spt")
	aborted := filepath.Join(dir, "aborted", "000000000000000000000000005b706e", "chk-1", "0f0e0d0c-0b0a-0908-0706-050403020100")
	for _, name := range []string{left, aborted} {
		put(t, name, "0123456789")
		if err := os.Chtimes(name, time.Time{}, time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
	}
	chk := func(n int) string { return fmt.Sprintf("job/000000000000000000000000005b706e/chk-%d", n) }
	for _, x := range []struct {
		args    []string
		columns []string // whose numbers are never left out, by their headers
	}{
		{[]string{"inspect", "sp-001"}, []string{"ELEMENTS", "BYTES"}},
		{[]string{"inspect", "sp-002", "sp-010"}, []string{"BYTES"}},
		{[]string{"inspect", "bare"}, []string{"BYTES"}},
		{[]string{"inspect", "sp-010", "--by", "subtask"}, []string{"BYTES"}},
		{[]string{"inspect", chk(3), "--by", "file"}, []string{"BYTES"}},
		{[]string{"inspect", chk(3), "--by", "handle", "--wide"}, []string{"BYTES"}},
		{[]string{"inspect", "sp-007", "--deep", "--by", "state"}, []string{"BYTES"}},
		{[]string{"inspect", "sp-010", "sp-011", "--by", "operator", "--top", "1"}, []string{"BYTES"}},
		{[]string{"ls", "."}, []string{"BYTES"}},
		{[]string{"ls", "--shared", "job"}, []string{"BYTES", "SHARED", "FREED"}},
		{[]string{"clean", "--dry-run", "left"}, nil},
		{[]string{"orphans", "aborted"}, []string{"FILES", "BYTES", "REMOVABLE"}},
		{[]string{"orphans", "aborted", "--by", "job"}, []string{"FILES", "BYTES", "REMOVABLE"}},
		{[]string{"orphans", "aborted", "--by", "file"}, []string{"BYTES"}},
		{[]string{"trend", "sp-001", "sp-007", "--limit", "1GiB", "--limit-elements", "1000000000"}, []string{"FIRST", "LAST", "PER CHECKPOINT"}},
		{[]string{"prune-union", "sp-007"}, []string{"ELEMENTS", "DISTINCT", "BYTES"}},
		{[]string{"prune-union", "sp-007", "--keep", "distinct"}, []string{"ELEMENTS", "KEPT", "BYTES", "AFTER"}},
		{[]string{"prune-union", "--elements", "1000000", "--parallelism", "100", "--restores", "3"}, []string{"KEPT ONCE", "ADDED AGAIN"}},
		{[]string{"rescale", "sp-010", "--to", "7"}, nil},
		{[]string{"rescale", "sp-002", "--to", "5"}, nil},
		{[]string{"rescale", "--from", "2", "--to", "4"}, nil},
		{[]string{"diff", "sp-001", "sp-007"}, nil},
		{[]string{"diff", "sp-002", "bare"}, nil},
		{[]string{"diff", "sp-010", "sp-011", "-v"}, nil},
		{[]string{"check", "sp-002", "--parallelism", "300"}, nil},
		{[]string{"check", "bare", "--flink", "1.16"}, nil},
		{[]string{"verify", "sp-001", chk(3), "bare"}, nil},
		{[]string{"cat", "sp-001", "--stats"}, []string{"ELEMENTS", "BYTES"}},
		{[]string{"cat", "sp-007"}, nil},
		{[]string{"hash", "kafka-orders", "sink", "--in", "sp-010"}, nil},
		{[]string{"convert", chk(3)}, nil},
		{[]string{"convert", "sp-002", "--state-compression", "snappy"}, nil},
		{[]string{"drop", "sp-010", "--operator", "lists"}, nil},
		{[]string{"inspect", "nowhere/to/be/found/in/this/folder"}, nil},
	} {
		t.Run(strings.Join(x.args, " "), func(t *testing.T) {
			whole := piped(t, dir, x.args...)
			for _, width := range []int{40, 60, 80, 120, 200} {
				got := onTerminal(t, width, dir, x.args...)
				if got == "" {
					t.Fatalf("%d columns: nothing is shown", width)
				}
				for line := range strings.Lines(got) {
					line = strings.TrimSuffix(line, "\n")
					// An argument that is wider than the terminal stays in one piece.
					if n := ui.Width(line); n > width && strings.Contains(strings.TrimRight(strings.TrimSpace(line), " \\"), " ") {
						t.Errorf("%d columns: a line of %d: %q", width, n, line)
					}
				}
				want := columnNumbers(whole, x.columns)
				if len(x.columns) > 0 && len(want) == 0 {
					t.Fatalf("no column %v in:\n%s", x.columns, whole)
				}
				shown := number.FindAllString(got, -1)
				for _, n := range append(want, textNumbers(whole)...) {
					i := slices.Index(shown, n)
					if i < 0 {
						t.Errorf("%d columns: %s is lost:\n%s", width, n, got)
						break
					}
					shown = slices.Delete(shown, i, i+1)
				}
			}
		})
	}
}

// columnNumbers are the numbers under some headers of the tables in a text.
func columnNumbers(text string, columns []string) (all []string) {
	var spans [][2]int // of the columns of the table that a line is in
	for line := range strings.Lines(text) {
		runes := []rune(strings.TrimSuffix(line, "\n"))
		var heads [][2]int
		for _, c := range columns {
			if i := strings.Index(string(runes), c); i >= 0 && strings.ToUpper(string(runes)) == string(runes) {
				at := len([]rune(string(runes)[:i]))
				heads = append(heads, [2]int{at, at + len([]rune(c))})
			}
		}
		if len(heads) == len(columns) && len(columns) > 0 {
			spans = heads
			continue
		}
		if len(runes) == 0 {
			spans = nil
		}
		for _, s := range spans {
			// Flush right under the header: the cell ends where that does.
			if len(runes) < s[1] {
				continue // no cell here
			}
			from := s[1]
			for from > 0 && !(runes[from-1] == ' ' && from > 1 && runes[from-2] == ' ') {
				from--
			}
			all = append(all, number.FindAllString(string(runes[from:s[1]]), -1)...)
		}
	}
	return all
}

// textNumbers are the numbers in lines that are not rows of a table: the headings
// and what is said of them.
func textNumbers(text string) (all []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "! ") || strings.Contains(line, " · ") {
			for _, n := range number.FindAllString(line, -1) {
				if len(n) < 4 { // longer ones are parts of paths and ids, which may be broken
					all = append(all, n)
				}
			}
		}
	}
	return all
}

// TestParquetOnTerminal: a Parquet file is not for eyes.
func TestParquetOnTerminal(t *testing.T) {
	fixtures, err := filepath.Abs("../../../testdata/savepoints")
	if err != nil {
		t.Fatal(err)
	}
	shown := onTerminal(t, 200, fixtures, "cat", "sp-001", "--state", "even-ids", "-o", "parquet")
	const want = "spt: -o parquet: standard output is a terminal, and a Parquet file is not text\nhint: write it to a file:  spt cat … -o parquet > FILE.parquet\n"
	if shown != want {
		t.Errorf("%q, expected %q", shown, want)
	}
}
