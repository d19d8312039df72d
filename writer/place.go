package writer

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/reader"
)

// flinkPlacer decides for each stream of a savepoint how the new _metadata refers
// to it. A file that several handles name is written once.
type flinkPlacer struct {
	ctx      context.Context
	plan     *Plan
	relative bool   // the version has relative references
	base     string // else: prefix of absolute names
	placed   map[format.StreamKey]format.Stream
	names    map[string]string // names in use next to _metadata, in lower case
	outer    map[string]bool   // files that stay outside
	missing  MissingError

	extracted map[extracted]format.Stream // files of an .spt file
	claimed   map[string]bool             // names of those written, in lower case
	inFiles   map[format.OperatorID]bool  // see hadFiles; nil before its first call
}

// reserve claims the names that files next to _metadata keep.
func (m *flinkPlacer) reserve(sp *format.Savepoint) {
	m.names[reader.MetadataName] = ""
	_ = sp.EachStream(func(_ format.Place, st format.Stream) error {
		if c, ok := st.(*format.Chunks); ok {
			st = c.As
		}
		if f, ok := st.(*format.File); ok && f.Relative {
			m.names[strings.ToLower(f.Path.String())] = f.Path.String()
		}
		return nil
	})
}

func (m *flinkPlacer) place(place format.Place, st format.Stream) (format.Stream, error) {
	switch s := st.(type) {
	case *format.Inline:
		if m.movesOut(place, s.Size()) {
			m.plan.toFiles(s.Size())
			return m.newFile(s, s.Name.String(), "inline")
		}
		return s, nil
	case *format.EmptySegment:
		return s, nil
	case *format.File, *format.Segment:
		return m.reference(place, st)
	case *format.Chunks:
		return m.packed(place, s, s.As)
	case *format.Concat:
		if err := m.plan.sources(m.ctx, place, s, &m.missing); err != nil {
			return nil, err
		}
		return m.packed(place, s, s.As)
	}
	return nil, fmt.Errorf("internal error: a stream of type %T", st)
}

// movesOut reports whether inline state of n bytes becomes a file. A coordinator
// has only inline state.
func (m *flinkPlacer) movesOut(place format.Place, n int64) bool {
	t := m.plan.o.InlineThreshold
	return t != nil && n > *t && place.Slot != format.SlotCoordinator
}

// packed writes bytes of an .spt file or of a rope in the way that their original
// was stored. A rope is new bytes: it replaces its original and never shares it.
func (m *flinkPlacer) packed(place format.Place, s, as format.Stream) (format.Stream, error) {
	if in, ok := as.(*format.Inline); ok {
		if m.movesOut(place, s.Size()) {
			m.plan.toFiles(s.Size())
			return m.newFile(s, in.Name.String(), "inline")
		}
		return s, nil
	}
	path, relative, ok := format.Reference(as)
	if !ok {
		return m.rebuilt(place, s)
	}
	chunks, packed := s.(*format.Chunks)
	if !packed {
		return m.rope(s, as, path.String(), relative)
	}
	if m.plan.o.KeepReferences && !relative {
		m.outside(path.String())
		return as, nil
	}
	// One original file becomes one file, and two stay two, even if their bytes are
	// equal.
	key := extracted{as.Key(), chunks.Digest}
	if done := m.extracted[key]; done != nil {
		return sameReference(done, as), nil
	}
	var st format.Stream
	var err error
	switch lower := strings.ToLower(path.String()); {
	case relative && !isFileName(path.String()):
		return nil, unsafeName(path.String())
	case relative && m.relative && !m.claimed[lower]:
		m.claimed[lower] = true
		st, err = m.write(s, path.String(), as, "extract")
	default:
		st, err = m.newFile(s, nameHint(as), "extract")
		m.rewrite(path.String(), referenceOf(st))
	}
	m.extracted[key] = st
	return st, err
}

// rebuilt writes state that an edit combined: inline if all of it was inline, in
// a file if any of it was in one or InlineThreshold requires it. A handle without
// old elements is stored as the other state of its operator was.
func (m *flinkPlacer) rebuilt(place format.Place, s format.Stream) (format.Stream, error) {
	inline, files := originOf(s)
	inFile := files > 0
	if inline+files == 0 {
		inFile = m.hadFiles(place)
	}
	name := nameOf(place, s.Key())
	if n := s.Size(); place.Slot == format.SlotCoordinator || !inFile && !m.movesOut(place, n) && n <= maxInline {
		return inlineAs(s, name), nil
	}
	m.plan.toFiles(inline)
	return m.newFile(s, name, "new")
}

// maxInline is well below the size of a Java array.
const maxInline = 1 << 30

