package spt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"sort"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/limit"
)

// run is consecutive entries of the chunk table.
type run struct {
	first, n uint32
	before   int64 // raw bytes of the list before this run
	index    int64 // chunks of the list before this run
}

// addChunk appends a chunk to a list of runs.
func addChunk(runs []run, chunk uint32) []run {
	if k := len(runs) - 1; k >= 0 && runs[k].first+runs[k].n == chunk {
		runs[k].n++
		return runs
	}
	return append(runs, run{first: chunk, n: 1})
}

// appendRuns appends the packed encoding of runs: uvarint first and n of each.
func appendRuns(p []byte, runs []run) []byte {
	for _, r := range runs {
		p = binary.AppendUvarint(p, uint64(r.first))
		p = binary.AppendUvarint(p, uint64(r.n))
	}
	return p
}

// find returns the index of the run that holds byte at of a stream.
func find(runs []run, at int64) int {
	return sort.Search(len(runs), func(i int) bool { return runs[i].before > at }) - 1
}

// findChunk returns the index of the run that holds chunk at of a list.
func findChunk(runs []run, at int64) int {
	return sort.Search(len(runs), func(i int) bool { return runs[i].index > at }) - 1
}

// table is the chunk table: the position and properties of each chunk.
type table struct {
	stored []int64 // [i]: start of chunk i in the file; the last entry is the end
	raw    []int64 // [i]: raw bytes before chunk i in the table; the last entry is the total
	kinds  []byte
	hashes []byte // hashSize each
}

func (t *table) len() int { return len(t.kinds) }

func (t *table) hash(i uint32) []byte { return t.hashes[int(i)*hashSize:][:hashSize] }

// rawLen returns the decompressed length of chunk i.
func (t *table) rawLen(i uint32) int64 { return t.raw[i+1] - t.raw[i] }

// pack returns the four arrays of the manifest.
func (t *table) pack() (stored, raw, kinds, hashes []byte) {
	for i := range t.kinds {
		stored = binary.AppendUvarint(stored, uint64(t.stored[i+1]-t.stored[i]))
		raw = binary.AppendUvarint(raw, uint64(t.raw[i+1]-t.raw[i]))
	}
	return stored, raw, t.kinds, t.hashes
}

// unpackTable decodes the arrays and checks each entry. The chunks must end at the
// start of the manifest.
func unpackTable(stored, raw, kinds, hashes []byte, manifest int64, limits format.Limits) (*table, error) {
	n := len(kinds)
	if n > math.MaxUint32 || len(hashes)%hashSize != 0 || len(hashes)/hashSize != n {
		return nil, format.Errorf(format.ErrCorrupt, "%d chunks with %d bytes of checksums", n, len(hashes))
	}
	if len(stored) < n || len(raw) < n { // an uvarint is at least one byte
		return nil, format.Errorf(format.ErrCorrupt, "%d chunks with arrays of lengths of %d and %d bytes", n, len(stored), len(raw))
	}
	t := &table{stored: make([]int64, 1, n+1), raw: make([]int64, 1, n+1), kinds: kinds, hashes: hashes}
	t.stored[0] = headerSize
	for i := range n {
		s, k := binary.Uvarint(stored)
		r, m := binary.Uvarint(raw)
		if k <= 0 || m <= 0 {
			return nil, format.Errorf(format.ErrCorrupt, "the lengths end at chunk %d of %d", i, n)
		}
		stored, raw = stored[k:], raw[m:]
		switch kind := kinds[i]; {
		case r > uint64(limits.Chunk):
			return nil, format.Errorf(limit.Chunk, "chunk %d: %d bytes, the limit is %d", i, r, limits.Chunk)
		case r == 0:
			return nil, format.Errorf(format.ErrCorrupt, "chunk %d is empty", i)
		case kind >= storedKinds:
			return nil, format.Errorf(format.ErrUnsupported, "chunk %d has compression %d; this program reads 0 to %d", i, kind, storedKinds-1)
		case kind == storedPlain && s != r, kind != storedPlain && s >= r:
			return nil, format.Errorf(format.ErrCorrupt, "chunk %d: %d bytes stored in %d", i, r, s)
		case kind == storedZstd && r > uint64(maxInflated(int64(s))):
			return nil, format.Errorf(format.ErrCorrupt, "chunk %d: %d bytes stored in %d", i, r, s)
		}
		// No overflow: the lengths are within the limits, and the positions
		// within the file.
		end := t.stored[i] + int64(s)
		if end > manifest {
			return nil, format.Errorf(format.ErrCorrupt, "chunk %d ends at %d, after the start of the manifest at %d", i, end, manifest)
		}
		if t.raw[i] > math.MaxInt64-int64(r) {
			return nil, format.Errorf(format.ErrLimit, "more than 2^63 bytes in chunks")
		}
		t.stored = append(t.stored, end)
		t.raw = append(t.raw, t.raw[i]+int64(r))
	}
	if len(stored) > 0 || len(raw) > 0 {
		return nil, format.Errorf(format.ErrCorrupt, "more lengths than %d chunks", n)
	}
	if t.stored[n] != manifest {
		return nil, format.Errorf(format.ErrCorrupt, "the chunks end at %d, but the manifest starts at %d", t.stored[n], manifest)
	}
	return t, nil
}

// unpackRuns decodes a list of runs, and returns the number of chunks that it names
// and their raw bytes.
func (t *table) unpackRuns(p []byte) (runs []run, chunks, total int64, err error) {
	runs = make([]run, 0, countUvarints(p)/2)
	for len(p) > 0 {
		first, k := binary.Uvarint(p)
		if k <= 0 {
			return nil, 0, 0, format.Errorf(format.ErrCorrupt, "the chunk list is cut short")
		}
		n, m := binary.Uvarint(p[k:])
		if m <= 0 {
			return nil, 0, 0, format.Errorf(format.ErrCorrupt, "the chunk list is cut short")
		}
		p = p[k+m:]
		if have := uint64(t.len()); first > have || n > have-first || n == 0 {
			return nil, 0, 0, format.Errorf(format.ErrCorrupt, "%[2]d chunks from %[1]d, of %[3]d in the table", first, n, have)
		}
		r := run{first: uint32(first), n: uint32(n), before: total, index: chunks}
		if total > math.MaxInt64-t.bytesOf(r) {
			return nil, 0, 0, format.Errorf(format.ErrLimit, "a chunk list of more than 2^63 bytes")
		}
		total += t.bytesOf(r)
		chunks += int64(n)
		runs = append(runs, r)
	}
	return runs, chunks, total, nil
}

// bytesOf returns the number of raw bytes in a run.
func (t *table) bytesOf(r run) int64 { return t.raw[r.first+r.n] - t.raw[r.first] }

// digest returns [format.Chunks.Digest]: the SHA-256 of the checksum and raw length
// (u32) of each chunk of the list. Equal chunks have equal digests in all files.
func (t *table) digest(runs []run) string {
	h := sha256.New()
	var one [hashSize + 4]byte
	for _, r := range runs {
		for i := r.first; i < r.first+r.n; i++ {
			copy(one[:], t.hash(i))
			binary.LittleEndian.PutUint32(one[hashSize:], uint32(t.rawLen(i)))
			h.Write(one[:]) //nolint:errcheck // a hash never fails
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
