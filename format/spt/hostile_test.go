package spt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
)

// bytesAt is a file in memory.
type bytesAt []byte

func (b bytesAt) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(b)) {
		return 0, format.Errorf(format.ErrTruncated, "byte %d of %d", off, len(b))
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, format.Errorf(format.ErrTruncated, "%d bytes at %d of %d", len(p), off, len(b))
	}
	return n, nil
}

// sealRaw puts chunks and a manifest as they are into a file.
func sealRaw(t testing.TB, h header, chunks, raw []byte) bytesAt {
	t.Helper()
	enc, err := newZstdEncoder(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	stored := enc.EncodeAll(raw, nil)
	p := append(h.append(nil), chunks...)
	tr := trailer{manifest: int64(len(p)), stored: uint32(len(stored)), raw: uint32(len(raw)), hash: hashOf(stored)}
	return tr.append(append(p, stored...))
}

func openRaw(p bytesAt) (*File, error) {
	return Open(context.Background(), p, int64(len(p)), format.Limits{})
}

// m writes a map by hand: keys and values in turn, in this order.
type m []any

func (v m) EncodeMsgpack(e *msgpack.Encoder) error {
	if err := e.EncodeMapLen(len(v) / 2); err != nil {
		return err
	}
	for _, x := range v {
		if err := e.Encode(x); err != nil {
			return err
		}
	}
	return nil
}

// array is an array by hand.
type arr []any

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	p, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func uvarints(v ...uint64) (p []byte) {
	for _, u := range v {
		p = binary.AppendUvarint(p, u)
	}
	return p
}

// oneChunk is the chunk table of a file with one plain chunk "chunk".
func oneChunk() m {
	h := hashOf([]byte("chunk"))
	return m{"hashes", h[:], "kinds", []byte{0}, "raw", uvarints(5), "stored", uvarints(5)}
}

// withTree is a manifest with one chunk and one stream of it.
func withTree(tree any) m {
	return m{"chunks", oneChunk(), "streams", arr{m{"chunks", uvarints(0, 1), "size", 5}}, "tree", tree, "writer", "x"}
}

func withOperator(fields ...any) m {
	return withTree(m{"operators", arr{append(m{}, fields...)}})
}

func withState(offsets any) m {
	return withOperator("id", make([]byte, 16), "subtasks", arr{m{"managed", m{"data", 0, "states", arr{m{"offsets", offsets}}}}})
}

func withStream(fields ...any) m {
	return m{"chunks", oneChunk(), "streams", arr{append(m{}, fields...)}, "tree", m{}}
}

func withTable(fields ...any) m {
	return m{"chunks", append(m{}, fields...), "tree", m{}}
}

func TestHostileManifests(t *testing.T) {
	hash := make([]byte, hashSize)
	deep := any(m{"data", 0})
	for range 20 {
		deep = m{"data", deep}
	}
	deepLog := any(arr{keyChangelog, m{}})
	for range 20 {
		deepLog = arr{keyChangelog, m{"changes", arr{deepLog}}}
	}
	raw := func(code byte, n uint64, width int) msgpack.RawMessage {
		p := binary.BigEndian.AppendUint64(nil, n)
		return append([]byte{code}, p[8-width:]...)
	}
	manyRuns := bytes.Repeat(uvarints(0, 1), 1<<20)
	var manyStreams arr
	for i := range 100 { // equal lists are read once
		n := len(manyRuns)/2 - i
		manyStreams = append(manyStreams, m{"chunks", manyRuns[:2*n], "size", int64(5 * n)})
	}
	for _, c := range []struct {
		name string
		v    any
		kind error
		msg  string
	}{
		{"good", withTree(m{}), nil, ""},
		{"good offsets", withState(uvarints(0, 2, 4)), nil, ""},
		{"not a map", 5, format.ErrCorrupt, "expected a map"},
		{"nil", nil, format.ErrCorrupt, "expected a map"},
		{"empty map", m{}, format.ErrCorrupt, "has no chunks"},
		{"no tree", m{"chunks", oneChunk()}, format.ErrCorrupt, "no savepoint"},
		{"no chunks", m{"tree", m{}}, format.ErrCorrupt, "has no chunks"},
		{"streams without chunks", m{"streams", arr{}, "tree", m{}}, format.ErrCorrupt, "has no chunks"},
		{"unknown key", m{"chunks", oneChunk(), "tree", m{}, "zebra", 1}, format.ErrCorrupt, `unknown key "zebra"`},
		{"unknown key deep", withTree(m{"zebra", 1}), format.ErrCorrupt, `unknown key "zebra"`},
		{"key twice", withTree(m{"id", 1, "id", 1}), format.ErrCorrupt, `"id" after key "id"`},
		{"keys descend", withTree(m{"location", "x", "id", 1}), format.ErrCorrupt, `"id" after key "location"`},
		{"key not a string", m{1, 1}, format.ErrCorrupt, "expected a string"},
		{"string for an integer", withTree(m{"id", "1"}), format.ErrCorrupt, "expected an integer"},
		{"nil for an integer", withTree(m{"id", nil}), format.ErrCorrupt, "expected an integer"},
		{"float for an integer", withTree(m{"id", 1.5}), format.ErrCorrupt, "expected an integer"},
		{"id 2^63", withTree(m{"id", uint64(1 << 63)}), format.ErrCorrupt, "out of range"},
		{"id 2^64-1", withTree(m{"id", uint64(math.MaxUint64)}), format.ErrCorrupt, "out of range"},
		{"parallelism 2^31", withOperator("id", make([]byte, 16), "parallelism", int64(1<<31)), format.ErrCorrupt, "not in"},
		{"bin for a string", withTree(m{"location", []byte("x")}), format.ErrCorrupt, "expected a string"},
		{"string for a bin", withTree(m{"wire", "x"}), format.ErrCorrupt, "expected binary"},
		{"number for a bool", withOperator("finished", 1, "id", make([]byte, 16)), format.ErrCorrupt, "true or false"},
		{"operator without id", withOperator(), format.ErrCorrupt, "has no id"},
		{"operator id of 15", withOperator("id", make([]byte, 15)), format.ErrCorrupt, "15 bytes"},
		{"type unknown", withTree(m{"type", "blueprint"}), format.ErrUnsupported, `"blueprint"`},
		{"mode 256", withOperator("id", make([]byte, 16), "subtasks", arr{m{"managed", m{"states", arr{m{"mode", 256}}}}}), format.ErrCorrupt, "256"},
		{"text with empty bytes", withOperator("id", make([]byte, 16), "name", arr{"x", []byte{}}), format.ErrCorrupt, "original bytes of a text are empty"},
		{"text of three", withOperator("id", make([]byte, 16), "name", arr{"x", []byte{1}, 1}), format.ErrCorrupt, "2 parts, found 3"},

		{"array of 2^32-1", withTree(m{"operators", raw(0xdd, math.MaxUint32, 4)}), format.ErrCorrupt, "4294967295"},
		{"map of 2^32-1", withTree(raw(0xdf, math.MaxUint32, 4)), format.ErrCorrupt, "4294967295"},
		{"bin of 2^32-1", withTree(m{"wire", raw(0xc6, math.MaxUint32, 4)}), format.ErrCorrupt, "4294967295"},
		{"string of 2^32-1", withTree(m{"location", raw(0xdb, math.MaxUint32, 4)}), format.ErrCorrupt, "4294967295"},
		{"subtasks over the limit", withOperator("id", make([]byte, 16), "subtasks", make(arr, 32769)), format.ErrLimit, "32769"},

		{"stream 1 of 1", withOperator("coordinator", 1, "id", make([]byte, 16)), format.ErrCorrupt, "stream 1 is outside the table of 1"},
		{"stream -1", withOperator("coordinator", -1, "id", make([]byte, 16)), format.ErrCorrupt, "stream -1"},
		{"stream 2^62", withOperator("coordinator", int64(1<<62), "id", make([]byte, 16)), format.ErrCorrupt, "outside the table of 1"},
		{"key-group streams nested", withOperator("coordinator", deep, "id", make([]byte, 16)), format.ErrLimit, "more than 16 deep"},
		{"changelogs nested", withOperator("id", make([]byte, 16), "subtasks", arr{m{"managed-keyed", deepLog}}), format.ErrLimit, "more than 16 deep"},
		{"keyed of unknown kind", withOperator("id", make([]byte, 16), "subtasks", arr{m{"raw-keyed", arr{"x", m{}}}}), format.ErrUnsupported, `"x"`},
		{"keyed of one part", withOperator("id", make([]byte, 16), "subtasks", arr{m{"raw-keyed", arr{"x"}}}), format.ErrCorrupt, "2 parts, found 1"},

		{"stream of nothing", withStream(), format.ErrCorrupt, "neither as nor chunks"},
		{"inline without chunks", withStream("as", arr{"inline", m{}}), format.ErrCorrupt, "inline stream without"},
		{"empty segment with chunks", withStream("as", arr{"empty", m{}}, "chunks", uvarints(0, 1), "size", 5), format.ErrCorrupt, "empty segment with"},
		{"stream of unknown kind", withStream("as", arr{"tape", m{}}), format.ErrUnsupported, `"tape"`},
		{"field of another kind", withStream("as", arr{"inline", m{"path", "x"}}, "chunks", []byte{}), format.ErrCorrupt, `unknown key "path"`},
		{"size not that of the chunks", withStream("chunks", uvarints(0, 1), "size", 6), format.ErrCorrupt, "6 bytes whose chunks have 5"},
		{"size without chunks", withStream("as", arr{"file", m{}}, "size", 6), format.ErrCorrupt, "6 bytes whose chunks have 0"},
		{"size 2^63", withStream("chunks", uvarints(0, 1), "size", uint64(1<<63)), format.ErrCorrupt, "out of range"},
		{"size -1", withStream("chunks", uvarints(0, 1), "size", -1), format.ErrCorrupt, "not in"},
		{"run behind the table", withStream("chunks", uvarints(0, 2), "size", 5), format.ErrCorrupt, "2 chunks from 0, of 1 in the table"},
		{"run from 2^63", withStream("chunks", uvarints(1<<63, 1), "size", 5), format.ErrCorrupt, "1 in the table"},
		{"run of 2^64-1", withStream("chunks", uvarints(1, math.MaxUint64), "size", 5), format.ErrCorrupt, "1 in the table"},
		{"run of none", withStream("chunks", uvarints(0, 0), "size", 0), format.ErrCorrupt, "1 in the table"},
		{"run cut short", withStream("chunks", uvarints(0), "size", 5), format.ErrCorrupt, "cut short"},
		{"uvarint of 11 bytes", withStream("chunks", bytes.Repeat([]byte{0x80}, 11), "size", 5), format.ErrCorrupt, "cut short"},
		{"chunk lists without end", m{"chunks", oneChunk(), "streams", manyStreams, "tree", m{}}, format.ErrLimit, "chunk lists"},

		{"hashes of 15", withTable("hashes", hash[:15], "kinds", []byte{0}, "raw", uvarints(5), "stored", uvarints(5)), format.ErrCorrupt, "checksums"},
		{"lengths missing", withTable("hashes", hash, "kinds", []byte{0}), format.ErrCorrupt, "lengths"},
		{"lengths too many", withTable("hashes", hash, "kinds", []byte{0}, "raw", uvarints(5, 5), "stored", uvarints(5)), format.ErrCorrupt, "more lengths"},
		{"length not ended", withTable("hashes", hash, "kinds", []byte{0}, "raw", []byte{0x80}, "stored", uvarints(5)), format.ErrCorrupt, "end at chunk 0"},
		{"chunk of 2^63", withTable("hashes", hash, "kinds", []byte{0}, "raw", uvarints(1<<63), "stored", uvarints(1<<63)), format.ErrLimit, "the limit is"},
		{"chunk of 64 MiB and 1", withTable("hashes", hash, "kinds", []byte{2}, "raw", uvarints(64<<20+1), "stored", uvarints(5)), format.ErrLimit, "the limit is"},
		{"chunk of 0", withTable("hashes", hash, "kinds", []byte{0}, "raw", uvarints(0), "stored", uvarints(0)), format.ErrCorrupt, "empty"},
		{"kind 3", withTable("hashes", hash, "kinds", []byte{3}, "raw", uvarints(9), "stored", uvarints(5)), format.ErrUnsupported, "compression 3"},
		{"plain and shorter", withTable("hashes", hash, "kinds", []byte{0}, "raw", uvarints(6), "stored", uvarints(5)), format.ErrCorrupt, "6 bytes stored in 5"},
		{"compressed and not shorter", withTable("hashes", hash, "kinds", []byte{1}, "raw", uvarints(5), "stored", uvarints(5)), format.ErrCorrupt, "5 bytes stored in 5"},
		{"zstd that cannot be", withTable("hashes", hash, "kinds", []byte{1}, "raw", uvarints(5<<15+1), "stored", uvarints(5)), format.ErrCorrupt, "stored in 5"},
		{"stored 2^63", withTable("hashes", hash, "kinds", []byte{1}, "raw", uvarints(9), "stored", uvarints(1<<63)), format.ErrCorrupt, "stored in"},
		{"chunks end early", withTable("hashes", hash, "kinds", []byte{0}, "raw", uvarints(4), "stored", uvarints(4)), format.ErrCorrupt, "the chunks end at 20"},
		{"chunks end late", withTable("hashes", hash, "kinds", []byte{0}, "raw", uvarints(6), "stored", uvarints(6)), format.ErrCorrupt, "after the start of the manifest"},
		{"no chunks in the table", withTable(), format.ErrCorrupt, "the chunks end at 16"},

		{"offsets cut short", withState([]byte{1, 0x80}), format.ErrCorrupt, "offset 1"},
		{"offsets of 11 bytes", withState(append(bytes.Repeat([]byte{0xff}, 10), 1)), format.ErrCorrupt, "offset 0"},
		{"offsets 0 in chunks", withState(arr{0, []byte{}}), format.ErrCorrupt, "not in"},
		{"offsets 2^63-1", withState(arr{int64(math.MaxInt64), uvarints(0, 1)}), format.ErrCorrupt, "in 1 chunks"},
		{"offsets 2^63", withState(arr{uint64(1 << 63), uvarints(0, 1)}), format.ErrCorrupt, "out of range"},
		{"offsets 32769 in one chunk", withState(arr{32769, uvarints(0, 1)}), format.ErrCorrupt, "in 1 chunks"},
		{"offsets of three", withState(arr{1, uvarints(0, 1), 1}), format.ErrCorrupt, "expected offsets of 2 parts, found 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := sealRaw(t, header{major: Major}, []byte("chunk"), marshal(t, c.v))
			f, err := Open(context.Background(), p, int64(len(p)), format.Limits{Memory: 1 << 30})
			if c.kind == nil {
				if err != nil {
					t.Fatal(err)
				}
				if err := f.Verify(context.Background(), func(e format.Error) { t.Error(&e) }); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.msg) {
				t.Fatalf("error %v, want %v with %q", err, c.kind, c.msg)
			}
			var e *format.Error
			if !errors.As(err, &e) || e.Offset != headerSize+5 || !strings.HasPrefix(e.Path, "manifest") {
				t.Errorf("place %v", err)
			}
		})
	}
}

