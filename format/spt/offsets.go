package spt

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"github.com/savepoint-tools/spt/format"
)

// Offset arrays. Wire format: never change.
//
// Small arrays are stored in the manifest: zigzag varints of the differences from
// one offset to the next, the first from 0. Others are chunks of blocks:
//
//	field   width  meaning
//	base    i64    the first offset of the block
//	width   u8     w, 0 to 8
//	deltas  w each of each further offset, its difference from the one before,
//	               zigzag, little-endian
const (
	blockOffsets = 1024 // per block, except the last
	chunkBlocks  = 32   // per chunk, except the last
	chunkOffsets = blockOffsets * chunkBlocks
	blockHeader  = 9

	// Arrays up to these lengths, in offsets and in packed bytes, are stored in the
	// manifest. Readers do not depend on them.
	smallOffsets = 16
	smallBytes   = 64
)

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// packOffsets appends offsets in the encoding of the manifest.
func packOffsets(p []byte, o []int64) []byte {
	var last int64
	for _, v := range o {
		p = binary.AppendUvarint(p, zigzag(v-last))
		last = v
	}
	return p
}

// unpackOffsets decodes offsets in the encoding of the manifest.
func unpackOffsets(p []byte) (format.OffsetSlice, error) {
	o := make(format.OffsetSlice, 0, countUvarints(p))
	var last int64
	for len(p) > 0 {
		u, k := binary.Uvarint(p)
		if k <= 0 {
			return nil, format.Errorf(format.ErrCorrupt, "offset %d is truncated or too long", len(o))
		}
		p = p[k:]
		last += unzigzag(u)
		o = append(o, last)
	}
	return o, nil
}

// appendBlock encodes 1 to 1024 offsets.
func appendBlock(p []byte, o []int64) []byte {
	var all uint64
	for i := 1; i < len(o); i++ {
		all |= zigzag(o[i] - o[i-1])
	}
	w := (bits.Len64(all) + 7) / 8
	p = binary.LittleEndian.AppendUint64(p, uint64(o[0]))
	p = append(p, byte(w))
	for i := 1; i < len(o); i++ {
		d := zigzag(o[i] - o[i-1])
		for range w {
			p = append(p, byte(d))
			d >>= 8
		}
	}
	return p
}

// decodeBlock fills dst with the offsets from index skip on of a block.
func decodeBlock(block []byte, w, skip int, dst []int64) {
	v := int64(binary.LittleEndian.Uint64(block))
	deltas := block[blockHeader:]
	for i := 0; ; i++ {
		if i >= skip {
			dst[i-skip] = v
			if i-skip == len(dst)-1 {
				return
			}
		}
		var d uint64
		for k := range w {
			d |= uint64(deltas[i*w+k]) << (8 * k)
		}
		v += unzigzag(d)
	}
}

// eachBlock calls f with each block of a chunk that holds n offsets. It returns an
// error unless the blocks fill the chunk exactly.
func eachBlock(chunk []byte, n int, f func(first, count int, block []byte, w int)) error {
	for first := 0; first < n; first += blockOffsets {
		count := min(n-first, blockOffsets)
		if len(chunk) < blockHeader {
			return format.Errorf(format.ErrCorrupt, "offsets end at %d of %d", first, n)
		}
		w := int(chunk[8])
		size := blockHeader + w*(count-1)
		if w > 8 || size > len(chunk) {
			return format.Errorf(format.ErrCorrupt, "a block with width %d at offset %d of %d, %d bytes left", w, first, n, len(chunk))
		}
		f(first, count, chunk[:size], w)
		chunk = chunk[size:]
	}
	if len(chunk) > 0 {
		return format.Errorf(format.ErrCorrupt, "%d bytes after %d offsets", len(chunk), n)
	}
	return nil
}

// offsets are offsets in chunks of a file. They can be read once the file is open.
type offsets struct {
	n      int64
	runs   []run // of chunks
	writer *Writer
	file   *File
}

// Len returns the number of offsets.
func (o *offsets) Len() int64 { return o.n }

