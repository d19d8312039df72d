// Package shell writes arguments into commands that a person can paste into a
// shell.
package shell

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns s as one word of a POSIX shell: unchanged where nothing in it
// is special, else in single quotes. Text that a terminal must not receive as
// it is becomes escapes in $'…', which bash, zsh and ksh know.
func Quote(s string) string {
	switch {
	case strings.ContainsFunc(s, hidden) || !utf8.ValidString(s):
		return "$'" + escaped(s) + "'"
	case s == "" || strings.HasPrefix(s, "~") || strings.ContainsFunc(s, special):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func hidden(r rune) bool { return !unicode.IsPrint(r) }

func special(r rune) bool {
	return r == ' ' || r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:=@%+,~^", r)
}

func escaped(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == utf8.RuneError && n == 1 || hidden(r):
			for i := range n { // a byte each, and three digits, so that what follows is not taken for a digit
				fmt.Fprintf(&b, `\%03o`, s[i])
			}
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}
