package spt

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/savepoint-tools/spt/format"
)

// skippable is a zstd frame of another kind, which decoders skip (RFC 8878, 3.1.2).
var skippable = []byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'x', 'y', 'z'}

// frames are ways to store content as zstd; those without err are one frame.
func frames(t *testing.T, content []byte) map[string]struct {
	p   []byte
	err string
} {
	t.Helper()
	enc, err := newZstdEncoder(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	checked, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(true))
	if err != nil {
		t.Fatal(err)
	}
	var streamed bytes.Buffer
	w, err := zstd.NewWriter(&streamed)
	if err != nil {
		t.Fatal(err)
	}
	for p := content; len(p) > 0; {
		n := min(len(p), 1000)
		if _, err := w.Write(p[:n]); err != nil {
			t.Fatal(err)
		}
		p = p[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	one := enc.EncodeAll(content, nil)
	half := len(content) / 2
	cat := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	type frame = struct {
		p   []byte
		err string
	}
	return map[string]frame{
		"one frame":              {one, ""},
		"with a checksum":        {checked.EncodeAll(content, nil), ""},
		"streamed, without size": {streamed.Bytes(), ""},
		"two frames":             {cat(enc.EncodeAll(content[:half], nil), enc.EncodeAll(content[half:], nil)), "after the zstd frame"},
		"skippable before":       {cat(skippable, one), "not a zstd frame"},
		"skippable after":        {cat(one, skippable), "11 bytes after"},
		"skippable alone":        {skippable, "not a zstd frame"},
		"empty frame after":      {cat(one, enc.EncodeAll(nil, nil)), "after the zstd frame"},
		"a byte after":           {cat(one, []byte{0}), "1 bytes after"},
		"cut":                    {one[:len(one)-1], "cut short"},
		"nothing":                {nil, "not a zstd frame"},
	}
}

// Where the document requires one zstd frame, a chunk or the manifest of several
// frames, or with a skippable frame, is refused: by opening, reading and Verify.
func TestOneFrame(t *testing.T) {
	content := bytes.Repeat([]byte("content "), 5000)
	hash := hashOf(content)
	raw := marshal(t, withTree(m{"id", 7}))
	for name, c := range frames(t, content) {
		n := uvarints(uint64(len(c.p)))
		v := m{"chunks", m{"hashes", hash[:], "kinds", []byte{storedZstd}, "raw", uvarints(uint64(len(content))), "stored", n}, "tree", m{}}
		f, err := openRaw(sealRaw(t, header{major: Major}, c.p, marshal(t, v)))
		if name == "nothing" { // too few bytes for so many
			if !errors.Is(err, format.ErrCorrupt) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(name, err)
		}
		var found []string
		if err := f.Verify(context.Background(), func(e format.Error) { found = append(found, e.Error()) }); err != nil {
			t.Fatal(name, err)
		}
		_, err = f.chunk(context.Background(), 0)
		if (c.err == "") != (err == nil) || (c.err == "") != (len(found) == 0) || err != nil && (!errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: read: %v; verify: %q; want %q", name, err, found, c.err)
		}
	}
	for name, c := range frames(t, raw) {
		p := append(header{major: Major}.append(nil), "chunk"...)
		tr := trailer{manifest: int64(len(p)), stored: uint32(len(c.p)), raw: uint32(len(raw)), hash: hashOf(c.p)}
		_, err := openRaw(tr.append(append(p, c.p...)))
		if (c.err == "") != (err == nil) || err != nil && !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("manifest, %s: %v, want %q", name, err, c.err)
		}
	}
}

// oneFrame finds the end of what encoders make, for all sizes and levels.
func TestOneFrameOfAllSizes(t *testing.T) {
	for _, level := range []int{1, 3, 7, 22} {
		enc, err := newZstdEncoder(level, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 2, 255, 256, 65535, 65536, 65791, 65792, 1 << 20} {
			mixed := bytes.Repeat([]byte("abcdefg "), n/16+1)
			p := enc.EncodeAll(append(make([]byte, n/2), mixed...)[:n], nil)
			if err := oneFrame(p); err != nil {
				t.Errorf("level %d, %d bytes: %v", level, n, err)
			}
			if err := oneFrame(append(p, 0)); err == nil {
				t.Errorf("level %d, %d bytes and one more", level, n)
			}
		}
	}
}
