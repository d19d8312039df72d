package rocksdb

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/limit"
)

// Compression is how a block is compressed. Each block of a table has its own.
type Compression uint8

// The algorithms, as RocksDB numbers them. Wire format: never change.
const (
	CompressionNone   Compression = 0
	CompressionSnappy Compression = 1
	CompressionZlib   Compression = 2
	CompressionBZip2  Compression = 3
	CompressionLZ4    Compression = 4
	CompressionLZ4HC  Compression = 5
	CompressionXpress Compression = 6 // Windows only, not supported
	CompressionZSTD   Compression = 7
)

// decompress appends the data of a block to an empty dst, which has the capacity
// for it. A dictionary may be nil.
type decompress func(dst, block []byte, dict *dictionary) ([]byte, error)

// sized says where the length of the data is stored (spec flink-keyed-state A).
type sized uint8

const (
	sizeInData  sized = iota // snappy
	sizeInFront              // varint32; before format 2 not at all
	sizeAsLong               // as sizeInFront; before format 2 an 8-byte number
	sizeAlways               // varint32 in every format
)

// compressions has the algorithms of RocksDB; of those without a function, blocks are
// not read.
var compressions = [...]struct {
	name string
	size sized
	of   decompress
}{
	CompressionNone:   {name: "none"},
	CompressionSnappy: {"snappy", sizeInData, nil},
	CompressionZlib:   {"zlib", sizeInFront, inflate},
	CompressionBZip2:  {"bzip2", sizeInFront, bunzip},
	CompressionLZ4:    {"lz4", sizeAsLong, unlz4},
	CompressionLZ4HC:  {"lz4hc", sizeAsLong, unlz4},
	CompressionXpress: {name: "xpress"},
	CompressionZSTD:   {"zstd", sizeAlways, unzstd},
}

// String returns the name of the algorithm.
func (c Compression) String() string {
	if int(c) < len(compressions) {
		return compressions[c].name
	}
	return fmt.Sprintf("compression %d", uint8(c))
}

// dictionary is the compression dictionary of a table.
type dictionary struct {
	data []byte
	once sync.Once
	zstd *zstd.Decoder
	err  error
}

// plain reads zstd frames without a dictionary.
var plain = &dictionary{}

// zstdMagic begins a trained dictionary; anything else is used as text.
const zstdMagic = 0xec30a437

func (d *dictionary) decoder() (*zstd.Decoder, error) {
	d.once.Do(func() {
		o := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(1 << 40)}
		if len(d.data) >= 4 && binary.LittleEndian.Uint32(d.data) == zstdMagic {
			o = append(o, zstd.WithDecoderDicts(d.data))
		} else if len(d.data) > 0 {
			o = append(o, zstd.WithDecoderDictRaw(0, d.data))
		}
		d.zstd, d.err = zstd.NewReader(nil, o...)
	})
	return d.zstd, d.err
}

// inflateBlock decompresses a block to dst, which may be reused, up to most bytes.
func inflateBlock(dst, block []byte, c Compression, version uint32, dict *dictionary, most int64) ([]byte, error) {
	if int(c) >= len(compressions) || compressions[c].of == nil && c != CompressionSnappy {
		return nil, format.Errorf(format.ErrUnsupported, "blocks compressed with %v are not read", c)
	}
	invalid := func() error { return format.Errorf(format.ErrCorrupt, "invalid %v data in a block", c) }
	how, size, known := compressions[c], int64(0), true
	switch {
	case how.size == sizeInData:
		n, err := snappy.DecodedLen(block)
		if err != nil || n/64 > len(block) { // a copy takes at least two bytes and is of at most 64
			return nil, invalid()
		}
		size = int64(n)
	case how.size == sizeAlways || version >= 2:
		n, k := binary.Uvarint(block)
		if k <= 0 || n > 1<<32-1 {
			return nil, invalid()
		}
		size, block = int64(n), block[k:]
	case how.size == sizeAsLong:
		if len(block) < 8 {
			return nil, invalid()
		}
		n := binary.LittleEndian.Uint64(block)
		if n > 1<<32-1 {
			return nil, invalid()
		}
		size, block = int64(n), block[8:]
	default:
		known = false
	}
	if size > most {
		return nil, tooLarge("a block", size, most)
	}
	if !known {
		return unsized(dst, block, how.of, dict, most, invalid)
	}
	dst = buffer(dst, max(int(size), 1)) // lz4 does not check that there is a buffer
	var out []byte
	var err error
	if how.size == sizeInData {
		out, err = snappy.Decode(dst[:size], block)
	} else {
		out, err = how.of(dst, block, dict)
	}
	if err != nil || int64(len(out)) != size {
		return nil, invalid()
	}
	return out, nil
}

// unsized decompresses a block without a recorded length: the buffer grows until the
// data fits.
func unsized(dst, block []byte, of decompress, dict *dictionary, most int64, invalid func() error) ([]byte, error) {
	for n := int64(4*len(block) + 1<<12); ; n *= 2 {
		dst = buffer(dst, int(min(n, most+1)))
		out, err := of(dst, block, dict)
		switch {
		case errors.Is(err, io.ErrShortBuffer) && n > most:
			return nil, tooLarge("a block", n, most)
		case errors.Is(err, io.ErrShortBuffer):
			continue
		case err != nil:
			return nil, invalid()
		}
		return out, nil
	}
}

func tooLarge(what string, n, most int64) error {
	return format.Errorf(limit.Value, "%s of %d bytes, the limit is %d", what, n, most)
}

// buffer returns an empty buffer for n bytes, mostly p. A large one is not kept for
// small blocks.
func buffer(p []byte, n int) []byte {
	if cap(p) > 1<<20 && n < 1<<16 {
		p = nil
	}
	return slices.Grow(p[:0], n)
}

// readInto reads all of r into the capacity of dst, or io.ErrShortBuffer.
func readInto(dst []byte, r io.Reader) ([]byte, error) {
	n, err := io.ReadFull(r, dst[:cap(dst)])
	switch err {
	case nil:
		var one [1]byte
		if _, err := io.ReadFull(r, one[:]); err != io.EOF {
			if err == nil {
				err = io.ErrShortBuffer
			}
			return nil, err
		}
	case io.EOF, io.ErrUnexpectedEOF:
		// flate reports its own data cut short as io.ErrUnexpectedEOF too.
		var one [1]byte
		if k, again := r.Read(one[:]); k > 0 || again != io.EOF {
			return nil, io.ErrUnexpectedEOF
		}
	default:
		return nil, err
	}
	return dst[:n], nil
}

func inflate(dst, block []byte, dict *dictionary) ([]byte, error) {
	return readInto(dst, flate.NewReaderDict(bytes.NewReader(block), dict.data))
}

func bunzip(dst, block []byte, _ *dictionary) ([]byte, error) {
	return readInto(dst, bzip2.NewReader(bytes.NewReader(block)))
}

func unlz4(dst, block []byte, dict *dictionary) ([]byte, error) {
	n, err := lz4.UncompressBlockWithDict(block, dst[:cap(dst)], dict.data)
	return dst[:max(n, 0)], err
}

func unzstd(dst, block []byte, dict *dictionary) ([]byte, error) {
	d, err := dict.decoder()
	if err != nil {
		return nil, err
	}
	return d.DecodeAll(block, dst[:0:cap(dst)])
}
