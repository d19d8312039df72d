package keyed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// The worked example of spec flink-keyed-state 12, and the same state in the other
// encodings: key "hello" in key group 35 of 128.

func composite(class string, outer int, nested ...string) string {
	return utf(class) + i32(3) + i32(911108) + i32(outer) + i32(1333245) + i32(1) + i32(len(nested)) + strings.Join(nested, "")
}

func keyValue(name, kind, value string) string {
	return utf(name) + i32(0) + i32(1) + utf("KEYED_STATE_TYPE") + utf(kind) + i32(2) + utf("VALUE_SERIALIZER") + i32(2) + value +
		utf("NAMESPACE_SERIALIZER") + i32(2) + utf("org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot") + i32(3)
}

var void = utf("org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot") + i32(3)

func exampleHeader(compressed string) string {
	return i32(6) + compressed + i32(2) + simple("String") + i16(4) +
		keyValue("count", "VALUE", simple("Long")) +
		keyValue("m", "MAP", composite(base+"MapSerializerSnapshot", 1, simple("String"), simple("Int"))) +
		utf("_timer_state/event_user-timers") + i32(3) + i32(0) + i32(1) + utf("VALUE_SERIALIZER") + i32(2) + composite(timerClass, 2, simple("String"), void) +
		keyValue("l", "LIST", composite(base+"ListSerializerSnapshot", 1, simple("String")))
}

func i64(v int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(v))) }

// flipped is a time as timers store it.
func flipped(v int64) string { return i64(v ^ signBit) }

func ba(s string) string { return i32(len(s)) + s }

const hello = "\x06hello"

// canonicalGroup is key group 35 of the example, with a list.
func canonicalGroup() string {
	return i16(0) + ba("\xa3"+hello+"\x00") + ba(i64(7)) +
		i16(1) + ba("\x23"+hello+"\x00\x02a") + ba("\x00"+i32(1)) + ba("\xa3"+hello+"\x00\x02b") + ba("\x01\x00") +
		i16(2) + ba("\xa3"+flipped(1700000000000)+hello+"\x00") + ba("") +
		i16(3) + ba("\xa3"+hello+"\x00") + ba("\x02x,\x02,") + "\xff\xff"
}

// heapGroup is the same as the heap backend writes it, and an empty list.
func heapGroup() []string {
	return []string{
		i16(3) + i32(2) + "\x00" + hello + i32(2) + "\x02x\x02," + "\x00" + "\x03no" + i32(0),
		i16(0) + i32(1) + "\x00" + hello + i64(7),
		i16(2) + i32(1) + flipped(1700000000000) + hello + "\x00",
		i16(1) + i32(1) + "\x00" + hello + i32(2) + "\x02a\x00" + i32(1) + "\x02b\x01",
	}
}

// handleOf returns a handle of 64 key groups from 0 on, of which 35 and 40 have data.
func handleOf(header, one, two string, savepoint bool) (*format.KeyGroups, inMemory) {
	p := header + one + two
	offsets := make(format.OffsetSlice, 64)
	offsets[35], offsets[40] = int64(len(header)), int64(len(header)+len(one))
	return &format.KeyGroups{
		Codec: format.CodecFlink, Savepoint: savepoint, Range: format.KeyGroupRange{Count: 64}, Offsets: offsets,
		Data: &format.File{Path: format.NewText("f"), Length: int64(len(p))},
	}, inMemory(p)
}

var emptyGroups = map[bool]string{true: "\xff\xff", false: i16(0) + i32(0) + i16(1) + i32(0) + i16(2) + i32(0) + i16(3) + i32(0)}

func text(e format.KeyedEntry) string {
	return fmt.Sprintf("%d.%d %q %q %q %d = %q (%q)", e.KeyGroup, e.State, e.Key, e.Namespace, e.UserKey, e.Time, e.Value, e.Stored)
}

