package command

import (
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
)

// The kinds of keyed state that have parts of their own.
const (
	timersKind = "timers"
	mapKind    = "map"
)

// catEntry is an entry of keyed state, which an expression looks at.
type catEntry struct {
	st      *catState
	subtask int32
	codecs  *value.EntryCodecs
	entry   format.KeyedEntry
}

// fits reports whether states of this kind of keyed state have what the expression looks
// at. What they have not would be null, for all of their entries.
func (f *catFilter) fits(kind string) bool {
	uses := f.program.Uses
	switch {
	case uses(catIndex), uses(catTime) && kind != timersKind, uses(catValue) && kind == timersKind, uses(catUserKey) && kind != mapKind:
		return false
	}
	return true
}

// entriesOnly reports whether the expression looks at what only entries of keyed state
// have.
func (f *catFilter) entriesOnly() bool {
	return f.program.Uses(catNamespace) || f.program.Uses(catUserKey) || f.program.Uses(catKeyGroup) || f.program.Uses(catTime)
}

// holdsEntry reports whether the expression holds for an entry of keyed state. It
// decodes the parts that the expression uses.
func (f *catFilter) holdsEntry(c *catter, it *catEntry) (bool, error) {
	values, e := f.vars.Values, &it.entry
	clear(values)
	values[catOperator], values[catID] = value.String(it.st.label), value.String(it.st.op.ID.String())
	values[catStateName], values[catKind] = value.String(it.st.name), value.String(it.st.kind)
	values[catSubtask], values[catKeyGroup] = value.Int(int64(it.subtask)), value.Int(int64(e.KeyGroup))
	values[catSize] = value.Int(int64(len(e.Value) + len(e.Key) + len(e.Namespace) + len(e.UserKey)))
	if it.st.kind == timersKind {
		values[catTime] = value.Int(e.Time)
	}
	f.part, f.vars.OpenRecords = nil, false
	for _, p := range []struct {
		name  int
		codec value.Codec
		bytes []byte
	}{{catKey, it.codecs.Key, e.Key}, {catNamespace, it.codecs.Namespace, e.Namespace}, {catUserKey, it.codecs.UserKey, e.UserKey}, {catValue, it.codecs.Value, e.Value}} {
		if !f.program.Uses(p.name) {
			continue
		}
		if p.codec == nil || p.bytes == nil {
			return false, c.entryNotTold(it, p.name)
		}
		var err error
		if values[p.name], err = value.ReadAll(p.codec, p.bytes); err != nil {
			return false, err
		}
	}
	ok, err := f.program.Eval(&f.vars)
	if err != nil {
		return false, &usageError{fmt.Sprintf("--where: %s, of %s/%s, subtask %d, key group %d", c.env.misfit(err), ui.Quote(c.env.hidden(it.st.label)), ui.Quote(c.env.hidden(it.st.name)), it.subtask, e.KeyGroup), f.hint}
	}
	return ok != f.invert, nil
}

// entryNotTold refuses an expression that looks at a part of entries that is not decoded.
func (c *catter) entryNotTold(it *catEntry, part int) error {
	why := ""
	if it.codecs.Why != nil {
		why = " (" + it.codecs.Why.Error() + ")"
	}
	return format.Errorf(format.ErrUnsupported, "--where looks at the %s of entries, but that of %s/%s is not decoded%s; use --operator and --state to choose others", catVars[part].name, ui.Quote(c.env.hidden(it.st.label)), ui.Quote(c.env.hidden(it.st.name)), why)
}
