package types

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/value"
)

// KeyHasher returns a function that computes the hash code that a key has in Java from
// all bytes of the key, whose serializer s describes. [format.KeyGroupOfHash] returns
// the key group of a hash code. The function is safe for concurrent use.
//
// If the bytes do not determine the hash code, the error is a *NotHashed; if keys are
// not decoded, a *NotDecoded.
//
// Rows have several hash codes: a row is hashed here as Flink 1.12 and later hash a row
// whose fields have no names, and a row of SQL as a binary row, which the keys of SQL
// jobs are. So a caller that moves keys should check that the hash code leads to the
// key group in which the key is stored.
func KeyHasher(s *Snapshot, o Options) (func(key []byte) (int32, error), error) {
	if s != nil && !s.Old && strings.HasPrefix(s.Class, flinkPackage) && rowsOfSQL[simpleName(s.Class)] {
		return hashBinaryRow, nil
	}
	m := &hasher{}
	hash := m.of(s)
	if hash == nil {
		return nil, m.why
	}
	c, err := NewCodec(s, o)
	if err != nil {
		return nil, err
	}
	inner := c.(exported)
	return func(key []byte) (int32, error) {
		k := keys.Get().(*keyIn)
		defer keys.Put(k)
		k.arena.Reset()
		n, err := inner.ReadIn(&k.arena, key, &k.v)
		switch {
		case err != nil:
			return 0, err
		case n < len(key):
			return 0, format.Errorf(format.ErrCorrupt, "%d bytes after a key", len(key)-n)
		case k.v.IsNull():
			return 0, format.Errorf(format.ErrCorrupt, "a key that is null")
		}
		return hash(k.v), nil
	}, nil
}

// keyIn is a key in an arena.
type keyIn struct {
	arena value.Arena
	v     value.Value
}

var keys = sync.Pool{New: func() any { return &keyIn{arena: value.Arena{Views: true}} }}

// NotHashed is the error for a type whose hash codes the bytes of its values do not
// determine, or whose hash codes are not known. It matches format.ErrUnsupported.
type NotHashed struct {
	Serializer string // as in NotDecoded
	Type       string // class of the values, if it is recorded
	Reason     HashReason
}

// HashReason is a reason why the hash codes of a type are not computed.
type HashReason string

// The reasons.
const (
	HashByUser     HashReason = "user code computes the hash code"
	HashByIdentity HashReason = "the hash code differs between JVMs"
	HashNotKnown   HashReason = "its hash code is not known"
)

// Error implements error.
func (e *NotHashed) Error() string {
	return (&NotDecoded{Serializer: e.Serializer, Type: e.Type, Reason: Reason(e.Reason)}).Error()
}

// Unwrap returns format.ErrUnsupported.
func (e *NotHashed) Unwrap() error { return format.ErrUnsupported }

// hashOf computes the hash code of a value that is not null.
type hashOf func(v value.Value) int32

// of is the hash code of a part, which can be null.
func (h hashOf) of(v value.Value) int32 {
	if v.IsNull() {
		return 0
	}
	return h(v)
}

// hasher makes hashOf. It keeps the first reason why it made none.
type hasher struct{ why error }

func (m *hasher) fail(s *Snapshot, why HashReason) hashOf {
	if m.why == nil {
		e := &NotHashed{Reason: why}
		if s != nil {
			e.Serializer, e.Type = serializerName(s.Class), s.Type
		}
		m.why = e
	}
	return nil
}

// all returns the hashOf of nested snapshots; ok is false if one has none.
func (m *hasher) all(s *Snapshot, of func(*Snapshot) hashOf) (all []hashOf, ok bool) {
	for _, n := range s.Nested {
		h := of(n)
		if h == nil {
			return nil, false
		}
		all = append(all, h)
	}
	return all, true
}

// of returns the hash code of the values of a serializer, or nil.
func (m *hasher) of(s *Snapshot) hashOf {
	if s == nil || s.Unknown {
		return m.fail(s, HashByUser)
	}
	if s.Old {
		return m.ofOld(s)
	}
	if !strings.HasPrefix(s.Class, flinkPackage) {
		return m.fail(s, HashByUser)
	}
	name := strings.TrimSuffix(simpleName(s.Class), "SerializerSnapshot")
	if h := simpleHashes[name]; h != nil {
		return h
	}
	c, ok := hashes[name]
	switch {
	case !ok:
		return m.fail(s, HashNotKnown)
	case c.why != "":
		return m.fail(s, c.why)
	case name == "Row":
		return m.row(s)
	}
	parts, ok := m.all(s, m.of)
	if !ok {
		return nil
	}
	if c.parts >= 0 && len(parts) != c.parts {
		return m.fail(s, HashNotKnown)
	}
	if h := c.of(s, parts); h != nil {
		return h
	}
	return m.fail(s, HashByUser)
}

