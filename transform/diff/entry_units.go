package diff

import (
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/work"
)

// entryUnit is about how many bytes of each side a unit reads: their tables are small
// enough for a processor's cache.
const entryUnit = 2 << 20

// divide divides the entries into units: if they are identified by their key group too,
// into consecutive ranges of key groups. The division does not depend on the number of
// jobs.
func (c *keyedEntries) divide() []work.Unit {
	all := work.Unit{Job: work.CompareEntries, State: work.All, Count: work.All}
	if !c.byGroup {
		return []work.Unit{all}
	}
	// The difference of each key group from the one before it: in bytes on each side, 0
	// where no handle is, and in the number of handles that must not be divided before
	// it.
	var bytes [2][format.MaxKeyGroups + 1]int64
	var inside [format.MaxKeyGroups + 2]int
	end := int32(0)
	for side, handles := range c.handles {
		for _, h := range handles {
			r := h.Handle.KeyGroups()
			if r.First < 0 || r.Count < 0 || int64(r.First)+int64(r.Count) > format.MaxKeyGroups {
				return []work.Unit{all} // the codec says what is wrong
			}
			if r.Count == 0 {
				continue
			}
			share := min(work.SizeOf(h.Handle), work.MaxRanges*c.d.unit)/int64(r.Count) + 1
			bytes[side][r.First] += share
			bytes[side][r.First+r.Count] -= share
			if _, whole := h.Handle.(*format.Changelog); whole { // all of its changes are read for any key group
				inside[r.First+1]++
				inside[r.First+r.Count]--
			}
			end = max(end, r.First+r.Count)
		}
	}
	var units []work.Unit
	var now, sum [2]int64
	undivided := 0
	for g := range end {
		undivided += inside[g]
		for side := range now {
			now[side] += bytes[side][g]
		}
		if _, differs := slices.BinarySearch(c.groups, g); !differs && c.groups != nil || now == [2]int64{} {
			continue
		}
		if last := len(units) - 1; last >= 0 && (undivided > 0 || max(sum[0]+now[0], sum[1]+now[1]) <= c.d.unit) {
			units[last].Count = int64(g) - units[last].First + 1
		} else {
			u := all
			u.First, u.Count = int64(g), 1
			units = append(units, u)
			sum = [2]int64{}
		}
		for side := range sum {
			sum[side] += now[side]
		}
	}
	return units
}

// selections are the key groups of a handle that a unit compares, in runs.
func (c *keyedEntries) selections(u work.Unit, h format.KeyedHandle) (all []format.KeyedSelection) {
	r := h.KeyGroups()
	switch {
	case u.Count == work.All && c.groups == nil:
		return []format.KeyedSelection{{}}
	case u.Count != work.All:
		r = r.Intersect(u.Groups())
	}
	if r.Count > 0 && c.groups == nil {
		return []format.KeyedSelection{{Groups: r}}
	}
	first, _ := slices.BinarySearch(c.groups, r.First)
	for _, g := range c.groups[first:] {
		if r.Count <= 0 || g > r.Last() {
			break
		}
		if n := len(all) - 1; n >= 0 && all[n].Groups.Last()+1 == g {
			all[n].Groups.Count++
			continue
		}
		all = append(all, format.KeyedSelection{Groups: format.KeyGroupRange{First: g, Count: 1}})
	}
	return all
}
