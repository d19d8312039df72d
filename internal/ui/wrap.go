package ui

import (
	"bytes"
	"io"
	"strings"
)

// LineWriter is a writer of text for a terminal or a pipe. It shows tones as colour, or
// removes them, and on a terminal breaks lines that are wider. A line goes on under its
// text, past what marks it ("! ", "  warning  "). A line that is a command ("  spt …")
// is continued with a backslash, so that it can still be copied. It keeps a line until
// its end is written: Flush writes the rest.
type LineWriter struct {
	w    io.Writer
	term Term
	line []byte // not ended yet
}

// NewLineWriter returns a writer to w.
func NewLineWriter(w io.Writer, term Term) *LineWriter { return &LineWriter{w: w, term: term} }

// Write implements io.Writer.
func (w *LineWriter) Write(p []byte) (int, error) {
	n := len(p)
	var out strings.Builder
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.line = append(w.line, p...)
			break
		}
		w.line = append(w.line, p[:i]...)
		out.WriteString(w.fold())
		out.WriteByte('\n')
		w.line, p = w.line[:0], p[i+1:]
	}
	if out.Len() == 0 {
		return n, nil
	}
	if _, err := io.WriteString(w.w, out.String()); err != nil {
		return 0, err
	}
	return n, nil
}

// Flush writes a last line that has no end.
func (w *LineWriter) Flush() error {
	if len(w.line) == 0 {
		return nil
	}
	_, err := io.WriteString(w.w, w.fold())
	w.line = w.line[:0]
	return err
}

func (w *LineWriter) fold() string { return fold(string(w.line), hangOf(string(w.line)), w.term) }

// fold makes a line fit to print on term: tones as term has them, and on a terminal line
// ends in it, so that no part is wider. Only a word of a command may remain wider, because
// breaking it would change the command. Further lines are indented by hang blanks.
func fold(line string, hang int, term Term) string {
	line = sanitize(repeat(line, term.Repeat), term.Color)
	width := term.Width
	if !term.IsTTY || width <= 0 || Width(line) <= width {
		return line
	}
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if indent > 0 && isCommand(text) {
		return strings.Join(breakCommand(text, indent, width), "\n")
	}
	if at := commandIn(text); at > 0 {
		head := strings.TrimRight(text[:at], " ")
		lines := breakText(words(head), indent, hang, width)
		return strings.Join(append(lines, breakCommand(text[at:], min(hang, width/4), width)...), "\n")
	}
	return strings.Join(breakText(words(text), indent, hang, width), "\n")
}

// hangOf returns the indent of the lines in which a line continues: past a mark and the
// blanks that follow it.
func hangOf(line string) int {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	plain := sanitize(line[indent:], false)
	for _, mark := range []string{"! ", "- ", "… ", "+ ", "~ "} {
		if strings.HasPrefix(plain, mark) {
			return indent + len(gap)
		}
	}
	const longestMark = 12
	if i := strings.Index(plain, gap); i > 0 && i <= longestMark && !strings.Contains(plain[:i], " ") {
		return indent + Width(plain[:i]) + len(plain[i:]) - len(strings.TrimLeft(plain[i:], " "))
	}
	return indent + len(gap)
}

const commandName = "spt "

func isCommand(text string) bool { return strings.HasPrefix(sanitize(text, false), commandName) }

// commandIn is where a command starts that follows text and two blanks, or -1.
func commandIn(text string) int {
	if i := strings.LastIndex(text, gap+commandName); i > 0 {
		return i + len(gap)
	}
	return -1
}

// repeat adds flags to the command that ends a line, if it names an address in a store.
func repeat(line, flags string) string {
	text := strings.TrimLeft(line, " ")
	at := len(line) - len(text) // of a command that is all of the line
	if at == 0 || !isCommand(text) {
		at = commandIn(line)
	}
	if flags == "" || at < 0 || !strings.Contains(line[at:], "://") {
		return line
	}
	return line + " " + flags
}

