package transform

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// keyedSource is entries of keyed state that become part of a new handle: of a handle,
// or of several that were sorted.
type keyedSource struct {
	handle format.KeyedHandle   // nil if there are several
	groups format.KeyGroupRange // what is taken
	codec  format.KeyedCodec
	schema format.KeyedSchema
	// open opens a cursor that goes from key group to key group.
	open func(ctx context.Context, src format.Source, sel format.KeyedSelection) (format.KeyedCursor, error)
	edit keyedEdit

	to     []int        // the index of each state in the result, -1: left out
	counts []keyedCount // of each state, by the first pass
	kept   bitmap       // the numbers of the entries that edit.keep kept
}

// keyedCount counts entries of a state, and the bytes of their parts.
type keyedCount struct {
	entries, bytes               int64 // that stay
	droppedEntries, droppedBytes int64 // that edit.keep does not keep, or of a state that is left out
}

// keyedEdit is what changes while keyed state is built again. The zero value changes
// nothing.
type keyedEdit struct {
	// state returns a state as the result has it, and false if it is left out with all
	// its entries.
	state func(format.KeyedState) (format.KeyedState, bool)
	// count says that the entries of states that are left out are counted: the first pass
	// reads them too.
	count bool
	// keep reports whether an entry, which it must not change, stays. It is called once
	// for each entry.
	keep func(*format.KeyedEntry) (bool, error)
	// change changes an entry that stays. It sets Stored to nil unless it changes the
	// value only. It is called each time the entry is read, by one reader at a time.
	change func(*format.KeyedEntry) error
}

// keyedSourceOf returns the entries of a handle in a range of key groups.
func keyedSourceOf(ctx context.Context, in format.View, op *format.Operator, h format.KeyedHandle, groups format.KeyGroupRange) (*keyedSource, error) {
	codec, err := in.KeyedCodec(op, h)
	if err != nil {
		return nil, err
	}
	schema, err := codec.Describe(ctx, in.Source, h)
	if err != nil {
		return nil, err
	}
	return &keyedSource{handle: h, groups: groups, codec: codec, schema: schema, open: func(ctx context.Context, src format.Source, sel format.KeyedSelection) (format.KeyedCursor, error) {
		return codec.Entries(ctx, src, h, sel)
	}}, nil
}

// keyedBuild builds the stream of a new handle from its sources.
type keyedBuild struct {
	codec   format.KeyedCodec // of the result
	schema  format.KeyedSchema
	groups  format.KeyGroupRange
	sources []*keyedSource // by their first key group
}

// buildKeyed returns a handle of a range of key groups with the entries of all sources,
// and their number. The bytes of its stream are computed when they are read; the
// sources are read here once for their number. Without a state the result has no handle.
//
// States of one name must have the same serializers, and at most one source may have
// its entries of a key group.
func buildKeyed(ctx context.Context, src format.Source, codec format.KeyedCodec, groups format.KeyGroupRange, sources []*keyedSource) (*format.KeyGroups, int64, error) {
	m := &keyedBuild{codec: codec, groups: groups, sources: slices.Clone(sources)}
	sortSources(m.sources)
	if err := m.join(); err != nil {
		return nil, 0, err
	}
	if len(m.schema.States) == 0 {
		_, err := m.first(ctx, src, nil) // nothing is added, but it may be counted
		return nil, 0, err
	}
	var size counter
	b, err := codec.Build(ctx, m.schema, groups, &size)
	if err != nil {
		return nil, 0, err
	}
	entries, err := m.first(ctx, src, b)
	if err != nil {
		return nil, 0, err
	}
	h, err := b.Handle()
	if err != nil {
		return nil, 0, err
	}
	h.Data = (&sequence{size: int64(size), open: m.open}).rope(fmt.Sprintf("keyed state %p", m))
	return h, entries, nil
}

// sortSources sorts sources by their first key group.
func sortSources(all []*keyedSource) {
	slices.SortStableFunc(all, func(a, b *keyedSource) int { return cmp.Compare(a.groups.First, b.groups.First) })
}