// originOf counts the bytes of a rope that were inline and the bytes that were in
// files. Bytes made by an edit are neither.
func originOf(s format.Stream) (inline, files int64) {
	var count func(st format.Stream, n int64)
	count = func(st format.Stream, n int64) {
		switch st := st.(type) {
		case *format.Concat:
			if _, _, ref := format.Reference(st.As); ref {
				files += n
				return
			}
			for _, p := range st.Parts {
				count(p.Of, p.N) // a part may be a range of the rope; its kind is enough
			}
		case *format.Chunks:
			if st.As != nil {
				count(st.As, n)
			}
		case *format.KeyGroupStream:
			count(st.Data, n)
		case *format.File, *format.Segment:
			files += n
		case *format.Inline:
			if st.Name.String() != "" { // else format.Literal
				inline += n
			}
		}
	}
	count(s, s.Size())
	return inline, files
}

// hadFiles reports whether state of an operator was in files in the input.
func (m *flinkPlacer) hadFiles(place format.Place) bool {
	if place.Operator == nil {
		return false
	}
	if m.inFiles == nil {
		m.inFiles = map[format.OperatorID]bool{}
		for _, snap := range append([]*reader.Snapshot{m.plan.snap}, m.plan.snap.Others()...) {
			_ = snap.AsRead().EachStream(func(p format.Place, st format.Stream) error {
				if c, ok := st.(*format.Chunks); ok {
					st = c.As
				}
				if st == nil || p.Operator == nil {
					return nil
				}
				if _, _, ref := format.Reference(st); ref {
					m.inFiles[p.Operator.ID] = true
				}
				return nil
			})
		}
	}
	return m.inFiles[place.Operator.ID]
}

// extracted is a file of an .spt file: its original and its bytes.
type extracted struct {
	as     format.StreamKey
	digest string
}

// rope writes new bytes under the name of the file that they replace, unless
// another file of the snapshot has it.
func (m *flinkPlacer) rope(s, as format.Stream, path string, relative bool) (format.Stream, error) {
	lower := strings.ToLower(path)
	if _, taken := m.names[lower]; relative && m.relative && isFileName(path) && !taken {
		m.names[lower] = path
		return m.write(s, path, as, "new")
	}
	return m.newFile(s, nameHint(as), "new")
}

// nameHint returns the preferred name of a file: for a segment its logical file,
// because many segments share a physical one.
func nameHint(st format.Stream) string {
	if s, ok := st.(*format.Segment); ok && fileref.IsPlain(s.LogicalID.String()) {
		return s.LogicalID.String()
	}
	path, _, _ := format.Reference(st)
	return path.String()
}

func referenceOf(st format.Stream) string {
	path, _, _ := format.Reference(st)
	return path.String()
}

// inlineAs returns a stream that is written inline under a name. Names must be
// distinct: Flink treats handles of equal name and bytes as one, and assigns
// their elements once.
func inlineAs(s format.Stream, name string) format.Stream {
	as := &format.Inline{Name: format.NewText(name)}
	switch s := s.(type) {
	case *format.Chunks:
		c := *s
		c.As = as
		return &c
	case *format.Concat:
		c := *s
		c.As = as
		return &c
	}
	return s
}

// reference writes a file or a segment of one.
func (m *flinkPlacer) reference(place format.Place, st format.Stream) (format.Stream, error) {
	o := m.plan.o
	path, relative, _ := format.Reference(st)
	if o.KeepReferences && !relative {
		m.outside(path.String())
		return st, nil
	}
	key := st.Key()
	if s := m.placed[key]; s != nil {
		return sameReference(s, st), nil
	}
	found, ok, err := m.plan.locate(m.ctx, place, st, &m.missing)
	if err != nil {
		return nil, err
	}
	plain := fileref.IsPlain(path.String())
	if relative && !isFileName(path.String()) && (plain || !ok && o.KeepMissing) {
		return nil, unsafeName(path.String())
	}
	if !ok {
		m.placed[key] = st
		return st, nil // kept, or reported at the end with all others
	}
	if o.Files == Reference {
		return m.stays(st, found)
	}
	how := string(o.Files)
	if _, ok := st.(*format.Segment); ok {
		how = "segment"
	}
	if relative && plain && m.relative {
		s, err := m.write(st, path.String(), st, how)
		m.placed[key] = s
		return s, err
	}
	s, err := m.newFile(st, nameHint(st), how)
	m.placed[key] = s
	m.rewrite(path.String(), referenceOf(s))
	return s, err
}