func TestManifestCutAndFollowed(t *testing.T) {
	raw := marshal(t, withState(uvarints(0, 2, 4)))
	for n := range raw {
		if _, err := openRaw(sealRaw(t, header{major: Major}, []byte("chunk"), raw[:n])); !errors.Is(err, format.ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	_, err := openRaw(sealRaw(t, header{major: Major}, []byte("chunk"), append(raw, 0)))
	if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "1 bytes after") {
		t.Errorf("one byte more: %v", err)
	}
}

// An error in a manifest names the place in the savepoint.
func TestErrorsNameThePlace(t *testing.T) {
	_, err := openRaw(sealRaw(t, header{major: Major}, []byte("chunk"), marshal(t, withState([]byte{0x80}))))
	want := "@0x15, manifest/tree/operators/0/subtasks/0/managed/states/0/offsets: "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s…", err, want)
	}
}

func TestNewerMinorVersion(t *testing.T) {
	// Unknown keys of every type, at the top and inside, are passed over.
	extra := m{"id", 7, "novelty", arr{1, -1, "s", []byte("b"), nil, true, 1.5, float32(1), m{"k", arr{arr{}}}, &msgpack.RawMessage{0xd6, 5, 1, 2, 3, 4}, uint64(math.MaxUint64)}, "wire", []byte("w")}
	v := append(withTree(extra), "zebra", m{"a", m{}})
	raw := marshal(t, v)
	f, err := openRaw(sealRaw(t, header{major: Major, minor: Minor + 1}, []byte("chunk"), raw))
	if err != nil {
		t.Fatal(err)
	}
	if sp := f.Savepoint(); sp.ID != 7 || sp.Wire != "w" {
		t.Errorf("read %+v", sp)
	}
	if st := f.Stats(); st.Minor != Minor+1 {
		t.Errorf("%+v", st)
	}
	if _, err := openRaw(sealRaw(t, header{major: Major, minor: Minor}, []byte("chunk"), raw)); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("the same in our version: %v", err)
	}
	// What is passed over is checked as well, and may be deep.
	for _, x := range []msgpack.RawMessage{{0xc1}, {0xdd, 0xff, 0xff, 0xff, 0xff}, {0xdf, 0xff, 0xff, 0xff, 0xff, 1}, {0xc6, 0xff, 0xff, 0xff, 0xff}, {0xc9, 0xff, 0xff, 0xff, 0xff, 1}, {0x93, 1}} {
		raw := marshal(t, append(withTree(m{}), "zebra", x))
		if _, err := openRaw(sealRaw(t, header{major: Major, minor: 1}, []byte("chunk"), raw)); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("% x: %v", x, err)
		}
	}
	deep := append(bytes.Repeat([]byte{0x91}, 10<<20), 0xc0)
	raw = marshal(t, append(withTree(m{}), "zebra", msgpack.RawMessage(deep)))
	if _, err := openRaw(sealRaw(t, header{major: Major, minor: 1}, []byte("chunk"), raw)); err != nil {
		t.Errorf("ten million levels of an unknown key: %v", err)
	}
}