func readAll(t testing.TB, c *Codec, src format.Source, h format.KeyedHandle, sel format.KeyedSelection) (all []string, err error) {
	t.Helper()
	cur, err := c.Entries(t.Context(), src, h, sel)
	if err != nil {
		return nil, err
	}
	for {
		e, err := cur.Next()
		if err == io.EOF {
			slices.Sort(all)
			return all, cur.Close()
		}
		if err != nil {
			if _, again := cur.Next(); again != err { //nolint:errorlint // the same error
				t.Errorf("after %v: %v", err, again)
			}
			return all, err
		}
		all = append(all, text(e))
	}
}

var example = []string{
	`35.0 "\x06hello" "\x00" "" 0 = "\x00\x00\x00\x00\x00\x00\x00\a" ("#\x06hello\x00")`,
	`35.1 "\x06hello" "\x00" "\x02a" 0 = "\x00\x00\x00\x00\x01" ("#\x06hello\x00\x02a")`,
	`35.1 "\x06hello" "\x00" "\x02b" 0 = "\x01\x00" ("#\x06hello\x00\x02b")`,
	`35.2 "\x06hello" "\x00" "" 1700000000000 = "" ("#\x80\x00\x01\x8b\xcf\xe5h\x00\x06hello\x00")`,
	`35.3 "\x06hello" "\x00" "" 0 = "\x02x,\x02," ("#\x06hello\x00")`,
}

// exampleHandles are the example in the encodings of a stream.
func exampleHandles() map[string]func() (*format.KeyGroups, inMemory) {
	chunks := func(all ...string) (p string) {
		for _, s := range all {
			p += frame(s)
		}
		return p
	}
	heap := func(number int, p string) string { return i32(number) + p }
	e := func() string { return emptyGroups[false] }
	return map[string]func() (*format.KeyGroups, inMemory){
		"canonical": func() (*format.KeyGroups, inMemory) {
			return handleOf(exampleHeader("\x00"), canonicalGroup(), emptyGroups[true], true)
		},
		"canonical, compressed": func() (*format.KeyGroups, inMemory) {
			p := canonicalGroup()
			return handleOf(exampleHeader("\x01"), frame(p[:20], p[20:]), frame(emptyGroups[true]), true)
		},
		"full, not a savepoint": func() (*format.KeyGroups, inMemory) {
			return handleOf(exampleHeader("\x00"), canonicalGroup(), emptyGroups[true], false)
		},
		"heap": func() (*format.KeyGroups, inMemory) {
			return handleOf(exampleHeader("\x00"), heap(35, strings.Join(heapGroup(), "")), heap(40, e()), false)
		},
		"heap, compressed": func() (*format.KeyGroups, inMemory) {
			return handleOf(exampleHeader("\x01"), heap(35, chunks(heapGroup()...)), heap(40, chunks(e()[:6], e()[6:12], e()[12:18], e()[18:])), false)
		},
	}
}

// TestExample: each encoding has the same entries.
func TestExample(t *testing.T) {
	c := &Codec{MaxParallelism: 128}
	for name, of := range exampleHandles() {
		h, src := of()
		all, err := readAll(t, c, src, h, format.KeyedSelection{})
		want := slices.Clone(example)
		for i := range want { // of the heap a null has no value
			if strings.HasPrefix(name, "heap") {
				want[i] = strings.Replace(want[i], `= "\x01\x00"`, `= "\x01"`, 1)
			}
		}
		if err != nil || !slices.Equal(all, want) {
			t.Errorf("%s: %v\n%s", name, err, strings.Join(all, "\n"))
		}
		for _, sel := range []format.KeyedSelection{{Groups: format.KeyGroupRange{First: 0, Count: 35}}, {Groups: format.KeyGroupRange{First: 36, Count: 100}}, {Key: []byte("\x03no")}, {States: []int{}}} {
			if all, err := readAll(t, c, src, h, sel); err != nil || len(all) > 0 {
				t.Errorf("%s: %+v: %q, %v", name, sel, all, err)
			}
		}
		if _, err := c.Entries(t.Context(), src, h, format.KeyedSelection{States: []int{4}}); err == nil {
			t.Errorf("%s: state 4 of 4", name)
		}
	}
}

