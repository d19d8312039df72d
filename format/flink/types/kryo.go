package types

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// The values of Kryo (spec flink-serializers B14): the class of an object and then its
// content, which is known for classes of the JDK and a few others. Classes of users
// have fields without names and types, and are not decoded.
//
// Strings, ints, booleans and null are values; other objects have their class, unless
// it is the class of the serializer. A reference to an earlier object of the same
// value is the number of that object, with the class "@reference" and the class of
// the object.

// Kryo versions: Flink 1.x has Kryo 2, Flink 2.x has Kryo 5. Snapshots do not record
// which wrote a value.
const (
	kryo2 = 2
	kryo5 = 5
)

// UnknownKryo is the reason if it is not known which version of Kryo wrote values.
const UnknownKryo Reason = "whether Kryo 2 or 5 wrote its bytes is not known"

const referenceClass = "@reference "

// referenced returns the class of the object that a value refers to.
func referenced(v value.Value) (class string, ok bool) {
	return strings.CutPrefix(v.Class(), referenceClass)
}

// firstKryoID is the id of the first class of a snapshot. Kryo has ids for primitives
// before, and Flink for classes of Scala and the JDK.
const firstKryoID = 85

// asList is the class of lists that are views of an array.
const asList = "java.util.Arrays$ArrayList"

// kryoIDs are the classes that Kryo and Flink register. Wire format: never change.
var kryoIDs = map[int]string{
	0: "java.lang.Integer", 1: "java.lang.String", 2: "java.lang.Float", 3: "java.lang.Boolean", 4: "java.lang.Byte", 5: "java.lang.Character", 6: "java.lang.Short", 7: "java.lang.Long", 8: "java.lang.Double",
	73: asList, 74: "java.util.BitSet", 75: "java.util.PriorityQueue", 76: "java.util.regex.Pattern", 77: "java.sql.Date", 78: "java.sql.Time", 79: "java.sql.Timestamp",
	80: "java.net.URI", 81: "java.net.InetSocketAddress", 82: "java.util.UUID", 83: "java.util.Locale", 84: "java.text.SimpleDateFormat",
}

// kryoBody is the codec of the objects of a class.
type kryoBody struct {
	plain bool // without a reference marker
	read  func(k *kryoState, r *reader) value.Value
	write func(k *kryoState, w *writer, v value.Value)
	parse func(k *kryoState, p *parser, n *node) value.Value
}

// kryoCodec is the codec of one serializer.
type kryoCodec struct {
	version int
	own     string         // class of the serializer
	ids     map[int]string // registered classes
	numbers map[string]int
	given   map[string]givenSerializer            // classes with a serializer that the job chose; nil if it is not known
	bodies  map[string]func(version int) kryoBody // kryoBodies; a field, because they refer to it
}

// kryoState is the state while one value is read or written.
type kryoState struct {
	*kryoCodec
	names   []string // classes by name
	objects int
}

func kryoOf(m *maker, s *Snapshot, _ []codec) codec {
	if m.options.Kryo != kryo2 && m.options.Kryo != kryo5 {
		return m.fail(s, UnknownKryo)
	}
	k := kryoCodec{version: m.options.Kryo, own: s.Type, ids: maps.Clone(kryoIDs), numbers: map[string]int{}, given: map[string]givenSerializer{}, bodies: kryoBodies}
	if k.version == kryo2 {
		maps.Copy(k.ids, scalaIDs)
	}
	if !k.addDefaults(s.defaults) {
		return m.fail(s, UserKryo)
	}
	for i, class := range s.Names {
		k.ids[firstKryoID+i] = class
		if i < len(s.serializers) && s.serializers[i] != "" {
			k.given[class] = givenSerializers[simpleName(s.serializers[i])]
		}
	}
	for id, class := range k.ids {
		if old, ok := k.numbers[class]; !ok || id < old { // the first registration of a class counts
			k.numbers[class] = id
		}
	}
	if _, ok := k.body(k.own); !ok && !kryoOpen[k.own] {
		return m.fail(s, UserKryo)
	}
	return k
}

func (k kryoCodec) skip(r *reader) { k.read(r) }

func (k kryoCodec) read(r *reader) value.Value {
	s := &kryoState{kryoCodec: &k}
	return s.any(r, k.own)
}

func (k kryoCodec) write(w *writer, v value.Value) {
	s := &kryoState{kryoCodec: &k}
	s.putAny(w, v, k.own)
}

func (k kryoCodec) parse(p *parser, n *node) value.Value {
	s := &kryoState{kryoCodec: &k}
	return s.parseAny(p, n, k.own)
}

// body returns the codec of a class.
func (k *kryoCodec) body(class string) (kryoBody, bool) {
	if given, ok := k.given[class]; ok {
		if given == nil {
			return kryoBody{}, false
		}
		return given(class, k.version), true
	}
	if b, ok := k.bodies[class]; ok {
		if body := b(k.version); body.read != nil {
			return body, true
		}
		return kryoBody{}, false
	}
	if strings.HasPrefix(class, "[") {
		return k.array(class)
	}
	if k.own == "java.lang.Throwable" {
		return kryoJavaObject(class, k.version), true
	}
	return kryoBody{}, false
}

// bareKryo are the classes that need no name, by the kinds of their values.
var bareKryo = map[value.Kind]string{value.KindString: "java.lang.String", value.KindInt: "java.lang.Integer", value.KindBool: "java.lang.Boolean"}

// classOf returns the class of a value that is declared as another.
func (k *kryoState) classOf(v value.Value, declared string) string {
	if class, ok := referenced(v); ok {
		return class
	}
	if v.Class() != "" {
		return v.Class()
	}
	if _, ok := k.body(declared); ok {
		return declared
	}
	return bareKryo[v.Kind()]
}