func TestHeaders(t *testing.T) {
	good := sealRaw(t, header{major: Major}, nil, marshal(t, m{"chunks", m{}, "tree", m{}}))
	if _, err := openRaw(good); err != nil {
		t.Fatal(err)
	}
	patch := func(at int, b byte) bytesAt {
		p := bytes.Clone(good)
		p[at] = b
		return p
	}
	for _, c := range []struct {
		name string
		p    bytesAt
		kind error
		msg  string
		off  int64
	}{
		{"major 2", patch(8, 2), format.ErrUnsupported, "version 2.0; this program reads version 1", 8},
		{"major 0", patch(8, 0), format.ErrUnsupported, "version 0.0; this program reads version 1", 8},
		{"major 257", patch(9, 1), format.ErrUnsupported, "version 257.0", 8},
		{"flag", patch(15, 0x80), format.ErrUnsupported, "flags 0x80000000", 12},
		{"lf only", bytes.ReplaceAll(good, []byte("\r\n"), []byte("\n")), format.ErrCorrupt, "text-mode", 4},
		{"crlf", bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n")), format.ErrCorrupt, "text-mode", 4},
		{"seven bits", patch(0, 9), format.ErrCorrupt, "eighth bit", 0},
		{"other file", bytesAt("PK\x03\x04 something else that is long enough to be a file"), format.ErrCorrupt, "not an .spt file: it starts with 50 4b", 0},
		{"nothing", bytesAt{}, format.ErrCorrupt, "not an .spt file", 0},
		{"half a magic", good[:4], ErrNotSealed, "ends within its header", 4},
		{"half a header", good[:12], ErrNotSealed, "ends within its header", 12},
		{"header only", good[:16], ErrNotSealed, "not sealed", 16},
		{"no trailer", good[:len(good)-1], ErrNotSealed, "not sealed", int64(len(good) - 1)},
		{"trailing byte", append(bytes.Clone(good), 0), ErrNotSealed, "not sealed", int64(len(good) + 1)},
		{"middle missing", append(bytes.Clone(good[:20]), good[21:]...), format.ErrCorrupt, "", int64(len(good) - 1 - trailerSize)},
		{"middle doubled", append(bytes.Clone(good[:20]), good[19:]...), format.ErrCorrupt, "", int64(len(good) + 1 - trailerSize)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := openRaw(c.p)
			var e *format.Error
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.msg) || !errors.As(err, &e) || e.Offset != c.off {
				t.Errorf("error %v, want %v with %q at %d", err, c.kind, c.msg, c.off)
			}
			if c.kind == ErrNotSealed && (!errors.Is(err, format.ErrTruncated) || !errors.Is(err, io.ErrUnexpectedEOF)) {
				t.Errorf("%v is no truncation", err)
			}
		})
	}
	for head, want := range map[string]bool{"": false, "\x89SP": false, magic: true, magic[:4]: true, "\x89SPT\n\x1a": true, "PK\x03\x04": false} {
		if Sniff([]byte(head)) != want {
			t.Errorf("Sniff(%q) is %v", head, !want)
		}
	}
}

