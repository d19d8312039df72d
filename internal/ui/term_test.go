package ui

import (
	"os"
	"strings"
	"testing"
)

func TestWantColor(t *testing.T) {
	tests := []struct {
		name string
		mode ColorMode
		tty  bool
		env  map[string]string
		want bool
	}{
		{"terminal", ColorAuto, true, nil, true},
		{"pipe", ColorAuto, false, nil, false},
		{"no color", ColorAuto, true, map[string]string{"NO_COLOR": "1"}, false},
		{"no color, any value", ColorAuto, true, map[string]string{"NO_COLOR": "0"}, false},
		{"no color, empty", ColorAuto, true, map[string]string{"NO_COLOR": ""}, true},
		{"no color beats force", ColorAuto, true, map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, false},
		{"force on a pipe", ColorAuto, false, map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{"force 0 is none", ColorAuto, false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{"dumb", ColorAuto, true, map[string]string{"TERM": "dumb"}, false},
		{"force beats dumb", ColorAuto, true, map[string]string{"TERM": "dumb", "CLICOLOR_FORCE": "1"}, true},
		{"clicolor 0", ColorAuto, true, map[string]string{"CLICOLOR": "0"}, false},
		{"always on a pipe", ColorAlways, false, nil, true},
		{"always beats no color", ColorAlways, false, map[string]string{"NO_COLOR": "1", "TERM": "dumb"}, true},
		{"never beats force", ColorNever, true, map[string]string{"CLICOLOR_FORCE": "1"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := wantColor(tt.mode, tt.tty, func(k string) string { return tt.env[k] })
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestDetectWithoutTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close(); _ = w.Close() }()
	for name, f := range map[string]*os.File{"pipe": w, "nil": nil} {
		want := Term{Width: 80}
		if got := Detect(f, ColorAuto, func(string) string { return "" }); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestTones(t *testing.T) {
	t.Setenv("NO_COLOR", "1") // the caller has decided: the library must not decide again
	for _, tt := range []struct {
		name string
		tone func(string) string
		want string
	}{
		{"bad", Bad, "\x1b[31mx\x1b[0m"},
		{"look", Look, "\x1b[33mx\x1b[0m"},
		{"proved", Proved, "\x1b[32mx\x1b[0m"},
		{"dim", Dim, "\x1b[2mx\x1b[22m"},
		{"bold", Bold, "\x1b[1mx\x1b[22m"},
	} {
		if got := tt.tone("x"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if got := tt.tone(""); got != "" {
			t.Errorf("%s of nothing: got %q", tt.name, got)
		}
		for color, want := range map[bool]string{true: tt.want + "\n", false: "x\n"} {
			var d Document
			d.Line("%s", tt.tone("x"))
			var b strings.Builder
			if err := d.Write(&b, Term{Color: color}); err != nil || b.String() != want {
				t.Errorf("%s, colour %v: %q, %v", tt.name, color, b.String(), err)
			}
		}
		// Width and tables must know every mark there is.
		if got := Width(tt.tone("日本")); got != 4 {
			t.Errorf("%s: width %d, want 4", tt.name, got)
		}
	}
}
