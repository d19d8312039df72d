package transform

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Relocated is a reference that a relocation looked at.
type Relocated struct {
	From, To string
	Handles  int
}

// RelocateReport is what Relocate did.
type RelocateReport struct {
	Changed   []Relocated // each reference once, in file order
	Unmatched []Relocated // absolute references that no prefix fits
	Relative  int         // handles whose reference is relative and stays so: it moves with _metadata
	Kept      []Relocated // relative references that Move left as they are, although one of its kind was asked for
}

// RelocateOptions say what becomes of references: one of the three.
type RelocateOptions struct {
	// Prefixes replace the beginning of absolute references, the longest that
	// fits first, also of the directories that file merging names. A New that is a
	// path becomes a file: URI where the reference has a scheme: without one it
	// would be a path of Flink's default file system, whatever that is.
	Prefixes []format.Mapping
	// Relative names files by their last element alone: they are next to
	// _metadata. A segment of a merged file has no such form and stays.
	Relative bool
	// Absolute names the files next to _metadata below this folder.
	Absolute string
	// Move decides about each relative reference, once. It returns the new reference;
	// moves is false if there is no file at it, and the old reference has to stay. ""
	// leaves a reference as it is. nil: with Absolute all of them change, otherwise none.
	// It is not called for files in an .spt.
	Move func(name string) (to string, moves bool, err error)
}

// Relocate rewrites references. Names of inline state look like paths but are
// not: they stay. Two files that would have one name are a *CollisionError.
func Relocate(_ context.Context, v format.View, o RelocateOptions) (format.View, *RelocateReport, error) {
	if o.Relative && o.Absolute != "" || len(o.Prefixes) > 0 && (o.Relative || o.Absolute != "") {
		return v, nil, errors.New("a relocation takes one of Prefixes, Relative and Absolute")
	}
	r := &relocator{o: o, maps: o.Prefixes, result: &RelocateReport{}, changed: map[string]int{}, unmatched: map[string]int{}, kept: map[string]int{},
		beside: map[string]string{}, moves: map[string]move{}}
	sp, err := v.MapStreams(func(_ format.Place, s format.Stream) (format.Stream, error) { return r.stream(s) })
	if err == nil {
		sp, err = sp.MapOperators(func(op *format.Operator) (*format.Operator, error) { return r.folders(op) })
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
	beside             map[string]string // names next to _metadata, and what they were
	moves              map[string]move   // what Move decided
	packed             bool              // the stream is in an .spt
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
	case *format.Chunks: // what it becomes again outside the .spt
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

// moveRelative makes of a relative reference what Move decides.
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

// takeName makes sure that a name next to _metadata is that of one file. The
// spellings of one reference are one file.
func (r *relocator) takeName(name, of string) error {
	of = format.CanonicalURI(of)
	if other, taken := r.beside[name]; taken && other != of {
		return &CollisionError{fmt.Sprintf("%s and %s would both be %s next to _metadata", other, of, name)}
	}
	r.beside[name] = of
	return nil
}

// folders moves the folders that handles of file merging name.
func (r *relocator) folders(op *format.Operator) (*format.Operator, error) {
	return op.MapManaged(func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
		if h.Merging == nil {
			return h, nil
		}
		m := *h.Merging
		m.TaskOwnedDir, m.SharedDir = r.folder(m.TaskOwnedDir), r.folder(m.SharedDir)
		if m == *h.Merging {
			return h, nil
		}
		c := *h
		c.Merging = &m
		return &c, nil
	})
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

// moved is where a path goes.
func (r *relocator) moved(path string) (string, bool) {
	to, ok := r.maps.Apply(path)
	if strings.HasPrefix(to, "/") && !strings.HasPrefix(path, "/") {
		to = "file:" + to
	}
	return to, ok
}
