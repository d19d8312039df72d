package spt

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/savepoint-tools/spt/format"
)

// ReaderAt reads an .spt file. It is safe for concurrent use.
type ReaderAt interface {
	// ReadAt fills p with the bytes at off. A short read is an error.
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
}

const (
	tailSize  = 64 << 10 // size of the first read, at the end of the file
	bulkSize  = 4 << 20  // limit for reading adjacent chunks at once
	cacheSize = 32 << 20 // limit for decompressed chunks in the cache
)

// File is an open .spt file: the model, and the [format.Source] of its streams. It
// is safe for concurrent use and need not be closed.
type File struct {
	r      ReaderAt
	zstd   *zstd.Decoder
	m      *manifest
	st     Stats
	limits format.Limits

	mu    sync.Mutex
	cache map[uint32]*list.Element // of *cached
	order *list.List               // most recently used first
	held  int64                    // bytes in the cache
}

// cached is a decompressed chunk, or a chunk that is being read.
type cached struct {
	chunk uint32
	ready chan struct{} // closed when data or err is set
	data  []byte
	err   error
}

// Stats are numbers from the manifest of a file.
type Stats struct {
	Major, Minor int
	Writer       string // name of the program that wrote the file
	FileBytes    int64
	Streams      int // entries of the stream table, including bare references
	Chunks       int
	StoredBytes  int64 // of all chunks, in the file
	RawBytes     int64 // of all chunks, decompressed
	// ReferencedBytes is the size of all chunks if each were stored as often as
	// streams and offset arrays refer to it.
	ReferencedBytes int64
	ManifestBytes   int64 // decompressed
}

func (m *manifest) stats(h header, t trailer) Stats {
	n := m.table.len()
	return Stats{
		Major: int(h.major), Minor: int(h.minor),
		Writer:          m.writer,
		FileBytes:       t.manifest + int64(t.stored) + trailerSize,
		Streams:         len(m.streams),
		Chunks:          n,
		StoredBytes:     m.table.stored[n] - headerSize,
		RawBytes:        m.table.raw[n],
		ReferencedBytes: m.referenced,
		ManifestBytes:   int64(t.raw),
	}
}

// Open reads the model of an .spt file of size bytes. It takes one read if the file
// has at most 64 KiB, otherwise two, of the header and the last 64 KiB, and a third
// if the manifest is larger than that. It reads no chunks; see [File.Verify].
//
// Errors match ErrTruncated, ErrCorrupt, ErrUnsupported or ErrLimit of package
// format, or come from r. A file without a trailer is [ErrNotSealed].
func Open(ctx context.Context, r ReaderAt, size int64, limits format.Limits) (*File, error) {
	limits = limits.WithDefaults(size)
	if size < 0 {
		return nil, fmt.Errorf("internal error: a file of %d bytes", size)
	}
	tail := make([]byte, min(size, tailSize))
	head := tail
	if size > tailSize {
		// Read the header first, so that for another kind of file the error is not
		// the missing trailer.
		head = make([]byte, headerSize)
		if err := readAt(ctx, r, head, 0); err != nil {
			return nil, err
		}
	} else if err := readAt(ctx, r, tail, 0); err != nil {
		return nil, err
	}
	h, err := decodeHeader(head[:min(len(head), headerSize)])
	if err != nil {
		return nil, err
	}
	if size > tailSize {
		if err := readAt(ctx, r, tail, size-tailSize); err != nil {
			return nil, err
		}
	}
	if size < headerSize+trailerSize {
		e := format.Errorf(ErrNotSealed, "the file was not sealed: it ends after %d bytes", size)
		e.Offset = size
		return nil, e
	}
	t, err := decodeTrailer(tail[len(tail)-trailerSize:], size, limits)
	if err != nil {
		return nil, err
	}
	f := &File{r: r, limits: limits, cache: make(map[uint32]*list.Element), order: list.New()}
	if f.zstd, err = newZstdDecoder(limits); err != nil {
		return nil, err
	}
	raw, err := f.manifest(ctx, t, tail)
	if err == nil {
		f.m, err = decodeManifest(raw, t.manifest, h.minor, limits, t.memory())
	}
	if err != nil {
		var e *format.Error
		if errors.As(err, &e) && e.Offset < 0 {
			c := *e
			c.Offset = t.manifest
			err = &c
		}
		return nil, err
	}
	for _, o := range f.m.arrays {
		o.file = f
	}
	f.st = f.m.stats(h, t)
	return f, nil
}

