package scramble

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// span is consecutive characters.
type span struct{ first, last rune }

func (s span) size() uint32 { return uint32(s.last - s.first + 1) }

// classes are the characters that replace each other. All of one class take as many
// bytes in UTF-8, in modified UTF-8, in UTF-16, and in Flink's encoding of strings, which
// has a second byte from 0x80 on and a third from 0x4000 on. Halves of surrogate pairs
// stay such halves.
var classes = [][]span{
	{{0, 0}},
	{{1, 0x1f}, {0x7f, 0x7f}},
	{{0x20, 0x7e}},
	{{0x80, 0x9f}},
	{{0xa0, 0x7ff}},
	{{0x800, 0x3fff}},
	{{0x4000, 0xd7ff}, {0xe000, 0xffff}},
	{{0xd800, 0xdbff}},
	{{0xdc00, 0xdfff}},
	{{0x10000, utf8.MaxRune}},
}

// nameClasses are the classes of ASCII in names: digits, which programs parse, and letters.
// The other characters of ASCII stay.
var nameClasses = [][]span{{{'0', '9'}}, {{'A', 'Z'}, {'a', 'z'}}}

func in(r rune, class []span) bool {
	for _, s := range class {
		if r >= s.first && r <= s.last {
			return true
		}
	}
	return false
}

// classOf returns the class of a character, nil if it stays.
func classOf(d domain, r rune) []span {
	of := classes
	if d == ofNames && r < 0x80 {
		of = nameClasses
	}
	for _, c := range of {
		if in(r, c) {
			return c
		}
	}
	return nil
}

// text replaces a string. Programs parse the texts of UUIDs, which become such texts.
func (m Mask) text(s string) (string, error) {
	if u, ok := uuid(s); ok {
		return uuidText(m.bytes(u)), nil
	}
	for {
		var err error
		if s, err = m.characters(ofTexts, s); err != nil {
			return s, err
		}
		if _, ok := uuid(s); !ok {
			return s, nil
		}
	}
}

func uuidText(u []byte) string {
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// uuid returns the bytes of the text of a UUID.
func uuid(s string) (u []byte, ok bool) {
	if len(s) != 36 {
		return nil, false
	}
	u, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	return u, err == nil && len(u) == 16 && uuidText(u) == s
}

// maxText limits the bytes of a string: its characters take more memory.
const maxText = 64 << 20

// characters replaces the characters of a string.
func (m Mask) characters(d domain, s string) (string, error) {
	if len(s) > maxText {
		return s, format.Errorf(format.ErrLimit, "a string of %d bytes cannot be replaced, the limit is %d", len(s), maxText)
	}
	runes := make([]rune, 0, len(s))
	symbols := make([]symbol, 0, len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			half, ok := value.Surrogate(s[i:])
			if !ok {
				return s, unsupported("a string that is not UTF-8")
			}
			r, n = rune(half), 3
		}
		i += n
		runes = append(runes, r)
		if c := classOf(d, r); c != nil {
			symbols = append(symbols, symbolOf(r, c))
		}
	}
	m.permute(d, 0, symbols)
	out := make([]byte, 0, len(s))
	for _, r := range runes {
		if c := classOf(d, r); c != nil {
			r = characterOf(symbols[0].n, c)
			symbols = symbols[1:]
		}
		if r >= 0xd800 && r <= 0xdfff {
			out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out), nil
}

func symbolOf(r rune, class []span) symbol {
	s := symbol{}
	for _, c := range class {
		if r >= c.first && r <= c.last {
			s.n = s.radix + uint32(r-c.first)
		}
		s.radix += c.size()
	}
	return s
}

func characterOf(n uint32, class []span) rune {
	for _, c := range class {
		if n < c.size() {
			return c.first + rune(n)
		}
		n -= c.size()
	}
	return utf8.RuneError
}
