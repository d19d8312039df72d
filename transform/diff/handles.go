package diff

import (
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// handles compares in which kinds of places the state of each slot lies. What
// is only in one of them is a state added or removed.
func (d *differ) handles(o *Operator) {
	if d.o.Ignore[KindHandles] {
		return
	}
	old, now := places(o.old), places(o.new)
	for slot := range old {
		if x, y := old[slot], now[slot]; x != 0 && y != 0 && x != y {
			d.add(KindHandles, o, nil, "%s is stored %s → %s", format.Slot(slot), x, y)
		}
	}
}

// placeSet is a set of kinds of streams.
type placeSet uint

var placeWords = [...]string{
	format.KindInline: "inline", format.KindRelative: "next to _metadata", format.KindAbsolute: "in files elsewhere",
	format.KindSegment: "in merged files", format.KindEmpty: "nowhere", format.KindChunks: "in chunks",
}

func (s placeSet) String() string {
	var all []string
	for k, word := range placeWords {
		if s>>k&1 != 0 {
			all = append(all, word)
		}
	}
	return strings.Join(all, " and ")
}

func places(op *format.Operator) (sets [8]placeSet) {
	sp := format.Savepoint{Operators: []*format.Operator{op}}
	_ = sp.EachStream(func(p format.Place, s format.Stream) error { // gives only the errors of f
		switch c := s.(type) {
		case *format.Chunks:
			if c.As != nil {
				s = c.As
			}
		case *format.Concat:
			return nil // lies nowhere yet
		}
		sets[p.Slot] |= 1 << format.Kind(s)
		return nil
	})
	return sets
}
