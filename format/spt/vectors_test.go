package spt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
)

// The conformance vectors of docs/format.md: small files and what a reader must
// say of them, for other implementations and for this one. They are described
// below by hand; no file of them is made by the encoder under test. After a change
// here:
//
//	go test ./format/spt -run TestVectors -update

const vectorsDir = "testdata/vectors"

// Vector is one entry of index.json.
type Vector struct {
	File  string `json:"file"`
	About string `json:"about"`
	Valid bool   `json:"valid"`
	// Refused, of a file that is not valid: corrupt, truncated, unsupported or
	// limit.
	Refused string `json:"refused,omitempty"`
	// By, of a file that is not valid: open, where the header, the trailer and the
	// manifest show it; chunks, where the content of a chunk does; native, where
	// the content of native state does.
	By    string `json:"by,omitempty"`
	Holds *Holds `json:"holds,omitempty"`
}

// Holds is what a valid file holds.
type Holds struct {
	// Streams is the stream table: the bytes of each stream in hex, or null for
	// a bare reference.
	Streams []*string `json:"streams"`
	// States are the named states of operator handles, in the order of the tree.
	States []VectorState `json:"states"`
	// KeyGroups are the keyed handles of kind key-groups, in the order of the tree.
	KeyGroups []VectorKeyGroups `json:"key_groups"`
	// Tree is the tree of the manifest: bin as {"bin": hex}, a str that is not
	// UTF-8 as {"str": hex}, offsets in chunks as {"offsets": [...]}, keys that
	// are not known left out.
	Tree any `json:"tree"`
}

// VectorState is one named state of one subtask.
type VectorState struct {
	Operator int      `json:"operator"` // index in the tree
	Subtask  int      `json:"subtask"`  // its index field
	Slot     string   `json:"slot"`     // managed or raw
	Name     string   `json:"name"`
	Mode     int      `json:"mode"`
	Elements []string `json:"elements"` // hex
}

// VectorKeyGroups is one keyed handle.
type VectorKeyGroups struct {
	Operator int      `json:"operator"`
	Subtask  int      `json:"subtask"`
	Slot     string   `json:"slot"` // managed-keyed or raw-keyed
	First    int      `json:"first"`
	Groups   []string `json:"groups"` // hex: the bytes of each key group
}

// vector is a vector before it is a file.
type vector struct {
	name, about string
	refused, by string
	minor       uint16
	chunks      []vectorChunk
	streams     arr
	tree        any
	top         m      // more entries of the manifest, after "tree"
	raw         []byte // the whole file instead
	patch       func([]byte) []byte
	holds       *Holds
}

// vectorChunk is a chunk: its content, and how it is stored.
type vectorChunk struct {
	content []byte
	kind    byte
	stored  []byte // nil: content
	hash    []byte // nil: the right one
}

func plainChunk(s string) vectorChunk { return vectorChunk{content: []byte(s)} }

func (v *vector) file(t *testing.T) []byte {
	t.Helper()
	if v.raw != nil {
		return v.raw
	}
	var stored, hashes, kinds, raws, lengths []byte
	for _, c := range v.chunks {
		p := c.stored
		if p == nil {
			p = c.content
		}
		h := hashOf(c.content)
		if c.hash != nil {
			copy(h[:], c.hash)
		}
		stored = append(stored, p...)
		hashes, kinds = append(hashes, h[:]...), append(kinds, c.kind)
		raws, lengths = append(raws, uvarints(uint64(len(c.content)))...), append(lengths, uvarints(uint64(len(p)))...)
	}
	table := m{}
	if len(v.chunks) > 0 {
		table = m{"hashes", hashes, "kinds", kinds, "raw", raws, "stored", lengths}
	}
	manifest := m{"chunks", table}
	if v.streams != nil {
		manifest = append(manifest, "streams", v.streams)
	}
	manifest = append(append(manifest, "tree", v.tree), v.top...)
	manifest = append(manifest, "writer", "vectors")
	p := vectorFile(t, header{major: Major, minor: v.minor}, stored, marshal(t, manifest))
	if v.patch != nil {
		p = v.patch(p)
	}
	return p
}

// vectorFile seals a manifest whose frame holds one raw block, so that the bytes of
// a vector do not depend on the release of a compressor.
func vectorFile(t *testing.T, h header, chunks, raw []byte) []byte {
	t.Helper()
	return sealFrame(h, chunks, zstdRaw(raw), len(raw))
}

func sealFrame(h header, chunks, frame []byte, raw int) []byte {
	p := append(h.append(nil), chunks...)
	tr := trailer{manifest: int64(len(p)), stored: uint32(len(frame)), raw: uint32(raw), hash: hashOf(frame)}
	return tr.append(append(p, frame...))
}

// zstdRaw is a zstd frame of raw blocks: single segment, 4 bytes of content size.
func zstdRaw(p []byte) []byte {
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, byte(len(p)), byte(len(p) >> 8), byte(len(p) >> 16), byte(len(p) >> 24)}
	for {
		n := min(len(p), 128<<10)
		last := 0
		if n == len(p) {
			last = 1
		}
		block := n<<3 | last
		out = append(out, byte(block), byte(block>>8), byte(block>>16))
		out = append(out, p[:n]...)
		if p = p[n:]; last == 1 {
			return out
		}
	}
}

// zstdRepeat is a zstd frame of one RLE block: n times b.
func zstdRepeat(b byte, n int) []byte {
	block := n<<3 | 1<<1 | 1
	return []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), byte(block), byte(block >> 8), byte(block >> 16), b}
}

func hexOf(all ...string) []string {
	out := []string{}
	for _, s := range all {
		out = append(out, hex.EncodeToString([]byte(s)))
	}
	return out
}

// streamsOf are the bytes of streams; "-" is a bare reference.
func streamsOf(all ...string) []*string {
	out := []*string{}
	for _, s := range all {
		if s == "-" {
			out = append(out, nil)
			continue
		}
		h := hex.EncodeToString([]byte(s))
		out = append(out, &h)
	}
	return out
}

var vectorID = []byte("operator-id-0001")

// oneOperator is a tree with one operator and one subtask of these fields.
func oneOperator(subtask m) m {
	return m{"operators", arr{m{"id", vectorID, "max-parallelism", 128, "parallelism", 1, "subtasks", arr{subtask}}}}
}

// fruit is a list of three elements after a head of 2 bytes.
const fruit = "\x00\x01applepearfig"

func fruitHandle() m {
	return m{"codec", "flink", "data", 0, "states", arr{m{"mode", 1, "name", "fruit", "offsets", []byte{4, 10, 8}}}}
}

