package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/browse"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
)

// lookup returns the page of the entries of a key, of one state or, if st is nil, of all
// keyed states of an operator.
func (s *browsing) lookup(ctx context.Context, op *format.Operator, st *catState, key string) (*browse.Page, error) {
	one := *s.snap.Savepoint
	one.Operators = []*format.Operator{op}
	c := s.catter(catOptions{entryPick: entryPick{key: key}})
	s.took()
	states, err := c.catStates(ctx, &one)
	if err != nil {
		return nil, inContainer(err, s.snap)
	}
	name, flags := "cat", s.operatorFlags(op)
	if st != nil {
		states = slices.DeleteFunc(states, func(o *catState) bool { return (o.name != st.name || o.kind != st.kind) && !o.unreadable() })
		name, flags = "get", s.stateFlags(st)
		if err := c.checkEntries(states); err != nil {
			return nil, err
		}
	}
	page := s.entriesOf(c, keyedParts(states), "key "+key, s.command(name, append(flags, "--key", shell.Quote(key))...))
	page.Note = s.took()
	return page, nil
}

// entries returns the page of the entries of keyed state in some handles.
func (s *browsing) entries(parts []*catPart, title, command string) *browse.Page {
	return s.entriesOf(s.catter(catOptions{}), parts, title, command)
}

func (s *browsing) entriesOf(c *catter, parts []*catPart, title, command string) *browse.Page {
	p := &entryPage{s: s, c: c, parts: parts}
	for _, part := range parts {
		seen := 0
		for _, st := range part.keyed.states {
			if st != nil {
				seen++
			}
		}
		p.named = p.named || seen > 1
	}
	page := &browse.Page{Title: title, Columns: []string{"ENTRY", "SIZE", "KEY GROUP"}, Total: -1, Command: command, Rows: p.rows, Close: p.close}
	page.Open = func(ctx context.Context, row int64) (opened *browse.Page, err error) {
		_, err = p.read(ctx, row, 1, func(st *catState, it *catItem, broken error) error {
			if broken != nil {
				return broken
			}
			opened, err = s.item(c, st, it, fmt.Sprint(row), command)
			return err
		})
		return opened, err
	}
	return page
}

// entryPage reads entries of keyed state, whose numbers only reading tells.
type entryPage struct {
	s     *browsing
	c     *catter
	parts []*catPart
	named bool // entries are of several states

	marks  []entryMark // where parts of the page begin, in order
	now    entryMark   // of the entry that next returns
	reader *entryReader
	ctx    context.Context // of reader; it outlives one read
	cancel context.CancelFunc
}

// entryMark is where an entry is: number skip of a key group, or of all of a part if
// whole is set.
type entryMark struct {
	row, skip int64
	part      int
	group     int32
	whole     bool
}

// close implements [browse.Page].Close.
func (p *entryPage) close() {
	p.closeReader()
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
	}
}

func (p *entryPage) closeReader() {
	if p.reader != nil {
		p.reader.scan.close()
	}
	p.reader = nil
}

// open makes the first entry of the key group of a mark, or of its part, the next one.
// A part that cannot be read has no reader.
func (p *entryPage) open(m entryMark) {
	p.closeReader()
	p.now = entryMark{row: m.row - m.skip, part: m.part, group: m.group, whole: true}
	if m.part >= len(p.parts) || p.parts[m.part].keyed.err != nil {
		return
	}
	part := p.parts[m.part]
	groups := part.keyed.h.KeyGroups()
	if m.whole {
		p.now.group = -1 // known with the first entry
	} else {
		groups = groups.Intersect(format.KeyGroupRange{First: m.group, Count: format.MaxKeyGroups})
	}
	p.reader = newEntryReader(p.ctx, p.c, part, groups)
	p.now.whole = len(p.reader.scan.passes) > 1 // key groups come again in each pass
}

