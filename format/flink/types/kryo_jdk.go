package types

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// Classes of the JDK: enums and sets of them, sorted collections, arrays, and others
// with an encoding of their own.

// enumConstants are the constants of known enums. The bytes of an enum have the ordinal
// of a constant, and no name.
var enumConstants = map[string][]string{
	"java.util.concurrent.TimeUnit":                {"NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"},
	"java.time.DayOfWeek":                          {"MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"},
	"java.time.Month":                              {"JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"},
	"java.time.temporal.ChronoUnit":                {"NANOS", "MICROS", "MILLIS", "SECONDS", "MINUTES", "HOURS", "HALF_DAYS", "DAYS", "WEEKS", "MONTHS", "YEARS", "DECADES", "CENTURIES", "MILLENNIA", "ERAS", "FOREVER"},
	"java.math.RoundingMode":                       {"UP", "DOWN", "CEILING", "FLOOR", "HALF_UP", "HALF_DOWN", "HALF_EVEN", "UNNECESSARY"},
	"org.apache.flink.types.RowKind":               rowKinds[:],
	"java.util.Comparators$NaturalOrderComparator": {"INSTANCE"},
}

// ordinal reads the ordinal of a constant, plus one.
func (r *reader) ordinal(class string) value.Value {
	off := r.Offset()
	n := int(r.uvarint()) - 1
	names, ok := enumConstants[class]
	switch {
	case r.Err() != nil:
	case n < 0:
		r.Fail(off, format.ErrCorrupt, "a constant of %q in Kryo is null", class)
	case !ok:
		return value.Int(int64(n))
	case n >= len(names):
		r.Fail(off, format.ErrUnsupported, "constant %d of %q in Kryo is not decoded", n, class)
	default:
		return value.String(names[n])
	}
	return value.Null()
}

func (w *writer) ordinal(v value.Value, class string) {
	names, ok := enumConstants[class]
	n := int64(slices.Index(names, v.Text()))
	if !ok {
		n = v.Int()
	}
	switch {
	case ok && w.expects(v, value.KindString) && n < 0:
		w.fail("%q is not a constant of %q", v.Text(), class)
	case !ok && w.expects(v, value.KindInt) && (n < 0 || n > math.MaxInt32):
		w.fail("%d is not the ordinal of a constant", n)
	}
	w.uvarint(uint32(n) + 1)
}

func (p *parser) ordinal(n *node, class string) value.Value {
	names, ok := enumConstants[class]
	if !ok {
		return intCodec.from(p, n)
	}
	s := p.str(n)
	if p.err == nil && !slices.Contains(names, s) {
		p.fail("%q is not a constant of %q: expected %s", s, class, list(names))
	}
	return value.String(s)
}

// kryoEnum is the codec of a known enum; in Kryo 5 enums have no reference marker.
func kryoEnum(class string) func(int) kryoBody {
	return func(version int) kryoBody {
		return kryoBody{plain: version == kryo5,
			read:  func(_ *kryoState, r *reader) value.Value { return r.ordinal(class) },
			write: func(_ *kryoState, w *writer, v value.Value) { w.ordinal(v, class) },
			parse: func(_ *kryoState, p *parser, n *node) value.Value { return p.ordinal(n, class) },
		}
	}
}

// typedShape is a collection with the class of its elements.
var typedShape = fieldsOf("type", "elements")

// kryoEnumSet is the codec of EnumSet: the class of its elements, uvarint count, and
// ordinals, which are numbers if the enum is not known.
func kryoEnumSet(int) kryoBody {
	return kryoBody{
		read: func(k *kryoState, r *reader) value.Value {
			off := r.Offset()
			class := k.class(r)
			if class == "" {
				r.Fail(off, format.ErrCorrupt, "a set of constants without a class")
			}
			at := r.Offset()
			n := int(r.uvarint())
			if r.CheckCount(at, n, "constants", 1); r.Err() != nil {
				return value.Null()
			}
			all := make([]value.Value, 0, min(n, growFrom))
			for range n {
				if all = append(all, r.ordinal(class)); r.Err() != nil {
					return value.Null()
				}
			}
			return value.Record(typedShape, []value.Value{value.String(class), value.List(all)})
		},
		write: func(k *kryoState, w *writer, v value.Value) {
			class, all := k.putTyped(w, v)
			if w.err != nil {
				return
			}
			k.putClass(w, class)
			w.uvarint(uint32(all.Len()))
			for i := range all.Len() {
				w.ordinal(all.At(i), class)
			}
		},
		parse: func(k *kryoState, p *parser, n *node) value.Value {
			return p.typed(n, func(class string) codec {
				return kryoParser{k: k, f: func(_ *kryoState, p *parser, n *node) value.Value {
					return value.List(p.list(n, kryoParser{f: kryoEnum(class)(kryo2).parse}))
				}}
			})
		},
	}
}

