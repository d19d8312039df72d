package ui

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/savepoint-tools/spt/internal/testenv"
)

func TestDetectTerminal(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		testenv.Missing(t, "no pseudo terminal", err)
	}
	defer func() { _ = f.Close() }()

	for measured, want := range map[uint16]int{132: 132, 40: 40, 0: 80} {
		if err := unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: measured}); err != nil {
			testenv.Missing(t, "no window size", err)
		}
		got := Detect(f, ColorAuto, func(string) string { return "" })
		if want := (Term{IsTTY: true, Width: want, Color: true}); got != want {
			t.Errorf("%d columns: got %+v, want %+v", measured, got, want)
		}
	}
}
