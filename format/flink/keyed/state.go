package keyed

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// Kinds of keyed state, as types.StateSchema names them.
const (
	kindOfList = "list"
	kindOfMap  = "map"
)

// part is a serializer of a part of an entry: its codec, and whether values have a
// fixed length, on which the encoding of keys depends.
type part struct {
	of    *types.Snapshot // nil: not known
	codec value.Codec     // nil: values of this serializer are not decoded
	size  int             // bytes of every value, or -1
	class string
	// Whether Java's TypeSerializer.getLength returns a length. Flink's windows and
	// void namespace return 0, which counts.
	fixed, known bool
	given        bool // of is not the recorded serializer
}

// sizes are the serializers of fixed length by their simple names, and the number of
// bytes that they write.
var sizes = map[string]int{
	"Boolean": 1, "BooleanValue": 1, "Byte": 1, "ByteValue": 1, "Short": 2, "ShortValue": 2, "Char": 2, "CharValue": 2,
	"Int": 4, "IntValue": 4, "Float": 4, "FloatValue": 4, "Long": 8, "LongValue": 8, "Double": 8, "DoubleValue": 8,
	"Date": 8, "SqlDate": 8, "SqlTime": 8, "SqlTimestamp": 12, "Instant": 12, "LocalDate": 6, "LocalTime": 7, "LocalDateTime": 13,
	"Enum": 4, "ScalaEnum": 4, "Void": 1, "VoidNamespace": 1, "GlobalWindow": 1, "TimeWindow": 16, "CountWindow": 8,
}

// either may have a fixed length or not: it depends on their parameters.
var either = map[string]bool{"Nullable": true, "TimestampData": true, "Decimal": true, "Ttl": true, "Timer": true}

// variable are the config snapshots of Flink 1.4 to 1.6, and the serializers without
// parameters of that time, whose values have no fixed length.
var variable = map[string]bool{
	"String": true, "TupleSerializerConfigSnapshot": true, "PojoSerializerConfigSnapshot": true, "KryoSerializerConfigSnapshot": true,
	"CollectionSerializerConfigSnapshot": true, "MapSerializerConfigSnapshot": true,
}

func partOf(s *types.Snapshot, o types.Options) part {
	if s == nil {
		return part{size: -1, class: "unknown"}
	}
	p := part{of: s, size: -1, class: s.Class}
	c, err := types.NewCodec(s, o)
	ok := err == nil
	if ok {
		p.codec = c
	}
	if !strings.HasPrefix(s.Class, flink.Package) {
		return p
	}
	name := strings.TrimSuffix(simpleName(s.Class), "SerializerSnapshot")
	if s.Old {
		if name = simpleName(s.Class); name == "ParameterlessTypeSerializerConfig" && strings.HasPrefix(s.Type, flink.Package) {
			p.class = s.Type
			name = types.SerializerName(s.Type)
		}
	}
	if n, ok := sizes[name]; ok {
		p.size, p.fixed, p.known = n, true, true
		return p
	}
	p.known = ok && !s.Old && !either[name] || variable[name]
	return p
}

func simpleName(class string) string { return class[strings.LastIndexAny(class, ".$")+1:] }

// reads reports whether the end of a value can be found.
func (p *part) reads() bool { return p.size >= 0 || p.codec != nil }

// skip returns the length of the value at the start of b.
func (p *part) skip(b []byte) (int, error) {
	if p.size >= 0 {
		if len(b) < p.size {
			return 0, format.Errorf(format.ErrTruncated, "cut short: expected %d bytes, found %d", p.size, len(b))
		}
		return p.size, nil
	}
	if p.codec == nil {
		return 0, format.Errorf(format.ErrUnsupported, "values of %s are not decoded", p.class)
	}
	return p.codec.Skip(b)
}

// null reports whether a value is null.
func (p *part) null(b []byte) bool {
	if p.codec == nil {
		return false
	}
	v, err := value.ReadAll(p.codec, b)
	return err == nil && v.IsNull()
}

// access is what is needed to read the entries of a state.
type access struct {
	name           format.Text
	timers         bool
	isMap, isList  bool
	key, namespace part
	// lengths: in a stored key the lengths of key and namespace follow them, since
	// neither has a fixed length (spec flink-keyed-state 3.5).
	lengths, splits bool
	// Of the heap encoding: the value, or the element of a list, or key and value of
	// a map.
	value, userKey part
	prefix         int // bytes of the key group in a stored key
}

