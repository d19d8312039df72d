package keyed

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"

	"github.com/savepoint-tools/spt/format"
)

// Streams of key groups put together by hand, from spec flink-keyed-state 3.

func entry(key, value string) string { return i32(len(key)) + key + i32(len(value)) + value }

// frame is a snappy stream of the pieces.
func frame(pieces ...string) string {
	out := "\xff\x06\x00\x00sNaPpY"
	for _, data := range pieces {
		c := crc32.Checksum([]byte(data), crc32.MakeTable(crc32.Castagnoli))
		kind, body := byte(0), string(snappy.Encode(nil, []byte(data)))
		if len(body) >= len(data) {
			kind, body = 1, data
		}
		n := len(body) + 4
		out += string([]byte{kind, byte(n), byte(n >> 8), byte(n >> 16)})
		out += string(binary.LittleEndian.AppendUint32(nil, (c>>15|c<<17)+0xa282ead8)) + body
	}
	return out
}

func canonicalHeader(compressed string) string {
	return i32(6) + compressed + i32(2) + simple("Long") + i16(1) +
		utf("v") + i32(0) + i32(1) + utf("KEYED_STATE_TYPE") + utf("VALUE") + i32(1) + utf("VALUE_SERIALIZER") + i32(2) + simple("String")
}

// groupsHandle is a handle of key groups, "" being an empty one.
func groupsHandle(compressed string, groups ...string) (*format.KeyGroups, string) {
	p := canonicalHeader(compressed)
	var offsets format.OffsetSlice
	for _, g := range groups {
		if g == "" {
			offsets = append(offsets, 0)
			continue
		}
		offsets = append(offsets, int64(len(p)))
		p += g
	}
	return &format.KeyGroups{
		Codec: format.CodecFlink, Range: format.KeyGroupRange{First: 5, Count: int32(len(groups))}, Offsets: offsets, Savepoint: true,
		Data: &format.File{Path: format.NewText("f"), Length: int64(len(p))},
	}, p
}

func expand(t *testing.T, src format.Source, s format.Stream) string {
	t.Helper()
	var all []byte
	for _, part := range s.(*format.Concat).Parts {
		p := make([]byte, part.N)
		if m, ok := part.Of.(*format.Computed); ok {
			const piece = 1000
			for off := int64(0); off < part.N; off += piece {
				if err := m.Maker.MakeAt(t.Context(), src, p[off:min(off+piece, part.N)], off); err != nil {
					t.Fatal(err)
				}
			}
		} else if _, err := part.Of.(*format.Inline).Data.ReadAt(p, part.Off); err != nil {
			t.Fatal(err)
		}
		all = append(all, p...)
	}
	return string(all)
}

func TestRecompress(t *testing.T) {
	small := "\x00\x00" + entry("\x05one", "value") + entry("\x85two", "") + "\x00\x01" + entry("\x85x", "y") + "\xff\xff"
	large := "\x00\x00" + entry("\x87one", strings.Repeat("abc", 50000)) + "\xff\xff"
	plain, p := groupsHandle("\x00", small, "", large)
	framed, q := groupsHandle("\x01", frame(small), "", frame(large[:65536], large[65536:131072], large[131072:]))
	// As Flink may write it: chunks that are not full.
	odd, o := groupsHandle("\x01", frame(small[:1], small[1:]), "", frame(large[:65536], large[65536:70000], large[70000:100000], large[100000:]))
	for _, x := range []struct {
		in       *format.KeyGroups
		from     string
		want     *format.KeyGroups
		to       string
		compress bool
	}{{plain, p, framed, q, true}, {framed, q, plain, p, false}, {odd, o, plain, p, false}} {
		src := inMemory(x.from)
		got, err := Recompress(t.Context(), src, x.in, x.compress)
		if err != nil {
			t.Fatal(err)
		}
		if s := expand(t, src, got.Data); s != x.to {
			t.Errorf("compressed %v: %d other bytes, want %d", x.compress, len(s), len(x.to))
		}
		a, b := got.Offsets.(format.OffsetSlice), x.want.Offsets.(format.OffsetSlice)
		for i := range b {
			if a[i] != b[i] {
				t.Errorf("offsets %v, want %v", a, b)
				break
			}
		}
		if same, err := Recompress(t.Context(), src, x.in, !x.compress); err != nil || same != x.in {
			t.Errorf("not the same handle: %v", err)
		}
	}
	// No entry at all: only the mark changes.
	none, h := groupsHandle("\x00", "", "")
	got, err := Recompress(t.Context(), inMemory(h), none, true)
	if err != nil || expand(t, inMemory(h), got.Data) != canonicalHeader("\x01") {
		t.Error(err)
	}
}

