package types

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// Pickles of Python, protocols 2 to 5: programs of a small stack machine. Only the
// operations that make values of the built-in types, of datetime and of Decimal are
// known, and no name in a pickle is ever looked up. Flink stores pickles of PyFlink as
// byte arrays, and its serializer snapshots do not say so.
//
// None, booleans, integers, floats, strings and lists are values without a class; a dict
// whose keys are strings is a record. Other types have the class of Python. A pickle
// that is not decoded, or that Python would write in another way, is bytes with the
// class that is not known, or the class "pickle".

// pickleCodec is the codec of pickles.
type pickleCodec struct {
	classes map[string]pickleClass // pickleClasses; a field, because they refer to it
}

// pickleClass is a type of Python whose values have a class.
type pickleClass struct {
	// build returns the value that the class makes of arguments; nil if pickles have
	// an operation for it.
	build func(args value.Value) (value.Value, bool)
	save  func(k *pickler, v value.Value)
	parse func(c pickleCodec, p *parser, n *node) value.Value
}

// notDecodedPickle is the class of pickles without an object of an unknown class.
const notDecodedPickle = "pickle"

// Protocols. New values are written in the one that Python 3.8 to 3.13 prefers.
const (
	minPickle       = 2
	maxPickle       = 5
	preferredPickle = 4
)

// Limits of what is decoded.
const (
	maxPickleSize = 16 << 20
	maxPickleInt  = 40_000   // bytes of an integer
	maxPickleText = 64 << 20 // bytes of strings that are references to earlier ones
)

// Variants of strings and bytes in a pickle. By default a text that occurred before
// refers to its last occurrence.
const (
	pickleAgain = 1 // written again
	pickleFirst = 2 // refers to its first occurrence
)

// pickleArg is what follows the code of an operation.
type pickleArg uint8

const (
	pickleNothing pickleArg = iota + 1
	pickle1                 // so many bytes
	pickle2
	pickle4
	pickle8
	pickleCounted1 // a length of so many bytes, little-endian, and bytes
	pickleCounted4
	pickleCounted8
	pickleLine // text up to a line feed
	pickleLines
)

// pickleOps are the operations.
var pickleOps = func() (ops [256]pickleArg) {
	for arg, codes := range map[pickleArg]string{
		pickleNothing:  "(.012NQRabdelostu])}\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98",
		pickle1:        "Khq\x80\x82",
		pickle2:        "M\x83",
		pickle4:        "Jjr\x84",
		pickle8:        "G\x95",
		pickleCounted1: "UC\x8a\x8c",
		pickleCounted4: "TBX\x8b",
		pickleCounted8: "\x8d\x8e\x96",
		pickleLine:     "FILPSVgp",
		pickleLines:    "ci",
	} {
		for i := range len(codes) {
			ops[codes[i]] = arg
		}
	}
	return ops
}()

const pickleStop = '.'

// pickleOp returns the operation at the start of p, what follows it, without its length,
// and the length of both.
func pickleOp(p []byte) (arg []byte, n int, err error) {
	short := func() ([]byte, int, error) {
		return nil, 0, format.Errorf(format.ErrTruncated, "the end of a pickle is missing")
	}
	if len(p) == 0 {
		return short()
	}
	size, at := uint64(0), uint64(1)
	switch kind := pickleOps[p[0]]; kind {
	case 0:
		return nil, 0, format.Errorf(format.ErrCorrupt, "%#02x is not an operation of a pickle", p[0])
	case pickleNothing:
	case pickle1, pickle2, pickle4, pickle8:
		size = 1 << (kind - pickle1)
	case pickleCounted1, pickleCounted4, pickleCounted8:
		width := [...]int{1, 4, 8}[kind-pickleCounted1]
		if len(p) < 1+width {
			return short()
		}
		size, at = littleEndian(p[1:1+width]), uint64(1+width)
	default:
		for lines := kind - pickleLine + 1; lines > 0; lines-- {
			i := bytes.IndexByte(p[at+size:], '\n')
			if i < 0 {
				return short()
			}
			size += uint64(i) + 1
		}
	}
	if size > uint64(len(p))-at {
		return short()
	}
	return p[at : at+size], int(at + size), nil
}

// littleEndian returns the number of at most 8 bytes.
func littleEndian(p []byte) uint64 {
	var all [8]byte
	copy(all[:], p)
	return binary.LittleEndian.Uint64(all[:])
}

// pickleEnd returns the length of the pickle at the start of p.
func pickleEnd(p []byte) (int, error) {
	if len(p) > 0 && p[0] != 0x80 || len(p) > 1 && (p[1] < minPickle || p[1] > maxPickle) {
		return 0, format.Errorf(format.ErrCorrupt, "expected a pickle of protocol %d to %d, found %#02x", minPickle, maxPickle, p[:min(len(p), 2)])
	}
	for off := 0; ; {
		_, n, err := pickleOp(p[off:])
		if err != nil {
			if e, ok := err.(*format.Error); ok { // not wrapped
				e.Offset = int64(off)
			}
			return 0, err
		}
		if off += n; p[off-n] == pickleStop {
			return off, nil
		}
	}
}

func (pickleCodec) skip(r *reader) {
	if r.Err() != nil {
		return
	}
	n, err := pickleEnd(r.rest())
	if err != nil {
		r.adopt(r.Offset(), err)
		return
	}
	r.Next(n)
}

