package expression

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenNumber
	tokenText
	tokenName
	tokenOperator // also brackets, and the operators that are words
)

type token struct {
	kind tokenKind
	text string // of a text: its characters
	pos  int
}

func (t token) is(op string) bool { return t.kind == tokenOperator && t.text == op }

// String returns the token as errors show it.
func (t token) String() string {
	switch t.kind {
	case tokenEnd:
		return "end of the expression"
	case tokenText:
		return fmt.Sprintf("text %.40q", t.text)
	}
	return fmt.Sprintf("%.40q", t.text)
}

// wordOperators are the operators that are words.
var wordOperators = map[string]bool{"and": true, "or": true, "not": true, "in": true, "contains": true, "startsWith": true, "endsWith": true, "matches": true}

// operators are the others, longer ones first.
var operators = []string{"?.", "??", "&&", "||", "==", "!=", "<=", ">=", "**", "..", "::",
	"(", ")", "[", "]", "{", "}", ",", ";", "+", "-", "*", "/", "%", "^", "<", ">", "!", "?", ":", ".", "#", "|", "="}

type lexer struct {
	text string
	at   int
}

func isLetter(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

func isNameRune(r rune) bool { return isLetter(r) || unicode.IsDigit(r) }

// next returns the next token.
func (l *lexer) next() (token, *Error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	start := l.at
	rest := l.text[start:]
	if rest == "" {
		return token{tokenEnd, "", start}, nil
	}
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case r == '"' || r == '\'':
		return l.quoted(start, start, false)
	case (r == 'b' || r == 'B') && len(rest) > 1 && (rest[1] == '"' || rest[1] == '\''):
		return l.quoted(start, start+1, true)
	case r == '`':
		end := strings.IndexByte(rest[1:], '`')
		if end < 0 {
			return token{}, failf(start, "text without a closing `")
		}
		l.at += end + 2
		return token{tokenText, rest[1 : end+1], start}, nil
	case '0' <= r && r <= '9', r == '.' && len(rest) > 1 && '0' <= rest[1] && rest[1] <= '9':
		return l.number(start)
	case isLetter(r):
		end := strings.IndexFunc(rest, func(r rune) bool { return !isNameRune(r) })
		if end < 0 {
			end = len(rest)
		}
		l.at += end
		if wordOperators[rest[:end]] {
			return token{tokenOperator, rest[:end], start}, nil
		}
		return token{tokenName, rest[:end], start}, nil
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			l.at += len(op)
			return token{tokenOperator, op, start}, nil
		}
	}
	return token{}, failf(start, "unexpected character %q", rest[:size])
}

// skip moves past spaces and comments.
func (l *lexer) skip() *Error {
	for {
		rest := l.text[l.at:]
		trimmed := strings.TrimLeftFunc(rest, unicode.IsSpace)
		l.at += len(rest) - len(trimmed)
		switch {
		case strings.HasPrefix(trimmed, "//"):
			end := strings.IndexByte(trimmed, '\n')
			if end < 0 {
				end = len(trimmed)
			}
			l.at += end
		case strings.HasPrefix(trimmed, "/*"):
			end := strings.Index(trimmed[2:], "*/")
			if end < 0 {
				return failf(l.at, "comment without a closing */")
			}
			l.at += end + 4
		default:
			return nil
		}
	}
}

func (l *lexer) number(start int) (token, *Error) {
	rest := l.text[start:]
	n := 0
	run := func(digits string) {
		for n < len(rest) && strings.IndexByte(digits, rest[n]) >= 0 {
			n++
		}
	}
	digits, based := "0123456789_", false
	if len(rest) > 1 && rest[0] == '0' {
		switch rest[1] {
		case 'x', 'X':
			digits, based = "0123456789abcdefABCDEF_", true
		case 'o', 'O':
			digits, based = "01234567_", true
		case 'b', 'B':
			digits, based = "01_", true
		}
	}
	if based {
		n = 2
	}
	run(digits)
	if !based {
		if n < len(rest) && rest[n] == '.' && !strings.HasPrefix(rest[n:], "..") {
			n++
			run(digits)
		}
		if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
			n++
			if n < len(rest) && (rest[n] == '+' || rest[n] == '-') {
				n++
			}
			run(digits)
		}
	}
	if r, _ := utf8.DecodeRuneInString(rest[n:]); n < len(rest) && isNameRune(r) {
		return token{}, failf(start, "%.40q is not a number", rest[:n+utf8.RuneLen(r)])
	}
	l.at += n
	return token{tokenNumber, rest[:n], start}, nil
}

// quoted reads a text in quotes from the quote at open on. In bytes, \x and octal
// escapes are bytes; otherwise they are characters.
func (l *lexer) quoted(start, open int, bytes bool) (token, *Error) {
	quote := l.text[open]
	var b strings.Builder
	for i := open + 1; i < len(l.text); {
		switch c := l.text[i]; c {
		case quote:
			l.at = i + 1
			return token{tokenText, b.String(), start}, nil
		case '\\':
			n, ok := unescape(&b, l.text[i+1:], bytes)
			if !ok {
				_, size := utf8.DecodeRuneInString(l.text[i+1:])
				return token{}, failf(i, "unknown escape %s in a text; write \\\\ for a backslash", l.text[i:i+1+size])
			}
			i += 1 + n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return token{}, failf(start, "text without a closing %c", quote)
}

var escapes = map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '\'': '\'', '"': '"', '`': '`', '?': '?'}

// unescape appends the characters that the escape after a backslash encodes, and
// returns its length.
func unescape(b *strings.Builder, rest string, bytes bool) (n int, ok bool) {
	if rest == "" {
		return 0, false
	}
	if c, ok := escapes[rest[0]]; ok {
		b.WriteByte(c)
		return 1, true
	}
	var digits int
	base, from := rune(16), 1
	switch c := rest[0]; {
	case c == 'x':
		digits = 2
	case c == 'u' && !bytes:
		digits = 4
	case c == 'U' && !bytes:
		digits = 8
	case '0' <= c && c <= '3':
		digits, base, from = 3, 8, 0
	default:
		return 0, false
	}
	if len(rest) < from+digits {
		return 0, false
	}
	r := rune(0)
	for _, c := range []byte(rest[from : from+digits]) {
		d := strings.IndexByte("0123456789abcdef", c|0x20)
		if d < 0 || rune(d) >= base || r > utf8.MaxRune {
			return 0, false
		}
		r = r*base + rune(d)
	}
	if bytes {
		b.WriteByte(byte(r))
		return from + digits, true
	}
	if !utf8.ValidRune(r) {
		return 0, false
	}
	b.WriteRune(r)
	return from + digits, true
}
