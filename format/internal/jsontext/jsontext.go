package jsontext

import (
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
)

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}

// String returns the name of the kind with its article.
func (k Kind) String() string { return kindNames[k] }

// Node is a JSON value.
type Node struct {
	Kind Kind
	// Text is the characters of a string, in which half a surrogate pair has its own
	// three bytes; the digits of a number; "true" or "false".
	Text  string
	Names []string // of the members of an object, in their order
	Parts []Node   // members or elements
}

// maxDepth limits the nesting of arrays and objects.
const maxDepth = 1000

// Parse parses one JSON value. The error matches format.ErrCorrupt and has the
// offset, or format.ErrLimit if the value is nested too deep.
func Parse(p []byte) (Node, error) {
	if !utf8.Valid(p) {
		return Node{}, format.Errorf(format.ErrCorrupt, "JSON that is not UTF-8")
	}
	if !json.Valid(p) { // does not recurse
		var v json.RawMessage
		e := format.Errorf(format.ErrCorrupt, "not JSON: %v", json.Unmarshal(p, &v))
		return Node{}, e
	}
	s := scanner{p: p}
	n := s.value(0)
	if s.deep {
		return Node{}, format.Errorf(format.ErrLimit, "JSON nested more than %d deep", maxDepth)
	}
	return n, nil
}

// scanner reads valid JSON.
type scanner struct {
	p    []byte
	off  int
	deep bool
}

// next skips white space and returns the next byte, without moving past it.
func (s *scanner) next() byte {
	for {
		switch c := s.p[s.off]; c {
		case ' ', '\t', '\r', '\n':
			s.off++
		default:
			return c
		}
	}
}

func (s *scanner) value(depth int) Node {
	if depth > maxDepth {
		s.deep = true
	}
	if s.deep {
		return Node{}
	}
	switch c := s.next(); c {
	case '{', '[':
		return s.parts(c, depth)
	case '"':
		return Node{Kind: String, Text: s.text()}
	case 'n':
		s.off += len("null")
		return Node{}
	case 't':
		s.off += len("true")
		return Node{Kind: Bool, Text: "true"}
	case 'f':
		s.off += len("false")
		return Node{Kind: Bool, Text: "false"}
	}
	from := s.off
	for s.off < len(s.p) && (s.p[s.off] >= '0' && s.p[s.off] <= '9' || s.p[s.off] == '-' || s.p[s.off] == '+' || s.p[s.off] == '.' || s.p[s.off]|0x20 == 'e') {
		s.off++
	}
	return Node{Kind: Number, Text: string(s.p[from:s.off])}
}

func (s *scanner) parts(open byte, depth int) Node {
	n := Node{Kind: Array}
	if open == '{' {
		n.Kind = Object
	}
	s.off++
	for {
		switch s.next() {
		case ']', '}':
			s.off++
			return n
		case ',':
			s.off++
			s.next()
		}
		if open == '{' {
			n.Names = append(n.Names, s.text())
			s.next()
			s.off++ // the colon
		}
		n.Parts = append(n.Parts, s.value(depth+1))
		if s.deep {
			return n
		}
	}
}

// text reads a string from its opening quote to its closing one.
func (s *scanner) text() string {
	s.off++
	from := s.off
	for s.p[s.off] != '"' && s.p[s.off] != '\\' {
		s.off++
	}
	if s.p[s.off] == '"' {
		s.off++
		return string(s.p[from : s.off-1])
	}
	b := append([]byte(nil), s.p[from:s.off]...)
	for {
		switch c := s.p[s.off]; c {
		case '"':
			s.off++
			return string(b)
		case '\\':
			b = s.escape(b)
		default:
			b = append(b, c)
			s.off++
		}
	}
}

func (s *scanner) escape(b []byte) []byte {
	c := s.p[s.off+1]
	s.off += 2
	switch c {
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'u':
		u := s.unit()
		if u >= 0xd800 && u < 0xdc00 && s.p[s.off] == '\\' && s.p[s.off+1] == 'u' {
			before := s.off
			s.off += 2
			if r := utf16.DecodeRune(u, s.unit()); r != utf8.RuneError {
				return utf8.AppendRune(b, r)
			}
			s.off = before
		}
		if u >= 0xd800 && u < 0xe000 {
			return append(b, 0xe0|byte(u>>12), 0x80|byte(u>>6&0x3f), 0x80|byte(u&0x3f))
		}
		return utf8.AppendRune(b, u)
	}
	return append(b, c)
}

// unit reads four hexadecimal digits.
func (s *scanner) unit() rune {
	n, _ := strconv.ParseUint(string(s.p[s.off:s.off+4]), 16, 16) // valid JSON
	s.off += 4
	return rune(n)
}