// withClass returns v with its class if that is needed.
func (k *kryoState) withClass(v value.Value, class, declared string) value.Value {
	if _, ok := referenced(v); ok {
		return value.Int(v.Int()).WithClass(referenceClass + class)
	}
	if class == declared {
		return v
	}
	if _, ok := k.body(declared); !ok && bareKryo[v.Kind()] == class {
		return v
	}
	return v.WithClass(class)
}

// class reads a class: 0 null, 1 by name, otherwise by id.
func (k *kryoState) class(r *reader) string {
	off := r.Offset()
	c := r.uvarint()
	switch {
	case r.Err() != nil || c == 0:
		return ""
	case c > 1:
		class, ok := k.ids[int(c)-2]
		if !ok || k.numbers[class] != int(c)-2 {
			r.Fail(off, format.ErrUnsupported, "an object of the class with id %d in Kryo is not decoded", c-2)
		}
		return class
	}
	n := int(r.uvarint())
	if r.Err() != nil {
		return ""
	}
	if n < len(k.names) {
		return k.names[n]
	}
	at := r.Offset()
	class := k.text(r, k.nameForm())
	if r.Err() != nil {
		return ""
	}
	if n > len(k.names) || class == "" {
		r.Fail(off, format.ErrCorrupt, "name %d of a class in Kryo, expected %d", n, len(k.names))
		return ""
	}
	if _, ok := k.numbers[class]; ok || slices.Contains(k.names, class) {
		r.other(at, "a name of a class that has a number")
	}
	k.names = append(k.names, class)
	return class
}

func (k *kryoState) putClass(w *writer, class string) {
	if id, ok := k.numbers[class]; ok {
		w.uvarint(uint32(id) + 2)
		return
	}
	w.p = append(w.p, 1)
	if n := slices.Index(k.names, class); n >= 0 {
		w.uvarint(uint32(n))
		return
	}
	w.uvarint(uint32(len(k.names)))
	k.names = append(k.names, class)
	k.putText(w, class, k.nameForm())
}

// any reads a class and an object.
func (k *kryoState) any(r *reader, declared string) (v value.Value) {
	if !r.enter() {
		return v
	}
	defer r.leave()
	off := r.Offset()
	class := k.class(r)
	if r.Err() != nil || class == "" {
		return v
	}
	body, ok := k.body(class)
	if !ok {
		r.Fail(off, format.ErrUnsupported, "an object of class %q in Kryo is not decoded", class)
		return v
	}
	return k.withClass(k.object(r, body, false), class, declared)
}

// object reads a reference marker and the object.
func (k *kryoState) object(r *reader, body kryoBody, nullable bool) value.Value {
	if body.plain {
		if nullable && !r.Bool("a null flag of Kryo") {
			return value.Null()
		}
		return body.read(k, r)
	}
	off := r.Offset()
	switch n := r.uvarint(); {
	case r.Err() != nil || n == 0 && nullable:
		return value.Null()
	case n == 0:
		r.Fail(off, format.ErrCorrupt, "an object in Kryo is null")
		return value.Null()
	case n > 1:
		if int(n-2) >= k.objects {
			r.Fail(off, format.ErrCorrupt, "a reference to object %d of %d", n-2, k.objects)
		}
		return value.Int(int64(n - 2)).WithClass(referenceClass)
	}
	k.objects++
	return body.read(k, r)
}

func (k *kryoState) putObject(w *writer, body kryoBody, v value.Value, nullable bool) {
	switch {
	case nullable && v.IsNull():
		w.p = append(w.p, 0)
		return
	case body.plain && nullable:
		w.p = append(w.p, 1)
	case body.plain:
	default:
		if _, ok := referenced(v); ok {
			w.uvarint(uint32(v.Int()) + 2)
			return
		}
		w.p = append(w.p, 1)
		k.objects++
	}
	body.write(k, w, v.WithClass(""))
}

func (k *kryoState) putAny(w *writer, v value.Value, declared string) {
	if v.IsNull() && v.Class() == "" && !emptyBodies[declared] {
		w.p = append(w.p, 0)
		return
	}
	class := k.classOf(v, declared)
	body, ok := k.body(class)
	if !ok {
		w.fail("%v of class %q cannot be written in Kryo", v.Kind(), class)
		return
	}
	if w.depth++; w.depth > maxRecursion {
		w.fail("a value nested more than %d deep", maxRecursion)
		return
	}
	k.putClass(w, class)
	k.putObject(w, body, v, false)
	w.depth--
}

func (k *kryoState) parseAny(p *parser, n *node, declared string) value.Value {
	if n.Kind == jsontext.Null {
		return value.Null()
	}
	class, inner := classed(n)
	if class == "" {
		if _, ok := k.body(declared); ok {
			class = declared
		} else if class = map[jsontext.Kind]string{jsontext.String: "java.lang.String", jsontext.Number: "java.lang.Integer", jsontext.Bool: "java.lang.Boolean"}[n.Kind]; class == "" {
			return p.fail(`expected null, true, false, an integer, a string or {"@class": …}, found %s`, found(n))
		}
	}
	if of, ok := strings.CutPrefix(class, referenceClass); ok {
		if _, ok := k.body(of); !ok {
			return p.fail("objects of class %q cannot be written in Kryo", of)
		}
		return kryoReference(p, inner, class)
	}
	body, ok := k.body(class)
	if !ok {
		return p.fail("objects of class %q cannot be written in Kryo", class)
	}
	return k.withClass(body.parse(k, p, inner), class, declared)
}

// kryoReference converts the number of an object. Whether there is such an object
// shows when the value is read back.
func kryoReference(p *parser, n *node, class string) value.Value {
	i := p.integer(n, 4)
	if p.err == nil && i < 0 {
		p.fail("expected the number of an object, found %s", found(n))
	}
	return value.Int(i).WithClass(class)
}

