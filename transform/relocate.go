package transform

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Relocated is a reference that Relocate processed.
type Relocated struct {
	From, To string
	Handles  int
}

// RelocateReport describes what Relocate did.
type RelocateReport struct {
	Changed   []Relocated // distinct references, in file order
	Unmatched []Relocated // absolute references that no prefix matches
	Relative  int         // handles whose reference stays relative: their files move with _metadata
	Kept      []Relocated // relative references for which Move returned MoveKept
}

// RelocateOptions are the options of Relocate: one of Prefixes, Relative and
// Absolute.
type RelocateOptions struct {
	// Prefixes replace the beginning of absolute references, the longest that
	// fits first, also of the directories that file merging names. A New that is a
	// path becomes a file: URI where the reference has a scheme: without one it
	// would be a path of Flink's default file system, whatever that is.
	Prefixes []format.Mapping
	// Relative names files by their last element only: they are next to _metadata. A
	// segment of a merged file cannot be named relatively and is unchanged.
	Relative bool
	// Absolute names the files next to _metadata below this directory.
	Absolute string
	// Move decides about each relative reference, once. It returns the new reference;
	// moves is false if there is no file at it, and the old reference has to stay. ""
	// leaves a reference as it is. nil: with Absolute all of them change, otherwise none.
	// It is not called for files in an .spt.
	Move func(name string) (to string, moves bool, err error)
}

// Relocate rewrites references. Names of inline state look like paths but are
// not: they are unchanged. Two files that would have one name are a
// *CollisionError.
func Relocate(_ context.Context, v format.View, o RelocateOptions) (format.View, *RelocateReport, error) {
	if o.Relative && o.Absolute != "" || len(o.Prefixes) > 0 && (o.Relative || o.Absolute != "") {
		return v, nil, errors.New("Relocate needs one of Prefixes, Relative and Absolute")
	}
	r := &relocator{o: o, maps: o.Prefixes, result: &RelocateReport{}, changed: map[string]int{}, unmatched: map[string]int{}, kept: map[string]int{},
		taken: map[string]string{}, moves: map[string]move{}}
	sp, err := v.MapStreams(func(_ format.Place, s format.Stream) (format.Stream, error) { return r.stream(s) })
	if err == nil {
		sp, err = sp.MapOperators(func(op *format.Operator) (*format.Operator, error) { return r.mergingDirectories(op) })
	}
	if err != nil {
		return v, nil, err
	}
	return v.With(sp), r.result, nil
}

type relocator struct {
	o                  RelocateOptions
	maps               format.Mappings
	result             *RelocateReport
	changed, unmatched map[string]int // index in the result
	kept               map[string]int
	taken              map[string]string // names next to _metadata, with the old references
	moves              map[string]move   // what Move decided
	packed             bool              // the stream is in an .spt file
}

type move struct {
	to    string
	moves bool
}

func (r *relocator) stream(s format.Stream) (format.Stream, error) {
	switch s := s.(type) {
	case *format.File:
		return r.file(s)
	case *format.Segment:
		if to, ok := r.move(s.Path); ok {
			c := *s
			c.Path = to
			return &c, nil
		}
	case *format.Chunks: // its original outside the .spt file
		r.packed = true
		as, err := r.stream(s.As)
		r.packed = false
		if err != nil || as == s.As {
			return s, err
		}
		c := *s
		c.As = as
		return &c, nil
	}
	return s, nil
}

func (r *relocator) file(f *format.File) (format.Stream, error) {
	path := f.Path.String()
	switch {
	case f.Relative && r.o.Move != nil && !r.packed:
		return r.moveRelative(f)
	case f.Relative && r.o.Absolute != "":
		to := strings.TrimSuffix(r.o.Absolute, "/") + "/" + path
		r.note(&r.result.Changed, r.changed, path, to)
		return &format.File{Path: format.NewText(to), Length: f.Length}, nil
	case f.Relative && r.o.Relative:
		r.result.Relative++
		return f, r.takeName(path, path)
	case f.Relative:
		r.result.Relative++
		return f, nil
	case r.o.Relative:
		name := path[strings.LastIndexByte(path, '/')+1:]
		if name == "" || name == "." || name == ".." {
			r.note(&r.result.Unmatched, r.unmatched, path, "")
			return f, nil
		}
		r.note(&r.result.Changed, r.changed, path, name)
		return &format.File{Path: format.NewText(name), Relative: true, Length: f.Length}, r.takeName(name, path)
	}
	to, ok := r.move(f.Path)
	if !ok {
		return f, nil
	}
	c := *f
	c.Path = to
	return &c, nil
}

// moveRelative changes a relative reference as Move decides.
func (r *relocator) moveRelative(f *format.File) (format.Stream, error) {
	name := f.Path.String()
	m, known := r.moves[name]
	if !known {
		to, moves, err := r.o.Move(name)
		if err != nil {
			return nil, err
		}
		m = move{to, moves}
		r.moves[name] = m
	}
	switch {
	case m.to != "" && m.moves:
		r.note(&r.result.Changed, r.changed, name, m.to)
		return &format.File{Path: format.NewText(m.to), Length: f.Length}, nil
	case m.to != "":
		r.note(&r.result.Kept, r.kept, name, m.to)
	}
	r.result.Relative++
	return f, nil
}

// takeName checks that two files do not get one name next to _metadata. Different
// spellings of a reference are one file.
func (r *relocator) takeName(name, of string) error {
	of = format.CanonicalURI(of)
	if other, taken := r.taken[name]; taken && other != of {
		return &CollisionError{fmt.Sprintf("%s and %s would both be %s next to _metadata", other, of, name)}
	}
	r.taken[name] = of
	return nil
}

// mergingDirectories changes the directories that handles of file merging name.
func (r *relocator) mergingDirectories(op *format.Operator) (*format.Operator, error) {
	return op.MapManaged(func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
		if h.Merging == nil {
			return h, nil
		}
		m := *h.Merging
		m.TaskOwnedDir, m.SharedDir = r.directory(m.TaskOwnedDir), r.directory(m.SharedDir)
		if m == *h.Merging {
			return h, nil
		}
		c := *h
		c.Merging = &m
		return &c, nil
	})
}

func (r *relocator) directory(path format.Text) format.Text {
	if path.String() != "" {
		path, _ = r.move(path)
	}
	return path
}

// move changes a reference and records the result.
func (r *relocator) move(path format.Text) (format.Text, bool) {
	from := path.String()
	to, ok := r.moved(from)
	if !ok {
		r.note(&r.result.Unmatched, r.unmatched, from, "")
		return path, false
	}
	r.note(&r.result.Changed, r.changed, from, to)
	if to == from {
		return path, false
	}
	return format.NewText(to), true
}

func (r *relocator) note(list *[]Relocated, index map[string]int, from, to string) {
	i, known := index[from]
	if !known {
		i = len(*list)
		index[from] = i
		*list = append(*list, Relocated{From: from, To: to})
	}
	(*list)[i].Handles++
}

// moved returns the new location of a path.
func (r *relocator) moved(path string) (string, bool) {
	to, ok := r.maps.Apply(path)
	if strings.HasPrefix(to, "/") && !strings.HasPrefix(path, "/") {
		to = "file:" + to
	}
	return to, ok
}