// manifest reads and decompresses the manifest; tail is the end of the file.
func (f *File) manifest(ctx context.Context, t trailer, tail []byte) ([]byte, error) {
	var stored []byte
	if n := int(t.stored) + trailerSize; n <= len(tail) {
		stored = tail[len(tail)-n : len(tail)-trailerSize]
	} else {
		stored = make([]byte, t.stored)
		if err := readAt(ctx, f.r, stored, t.manifest); err != nil {
			return nil, err
		}
	}
	if hashOf(stored) != t.hash {
		return nil, format.At(format.Errorf(format.ErrCorrupt, "checksum mismatch: the file was damaged or changed"), "manifest")
	}
	raw := make([]byte, t.raw)
	return raw, format.At(inflate(f.zstd, raw, stored, storedZstd), "manifest")
}

// readAt fills p.
func readAt(ctx context.Context, r ReaderAt, p []byte, off int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(p) == 0 {
		return nil
	}
	n, err := r.ReadAt(ctx, p, off)
	if err == nil && n < len(p) {
		err = format.Errorf(format.ErrTruncated, "expected %[2]d bytes, read %[1]d", n, len(p))
	}
	var e *format.Error
	if errors.As(err, &e) && e.Offset < 0 && err == error(e) { //nolint:errorlint // only if not wrapped
		c := *e
		c.Offset = off
		return &c
	}
	return err
}

// Savepoint returns the model, which must not be changed. The file reads its
// streams and offsets.
func (f *File) Savepoint() *format.Savepoint { return f.m.savepoint }

// MaxValue returns the limit for the size of one value; see native.ValueLimiter.
func (f *File) MaxValue() int64 { return f.limits.Value }

// Stats returns the numbers of the file.
func (f *File) Stats() Stats { return f.st }

// ReadAt implements [format.Source] for the streams in this file. It compares every
// chunk with its checksum.
func (f *File) ReadAt(ctx context.Context, s format.Stream, p []byte, off int64) (int, error) {
	c, runs, err := f.lookup(s)
	if err != nil {
		return 0, err
	}
	if off < 0 || off > c.Length || int64(len(p)) > c.Length-off {
		return 0, format.Errorf(format.ErrTruncated, "read of %[2]d bytes at %[1]d is outside the stream of %[3]d bytes", off, len(p), c.Length)
	}
	t := f.m.table
	for done := 0; done < len(p); {
		chunk, end, skip := t.locate(runs, off+int64(done))
		if skip == 0 {
			// Read adjacent whole chunks at once, without the cache: large reads
			// are rarely repeated.
			if n := t.fit(chunk, end, int64(len(p)-done)); n > 1 {
				k, err := f.bulk(ctx, chunk, chunk+n, p[done:])
				if err != nil {
					return done, err
				}
				done += k
				continue
			}
		}
		data, err := f.chunk(ctx, chunk)
		if err != nil {
			return done, err
		}
		done += copy(p[done:], data[skip:])
	}
	return len(p), nil
}

// fit returns how many of the chunks [first, end) have at most n raw bytes together
// and fit in one read.
func (t *table) fit(first, end uint32, n int64) uint32 {
	i := first
	for i < end && t.raw[i+1]-t.raw[first] <= n && t.stored[i+1]-t.stored[first] <= bulkSize {
		i++
	}
	return i - first
}

// bulk reads the chunks [first, end) into p.
func (f *File) bulk(ctx context.Context, first, end uint32, p []byte) (int, error) {
	t := f.m.table
	from := t.stored[first]
	stored := make([]byte, t.stored[end]-from)
	if err := readAt(ctx, f.r, stored, from); err != nil {
		return 0, err
	}
	done := 0
	for i := first; i < end; i++ {
		n := int(t.rawLen(i))
		if err := f.decode(i, stored[t.stored[i]-from:t.stored[i+1]-from], p[done:done+n:done+n]); err != nil {
			return 0, err
		}
		done += n
	}
	return done, nil
}

