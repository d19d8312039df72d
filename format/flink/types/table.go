package types

import (
	"strings"

	"github.com/savepoint-tools/spt/format/flink"
)

// body is the layout of the body of a snapshot.
type body uint8

const (
	simple        body = iota // nothing, or the serializer's class (spec A5)
	generic                   // the class of the values (A6)
	composite                 // outer data, then nested snapshots (A7)
	fields                    // constants, schemas and numbers; see outer
	pojo                      // A8.1
	kryo                      // A8.2
	rowData                   // logical types, then nested snapshots
	sortedMap                 // a comparator, then nested snapshots
	genericArray7             // component class, then nested snapshots (1.7)
	wrapped                   // outer data, then one nested snapshot without a header
	avro                      // type and schema, in three versions
)

// outer lists the items before the nested snapshots of a composite, or the items of
// a body of fields, one letter per item. Wire format: never change.
//
//	t  UTF     the class of the values
//	s  UTF     a text
//	n  int     a number
//	b  bool    a flag
//	j  JAVA    a Java object
//	l  bytes   int length, that many bytes
//	e  list    enum constants: int count, each UTF
//	E  list    Scala's enum constants: int count, each UTF and int
type outer = string

// class is the entry of one snapshot class in the table.
type class struct {
	body     body
	min, max int32 // versions with this layout; for a composite, outer versions
	outer    outer
	from     int32 // first version with outer
	nested   int   // number of nested snapshots; -1: any
	value    codec // for simple: the codec of values, or nil
}

func one(min, max int32) class { return class{body: composite, min: min, max: max, nested: 1} }
func two(min, max int32) class { return class{body: composite, min: min, max: max, nested: 2} }

func (c class) with(o outer, from int32) class {
	c.outer, c.from = o, from
	return c
}

// flinkPackage is the package of the classes in the table. Packages below it moved
// between releases, so a class is looked up by its simple name.
const flinkPackage = flink.Package

func lookup(m map[string]class, name string) (class, bool) {
	if !strings.HasPrefix(name, flinkPackage) {
		return class{}, false // a user class may have the same simple name
	}
	c, ok := m[simpleName(name)]
	return c, ok
}

func simpleName(class string) string { return class[strings.LastIndexAny(class, ".$")+1:] }

// known is the table: snapshot classes of Flink 1.7 and later.
var known = func() map[string]class {
	m := map[string]class{
		"ListSerializerSnapshot":               one(1, 1),
		"MapSerializerSnapshot":                two(1, 1),
		"SetSerializerSnapshot":                one(1, 1),
		"GenericArraySerializerSnapshot":       one(1, 1).with("t", 1),
		"TupleSerializerSnapshot":              {body: composite, min: 1, max: 2, outer: "t", nested: -1},
		"RowSerializerSnapshot":                {body: composite, min: 2, max: 4, outer: "b", from: 4, nested: -1},
		"NullableSerializerSnapshot":           one(1, 2).with("n", 1),
		"JavaEitherSerializerSnapshot":         two(1, 1),
		"EitherSerializerSnapshot":             two(1, 2),
		"ArrayListSerializerSnapshot":          one(1, 1),
		"TtlSerializerSnapshot":                two(1, 2),
		"TimerSerializerSnapshot":              two(1, 2),
		"BufferEntrySerializerSnapshot":        one(1, 2),
		"UnionSerializerSnapshot":              two(1, 2),
		"StreamElementSerializerSnapshot":      one(1, 2),
		"StateSerializerSnapshot":              two(1, 4).with("b", 4),
		"LinkedListSerializerSnapshot":         one(1, 3).with("b", 3),
		"ExternalSerializerSnapshot":           one(1, 1).with("jb", 1),
		"RawValueDataSerializerSnapshot":       one(0, 0),
		"WindowKeySerializerSnapshot":          one(1, 1),
		"ListViewSerializerSnapshot":           one(1, 1),
		"MapViewSerializerSnapshot":            one(1, 1),
		"NullAwareMapSerializerSnapshot":       two(1, 1),
		"NFAStateSerializerSnapshot":           {body: composite, min: 1, max: 2, outer: "b", from: 2, nested: 3},
		"NodeIdSerializerSnapshot":             one(1, 1),
		"SharedBufferEdgeSerializerSnapshot":   two(1, 1),
		"SharedBufferNodeSerializerSnapshot":   one(1, 1),
		"SharedBufferNodeSerializerSnapshotV2": one(1, 1),
		"LockableTypeSerializerSnapshot":       one(1, 1),
		"ScalaCaseClassSerializerSnapshot":     {body: composite, min: 1, max: 2, outer: "t", nested: -1},
		"Tuple2CaseClassSerializerSnapshot":    {body: composite, min: 1, max: 2, outer: "t", nested: -1},
		"ScalaEitherSerializerSnapshot":        two(1, 1),
		"ScalaOptionSerializerSnapshot":        one(1, 2),
		"ScalaTrySerializerSnapshot":           two(1, 2),
		"TraversableSerializerSnapshot":        one(1, 2).with("s", 2),

		"CopyableValueSerializerSnapshot": {body: generic, min: 2, max: 2},
		"ValueSerializerSnapshot":         {body: generic, min: 2, max: 2},
		"WritableSerializerSnapshot":      {body: generic, min: 2, max: 2},

		"EnumSerializerSnapshot":               {body: fields, min: 3, max: 3, outer: "te"},
		"ScalaEnumSerializerSnapshot":          {body: fields, min: 3, max: 3, outer: "tE"},
		"BinaryRowDataSerializerSnapshot":      {body: fields, min: 3, max: 3, outer: "n"},
		"ArrayDataSerializerSnapshot":          {body: fields, min: 3, max: 3, outer: "jj"},
		"MapDataSerializerSnapshot":            {body: fields, min: 3, max: 3, outer: "jjjj"},
		"DecimalSerializerSnapshot":            {body: fields, min: 3, max: 3, outer: "nn"},
		"TimestampDataSerializerSnapshot":      {body: fields, min: 1, max: 1, outer: "n"},
		"AvroSerializerSnapshot":               {body: avro, min: 1, max: 3},
		"PojoSerializerSnapshot":               {body: pojo, min: 2, max: 2},
		"KryoSerializerSnapshot":               {body: kryo, min: 2, max: 2},
		"RowDataSerializerSnapshot":            {body: rowData, min: 3, max: 3},
		"SortedMapSerializerSnapshot":          {body: sortedMap, min: 3, max: 3, nested: 2},
		"GenericArraySerializerConfigSnapshot": {body: genericArray7, min: 2, max: 2, nested: 1},
		"TtlAwareSerializerSnapshot":           {body: wrapped, min: 1, max: 1, outer: "b"},
		// SQL classes of Flink 2.2 and later, according to their class files.
		"MetaSqnInfoSerializerSnapshot": two(0, 0),
		"RowSqnInfoSerializerSnapshot":  two(0, 0),
		"NodeSerializerSnapshot":        {body: composite, nested: -1},
		"RowDataKeySerializerSnapshot":  {body: wrapped, outer: "ll"},
	}
	for name, value := range simples {
		m[name+"SerializerSnapshot"] = class{body: simple, min: 2, max: 3, value: value}
	}
	return m
}()

