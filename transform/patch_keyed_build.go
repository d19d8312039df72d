package transform

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// changed reports whether something changes in the keyed state of the operator.
func (of *keyedPatch) changed() bool {
	return slices.ContainsFunc(of.sources, (*patchSource).changed)
}

func (s *patchSource) changed() bool { return len(s.edits)+len(s.added) > 0 }

// buildKeyed returns the savepoint with the keyed state in which something changes built
// again.
func (p *patch) buildKeyed(ctx context.Context) (*format.Savepoint, error) {
	return p.in.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		of := p.keyed[op.ID]
		if of == nil || !of.changed() {
			return op, nil
		}
		r := keyedRebuild{
			jobs:    1, // edits count in one report
			only:    map[*format.Subtask]bool{},
			touches: byName(func(name string) bool { return of.states[name] != nil }),
			edit: func(_ *format.Subtask, source *keyedSource) (keyedEdit, error) {
				i := slices.IndexFunc(of.sources, func(s *patchSource) bool { return s.keyedSource == source })
				return of.sources[i].edit(), nil
			},
		}
		for _, s := range of.sources {
			r.only[s.sub] = r.only[s.sub] || s.changed()
			s.insert()
		}
		out, n, err := of.k.rebuild(ctx, r)
		p.report.Entries += n
		return out, err
	})
}

// edit returns what changes in the entries of the source.
func (s *patchSource) edit() keyedEdit {
	if len(s.edits) == 0 {
		return keyedEdit{}
	}
	var id []byte
	find := func(e *format.KeyedEntry) (edit entryEdit, ok bool) {
		if s.groups[e.KeyGroup] {
			id = entryID(id[:0], e)
			edit, ok = s.edits[string(id)]
		}
		return edit, ok
	}
	return keyedEdit{
		keep: func(e *format.KeyedEntry) (bool, error) {
			edit, _ := find(e)
			return !edit.removed, nil
		},
		change: func(e *format.KeyedEntry) error {
			if edit, ok := find(e); ok {
				e.Value = edit.value
			}
			return nil
		},
	}
}

// insert lets the source have the entries that are added.
func (s *patchSource) insert() {
	if len(s.added) == 0 {
		return
	}
	slices.SortFunc(s.added, func(a, b format.KeyedEntry) int { return compareEntries(&a, &b) })
	open := s.open
	s.open = func(ctx context.Context, src format.Source, sel format.KeyedSelection) (format.KeyedCursor, error) {
		sel.Whole = false // entries are ordered by their parts
		cur, err := open(ctx, src, sel)
		if err != nil {
			return nil, err
		}
		c := &insertCursor{KeyedCursor: cur}
		for _, e := range s.added {
			if sel.Has(e) {
				c.added = append(c.added, e)
			}
		}
		return c, nil
	}
}

// compareEntries compares by key group, state, and the parts of the key.
func compareEntries(a, b *format.KeyedEntry) int {
	return cmp.Or(
		cmp.Compare(a.KeyGroup, b.KeyGroup), cmp.Compare(a.State, b.State), cmp.Compare(a.Time, b.Time),
		bytes.Compare(a.Key, b.Key), bytes.Compare(a.Namespace, b.Namespace), bytes.Compare(a.UserKey, b.UserKey),
	)
}

// insertCursor is a cursor with more entries: each before the first one that is greater.
type insertCursor struct {
	format.KeyedCursor
	added []format.KeyedEntry
	ahead bool // head and err are the next of the KeyedCursor
	head  format.KeyedEntry
	err   error
}

// Next implements [format.KeyedCursor].
func (c *insertCursor) Next() (format.KeyedEntry, error) {
	if !c.ahead {
		c.head, c.err = c.KeyedCursor.Next()
		c.ahead = true
	}
	if len(c.added) > 0 && (c.err == io.EOF || c.err == nil && compareEntries(&c.added[0], &c.head) < 0) {
		e := c.added[0]
		c.added = c.added[1:]
		return e, nil
	}
	c.ahead = c.err != nil
	return c.head, c.err
}
