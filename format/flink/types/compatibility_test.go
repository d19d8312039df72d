package types_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/types"
)

// TestDifferences: all parts that differ are listed, with their paths.
func TestDifferences(t *testing.T) {
	pojo := func(fields ...string) string {
		return utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("P") + optmap(fields...) + optmap() + optmap()
	}
	field := func(name, of string) string { return entry(name, "-", of) }
	mapOf := func(k, v string) string { return composite(base+"MapSerializerSnapshot", 1, "", k, v) }
	tuple := func(of ...string) string {
		return composite(runtime+"TupleSerializerSnapshot", 2, utf("T"), of...)
	}
	item := func(price string, more ...string) string {
		return list(pojo(append([]string{field("price", price)}, more...)...))
	}
	was := pojo(field("id", simple("Long")), field("items", item(simple("Int"))), field("old", simple("Int")), field("pair", tuple(simple("Int"), simple("Int"))), field("tags", mapOf(simple("String"), simple("Int"))))
	now := pojo(field("id", simple("Long")), field("items", item(simple("Long"), field("unit", simple("String")))), field("pair", tuple(simple("Int"), simple("Short"))), field("tags", mapOf(simple("Int"), simple("Int"))), field("x y", simple("Int")))
	c := types.Compare(snapshot(t, was), snapshot(t, now))
	var got []string
	for _, d := range c.Differences {
		got = append(got, d.Path+" | "+d.Why+" | "+d.Compatibility.String())
	}
	want := []string{
		"items[].price | IntSerializer → LongSerializer | incompatible",
		"items[].unit | added | compatible after migration",
		"old | removed | compatible after migration",
		"pair[1] | IntSerializer → ShortSerializer | incompatible",
		"tags.key | StringSerializer → IntSerializer | incompatible",
		`"x y" | added | compatible after migration`,
	}
	if !slices.Equal(got, want) || c.Compatibility != types.Incompatible {
		t.Errorf("%s\n%q", c.Why, got)
	}
	whole := types.Compare(snapshot(t, simple("Int")), snapshot(t, simple("Long"))).Differences
	if len(whole) != 1 || whole[0].Path != "" || whole[0].Why != "IntSerializer → LongSerializer" {
		t.Errorf("%+v", whole)
	}
}