func fruitHolds() []VectorState {
	return []VectorState{{Slot: "managed", Name: "fruit", Mode: 1, Elements: hexOf("apple", "pear", "fig")}}
}

const (
	nativeOperator = "\x01\xa2hi\x92\x01\xc0\x82\x01\xa1x\xa1k\x02"
	nativeHeader   = "\x93\x92\xa5count\xa5value\x92\xa4seen\xa4list\x92\xa2by\xa3map"
	nativeGroup36  = "\x94\x00\x01\xa1w\x0b\x94\x00\x01\xc0\x0a\x94\x01\x01\xc0\x91\x0c"
	nativeGroup37  = "\x94\x00\x2a\xc0\x0d"
	nativeGroup39  = "\x94\x00\xc3\xc0\x0e\x94\x02\xc3\xc0\x82\x01\xc0\xa1x\xc0"
	nativeKeyed    = nativeHeader + nativeGroup36 + nativeGroup37 + nativeGroup39
)

func nativeHandle(list, rules []byte) m {
	return m{"codec", "native", "data", 0, "states", arr{
		m{"name", "list", "offsets", list}, m{"mode", 1, "name", "none"}, m{"mode", 2, "name", "rules", "offsets", rules}}}
}

func nativeKeyedHandle(offsets []byte) arr {
	return arr{"key-groups", m{"codec", "native", "count", 4, "data", 0, "first", 36, "offsets", offsets}}
}

// stored is an entry of the stream table: n chunks from first on.
func stored(first, n uint64, size int) m {
	s := m{"chunks", uvarints(first, n)}
	if size > 0 {
		s = append(s, "size", size)
	}
	return s
}

func oneStream(content string) ([]vectorChunk, arr) {
	return []vectorChunk{plainChunk(content)}, arr{stored(0, 1, len(content))}
}

// offsetBlock is a block of offsets, written by hand: base, width, differences.
func offsetBlock(base int64, w byte, differences ...byte) []byte {
	p := binary.LittleEndian.AppendUint64(nil, uint64(base))
	return append(append(p, w), differences...)
}

// s2Repeat is an s2 block of 100 bytes "abcdefgh…" made by hand: a literal of 8, a
// copy of 8 from 8 back, and repeats with each way to write a length.
func s2Repeat() (content, block []byte) {
	content = bytes.Repeat([]byte("abcdefgh"), 1+1+1+2+40+9000)[:8+8+4+13+261+65541]
	block = uvarints(uint64(len(content)))
	block = append(block, 7<<2) // literal of 8
	block = append(block, "abcdefgh"...)
	block = append(block, 4<<2|1, 8)       // copy of 8, offset 8
	block = append(block, 0<<2|1, 0)       // repeat: 4
	block = append(block, 5<<2|1, 0, 5)    // repeat: 5 + 8 = 13
	block = append(block, 6<<2|1, 0, 1, 0) // repeat: 1 + 260 = 261
	block = append(block, 7<<2|1, 0, 1, 0, 0)
	return content, block
}

