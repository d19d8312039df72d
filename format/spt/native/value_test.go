package native_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
)

type point struct {
	Y    int32  `msgpack:"y"`
	X    int64  `msgpack:"x"`
	Name string `msgpack:"name,omitempty"`
}

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"nil", nil, "c0"},
		{"true", true, "c3"},
		{"int 5", 5, "05"},
		{"int8 5", int8(5), "05"},
		{"uint64 5", uint64(5), "05"},
		{"int64 -1", int64(-1), "ff"},
		{"int16 -33", int16(-33), "d0 df"},
		{"uint32 200", uint32(200), "cc c8"},
		{"int64 300", int64(300), "cd 01 2c"},
		{"int64 70000", int64(70000), "ce 00 01 11 70"},
		{"max", uint64(math.MaxUint64), "cf ff ff ff ff ff ff ff ff"},
		{"float64 1", 1.0, "cb 3f f0 00 00 00 00 00 00"},
		{"float32 1", float32(1), "ca 3f 80 00 00"},
		{"string", "hé", "a3 68 c3 a9"},
		{"bytes", []byte{1, 2}, "c4 02 01 02"},
		{"time", time.Unix(1, 0).UTC(), "d6 ff 00 00 00 01"},
		{"list", []any{1, "a", nil}, "93 01 a1 61 c0"},
		// Keys by their encoded bytes: the shorter string first.
		{"map of strings", map[string]int{"bb": 1, "a": 2, "c": 3}, "83 a1 61 02 a1 63 03 a2 62 62 01"},
		{"map of ints", map[int64]string{300: "x", -1: "y", 2: "z"}, "83 02 a1 7a cd 01 2c a1 78 ff a1 79"},
		{"nested maps", map[string]any{"b": map[int]bool{2: true, 1: false}, "a": []map[string]int{{"y": 1, "x": 2}}},
			"82 a1 61 91 82 a1 78 02 a1 79 01 a1 62 82 01 c2 02 c3"},
		{"struct", point{Y: 1, X: 2}, "82 a1 78 02 a1 79 01"},
		{"struct with name", &point{Y: 1, X: 2, Name: "n"}, "83 a1 78 02 a1 79 01 a4 6e 61 6d 65 a1 6e"},
		{"raw", msgpack.RawMessage{0x82, 0x02, 0x01, 0x01, 0x01}, "82 02 01 01 01"}, // not sorted: as given
		{"raw inside", []any{msgpack.RawMessage{0x82, 0x02, 0xc0, 0x01, 0xc0}}, "91 82 01 c0 02 c0"},
	} {
		want := unhex(t, c.want)
		got, err := native.Append([]byte("before"), c.v)
		if err != nil || !bytes.Equal(got[6:], want) || string(got[:6]) != "before" {
			t.Errorf("%s: % x, %v, want % x", c.name, got, err, want)
		}
	}
}

// Go walks a map in another order each time.
func TestAppendIsDeterministic(t *testing.T) {
	m := map[int]map[string]float64{}
	for i := range 50 {
		m[i*i] = map[string]float64{"a": 1, "bb": 2, fmt.Sprint(i): 3}
	}
	first := mustMarshal(t, m)
	for range 20 {
		if !bytes.Equal(mustMarshal(t, m), first) {
			t.Fatal("the bytes differ")
		}
	}
	var back map[int]map[string]float64
	if err := msgpack.Unmarshal(first, &back); err != nil || len(back) != 50 || back[49*49]["bb"] != 2 {
		t.Errorf("reads back as %v, %v", back, err)
	}
}

type twice struct{}

func (twice) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeMulti(1, 2) }

type sameKeys struct{}

func (sameKeys) EncodeMsgpack(e *msgpack.Encoder) error {
	return errors.Join(e.EncodeMapLen(3), e.EncodeMulti(2, 0, 1, 0, 2, 0))
}

func TestAppendRefuses(t *testing.T) {
	deep := any(1)
	for range 1001 {
		deep = []any{deep}
	}
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"two raw values":     {msgpack.RawMessage{1, 2}, "1 bytes after"},
		"no raw value":       {msgpack.RawMessage{}, "does not end within its 0 bytes"},
		"half a raw value":   {msgpack.RawMessage{0xa2, 'x'}, "does not end within its 2 bytes"},
		"unused code":        {msgpack.RawMessage{0x91, 0xc1}, "0xc1"},
		"two values":         {twice{}, "1 bytes after"},
		"equal keys":         {sameKeys{}, "duplicate map key 02"},
		"a channel":          {make(chan int), "chan int"},
		"nested too deep":    {deep, "nested more than 1000 deep"},
		"a channel in a map": {map[string]any{"x": make(chan int)}, "chan int"},
	} {
		got, err := native.Append([]byte("before"), c.v)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if string(got) != "before" {
			t.Errorf("%s: %q is left", name, got)
		}
	}
	deepest := any(1)
	for range 1000 {
		deepest = []any{deepest}
	}
	if p := mustMarshal(t, deepest); len(p) != 1001 {
		t.Errorf("1000 deep: %d bytes", len(p))
	}
}

