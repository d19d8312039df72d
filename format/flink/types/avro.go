package types

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// Avro values as Flink writes them (spec flink-serializers B13): not the binary
// encoding of Avro, but one with big-endian numbers of fixed size, so most types are
// other codecs of this package. Libraries for Avro do not read it.

func avroCodec(_ *maker, s *Snapshot, _ []codec) codec { return avroOf(s.text, &flinkAvro) }

// NewAvroCodec returns the codec of values in the binary encoding of Avro, not Flink's,
// with a schema. A schema that is not valid is a format.ErrUnsupported. Blocks of arrays
// and maps that are preceded by their size are not decoded.
func NewAvroCodec(schema []byte) (value.Codec, error) {
	c := avroOf(string(schema), &binaryAvro)
	if c == nil {
		return nil, format.Errorf(format.ErrUnsupported, "not a valid Avro schema")
	}
	return export(c), nil
}

// avroEncoding is what differs between encodings of Avro.
type avroEncoding struct {
	primitives map[string]scalar
	index      scalar // of a branch or a symbol
	zigzag     bool   // counts are signed
}

var flinkAvro = avroEncoding{index: intCodec, primitives: map[string]scalar{
	"boolean": boolCodec, "int": intCodec, "long": longCodec, "float": floatCodec, "double": doubleCodec, "bytes": bytesCodec, "string": stringDataCodec,
}}

var binaryAvro = avroEncoding{index: zigzagNumber(4), zigzag: true, primitives: map[string]scalar{
	"boolean": boolCodec, "int": zigzagNumber(4), "long": zigzagNumber(8), "float": reversed(floatCodec), "double": reversed(doubleCodec), "bytes": avroBytes(bytesCodec), "string": avroBytes(stringDataCodec),
}}

// avroOf returns the codec of a schema, or nil if the schema is not valid.
func avroOf(schema string, e *avroEncoding) codec {
	n, err := jsontext.Parse([]byte(schema))
	if err != nil {
		return nil
	}
	b := avroSchema{avroEncoding: e, named: map[string]codec{}}
	c := b.of(&n, "", 0)
	if b.bad {
		return nil
	}
	for _, a := range b.blocks {
		a.empty = !a.isMap && takesNothing(a.one)
	}
	return c
}

// avroSchema reads a schema.
type avroSchema struct {
	*avroEncoding
	named  map[string]codec // by full name
	blocks []*avroBlocks
	bad    bool
}

// maxSchemaDepth limits the nesting of a schema.
const maxSchemaDepth = 64

func (b *avroSchema) fail() codec {
	b.bad = true
	return nothing{}
}

// primitive returns the codec of a primitive type.
func (e *avroEncoding) primitive(name string) (codec, bool) {
	if name == "null" {
		return nothing{}, true
	}
	c, ok := e.primitives[name]
	return c, ok
}

