package report

import (
	"cmp"
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// KeyGroups is how the keyed state of an operator is distributed over key groups.
type KeyGroups struct {
	Operator    string // its label
	ID          string
	Parallelism int32
	// Bytes is by key group, of all key groups of the operator.
	Bytes []int64
	// Counted says that the bytes are of entries that were read; else they follow from the
	// offsets in the description, as the state is stored.
	Counted bool
}

// KeyGroupsOf is the distribution of the keyed state of several operators.
type KeyGroupsOf struct {
	Operators []KeyGroups
	Left      int // operators with keyed state that are not among them
	// Unknown counts the operators of Left whose distribution only their entries show: tables of
	// RocksDB and changelogs.
	Unknown int
}

// AddKeyGroups finds how the keyed state of the largest operators is distributed, of up to
// most operators and limit key groups together. It reads offsets, and must be called
// before the snapshot is closed.
func (x *Inspect) AddKeyGroups(ctx context.Context, most, limit int) error {
	byID := map[string]*format.Operator{}
	for _, op := range x.savepoint.Operators {
		byID[op.ID.String()] = op
	}
	for i := range x.Operators {
		op := &x.Operators[i]
		if !slices.ContainsFunc(op.States, func(s InspectState) bool { return s.KeyGroups > 0 }) {
			continue
		}
		if len(x.groups.Operators) == most {
			x.groups.Left++
			continue
		}
		k := KeyGroups{Operator: op.label, ID: op.ID, Parallelism: op.Parallelism}
		if op.Skew != nil {
			k.Counted = true
			for _, g := range op.Skew.groups {
				k.Bytes = append(k.Bytes, g.Bytes)
			}
		} else if of := byID[op.ID]; of != nil {
			var err error
			if k.Bytes, err = groupBytes(ctx, of); err != nil {
				return err
			}
		}
		switch {
		case k.Bytes == nil:
			x.groups.Left++
			x.groups.Unknown++
		case len(k.Bytes) > limit:
			x.groups.Left++
		default:
			limit -= len(k.Bytes)
			x.groups.Operators = append(x.groups.Operators, k)
		}
	}
	return nil
}

// KeyGroups returns what AddKeyGroups found.
func (x *Inspect) KeyGroups() KeyGroupsOf { return x.groups }

// groupsIn is the offsets of key groups in one stream.
type groupsIn struct {
	size int64
	all  []groupAt
}

type groupAt struct {
	at    int64
	group int32
}

// groupBytes returns the bytes of each key group of an operator as they are stored, or nil
// if a handle does not record where its key groups begin. After a rescale several
// handles may refer to one stream, each for some of its key groups: a key group
// extends to the next one that any of them has.
func groupBytes(ctx context.Context, op *format.Operator) ([]int64, error) {
	if op.MaxParallelism < 1 || op.MaxParallelism > format.MaxKeyGroups {
		return nil, nil
	}
	streams := map[format.StreamKey]*groupsIn{}
	var apart []*groupsIn // inline: no two handles refer to one
	known := true
	var err error
	for _, sub := range op.Subtasks {
		format.EachKeyed(sub.ManagedKeyed, func(h format.KeyedHandle) {
			g, full := h.(*format.KeyGroups)
			if !full || g.Offsets == nil {
				known = false
			}
			if !known || err != nil {
				return
			}
			in := &groupsIn{size: format.SizeOf(g.Data)}
			if _, _, ok := format.Reference(g.Data); !ok {
				apart = append(apart, in)
			} else if key := g.Data.Key(); streams[key] == nil {
				streams[key] = in
			} else {
				in = streams[key]
			}
			err = g.EachKeyGroup(ctx, func(group int32, at int64) error {
				in.all = append(in.all, groupAt{at, group})
				return nil
			})
		})
		if !known || err != nil {
			return nil, err
		}
	}
	for _, in := range streams {
		apart = append(apart, in)
	}
	bytes := make([]int64, op.MaxParallelism)
	for _, in := range apart {
		slices.SortFunc(in.all, func(a, b groupAt) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.group, b.group)) })
		in.all = slices.Compact(in.all)
		for i, g := range in.all {
			end := in.size
			if i+1 < len(in.all) {
				end = in.all[i+1].at
			}
			if g.group >= 0 && int(g.group) < len(bytes) && end > g.at {
				bytes[g.group] += end - g.at
			}
		}
	}
	return bytes, nil
}