func validVectors(t *testing.T) []vector {
	t.Helper()
	var all []vector
	add := func(v vector) { all = append(all, v) }
	fruitChunks, fruitStreams := oneStream(fruit)

	add(vector{name: "empty", about: "a savepoint without operators", tree: m{}, holds: &Holds{}})
	add(vector{name: "plain", about: "a union state of three elements in a plain chunk",
		chunks: fruitChunks, streams: fruitStreams, tree: oneOperator(m{"managed", fruitHandle()}),
		holds: &Holds{Streams: streamsOf(fruit), States: fruitHolds()}})
	long := strings.Repeat("z", 1000)
	zstdVector := func(name, about string, frame []byte) {
		add(vector{name: name, about: about, chunks: []vectorChunk{{content: []byte(long), kind: 1, stored: frame}}, streams: arr{stored(0, 1, 1000)},
			tree: m{}, holds: &Holds{Streams: streamsOf(long)}})
	}
	zstdVector("zstd", "a chunk as one zstd frame", zstdRepeat('z', 1000))
	// The checksum is the low 4 bytes of XXH64 of the content: an encoder knows it.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		t.Fatal(err)
	}
	made := enc.EncodeAll([]byte(long), nil)
	checked := zstdRepeat('z', 1000)
	checked[4] |= 4
	zstdVector("zstd-checksum", "a chunk as one zstd frame with a content checksum", append(checked, made[len(made)-4:]...))
	content, block := s2Repeat()
	add(vector{name: "s2", about: "a chunk as one s2 block with repeats of all lengths", chunks: []vectorChunk{{content: content, kind: 2, stored: block}},
		streams: arr{stored(0, 1, len(content))}, tree: m{}, holds: &Holds{Streams: streamsOf(string(content))}})

	// 1,026 elements of one byte: a block of 1,024 and one of 2.
	many := strings.Repeat("e", 1026)
	var elements []string
	for range 1026 {
		elements = append(elements, "e")
	}
	blocks := append(offsetBlock(0, 1, bytes.Repeat([]byte{2}, 1023)...), offsetBlock(1024, 8, 2, 0, 0, 0, 0, 0, 0, 0)...)
	add(vector{name: "offsets-in-chunks", about: "an array of 1,026 offsets in a chunk: a block of 1,024 and one of 2 with differences of 8 bytes",
		chunks:  []vectorChunk{plainChunk(many), {content: blocks}},
		streams: arr{stored(0, 1, 1026)},
		tree:    oneOperator(m{"managed", m{"codec", "flink", "data", 0, "states", arr{m{"name", "e", "offsets", arr{1026, uvarints(1, 1)}}}}}),
		holds:   &Holds{Streams: streamsOf(many), States: []VectorState{{Slot: "managed", Name: "e", Elements: hexOf(elements...)}}}})
	ones := append(offsetBlock(0, 1, bytes.Repeat([]byte{2}, 1023)...), offsetBlock(1024, 7)...)
	add(vector{name: "offsets-block-of-one", about: "an array of 1,025 offsets: the last block holds one, and its width says nothing",
		chunks:  []vectorChunk{plainChunk(many[:1025]), {content: ones}},
		streams: arr{stored(0, 1, 1025)},
		tree:    oneOperator(m{"managed", m{"codec", "flink", "data", 0, "states", arr{m{"name", "e", "offsets", arr{1025, uvarints(1, 1)}}}}}),
		holds:   &Holds{Streams: streamsOf(many[:1025]), States: []VectorState{{Slot: "managed", Name: "e", Elements: hexOf(elements[:1025]...)}}}})
	add(vector{name: "offsets-equal", about: "elements of codec flink at one offset: all but the last are empty",
		chunks: fruitChunks, streams: fruitStreams,
		tree:  oneOperator(m{"managed", m{"codec", "flink", "data", 0, "states", arr{m{"name", "a", "offsets", []byte{4, 0, 0}}}}}),
		holds: &Holds{Streams: streamsOf(fruit), States: []VectorState{{Slot: "managed", Name: "a", Elements: hexOf("", "", "applepearfig")}}}})
	add(vector{name: "states-out-of-order", about: "codec flink: the states of a handle are not in the order of the stream",
		chunks: fruitChunks, streams: fruitStreams,
		tree: oneOperator(m{"managed", m{"codec", "flink", "data", 0, "states", arr{m{"name", "second", "offsets", []byte{14, 8}}, m{"name", "first", "offsets", []byte{4}}}}}),
		holds: &Holds{Streams: streamsOf(fruit), States: []VectorState{
			{Slot: "managed", Name: "second", Elements: hexOf("pear", "fig")}, {Slot: "managed", Name: "first", Elements: hexOf("apple")}}}})
	add(vector{name: "offsets-missing", about: "a state without offsets, and one with an empty array: neither has an element",
		chunks: fruitChunks, streams: fruitStreams,
		tree:  oneOperator(m{"managed", m{"codec", "flink", "data", 0, "states", arr{m{"name", "a"}, m{"name", "b", "offsets", []byte{}}, m{"mode", 1, "name", "fruit", "offsets", []byte{4, 10, 8}}}}}),
		holds: &Holds{Streams: streamsOf(fruit), States: append([]VectorState{{Slot: "managed", Name: "a", Elements: hexOf()}, {Slot: "managed", Name: "b", Elements: hexOf()}}, fruitHolds()...)}})
	add(vector{name: "shared-chunks", about: "streams that share chunks, one that names a chunk three times, and an empty one; a chunk that is stored twice, and one that no stream names",
		chunks:  []vectorChunk{plainChunk("one"), plainChunk("two"), plainChunk("one"), plainChunk("unused")},
		streams: arr{stored(0, 2, 6), m{"chunks", uvarints(1, 1, 0, 1, 1, 2), "size", 12}, m{"chunks", []byte{}}, stored(2, 1, 3)},
		tree:    m{}, holds: &Holds{Streams: streamsOf("onetwo", "twoone"+"twoone", "", "one")}})
	add(vector{name: "references", about: "bare references, and streams that say where their bytes came from; a stream number of 0 is written",
		chunks: []vectorChunk{plainChunk("bytes")},
		streams: arr{
			m{"as", arr{"file", m{"length", -1, "path", "s3://bucket/f"}}},
			m{"as", arr{"file", m{"length", 7, "path", "name", "relative", true}}},
			m{"as", arr{"segment", m{"length", 4, "logical-id", "l", "path", "file:/x", "scope", 1, "start", 9}}},
			m{"as", arr{"empty", m{}}},
			m{"as", arr{"inline", m{"name", "file:/sp/0"}}, "chunks", uvarints(0, 1), "size", 5},
			m{"as", arr{"file", m{"length", 99, "path", "other", "relative", true}}, "chunks", uvarints(0, 1), "size", 5},
		},
		tree: m{"operators", arr{m{"coordinator", 0, "id", vectorID, "max-parallelism", 128, "parallelism", 1, "subtasks", arr{
			m{"legacy", arr{nil, 1, 2}, "managed", m{"codec", "flink", "data", 3, "merging", m{"placeholder", true, "shared", "file:/s", "task-owned", "file:/t"}}}}}}},
		holds: &Holds{Streams: streamsOf("-", "-", "-", "-", "bytes", "bytes")}})
	keyGroups := arr{"key-groups", m{"codec", "flink", "count", 3, "data", 0, "first", 5, "handle-id", "h", "offsets", []byte{8, 2, 2}}}
	add(vector{name: "keyed-handles", about: "every kind of keyed handle, and nil inside a changelog",
		chunks: []vectorChunk{plainChunk("headab")}, streams: arr{stored(0, 1, 6)},
		tree: m{"operators", arr{m{"id", vectorID, "max-parallelism", 128, "parallelism", 2, "subtasks", arr{
			m{"managed-keyed", keyGroups},
			m{"index", 1, "managed-keyed", arr{"changelog", m{
				"changes", arr{nil, arr{"changelog-memory", m{"changes", arr{m{"data", []byte("d"), "key-group", -1}}, "from", 1, "to", 2}},
					arr{"changelog-stream", m{"checkpointed-size", 9, "state-size", 8, "storage-id", "filesystem", "streams", arr{m{"data", 0, "offset", 2}}}}},
				"checkpoint-id", 4, "count", 3, "first", 5, "materialization-id", 4,
				"materialized", arr{nil, arr{"incremental", m{"backend-id", "b", "checkpoint-id", 4, "checkpointed-size", -1, "count", 3, "first", 5, "meta", 0,
					"private", arr{m{"data", 0, "name", "MANIFEST-1"}}, "shared", arr{m{"data", 0, "name", "000012.sst"}}}}}}}}}}}},
		holds: &Holds{Streams: streamsOf("headab"), KeyGroups: []VectorKeyGroups{{Slot: "managed-keyed", First: 5, Groups: hexOf("a", "b", "")}}}})
	add(vector{name: "channels", about: "in-flight data, and a key-group stream where a stream is expected",
		chunks: []vectorChunk{plainChunk("headab")}, streams: arr{stored(0, 1, 6)},
		tree: oneOperator(m{
			"input", arr{m{"channels", arr{m{"first", 1, "offsets", []byte{8}, "second", 2, "size", 1}}, "data", m{"count", 1, "data", 0, "first", 9, "offsets", []byte{8}}, "size", 1, "subtask", -1}},
			"output", arr{m{"channels", arr{m{}, m{"second", 1}}, "data", 0, "merged", true}}}),
		holds: &Holds{Streams: streamsOf("headab")}})
	add(vector{name: "long-forms", about: "integers, lengths and uvarints in more bytes than they need, and fields that are 0: a writer makes none of these, and a reader takes them",
		chunks: fruitChunks, streams: arr{m{"chunks", []byte{0x80, 0x00, 0x81, 0x00}, "size", msgpack.RawMessage{0xd3, 0, 0, 0, 0, 0, 0, 0, 14}}},
		tree: m{"id", msgpack.RawMessage{0xd2, 0, 0, 0, 0}, "location", msgpack.RawMessage{0xdb, 0, 0, 0, 0}, "operators", msgpack.RawMessage(slices.Concat([]byte{0xdd, 0, 0, 0, 1, 0xdf, 0, 0, 0, 4},
			marshal(t, "finished"), []byte{0xc2}, marshal(t, "id"), []byte{0xc6, 0, 0, 0, 16}, vectorID, marshal(t, "name"), []byte{0xda, 0, 0}, marshal(t, "subtasks"),
			marshal(t, arr{m{"index", 0, "managed", fruitHandle(), "wire", []byte{}}})))},
		holds: &Holds{Streams: streamsOf(fruit), States: fruitHolds()}})
	add(vector{name: "newer-minor", about: "a higher minor version, with keys that are not known", minor: 1,
		chunks: fruitChunks, streams: fruitStreams,
		tree: oneOperator(m{"managed", append(fruitHandle(), "zz", arr{1.5, m{"k", nil}})}), top: m{"unknown", m{"a", arr{}}},
		holds: &Holds{Streams: streamsOf(fruit), States: fruitHolds()}})
	add(vector{name: "texts", about: "a text with the bytes it was written with, and one that is not UTF-8",
		tree:  m{"operators", arr{m{"id", vectorID, "name", arr{"a\x00b", []byte("a\xc0\x80b")}, "uid", msgpack.RawMessage{0xa2, 0xff, 0xfe}}}},
		holds: &Holds{}})
	add(vector{name: "properties", about: "kind of snapshot, location, coordinator hooks, wires, a fully finished operator and a finished subtask, subtasks in any order",
		tree: m{"format", "canonical", "id", 7, "location", "s3://b/sp", "masters", arr{m{"data", []byte("m"), "name", "hook", "version", -3}},
			"operators", arr{
				m{"finished", true, "id", vectorID, "max-parallelism", 128, "parallelism", 1, "wire", []byte{1}},
				m{"id", []byte("operator-id-0002"), "max-parallelism", 32768, "parallelism", 3, "subtasks", arr{m{"finished", true, "index", 2}, m{}, m{"index", 1}}}},
			"type", "savepoint", "wire", []byte{4}},
		holds: &Holds{}})
	add(vector{name: "raw-state", about: "codec raw, in the slots of raw state",
		chunks: []vectorChunk{plainChunk("abcd")}, streams: arr{stored(0, 1, 4)},
		tree: oneOperator(m{"raw", m{"codec", "raw", "data", 0, "states", arr{m{"name", "r", "offsets", []byte{0, 4}}}},
			"raw-keyed", arr{"key-groups", m{"codec", "raw", "count", 2, "data", 0, "offsets", []byte{0, 6}}}}),
		holds: &Holds{Streams: streamsOf("abcd"), States: []VectorState{{Slot: "raw", Name: "r", Elements: hexOf("ab", "cd")}},
			KeyGroups: []VectorKeyGroups{{Slot: "raw-keyed", Groups: hexOf("abc", "d")}}}})
	nest := any(m{"data", 0})
	for range 15 {
		nest = m{"data", nest}
	}
	add(vector{name: "depth-16", about: "16 key-group streams, each in the one before",
		chunks: fruitChunks, streams: fruitStreams, tree: m{"operators", arr{m{"coordinator", nest, "id", vectorID}}}, holds: &Holds{Streams: streamsOf(fruit)}})
	chunks, streams := oneStream(nativeOperator)
	add(vector{name: "native-operator", about: "native operator state: the example of docs/format.md",
		chunks: chunks, streams: streams, tree: oneOperator(m{"managed", nativeHandle([]byte{0, 2, 6}, []byte{14})}),
		holds: &Holds{Streams: streamsOf(nativeOperator), States: []VectorState{
			{Slot: "managed", Name: "list", Elements: hexOf("\x01", "\xa2hi", "\x92\x01\xc0")}, {Slot: "managed", Name: "none", Mode: 1, Elements: hexOf()},
			{Slot: "managed", Name: "rules", Mode: 2, Elements: hexOf("\x82\x01\xa1x\xa1k\x02")}}}})
	chunks, streams = oneStream(nativeKeyed)
	add(vector{name: "native-keyed", about: "native keyed state: the example of docs/format.md",
		chunks: chunks, streams: streams, tree: oneOperator(m{"managed-keyed", nativeKeyedHandle([]byte{66, 34, 10, 0})}),
		holds: &Holds{Streams: streamsOf(nativeKeyed), KeyGroups: []VectorKeyGroups{{Slot: "managed-keyed", First: 36, Groups: hexOf(nativeGroup36, nativeGroup37, "", nativeGroup39)}}}})
	for i := range all {
		h := all[i].holds
		if h.States == nil {
			h.States = []VectorState{}
		}
		if h.KeyGroups == nil {
			h.KeyGroups = []VectorKeyGroups{}
		}
		if h.Streams == nil {
			h.Streams = []*string{}
		}
	}
	return all
}

