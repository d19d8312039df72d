package types_test

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// noted is a mask that replaces nothing and notes what it is asked for.
type noted struct{ all []string }

func (n *noted) Leaf(v value.Value) (value.Value, error) {
	n.all = append(n.all, v.WithClass("").String())
	return v, nil
}

func (n *noted) Name(v value.Value) (value.Value, error) {
	n.all = append(n.all, "name "+v.Text())
	return v, nil
}

func (n *noted) Choice(i, of int) int {
	n.all = append(n.all, "choice")
	return (i + 1) % of
}

const (
	ttlClass   = "org.apache.flink.runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot"
	timerClass = "org.apache.flink.streaming.api.operators.TimerSerializerSnapshot"
	windows    = "org.apache.flink.streaming.api.windowing.windows."
)

// TestMask: which parts of a value a mask replaces, by hand.
func TestMask(t *testing.T) {
	window := utf(windows+"TimeWindow$Serializer$TimeWindowSerializerSnapshot") + i32(3)
	count := utf(windows+"CountWindow$Serializer$CountWindowSerializerSnapshot") + i32(3)
	enum := utf(base+"EnumSerializer$EnumSerializerSnapshot") + i32(3) + utf("E") + i32(2) + utf("RED") + utf("GREEN")
	tuple := func(nested ...string) string {
		return composite(runtime+"TupleSerializerSnapshot", 2, utf("org.apache.flink.api.java.tuple.Tuple2"), nested...)
	}
	text := func(s string) string { return string(rune(len(s)+1)) + s }
	for _, x := range []struct {
		name, class, bytes string
		want               string // what is replaced
		json               string // the value after it
	}{
		{"tuple", tuple(simple("Int"), simple("String")), i32(7) + text("a"), "7 a", `[7,"a"]`},
		{"list", list(simple("Long")), i32(2) + i64(7) + i64(8), "7 8", `[7,8]`},
		{"map", composite(base+"MapSerializerSnapshot", 1, "", simple("String"), simple("Int")), i32(1) + text("k") + "\x00" + i32(7), "k 7", `[["k",7]]`},
		{"time to live", composite(ttlClass, 2, "", simple("Long"), simple("String")), i64(1234) + text("v"), "v", `[1234,"v"]`},
		{"list with time to live", list(composite(ttlClass, 2, "", simple("Long"), simple("Int"))), i32(1) + i64(1234) + i32(7), "7", `[[1234,7]]`},
		{"time window", window, i64(1000) + i64(2000), "", `{"start":1000,"end":2000}`},
		{"count window", count, i64(5), "", `5`},
		{"timer", composite(timerClass, 2, "", simple("String"), window), "\x80\x00\x00\x00\x00\x00\x00\x09" + text("k") + i64(1) + i64(2), "k", `{"timestamp":9,"key":"k","namespace":{"start":1,"end":2}}`},
		{"enum", enum, i32(0), "choice", `"GREEN"`},
		{"list of enums", list(enum), i32(2) + i32(1) + i32(0), "choice choice", `["RED","GREEN"]`},
		{"scala enumeration", utf("org.apache.flink.api.scala.typeutils.ScalaEnumSerializerSnapshot") + i32(3) + utf("E") + i32(2) + utf("A") + i32(7) + utf("B") + i32(8), i32(8), "choice", `"A"`},
		{"deleted SQL row", rowData(sqlType("IntType")), blob("\x03\x00\x00\x00\x00\x00\x00\x00" + le64(5)), "5", `{"kind":"DELETE","fields":[5]}`},
		{"null", simple("String"), "\x00", "", `null`},
		{"bytes", simple("BytePrimitiveArray"), i32(2) + "ab", "ab", `{"base64":"YWI="}`},
	} {
		c, err := types.NewCodec(snapshot(t, x.class), types.Options{})
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		v, err := value.ReadAll(c, []byte(x.bytes))
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		n := &noted{}
		out, err := value.Masked(c, v, n)
		if got := strings.Join(n.all, " "); err != nil || got != x.want || string(out.AppendJSON(nil, nil, nil)) != x.json {
			t.Errorf("%s: %q replaced, want %q: %s, want %s, %v", x.name, got, x.want, out.AppendJSON(nil, nil, nil), x.json, err)
		}
		if p, err := c.Append(nil, out); err != nil || len(p) != len(x.bytes) {
			t.Errorf("%s: % x, %v", x.name, p, err)
		}
	}
}

