package types_test

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// language has the formats that the tests need.
var language = types.Language{Formats: map[string]func(string) (value.Codec, error){
	"avro": func(name string) (value.Codec, error) { return types.NewAvroCodec([]byte(name)) },
}}

func parsed(t testing.TB, text string) value.Codec {
	t.Helper()
	s, err := language.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	c, err := types.NewCodec(s, types.Options{Kryo: 5})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// notPrinted are the kinds of the corpus whose types cannot be given: parts of them are
// not of the language.
var notPrinted = []string{
	"bitmap-serializer", "copyable-value-serializer", "value-serializer", "writeable-serializer", // user code, or bytes of another name
	"generic-avro-serializer", "specific-avro-serializer", // need a schema
	"kryo-custom-type-serializer-changed-registration-order", "kryo-type-serializer-changed-registration-order", "kryo-type-serializer-empty-config", "kryo-type-serializer-unrelated-config-after-restore",
	"scala-enum-serializer", "scala-try-serializer", "nfa-state-serializer", "node-id-serializer", "shared-buffer-edge-serializer", "stream-element-serializer", "two-phase-commit-sink-state-serializer",
}

// TestPrintedTypes gives the printed type of each serializer of the corpus back: the
// value that Flink wrote has the same JSON, and is written back to the same bytes.
func TestPrintedTypes(t *testing.T) {
	given, printed := 0, map[string]bool{}
	for _, dir := range corpus(t) {
		kind := version.ReplaceAllString(filepath.Base(dir), "")
		p, err := os.ReadFile(filepath.Join(dir, "serializer-snapshot"))
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := types.Skip(p)
		if err != nil {
			t.Fatal(err)
		}
		text := types.TypeOf(s, types.Options{}).String()
		was, ok := types.CodecOf(s)
		again, err := language.Parse(text)
		if slices.Contains(notPrinted, kind) {
			continue
		}
		if err != nil || !ok {
			t.Errorf("%s: %v, %v", kind, err, ok)
			continue
		}
		if got := types.TypeOf(again, types.Options{}).String(); got != text {
			t.Errorf("%s: %s is printed as %s", kind, text, got)
		}
		now, err := types.NewCodec(again, types.Options{})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "test-data"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := value.ReadAll(was, data)
		if err != nil {
			t.Fatal(err)
		}
		if want.Class() != "" { // of a subclass: its type is not part of the text
			continue
		}
		got, err := testenv.ReadBack(t, now, data)
		if err != nil || got.String() != want.String() {
			t.Errorf("%s as %s: %v, %v; want %v", kind, text, got, err, want)
			continue
		}
		given++
		printed[kind] = true
	}
	if t.Logf("%d values of %d kinds read by the printed type", given, len(printed)); len(printed) > 0 && len(printed) < 60 {
		t.Error("that is less than there are")
	}
}

// TestLanguage reads values by types. The bytes are from the specs of the formats.
func TestLanguage(t *testing.T) {
	for _, x := range []struct{ typ, bytes, json string }{
		{"tuple2<string,long>", "02610000000000000007", `["a",7]`},
		{"Tuple2< String , LONG >", "02610000000000000007", `["a",7]`},
		{"pojo{name:string,age:int}", "020002610000000007", `{"name":"a","age":7}`},
		{`pojo com.acme.P{"na me": string}`, "02000261", `{"na me":"a"}`},
		{"list<long with TTL>", "0000000100000000000000050000000000000007", "[[5,7]]"},
		{"long[]", "000000010000000000000007", "[7]"},
		{"nullable(8)<long>", "010000000000000000", "null"},
		{"enum{RED, GREEN}", "00000001", `"GREEN"`},
		{"row(0)<int>", "80", "[null]"},
		{"row<int>", "c000000007", `{"kind":"DELETE","fields":[7]}`},
		{"decimal(10,2)", "00000000000004d2", "12.34"},
		{"timestamp(3)", "0000000000000001", `"1970-01-01T00:00:00.001"`},
		{"timestamp", "000000000000000100 0f4240", `"1970-01-01T00:00:00.001Z"`},
		{"timer<string,TimeWindow>", "8000000000003039026100000000000000010000000000000002", `{"timestamp":12345,"key":"a","namespace":{"start":1,"end":2}}`},
		{"rowdata{id:long,name:string}", "00000018" + "0000000000000000" + "0700000000000000" + "6100000000000081", `{"id":7,"name":"a"}`},
		{"rowdata<list<int>>", "00000020" + "0000000000000000" + "1000000010000000" + "01000000" + "00000000" + "07000000" + "00000000", "[[7]]"},
		{"utf8", "c3a9", `"é"`},
		{"raw", "00ff", `{"base64":"AP8="}`},
		{"json", "7b2261223a5b312c322e35302c6e756c6c5d7d", `{"a":[1,2.50,null]}`},
		{"bytes<utf8>", "00000002c3a9", `"é"`},
		{"tuple2<byte,utf8>", "07c3a9", `[7,"é"]`},
		{`avro:"\"long\""`, "0e", "7"},
	} {
		p, err := hex.DecodeString(strings.ReplaceAll(x.bytes, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		v, err := testenv.ReadBack(t, parsed(t, x.typ), p)
		if got := string(v.AppendJSON(nil, nil, nil)); err != nil || got != x.json {
			t.Errorf("%s: %s, %v; want %s", x.typ, got, err, x.json)
		}
	}
}

// TestDocumentedTypes runs the examples in docs/type-language.md, and finds each word of
// its table.
func TestDocumentedTypes(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(testenv.ModuleRoot(t), "docs", "type-language.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.SplitSeq(strings.ReplaceAll(string(doc), "\r\n", "\n"), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 || !strings.HasPrefix(cells[1], "`") {
			continue
		}
		rows++
		typ, want := strings.Trim(cells[0], "`"), strings.Trim(cells[2], "`")
		p, err := hex.DecodeString(strings.Trim(cells[1], "`"))
		if err != nil {
			t.Fatal(err)
		}
		v, err := testenv.ReadBack(t, parsed(t, typ), p)
		if got := string(v.AppendJSON(nil, nil, nil)); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", typ, got, err, want)
		}
	}
	if rows < 9 {
		t.Errorf("%d examples", rows)
	}
	for _, word := range []string{"boolean", "byte", "char", "void", "BigInteger", "Instant", "LocalDateTime", "timestamp", "stringdata", "TimeWindow", "string[]", "arraydata<multiset<long>>", "mapdata<string,timestamp_ltz(3)>", "either<int,long>", "option<int>", "timer<long,void>", "kryo java.util.ArrayList", "longvalue", "deweynumber", "raw"} {
		parsed(t, word)
	}
}

// TestLanguageRefuses: an error says where a type is wrong.
func TestLanguageRefuses(t *testing.T) {
	for _, x := range []struct{ typ, want string }{
		{"", "at its end: expected a type"},
		{"lung", `at "lung": unknown type "lung"`},
		{"list<>", `at ">": expected a type`},
		{"list<long", `at its end: expected '>' after a type`},
		{"list<long>>", `at ">": unexpected text after the type`},
		{"map<long>", "map has 1 types in <>, expected 2"},
		{"list", "list has 0 types in <>, expected 1"},
		{"tuple3<long,long>", "tuple3 has 2 types in <>, expected 3"},
		{"pojo{a:long,a:long}", "a name occurs twice"},
		{"pojo{a}", `at "}": expected ':' after the name of a field`},
		{"enum{A,", "at its end: expected"},
		{"decimal(39,0)", "39 is not within 1 to 38"},
		{"decimal(10)", "expected decimal(PRECISION, SCALE)"},
		{"decimal(10,11)", "11 is not within 0 to 10"},
		{"timestamp(10)", "10 is not within 0 to 9"},
		{"long(3)", "this type has no parameters"},
		{"map<long,long>[]", "only primitives and strings have arrays"},
		{"rowdata<pojo>", `unknown SQL type "pojo"; known: boolean, byte`},
		{"rowdata", "expected one or more types"},
		{`"`, "a name in quotes that is not valid"},
		{"avro:x", "not a valid Avro schema"},
		{strings.Repeat("list<", 40) + "long", "nested more than"},
		{"java", `expected "java object"`},
		{"com.acme.Order", `unknown type "com.acme.Order"`},
	} {
		_, err := language.Parse(x.typ)
		if err == nil || !strings.Contains(err.Error(), x.want) || !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%s: %v, want %s", x.typ, err, x.want)
		}
	}
}

// TestWrongType: bytes of another type are an error with an offset, or all of them are
// the value.
func TestWrongType(t *testing.T) {
	for _, x := range []struct {
		typ, bytes string
		offset     int64
	}{
		{"int", "0000000000000007", 4},
		{"long", "00000007", 0},
		{"utf8", "61ff", 1},
		{"bytes<utf8>", "0000000261ff", 5},
		{"json", "7b", 0},
		{"boolean", "07", 0},
		{"list<int>", "7fffffff", 0},
	} {
		p, err := hex.DecodeString(x.bytes)
		if err != nil {
			t.Fatal(err)
		}
		_, err = value.ReadAll(parsed(t, x.typ), p)
		var e *format.Error
		if !errors.As(err, &e) || e.Offset != x.offset {
			t.Errorf("%s as %s: %v, want an error at %d", x.bytes, x.typ, err, x.offset)
		}
	}
}

// FuzzLanguage: a text is a type that is printed as one with the same meaning, or an
// error.
func FuzzLanguage(f *testing.F) {
	for _, s := range []string{"long", "list<pojo P{a:int}>", "map<string,decimal(10,2)[]>", "rowdata{a:list<int>,b:row<int>}", "enum X{A,\"b c\"}", "tuple2<int,long with TTL>", "bytes<json>", "java object", `avro:"\"long\""`, "nullable(4)<int>", "row(0)<int>"} {
		f.Add(s, []byte("\x00\x00\x00\x01\x00\x00\x00\x00"))
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		s, err := language.Parse(text)
		if err != nil {
			if !errors.Is(err, format.ErrUnsupported) {
				t.Errorf("%q: an error of no kind: %v", text, err)
			}
			return
		}
		c, err := types.NewCodec(s, types.Options{Kryo: 5})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		v, err := value.ReadAll(c, data)
		printed := types.TypeOf(s, types.Options{Kryo: 5}).String()
		again, perr := language.Parse(printed)
		if perr != nil {
			t.Fatalf("%q is printed as %q: %v", text, printed, perr)
		}
		c2, perr := types.NewCodec(again, types.Options{Kryo: 5})
		if perr != nil {
			t.Fatal(perr)
		}
		v2, err2 := value.ReadAll(c2, data)
		if (err == nil) != (err2 == nil) || v.String() != v2.String() {
			t.Errorf("%q is printed as %q, which reads %v, %v instead of %v, %v", text, printed, v2, err2, v, err)
		}
	})
}