// TestExampleBuilt: the canonical bytes of spec 12 come from entries without Stored.
func TestExampleBuilt(t *testing.T) {
	c := &Codec{MaxParallelism: 128}
	h, src := handleOf(exampleHeader("\x00"), canonicalGroup(), "", true)
	h.Offsets.(format.OffsetSlice)[40] = 0
	schema, err := c.Describe(t.Context(), src, h)
	if err != nil {
		t.Fatal(err)
	}
	var w bytes.Buffer
	b, err := c.Build(t.Context(), schema, h.Range, &w)
	if err != nil {
		t.Fatal(err)
	}
	if err := format.EachKeyedEntry(t.Context(), src, c, h, format.KeyedSelection{}, func(e format.KeyedEntry) error {
		e.Stored = nil
		return b.Add(e)
	}); err != nil {
		t.Fatal(err)
	}
	out, err := b.Handle()
	if err != nil || w.String() != string(src) || !slices.Equal(out.Offsets.(format.OffsetSlice), h.Offsets.(format.OffsetSlice)) {
		t.Errorf("%v: % x", err, w.Bytes())
	}
	good := format.KeyedEntry{KeyGroup: 35, Key: []byte(hello), Namespace: []byte{0}, Value: []byte(i64(1))}
	for want, change := range map[string]func(e *format.KeyedEntry){
		"is outside":               func(e *format.KeyedEntry) { e.KeyGroup = 64 },
		"state 4 is out of range":  func(e *format.KeyedEntry) { e.State = 4 },
		"after an entry of":        func(e *format.KeyedEntry) { e.KeyGroup = 3 },
		"without a key":            func(e *format.KeyedEntry) { e.Key = nil },
		"has a key of key group 1": func(e *format.KeyedEntry) { e.Stored = []byte("\x01x") },
	} {
		b, err := c.Build(t.Context(), schema, h.Range, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Add(good); err != nil {
			t.Fatal(err)
		}
		e := good
		change(&e)
		if err := b.Add(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, wrong := range []format.KeyedSchema{{}, {Wire: "abc"}, {Wire: encodeWire(6, nil)}, {Wire: schema.Wire, States: []format.KeyedState{{Wire: encodeWire(5, []byte("x"))}}}, {Wire: schema.Wire, States: []format.KeyedState{{}}}} {
		if _, err := c.Build(t.Context(), wrong, h.Range, io.Discard); !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// TestBuildAsynchronous: states of the asynchronous API become the classic ones of the same
// entries, with the serializers as Flink records them there.
func TestBuildAsynchronous(t *testing.T) {
	asynchronous := func(name, kind, serializers string, n int) string {
		return utf(name) + i32(4) + i32(1) + utf("KEYED_STATE_TYPE") + utf(kind) + i32(n) + serializers + utf("NAMESPACE_SERIALIZER") + i32(2) + void
	}
	val := func(snapshot string) string { return utf("VALUE_SERIALIZER") + i32(2) + snapshot }
	ttl := func(api string) string {
		return composite("org.apache.flink.runtime.state."+api+"ttl.TtlStateFactory$TtlSerializerSnapshot", 2, simple("Long"), simple("String"))
	}
	aware := utf("org.apache.flink.runtime.state.ttl.TtlAwareSerializerSnapshot") + i32(1) + "\x01"
	key := val(simple("Int")) + utf("USER_KEY_SERIALIZER") + i32(2) + simple("String")
	const list, mapping = base + "ListSerializerSnapshot", base + "MapSerializerSnapshot"
	for _, c := range []struct{ name, in, want string }{
		{"value", asynchronous("s", "VALUE", val(simple("Long")), 2), keyValue("s", "VALUE", simple("Long"))},
		{"list", asynchronous("s", "LIST", val(simple("Long")), 2), keyValue("s", "LIST", composite(list, 1, simple("Long")))},
		{"list of lists", asynchronous("s", "LIST", val(composite(list, 1, simple("Long"))), 2), keyValue("s", "LIST", composite(list, 1, composite(list, 1, simple("Long"))))},
		{"map", asynchronous("s", "MAP", key, 3), keyValue("s", "MAP", composite(mapping, 1, simple("String"), simple("Int")))},
		{"TTL", asynchronous("s", "REDUCING", val(ttl("v2.")), 2), keyValue("s", "REDUCING", ttl(""))},
		{"list with TTL", asynchronous("s", "LIST", val(aware+ttl("v2.")), 2), keyValue("s", "LIST", composite(list, 1, aware+ttl("")))},
		{"map without the serializer of its keys", asynchronous("s", "MAP", val(simple("Int")), 2), ""},
	} {
		start := i32(6) + "\x00" + i32(2) + simple("Long") + i16(1)
		src := inMemory(start + c.in)
		h := &format.KeyGroups{Codec: format.CodecFlink, Savepoint: true, Range: format.KeyGroupRange{Count: 1}, Offsets: format.OffsetSlice{0}, Data: &format.File{Path: format.NewText("f"), Length: int64(len(src))}}
		codec := &Codec{MaxParallelism: 128}
		schema, err := codec.Describe(t.Context(), src, h)
		if err != nil {
			t.Fatal(c.name, err)
		}
		var w bytes.Buffer
		_, err = codec.Build(t.Context(), schema, h.Range, &w)
		switch {
		case c.want == "":
			if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), `state "s": the serializer of its map keys is not recorded`) {
				t.Errorf("%s: %v", c.name, err)
			}
		case err != nil || w.String() != start+c.want:
			t.Errorf("%s: %v: %q, expected %q", c.name, err, w.String(), start+c.want)
		}
	}
}

// TestLengths: keys and namespaces of which neither has a fixed length.
func TestLengths(t *testing.T) {
	header := i32(6) + "\x00" + i32(2) + simple("String") + i16(1) + utf("m") + i32(0) + i32(1) + utf("KEYED_STATE_TYPE") + utf("MAP") + i32(2) +
		utf("VALUE_SERIALIZER") + i32(2) + composite(base+"MapSerializerSnapshot", 1, simple("Int"), simple("Int")) + utf("NAMESPACE_SERIALIZER") + i32(2) + simple("String")
	long := "\xad\x02" + strings.Repeat("k", 300) // a string of 300 characters, in 302 bytes
	key := "\x01\x05" + long + "\x2e\x01" + "\x02n\x02" + i32(9)
	h, src := handleOf(header, i16(0)+ba("\x81"+key[1:])+ba("\x00"+i32(1))+"\xff\xff", emptyGroups[true], true)
	h.Range.First = 0x105 - 35
	c := &Codec{MaxParallelism: 1000}
	all, err := readAll(t, c, src, h, format.KeyedSelection{})
	want := fmt.Sprintf("261.0 %q \"\\x02n\" %q 0 = %q (%q)", long, i32(9), "\x00"+i32(1), key)
	if err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("%v: %q, expected %q", err, all, want)
	}
	for _, i := range []int{304, 305, 308} { // the lengths
		q := []byte(key)
		q[i] ^= 0x40
		q[0] |= lastOfRun
		h, src := handleOf(header, i16(0)+ba(string(q))+ba("\x00"+i32(1))+"\xff\xff", emptyGroups[true], true)
		h.Range.First = 0x105 - 35
		if all, err := readAll(t, c, src, h, format.KeyedSelection{}); err == nil {
			t.Errorf("byte %d of a key flipped: %q", i, all)
		}
	}
}

// counting is a source that remembers where it was read.
type counting struct {
	inMemory
	least, bytes int64
}

func (c *counting) ReadAt(ctx context.Context, s format.Stream, p []byte, off int64) (int, error) {
	if off > 8192 { // the header is read in steps
		c.least = min(c.least, off)
		c.bytes += int64(len(p))
	}
	return c.inMemory.ReadAt(ctx, s, p, off)
}

// TestReadsFromGroup: nothing before the first selected key group is read.
func TestReadsFromGroup(t *testing.T) {
	one := i16(0) + ba("\xa3"+hello+"\x00") + ba(strings.Repeat("x", 1<<20)) + "\xff\xff"
	two := i16(0) + ba("\xa8"+hello+"\x00") + ba(i64(1)) + "\xff\xff"
	h, src := handleOf(exampleHeader("\x00"), one, two, true)
	at := h.Offsets.(format.OffsetSlice)[40]
	s := &counting{inMemory: src, least: 1 << 40}
	all, err := readAll(t, &Codec{MaxParallelism: 128}, s, h, format.KeyedSelection{Groups: format.KeyGroupRange{First: 36, Count: 10}})
	if err != nil || len(all) != 1 || s.least < at || s.bytes > 1000 {
		t.Errorf("%v: %q; read from %d on, %d bytes; the key group starts at %d", err, all, s.least, s.bytes, at)
	}
}

// TestEntryLimit: an entry larger than the limit is refused before it is read.
func TestEntryLimit(t *testing.T) {
	for _, value := range []string{i32(1<<31 - 1), i32(1 << 20)} {
		one := i16(0) + ba("\xa3"+hello+"\x00") + value + strings.Repeat("x", 1<<20) + "\xff\xff"
		h, src := handleOf(exampleHeader("\x00"), one, emptyGroups[true], true)
		if _, err := readAll(t, &Codec{MaxParallelism: 128, MaxEntry: 1 << 19}, src, h, format.KeyedSelection{}); !errors.Is(err, format.ErrLimit) {
			t.Error(err)
		}
	}
	one := i32(35) + i16(3) + i32(1) + "\x00" + hello + i32(1) + "\xff\xff\x7f" + strings.Repeat("x", 1<<20)
	h, src := handleOf(exampleHeader("\x00"), one, i32(40)+emptyGroups[false], false)
	if _, err := readAll(t, &Codec{MaxParallelism: 128, MaxEntry: 1 << 19}, src, h, format.KeyedSelection{}); !errors.Is(err, format.ErrLimit) {
		t.Error(err)
	}
}

// TestEntriesDamaged: cut or flipped anywhere, a key group is an error or has other
// entries; nothing panics.
func TestEntriesDamaged(t *testing.T) {
	c := &Codec{MaxParallelism: 128, MaxEntry: 1 << 20}
	n := 0
	for name, of := range exampleHandles() {
		h, src := of()
		from := int(h.Offsets.(format.OffsetSlice)[35])
		want, _ := readAll(t, c, src, h, format.KeyedSelection{})
		for i := from; i < len(src); i++ {
			for bit := range 8 {
				q := []byte(src)
				q[i] ^= 1 << bit
				got, err := readAll(t, c, inMemory(q), h, format.KeyedSelection{})
				n++
				if err != nil && !isKind(err) {
					t.Errorf("%s: byte %d: %v", name, i, err)
				}
				if err == nil && slices.Equal(got, want) && !strings.HasPrefix(name, "heap") {
					t.Errorf("%s: bit %d of byte %d of %d: not noticed", name, bit, i-from, len(src)-from)
				}
			}
			cut := *h
			cut.Data = &format.File{Path: format.NewText("f"), Length: int64(i)}
			if _, err := readAll(t, c, src[:i], &cut, format.KeyedSelection{}); err == nil || !isKind(err) {
				t.Errorf("%s: %d of %d bytes: %v", name, i, len(src), err)
			}
		}
	}
	t.Logf("%d flips", n)
}

func isKind(err error) bool {
	return errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrLimit)
}

// rawTimers is two key groups of raw timers in version 2.
func rawTimers() (*format.KeyGroups, inMemory) {
	group := func(timers ...string) string {
		return "\xf1\xcd\x85\x9f" + i32(2) + i32(1) + utf("user-timers") + simple("String") + void + i32(len(timers)) + strings.Join(timers, "") + i32(1) + hello + "\x00" + i64(-5)
	}
	one, two := group(), group(hello+"\x00"+i64(1700000000000), "\x02x\x00"+i64(3))
	p := one + two
	return &format.KeyGroups{
		Codec: format.CodecRaw, Range: format.KeyGroupRange{First: 34, Count: 3}, Offsets: format.OffsetSlice{0, int64(len(one)), -1},
		Data: &format.File{Path: format.NewText("f"), Length: int64(len(p))},
	}, inMemory(p)
}

// unversionedTimers is two key groups of raw timers of Flink 1.3.
func unversionedTimers() (*format.KeyGroups, inMemory) {
	object := func(class string) string { // without fields
		return "\xac\xed\x00\x05sr" + utf(class) + i64(1) + "\x02\x00\x00xp"
	}
	serializers := object("org.apache.flink.api.common.typeutils.base.StringSerializer") + object("org.apache.flink.streaming.api.windowing.windows.TimeWindow$Serializer")
	one := i32(1) + utf("t") + serializers + i32(0) + i32(1) + hello + i64(0) + i64(60) + i64(59)
	two := i32(0) // a key group without services
	return &format.KeyGroups{
		Codec: format.CodecRaw, Range: format.KeyGroupRange{First: 35, Count: 2}, Offsets: format.OffsetSlice{int64(len(two)), 0},
		Data: &format.File{Path: format.NewText("f"), Length: int64(len(two) + len(one))},
	}, inMemory(two + one)
}

// TestUnversionedTimers: before Flink 1.4.1 timers had neither identifier nor snapshots.
func TestUnversionedTimers(t *testing.T) {
	c := &Codec{MaxParallelism: 128}
	h, src := unversionedTimers()
	all, err := readAll(t, c, src, h, format.KeyedSelection{})
	window := i64(0) + i64(60)
	if len(all) != 1 || err != nil {
		t.Fatal(all, err)
	}
	if want := fmt.Sprintf("35.1 %q %q \"\" 59 = ", hello, window); !strings.HasPrefix(all[0], want) {
		t.Errorf("%s, expected %s", all[0], want)
	}
	for n := range src { // cut short: never entries that are not there
		cut := *h
		cut.Data = &format.File{Path: format.NewText("f"), Length: int64(n)}
		if all, err := readAll(t, c, src[:n], &cut, format.KeyedSelection{}); n > 4 && err == nil || len(all) > 0 {
			t.Errorf("%d bytes: %v, %v", n, all, err)
		}
	}
	user := inMemory(i32(3) + utf("not a serializer") + "\x00\x00\x00\x00")
	h = &format.KeyGroups{Codec: format.CodecRaw, Range: format.KeyGroupRange{First: 0, Count: 1}, Offsets: format.OffsetSlice{0}, Data: &format.File{Path: format.NewText("f"), Length: int64(len(user))}}
	if _, err := readAll(t, c, user, h, format.KeyedSelection{}); !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "user code") {
		t.Error(err)
	}
}

