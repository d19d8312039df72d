package types_test

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// jsonTypes are the types of the examples in docs/json.md.
func jsonTypes() map[string]string {
	pojo, family := classes()
	sql := func(name, body string) string {
		return utf("org.apache.flink.table.runtime.typeutils."+name) + body
	}
	option := func(of string) string {
		return composite("org.apache.flink.api.scala.typeutils.ScalaOptionSerializerSnapshot", 2, "", of)
	}
	return map[string]string{
		"long": simple("Long"), "byte": simple("Byte"), "double": simple("Double"), "float": simple("Float"), "bigint": simple("BigInt"), "bigdec": simple("BigDec"),
		"decimal(30,2)": sql("DecimalDataSerializer$DecimalSerializerSnapshot", i32(3)+i32(30)+i32(2)),
		"string":        simple("String"), "char": simple("Char"), "bytes": utf(base+"array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot") + i32(3),
		"instant": simple("Instant"), "date": simple("Date"), "localdate": simple("LocalDate"), "localtime": simple("LocalTime"), "localdatetime": simple("LocalDateTime"),
		"timestamp(9)":        sql("TimestampDataSerializer$TimestampDataSerializerSnapshot", i32(1)+i32(9)),
		"list<string>":        list(simple("String")),
		"map<int,string>":     composite(base+"MapSerializerSnapshot", 1, "", simple("Int"), simple("String")),
		"tuple<int,string>":   composite(runtime+"TupleSerializerSnapshot", 2, utf("T2"), simple("Int"), simple("String")),
		"either<int,string>":  composite(runtime+"JavaEitherSerializerSnapshot", 1, "", simple("Int"), simple("String")),
		"row<int,int>":        composite(runtime+"RowSerializer$RowSerializerSnapshot", 4, "\x01", simple("Int"), simple("Int")),
		"enum":                utf(base+"EnumSerializer$EnumSerializerSnapshot") + i32(3) + utf("E") + i32(2) + utf("RED") + utf("GREEN"),
		"timer<string>":       composite("org.apache.flink.streaming.api.operators.TimerSerializerSnapshot", 2, "", simple("String"), simple("Void")),
		"option<option<int>>": option(option(simple("Int"))),
		"java":                utf("org.apache.flink.runtime.state.JavaSerializer$JavaSerializerSnapshot") + i32(3),
		"pojo":                pojo, "family": family,
	}
}