// textForm is what a string is in Kryo.
type textForm int

const (
	textValue textForm = iota // characters below 0x80 if they are few
	textName                  // characters below 0x80, however many
	textUnits                 // never
)

// nameForm is the form of the names of classes.
func (k *kryoState) nameForm() textForm {
	if k.version == kryo5 {
		return textName
	}
	return textValue
}

// text reads a string: characters below 0x80 whose last has bit 7 set, or a length
// and UTF-8 of its UTF-16 units.
func (k *kryoState) text(r *reader, form textForm) string {
	off := r.Offset()
	b := r.U8()
	var s []byte
	if b&0x80 == 0 {
		for s = append(s, b); b&0x80 == 0 && r.Err() == nil; {
			b = r.U8()
			s = append(s, b&0x7f)
		}
	} else {
		n := uint64(b & 0x3f)
		for shift := 6; b&(0x40|0x80) == 0xc0 || shift > 6 && b&0x80 != 0; shift += 7 {
			if shift > 27 {
				r.Fail(off, format.ErrCorrupt, "the length of a string in Kryo")
				return ""
			}
			b = r.U8()
			if n |= uint64(b&0x7f) << shift; b&0x80 == 0 {
				break
			}
		}
		if r.Err() != nil {
			return ""
		}
		if n == 0 || n-1 > uint64(r.Remaining()) {
			kind := format.ErrTruncated
			if n == 0 {
				kind = format.ErrUnsupported
			}
			r.Fail(off, kind, "a string of %d characters in Kryo, %d bytes left", int64(n)-1, r.Remaining())
			return ""
		}
		units := make([]uint16, n-1)
		for i := range units {
			switch b := r.U8(); {
			case b < 0x80:
				units[i] = uint16(b)
			case b>>5 == 0b110:
				units[i] = uint16(b&0x1f)<<6 | uint16(r.U8()&0x3f)
			default:
				units[i] = uint16(b&0x0f)<<12 | uint16(r.U8()&0x3f)<<6
				units[i] |= uint16(r.U8() & 0x3f)
			}
		}
		s = []byte(java.FromUnits(units))
	}
	if r.Err() != nil {
		return ""
	}
	w := writer{}
	if k.putText(&w, string(s), form); w.err != nil || string(w.p) != string(r.Since(off)) {
		r.other(off, "a string of another encoding")
	}
	return string(s)
}

func (k *kryoState) putText(w *writer, s string, form textForm) {
	most := 63
	if k.version == kryo5 {
		most = 32
	}
	few := len(s) <= most || form == textName && !strings.Contains(s, "\x00")
	if len(s) > 1 && few && form != textUnits && plainText(s) {
		w.p = append(w.p, s...)
		w.p[len(w.p)-1] |= 0x80
		return
	}
	units, ok := java.Units(s)
	if !ok || len(units) >= math.MaxInt32 {
		w.fail("a string that is not UTF-8 or too long")
		return
	}
	if n := uint32(len(units)) + 1; n < 0x40 {
		w.p = append(w.p, byte(n)|0x80)
	} else {
		w.p = append(w.p, byte(n&0x3f)|0xc0)
		w.uvarint(n >> 6)
	}
	for _, u := range units {
		switch {
		case u < 0x80:
			w.p = append(w.p, byte(u))
		case u < 0x800:
			w.p = append(w.p, 0xc0|byte(u>>6), 0x80|byte(u&0x3f))
		default:
			w.p = append(w.p, 0xe0|byte(u>>12), 0x80|byte(u>>6&0x3f), 0x80|byte(u&0x3f))
		}
	}
}

// varlong reads 8 groups of 7 bits and a ninth byte of 8 bits.
func (r *reader) varlong() uint64 {
	off := r.Offset()
	var v uint64
	for shift := 0; shift < 56; shift += 7 {
		b := r.U8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if b == 0 && shift > 0 {
				r.other(off, "a number with leading zeros")
			}
			return v
		}
	}
	b := r.U8()
	if b == 0 {
		r.other(off, "a number with leading zeros")
	}
	return v | uint64(b)<<56
}

func (w *writer) varlong(n uint64) {
	for range 8 {
		if n < 0x80 {
			w.p = append(w.p, byte(n))
			return
		}
		w.p = append(w.p, byte(n)|0x80)
		n >>= 7
	}
	w.p = append(w.p, byte(n))
}

