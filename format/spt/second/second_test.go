// Package second_test is a second reader of .spt files. It was written from
// docs/format.md alone and shares no code with package spt: what it and the
// document say of the conformance vectors must agree. It imports no package of this
// module.
package second_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

var errCorrupt = errors.New("corrupt")

func corrupt(text string, args ...any) error {
	return fmt.Errorf("%w: "+text, append([]any{errCorrupt}, args...)...)
}

// file is an open file: its manifest as plain values, and its chunks.
type file struct {
	p      []byte
	tree   map[string]any
	chunks []chunk
	refs   [][]byte // the bytes of each stream; nil: elsewhere
}

type chunk struct {
	at, stored, raw int
	kind            byte
	hash            []byte
}

var decoder, _ = zstd.NewReader(nil)

func open(p []byte) (*file, error) {
	if len(p) < 56 || string(p[:8]) != "\x89SPT\r\n\x1a\n" || string(p[len(p)-8:]) != "\x1aSPT\r\nE\x89" {
		return nil, corrupt("header or end magic")
	}
	le := binary.LittleEndian
	if major := le.Uint16(p[8:]); major != 1 {
		return nil, corrupt("major version %d", major)
	}
	if flags := le.Uint32(p[12:]); flags != 0 {
		return nil, corrupt("flags %x", flags)
	}
	t := p[len(p)-40:]
	at, stored, raw := le.Uint64(t), le.Uint32(t[8:]), le.Uint32(t[12:])
	if at < 16 || at+uint64(stored)+40 != uint64(len(p)) {
		return nil, corrupt("the manifest is not where it should be")
	}
	frame := p[at : at+uint64(stored)]
	if sum := sha256.Sum256(frame); !bytes.Equal(sum[:16], t[16:32]) {
		return nil, corrupt("checksum of the manifest")
	}
	manifest, err := decoder.DecodeAll(frame, nil)
	if err != nil || len(manifest) != int(raw) {
		return nil, corrupt("the manifest has %d bytes, %v", len(manifest), err)
	}
	v, rest, err := value(manifest)
	if err != nil || len(rest) > 0 {
		return nil, corrupt("msgpack: %v, %d bytes after it", err, len(rest))
	}
	top, ok := v.(map[string]any)
	if !ok {
		return nil, corrupt("the manifest is not a map")
	}
	f := &file{p: p}
	if f.tree, ok = top["tree"].(map[string]any); !ok {
		return nil, corrupt("no tree")
	}
	if err := f.table(top["chunks"], int(at)); err != nil {
		return nil, err
	}
	streams, _ := top["streams"].([]any)
	for _, s := range streams {
		m := s.(map[string]any)
		list, ok := m["chunks"].([]byte)
		if !ok {
			f.refs = append(f.refs, nil)
			continue
		}
		content, err := f.read(list)
		if err != nil {
			return nil, err
		}
		if size := number(m["size"]); size != int64(len(content)) {
			return nil, corrupt("a stream of %d bytes has %d", size, len(content))
		}
		f.refs = append(f.refs, content)
	}
	return f, nil
}

func (f *file) table(v any, end int) error {
	m, ok := v.(map[string]any)
	if !ok {
		return corrupt("no chunk table")
	}
	hashes, _ := m["hashes"].([]byte)
	kinds, _ := m["kinds"].([]byte)
	raws, _ := m["raw"].([]byte)
	lengths, _ := m["stored"].([]byte)
	at := 16
	for i, kind := range kinds {
		raw, k := binary.Uvarint(raws)
		n, l := binary.Uvarint(lengths)
		if k <= 0 || l <= 0 || len(hashes) < 16*(i+1) {
			return corrupt("chunk table")
		}
		raws, lengths = raws[k:], lengths[l:]
		f.chunks = append(f.chunks, chunk{at, int(n), int(raw), kind, hashes[16*i:][:16]})
		at += int(n)
	}
	if at != end || len(raws)+len(lengths) > 0 {
		return corrupt("the chunks end at %d, not %d", at, end)
	}
	return nil
}