// fullName returns the name of a type within a namespace.
func fullName(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

func textMember(n *node, name string) string {
	if m := member(n, name); m != nil && m.Kind == jsontext.String {
		return m.Text
	}
	return ""
}

func intMember(n *node, name string) (int, bool) {
	m := member(n, name)
	if m == nil || m.Kind != jsontext.Number {
		return 0, false
	}
	i, err := strconv.ParseInt(m.Text, 10, 32)
	return int(i), err == nil
}

// of returns the codec of a type in a namespace.
func (b *avroSchema) of(n *node, space string, depth int) codec {
	if depth > maxSchemaDepth || b.bad {
		return b.fail()
	}
	switch n.Kind {
	case jsontext.String:
		if c, ok := b.primitive(n.Text); ok {
			return c
		}
		for _, name := range []string{fullName(n.Text, space), n.Text} {
			if c, ok := b.named[name]; ok {
				return c
			}
		}
		return b.fail()
	case jsontext.Array:
		return b.union(n, space, depth)
	case jsontext.Object:
		return b.object(n, space, depth)
	}
	return b.fail()
}

func (b *avroSchema) object(n *node, space string, depth int) codec {
	typ := member(n, "type")
	if typ == nil {
		return b.fail()
	}
	if typ.Kind != jsontext.String {
		return b.of(typ, space, depth+1)
	}
	switch typ.Text {
	case "array", "map":
		of := member(n, map[string]string{"array": "items", "map": "values"}[typ.Text])
		if of == nil {
			return b.fail()
		}
		c := &avroBlocks{isMap: typ.Text == "map", key: b.primitives["string"], one: b.of(of, space, depth+1), zigzag: b.zigzag}
		b.blocks = append(b.blocks, c)
		return c
	case "record", "error", "enum", "fixed":
		return b.namedType(n, typ.Text, space, depth)
	}
	c, ok := b.primitive(typ.Text)
	if !ok {
		return b.of(typ, space, depth+1)
	}
	return b.logical(n, c, typ.Text, 0)
}

func (b *avroSchema) namedType(n *node, kind, space string, depth int) codec {
	name := textMember(n, "name")
	if ns := member(n, "namespace"); ns != nil && !strings.Contains(name, ".") {
		space = ns.Text
	}
	name = fullName(name, space)
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		space = name[:i]
	} else {
		space = ""
	}
	if _, twice := b.named[name]; twice || name == "" {
		return b.fail()
	}
	switch kind {
	case "enum":
		var names []string
		if m := member(n, "symbols"); m != nil {
			for _, s := range m.Parts {
				names = append(names, s.Text)
			}
		}
		if hasDuplicates(names) {
			return b.fail()
		}
		b.named[name] = avroEnum{enum(names), b.index}
	case "fixed":
		size, ok := intMember(n, "size")
		if !ok || size < 0 || size > math.MaxInt32 {
			return b.fail()
		}
		b.named[name] = b.logical(n, fixed(size), kind, size)
	default:
		c := &avroRecord{name: name}
		b.named[name] = c
		var names []string
		var fields []codec
		all := member(n, "fields")
		if all == nil {
			return b.fail()
		}
		for i := range all.Parts {
			f := &all.Parts[i]
			typ := member(f, "type")
			if typ == nil {
				return b.fail()
			}
			names = append(names, textMember(f, "name"))
			fields = append(fields, b.of(typ, space, depth+1))
		}
		if hasDuplicates(names) {
			return b.fail()
		}
		c.record = record{&value.Shape{Names: names}, tupleOf(fields...)}
	}
	return b.named[name]
}

// logical returns the codec of a logical type; c if the type has no codec of its own.
func (b *avroSchema) logical(n *node, c codec, typ string, size int) codec {
	name := textMember(n, "logicalType")
	if name == "decimal" && (typ == "bytes" || typ == "fixed" && size > 0) {
		precision, ok := intMember(n, "precision")
		if scale, _ := intMember(n, "scale"); ok && scale >= 0 && precision > 0 && precision < maxDigits && scale <= precision {
			return avroDecimal(int32(precision), int32(scale), size, b.primitives["bytes"])
		}
		return c
	}
	t, ok := avroTimes[name]
	if !ok || t.typ != typ {
		return c
	}
	return t.codec(b.primitives[typ])
}

// avroRecord is a record, which may contain itself.
type avroRecord struct {
	record
	name     string
	visiting bool
}

func (c *avroRecord) skip(r *reader) {
	if r.enter() {
		c.record.skip(r)
	}
	r.leave()
}

func (c *avroRecord) read(r *reader) (v value.Value) {
	if r.enter() {
		v = c.record.read(r)
	}
	r.leave()
	return v
}

