package types_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// Bytes by hand, from the spec.

func i32(v int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(v))) }
func i64(v int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(v)))
}
func utf(s string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(s)))) + s }
func blob(s string) string {
	return i32(len(s)) + s
}

const (
	base     = "org.apache.flink.api.common.typeutils.base."
	runtime  = "org.apache.flink.api.java.typeutils.runtime."
	javaNull = "\xac\xed\x00\x05\x70"
)

func simple(name string) string {
	return utf(base+name+"Serializer$"+name+"SerializerSnapshot") + i32(3)
}

func delegate(nested ...string) string {
	return i32(1333245) + i32(1) + i32(len(nested)) + strings.Join(nested, "")
}

func composite(class string, version int, outer string, nested ...string) string {
	return utf(class) + i32(3) + i32(911108) + i32(version) + outer + delegate(nested...)
}

func optmap(entries ...string) string {
	return i64(0x000004f2c69a3d70) + i32(len(entries)) + strings.Join(entries, "")
}

// entry is one of an optional map; "-" stands for absent.
func entry(name, key, value string) string {
	s := utf(name)
	for _, p := range []string{key, value} {
		if p == "-" {
			s += "\x00"
		} else {
			s += "\x01" + blob(p)
		}
	}
	return s
}

// block is old serializers with the given config snapshots.
func block(configs ...string) string {
	offs, all := "", ""
	for _, c := range configs {
		offs += i32(len(all))
		all += i32(1) + blob(javaNull)
		offs += i32(len(all))
		all += c
	}
	return i32(len(configs)) + offs + blob(all)
}

func parameterless() string {
	return i32(1) + utf("org.apache.flink.api.common.typeutils.ParameterlessTypeSerializerConfig") + i32(1) + utf("a.Serializer")
}

func pojoTable(names ...string) string {
	offs, all := "", ""
	for _, n := range names {
		all += utf(n)
		offs += i32(len(all))
		all += i32(1) + blob(javaNull)
		offs += i32(len(all))
		all += parameterless()
	}
	return i32(len(names)) + offs + blob(all)
}

// tree is a snapshot in short.
func tree(s *types.Snapshot) string {
	if s == nil {
		return "-"
	}
	t := s.Class[strings.LastIndexAny(s.Class, ".$")+1:]
	t = strings.TrimSuffix(strings.TrimSuffix(t, "Snapshot"), "Serializer") + fmt.Sprint(s.Version)
	if s.Unknown {
		t += "?"
	}
	if len(s.Names) > 0 {
		t += fmt.Sprint(s.Names)
	}
	for i, list := range [][]*types.Snapshot{s.Nested, s.Subclasses} {
		if len(list) == 0 {
			continue
		}
		var all []string
		for _, n := range list {
			all = append(all, tree(n))
		}
		t += "(<"[i:i+1] + strings.Join(all, " ") + ")>"[i:i+1]
	}
	return t
}

