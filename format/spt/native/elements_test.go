package native_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/limit"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// sample is a handle written by hand: all three modes, empty states between
// them, and two states of one length.
func sample(t testing.TB) (*format.OperatorHandle, map[string][][]byte) {
	data := unhex(t, `
		01                   // 0  "list"/0: 1
		a2 68 69             // 1  "list"/1: "hi"
		92 01 c0             // 4  "list"/2: [1, nil]
		                     //    "none" has no element
		c3                   // 7  "union"/0: true
		a2 79 6f             // 8  "union"/1: "yo"
		92 02 c0             // 11 "union"/2: [2, nil]
		82 01 a1 78 a1 6b 02 // 14 "rules": {1: "x", "k": 2}
		80                   // 21 "no rules": {}
	`)
	of := func(offsets ...int64) format.OffsetSlice { return offsets }
	state := func(name string, m format.Mode, o format.Offsets) format.NamedState {
		return format.NamedState{Name: format.NewText(name), Mode: m, Offsets: o}
	}
	h := &format.OperatorHandle{
		Codec: format.CodecNative, Data: inline(data),
		States: []format.NamedState{
			state("empty", format.ModeList, of()),
			state("list", format.ModeList, of(0, 1, 4)),
			state("none", format.ModeUnion, nil),
			state("union", format.ModeUnion, of(7, 8, 11)),
			state("rules", format.ModeBroadcast, of(14)),
			state("no rules", format.ModeBroadcast, of(21)),
			state("last", format.ModeList, of()),
		},
	}
	want := map[string][][]byte{
		"empty": nil, "none": nil, "last": nil,
		"list":     {data[0:1], data[1:4], data[4:7]},
		"union":    {data[7:8], data[8:11], data[11:14]},
		"rules":    {data[14:21]},
		"no rules": {data[21:22]},
	}
	return h, want
}

func TestElements(t *testing.T) {
	h, want := sample(t)
	for name, elements := range want {
		for from := range len(elements) + 1 {
			got, err := readState(&memory{}, h, name, int64(from))
			if err != nil || cmp.Diff(got, elements[from:], cmp.Comparer(equalAll)) != "" {
				t.Errorf("%q from %d: % x, %v, want % x", name, from, got, err, elements[from:])
			}
		}
	}
}

