package types

import (
	"maps"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
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
	class := k.text(r, k.nameEncoding())
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
	k.putText(w, class, k.nameEncoding())
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
