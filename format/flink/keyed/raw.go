package keyed

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// Timers in raw keyed state (spec flink-keyed-state 10.2): per key group
//
//	u32    identifier; Flink 1.4.0 and earlier wrote neither it nor a version
//	int    version, 1 or 2
//	int    number of services; for each
//	UTF    name
//	       serializers of key and namespace: two snapshots; of version 1 a block of two,
//	       without a version two Java object streams
//	int    n, n times key, namespace, long time     event time
//	int    n, n times key, namespace, long time     processing time
//
// Unlike elsewhere the time comes last and its sign is not flipped. Wire format:
// never change.
const (
	rawIdentifier   = 0xf1cd859f
	rawUnversioned  = 0
	rawVersionBlock = 1
	rawVersion      = 2

	streamHeader = 0xaced0005 // of a Java object stream

	eventPrefix      = "_timer_state/event_"
	processingPrefix = "_timer_state/processing_"
)

// rawGroup is a key group of raw keyed state: a part of the stream.
type rawGroup struct {
	number     int32
	start, end int64
}

// openRaw reads the services of the first key group, which each key group repeats.
func (c *Codec) openRaw(ctx context.Context, src format.Source, h *format.KeyGroups) (*opened, error) {
	o := c.openWith(&Header{Version: maxVersion}, h.Range)
	o.cursor = func(context.Context, format.Source, selection) (format.KeyedCursor, error) { return emptyCursor{}, nil }
	if h.Data == nil || h.Data.Size() == 0 {
		return o, nil
	}
	size, err := format.StreamSize(ctx, src, h.Data)
	if err != nil {
		return nil, err
	}
	var groups []rawGroup
	if err := h.EachKeyGroup(ctx, func(group int32, at int64) error {
		if at < 0 || at > size {
			return format.Errorf(format.ErrCorrupt, "key group %d starts at %d of %d bytes", group, at, size)
		}
		groups = append(groups, rawGroup{number: group, start: at})
		return nil
	}); err != nil {
		return nil, err
	}
	starts := make([]int64, 0, len(groups)+1)
	for _, g := range groups {
		starts = append(starts, g.start)
	}
	starts = append(starts, size)
	slices.Sort(starts)
	for i := range groups {
		k, _ := slices.BinarySearch(starts, groups[i].start+1)
		groups[i].end = starts[min(k, len(starts)-1)]
	}
	header := &Header{Version: maxVersion}
	for _, g := range groups {
		// Key groups without services describe nothing.
		in := &input{ctx: ctx, src: src, s: h.Data, max: c.max()}
		in.open(g.start, g.end, false)
		if err := c.rawServices(in, header); err != nil {
			return nil, format.At(err, "key group %d", g.number)
		}
		if len(header.States) > 0 {
			break
		}
	}
	o = c.openWith(header, h.Range)
	o.cursor = func(ctx context.Context, src format.Source, sel selection) (format.KeyedCursor, error) {
		return &rawCursor{in: input{ctx: ctx, src: src, s: h.Data, max: c.max()}, o: o, sel: sel, groups: groups}, nil
	}
	return o, nil
}

// service is the head of a service: its name and serializers.
type service struct {
	name           format.Text
	key, namespace *types.Snapshot
	bytes          []byte // the encoded serializers, of version 2
}

// rawHead reads the start of a key group, and returns the number of its services.
func rawHead(in *input) (version int32, n int32, err error) {
	p, err := in.need(4)
	if err != nil {
		return 0, 0, err
	}
	id := binary.BigEndian.Uint32(p)
	if id != rawIdentifier {
		if unversioned(in, id) {
			in.consume(4)
			return rawUnversioned, int32(id), nil
		}
		return 0, 0, format.Errorf(format.ErrUnsupported, "expected timers with identifier %08x, found %08x: raw keyed state of user code, or of a release that wrote none", uint32(rawIdentifier), id)
	}
	if p, err = in.need(12); err != nil {
		return 0, 0, err
	}
	version, n = int32(binary.BigEndian.Uint32(p[4:])), int32(binary.BigEndian.Uint32(p[8:]))
	if version != rawVersion && version != rawVersionBlock {
		return 0, 0, format.Errorf(format.ErrVersion, "unknown version %d of timers; supported: %d and %d", version, rawVersionBlock, rawVersion)
	}
	if n < 0 {
		return 0, 0, format.Errorf(format.ErrCorrupt, "%d timer services", n)
	}
	in.consume(12)
	return version, n, nil
}

