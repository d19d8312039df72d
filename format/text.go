package format

// Text is a string that stands in a file: what it says, and, where writing
// that down again would give other bytes, the bytes it was written with.
// Names of real files are plain; only a foreign encoder makes the second part
// necessary. Text is comparable; the zero value is the empty string.
type Text struct {
	s   string
	raw string
}

// NewText is a text that its container may encode as it likes.
func NewText(s string) Text { return Text{s: s} }

// RawText is a text whose bytes in the file, raw, are not what a container's
// encoder would make of s.
func RawText(s, raw string) Text { return Text{s: s, raw: raw} }

// String is what the text says. It may hold anything, control characters
// included: quote it before it reaches a terminal.
func (t Text) String() string { return t.s }

// Raw gives the bytes to write instead of encoding String; ok is false where
// there are none.
func (t Text) Raw() (raw string, ok bool) { return t.raw, t.raw != "" }

// Wire is what a container needs to write a node back byte for byte and nobody
// else needs to know: type tags, layout variants, dead fields. Only the
// container that made it understands it; others keep it as it is. "" means
// nothing beyond the ordinary.
type Wire string