// putTyped returns the class and the elements of a collection that has a class, and
// records an error if v is not one.
func (k *kryoState) putTyped(w *writer, v value.Value) (class string, elements value.Value) {
	if !w.fields(v, typedShape) || !w.expects(v.At(0), value.KindString) || !w.expects(v.At(1), value.KindList) {
		return "", elements
	}
	if class, elements = v.At(0).Text(), v.At(1); class == "" {
		w.fail("a collection without the class of its elements")
	}
	return class, elements
}

// typed converts a collection with the class of its elements, which are converted by
// what elements returns.
func (p *parser) typed(n *node, elements func(class string) codec) value.Value {
	members := p.members(n, typedShape.Names)
	if members == nil {
		return value.Null()
	}
	class := p.str(members[0])
	return value.Record(typedShape, []value.Value{value.String(class), p.field(elements(class), members[1], "elements")})
}

// sortedShape is a sorted collection with a comparator.
var sortedShape = fieldsOf("comparator", "elements")

// comparators are the known classes of comparators.
var comparators = map[string]bool{
	"java.util.Collections$ReverseComparator": true, "java.util.Collections$ReverseComparator2": true, "java.lang.String$CaseInsensitiveComparator": true,
	"java.util.Comparators$NaturalOrderComparator": true, "java.util.Comparators$NullComparator": true,
}

// comparator reads a comparator, which is null for the natural order.
func (k *kryoState) comparator(r *reader) value.Value {
	off := r.Offset()
	v := k.any(r, "")
	if class := k.classOf(v, ""); r.Err() == nil && !plainNull(v) && !comparators[class] {
		r.Fail(off, format.ErrUnsupported, "a collection sorted by an object of class %q in Kryo is not decoded", class)
	}
	return v
}

func (k *kryoState) putComparator(w *writer, v value.Value) {
	if class := k.classOf(v, ""); !plainNull(v) && !comparators[class] {
		w.fail("a collection sorted by an object of class %q cannot be written in Kryo", class)
		return
	}
	k.putAny(w, v, "")
}

func plainNull(v value.Value) bool { return v.IsNull() && v.Class() == "" }

// ordered returns a sorted collection with its comparator, if it has one.
func ordered(comparator, elements value.Value) value.Value {
	if plainNull(comparator) {
		return elements
	}
	return value.Record(sortedShape, []value.Value{comparator, elements})
}

// unordered is the inverse of ordered.
func unordered(v value.Value) (comparator, elements value.Value) {
	if v.Kind() == value.KindRecord && slices.Equal(v.Shape().Names, sortedShape.Names) && v.Len() == 2 {
		return v.At(0), v.At(1)
	}
	return value.Null(), v
}

// sortedBody is the codec of a comparator and then b.
func sortedBody(b kryoBody) kryoBody {
	return kryoBody{
		read: func(k *kryoState, r *reader) value.Value {
			order := k.comparator(r)
			return ordered(order, b.read(k, r))
		},
		write: func(k *kryoState, w *writer, v value.Value) {
			order, v := unordered(v)
			k.putComparator(w, order)
			b.write(k, w, v)
		},
		parse: func(k *kryoState, p *parser, n *node) value.Value {
			if n.Kind != jsontext.Object || member(n, sortedShape.Names[0]) == nil {
				return b.parse(k, p, n)
			}
			members := p.members(n, sortedShape.Names)
			if members == nil {
				return value.Null()
			}
			order := p.field(kryoElement{k: k}, members[0], sortedShape.Names[0])
			return ordered(order, p.field(kryoParser{k: k, f: b.parse}, members[1], sortedShape.Names[1]))
		},
	}
}