func zigzag(n int64) uint64     { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(n uint64) int64   { return int64(n>>1) ^ -int64(n&1) }
func zigzag32(n int32) uint32   { return uint32(n<<1) ^ uint32(n>>31) }
func unzigzag32(n uint32) int32 { return int32(n>>1) ^ -int32(n&1) }

// kryoScalar is the codec of a class whose objects are written as by c, in the byte
// order of Kryo's version.
func kryoScalar(version int, c scalar, plain bool) kryoBody {
	swap := version == kryo5 && c.size > 1
	return kryoBody{plain: plain,
		read: func(_ *kryoState, r *reader) value.Value {
			if !swap {
				return c.get(r)
			}
			p := slices.Clone(r.Bytes(c.size, "a number"))
			slices.Reverse(p)
			if r.Err() != nil {
				return value.Null()
			}
			return c.get(&reader{Cursor: java.Of(p), arena: r.arena})
		},
		write: func(_ *kryoState, w *writer, v value.Value) {
			at := len(w.p)
			if c.put(w, v); swap {
				slices.Reverse(w.p[at:])
			}
		},
		parse: func(_ *kryoState, p *parser, n *node) value.Value { return c.from(p, n) },
	}
}

// kryoFunc is kryoScalar for codecs that do not depend on the version.
func kryoFunc(plain bool, get func(r *reader) value.Value, put func(w *writer, v value.Value), from func(p *parser, n *node) value.Value) func(int) kryoBody {
	return func(int) kryoBody {
		return kryoBody{plain: plain,
			read:  func(_ *kryoState, r *reader) value.Value { return get(r) },
			write: func(_ *kryoState, w *writer, v value.Value) { put(w, v) },
			parse: func(_ *kryoState, p *parser, n *node) value.Value { return from(p, n) },
		}
	}
}

var (
	kryoInt = scalar{
		get: func(r *reader) value.Value { return value.Int(int64(unzigzag32(r.uvarint()))) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindInt) {
				if v.Int() != int64(int32(v.Int())) {
					w.fail("%d does not fit into 32 bits", v.Int())
				}
				w.uvarint(zigzag32(int32(v.Int())))
			}
		},
		from: intCodec.from,
	}
	kryoLong = scalar{
		get: func(r *reader) value.Value { return value.Int(unzigzag(r.varlong())) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindInt) {
				w.varlong(zigzag(v.Int()))
			}
		},
		from: longCodec.from,
	}
	// kryoBig reads uvarint length, plus one, and two's complement.
	kryoBig = scalar{
		get: func(r *reader) value.Value {
			off := r.Offset()
			n := r.uvarint()
			p := r.Bytes(int(n)-1, "a big integer")
			if r.Err() == nil && len(p) == 0 {
				r.Fail(off, format.ErrCorrupt, "a big integer without a digit")
			}
			r.shortest(off, p)
			return value.BigInt(p)
		},
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindBigInt) {
				w.uvarint(uint32(len(v.Text())) + 1)
				w.p = append(w.p, v.Text()...)
			}
		},
		from: func(p *parser, n *node) value.Value { return value.BigInt(twosComplement(p.bigInteger(n))) },
	}
	kryoDecimal = scalar{
		get: func(r *reader) value.Value {
			digits := kryoBig.get(r).Text()
			return value.Decimal([]byte(digits), unzigzag32(r.uvarint()))
		},
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindDecimal) {
				kryoBig.put(w, value.BigInt([]byte(v.Text())))
				w.uvarint(zigzag32(v.Scale()))
			}
		},
		from: func(p *parser, n *node) value.Value {
			unscaled, scale := p.decimal(n)
			return value.Decimal(twosComplement(unscaled), scale)
		},
	}
	kryoDate = scalar{
		get: func(r *reader) value.Value { return instantOf(int64(r.varlong()), 0) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindInstant) {
				if v.Nano()%1e6 != 0 {
					w.fail("%v is finer than a millisecond", v)
				}
				w.varlong(uint64(w.millis(v)))
			}
		},
		from: func(p *parser, n *node) value.Value { return p.timestamp(n, value.KindInstant) },
	}
)

// kryoTimestamp is the codec of java.sql.Timestamp: ms, which
// are whole seconds in Kryo 5, and nanoseconds of the second.
func kryoTimestamp(version int) kryoBody {
	return kryoFunc(false, func(r *reader) value.Value {
		off := r.Offset()
		ms, nano := int64(r.varlong()), int32(r.uvarint())
		checkNano(r, off, nano)
		sec := floorDiv(ms, 1000)
		part := int64(0)
		if version == kryo2 {
			part = int64(nano / 1e6)
		}
		if r.Err() == nil && ms-sec*1000 != part {
			r.other(off, "a timestamp with two different values of milliseconds")
		}
		return value.Instant(sec, nano)
	}, func(w *writer, v value.Value) {
		if !w.expects(v, value.KindInstant) {
			return
		}
		ms := w.millis(v)
		if version == kryo5 {
			ms = w.millis(value.Instant(v.Int(), 0))
		}
		w.varlong(uint64(ms))
		w.uvarint(uint32(v.Nano()))
	}, kryoDate.from)(version)
}

// uuidText returns the text of the 16 bytes of a UUID.
func uuidText(u []byte) string {
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// kryoUUID is the codec of java.util.UUID, which is its text.
func kryoUUID(version int) kryoBody {
	parse := func(s string) (u [16]byte, ok bool) {
		p, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		if copy(u[:], p); err != nil || len(p) != len(u) {
			return u, false
		}
		return u, uuidText(u[:]) == s
	}
	return kryoFunc(false, func(r *reader) value.Value {
		var u [16]byte
		for i := 0; i < 16; i += 8 {
			if version == kryo2 {
				binary.BigEndian.PutUint64(u[i:], uint64(unzigzag(r.varlong())))
			} else if p := r.Bytes(8, "half a UUID"); p != nil {
				binary.BigEndian.PutUint64(u[i:], binary.LittleEndian.Uint64(p))
			}
		}
		return value.String(uuidText(u[:]))
	}, func(w *writer, v value.Value) {
		u, ok := parse(v.Text())
		if !w.expects(v, value.KindString) || !ok {
			w.fail("%q is not a UUID", v.Text())
			return
		}
		for i := 0; i < 16; i += 8 {
			if n := binary.BigEndian.Uint64(u[i:]); version == kryo2 {
				w.varlong(zigzag(int64(n)))
			} else {
				w.p = binary.LittleEndian.AppendUint64(w.p, n)
			}
		}
	}, func(p *parser, n *node) value.Value {
		s := p.str(n)
		if _, ok := parse(s); p.err == nil && !ok {
			p.fail("%q is not a UUID in lower case", s)
		}
		return value.String(s)
	})(version)
}

func kryoString(int) kryoBody { return kryoText(textValue) }

// kryoText is the codec of strings of a form.
func kryoText(form textForm) kryoBody {
	return kryoBody{
		read: func(k *kryoState, r *reader) value.Value { return value.String(k.text(r, form)) },
		write: func(k *kryoState, w *writer, v value.Value) {
			if w.expects(v, value.KindString) {
				k.putText(w, v.Text(), form)
			}
		},
		parse: func(_ *kryoState, p *parser, n *node) value.Value { return value.String(p.str(n)) },
	}
}

// kryoElement parses the JSON of an element.
type kryoElement struct {
	codec // not used
	k     *kryoState
}

func (e kryoElement) parse(p *parser, n *node) value.Value { return e.k.parseAny(p, n, "") }

// kryoCollection is the codec of collections. sorted ones have a comparator.
func kryoCollection(sorted bool) func(int) kryoBody {
	return func(version int) kryoBody {
		b := kryoBody{
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				return value.List(p.list(n, kryoElement{k: k}))
			},
			read: func(k *kryoState, r *reader) value.Value { return value.List(k.elements(r, int(r.uvarint()))) },
			write: func(k *kryoState, w *writer, v value.Value) {
				if !w.expects(v, value.KindList) {
					return
				}
				w.uvarint(uint32(v.Len()))
				for i := range v.Len() {
					k.putAny(w, v.At(i), "")
				}
			},
		}
		if version == kryo2 && sorted {
			return sortedBody(b)
		}
		if version == kryo5 {
			b.read = func(k *kryoState, r *reader) value.Value { return k.collection5(r, sorted) }
			b.write = func(k *kryoState, w *writer, v value.Value) { k.putCollection5(w, v, sorted) }
			if sorted {
				b.parse = sortedBody(b).parse
			}
		}
		return b
	}
}

