package keyed

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// The bytes of headers, put together by hand.

func i16(v int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(v))) }
func i32(v int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(v))) }
func utf(s string) string {
	return i16(len(s)) + s
}
func object(s string) string { return i32(1) + i32(len(s)) + s }

const base = "org.apache.flink.api.common.typeutils.base."

func simple(name string) string {
	return utf(base+name+"Serializer$"+name+"SerializerSnapshot") + i32(3)
}

// config is a serializer's snapshot as Flink 1.4 to 1.6 wrote it.
func config(name string) string {
	return i32(1) + utf("org.apache.flink.api.common.typeutils.ParameterlessTypeSerializerConfig") + i32(1) + utf(base+name)
}

func blockOf(names ...string) string {
	offsets, blob := "", ""
	for _, n := range names {
		offsets += i32(len(blob))
		blob += object("java of " + n)
		offsets += i32(len(blob))
		blob += config(n)
	}
	return i32(len(names)) + offsets + i32(len(blob)) + blob
}

var headers = map[string]string{
	"1": i32(1) + object("key") + i16(1) + i32(2) + utf("l") + object("namespace") + object("value"),
	"2": i32(2) + object("key") + i16(1) + i32(1) + utf("v") + object("namespace") + object("value"),
	"3": i32(3) + blockOf("Key") + i16(2) + i32(6) + utf("m") + blockOf("N", "V") + i32(2) + utf("l") + blockOf("N", "V"),
	"4": i32(4) + "\x01" + blockOf("Key") + i16(0),
	"5": i32(5) + "\x00" + blockOf("Key") + i16(2) +
		utf("a") + i32(0) + i32(1) + utf("KEYED_STATE_TYPE") + utf("AGGREGATING") + i32(2) + utf("VALUE_SERIALIZER") + utf("NAMESPACE_SERIALIZER") + blockOf("V", "N") +
		utf("t") + i32(3) + i32(0) + i32(1) + utf("VALUE_SERIALIZER") + blockOf("V"),
	"6": i32(6) + "\x01" + i32(2) + simple("Long") + i16(3) +
		utf("v") + i32(0) + i32(1) + utf("KEYED_STATE_TYPE") + utf("VALUE") + i32(2) + utf("VALUE_SERIALIZER") + i32(2) + simple("String") + utf("NAMESPACE_SERIALIZER") + i32(2) + simple("Int") +
		utf("m") + i32(4) + i32(1) + utf("KEYED_STATE_TYPE") + utf("MAP") + i32(1) + utf("USER_KEY_SERIALIZER") + i32(2) + simple("String") +
		utf("t") + i32(3) + i32(0) + i32(0),
}

// inMemory is a source of one stream, of which it says neither more nor less.
type inMemory string

func (s inMemory) ReadAt(_ context.Context, _ format.Stream, p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(s)) {
		return 0, format.Errorf(format.ErrTruncated, "past the end")
	}
	return copy(p, s[off:]), nil
}

func read(t testing.TB, p string) (*Header, error) {
	t.Helper()
	return ReadHeader(t.Context(), inMemory(p), &format.File{Path: format.NewText("f"), Length: int64(len(p))})
}

func describe(h *Header) string {
	b := strings.Builder{}
	if h.Compressed {
		b.WriteString("compressed ")
	}
	if h.Key != nil {
		b.WriteString(h.Key.Class[strings.LastIndexAny(h.Key.Class, ".$")+1:])
	}
	for _, s := range h.States {
		b.WriteString(" | " + s.Name.String() + " " + s.Kind())
		for _, k := range s.Serializers {
			b.WriteString(" " + k.Key)
		}
	}
	return b.String()
}

func TestHeader(t *testing.T) {
	for version, want := range map[string]string{
		"1": " | l list",
		"2": " | v value",
		"3": "ParameterlessTypeSerializerConfig | m map NAMESPACE_SERIALIZER VALUE_SERIALIZER | l list NAMESPACE_SERIALIZER VALUE_SERIALIZER",
		"4": "compressed ParameterlessTypeSerializerConfig",
		"5": "ParameterlessTypeSerializerConfig | a aggregating VALUE_SERIALIZER NAMESPACE_SERIALIZER | t timers VALUE_SERIALIZER",
		"6": "compressed LongSerializerSnapshot | v value VALUE_SERIALIZER NAMESPACE_SERIALIZER | m map USER_KEY_SERIALIZER | t timers",
	} {
		p := headers[version]
		for _, behind := range []string{"", "entries"} {
			h, err := read(t, p+behind)
			if err != nil || describe(h) != want || h.Size != int64(len(p)) || h.Version != int32(version[0]-'0') {
				t.Errorf("version %s: %v, %+v", version, err, h)
			}
		}
		// Cut anywhere, it is too short.
		for n := range p {
			if _, err := read(t, p[:n]); !errors.Is(err, format.ErrTruncated) {
				t.Errorf("version %s: %d of %d bytes: %v", version, n, len(p), err)
			}
		}
	}
}