func TestTrailerClaims(t *testing.T) {
	good := sealRaw(t, header{major: Major}, nil, marshal(t, m{"chunks", m{}, "tree", m{}}))
	at := len(good) - trailerSize
	for _, c := range []struct {
		name string
		off  int
		v    []byte
		kind error
	}{
		{"manifest at 2^63", 0, binary.LittleEndian.AppendUint64(nil, 1<<63), format.ErrTruncated},
		{"manifest at 2^64-1", 0, binary.LittleEndian.AppendUint64(nil, math.MaxUint64), format.ErrTruncated},
		{"manifest at 0", 0, binary.LittleEndian.AppendUint64(nil, 0), format.ErrCorrupt},
		{"stored 2^32-1", 8, binary.LittleEndian.AppendUint32(nil, math.MaxUint32), format.ErrCorrupt},
		{"raw 2^32-1", 12, binary.LittleEndian.AppendUint32(nil, math.MaxUint32), format.ErrLimit},
		{"raw 1 GiB", 12, binary.LittleEndian.AppendUint32(nil, 1<<30), format.ErrCorrupt},
		{"raw 0", 12, binary.LittleEndian.AppendUint32(nil, 0), format.ErrCorrupt},
		{"hash", 16, make([]byte, 16), format.ErrCorrupt},
	} {
		p := bytes.Clone(good)
		copy(p[at+c.off:], c.v)
		if _, err := openRaw(p); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", c.name, err, c.kind)
		}
	}
}