// TestRawTimers: timers of raw keyed state look like those of managed state.
func TestRawTimers(t *testing.T) {
	c := &Codec{MaxParallelism: 128}
	h, src := rawTimers()
	all, err := readAll(t, c, src, h, format.KeyedSelection{})
	want := []string{
		`34.1 "\x06hello" "\x00" "" -5 = "" ("\"\x7f\xff\xff\xff\xff\xff\xff\xfb\x06hello\x00")`,
		`35.0 "\x02x" "\x00" "" 3 = "" ("#\x80\x00\x00\x00\x00\x00\x00\x03\x02x\x00")`,
		`35.0 "\x06hello" "\x00" "" 1700000000000 = "" ("#\x80\x00\x01\x8b\xcf\xe5h\x00\x06hello\x00")`,
		`35.1 "\x06hello" "\x00" "" -5 = "" ("#\x7f\xff\xff\xff\xff\xff\xff\xfb\x06hello\x00")`,
	}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%v\n%s", err, strings.Join(all, "\n"))
	}
	schema, err := c.Describe(t.Context(), src, h)
	if err != nil || len(schema.States) != 2 || schema.States[0].Name.String() != "_timer_state/event_user-timers" || schema.States[1].Kind != "timers" {
		t.Errorf("%v, %+v", err, schema)
	}
	// Canonical state can be built of them.
	var w bytes.Buffer
	b, err := c.Build(t.Context(), schema, h.Range, &w)
	if err != nil {
		t.Fatal(err)
	}
	if err := format.EachKeyedEntry(t.Context(), src, c, h, format.KeyedSelection{}, b.Add); err != nil {
		t.Fatal(err)
	}
	out, err := b.Handle()
	if err != nil {
		t.Fatal(err)
	}
	out.Data = &format.File{Path: format.NewText("f"), Length: int64(w.Len())}
	if again, err := readAll(t, c, inMemory(w.String()), out, format.KeyedSelection{}); err != nil || !slices.Equal(again, want) {
		t.Errorf("%v\n%s", err, strings.Join(again, "\n"))
	}
	for i := range src {
		q := []byte(src)
		q[i] ^= 0x11
		if _, err := readAll(t, c, inMemory(q), h, format.KeyedSelection{}); err != nil && !isKind(err) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
}

