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

// Findings are what a command found out, as a block of a [Document]. More than three
// of one kind are shown as one, with a count and three examples.
type Findings []Finding

// AlikeFindings are findings of one kind with alike texts: they differ in names and
// numbers.
type AlikeFindings struct {
	Members []*Finding
	Same    bool // texts are equal
}

// Alike returns the findings by kind, in the order of the first of each.
func (all Findings) Alike() []*AlikeFindings {
	groups := map[string]*AlikeFindings{}
	var order []*AlikeFindings
	for i := range all {
		f := &all[i]
		key := strings.Join([]string{string(f.Level), f.Kind, shape(f.Text), shape(cmp.Or(f.Like, f.Advice))}, "\x00")
		g := groups[key]
		if g == nil {
			g = &AlikeFindings{Same: true}
			groups[key] = g
			order = append(order, g)
		}
		g.Members = append(g.Members, f)
		g.Same = g.Same && g.Members[0].Text == f.Text
	}
	return order
}

// appendText keeps the order of the findings. On a terminal a command has a line for
// itself.
func (all Findings) appendText(b *strings.Builder, term Term) error {
	p := findingPrinter{b, term}
	for _, g := range all.Alike() {
		if len(g.Members) <= maxAlike {
			for _, f := range g.Members {
				p.finding(f)
			}
			continue
		}
		p.alike(g.Members, g.Same)
	}
	return nil
}

type findingPrinter struct {
	b    *strings.Builder
	term Term
}

// line writes a line. If it is broken, the rest is indented like all of a finding.
func (p *findingPrinter) line(text string) {
	p.b.WriteString(fold(text, len(findingIndent), p.term) + "\n")
}

func (p *findingPrinter) below(text string) { p.line(findingIndent + text) }

func (l Level) mark() string {
	switch l {
	case LevelError:
		return Bad(string(l))
	case LevelWarning:
		return Look(string(l))
	}
	return Dim(string(l))
}

func (p *findingPrinter) finding(f *Finding) {
	p.line("  " + f.Level.mark() + "  " + prefixed(f))
	if f.Detail != "" {
		p.detail(f.Detail)
	}
	p.advice(f.Advice)
}

// detail is printed in one piece, so that it can be copied.
func (p *findingPrinter) detail(text string) {
	p.b.WriteString(findingIndent + Printable(text) + "\n")
}

func (p *findingPrinter) alike(members []*Finding, same bool) {
	first := members[0]
	n := Count(int64(len(members)))
	if same {
		p.line("  " + first.Level.mark() + "  " + fmt.Sprintf("%s times: %s", n, Printable(first.Text)))
	} else {
		p.line("  " + first.Level.mark() + "  " + n + " of this kind, such as:")
	}
	for _, f := range members[:maxAlike] {
		switch {
		case !same:
			p.below(prefixed(f))
		case f.Place != "":
			p.below(Printable(f.Place))
		case f.Detail != "":
			p.detail(f.Detail)
		}
	}
	p.below(Dim("and " + Count(int64(len(members)-maxAlike)) + " more; -o json lists all"))
	p.advice(first.Advice)
}

func prefixed(f *Finding) string {
	if f.Place == "" {
		return Printable(f.Text)
	}
	return Printable(f.Place) + ": " + Printable(f.Text)
}

// advice prints what to do. It may end in a command.
func (p *findingPrinter) advice(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" {
			continue
		}
		words, command, ok := strings.Cut(line, ":  ")
		if !ok || !p.term.IsTTY {
			p.below(Dim(Printable(line)))
			continue
		}
		p.below(Dim(Printable(words) + ":"))
		p.below("  " + Printable(command))
	}
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
