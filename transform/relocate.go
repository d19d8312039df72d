package transform

import (
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Prefix replaces the beginning of references.
type Prefix struct{ Old, New string }

// Relocated is a reference that a relocation looked at.
type Relocated struct {
	From, To string
	Handles  int
}

// Relocation is what Relocate did.
type Relocation struct {
	Changed   []Relocated // each reference once, in file order
	Unmatched []Relocated // absolute references that no prefix fits
	Relative  int         // references beside _metadata, which move with it
}

// Relocate rewrites absolute references by prefix, the longest that fits first,
// at whole elements of a path; the spellings of one object store count as one.
// Streams and the folders that file merging names are rewritten and noted. Names of inline
// state look like paths and are none: they stay.
func Relocate(sp *format.Savepoint, prefixes []Prefix) (*format.Savepoint, *Relocation) {
	prefixes = slices.Clone(prefixes)
	slices.SortStableFunc(prefixes, func(a, b Prefix) int { return len(b.Old) - len(a.Old) })
	r := &relocator{prefixes: prefixes, result: &Relocation{}, changed: map[string]int{}, unmatched: map[string]int{}}
	out, _ := sp.MapStreams(func(_ format.Place, s format.Stream) (format.Stream, error) { return r.stream(s), nil })
	out, _ = editOperators(out, func(op *format.Operator) (*format.Operator, error) { return r.folders(op), nil })
	return out, r.result
}

type relocator struct {
	prefixes           []Prefix
	result             *Relocation
	changed, unmatched map[string]int // index in the result
}

func (r *relocator) stream(s format.Stream) format.Stream {
	switch s := s.(type) {
	case *format.File:
		if s.Relative {
			r.result.Relative++
			return s
		}
		if to, ok := r.move(s.Path); ok {
			c := *s
			c.Path = to
			return &c
		}
	case *format.Segment:
		if to, ok := r.move(s.Path); ok {
			c := *s
			c.Path = to
			return &c
		}
	}
	return s
}

// folders moves the folders that handles of file merging name.
func (r *relocator) folders(op *format.Operator) *format.Operator {
	var subs []*format.Subtask
	for i, sub := range op.Subtasks {
		if sub.Managed == nil || sub.Managed.Merging == nil {
			continue
		}
		m := *sub.Managed.Merging
		m.TaskOwnedDir, m.SharedDir = r.folder(m.TaskOwnedDir), r.folder(m.SharedDir)
		if m == *sub.Managed.Merging {
			continue
		}
		if subs == nil {
			subs = append(subs, op.Subtasks...)
		}
		h := *sub.Managed
		h.Merging = &m
		s := *sub
		s.Managed = &h
		subs[i] = &s
	}
	if subs == nil {
		return op
	}
	c := *op
	c.Subtasks = subs
	return &c
}

func (r *relocator) folder(path format.Text) format.Text {
	if path.String() != "" {
		path, _ = r.move(path)
	}
	return path
}

// move moves a reference and notes what became of it.
func (r *relocator) move(path format.Text) (format.Text, bool) {
	from := path.String()
	to, ok := r.moved(from)
	list, index := &r.result.Unmatched, r.unmatched
	if ok {
		list, index = &r.result.Changed, r.changed
	}
	i, known := index[from]
	if !known {
		i = len(*list)
		index[from] = i
		*list = append(*list, Relocated{From: from, To: to})
	}
	(*list)[i].Handles++
	if !ok || to == from {
		return path, false
	}
	return format.NewText(to), true
}

// moved is where a path goes.
func (r *relocator) moved(path string) (string, bool) {
	for _, p := range r.prefixes {
		if rest, ok := cutPathPrefix(path, p.Old); ok {
			return strings.TrimSuffix(p.New, "/") + rest, true
		}
	}
	return "", false
}

// cutPathPrefix cuts whole elements off the beginning of a path; what is left
// is empty or begins with "/".
func cutPathPrefix(path, prefix string) (string, bool) {
	prefix = strings.TrimSuffix(prefix, "/")
	for _, p := range [][2]string{{path, prefix}, {format.CanonicalURI(path), format.CanonicalURI(prefix)}} {
		if rest, ok := strings.CutPrefix(p[0], p[1]); ok && (rest == "" || rest[0] == '/') {
			return rest, true
		}
	}
	return "", false
}
