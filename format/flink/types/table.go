package types

import (
	"strings"

	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/value"
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
	value    codec // the codec of values, if all snapshots of the class have the same
	codec    makeCodec
	alone    bool   // the codec needs no codecs of the nested snapshots
	why      Reason // why values are not decoded, without a codec
}

// makeCodec returns the codec for a snapshot with the codecs of the nested snapshots;
// nil if the snapshot is not valid.
type makeCodec func(m *maker, s *Snapshot, nested []codec) codec

// of adds a codec that depends only on the codecs of the nested snapshots.
func (c class) of(f func(nested []codec) codec) class {
	c.codec = func(_ *maker, _ *Snapshot, nested []codec) codec { return f(nested) }
	return c
}

// parts is of for a class whose table does not have the number of nested snapshots.
func (c class) parts(n int, f func(nested []codec) codec) class {
	return c.by(func(_ *maker, _ *Snapshot, nested []codec) codec {
		if len(nested) != n {
			return nil
		}
		return f(nested)
	})
}

func (c class) by(f makeCodec) class {
	c.codec = f
	return c
}

// first is the codec of the first nested snapshot.
func first(nested []codec) codec { return nested[0] }

func fieldsAsTuple(nested []codec) codec {
	if len(nested) == 0 {
		return nil
	}
	return tupleOf(nested...)
}

// ttlOf is the time of the last access, and the value.
func ttlOf(nested []codec) codec { return tupleOf(kept{nested[0]}, nested[1]) }