// fixed is a codec of byte arrays of one length.
func fixed(size int) scalar {
	return scalar{typ: &Type{Kind: TypeBytes, Size: size},
		over: func(r *reader) { r.Bytes(size, "a byte array") },
		get:  func(r *reader) value.Value { return value.BytesOf(r.arena.Text(r.Bytes(size, "a byte array"))) },
		put: func(w *writer, v value.Value) {
			if !w.expects(v, value.KindBytes) {
				return
			}
			if len(v.Text()) != size {
				w.fail("expected %d bytes, found %d", size, len(v.Text()))
			}
			w.p = append(w.p, v.Text()...)
		},
		from: func(p *parser, n *node) value.Value {
			b := p.bytes(n)
			if p.err == nil && len(b) != size {
				p.fail("expected %d bytes, found %d", size, len(b))
			}
			return value.Bytes(b)
		},
	}
}

// avroDecimal is a codec of decimals: two's complement in a byte array of size bytes,
// or of any length if size is 0. Avro's writers do not check the number of digits.
func avroDecimal(precision, scale int32, size int, raw scalar) codec {
	if size > 0 {
		raw = fixed(size)
	}
	return scalar{typ: &Type{Kind: TypeDecimal, Precision: precision, Scale: scale},
		over: raw.over,
		get: func(r *reader) value.Value {
			off := r.Offset()
			v := raw.get(r)
			if r.Err() == nil && v.Text() == "" {
				r.Fail(off, format.ErrCorrupt, "a decimal without a digit")
			}
			return value.Decimal([]byte(v.Text()), scale)
		},
		put: func(w *writer, v value.Value) {
			if !w.expects(v, value.KindDecimal) {
				return
			}
			if v.Scale() != scale {
				w.fail("expected a decimal of scale %d, found %d", scale, v.Scale())
				return
			}
			digits := v.Text()
			if size > 0 && len(digits) != size {
				p := twosComplement(v.BigInt())
				if len(p) > size {
					w.fail("%v does not fit into %d bytes", v, size)
					return
				}
				fill := byte(0)
				if p[0]&0x80 != 0 {
					fill = 0xff
				}
				digits = strings.Repeat(string([]byte{fill}), size-len(p)) + string(p)
			}
			raw.put(w, value.BytesOf(digits))
		},
		from: func(p *parser, n *node) value.Value { return p.sqlDecimal(n, maxDigits, scale) },
	}
}

// avroTime is a logical type for time: a number of units.
type avroTime struct {
	typ  string // int or long
	kind value.Kind
	unit int64 // nanoseconds; 0: days
}

var avroTimes = map[string]avroTime{
	"date":                   {"int", value.KindDate, 0},
	"time-millis":            {"int", value.KindTimeOfDay, 1e6},
	"time-micros":            {"long", value.KindTimeOfDay, 1e3},
	"timestamp-millis":       {"long", value.KindInstant, 1e6},
	"timestamp-micros":       {"long", value.KindInstant, 1e3},
	"timestamp-nanos":        {"long", value.KindInstant, 1},
	"local-timestamp-millis": {"long", value.KindDateTime, 1e6},
	"local-timestamp-micros": {"long", value.KindDateTime, 1e3},
	"local-timestamp-nanos":  {"long", value.KindDateTime, 1},
}

func (t avroTime) codec(number scalar) scalar {
	size := map[string]int{"int": 4, "long": 8}[t.typ]
	return scalar{size: number.size, over: number.over, typ: t.typeOf(),
		get: func(r *reader) value.Value { return t.value(number.get(r).Int()) },
		put: func(w *writer, v value.Value) {
			if v.Kind() != value.KindInt {
				if !w.expects(v, t.kind) {
					return
				}
				n, ok := t.number(v)
				if !ok {
					w.fail("%v cannot be written as a whole number of units", v)
					return
				}
				v = value.Int(n)
			}
			number.put(w, v)
		},
		from: func(p *parser, n *node) value.Value {
			if n.Kind == jsontext.Number { // one that is not a time of day
				return value.Int(p.integer(n, size))
			}
			return p.timestamp(n, t.kind)
		},
	}
}