// sameReference returns the stream for another handle on a file that was already
// written. Two handles can claim different lengths.
func sameReference(placed, st format.Stream) format.Stream {
	p, ok1 := placed.(*format.File)
	f, ok2 := st.(*format.File)
	if ok1 && ok2 && p.Length != f.Length {
		c := *p
		c.Length = f.Length
		return &c
	}
	return placed
}

// isFileName reports whether a state file may be written under this name: a bare
// name other than _metadata.
func isFileName(name string) bool {
	return fileref.IsPlain(name) && !strings.EqualFold(name, reader.MetadataName)
}

func unsafeName(path string) error {
	return format.Errorf(format.ErrUnsupported, "relative reference %q does not name a file of its own next to _metadata: nothing is written under such a name", path)
}

// stays refers to a file in its current location.
func (m *flinkPlacer) stays(st format.Stream, found reader.Found) (format.Stream, error) {
	uri, err := ability.URI(m.ctx, found.Store, found.Name, found.URI)
	if err != nil {
		return nil, err
	}
	path, relative, _ := format.Reference(st)
	if !relative && found.Instead == "" && sameFile(path.String(), uri) {
		uri = path.String() // as it was written
	}
	m.outside(uri)
	var s format.Stream
	switch st := st.(type) {
	case *format.Segment:
		c := *st
		c.Path = textFor(st.Path, uri)
		s = &c
	default:
		s = &format.File{Path: textFor(path, uri), Length: st.Size()}
	}
	m.rewrite(path.String(), uri)
	m.placed[st.Key()] = s
	return s, nil
}

func sameFile(a, b string) bool { return format.CanonicalURI(a) == format.CanonicalURI(b) }

// textFor returns the old text if it is equal, to keep its encoding.
func textFor(old format.Text, s string) format.Text {
	if old.String() == s {
		return old
	}
	return format.NewText(s)
}

// newFile writes bytes to a file next to _metadata, named after their name in the
// input. Each call makes a separate file, even for equal bytes: Flink
// distinguishes handles by their file when it redistributes state.
func (m *flinkPlacer) newFile(of format.Stream, was, how string) (format.Stream, error) {
	name := m.freeName(of, was)
	as := &format.File{Relative: true, Path: format.NewText(name), Length: claimed(of)}
	if !m.relative {
		as.Relative, as.Path = false, format.NewText(objpath.Join(m.base, name))
	}
	return m.write(of, name, as, how)
}

// claimed returns the length that a new handle records for its file: the length
// that the old handle recorded, which may be wrong.
func claimed(of format.Stream) int64 {
	if c, ok := of.(*format.Chunks); ok {
		if f, ok := c.As.(*format.File); ok {
			return f.Length
		}
	}
	return of.Size()
}

// write plans a file.
func (m *flinkPlacer) write(of format.Stream, name string, as format.Stream, how string) (format.Stream, error) {
	size := of.Size()
	if _, ok := of.(*format.File); ok {
		found, err := m.plan.snap.Locate(m.ctx, of)
		if err != nil {
			return nil, err
		}
		size = found.Info.Size
	}
	path, _, _ := format.Reference(of)
	m.plan.Files = append(m.plan.Files, File{Name: name, Bytes: size, How: how, From: path.String(), of: of})
	m.plan.Bytes += size
	return as, nil
}

// freeName returns the last element of the old name, or a name made from the key,
// with a suffix if it is taken. Names that differ only in case are treated as
// equal, because some file systems do not distinguish them.
func (m *flinkPlacer) freeName(of format.Stream, was string) string {
	base := was[strings.LastIndexAny(was, `/\`)+1:]
	if !fileref.IsPlain(base) || strings.ContainsFunc(base, func(r rune) bool { return !strconv.IsPrint(r) }) || len(base) > 200 {
		base = nameOf(format.Place{}, of.Key())
	}
	name := base
	for i := 2; ; i++ {
		if _, taken := m.names[strings.ToLower(name)]; !taken {
			m.names[strings.ToLower(name)] = name
			return name
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
}

// nameOf returns a name that looks like a UUID and is the same for the same bytes
// at the same location.
func nameOf(place format.Place, k format.StreamKey) string {
	text := k.String()
	if place.Operator != nil {
		text = fmt.Sprintf("%s/%s/%s", place.Operator.ID, place, text)
	}
	sum := shortHash(text)
	h := hex.EncodeToString(sum[:16])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

func (m *flinkPlacer) rewrite(from, to string) {
	if from != to {
		m.plan.Rewrites = append(m.plan.Rewrites, Rewrite{from, to})
	}
}

func (m *flinkPlacer) outside(path string) {
	if !m.outer[path] {
		m.outer[path] = true
		m.plan.Outside = append(m.plan.Outside, path)
	}
}