// FuzzEntries: any bytes as a key group in each encoding.
func FuzzEntries(f *testing.F) {
	f.Add([]byte(canonicalGroup()), byte(0))
	f.Add([]byte(frame(canonicalGroup())), byte(1))
	f.Add([]byte(i32(35)+strings.Join(heapGroup(), "")), byte(2))
	f.Add([]byte(i32(35)+frame(heapGroup()...)), byte(3))
	_, raw := rawTimers()
	f.Add([]byte(raw), byte(4))
	_, unversioned := unversionedTimers()
	f.Add([]byte(unversioned), byte(4))
	f.Fuzz(func(t *testing.T, p []byte, kind byte) {
		c := &Codec{MaxParallelism: 128, MaxEntry: 1 << 20}
		header := exampleHeader(string([]byte{kind & 1}))
		h, src := handleOf(header, string(p), "", kind&2 == 0)
		h.Offsets.(format.OffsetSlice)[40] = 0
		if kind&4 != 0 {
			h, _ = rawTimers()
			h.Data = &format.File{Path: format.NewText("f"), Length: int64(len(p))}
			src = inMemory(p)
		}
		all, err := readAll(t, c, src, h, format.KeyedSelection{})
		if err != nil {
			if !isKind(err) {
				t.Fatal(err)
			}
			return
		}
		for _, s := range all {
			if !strings.HasPrefix(s, "3") {
				t.Fatalf("%s: outside the key groups", s)
			}
		}
	})
}

