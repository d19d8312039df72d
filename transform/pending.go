package transform

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
)

// PendingOptions are the options of Pending.
type PendingOptions struct {
	// Operators selects the operators; nil means all.
	Operators format.Selector
}

// PendingReport is what a restore would commit, abort or resume.
type PendingReport struct{ Sinks []*SinkPending }

// SinkPending is the commits of one operator.
type SinkPending struct {
	Operator  *format.Operator
	Commits   []*PendingCommit
	Undecoded []Undecoded
}

// PendingCommit is a commit and the element that holds it.
type PendingCommit struct {
	connector.Commit
	State   string
	Subtask int32
	Index   int64
}

// Pending returns the transactions and files in the states of sinks that a restore
// would commit, abort or resume, by operator, state, subtask and element.
func Pending(ctx context.Context, in format.View, o PendingOptions) (*PendingReport, error) {
	ops, err := o.Operators.Operators(in.Savepoint)
	if err != nil {
		return nil, err
	}
	r := &PendingReport{}
	for _, op := range ops {
		s, err := sinkPending(ctx, in, op, connector.IsCommits)
		if err != nil {
			return nil, err
		}
		if s != nil {
			r.Sinks = append(r.Sinks, s)
		}
	}
	return r, nil
}

// sinkPending returns the commits in the states that pick selects, or nil without
// one.
func sinkPending(ctx context.Context, in format.View, op *format.Operator, pick func(name string) bool) (*SinkPending, error) {
	s := &SinkPending{Operator: op}
	err := eachConnectorElement(ctx, in, op, pick, func(e connectorElement) error {
		if e.Decoded.IsNull() {
			s.undecoded(Undecoded{e.Name, e.Subtask.Index, e.Index, 1, e.Why})
			return nil
		}
		for _, c := range connector.Commits(e.Decoded) {
			if c.Undecoded != "" {
				s.undecoded(Undecoded{e.Name, e.Subtask.Index, e.Index, 1, c.Undecoded})
				continue
			}
			s.Commits = append(s.Commits, &PendingCommit{c, e.Name, e.Subtask.Index, e.Index})
		}
		return nil
	})
	if err != nil || len(s.Commits)+len(s.Undecoded) == 0 {
		return nil, err
	}
	return s, nil
}

func (s *SinkPending) undecoded(u Undecoded) { addUndecoded(&s.Undecoded, u) }

// addUndecoded adds u, or counts it with the one before that has the same reason.
func addUndecoded(all *[]Undecoded, u Undecoded) {
	if k := len(*all) - 1; k >= 0 {
		if last := &(*all)[k]; last.State == u.State && last.Subtask == u.Subtask && last.Why == u.Why {
			last.Elements++
			return
		}
	}
	*all = append(*all, u)
}

// addCommits adds what a restore would commit, abort or resume of the states of an
// operator that an edit removes or moves. State that cannot be
// read because it is damaged or missing is not an error of the edit: it is returned as
// not decoded.
func addCommits(ctx context.Context, all *[]*SinkPending, in format.View, op *format.Operator, pick func(name string) bool) error {
	s, err := sinkPending(ctx, in, op, func(name string) bool { return connector.IsCommits(name) && pick(name) })
	if isDamage(err) {
		s, err = &SinkPending{Operator: op, Undecoded: []Undecoded{{Subtask: -1, Why: err.Error()}}}, nil
	}
	if s != nil {
		*all = append(*all, s)
	}
	return err
}

// isDamage reports whether an error is about the bytes of state, not about reading
// them.
func isDamage(err error) bool {
	for _, kind := range []error{format.ErrCorrupt, format.ErrTruncated, format.ErrMissing, format.ErrUnsupported, format.ErrLimit} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Count returns how many commits have a fate.
func (s *SinkPending) Count(fate connector.Fate) (n int) {
	for _, c := range s.Commits {
		if c.Fate == fate {
			n++
		}
	}
	return n
}

func every(string) bool { return true }
