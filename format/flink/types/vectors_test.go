package types_test

import (
	"encoding/binary"
	"strings"
)

// Values of SQL, Avro, CEP and Kafka, by hand from the spec.

// javaField is a field of a Java object: a number, or an object without a stream header.
type javaField struct {
	name   string
	number int
	object string
}

// javaObject is the stream of an object, without its header.
func javaObject(class string, fields ...javaField) string {
	head, data := "", ""
	for _, f := range fields {
		if f.object == "" {
			head += "I" + utf(f.name)
			data += i32(f.number)
		} else {
			head += "L" + utf(f.name) + "\x74" + utf("Ljava/lang/Object;")
			data += f.object
		}
	}
	return "\x73\x72" + utf(class) + i64(1) + "\x02" + string(binary.BigEndian.AppendUint16(nil, uint16(len(fields)))) + head + "\x78\x70" + data
}

const javaHead = "\xac\xed\x00\x05"

// sqlType is a SQL type without a stream header.
func sqlType(name string, fields ...javaField) string {
	return javaObject("org.apache.flink.table.types.logical."+name, fields...)
}

// javaArray is an array of objects without a stream header.
func javaArray(all ...string) string {
	return "\x75\x72" + utf("[Ljava.lang.Object;") + i64(1) + "\x02\x00\x00\x78\x70" + i32(len(all)) + strings.Join(all, "")
}

func rowField(name, typ string) string {
	return sqlType("RowType$RowField", javaField{name: "name", object: "\x74" + utf(name)}, javaField{name: "type", object: typ})
}

func tableClass(name, body string) string {
	return utf("org.apache.flink.table.runtime.typeutils."+name) + i32(3) + body
}

// rowData is the snapshot of rows of SQL types.
func rowData(of ...string) string {
	body := i32(len(of))
	for _, t := range of {
		body += javaHead + t
	}
	nested := make([]string, len(of))
	for i := range nested {
		nested[i] = simple("Int") // only their number is read
	}
	return tableClass("RowDataSerializer$RowDataSerializerSnapshot", body+delegate(nested...))
}

