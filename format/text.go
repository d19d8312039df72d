package format

// Text is a string from a file. If encoding the string again would not produce the
// original bytes, it also holds those bytes; only unusual encoders make this
// necessary. Text is comparable; the zero value is the empty string.
type Text struct {
	s   string
	raw string
}

// NewText returns a text without original bytes.
func NewText(s string) Text { return Text{s: s} }

// RawText returns a text whose original bytes are raw, which differ from what the
// container's encoder produces for s.
func RawText(s, raw string) Text { return Text{s: s, raw: raw} }

// String returns the string. It may contain anything, including control characters:
// quote it before printing.
func (t Text) String() string { return t.s }

// Raw returns the original bytes, to be written in place of the encoding of String.
// ok is false if t has no raw bytes.
func (t Text) Raw() (raw string, ok bool) { return t.raw, t.raw != "" }

// Wire is the data that a container needs, beyond the model, to write a node with
// the same bytes: type tags, layout variants, unused fields. Only the container
// that created it understands it; others keep it unchanged. "" is the default.
type Wire string
