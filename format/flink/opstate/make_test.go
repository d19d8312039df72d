package opstate_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/snappy"

	"github.com/savepoint-tools/spt/format"
)

// A writer of streams for tests, straight from the spec; it shares nothing
// with the code under test.

type state struct {
	name     string
	mode     format.Mode
	class    string // of the serializer snapshot; "": that of byte arrays
	elements []string
}

type how struct {
	version int
	framed  string // "", "one header", "header per state"
	// unflushed: offsets as a release without the fix of FLINK-34063 has them.
	unflushed bool
}

const bytesClass = "org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot"

type out struct{ p []byte }

func (o *out) i8(v int)     { o.p = append(o.p, byte(v)) }
func (o *out) i16(v int)    { o.p = binary.BigEndian.AppendUint16(o.p, uint16(v)) }
func (o *out) i32(v int)    { o.p = binary.BigEndian.AppendUint32(o.p, uint32(v)) }
func (o *out) utf(s string) { o.i16(len(s)); o.p = append(o.p, s...) }
func (o *out) snapshot(class string) {
	o.i32(2)
	o.utf(class)
	o.i32(3)
}

// block is serializers as Flink 1.3 to 1.6 wrote them, n of them.
func (o *out) block(n int) {
	var one out
	one.i32(1) // the serializer: a Java null
	one.i32(5)
	one.p = append(one.p, 0xac, 0xed, 0, 5, 0x70)
	config := len(one.p)
	one.i32(1)
	one.utf("org.apache.flink.api.common.typeutils.ParameterlessTypeSerializerConfig")
	one.i32(1)
	one.utf("a serializer")
	o.i32(n)
	for i := range n {
		o.i32(i * len(one.p))
		o.i32(i*len(one.p) + config)
	}
	o.i32(n * len(one.p))
	for range n {
		o.p = append(o.p, one.p...)
	}
}

func (o *out) meta(version int, s state) {
	n := 1
	if s.mode == format.ModeBroadcast {
		n = 2
	}
	class := s.class
	if class == "" {
		class = bytesClass
	}
	keys := []string{"VALUE_SERIALIZER", "KEY_SERIALIZER"}[:n]
	o.utf(s.name)
	if version == 1 {
		o.i8(int(s.mode))
		o.p = append(o.p, 0xac, 0xed, 0, 5, 0x70)
		return
	}
	if version < 4 {
		o.i8(int(s.mode))
		o.block(n)
		return
	}
	o.i32(n)
	o.i32(1)
	o.utf("OPERATOR_STATE_DISTRIBUTION_MODE")
	o.utf([]string{"SPLIT_DISTRIBUTE", "UNION", "BROADCAST"}[s.mode])
	o.i32(n)
	for _, k := range keys {
		o.utf(k)
		if version > 4 {
			o.snapshot(class)
		}
	}
	if version == 4 {
		o.block(n)
	}
}

const header = "\xff\x06\x00\x00sNaPpY"

// chunk is one snappy chunk.
func chunk(data string) []byte {
	c := crc32.Checksum([]byte(data), crc32.MakeTable(crc32.Castagnoli))
	kind, body := byte(0), string(snappy.Encode(nil, []byte(data)))
	if float64(len(body)) > 0.85*float64(len(data)) {
		kind, body = 1, data
	}
	n := len(body) + 4
	p := []byte{kind, byte(n), byte(n >> 8), byte(n >> 16)}
	p = binary.LittleEndian.AppendUint32(p, (c>>15|c<<17)+0xa282ead8)
	return append(p, body...)
}

// stream writes states, lists first, and gives a handle that lists them in
// the reverse order.
func stream(w how, states ...state) *format.OperatorHandle {
	var o out
	lists := slices.IndexFunc(states, func(s state) bool { return s.mode == format.ModeBroadcast })
	if lists < 0 {
		lists = len(states)
	}
	if w.version > 0 {
		o.i32(w.version)
		if w.version >= 6 {
			o.i8(min(len(w.framed), 1))
		}
		for i, part := range [][]state{states[:lists], states[lists:]} {
			if i == 0 || w.version >= 3 {
				o.i16(len(part))
			}
			for _, s := range part {
				o.meta(w.version, s)
			}
		}
		if w.version < 3 {
			o.i32(len(states))
		}
	}
	if w.framed == "one header" {
		o.p = append(o.p, header...)
	}
	h := &format.OperatorHandle{Codec: format.CodecFlink}
	if w.version == 0 {
		h.Codec = format.CodecRaw
	}
	for _, s := range states {
		if w.framed == "header per state" {
			o.p = append(o.p, header...)
		}
		offs := format.OffsetSlice{}
		var pending string
		flush := func() {
			for len(pending) > 0 {
				k := min(len(pending), 65536)
				o.p = append(o.p, chunk(pending[:k])...)
				pending = pending[k:]
			}
		}
		for _, e := range s.elements {
			if w.framed == "" {
				offs = append(offs, int64(len(o.p)))
				o.p = append(o.p, e...)
				continue
			}
			if !w.unflushed {
				flush()
			}
			offs = append(offs, int64(len(o.p)))
			pending += e
		}
		flush()
		h.States = append(h.States, format.NamedState{Name: format.NewText(s.name), Mode: s.mode, Offsets: offs})
	}
	slices.Reverse(h.States)
	h.Data = &format.Inline{Data: format.NewBytes(o.p)}
	return h
}