// Read implements [format.Offsets]. It reads one chunk for each 32,768 offsets.
func (o *offsets) Read(ctx context.Context, dst []int64, from int64) (int, error) {
	if from < 0 || from > o.n {
		return 0, fmt.Errorf("internal error: read of offset %d of %d", from, o.n)
	}
	if o.file == nil {
		return 0, fmt.Errorf("internal error: offsets of a file that is not open")
	}
	dst = dst[:min(int64(len(dst)), o.n-from)]
	for done := 0; done < len(dst); {
		at := from + int64(done)
		list := at / chunkOffsets
		i := o.chunk(list)
		chunk, err := o.file.chunk(ctx, i)
		if err != nil {
			return 0, err
		}
		in := int(at - list*chunkOffsets) // index of dst[done] in the chunk
		err = eachBlock(chunk, o.count(list), func(first, count int, block []byte, w int) {
			if in >= first && in < first+count && done < len(dst) {
				part := dst[done:min(done+first+count-in, len(dst))]
				decodeBlock(block, w, in-first, part)
				done += len(part)
				in += len(part)
			}
		})
		if err != nil {
			return 0, o.file.at(err, i)
		}
	}
	return len(dst), nil
}

// chunk returns the chunk at an index of the list.
func (o *offsets) chunk(list int64) uint32 {
	r := o.runs[findChunk(o.runs, list)]
	return r.first + uint32(list-r.index)
}

// count returns the number of offsets in the chunk at an index of the list.
func (o *offsets) count(list int64) int { return int(min(o.n-list*chunkOffsets, chunkOffsets)) }

// OffsetsWriter writes an array of offsets. It may be open at the same time as a
// stream, and holds at most one chunk of offsets.
type OffsetsWriter struct {
	w      *Writer
	block  []int64
	job    *job // nil: no complete block yet
	blocks int  // in job
	runs   []run
	n      int64
	closed bool
}

// Offsets starts an array of offsets.
func (w *Writer) Offsets() *OffsetsWriter {
	w.open++
	return &OffsetsWriter{w: w}
}

// Add appends offsets.
func (o *OffsetsWriter) Add(offsets ...int64) error {
	if err := o.ready(); err != nil {
		return err
	}
	for _, v := range offsets {
		if len(o.block) == blockOffsets {
			if err := o.flushBlock(); err != nil {
				return err
			}
		}
		o.block = append(o.block, v)
	}
	o.n += int64(len(offsets))
	return nil
}

func (o *OffsetsWriter) ready() error {
	if o.closed {
		return o.w.misuse("a call on closed offsets")
	}
	return o.w.ready()
}

func (o *OffsetsWriter) flushBlock() error {
	if o.job == nil {
		o.job = o.w.newJob()
	}
	o.job.raw = appendBlock(o.job.raw, o.block)
	o.block = o.block[:0]
	if o.blocks++; o.blocks == chunkBlocks {
		return o.flushChunk()
	}
	return nil
}

func (o *OffsetsWriter) flushChunk() error {
	i, err := o.w.store(o.job)
	if err != nil {
		return err
	}
	o.runs = addChunk(o.runs, i)
	o.job, o.blocks = nil, 0
	return nil
}

// Close ends the array and returns the offsets to use in the savepoint that is
// passed to [Writer.Seal].
func (o *OffsetsWriter) Close() (format.Offsets, error) {
	if err := o.ready(); err != nil {
		return nil, err
	}
	o.closed = true
	o.w.open--
	if o.n <= blockOffsets {
		if small, ok := asSmall(o.block); ok {
			return small, nil
		}
	}
	if len(o.block) > 0 {
		if err := o.flushBlock(); err != nil {
			return nil, err
		}
	}
	if o.job != nil {
		if err := o.flushChunk(); err != nil {
			return nil, err
		}
	}
	return &offsets{n: o.n, runs: o.runs, writer: o.w}, nil
}

// asSmall returns the offsets for the manifest; ok is false if there are too many.
func asSmall(o []int64) (format.OffsetSlice, bool) {
	if len(o) > smallOffsets && (len(o) > smallBytes || len(packOffsets(nil, o)) > smallBytes) {
		return nil, false
	}
	return append(format.OffsetSlice{}, o...), true
}

// storeOffsets stores offsets and returns what represents them in the file: a
// slice, or offsets in chunks.
func (w *Writer) storeOffsets(ctx context.Context, in format.Offsets) (format.Offsets, error) {
	if mine, ok := in.(*offsets); ok && mine.writer == w {
		return mine, nil
	}
	o := w.Offsets()
	err := format.EachOffset(ctx, in, func(_ int64, run []int64) error { return o.Add(run...) })
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return o.Close()
}