// kryoFinal are classes that no other extends: in arrays and fields their objects have
// no class.
var kryoFinal = func() map[string]bool {
	m := map[string]bool{}
	for prefix, classes := range map[string]string{
		"java.lang.":        "String Integer Long Short Byte Character Boolean Float Double",
		"java.util.":        "UUID Optional OptionalInt OptionalLong OptionalDouble Locale Currency regex.Pattern",
		"java.net.":         "URI URL",
		"java.time.":        "Instant LocalDate LocalTime LocalDateTime Duration OffsetDateTime ZonedDateTime OffsetTime Period Year YearMonth MonthDay ZoneOffset",
		"org.joda.time.":    "DateTime Interval LocalDate LocalTime LocalDateTime Instant Duration",
		"scala.":            "Some",
		"scala.collection.": "immutable.Vector",
	} {
		for _, class := range strings.Fields(classes) {
			m[prefix+class] = true
		}
	}
	return m
}()

// kryoExtended are known classes that others may extend.
var kryoExtended = map[string]bool{
	"java.util.ArrayList": true, "java.util.LinkedList": true, "java.util.HashMap": true, "java.util.LinkedHashMap": true, "java.util.HashSet": true, "java.util.TreeMap": true, "java.util.TreeSet": true,
	"java.util.Date": true, "java.sql.Timestamp": true, "java.sql.Date": true, "java.sql.Time": true, "java.math.BigInteger": true, "java.math.BigDecimal": true, "java.util.BitSet": true,
}

// maxDimensions limits the dimensions of an array.
const maxDimensions = 8

// array returns the codec of an array of objects, by its class as Java names it. Elements
// of a class that no other extends have no class.
func (k *kryoCodec) array(class string) (kryoBody, bool) {
	dims := len(class) - len(strings.TrimLeft(class, "["))
	element, isObject := strings.CutPrefix(class[dims:], "L")
	element, ended := strings.CutSuffix(element, ";")
	ok := isObject && ended
	primitive := dims > 1 && len(class) == dims+1
	final := primitive || ok && kryoFinal[element]
	if dims > maxDimensions || !primitive && !ok || ok && !final && !kryoOpen[element] && !kryoExtended[element] {
		return kryoBody{}, false
	}
	if !final {
		return kryoArray(fieldBody(fieldOfAny()))(k.version), true
	}
	if dims > 1 {
		element = class[1:]
	}
	body, ok := k.body(element)
	return kryoArray(fieldBody(finalField(element, func(int) kryoBody { return body })))(k.version), ok
}

// kryoBits is the codec of BitSet: uvarint count of words of 64 bits and words. A value is
// their bytes, the lowest bit first, as BitSet.toByteArray returns them; in Kryo 5 the
// last word is not 0.
func kryoBits(version int) kryoBody {
	reorder := func(dst, p []byte) []byte {
		for ; len(p) >= 8; p = p[8:] {
			dst = binary.BigEndian.AppendUint64(dst, binary.LittleEndian.Uint64(p))
		}
		return dst
	}
	ends := func(p []byte) bool {
		return version == kryo5 && len(p) > 0 && binary.LittleEndian.Uint64(p[len(p)-8:]) == 0
	}
	return kryoFunc(false, func(r *reader) value.Value {
		off := r.Offset()
		n := int(r.uvarint())
		if r.CheckCount(off, n, "words of bits", 8); r.Err() != nil {
			return value.Null()
		}
		p := r.Bytes(8*n, "words of bits")
		if r.Err() == nil && ends(p) {
			r.other(off, "a set of bits whose last word is 0")
		}
		if version == kryo2 {
			p = reorder(nil, p)
		}
		return value.Bytes(p)
	}, func(w *writer, v value.Value) {
		if !w.expects(v, value.KindBytes) {
			return
		}
		p := []byte(v.Text())
		if len(p)%8 != 0 || ends(p) {
			w.fail("a set of bits of %d bytes: expected words of 8 bytes, in Kryo 5 without a last one of 0", len(p))
			return
		}
		if w.uvarint(uint32(len(p) / 8)); version == kryo2 {
			w.p = reorder(w.p, p)
		} else {
			w.p = append(w.p, p...)
		}
	}, bytesCodec.from)(version)
}