// unversioned reports whether a key group is one of Flink 1.4.0 and earlier: the first of
// its n services has a name and a Java object stream.
func unversioned(in *input, n uint32) bool {
	const most = 1 << 16
	if n == 0 || n > most {
		return n == 0
	}
	p, err := in.need(6)
	if err != nil {
		return false
	}
	name := 6 + int(binary.BigEndian.Uint16(p[4:]))
	p, err = in.need(name + 4)
	return err == nil && binary.BigEndian.Uint32(p[name:]) == streamHeader
}

// rawService reads the head of a service.
func rawService(in *input, version int32) (s service, err error) {
	for want := 1 << 10; ; want *= 2 {
		p := in.have()
		if len(p) < want {
			if _, err := in.extend(); err != nil {
				return s, err
			}
			p = in.have()
		}
		c := java.NewCursor(slices.Clone(p[:min(len(p), want)]))
		s = service{name: c.Name()}
		at := c.Offset()
		switch version {
		case rawUnversioned:
			s.key = java.Part(c, types.SkipSerializer)
			s.namespace = java.Part(c, types.SkipSerializer)
		case rawVersionBlock:
			if all := block(c, 2); len(all) == 2 {
				s.key, s.namespace = all[0], all[1]
			}
		default:
			s.key = java.Part(c, types.SkipVersioned)
			s.namespace = java.Part(c, types.SkipVersioned)
			s.bytes = c.Since(at)
		}
		err := c.Err()
		if errors.Is(err, format.ErrTruncated) && len(p) > want {
			continue
		}
		in.consume(c.Offset())
		return s, err
	}
}

// rawServices adds the services of a key group to a header: two states each.
func (c *Codec) rawServices(in *input, h *Header) error {
	version, n, err := rawHead(in)
	if err != nil {
		return err
	}
	for range n {
		s, err := rawService(in, version)
		if err != nil {
			return err
		}
		timer := &types.Snapshot{Class: timerClass, Version: 2, Nested: []*types.Snapshot{s.key, s.namespace}}
		if h.Key == nil && len(s.bytes) > 0 {
			h.Key, h.key = s.key, wrapped(s.key)
		}
		for _, prefix := range []string{eventPrefix, processingPrefix} {
			h.add(types.StateSchema{
				Name: format.NewText(prefix + s.name.String()), Keyed: types.Timers,
				Serializers: []types.Serializer{{Key: valueKey, Snapshot: timer}},
			}, timerMeta(prefix+s.name.String(), &s))
		}
		// The timers of this service, to reach the next one.
		a := access{key: c.part("", types.PartKey, s.key), namespace: c.part("", types.PartNamespace, s.namespace)}
		for range 2 {
			count, err := rawCount(in)
			if err != nil {
				return err
			}
			for range count {
				_, end, err := rawTimer(in, &a)
				if err != nil {
					return err
				}
				in.consume(end)
			}
		}
	}
	return nil
}

// wrapped returns a snapshot as a header has it.
func wrapped(s *types.Snapshot) []byte { return append([]byte{0, 0, 0, 2}, s.Raw...) }

// timerMeta returns the entry of timers in a header of version 6, or nil if their
// serializers are older.
func timerMeta(name string, s *service) []byte {
	if len(s.bytes) == 0 {
		return nil
	}
	utf := func(p []byte, s string) []byte {
		q, err := java.AppendText(p, format.NewText(s))
		if err != nil {
			return p // longer than a name can be: Build refuses the header
		}
		return q
	}
	ints := func(p []byte, all ...uint32) []byte {
		for _, x := range all {
			p = binary.BigEndian.AppendUint32(p, x)
		}
		return p
	}
	p := ints(utf(nil, name), kindTimers, 0, 1)
	p = ints(utf(p, valueKey), 2)
	p = ints(utf(p, timerClass), 3, 911108, 2, 1333245, 1, 2) // a composite with two nested snapshots
	return append(p, s.bytes...)
}