func TestRecompressRefuses(t *testing.T) {
	good := "\x00\x00" + entry("\x85one", "value") + "\xff\xff"
	// As the heap backend writes a key group: its number, state, count, values.
	heap := i32(5) + "\x00\x00" + i32(1) + "\x01" + "\x00\x00\x00\x00\x00\x00\x00\x07" + "\x02a"
	for _, x := range []struct {
		name, compressed, group string
		compress                bool
		kind                    error
		text                    string
	}{
		{"of the heap backend", "\x00", heap, true, format.ErrUnsupported, "canonical"},
		{"of the heap backend, compressed", "\x01", i32(5) + frame("\x00\x00"+i32(0)), false, format.ErrUnsupported, "canonical"},
		{"bytes after the end", "\x00", good + "x", true, format.ErrUnsupported, "canonical"},
		{"cut", "\x00", good[:len(good)-1], true, format.ErrUnsupported, "canonical"},
		{"a key without bytes", "\x00", "\x00\x00" + entry("", "v") + "\xff\xff", true, format.ErrUnsupported, "canonical"},
		{"no stream header", "\x01", frame(good)[10:], false, format.ErrUnsupported, "canonical"},
		{"a second stream header", "\x01", frame(good) + frame(), false, format.ErrCorrupt, "second snappy stream header"},
		{"a flipped byte", "\x01", strings.Replace(frame(good), "value", "valux", 1), false, format.ErrCorrupt, "checksum"},
		{"a chunk past the end", "\x01", frame(good)[:20], false, format.ErrCorrupt, ""},
	} {
		h, p := groupsHandle(x.compressed, x.group)
		if got, err := Recompress(t.Context(), inMemory(p), h, x.compress); got != nil || !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	h, p := groupsHandle("\x00", good)
	h.Savepoint = false
	if _, err := Recompress(t.Context(), inMemory(p), h, true); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("a checkpoint: %v", err)
	}
	h, p = groupsHandle("\x00", good, good)
	h.Offsets.(format.OffsetSlice)[1] = h.Offsets.(format.OffsetSlice)[0]
	if _, err := Recompress(t.Context(), inMemory(p), h, true); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("two key groups at one place: %v", err)
	}
}

// A header that ends in a serializer of an unknown class has no known end. A key group
// that starts before that class would change what is read of the header.
func TestRecompressWithinUnknownHeader(t *testing.T) {
	const class = "com.example.Unknown$Snapshot"
	known := strings.TrimSuffix(canonicalHeader("\x00"), simple("String"))
	group := "\x00\x00" + entry("\x85one", "value") + "\xff\xff"
	for name, tc := range map[string]struct {
		header string // the group follows
		refuse bool
	}{
		"after the class": {header: known + utf(class) + i32(1)},
		"in the class":    {header: known + i16(4), refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.header + group + group
			start := int64(len(tc.header))
			h := &format.KeyGroups{
				Codec: format.CodecFlink, Range: format.KeyGroupRange{Count: 2}, Savepoint: true,
				Offsets: format.OffsetSlice{start, start + int64(len(group))},
				Data:    &format.File{Path: format.NewText("f"), Length: int64(len(p))},
			}
			_, err := Recompress(t.Context(), inMemory(p), h, true)
			if tc.refuse != errors.Is(err, format.ErrCorrupt) || !tc.refuse && err != nil {
				t.Fatalf("refuse %v: %v", tc.refuse, err)
			}
		})
	}
}