// localeHead is the stream of a Locale up to its strings. Wire format: never change.
var localeHead = head("7372" + "00106a6176612e7574696c2e4c6f63616c65" + "7ef811609c30f9ec" + "030006" +
	"490008" + "68617368636f6465" + "4c0007" + "636f756e747279" + "740012" + "4c6a6176612f6c616e672f537472696e673b" + "4c000a" + "657874656e73696f6e73" + "71007e0001" +
	"4c0008" + "6c616e6775616765" + "71007e0001" + "4c0006" + "736372697074" + "71007e0001" + "4c0007" + "76617269616e74" + "71007e0001" + "7870" + "ffffffff")

// firstString is the handle of the first string in the stream of a Locale.
const firstString = 0x7e0003

// localeFields are the strings of a Locale in the order of its stream.
var localeFields = fieldsOf("country", "extensions", "language", "script", "variant")

// kryoLocale2 is the codec of Locale in Kryo 2: a Java object stream.
func kryoLocale2(version int) kryoBody {
	put := func(w *writer, v value.Value) {
		if !w.fields(v, localeFields) {
			return
		}
		w.p = append(w.p, localeHead...)
		var known []string
		for i := range localeFields.Names {
			if !w.expects(v.At(i), value.KindString) {
				return
			}
			s := v.At(i).Text()
			if n := slices.Index(known, s); n >= 0 {
				w.p = binary.BigEndian.AppendUint32(append(w.p, 0x71), uint32(firstString+n))
				continue
			}
			known = append(known, s)
			w.p = append(w.p, 0x74)
			utfCodec.put(w, v.At(i))
		}
		w.p = append(w.p, 0x78)
	}
	return kryoFunc(false, func(r *reader) value.Value {
		off := r.Offset()
		o := java.ReadObject(&r.Cursor)
		if r.Err() != nil {
			return value.Null()
		}
		all := make([]value.Value, len(localeFields.Names))
		for i, name := range localeFields.Names {
			all[i] = value.String("")
			if s := o.Object(name); s != nil {
				all[i] = value.String(s.Text)
			}
		}
		v := value.Record(localeFields, all)
		w := writer{}
		if put(&w, v); w.err != nil || string(w.p) != string(r.Since(off)) {
			r.other(off, "a locale of another encoding")
		}
		return v
	}, put, stringsOf(localeFields))(version)
}

// stringsOf converts an object of strings.
func stringsOf(shape *value.Shape) func(p *parser, n *node) value.Value {
	return func(p *parser, n *node) value.Value {
		members := p.members(n, shape.Names)
		all := make([]value.Value, len(members))
		for i := range members {
			all[i] = value.String(p.str(members[i]))
		}
		return value.Record(shape, all)
	}
}

// kryoAvroArray is the codec of arrays of Avro in Flink 2: the schema, uvarint length and
// the array in Avro's binary encoding.
func kryoAvroArray(version int) kryoBody {
	return kryoFields([]string{"schema", "avro"}, inline(kryoString), inline(kryoFramed))(version)
}

var (
	longField   = inline(kryoFunc(false, kryoLong.get, kryoLong.put, kryoLong.from))
	textInline  = inline(kryoString)
	flagField   = inline(kryoFunc(false, boolCodec.get, boolCodec.put, boolCodec.from))
	dateField   = inline(kryoFunc(false, kryoDate.get, kryoDate.put, kryoDate.from))
	numberField = inline(kryoVarint)
)

// fixedField is a field of a fixed number of bytes.
func fixedField(c scalar) kryoField {
	return inline(func(version int) kryoBody { return kryoScalar(version, c, false) })
}

