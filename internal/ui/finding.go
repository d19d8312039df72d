package ui

import (
	"cmp"
	"fmt"
	"strings"
)

// Finding is something that a command found out, as a person is shown it.
type Finding struct {
	Level  Level
	Kind   string // findings of one kind, with alike text, are shown together
	Place  string // what it is about; "" for the whole
	Text   string
	Detail string // on a line of its own below, such as a file
	Advice string // what to do; a command in it follows two spaces
	Like   string // by which advice is compared, if not as it is printed
}

// Level is how bad a finding is.
type Level string

// The levels. A finding starts with its level.
const (
	LevelError   Level = "error"
	LevelWarning Level = "warning"
	LevelNote    Level = "note"
)

const (
	maxAlike      = 3          // findings of one kind that are shown
	findingIndent = "        " // of all lines of a finding but the first
)

// AppendFindings writes findings to b, in their order. More than three of one kind
// are one finding with a count and three examples. On a terminal long lines are
// wrapped with a hanging indent; elsewhere they are not. A command is never
// wrapped.
func AppendFindings(b *strings.Builder, term Term, all []Finding) {
	type group struct {
		members []*Finding
		same    bool // texts are equal, not only alike
	}
	groups := map[string]*group{}
	var order []*group
	for i := range all {
		f := &all[i]
		key := strings.Join([]string{string(f.Level), f.Kind, shape(f.Text), shape(cmp.Or(f.Like, f.Advice))}, "\x00")
		g := groups[key]
		if g == nil {
			g = &group{same: true}
			groups[key] = g
			order = append(order, g)
		}
		g.members = append(g.members, f)
		g.same = g.same && g.members[0].Text == f.Text
	}
	p := findingPrinter{b, term, term.Style()}
	for _, g := range order {
		if len(g.members) <= maxAlike {
			for _, f := range g.members {
				p.finding(f)
			}
			continue
		}
		p.alike(g.members, g.same)
	}
}

type findingPrinter struct {
	b     *strings.Builder
	term  Term
	style Style
}

func (p *findingPrinter) mark(l Level) string {
	switch l {
	case LevelError:
		return p.style.Bad(string(l))
	case LevelWarning:
		return p.style.Look(string(l))
	}
	return p.style.Dim(string(l))
}

func (p *findingPrinter) finding(f *Finding) {
	p.lines("  "+p.mark(f.Level)+"  ", prefixed(f))
	if f.Detail != "" {
		p.b.WriteString(findingIndent + Printable(f.Detail) + "\n")
	}
	p.advice(f.Advice)
}

func (p *findingPrinter) alike(members []*Finding, same bool) {
	first := members[0]
	n := Count(int64(len(members)))
	if same {
		p.lines("  "+p.mark(first.Level)+"  ", fmt.Sprintf("%s times: %s", n, Printable(first.Text)))
	} else {
		p.lines("  "+p.mark(first.Level)+"  ", n+" of this kind, such as:")
	}
	for _, f := range members[:maxAlike] {
		switch {
		case !same:
			p.lines(findingIndent, prefixed(f))
		case f.Place != "":
			p.lines(findingIndent, Printable(f.Place))
		case f.Detail != "":
			p.b.WriteString(findingIndent + Printable(f.Detail) + "\n")
		}
	}
	p.b.WriteString(findingIndent + p.style.Dim("and "+Count(int64(len(members)-maxAlike))+" more; -o json lists all") + "\n")
	p.advice(first.Advice)
}

func prefixed(f *Finding) string {
	if f.Place == "" {
		return Printable(f.Text)
	}
	return Printable(f.Place) + ": " + Printable(f.Text)
}

// advice prints what to do, the last part of which may be a command.
func (p *findingPrinter) advice(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			continue
		}
		words, command, ok := strings.Cut(line, ":  ")
		if !ok || !p.term.IsTTY {
			p.styled(Printable(line))
			continue
		}
		p.styled(Printable(words) + ":")
		p.b.WriteString(findingIndent + "  " + Printable(command) + "\n")
	}
}

func (p *findingPrinter) styled(text string) {
	for _, line := range p.wrap(text, len(findingIndent), len(findingIndent)) {
		p.b.WriteString(findingIndent + p.style.Dim(line) + "\n")
	}
}

func (p *findingPrinter) lines(head, text string) {
	for i, line := range p.wrap(text, Width(head), len(findingIndent)) {
		if i > 0 {
			head = findingIndent
		}
		p.b.WriteString(head + line + "\n")
	}
}

// wrap cuts text into lines that fit the terminal behind an indent.
func (p *findingPrinter) wrap(text string, first, rest int) []string {
	if !p.term.IsTTY {
		return []string{text}
	}
	return wrapWords(text, p.term.Width-first, p.term.Width-rest)
}

// wrapWords cuts text at spaces into lines of at most first columns, then rest columns.
// A word that is longer has a line for itself.
func wrapWords(text string, first, rest int) []string {
	var lines []string
	line, width := "", first
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line, width = word, rest
		}
	}
	return append(lines, line)
}

// shape is text without what differs between findings of one kind: quoted names,
// and words with digits in them.
func shape(text string) string {
	var b strings.Builder
	quoted, start := false, -1
	digit := false
	flush := func(end int) {
		if start < 0 {
			return
		}
		if digit {
			b.WriteByte('#')
		} else {
			b.WriteString(text[start:end])
		}
		start, digit = -1, false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			flush(i)
			quoted = !quoted
			b.WriteByte(c)
		case quoted:
		case c == ' ':
			flush(i)
			b.WriteByte(c)
		default:
			if start < 0 {
				start = i
			}
			digit = digit || c >= '0' && c <= '9'
		}
	}
	flush(len(text))
	return b.String()
}
