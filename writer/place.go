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

// flinkPlacer decides for each stream of a savepoint how the new _metadata
// refers to it. A file that several handles name is placed once.
type flinkPlacer struct {
	ctx      context.Context
	plan     *Plan
	relative bool   // the version can name files next to _metadata
	base     string // else: what absolute names begin with
	placed   map[format.StreamKey]format.Stream
	names    map[string]string // lower case, taken next to _metadata
	outer    map[string]bool   // files that stay outside
	missing  MissingError

	extracted map[extracted]format.Stream // files of an .spt
	claimed   map[string]bool             // their names, lower case, that are written
	inFiles   map[format.OperatorID]bool  // see hadFiles; nil until it is asked
}

// reserve takes the names that files next to _metadata have and keep.
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

// movesOut reports whether inline state of this size becomes a file. A coordinator
// has only inline state.
func (m *flinkPlacer) movesOut(place format.Place, n int64) bool {
	t := m.plan.o.InlineThreshold
	return t != nil && n > *t && place.Slot != format.SlotCoordinator
}

// packed places bytes of an .spt, or of a rope, as what they came from. A rope
// is new bytes: it takes the place of what it came from, never shares it.
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
	// What was one file becomes one again, and what were two stays two, even
	// where their bytes are the same.
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

// rebuilt places state that an edit put together: inline where all of it was
// inline, in a file where any of it was in one, or in a file of its own where
// --inline-threshold says so. A handle without elements of the old ones goes
// where the state of its operator was.
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

// maxInline is far from what Java can hold in one array.
const maxInline = 1 << 30

// originOf counts the bytes of a rope that were inline, and those that were in
// files. Bytes that an edit made are neither.
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
				count(p.Of, p.N) // a part may be a range of the rope: which is enough to tell
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

// extracted is a file of an .spt: what it was, and its bytes.
type extracted struct {
	as     format.StreamKey
	digest string
}

// rope places new bytes: under the name of what they replace, unless something
// else of the snapshot has it.
func (m *flinkPlacer) rope(s, as format.Stream, path string, relative bool) (format.Stream, error) {
	lower := strings.ToLower(path)
	if _, taken := m.names[lower]; relative && m.relative && isFileName(path) && !taken {
		m.names[lower] = path
		return m.write(s, path, as, "new")
	}
	return m.newFile(s, nameHint(as), "new")
}

// nameHint is what a file is best named after: a segment after its logical
// file, for many share the physical one.
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

// inlineAs makes a stream one that is written inline under a name. No two may
// have one: Flink takes handles of equal name and bytes for one, and assigns
// what they hold once.
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

// reference places a file or a segment of one.
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
		return st, nil // kept, or refused at the end with all others
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

// sameReference returns the stream for another handle on a file that was placed
// already. Two handles can differ in what they say of its length.
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

// isFileName reports whether a state file may be written under this name: one bare
// name, and not that of the description itself.
func isFileName(name string) bool {
	return fileref.IsPlain(name) && !strings.EqualFold(name, reader.MetadataName)
}

func unsafeName(path string) error {
	return format.Errorf(format.ErrUnsupported, "relative reference %q does not name a file of its own next to _metadata: nothing is written under such a name", path)
}

// stays refers to a file where it is.
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

// textFor keeps a text that says the same.
func textFor(old format.Text, s string) format.Text {
	if old.String() == s {
		return old
	}
	return format.NewText(s)
}

// newFile places bytes in a file next to _metadata, named after what they were
// called in the input. Each call makes a file of its own: two handles with
// equal bytes must not become one, for Flink tells them apart by their file
// when it redistributes state.
func (m *flinkPlacer) newFile(of format.Stream, was, how string) (format.Stream, error) {
	name := m.freeName(of, was)
	as := &format.File{Relative: true, Path: format.NewText(name), Length: claimed(of)}
	if !m.relative {
		as.Relative, as.Path = false, format.NewText(objpath.Join(m.base, name))
	}
	return m.write(of, name, as, how)
}

// claimed is the length that a new handle says its file has: what the old one
// said, which need not be what the file has.
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

// freeName is the last element of what the bytes were called, or a name made
// from their key, with a suffix where it is taken. Names that differ only in
// case count as one: file systems disagree about them.
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

// nameOf makes a name that looks like a uuid, the same for the same bytes at the
// same location.
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