// lookup finds a stream of the model in the stream table.
func (f *File) lookup(s format.Stream) (*format.Chunks, []run, error) {
	if kg, ok := s.(*format.KeyGroupStream); ok {
		return f.lookup(kg.Data)
	}
	c, ok := s.(*format.Chunks)
	if ok && c.Index >= 0 && c.Index < len(f.m.streams) {
		entry := f.m.streams[c.Index]
		if mine, ok := entry.ref.(*format.Chunks); ok && mine.Digest == c.Digest && mine.Length == c.Length {
			return c, entry.runs, nil
		}
	}
	return nil, nil, fmt.Errorf("internal error: the stream is not in this .spt file: %T", s)
}

// locate returns the chunk that holds offset off of a stream, the end of its run of
// chunks, and the offset in the chunk.
func (t *table) locate(runs []run, off int64) (chunk, end uint32, skip int64) {
	r := runs[find(runs, off)]
	at := t.raw[r.first] + off - r.before // offset in the concatenation of all chunks
	lo, hi := r.first, r.first+r.n
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; t.raw[mid] <= at {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, r.first + r.n, at - t.raw[lo]
}

// chunk returns a decompressed chunk, which must not be changed. Concurrent calls
// for the same chunk share one read.
func (f *File) chunk(ctx context.Context, i uint32) ([]byte, error) {
	for {
		f.mu.Lock()
		el, ok := f.cache[i]
		if !ok {
			c := &cached{chunk: i, ready: make(chan struct{})}
			f.cache[i] = f.order.PushFront(c)
			f.mu.Unlock()
			return f.load(ctx, c)
		}
		f.order.MoveToFront(el)
		f.mu.Unlock()
		c := el.Value.(*cached)
		select {
		case <-c.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if c.err == nil || ctx.Err() != nil || !errors.Is(c.err, context.Canceled) && !errors.Is(c.err, context.DeadlineExceeded) {
			return c.data, c.err
		}
		// The call that was reading it was cancelled, but this one was not: retry.
	}
}

// load reads a chunk into the cache.
func (f *File) load(ctx context.Context, c *cached) ([]byte, error) {
	data, err := f.read(ctx, c.chunk)
	f.mu.Lock()
	defer f.mu.Unlock()
	c.data, c.err = data, err
	close(c.ready)
	if c.err != nil {
		f.drop(f.cache[c.chunk])
		return nil, c.err
	}
	f.held += int64(len(c.data))
	for el := f.order.Back(); el != nil && f.held > cacheSize; {
		before := el.Prev()
		select {
		case <-el.Value.(*cached).ready:
			if el.Value != any(c) {
				f.drop(el)
			}
		default: // being read; not counted yet
		}
		el = before
	}
	return c.data, nil
}

func (f *File) drop(el *list.Element) {
	c := f.order.Remove(el).(*cached)
	delete(f.cache, c.chunk)
	f.held -= int64(len(c.data))
}

// read reads, decompresses and checks a chunk.
func (f *File) read(ctx context.Context, i uint32) ([]byte, error) {
	t := f.m.table
	stored := make([]byte, t.stored[i+1]-t.stored[i])
	if err := readAt(ctx, f.r, stored, t.stored[i]); err != nil {
		return nil, err
	}
	raw := make([]byte, t.rawLen(i))
	if err := f.decode(i, stored, raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// decode decompresses the stored bytes of a chunk into raw, which has the recorded
// length, and checks them.
func (f *File) decode(i uint32, stored, raw []byte) error {
	if err := inflate(f.zstd, raw, stored, f.m.table.kinds[i]); err != nil {
		return f.at(err, i)
	}
	if h := hashOf(raw); string(h[:]) != string(f.m.table.hash(i)) {
		return f.at(format.Errorf(format.ErrCorrupt, "checksum mismatch: the file was damaged or changed"), i)
	}
	return nil
}

// ErrChunk matches the error for a chunk that cannot be decoded or does not match
// its checksum. The error matches its kind as well.
var ErrChunk = errors.New("damaged chunk")

// at returns err with the number and offset of its chunk.
func (f *File) at(err error, i uint32) error {
	err = format.At(err, "chunk %d", i)
	var e *format.Error
	if errors.As(err, &e) {
		e.Offset = f.m.table.stored[i] // At made a copy
		e.Err = errors.Join(e.Err, ErrChunk)
	}
	return err
}