// simples are the serializers whose snapshot contains only its class, and the
// codecs of their values, or nil.
var simples = map[string]codec{
	"Boolean": boolCodec, "Byte": byteCodec, "Short": shortCodec, "Int": intCodec, "Long": longCodec,
	"Float": floatCodec, "Double": doubleCodec, "Char": charCodec, "String": stringCodec,
	"BooleanValue": boolCodec, "ByteValue": byteCodec, "ShortValue": shortCodec, "IntValue": intCodec,
	"LongValue": longCodec, "FloatValue": floatCodec, "DoubleValue": doubleCodec, "CharValue": charCodec,
	"StringValue": stringValueCodec,
	"BigInt":      bigIntCodec, "BigDec": bigDecCodec,
	"Date": dateCodec, "SqlDate": dateCodec, "SqlTime": dateCodec, "SqlTimestamp": sqlTimestampCodec,
	"Instant": instantCodec, "LocalDate": localDateCodec, "LocalTime": localTimeCodec, "LocalDateTime": localDateTimeCodec,
	"Void": void(0), "VoidNamespace": void(0), "GlobalWindow": void(0), "Unit": void(0), "Null": void(0),
	"Tuple0": void(42), "NullValue": nil,
	"BooleanPrimitiveArray": array{1, boolCodec}, "BytePrimitiveArray": bytesCodec,
	"ShortPrimitiveArray": array{2, shortCodec}, "IntPrimitiveArray": array{4, intCodec},
	"LongPrimitiveArray": array{8, longCodec}, "FloatPrimitiveArray": array{4, floatCodec},
	"DoublePrimitiveArray": array{8, doubleCodec}, "CharPrimitiveArray": array{2, charCodec},
	"StringArray": array{1, stringCodec},
	"TimeWindow":  timeWindowCodec, "CountWindow": longCodec, "Java": nil, "StringData": stringDataCodec,
	"DeweyNumber": nil, "EventId": nil, "Variant": nil, "Bitmap": nil, "SortedLong": nil,
	"TransactionState": nil, "ContextState": nil, "NextTransactionalIdHint": nil,
}

// legacy is the table of the config snapshots of Flink 1.3 to 1.6 (spec A10), which
// later releases up to 1.16 kept and wrapped. Their bodies start with their
// version.
var legacy = map[string]class{
	"ParameterlessTypeSerializerConfig":     {outer: "t"},
	"CollectionSerializerConfigSnapshot":    {outer: "B"},
	"MapSerializerConfigSnapshot":           {outer: "B"},
	"EitherSerializerConfigSnapshot":        {outer: "B"},
	"RowSerializerConfigSnapshot":           {outer: "B"},
	"NullableSerializerConfigSnapshot":      {outer: "B"},
	"TimerSerializerConfigSnapshot":         {outer: "B"},
	"UnionSerializerConfigSnapshot":         {outer: "B"},
	"BufferEntrySerializerConfigSnapshot":   {outer: "B"},
	"StreamElementSerializerConfigSnapshot": {outer: "B"},
	"ScalaOptionSerializerConfigSnapshot":   {outer: "B"},
	"ScalaTrySerializerConfigSnapshot":      {outer: "B"},
	"TraversableSerializerConfigSnapshot":   {outer: "B"},
	"StateSerializerConfigSnapshot":         {outer: "B"},
	"ConfigSnapshot":                        {outer: "B"},
	"TupleSerializerConfigSnapshot":         {outer: "Bj"},
	"GenericArraySerializerConfigSnapshot":  {outer: "Bj"},
	"EnumSerializerConfigSnapshot":          {outer: "te", min: 2},
	"CopyableValueSerializerConfigSnapshot": {outer: "t"},
	"WritableSerializerConfigSnapshot":      {outer: "t"},
	"KryoSerializerConfigSnapshot":          {outer: "tK"},
	"ValueSerializerConfigSnapshot":         {outer: "tK"},
	"AvroSchemaSerializerConfigSnapshot":    {outer: "s"},
	"PojoSerializerConfigSnapshot":          {outer: "tPPP"},
	"ScalaEnumSerializerConfigSnapshot":     {outer: "tE", min: 2},
}
