package diff

import (
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// handles compares the kinds of streams in which the state of each slot is
// stored. State on one side only is reported as added or removed.
func (d *differ) handles(o *Operator) {
	if d.o.Ignore[KindHandles] {
		return
	}
	old, now := kindsOf(o.old), kindsOf(o.new)
	for slot := range old {
		if x, y := old[slot], now[slot]; x != 0 && y != 0 && x != y {
			d.add(KindHandles, o, nil, "%s is stored %s → %s", format.Slot(slot), x, y)
		}
	}
}

// kindSet is a set of kinds of streams.
type kindSet uint

var kindWords = [...]string{
	format.KindInline: "inline", format.KindRelative: "next to _metadata", format.KindAbsolute: "in files elsewhere",
	format.KindSegment: "in merged files", format.KindEmpty: "nowhere", format.KindChunks: "in chunks",
}

func (s kindSet) String() string {
	var all []string
	for k, word := range kindWords {
		if s>>k&1 != 0 {
			all = append(all, word)
		}
	}
	return strings.Join(all, " and ")
}

func kindsOf(op *format.Operator) (sets [8]kindSet) {
	sp := format.Savepoint{Operators: []*format.Operator{op}}
	_ = sp.EachStream(func(p format.Place, s format.Stream) error { // returns only the errors of f
		switch c := s.(type) {
		case *format.Chunks:
			if c.As != nil {
				s = c.As
			}
		case *format.Concat:
			return nil // not stored yet
		}
		sets[p.Slot] |= 1 << format.Kind(s)
		return nil
	})
	return sets
}