// TestMaskRefuses: bytes with a structure that is not decoded cannot be replaced.
func TestMaskRefuses(t *testing.T) {
	raw := sqlType("RawType", javaField{name: "serializer", object: javaObject("com.acme.Mine")})
	for name, x := range map[string][2]string{
		"bitmap":            {simple("Bitmap"), i32(2) + "ab"},
		"variant":           {simple("Variant"), i32(1) + i32(1) + "ab"},
		"row without types": {tableClass("BinaryRowDataSerializer$BinaryRowDataSerializerSnapshot", i32(1)), i32(2) + "ab"},
		"Java object":       {simple("Java"), javaHead + javaObject("com.acme.Mine")},
		"RAW":               {rowData(raw), blob(le64(0) + "ab\x00\x00\x00\x00\x00\x82")},
	} {
		c, err := types.NewCodec(snapshot(t, x[0]), types.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		v, err := value.ReadAll(c, []byte(x[1]))
		if err != nil {
			v, err = value.ReadAll(c, []byte(blob(le64(0)+le32(2)+le32(16)+"ab\x00\x00\x00\x00\x00\x00")))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if out, err := value.Masked(c, v, &noted{}); !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
}

// refusesMask checks that a value cannot be replaced.
func refusesMask(t *testing.T, c value.Codec, p string) {
	t.Helper()
	v, err := value.ReadAll(c, []byte(p))
	if err != nil {
		t.Error(err)
		return
	}
	if out, err := value.Masked(c, v, &noted{}); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("%v, %v", out, err)
	}
}

// TestMaskPickle: what a pickle means to the program is not known.
func TestMaskPickle(t *testing.T) { refusesMask(t, parsed(t, "pickle"), "\x80\x04K\x07.") }

// TestMaskKryo: of the objects that Flink wrote, references to other objects stay, and all
// else is replaced.
func TestMaskKryo(t *testing.T) {
	for _, x := range []struct {
		test kryoTest
		want string
	}{
		{kryoTest{2, "java.util.ArrayList", "570103030174776963e5030303016f746865f2", ""}, "twice other"},
		{kryoTest{5, "java.util.TreeMap", "570102000301826b020a", ""}, "k 5"},
		{kryoTest{2, "java.lang.Object", "01005b4c6a6176612e6c616e672e537472696e67bb010301826100", ""}, "a"},
		{kryoTest{5, "java.util.UUID", "5401efcdab8967452301efcdab8967452381", ""}, "01234567-89ab-cdef-8123-456789abcdef"},
		{kryoTest{2, "java.lang.Object", "4b0102030301826100", ""}, "a"},
		{kryoTest{2, "java.lang.Object", "01006a6176612e74696d652e4f66667365744461746554696de5010101001d0002d01f010102080301b054", ""}, "2024-02-29T01:02:03.000000004"},
		{kryoTest{5, "java.lang.Object", "01006a6176612e74696d652e5a6f6e65644461746554696de501e80f021d010203044575726f70652f4265726c69ee", ""}, "2024-02-29T01:02:03.000000004"},
		{kryoTest{5, "java.lang.Object", "01006a6176612e6e65742e5552cc01687474703a2f2f782ff9", ""}, "name http://x/y"},
		{kryoTest{5, "java.lang.Object", "01006a6176612e74696d652e5a6f6e65526567696fee014575726f70652f4265726c69ee", ""}, ""},
		{kryoTest{2, "java.lang.Object", "110103018278", ""}, "x"},
		{kryoTest{2, "java.lang.Object", "01006a6176612e7574696c2e547265654d61f00101016a6176612e7574696c2e436f6d70617261746f7273244e756c6c436f6d70617261746ff2010101026a6176612e7574696c2e436f6d70617261746f7273244e61747572616c4f72646572436f6d70617261746ff2010101030182610202", ""}, "a 1"},
		{kryoTest{2, "java.util.Comparators$NaturalOrderComparator", "570101", ""}, "choice"},
	} {
		p, err := hex.DecodeString(x.test.bytes)
		if err != nil {
			t.Fatal(err)
		}
		c := kryoCodecOf(t, x.test)
		v, err := value.ReadAll(c, p)
		if err != nil {
			t.Fatal(err)
		}
		n := &noted{}
		out, err := value.Masked(c, v, n)
		if got := strings.Join(n.all, " "); err != nil || got != x.want {
			t.Errorf("%s: %q replaced, want %q, %v", x.test.class, got, x.want, err)
		}
		if again, err := c.Append(nil, out); err != nil || !slices.Equal(again, p) {
			t.Errorf("%s: % x, %v", x.test.class, again, err)
		}
	}
	year, _ := hex.DecodeString("01006a6176612e74696d652e596561f201d01f")
	refusesMask(t, kryoCodecOf(t, kryoTest{version: 2, class: "java.lang.Object"}), string(year))
	refusesMask(t, kryoCodecOf(t, kryoTest{version: 2, class: "java.util.RegularEnumSet"}), "\x57\x01\x01\x00com.acme.Colo\xf2\x01\x02")
	p, _ := hex.DecodeString("57018300")
	c := kryoCodecOf(t, kryoTest{version: 5, class: "java.util.ArrayList"})
	if v, err := value.ReadAll(c, p); err != nil {
		t.Error(err)
	} else if out, err := value.Masked(c, v, &noted{}); err != nil || out.String() != "[null,null]" {
		t.Error(out, err)
	}
}
