package diff

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
)

// snapshot compares the fields of the savepoint itself.
func (d *differ) snapshot() {
	if d.a.ID != d.b.ID {
		d.add(KindID, nil, nil, "checkpoint %d → %d", d.a.ID, d.b.ID)
	}
	if x, y := kindText(d.out.Old.Kind), kindText(d.out.New.Kind); x != y {
		d.add(KindSnapshot, nil, nil, "%s → %s", x, y)
	}
	old, now := mastersText(d.a.Masters), mastersText(d.b.Masters)
	switch {
	case len(d.a.Masters) != len(d.b.Masters):
		d.add(KindMasters, nil, nil, "%d → %d master states", len(d.a.Masters), len(d.b.Masters))
	case old != now:
		d.add(KindMasters, nil, nil, "the master states differ")
	}
}

func kindText(k summary.Kind) string {
	parts := []string{k.Type}
	if k.Format != "" {
		parts = append(parts, k.Format)
	}
	if k.Stopped {
		parts = append(parts, "taken to stop the job")
	}
	if k.Changelog {
		parts = append(parts, "changelog")
	}
	if k.Unaligned {
		parts = append(parts, "unaligned")
	}
	return strings.Join(parts, ", ")
}

func mastersText(all []format.MasterState) string {
	var b strings.Builder
	for _, m := range all {
		in := &format.Inline{Data: m.Data}
		fmt.Fprintf(&b, "%q %d %s\n", m.Name.String(), m.Version, in.Key())
	}
	return b.String()
}
