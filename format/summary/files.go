package summary

import (
	"cmp"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// fileSet collects files and the handles that refer to them. The size of a file of
// segments is the sum of its segments.
type fileSet struct {
	seen    map[format.StreamKey]bool
	files   map[fileID]*File
	users   map[format.StreamKey]*users
	several int64 // bytes of streams that several operators refer to
	changes []*changeFile
	change  map[format.StreamKey]*changeFile
}

// users is the set of operators that refer to a stream.
type users struct {
	last    *Operator
	several bool
}

// changeFile is a file of changes. Each handle accounts for the bytes that it
// claims, up to the size of the file.
type changeFile struct {
	stream format.Stream
	first  *Operator
	left   int64
}

type fileID struct {
	relative bool
	path     string
}

func newFileSet() *fileSet {
	return &fileSet{seen: map[format.StreamKey]bool{}, files: map[fileID]*File{}, users: map[format.StreamKey]*users{}, change: map[format.StreamKey]*changeFile{}}
}

// add records a stream of an operator and reports whether its bytes are new to the
// set. Only files can repeat; each occurrence of inline bytes counts. A file packed
// into an .spt file still counts as one file.
func (f *fileSet) add(op *Operator, s format.Stream) bool {
	path, relative, ok := format.Reference(s)
	if !ok {
		c, packed := s.(*format.Chunks)
		if !packed {
			return true
		}
		if _, _, ok := format.Reference(c.As); !ok {
			return true
		}
		key := c.As.Key()
		first := !f.seen[key]
		f.seen[key] = true
		return first
	}
	key := s.Key()
	first := !f.seen[key]
	f.seen[key] = true
	id := fileID{relative, key.Name}
	file := f.files[id]
	if file == nil {
		file = &File{Path: path.String(), Relative: relative, Shared: isShared(s), Shortest: -1, Longest: -1}
		f.files[id] = file
	}
	file.Handles++
	switch u := f.users[key]; {
	case u == nil:
		f.users[key] = &users{last: op}
	case u.last != op && !u.several:
		u.several = true
		f.several += format.SizeOf(s)
	}
	if first {
		file.Bytes += format.SizeOf(s)
		file.Merged = file.Merged || key.Kind == format.KindSegment
	}
	file.claim(s)
	return first
}

// claim records what a stream says of the length of its file.
func (f *File) claim(s format.Stream) {
	switch s := s.(type) {
	case *format.Segment:
		switch {
		case s.Start < 0 || s.Length < 0 || s.Start+s.Length < 0:
			f.Reach = -1
		case f.Reach >= 0:
			f.Reach = max(f.Reach, s.Start+s.Length)
		}
	case *format.File:
		if s.Length < 0 {
			return // no length is recorded
		}
		if f.Longest = max(f.Longest, s.Length); f.Shortest < 0 || s.Length < f.Shortest {
			f.Shortest = s.Length
		}
	}
}

// take assigns up to n bytes of a file of changes to an operator and returns their
// number, limited by the bytes that are not assigned yet.
func (f *fileSet) take(op *Operator, s format.Stream, n int64) int64 {
	if s == nil {
		return 0
	}
	fresh := f.add(op, s)
	if _, relative, ok := format.Reference(s); ok {
		f.files[fileID{relative, s.Key().Name}].Changelog = true // added before
	}
	key, shared := s.Key(), format.Kind(s) != format.KindInline
	if c, packed := s.(*format.Chunks); packed && c.As != nil {
		key = c.As.Key()
	}
	c := f.change[key]
	if c == nil || !shared {
		c = &changeFile{stream: s, first: op}
		if fresh {
			c.left = format.SizeOf(s)
		}
		f.change[key] = c
		f.changes = append(f.changes, c)
	}
	n = min(n, c.left)
	c.left -= n
	return n
}

// usedBySeveral returns the bytes of streams that several operators refer to,
// except for files of changes, in which each operator has bytes of its own.
func (f *fileSet) usedBySeveral() int64 {
	n := f.several
	for key, c := range f.change {
		if u := f.users[key]; u != nil && u.several {
			n -= format.SizeOf(c.stream)
		}
	}
	return n
}

func (f *fileSet) list() []File {
	all := make([]File, 0, len(f.files))
	for _, file := range f.files {
		all = append(all, *file)
	}
	slices.SortFunc(all, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Path, b.Path))
	})
	return all
}
