package diff

import (
	"maps"

	"github.com/savepoint-tools/spt/format"
)

// legacy compares the streams of legacy operator state, subtask by
// subtask.
func (d *differ) legacy(o *Operator, st *State) error {
	if d.o.Ignore[KindLegacy] {
		return nil
	}
	of := func(in format.View, op *format.Operator) (map[fileContent]bool, error) {
		var all []rangeOf
		for _, sub := range op.Subtasks {
			for _, s := range sub.Legacy {
				if s == nil {
					continue
				}
				n, err := d.size(in, s)
				if err != nil {
					return nil, err
				}
				all = append(all, rangeOf{s, 0, n})
			}
		}
		return d.contents(in, all)
	}
	x, err := of(d.a, o.old)
	if err != nil {
		return format.InFile(err, d.a.Location)
	}
	y, err := of(d.b, o.new)
	err = format.InFile(err, d.b.Location)
	if err == nil && !maps.Equal(x, y) {
		d.add(KindLegacy, o, st, "legacy state changed")
	}
	return err
}