// chunk is the content of a chunk.
func (f *file) chunk(i uint64) ([]byte, error) {
	if i >= uint64(len(f.chunks)) {
		return nil, corrupt("chunk %d", i)
	}
	c := f.chunks[i]
	p := f.p[c.at : c.at+c.stored]
	var err error
	switch c.kind {
	case 1:
		p, err = decoder.DecodeAll(p, nil)
	case 2:
		p, err = s2(p)
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(p); len(p) != c.raw || !bytes.Equal(sum[:16], c.hash) {
		return nil, corrupt("chunk %d", i)
	}
	return p, nil
}

// read is the content of a chunk list.
func (f *file) read(list []byte) ([]byte, error) {
	content := []byte{}
	for len(list) > 0 {
		first, k := binary.Uvarint(list)
		n, l := binary.Uvarint(list[k:])
		if k <= 0 || l <= 0 || n == 0 {
			return nil, corrupt("chunk list")
		}
		list = list[k+l:]
		for i := range n {
			p, err := f.chunk(first + i)
			if err != nil {
				return nil, err
			}
			content = append(content, p...)
		}
	}
	return content, nil
}

// s2 decodes a block as docs/format.md defines it.
func s2(p []byte) ([]byte, error) {
	size, k := binary.Uvarint(p)
	if k <= 0 {
		return nil, corrupt("s2")
	}
	p = p[k:]
	var out []byte
	offset := 0
	little := func(n int) int {
		v := 0
		for i := range n {
			v |= int(p[i]) << (8 * i)
		}
		p = p[n:]
		return v
	}
	for len(p) > 0 {
		tag := int(p[0])
		p = p[1:]
		length := 0
		switch tag & 3 {
		case 0:
			n := tag >> 2
			if n >= 60 {
				n = little(n - 59)
			}
			out = append(out, p[:n+1]...)
			p = p[n+1:]
			continue
		case 1:
			length = tag >> 2 & 7
			if o := tag>>5<<8 | little(1); o > 0 {
				offset = o
				length += 4
				break
			}
			switch length { // a repeat
			case 5:
				length = 8 + little(1)
			case 6:
				length = 260 + little(2)
			case 7:
				length = 65540 + little(3)
			default:
				length += 4
			}
		case 2:
			length, offset = tag>>2+1, little(2)
		case 3:
			length, offset = tag>>2+1, little(4)
		}
		if offset == 0 || offset > len(out) {
			return nil, corrupt("s2: a copy from %d before", offset)
		}
		for range length {
			out = append(out, out[len(out)-offset])
		}
	}
	if len(out) != int(size) {
		return nil, corrupt("s2: %d bytes, not %d", len(out), size)
	}
	return out, nil
}

// value decodes one msgpack value: map[string]any, []any, string, []byte, int64,
// float64, bool or nil.
func value(p []byte) (any, []byte, error) {
	if len(p) == 0 {
		return nil, nil, corrupt("short")
	}
	c := p[0]
	p = p[1:]
	length := func(width int) (int, error) {
		if len(p) < width {
			return 0, corrupt("short")
		}
		v := 0
		for _, b := range p[:width] {
			v = v<<8 | int(b)
		}
		p = p[width:]
		return v, nil
	}
	take := func(n int, err error) ([]byte, []byte, error) {
		if err != nil || n > len(p) {
			return nil, nil, corrupt("short")
		}
		return p[:n], p[n:], nil
	}
	str := func(n int, err error) (any, []byte, error) {
		s, rest, err := take(n, err)
		return string(s), rest, err
	}
	bin := func(n int, err error) (any, []byte, error) {
		s, rest, err := take(n, err)
		return append([]byte{}, s...), rest, err
	}
	array := func(n int, err error) (any, []byte, error) {
		all := []any{}
		for i := 0; i < n && err == nil; i++ {
			var v any
			v, p, err = value(p)
			all = append(all, v)
		}
		return all, p, err
	}
	object := func(n int, err error) (any, []byte, error) {
		m := map[string]any{}
		last := ""
		for i := 0; i < n && err == nil; i++ {
			var k, v any
			if k, p, err = value(p); err != nil {
				break
			}
			key, ok := k.(string)
			if !ok || i > 0 && key <= last {
				return nil, nil, corrupt("key %v after %q", k, last)
			}
			last = key
			v, p, err = value(p)
			m[key] = v
		}
		return m, p, err
	}
	integer := func(width int, signed bool) (any, []byte, error) {
		v, rest, err := take(width, nil)
		if err != nil {
			return nil, nil, err
		}
		var u uint64
		for _, b := range v {
			u = u<<8 | uint64(b)
		}
		if signed {
			return int64(u<<(64-8*width)) >> (64 - 8*width), rest, nil
		}
		if u > math.MaxInt64 {
			return nil, nil, corrupt("too large")
		}
		return int64(u), rest, nil
	}
	switch {
	case c < 0x80:
		return int64(c), p, nil
	case c < 0x90:
		return object(int(c&15), nil)
	case c < 0xa0:
		return array(int(c&15), nil)
	case c < 0xc0:
		return str(int(c&31), nil)
	case c >= 0xe0:
		return int64(int8(c)), p, nil
	}
	switch c {
	case 0xc0:
		return nil, p, nil
	case 0xc2, 0xc3:
		return c == 0xc3, p, nil
	case 0xc4, 0xc5, 0xc6:
		return bin(length(1 << (c - 0xc4)))
	case 0xcb:
		_, rest, err := take(8, nil)
		return 0.5, rest, err
	case 0xcc, 0xcd, 0xce, 0xcf:
		return integer(1<<(c-0xcc), false)
	case 0xd0, 0xd1, 0xd2, 0xd3:
		return integer(1<<(c-0xd0), true)
	case 0xd9, 0xda, 0xdb:
		return str(length(1 << (c - 0xd9)))
	case 0xdc, 0xdd:
		return array(length(2 << (c - 0xdc)))
	case 0xde, 0xdf:
		return object(length(2 << (c - 0xde)))
	}
	return nil, nil, corrupt("code %x", c)
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

// offsets is an array of offsets, in the manifest or in chunks.
func (f *file) offsets(v any) ([]int64, error) {
	all := []int64{}
	switch v := v.(type) {
	case nil:
		return all, nil
	case []byte:
		last := int64(0)
		for len(v) > 0 {
			u, k := binary.Uvarint(v)
			if k <= 0 {
				return nil, corrupt("offsets")
			}
			v = v[k:]
			last += int64(u>>1) ^ -int64(u&1)
			all = append(all, last)
		}
		return all, nil
	case []any:
		n := number(v[0])
		p, err := f.read(v[1].([]byte)) // blocks do not cross chunks, and chunks hold whole ones
		if err != nil {
			return nil, err
		}
		for int64(len(all)) < n {
			count := min(n-int64(len(all)), 1024)
			if len(p) < 9 {
				return nil, corrupt("offsets")
			}
			last, w := int64(binary.LittleEndian.Uint64(p)), int(p[8])
			p = p[9:]
			all = append(all, last)
			if w > 8 || len(p) < w*int(count-1) {
				return nil, corrupt("offsets")
			}
			for range count - 1 {
				var u uint64
				for k := range w {
					u |= uint64(p[k]) << (8 * k)
				}
				p = p[w:]
				last += int64(u>>1) ^ -int64(u&1)
				all = append(all, last)
			}
		}
		if len(p) > 0 {
			return nil, corrupt("bytes after offsets")
		}
		return all, nil
	}
	return nil, corrupt("offsets of %T", v)
}

// bytesOf is the content of a stream: a number, or a key-group stream.
func (f *file) bytesOf(v any) []byte {
	if m, ok := v.(map[string]any); ok {
		return f.bytesOf(m["data"])
	}
	if n, ok := v.(int64); ok {
		return f.refs[n]
	}
	return nil
}

func cut(p []byte, starts []int64, end int64) []string {
	out := []string{}
	ends := append(slices.Clone(starts), end)
	for i, from := range starts {
		out = append(out, hex.EncodeToString(p[from:max(from, ends[i+1])]))
	}
	return out
}

type state struct {
	Operator int      `json:"operator"`
	Subtask  int64    `json:"subtask"`
	Slot     string   `json:"slot"`
	Name     string   `json:"name"`
	Mode     int64    `json:"mode"`
	Elements []string `json:"elements"`
}

type keyGroups struct {
	Operator int      `json:"operator"`
	Subtask  int64    `json:"subtask"`
	Slot     string   `json:"slot"`
	First    int64    `json:"first"`
	Groups   []string `json:"groups"`
}

type holds struct {
	Streams   []*string   `json:"streams"`
	States    []state     `json:"states"`
	KeyGroups []keyGroups `json:"key_groups"`
	Tree      any         `json:"tree"`
}

func (f *file) holds() (*holds, error) {
	h := &holds{Streams: []*string{}, States: []state{}, KeyGroups: []keyGroups{}}
	for _, p := range f.refs {
		if p == nil {
			h.Streams = append(h.Streams, nil)
			continue
		}
		s := hex.EncodeToString(p)
		h.Streams = append(h.Streams, &s)
	}
	operators, _ := f.tree["operators"].([]any)
	for o, op := range operators {
		subtasks, _ := op.(map[string]any)["subtasks"].([]any)
		for _, s := range subtasks {
			s := s.(map[string]any)
			for _, slot := range []string{"managed", "raw"} {
				handle, ok := s[slot].(map[string]any)
				if !ok {
					continue
				}
				all, _ := handle["states"].([]any)
				starts := make([][]int64, len(all))
				for i, st := range all {
					var err error
					if starts[i], err = f.offsets(st.(map[string]any)["offsets"]); err != nil {
						return nil, err
					}
				}
				content := f.bytesOf(handle["data"])
				for i, st := range all {
					end := int64(len(content))
					for k, other := range starts {
						if n := len(starts[i]); n > 0 && k != i && len(other) > 0 && other[0] > starts[i][n-1] {
							end = min(end, other[0])
						}
					}
					st := st.(map[string]any)
					name, _ := st["name"].(string)
					h.States = append(h.States, state{o, number(s["index"]), slot, name, number(st["mode"]), cut(content, starts[i], end)})
				}
			}
			for _, slot := range []string{"managed-keyed", "raw-keyed"} {
				pair, ok := s[slot].([]any)
				if !ok || pair[0] != "key-groups" {
					continue
				}
				k := pair[1].(map[string]any)
				starts, err := f.offsets(k["offsets"])
				if err != nil {
					return nil, err
				}
				content := f.bytesOf(k["data"])
				h.KeyGroups = append(h.KeyGroups, keyGroups{o, number(s["index"]), slot, number(k["first"]), cut(content, starts, int64(len(content)))})
			}
		}
	}
	tree, err := f.plain("", f.tree)
	h.Tree = tree
	return h, err
}

// plain is a value as the index shows it.
func (f *file) plain(key string, v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		o := map[string]any{}
		for k, x := range v {
			if k == "zz" || k == "unknown" {
				continue
			}
			var err error
			if o[k], err = f.plain(k, x); err != nil {
				return nil, err
			}
		}
		return o, nil
	case []any:
		if key == "offsets" {
			all, err := f.offsets(v)
			return map[string]any{"offsets": all}, err
		}
		all := []any{}
		for _, x := range v {
			p, err := f.plain("", x)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		return all, nil
	case []byte:
		return map[string]any{"bin": hex.EncodeToString(v)}, nil
	case string:
		if !utf8.ValidString(v) {
			return map[string]any{"str": hex.EncodeToString([]byte(v))}, nil
		}
	}
	return v, nil
}

const vectors = "../testdata/vectors"

// TestSecondReader reads every valid vector and compares what it holds with the
// index, and refuses the invalid ones whose fault is in the container.
func TestSecondReader(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(vectors, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index []struct {
		File  string `json:"file"`
		Valid bool   `json:"valid"`
		By    string `json:"by"`
		Holds any    `json:"holds"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	valid := 0
	for _, v := range index {
		if !v.Valid {
			continue
		}
		valid++
		p, err := os.ReadFile(filepath.Join(vectors, filepath.FromSlash(v.File)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := open(p)
		if err != nil {
			t.Errorf("%s: %v", v.File, err)
			continue
		}
		h, err := f.holds()
		if err != nil {
			t.Errorf("%s: %v", v.File, err)
			continue
		}
		got, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(got, &plain); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(plain) // keys in order
		b, _ := json.Marshal(v.Holds)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: holds\n%s\nwant\n%s", v.File, a, b)
		}
	}
	if valid < 20 {
		t.Errorf("%d valid vectors", valid)
	}
}

// TestSecondReaderOnFixtures reads the .spt files of the fixtures, which spt
// wrote, to the last byte.
func TestSecondReaderOnFixtures(t *testing.T) {
	found, err := filepath.Glob("../../../testdata/savepoints/*.spt")
	if err != nil || len(found) < 3 {
		t.Fatalf("%d files, %v", len(found), err)
	}
	for _, path := range found {
		p, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := open(p)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if h, err := f.holds(); err != nil || len(h.States)+len(h.KeyGroups) == 0 {
			t.Errorf("%s: %v, %+v", path, err, h)
		}
	}
}