// FuzzChanges: any bytes as a change of each state.
func FuzzChanges(f *testing.F) {
	for i, s := range []string{"\x01\x00\x00" + hello + "\x00" + i64(9), "\x00\x00\x00" + hello + "\x00", "\x06\x00\x01" + hello + "\x00\x02c" + i32(3), "\x03\x00\x01" + hello + "\x00" + i32(1) + "\x02a\x01", "\x07\x00\x01" + hello + "\x00\x02a", "\x05\x00\x02" + i32(1) + flipped(5) + hello + "\x00", "\x07\x00\x02" + flipped(1700000000000) + hello + "\x00", "\x05\x00\x03" + hello + "\x00\x02y", "\x04\x00\x03" + hello + "\x00\x00" + i32(1) + "\x00"} {
		f.Add([]byte(s), []byte(s), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, a, b []byte, base bool) {
		c := &Codec{MaxParallelism: 128, MaxEntry: 1 << 20}
		m, src := handleOf(exampleHeader("\x00"), canonicalGroup(), emptyGroups[true], true)
		h := changelogOf(string(a), string(b))
		if base {
			h.Materialized = []format.KeyedHandle{m}
		}
		if _, err := readAll(t, c, src, h, format.KeyedSelection{}); err != nil && !isKind(err) {
			t.Fatal(err)
		}
	})
}