// accesses returns the access of each state of a header.
func (c *Codec) accesses(h *Header) []access {
	key := c.part("", types.PartKey, h.Key)
	all := make([]access, len(h.States))
	for i := range h.States {
		s := &h.States[i]
		a := access{name: s.Name, key: key, prefix: prefixOf(c.MaxParallelism), timers: s.Keyed == types.Timers, isMap: s.Keyed == kindOfMap, isList: s.Keyed == kindOfList}
		name := s.Name.String()
		part := func(p types.Part, s *types.Snapshot) part { return c.part(name, p, s) }
		val := s.Serializer(valueKey)
		if a.timers {
			// The element is a timer: time, key and namespace.
			if val != nil && len(val.Nested) == 2 {
				a.key, a.namespace = part(types.PartKey, val.Nested[0]), part(types.PartNamespace, val.Nested[1])
			} else {
				a.namespace = part(types.PartNamespace, nil)
			}
			a.splits = a.key.reads()
			all[i] = a
			continue
		}
		a.namespace = part(types.PartNamespace, s.Serializer(namespaceKey))
		a.lengths = !a.key.fixed && !a.namespace.fixed
		a.splits = (a.key.reads() || !a.isMap && a.namespace.size >= 0) && (!a.lengths || a.key.known && a.namespace.known)
		userKey := s.Serializer(userKeyKey)
		if inner := unwrapped(val); !s.Asynchronous && inner != nil {
			switch {
			case a.isList && len(inner.Nested) == 1:
				val = inner.Nested[0]
			case a.isMap && len(inner.Nested) == 2:
				userKey, val = inner.Nested[0], inner.Nested[1]
			}
		}
		if a.value = part(types.PartValue, val); a.isMap {
			a.userKey = part(types.PartUserKey, userKey)
		}
		all[i] = a
	}
	return all
}

// part returns a part of a state. How entries are encoded depends on the recorded
// serializer, and how the part is read on the given type.
func (c *Codec) part(state string, of types.Part, recorded *types.Snapshot) part {
	p := partOf(recorded, c.Types)
	s, given := c.Override.Of(state, of, recorded)
	if !given {
		return p
	}
	p.of, p.codec = s, nil
	if codec, err := types.NewCodec(s, c.Types); err == nil {
		p.codec, p.given = types.Strict(codec, s), true
	}
	return p
}

// EntryCodecs implements [value.KeyedCodec].
func (c *Codec) EntryCodecs(ctx context.Context, src format.Source, h format.KeyedHandle) ([]value.EntryCodecs, error) {
	o, err := c.open(ctx, src, h)
	if err != nil {
		return nil, err
	}
	all := make([]value.EntryCodecs, len(o.access))
	for i := range o.access {
		all[i] = o.access[i].codecs(c.Types)
	}
	return all, nil
}

// codecs returns the codecs of the parts of entries.
func (a *access) codecs(o types.Options) (all value.EntryCodecs) {
	set := func(to *value.Codec, p part, of func(*types.Snapshot, types.Options) (value.Codec, error)) {
		c, err := of(p.of, o)
		if err != nil && all.Why == nil {
			all.Why = err
		}
		if err == nil && p.given {
			c = types.Strict(c, p.of)
		}
		if err == nil {
			*to = c
		}
	}
	set(&all.Key, a.key, types.NewCodec)
	set(&all.Namespace, a.namespace, types.NewCodec)
	switch {
	case a.timers:
	case a.isList:
		set(&all.Value, a.value, types.ListCodec)
		all.List = true
	case a.isMap:
		set(&all.UserKey, a.userKey, types.NewCodec)
		set(&all.Value, a.value, types.MapValueCodec)
	default:
		set(&all.Value, a.value, types.NewCodec)
	}
	if all.TTL = !a.timers && a.value.of.HasTTL(); all.TTL && !a.isList {
		all.Time = a.time
	}
	all.KeyHash, all.WhyNoHash = types.KeyHasher(a.key.of, o)
	return all
}

// time returns the time at the start of a value with TTL (spec flink-keyed-state 3.7).
func (a *access) time(p []byte) (ms int64, ok bool, err error) {
	if a.isMap && len(p) > 0 {
		if p[0] != 0 { // the null flag
			return 0, false, nil
		}
		p = p[1:]
	}
	if len(p) < 8 {
		return 0, false, format.Errorf(format.ErrCorrupt, "a value with TTL of %d bytes", len(p))
	}
	return int64(binary.BigEndian.Uint64(p)), true, nil
}

// unwrapped returns the snapshot within a wrapper that adds nothing to the bytes.
func unwrapped(s *types.Snapshot) *types.Snapshot {
	for s != nil && strings.HasSuffix(s.Class, "TtlAwareSerializerSnapshot") && len(s.Nested) == 1 {
		s = s.Nested[0]
	}
	return s
}

