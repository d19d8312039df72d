package java

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
)

// DecodeText decodes modified UTF-8 (spec flink-metadata 2) and accepts exactly what
// Java accepts, also over-long encodings and lone surrogates. The text keeps the raw
// bytes if encoding it again would not produce them.
func DecodeText(p []byte) (format.Text, bool) {
	plain := true
	for _, b := range p {
		if b == 0 || b >= 0x80 {
			plain = false
			break
		}
	}
	if plain {
		return format.NewText(string(p)), true
	}
	units := make([]uint16, 0, len(p))
	for i := 0; i < len(p); {
		b := p[i]
		n := 1
		switch {
		case b < 0x80:
			units = append(units, uint16(b))
		case b>>5 == 0b110:
			n = 2
		case b>>4 == 0b1110:
			n = 3
		default:
			return format.Text{}, false
		}
		if n > len(p)-i {
			return format.Text{}, false
		}
		for _, t := range p[i+1 : i+n] {
			if t>>6 != 0b10 {
				return format.Text{}, false
			}
		}
		switch n {
		case 2:
			units = append(units, uint16(b&0x1f)<<6|uint16(p[i+1]&0x3f))
		case 3:
			units = append(units, uint16(b&0x0f)<<12|uint16(p[i+1]&0x3f)<<6|uint16(p[i+2]&0x3f))
		}
		i += n
	}
	s := FromUnits(units)
	if again, _ := encodeText(nil, s); string(again) == string(p) {
		return format.NewText(s), true
	}
	return format.RawText(s, string(p)), true
}

// FromUnits converts UTF-16 units to a Go string. A lone surrogate becomes its
// three-byte encoding, which is not valid UTF-8 and so never equal to another
// character.
func FromUnits(units []uint16) string {
	var b []byte
	for i := 0; i < len(units); i++ {
		u := rune(units[i])
		switch {
		case u >= 0xd800 && u < 0xdc00 && i+1 < len(units) && units[i+1] >= 0xdc00 && units[i+1] < 0xe000:
			b = utf8.AppendRune(b, 0x10000+(u-0xd800)<<10+rune(units[i+1])-0xdc00)
			i++
		case u >= 0xd800 && u < 0xe000:
			b = append(b, 0xe0|byte(u>>12), 0x80|byte(u>>6&0x3f), 0x80|byte(u&0x3f))
		default:
			b = utf8.AppendRune(b, u)
		}
	}
	return string(b)
}

// Units converts a string to UTF-16 units, the inverse of [FromUnits]. ok is false if
// it is neither UTF-8 nor from FromUnits.
func Units(s string) (units []uint16, ok bool) {
	units = make([]uint16, 0, len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1 && isSurrogate(s[i:]):
			units = append(units, 0xd000|uint16(s[i+1]&0x3f)<<6|uint16(s[i+2]&0x3f))
			n = 3
		case r == utf8.RuneError && n == 1:
			return units, false
		default:
			units = utf16.AppendRune(units, r)
		}
		i += n
	}
	return units, true
}

// AppendText appends a text with its 2-byte length. It returns a
// format.ErrUnsupported if the encoding is longer than 65,535 bytes, or if the text
// has no original bytes and is not valid UTF-8: Java could not read it.
func AppendText(dst []byte, t format.Text) ([]byte, error) {
	at := len(dst)
	dst = append(dst, 0, 0)
	if raw, ok := t.Raw(); ok {
		dst = append(dst, raw...)
	} else {
		var ok bool
		if dst, ok = encodeText(dst, t.String()); !ok {
			return dst[:at], format.Errorf(format.ErrUnsupported, "the string %q is not valid UTF-8", t)
		}
	}
	n := len(dst) - at - 2
	if n > 0xffff {
		return dst[:at], format.Errorf(format.ErrUnsupported, "a string of %d bytes, the format allows 65,535", n)
	}
	binary.BigEndian.PutUint16(dst[at:], uint16(n))
	return dst, nil
}

// TextSize returns the number of bytes that AppendText appends.
func TextSize(t format.Text) int {
	if raw, ok := t.Raw(); ok {
		return 2 + len(raw)
	}
	s := t.String()
	for i := range len(s) {
		if s[i] == 0 || s[i] >= utf8.RuneSelf {
			p, _ := encodeText(nil, s)
			return 2 + len(p)
		}
	}
	return 2 + len(s)
}

// encodeText appends s in modified UTF-8. Lone surrogates are appended unchanged,
// see FromUnits. Other invalid UTF-8 is appended unchanged too, but ok is false.
func encodeText(dst []byte, s string) (_ []byte, ok bool) {
	ok = true
	for i := 0; i < len(s); {
		if b := s[i]; b != 0 && b < 0x80 {
			dst = append(dst, b)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1 && isSurrogate(s[i:]):
			n = 3
			dst = append(dst, s[i:i+n]...)
		case r == utf8.RuneError && n == 1:
			dst = append(dst, s[i])
			ok = false
		case r == 0:
			dst = append(dst, 0xc0, 0x80)
		case r < 0x10000:
			dst = append(dst, s[i:i+n]...)
		default:
			for _, u := range [2]rune{0xd800 + (r-0x10000)>>10, 0xdc00 + (r-0x10000)&0x3ff} {
				dst = append(dst, 0xe0|byte(u>>12), 0x80|byte(u>>6&0x3f), 0x80|byte(u&0x3f))
			}
		}
		i += n
	}
	return dst, ok
}

// isSurrogate reports whether s starts with the three bytes of a surrogate.
func isSurrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xed && s[1]>>5 == 0b101 && s[2]>>6 == 0b10
}

// EncodeText appends s in modified UTF-8, without a length. ok is false if s is not
// text that Java can read.
func EncodeText(dst []byte, s string) (_ []byte, ok bool) { return encodeText(dst, s) }