const (
	day    = 24 * 60 * 60
	second = int64(1e9)
)

// typeOf returns the type of times.
func (t avroTime) typeOf() *Type {
	form := map[value.Kind]TypeKind{value.KindDate: TypeDate, value.KindTimeOfDay: TypeTimeOfDay, value.KindInstant: TypeInstant, value.KindDateTime: TypeDateTime}[t.kind]
	return &Type{Kind: form, Precision: map[int64]int32{1e6: 3, 1e3: 6, 1: 9}[t.unit]}
}

// value returns a time, or the number if it is not in the day.
func (t avroTime) value(n int64) value.Value {
	switch {
	case t.kind == value.KindDate:
		return dateOfDays(n)
	case t.kind == value.KindTimeOfDay:
		return timeOfDay(n, t.unit)
	}
	perSecond := second / t.unit
	sec := floorDiv(n, perSecond)
	nano := int32((n - sec*perSecond) * t.unit)
	if t.kind == value.KindInstant {
		return value.Instant(sec, nano)
	}
	return dateTimeOf(sec, nano)
}

// number is the inverse of value.
func (t avroTime) number(v value.Value) (n int64, ok bool) {
	switch t.kind {
	case value.KindDate:
		return daysOf(v), true
	case value.KindTimeOfDay:
		return unitsOfDay(v, t.unit)
	case value.KindDateTime:
		v = instantIn(v)
	}
	perSecond := second / t.unit
	n = v.Int()*perSecond + int64(v.Nano())/t.unit
	return n, int64(v.Nano())%t.unit == 0 && floorDiv(n, perSecond) == v.Int()
}

// avroUnion reads int branch and a value. A value of the only branch that is not null
// is the value itself, otherwise a record with the name of its branch.
type avroUnion struct {
	of     []codec
	shapes []*value.Shape // nil for null
	bare   bool
	index  scalar
}

func (b *avroSchema) union(n *node, space string, depth int) codec {
	u := avroUnion{index: b.index}
	var names []string
	others := 0
	for i := range n.Parts {
		t := &n.Parts[i]
		c := b.of(t, space, depth+1)
		name := b.branchName(t, space)
		if _, nested := c.(avroUnion); nested || slices.Contains(names, name) {
			return b.fail()
		}
		names = append(names, name)
		u.of = append(u.of, c)
		if name == "null" {
			u.shapes = append(u.shapes, nil)
			continue
		}
		others++
		u.shapes = append(u.shapes, fieldsOf(name))
	}
	if len(u.of) == 0 {
		return b.fail()
	}
	u.bare = others <= 1
	return u
}

// branchName returns the name of a type within a union.
func (b *avroSchema) branchName(n *node, space string) string {
	for n.Kind == jsontext.Object {
		typ := member(n, "type")
		if typ == nil {
			return ""
		}
		if name := textMember(n, "name"); name != "" && typ.Kind == jsontext.String {
			if ns := member(n, "namespace"); ns != nil {
				space = ns.Text
			}
			return fullName(name, space)
		}
		n = typ
	}
	if _, ok := b.primitive(n.Text); ok || n.Text == "array" || n.Text == "map" {
		return n.Text
	}
	if full := fullName(n.Text, space); b.named[full] != nil {
		return full
	}
	return n.Text
}

func (u avroUnion) branch(r *reader) int {
	off := r.Offset()
	i := u.index.get(r).Int()
	if r.Err() == nil && (i < 0 || i >= int64(len(u.of))) {
		r.Fail(off, format.ErrCorrupt, "branch %d of a union of %d", i, len(u.of))
	}
	if r.Err() != nil {
		return -1
	}
	return int(i)
}

func (u avroUnion) skip(r *reader) {
	if i := u.branch(r); i >= 0 {
		u.of[i].skip(r)
	}
}

