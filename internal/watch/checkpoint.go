package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/trend"
)

// Checkpoint is what is kept of a checkpoint that was read. It does not change.
type Checkpoint struct {
	Path    string
	ID      int64
	Written time.Time // of _metadata; zero if the store does not tell

	Bytes          int64 // of state
	InlineBytes    int64 // of it, in _metadata
	MetadataBytes  int64 // size of _metadata
	Operators      int
	Files          int
	MissingFiles   int
	WrongFiles     int     // not of the recorded length
	UncheckedFiles int     // nobody looked for them, or they are outside
	States         []State // largest first
	MoreStates     int     // states beyond the number that is kept

	// Holds has the rules with an expression that hold, and what for.
	Holds map[string][]string
}

// State is one state of an operator in a checkpoint.
type State struct {
	StateID
	Operator          string // its best name
	Bytes             int64
	InlineBytes       int64
	Elements          int64 // -1: not counted
	UnionRestoreBytes int64 // of union state: what a restore loads into all subtasks
	MayBeMultiplied   bool
}

// StateID identifies a state in all checkpoints of a job.
type StateID struct{ Operator, Kind, Name string }

// Union reports whether it is union state.
func (s *State) Union() bool { return s.Kind == unionKind }

const unionKind = "union"

// Complete reports whether no file is known to be missing or wrong.
func (c *Checkpoint) Complete() bool { return c.MissingFiles == 0 && c.WrongFiles == 0 }

// Of returns what is kept of a checkpoint: at most some of its states, the largest.
func Of(r *report.Inspect, written time.Time, most int) *Checkpoint {
	c := &Checkpoint{
		Path: r.Path, ID: r.CheckpointID, Written: written,
		Bytes: r.Bytes.Total, InlineBytes: r.Bytes.Inline, MetadataBytes: r.Size, Operators: r.OperatorCount, Files: r.FileCount,
		MissingFiles: len(r.MissingFiles), WrongFiles: len(r.WrongFiles), UncheckedFiles: len(r.NotChecked) + len(r.OutsideFiles),
	}
	for i := range r.Operators {
		op := &r.Operators[i]
		for k := range op.States {
			st := &op.States[k]
			s := State{
				StateID: StateID{op.ID, st.Kind, st.Name}, Operator: op.Label(),
				Bytes: st.Bytes, InlineBytes: st.InlineBytes, Elements: -1, UnionRestoreBytes: st.UnionRestoreBytes, MayBeMultiplied: st.MayBeMultiplied,
			}
			if st.Elements != nil {
				s.Elements = *st.Elements
			}
			c.States = append(c.States, s)
		}
	}
	slices.SortStableFunc(c.States, func(a, b State) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if more := len(c.States) - most; more > 0 {
		c.States, c.MoreStates = slices.Clone(c.States[:most]), more
	}
	return c
}

// point returns the position of the checkpoint in a trend.
func (c *Checkpoint) point() trend.Point { return trend.Point{ID: c.ID, Time: c.Written} }

// older orders checkpoints by time, and by id where the time is the same or unknown. A
// job that starts again without its history begins with id 1.
func older(a, b *Checkpoint) int {
	return cmp.Or(a.Written.Compare(b.Written), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Path, b.Path))
}
