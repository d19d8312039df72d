package sptest_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"github.com/savepoint-tools/spt/internal/sptest"
)

func TestBuf(t *testing.T) {
	var b sptest.Buf
	b.U8(1).I32(-2).I64(3).UTF("é").Blob("ab").Raw("c").Hex("de ad")
	want := "\x01\xff\xff\xff\xfe\x00\x00\x00\x00\x00\x00\x00\x03\x00\x02\xc3\xa9\x00\x00\x00\x02abc\xde\xad"
	if string(b.B) != want || b.Len() != len(want) {
		t.Errorf("%q", b.B)
	}
}

func TestUnion(t *testing.T) {
	for _, o := range []sptest.UnionOptions{
		{Subtasks: 1, Elements: 0, ElementSize: 8},
		{Subtasks: 2, Elements: 3, ElementSize: 5, Seed: 7},
		{Subtasks: 3, Elements: 5000, ElementSize: 100, Copies: true},
		sptest.UnionOfSize(3 << 20),
	} {
		var a, b bytes.Buffer
		if err := sptest.WriteUnion(&a, o); err != nil {
			t.Fatal(err)
		}
		if int64(a.Len()) != o.Size() {
			t.Errorf("%+v: %d bytes, Size says %d", o, a.Len(), o.Size())
		}
		if err := sptest.WriteUnion(&b, o); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%+v: not the same twice, %v", o, err)
		}
	}
	if n := sptest.UnionOfSize(320 << 20).Size(); n < 320<<20 || n > 323<<20 {
		t.Errorf("320 MB are %d bytes", n)
	}
}

// TestUnionElements: each offset is where an element starts, and copies are
// copies.
func TestUnionElements(t *testing.T) {
	for _, copies := range []bool{false, true} {
		var file bytes.Buffer
		o := sptest.UnionOptions{Subtasks: 2, Elements: 4, ElementSize: 20, Copies: copies}
		if err := sptest.WriteUnion(&file, o); err != nil {
			t.Fatal(err)
		}
		var streams [][]byte
		rest := file.Bytes()
		for range 2 {
			i := bytes.Index(rest, []byte("\x00\x08elements\x01\x00\x00\x00\x04"))
			rest = rest[i+15:]
			offsets, blob := rest[:32], rest[32+1:]
			blob = blob[2+int(binary.BigEndian.Uint16(blob)):]
			blob = blob[4 : 4+binary.BigEndian.Uint32(blob)]
			for e := range 4 {
				at := binary.BigEndian.Uint64(offsets[8*e:])
				if n := binary.BigEndian.Uint32(blob[at:]); n != 20 || int(at)+24+(3-e)*24 != len(blob) {
					t.Errorf("element %d: %d bytes at %d of %d", e, n, at, len(blob))
				}
			}
			streams = append(streams, blob)
		}
		if bytes.Equal(streams[0], streams[1]) != copies {
			t.Errorf("copies %v: equal %v", copies, !copies)
		}
	}
}

func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := sptest.WriteUnion(io.Discard, sptest.UnionOfSize(32<<20)); err != nil {
		t.Fatal(err)
	}
	if err := sptest.SmallStates(io.Discard, sptest.SmallOptions{Operators: 100, Subtasks: 32, ElementSize: 32}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}
