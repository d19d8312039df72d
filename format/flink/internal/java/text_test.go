package java_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

var texts = []struct {
	name, bytes, text string
	raw               bool // encoding the text gives other bytes
}{
	{"empty", "", "", false},
	{"plain", "abc", "abc", false},
	{"the sample Java wrote", "a\xc0\x80\xc3\xa9\xe2\x82\xac\xed\xa0\xbd\xed\xb8\x80", "a\x00é€\U0001f600", false},
	{"highest of two bytes", "\xdf\xbf", "\u07ff", false},
	{"lowest of three bytes", "\xe0\xa0\x80", "\u0800", false},
	{"highest", "\xed\xaf\xbf\xed\xbf\xbf", "\U0010ffff", false},
	{"lone high surrogate", "\xed\xa0\xbd", "\xed\xa0\xbd", false},
	{"lone low surrogate", "x\xed\xb8\x80", "x\xed\xb8\x80", false},
	{"swapped surrogates", "\xed\xb8\x80\xed\xa0\xbd", "\xed\xb8\x80\xed\xa0\xbd", false},
	{"two high, one low", "\xed\xa0\xbd\xed\xa0\xbd\xed\xb8\x80", "\xed\xa0\xbd\U0001f600", false},
	{"replacement character", "\xef\xbf\xbd", "\ufffd", false},
	{"plain NUL", "a\x00", "a\x00", true},
	{"overlong two bytes", "\xc1\x81", "A", true},
	{"overlong three bytes", "\xe0\x81\x81", "A", true},
	{"overlong NUL", "\xe0\x80\x80", "\x00", true},
}

func TestText(t *testing.T) {
	for _, x := range texts {
		got, ok := java.DecodeText([]byte(x.bytes))
		if !ok || got.String() != x.text {
			t.Errorf("%s: %q, %v", x.name, got, ok)
		}
		if _, raw := got.Raw(); raw != x.raw {
			t.Errorf("%s: raw %v", x.name, raw)
		}
		want := string([]byte{0, byte(len(x.bytes))}) + x.bytes
		if again, err := java.AppendText(nil, got); err != nil || string(again) != want || java.TextSize(got) != len(want) {
			t.Errorf("%s: %x, %v, size %d, want %x", x.name, again, err, java.TextSize(got), want)
		}
		if x.raw {
			continue
		}
		// A text of our own is written as Java writes it.
		if again, err := java.AppendText([]byte("before"), format.NewText(x.text)); err != nil || string(again) != "before"+want {
			t.Errorf("%s: our own: %x, %v", x.name, again, err)
		}
	}
}

func TestTextThatJavaRejects(t *testing.T) {
	for _, p := range []string{
		"\x80", "a\xbf", // a continuation where a character starts
		"\xf0\x9f\x98\x80", "\xff", // four bytes, and what is nothing
		"\xc3", "\xe2\x82", "a\xe2", // cut
		"\xc3\x29", "\xe2\x82\x29", "\xe2\x29\x82", // no continuation
	} {
		if got, ok := java.DecodeText([]byte(p)); ok {
			t.Errorf("%x accepted as %q", p, got)
		}
	}
}

func TestAppendTextRefuses(t *testing.T) {
	for _, x := range []struct {
		text, msg string
	}{
		{"uid-\xff", "not valid UTF-8"},
		{"\xed\xa0", "not valid UTF-8"},         // half a surrogate
		{"\xf5\x80\x80\x80", "not valid UTF-8"}, // beyond Unicode
		{"\xff\xff\xff", "not valid UTF-8"},
		{"\xed\x9f\xff", "not valid UTF-8"}, // starts like a surrogate
		{"\xed\xa0\xff", "not valid UTF-8"},
		{strings.Repeat("x", 65536), "65,535"},
		{strings.Repeat("\x00", 32768), "65,535"},
		{strings.Repeat("\U0001f600", 10923), "65,535"},
	} {
		got, err := java.AppendText([]byte("kept"), format.NewText(x.text))
		if err == nil || !strings.Contains(err.Error(), x.msg) || string(got) != "kept" {
			t.Errorf("%.20q: %.20q, %v", x.text, got, err)
		}
	}
	for _, s := range []string{strings.Repeat("x", 65535), strings.Repeat("\x00", 32767), strings.Repeat("\U0001f600", 10922)} {
		got, err := java.AppendText(nil, format.NewText(s))
		if err != nil || java.TextSize(format.NewText(s)) != len(got) {
			t.Errorf("%.20q: %v", s, err)
		}
	}
}

// FuzzText: what is accepted is written again as the same bytes, and the text
// is UTF-8 but for lone surrogates.
func FuzzText(f *testing.F) {
	if len(texts) == 0 {
		f.Fatal("no seeds")
	}
	for _, x := range texts {
		f.Add([]byte(x.bytes))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > 65535 {
			return
		}
		got, ok := java.DecodeText(p)
		if !ok {
			return
		}
		again, err := java.AppendText(nil, got)
		if err != nil || !bytes.Equal(again[2:], p) || java.TextSize(got) != len(again) {
			t.Fatalf("%x: written again as %x, %v", p, again, err)
		}
		if utf8.ValidString(got.String()) {
			// The same text, as our own, can be read back.
			own, err := java.AppendText(nil, format.NewText(got.String()))
			if err != nil {
				return // Java's own form of it is too long
			}
			if back, ok := java.DecodeText(own[2:]); !ok || back.String() != got.String() {
				t.Fatalf("%q: read back as %q", got, back)
			}
		}
	})
}