const timerClass = "org.apache.flink.streaming.api.operators.TimerSerializerSnapshot"

func rawCount(in *input) (int32, error) {
	p, err := in.need(4)
	if err != nil {
		return 0, err
	}
	n := int32(binary.BigEndian.Uint32(p))
	if n < 0 {
		return 0, format.Errorf(format.ErrCorrupt, "%d timers", n)
	}
	in.consume(4)
	return n, nil
}

// rawTimer returns the ends of the key and of the timer.
func rawTimer(in *input, a *access) (key, end int, err error) {
	if key, err = in.skip(0, &a.key); err != nil {
		return 0, 0, format.At(err, "key")
	}
	ns, err := in.skip(key, &a.namespace)
	if err != nil {
		return 0, 0, format.At(err, "namespace")
	}
	_, err = in.need(ns + 8)
	return key, ns + 8, err
}

// rawCursor reads timers.
type rawCursor struct {
	in       input
	o        *opened
	sel      selection
	groups   []rawGroup
	number   int32
	version  int32
	services int32 // left in the key group
	queues   int   // left of the service
	timers   int32 // left of the queue
	a        *access
	state    int
	within   bool
	used     int
	stored   []byte
	err      error
}

// Next implements [format.KeyedCursor].
func (c *rawCursor) Next() (e format.KeyedEntry, err error) {
	for c.err == nil {
		c.in.consume(c.used)
		c.used = 0
		if !c.within {
			c.err = c.start()
			continue
		}
		ok, err := c.read(&e)
		if err != nil {
			c.err = format.At(err, "key group %d", c.number)
			break
		}
		if ok {
			return e, nil
		}
	}
	return format.KeyedEntry{}, c.err
}

func (c *rawCursor) start() error {
	for len(c.groups) > 0 {
		g := c.groups[0]
		c.groups = c.groups[1:]
		if g.number < c.sel.first || g.number > c.sel.last {
			continue
		}
		c.number = g.number
		c.in.open(g.start, g.end, false)
		var err error
		c.version, c.services, err = rawHead(&c.in)
		c.within, c.queues, c.timers = true, 0, 0
		return format.At(err, "key group %d", g.number)
	}
	return io.EOF
}

func (c *rawCursor) read(e *format.KeyedEntry) (bool, error) {
	switch {
	case c.timers > 0:
		key, end, err := rawTimer(&c.in, c.a)
		if err != nil {
			return false, err
		}
		p := c.in.have()
		c.timers--
		c.used = end
		*e = format.KeyedEntry{KeyGroup: c.number, State: c.state, Key: p[:key], Namespace: p[key : end-8], Time: int64(binary.BigEndian.Uint64(p[end-8:]))}
		if !c.sel.states[c.state] || !c.sel.has(e) {
			return false, nil
		}
		c.stored = c.a.join(e, c.stored)
		return true, nil
	case c.queues > 0:
		n, err := rawCount(&c.in)
		if err != nil {
			return false, err
		}
		c.queues--
		c.timers = n
		if c.queues == 0 {
			c.state++
			c.a = &c.o.access[c.state]
		}
		return false, nil
	case c.services > 0:
		s, err := rawService(&c.in, c.version)
		if err != nil {
			return false, err
		}
		name := eventPrefix + s.name.String()
		c.state = slices.IndexFunc(c.o.header.States, func(st types.StateSchema) bool { return st.Name.String() == name })
		if c.state < 0 {
			return false, format.Errorf(format.ErrUnsupported, "timer service %q is not in the first key group", s.name)
		}
		c.a = &c.o.access[c.state]
		c.services--
		c.queues = 2
		return false, nil
	}
	c.within = false
	return false, nil
}

// Ordered returns false: timers are in the order of a heap.
func (c *rawCursor) Ordered() bool { return false }

// Close implements [format.KeyedCursor].
func (c *rawCursor) Close() error {
	c.err, c.groups, c.in.buf = errClosed, nil, nil
	return nil
}
