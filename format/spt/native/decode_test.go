package native

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// decode reads a value that takes up all of p, as Go values, and appends it again.
func decode(t testing.TB, p []byte) (any, error) {
	t.Helper()
	v, err := testenv.ReadBack(t, ValueCodec{}, p)
	if err != nil {
		return nil, err
	}
	return testenv.Plain(v), nil
}

// TestDecodeBytes: values by their bytes, as the specification of msgpack has
// them.
func TestDecodeBytes(t *testing.T) {
	for bytes, want := range map[string]any{
		"\xc0": nil, "\xc2": false, "\xc3": true,
		"\x00": int64(0), "\x7f": int64(127), "\xff": int64(-1), "\xe0": int64(-32),
		"\xcc\xc8": int64(200), "\xcd\x01\x00": int64(256), "\xce\xff\xff\xff\xff": int64(1<<32 - 1),
		"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff": int64(math.MaxInt64), "\xcf\xff\xff\xff\xff\xff\xff\xff\xff": uint64(math.MaxUint64),
		"\xd0\x80": int64(-128), "\xd1\xff\x38": int64(-200), "\xd2\x80\x00\x00\x00": int64(math.MinInt32),
		"\xd3\x80\x00\x00\x00\x00\x00\x00\x00": int64(math.MinInt64),
		"\xca\x3f\x80\x00\x00":                 float32(1), "\xcb\xbf\xe0\x00\x00\x00\x00\x00\x00": -0.5,
		"\xa0": "", "\xa2hi": "hi", "\xd9\x02hi": "hi", "\xda\x00\x02hi": "hi", "\xdb\x00\x00\x00\x02hi": "hi",
		"\xa1\xff": []byte{0xff}, "\xc4\x02\xff\x00": []byte{0xff, 0}, "\xc5\x00\x01a": []byte("a"), "\xc6\x00\x00\x00\x00": []byte{},
		"\x93\x01\xa2hi\xc0": []any{int64(1), "hi", nil}, "\xdc\x00\x01\x90": []any{[]any{}},
		"\x80": map[string]any{}, "\x81\xa1a\x91\x01": map[string]any{"a": []any{int64(1)}},
		"\x82\x01\xa1x\xa1k\x02":                                       [][2]any{{int64(1), "x"}, {"k", int64(2)}},
		"\x82\xa1k\x01\xa1k\x02":                                       [][2]any{{"k", int64(1)}, {"k", int64(2)}},
		"\xde\x00\x01\xa1a\xde\x00\x00":                                map[string]any{"a": map[string]any{}},
		"\xd6\xff\x00\x00\x00\x01":                                     time.Unix(1, 0).UTC(),
		"\xd7\xff\x00\x00\x00\x04\x00\x00\x00":                         nil, // cut: see below
		"\xd7\xff\x00\x00\x00\x08\x00\x00\x00\x01":                     time.Unix(1, 2).UTC(),
		"\xc7\x0c\xff\x00\x00\x00\x02\xff\xff\xff\xff\xff\xff\xff\xff": time.Unix(-1, 2).UTC(),
		"\xd7\xff\xff\xff\xff\xff\x00\x00\x00\x01":                     map[string]any{"type": int64(-1), "data": []byte("\xff\xff\xff\xff\x00\x00\x00\x01")},
		"\xd4\x05\x07":                                                 map[string]any{"type": int64(5), "data": []byte{7}},
		"\xc7\x00\x05":                                                 map[string]any{"type": int64(5), "data": []byte{}},
		"\xc8\x00\x01\xfeA":                                            map[string]any{"type": int64(-2), "data": []byte("A")},
	} {
		got, err := decode(t, []byte(bytes))
		if want == nil && bytes != "\xc0" {
			if !errors.Is(err, format.ErrCorrupt) {
				t.Errorf("% x: %v, %v", bytes, got, err)
			}
			continue
		}
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("% x: %#v, %v; want %#v", bytes, got, err, want)
		}
	}
}

