package reader

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
)

// Combine returns a with access to the bytes of b too, and the model of b with
// its streams renamed to match: a savepoint that combines both can be read and
// written as one snapshot. Both must stay open.
//
// Files that b refers to by relative references, and files that were found
// elsewhere, are renamed to their locations. A missing file with a relative
// reference is an error, because it has no name in a.
func Combine(ctx context.Context, a, b *Snapshot) (*Snapshot, *format.Savepoint, error) {
	if err := errors.Join(a.Outside(), b.Outside()); err != nil {
		return nil, nil, err
	}
	if err := b.LookUp(ctx, true); err != nil {
		return nil, nil, err
	}
	src := a.src.clone()
	m := combiner{ctx: ctx, b: b, src: src, ropes: map[*format.Chunks]*format.Concat{}, files: map[format.StreamKey]string{}, mine: map[reference]bool{}}
	_ = a.EachStream(func(_ format.Place, st format.Stream) error {
		if path, relative, ok := format.Reference(st); ok {
			m.mine[reference{relative, path.String()}] = true
		}
		return nil
	})
	sp, err := b.MapStreams(m.stream)
	if err != nil {
		return nil, nil, err
	}
	c := *a
	c.src = src
	c.mapping = nil // the base closes it
	c.others = append(append([]*Snapshot(nil), a.others...), b)
	c.others = append(c.others, b.others...)
	return &c, sp, nil
}

// Others returns the snapshots whose streams were combined with this one.
func (s *Snapshot) Others() []*Snapshot { return s.others }

// clone returns a copy of the source with its own maps, to which lookups can be
// added.
func (s *source) clone() *source {
	c := &source{
		stores: s.stores, store: s.store, dir: s.dir, location: s.location, version: s.version, maps: s.maps, follow: s.follow, areas: s.areas, file: s.file, maxValue: s.maxValue,
		sched: s.sched, progress: s.progress, lookups: map[reference]*lookup{}, directories: map[string]*directory{},
		refs: s.refs, windows: s.windows, foreign: map[*format.Chunks]foreign{},
	}
	for k, f := range s.foreign {
		c.foreign[k] = f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, l := range s.lookups {
		c.lookups[k] = l
	}
	return c
}

type combiner struct {
	ctx   context.Context
	b     *Snapshot
	src   *source
	ropes map[*format.Chunks]*format.Concat
	files map[format.StreamKey]string // where the renamed ones are
	mine  map[reference]bool          // locations that a refers to
}

func (m *combiner) stream(_ format.Place, st format.Stream) (format.Stream, error) {
	switch s := st.(type) {
	case *format.File:
		uri, err := m.file(s, s.Relative)
		if err != nil || uri == "" {
			return s, err
		}
		return &format.File{Path: format.NewText(uri), Length: s.Length}, nil
	case *format.Segment:
		uri, err := m.file(s, false)
		if err != nil || uri == "" {
			return s, err
		}
		c := *s
		c.Path = format.NewText(uri)
		return &c, nil
	case *format.Chunks:
		return m.chunks(s), nil
	case *format.Concat:
		for _, p := range s.Parts {
			if c, ok := p.Of.(*format.Chunks); ok {
				m.chunks(c)
			}
		}
	}
	return st, nil
}

// chunks makes a rope of chunks of b. A rope is new bytes, so its name cannot
// collide with a name in a; the source recognizes the chunks of b in it by their
// identity.
func (m *combiner) chunks(s *format.Chunks) format.Stream {
	if r := m.ropes[s]; r != nil {
		return r
	}
	f, ok := m.b.src.foreign[s]
	if !ok {
		f = foreign{m.b.src.file, m.b.Container.Name}
	}
	m.src.foreign[s] = f
	m.src.maxValue = max(m.src.maxValue, f.file.MaxValue())
	r := &format.Concat{As: s.As, Parts: []format.Part{{Of: s, N: s.Length}}}
	m.ropes[s] = r
	return r
}

// file returns the location that names a file of b from now on, "" if its name is
// the location. The file is looked up at once, so the version first seen is kept.
func (m *combiner) file(st format.Stream, relative bool) (string, error) {
	key := st.Key()
	if s, ok := st.(*format.Segment); ok { // one file of many segments
		key = (&format.File{Path: s.Path}).Key()
	}
	if uri, ok := m.files[key]; ok {
		return uri, nil
	}
	path, _, _ := format.Reference(st)
	uri := path.String()
	l := m.b.src.lookup(m.ctx, st)
	if l.err != nil {
		if relative || m.ctx.Err() != nil {
			return "", l.err
		}
		// Reading it reports so; a file of the same name next to a is another file.
		if ref := (reference{false, uri}); !m.mine[ref] {
			m.src.know(ref, Found{}, nil, l.err)
		}
		m.files[key] = ""
		return "", nil
	}
	if relative || l.found.Instead != "" {
		var err error
		if uri, err = ability.URI(m.ctx, l.found.Store, l.found.Name, l.found.URI); err != nil {
			return "", err
		}
	}
	found := l.found
	found.Instead = ""
	m.src.know(reference{false, uri}, found, l.rd, nil)
	if uri == path.String() && !relative {
		uri = ""
	}
	m.files[key] = uri
	return uri, nil
}

// know records where a reference leads, unless it is already recorded.
func (s *source) know(ref reference, found Found, rd *ranged.Reader, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lookups[ref]; l == nil || l.err != nil {
		l = &lookup{found: found, rd: rd, err: err}
		l.once.Do(func() {})
		s.lookups[ref] = l
	}
}