func eitherOf(nested []codec) codec     { return either{nested[0], nested[1]} }
func collectionOf(nested []codec) codec { return arrayOf(nested[0]) }
func optionsOf(nested []codec) codec    { return array{1, nullIf{0, nested[0]}} }
func mapCodec(nested []codec) codec     { return mapOf{nested[0], nullIf{1, nested[1]}} }

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
		"ListSerializerSnapshot":         one(1, 1).of(collectionOf),
		"MapSerializerSnapshot":          two(1, 1).of(mapCodec),
		"SetSerializerSnapshot":          one(1, 1).of(func(n []codec) codec { return array{1, nullIf{1, n[0]}} }),
		"GenericArraySerializerSnapshot": one(1, 1).with("t", 1).of(optionsOf),
		"TupleSerializerSnapshot":        class{body: composite, min: 1, max: 2, outer: "t", nested: -1}.of(fieldsAsTuple),
		"RowSerializerSnapshot": class{body: composite, min: 2, max: 4, outer: "b", from: 4, nested: -1}.
			by(func(_ *maker, s *Snapshot, n []codec) codec { return rowOf(n, s.Version == 3 || s.mark) }),
		"NullableSerializerSnapshot": one(1, 2).with("n", 1).by(func(_ *maker, s *Snapshot, n []codec) codec {
			if len(s.numbers) != 1 || s.numbers[0] < 0 {
				return nil
			}
			return nullable{int(s.numbers[0]), n[0]}
		}),
		"JavaEitherSerializerSnapshot":    two(1, 1).of(eitherOf),
		"EitherSerializerSnapshot":        two(1, 2).of(eitherOf),
		"ArrayListSerializerSnapshot":     one(1, 1).of(collectionOf),
		"TtlSerializerSnapshot":           two(1, 2).of(ttlOf),
		"TimerSerializerSnapshot":         two(1, 2).of(timerOf),
		"BufferEntrySerializerSnapshot":   one(1, 2).of(bufferEntryOf),
		"UnionSerializerSnapshot":         two(1, 2).of(unionOf),
		"StreamElementSerializerSnapshot": one(1, 2).of(streamElementOf),
		"StateSerializerSnapshot":         two(1, 4).with("b", 4).by(twoPhase),
		"LinkedListSerializerSnapshot": one(1, 3).with("b", 3).by(func(_ *maker, s *Snapshot, n []codec) codec {
			if s.Version == 2 || s.mark {
				return linkedList{n[0]}
			}
			return arrayOf(n[0])
		}),
		"ExternalSerializerSnapshot":           one(1, 1).with("jb", 1).of(first),
		"RawValueDataSerializerSnapshot":       one(0, 0).of(func(n []codec) codec { return sized{n[0]} }),
		"WindowKeySerializerSnapshot":          one(1, 1).of(func(n []codec) codec { return record{fieldsOf("window", "key"), tupleOf(longCodec, n[0])} }),
		"ListViewSerializerSnapshot":           one(1, 1).of(first),
		"MapViewSerializerSnapshot":            one(1, 1).of(first),
		"NullAwareMapSerializerSnapshot":       two(1, 1).of(func(n []codec) codec { return mapOf{nullIf{1, n[0]}, nullIf{1, n[1]}} }),
		"NFAStateSerializerSnapshot":           class{body: composite, min: 1, max: 2, outer: "b", from: 2, nested: 3}.by(func(_ *maker, s *Snapshot, n []codec) codec { return nfaStateOf(s, n[0], n[1], n[2]) }),
		"NodeIdSerializerSnapshot":             one(1, 1).of(func(n []codec) codec { return nodeIDOf(n[0]) }),
		"SharedBufferEdgeSerializerSnapshot":   two(1, 1).of(func(n []codec) codec { return record{fieldsOf("node", "version"), tupleOf(n...)} }),
		"SharedBufferNodeSerializerSnapshot":   one(1, 1).of(func(n []codec) codec { return array{1, n[0]} }),
		"SharedBufferNodeSerializerSnapshotV2": one(1, 1).of(func(n []codec) codec { return array{4, lockableOf(n[0])} }),
		"LockableTypeSerializerSnapshot":       one(1, 1).of(func(n []codec) codec { return lockableOf(n[0]) }),
		"ScalaCaseClassSerializerSnapshot":     class{body: composite, min: 1, max: 2, outer: "t", nested: -1}.of(fieldsAsTuple),
		"Tuple2CaseClassSerializerSnapshot":    class{body: composite, min: 1, max: 2, outer: "t", nested: -1}.of(fieldsAsTuple),
		"ScalaEitherSerializerSnapshot":        two(1, 1).of(eitherOf),
		"ScalaOptionSerializerSnapshot":        one(1, 2).of(optionOf),
		"ScalaTrySerializerSnapshot":           two(1, 2).of(tryOf),
		"TraversableSerializerSnapshot":        one(1, 2).with("s", 2).of(optionsOf),

		"CopyableValueSerializerSnapshot": {body: generic, min: 2, max: 2, why: UserCode},
		"ValueSerializerSnapshot":         {body: generic, min: 2, max: 2, why: UserCode},
		"WritableSerializerSnapshot":      {body: generic, min: 2, max: 2, why: UserCode},

		"EnumSerializerSnapshot":          class{body: fields, min: 3, max: 3, outer: "te"}.by(enumOf),
		"ScalaEnumSerializerSnapshot":     class{body: fields, min: 3, max: 3, outer: "tE"}.by(scalaEnumOf),
		"BinaryRowDataSerializerSnapshot": {body: fields, min: 3, max: 3, outer: "n", value: structured{bytesCodec}},
		"ArrayDataSerializerSnapshot":     class{body: fields, min: 3, max: 3, outer: "jj"}.by(arrayDataOf),
		"MapDataSerializerSnapshot":       class{body: fields, min: 3, max: 3, outer: "jjjj"}.by(mapDataOf),
		"DecimalSerializerSnapshot": class{body: fields, min: 3, max: 3, outer: "nn"}.by(func(_ *maker, s *Snapshot, _ []codec) codec {
			if len(s.numbers) != 2 {
				return nil
			}
			return decimalData(s.numbers[0], s.numbers[1])
		}),
		"TimestampDataSerializerSnapshot": class{body: fields, min: 1, max: 1, outer: "n"}.by(func(_ *maker, s *Snapshot, _ []codec) codec {
			if len(s.numbers) != 1 {
				return nil
			}
			return timestampData(s.numbers[0], value.KindDateTime)
		}),
		"AvroSerializerSnapshot":               class{body: avro, min: 1, max: 3}.by(avroCodec),
		"PojoSerializerSnapshot":               class{body: pojo, min: 2, max: 2}.by(func(m *maker, s *Snapshot, n []codec) codec { return s.pojo(m, n) }),
		"KryoSerializerSnapshot":               class{body: kryo, min: 2, max: 2}.by(kryoOf),
		"RowDataSerializerSnapshot":            class{body: rowData, min: 3, max: 3, alone: true}.by(rowDataOf),
		"SortedMapSerializerSnapshot":          class{body: sortedMap, min: 3, max: 3, nested: 2}.of(mapCodec),
		"GenericArraySerializerConfigSnapshot": class{body: genericArray7, min: 2, max: 2, nested: 1}.of(optionsOf),
		"TtlAwareSerializerSnapshot":           class{body: wrapped, min: 1, max: 1, outer: "b"}.of(first),
		// SQL classes of Flink 2.2 and later, according to their class files.
		"MetaSqnInfoSerializerSnapshot": two(0, 0),
		"RowSqnInfoSerializerSnapshot":  two(0, 0),
		"NodeSerializerSnapshot":        {body: composite, nested: -1},
		"RowDataKeySerializerSnapshot":  {body: wrapped, outer: "ll"},
	}
	for name, codec := range simples {
		m[name+"SerializerSnapshot"] = class{body: simple, min: 2, max: 3, value: codec}
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
	"Tuple0": void(42), "NullValue": nothing{},
	"BooleanPrimitiveArray": array{1, boolCodec}, "BytePrimitiveArray": bytesCodec,
	"ShortPrimitiveArray": array{2, shortCodec}, "IntPrimitiveArray": array{4, intCodec},
	"LongPrimitiveArray": array{8, longCodec}, "FloatPrimitiveArray": array{4, floatCodec},
	"DoublePrimitiveArray": array{8, doubleCodec}, "CharPrimitiveArray": array{2, charCodec},
	"StringArray": array{1, stringCodec},
	"TimeWindow":  kept{timeWindowCodec}, "CountWindow": kept{longCodec}, "Java": javaStream{}, "StringData": stringDataCodec,
	"DeweyNumber": deweyCodec, "EventId": eventIDCodec, "Variant": variantCodec{}, "Bitmap": structured{bytesCodec}, "SortedLong": nil,
	"TransactionState": kafkaTransaction, "ContextState": kafkaContext, "NextTransactionalIdHint": kafkaHint,
}