// TestAppendVariants: what has several encodings is written as it was read.
func TestAppendVariants(t *testing.T) {
	for _, p := range []string{
		"\xcc\x07", "\xcd\x00\x07", "\xce\x00\x00\x00\x07", "\xcf\x00\x00\x00\x00\x00\x00\x00\x07", // 7
		"\xd0\x07", "\xd1\x00\x07", "\xd2\x00\x00\x00\x07", "\xd3\x00\x00\x00\x00\x00\x00\x00\x07", "\xd1\xff\xff",
		"\xd9\x01a", "\xda\x00\x01a", "\xdb\x00\x00\x00\x01a", "\xd9\x01\xff", "\xda\x00\x01\xff", // strings, and those that are not UTF-8
		"\xc5\x00\x01a", "\xc6\x00\x00\x00\x01a",
		"\xdc\x00\x01\x07", "\xdd\x00\x00\x00\x01\x07", "\xde\x00\x01\xa1a\x07", "\xdf\x00\x00\x00\x01\x01\x07",
		"\x82\xd9\x01a\x07\xa1b\xcc\x08", "\xca\x7f\xc0\x00\x01", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01",
		"\xc7\x04\xff\x00\x00\x00\x01", "\xc8\x00\x04\xff\x00\x00\x00\x01", "\xc9\x00\x00\x00\x04\xff\x00\x00\x00\x01", // a second after 1970
		"\xd7\xff\x00\x00\x00\x00\x00\x00\x00\x01", "\xc7\x08\xff\x00\x00\x00\x00\x00\x00\x00\x01", "\xc9\x00\x00\x00\x0c\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01",
		"\xc7\x01\x05\x07", "\xc7\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\xc7\x03\xff\x01\x02\x03", "\xd8\x0516 bytes of data",
		"\x82\xa4type\x05\xa4data\xc4\x01\x07", // a map with the keys of an extension
	} {
		if _, err := decode(t, []byte(p)); err != nil {
			t.Errorf("% x: %v", p, err)
		}
	}
	for want, v := range map[string]value.Value{ // a variant without room
		"\xcd\x01\x00": value.Int(256).WithVariant(0xcc), "\xff": value.Int(-1).WithVariant(0xce), "\xd9\x20" + strings.Repeat("a", 32): value.String(strings.Repeat("a", 32)).WithVariant(0xa1),
		"\xd6\xff\x00\x00\x00\x01": value.Instant(1, 0), "\xd7\xff\x00\x00\x00\x08\x00\x00\x00\x01": value.Instant(1, 2).WithVariant(0xd6),
	} {
		if got, err := (ValueCodec{}).Append(nil, v); err != nil || string(got) != want {
			t.Errorf("% x, want % x: %v", got, want, err)
		}
	}
	for _, v := range []value.Value{value.Decimal([]byte{1}, 1), value.Date(1, 2, 3), value.List([]value.Value{value.BigInt([]byte{1})})} {
		if got, err := (ValueCodec{}).Append([]byte("x"), v); !errors.Is(err, format.ErrUnsupported) || string(got) != "x" {
			t.Errorf("%v: %q, %v", v, got, err)
		}
	}
}

// TestDecodeAppended: what Append writes reads back, widths forgotten.
func TestDecodeAppended(t *testing.T) {
	when := time.Date(2025, 1, 2, 3, 4, 5, 6, time.UTC)
	p, err := Marshal(map[string]any{"n": uint8(7), "big": uint64(1 << 63), "f": 1.5, "s": strings.Repeat("x", 300), "b": []byte{1}, "l": []int{-1, 70000}, "m": map[int]string{2: "b", 1: "a"}, "t": when, "no": nil})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"n": int64(7), "big": uint64(1 << 63), "f": 1.5, "s": strings.Repeat("x", 300), "b": []byte{1}, "l": []any{int64(-1), int64(70000)}, "m": [][2]any{{int64(1), "a"}, {int64(2), "b"}}, "t": when, "no": nil}
	if got, err := decode(t, p); err != nil || !cmp.Equal(got, any(want)) {
		t.Errorf("%v, %s", err, cmp.Diff(any(want), got))
	}
	if v, err := value.ReadAll(ValueCodec{}, p); err != nil || v.Len() != len(want) || v.Name(0) != "b" {
		t.Errorf("%v, %v", v, err)
	}
}

// An element of 64 MiB can be 64 million values, which take gigabytes once they are
// decoded: there is a bound, in arrays and in maps.
func TestDecodeManyValues(t *testing.T) {
	const most = 2 << 20
	array := func(n int) []byte {
		return append([]byte{0xdd, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, n)...)
	}
	if v, err := decode(t, array(most-1)); err != nil || len(v.([]any)) != most-1 { // and the array itself
		t.Errorf("%v", err)
	}
	if _, err := decode(t, array(most)); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	m := append([]byte{0x81, 0x01}, array(most)...)
	if _, err := decode(t, m); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	deep := strings.Repeat("\x91", maxDepth+1) + "\xc0"
	for bytes, want := range map[string]error{
		"": format.ErrCorrupt, "\xc1": format.ErrCorrupt, "\x92\x01": format.ErrCorrupt, "\x01\x01": format.ErrCorrupt,
		"\xdd\xff\xff\xff\xff": format.ErrCorrupt, "\xdf\xff\xff\xff\xff": format.ErrCorrupt, deep: format.ErrLimit,
	} {
		if v, err := decode(t, []byte(bytes)); !errors.Is(err, want) {
			t.Errorf("%.20q: %v, %v", bytes, v, err)
		}
	}
	if _, err := decode(t, []byte(deep[1:])); err != nil {
		t.Errorf("%d deep: %v", maxDepth, err)
	}
}

// FuzzDecode: no panic, and no other answer than package msgpack gives to a
// value that both read.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"\xc0", "\x93\x01\xa2hi\xc0", "\x82\x01\xa1x\xa1k\x02", "\xcb\xbf\xe0\x00\x00\x00\x00\x00\x00", "\xd6\xff\x00\x00\x00\x01", "\xdd\x00\x00\x00\x01\xd3\x80\x00\x00\x00\x00\x00\x00\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if err := testenv.Agree(ValueCodec{}, p); err != nil {
			t.Fatal(err)
		}
		v, err := decode(t, p)
		if err != nil {
			if check(p) == nil && !errors.Is(err, format.ErrLimit) {
				t.Fatalf("% x is a value, and is refused: %v", p, err)
			}
			return
		}
		var n int64
		if err := msgpack.Unmarshal(p, &n); err == nil {
			if got, ok := v.(int64); ok && got != n {
				t.Fatalf("% x: %d, not %d", p, got, n)
			}
		}
		var s string
		if got, ok := v.(string); ok && (msgpack.Unmarshal(p, &s) != nil || s != got) {
			t.Fatalf("% x: %q, not %q", p, got, s)
		}
	})
}