// Every first byte, against the lengths that the msgpack specification gives:
// a value is taken with exactly its bytes, and refused with one less or more.
func TestEveryCode(t *testing.T) {
	fill := func(head string, n int) []byte { return append(unhex(t, head), make([]byte, n)...) }
	values := map[byte][]byte{}
	add := func(p []byte) { values[p[0]] = p }
	for c := range 0x80 {
		add([]byte{byte(c)})
	}
	for c := 0xe0; c < 0x100; c++ {
		add([]byte{byte(c)})
	}
	for n := range 16 {
		add(fill(fmt.Sprintf("%02x", 0x80+n), 2*n))
		add(fill(fmt.Sprintf("%02x", 0x90+n), n))
	}
	for n := range 32 {
		add(fill(fmt.Sprintf("%02x", 0xa0+n), n))
	}
	for head, n := range map[string]int{
		"c0": 0, "c2": 0, "c3": 0,
		"c4 03": 3, "c5 0102": 258, "c6 00010000": 65536,
		"c7 03": 4, "c8 0102": 259, "c9 00010000": 65537,
		"ca": 4, "cb": 8, "cc": 1, "cd": 2, "ce": 4, "cf": 8, "d0": 1, "d1": 2, "d2": 4, "d3": 8,
		"d4": 2, "d5": 3, "d6": 5, "d7": 9, "d8": 17,
		"d9 03": 3, "da 0102": 258, "db 00010000": 65536,
		"dc 0003": 3, "dd 00000003": 3, "de 0003": 6, "df 00000003": 6,
	} {
		add(fill(head, n))
	}
	if len(values) != 255 {
		t.Fatalf("%d codes are tried, want all but 0xc1", len(values))
	}
	for c, p := range values {
		if _, err := native.Marshal(msgpack.RawMessage(p)); err != nil {
			t.Errorf("%02x: %v", c, err)
		}
		for n := range min(len(p), 300) {
			if _, err := native.Marshal(msgpack.RawMessage(p[:n])); !errors.Is(err, format.ErrCorrupt) {
				t.Errorf("%02x cut to %d: %v", c, n, err)
			}
		}
		if _, err := native.Marshal(msgpack.RawMessage(append(p, 0))); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%02x and a byte more: %v", c, err)
		}
	}
}

// Counts are claims: nothing is allocated for them, and sums do not overflow.
func TestClaims(t *testing.T) {
	for _, claim := range []string{"dd ffffffff", "df ffffffff", "c6 ffffffff", "db ffffffff", "c9 ffffffff 00",
		"df ffffffff df ffffffff df ffffffff df ffffffff", strings.Repeat("dd ffffffff", 1000)} {
		if _, err := native.Marshal(msgpack.RawMessage(unhex(t, claim))); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%.20s: %v", claim, err)
		}
	}
	// Ten million arrays, one in the other: walked without recursion.
	deep := append(bytes.Repeat([]byte{0x91}, 10_000_000), 0)
	if _, err := native.Marshal(msgpack.RawMessage(deep)); err != nil {
		t.Error(err)
	}
}

// The vectors of docs/format.md, made by a program in another language.
func TestKeyGroup(t *testing.T) {
	for _, c := range []struct {
		key              any
		bytes            string
		hash             int32
		of128, of4096, m int32
	}{
		{nil, "c0", -33, 11, 2571, 2571},
		{0, "00", 31, 123, 2683, 2683},
		{uint8(1), "01", 32, 36, 292, 16676},
		{int64(42), "2a", 73, 37, 805, 13093},
		{-1, "ff", 30, 26, 2202, 14490},
		{200, "cc c8", -707, 62, 1470, 21950},
		{-200, "d1 ff 38", -15351, 46, 4014, 16302},
		{uint64(1 << 40), "cf 00 00 01 00 00 00 00 00", -1796928883, 50, 3122, 11314},
		{true, "c3", -30, 39, 1319, 9511},
		{"", "a0", -65, 123, 1915, 14203},
		{"a", "a1 61", -1887, 31, 3743, 7839},
		{"user-7", "a6 75 73 65 72 2d 37", -1659141446, 18, 786, 786},
		{"ключ", "a8 d0 ba d0 bb d1 8e d1 87", -1245009905, 39, 1959, 14247},
		{[]byte{0xff, 0}, "c4 02 ff 00", -862048, 98, 2786, 2786},
		{[]int{1, 2}, "92 01 02", -75886, 39, 3751, 7847},
	} {
		p := mustMarshal(t, c.key)
		if !bytes.Equal(p, unhex(t, c.bytes)) {
			t.Errorf("%v is % x, want %s", c.key, p, c.bytes)
		}
		if h := native.Hash(p); h != c.hash {
			t.Errorf("%v: hash %d, want %d", c.key, h, c.hash)
		}
		if a, b, m := native.KeyGroup(p, 128), native.KeyGroup(p, 4096), native.KeyGroup(p, 32768); a != c.of128 || b != c.of4096 || m != c.m {
			t.Errorf("%v: key groups %d %d %d, want %d %d %d", c.key, a, b, m, c.of128, c.of4096, c.m)
		}
	}
}

func TestAppendMapHeader(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 255, 65535, 65536, 70000} {
		p := native.AppendMapHeader(nil, n)
		want := 1
		if n > 15 {
			want = 3
		}
		if n > 65535 {
			want = 5
		}
		p = append(p, make([]byte, 2*n)...)
		var m map[int]int
		if err := msgpack.Unmarshal(p, &m); err != nil || len(p) != want+2*n {
			t.Errorf("%d entries: %d bytes, %v", n, len(p), err)
		}
		if _, err := native.Marshal(msgpack.RawMessage(p)); err != nil {
			t.Errorf("%d entries: %v", n, err)
		}
	}
}