// changelogOf returns a changelog of changes in key group 35, after the states of the
// example were registered.
func changelogOf(changes ...string) *format.Changelog {
	header, err := parse([]byte(exampleHeader("\x00")))
	if err != nil {
		panic(err)
	}
	l := &format.ChangelogMemory{Range: format.KeyGroupRange{Count: 64}}
	add := func(group int32, s string) {
		l.Changes = append(l.Changes, format.Change{KeyGroup: group, Data: format.NewBytes([]byte(s))})
	}
	for i, m := range header.meta {
		add(-1, "\x08"+i32(7)+string(m)+"\x00\x00"+i16(i)+"\x00")
	}
	for _, s := range changes {
		add(35, s)
	}
	return &format.Changelog{Range: format.KeyGroupRange{Count: 64}, Changes: []format.KeyedHandle{l}}
}

// TestChanges: what changes make of materialized state, and of none.
func TestChanges(t *testing.T) {
	m, src := handleOf(exampleHeader("\x00"), canonicalGroup(), emptyGroups[true], true)
	k := hello + "\x00"
	for name, x := range map[string]struct {
		changes []string
		state   int
		based   string // values with materialized state
		alone   string // and without
	}{
		"a value":              {[]string{"\x01\x00\x00" + k + i64(9)}, 0, i64(9), i64(9)},
		"a cleared value":      {[]string{"\x01\x00\x00" + k + i64(9), "\x00\x00\x00" + k}, 0, "", ""},
		"an unchanged value":   {nil, 0, i64(7), ""},
		"a map entry":          {[]string{"\x06\x00\x01" + k + "\x02c" + i32(3)}, 1, "\x00" + i32(1) + "|\x01\x00|\x00" + i32(3), "\x00" + i32(3)},
		"a map entry replaced": {[]string{"\x06\x00\x01" + k + "\x02b" + i32(3)}, 1, "\x00" + i32(1) + "|\x00" + i32(3), "\x00" + i32(3)},
		"a null":               {[]string{"\x03\x00\x01" + k + i32(1) + "\x02a\x01"}, 1, "\x01|\x01\x00", "\x01"},
		"a map entry removed":  {[]string{"\x07\x00\x01" + k + "\x02a"}, 1, "\x01\x00", ""},
		"a map cleared":        {[]string{"\x06\x00\x01" + k + "\x02z" + i32(3), "\x00\x00\x01" + k, "\x06\x00\x01" + k + "\x02b" + i32(4)}, 1, "\x00" + i32(4), "\x00" + i32(4)},
		"a timer":              {[]string{"\x05\x00\x02" + i32(1) + flipped(5) + k}, 2, "|", ""},
		"a timer twice":        {[]string{"\x05\x00\x02" + i32(1) + flipped(1700000000000) + k}, 2, "", ""},
		"a timer removed":      {[]string{"\x05\x00\x02" + i32(1) + flipped(5) + k, "\x07\x00\x02" + flipped(1700000000000) + k}, 2, "", ""},
		"an element":           {[]string{"\x05\x00\x03" + k + "\x02y"}, 3, "\x02x,\x02,,\x02y", "\x02y"},
		"elements":             {[]string{"\x03\x00\x03" + k + i32(2) + "\x02y\x02z"}, 3, "\x02x,\x02,,\x02y,\x02z", "\x02y,\x02z"},
		"a list":               {[]string{"\x05\x00\x03" + k + "\x02q", "\x02\x00\x03" + k + i32(1) + "\x02y"}, 3, "\x02y", "\x02y"},
		"an empty list":        {[]string{"\x02\x00\x03" + k + i32(0)}, 3, "", ""},
	} {
		for _, based := range []bool{true, false} {
			h := changelogOf(x.changes...)
			want := x.alone
			if based {
				h.Materialized, want = []format.KeyedHandle{nil, m}, x.based
			}
			var values []string
			err := format.EachKeyedEntry(t.Context(), src, &Codec{MaxParallelism: 128}, h, format.KeyedSelection{States: []int{x.state}}, func(e format.KeyedEntry) error {
				values = append(values, string(e.Value))
				return nil
			})
			if got := strings.Join(values, "|"); err != nil || got != want {
				t.Errorf("%s, based %v: %q, expected %q: %v", name, based, got, want, err)
			}
		}
	}
	for want, change := range map[string]string{
		"is not registered":    "\x01\x00\x09" + k + i64(9),
		"operation 6":          "\x06\x00\x00" + k + i64(9),
		"by a function":        "\x04\x00\x00" + k + "\x00" + i32(0),
		"bytes after a change": "\x01\x00\x00" + k + i64(9) + "x",
		"ends too early":       "\x01\x00\x00" + k + "123",
		"a change of 2 bytes":  "\x01\x00",
		"elements of a list":   "\x02\x00\x03" + k + i32(-1),
		"expected 0 or 1":      "\x03\x00\x01" + k + i32(1) + "\x02a\x02",
		"operation 1 on state": "\x01\x00\x02" + flipped(1) + k,
	} {
		h := changelogOf(change)
		h.Materialized = []format.KeyedHandle{m}
		if _, err := readAll(t, &Codec{MaxParallelism: 128}, src, h, format.KeyedSelection{}); !isKind(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