// TestCompare: what real Flink says of these, which the conformance tests ask of
// every pair of many serializers, and what it has nothing to say of.
func TestCompare(t *testing.T) {
	list := func(s string) string { return composite(base+"ListSerializerSnapshot", 1, "", s) }
	tuple := func(of ...string) string {
		return composite(runtime+"TupleSerializerSnapshot", 2, utf("org.apache.flink.api.java.tuple.Tuple"+string(rune('0'+len(of)))), of...)
	}
	row := func(version int, outer string, of ...string) string {
		return composite(runtime+"RowSerializer$RowSerializerSnapshot", version, outer, of...)
	}
	either := func(l, r string) string {
		return composite(runtime+"JavaEitherSerializerSnapshot", 1, "", l, r)
	}
	array := func(class, of string) string {
		return composite(base+"GenericArraySerializerSnapshot", 1, utf(class), of)
	}
	pojo := func(name string, fields ...string) string {
		return utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf(name) + optmap(fields...) + optmap() + optmap()
	}
	field := func(name, of string) string { return entry(name, "-", of) }
	enum := func(names ...string) string {
		p := utf(base+"EnumSerializer$EnumSerializerSnapshot") + i32(3) + utf("E") + i32(len(names))
		for _, n := range names {
			p += utf(n)
		}
		return p
	}
	nullable := func(padding int, of string) string {
		return composite(runtime+"NullableSerializer$NullableSerializerSnapshot", 2, i32(padding), of)
	}
	kryo := func(of string, registered ...string) string {
		return utf(runtime+"kryo.KryoSerializerSnapshot") + i32(2) + utf(of) + optmap(registered...) + optmap() + optmap()
	}
	ttl := func(of string) string {
		return composite("org.apache.flink.runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot", 2, "", simple("Long"), of)
	}
	aware := func(mark, of string) string {
		return utf("org.apache.flink.runtime.state.ttl.TtlAwareSerializerSnapshot") + i32(1) + mark + of
	}
	avro := func(schema string) string {
		return utf("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot") + i32(2) + utf("R") + utf(schema)
	}
	a := pojo("P", field("id", simple("Int")), field("name", simple("String")))
	user := pojo("P", field("x", utf("com.example.Mine")+i32(1)))
	for _, x := range []struct {
		name, was, now string
		fit            types.Compatibility
		why            string
		unnoticed      bool
	}{
		{"the same", simple("Int"), simple("Int"), types.CompatibleAsIs, "", false},
		{"another", simple("Int"), simple("Long"), types.Incompatible, "IntSerializer → LongSerializer", false},
		{"in a list", list(simple("Int")), list(simple("Long")), types.Incompatible, "element: IntSerializer → LongSerializer", false},
		{"deep", tuple(simple("Int"), list(simple("Int"))), tuple(simple("Int"), list(simple("Long"))), types.Incompatible, "field 1: element: IntSerializer → LongSerializer", false},
		{"a longer tuple", tuple(simple("Int")), tuple(simple("Int"), simple("Int")), types.Incompatible, "Tuple1 → TupleSerializer of org.apache.flink.api.java.tuple.Tuple2", false},
		{"value of a map", composite(base+"MapSerializerSnapshot", 1, "", simple("Int"), simple("Int")), composite(base+"MapSerializerSnapshot", 1, "", simple("Int"), simple("Long")), types.Incompatible, "value: IntSerializer", false},
		{"another enum constant", enum("X", "Y"), enum("X", "Y", "Z"), types.CompatibleAsIs, "", false},
		{"another order of constants", enum("X", "Y"), enum("Y", "X"), types.CompatibleAsIs, "", false},
		{"a constant less", enum("X", "Y"), enum("X"), types.Incompatible, `constant "Y" of enum "E" was removed`, false},
		{"a field more", a, pojo("P", field("id", simple("Int")), field("more", simple("Long")), field("name", simple("String"))), types.CompatibleAfterMigration, `field "more" was added`, false},
		{"a field less", a, pojo("P", field("id", simple("Int"))), types.CompatibleAfterMigration, `field "name" was removed`, false},
		{"a field of another type", a, pojo("P", field("id", simple("Long")), field("name", simple("String"))), types.Incompatible, `field "id": IntSerializer → LongSerializer`, false},
		{"fields in another order", a, pojo("P", field("name", simple("String")), field("id", simple("Int"))), types.CompatibleAsIs, "", false},
		{"another class", a, pojo("Q", field("id", simple("Int")), field("name", simple("String"))), types.Incompatible, "PojoSerializer of P → PojoSerializer of Q", false},
		{"a list of a grown class", list(a), list(pojo("P", field("id", simple("Int")), field("name", simple("String")), field("z", simple("Int")))), types.CompatibleAfterMigration, `element: field "z" was added`, false},
		{"padding", nullable(0, simple("Int")), nullable(4, simple("Int")), types.Incompatible, "nulls of", false},
		{"rows that got a kind", row(2, "", simple("Int")), row(4, "\x01", simple("Int")), types.CompatibleAfterMigration, "rows with and without a kind", false},
		{"rows of one version that got a kind", row(4, "\x00", simple("Int")), row(4, "\x01", simple("Int")), types.CompatibleAfterMigration, "rows with and without a kind", false},
		{"a list for an array of what nobody can tell", array("R", avro("a")), list(avro("b")), types.Incompatible, "GenericArraySerializer", false},
		{"two unnoticed ones", tuple(array("I", simple("Int")), array("I", simple("Int"))), tuple(list(simple("Int")), list(simple("Int"))), types.Incompatible, "field 0: ", true},
		{"a longer row", row(4, "\x01", simple("Int")), row(4, "\x01", simple("Int"), simple("Int")), types.Incompatible, "of 1 → 2 fields", false},
		{"Kryo of another class", kryo("K"), kryo("L"), types.Incompatible, "KryoSerializer of K → KryoSerializer of L", false},
		{"Kryo with more registered", kryo("K"), kryo("K", entry("L", utf("L"), utf("L")+i32(0))), types.CompatibleAsIs, "", false},
		{"Kryo to a list", kryo("java.util.ArrayList"), list(simple("Int")), types.Incompatible, "KryoSerializer of java.util.ArrayList → ListSerializer", false},
		{"an either for a tuple", either(simple("Int"), simple("Long")), tuple(simple("Int"), simple("Long")), types.Incompatible, "JavaEitherSerializer → TupleSerializer", true},
		{"a list for an array", array("I", simple("Int")), list(simple("Int")), types.Incompatible, "", true},
		{"a list for an array of others", array("I", simple("Int")), list(simple("Long")), types.Incompatible, "", false},
		{"an array for a list", list(simple("Int")), array("I", simple("Int")), types.Incompatible, "", false},
		{"an unnoticed one next to one that is noticed", tuple(array("I", simple("Int")), simple("Int")), tuple(list(simple("Int")), simple("Long")), types.Incompatible, "field 1", false},
		{"time to live", simple("String"), ttl(simple("String")), types.Undecided, "time to live was switched on", false},
		{"no time to live any more", ttl(simple("String")), simple("String"), types.Undecided, "time to live was switched off", false},
		{"time to live and another type", simple("String"), ttl(simple("Int")), types.Incompatible, "StringSerializer → IntSerializer", false},
		{"knowing of time to live", simple("String"), aware("\x00", simple("String")), types.CompatibleAsIs, "", false},
		{"with time to live, as Flink 2 says it", aware("\x01", ttl(simple("String"))), ttl(simple("String")), types.CompatibleAsIs, "", false},
		{"another Avro schema", avro("a"), avro("b"), types.Undecided, "a different Avro schema", false},
		{"a user's, the same", user, user, types.CompatibleAsIs, "", false},
		{"a user's, another version", user, pojo("P", field("x", utf("com.example.Mine")+i32(2))), types.Undecided, `field "x": by com.example.Mine`, false},
		{"a user's for one of Flink's", user, pojo("P", field("x", simple("Int"))), types.Undecided, "and their code decides", false},
		{"two packages", utf("org.apache.flink.api.scala.typeutils.UnitSerializer$UnitSerializerSnapshot") + i32(3), utf("org.apache.flink.table.api.typeutils.UnitSerializer$UnitSerializerSnapshot") + i32(3), types.Incompatible, "org.apache.flink.api.scala.typeutils.UnitSerializer$UnitSerializerSnapshot → org.apache.flink.table", false},
	} {
		c := types.Compare(snapshot(t, x.was), snapshot(t, x.now))
		if c.Compatibility != x.fit || !strings.Contains(c.Why, x.why) || c.Unnoticed != x.unnoticed || (c.Why == "") != (c.Compatibility == types.CompatibleAsIs) {
			t.Errorf("%s: %+v, want %v with %q (unnoticed: %v)", x.name, c, x.fit, x.why, x.unnoticed)
		}
	}
	old, _, err := types.Skip([]byte(parameterless()))
	if err != nil {
		t.Fatal(err)
	}
	if c := types.Compare(old, snapshot(t, simple("Int"))); c.Compatibility != types.Undecided || c.Why != "its serializer snapshot is from before Flink 1.7" {
		t.Errorf("%+v", c)
	}
	if c := types.Compare(nil, snapshot(t, simple("Int"))); c.Compatibility != types.Undecided {
		t.Errorf("%+v", c)
	}
}
