package spt

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/limit"
)

// The version that is written. Files with the same major version are read, whatever
// their minor version.
const (
	Major = 1
	Minor = 0
)

// Wire format: never change.
const (
	magic    = "\x89SPT\r\n\x1a\n"
	endMagic = "\x1aSPT\r\nE\x89"

	headerSize  = 16
	trailerSize = 40
	hashSize    = 16 // first bytes of a SHA-256
)

// ErrNotSealed matches the error for a file that starts as an .spt file but has no
// trailer: its writer was interrupted, or the file was truncated.
var ErrNotSealed = fmt.Errorf("%w: not sealed", format.ErrTruncated)

// Sniff reports whether head, the first four bytes of a file or more, starts an
// .spt file, possibly one that a text-mode transfer damaged, so that [Open] can
// report the damage.
func Sniff(head []byte) bool { return strings.HasPrefix(string(head[:min(len(head), 4)]), magic[:4]) }

// header is the first 16 bytes:
//
//	field  width  meaning
//	magic  8      89 53 50 54 0D 0A 1A 0A
//	major  u16    1
//	minor  u16    0
//	flags  u32    0: no flags are defined
type header struct {
	major, minor uint16
}

func (h header) append(p []byte) []byte {
	p = append(p, magic...)
	p = binary.LittleEndian.AppendUint16(p, h.major)
	p = binary.LittleEndian.AppendUint16(p, h.minor)
	return binary.LittleEndian.AppendUint32(p, 0)
}

// decodeHeader decodes a header from the first bytes of a file, fewer than 16 only
// if the file is that short.
func decodeHeader(p []byte) (header, error) {
	fail := func(kind error, off int64, msg string, args ...any) (header, error) {
		e := format.Errorf(kind, msg, args...)
		e.Offset = off
		return header{}, e
	}
	n := min(len(p), len(magic))
	switch head := string(p[:n]); {
	case head == magic:
	case n > 0 && head == magic[:n]:
		return fail(ErrNotSealed, int64(n), "the file ends within its header, after %d bytes", n)
	case strings.HasPrefix(head, "\x89SPT\n\x1a"), strings.HasPrefix(head, "\x89SPT\r\r\n\x1a"), strings.HasPrefix(head, "\x89SPT\r\n\x1a\r"):
		return fail(format.ErrCorrupt, 4, "the file went through a text-mode transfer, which changed line ends: fetch it again in binary mode")
	case strings.HasPrefix(head, "\x09SPT\r\n"):
		return fail(format.ErrCorrupt, 0, "the file went through a transfer that dropped the eighth bit of each byte: fetch it again in binary mode")
	default:
		return fail(format.ErrCorrupt, 0, "not an .spt file: it starts with % x", p[:n])
	}
	if len(p) < headerSize {
		return fail(ErrNotSealed, int64(len(p)), "the file ends within its header, after %d bytes", len(p))
	}
	h := header{major: binary.LittleEndian.Uint16(p[8:]), minor: binary.LittleEndian.Uint16(p[10:])}
	if h.major != Major {
		return fail(format.ErrUnsupported, 8, ".spt version %d.%d; this program reads version %d", h.major, h.minor, Major)
	}
	if flags := binary.LittleEndian.Uint32(p[12:]); flags != 0 {
		return fail(format.ErrUnsupported, 12, "the file uses features that this program does not know (flags 0x%08x)", flags)
	}
	return h, nil
}

// trailer is the last 40 bytes:
//
//	field     width  meaning
//	manifest  u64    start of the manifest
//	stored    u32    its length in the file
//	raw       u32    its decompressed length
//	hash      16     first bytes of the SHA-256 of the stored manifest
//	magic     8      1A 53 50 54 0D 0A 45 89
type trailer struct {
	manifest    int64
	stored, raw uint32
	hash        [hashSize]byte
}

func (t trailer) append(p []byte) []byte {
	p = binary.LittleEndian.AppendUint64(p, uint64(t.manifest))
	p = binary.LittleEndian.AppendUint32(p, t.stored)
	p = binary.LittleEndian.AppendUint32(p, t.raw)
	p = append(p, t.hash[:]...)
	return append(p, endMagic...)
}

// memory returns the number of bytes for the stored and the decompressed manifest.
func (t trailer) memory() int64 { return int64(t.raw) + int64(t.stored) }

// decodeTrailer decodes the last 40 bytes of a file of size bytes.
func decodeTrailer(p []byte, size int64, limits format.Limits) (trailer, error) {
	fail := func(kind error, msg string, args ...any) (trailer, error) {
		e := format.Errorf(kind, msg, args...)
		e.Offset, e.Path = size-trailerSize, "trailer"
		return trailer{}, e
	}
	if string(p[32:]) != endMagic {
		e := format.Errorf(ErrNotSealed, "the file was not sealed: it has no trailer, so its writer was interrupted or it was cut short")
		e.Offset = size
		return trailer{}, e
	}
	t := trailer{stored: binary.LittleEndian.Uint32(p[8:]), raw: binary.LittleEndian.Uint32(p[12:]), hash: [hashSize]byte(p[16:])}
	at := binary.LittleEndian.Uint64(p)
	room := size - trailerSize - int64(t.stored) // required start of the manifest
	switch {
	case room < headerSize:
		return fail(format.ErrCorrupt, "a manifest of %d bytes in a file of %d", t.stored, size)
	case at > uint64(room):
		return fail(format.ErrTruncated, "%d bytes are missing between the header and the manifest", at-uint64(room))
	case at < uint64(room):
		return fail(format.ErrCorrupt, "%d extra bytes between the header and the manifest", uint64(room)-at)
	case int64(t.raw) > limits.Manifest || int64(t.stored) > limits.Manifest:
		return fail(limit.Manifest, "a manifest of %d bytes, the limit is %d", max(t.raw, t.stored), limits.Manifest)
	case int64(t.raw) > maxInflated(int64(t.stored)):
		return fail(format.ErrCorrupt, "a manifest of %d bytes stored in %d", t.raw, t.stored)
	case t.memory() > limits.Memory:
		return fail(limit.Memory, "a manifest of %d bytes, stored in %d: opening the file takes more than the limit of %d bytes of memory", t.raw, t.stored, limits.Memory)
	}
	t.manifest = room
	return t, nil
}

// hashOf returns the checksum of the format: the first 16 bytes of the SHA-256.
func hashOf(p []byte) [hashSize]byte {
	sum := sha256.Sum256(p)
	return [hashSize]byte(sum[:])
}
