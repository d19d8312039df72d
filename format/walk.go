package format

import "fmt"

// Place is the position of a stream in the tree of a savepoint.
type Place struct {
	Operator *Operator
	Subtask  *Subtask // nil for coordinator state
	Slot     Slot
	Name     string // local name of a state backend's file
	// Changelog: the stream is a file of changes. It is one byte longer than its
	// handle records, because Flink does not count the flag at its start.
	Changelog bool
}

// Slot is the field of an operator or subtask that holds a stream.
type Slot uint8

// The slots.
const (
	SlotCoordinator Slot = iota
	SlotManaged
	SlotRaw
	SlotManagedKeyed
	SlotRawKeyed
	SlotInput
	SlotOutput
	SlotLegacy
)

var slots = [...]string{"coordinator", "operator state", "raw operator state", "keyed state", "raw keyed state", "input channels", "output channels", "legacy state"}

// String returns the name of the slot.
func (s Slot) String() string { return slots[s] }

// String returns a path such as `operator "sink"/subtask 1/operator state`.
func (p Place) String() string {
	s := fmt.Sprintf("operator %q", p.Operator.Label())
	if p.Subtask != nil {
		s += fmt.Sprintf("/subtask %d", p.Subtask.Index)
	}
	s += "/" + p.Slot.String()
	if p.Name != "" {
		s += fmt.Sprintf("/%q", p.Name)
	}
	return s
}

// EachStream calls f with each non-nil stream of the savepoint and its position, in
// file order. A stream that several handles share occurs several times. It stops at
// the first error.
func (sp *Savepoint) EachStream(f func(Place, Stream) error) error {
	_, err := sp.MapStreams(func(p Place, s Stream) (Stream, error) { return s, f(p, s) })
	return err
}

// MapStreams returns the savepoint with each stream replaced by the result of f.
// The result shares unchanged nodes with sp; if f changes nothing, it is sp itself.
// f is not called for nil streams, and may return nil.
func (sp *Savepoint) MapStreams(f func(Place, Stream) (Stream, error)) (*Savepoint, error) {
	m := streamMapper{f: f}
	ops, err := mapSlice(sp.Operators, m.operator)
	if err != nil {
		return nil, err
	}
	return sp.withOperators(ops), nil
}

type streamMapper struct {
	f  func(Place, Stream) (Stream, error)
	at Place
}

func (m *streamMapper) operator(o *Operator) (*Operator, error) {
	m.at = Place{Operator: o, Slot: SlotCoordinator}
	coord, err := m.stream(o.Coordinator)
	if err != nil {
		return nil, err
	}
	subs, err := mapSlice(o.Subtasks, m.subtask)
	if err != nil {
		return nil, err
	}
	if coord == o.Coordinator && same(subs, o.Subtasks) {
		return o, nil
	}
	c := *o
	c.Coordinator, c.Subtasks = coord, subs
	return &c, nil
}

func (m *streamMapper) subtask(s *Subtask) (*Subtask, error) {
	m.at.Subtask = s
	c := *s
	var err error
	slot := func(k Slot) bool {
		m.at.Slot, m.at.Name = k, ""
		return err == nil
	}
	if slot(SlotManaged) {
		c.Managed, err = m.operatorHandle(s.Managed)
	}
	if slot(SlotRaw) {
		c.Raw, err = m.operatorHandle(s.Raw)
	}
	if slot(SlotManagedKeyed) {
		c.ManagedKeyed, err = m.keyed(s.ManagedKeyed)
	}
	if slot(SlotRawKeyed) {
		c.RawKeyed, err = m.keyed(s.RawKeyed)
	}
	if slot(SlotInput) {
		c.Input, err = mapSlice(s.Input, m.channel)
	}
	if slot(SlotOutput) {
		c.Output, err = mapSlice(s.Output, m.channel)
	}
	if slot(SlotLegacy) {
		c.Legacy, err = mapSlice(s.Legacy, m.stream)
	}
	if err != nil {
		return nil, err
	}
	if c.Managed == s.Managed && c.Raw == s.Raw && c.ManagedKeyed == s.ManagedKeyed && c.RawKeyed == s.RawKeyed &&
		same(c.Input, s.Input) && same(c.Output, s.Output) && same(c.Legacy, s.Legacy) {
		return s, nil
	}
	return &c, nil
}

func (m *streamMapper) stream(s Stream) (Stream, error) {
	if s == nil {
		return nil, nil
	}
	if kg, ok := s.(*KeyGroupStream); ok {
		data, err := m.stream(kg.Data)
		if err != nil || data == kg.Data {
			return s, err
		}
		c := *kg
		c.Data = data
		return &c, nil
	}
	return m.f(m.at, s)
}

func (m *streamMapper) operatorHandle(h *OperatorHandle) (*OperatorHandle, error) {
	if h == nil {
		return nil, nil
	}
	data, err := m.stream(h.Data)
	if err != nil || data == h.Data {
		return h, err
	}
	c := *h
	c.Data = data
	return &c, nil
}

func (m *streamMapper) channel(h *ChannelHandle) (*ChannelHandle, error) {
	data, err := m.stream(h.Data)
	if err != nil || data == h.Data {
		return h, err
	}
	c := *h
	c.Data = data
	return &c, nil
}

func (m *streamMapper) named(n NamedStream) (NamedStream, error) {
	m.at.Name = n.Name.String()
	var err error
	n.Data, err = m.stream(n.Data)
	m.at.Name = ""
	return n, err
}

func (m *streamMapper) keyed(h KeyedHandle) (KeyedHandle, error) {
	switch h := h.(type) {
	case *KeyGroups:
		data, err := m.stream(h.Data)
		if err != nil || data == h.Data {
			return h, err
		}
		c := *h
		c.Data = data
		return &c, nil
	case *Incremental:
		meta, err := m.stream(h.Meta)
		if err != nil {
			return nil, err
		}
		shared, err := mapSlice(h.Shared, m.named)
		if err != nil {
			return nil, err
		}
		private, err := mapSlice(h.Private, m.named)
		if err != nil {
			return nil, err
		}
		if meta == h.Meta && same(shared, h.Shared) && same(private, h.Private) {
			return h, nil
		}
		c := *h
		c.Meta, c.Shared, c.Private = meta, shared, private
		return &c, nil
	case *Changelog:
		mat, err := mapSlice(h.Materialized, m.keyed)
		if err != nil {
			return nil, err
		}
		changes, err := mapSlice(h.Changes, m.keyed)
		if err != nil {
			return nil, err
		}
		if same(mat, h.Materialized) && same(changes, h.Changes) {
			return h, nil
		}
		c := *h
		c.Materialized, c.Changes = mat, changes
		return &c, nil
	case *ChangelogStream:
		m.at.Changelog = true
		streams, err := mapSlice(h.Streams, func(s OffsetStream) (OffsetStream, error) {
			var err error
			s.Data, err = m.stream(s.Data)
			return s, err
		})
		m.at.Changelog = false
		if err != nil || same(streams, h.Streams) {
			return h, err
		}
		c := *h
		c.Streams = streams
		return &c, nil
	}
	return h, nil // nil, or changes in memory
}

// mapSlice returns the results of f for the elements of in; in itself if f changed
// none.
func mapSlice[T comparable](in []T, f func(T) (T, error)) ([]T, error) {
	out := in
	for i, v := range in {
		w, err := f(v)
		if err != nil {
			return nil, err
		}
		if w == v {
			continue
		}
		if same(out, in) {
			out = append([]T(nil), in...)
		}
		out[i] = w
	}
	return out, nil
}

// same reports whether a and b are the same slice: mapSlice changed nothing.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
