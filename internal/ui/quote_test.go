package ui

import (
	"strconv"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintableAndQuote(t *testing.T) {
	same := "" // quoted as the text is
	tests := []struct{ name, in, printable, quoted string }{
		{"plain", "kafka-orders", "kafka-orders", same},
		{"inner space", "Source: orders", "Source: orders", same},
		{"wide", "注文・集計", "注文・集計", same},
		{"accents", "é e\u0301", "é e\u0301", same},
		{"replacement character itself", "a\ufffdb", "a\ufffdb", same},
		{"empty", "", "", `""`},
		{"leading space", " a", " a", `" a"`},
		{"trailing space", "a ", "a ", `"a "`},
		{"quote", `a"b`, `a"b`, `"a\"b"`},
		{"backslash", `a\b`, `a\b`, `"a\\b"`},
		{"escape", "a\x1b[2Jb", `a\x1b[2Jb`, `"a\x1b[2Jb"`},
		{"nul, bell, delete", "\x00\a\x7f", `\x00\x07\x7f`, `"\x00\x07\x7f"`},
		{"line ends and tab", "a\r\n\tb", `a\r\n\tb`, `"a\r\n\tb"`},
		{"c1 csi", "a\u009b2Jb", `a\u009b2Jb`, `"a\u009b2Jb"`},
		{"c1 as a bare byte", "a\x9b2Jb", `a\x9b2Jb`, `"a\x9b2Jb"`},
		{"bidi override", "a\u202eb\u2066c", `a\u202eb\u2066c`, `"a\u202eb\u2066c"`},
		{"arabic letter mark", "\u061c", `\u061c`, `"\u061c"`},
		{"zero width", "a\u200b\u200d\ufeffb", `a\u200b\u200d\ufeffb`, `"a\u200b\u200d\ufeffb"`},
		{"no-break space", "a\u00a0b", `a\u00a0b`, `"a\u00a0b"`},
		{"line separator", "a\u2028b", `a\u2028b`, `"a\u2028b"`},
		{"tag", "a\U000e0041", `a\U000e0041`, `"a\U000e0041"`},
		{"private use", "\ue000", `\ue000`, `"\ue000"`},
		{"not UTF-8", "a\xffb\xc3", `a\xffb\xc3`, `"a\xffb\xc3"`},
		{"lone surrogate", "a\xed\xa0\x80b", `a\xed\xa0\x80b`, `"a\xed\xa0\x80b"`},
		{"overlong", "\xc0\x80", `\xc0\x80`, `"\xc0\x80"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Printable(tt.in); got != tt.printable {
				t.Errorf("Printable: got %s, want %s", got, tt.printable)
			}
			want := tt.quoted
			if want == same {
				want = tt.in
			}
			if got := Quote(tt.in); got != want {
				t.Errorf("Quote: got %s, want %s", got, want)
			}
		})
	}
}

// FuzzQuote: what is shown is visible text, and Quote says exactly what was there.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", `"`, "\x1b[31m", "\u202e", "\xed\xa0\x80", "\U000e0041", "日本 ", "a\\\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, shown := range []string{Quote(s), Printable(s), sanitize(s, false)} {
			if !utf8.ValidString(shown) {
				t.Fatalf("%q shown as %q, which is not UTF-8", s, shown)
			}
			for _, r := range shown {
				if !unicode.IsPrint(r) {
					t.Fatalf("%q shown as %q, which holds %U", s, shown, r)
				}
			}
		}
		q := Quote(s)
		if q == s && s != "" && s[0] != '"' {
			return
		}
		if back, err := strconv.Unquote(q); err != nil || back != s {
			t.Fatalf("%q quoted as %s, read back as %q, %v", s, q, back, err)
		}
	})
}
