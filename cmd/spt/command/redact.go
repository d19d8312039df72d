package command

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
)

// learnSecrets notes what stands in a snapshot and is not to be shown with
// --format redacted: names of operators and states, and of files. Answers leave
// them out themselves; errors and findings come from where nobody knows of
// --format, and go through hide.
func (e *Env) learnSecrets(sp *format.Savepoint) {
	if e.common.format != ui.FormatRedacted {
		return
	}
	shown := map[string]string{}
	name := func(t format.Text) {
		if s := t.String(); s != "" {
			shown[strconv.Quote(s)] = e.text(s) // errors quote them
		}
	}
	file := func(s string) {
		for _, s := range []string{s, path.Base(s)} {
			if len(s) >= minSecret {
				shown[s] = e.text(s)
			}
		}
	}
	for _, op := range sp.Operators {
		name(op.UID)
		name(op.Name)
		for _, sub := range op.Subtasks {
			for _, h := range []*format.OperatorHandle{sub.Managed, sub.Raw} {
				if h == nil {
					continue
				}
				for _, st := range h.States {
					name(st.Name)
				}
			}
		}
	}
	_ = sp.EachStream(func(_ format.Place, s format.Stream) error {
		if p, _, ok := format.Reference(s); ok {
			file(p.String())
		}
		return nil
	})
	for s, as := range shown {
		e.secrets = append(e.secrets, [2]string{s, as})
	}
	slices.SortFunc(e.secrets, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(len(b[0]), len(a[0])), cmp.Compare(a[0], b[0])) // a path before what it ends in
	})
}

// minSecret is how long the name of a file is at least for it to be looked for
// in texts: a shorter one may be any word.
const minSecret = 8

// hide gives a text without the names that are not to be shown.
func (e *Env) hide(text string) string {
	for _, s := range e.secrets {
		text = strings.ReplaceAll(text, s[0], s[1])
	}
	return text
}
