package report

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Run is what reports need to know about the run of a command: how names from files
// are shown, and what advice repeats. The zero value shows names as they are.
type Run struct {
	Format  ui.Format
	Command string // that runs, without spt
	Input   string // IN of a command that writes, SP of check; else ""

	uids  map[string]string // id in hex -> uid
	files []string          // see LearnFiles
	hide  *strings.Replacer // the same
}

// LearnUID makes a uid known, so that operators that a snapshot has only ids of can be
// named.
func (r *Run) LearnUID(uid string) {
	if r.uids == nil {
		r.uids = map[string]string{}
	}
	r.uids[format.OperatorIDOf(uid).String()] = uid
}

// KnowsUIDs reports whether any uid was learned.
func (r *Run) KnowsUIDs() bool { return len(r.uids) > 0 }

// Text returns a name from a file as [Run.Format] shows it. In a document it passes
// through [ui.Quote] too.
func (r *Run) Text(s string) string {
	if s == "" || r.Format == ui.FormatAuto || r.Format == ui.FormatText {
		return s
	}
	return ui.Value([]byte(s), r.Format, 0)
}

// Label returns the best name of an operator: its uid, else its name, else a learned
// uid of its id, else the first digits of its id.
func (r *Run) Label(op *format.Operator) string {
	if op.UID.String() != "" || op.Name.String() != "" {
		return r.Text(op.Label())
	}
	if uid := r.uids[op.ID.String()]; uid != "" {
		return uid
	}
	return op.ID.Short()
}

// UID returns an operator's uid, stored or learned, or "".
func (r *Run) UID(op *format.Operator) string {
	if s := op.UID.String(); s != "" {
		return r.Text(s)
	}
	return r.Learned(op.ID.String())
}

// Learned returns the learned uid of an operator id in hex, or "".
func (r *Run) Learned(id string) string { return r.uids[id] }

// LearnFiles notes the files of a snapshot, whose names [Run.Hide] removes.
func (r *Run) LearnFiles(sp *format.Savepoint) {
	if r.Format != ui.FormatRedacted {
		return
	}
	seen := map[string]bool{}
	note := func(name string) {
		if len(name) >= minSecret && !seen[name] {
			seen[name] = true
			r.files = append(r.files, name, r.Text(name))
		}
	}
	_ = sp.EachStream(func(_ format.Place, s format.Stream) error {
		if p, _, ok := format.Reference(s); ok {
			note(p.String())
			note(path.Base(p.String()))
		}
		return nil
	})
	r.hide = strings.NewReplacer(r.files...)
}

// minSecret is the least length of a file name that is looked for in texts: a shorter
// one may be any word.
const minSecret = 8

var (
	// quoted is what errors and findings quote: names of all kinds.
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// follows is where a reference leads.
	follows = regexp.MustCompile(`(\bleads to )([^\s")][^\s),]*)`)
	// class is the name of a Java class, with its package.
	class = regexp.MustCompile(`\b[a-z_]\w*(?:\.[a-z_]\w*)*\.[A-Z][\w$]*`)
	// id is an operator id, or its beginning, which is not a name.
	id = regexp.MustCompile(`^[0-9a-f]{8}(?:[0-9a-f]{24})?$`)
)

// Hide returns an error or a finding as [ui.FormatRedacted] shows it: without names of
// operators and states, of files, and of classes except Flink's and Java's. Texts of
// libraries do not know the format; reports leave names out themselves.
func (r *Run) Hide(text string) string {
	if r.Format != ui.FormatRedacted {
		return text
	}
	text = quoted.ReplaceAllStringFunc(text, func(s string) string {
		name, err := strconv.Unquote(s)
		switch {
		case err != nil:
			return r.Text(s)
		case id.MatchString(name):
			return s
		}
		return r.Text(name)
	})
	text = follows.ReplaceAllStringFunc(text, func(s string) string {
		m := follows.FindStringSubmatch(s)
		return m[1] + r.Text(m[2])
	})
	if r.hide != nil {
		text = r.hide.Replace(text)
	}
	return class.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "org.apache.flink.") || strings.HasPrefix(s, "java.") {
			return s
		}
		return r.Text(s)
	})
}

// listMost is how many names a text lists at most.
const listMost = 12

// Shorten lists names, the first dozen of them.
func Shorten(names []string) string { return shorten(names, ", ") }

// ShortenQuoted lists names as [ui.Quote] shows them, the first dozen of them.
func ShortenQuoted(names []string) string {
	quoted := make([]string, len(names))
	for i, s := range names {
		quoted[i] = ui.Quote(s)
	}
	return Shorten(quoted)
}

// ShortenLong lists texts that may hold commas, the first dozen of them.
func ShortenLong(texts []string) string { return shorten(texts, "; ") }

func shorten(all []string, sep string) string {
	if len(all) > listMost {
		return strings.Join(all[:listMost], sep) + fmt.Sprintf(" and %d more", len(all)-listMost)
	}
	return strings.Join(all, sep)
}
