package command

import (
	"cmp"
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/browse"
	"github.com/savepoint-tools/spt/internal/ui"
)

// list makes a page of rows that are read at once. open returns the page of a row; nil
// if it has none.
func list(page *browse.Page, read func(ctx context.Context) ([]browse.Row, error), open func(ctx context.Context, row int64) (*browse.Page, error)) *browse.Page {
	var rows []browse.Row
	page.Total, page.Open = -1, open
	page.Rows = func(ctx context.Context, first int64, n int) ([]browse.Row, bool, error) {
		if rows == nil {
			all, err := read(ctx)
			if err != nil {
				return nil, true, err
			}
			rows = append([]browse.Row{}, all...)
		}
		from := min(first, int64(len(rows)))
		end := min(from+int64(n), int64(len(rows)))
		return rows[from:end], end == int64(len(rows)), nil
	}
	return page
}

// operators returns the first page.
func (s *browsing) operators() *browse.Page {
	var sum *summary.Summary
	page := &browse.Page{Title: s.title(), Columns: []string{"OPERATOR", "SIZE", "SUBTASKS"}, Command: s.command("inspect"), Compare: s.compare(nil)}
	return list(page, func(ctx context.Context) (rows []browse.Row, err error) {
		if sum, err = summary.Of(ctx, s.snap.Savepoint); err != nil {
			return nil, inContainer(err, s.snap)
		}
		for _, op := range sum.Operators {
			subtasks := ui.Count(int64(op.Present))
			if op.Missing > 0 {
				subtasks += " of " + ui.Count(int64(op.Present+op.Missing))
			}
			n := op.Bytes.State()
			rows = append(rows, browse.Row{Text: s.env.run.Label(op.Operator), Cells: []string{ui.Bytes(n), subtasks}, Bytes: n, Opens: true})
		}
		return rows, nil
	}, func(_ context.Context, row int64) (*browse.Page, error) { return s.operator(sum.Operators[row]), nil })
}

// operator returns the page of the states of an operator.
func (s *browsing) operator(op *summary.Operator) *browse.Page {
	flags := s.operatorFlags(op.Operator)
	page := &browse.Page{Title: s.env.run.Label(op.Operator), Columns: []string{"STATE", "SIZE", "COUNT", "KIND"}, Command: s.command("inspect", flags...),
		Types: s.types(op.Operator), Compare: s.compare(op.Operator)}
	var states []*catState
	if op.HasKeyed() {
		page.Lookup = func(ctx context.Context, key string) (*browse.Page, error) {
			return s.lookup(ctx, op.Operator, nil, key)
		}
	}
	return list(page, func(ctx context.Context) (rows []browse.Row, err error) {
		one := *s.snap.Savepoint
		one.Operators = []*format.Operator{op.Operator}
		if states, err = s.catter(catOptions{}).catStates(ctx, &one); err != nil {
			return nil, inContainer(err, s.snap)
		}
		keyed := 0
		for _, st := range states {
			if st.keyed != nil {
				keyed++
			}
		}
		for _, st := range states {
			rows = append(rows, s.stateRow(op, st, keyed))
		}
		for _, st := range op.States { // what has no elements or entries that spt reads one by one
			switch {
			case (st.Kind == summary.Keyed || st.Kind == summary.RawKeyed) && keyed > 1:
				rows = append(rows, browse.Row{Text: "all " + string(st.Kind) + " state", Cells: []string{ui.Bytes(st.Bytes), "", string(st.Kind)}, Bytes: st.Bytes})
			case st.Kind == summary.InFlight || st.Kind == summary.Coordinator || st.Kind == summary.Legacy:
				rows = append(rows, browse.Row{Text: string(st.Kind), Cells: []string{ui.Bytes(st.Bytes), "", string(st.Kind)}, Bytes: st.Bytes})
			}
		}
		return rows, nil
	}, func(_ context.Context, row int64) (*browse.Page, error) {
		if row >= int64(len(states)) {
			return nil, nil
		}
		st, of := states[row], states[row:row+1]
		for _, other := range states { // a subtask that cannot be read may hold it too
			if st.keyed != nil && other.unreadable() && other != st {
				of = append([]*catState{st}, other)
			}
		}
		return s.state(st, of), nil
	})
}