// kryoOptional is the codec of OptionalInt and others: whether the value is present and
// the value, which follows in Kryo 2 also if it is absent.
func kryoOptional(c scalar, absent value.Value) func(int) kryoBody {
	return func(version int) kryoBody {
		one := kryoScalar(version, c, false)
		return kryoBody{
			read: func(k *kryoState, r *reader) value.Value {
				off := r.Offset()
				present := r.Bool("whether a value is present")
				if !present && version == kryo5 {
					return value.Null()
				}
				v := one.read(k, r)
				if present || r.Err() != nil {
					return v
				}
				w := writer{p: []byte{0}}
				if one.write(k, &w, absent); string(w.p) != string(r.Since(off)) {
					r.other(off, "a value that is absent and not 0")
				}
				return value.Null()
			},
			write: func(k *kryoState, w *writer, v value.Value) {
				w.bool(!v.IsNull())
				if !v.IsNull() {
					one.write(k, w, v)
				} else if version == kryo2 {
					one.write(k, w, absent)
				}
			},
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				if n.Kind == jsontext.Null {
					return value.Null()
				}
				return one.parse(k, p, n)
			},
		}
	}
}

// addJDK adds the classes of this file.
func addJDK(m map[string]func(version int) kryoBody) {
	for class := range enumConstants {
		m[class] = kryoEnum(class)
	}
	m["java.util.RegularEnumSet"], m["java.util.JumboEnumSet"] = kryoEnumSet, kryoEnumSet
	m["java.util.Collections$ReverseComparator2"] = kryoFields([]string{"comparator"}, anyField)
	m["java.util.Comparators$NullComparator"] = kryoFields([]string{"nullFirst", "comparator"}, flagField, anyField)
	nan := value.Float64(0x7ff8 << 48) // of Java
	m["java.util.OptionalInt"] = byVersion(kryoOptional(kryoInt, value.Int(0)), kryoOptional(intCodec, value.Int(0)))
	m["java.util.OptionalLong"] = byVersion(kryoOptional(kryoLong, value.Int(0)), kryoOptional(longCodec, value.Int(0)))
	m["java.util.OptionalDouble"] = kryoOptional(doubleCodec, nan)
	m["java.util.BitSet"] = kryoBits
	m["java.util.regex.Pattern"] = byVersion(kryoString, kryoFields([]string{"pattern", "flags"}, textInline, numberField))
	m["java.util.Locale"] = byVersion(kryoLocale2, kryoFields([]string{"language", "country", "variant"}, textInline, textInline, textInline))
	m["java.net.InetSocketAddress"] = kryoFields([]string{"host", "port"}, textInline, numberField)
	m["java.text.SimpleDateFormat"] = func(version int) kryoBody { return kryoJavaObject("java.text.SimpleDateFormat", version) }
	units := func(int) kryoBody { return kryoText(textUnits) }
	m["java.lang.StringBuilder"], m["java.lang.StringBuffer"] = byVersion(units, kryoString), byVersion(units, kryoString)
	m["sun.util.calendar.ZoneInfo"] = kryoString
	m["java.util.GregorianCalendar"] = kryoFields([]string{"timeZone", "time", "lenient", "firstDayOfWeek", "minimalDaysInFirstWeek", "gregorianChange"}, textInline, dateField, flagField, numberField, numberField, longField)
	for _, class := range []string{"UTF_8", "ISO_8859_1", "US_ASCII", "UTF_16", "UTF_16BE", "UTF_16LE"} {
		m["sun.nio.cs."+class] = byVersion(func(int) kryoBody { return kryoBody{} }, kryoString) // Flink does not read them in Kryo 2
	}
	atomic := "java.util.concurrent.atomic."
	m[atomic+"AtomicInteger"], m[atomic+"AtomicBoolean"], m[atomic+"AtomicLong"] = fieldBody(intField), fieldBody(intField), fieldBody(longField)
	m[atomic+"AtomicReference"] = kryoFields([]string{"value"}, anyField)
	m[atomic+"AtomicIntegerArray"], m[atomic+"AtomicLongArray"] = fieldBody(finalField("[I", m["[I"])), fieldBody(finalField("[J", m["[J"]))
	m["org.apache.flink.types.Row"] = kryoFields([]string{"fieldByName", "fieldByPosition", "kind", "positionByName"}, anyField, anyField, finalField("org.apache.flink.types.RowKind", m["org.apache.flink.types.RowKind"]), anyField)
	m["org.apache.flink.streaming.api.windowing.windows.TimeWindow"] = kryoFields([]string{"end", "start"}, longField, longField)
}
