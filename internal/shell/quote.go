// Package shell quotes arguments for commands that a user can paste into a shell.
// It runs nothing.
package shell

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns s as one word of a POSIX shell: unchanged if it has no special
// characters, else in single quotes. Characters that must not reach a terminal
// become escapes in $'…', which bash, zsh and ksh support.
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
			for i := range n { // three digits for each byte, so that a following digit is not part of the escape
				fmt.Fprintf(&b, `\%03o`, s[i])
			}
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}
