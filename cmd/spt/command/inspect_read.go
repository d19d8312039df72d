package command

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/report/html"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// inspect opens a snapshot and looks at it. partial is what could not be read of it.
func (o *inspectOptions) inspect(ctx context.Context, env *Env, location string) (one *report.Inspect, partial []error, err error) {
	snap, damage, err := o.open(ctx, env, location)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	return o.look(ctx, env, location, snap, damage)
}

// look looks at a snapshot that was read up to damage, if that is not nil.
func (o *inspectOptions) look(ctx context.Context, env *Env, location string, snap *reader.Snapshot, damage error) (one *report.Inspect, partial []error, err error) {
	in := report.Inspected{Location: location, Picked: o.any(), Top: o.top, Wide: o.wide, Snapshot: snap, Damage: damage}
	if in.Savepoint, err = o.apply(env, snap.Savepoint); err != nil {
		return nil, nil, err
	}
	if in.Summary, err = summary.Of(ctx, in.Savepoint); err != nil {
		return nil, nil, format.InFile(err, snap.Container.Name)
	}
	headers, files := snap.Headers, true
	if snap.Remote() && location != stdinName && !o.files && !o.deep && !o.count.on {
		headers, files = snap.InlineHeaders, o.guard != nil || o.by == report.ByFile
	}
	if in.Headers, err = headers(ctx, in.Savepoint.Operators); err != nil {
		return nil, nil, err
	}
	if err := o.applyStates(env, in.Summary, in.Headers); err != nil {
		return nil, nil, err
	}
	if damage != nil {
		partial = append(partial, &salvaged{damage})
	}
	if len(o.ranges) > 0 || damage != nil {
		for _, op := range in.Summary.Operators {
			op.Missing = 0 // they were not picked, or follow the damage: the snapshot may have them
		}
	}
	if location == stdinName {
		in.Unchecked = errFromStdin
	} else if !files {
		in.Unchecked = errNotAsked
	} else if in.Files, err = snap.Files(ctx, in.Summary.Files); err != nil {
		return nil, nil, err
	}
	if o.deep {
		var unread error
		if in.Unions, unread, err = readUnions(ctx, env, snap, in.Summary); err != nil {
			return nil, nil, err
		}
		if unread != nil {
			partial = append(partial, unread)
		}
	}
	if o.count.on {
		if in.Count, err = o.count.run(ctx, env, snap, in.Savepoint, o.states); err != nil {
			return nil, nil, err
		}
		for _, op := range in.Count.Operators {
			for _, err := range op.Unread {
				partial = append(partial, inContainer(err, snap))
			}
		}
	}
	one = env.run.NewInspect(in)
	if o.groups {
		if err := one.AddKeyGroups(ctx, html.MaxGrouped, html.MaxGroups); err != nil {
			return nil, nil, inContainer(err, snap)
		}
	}
	if o.guard != nil {
		offenders, err := o.guard.check(one)
		if err != nil {
			return nil, nil, err
		}
		one.FailIf = &report.InspectGuard{Expression: o.failIf, Holds: len(offenders) > 0, For: offenders}
	}
	return one, partial, nil
}

// errFromStdin is why the files of a snapshot from standard input are not checked.
var errFromStdin = errors.New("read from standard input")

// errNotAsked is why the files of a snapshot that is not on this machine are not checked.
var errNotAsked = errors.New("--check-files looks for them")

func (o *inspectOptions) open(ctx context.Context, env *Env, location string) (snap *reader.Snapshot, damage, err error) {
	opts := env.readerOptions()
	if location == stdinName {
		if opts.Stores, err = env.readStdin(ctx); err != nil {
			return nil, nil, err
		}
	}
	if o.salvage {
		snap, damage, err = reader.Salvage(ctx, location, &opts)
	} else {
		snap, err = reader.Open(ctx, location, &opts)
	}
	if err != nil {
		return nil, nil, env.suggestPath(ctx, location, err)
	}
	env.run.LearnFiles(snap.Savepoint)
	return snap, damage, nil
}

// salvaged is the damage of a snapshot that was shown up to it.
type salvaged struct{ error }

func (e *salvaged) Unwrap() error { return e.error }

// Remedies leaves out what was done.
func (e *salvaged) Remedies() []finding.Remedy {
	return slices.DeleteFunc(reader.Remedies(e.error), func(m finding.Remedy) bool { return m.Action == finding.Salvage })
}

// readUnions reads the elements of all union states. What cannot be read is part
// of the answer; unread is the first such error.
func readUnions(ctx context.Context, env *Env, snap *reader.Snapshot, sum *summary.Summary) (reads map[*summary.State]report.UnionRead, unread, err error) {
	reads = map[*summary.State]report.UnionRead{}
	stop := env.reading("reading", someState(ctx, snap, statesOf(snap.Savepoint, func(_ *format.Operator, st *format.NamedState) bool { return st.Mode == format.ModeUnion })))
	defer stop()
	type stateOf struct {
		op   *format.Operator
		name string
	}
	states := map[stateOf]*summary.State{}
	in := snap.View()
	in.Savepoint = &format.Savepoint{Location: snap.Location}
	for _, op := range sum.Operators {
		in.Operators = append(in.Operators, op.Operator)
		for _, st := range op.States {
			if st.Kind == summary.Union && st.Elements > 0 {
				states[stateOf{op.Operator, st.Name}] = st
			}
		}
	}
	all, err := transform.DiagnoseUnions(ctx, in, transform.UnionOptions{Partial: true, TempDir: env.common.tmp, Jobs: env.readJobs(snap)})
	if err != nil {
		return nil, nil, inContainer(err, snap)
	}
	for _, r := range all {
		if st := states[stateOf{r.Operator, r.State}]; st != nil {
			reads[st] = report.UnionRead{UnionReport: r, Err: r.Err}
			unread = cmp.Or(unread, r.Err)
		}
	}
	return reads, inContainer(unread, snap), nil
}
