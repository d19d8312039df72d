package scramble

import (
	"crypto/aes"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format/value"
)

var key = New([]byte("a secret of the test"))

func leaf(t *testing.T, m Mask, v value.Value) value.Value {
	t.Helper()
	out, err := m.Leaf(v)
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	if out.Kind() != v.Kind() {
		t.Fatalf("%v became %v", v.Kind(), out.Kind())
	}
	return out
}

// TestPermutations: the values of one class replace each other, each exactly once.
func TestPermutations(t *testing.T) {
	for _, x := range []struct {
		name  string
		class []value.Value
	}{
		{"integers of 8 bits", integers(128, 255)}, {"negative ones", integers(-256, -129)}, {"of 10 bits", integers(512, 1023)}, {"of 1 bit", integers(1, 1)},
		{"doubles", floats(64, 100)}, {"floats of one exponent", mantissas()},
		{"strings of two digits", texts(" ", "~")}, {"characters of two bytes", texts("\u00a0", "\u07ff")},
		{"milliseconds", instants(1e6)}, {"bytes", singleBytes()}, {"pairs of bytes", pairs()}, {"hours", hours()}, {"booleans", []value.Value{value.Bool(false), value.Bool(true)}},
		{"big integers", bigs(256, 511)}, {"decimals of 3 digits", decimals(128, 255)},
	} {
		t.Run(x.name, func(t *testing.T) {
			want, got := map[string]bool{}, map[string]bool{}
			same := 0
			for _, v := range x.class {
				out := leaf(t, Mask{Key: key}, v)
				want[v.String()], got[out.String()] = true, true
				if v.String() == out.String() {
					same++
				}
			}
			if len(got) != len(x.class) {
				t.Errorf("%d values became %d", len(x.class), len(got))
			}
			if !strings.HasPrefix(x.name, "float") && !strings.HasPrefix(x.name, "doubles") {
				for s := range got {
					if !want[s] {
						t.Errorf("%s is not in the class", s)
					}
				}
			}
			if len(x.class) > 20 && same > 10 {
				t.Errorf("%d of %d values stay", same, len(x.class))
			}
		})
	}
}

func integers(from, to int64) (all []value.Value) {
	for n := from; n <= to; n++ {
		all = append(all, value.Int(n))
	}
	return all
}

func floats(from, to int) (all []value.Value) {
	for n := from; n < to; n++ {
		all = append(all, value.Float64(math.Float64bits(float64(n))), value.Float64(math.Float64bits(float64(n)+0.25)))
	}
	return all
}

func mantissas() (all []value.Value) {
	for n := range uint32(3000) {
		all = append(all, value.Float32(0x42280000+n))
	}
	return all
}

func texts(first, last string) (all []value.Value) {
	a, _ := utf8.DecodeRuneInString(first)
	b, _ := utf8.DecodeRuneInString(last)
	for r := a; r <= b; r++ {
		all = append(all, value.String(string(r)))
	}
	return all
}

func instants(unit int32) (all []value.Value) {
	for n := int32(1); n < 1000; n++ {
		all = append(all, value.Instant(0, n*unit))
	}
	return all
}

func singleBytes() (all []value.Value) {
	for b := range 256 {
		all = append(all, value.Bytes([]byte{byte(b)}))
	}
	return all
}

func pairs() (all []value.Value) {
	for n := range 1 << 16 {
		all = append(all, value.Bytes([]byte{byte(n >> 8), byte(n)}))
	}
	return all
}

func hours() (all []value.Value) {
	for s := 1; s < 24*60*60; s++ {
		all = append(all, value.TimeOfDay(uint8(s/3600), uint8(s/60%60), uint8(s%60), 0))
	}
	return all
}

func bigs(from, to int64) (all []value.Value) {
	for n := from; n <= to; n++ {
		all = append(all, value.BigInt([]byte{0, byte(n >> 8), byte(n)})) // more bytes than needed
	}
	return all
}

func decimals(from, to int64) (all []value.Value) {
	for n := from; n <= to; n++ {
		all = append(all, value.Decimal(big.NewInt(n).FillBytes(make([]byte, 2)), 2))
	}
	return all
}

// TestKept: the values that have no other of their class, and those with a meaning of
// their own, stay.
func TestKept(t *testing.T) {
	for _, v := range []value.Value{
		value.Int(0), value.Int(1), value.Int(-1), value.Int(-2), value.Float64(0), value.Float64(1 << 63), value.Float64(math.Float64bits(1)), value.Float64(0x7ff8000000000000), value.Float32(0x7fc00000),
		value.Float64(math.Float64bits(math.Inf(-1))), value.String(""), value.Bytes(nil), value.String("\x00"), value.TimeOfDay(0, 0, 0, 0), value.Instant(0, 0), value.BigInt([]byte{0}), value.BigInt([]byte{0xff}),
	} {
		if out := leaf(t, Mask{Key: key}, v); out.String() != v.String() {
			t.Errorf("%v became %v", v, out)
		}
	}
}

