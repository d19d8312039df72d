package summary

import (
	"cmp"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// fileSet counts files and the handles that name them. A file of several
// segments is as large as those are together.
type fileSet struct {
	seen  map[format.StreamKey]bool
	files map[fileID]*File
}

type fileID struct {
	relative bool
	path     string
}

func newFileSet() *fileSet {
	return &fileSet{seen: map[format.StreamKey]bool{}, files: map[fileID]*File{}}
}

// add records a stream and says whether its bytes are new to the set. Only
// files can be old: inline bytes are there as often as they are written.
func (f *fileSet) add(s format.Stream) bool {
	path, relative, ok := format.Reference(s)
	if !ok {
		return true
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
	if first {
		file.Bytes += format.SizeOf(s)
		file.Merged = file.Merged || key.Kind == format.KindSegment
	}
	file.claim(s)
	return first
}

// claim notes what a stream says of the length of its file.
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
			return // it says nothing
		}
		if f.Longest = max(f.Longest, s.Length); f.Shortest < 0 || s.Length < f.Shortest {
			f.Shortest = s.Length
		}
	}
}

// changelog marks the file of a stream as one of changes.
func (f *fileSet) changelog(s format.Stream) {
	if _, relative, ok := format.Reference(s); ok {
		f.files[fileID{relative, s.Key().Name}].Changelog = true // it was added
	}
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