// legacy is the table of the config snapshots of Flink 1.3 to 1.6 (spec A10), which
// later releases up to 1.16 kept and wrapped. Their bodies start with their
// version.
var legacy = map[string]class{
	"ParameterlessTypeSerializerConfig":     class{outer: "t"}.by(parameterlessOf),
	"CollectionSerializerConfigSnapshot":    class{outer: "B"}.parts(1, collectionOf),
	"MapSerializerConfigSnapshot":           class{outer: "B"}.parts(2, mapCodec),
	"EitherSerializerConfigSnapshot":        class{outer: "B"}.parts(2, eitherOf),
	"RowSerializerConfigSnapshot":           class{outer: "B"}.of(func(n []codec) codec { return rowOf(n, false) }),
	"NullableSerializerConfigSnapshot":      class{outer: "B"}.by(nullableConfig),
	"TimerSerializerConfigSnapshot":         class{outer: "B"}.parts(2, timerOf),
	"UnionSerializerConfigSnapshot":         class{outer: "B"}.parts(2, unionOf),
	"BufferEntrySerializerConfigSnapshot":   class{outer: "B"}.parts(1, bufferEntryOf),
	"StreamElementSerializerConfigSnapshot": class{outer: "B"}.parts(1, streamElementOf),
	"ScalaOptionSerializerConfigSnapshot":   class{outer: "B"}.parts(1, optionOf),
	"ScalaTrySerializerConfigSnapshot":      class{outer: "B"}.parts(2, tryOf),
	"TraversableSerializerConfigSnapshot":   class{outer: "B"}.parts(1, optionsOf),
	"StateSerializerConfigSnapshot":         class{outer: "B"}.parts(2, func(n []codec) codec { return twoPhase(nil, &Snapshot{}, n) }),
	"ConfigSnapshot":                        class{outer: "B"}.of(fieldsAsTuple),
	"TupleSerializerConfigSnapshot":         class{outer: "Bj"}.of(fieldsAsTuple),
	"GenericArraySerializerConfigSnapshot":  class{outer: "Bj"}.parts(1, optionsOf),
	"EnumSerializerConfigSnapshot":          class{outer: "te", min: 2}.by(enumOf),
	"CopyableValueSerializerConfigSnapshot": {outer: "t", why: UserCode},
	"WritableSerializerConfigSnapshot":      {outer: "t", why: UserCode},
	"KryoSerializerConfigSnapshot":          class{outer: "tK"}.by(kryoOf),
	"ValueSerializerConfigSnapshot":         {outer: "tK", why: UserCode},
	"AvroSchemaSerializerConfigSnapshot":    class{outer: "s"}.by(avroCodec),
	"PojoSerializerConfigSnapshot":          class{outer: "tPPP", alone: true}.by(pojoConfig),
	"ScalaEnumSerializerConfigSnapshot":     class{outer: "tE", min: 2}.by(scalaEnumOf),
}