// TestClasses: what stays of a value.
func TestClasses(t *testing.T) {
	for _, n := range []int64{2, 77, 4000000, math.MaxInt64, math.MinInt64, -3, -1000, 1 << 40} {
		out := leaf(t, Mask{Key: key}, value.Int(n)).Int()
		if (n < 0) != (out < 0) || bits.Len64(uint64(n^n>>63)) != bits.Len64(uint64(out^out>>63)) {
			t.Errorf("%d became %d", n, out)
		}
	}
	for _, n := range []int64{0, 1, 127, 128, 255, 32767, 32768, 70000, math.MaxInt32, math.MaxInt64, -1, -128, -129, math.MinInt64} {
		out := leaf(t, Mask{Key: key, Wide: true}, value.Int(n)).Int()
		size := func(n int64) int {
			for _, b := range []int{8, 16, 32} {
				if n<<(64-b)>>(64-b) == n {
					return b
				}
			}
			return 64
		}
		if (n < 0) != (out < 0) || size(n) != size(out) {
			t.Errorf("wide: %d became %d", n, out)
		}
	}
	for _, f := range []float64{19.99, -0.001, 1e300, 5e-324, 3e15 + 0.5, 1 << 60, 12345} {
		out := leaf(t, Mask{Key: key}, value.Float64(math.Float64bits(f))).Float()
		_, e := math.Frexp(f)
		if _, e2 := math.Frexp(out); e != e2 && f != 5e-324 || math.Signbit(f) != math.Signbit(out) || (f == math.Trunc(f)) != (out == math.Trunc(out)) {
			t.Errorf("%v became %v", f, out)
		}
	}
	const s = "order-4711 für Zoë €5 😀\x00\x01\u0085\u3042\u4e00\xed\xa0\x80x"
	out := leaf(t, Mask{Key: key}, value.String(s)).Text()
	if utf8.RuneCountInString(s) != utf8.RuneCountInString(out) || len(s) != len(out) || out == s {
		t.Errorf("%q became %q", s, out)
	}
	for _, word := range []string{"order", "4711", "Zoë", "€5", "😀"} {
		if strings.Contains(out, word) {
			t.Errorf("%q has %q", out, word)
		}
	}
	name, err := Mask{Key: key}.Name(value.String("s3://bucket/orders-v2/part_0.avro?x=1"))
	if err != nil || len(name.Text()) != 37 || strings.Map(punctuation, name.Text()) != ":///-/_.?=" {
		t.Errorf("%v, %v", name, err)
	}
	for _, v := range []value.Value{value.Instant(1_700_000_000, 0), value.Instant(1_700_000_000, 123_000_000), value.Instant(1_700_000_000, 123_456_000), value.Instant(1_700_000_000, 123_456_789)} {
		out := leaf(t, Mask{Key: key}, v)
		if y := out.Time().Year(); y < 2004 || y > 2038 || len(out.String()) != len(v.String()) && out.Nano()%10 != 0 {
			t.Errorf("%v became %v", v, out)
		}
	}
	const id = "01234567-89ab-cdef-8123-456789abcdef"
	if out := leaf(t, Mask{Key: key}, value.String(id)).Text(); len(out) != len(id) || strings.Trim(out, "0123456789abcdef-") != "" || strings.Count(out, "-") != 4 || out == id {
		t.Errorf("a UUID became %s", out)
	}
	if out := leaf(t, Mask{Key: key}, value.Date(2024, 2, 29)); out.Civil().Year < 2014 || out.Civil().Year > 2060 {
		t.Errorf("a date became %v", out)
	}
	for _, v := range []value.Value{value.Date(2023, 2, 29), value.TimeOfDay(25, 0, 0, 0), value.String("\xff"), value.Bytes([]byte{1}).WithClass("C")} {
		if out, err := (Mask{Key: key}).Leaf(v); err == nil {
			t.Errorf("%v became %v", v, out)
		}
	}
}

func punctuation(r rune) rune {
	if strings.ContainsRune("://-_.?=", r) {
		return r
	}
	return -1
}

// TestKeys: another key has other permutations, the same key the same ones.
func TestKeys(t *testing.T) {
	v := value.String("customer-4711")
	a, b, c := leaf(t, Mask{Key: New([]byte("a"))}, v), leaf(t, Mask{Key: New([]byte("b"))}, v), leaf(t, Mask{Key: New([]byte("a"))}, v)
	if a.Text() == b.Text() || a.Text() != c.Text() {
		t.Errorf("%v, %v, %v", a, b, c)
	}
}

// TestUniform: the replacements of similar values are spread over their class.
func TestUniform(t *testing.T) {
	const n, buckets = 1 << 12, 16
	var seen [buckets]int
	for i := range int64(n) {
		seen[(leaf(t, Mask{Key: key}, value.Int(1<<30+i)).Int()-1<<30)>>26]++
	}
	if lo, hi := slices.Min(seen[:]), slices.Max(seen[:]); lo < n/buckets/2 || hi > n/buckets*2 {
		t.Errorf("buckets of %d to %d values", lo, hi)
	}
}

// TestStream: a known answer of the round function, from its definition: AES-256 of
// the first block, as a key of HMAC-SHA-256 over the purpose.
func TestStream(t *testing.T) {
	var want, got [aes.BlockSize]byte
	want[0], want[1], want[7], want[15] = 5, 3, 2, 9
	key.block.Encrypt(want[:], want[:])
	want[0] ^= 'x'
	key.block.Encrypt(want[:], want[:])
	s := stream{k: key}
	s.start(ofTexts, 3, 9, 2, []symbol{{'x', 95}})
	if got = s.mac; got != want {
		t.Errorf("% x, want % x", got, want)
	}
}

func BenchmarkLeaf(b *testing.B) {
	for _, v := range []value.Value{value.Int(1 << 40), value.String("customer-4711"), value.String(strings.Repeat("x", 200)), value.Bytes(make([]byte, 1000)), value.Float64(math.Float64bits(19.99))} {
		b.Run(fmt.Sprint(v.Kind(), len(v.String())), func(b *testing.B) {
			for b.Loop() {
				if _, err := (Mask{Key: key}).Leaf(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