// kryoAsList is the codec of Arrays.asList in Kryo 2: uvarint count, the class of the
// elements of its array, and elements.
func kryoAsList(version int) kryoBody {
	list := kryoCollection(false)(version)
	return kryoBody{
		read: func(k *kryoState, r *reader) value.Value {
			off := r.Offset()
			n := int(r.uvarint())
			class := k.class(r)
			if class == "" {
				r.Fail(off, format.ErrCorrupt, "a list of an array without a class")
			}
			return value.Record(typedShape, []value.Value{value.String(class), value.List(k.elements(r, n))})
		},
		write: func(k *kryoState, w *writer, v value.Value) {
			class, elements := k.putTyped(w, v)
			if w.err != nil {
				return
			}
			w.uvarint(uint32(elements.Len()))
			k.putClass(w, class)
			for i := range elements.Len() {
				k.putAny(w, elements.At(i), "")
			}
		},
		parse: func(k *kryoState, p *parser, n *node) value.Value {
			return p.typed(n, func(string) codec { return kryoParser{k: k, f: list.parse} })
		},
	}
}

// elements reads n classes and objects.
func (k *kryoState) elements(r *reader, n int) []value.Value {
	r.CheckCount(r.Offset(), n, "elements", 1)
	if r.Err() != nil {
		return nil
	}
	all := make([]value.Value, 0, min(n, growFrom))
	for range n {
		if all = append(all, k.any(r, "")); r.Err() != nil {
			return nil
		}
	}
	return all
}

// collection5 reads a flag and the size, plus one, the comparator of a sorted collection,
// and the elements, which have the same class if the flag is set.
func (k *kryoState) collection5(r *reader, sorted bool) value.Value {
	off := r.Offset()
	b := r.U8()
	same := b&0x80 != 0
	n := uint64(b & 0x3f)
	if b&0x40 != 0 {
		n |= r.uvarint64() << 6
	}
	switch {
	case r.Err() != nil:
		return value.Null()
	case n == 0 || n == 1 && same || n > math.MaxInt32 || b&0x40 != 0 && n < 0x40:
		r.other(off, "a collection of another encoding")
		return value.Null()
	}
	var order value.Value
	if sorted {
		order = k.comparator(r)
	}
	return ordered(order, value.List(k.elements5(r, off, int(n)-1, same)))
}

// elements5 reads the elements of a collection at an offset. If same: the class of all
// of them, whether some are null, and objects.
func (k *kryoState) elements5(r *reader, off, size int, same bool) []value.Value {
	if !same {
		all := k.elements(r, size)
		if r.Err() == nil && size > 0 && k.sameClass(all) != "" {
			r.other(off, "a collection with a class for each element")
		}
		return all
	}
	class := k.class(r)
	if class == "" { // all are null
		r.empty(off, size)
		if r.Err() != nil {
			return nil
		}
		return make([]value.Value, size)
	}
	body, ok := k.body(class)
	if !ok {
		r.Fail(off, format.ErrUnsupported, "an object of class %q in Kryo is not decoded", class)
	}
	nulls := r.Bool("a null flag of Kryo")
	r.CheckCount(off, size, "elements", 1)
	if nulls && emptyBodies[class] {
		r.Fail(off, format.ErrUnsupported, "a collection of nulls and of %s in Kryo is not decoded", class)
	}
	if r.Err() != nil || !r.enter() {
		return nil
	}
	defer r.leave()
	all := make([]value.Value, 0, min(size, growFrom))
	found := false
	for range size {
		v := k.object(r, body, nulls)
		null := nulls && v.IsNull()
		if found = found || null; !null {
			v = k.withClass(v, class, "")
		}
		if all = append(all, v); r.Err() != nil {
			return nil
		}
	}
	if found != nulls || k.sameClass(all) == "" {
		r.other(off, "a collection of another encoding")
	}
	return all
}

// sameClass returns the class of all elements that are not null, "" if they differ; a
// list of nulls has the class "null".
func (k *kryoState) sameClass(all []value.Value) string {
	class := ""
	for _, v := range all {
		if v.IsNull() && v.Class() == "" {
			continue
		}
		c := k.classOf(v, "")
		if class != "" && c != class {
			return ""
		}
		class = c
	}
	if class == "" {
		return "null"
	}
	return class
}