// prefixOf returns the number of bytes of the key group in a stored key.
func prefixOf(maxParallelism int32) int {
	if maxParallelism > 128 {
		return 2
	}
	return 1
}

// appendGroup appends a key group as the start of a stored key.
func appendGroup(p []byte, group int32, prefix int) []byte {
	if prefix == 2 {
		p = append(p, byte(group>>8))
	}
	return append(p, byte(group))
}

// groupOf returns the key group of a stored key, or -1 if it is too short.
func groupOf(stored []byte, prefix int) int32 {
	switch {
	case len(stored) < prefix:
		return -1
	case prefix == 2:
		return int32(binary.BigEndian.Uint16(stored))
	}
	return int32(stored[0])
}

// appendLength appends a length after the bytes that it measures: little-endian, in
// as few bytes as possible.
func appendLength(p []byte, n int) []byte {
	for {
		p = append(p, byte(n))
		if n >>= 8; n == 0 {
			return p
		}
	}
}

// skipLength checks the length n at the start of p, and returns its size.
func skipLength(p []byte, n int) (int, error) {
	var want [8]byte
	w := appendLength(want[:0], n)
	if len(p) < len(w) || string(p[:len(w)]) != string(w) {
		return 0, format.Errorf(format.ErrCorrupt, "expected the length %d of a part of the key, found % x", n, p[:min(len(p), len(w))])
	}
	return len(w), nil
}

// signBit is flipped in the time of a timer, so that bytes are in the order of time.
const signBit = -1 << 63

// split sets the parts of a stored key:
//
//	states  key group, key, [length of key], namespace, [length of namespace], [map key]
//	timers  key group, long time with flipped sign, key, namespace
//
// Wire format: never change.
func (a *access) split(e *format.KeyedEntry) error {
	p := e.Stored[a.prefix:]
	if a.timers {
		if len(p) < 8 {
			return format.Errorf(format.ErrCorrupt, "a timer of %d bytes", len(p))
		}
		e.Time = int64(binary.BigEndian.Uint64(p)) ^ signBit
		p = p[8:]
	}
	if !a.splits {
		return nil
	}
	if !a.key.reads() { // only the last part, of known size, can be cut off
		n := len(p) - a.namespace.size
		if n < 0 {
			return format.Errorf(format.ErrCorrupt, "a key of %d bytes", len(p))
		}
		e.Key, e.Namespace = p[:n:n], p[n:]
		return nil
	}
	n, err := a.key.skip(p)
	if err != nil {
		return format.At(cutKey(err), "key")
	}
	e.Key, p = p[:n:n], p[n:]
	if a.lengths {
		k, err := skipLength(p, n)
		if err != nil {
			return err
		}
		p = p[k:]
	}
	if !a.namespace.reads() && !a.lengths && !a.isMap {
		e.Namespace = p // whatever it is, nothing follows
		return nil
	}
	if n, err = a.namespace.skip(p); err != nil {
		return format.At(cutKey(err), "namespace")
	}
	e.Namespace, p = p[:n:n], p[n:]
	if a.lengths {
		k, err := skipLength(p, n)
		if err != nil {
			return err
		}
		p = p[k:]
	}
	if a.isMap {
		e.UserKey = p
		return nil
	}
	if len(p) > 0 {
		return format.Errorf(format.ErrCorrupt, "%d bytes after the namespace of a key", len(p))
	}
	return nil
}

// cutKey makes an error of a codec an error of the key: it ends within a part.
func cutKey(err error) error {
	if value.IsShort(err) {
		return format.Errorf(format.ErrCorrupt, "a key ends too early: %v", err)
	}
	return err
}

// join sets Stored of an entry from its parts, in buf.
func (a *access) join(e *format.KeyedEntry, buf []byte) []byte {
	buf = appendGroup(buf[:0], e.KeyGroup, a.prefix)
	if a.timers {
		buf = binary.BigEndian.AppendUint64(buf, uint64(e.Time^signBit))
	}
	at := len(buf)
	buf = append(buf, e.Key...)
	k := len(buf)
	if a.lengths && !a.timers {
		buf = appendLength(buf, len(e.Key))
	}
	ns := len(buf)
	buf = append(buf, e.Namespace...)
	end := len(buf)
	if a.lengths && !a.timers {
		buf = appendLength(buf, len(e.Namespace))
	}
	user := len(buf)
	buf = append(buf, e.UserKey...)
	e.Stored, e.Key, e.Namespace = buf, buf[at:k:k], buf[ns:end:end]
	if e.UserKey != nil {
		e.UserKey = buf[user:]
	}
	return buf
}