var walks = []struct{ name, in, want string }{
	{"simple", i32(2) + simple("Long"), "Long3"},
	{"simple of 1.7", i32(2) + utf(base+"LongSerializer$LongSerializerSnapshot") + i32(2) + utf("a.Serializer"), "Long2"},
	{"map", i32(2) + composite(base+"MapSerializerSnapshot", 1, "", simple("Int"), composite(base+"ListSerializerSnapshot", 1, "", simple("String"))), "Map1(Int3 List1(String3))"},
	{"tuple", i32(2) + composite(runtime+"TupleSerializerSnapshot", 2, utf("T2"), simple("Int"), simple("Int")), "Tuple2(Int3 Int3)"},
	{"tuple of 1.7", i32(2) + utf(runtime+"TupleSerializerSnapshot") + i32(2) + utf("T1") + delegate(simple("Int")), "Tuple2(Int3)"},
	{"either of 1.7", i32(2) + utf(runtime+"EitherSerializerSnapshot") + i32(2) + delegate(simple("Int"), simple("Int")), "Either2(Int3 Int3)"},
	{"array of 1.7", i32(2) + utf(base+"GenericArraySerializerConfigSnapshot") + i32(2) + utf("C") + delegate(simple("Int")), "GenericArraySerializerConfig2(Int3)"},
	{"row 1.10", i32(2) + composite(runtime+"RowSerializer$RowSerializerSnapshot", 2, "", simple("Int")), "Row2(Int3)"},
	{"row 1.11", i32(2) + composite(runtime+"RowSerializer$RowSerializerSnapshot", 3, "", simple("Int")), "Row3(Int3)"},
	{"row 1.15", i32(2) + composite(runtime+"RowSerializer$RowSerializerSnapshot", 4, "\x01", simple("Int")), "Row4(Int3)"},
	{"list with a mask", i32(2) + composite("org.apache.flink.table.runtime.typeutils.LinkedListSerializer$LinkedListSerializerSnapshot", 3, "\x01", simple("Int")), "LinkedList3(Int3)"},
	{"external", i32(2) + composite("org.apache.flink.table.runtime.typeutils.ExternalSerializerSnapshot", 1, javaNull+"\x00", simple("Int")), "External1(Int3)"},
	{"raw value", i32(2) + composite("org.apache.flink.table.runtime.typeutils.RawValueDataSerializer$RawValueDataSerializerSnapshot", 0, "", simple("Int")), "RawValueData0(Int3)"},
	{"traversable", i32(2) + composite("org.apache.flink.api.scala.typeutils.TraversableSerializerSnapshot", 2, utf("code"), simple("Int")), "Traversable2(Int3)"},
	{"nfa", i32(2) + composite("org.apache.flink.cep.nfa.NFAStateSerializerSnapshot", 1, "", simple("Int"), simple("Int"), simple("Int")), "NFAState1(Int3 Int3 Int3)"},
	{"two-phase commit", i32(2) + composite("org.apache.flink.streaming.api.functions.sink.TwoPhaseCommitSinkFunction$StateSerializerSnapshot", 4, "\x01", simple("Int"), simple("Int")), "State4(Int3 Int3)"},
	{"value", i32(2) + utf(runtime+"ValueSerializer$ValueSerializerSnapshot") + i32(2) + utf("V"), "Value2"},
	{"enum", i32(2) + utf(base+"EnumSerializer$EnumSerializerSnapshot") + i32(3) + utf("E") + i32(2) + utf("A") + utf("B"), "Enum3[A B]"},
	{"scala enum", i32(2) + utf("org.apache.flink.api.scala.typeutils.ScalaEnumSerializerSnapshot") + i32(3) + utf("E") + i32(2) + utf("A") + i32(7) + utf("B") + i32(8), "ScalaEnum3[A B]"},
	{"avro 1", i32(2) + utf("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot") + i32(1) + utf("{}"), "Avro1"},
	{"avro 2", i32(2) + utf("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot") + i32(2) + utf("R") + utf("{}"), "Avro2"},
	{"avro 3", i32(2) + utf("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot") + i32(3) + "\x02R" + "\x03{}", "Avro3"},
	{"row data", i32(2) + utf("org.apache.flink.table.runtime.typeutils.RowDataSerializer$RowDataSerializerSnapshot") + i32(3) + i32(2) + javaNull + javaNull + delegate(simple("Int"), simple("Long")), "RowData3(Int3 Long3)"},
	{"binary row", i32(2) + utf("org.apache.flink.table.runtime.typeutils.BinaryRowDataSerializer$BinaryRowDataSerializerSnapshot") + i32(3) + i32(2), "BinaryRowData3"},
	{"array data", i32(2) + utf("org.apache.flink.table.runtime.typeutils.ArrayDataSerializer$ArrayDataSerializerSnapshot") + i32(3) + javaNull + javaNull, "ArrayData3"},
	{"map data", i32(2) + utf("org.apache.flink.table.runtime.typeutils.MapDataSerializer$MapDataSerializerSnapshot") + i32(3) + strings.Repeat(javaNull, 4), "MapData3"},
	{"decimal", i32(2) + utf("org.apache.flink.table.runtime.typeutils.DecimalDataSerializer$DecimalSerializerSnapshot") + i32(3) + i32(10) + i32(2), "Decimal3"},
	{"sorted map", i32(2) + utf("org.apache.flink.table.runtime.typeutils.SortedMapSerializerSnapshot") + i32(3) + javaNull + delegate(simple("Int"), simple("Long")), "SortedMap3(Int3 Long3)"},
	{"ttl aware", i32(2) + utf("org.apache.flink.runtime.state.ttl.TtlAwareSerializerSnapshot") + i32(1) + "\x01" + simple("Int"), "TtlAware1(Int3)"},
	{"kryo", i32(2) + utf(runtime+"kryo.KryoSerializerSnapshot") + i32(2) + utf("K") + optmap(entry("a", utf("a"), utf("a")+i32(0)), entry("b", "-", "-")) + optmap() + optmap(), "Kryo2[a b]"},
	{"pojo", i32(2) + utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("P") +
		optmap(entry("x", utf("P")+utf("x"), simple("Int")), entry("y", "-", utf("com.example.Mine")+i32(1)+"whatever"), entry("z", "-", "-")) +
		optmap(entry("Sub", "", simple("Long"))) + optmap(entry("Other", "", simple("Short"))),
		"Pojo2[x y z](Int3 Mine1? -)<Long3 Short3>"},

	{"old simple", parameterless(), "ParameterlessTypeSerializerConfig1"},
	{"old list", i32(1) + utf(base+"CollectionSerializerConfigSnapshot") + i32(1) + block(parameterless()), "CollectionSerializerConfig1(ParameterlessTypeSerializerConfig1)"},
	{"old map with a user's", i32(1) + utf(base+"MapSerializerConfigSnapshot") + i32(1) + block(i32(1)+utf("com.example.Mine")+i32(4)+"whatever", i32(2)+simple("Int")), "MapSerializerConfig1(Mine4? Int3)"},
	{"old ttl", i32(1) + utf("org.apache.flink.api.common.typeutils.CompositeSerializer$ConfigSnapshot") + i32(0) + block(parameterless(), parameterless()), "Config0(ParameterlessTypeSerializerConfig1 ParameterlessTypeSerializerConfig1)"},
	{"old tuple", i32(1) + utf(runtime+"TupleSerializerConfigSnapshot") + i32(1) + block(parameterless()) + javaNull, "TupleSerializerConfig1(ParameterlessTypeSerializerConfig1)"},
	{"old enum", i32(1) + utf(base+"EnumSerializer$EnumSerializerConfigSnapshot") + i32(2) + utf("E") + i32(1) + utf("A"), "EnumSerializerConfig2[A]"},
	{"old kryo", i32(1) + utf(runtime+"kryo.KryoSerializer$KryoSerializerConfigSnapshot") + i32(1) + utf("K") + i32(3) + utf("a") + utf("a") + i32(0) + utf("b") + utf("b") + i32(1) + utf("S") + utf("c") + utf("c") + i32(2) + javaNull, "KryoSerializerConfig1[a b c]"},
	{"old avro", i32(1) + utf("org.apache.flink.formats.avro.typeutils.AvroSerializer$AvroSchemaSerializerConfigSnapshot") + i32(1) + utf("{}"), "AvroSchemaSerializerConfig1"},
	{"old pojo", i32(1) + utf(runtime+"PojoSerializer$PojoSerializerConfigSnapshot") + i32(1) + utf("P") + pojoTable("x", "y") + pojoTable() + pojoTable("Sub"), "PojoSerializerConfig1[x y Sub](ParameterlessTypeSerializerConfig1 ParameterlessTypeSerializerConfig1 ParameterlessTypeSerializerConfig1)"},
	{"new in an old wrapper", i32(1) + simple("Long"), "Long3"},
	{"adapter", i32(2) + utf("org.apache.flink.api.common.typeutils.ParameterlessTypeSerializerConfig") + i32(0x7a53c4f0) + i32(1) + blob(javaNull) + i32(1) + utf("a.Serializer"), "ParameterlessTypeSerializerConfig1"},
}