// TestDocumentedJSON runs the examples in docs/json.md.
func TestDocumentedJSON(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(testenv.ModuleRoot(t), "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, done := jsonTypes(), map[string]bool{}
	rows := 0
	for line := range strings.SplitSeq(strings.ReplaceAll(string(doc), "\r\n", "\n"), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(cells[1], "`") {
			continue
		}
		name := strings.TrimPrefix(cells[0], "| ")
		want := strings.Trim(strings.TrimSuffix(cells[2], " |"), "`")
		s, ok := all[name]
		p, err := hex.DecodeString(strings.Trim(cells[1], "`"))
		if err != nil || !ok {
			t.Errorf("%s: type known: %v, %v", line, ok, err)
			continue
		}
		rows++
		done[name] = true
		c, ok := types.CodecOf(snapshot(t, s))
		if !ok {
			t.Errorf("%s is not decoded", name)
			continue
		}
		v, err := testenv.ReadBack(t, c, p)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := string(v.AppendJSON(nil, nil, nil)); got != want {
			t.Errorf("%s: %s", line, got)
		}
		back, err := value.FromJSON(c, []byte(want))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if q, err := c.Append(nil, back); err != nil || string(q) != string(p) {
			t.Errorf("%s: written as %x, %v", line, q, err)
		}
	}
	for name := range all {
		if !done[name] {
			t.Errorf("docs/json.md has no example of %s", name)
		}
	}
	if t.Logf("%d examples", rows); rows < 39 {
		t.Error("that is less than there are")
	}
}

// TestFromJSONRefuses: an error names the part that is wrong.
func TestFromJSONRefuses(t *testing.T) {
	all := jsonTypes()
	deep := list(all["pojo"])
	all["list<pojo>"] = deep
	for _, x := range []struct{ typ, in, want string }{
		{"long", `"1"`, `expected an integer, found the string "1"`},
		{"long", `1.5`, `expected an integer, found 1.5`},
		{"long", `9223372036854775808`, `9223372036854775808 does not fit into 64 bits`},
		{"byte", `128`, `128 does not fit into 8 bits`},
		{"double", `1e999`, `1e999 is out of range`},
		{"double", `"nan"`, `expected a number, "NaN", "Infinity" or "-Infinity", found the string "nan"`},
		{"double", `"NaN(0000000000000001)"`, `expected a number, "NaN", "Infinity" or "-Infinity"`},
		{"bigint", `1.5`, `expected an integer, found 1.5`},
		{"bigdec", `1e99999999999`, `1e99999999999 is out of range`},
		{"decimal(30,2)", `1.234`, `expected a number with 2 digits after the point, found 1.234`},
		{"decimal(30,2)", `1e29`, `1e29 has more than 30 digits`},
		{"string", `7`, `expected a string, found 7`},
		{"char", `"ab"`, `expected one character of 16 bits, found the string "ab"`},
		{"bytes", `"AP8="`, `expected bytes, {"base64": "…"} or {"hex": "…"}, found the string "AP8="`},
		{"bytes", `{"base64":"*"}`, `bytes: illegal base64`},
		{"bytes", `{"raw":"x"}`, `bytes: unknown encoding "raw"`},
		{"instant", `"2024-02-30T00:00:00Z"`, `expected an instant such as "2024-02-29T23:59:58.123Z", found the string "2024-02-30T00:00:00Z"`},
		{"instant", `"2024-02-29T00:00:00"`, `expected an instant`},
		{"localdate", `"2023-02-29"`, `expected a date such as "2024-02-29"`},
		{"localtime", `"24:00:00"`, `expected a time of day such as "23:59:58.123"`},
		{"localdatetime", `"2024-02-29"`, `expected a date with time`},
		{"list<string>", `{"a":1}`, `expected an array, found an object`},
		{"list<string>", `["a",7]`, `[1]: expected a string, found 7`},
		{"map<int,string>", `[[1,"a"],[2]]`, `[1]: expected [key, value], found an array`},
		{"map<int,string>", `[["1","a"]]`, `[0][0]: expected an integer, found the string "1"`},
		{"map<int,string>", `{"1":"a"}`, `.1: expected an integer, found the string "1"`},
		{"tuple<int,string>", `[1]`, `expected 2 elements, found 1`},
		{"pojo", `{"x":1}`, `field "s" is missing`},
		{"pojo", `{"x":1,"s":"","y":2}`, `unknown field "y": expected x, s`},
		{"pojo", `{"x":1,"s":"","x":2}`, `field "x" is given twice`},
		{"pojo", `[1,""]`, `expected an object with the fields x, s, found an array`},
		{"pojo", `{"@class":"N","x":1}`, `"N" is not a known subclass of "P"`},
		{"list<pojo>", `[{"x":1,"s":"a"},{"x":1,"s":false}]`, `[1].s: expected a string, found false`},
		{"family", `{"@class":"R1","a":"b"}`, `.a: expected an integer, found the string "b"`},
		{"either<int,string>", `{"middle":1}`, `expected {"left": …} or {"right": …}, found an object`},
		{"either<int,string>", `{"left":"a"}`, `.left: expected an integer`},
		{"row<int,int>", `{"kind":"GONE","fields":[1,2]}`, `.kind: expected one of the constants INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE, found "GONE"`},
		{"row<int,int>", `{"kind":"DELETE","fields":[1,"x"]}`, `.fields[1]: expected an integer`},
		{"enum", `"BLUE"`, `expected one of the constants RED, GREEN, found "BLUE"`},
		{"java", `{"@class":"C","@value":{"base64":"AAAA"}}`, `expected the Java object stream of a C`},
		{"java", `{"@class":"java.lang.Long","@value":"x"}`, `expected an integer, found the string "x"`},
		{"long", `1 2`, `not JSON`},
		{"long", ``, `not JSON`},
	} {
		c, ok := types.CodecOf(snapshot(t, all[x.typ]))
		if !ok {
			t.Fatalf("%s is not decoded", x.typ)
		}
		v, err := value.FromJSON(c, []byte(x.in))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s %s: %v, %v; want %s", x.typ, x.in, v, err, x.want)
			continue
		}
		if strings.HasPrefix(x.want, "not JSON") {
			continue
		}
		var j *value.JSONError
		if !errors.As(err, &j) || !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%s %s: an error of no kind: %v", x.typ, x.in, err)
		}
	}
	if _, err := value.FromJSON(nil, []byte("1")); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("a codec that reads no JSON: %v", err)
	}
}
