package native

import (
	"bytes"

	"github.com/savepoint-tools/spt/format"
)

// Keyed state. The stream of a handle starts with a header, which lists the states,
// followed by the key groups of its range, each of them consecutive entries. Header
// and entries are msgpack in its shortest encoding. Wire format: never change.
//
//	header  array of one array [name, kind] per state, both strings
//	entry   array [state, key, namespace, value]: state is an index into the
//	        header, the namespace may be nil
//
// The entries of a key group ascend by state, then by the bytes of the key, then by
// the bytes of the namespace.

// Kind is the kind of the values of a keyed state.
type Kind string

// The kinds. Wire format: never change.
const (
	KindValue Kind = "value" // any msgpack value
	KindList  Kind = "list"  // an array
	KindMap   Kind = "map"   // a map whose keys ascend by their bytes
)

// Check returns an error unless value, which is one msgpack value, is of the kind.
func (k Kind) Check(value []byte) error {
	switch {
	case k == KindList && !isArray(value[0]):
		return format.Errorf(format.ErrCorrupt, "expected an array, found msgpack code 0x%02x", value[0])
	case k == KindMap:
		return checkMap(value)
	}
	return nil
}

// KeyedState is one state in a keyed stream.
type KeyedState struct {
	Name string
	Kind Kind
}

const (
	maxStates = 1 << 16 // per stream
	maxHeader = 1 << 24
)

// hash returns the hash of an encoded key: Java's Arrays.hashCode of its bytes.
func hash(key []byte) int32 {
	h := int32(1)
	for _, b := range key {
		h = 31*h + int32(int8(b))
	}
	return h
}

// KeyGroup returns the key group, of max, of an encoded key.
func KeyGroup(key []byte, max int32) int32 { return format.KeyGroupOfHash(hash(key), max) }

// AppendHeader appends the header of a keyed stream. Invalid states are an error.
func AppendHeader(dst []byte, states []KeyedState) ([]byte, error) {
	if err := checkKeyedStates(states); err != nil {
		return dst, err
	}
	h := make([][2]string, len(states))
	for i, s := range states {
		h[i] = [2]string{s.Name, string(s.Kind)}
	}
	p, err := Marshal(h)
	if err == nil && len(p) > maxHeader {
		err = format.Errorf(format.ErrLimit, "a header of %d bytes, the limit is %d", len(p), maxHeader)
	}
	return append(dst, p...), err
}