// ofOld is of for a config snapshot of Flink 1.3 to 1.6.
func (m *hasher) ofOld(s *Snapshot) hashOf {
	class := s.Class // of the serializer
	if simpleName(class) == "ParameterlessTypeSerializerConfig" {
		class = s.Type
	}
	if strings.HasPrefix(class, flinkPackage) {
		if h := simpleHashes[SerializerName(class)]; h != nil {
			return h
		}
	}
	if simpleName(class) == "TupleSerializer" && isTuple(s.Type, len(s.Nested)) {
		return m.tuple(s)
	}
	if simpleName(s.Class) == "TupleSerializerConfigSnapshot" && len(s.objects) == 1 {
		c := java.NewCursor(s.objects[0])
		if o := java.ReadObject(c); c.Err() == nil && o.Kind == java.ObjectClass && isTuple(o.Class, len(s.Nested)) {
			return m.tuple(s)
		}
	}
	return m.fail(s, HashNotKnown)
}

// tuple returns the hash code of Flink's own tuples.
func (m *hasher) tuple(s *Snapshot) hashOf {
	if parts, ok := m.all(s, m.of); ok {
		return polynomial(0, parts)
	}
	return nil
}

// hashes are the hash codes of types with parameters by the names of their serializers.
var hashes = map[string]struct {
	parts int // number of nested snapshots; -1: any
	// of returns nil if the class of the values is a user class.
	of  func(s *Snapshot, parts []hashOf) hashOf
	why HashReason
}{
	"Tuple": {parts: -1, of: func(s *Snapshot, parts []hashOf) hashOf {
		if !isTuple(s.Type, len(parts)) {
			return nil
		}
		return polynomial(0, parts)
	}},
	"Row":        {parts: -1},
	"List":       {parts: 1, of: func(_ *Snapshot, p []hashOf) hashOf { return elements(p[0]) }},
	"ArrayList":  {parts: 1, of: func(_ *Snapshot, p []hashOf) hashOf { return elements(p[0]) }},
	"Set":        {parts: 1, of: func(_ *Snapshot, p []hashOf) hashOf { return setHash(p[0]) }},
	"Map":        {parts: 2, of: func(_ *Snapshot, p []hashOf) hashOf { return entries(0, p[0], p[1]) }},
	"SortedMap":  {parts: 2, of: func(_ *Snapshot, p []hashOf) hashOf { return entries(0, p[0], p[1]) }},
	"JavaEither": {parts: 2, of: func(_ *Snapshot, p []hashOf) hashOf { return eitherHash(p[0], p[1]) }},
	"Nullable":   {parts: 1, of: func(_ *Snapshot, p []hashOf) hashOf { return p[0] }},
	"Decimal":    {of: func(*Snapshot, []hashOf) hashOf { return hashDecimal }},
	"TimestampData": {of: func(*Snapshot, []hashOf) hashOf {
		return func(v value.Value) int32 {
			ms, nano := (&writer{}).timestampMillis(v)
			return 31*fold(ms) + nano
		}
	}},
	"Kryo": {of: func(s *Snapshot, _ []hashOf) hashOf {
		if s.Type != "java.util.UUID" {
			return nil
		}
		return hashUUID
	}},

	"Pojo": {why: HashByUser}, "Avro": {why: HashByUser}, "Value": {why: HashByUser}, "CopyableValue": {why: HashByUser}, "Writable": {why: HashByUser},
	"ScalaCaseClass": {why: HashByUser}, "Tuple2CaseClass": {why: HashByUser},
	"Enum": {why: HashByIdentity}, "GenericArray": {why: HashByIdentity}, "StringArray": {why: HashByIdentity},
	"BooleanPrimitiveArray": {why: HashByIdentity}, "BytePrimitiveArray": {why: HashByIdentity}, "ShortPrimitiveArray": {why: HashByIdentity}, "IntPrimitiveArray": {why: HashByIdentity},
	"LongPrimitiveArray": {why: HashByIdentity}, "FloatPrimitiveArray": {why: HashByIdentity}, "DoublePrimitiveArray": {why: HashByIdentity}, "CharPrimitiveArray": {why: HashByIdentity},
}