func (u avroUnion) read(r *reader) value.Value {
	i := u.branch(r)
	switch {
	case i < 0 || u.shapes[i] == nil:
		return value.Null()
	case u.bare:
		return u.of[i].read(r)
	}
	all := r.arena.Values(1)
	all[0] = u.of[i].read(r)
	return value.Record(u.shapes[i], all)
}

func (u avroUnion) write(w *writer, v value.Value) {
	i := u.find(v)
	if i < 0 {
		w.fail("%v is of no branch of the union", v.Kind())
		return
	}
	u.index.put(w, value.Int(int64(i)))
	if !v.IsNull() && !u.bare {
		v = v.At(0)
	}
	u.of[i].write(w, v)
}

// find returns the branch of a value, or -1.
func (u avroUnion) find(v value.Value) int {
	return slices.IndexFunc(u.shapes, func(s *value.Shape) bool {
		if s == nil || v.IsNull() {
			return s == nil && v.IsNull()
		}
		return u.bare || v.Shape() == s || v.Shape() != nil && slices.Equal(v.Shape().Names, s.Names)
	})
}

func (u avroUnion) parse(p *parser, n *node) value.Value {
	var names []string
	for i, s := range u.shapes {
		switch {
		case s == nil && n.Kind == jsontext.Null:
			return value.Null()
		case s == nil:
			names = append(names, "null")
			continue
		case u.bare && n.Kind != jsontext.Null:
			return u.of[i].parse(p, n)
		}
		name := s.Names[0]
		if m := member(n, value.FieldMember(name)); m != nil && len(n.Names) == 1 {
			return value.Record(s, []value.Value{p.field(u.of[i], m, name)})
		}
		names = append(names, `{"`+name+`": …}`)
	}
	return p.fail("expected one of %s, found %s", list(names), found(n))
}

// avroBlocks reads blocks of items: uvarint count and items, ended by a count of 0.
// Flink writes one block, and no block for an empty array or map.
type avroBlocks struct {
	isMap  bool
	key    scalar
	one    codec
	empty  bool // items may take no bytes
	zigzag bool
}

// count reads the size of a block.
func (a *avroBlocks) count(r *reader) int {
	off := r.Offset()
	n := r.uvarint64()
	if a.zigzag {
		signed := unzigzag(n)
		if signed < 0 {
			r.other(off, "a block with its size")
			return 0
		}
		n = uint64(signed)
	}
	if a.empty {
		r.empty(off, int(min(n, maxEmpty+1)))
	} else if r.Err() == nil && n > uint64(r.Remaining()) {
		r.Fail(off, format.ErrTruncated, "cut short: expected %d items, %d bytes left", n, r.Remaining())
	}
	if r.Err() != nil {
		return 0
	}
	return int(n)
}

func (a *avroBlocks) skip(r *reader) {
	for n := a.count(r); n > 0; n = a.count(r) {
		for range n {
			if a.isMap {
				a.key.skip(r)
			}
			if a.one.skip(r); r.Err() != nil {
				return
			}
		}
	}
}

func (a *avroBlocks) read(r *reader) value.Value {
	n := a.count(r)
	all := make([]value.Value, 0, min(n, growFrom))
	for range n {
		if a.isMap {
			all = append(all, a.key.get(r))
		}
		if all = append(all, a.one.read(r)); r.Err() != nil {
			return value.Null()
		}
	}
	off := r.Offset()
	if n > 0 && a.count(r) > 0 {
		r.other(off, "an array or map of several blocks")
	}
	if a.isMap {
		return value.Map(all)
	}
	return value.List(all)
}

func (a *avroBlocks) write(w *writer, v value.Value) {
	kind := value.KindList
	if a.isMap {
		kind = value.KindMap
	}
	if !w.expects(v, kind) {
		return
	}
	if v.Len() > 0 {
		n := uint64(v.Len())
		if a.zigzag {
			n = zigzag(int64(n))
		}
		w.uvarint64(n)
	}
	for i := range v.Len() {
		if a.isMap {
			a.key.put(w, v.Key(i))
		}
		a.one.write(w, v.At(i))
	}
	w.p = append(w.p, 0)
}

