package html

import (
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
)

// note is a finding, several that are alike, or a warning about what is in the snapshot.
type note struct {
	Severity, Code, Text string
	Examples             []string // where, or all that differs
	Advice               []advice
}

// advice is what can be done, in words, with a command or without.
type advice struct{ Text, Command string }

// maxNotes is how many findings the page lists, and maxExamples how many of those that
// are alike.
const (
	maxNotes    = 60
	maxExamples = 3
)

// notes returns the findings of verify, errors first, and after its warnings what inspect
// points out.
func notes(p *Page) (all []note, left string) {
	found := report.Findings(p.Verify.Shown()).Alike()
	for _, level := range []ui.Level{ui.LevelError, ui.LevelWarning, ui.LevelNote} {
		for _, g := range found {
			if g.Members[0].Level == level {
				all = append(all, newNote(g))
			}
		}
		if level != ui.LevelWarning {
			continue
		}
		for i := range p.Inspect.Warnings {
			w := &p.Inspect.Warnings[i]
			n := note{Severity: string(level), Code: w.Code, Text: sentence(w.Message), Advice: advices(w.More())}
			if w.Command != "" {
				n.Advice = append(n.Advice, advice{Command: w.Command})
			}
			all = append(all, n)
		}
	}
	if n := len(all) - maxNotes; n > 0 {
		return all[:maxNotes], more(n, "finding", "spt verify "+shell.Quote(p.Inspect.Path)+" -o json")
	}
	return all, ""
}

func newNote(g *ui.AlikeFindings) note {
	first := g.Members[0]
	n := note{Severity: string(first.Level), Code: first.Kind, Text: sentence(first.Text), Advice: advices(first.Advice)}
	many := len(g.Members) > 1
	switch {
	case many && g.Same:
		n.Text = ui.Count(int64(len(g.Members))) + " times: " + n.Text
	case many:
		n.Text = ui.Count(int64(len(g.Members))) + " of this kind, such as:"
	}
	for _, f := range g.Members[:min(len(g.Members), maxExamples)] {
		text := f.Place
		if many && !g.Same {
			text += ": " + f.Text
		}
		for _, line := range []string{text, f.Detail} {
			if line != "" {
				n.Examples = append(n.Examples, sentence(strings.TrimPrefix(line, ": ")))
			}
		}
	}
	if left := len(g.Members) - maxExamples; left > 0 {
		n.Examples = append(n.Examples, "… and "+ui.Count(int64(left))+" more")
	}
	n.Advice = append(n.Advice, advice{"What it means", "spt explain " + first.Kind})
	return n
}

// capital returns a text with its first letter as a capital.
func capital(text string) string {
	_, n := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:n]) + text[n:]
}

// advices splits advice into lines, and each into words and the command that ends it.
func advices(text string) (all []advice) {
	for line := range strings.Lines(text) {
		words, command, ok := strings.Cut(strings.TrimSpace(line), ":  spt ")
		a := advice{Text: sentence(capital(words))}
		if ok {
			a.Command = "spt " + sentence(command)
		}
		if a != (advice{}) {
			all = append(all, a)
		}
	}
	return all
}