// isTuple reports whether a class is Flink's own tuple of n fields, and not a subclass.
func isTuple(class string, n int) bool {
	return n > 0 && class == flinkPackage+"api.java.tuple.Tuple"+strconv.Itoa(n)
}

// polynomial is 31 × (31 × (start + …) + field) + field.
func polynomial(start int32, parts []hashOf) hashOf {
	return func(v value.Value) int32 {
		n := start
		for i, h := range parts {
			n = 31*n + h.of(v.At(i))
		}
		return n
	}
}

// elements is the hash code of a list.
func elements(one hashOf) hashOf {
	return func(v value.Value) int32 {
		n := int32(1)
		for i := range v.Len() {
			n = 31*n + one.of(v.At(i))
		}
		return n
	}
}

func setHash(one hashOf) hashOf {
	return func(v value.Value) (n int32) {
		for i := range v.Len() {
			n += one.of(v.At(i))
		}
		return n
	}
}

// entries is the hash code of a map.
func entries(start int32, key, val hashOf) hashOf {
	return func(v value.Value) int32 {
		n := start
		for i := range v.Len() {
			n += key.of(v.Key(i)) ^ val.of(v.At(i))
		}
		return n
	}
}

func eitherHash(left, right hashOf) hashOf {
	return func(v value.Value) int32 {
		if v.Name(0) == "left" {
			return left.of(v.At(0))
		}
		return right.of(v.At(0))
	}
}

// row is the hash code of a row (RowUtils.deepHashCodeRow): of its kind and fields,
// where arrays count by their elements.
func (m *hasher) row(s *Snapshot) hashOf {
	fields, ok := m.all(s, m.deep)
	if !ok {
		return nil
	}
	hash := polynomial(1, fields)
	return func(v value.Value) int32 {
		kind, fields := (&writer{}).kindOf(v)
		return 31*int32(kind) + hash(fields)
	}
}

// deep is the hash code of a part of a row.
func (m *hasher) deep(s *Snapshot) hashOf {
	if s != nil && !s.Old && strings.HasPrefix(s.Class, flinkPackage) {
		name := strings.TrimSuffix(simpleName(s.Class), "SerializerSnapshot")
		one, isArray := arrayHashes[name]
		parts := 0
		switch name {
		case "List", "ArrayList", "GenericArray":
			parts = 1
		case "Map", "SortedMap":
			parts = 2
		}
		switch {
		case name == "BytePrimitiveArray":
			return func(v value.Value) int32 {
				n := int32(1)
				for _, b := range []byte(v.Text()) {
					n = 31*n + int32(int8(b))
				}
				return 31 + n
			}
		case isArray:
			return plus31(elements(one))
		case name == "StringArray":
			return elements(plus31(hashString))
		case parts > 0 && len(s.Nested) == parts:
			all, ok := m.all(s, m.deep)
			if !ok {
				return nil
			}
			if parts == 1 {
				return elements(all[0])
			}
			return entries(1, all[0], all[1])
		}
	}
	h := m.of(s)
	if h == nil {
		return nil
	}
	return plus31(h)
}

// plus31 is the hash code of an array of one element.
func plus31(h hashOf) hashOf { return func(v value.Value) int32 { return 31 + h(v) } }

// arrayHashes are the hash codes of the elements of arrays, in rows.
var arrayHashes = map[string]hashOf{
	"BooleanPrimitiveArray": hashBool, "ShortPrimitiveArray": hashInt, "IntPrimitiveArray": hashInt, "LongPrimitiveArray": hashLong,
	"FloatPrimitiveArray": hashFloat, "DoublePrimitiveArray": hashDouble, "CharPrimitiveArray": hashString,
}

// simpleHashes are the hash codes of types without parameters by the names of their
// serializers.
var simpleHashes = map[string]hashOf{
	"Boolean": hashBool, "Byte": hashInt, "Short": hashInt, "Int": hashInt, "Long": hashLong, "Float": hashFloat, "Double": hashDouble,
	"Char": hashString, "String": hashString, "BigInt": hashBigInt, "BigDec": hashDecimal,
	"ByteValue": hashInt, "ShortValue": hashInt, "IntValue": hashInt, "FloatValue": hashFloat, "CharValue": hashString, "StringValue": hashString,
	"BooleanValue": func(v value.Value) int32 {
		if v.Bool() {
			return 1
		}
		return 0
	},
	"LongValue":   func(v value.Value) int32 { return 43 + hashLong(v) },
	"DoubleValue": func(v value.Value) int32 { return 31 + hashDouble(v) },
	"Date":        hashDate, "SqlDate": hashDate, "SqlTime": hashDate, "SqlTimestamp": hashDate,
	"Instant":   func(v value.Value) int32 { return fold(v.Int()) + 51*v.Nano() },
	"LocalDate": hashLocalDate, "LocalTime": hashLocalTime,
	"LocalDateTime": func(v value.Value) int32 { return hashLocalDate(v) ^ hashLocalTime(v) },
	"StringData":    func(v value.Value) int32 { return murmur3([]byte(v.Text())) },
}