// next reads the next entry into it, or returns io.EOF. broken is why it, or what follows
// in its part, cannot be read.
func (p *entryPage) next(it *catItem) (st *catState, broken, err error) {
	for {
		if p.now.part >= len(p.parts) {
			return nil, nil, io.EOF
		}
		part := p.parts[p.now.part]
		if err = part.keyed.err; err == nil {
			if p.reader == nil {
				p.open(p.now)
			}
			err = p.reader.next(it)
		}
		switch {
		case p.ctx.Err() != nil:
			return nil, nil, p.ctx.Err()
		case err == io.EOF:
			p.open(entryMark{row: p.now.row, part: p.now.part + 1, whole: true})
			continue
		case err != nil && !errors.As(err, new(*notReadable)):
			broken = p.c.placed(err, part)
			p.open(entryMark{row: p.now.row + 1, part: p.now.part + 1, whole: true})
			return nil, broken, nil
		}
		if it.keyed != nil && p.now.group != it.keyed.KeyGroup {
			p.now.group = it.keyed.KeyGroup
			if !p.now.whole {
				p.now.skip = 0
			}
		}
		p.now.row++
		p.now.skip++
		return part.keyed.states[it.state], err, nil
	}
}

// mark returns where the next entry is.
func (p *entryPage) mark() entryMark {
	m := p.now
	m.whole = m.whole || m.group < 0
	return m
}

// seek makes next return the entry of a row.
func (p *entryPage) seek(row int64) error {
	if p.now.row == row && p.ctx != nil {
		return nil
	}
	from := entryMark{whole: true}
	if i, _ := slices.BinarySearchFunc(p.marks, row+1, func(m entryMark, row int64) int { return cmp.Compare(m.row, row) }); i > 0 {
		from = p.marks[i-1]
	}
	if p.now.row > row || p.now.row < from.row || p.reader == nil {
		p.open(from)
	}
	var it catItem
	for p.now.row < row {
		if _, _, err := p.next(&it); err != nil {
			return err
		}
	}
	return nil
}

// read calls f with up to n entries, from number first on.
func (p *entryPage) read(ctx context.Context, first int64, n int, f func(st *catState, it *catItem, broken error) error) (end bool, err error) {
	if p.cancel == nil {
		p.ctx, p.cancel = context.WithCancel(p.s.life)
		p.open(entryMark{whole: true})
	}
	stop := context.AfterFunc(ctx, p.cancel)
	defer func() {
		stop()
		if ctx.Err() != nil { // the reader may have stopped anywhere
			p.close()
			end, err = false, ctx.Err()
		}
		if err == io.EOF {
			end, err = true, nil
		}
	}()
	if err := p.seek(first); err != nil {
		return false, err
	}
	if i := len(p.marks); p.reader != nil && (i == 0 || p.marks[i-1].row < first) {
		p.marks = append(p.marks, p.mark())
	}
	var bytes int64
	for range n {
		var it catItem
		st, broken, err := p.next(&it)
		if err != nil {
			return false, err
		}
		if err := f(st, &it, broken); err != nil {
			return false, err
		}
		if bytes += it.size(); bytes >= pageBytes {
			break
		}
	}
	return false, nil
}

// rows implements [browse.Page].Rows.
func (p *entryPage) rows(ctx context.Context, first int64, n int) (rows []browse.Row, end bool, err error) {
	end, err = p.read(ctx, first, n, func(st *catState, it *catItem, broken error) error {
		if broken != nil {
			rows = append(rows, browse.Row{Bytes: -1, Problem: p.s.env.run.Hide(broken.Error())})
			return nil
		}
		row := p.s.row(p.c, st, it)
		row.Cells = append(row.Cells, ui.Count(int64(it.keyed.KeyGroup)))
		if p.named {
			row.Text = st.shown.Name + ": " + row.Text
		}
		rows = append(rows, row)
		return nil
	})
	return rows, end, err
}
