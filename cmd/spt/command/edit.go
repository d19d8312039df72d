package command

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
)

// edit opens IN, lets change make a new model of it, and writes it or says what
// would be written. Every command that changes a snapshot runs through it.
func edit(ctx context.Context, env *Env, o writeOptions, args []string, change func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error)) (err error) {
	in, out := args[0], ""
	if len(args) == 2 {
		out = args[1]
	}
	snap, err := env.open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	stop := env.reading("reading", nil)
	sp, r, err := change(snap)
	stop()
	if err != nil {
		return inContainer(err, snap)
	}
	return sealEdit(ctx, env, o, in, out, snap, sp, r)
}

// sealEdit writes what an edit made of a snapshot, or says what would be
// written.
func sealEdit(ctx context.Context, env *Env, o writeOptions, in, out string, snap *reader.Snapshot, sp *format.Savepoint, r *report.Edit) error {
	if o.opts.Family == "" && out == "" {
		o.opts.Family = snap.Container.Family
	}
	plan, written, err := o.write(ctx, env, snap.With(sp), in, out)
	if err != nil {
		return inContainer(err, snap)
	}
	r.Write = written
	if len(r.Steps) == 0 {
		if r.StateBefore, err = stateBytes(ctx, snap.Savepoint); err == nil {
			r.StateAfter, err = stateBytes(ctx, sp)
		}
		if err != nil {
			return inContainer(err, snap)
		}
	}
	if snap.Container.Family == reader.Flink && plan.Family == reader.Flink {
		r.MetadataBefore, r.MetadataAfter = snap.Container.Size, plan.MetadataBytes
	}
	if err := env.answer(r); err != nil {
		return err
	}
	if r.Partial != "" {
		return &findings{"the result is not complete: " + r.Partial}
	}
	if !o.bare || len(written.Damaged) > 0 {
		if err := incomplete(plan, written); err != nil {
			return err
		}
	}
	if len(r.Skipped) > 0 {
		return &findings{"left as it is: " + report.Shorten(r.Skipped)}
	}
	return nil
}

// stateBytes returns the bytes of state of a snapshot.
func stateBytes(ctx context.Context, sp *format.Savepoint) (int64, error) {
	s, err := summary.Of(ctx, sp)
	if err != nil {
		return 0, err
	}
	return s.Bytes.State(), nil
}

// operatorBytes returns the bytes of state of each operator.
func operatorBytes(ctx context.Context, ops []*format.Operator) ([]int64, error) {
	sizes := make([]int64, len(ops))
	for i, op := range ops {
		var err error
		if sizes[i], err = stateBytes(ctx, &format.Savepoint{Operators: []*format.Operator{op}}); err != nil {
			return nil, err
		}
	}
	return sizes, nil
}