func equalAll(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func TestDescribe(t *testing.T) {
	h, _ := sample(t)
	src := &memory{}
	metas, err := native.Codec{}.Describe(context.Background(), src, h)
	if err != nil || len(metas) != 7 || src.reads != 0 {
		t.Fatalf("%d states, %d reads, %v", len(metas), src.reads, err)
	}
	if m := metas[3]; m.Name.String() != "union" || m.Mode != format.ModeUnion || m.Envelope != nil {
		t.Errorf("%+v", m)
	}
}

func TestElementsRefuses(t *testing.T) {
	open := func(change func(*format.OperatorHandle), state string, from int64) error {
		h, _ := sample(t)
		change(h)
		_, err := readState(&memory{}, h, state, from)
		return err
	}
	as := func(*format.OperatorHandle) {}
	for name, c := range map[string]struct {
		err  error
		kind error // nil: a mistake of the caller
		want string
	}{
		"no such state": {open(as, "liste", 0), nil, `no state "liste"`},
		"beyond":        {open(as, "list", 4), nil, `element 4 of state "list" is out of range: the state has 3`},
		"negative":      {open(as, "list", -1), nil, `element -1 of state "list" is out of range`},
		"other codec": {open(func(h *format.OperatorHandle) { h.Codec = format.CodecFlink }, "list", 0),
			format.ErrUnsupported, `codec "flink"`},
		"a mode that is none": {open(func(h *format.OperatorHandle) { h.States[1].Mode = 3 }, "list", 0),
			format.ErrCorrupt, `state "list": expected list, union or broadcast, found mode 3`},
		"one name twice": {open(func(h *format.OperatorHandle) { h.States[3].Name = h.States[1].Name }, "list", 0),
			format.ErrCorrupt, `state "list": duplicate state`},
		"broadcast without map": {open(func(h *format.OperatorHandle) { h.States[4].Offsets = nil }, "rules", 0),
			format.ErrCorrupt, `state "rules": expected one element of a broadcast state, its map, found 0`},
		"broadcast with two": {open(func(h *format.OperatorHandle) { h.States[4].Offsets = format.OffsetSlice{14, 15} }, "rules", 0),
			format.ErrCorrupt, `expected one element of a broadcast state, its map, found 2`},
		"an element of nothing": {open(func(h *format.OperatorHandle) { h.States[1].Offsets = format.OffsetSlice{0, 0, 4} }, "list", 0),
			format.ErrCorrupt, `state "list"/element 0: range [0, 0) is empty`},
		"descending": {open(func(h *format.OperatorHandle) { h.States[1].Offsets = format.OffsetSlice{0, 4, 1} }, "list", 1),
			format.ErrCorrupt, `state "list"/element 1: range [4, 1) is empty`},
		"before the stream": {open(func(h *format.OperatorHandle) { h.States[1].Offsets = format.OffsetSlice{-1, 1, 4} }, "list", 0),
			format.ErrCorrupt, `range [-1, 1) is outside the stream (22 bytes)`},
		"behind the stream": {open(func(h *format.OperatorHandle) { h.States[5].Offsets = format.OffsetSlice{22} }, "no rules", 0),
			format.ErrCorrupt, `range [22, 22) is empty`},
		"two values": {open(func(h *format.OperatorHandle) { h.States[1].Offsets = format.OffsetSlice{0, 4} }, "list", 0),
			format.ErrCorrupt, `state "list"/element 0: 3 bytes after a msgpack value of 1 bytes`},
		"half a value": {open(func(h *format.OperatorHandle) { h.States[1].Offsets = format.OffsetSlice{0, 1, 2} }, "list", 1),
			format.ErrCorrupt, `state "list"/element 1: a msgpack value does not end within its 1 bytes`},
		"no map": {open(func(h *format.OperatorHandle) {
			h.States = []format.NamedState{{Mode: format.ModeBroadcast, Offsets: format.OffsetSlice{0}}}
			h.Data = inline(make([]byte, 1))
		}, "", 0), format.ErrCorrupt, `expected a map, found msgpack code`},
		"bytes before the first": {open(func(h *format.OperatorHandle) { h.States[1].Offsets = format.OffsetSlice{1, 3, 4} }, "rules", 0),
			format.ErrCorrupt, `state "list": the first 1 bytes of the stream do not belong to an element`},
		"a map out of order": {open(func(h *format.OperatorHandle) { h.Data = inline([]byte{0x82, 2, 0, 1, 0}); h.States = ruleOnly() }, "rules", 0),
			format.ErrCorrupt, `are not in ascending order at entry 1`},
		"a map with a key twice": {open(func(h *format.OperatorHandle) { h.Data = inline([]byte{0x82, 2, 0, 2, 0}); h.States = ruleOnly() }, "rules", 0),
			format.ErrCorrupt, `are not in ascending order at entry 1`},
		"no stream": {open(func(h *format.OperatorHandle) { h.Data = nil }, "list", 0),
			format.ErrCorrupt, `is outside the stream (0 bytes)`},
		"unknown size": {open(func(h *format.OperatorHandle) { h.Data = &format.File{Length: -1} }, "list", 0),
			format.ErrUnsupported, `length of a native state stream is unknown`},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || c.kind != nil && !errors.Is(c.err, c.kind) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

func ruleOnly() []format.NamedState {
	return []format.NamedState{{Name: format.NewText("rules"), Mode: format.ModeBroadcast, Offsets: format.OffsetSlice{0}}}
}

// A stream that was cut anywhere is noticed by whoever reads all states. A
// changed byte may make another value, but no element of other bytes: the
// container's checksums are for that.
func TestElementsDamaged(t *testing.T) {
	h, want := sample(t)
	data := make([]byte, h.Data.Size())
	if _, err := (&memory{}).read(h.Data, data, 0); err != nil {
		t.Fatal(err)
	}
	all := func(data []byte) error {
		c := *h
		c.Data = inline(data)
		var errs []error
		for name, elements := range want {
			got, err := readState(&memory{}, &c, name, 0)
			errs = append(errs, err)
			if err == nil && len(bytes.Join(got, nil)) != len(bytes.Join(elements, nil)) {
				t.Errorf("%q: % x", name, got)
			}
		}
		return errors.Join(errs...)
	}
	if err := all(data); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		wantKind(t, all(data[:n]), fmt.Sprintf("cut to %d", n), format.ErrCorrupt)
	}
	found := 0
	for i := range data {
		for bit := range 8 {
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << bit
			if err := all(flipped); err != nil {
				wantKind(t, err, fmt.Sprintf("bit %d of byte %d", bit, i), format.ErrCorrupt)
				found++
			}
		}
	}
	if found < 60 { // 22 bytes, of which the heads of the values matter
		t.Errorf("only %d flips were noticed", found)
	}
}

func TestBuild(t *testing.T) {
	h, want := sample(t)
	var parts []native.StateParts
	for _, s := range []string{"rules", "union", "empty", "list"} { // another order, some left out
		for _, st := range h.States {
			if st.Name.String() != s {
				continue
			}
			p := native.StateParts{StateMeta: format.StateMeta{Name: st.Name, Mode: st.Mode}}
			at, _ := format.OffsetAt(context.Background(), st.Offsets, 0)
			for _, e := range want[s] {
				p.Elements = append(p.Elements, format.Part{Of: h.Data, Off: at, N: int64(len(e))})
				at += int64(len(e))
			}
			parts = append(parts, p)
		}
	}
	parts[3].Elements = append(parts[3].Elements, format.Literal([]byte{0xc0}))
	built, err := native.Assemble(parts)
	if err != nil {
		t.Fatal(err)
	}
	rope := built.Data.(*format.Concat)
	if len(rope.Parts) != 4 || rope.Size() != 7+7+7+1 {
		t.Errorf("%d parts and %d bytes, want 4 (neighbours are one) and 22", len(rope.Parts), rope.Size())
	}
	if got := built.States[3].Offsets; cmp.Diff(got, format.Offsets(format.OffsetSlice{14, 15, 18, 21})) != "" {
		t.Errorf("offsets %v", got)
	}
	want["list"] = append(want["list"], []byte{0xc0})
	for _, s := range []string{"rules", "union", "empty", "list"} {
		got, err := readState(&memory{}, built, s, 0)
		if err != nil || !equalAll(got, want[s]) {
			t.Errorf("%q: % x, %v", s, got, err)
		}
	}
	for name, bad := range map[string][]native.StateParts{
		"no map":       {{StateMeta: format.StateMeta{Mode: format.ModeBroadcast}}},
		"mode 3":       {{StateMeta: format.StateMeta{Mode: 3}}},
		"one name":     {{}, {}},
		"empty part":   {{Elements: []format.Part{format.Literal(nil)}}},
		"minus a byte": {{Elements: []format.Part{{Of: h.Data, N: -1}}}},
	} {
		if _, err := native.Assemble(bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestBuildCut: entries taken out of a map, and what cannot be.
func TestBuildCut(t *testing.T) {
	h, want := sample(t)
	k := slices.IndexFunc(h.States, func(s format.NamedState) bool { return s.Mode == format.ModeBroadcast })
	name := h.States[k].Name.String()
	var last format.MapRange
	n := 0
	err := format.EachEntry(t.Context(), &memory{}, native.Codec{}, h, name, func(e format.MapEntry) error {
		n++
		last = format.MapRange{Off: e.Off, N: int64(len(e.Stored))}
		return nil
	})
	if err != nil || n != 2 {
		t.Fatal(n, err)
	}
	states := func(cut format.MapCut) []format.StateRuns {
		return []format.StateRuns{{StateMeta: format.StateMeta{Name: h.States[k].Name, Mode: format.ModeBroadcast}, Runs: []format.ElementRun{{Handle: h, State: k, Count: 1}}, Map: &cut}}
	}
	built, err := native.Codec{}.Build(t.Context(), &memory{}, states(format.MapCut{Count: 1, Ranges: []format.MapRange{last}}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readState(&memory{}, built, name, 0)
	if p := want[name][0]; err != nil || len(got) != 1 || string(got[0]) != "\x81"+string(p[last.Off:]) {
		t.Errorf("% x, %v", got, err)
	}
	for what, cut := range map[string]format.MapCut{
		"behind the end": {Count: 1, Ranges: []format.MapRange{{Off: last.Off, N: last.N + 1}}},
		"the head":       {Count: 1, Ranges: []format.MapRange{{N: 1}}},
		"overflow":       {Count: 1, Ranges: []format.MapRange{{Off: 1, N: 1<<63 - 1}}},
		"a count":        {Count: -1},
	} {
		if _, err := (native.Codec{}).Build(t.Context(), &memory{}, states(cut)); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	list := states(format.MapCut{})
	list[0].Mode = format.ModeList
	if _, err := (native.Codec{}).Build(t.Context(), &memory{}, list); err == nil {
		t.Error("a list is cut")
	}
}

// Elements of sizes around those of the buffers, opened at random: each costs
// one read of exactly its bytes, and sequential reading few.
func TestElementsReads(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var sizes []int
	for range 2000 {
		sizes = append(sizes, 1+r.IntN(200))
	}
	sizes = append(sizes, 64<<10-1, 64<<10, 64<<10+1, 1<<20-1, 1<<20, 1<<20+1, 5<<20, 3, 1)
	var parts native.StateParts
	var elements [][]byte
	var data []byte
	for i, n := range sizes {
		e := mustMarshal(t, bytes.Repeat([]byte{byte(i)}, n))
		elements = append(elements, e)
		data = append(data, e...)
	}
	stream := inline(data)
	at := int64(0)
	for _, e := range elements {
		parts.Elements = append(parts.Elements, format.Part{Of: stream, Off: at, N: int64(len(e))})
		at += int64(len(e))
	}
	h, err := native.Assemble([]native.StateParts{parts})
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		i := r.IntN(len(elements))
		if i%3 == 0 {
			i = len(elements) - 1 - i%9
		}
		src := &memory{}
		cur, err := native.Codec{}.Elements(context.Background(), src, h, "", int64(i))
		if err != nil {
			t.Fatal(err)
		}
		e, err := cur.Next()
		steps := 1 + len(elements[i])/(1<<20)
		if err != nil || e.Index != int64(i) || !bytes.Equal(e.Value, elements[i]) || src.reads > steps || src.bytes != int64(len(elements[i])) {
			t.Fatalf("element %d of %d bytes: %d, %v, %d reads of %d bytes", i, len(elements[i]), e.Index, err, src.reads, src.bytes)
		}
	}
	src := &memory{}
	got, err := readState(src, h, "", 0)
	if err != nil || !equalAll(got, elements) {
		t.Fatalf("%d elements, %v", len(got), err)
	}
	if src.reads > 30 || src.bytes > int64(len(data))+16<<20 {
		t.Errorf("%d reads of %d bytes for %d", src.reads, src.bytes, len(data))
	}
}

// endless is a stream of elements of one kilobyte each, made when it is read.
type endless struct {
	n       int64
	claimed int64
}

const endlessElement = 1024

func (e endless) Len() int64 { return e.n }

func (e endless) Read(_ context.Context, dst []int64, from int64) (int, error) {
	k := int(min(int64(len(dst)), e.n-from))
	for i := range dst[:k] {
		dst[i] = (from + int64(i)) * endlessElement
	}
	return k, nil
}

func (e endless) ReadAt(_ context.Context, s format.Stream, p []byte, off int64) (int, error) {
	have := e.n * endlessElement
	for i := range p {
		if off+int64(i) >= have {
			return i, format.Errorf(format.ErrTruncated, "the stream ends at %d", have)
		}
		switch (off + int64(i)) % endlessElement {
		case 0:
			p[i] = 0xc5 // binary of 1021 bytes
		case 1:
			p[i] = 0x03
		case 2:
			p[i] = 0xfd
		default:
			p[i] = 7
		}
	}
	return len(p), nil
}

func (e endless) handle() *format.OperatorHandle {
	return &format.OperatorHandle{
		Codec:  format.CodecNative,
		Data:   &format.Chunks{Length: e.n*endlessElement + e.claimed},
		States: []format.NamedState{{Name: format.NewText("s"), Offsets: e}},
	}
}

func TestElementsMemory(t *testing.T) {
	testenv.Long(t, "reads 1 GiB")
	e := endless{n: 1 << 20}
	cur, err := native.Codec{}.Elements(context.Background(), e, e.handle(), "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	for i := int64(0); ; i++ {
		if _, err := cur.Next(); err == io.EOF {
			if i != e.n {
				t.Errorf("%d elements", i)
			}
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if i%(e.n/4) == 0 {
			if grown := heap() - before; grown > 1<<20 {
				t.Fatalf("%d bytes of heap at element %d", grown, i)
			}
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A length is a claim: one over the limit is refused, and for one within it no
// more is allocated than was there.
func TestElementsClaims(t *testing.T) {
	last := func(claimed int64) (int64, error) {
		e := endless{n: 2, claimed: claimed}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readState(e, e.handle(), "s", 1)
		runtime.ReadMemStats(&after)
		return int64(after.TotalAlloc - before.TotalAlloc), err
	}
	n, err := last(native.MaxValue - endlessElement + 1)
	wantKind(t, err, "limit+1", format.ErrLimit)
	if n > 1<<20 {
		t.Errorf("%d bytes were allocated for a refusal", n)
	}
	n, err = last(native.MaxValue - endlessElement)
	wantKind(t, err, "limit, without the bytes", format.ErrTruncated)
	if n > 4<<20 {
		t.Errorf("%d bytes were allocated for a claim", n)
	}
}

// bounded is a source that allows less of a value.
type bounded struct {
	format.Source
	most int64
}

func (b bounded) MaxValue() int64 { return b.most }

// A source may bound values: a few chunks of a small file that repeat make one of
// a gigabyte, whose bytes are all there.
func TestElementsBoundOfSource(t *testing.T) {
	h, want := sample(t)
	for most, reads := range map[int64]int{1: 1, 2: 1, 3: 3, 4: 3} { // 1, "hi" and [1, nil] take 1, 3 and 3 bytes
		got, err := readState(bounded{&memory{}, most}, h, "list", 0)
		if !equalAll(got, want["list"][:reads]) || (err == nil) != (reads == 3) {
			t.Errorf("at most %d bytes: %x, %v", most, got, err)
		}
		if err != nil {
			wantKind(t, err, "list", limit.Value)
		}
	}
}

func TestElementsCancelledAndClosed(t *testing.T) {
	h, _ := sample(t)
	failing := errors.New("the source fails")
	cur, err := native.Codec{}.Elements(context.Background(), sourceFunc(func() error { return failing }), h, "list", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cur.Next(); !errors.Is(err, failing) || !strings.Contains(err.Error(), `state "list"/element 0`) {
		t.Errorf("%v", err)
	}
	if err := cur.Close(); err != nil {
		t.Error(err)
	}
	if _, err := cur.Next(); err == nil || err == io.EOF {
		t.Errorf("a closed cursor gives %v", err)
	}
}

type sourceFunc func() error

func (f sourceFunc) ReadAt(context.Context, format.Stream, []byte, int64) (int, error) { return 0, f() }