// Chunks that break what the manifest says of them: each is found when it is
// read, and Verify finds all.
func TestHostileChunks(t *testing.T) {
	enc, err := newZstdEncoder(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	bomb := enc.EncodeAll(zeros, nil)
	hash := hashOf(zeros)
	var chunks, kinds, hashes, raw, stored []byte
	add := func(p []byte, kind byte, n int) {
		chunks = append(chunks, p...)
		kinds = append(kinds, kind)
		hashes = append(hashes, hash[:]...)
		raw = append(raw, uvarints(uint64(n))...)
		stored = append(stored, uvarints(uint64(len(p)))...)
	}
	add(bomb, storedZstd, 1<<20)                                        // good
	add(bomb, storedZstd, 1<<20-1)                                      // longer than it says
	add(bomb, storedZstd, 1<<20+1)                                      // shorter
	add(bomb, storedS2, 1<<20)                                          // not s2
	add([]byte("no zstd"), storedZstd, 1000)                            // garbage
	add(uvarints(math.MaxUint32), storedS2, 1000)                       // a length of 4 GiB
	add(make([]byte, 100), storedPlain, 100)                            // wrong checksum
	add(append(bomb[:len(bomb):len(bomb)], bomb...), storedZstd, 1<<20) // two frames
	const n = 8
	v := m{"chunks", m{"hashes", hashes, "kinds", kinds, "raw", raw, "stored", stored}, "streams", arr{}, "tree", m{}}
	f, err := openRaw(sealRaw(t, header{major: Major}, chunks, marshal(t, v)))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	err = f.Verify(context.Background(), func(e format.Error) {
		if !errors.Is(&e, format.ErrCorrupt) || e.Offset < headerSize {
			t.Errorf("%v", &e)
		}
		found = append(found, e.Error())
	})
	if err != nil || len(found) != n-1 {
		t.Errorf("%v, and found %d of %d:\n%s", err, len(found), n-1, strings.Join(found, "\n"))
	}
	for i := range uint32(n) {
		if _, err := f.chunk(context.Background(), i); (err != nil) != (i > 0) {
			t.Errorf("chunk %d: %v", i, err)
		}
	}
}

// Chunks that are no offsets, or not so many.
func TestHostileOffsets(t *testing.T) {
	good := appendBlock(nil, []int64{5, 6, 7})
	for _, c := range []struct {
		name  string
		chunk []byte
		n     int
		ok    bool
	}{
		{"good", good, 3, true},
		{"one more", append(bytes.Clone(good), 0), 3, false},
		{"one less", good[:len(good)-1], 3, false},
		{"more claimed", good, 4, false},
		{"fewer claimed", good, 2, false},
		{"no header", good[:8], 1, false},
		{"width 9", append(append(bytes.Clone(good[:8]), 9), make([]byte, 18)...), 3, false},
		{"width 255", append(bytes.Clone(good[:8]), 255), 3, false},
		{"width 0", append(bytes.Clone(good[:8]), 0), 3, true},
	} {
		h := hashOf(c.chunk)
		n := uvarints(uint64(len(c.chunk)))
		v := m{"chunks", m{"hashes", h[:], "kinds", []byte{0}, "raw", n, "stored", n}, "streams", arr{m{"as", arr{"empty", m{}}}}, "tree",
			m{"operators", arr{m{"id", make([]byte, 16), "subtasks", arr{m{"managed", m{"data", 0, "states", arr{m{"offsets", arr{c.n, uvarints(0, 1)}}}}}}}}}}
		f, err := openRaw(sealRaw(t, header{major: Major}, c.chunk, marshal(t, v)))
		if err != nil {
			t.Fatal(err)
		}
		o := f.Savepoint().Operators[0].Subtasks[0].Managed.States[0].Offsets
		_, err = o.Read(context.Background(), make([]int64, c.n), 0)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%s: read: %v", c.name, err)
		}
		findings := 0
		if err := f.Verify(context.Background(), func(format.Error) { findings++ }); err != nil || (findings == 0) != c.ok {
			t.Errorf("%s: verify: %v, %d findings", c.name, err, findings)
		}
	}
}

