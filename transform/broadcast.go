package transform

import (
	"context"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// BroadcastReport is what is known of one broadcast state.
type BroadcastReport struct {
	Operator *format.Operator
	State    string
	Bytes    int64 // of all copies
	// Versions are the different maps, by the subtasks that hold them: one
	// where all copies are equal. Maps are compared by their bytes: two with
	// the same entries in another order count as different.
	Versions []BroadcastVersion
}

// BroadcastVersion is a map, and who holds it.
type BroadcastVersion struct {
	Bytes    int64
	Subtasks []int32
}

// DiagnoseBroadcasts compares the copies of each broadcast state that o
// chooses. A restore gives a subtask one copy: where they differ, it
// depends on the parallelism which are read at all. Equal copies need no
// pruning: an .spt file stores them once. One map at a time is in memory.
func DiagnoseBroadcasts(ctx context.Context, in format.View, o UnionOptions) ([]*BroadcastReport, error) {
	pick, err := o.pick(in)
	if err != nil {
		return nil, err
	}
	hash := hash128.New()
	var all []*BroadcastReport
	for _, u := range statesOf(in.Savepoint, format.ModeBroadcast, pick) {
		r := &BroadcastReport{Operator: u.op, State: u.name.String()}
		at := map[hash128.Digest]int{}
		err := u.each(ctx, in, func(i int, _ int64, value []byte) error {
			d := hash.Sum(value)
			k, ok := at[d]
			if !ok {
				k = len(r.Versions)
				at[d] = k
				r.Versions = append(r.Versions, BroadcastVersion{Bytes: int64(len(value))})
			}
			r.Versions[k].Subtasks = append(r.Versions[k].Subtasks, u.subtasks[i])
			r.Bytes += int64(len(value))
			return nil
		})
		if err != nil {
			return nil, format.At(err, "operator %q", u.op.Label())
		}
		all = append(all, r)
	}
	return all, nil
}
