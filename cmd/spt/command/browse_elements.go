package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/browse"
	"github.com/savepoint-tools/spt/internal/work"
)

// pageBytes is about how many bytes of elements or entries are read for one part of a
// page: large ones come in smaller parts.
const pageBytes = 1 << 20

// elements returns the page of the elements, or of the entries of the map, of a state in
// one subtask.
func (s *browsing) elements(st *catState, part *catPart) *browse.Page {
	command := s.command("cat", append(s.stateFlags(st), "--subtask", fmt.Sprint(part.subtask))...)
	p := &elementPage{s: s, st: st, part: part, count: partElements(part)}
	page := &browse.Page{Title: fmt.Sprintf("subtask %d", part.subtask), Columns: []string{"ELEMENT", "SIZE"}, Total: p.count, Command: command, Types: s.types(st.op), Rows: p.rows}
	if st.mode == format.ModeBroadcast && st.kind != "raw" { // its one element is a map of entries
		page.Total, page.Columns[0] = -1, "ENTRY"
	}
	page.Open = func(ctx context.Context, row int64) (opened *browse.Page, err error) {
		for _, raw := range []bool{false, true} { // as it is stored if it cannot be decoded
			c := s.catter(catOptions{raw: raw})
			_, _, err = p.read(ctx, c, row, 1, func(it *catItem) (err error) {
				opened, err = s.item(c, st, it, fmt.Sprint(row), command)
				return err
			})
			if !errors.As(err, new(*notReadable)) || !p.isList() {
				break
			}
		}
		return opened, err
	}
	return page
}

// elementPage reads elements of a state in one subtask.
type elementPage struct {
	s     *browsing
	st    *catState
	part  *catPart
	count int64 // of elements: 1 is the map of broadcast state
}

// rows implements [browse.Page].Rows.
func (p *elementPage) rows(ctx context.Context, first int64, n int) (rows []browse.Row, end bool, err error) {
	c := p.s.catter(catOptions{})
	add := func(c *catter) func(it *catItem) error {
		return func(it *catItem) error {
			row := p.s.row(c, p.st, it)
			row.Text = fmt.Sprintf("%d  %s", it.index, row.Text)
			rows = append(rows, row)
			return nil
		}
	}
	for {
		var next int64
		next, end, err = p.read(ctx, c, first+int64(len(rows)), n-len(rows), add(c))
		if !errors.As(err, new(*notReadable)) || !p.isList() || ctx.Err() != nil {
			return rows, end, err
		}
		// It is shown as it is stored. The elements around it can still be read.
		raw := p.s.catter(catOptions{raw: true})
		if _, end, rerr := p.read(ctx, raw, next, 1, add(raw)); rerr != nil {
			return rows, end, err
		}
		rows[len(rows)-1].Problem = p.s.env.run.Hide(err.Error())
		if end = next+1 == p.count; end || len(rows) == n {
			return rows, end, nil
		}
	}
}

// isList reports whether rows are elements, rather than entries of a map.
func (p *elementPage) isList() bool { return p.st.mode != format.ModeBroadcast || p.st.kind == "raw" }

// read calls f with up to n elements, from number first on. next is the one that
// follows.
func (p *elementPage) read(ctx context.Context, c *catter, first int64, n int, f func(*catItem) error) (next int64, end bool, err error) {
	next = first
	u := work.Unit{Job: work.ReadElements, Handle: p.part.handle, State: p.part.state, Count: work.All}
	if p.isList() {
		if first >= p.count {
			return first, true, nil
		}
		u.First, u.Count = first, min(int64(n), p.count-first)
	}
	c.from = first
	it := catItem{part: p.part}
	var bytes int64
	var failed error // of f
	_, err = c.part(ctx, u, p.st, &it, func() error {
		if it.index < first { // the whole map, which is not decoded, has one row
			return nil
		}
		if failed = f(&it); failed != nil {
			return failed
		}
		next, bytes = it.index+1, bytes+it.size()
		if next-first >= int64(n) || bytes >= pageBytes {
			return errEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return next, p.isList() && next == p.count, nil
	case failed != nil:
		return next, false, failed
	case err != nil:
		return next, false, c.placed(err, p.part)
	}
	return next, !p.isList() || next == p.count, nil
}
