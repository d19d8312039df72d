package ui

import (
	"os"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"
)

// DefaultWidth is the number of columns assumed where none can be measured.
const DefaultWidth = 80

// Term describes where output is written. Its zero value is a pipe without colour.
type Term struct {
	IsTTY bool // a person is looking: widths are limited, progress may be drawn
	Width int  // columns; DefaultWidth where they cannot be measured
	Color bool // colour is wanted, whether or not IsTTY holds

	// Repeat are the flags that reach a store, for suggested commands that name an
	// address in one: they end in them too.
	Repeat string
}

// Detect looks at f, which may be nil, and at the environment. Colour follows mode; with [ColorAuto], the first
// of these that applies: NO_COLOR (not empty) is off, CLICOLOR_FORCE (not empty, not 0) is on, TERM=dumb and
// CLICOLOR=0 are off, and else a terminal has colour and anything else has none.
func Detect(f *os.File, mode ColorMode, getenv func(string) string) Term {
	t := Term{Width: DefaultWidth}
	if f != nil {
		fd := f.Fd()
		t.IsTTY = isatty.IsTerminal(fd) || isatty.IsCygwinTerminal(fd)
		// A serial console and some containers report a width of 0.
		if w, _, err := term.GetSize(int(fd)); t.IsTTY && err == nil && w > 0 {
			t.Width = w
		}
	}
	t.Color = wantColor(mode, t.IsTTY, getenv)
	return t
}

func wantColor(mode ColorMode, tty bool, getenv func(string) string) bool {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case mode == ColorAlways:
		return true
	case mode == ColorNever, getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	case getenv("TERM") == "dumb", getenv("CLICOLOR") == "0":
		return false
	}
	return tty
}
