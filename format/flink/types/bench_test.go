package types_test

import (
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// benchmarks are elements as jobs have them.
func benchmarks() map[string]valueTest {
	pojo := func(fields ...string) string {
		return utf(runtime+"PojoSerializerSnapshot") + i32(2) + utf("P") + optmap(fields...) + optmap() + optmap()
	}
	field := func(name, of string) string { return entry(name, "-", of) }
	text := func(n int) string { return string(byte(n+1)) + strings.Repeat("x", n) }
	tuple := func(of ...string) string {
		return composite(runtime+"TupleSerializerSnapshot", 2, utf("T"), of...)
	}
	primitives := func(n int) (types []string, bytes, flagged string) {
		for i := range n {
			types = append(types, simple([]string{"Long", "Double", "Int", "Long"}[i%4]))
			v := []string{i64(int64(i)), i64(int64(i) << 50), i32(i), i64(1 << 40)}[i%4]
			bytes, flagged = bytes+v, flagged+"\x00"+v
		}
		return types, bytes, flagged
	}
	eight, bytes, flagged := primitives(8)
	var named []string
	for i, t := range eight {
		named = append(named, field(string(rune('a'+i)), t))
	}
	return map[string]valueTest{
		"POJO of primitives":  {snapshot: pojo(named...), in: "\x02" + flagged},
		"tuple of primitives": {snapshot: tuple(eight...), in: bytes},
		"POJO": {snapshot: pojo(field("amount", simple("Double")), field("city", simple("String")), field("id", simple("Long")), field("name", simple("String")), field("seen", simple("Boolean"))),
			in: "\x02\x00" + i64(1<<60) + "\x00" + text(12) + "\x00" + i64(7) + "\x00" + text(36) + "\x00\x01"},
		"tuple of string and long": {snapshot: tuple(simple("String"), simple("Long")), in: text(36) + i64(7)},
		"SQL row":                  {snapshot: rowData(sqlType("BigIntType"), sqlType("VarCharType"), sqlType("DoubleType"), sqlType("VarCharType")), in: blob(le64(0) + le64(7) + le32(36) + le32(40) + le64(1<<60) + "abc\x00\x00\x00\x00\x83" + strings.Repeat("x", 36) + "\x00\x00\x00\x00")},
	}
}

// BenchmarkCodec reads, skips and writes elements.
func BenchmarkCodec(b *testing.B) {
	for name, x := range benchmarks() {
		c, ok := types.CodecOf(snapshot(b, x.snapshot))
		if !ok {
			b.Fatalf("%s is not decoded", name)
		}
		p := []byte(x.in)
		v, n, err := c.Read(p)
		if err != nil || n != len(p) {
			b.Fatalf("%s: %d of %d bytes, %v", name, n, len(p), err)
		}
		run := func(what string, f func()) {
			b.Run(strings.ReplaceAll(name, " ", "-")+"/"+what, func(b *testing.B) {
				b.SetBytes(int64(len(p)))
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		run("read", func() { _, _, _ = c.Read(p) })
		var a value.Arena
		var in value.Value
		run("read-in", func() {
			a.Reset()
			_, _ = c.(value.ArenaCodec).ReadIn(&a, p, &in)
		})
		run("skip", func() { _, _ = c.Skip(p) })
		var q []byte
		run("append", func() { q, _ = c.Append(q[:0], v) })
		run("json", func() { q = v.AppendJSON(q[:0], nil, nil) })
	}
}

// TestAllocations: reading an element allocates less than once per primitive, in
// blocks of many elements.
func TestAllocations(t *testing.T) {
	if testenv.Raced {
		testenv.NotTested(t, "NOT TESTED with the race detector, which allocates: allocations of codecs")
	}
	for name, x := range benchmarks() {
		c, _ := types.CodecOf(snapshot(t, x.snapshot))
		p := []byte(x.in)
		if n := testing.AllocsPerRun(1000, func() { _, _, _ = c.Read(p) }); n > 0 { // the average is rounded down
			t.Errorf("%s: %v allocations of a read", name, n)
		}
		if n := testing.AllocsPerRun(1000, func() { _, _ = c.Skip(p) }); n > 0 {
			t.Errorf("%s: %v allocations of a skip", name, n)
		}
	}
}