func (k *kryoState) putCollection5(w *writer, v value.Value, sorted bool) {
	var order value.Value
	if sorted {
		order, v = unordered(v)
	}
	if !w.expects(v, value.KindList) {
		return
	}
	n := uint32(v.Len()) + 1
	if n == 1 {
		if w.p = append(w.p, 1); sorted {
			k.putComparator(w, order)
		}
		return
	}
	all := make([]value.Value, v.Len())
	nulls := false
	for i := range all {
		all[i] = v.At(i)
		nulls = nulls || all[i].IsNull() && all[i].Class() == ""
	}
	class := k.sameClass(all)
	flag := byte(0x80)
	if class == "" {
		flag = 0
	}
	if n < 0x40 {
		w.p = append(w.p, flag|byte(n))
	} else {
		w.p = append(w.p, flag|0x40|byte(n&0x3f))
		w.uvarint(n >> 6)
	}
	if sorted {
		k.putComparator(w, order)
	}
	switch class {
	case "":
		for _, e := range all {
			k.putAny(w, e, "")
		}
		return
	case "null":
		w.p = append(w.p, 0)
		return
	}
	body, ok := k.body(class)
	if !ok || nulls && emptyBodies[class] {
		w.fail("class %q cannot be written in Kryo", class)
		return
	}
	k.putClass(w, class)
	w.bool(nulls)
	if w.depth++; w.depth > maxRecursion {
		w.fail("a value nested more than %d deep", maxRecursion)
		return
	}
	for _, e := range all {
		if nulls && e.IsNull() && e.Class() == "" {
			w.p = append(w.p, 0)
			continue
		}
		k.putObject(w, body, e, nulls)
	}
	w.depth--
}

// kryoMap is the codec of maps: size, in Kryo 5 plus one, and keys and values; sorted
// ones have a comparator, in Kryo 2 before the size.
func kryoMap(sorted bool) func(int) kryoBody {
	return func(version int) kryoBody {
		b := kryoBody{
			read: func(k *kryoState, r *reader) value.Value {
				off := r.Offset()
				n := int(r.uvarint())
				var order value.Value
				if version == kryo5 {
					if n--; n < 0 {
						r.other(off, "a null map")
						return value.Null()
					}
					if sorted {
						order = k.comparator(r)
					}
				}
				r.CheckCount(off, n, "entries", 2)
				return ordered(order, value.Map(k.elements(r, 2*n)))
			},
			write: func(k *kryoState, w *writer, v value.Value) {
				var order value.Value
				if sorted && version == kryo5 {
					order, v = unordered(v)
				}
				if !w.expects(v, value.KindMap) {
					return
				}
				n := uint32(v.Len())
				if version == kryo5 {
					n++
				}
				if w.uvarint(n); sorted && version == kryo5 {
					k.putComparator(w, order)
				}
				for i := range v.Len() {
					k.putAny(w, v.Key(i), "")
					k.putAny(w, v.At(i), "")
				}
			},
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				return value.Map(p.pairs(n, kryoElement{k: k}, kryoElement{k: k}))
			},
		}
		switch {
		case sorted && version == kryo2:
			return sortedBody(b)
		case sorted:
			b.parse = sortedBody(b).parse
		}
		return b
	}
}

// kryoFramed is the codec of Protobuf and Thrift in the serializers of Twitter's
// chill: uvarint length and bytes.
var kryoFramed = kryoFunc(false, func(r *reader) value.Value {
	return value.Bytes(r.Bytes(int(r.uvarint()), "a message"))
}, func(w *writer, v value.Value) {
	if w.expects(v, value.KindBytes) {
		w.uvarint(uint32(len(v.Text())))
		w.p = append(w.p, v.Text()...)
	}
}, bytesCodec.from)

// kryoJavaObject is the codec of a class whose objects are Java object streams.
func kryoJavaObject(class string, version int) kryoBody {
	return kryoFunc(false, func(r *reader) value.Value {
		off := r.Offset()
		v := javaStream{}.read(r)
		if r.Err() == nil && v.Class() != class {
			r.Fail(off, format.ErrCorrupt, "expected a Java object of class %q, found %q", class, v.Class())
		}
		return v
	}, func(w *writer, v value.Value) {
		if w.expects(v, value.KindBytes) {
			w.p = append(w.p, v.Text()...)
		}
	}, func(p *parser, n *node) value.Value { return value.Bytes(p.bytes(n)) })(version)
}

// kryoFields is the codec of classes whose fields are written one after the other.
func kryoFields(names []string, fields ...kryoField) func(int) kryoBody {
	shape := &value.Shape{Names: names}
	return func(version int) kryoBody {
		return kryoBody{
			read: func(k *kryoState, r *reader) value.Value {
				all := r.arena.Values(len(fields))
				for i, f := range fields {
					all[i] = f.read(k, r)
				}
				return value.Record(shape, all)
			},
			write: func(k *kryoState, w *writer, v value.Value) {
				if w.fields(v, shape) {
					for i, f := range fields {
						f.write(k, w, v.At(i))
					}
				}
			},
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				members := p.members(n, names)
				all := make([]value.Value, len(fields))
				for i := range members {
					all[i] = p.field(kryoParser{k: k, f: fields[i].parse}, members[i], names[i])
				}
				return value.Record(shape, all)
			},
		}
	}
}

type kryoField struct {
	read  func(k *kryoState, r *reader) value.Value
	write func(k *kryoState, w *writer, v value.Value)
	parse func(k *kryoState, p *parser, n *node) value.Value
}