func fold(n int64) int32 { return int32(n ^ int64(uint64(n)>>32)) }

func hashBool(v value.Value) int32 {
	if v.Bool() {
		return 1231
	}
	return 1237
}

func hashInt(v value.Value) int32  { return int32(v.Int()) }
func hashLong(v value.Value) int32 { return fold(v.Int()) }

func hashFloat(v value.Value) int32 {
	n := uint32(v.Int())
	if f := math.Float32frombits(n); f != f {
		n = 0x7fc00000
	}
	return int32(n)
}

func hashDouble(v value.Value) int32 {
	if f := v.Float(); f != f {
		return 0x7ff80000
	}
	return fold(v.Int())
}

// hashString hashes the UTF-16 units of a string.
func hashString(v value.Value) (n int32) {
	s := v.Text()
	if plainText(s) {
		for i := range len(s) {
			n = 31*n + int32(s[i])
		}
		return n
	}
	units, _ := java.Units(s)
	for _, u := range units {
		n = 31*n + int32(u)
	}
	return n
}

// hashBigInt hashes the magnitude as 32-bit digits, the highest first.
func hashBigInt(v value.Value) (n int32) {
	number := v.BigInt()
	p := number.Bytes()
	var digit uint32
	for i, b := range p {
		digit = digit<<8 | uint32(b)
		if (len(p)-1-i)%4 == 0 {
			n, digit = 31*n+int32(digit), 0
		}
	}
	return n * int32(number.Sign())
}

func hashDecimal(v value.Value) int32 { return 31*hashBigInt(v) + v.Scale() }

// hashDate hashes milliseconds since 1970.
func hashDate(v value.Value) int32 { return fold(v.Int()*1000 + int64(v.Nano()/1e6)) }

func hashLocalDate(v value.Value) int32 {
	c := v.Civil()
	return c.Year&^0x7ff ^ (c.Year<<11 + int32(c.Month)<<6 + int32(c.Day))
}

func hashLocalTime(v value.Value) int32 {
	n, _ := unitsOfDay(v, 1)
	return fold(n)
}

// hashUUID hashes the text of a UUID.
func hashUUID(v value.Value) int32 {
	p, _ := hex.DecodeString(strings.ReplaceAll(v.Text(), "-", ""))
	var u [16]byte
	copy(u[:], p)
	return fold(int64(binary.BigEndian.Uint64(u[:8]) ^ binary.BigEndian.Uint64(u[8:])))
}

// rowsOfSQL are the serializers of rows of SQL, by their snapshots.
var rowsOfSQL = map[string]bool{"RowDataSerializerSnapshot": true, "BinaryRowDataSerializerSnapshot": true}

// hashBinaryRow hashes the bytes of a binary row, after their length.
func hashBinaryRow(key []byte) (int32, error) {
	c := java.Of(key)
	p := c.Blob("a row")
	switch {
	case c.Err() != nil:
		return 0, c.Err()
	case c.Remaining() > 0:
		return 0, format.Errorf(format.ErrCorrupt, "%d bytes after a key", c.Remaining())
	case len(p)%4 != 0:
		return 0, format.Errorf(format.ErrCorrupt, "a row of %d bytes, not words of 4 bytes", len(p))
	}
	return murmur3(p), nil
}

// murmur3 is Flink's MurmurHashUtils.hashBytes with the seed of binary rows and strings:
// bytes that do not fill a word are mixed like words, one by one.
func murmur3(p []byte) int32 {
	h := uint32(42)
	mix := func(k uint32) {
		k = bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593
		h = bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
	}
	n := len(p)
	for ; len(p) >= 4; p = p[4:] {
		mix(binary.LittleEndian.Uint32(p))
	}
	for _, b := range p {
		mix(uint32(int32(int8(b))))
	}
	h ^= uint32(n)
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	return int32(h)
}