// stateRow returns the row of a state of an operator that has a number of keyed states.
func (s *browsing) stateRow(op *summary.Operator, st *catState, keyed int) browse.Row {
	row := browse.Row{Text: st.shown.Name, Bytes: -1, Opens: true}
	size, count := "", ""
	for _, sum := range op.States {
		switch {
		case st.keyed == nil && sum.Name == st.name && string(sum.Kind) == st.kind:
			row.Bytes, size = sum.Bytes, ui.Bytes(sum.Bytes)
			if count = ui.Count(sum.Elements); sum.Elements < 0 {
				count = ""
			}
		case keyed == 1 && st.keyed != nil && (sum.Kind == summary.Keyed || sum.Kind == summary.RawKeyed):
			row.Bytes, size = sum.Bytes, ui.Bytes(sum.Bytes)
		}
	}
	row.Cells = []string{size, count, st.kind}
	if st.unreadable() {
		row.Text = "keyed state"
		row.Problem = s.env.run.Hide(st.keyed[0].err.Error())
	}
	return row
}

// unreadable reports whether st is the handles of keyed state that cannot be read.
func (st *catState) unreadable() bool { return len(st.keyed) > 0 && st.keyed[0].err != nil }

// state returns the page of the subtasks that hold a state, or, as the others of all, that
// cannot be read.
func (s *browsing) state(st *catState, all []*catState) *browse.Page {
	page := &browse.Page{Title: cmp.Or(st.shown.Name, "keyed state"), Command: s.command("cat", s.stateFlags(st)...), Types: s.types(st.op), Compare: s.compare(st.op)}
	if st.keyed != nil {
		return s.keyedSubtasks(page, st, all)
	}
	page.Columns = []string{"SUBTASK", "SIZE", "ELEMENTS"}
	return list(page, func(ctx context.Context) (rows []browse.Row, err error) {
		for i := range st.parts {
			part := &st.parts[i]
			row := browse.Row{Text: fmt.Sprintf("subtask %d", part.subtask), Bytes: -1, Opens: true}
			sizes, err := summary.StateSizes(ctx, part.h)
			if err != nil {
				row.Problem = s.env.run.Hide(inContainer(err, s.snap).Error())
			} else {
				row.Bytes = sizes[part.state]
				row.Cells = []string{ui.Bytes(row.Bytes), ui.Count(partElements(part))}
			}
			rows = append(rows, row)
		}
		return rows, nil
	}, func(_ context.Context, row int64) (*browse.Page, error) { return s.elements(st, &st.parts[row]), nil })
}

// partElements returns how many elements a state of a handle has.
func partElements(part *catPart) int64 {
	if o := part.h.States[part.state].Offsets; o != nil {
		return o.Len()
	}
	return 0
}

// keyedSubtasks completes the page of a keyed state.
func (s *browsing) keyedSubtasks(page *browse.Page, st *catState, all []*catState) *browse.Page {
	parts := keyedParts(all)
	page.Columns = []string{"SUBTASK", "SIZE OF ALL STATES", "KEY GROUPS"}
	page.Lookup = func(ctx context.Context, key string) (*browse.Page, error) { return s.lookup(ctx, st.op, st, key) }
	return list(page, func(context.Context) (rows []browse.Row, err error) {
		for _, part := range parts {
			n := keyedBytes(part.keyed.h)
			row := browse.Row{Text: fmt.Sprintf("subtask %d", part.subtask), Cells: []string{ui.Bytes(n), part.keyed.h.KeyGroups().String()}, Bytes: n, Opens: true}
			if err := part.keyed.err; err != nil {
				row.Problem, row.Opens = s.env.run.Hide(err.Error()), false
			}
			rows = append(rows, row)
		}
		return rows, nil
	}, func(_ context.Context, row int64) (*browse.Page, error) {
		part := parts[row]
		p := s.entries(parts[row:row+1], fmt.Sprintf("subtask %d", part.subtask), s.command("cat", append(s.stateFlags(st), "--subtask", fmt.Sprint(part.subtask))...))
		p.Lookup, p.Types = page.Lookup, page.Types
		return p, nil
	})
}

// keyedBytes returns the bytes of the streams of a handle.
func keyedBytes(h format.KeyedHandle) int64 {
	return streamBytes(&format.Savepoint{Operators: []*format.Operator{{Subtasks: []*format.Subtask{{ManagedKeyed: h}}}}})
}