type kryoParser struct {
	codec // not used
	k     *kryoState
	f     func(k *kryoState, p *parser, n *node) value.Value
}

func (c kryoParser) parse(p *parser, n *node) value.Value { return c.f(c.k, p, n) }

var (
	anyField = fieldOfAny()
	intField = kryoField{
		func(_ *kryoState, r *reader) value.Value { return kryoInt.get(r) },
		func(_ *kryoState, w *writer, v value.Value) { kryoInt.put(w, v) },
		func(_ *kryoState, p *parser, n *node) value.Value { return kryoInt.from(p, n) },
	}
	textField = finalField("java.lang.String", kryoString)
)

// fieldOfAny is a field whose objects have their class.
func fieldOfAny() kryoField {
	return kryoField{
		func(k *kryoState, r *reader) value.Value { return k.any(r, "") },
		func(k *kryoState, w *writer, v value.Value) { k.putAny(w, v, "") },
		func(k *kryoState, p *parser, n *node) value.Value { return k.parseAny(p, n, "") },
	}
}

// finalField is a field whose objects are of one class, or null.
func finalField(class string, body func(int) kryoBody) kryoField {
	return kryoField{
		func(k *kryoState, r *reader) value.Value {
			v := k.object(r, body(k.version), true)
			return k.withClass(v, class, class)
		},
		func(k *kryoState, w *writer, v value.Value) { k.putObject(w, body(k.version), v, true) },
		func(k *kryoState, p *parser, n *node) value.Value {
			if n.Kind == jsontext.Null {
				return value.Null()
			}
			if of, inner := classed(n); of == referenceClass+class {
				return kryoReference(p, inner, of)
			}
			return body(k.version).parse(k, p, n)
		},
	}
}

// tupleBody is the codec of tuples, whose fields are in the order of their names.
func tupleBody(n int) func(int) kryoBody {
	var names []string
	fields := make([]kryoField, n)
	for i := range n {
		names = append(names, fmt.Sprintf("f%d", i))
		fields[i] = anyField
	}
	slices.Sort(names)
	return kryoFields(names, fields...)
}

// kryoTime is the codec of java.time: in Kryo 2 the fields of a class by name, in Kryo
// 5 an encoding of its own.
func kryoTime(kind value.Kind, two, five func(r *reader) value.Value, putTwo, putFive func(w *writer, v value.Value)) func(int) kryoBody {
	return func(version int) kryoBody {
		get, put := two, putTwo
		if version == kryo5 {
			get, put = five, putFive
		}
		return kryoFunc(false, get, func(w *writer, v value.Value) {
			if w.expects(v, kind) {
				put(w, v)
			}
		}, func(p *parser, n *node) value.Value { return p.timestamp(n, kind) })(version)
	}
}

func (r *reader) kryoInstant2() value.Value {
	off := r.Offset()
	nano := unzigzag32(r.uvarint())
	checkNano(r, off, nano)
	return value.Instant(unzigzag(r.varlong()), nano)
}

func (r *reader) kryoInstant5() value.Value {
	sec, off := int64(r.varlong()), r.Offset()
	nano := int32(r.uvarint())
	checkNano(r, off, nano)
	return value.Instant(sec, nano)
}

func (w *writer) kryoInstant2(v value.Value) {
	w.uvarint(zigzag32(v.Nano()))
	w.varlong(zigzag(v.Int()))
}

func (w *writer) kryoInstant5(v value.Value) {
	w.varlong(uint64(v.Int()))
	w.uvarint(uint32(v.Nano()))
}

// kryoDate2 reads short day, short month and year.
func (r *reader) kryoDate2() value.Civil {
	off := r.Offset()
	day, month := r.U16(), r.U16()
	return r.kryoDay(off, unzigzag32(r.uvarint()), month, day)
}

func (r *reader) kryoDate5() value.Civil {
	off := r.Offset()
	year := int32(r.uvarint())
	return r.kryoDay(off, year, uint16(r.U8()), uint16(r.U8()))
}

func (r *reader) kryoDay(off int, year int32, month, day uint16) value.Civil {
	if r.Err() == nil && (month > 12 || day > 31 || !jsontext.ValidDay(int64(year), uint8(month), uint8(day))) {
		r.Fail(off, format.ErrCorrupt, "invalid date: year %d, month %d, day %d", year, month, day)
	}
	return value.Civil{Year: year, Month: uint8(month), Day: uint8(day)}
}

func (w *writer) kryoDate2(v value.Value) {
	c := v.Civil()
	w.int(int64(c.Day), 2)
	w.int(int64(c.Month), 2)
	w.uvarint(zigzag32(c.Year))
}

func (w *writer) kryoDate5(v value.Value) {
	c := v.Civil()
	w.uvarint(uint32(c.Year))
	w.p = append(w.p, c.Month, c.Day)
}

// kryoClock2 reads byte hour, byte minute, nanoseconds and byte second.
func (r *reader) kryoClock2(c value.Civil) value.Civil {
	off := r.Offset()
	c.Hour, c.Minute = r.U8(), r.U8()
	c.Nano = unzigzag32(r.uvarint())
	c.Second = r.U8()
	return r.kryoClock(off, c)
}

// kryoClock5 reads hour, minute, second and nanoseconds up to the last that is not 0.
// The bits of the last are inverted unless it is the nanoseconds.
func (r *reader) kryoClock5(c value.Civil) value.Civil {
	off := r.Offset()
	for i, to := range []*uint8{&c.Hour, &c.Minute, &c.Second} {
		*to = r.U8()
		if *to >= 0x80 {
			if *to = ^*to; *to == 0 && i > 0 {
				r.other(off, "a time of day with zeros at its end")
			}
			return r.kryoClock(off, c)
		}
	}
	if c.Nano = int32(r.uvarint()); c.Nano == 0 {
		r.other(off, "a time of day with zeros at its end")
	}
	return r.kryoClock(off, c)
}