func invalidVectors(t *testing.T) []vector {
	t.Helper()
	var all []vector
	add := func(name, about, refused, by string, v vector) {
		v.name, v.about, v.refused, v.by = name, about, refused, by
		if v.tree == nil {
			v.tree = m{}
		}
		all = append(all, v)
	}
	fruitChunks, fruitStreams := oneStream(fruit)
	// with is a file with the fruit stream and a tree.
	with := func(tree any) vector { return vector{chunks: fruitChunks, streams: fruitStreams, tree: tree} }
	subtask := func(fields ...any) vector { return with(oneOperator(append(m{}, fields...))) }
	handle := func(fields ...any) vector { return subtask("managed", append(m{}, fields...)) }
	state := func(fields ...any) vector {
		return handle("codec", "flink", "data", 0, "states", arr{append(m{}, fields...)})
	}
	keyGroups := func(fields ...any) vector { return subtask("managed-keyed", arr{"key-groups", append(m{}, fields...)}) }
	stream := func(fields ...any) vector { return vector{chunks: fruitChunks, streams: arr{append(m{}, fields...)}} }
	patched := func(f func([]byte) []byte) vector { v := with(m{}); v.patch = f; return v }
	at := func(i int, b byte) vector {
		return patched(func(p []byte) []byte {
			if i < 0 {
				i += len(p)
			}
			p[i] = b
			return p
		})
	}

	// Header and trailer.
	add("text-mode", "line ends changed by a transfer", "corrupt", "open", patched(func(p []byte) []byte { return bytes.ReplaceAll(p, []byte("\r\n"), []byte("\n")) }))
	add("major-2", "an unknown major version", "unsupported", "open", at(8, 2))
	add("flag", "an unknown flag", "unsupported", "open", at(12, 1))
	add("not-sealed", "the last byte is missing", "truncated", "open", patched(func(p []byte) []byte { return p[:len(p)-1] }))
	add("byte-after", "a byte after the trailer", "truncated", "open", patched(func(p []byte) []byte { return append(p, 0) }))
	add("byte-missing", "a byte is missing between header and manifest", "truncated", "open", patched(func(p []byte) []byte { return append(p[:16:16], p[17:]...) }))
	add("byte-more", "a byte too many between header and manifest", "corrupt", "open", patched(func(p []byte) []byte { return append(append(p[:16:16], 0), p[16:]...) }))
	add("manifest-checksum", "the manifest's checksum is wrong", "corrupt", "open", at(-9, 0))
	add("manifest-length", "the manifest is longer than the trailer says", "corrupt", "open", patched(func(p []byte) []byte { p[len(p)-28]--; return p }))
	raw := marshal(t, m{"chunks", m{}, "tree", m{}})
	half := len(raw) / 2
	add("manifest-two-frames", "the manifest is two zstd frames", "corrupt", "open", vector{raw: sealFrame(header{major: Major}, nil, append(zstdRaw(raw[:half]), zstdRaw(raw[half:])...), len(raw))})
	add("manifest-skippable", "a skippable frame after that of the manifest", "corrupt", "open", vector{raw: sealFrame(header{major: Major}, nil, append(zstdRaw(raw), skippable...), len(raw))})
	add("manifest-byte-after", "a byte after the map", "corrupt", "open", vector{raw: vectorFile(t, header{major: Major}, nil, append(slices.Clone(raw), 0))})
	add("manifest-1-GiB", "a frame that claims to be 1 GiB, which it is too short for", "corrupt", "open", patched(func(p []byte) []byte { p[len(p)-25] = 0x3f; return p }))
	huge := zstdRepeat(0x80, 1<<20) // an array of a million masters, each an empty map, in a few bytes
	head := marshal(t, m{"chunks", m{}, "tree", m{"masters", msgpack.RawMessage{0xdd, 0, 32, 0, 0}}})
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}
	n := len(head) + 2<<20
	frame = append(frame, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(len(head)<<3), byte(len(head)>>5), 0)
	frame = append(frame, head...)
	for i := range 16 { // blocks of 128 KiB
		block := (128<<10)<<3 | 1<<1
		if i == 15 {
			block |= 1
		}
		frame = append(frame, byte(block), byte(block>>8), byte(block>>16), huge[len(huge)-1])
	}
	add("bomb-masters", "two million master states in 150 bytes: more memory than 64 MiB + 16 times the file", "limit", "open", vector{raw: sealFrame(header{major: Major}, nil, frame, n)})

	// msgpack.
	add("unknown-key", "a key that is not known, in a file of minor version 0", "corrupt", "open", with(m{"zz", 1}))
	add("keys-descend", "keys that do not ascend", "corrupt", "open", with(m{"location", "x", "id", 1}))
	add("key-twice", "a key that comes twice", "corrupt", "open", with(m{"id", 1, "id", 1}))
	add("float", "a float where an integer is expected", "corrupt", "open", with(m{"id", 1.5}))
	add("nil", "nil where an integer is expected", "corrupt", "open", with(m{"id", nil}))
	add("str-for-bin", "a str where a bin is expected", "corrupt", "open", with(m{"wire", "x"}))
	add("too-large", "an integer above 2^63−1", "corrupt", "open", with(m{"id", msgpack.RawMessage{0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0}}))
	add("i32-too-large", "an i32 above 2^31−1", "corrupt", "open", with(m{"operators", arr{m{"id", vectorID, "parallelism", int64(1 << 31)}}}))
	add("array-too-long", "an array of more elements than there are bytes", "corrupt", "open", with(m{"operators", msgpack.RawMessage{0xdd, 0xff, 0xff, 0xff, 0xff}}))
	add("text-empty-raw", "a text with empty bytes of its own", "corrupt", "open", with(m{"operators", arr{m{"id", vectorID, "name", arr{"x", []byte{}}}}}))
	add("no-tree", "a manifest without tree", "corrupt", "open", vector{raw: vectorFile(t, header{major: Major}, nil, marshal(t, m{"chunks", m{}}))})
	add("no-chunks", "a manifest without chunk table", "corrupt", "open", vector{raw: vectorFile(t, header{major: Major}, nil, marshal(t, m{"tree", m{}}))})

	// Chunks.
	add("chunk-checksum", "a chunk whose checksum is wrong", "corrupt", "chunks", vector{chunks: []vectorChunk{{content: []byte("abc"), hash: make([]byte, 16)}}, streams: arr{stored(0, 1, 3)}})
	zeros := make([]byte, 1000)
	zstdChunk := func(p []byte) vector {
		return vector{chunks: []vectorChunk{{content: zeros, kind: 1, stored: p}}, streams: arr{stored(0, 1, 1000)}}
	}
	add("chunk-two-frames", "a chunk of two zstd frames", "corrupt", "chunks", zstdChunk(append(zstdRepeat(0, 500), zstdRepeat(0, 500)...)))
	add("chunk-skippable", "a chunk of a skippable frame and a zstd frame", "corrupt", "chunks", zstdChunk(append(slices.Clone(skippable), zstdRepeat(0, 1000)...)))
	add("chunk-skippable-after", "a chunk with a skippable frame after its zstd frame", "corrupt", "chunks", zstdChunk(append(zstdRepeat(0, 1000), skippable...)))
	add("chunk-too-short", "a chunk that decompresses to fewer bytes", "corrupt", "chunks", zstdChunk(zstdRepeat(0, 999)))
	add("chunk-too-long", "a chunk that decompresses to more bytes", "corrupt", "chunks", zstdChunk(zstdRepeat(0, 1001)))
	content, block := s2Repeat()
	s2Chunk := func(p []byte) vector {
		return vector{chunks: []vectorChunk{{content: content, kind: 2, stored: p}}, streams: arr{stored(0, 1, len(content))}}
	}
	add("s2-length", "an s2 block of another length", "corrupt", "chunks", s2Chunk(append(uvarints(uint64(len(content)-1)), block[3:]...)))
	add("s2-repeat-first", "an s2 block that repeats before it has copied", "corrupt", "chunks", s2Chunk(append(append(uvarints(uint64(len(content))), 7<<2, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'), 0<<2|1, 0)))
	add("chunk-kind", "a chunk of an unknown kind", "unsupported", "open", vector{chunks: []vectorChunk{{content: []byte("abc"), kind: 3}}})
	add("chunk-not-shorter", "a chunk of kind 1 that is not shorter than its content", "corrupt", "open", vector{chunks: []vectorChunk{{content: []byte("abc"), kind: 1}}})
	add("chunk-empty", "a chunk of no bytes", "corrupt", "open", vector{chunks: []vectorChunk{{content: []byte{}}}})
	add("chunks-end-early", "bytes between the last chunk and the manifest", "corrupt", "open", vector{raw: vectorFile(t, header{major: Major}, []byte("x"), raw)})
	add("chunk-list-cut", "a chunk list that is cut short", "corrupt", "open", stream("chunks", []byte{0}))
	add("chunk-list-none", "a run of no chunks", "corrupt", "open", stream("chunks", uvarints(0, 0)))
	add("chunk-list-beyond", "a run beyond the chunk table", "corrupt", "open", stream("chunks", uvarints(0, 2), "size", 14))
	add("stream-size", "a size that is not that of the chunks", "corrupt", "open", stream("chunks", uvarints(0, 1), "size", 13))
	add("stream-nowhere", "a stream without chunks that says nothing of where it is", "corrupt", "open", stream())
	add("stream-inline-bare", "an inline stream without chunks", "corrupt", "open", stream("as", arr{"inline", m{}}))
	add("stream-empty-stored", "an empty segment with chunks", "corrupt", "open", stream("as", arr{"empty", m{}}, "chunks", uvarints(0, 1), "size", 14))
	add("stream-kind", "a stream of an unknown kind", "unsupported", "open", stream("as", arr{"tape", m{}}))
	add("segment-scope", "a segment with an unknown scope", "unsupported", "open", stream("as", arr{"segment", m{"scope", 2}}))
	add("stream-number", "a stream that is not in the table", "corrupt", "open", with(m{"operators", arr{m{"coordinator", 1, "id", vectorID}}}))
	add("stream-number-negative", "a stream number below 0", "corrupt", "open", with(m{"operators", arr{m{"coordinator", -1, "id", vectorID}}}))

	// Offsets.
	add("offsets-cut", "offsets in the manifest that are cut short", "corrupt", "open", state("offsets", []byte{0x80}))
	add("offsets-none-in-chunks", "an array of no offsets in chunks", "corrupt", "open", state("offsets", arr{0, []byte{}}))
	add("offsets-chunks", "an array of offsets in fewer chunks than it takes", "corrupt", "open", state("offsets", arr{32769, uvarints(0, 1)}))
	inChunk := func(n int, p []byte) vector {
		return vector{chunks: append(slices.Clone(fruitChunks), vectorChunk{content: p}), streams: fruitStreams,
			tree: oneOperator(m{"managed", m{"codec", "flink", "data", 0, "states", arr{m{"offsets", arr{n, uvarints(1, 1)}}}}})}
	}
	add("offsets-byte-after", "a byte after the last block of offsets", "corrupt", "chunks", inChunk(1, append(offsetBlock(2, 0), 0)))
	add("offsets-width", "a block of offsets of width 9", "corrupt", "chunks", inChunk(2, offsetBlock(2, 9, make([]byte, 9)...)))
	add("offsets-too-few", "a chunk of fewer offsets than the array has", "corrupt", "chunks", inChunk(3, offsetBlock(2, 1, 2)))
	add("offsets-bomb", "33 million offsets in 20 bytes of chunks", "limit", "open", vector{
		chunks: []vectorChunk{plainChunk("x"), {content: offsetBlock(0, 0)}}, streams: arr{stored(0, 1, 1)},
		tree: oneOperator(m{"managed", m{"codec", "flink", "data", 0, "states", arr{m{"offsets", arr{1000 * 32768, bytes.Repeat(uvarints(1, 1), 1000)}}}}})})

	// The tree.
	add("id-negative", "a checkpoint id below 0", "corrupt", "open", with(m{"id", -1}))
	add("type-snapshot", "the kind \"snapshot\", which is not one of the types", "unsupported", "open", with(m{"type", "snapshot"}))
	add("format-unknown", "an unknown savepoint format", "unsupported", "open", with(m{"format", "x"}))
	add("operator-without-id", "an operator without id", "corrupt", "open", with(m{"operators", arr{m{}}}))
	add("operator-id-15", "an operator id of 15 bytes", "corrupt", "open", with(m{"operators", arr{m{"id", vectorID[:15]}}}))
	add("operator-finished-with-state", "a fully finished operator with a subtask", "corrupt", "open", with(m{"operators", arr{m{"finished", true, "id", vectorID, "subtasks", arr{m{}}}}}))
	add("parallelism-negative", "a parallelism below 0", "corrupt", "open", with(m{"operators", arr{m{"id", vectorID, "parallelism", -1}}}))
	add("max-parallelism-32769", "a max parallelism above 32,768", "corrupt", "open", with(m{"operators", arr{m{"id", vectorID, "max-parallelism", 32769}}}))
	add("subtask-twice", "a subtask that comes twice", "corrupt", "open", with(m{"operators", arr{m{"id", vectorID, "subtasks", arr{m{"index", 1}, m{}, m{"index", 1}}}}}))
	add("subtask-negative", "a subtask index below 0", "corrupt", "open", subtask("index", -1))
	add("subtask-finished-with-state", "a finished subtask with state", "corrupt", "open", subtask("finished", true, "managed", m{}))
	add("codec-unknown", "an unknown codec", "unsupported", "open", handle("codec", "x"))
	add("codec-raw-managed", "codec raw in managed state", "corrupt", "open", handle("codec", "raw"))
	add("codec-flink-raw", "codec flink in raw state", "corrupt", "open", subtask("raw", m{"codec", "flink"}))
	add("mode-3", "an unknown mode", "unsupported", "open", state("mode", 3))
	add("state-twice", "two states of one name", "corrupt", "open", handle("codec", "flink", "data", 0, "states", arr{m{"name", "a"}, m{"name", "a"}}))
	add("state-without-stream", "a state with elements in a handle without stream", "corrupt", "open", handle("codec", "flink", "states", arr{m{"offsets", []byte{0}}}))
	add("keyed-kind", "a keyed handle of an unknown kind", "unsupported", "open", subtask("managed-keyed", arr{"x", m{}}))
	add("keyed-without-stream", "key groups without a stream", "corrupt", "open", keyGroups("codec", "flink"))
	add("key-groups-negative", "a count of key groups below 0", "corrupt", "open", keyGroups("codec", "flink", "count", -1, "data", 0))
	add("key-groups-first-negative", "a first key group below 0", "corrupt", "open", keyGroups("codec", "flink", "data", 0, "first", -1))
	add("key-groups-beyond", "key groups beyond 32,767", "corrupt", "open", keyGroups("codec", "flink", "count", 1, "data", 0, "first", 32768, "offsets", []byte{0}))
	add("key-groups-too-few-offsets", "fewer offsets than key groups", "corrupt", "open", keyGroups("codec", "flink", "count", 2, "data", 0, "offsets", []byte{0}))
	add("key-groups-too-many-offsets", "more offsets than key groups", "corrupt", "open", keyGroups("codec", "flink", "count", 2, "data", 0, "offsets", []byte{0, 0, 0}))
	add("key-groups-without-offsets", "key groups without offsets", "corrupt", "open", keyGroups("codec", "flink", "count", 2, "data", 0))
	add("changelog-of-groups", "key groups among the changes of a changelog", "corrupt", "open", subtask("managed-keyed", arr{"changelog", m{"changes", arr{arr{"key-groups", m{"codec", "flink", "data", 0}}}}}))
	add("channels-not-merged", "two channels in a handle that is not merged", "corrupt", "open", subtask("input", arr{m{"channels", arr{m{}, m{}}, "data", 0}}))
	nest := any(m{"data", 0})
	for range 16 {
		nest = m{"data", nest}
	}
	add("depth-17", "17 key-group streams, each in the one before", "limit", "open", with(m{"operators", arr{m{"coordinator", nest, "id", vectorID}}}))

	// Native state.
	natives := func(content string, h m) vector {
		chunks, streams := oneStream(content)
		return vector{chunks: chunks, streams: streams, tree: oneOperator(m{"managed", h})}
	}
	keyed := func(content string, offsets ...byte) vector {
		chunks, streams := oneStream(content)
		return vector{chunks: chunks, streams: streams, tree: oneOperator(m{"managed-keyed", nativeKeyedHandle(offsets)})}
	}
	add("native-broadcast-two", "a native broadcast state with two offsets", "corrupt", "open", natives(nativeOperator, nativeHandle([]byte{0, 2}, []byte{8, 6})))
	add("native-no-element", "native bytes without any element", "corrupt", "open", natives(nativeOperator, m{"codec", "native", "data", 0}))
	add("native-more-elements", "more native elements than bytes", "corrupt", "open", natives("\x01", m{"codec", "native", "data", 0, "states", arr{m{"offsets", []byte{0, 0}}}}))
	add("native-bytes-before", "native bytes before the first element", "corrupt", "native", natives(nativeOperator, nativeHandle([]byte{2, 6}, []byte{14})))
	add("native-element-empty", "an empty native element", "corrupt", "native", natives(nativeOperator, nativeHandle([]byte{0, 0, 2, 6}, []byte{14})))
	add("native-two-values", "two values in one native element", "corrupt", "native", natives(nativeOperator, nativeHandle([]byte{0, 8}, []byte{14})))
	add("native-bytes-after", "a byte after the last native element", "corrupt", "native", natives(nativeOperator+"\x01", nativeHandle([]byte{0, 2, 6}, []byte{14})))
	add("native-map-order", "a native broadcast map whose keys do not ascend", "corrupt", "native", natives("\x82\xa1k\x02\x01\xa1x", m{"codec", "native", "data", 0, "states", arr{m{"mode", 2, "offsets", []byte{0}}}}))
	add("native-no-groups", "native keyed state of no key groups", "corrupt", "open", subtask("managed-keyed", arr{"key-groups", m{"codec", "native", "data", 0}}))
	add("native-savepoint", "native keyed state in the canonical savepoint format", "corrupt", "open", subtask("managed-keyed", arr{"key-groups", m{"codec", "native", "count", 1, "data", 0, "offsets", []byte{0}, "savepoint", true}}))
	add("native-header-form", "a header that is not in the shortest form", "corrupt", "native", keyed("\xdc\x00\x03"+nativeHeader[1:]+nativeGroup36+nativeGroup37+nativeGroup39, 70, 34, 10, 0))
	add("native-entry-order", "entries of a key group that do not ascend", "corrupt", "native", keyed(nativeHeader+"\x94\x00\x01\xc0\x0a\x94\x00\x01\xa1w\x0b\x94\x00\x01\xc0\x0a"+nativeGroup37+nativeGroup39, 66, 32, 10, 0))
	add("native-wrong-group", "a key in a key group that is not its own", "corrupt", "native", keyed(nativeHeader+nativeGroup36+"\x94\x00\x2b\xc0\x0d"+nativeGroup39, 66, 34, 10, 0))
	add("native-value-kind", "a value that is not of the kind of its state", "corrupt", "native", keyed(nativeHeader+"\x94\x00\x01\xa1w\x0b\x94\x00\x01\xc0\x0a\x94\x01\x01\xc0\xa1\x0c"+nativeGroup37+nativeGroup39, 66, 34, 10, 0))
	return all
}

// TestVectors compares the committed vectors with the descriptions above, and what
// this package says of each with what the index says.
func TestVectors(t *testing.T) {
	var index []Vector
	want := map[string][]byte{}
	for _, group := range []struct {
		folder string
		all    []vector
	}{{"valid", validVectors(t)}, {"invalid", invalidVectors(t)}} {
		for _, v := range group.all {
			name := group.folder + "/" + v.name + ".spt"
			if _, twice := want[name]; twice {
				t.Fatalf("%s twice", name)
			}
			want[name] = v.file(t)
			e := Vector{File: name, About: v.about, Valid: group.folder == "valid", Refused: v.refused, By: v.by, Holds: v.holds}
			if e.Valid {
				e.Holds.Tree = plainTree(t, &v)
			}
			index = append(index, e)
		}
	}
	text, err := json.MarshalIndent(index, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want["index.json"] = append(text, '\n')
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.RemoveAll(vectorsDir); err != nil {
			t.Fatal(err)
		}
		for name, p := range want {
			path := filepath.Join(vectorsDir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, p, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := 0
	err = filepath.WalkDir(vectorsDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(vectorsDir, path)
		if err != nil {
			return err
		}
		found++
		got, err := os.ReadFile(path)
		if p, ok := want[filepath.ToSlash(name)]; !ok || !bytes.Equal(p, got) {
			t.Errorf("%s is not what the descriptions make: run with -update, and look at the difference", path)
		}
		return err
	})
	if err != nil || found != len(want) || len(index) < 100 {
		t.Fatalf("%d files of %d, %v", found, len(want), err)
	}
	for _, v := range index {
		t.Run(v.File, func(t *testing.T) { checkVector(t, v, want[v.File]) })
	}
}

// checkVector compares what this package says of a file with its entry.
func checkVector(t *testing.T, v Vector, p []byte) {
	ctx := context.Background()
	f, err := openRaw(p)
	by := "open"
	if err == nil {
		by = "chunks"
		verr := f.Verify(ctx, func(e format.Error) {
			if err == nil {
				err = &e
			}
		})
		if verr != nil {
			t.Fatal(verr)
		}
	}
	if err == nil {
		by = "native"
		err = verifyNatives(ctx, f)
	}
	if !v.Valid {
		kinds := map[string]error{"corrupt": format.ErrCorrupt, "truncated": format.ErrTruncated, "unsupported": format.ErrUnsupported, "limit": format.ErrLimit}
		if !errors.Is(err, kinds[v.Refused]) || by != v.By || v.Refused == "corrupt" && errors.Is(err, format.ErrTruncated) {
			t.Errorf("%s by %s: %v; want %s by %s", v.About, by, err, v.Refused, v.By)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", v.About, err)
	}
	var states []VectorState
	var groups []VectorKeyGroups
	for o, op := range f.Savepoint().Operators {
		for _, s := range op.Subtasks {
			for _, slot := range []struct {
				name string
				h    *format.OperatorHandle
			}{{"managed", s.Managed}, {"raw", s.Raw}} {
				if slot.h == nil {
					continue
				}
				for i, st := range slot.h.States {
					states = append(states, VectorState{o, int(s.Index), slot.name, st.Name.String(), int(st.Mode), elementsOf(t, f, slot.h, i)})
				}
			}
			for name, h := range map[string]format.KeyedHandle{"managed-keyed": s.ManagedKeyed, "raw-keyed": s.RawKeyed} {
				if k, ok := h.(*format.KeyGroups); ok {
					groups = append(groups, VectorKeyGroups{o, int(s.Index), name, int(k.Range.First), cutAll(t, f, k.Data, k.Offsets, k.Data.Size())})
				}
			}
		}
	}
	same := func(what string, got, want any) {
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) && !(string(a) == "null" && string(b) == "[]") {
			t.Errorf("%s: %s\nwant %s", what, a, b)
		}
	}
	same("states", states, v.Holds.States)
	same("key groups", groups, v.Holds.KeyGroups)
	streams := []*string{}
	for _, s := range f.m.streams {
		c, ok := s.ref.(*format.Chunks)
		if !ok {
			streams = append(streams, nil)
			continue
		}
		p := make([]byte, c.Length)
		if _, err := f.ReadAt(ctx, c, p, 0); err != nil {
			t.Fatal(err)
		}
		h := hex.EncodeToString(p)
		streams = append(streams, &h)
	}
	same("streams", streams, v.Holds.Streams)
}

func verifyNatives(ctx context.Context, f *File) error {
	for _, op := range f.Savepoint().Operators {
		for _, s := range op.Subtasks {
			if h := s.Managed; h != nil && h.Codec == format.CodecNative {
				if err := (native.Codec{}).Verify(ctx, f, h); err != nil {
					return err
				}
			}
			if k, ok := s.ManagedKeyed.(*format.KeyGroups); ok && k.Codec == format.CodecNative {
				if err := native.VerifyKeyed(ctx, f, k, op.MaxParallelism); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// elementsOf cuts the elements of a state out of its stream: one ends where the
// next one of its state starts, the last where the next state of the stream does.
func elementsOf(t *testing.T, f *File, h *format.OperatorHandle, state int) []string {
	ends := func(i int, at int64) int64 {
		o := h.States[i].Offsets
		if o.Len() == 0 {
			return -1
		}
		v, err := format.OffsetAt(context.Background(), o, at)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	last, end := ends(state, h.States[state].Offsets.Len()-1), format.SizeOf(h.Data)
	for i := range h.States {
		if first := ends(i, 0); i != state && first > last && first < end {
			end = first
		}
	}
	return cutAll(t, f, h.Data, h.States[state].Offsets, end)
}

// cutAll cuts a stream at offsets; what would end before it starts is empty.
func cutAll(t *testing.T, f *File, s format.Stream, o format.Offsets, end int64) []string {
	all := make([]int64, o.Len(), o.Len()+1)
	if _, err := o.Read(context.Background(), all, 0); err != nil {
		t.Fatal(err)
	}
	all = append(all, end)
	out := []string{}
	for i := range all[1:] {
		p := make([]byte, max(all[i+1]-all[i], 0))
		if _, err := f.ReadAt(context.Background(), s, p, all[i]); err != nil {
			t.Fatal(err)
		}
		out = append(out, hex.EncodeToString(p))
	}
	return out
}

// plainTree is the tree of a description as JSON shows it.
func plainTree(t *testing.T, v *vector) any {
	t.Helper()
	var plain func(x any) any
	plain = func(x any) any {
		switch x := x.(type) {
		case m:
			o := map[string]any{}
			for i := 0; i < len(x); i += 2 {
				if k := x[i].(string); k != "zz" && k != "unknown" {
					o[k] = plain(x[i+1])
				}
			}
			return o
		case arr:
			all := []any{}
			for _, e := range x {
				all = append(all, plain(e))
			}
			if len(x) == 2 {
				if packed, ok := x[1].([]byte); ok {
					if n, ok := x[0].(int); ok { // offsets in chunks
						return map[string]any{"offsets": chunkOffsetsOf(v, n, packed)}
					}
				}
			}
			return all
		case []byte:
			return map[string]any{"bin": hex.EncodeToString(x)}
		case msgpack.RawMessage:
			return rawPlain(x)
		}
		return x
	}
	return plain(v.tree)
}

// rawPlain are the few values that descriptions spell out.
func rawPlain(x msgpack.RawMessage) any {
	switch {
	case x[0] == 0xa2:
		return map[string]any{"str": hex.EncodeToString(x[1:])}
	case x[0] == 0xd2:
		return 0
	case x[0] == 0xdb:
		return ""
	case x[0] == 0xdd: // long-forms
		return []any{map[string]any{"finished": false, "id": map[string]any{"bin": hex.EncodeToString(vectorID)}, "name": "", "subtasks": []any{
			map[string]any{"index": 0, "wire": map[string]any{"bin": ""}, "managed": map[string]any{"codec": "flink", "data": 0, "states": []any{
				map[string]any{"mode": 1, "name": "fruit", "offsets": map[string]any{"bin": "040a08"}}}}}}}}
	}
	panic(fmt.Sprintf("% x", []byte(x)))
}

// chunkOffsetsOf are the offsets of the two vectors that have them in chunks: 0, 1,
// 2, ….
func chunkOffsetsOf(_ *vector, n int, _ []byte) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// The block of s2Repeat has what its name says, by another decoder.
func TestS2Repeat(t *testing.T) {
	content, block := s2Repeat()
	got, err := s2.Decode(nil, block)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v, want %d", len(got), err, len(content))
	}
}

// What spt wrote as version 1 before is read, and sound, for ever.
func TestFixturesStaySound(t *testing.T) {
	found, err := filepath.Glob("../../testdata/savepoints/*.spt")
	if err != nil || len(found) < 3 {
		t.Fatalf("%d files, %v", len(found), err)
	}
	for _, path := range found {
		p, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := openRaw(p)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if err := f.Verify(context.Background(), func(e format.Error) { t.Errorf("%s: %v", path, &e) }); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if err := verifyNatives(context.Background(), f); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
