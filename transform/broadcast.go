package transform

import (
	"context"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// BroadcastReport describes the replicas of one broadcast state.
type BroadcastReport struct {
	Operator *format.Operator
	State    string
	Bytes    int64 // of all replicas
	// Versions are the distinct maps, with the subtasks that hold them: one if all
	// replicas are equal. Maps are compared by their bytes: equal entries in another
	// order make a different map.
	Versions []BroadcastVersion
}

// BroadcastVersion is a map and the subtasks that hold it.
type BroadcastVersion struct {
	Bytes    int64
	Subtasks []int32
}

// DiagnoseBroadcasts compares the replicas of each broadcast state that o
// selects. A restore assigns one replica to a subtask: if they differ, the
// parallelism determines which are read at all. Equal replicas need no pruning:
// an .spt file stores them once. It holds one map at a time in memory.
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
