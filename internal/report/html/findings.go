package html

import (
	"strings"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
)

// note is a finding, or a warning about what is in the snapshot.
type note struct {
	Severity, Code, Place, Text string
	Advice                      []advice
}

// advice is what can be done, in words, with a command or without.
type advice struct{ Text, Command string }

// maxNotes is how many findings the page lists.
const maxNotes = 100

var severities = []string{"error", "warning", "note"}

// notes returns the findings of verify, errors first, and between its warnings and notes
// what inspect points out.
func notes(p *Page) (all []note, left string) {
	for _, severity := range severities {
		for _, f := range p.Verify.Shown() {
			if f.Severity == severity {
				all = append(all, newNote(f))
			}
		}
		if severity != "warning" {
			continue
		}
		for i := range p.Inspect.Warnings {
			w := &p.Inspect.Warnings[i]
			n := note{Severity: severity, Code: w.Code, Text: sentence(w.Message), Advice: advices(w.More())}
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

func newNote(f report.Finding) note {
	n := note{Severity: f.Severity, Code: f.Code, Place: sentence(f.Place), Text: sentence(f.Message), Advice: advices(f.Advice)}
	if n.Place == "" && f.Operator != "" {
		n.Place = name(f.Operator)
		if f.State != "" {
			n.Place += "/" + name(f.State)
		}
	}
	n.Advice = append(n.Advice, advice{"What it means", "spt explain " + f.Code})
	return n
}

// advices splits advice into lines, and each into words and the command that ends it.
func advices(text string) (all []advice) {
	for line := range strings.Lines(text) {
		words, command, ok := strings.Cut(strings.TrimSpace(line), ":  spt ")
		a := advice{Text: sentence(words)}
		if ok {
			a.Command = "spt " + sentence(command)
		}
		if a != (advice{}) {
			all = append(all, a)
		}
	}
	return all
}
