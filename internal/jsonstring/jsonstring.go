// Package jsonstring writes JSON strings. It is for callers that write very many: it
// uses no reflection and allocates nothing.
package jsonstring

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// verbatim reports for a byte whether it is copied: printable ASCII but " and \.
var verbatim = func() (v [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		v[c] = c != '"' && c != '\\'
	}
	return v
}()

// Append appends s as a JSON string. With printable, \n, \r and \t are written so,
// as in encoding/json, and all characters that are not printable are escaped, not only
// those below U+0020. Half a surrogate pair, which is not UTF-8, is an escape
// sequence; any other byte that is not UTF-8 is U+FFFD.
func Append(dst []byte, s string, printable bool) []byte {
	dst = append(dst, '"')
	from := 0 // start of what was not copied yet
	for i := 0; i < len(s); {
		if verbatim[s[i]] {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		invalid := r == utf8.RuneError && n == 1
		if r >= 0x7f && !invalid && (!printable || unicode.IsPrint(r)) {
			i += n
			continue
		}
		dst = append(dst, s[from:i]...)
		switch half, ok := Surrogate(s[i:]); {
		case r == '"', r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n' && printable:
			dst = append(dst, '\\', 'n')
		case r == '\r' && printable:
			dst = append(dst, '\\', 'r')
		case r == '\t' && printable:
			dst = append(dst, '\\', 't')
		case invalid && ok:
			dst = appendUnit(dst, half)
			n = 3
		case invalid && !printable:
			dst = utf8.AppendRune(dst, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = appendUnit(appendUnit(dst, uint16(high)), uint16(low))
		default:
			dst = appendUnit(dst, uint16(r))
		}
		i += n
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// appendUnit appends the escape sequence of a UTF-16 unit.
func appendUnit(dst []byte, u uint16) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
}

// Surrogate returns the half of a surrogate pair whose three bytes s starts with, and
// whether it does. Strings of UTF-16 units can contain them; they are not UTF-8.
func Surrogate(s string) (unit uint16, ok bool) {
	if len(s) >= 3 && s[0] == 0xed && s[1]>>5 == 0b101 && s[2]>>6 == 0b10 {
		return 0xd000 | uint16(s[1]&0x3f)<<6 | uint16(s[2]&0x3f), true
	}
	return 0, false
}