// counter counts bytes and discards them.
type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

// join makes one schema of the schemas of all sources.
func (m *keyedBuild) join() error {
	at := map[format.Text]int{}
	var ends []int64 // of the key groups of each state
	described := false
	for _, s := range m.sources {
		switch {
		case !described:
			m.schema.Wire = s.schema.Wire
		case len(s.schema.States) > 0 && s.schema.Wire != m.schema.Wire:
			return format.Errorf(format.ErrUnsupported, "keyed state with different serializer snapshots of keys cannot be merged")
		}
		if len(s.schema.States) > 0 {
			described = true
			m.schema.Compressed = m.schema.Compressed || s.schema.Compressed
		}
		s.to, s.counts = make([]int, len(s.schema.States)), make([]keyedCount, len(s.schema.States))
		for i, st := range s.schema.States {
			s.to[i] = -1
			if s.edit.state != nil {
				var ok bool
				if st, ok = s.edit.state(st); !ok {
					continue
				}
			}
			k, known := at[st.Name]
			switch {
			case !known:
				k = len(m.schema.States)
				at[st.Name] = k
				m.schema.States = append(m.schema.States, st)
				ends = append(ends, 0)
			case m.schema.States[k].Kind != st.Kind || m.schema.States[k].Wire != st.Wire:
				return format.Errorf(format.ErrUnsupported, "keyed state %q has different serializer snapshots, which cannot be merged", st.Name)
			case int64(s.groups.First) < ends[k]:
				return format.Errorf(format.ErrUnsupported, "several handles hold entries of keyed state %q in key group %d", st.Name, s.groups.First)
			}
			s.to[i] = k
			ends[k] = int64(s.groups.First) + int64(s.groups.Count)
		}
	}
	return nil
}

// checkEvery is the number of entries after which a loop looks whether it is cancelled.
const checkEvery = 1 << 10

// first is the first pass: it asks which entries stay, and adds those to b.
func (m *keyedBuild) first(ctx context.Context, src format.Source, b format.KeyedBuilder) (n int64, err error) {
	merge := newKeyedMerge(ctx, src, m.sources, true)
	defer func() { err = errors.Join(err, merge.close()) }()
	for seen := 0; ; seen++ {
		if seen%checkEvery == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		e, err := merge.next()
		if err == io.EOF {
			return n, nil
		}
		if err == nil {
			err = b.Add(*e)
		}
		if err != nil {
			return n, err
		}
		n++
	}
}

// open implements the open of a sequence.
func (m *keyedBuild) open(ctx context.Context, src format.Source) (next func(context.Context) ([]byte, error), stop func() error, err error) {
	merge := newKeyedMerge(ctx, src, m.sources, false)
	var built bytes.Buffer
	builder, err := m.codec.Build(ctx, m.schema, m.groups, &built)
	if err != nil {
		return nil, nil, err
	}
	given := 0 // bytes of built that the last call returned; at first it has the header
	next = func(ctx context.Context) ([]byte, error) {
		built.Next(given)
		for seen := 0; built.Len() == 0; seen++ {
			if seen%checkEvery == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if builder == nil {
				return nil, io.EOF
			}
			e, err := merge.next()
			switch {
			case err == io.EOF:
				_, err = builder.Handle()
				builder = nil
			case err == nil:
				err = builder.Add(*e)
			}
			if err != nil {
				return nil, err
			}
		}
		given = built.Len()
		return built.Bytes(), nil
	}
	return next, merge.close, nil
}

// keyedMerge reads the entries of several sources by key group. A source is open from
// its first key group to its end.
type keyedMerge struct {
	ctx     context.Context
	src     format.Source
	ask     bool // keep is asked, rather than what it answered before, and entries are counted
	waiting []*keyedSource
	open    []*openSource
	current *openSource // whose entries of a key group are read
	entry   format.KeyedEntry
}

// openSource is a source and its next entry, if it has one.
type openSource struct {
	*keyedSource
	cursor format.KeyedCursor
	head   format.KeyedEntry
	number int64 // of entries read
}

