package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns s with everything escaped that is not a visible character or a space: control characters
// and ESC (\x1b), line ends (\n), bidi overrides and other invisible marks (\u202e), bytes that are not UTF-8
// (\xff; so a lone surrogate is three of them). A clean string is returned unchanged. A backslash stays as it
// is; where the result must differ from text that looks like it, use [Quote].
func Printable(s string) string {
	for i, r := range s {
		if !clean(r, s[i:]) {
			return s[:i] + escape(s[i:], false)
		}
	}
	return s
}

// PrintableLines is [Printable], and keeps line ends.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Printable(l)
	}
	return strings.Join(lines, "\n")
}

// Quote is Printable without doubt: a clean string is returned unchanged; one that is empty, starts or ends
// with a space, holds a quote or a backslash, or needs an escape comes in double quotes, as a Go string literal.
func Quote(s string) string {
	plain := s != "" && s[0] != ' ' && s[len(s)-1] != ' ' && !strings.ContainsAny(s, `"\`)
	if plain && isClean(s) {
		return s
	}
	return quoted(s)
}

func quoted(s string) string { return `"` + escape(s, true) + `"` }

func isClean(s string) bool {
	for i, r := range s {
		if !clean(r, s[i:]) {
			return false
		}
	}
	return true
}

// clean says whether r, the first rune of rest, may be shown as it is. U+FFFD may, unless it stands for a byte
// that is not UTF-8.
func clean(r rune, rest string) bool {
	if r == utf8.RuneError {
		_, n := utf8.DecodeRuneInString(rest)
		return n > 1
	}
	return unicode.IsPrint(r) // letters, marks, numbers, punctuation, symbols, and the ASCII space
}

func escape(s string, literal bool) string {
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i, r := range s {
		switch {
		case literal && (r == '"' || r == '\\'):
			b.WriteByte('\\')
			b.WriteRune(r)
		case clean(r, s[i:]):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == utf8.RuneError:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
