package orphans

import "slices"

// owners holds sets of snapshots. Most files of a directory belong to few different
// sets, so that a file needs only the number of its set. Set 0 is empty.
type owners struct {
	nodes []owner
	next  map[owner]int32
}

// owner is a set: another one, and a snapshot that is after all in it.
type owner struct{ rest, snapshot int32 }

func newOwners() *owners { return &owners{nodes: []owner{{}}, next: map[owner]int32{}} }

// add returns the set with a snapshot, which must not precede those in it.
func (o *owners) add(set, snapshot int32) int32 {
	if set != 0 && o.nodes[set].snapshot == snapshot {
		return set
	}
	n := owner{set, snapshot}
	id, ok := o.next[n]
	if !ok {
		id = int32(len(o.nodes))
		o.nodes = append(o.nodes, n)
		o.next[n] = id
	}
	return id
}

// members returns the snapshots of a set in order.
func (o *owners) members(set int32) []int32 {
	var all []int32
	for ; set != 0; set = o.nodes[set].rest {
		all = append(all, o.nodes[set].snapshot)
	}
	slices.Reverse(all)
	return all
}
