package transform

import (
	"context"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// ExpireOptions are the options of Expire.
type ExpireOptions struct {
	// Operators and States select keyed states; nil means all that have a time to live.
	Operators format.Selector
	States    format.Globs
	// TTL is the time to live, which a snapshot does not record. At is the time at which
	// the job reads the state. Both are required.
	TTL time.Duration
	At  time.Time
	// Jobs is the number of subtasks whose keyed state is built at once; 0 means one per
	// processor.
	Jobs int
}

// Expire removes the entries of keyed states whose time to live had ended: of lists the
// elements, of maps the entries. Flink does so when they are read, or in the background;
// until then they are in every snapshot. The report has the states with a time to live.
//
// Keyed state of an operator that lost entries is canonical, see [Canonical].
func Expire(ctx context.Context, in format.View, o ExpireOptions) (format.View, *FilterReport, error) {
	until := o.At.UnixMilli() - o.TTL.Milliseconds()
	report := &FilterReport{}
	codecs := map[*keyedSource][]value.EntryCodecs{}
	sp, names, err := report.rebuildKeyed(ctx, in, o.Operators, func(k *keyedOperator) (keyedRebuild, error) {
		hasTTL := map[format.Text]bool{}
		for _, all := range k.sources {
			for _, s := range all {
				c, err := value.EntryCodecsOf(ctx, in.Source, s.codec, s.handle)
				if err != nil {
					return keyedRebuild{}, err
				}
				codecs[s] = c
				for i, st := range s.schema.States {
					hasTTL[st.Name] = hasTTL[st.Name] || c[i].TTL
				}
			}
		}
		touches := func(st format.KeyedState) bool { return hasTTL[st.Name] && o.States.Match(st.Name.String()) }
		return keyedRebuild{touches: touches, lossy: true, jobs: o.Jobs, edit: func(_ *format.Subtask, s *keyedSource) (keyedEdit, error) {
			expired := func(e *format.KeyedEntry) ([]byte, bool, error) {
				if c := &codecs[s][e.State]; c.TTL && o.States.Match(s.schema.States[e.State].Name.String()) {
					v, left, err := c.Expire(e.Value, until)
					return v, left, format.At(err, "state %q", s.schema.States[e.State].Name)
				}
				return e.Value, true, nil
			}
			return keyedEdit{
				keep: func(e *format.KeyedEntry) (left bool, err error) {
					_, left, err = expired(e)
					return left, err
				},
				change: func(e *format.KeyedEntry) (err error) {
					e.Value, _, err = expired(e)
					return err
				},
			}, nil
		}}, nil
	})
	if err == nil {
		err = o.States.Check("state", names)
	}
	if err != nil {
		return in, nil, err
	}
	return in.With(sp), report, nil
}
