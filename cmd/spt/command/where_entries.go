package command

import (
	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
)

// entryNames are the names that only entries of keyed state have.
var entryNames = []int{catKeyGroup, catNamespace, catUserKey, catTime, catTTL}

// entriesOnly reports whether the expression looks at what only entries of keyed state
// have.
func (f *catFilter) entriesOnly() bool {
	for _, name := range entryNames {
		if f.program.Uses(name) {
			return true
		}
	}
	return false
}

// fits reports whether keyed states of a kind have what the expression looks at, which
// would be null otherwise, for all of their entries.
func (f *catFilter) fits(kind string) bool {
	uses := f.program.Uses
	switch timers := kind == kindOfTimers; {
	case uses(catIndex), uses(catTime) && !timers, (uses(catValue) || uses(catTTL)) && timers, uses(catUserKey) && kind != "map":
		return false
	}
	return true
}

// entryDecoded returns an error if the expression looks at a part of an entry that is not
// decoded: as nil it would be dropped for what it may not be.
func (c *catter) entryDecoded(st *catState, it *catItem, why error) error {
	k := it.keyed
	for _, p := range []struct {
		name    int
		decoded bool
	}{{catKey, k.Key.Decoded}, {catNamespace, k.Namespace.Decoded}, {catUserKey, k.UserKey.Decoded}, {catValue, k.Value.Decoded}, {catTTL, k.Value.Decoded}} {
		if p.decoded || !c.filter.program.Uses(p.name) {
			continue
		}
		text := ""
		if why != nil {
			text = " (" + why.Error() + ")"
		}
		return format.Errorf(format.ErrUnsupported, "--where looks at the %s of entries, which is not decoded in %s/%s%s; use --operator and --state to choose others", catVars[p.name].name, ui.Quote(c.env.hidden(st.label)), ui.Quote(c.env.hidden(st.name)), text)
	}
	return nil
}
