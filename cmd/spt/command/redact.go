package command

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
)

// learnFiles notes the files of a snapshot, whose names are not to be shown with
// --format redacted.
func (e *Env) learnFiles(sp *format.Savepoint) {
	if e.common.format != ui.FormatRedacted {
		return
	}
	seen := map[string]bool{}
	note := func(name string) {
		if len(name) >= minSecret && !seen[name] {
			seen[name] = true
			e.files = append(e.files, name, e.text(name))
		}
	}
	_ = sp.EachStream(func(_ format.Place, s format.Stream) error {
		if p, _, ok := format.Reference(s); ok {
			note(p.String())
			note(path.Base(p.String()))
		}
		return nil
	})
	e.hideFiles = strings.NewReplacer(e.files...)
}

// minSecret is how long the name of a file is at least for it to be looked for
// in texts: a shorter one may be any word.
const minSecret = 8

var (
	// quoted is what errors and findings quote: names of all kinds.
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// follows is where a reference leads, and the advice to follow it.
	follows = regexp.MustCompile(`(--follow |\bleads to )([^\s")][^\s),]*)`)
	// class is the name of a Java class, with its package.
	class = regexp.MustCompile(`\b[a-z_]\w*(?:\.[a-z_]\w*)*\.[A-Z][\w$]*`)
	// id is one of an operator, or its beginning, which is no name.
	id = regexp.MustCompile(`^[0-9a-f]{8}(?:[0-9a-f]{24})?$`)
)

// hide gives an error or a finding as --format redacted wants it: without names
// of operators and states, of files, and of classes but Flink's and Java's.
// Answers leave them out themselves; errors come from where nobody knows of
// --format, also those of a snapshot that could not be opened.
func (e *Env) hide(text string) string {
	if e.common.format != ui.FormatRedacted {
		return text
	}
	text = quoted.ReplaceAllStringFunc(text, func(s string) string {
		name, err := strconv.Unquote(s)
		switch {
		case err != nil:
			return e.text(s)
		case id.MatchString(name):
			return s
		}
		return e.text(name)
	})
	text = follows.ReplaceAllStringFunc(text, func(s string) string {
		m := follows.FindStringSubmatch(s)
		return m[1] + e.text(m[2])
	})
	if e.hideFiles != nil {
		text = e.hideFiles.Replace(text)
	}
	return class.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "org.apache.flink.") || strings.HasPrefix(s, "java.") {
			return s
		}
		return e.text(s)
	})
}