// A header longer than what is read at first.
func TestLongHeader(t *testing.T) {
	const states = 1000
	p := i32(6) + "\x00" + i32(2) + simple("Long") + i16(states)
	for range states {
		p += utf(strings.Repeat("n", 100)) + i32(3) + i32(0) + i32(0)
	}
	h, err := read(t, p+strings.Repeat("x", 1<<20))
	if err != nil || len(h.States) != states || h.Size != int64(len(p)) {
		t.Errorf("%v", err)
	}
}

func TestHeaderRefused(t *testing.T) {
	for name, x := range map[string]struct {
		p, text string
		kind    error
	}{
		"version 7":        {i32(7) + headers["6"][4:], "unknown version 7 of keyed state", format.ErrUnsupported},
		"version 0":        {i32(0), "unknown version 0 of keyed state", format.ErrUnsupported},
		"a mark":           {i32(6) + "\x02" + headers["6"][5:], "the compression flag", format.ErrCorrupt},
		"states":           {i32(4) + "\x01" + blockOf("Key") + "\xff\xff", "states", format.ErrCorrupt},
		"a type":           {i32(2) + object("k") + i16(1) + i32(7) + utf("v"), "state \"v\": unknown type 7 of a state", format.ErrCorrupt},
		"an operator's":    {i32(6) + "\x00" + i32(2) + simple("Long") + i16(1) + utf("v") + i32(1) + i32(0) + i32(0), "unexpected kind 1 of a keyed state", format.ErrCorrupt},
		"a kind":           {i32(6) + "\x00" + i32(2) + simple("Long") + i16(1) + utf("v") + i32(0) + i32(1) + utf("KEYED_STATE_TYPE") + utf("HEAP") + i32(0), "unknown kind of keyed state \"HEAP\"", format.ErrCorrupt},
		"two keys":         {i32(3) + blockOf("A", "B") + i16(0), "key serializer: expected 1 serializers, found 2", format.ErrCorrupt},
		"one serializer":   {i32(3) + blockOf("A") + i16(1) + i32(1) + utf("v") + blockOf("A"), "state \"v\": expected 2 serializers, found 1", format.ErrCorrupt},
		"a Java object":    {i32(2) + i32(2) + i32(0) + i16(0), "expected a serializer object of version 1, found 2", format.ErrCorrupt},
		"a user's class":   {i32(6) + "\x00" + i32(2) + utf("com.example.KeySnapshot") + i32(1), "com.example.KeySnapshot", format.ErrUnsupported},
		"nothing of it":    {"", "", format.ErrTruncated},
		"a claimed length": {i32(2) + i32(1) + i32(1<<31-1), "", format.ErrTruncated},
	} {
		_, err := read(t, x.p)
		if !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var u *types.UnknownClass
	h, err := read(t, headers["6"][:9]+simple("Long")+i16(1)+utf("v")+i32(0)+i32(0)+i32(1)+utf("VALUE_SERIALIZER")+i32(2)+utf("com.example.V")+i32(1))
	if !errors.As(err, &u) || h == nil || h.Key == nil {
		t.Errorf("what stands in front of a user's class is lost: %v", err)
	}
	if _, err := ReadHeader(t.Context(), inMemory(""), nil); !errors.Is(err, format.ErrCorrupt) {
		t.Error(err)
	}
}

// FuzzHeader: any bytes are a header of at most their length, or refused.
func FuzzHeader(f *testing.F) {
	for _, p := range headers {
		f.Add([]byte(p))
		f.Add([]byte(p + "behind"))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		h, err := read(t, string(p))
		switch {
		case err == nil && (h.Size > int64(len(p)) || h.Size < 7):
			t.Fatalf("a header of %d bytes in %d", h.Size, len(p))
		case err != nil && !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrTruncated) && !errors.Is(err, format.ErrUnsupported) && !errors.Is(err, format.ErrLimit):
			t.Fatal(err)
		}
	})
}