// Arrays that share a chunk and give it different lengths cannot both be right.
func TestOffsetsThatDisagree(t *testing.T) {
	chunk := appendBlock(nil, []int64{5, 6, 7})
	h := hashOf(chunk)
	n := uvarints(uint64(len(chunk)))
	state := func(k int) m { return m{"name", string(rune('a' + k)), "offsets", arr{k, uvarints(0, 1)}} }
	v := m{"chunks", m{"hashes", h[:], "kinds", []byte{0}, "raw", n, "stored", n}, "streams", arr{m{"as", arr{"empty", m{}}}}, "tree",
		m{"operators", arr{m{"id", make([]byte, 16), "subtasks", arr{m{"managed", m{"data", 0, "states", arr{state(4), state(3)}}}}}}}}
	f, err := openRaw(sealRaw(t, header{major: Major}, chunk, marshal(t, v)))
	if err != nil {
		t.Fatal(err)
	}
	findings := 0
	if err := f.Verify(context.Background(), func(format.Error) { findings++ }); err != nil || findings != 1 {
		t.Errorf("%v, %d findings", err, findings)
	}
}

// Everything that claims to be many in few bytes is refused before memory is
// taken for it: a file of a few kilobytes may not cost more than the limits.
func TestSmallFilesCostLittle(t *testing.T) {
	// 16 million nil where handles are expected: one byte each, compressed to
	// almost nothing.
	raw := marshal(t, withOperator("id", make([]byte, 16), "subtasks", arr{m{"managed-keyed", arr{keyChangelog, m{
		"changes", msgpack.RawMessage(append([]byte{0xdd, 1, 0, 0, 0}, bytes.Repeat([]byte{0xc0}, 1<<24)...))}}}}))
	_, err := openRaw(sealRaw(t, header{major: Major}, []byte("chunk"), raw))
	if !errors.Is(err, format.ErrLimit) {
		t.Errorf("%v", err)
	}
}