func le32(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
func le64(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

func sqlTests() []valueTest {
	integer, text := sqlType("IntType"), sqlType("VarCharType", javaField{name: "length", number: 100})
	wide := sqlType("DecimalType", javaField{name: "precision", number: 30}, javaField{name: "scale", number: 1})
	fine := sqlType("TimestampType", javaField{name: "precision", number: 9})
	inner := sqlType("RowType", javaField{name: "fields", object: javaObject("java.util.Arrays$ArrayList", javaField{name: "a", object: javaArray(rowField("n", integer), rowField("s", text))})})
	array := sqlType("ArrayType", javaField{name: "elementType", object: integer})
	raw := sqlType("RawType", javaField{name: "serializer", object: javaObject("com.acme.Mine")})
	return []valueTest{
		{"SQL row", rowData(integer, text, text), blob(le64(0) + le64(7) + "abc\x00\x00\x00\x00\x83" + le32(8) + le32(32) + "12345678"), []any{int64(7), "abc", "12345678"}},
		{"deleted SQL row", rowData(integer), blob("\x03\x01" + strings.Repeat("\x00", 14)), map[string]any{"kind": "DELETE", "fields": []any{nil}}},
		{"SQL nulls", rowData(wide, wide, fine), blob("\x00\x07" + strings.Repeat("\x00", 6) + le64(0) + le32(0) + le32(32) + le32(0) + le32(48) + strings.Repeat("\x00", 24)), []any{nil, nil, nil}},
		{"SQL decimal in a row", rowData(wide), blob(le64(0) + le32(1) + le32(16) + "\xfb" + strings.Repeat("\x00", 15)), []any{"-0.5"}},
		{"SQL timestamp in a row", rowData(fine), blob(le64(0) + le32(7) + le32(16) + le64(1500)), []any{"1970-01-01T00:00:01.500000007"}},
		{"row in a row", rowData(inner), blob(le64(0) + le32(24) + le32(16) + le64(0) + le64(5) + "x\x00\x00\x00\x00\x00\x00\x81"), []any{map[string]any{"n": int64(5), "s": "x"}}},
		{"array in a row", rowData(array), blob(le64(0) + le32(16) + le32(16) + le32(2) + le32(2) + le32(9) + le32(0)), []any{[]any{int64(9), nil}}},
		{"raw value in a row", rowData(raw), blob(le64(0) + le32(3) + le32(16) + "abc\x00\x00\x00\x00\x00"), []any{[]byte("abc")}},
		{"SQL array", tableClass("ArrayDataSerializer$ArrayDataSerializerSnapshot", javaHead+integer+javaNull), blob(le32(1) + le32(0) + le32(3) + le32(0)), []any{int64(3)}},
		{"SQL map", tableClass("MapDataSerializer$MapDataSerializerSnapshot", javaHead+text+javaHead+integer+javaNull+javaNull), blob(le32(16) + le32(1) + le32(0) + "k\x00\x00\x00\x00\x00\x00\x81" + le32(1) + le32(0) + le32(3) + le32(0)), [][2]any{{"k", int64(3)}}},
		{"binary row", tableClass("BinaryRowDataSerializer$BinaryRowDataSerializerSnapshot", i32(1)), blob("12345678abcdefgh"), []byte("12345678abcdefgh")},
	}
}

func avroTests() []valueTest {
	avro := func(schema string) string {
		return utf("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot") + i32(2) + utf("R") + utf(schema)
	}
	record := `{"type":"record","name":"R","namespace":"n","fields":[{"name":"v","type":"long"},{"name":"next","type":["null","R"]}]}`
	return []valueTest{
		{"avro long", avro(`"long"`), i64(5), int64(5)},
		{"avro string", avro(`{"type":"string"}`), blob("\xc3\xa9"), "é"},
		{"avro enum", avro(`{"type":"enum","name":"E","symbols":["A","B"]}`), i32(1), "B"},
		{"avro fixed", avro(`{"type":"fixed","name":"F","size":2}`), "\x01\x02", []byte{1, 2}},
		{"avro array", avro(`{"type":"array","items":"int"}`), "\x02" + i32(1) + i32(2) + "\x00", []any{int64(1), int64(2)}},
		{"avro array of nothing", avro(`{"type":"array","items":"null"}`), "\x02\x00", []any{nil, nil}},
		{"avro map", avro(`{"type":"map","values":"boolean"}`), "\x01" + blob("k") + "\x01\x00", [][2]any{{"k", true}}},
		{"avro union", avro(`["null","int","string"]`), i32(2) + blob("x"), map[string]any{"string": "x"}},
		{"avro option", avro(`["string","null"]`), i32(1), nil},
		{"avro list", avro(record), i64(1) + i32(1) + i64(2) + i32(0), map[string]any{"v": int64(1), "next": map[string]any{"v": int64(2), "next": nil}}},
		{"avro date", avro(`{"type":"int","logicalType":"date"}`), i32(19782), "2024-02-29"},
		{"avro time", avro(`{"type":"long","logicalType":"time-micros"}`), i64(1), "00:00:00.000001"},
		{"avro number that is not a time", avro(`{"type":"int","logicalType":"time-millis"}`), i32(-1), int64(-1)},
		{"avro timestamp without a zone", avro(`{"type":"long","logicalType":"local-timestamp-micros"}`), i64(-1), "1969-12-31T23:59:59.999999"},
		{"avro decimal", avro(`{"type":"fixed","name":"D","size":3,"logicalType":"decimal","precision":5,"scale":2}`), "\xff\xff\xfb", "-0.05"},
		{"avro decimal with a byte more", avro(`{"type":"bytes","logicalType":"decimal","precision":5,"scale":2}`), blob("\x00\x05"), "0.05"},
	}
}

func runtimeTests() []valueTest {
	class := func(name string) string { return utf("org.apache.flink."+name) + i32(3) }
	event := class("cep.nfa.sharedbuffer.EventId$EventIdSerializer$EventIdSerializerSnapshot")
	dewey := class("cep.nfa.DeweyNumber$DeweyNumberSerializer$DeweyNumberSerializerSnapshot")
	node := composite("org.apache.flink.cep.nfa.sharedbuffer.NodeId$NodeIdSerializer$NodeIdSerializerSnapshot", 1, "", event)
	eventValue := map[string]any{"id": int64(1), "timestamp": int64(2)}
	element := composite("org.apache.flink.streaming.runtime.streamrecord.StreamElementSerializer$StreamElementSerializerSnapshot", 2, "", simple("Byte"))
	state := func(version int, outer string) string {
		return composite("org.apache.flink.streaming.api.functions.sink.TwoPhaseCommitSinkFunction$StateSerializerSnapshot", version, outer, simple("Byte"), simple("Byte"))
	}
	held := func(n int64) map[string]any { return map[string]any{"transaction": n, "startTime": int64(9)} }
	return []valueTest{
		{"record with a timestamp", element, "\x00" + i64(5) + "\x07", map[string]any{"timestamp": int64(5), "record": int64(7)}},
		{"watermark", element, "\x02" + i64(5), map[string]any{"watermark": int64(5)}},
		{"latency marker", element, "\x03" + i64(1) + i64(2) + i64(3) + i32(4), map[string]any{"latencyMarker": map[string]any{"markedTime": int64(1), "operatorLower": int64(2), "operatorUpper": int64(3), "subtask": int64(4)}}},
		{"union", composite("org.apache.flink.streaming.api.datastream.CoGroupedStreams$UnionSerializerSnapshot", 2, "", simple("Byte"), simple("Byte")), "\x02\x07", map[string]any{"two": int64(7)}},
		{"two-phase state", state(4, "\x01"), "\x00" + i32(1) + "\x07" + i64(9) + "\x01\x05", map[string]any{"pending": nil, "pendingCommits": []any{held(7)}, "context": int64(5)}},
		{"old two-phase state", state(2, ""), "\x06" + i64(9) + i32(0) + "\x00", map[string]any{"pending": held(6), "pendingCommits": []any{}, "context": nil}},
		{"linked list", composite("org.apache.flink.table.runtime.typeutils.LinkedListSerializer$LinkedListSerializerSnapshot", 3, "\x01", simple("Byte")), i32(3) + "\x40\x01\x03", []any{int64(1), nil, int64(3)}},
		{"Kafka transaction", class("streaming.connectors.kafka.FlinkKafkaProducer$TransactionStateSerializer$TransactionStateSerializerSnapshot"), "\x01" + utf("tx") + i64(5) + "\x00\x02", map[string]any{"transactionalId": "tx", "producerId": int64(5), "epoch": int64(2)}},
		{"Kafka context", class("streaming.connectors.kafka.FlinkKafkaProducer$ContextStateSerializer$ContextStateSerializerSnapshot"), i32(1) + utf("tx"), map[string]any{"transactionalIds": []any{"tx"}}},
		{"node", node, "\x01" + i32(1) + i64(2) + "\x02p", map[string]any{"event": eventValue, "page": "p"}},
		{"NFA state", composite("org.apache.flink.cep.nfa.NFAStateSerializerSnapshot", 2, "\x01", dewey, node, event), i32(1) + "\x02s" + "\x00" + i32(1) + i32(3) + i64(4) + i64(5) + "\x01" + i32(1) + i64(2) + i32(0),
			map[string]any{"partialMatches": []any{map[string]any{"state": "s", "node": nil, "version": []any{int64(3)}, "startTime": int64(4), "previousTime": int64(5), "startEvent": eventValue}}, "completedMatches": []any{}}},
		{"Scala enumeration", utf("org.apache.flink.api.scala.typeutils.ScalaEnumSerializerSnapshot") + i32(3) + utf("E") + i32(2) + utf("A") + i32(7) + utf("B") + i32(8), i32(8), "B"},
		{"Java object", class("runtime.state.JavaSerializer$JavaSerializerSnapshot"), javaHead + javaObject("com.acme.Mine", javaField{name: "n", number: 7}), []byte(javaHead + javaObject("com.acme.Mine", javaField{name: "n", number: 7}))},
		{"raw value", composite("org.apache.flink.table.runtime.typeutils.RawValueDataSerializer$RawValueDataSerializerSnapshot", 0, "", simple("Int")), blob(i32(7)), int64(7)},
		{"old list", legacyList, i32(2) + i64(1) + i64(2), []any{int64(1), int64(2)}},
	}
}

// legacyList is a list of longs as Flink 1.4 wrote it, in the wrapper of Flink 1.16.
var legacyList = func() string {
	long := i32(1) + utf("org.apache.flink.api.common.typeutils.ParameterlessTypeSerializerConfig") + i32(1) + utf(base+"LongSerializer")
	return utf(base+"CollectionSerializerConfigSnapshot") + i32(0x7a53c4f0) + i32(1) + blob(javaNull) + i32(1) + block(long)
}()