func checkKeyedStates(states []KeyedState) error {
	if len(states) > maxStates {
		return format.Errorf(format.ErrLimit, "%d keyed states, the limit is %d", len(states), maxStates)
	}
	seen := make(map[string]bool, len(states))
	for _, s := range states {
		if s.Kind != KindValue && s.Kind != KindList && s.Kind != KindMap {
			return format.At(format.Errorf(format.ErrCorrupt, "expected kind value, list or map, found %q", s.Kind), "state %q", s.Name)
		}
		if seen[s.Name] {
			return format.At(format.Errorf(format.ErrCorrupt, "two states of this name"), "state %q", s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

// decodeHeader decodes a header that is all of p.
func decodeHeader(p []byte) ([]KeyedState, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	at, n, _ := shape(p)
	if !isArray(p[0]) || n > maxStates {
		return nil, format.Errorf(format.ErrCorrupt, "expected an array of at most %d states", maxStates)
	}
	text := func() (s string, ok bool) {
		c := p[at]
		head := 1
		switch {
		case c&0xe0 == 0xa0:
		case c >= 0xd9 && c <= 0xdb:
			head += 1 << (c - 0xd9)
		default:
			return "", false
		}
		k, _, _ := shape(p[at:])
		s = string(p[at+head : at+k])
		at += k
		return s, true
	}
	states := make([]KeyedState, n)
	for i := range states {
		if p[at] != 0x92 {
			return nil, format.Errorf(format.ErrCorrupt, "state %d of the header is not an array of two", i)
		}
		at++
		name, ok := text()
		if !ok {
			return nil, format.Errorf(format.ErrCorrupt, "the name of state %d is not a string", i)
		}
		kind, ok := text()
		if !ok {
			return nil, format.Errorf(format.ErrCorrupt, "the kind of state %d is not a string", i)
		}
		states[i] = KeyedState{Name: name, Kind: Kind(kind)}
	}
	again, err := AppendHeader(nil, states)
	if err == nil && !bytes.Equal(again, p) {
		err = format.Errorf(format.ErrCorrupt, "it is not in the shortest encoding")
	}
	return states, err
}

// appendEntry appends an entry of the state with index state. Key, namespace and
// value are msgpack values, the value of the state's [Kind]; a nil namespace means
// none. Their total size must not exceed [MaxValue].
func appendEntry(dst []byte, state int, key, namespace, value []byte) []byte {
	dst = appendIndex(append(dst, 0x94), state)
	dst = append(dst, key...)
	if namespace == nil {
		dst = append(dst, 0xc0)
	}
	dst = append(dst, namespace...)
	return append(dst, value...)
}

// appendIndex appends a number below maxStates in the shortest encoding.
func appendIndex(dst []byte, i int) []byte {
	switch {
	case i < 1<<7:
		return append(dst, byte(i))
	case i < 1<<8:
		return append(dst, 0xcc, byte(i))
	}
	return append(dst, 0xcd, byte(i>>8), byte(i))
}

// decodeEntry decodes the entry at the start of p and returns its length. The error
// is errShort if p ends within the entry.
func decodeEntry(p []byte, states []KeyedState) (e rawEntry, n int, err error) {
	if len(p) == 0 {
		return e, 0, errShort
	}
	if p[0] != 0x94 {
		return e, 0, format.Errorf(format.ErrCorrupt, "expected an array of 4, found msgpack code 0x%02x", p[0])
	}
	n = 1
	var parts [4][]byte
	for i := range parts {
		k, err := size(p[n:])
		if err != nil {
			return e, 0, err
		}
		parts[i] = p[n : n+k : n+k]
		n += k
	}
	e = rawEntry{key: parts[1], namespace: parts[2], value: parts[3]}
	switch ix := parts[0]; {
	case ix[0] < 0x80:
		e.state = int(ix[0])
	case ix[0] == 0xcc:
		e.state = int(ix[1])
	case ix[0] == 0xcd:
		e.state = int(ix[1])<<8 | int(ix[2])
	default:
		e.state = -1
	}
	if e.state < 0 || e.state >= len(states) || !bytes.Equal(appendIndex(nil, e.state), parts[0]) {
		return e, 0, format.Errorf(format.ErrCorrupt, "expected the index of one of %[2]d states, found % [1]x", parts[0][:min(len(parts[0]), 9)], len(states))
	}
	if err := states[e.state].Kind.Check(e.value); err != nil {
		return e, 0, format.At(err, "state %q", states[e.state].Name)
	}
	return e, n, nil
}

// rawEntry is a decoded entry: views of its encoded parts.
type rawEntry struct {
	state                 int
	key, namespace, value []byte
}

// withoutValue returns a copy of e without its value, stored in buf.
func (e rawEntry) withoutValue(buf []byte) (kept rawEntry, _ []byte) {
	buf = append(append(buf[:0], e.key...), e.namespace...)
	return rawEntry{state: e.state, key: buf[:len(e.key)], namespace: buf[len(e.key):]}, buf
}

// compareEntries compares two entries of a key group by state, key and namespace,
// the order of the stream. The namespace of an entry without one is nil, the single
// byte 0xc0.
func compareEntries(a, b rawEntry) int {
	if a.state != b.state {
		return a.state - b.state
	}
	if c := bytes.Compare(a.key, b.key); c != 0 {
		return c
	}
	return bytes.Compare(a.namespace, b.namespace)
}