func newKeyedMerge(ctx context.Context, src format.Source, sources []*keyedSource, ask bool) *keyedMerge {
	return &keyedMerge{ctx: ctx, src: src, ask: ask, waiting: sources}
}

// next returns the next entry that stays, changed as the edit of its source says, or
// io.EOF. It is valid until the next call.
func (m *keyedMerge) next() (*format.KeyedEntry, error) {
	for {
		s, err := m.advance()
		if err != nil {
			return nil, err
		}
		e := &s.head
		if s.edit.change != nil {
			m.entry = s.head
			e = &m.entry
		}
		if s.to[e.State] < 0 {
			s.count(e, nil)
			continue
		}
		stays := true
		if s.edit.keep != nil {
			if m.ask {
				if stays, err = s.edit.keep(e); stays {
					s.kept.set(s.number)
				}
			} else {
				stays = s.kept.word(s.number/64)&(1<<(s.number%64)) != 0
			}
		}
		s.number++
		if stays && err == nil && s.edit.change != nil {
			err = s.edit.change(e)
		}
		if err != nil {
			return nil, err
		}
		left := e
		if !stays {
			left = nil
		}
		if m.ask {
			s.count(&s.head, left)
		}
		if stays {
			e.State = s.to[e.State]
			return e, nil
		}
	}
}

// count counts an entry that was read, and is left now; nil: it does not stay.
func (s *keyedSource) count(was, left *format.KeyedEntry) {
	c, n := &s.counts[was.State], was.Size()
	if left != nil {
		c.entries++
		c.bytes += left.Size()
		c.droppedBytes += max(n-left.Size(), 0)
		return
	}
	c.droppedEntries++
	c.droppedBytes += n
}

// advance reads the next entry of a source into its head.
func (m *keyedMerge) advance() (*openSource, error) {
	if s := m.current; s != nil {
		group := s.head.KeyGroup
		ended, err := m.read(s)
		switch {
		case err != nil:
			return nil, err
		case !ended && s.head.KeyGroup == group:
			return s, nil
		}
		m.current = nil
	}
	var first *openSource
	for {
		for _, s := range m.open {
			if first == nil || s.head.KeyGroup < first.head.KeyGroup {
				first = s
			}
		}
		if len(m.waiting) == 0 || first != nil && first.head.KeyGroup < m.waiting[0].groups.First {
			break
		}
		s := m.waiting[0]
		m.waiting = m.waiting[1:]
		if err := m.start(s); err != nil {
			return nil, err
		}
	}
	if first == nil {
		return nil, io.EOF
	}
	m.current = first
	return first, nil
}

// start opens a source and reads its first entry.
func (m *keyedMerge) start(s *keyedSource) error {
	if s.groups.Count <= 0 {
		return nil
	}
	// The second pass writes stored keys that the first one has split.
	sel := format.KeyedSelection{Groups: s.groups, States: []int{}, Whole: !m.ask && s.edit.change == nil}
	for i, to := range s.to {
		if to >= 0 || m.ask && s.edit.count {
			sel.States = append(sel.States, i)
		}
	}
	if len(sel.States) == 0 {
		return nil
	}
	cursor, err := s.open(m.ctx, m.src, sel)
	if err != nil {
		return err
	}
	o := &openSource{keyedSource: s, cursor: cursor}
	m.open = append(m.open, o)
	_, err = m.read(o)
	return err
}

// read reads the next entry of a source, and closes it at its end.
func (m *keyedMerge) read(s *openSource) (ended bool, err error) {
	if s.head, err = s.cursor.Next(); err != io.EOF {
		return false, err
	}
	m.open = slices.DeleteFunc(m.open, func(o *openSource) bool { return o == s })
	return true, s.cursor.Close()
}

func (m *keyedMerge) close() error {
	var errs []error
	for _, s := range m.open {
		errs = append(errs, s.cursor.Close())
	}
	m.open, m.waiting, m.current = nil, nil, nil
	return errors.Join(errs...)
}