// breakCommand breaks a command between its arguments.
func breakCommand(text string, indent, width int) (lines []string) {
	const more = ` \`
	line := strings.Repeat(" ", indent)
	fresh := true
	for _, arg := range arguments(text) {
		if !fresh && Width(line)+1+Width(arg)+len(more) > width {
			lines = append(lines, line+more)
			line, fresh = strings.Repeat(" ", indent+2*len(gap)), true
		}
		if !fresh {
			line += " "
		}
		line += arg
		fresh = false
	}
	return append(lines, line)
}

// arguments splits a command at blanks that are not in quotes.
func arguments(text string) (all []string) {
	var quote byte
	from := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != '\'' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == ' ':
			if i > from {
				all = append(all, text[from:i])
			}
			from = i + 1
		}
	}
	if from < len(text) {
		all = append(all, text[from:])
	}
	return all
}

// word is a word and the blanks in front of it.
type word struct {
	blanks int
	text   string
}

// words splits a text at blanks, but for those between a number and its unit.
func words(text string) (all []word) {
	for len(text) > 0 {
		rest := strings.TrimLeft(text, " ")
		blanks := len(text) - len(rest)
		end := strings.IndexByte(rest, ' ')
		if end < 0 {
			end = len(rest)
		}
		switch k := len(all) - 1; {
		case end == 0:
		case k >= 0 && blanks == 1 && isUnit(rest[:end]) && endsInDigit(all[k].text):
			all[k].text += " " + rest[:end]
		default:
			all = append(all, word{blanks, rest[:end]})
		}
		text = rest[end:]
	}
	return all
}

func endsInDigit(s string) bool {
	c := s[len(s)-1]
	return '0' <= c && c <= '9'
}

// isUnit reports whether a word is what [Bytes] and [Percent] put after a number,
// whatever follows it.
func isUnit(s string) bool {
	switch strings.TrimRight(s, ".,;:)") {
	case "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "%":
		return true
	}
	return false
}

// breakText fills lines with words. A word that is wider than a line is broken,
// after a slash or comma if one is near.
func breakText(all []word, indent, hang, width int) (lines []string) {
	if hang > width/2 { // there has to be room for text
		hang = min(indent+len(gap), width/2)
	}
	if indent > width/2 {
		indent = hang
	}
	line, used, fresh := strings.Repeat(" ", indent), indent, true
	next := func() {
		lines = append(lines, strings.TrimRight(line, " "))
		line, used, fresh = strings.Repeat(" ", hang), hang, true
	}
	for _, w := range all {
		blanks := w.blanks
		if n := Width(w.text); !fresh && used+blanks+n > width && (n <= width-hang || used+blanks > width/2) {
			next()
		}
		if fresh {
			blanks = 0
		}
		line += strings.Repeat(" ", blanks)
		used += blanks
		for text := w.text; ; {
			room := width - used
			if Width(text) <= room {
				line += text
				used += Width(text)
				fresh = false
				break
			}
			part := breakAt(text, room)
			line += part
			text = strings.TrimLeft(text[len(part):], " ")
			next()
		}
	}
	return append(lines, line)
}

// breakAt is the beginning of a text that is cut to fit in room columns: at least
// one character, and no colour mark in two.
func breakAt(text string, room int) string {
	used, good := 0, 0
	for part, mark := range segments(text) {
		if mark {
			continue
		}
		start := strings.Index(text[good:], part) + good
		for i, r := range part {
			w := columns.RuneWidth(r)
			if used+w > room && start+i > 0 {
				return preferred(text[:start+i])
			}
			used += w
			good = start + i
		}
	}
	return text
}

// preferred ends a part after its last slash or comma, if that leaves most of it.
func preferred(part string) string {
	if i := strings.LastIndexAny(part, "/,"); i+1 > len(part)*2/3 {
		return part[:i+1]
	}
	return part
}