func (c pickleCodec) read(r *reader) value.Value {
	off := r.Offset()
	if c.skip(r); r.Err() != nil {
		return value.Null()
	}
	p := r.Since(off)
	u := unpickler{classes: c.classes, arena: r.arena, objects: map[int]pickled{}}
	if len(p) > maxPickleSize {
		return value.Bytes(p).WithClass(notDecodedPickle)
	}
	if v, ok := u.run(p); ok {
		w := writer{}
		if c.write(&w, v); w.err == nil && bytes.Equal(w.p, p) {
			return v
		}
	}
	if u.class == "" {
		u.class = notDecodedPickle
	}
	return value.Bytes(p).WithClass(u.class)
}

// opaque reports whether a value is the bytes of a pickle.
func (c pickleCodec) opaque(v value.Value) bool {
	return v.Kind() == value.KindBytes && c.classes[v.Class()].save == nil
}

func (c pickleCodec) write(w *writer, v value.Value) {
	if !c.opaque(v) {
		newPickler(w, c, v.Variant()%value.EncodedNull).dump(v)
		return
	}
	if n, err := pickleEnd([]byte(v.Text())); err != nil || n != len(v.Text()) {
		w.fail("bytes of class %q that are not a pickle", v.Class())
	}
	w.p = append(w.p, v.Text()...)
}

func (c pickleCodec) parse(p *parser, n *node) value.Value {
	if class, inner := classed(n); class != "" && c.classes[class].save == nil {
		return value.Bytes(p.bytes(inner)).WithClass(class)
	}
	return c.part(p, n)
}

// part converts a part of a pickle.
func (c pickleCodec) part(p *parser, n *node) value.Value {
	if p.err != nil {
		return value.Null()
	}
	switch n.Kind {
	case jsontext.Bool:
		return value.Bool(n.Text == "true")
	case jsontext.String:
		return value.String(n.Text)
	case jsontext.Array:
		return c.list(p, n)
	case jsontext.Object:
		return c.object(p, n)
	case jsontext.Number:
		if n.Text == "-0" || strings.ContainsAny(n.Text, ".eE") {
			return value.Float64(p.float(n, 8))
		}
		return integerOf(twosComplement(p.bigInteger(n)))
	}
	return value.Null()
}

func (c pickleCodec) list(p *parser, n *node) value.Value {
	return value.List(p.list(n, picklePart{c}))
}

// picklePart parses a part of a pickle.
type picklePart struct{ pickleCodec }

func (c picklePart) parse(p *parser, n *node) value.Value { return c.part(p, n) }

// object converts a dict, or a value with a class.
func (c pickleCodec) object(p *parser, n *node) value.Value {
	if class, inner := classed(n); class != "" {
		k := c.classes[class]
		if k.parse == nil {
			return p.fail("class %q is not part of a pickle that is decoded", class)
		}
		return k.parse(c, p, inner).WithClass(class)
	}
	names, all := make([]string, len(n.Parts)), make([]value.Value, len(n.Parts))
	for i := range all {
		if names[i] = n.Names[i]; strings.HasPrefix(names[i], "@@") { // see value.FieldMember
			names[i] = names[i][1:]
		}
		all[i] = p.field(picklePart{c}, &n.Parts[i], n.Names[i])
	}
	return value.Record(&value.Shape{Names: names}, all)
}

func (pickleCodec) describe(*describer) *Type { return &Type{Kind: TypeAny, Null: true} }

// integerOf returns the integer of a big-endian two's complement.
func integerOf(p []byte) value.Value {
	if len(p) > 8 {
		return value.BigInt(p)
	}
	all := make([]byte, 8)
	if len(p) > 0 && p[0] >= 0x80 {
		copy(all, "\xff\xff\xff\xff\xff\xff\xff\xff")
	}
	copy(all[8-len(p):], p)
	return value.Int(int64(binary.BigEndian.Uint64(all)))
}

// pickleMemo has the numbers of the objects that a pickle can refer to. Every object of
// Python that can contain others or is a text has one.
type pickleMemo struct {
	objects     int
	first, last map[pickleKey]int
}

// pickleKey is an object by its kind and its text.
type pickleKey struct {
	kind byte // one of the kinds
	text string
}

// Kinds of objects that a pickle refers to.
const (
	pickleString = iota
	pickleBytes
	pickleGlobal   // a class or a function
	pickleModule   // name of a module; also a string
	pickleEncoding // name of an encoding; also a string
	pickleZone
)

// keyOf returns the key of a string or bytes.
func keyOf(v value.Value) (k pickleKey, ok bool) {
	switch {
	case v.Kind() == value.KindString && v.Class() == "":
		return pickleKey{pickleString, v.Text()}, true
	case v.Kind() == value.KindBytes:
		return pickleKey{pickleBytes, v.Text()}, true
	}
	return k, false
}

// add assigns an object the next number.
func (m *pickleMemo) add(keys ...pickleKey) {
	if m.first == nil {
		m.first, m.last = map[pickleKey]int{}, map[pickleKey]int{}
	}
	for _, k := range keys {
		if _, ok := m.first[k]; !ok {
			m.first[k] = m.objects
		}
		m.last[k] = m.objects
	}
	m.objects++
}

// hashable reports whether Python accepts a value as a key, and its parts.
func hashable(v value.Value) bool {
	switch v.Class() {
	case "tuple", "frozenset":
		for i := range v.Len() {
			if !hashable(v.At(i)) {
				return false
			}
		}
		return true
	case "datetime.timedelta":
		return true
	}
	return v.Kind() < value.KindList
}

// backwards returns a copy in the opposite order.
func backwards(p []byte) []byte {
	p = slices.Clone(p)
	slices.Reverse(p)
	return p
}
