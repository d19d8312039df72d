package ui

import (
	"strings"
	"testing"
)

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "abc": 3, "日本": 4, "e\u0301": 1, "👩‍💻": 2, "…×–·→": 5,
		"\x1b[31mabc\x1b[0m": 3, "\x1b[1;31m日\x1b[0m!": 3, "\x1b[2m\x1b[22m": 0,
	} {
		if got := Width(s); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	const red, end = "\x1b[31m", "\x1b[0m"
	tests := []struct {
		in   string
		w    int
		cut  Cut
		want string
	}{
		{"committable", 11, CutEnd, "committable"},
		{"committable", 10, CutEnd, "committab…"},
		{"committable", 10, CutMiddle, "commi…able"},
		{"committable", 5, CutMiddle, "co…le"},
		{"committable", 3, CutMiddle, "c…e"},
		{"committable", 2, CutMiddle, "c…"},
		{"committable", 1, CutMiddle, "…"},
		{"committable", 0, CutEnd, ""},
		{"日本語の状態", 12, CutEnd, "日本語の状態"},
		{"日本語の状態", 8, CutEnd, "日本語…"},    // 3 wide ones and the ellipsis are 7
		{"日本語の状態", 7, CutMiddle, "日… 態"}, // of の状態, half of 状 is left: a space
		{"日a", 2, CutEnd, "…"},           // a must not take the place of 日
		{red + "committable" + end, 6, CutEnd, red + "commi" + end + "…"},
		{red + "committable" + end, 6, CutMiddle, red + "com" + end + "…" + red + "le" + end},
		{"ab" + red + "cdef" + end + "gh", 5, CutEnd, "ab" + red + "cd" + end + "…"},
		{red + "日" + end + "a", 2, CutEnd, red + end + "…"},
	}
	for _, tt := range tests {
		got := truncate(tt.in, tt.w, tt.cut)
		if got != tt.want {
			t.Errorf("%q to %d: got %q, want %q", tt.in, tt.w, got, tt.want)
		}
		if Width(got) > tt.w {
			t.Errorf("%q to %d: %d columns", tt.in, tt.w, Width(got))
		}
	}
}

func TestSanitize(t *testing.T) {
	const red, end = "\x1b[31m", "\x1b[0m"
	tests := []struct{ name, in, color, plain string }{
		{"clean", "abc", "abc", "abc"},
		{"style", red + "abc" + end, red + "abc" + end, "abc"},
		{"line end in style", red + "a\nb" + end, red + `a\nb` + end, `a\nb`},
		{"clear screen", "a\x1b[2Jb", `a\x1b[2Jb`, `a\x1b[2Jb`},
		{"concealed", "a\x1b[8mb", `a\x1b[8mb`, `a\x1b[8mb`},
		{"background", "a\x1b[0;41mb", `a\x1b[0;41mb`, `a\x1b[0;41mb`},
		{"title", "\x1b]0;x\a", `\x1b]0;x\x07`, `\x1b]0;x\x07`},
		{"cut short", "a\x1b[31", `a\x1b[31`, `a\x1b[31`},
		{"lone escape", "\x1b", `\x1b`, `\x1b`},
		{"escape before style", "\x1b" + red + "a" + end, `\x1b` + red + "a" + end, `\x1ba`},
		{"endless", "\x1b[" + strings.Repeat("0;", 100) + "m", `\x1b[` + strings.Repeat("0;", 100) + "m", `\x1b[` + strings.Repeat("0;", 100) + "m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := sanitize(tt.in, true); got != tt.color {
				t.Errorf("with colour: got %q, want %q", got, tt.color)
			}
			if got := sanitize(tt.in, false); got != tt.plain {
				t.Errorf("without: got %q, want %q", got, tt.plain)
			}
		})
	}
}

func TestFit(t *testing.T) {
	for _, x := range []struct {
		s    string
		w    int
		cut  Cut
		want string
	}{
		{"abc", 5, CutEnd, "abc  "},
		{"abcdef", 4, CutEnd, "abc…"},
		{"abcdef", 5, CutMiddle, "ab…ef"},
		{"界界界", 4, CutEnd, "界… "},
		{"a\x1b[2Jb", 20, CutEnd, `a\x1b[2Jb           `},
		{"\x1b[31mred", 6, CutEnd, `\x1b[…`},
		{"a", 0, CutEnd, ""},
	} {
		if got := Fit(x.s, x.w, x.cut); got != x.want {
			t.Errorf("Fit(%q, %d) = %q, want %q", x.s, x.w, got, x.want)
		}
	}
}
