package report

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/internal/ui"
)

// plainString writes a string with encoding/json.
func plainString(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	if err := ui.JSON(&b, s); err != nil {
		t.Fatal(err)
	}
	// encoding/json has short forms that hardly anyone else writes.
	return strings.TrimSuffix(strings.NewReplacer(`\b`, `\u0008`, `\f`, `\u000c`).Replace(b.String()), "\n")
}

// plainJSON writes a value in the simplest way, from docs/json.md.
func plainJSON(t testing.TB, v value.Value, f ui.Format) string {
	t.Helper()
	text := func(v value.Value) string { return plainJSON(t, v, f) }
	class := ""
	if v.Class() != "" {
		class = `"@class":` + plainString(t, v.Class()) + ","
		if v.Kind() != value.KindRecord {
			return "{" + class + `"@value":` + text(v.WithClass("")) + "}"
		}
	}
	var parts []string
	switch v.Kind() {
	case value.KindNull:
		return "null"
	case value.KindBool:
		return fmt.Sprint(v.Bool())
	case value.KindInt:
		return big.NewInt(v.Int()).String()
	case value.KindUint:
		return new(big.Int).SetUint64(v.Uint()).String()
	case value.KindFloat64:
		switch x := v.Float(); {
		case math.IsNaN(x):
			return `"NaN"`
		case math.IsInf(x, 1):
			return `"Infinity"`
		case math.IsInf(x, -1):
			return `"-Infinity"`
		case x == 0 || math.Abs(x) >= 1e-6 && math.Abs(x) < 1e21:
			return strconv.FormatFloat(x, 'f', -1, 64)
		default:
			return strconv.FormatFloat(x, 'e', -1, 64)
		}
	case value.KindString:
		return plainString(t, v.Text())
	case value.KindBytes:
		switch f {
		case ui.FormatHex:
			return `{"hex":"` + hex.EncodeToString([]byte(v.Text())) + `"}`
		case ui.FormatText:
			return `{"text":` + plainString(t, ui.Printable(v.Text())) + `}`
		}
		return `{"base64":"` + base64.StdEncoding.EncodeToString([]byte(v.Text())) + `"}`
	case value.KindBigInt:
		return v.BigInt().String()
	case value.KindList:
		for i := range v.Len() {
			parts = append(parts, text(v.At(i)))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case value.KindMap:
		for i := range v.Len() {
			parts = append(parts, "["+text(v.Key(i))+","+text(v.At(i))+"]")
		}
		return "[" + strings.Join(parts, ",") + "]"
	case value.KindRecord:
		for i := range v.Len() {
			name := v.Name(i)
			if strings.HasPrefix(name, "@") {
				name = "@" + name
			}
			parts = append(parts, plainString(t, name)+":"+text(v.At(i)))
		}
		if len(parts) == 0 {
			class = strings.TrimSuffix(class, ",")
		}
		return "{" + class + strings.Join(parts, ",") + "}"
	}
	t.Fatalf("a value of kind %v", v.Kind())
	return ""
}

// randomText returns a text of any characters, and of bytes that are not UTF-8.
func randomText(r *rand.Rand) string {
	runes := []string{"a", "B", "7", " ", "~", `"`, `\`, "/", "<", "\n", "\t", "\r", "\b", "\x00", "\x1f", "\x7f", "é", "ü", "\u009b", "\u202e", "€", "\ufffd", "✓", "𝄞", "\U000e0041", "\xff", "\xc3", "plain text, longer than a word"}
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString(runes[r.IntN(len(runes))])
	}
	return b.String()
}

// randomValue returns a value of any kind with a simple text.
func randomValue(r *rand.Rand, depth int) value.Value {
	numbers := []int64{0, 1, -1, 9, 10, 99, 100, -100, math.MaxInt32, math.MinInt64, math.MaxInt64, r.Int64(), -r.Int64N(1e9)}
	floats := []float64{0, math.Copysign(0, -1), 1, -0.5, 0.1, 1e-6, 9e-7, 1e20, 1e21, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(), r.NormFloat64()}
	kinds := 8
	if depth > 0 {
		kinds = 11
	}
	parts := func(n int) (all []value.Value) {
		for range n {
			all = append(all, randomValue(r, depth-1))
		}
		return all
	}
	var v value.Value
	switch r.IntN(kinds) {
	case 0:
		v = value.Null()
	case 1:
		v = value.Bool(r.IntN(2) == 0)
	case 2:
		v = value.Int(numbers[r.IntN(len(numbers))])
	case 3:
		v = value.Uint(math.MaxUint64 - uint64(r.IntN(5)))
	case 4:
		v = value.Float64(math.Float64bits(floats[r.IntN(len(floats))]))
		if math.IsNaN(v.Float()) {
			v = value.Float64(0x7ff8000000000000) // as Java writes it
		}
	case 5:
		v = value.String(randomText(r))
	case 6:
		v = value.BytesOf(randomText(r))
	case 7:
		v = value.BigInt([]byte(randomText(r) + "x"))
	case 8:
		v = value.List(parts(r.IntN(4)))
	case 9:
		v = value.Map(parts(2 * r.IntN(3)))
	case 10:
		fields := parts(r.IntN(4))
		shape := &value.Shape{}
		for range fields {
			shape.Names = append(shape.Names, []string{"id", "@class", "näme", "a\"b"}[r.IntN(4)])
		}
		v = value.Record(shape, fields)
	}
	if r.IntN(10) == 0 {
		v = v.WithClass([]string{"java.lang.Long", "Ü\n"}[r.IntN(2)])
	}
	return v
}

// TestLinesArePlainJSON: lines are what another, simple writer makes of the same
// elements, and encoding/json reads them.
func TestLinesArePlainJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		o := CatOptions{Output: ui.OutputJSONL, Format: []ui.Format{ui.FormatAuto, ui.FormatHex, ui.FormatText}[r.IntN(3)]}
		it := CatItem{State: &CatState{Operator: randomText(r), ID: "75", Name: randomText(r), Kind: "list"}, Subtask: r.Int32N(100) - 1, Index: r.Int64N(1e6), Stored: []byte(randomText(r)), Decoded: true,
			Value: randomValue(r, 3), Count: r.Int64N(3)}
		want := fmt.Sprintf(`{"operator":%s,"id":"75","state":%s,"kind":"list","subtask":%d,"index":%d,"size":%d`, plainString(t, it.State.Operator), plainString(t, it.State.Name), it.Subtask, it.Index, len(it.Stored))
		if it.Count > 0 {
			want += fmt.Sprintf(`,"count":%d`, it.Count)
		}
		if it.Entry = r.IntN(2) == 0; it.Entry {
			it.Key = randomValue(r, 1)
			want += `,"key":` + plainJSON(t, it.Key, o.Format)
		}
		want += `,"value":` + plainJSON(t, it.Value, o.Format) + "}\n"
		got := NewCatEncoder(o).Append([]byte("before"), &it)
		if string(got) != "before"+want {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
		if !json.Valid(got[len("before"):]) {
			t.Fatalf("not JSON: %s", got)
		}
	}
}

// benchmarkItems are elements as jobs have them.
func benchmarkItems() map[string]CatItem {
	st := &CatState{Operator: "orders", ID: "756e696f6e0000000000000000000000", Name: "state", Kind: "union"}
	item := func(stored int, v value.Value) CatItem {
		return CatItem{State: st, Subtask: 7, Index: 123456, Stored: make([]byte, stored), Decoded: true, Value: v}
	}
	name := value.String("5f0e9a3c-8d1b-4c58-9a59-1de0a8a7c3f4")
	pojo := &value.Shape{Names: []string{"amount", "city", "id", "name", "seen"}}
	eight := &value.Shape{Names: []string{"a", "b", "c", "d", "e", "f", "g", "h"}}
	var numbers []value.Value
	for i := range int64(8) {
		numbers = append(numbers, value.Int(i*123456789))
	}
	split := value.Record(&value.Shape{Names: []string{"version", "topic", "partition", "start", "stop"}}, []value.Value{value.Int(0), value.String("orders"), value.Int(17), value.Int(123456789), value.Null()}).WithClass("KafkaPartitionSplit")
	keyed := item(0, value.Null())
	keyed.Keyed = &CatKeyed{KeyGroup: 77, Size: 61, Key: CatPart{Has: true, Decoded: true, Value: name}, Value: CatPart{Has: true, Decoded: true, Value: value.Int(1 << 40)}}
	return map[string]CatItem{
		"bytes":              item(104, value.BytesOf(strings.Repeat("\x9e\x57\xfe\x41\x45\xa1\x7a\x31", 13))),
		"string":             item(37, name),
		"POJO":               item(66, value.Record(pojo, []value.Value{value.Float64(math.Float64bits(129.95)), value.String("Springfield"), value.Int(7_000_000_123), name, value.Bool(true)})),
		"POJO of primitives": item(65, value.Record(eight, numbers)),
		"tuple":              item(45, value.List([]value.Value{name, value.Int(7_000_000_123)})),
		"Kafka split":        item(40, split),
		"keyed entry":        keyed,
	}
}

// TestLinesAllocateNothing: an element of usual types costs no allocation.
func TestLinesAllocateNothing(t *testing.T) {
	if testenv.Raced {
		testenv.NotTested(t, "NOT TESTED with the race detector, which allocates: allocations of lines")
	}
	for name, it := range benchmarkItems() {
		e := NewCatEncoder(CatOptions{Output: ui.OutputJSONL})
		line := e.Append(nil, &it)
		if n := testing.AllocsPerRun(100, func() { line = e.Append(line[:0], &it) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkLines writes elements as JSON lines.
func BenchmarkLines(b *testing.B) {
	for name, it := range benchmarkItems() {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			e := NewCatEncoder(CatOptions{Output: ui.OutputJSONL})
			line := e.Append(nil, &it)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				line = e.Append(line[:0], &it)
			}
		})
	}
}