func (r *reader) kryoClock(off int, c value.Civil) value.Civil {
	if r.Err() == nil && (c.Hour > 23 || c.Minute > 59 || c.Second > 59) {
		r.Fail(off, format.ErrCorrupt, "invalid time of day %d:%d:%d", c.Hour, c.Minute, c.Second)
	}
	checkNano(r, off, c.Nano)
	return c
}

func (w *writer) kryoClock2(v value.Value) {
	c := v.Civil()
	w.p = append(w.p, c.Hour, c.Minute)
	w.uvarint(zigzag32(c.Nano))
	w.p = append(w.p, c.Second)
}

func (w *writer) kryoClock5(v value.Value) {
	c := v.Civil()
	switch {
	case c.Nano != 0:
		w.p = append(w.p, c.Hour, c.Minute, c.Second)
		w.uvarint(uint32(c.Nano))
	case c.Second != 0:
		w.p = append(w.p, c.Hour, c.Minute, ^c.Second)
	case c.Minute != 0:
		w.p = append(w.p, c.Hour, ^c.Minute)
	default:
		w.p = append(w.p, ^c.Hour)
	}
}

func timeOf(c value.Civil) value.Value { return value.TimeOfDay(c.Hour, c.Minute, c.Second, c.Nano) }
func dateOf(c value.Civil) value.Value { return value.Date(c.Year, c.Month, c.Day) }

// marker reads the marker of an object that is not null or a reference.
func (k *kryoState) marker(r *reader, what string) {
	off := r.Offset()
	if b := r.U8(); b != 1 {
		r.Fail(off, format.ErrUnsupported, "%s in Kryo that is null or a reference is not decoded", what)
	}
	k.objects++
}

// kryoDateTime2 is the codec of LocalDateTime in Kryo 2: two objects. References to
// them are not decoded.
func kryoDateTime2() kryoBody {
	return kryoBody{
		read: func(k *kryoState, r *reader) value.Value {
			k.marker(r, "a date or time")
			c := r.kryoDate2()
			k.marker(r, "a date or time")
			return value.DateTime(r.kryoClock2(c))
		},
		write: func(k *kryoState, w *writer, v value.Value) {
			if w.expects(v, value.KindDateTime) {
				w.p = append(w.p, 1)
				w.kryoDate2(v)
				w.p = append(w.p, 1)
				w.kryoClock2(v)
				k.objects += 2
			}
		},
		parse: func(_ *kryoState, p *parser, n *node) value.Value { return p.timestamp(n, value.KindDateTime) },
	}
}

func kryoDateTime(version int) kryoBody {
	if version == kryo2 {
		return kryoDateTime2()
	}
	return kryoTime(value.KindDateTime, nil, func(r *reader) value.Value { return value.DateTime(r.kryoClock5(r.kryoDate5())) },
		nil, func(w *writer, v value.Value) { w.kryoDate5(v); w.kryoClock5(v) })(version)
}

// kryoDuration is the codec of Duration: an object of seconds and nanos.
func kryoDuration(version int) kryoBody {
	shape := fieldsOf("seconds", "nanos")
	get, put := (*reader).kryoInstant2, (*writer).kryoInstant2
	if version == kryo5 {
		get = func(r *reader) value.Value {
			off, sec := r.Offset(), int64(0)
			if p := r.Bytes(8, "seconds"); p != nil {
				sec = int64(binary.LittleEndian.Uint64(p))
			}
			nano := int32(r.uvarint())
			checkNano(r, off, nano)
			return value.Instant(sec, nano)
		}
		put = func(w *writer, v value.Value) {
			w.p = binary.LittleEndian.AppendUint64(w.p, uint64(v.Int()))
			w.uvarint(uint32(v.Nano()))
		}
	}
	return kryoFunc(false, func(r *reader) value.Value {
		v := get(r)
		return value.Record(shape, []value.Value{value.Int(v.Int()), value.Int(int64(v.Nano()))})
	}, func(w *writer, v value.Value) {
		if w.fields(v, shape) {
			nano := v.At(1).Int()
			if nano < 0 || nano >= second {
				w.fail("invalid nanoseconds %d of a second", nano)
			}
			put(w, value.Instant(v.At(0).Int(), int32(nano)))
		}
	}, record{shape, tupleOf(longCodec, intCodec)}.parse)(version)
}

// kryoArray is the codec of arrays of primitives: uvarint length, plus one, and
// elements.
func kryoArray(one func(version int) kryoBody) func(int) kryoBody {
	return func(version int) kryoBody {
		b := one(version)
		return kryoBody{
			read: func(k *kryoState, r *reader) value.Value {
				off := r.Offset()
				n := int(r.uvarint()) - 1
				if n < 0 {
					r.other(off, "a null array")
				}
				r.CheckCount(off, n, "elements", 1)
				if r.Err() != nil {
					return value.Null()
				}
				all := make([]value.Value, 0, min(n, growFrom))
				for range n {
					if all = append(all, b.read(k, r)); r.Err() != nil {
						return value.Null()
					}
				}
				return value.List(all)
			},
			write: func(k *kryoState, w *writer, v value.Value) {
				if w.expects(v, value.KindList) {
					w.uvarint(uint32(v.Len()) + 1)
					for i := range v.Len() {
						b.write(k, w, v.At(i))
					}
				}
			},
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				return value.List(p.list(n, kryoParser{k: k, f: b.parse}))
			},
		}
	}
}

// fieldBody is a field as the content of an object.
func fieldBody(f kryoField) func(int) kryoBody {
	return func(int) kryoBody { return kryoBody{read: f.read, write: f.write, parse: f.parse} }
}
