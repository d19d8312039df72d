package spt

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/savepoint-tools/spt/format"
)

// Compression is the compression of chunks.
type Compression string

// The compressions. Chunks that would not become smaller are stored uncompressed.
const (
	Zstd Compression = "zstd" // the default
	S2   Compression = "s2"   // faster, larger
	None Compression = "none"
)

// ParseCompression parses the name of a compression; "" is the default.
func ParseCompression(s string) (Compression, error) {
	switch c := Compression(s); c {
	case "":
		return Zstd, nil
	case Zstd, S2, None:
		return c, nil
	}
	return "", fmt.Errorf("compression %q is not known; available: zstd, s2, none", s)
}

// Options are the options of a [Writer]. The zero value is ready to use.
type Options struct {
	Compression Compression // "": zstd
	// Level is the compression level; 0 is the default. zstd: 1 to 22 (default 3);
	// s2: 1 to 3 (default 1).
	Level int
	// Jobs is the number of chunks that are compressed in parallel; 0: one per
	// processor. The output does not depend on it.
	Jobs int
	// Progress, if set, is called after each n bytes of streams are added, by the
	// goroutine that writes.
	Progress func(n int64)
}

// withDefaults replaces zeros by defaults and rejects invalid values.
func (o Options) withDefaults() (Options, error) {
	var err error
	if o.Compression, err = ParseCompression(string(o.Compression)); err != nil {
		return o, err
	}
	lowest, highest, normal := 0, 0, 0
	switch o.Compression {
	case Zstd:
		lowest, highest, normal = 1, 22, 3
	case S2:
		lowest, highest, normal = 1, 3, 1
	}
	if o.Level == 0 {
		o.Level = normal
	}
	if o.Level < lowest || o.Level > highest {
		return o, fmt.Errorf("compression level %d: %s has levels %d to %d", o.Level, o.Compression, lowest, highest)
	}
	if o.Jobs < 0 {
		return o, fmt.Errorf("jobs must not be negative: %d", o.Jobs)
	}
	if o.Jobs == 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	return o, nil
}

// Kinds of chunks. Wire format: never change.
const (
	storedPlain = 0
	storedZstd  = 1 // one zstd frame
	storedS2    = 2 // one s2 block, not a stream of frames
	storedKinds = 3
)

// newZstdEncoder returns an encoder of whole chunks, safe for concurrent use. Its
// frames have no checksum, since chunks have their own.
func newZstdEncoder(level, jobs int) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)),
		zstd.WithEncoderConcurrency(jobs),
		zstd.WithEncoderCRC(false),
		zstd.WithZeroFrames(true))
}

// newZstdDecoder returns a decoder that does not exceed the buffer passed to it.
func newZstdDecoder(limits format.Limits) (*zstd.Decoder, error) {
	return zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(0), // one per processor
		zstd.WithDecoderMaxMemory(uint64(max(limits.Chunk, limits.Manifest))),
		zstd.WithDecodeAllCapLimit(true))
}

// maxInflated returns the largest size to which n bytes of zstd can decompress: a
// block of 128 KiB takes at least 4 bytes. It bounds the buffer for a small input
// by more than the limits do.
func maxInflated(n int64) int64 { return n * (128 << 10 / 4) }

// oneFrame returns an error unless p is exactly one zstd frame (RFC 8878, 3.1.1),
// as far as the lengths of its parts show. A decoder accepts several frames and
// skips frames of other kinds; then one content could be stored in many ways, and
// bytes could be hidden between frames.
//
//	field             width     meaning
//	magic             4         28 B5 2F FD
//	descriptor        1         bits 7–6 size of the content size, 5 single segment,
//	                            2 checksum, 1–0 size of the dictionary id
//	window            0 or 1    absent in a single segment
//	dictionary id     0, 1, 2, 4
//	content size      0, 1, 2, 4, 8
//	blocks            3 + n     last (1 bit), type (2 bits), size (21 bits)
//	checksum          0 or 4
func oneFrame(p []byte) error {
	if len(p) < 5 || string(p[:4]) != "\x28\xb5\x2f\xfd" {
		return errors.New("not a zstd frame")
	}
	descriptor := p[4]
	single := descriptor>>5&1 == 1
	at := 5
	if !single {
		at++
	}
	if descriptor&3 != 0 {
		return errors.New("the zstd frame has a dictionary")
	}
	if n := descriptor >> 6; n > 0 {
		at += 1 << n
	} else if single {
		at++
	}
	for last := false; !last; {
		if len(p)-at < 3 {
			return errors.New("the zstd frame is cut short")
		}
		block := int(p[at]) | int(p[at+1])<<8 | int(p[at+2])<<16
		last = block&1 == 1
		size := block >> 3
		if block>>1&3 == 1 { // one byte, repeated
			size = 1
		}
		if at += 3; size > len(p)-at {
			return errors.New("the zstd frame is cut short")
		}
		at += size
	}
	if descriptor>>2&1 == 1 {
		at += 4
	}
	switch {
	case at > len(p):
		return errors.New("the zstd frame is cut short")
	case at < len(p):
		return fmt.Errorf("%d bytes after the zstd frame", len(p)-at)
	}
	return nil
}

// inflate decompresses a chunk or the manifest to exactly len(dst) bytes.
func inflate(d *zstd.Decoder, dst, stored []byte, kind byte) error {
	var got []byte
	var err error
	switch kind {
	case storedPlain:
		got = stored
	case storedZstd:
		if err = oneFrame(stored); err == nil {
			got, err = d.DecodeAll(stored, dst[:0:len(dst)])
		}
	case storedS2:
		var n int
		if n, err = s2.DecodedLen(stored); err == nil && n != len(dst) {
			return format.Errorf(format.ErrCorrupt, "it decompresses to %d bytes, not %d", n, len(dst))
		}
		if err == nil {
			got, err = s2.Decode(dst, stored)
		}
	}
	switch {
	case err != nil:
		return format.Errorf(format.ErrCorrupt, "it does not decompress to %d bytes: %v", len(dst), err)
	case len(got) != len(dst):
		return format.Errorf(format.ErrCorrupt, "it decompresses to %d bytes, not %d", len(got), len(dst))
	case len(dst) > 0 && &got[0] != &dst[0]:
		copy(dst, got)
	}
	return nil
}
