package command

import (
	"sync"

	"github.com/savepoint-tools/spt/internal/ui"
)

// mapUse is which of --map fit a reference of a snapshot that was opened.
type mapUse struct {
	mu     sync.Mutex
	opened bool
	fit    []bool
}

func (u *mapUse) note(fit []bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.opened = true
	for i, ok := range fit {
		u.fit[i] = u.fit[i] || ok
	}
}

// unusedMaps reports which --map matched nothing, perhaps because of a typing mistake.
// It is silent after wrong usage, and about SPT_MAP, which serves many snapshots.
func (e *Env) unusedMaps(code int) error {
	u := e.mapUse
	if u == nil || !u.opened || code == exitUsage || code == exitCancelled {
		return nil
	}
	for i, m := range e.maps {
		if u.fit[i] {
			continue
		}
		if err := e.remark("--map %s: no absolute reference begins with %s", ui.Quote(e.common.maps[i]), ui.Quote(m.Old)); err != nil {
			return err
		}
	}
	return nil
}