// TestWalk walks bytes made by hand, whatever follows them, and refuses each
// cut of them.
func TestWalk(t *testing.T) {
	for _, x := range walks {
		s, end, err := types.Skip([]byte(x.in + "rest"))
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if got := tree(s); got != x.want || end != len(x.in) || string(s.Raw) != x.in[4:] {
			t.Errorf("%s: %s, to byte %d of %d; want %s", x.name, got, end, len(x.in), x.want)
		}
		for n := range x.in {
			if s, _, err := types.Skip([]byte(x.in[:n])); !errors.Is(err, format.ErrTruncated) {
				t.Errorf("%s cut to %d: %v, %v", x.name, n, tree(s), err)
			}
		}
	}
}

func TestUnknown(t *testing.T) {
	for _, x := range []struct {
		name, in, class string
		version         int32
	}{
		{"a user's", utf("com.example.Mine$Snapshot") + i32(4), "com.example.Mine$Snapshot", 4},
		{"a user's with a name of Flink's", utf("com.example.ListSerializerSnapshot") + i32(3), "com.example.ListSerializerSnapshot", 3},
		{"a later version", utf(base+"LongSerializer$LongSerializerSnapshot") + i32(4), base + "LongSerializer$LongSerializerSnapshot", 4},
		{"an earlier version", utf(base+"LongSerializer$LongSerializerSnapshot") + i32(1), base + "LongSerializer$LongSerializerSnapshot", 1},
		{"an earlier outer version", composite(base+"ListSerializerSnapshot", 0, "", simple("Int")), base + "ListSerializerSnapshot", 0},
		{"a later old one", utf(base+"MapSerializerConfigSnapshot") + i32(0x7a53c4f0) + i32(1) + blob(javaNull) + i32(3), base + "MapSerializerConfigSnapshot", 3},
		{"an earlier old one", utf(base+"EnumSerializer$EnumSerializerConfigSnapshot") + i32(0x7a53c4f0) + i32(1) + blob(javaNull) + i32(1), base + "EnumSerializer$EnumSerializerConfigSnapshot", 1},
		{"a later outer version", composite(base+"ListSerializerSnapshot", 2, "", simple("Int")), base + "ListSerializerSnapshot", 2},
		{"a later base version", utf(base+"ListSerializerSnapshot") + i32(4), base + "ListSerializerSnapshot", 4},
		{"inside", composite(base+"ListSerializerSnapshot", 1, "", utf("com.example.Mine")+i32(9)), "com.example.Mine", 9},
		{"behind an adapter", utf("com.example.Mine") + i32(0x7a53c4f0) + i32(1) + blob(javaNull) + i32(5), "com.example.Mine", 5},
	} {
		_, _, err := types.Skip([]byte(i32(2) + x.in))
		var u *types.UnknownClass
		if !errors.As(err, &u) || *u != (types.UnknownClass{Class: x.class, Version: x.version}) || !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func TestWalkRefused(t *testing.T) {
	nested := func(n int) string {
		s := simple("Int")
		for range n {
			s = composite(base+"ListSerializerSnapshot", 1, "", s)
		}
		return i32(2) + s
	}
	if _, _, err := types.Skip([]byte(nested(64))); err != nil {
		t.Error(err)
	}
	for _, x := range []struct {
		name, in string
		kind     error
		text     string
	}{
		{"too deep", nested(65), format.ErrLimit, "64 deep"},
		{"wrapper", i32(3), format.ErrCorrupt, "expected wrapper version 1 or 2 of a serializer snapshot, found 3"},
		{"magic", i32(2) + utf(base+"ListSerializerSnapshot") + i32(3) + i32(7) + i32(1), format.ErrCorrupt, "found 0x7"},
		{"inner magic", i32(2) + utf(base+"ListSerializerSnapshot") + i32(3) + i32(911108) + i32(1) + i32(5) + i32(1), format.ErrCorrupt, "0x5 version 1"},
		{"too few inside", i32(2) + composite(base+"MapSerializerSnapshot", 1, "", simple("Int")), format.ErrCorrupt, "expected 2 nested ones, found 1"},
		{"a claim", i32(2) + utf(runtime+"TupleSerializerSnapshot") + i32(3) + i32(911108) + i32(2) + utf("T") + i32(1333245) + i32(1) + i32(1<<30), format.ErrTruncated, ": expected 1073741824"},
		{"a negative count", i32(2) + utf(base+"EnumSerializer$EnumSerializerSnapshot") + i32(3) + utf("E") + i32(-1), format.ErrCorrupt, "invalid count -1"},
		{"more in a frame", i32(2) + utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("P") + optmap(entry("x", "-", simple("Int")+"!")) + optmap() + optmap(), format.ErrCorrupt, "1 bytes after"},
		{"optional map", i32(2) + utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("P") + i64(1) + i32(0), format.ErrCorrupt, "found 0x1"},
		{"kind of registration", i32(1) + utf(runtime+"kryo.KryoSerializerConfigSnapshot") + i32(1) + utf("K") + i32(1) + utf("a") + utf("a") + i32(3), format.ErrCorrupt, "unknown kind 3 of a Kryo registration"},
		{"offsets of a block", i32(1) + utf(base+"CollectionSerializerConfigSnapshot") + i32(1) + i32(1) + i32(0) + i32(9) + blob("12345678"), format.ErrCorrupt, "0, 9 and 8 in 8"},
		{"offsets of a block that go back", i32(1) + utf(base+"CollectionSerializerConfigSnapshot") + i32(1) + i32(1) + i32(0) + i32(-1) + blob("12345678"), format.ErrCorrupt, "0, -1 and 8 in 8"},
		{"snapshot of a POJO's entry", i32(1) + utf(runtime+"PojoSerializerConfigSnapshot") + i32(1) + utf("P") + i32(1) + i32(3) + i32(3) + blob(utf("x")+i32(1)+blob("")+parameterless()), format.ErrCorrupt, "snapshot of entry 0 of a POJO has invalid offset 3"},
		{"more in the entries of a POJO", i32(1) + utf(runtime+"PojoSerializerConfigSnapshot") + i32(1) + utf("P") + i32(0) + blob("?"), format.ErrCorrupt, "1 bytes after the entries"},
		{"first offset of a block", i32(1) + utf(base+"CollectionSerializerConfigSnapshot") + i32(1) + i32(1) + i32(1) + i32(2) + blob("12345678"), format.ErrCorrupt, "at 0, found 1"},
		{"serializer object", i32(1) + utf(base+"CollectionSerializerConfigSnapshot") + i32(1) + i32(1) + i32(0) + i32(8) + blob(i32(2)+i32(0)), format.ErrCorrupt, "version 1, found 2"},
		{"entries of a POJO", i32(1) + utf(runtime+"PojoSerializerConfigSnapshot") + i32(1) + utf("P") + i32(1) + i32(0) + i32(0) + blob(utf("x")+i32(1)+blob("")), format.ErrCorrupt, ": entry 0 of a POJO has invalid offset 0"},
	} {
		if _, _, err := types.Skip([]byte(x.in)); !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func TestSkipBlock(t *testing.T) {
	in := block(parameterless(), i32(2)+simple("Int"))
	all, end, err := types.SkipBlock([]byte(in + "rest"))
	if err != nil || len(all) != 2 || tree(all[1]) != "Int3" || end != len(in) {
		t.Error(all, err)
	}
}

func snapshot(t testing.TB, body string) *types.Snapshot {
	t.Helper()
	s, _, err := types.Skip([]byte(i32(2) + body))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valueTest is a value, the snapshot of its serializer, and its bytes.
type valueTest struct {
	name, snapshot, in string
	want               any
}

// valueSeeds returns the snapshots and bytes of valueTests.
func valueSeeds() (seeds [][2]string) {
	for _, x := range valueTests() {
		seeds = append(seeds, [2]string{x.snapshot, x.in})
	}
	return seeds
}

// valueTests are values that the corpus does not hold.
func valueTests() []valueTest {
	pojo, family := classes()
	bytes := utf(base+"array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot") + i32(3)
	return append(slices.Concat(sqlTests(), avroTests(), runtimeTests()), []valueTest{
		{"long", simple("Long"), i64(-2), int64(-2)},
		{"byte", simple("Byte"), "\xfe", int64(-2)},
		{"short", simple("Short"), "\xff\xfe", int64(-2)},
		{"null string", simple("String"), "\x00", nil},
		{"empty string", simple("String"), "\x01", ""},
		{"string", simple("String"), "\x05\xe9\x01\xac\x41\xbd\xb0\x03\x80\xb8\x03", "\u00e9\u20ac\U0001f400"},
		{"NaN", simple("Double"), "\x7f\xf8\x00\x00\x00\x00\x00\x00", "NaN"},
		{"infinity", simple("Float"), "\x7f\x80\x00\x00", "Infinity"},
		{"-infinity", simple("Float"), "\xff\x80\x00\x00", "-Infinity"},
		{"float", simple("Float"), "\x3f\x00\x00\x00", float32(0.5)},
		{"null big integer", simple("BigInt"), i32(0), nil},
		{"ten", simple("BigInt"), i32(3), "10"},
		{"-1", simple("BigInt"), i32(5) + "\xff", "-1"},
		{"255", simple("BigInt"), i32(6) + "\x00\xff", "255"},
		{"bytes", bytes, i32(2) + "\x00\xff", []byte{0, 0xff}},
		{"zero in the long encoding", simple("BigInt"), i32(5) + "\x00", "0"},
		{"ten in the long encoding", simple("BigDec"), i32(5) + "\x0a" + i32(1), "1.0"},
		{"void of another byte", simple("Void"), "\x07", nil},
		{"null that is present", composite(base+"SetSerializerSnapshot", 1, "", simple("String")), i32(2) + "\x00\x00" + "\x01", []any{nil, nil}},
		{"void in a void row", composite(runtime+"RowSerializer$RowSerializerSnapshot", 4, "\x01", simple("Void"), simple("Void")), "\x20\x05", []any{nil, nil}},
		{"an option of null", composite("org.apache.flink.api.scala.typeutils.ScalaOptionSerializerSnapshot", 2, "", composite("org.apache.flink.api.scala.typeutils.ScalaOptionSerializerSnapshot", 2, "", simple("String"))), "\x01\x01\x00", nil},
		{"NaN of other bits", simple("Float"), "\xff\xc0\x00\x01", "NaN(ffc00001)"},
		{"no bytes", bytes, i32(0), []byte{}},
		{"void", simple("Void"), "\x00", nil},
		{"list", list(list(simple("Int"))), i32(2) + i32(1) + i32(5) + i32(0), []any{[]any{int64(5)}, []any{}}},
		{"set", composite(base+"SetSerializerSnapshot", 1, "", simple("Int")), i32(2) + "\x01\x00" + i32(5), []any{nil, int64(5)}},
		{"map", composite(base+"MapSerializerSnapshot", 1, "", simple("Int"), simple("Int")), i32(2) + i32(1) + "\x01" + i32(2) + "\x00" + i32(3), [][2]any{{int64(1), nil}, {int64(2), int64(3)}}},
		{"right", composite(runtime+"JavaEitherSerializerSnapshot", 1, "", simple("Int"), simple("Byte")), "\x00\x07", map[string]any{"right": int64(7)}},
		{"nullable", composite(runtime+"NullableSerializer$NullableSerializerSnapshot", 2, i32(4), simple("Int")), "\x00" + i32(7), int64(7)},
		{"padded null", composite(runtime+"NullableSerializer$NullableSerializerSnapshot", 2, i32(4), simple("Int")), "\x01\x00\x00\x00\x00", nil},
		{"pojo", pojo, "\x02\x00" + i32(7) + "\x01", map[string]any{"x": int64(7), "s": nil}},
		{"null pojo", pojo, "\x01", nil},
		{"registered subclass", family, "\x08\x01" + "\x02\x00" + i32(7), map[string]any{"y": int64(7), "@class": "R2"}},
		{"subclass by name", family, "\x04" + utf("N1") + "\x02\x00" + i32(7), map[string]any{"z": int64(7), "@class": "N1"}},
		{"null of a subclass", family, "\x08\x01\x01", nil},
		{"decimal", simple("BigDec"), i32(6) + "\x30\x39" + i32(3), "12.345"},
		{"null decimal", simple("BigDec"), i32(0), nil},
		{"decimal of a constant", simple("BigDec"), i32(2) + i32(-2), "1e2"},
		{"moment", simple("Date"), i64(-1), "1969-12-31 23:59:59.999 +0000 UTC"},
		{"null moment", simple("SqlTime"), i64(math.MinInt64), nil},
		{"timestamp", simple("SqlTimestamp"), i64(-999) + i32(1_000_001), "1969-12-31 23:59:59.001000001 +0000 UTC"},
		{"null timestamp", simple("SqlTimestamp"), i64(math.MinInt64) + i32(0), nil},
		{"instant", simple("Instant"), i64(1) + i32(2), "1970-01-01 00:00:01.000000002 +0000 UTC"},
		{"null instant", simple("Instant"), i64(math.MinInt64) + i32(math.MinInt32), nil},
		{"date", simple("LocalDate"), i32(2024) + "\x02\x1d", "2024-02-29"},
		{"null date", simple("LocalDate"), i32(math.MinInt32) + "\x80\x00", nil},
		{"time", simple("LocalTime"), "\x17\x3b\x3a" + i32(7_000_000), "23:59:58.007"},
		{"null time", simple("LocalTime"), "\x80\x80\x00" + i32(math.MinInt32), nil},
		{"date and time", simple("LocalDateTime"), i32(-5) + "\x0c\x1f\x00\x00\x00" + i32(0), "-0005-12-31T00:00:00"},
		{"null date and time", simple("LocalDateTime"), i32(math.MinInt32) + "\x80\x00\x80\x80\x00" + i32(math.MinInt32), nil},
		{"window", utf("org.apache.flink.streaming.api.windowing.windows.TimeWindow$Serializer$TimeWindowSerializerSnapshot") + i32(3), i64(1) + i64(2), map[string]any{"start": int64(1), "end": int64(2)}},
		{"row", composite(runtime+"RowSerializer$RowSerializerSnapshot", 4, "\x01", simple("Int"), simple("Int"), simple("Int")), "\x20" + i32(7) + i32(8), []any{nil, int64(7), int64(8)}},
		{"deleted row", composite(runtime+"RowSerializer$RowSerializerSnapshot", 4, "\x01", simple("Int")), "\xc0" + i32(7), map[string]any{"kind": "DELETE", "fields": []any{int64(7)}}},
		{"row before", composite(runtime+"RowSerializer$RowSerializerSnapshot", 3, "", simple("Int")), "\x80" + i32(7), map[string]any{"kind": "UPDATE_BEFORE", "fields": []any{int64(7)}}},
		{"row without a kind", composite(runtime+"RowSerializer$RowSerializerSnapshot", 4, "\x00", simple("Int"), simple("Int")), "\x40" + i32(7), []any{int64(7), nil}},
		{"old row", composite(runtime+"RowSerializer$RowSerializerSnapshot", 2, "", simple("Int"), simple("Int")), "\x80" + i32(7), []any{nil, int64(7)}},
		{"half a pair", simple("String"), "\x02\x80\xb0\x03", "\xed\xa0\x80"},
		{"the other half", simple("String"), "\x02\x80\xb8\x03", "\xed\xb0\x80"},
		{"half a pair and more", simple("String"), "\x03\x80\xb0\x03a", "\xed\xa0\x80a"},
		{"a character that is half a pair", simple("Char"), "\xd8\x00", "\xed\xa0\x80"},
		{"nulls without bytes", list(utf(base+"NullValueSerializer$NullValueSerializerSnapshot") + i32(3)), i32(2), []any{nil, nil}},
		{"timer", composite("org.apache.flink.streaming.api.operators.TimerSerializerSnapshot", 2, "", simple("Int"), simple("Void")), "\x80\x00\x00\x00\x00\x00\x30\x39" + i32(7) + "\x00", map[string]any{"timestamp": int64(12345), "key": int64(7), "namespace": nil}},
		{"SQL string", utf("org.apache.flink.table.runtime.typeutils.StringDataSerializer$StringDataSerializerSnapshot") + i32(3), i32(2) + "\xc3\xa9", "\u00e9"},
		{"SQL decimal", utf("org.apache.flink.table.runtime.typeutils.DecimalDataSerializer$DecimalSerializerSnapshot") + i32(3) + i32(10) + i32(2), i64(-5), "-0.05"},
		{"wide SQL decimal", utf("org.apache.flink.table.runtime.typeutils.DecimalDataSerializer$DecimalSerializerSnapshot") + i32(3) + i32(30) + i32(2), i32(2) + "\xff\x00", "-2.56"},
		{"SQL timestamp", utf("org.apache.flink.table.runtime.typeutils.TimestampDataSerializer$TimestampDataSerializerSnapshot") + i32(1) + i32(3), i64(1500), "1970-01-01T00:00:01.5"},
		{"fine SQL timestamp", utf("org.apache.flink.table.runtime.typeutils.TimestampDataSerializer$TimestampDataSerializerSnapshot") + i32(1) + i32(9), i64(1500) + i32(7), "1970-01-01T00:00:01.500000007"},
	}...)
}

// classes returns a serializer of objects, and one of objects with subclasses.
func classes() (pojo, family string) {
	pojo = utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("P") + optmap(entry("x", "-", simple("Int")), entry("s", "-", simple("String"))) + optmap() + optmap()
	sub := func(name, field string) string {
		return utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf(name) + optmap(entry(field, "-", simple("Int"))) + optmap() + optmap()
	}
	nested := utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("R3") + optmap() + optmap(entry("R4", "", sub("R4", "q"))) + optmap()
	family = utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("P") + optmap(entry("x", "-", simple("Int"))) +
		optmap(entry("R1", "", sub("R1", "a")), entry("R2", "", sub("R2", "y")), entry("R3", "", nested)) + optmap(entry("N1", "", sub("N1", "z")))
	return pojo, family
}

func list(s string) string { return composite(base+"ListSerializerSnapshot", 1, "", s) }

func TestValues(t *testing.T) {
	pojo, family := classes()
	for _, x := range valueTests() {
		c, ok := types.CodecOf(snapshot(t, x.snapshot))
		if !ok {
			t.Errorf("%s is not decoded", x.name)
			continue
		}
		v, err := testenv.ReadBack(t, c, []byte(x.in))
		got := testenv.Plain(v)
		if at, ok := got.(time.Time); ok {
			got = at.String()
		}
		switch s := strings.Trim(v.String(), `"`); s {
		case "NaN", "Infinity", "-Infinity", "NaN(ffc00001)":
			got = s
		}
		if err != nil || !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: %#v, want %#v, %v", x.name, got, x.want, err)
		}
		if _, err := value.ReadAll(c, []byte(x.in+"x")); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "1 trailing bytes") {
			t.Errorf("%s: a byte more: %v", x.name, err)
		}
		for n := range x.in {
			if _, _, err := c.Read([]byte(x.in[:n])); !value.IsShort(err) {
				t.Errorf("%s: cut to %d: %v", x.name, n, err)
			}
			if _, err := c.Skip([]byte(x.in[:n])); !value.IsShort(err) {
				t.Errorf("%s: skipped, cut to %d: %v", x.name, n, err)
			}
			for bit := range 8 {
				q := []byte(x.in)
				q[n] ^= 1 << bit
				if err := testenv.Agree(c, q); err != nil {
					t.Errorf("%s: byte %d flipped: %v", x.name, n, err)
				}
				if v, _, err := c.Read(q); err == nil {
					if err := testenv.AgreeJSON(c, v); err != nil {
						t.Errorf("%s: byte %d flipped: %v", x.name, n, err)
					}
				}
			}
		}
	}
	for _, x := range []struct {
		name, snapshot, in string
		kind               error
	}{
		{"a large character", simple("String"), "\x02\x80\x80\x04", format.ErrCorrupt},
		{"an endless number", simple("String"), "\xff\xff\xff\xff\xff\x01", format.ErrCorrupt},
		{"a little more than 32 bits", simple("String"), "\x82\x80\x80\x80\x10" + "a", format.ErrCorrupt},
		{"a long claim", simple("String"), "\xff\xff\xff\xff\x0f", format.ErrTruncated},
		{"a long list", list(simple("Int")), i32(1 << 30), format.ErrTruncated},
		{"a long list without bytes", list(utf(base+"NullValueSerializer$NullValueSerializerSnapshot") + i32(3)), i32(1 << 30), format.ErrLimit},
		{"boolean", simple("Boolean"), "\x02", format.ErrCorrupt},
		{"big integer", simple("BigInt"), i32(4), format.ErrCorrupt},
		{"subclass", pojo, "\x08\x00", format.ErrUnsupported},
		{"number of no subclass", family, "\x08\x03", format.ErrUnsupported},
		{"name of no subclass", family, "\x04" + utf("N2"), format.ErrUnsupported},
		{"name of a registered subclass", family, "\x04" + utf("R1"), format.ErrUnsupported},
		{"nanoseconds", simple("Instant"), i64(0) + i32(1_000_000_000), format.ErrCorrupt},
		{"a far moment", simple("Instant"), i64(1<<62) + i32(0), format.ErrCorrupt},
		{"month", simple("LocalDate"), i32(1) + "\x0d\x01", format.ErrCorrupt},
		{"hour", simple("LocalTime"), "\x18\x00\x00" + i32(0), format.ErrCorrupt},
		{"half a null", simple("LocalDateTime"), i32(math.MinInt32) + "\x80\x00\x00\x00\x00" + i32(0), format.ErrCorrupt},
		{"a length with a zero in front", simple("String"), "\x81\x00", format.ErrUnsupported},
		{"a character with a zero in front", simple("String"), "\x02\xe1\x00", format.ErrUnsupported},
		{"a big integer that is not in its shortest encoding", simple("BigInt"), i32(6) + "\x00\x7f", format.ErrUnsupported},
		{"a timestamp with two different values of milliseconds", simple("SqlTimestamp"), i64(5) + i32(6_000_000), format.ErrUnsupported},
		{"a null timestamp with nanoseconds", simple("SqlTimestamp"), i64(math.MinInt64) + i32(1), format.ErrUnsupported},
		{"a null instant with nanoseconds", simple("Instant"), i64(math.MinInt64) + i32(0), format.ErrUnsupported},
		{"padding that is not zero", composite(runtime+"NullableSerializer$NullableSerializerSnapshot", 2, i32(1), simple("Int")), "\x01\x07", format.ErrUnsupported},
		{"a row with more null bits than fields", composite(runtime+"RowSerializer$RowSerializerSnapshot", 4, "\x01", simple("Int")), "\x01" + i32(7), format.ErrUnsupported},
		{"a subclass of a subclass", family, "\x08\x02\x08\x00\x02\x00" + i32(7), format.ErrUnsupported},
		{"an empty SQL decimal", utf("org.apache.flink.table.runtime.typeutils.DecimalDataSerializer$DecimalSerializerSnapshot") + i32(3) + i32(30) + i32(2), i32(0), format.ErrCorrupt},
		{"flags", pojo, "\x03", format.ErrCorrupt},
		{"constant", utf(base+"EnumSerializer$EnumSerializerSnapshot") + i32(3) + utf("E") + i32(1) + utf("A"), i32(1), format.ErrCorrupt},
	} {
		c, ok := types.CodecOf(snapshot(t, x.snapshot))
		if !ok {
			t.Errorf("%s is not decoded", x.name)
			continue
		}
		if v, _, err := c.Read([]byte(x.in)); !errors.Is(err, x.kind) {
			t.Errorf("%s: %v, %v", x.name, v, err)
		}
	}
	for name, s := range map[string]string{
		"kryo":            utf(runtime+"kryo.KryoSerializerSnapshot") + i32(2) + utf("K") + optmap() + optmap() + optmap(),
		"list of kryo":    list(utf(runtime+"kryo.KryoSerializerSnapshot") + i32(2) + utf("K") + optmap() + optmap() + optmap()),
		"row of nothing":  composite(runtime+"RowSerializer$RowSerializerSnapshot", 4, "\x00"),
		"padding":         composite(runtime+"NullableSerializer$NullableSerializerSnapshot", 2, i32(-1), simple("Int")),
		"a missing field": utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("P") + optmap(entry("x", "-", "-")) + optmap() + optmap(),
	} {
		if _, ok := types.CodecOf(snapshot(t, s)); ok {
			t.Errorf("%s is decoded", name)
		}
	}
}

// TestAppendRefuses: what is not a value of the type is not written.
func TestAppendRefuses(t *testing.T) {
	pair := composite(runtime+"TupleSerializerSnapshot", 2, utf("T"), simple("Int"), simple("Int"))
	pojo := utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("P") + optmap(entry("x", "-", simple("Int"))) + optmap() + optmap()
	enum := utf(base+"EnumSerializer$EnumSerializerSnapshot") + i32(3) + utf("E") + i32(1) + utf("A")
	fields := func(names ...string) value.Value {
		return value.Record(&value.Shape{Names: names}, make([]value.Value, len(names)))
	}
	for _, x := range []struct {
		snapshot string
		v        value.Value
		text     string
	}{
		{simple("Int"), value.Null(), "expected an integer, found null"},
		{simple("Int"), value.Int(1 << 31), "2147483648 does not fit into 32 bits"},
		{simple("Byte"), value.Int(-129), "-129 does not fit into 8 bits"},
		{simple("Long"), value.Uint(1 << 63), "expected an integer, found an integer"},
		{simple("Char"), value.String("ab"), "expected one character"},
		{simple("String"), value.String("\xff"), "not UTF-8"},
		{simple("StringValue"), value.Null(), "expected a string, found null"},
		{simple("Float"), value.Float64(0), "expected a float, found a double"},
		{simple("Date"), value.Instant(0, 1), "finer than a millisecond"},
		{simple("Date"), value.Instant(1<<62, 0), "too far from 1970"},
		{list(simple("Int")), value.List([]value.Value{value.Int(1), value.String("a")}), "expected an integer, found a string"},
		{pair, value.List([]value.Value{value.Int(1)}), "expected a list of 2 parts, found 1"},
		{pojo, fields("y"), "expected the fields x, found y"},
		{pojo, fields("x").WithClass("Q"), `"Q" is not a known subclass of "P"`},
		{enum, value.String("B"), `the enum has no constant "B"`},
		{composite(runtime+"RowSerializer$RowSerializerSnapshot", 4, "\x01", simple("Int")), value.Record(&value.Shape{Names: []string{"kind", "fields"}}, []value.Value{value.String("UPSERT"), value.List(make([]value.Value, 1))}), `found "UPSERT"`},
		{utf("org.apache.flink.table.runtime.typeutils.DecimalDataSerializer$DecimalSerializerSnapshot") + i32(3) + i32(10) + i32(2), value.Decimal([]byte{1}, 3), "expected a decimal of scale 2, found 3"},
		{utf("org.apache.flink.table.runtime.typeutils.DecimalDataSerializer$DecimalSerializerSnapshot") + i32(3) + i32(10) + i32(2), value.Decimal([]byte("123456789"), 2), "has more than 10 digits"},
	} {
		c, ok := types.CodecOf(snapshot(t, x.snapshot))
		if !ok {
			t.Errorf("%q is not decoded", x.snapshot)
			continue
		}
		if got, err := c.Append([]byte("before"), x.v); string(got) != "before" || !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%v: %q, %v; want %s", x.v, got, err, x.text)
		}
	}
}

// FuzzValue: the methods of a codec agree on any bytes: what Read accepts, Skip ends
// at the same byte and Append writes back.
func FuzzValue(f *testing.F) {
	seeds := 0
	for _, x := range walks {
		f.Add([]byte(x.in), []byte(i32(1)+i32(7)))
		seeds++
	}
	for _, x := range valueSeeds() {
		f.Add([]byte(i32(2)+x[0]), []byte(x[1]))
		seeds++
	}
	for _, x := range kryoTests {
		p, err := hex.DecodeString(x.bytes)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(i32(2)+kryoSnapshot(x.class)), p)
	}
	for _, x := range kryoVectors(f) {
		p, err := hex.DecodeString(x.bytes)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(i32(2)+string(x.snapshot.Raw)), p)
	}
	if seeds == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, p, in []byte) {
		s, _, err := types.Skip(p)
		if err != nil {
			return
		}
		for _, kryo := range []int{2, 5} {
			if c, err := types.NewCodec(s, types.Options{Kryo: kryo}); err == nil {
				fuzzCodec(t, c, in)
			}
		}
	})
}

func fuzzCodec(t *testing.T, c value.Codec, in []byte) {
	if err := testenv.Agree(c, in); err != nil {
		t.Fatal(err)
	}
	v, _, err := c.Read(in)
	if err == nil {
		err = testenv.AgreeJSON(c, v)
		if err != nil {
			t.Fatal(err)
		}
	} else if !ours(err) {
		t.Fatalf("an error of no kind: %v", err)
	}
	if _, err := value.FromJSON(c, in); err != nil && !ours(err) {
		t.Fatalf("an error of no kind: %v", err)
	}
}

// FuzzSkip: any bytes are refused, or walked and kept as they are.
func FuzzSkip(f *testing.F) {
	for _, x := range walks {
		f.Add([]byte(x.in))
	}
	if len(walks) == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		s, end, err := types.Skip(slices.Clone(p))
		if err != nil {
			if !ours(err) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		if string(s.Raw) != string(p[4:end]) {
			t.Fatal("not verbatim")
		}
		again, _, err := types.Skip(p[:end])
		if err != nil || tree(again) != tree(s) {
			t.Fatalf("alone it is another: %v", err)
		}
	})
}