func (a *avroBlocks) parse(p *parser, n *node) value.Value {
	if a.isMap {
		return value.Map(p.pairs(n, a.key, a.one))
	}
	return value.List(p.list(n, a.one))
}

// avroEnum is a codec of the symbols of an enum: the number of one.
type avroEnum struct {
	enum
	index scalar
}

func (e avroEnum) skip(r *reader) { e.index.skip(r) }

func (e avroEnum) read(r *reader) value.Value {
	off := r.Offset()
	i := e.index.get(r).Int()
	if r.Err() == nil && (i < 0 || i >= int64(len(e.enum))) {
		r.Fail(off, format.ErrCorrupt, "constant %d of an enum of %d", i, len(e.enum))
	}
	if r.Err() != nil {
		return value.Null()
	}
	return value.String(e.enum[i])
}

func (e avroEnum) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindString) {
		return
	}
	i := slices.Index(e.enum, v.Text())
	if i < 0 {
		w.fail("the enum has no constant %q", v.Text())
		return
	}
	e.index.put(w, value.Int(int64(i)))
}

// zigzagNumber is a codec of signed integers of size bytes that are written with 7 bits
// per byte, the sign in the lowest bit.
func zigzagNumber(size int) scalar {
	number := integer(size)
	shift := 64 - 8*size
	return scalar{typ: number.typ, from: number.from,
		over: func(r *reader) { r.uvarint64() },
		get: func(r *reader) value.Value {
			off := r.Offset()
			n := unzigzag(r.uvarint64())
			if n<<shift>>shift != n {
				r.Fail(off, format.ErrCorrupt, "a number of more than %d bits", 8*size)
			}
			return value.Int(n)
		},
		put: func(w *writer, v value.Value) {
			if n, ok := w.fits(v, size); ok {
				w.uvarint64(zigzag(n))
			}
		},
	}
}

// reversed is a codec of numbers in the other byte order.
func reversed(c scalar) scalar {
	return scalar{size: c.size, typ: c.typ, from: c.from,
		get: func(r *reader) value.Value {
			p := slices.Clone(r.Bytes(c.size, "a number"))
			slices.Reverse(p)
			part := &reader{Cursor: java.Of(p)}
			return c.get(part)
		},
		put: func(w *writer, v value.Value) {
			at := len(w.p)
			if c.put(w, v); w.err == nil {
				slices.Reverse(w.p[at:])
			}
		},
	}
}

// avroBytes is a codec like c, whose length is a signed number of 7 bits per byte.
func avroBytes(c scalar) scalar {
	length := func(r *reader) int {
		off := r.Offset()
		n := unzigzag(r.uvarint64())
		if r.Err() == nil && n < 0 {
			r.Fail(off, format.ErrCorrupt, "invalid length %d", n)
		}
		return int(min(n, math.MaxInt32+1))
	}
	return scalar{typ: c.typ, from: c.from,
		over: func(r *reader) { r.Bytes(length(r), "bytes") },
		get: func(r *reader) value.Value {
			n := length(r)
			off := r.Offset()
			p := r.Bytes(n, "bytes")
			if c.typ.Kind == TypeBytes {
				return value.BytesOf(r.arena.Text(p))
			}
			if r.Err() == nil && !utf8.Valid(p) {
				r.Fail(off, format.ErrUnsupported, "a string that is not UTF-8")
			}
			return value.String(r.arena.Text(p))
		},
		put: func(w *writer, v value.Value) {
			at := len(w.p)
			if c.put(w, v); w.err == nil { // it checked the value
				w.p = w.p[:at]
				w.uvarint64(zigzag(int64(len(v.Text()))))
				w.p = append(w.p, v.Text()...)
			}
		},
	}
}
