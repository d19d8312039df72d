package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/count"
)

// tooFew returns the error of a trend without two snapshots that can be read.
func (t *trend) tooFew(n int) error {
	text := fmt.Sprintf("%s that can be read: a trend needs at least two; left out:\n  %s", ui.Plural(int64(n), "snapshot"), t.Reasons())
	if !t.damaged { // they may be whole
		return errors.New(text)
	}
	return format.Errorf(format.ErrCorrupt, "%s", text)
}

// find lists the snapshots under a root, oldest first.
func (t *trend) find(ctx context.Context, root string) ([]string, error) {
	entries, err := t.env.list(ctx, root, reader.ListOptions{Options: t.env.readerOptions(), Depth: t.depth, Jobs: t.env.common.jobs})
	if err != nil {
		return nil, t.env.suggestPath(ctx, root, err)
	}
	var found []reader.Entry
	ids := map[int64]bool{}
	for _, e := range entries {
		switch {
		case e.State == reader.Damaged, e.State == reader.Unreadable:
			t.damaged = t.damaged || e.State == reader.Damaged
			t.LeaveOut(e.Path, cmp.Or(e.Reason, e.Problem))
		case e.Container.Name != "": // else there is nothing to read yet, or no longer
			found = append(found, e)
			ids[e.ID] = true
		}
	}
	byID := len(ids) == len(found) // a copy has lost its times, but not its ids
	slices.SortStableFunc(found, func(a, b reader.Entry) int {
		if byID {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Path, b.Path))
	})
	var paths []string
	for _, e := range found {
		paths = append(paths, e.Path)
	}
	return paths, nil
}

// addAll adds snapshots by add. Of three and more, those that cannot be read are left out.
func (t *trend) addAll(ctx context.Context, paths []string, add func(ctx context.Context, path string) error) error {
	progress := t.env.progress()
	progress.StartCount(int64(len(paths)), "opening snapshots")
	defer progress.Stop()
	for _, p := range paths {
		if err := add(ctx, p); err != nil {
			if ctx.Err() != nil || len(paths) == 2 {
				return err
			}
			t.damaged = t.damaged || errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrLimit)
			t.LeaveOut(p, err.Error())
		}
		progress.Add(1)
	}
	return nil
}

// add opens a snapshot and adds it, unless it changed while it was read.
func (t *trend) add(ctx context.Context, path string) error {
	snap, err := t.env.open(ctx, path)
	if err != nil {
		return err
	}
	return t.addSnapshot(ctx, path, snap, snap.Close)
}

// addSnapshot adds a snapshot if done, which is called when it was read, returns no error.
func (t *trend) addSnapshot(ctx context.Context, path string, snap *reader.Snapshot, done func() error) error {
	s, err := summary.Of(ctx, snap.Savepoint)
	if err != nil {
		err = format.InFile(err, snap.Container.Name)
	}
	picked := t.choose(snap)
	var counted *count.Report
	if t.count && err == nil {
		counted, err = t.entries(ctx, snap, picked)
	}
	if err := errors.Join(err, done()); err != nil {
		return err
	}
	chosen := among(picked)
	t.Add(path, snap, s, func(op *summary.Operator, st *summary.State) bool {
		if !chosen(op.Operator) {
			return false
		}
		if st.Name != "" {
			t.names = append(t.names, st.Name)
		}
		return len(t.states) == 0 || st.Name != "" && matches(t.states, st.Name)
	})
	if counted != nil {
		t.names = append(t.names, counted.Names...)
		t.AddCount(counted)
	}
	return nil
}

// entries counts the entries of the keyed state of operators.
func (t *trend) entries(ctx context.Context, snap *reader.Snapshot, ops []*format.Operator) (*count.Report, error) {
	ids := make([]format.OperatorID, len(ops))
	for i, op := range ops {
		ids[i] = op.ID
	}
	r, err := count.Keyed(ctx, snap.View(), count.Options{Operators: format.ByID(ids...), States: t.states, Jobs: t.env.readJobs(snap)})
	return r, inContainer(err, snap)
}

// choose returns the operators of a snapshot that --operator names. A snapshot need
// not have each, if another has.
func (t *trend) choose(snap *reader.Snapshot) []*format.Operator {
	if len(t.operators) == 0 {
		return snap.Operators
	}
	var picked []*format.Operator
	for _, want := range t.operators {
		p := pick{operators: []string{want}}
		ops, err := p.pickOperators(t.env, snap.Operators)
		if before, again := t.none[want]; err == nil || !again || before != nil {
			t.none[want] = err
		}
		picked = append(picked, ops...)
	}
	return picked
}
