package spt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/savepoint-tools/spt/format"
)

// Sizes at which chunks are cut. Readers do not depend on them.
const (
	softCut = 256 << 10 // from this size on, at the next boundary
	hardCut = 4 << 20   // at this size, without a boundary
)

// Writer writes an .spt file step by step: streams and offsets, then [Writer.Seal].
// After an error, including a call out of order, every call fails. A Writer is not
// safe for concurrent use; internally it compresses chunks concurrently.
type Writer struct {
	o      Options
	out    *bufio.Writer
	zstd   *zstd.Encoder // nil if the compression is not zstd
	err    error         // the first error; every later call returns it
	closed bool
	stream *StreamWriter // the open stream
	open   int           // number of open offset arrays

	table   table
	known   map[chunkKey]uint32
	entries []entry

	// queue is the chunks being compressed, in file order: at most 2*Jobs, each
	// with up to two chunks of memory.
	queue   []*job
	running chan struct{} // semaphore for compressions
	free    []*job
}

// chunkKey identifies the content of a chunk.
type chunkKey struct {
	hash [hashSize]byte
	n    uint32
}

// entry is an entry of the stream table.
type entry struct {
	as     format.Stream  // origin of the bytes, or the bare reference
	chunks *format.Chunks // nil: a bare reference
	runs   []run
}

// job compresses one chunk: raw bytes to stored bytes.
type job struct {
	raw, buf []byte
	stored   []byte // part of raw or buf
	kind     byte
	done     chan struct{}
}

// NewWriter returns a Writer that writes to w. It writes the header with the first
// chunks. It does not close w.
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	sw := &Writer{
		o:       o,
		out:     bufio.NewWriterSize(w, 64<<10),
		known:   make(map[chunkKey]uint32),
		running: make(chan struct{}, o.Jobs),
		table:   table{stored: []int64{headerSize}, raw: []int64{0}},
	}
	if o.Compression == Zstd {
		if sw.zstd, err = newZstdEncoder(o.Level, o.Jobs); err != nil {
			return nil, err
		}
	}
	if _, err := sw.out.Write(header{major: Major, minor: Minor}.append(nil)); err != nil {
		return nil, err
	}
	return sw, nil
}

// fail records err if it is the first error, and returns the first error.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}

// misuse records a call out of order, which is a bug in the caller.
func (w *Writer) misuse(what string) error {
	return w.fail(errors.New("internal error: spt.Writer: " + what))
}

// ready returns the error of a call in the current state, or nil.
func (w *Writer) ready() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return w.misuse("a call after Seal or Close")
	}
	return nil
}

// Stream starts a stream; only one can be open at a time. as is the origin of the
// bytes: an Inline (whose data is ignored), a File or a Segment, or a Chunks or
// Concat, whose As is used; nil for state that Flink did not write.
func (w *Writer) Stream(as format.Stream) (*StreamWriter, error) {
	if err := w.ready(); err != nil {
		return nil, err
	}
	if w.stream != nil {
		return nil, w.misuse("a stream is open")
	}
	as, err := origin(as)
	if err != nil {
		return nil, w.fail(err)
	}
	w.stream = &StreamWriter{w: w, as: as, job: w.newJob()}
	return w.stream, nil
}

// origin returns the As of a stream that is stored as s.
func origin(s format.Stream) (format.Stream, error) {
	switch s := s.(type) {
	case nil:
		return nil, nil
	case *format.Inline:
		return &format.Inline{Name: s.Name}, nil
	case *format.File, *format.Segment:
		return s, nil
	case *format.Chunks:
		return origin(s.As)
	case *format.Concat:
		return origin(s.As)
	}
	return nil, fmt.Errorf("internal error: spt.Writer: %T cannot be an origin", s)
}

// alias returns another stream with the bytes of c, which this writer stored.
func (w *Writer) alias(c *format.Chunks, as format.Stream) (*format.Chunks, error) {
	if err := w.ready(); err != nil {
		return nil, err
	}
	as, err := origin(as)
	if err != nil {
		return nil, w.fail(err)
	}
	return w.addEntry(as, c.Length, c.Digest, w.entries[c.Index].runs), nil
}

func (w *Writer) addEntry(as format.Stream, length int64, digest string, runs []run) *format.Chunks {
	c := &format.Chunks{As: as, Length: length, Digest: digest, Index: len(w.entries)}
	w.entries = append(w.entries, entry{as: as, chunks: c, runs: runs})
	return c
}

// StreamWriter writes the bytes of one stream.
type StreamWriter struct {
	w       *Writer
	as      format.Stream
	job     *job // collects the current chunk
	runs    []run
	n       int64
	bounded bool // MayCut or MustCut was called
	closed  bool
}

// Write implements io.Writer.
func (s *StreamWriter) Write(p []byte) (int, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	for rest := p; len(rest) > 0; {
		limit := softCut
		if s.bounded {
			limit = hardCut
		}
		k := min(len(rest), limit-len(s.job.raw))
		s.job.raw = append(s.job.raw, rest[:k]...)
		rest = rest[k:]
		if len(s.job.raw) >= limit {
			if err := s.cut(); err != nil {
				return len(p) - len(rest), err
			}
		}
	}
	s.n += int64(len(p))
	s.w.o.Progress(int64(len(p)))
	return len(p), nil
}

func (s *StreamWriter) ready() error {
	if s.closed {
		return s.w.misuse("a call on a closed stream")
	}
	return s.w.ready()
}

// MustCut starts a new chunk with the next byte. It is called at the start of each
// named state.
func (s *StreamWriter) MustCut() {
	s.bounded = true
	if !s.closed {
		s.cut() //nolint:errcheck // sticky: Close returns it
	}
}

// MayCut starts a new chunk with the next byte if the current one is large enough.
// It is called at the start of each element or key group.
func (s *StreamWriter) MayCut() {
	s.bounded = true
	if !s.closed && len(s.job.raw) >= softCut {
		s.cut() //nolint:errcheck // sticky: Close returns it
	}
}

func (s *StreamWriter) cut() error {
	if s.w.err != nil || len(s.job.raw) == 0 {
		return s.w.err
	}
	i, err := s.w.store(s.job)
	if err != nil {
		return err
	}
	s.runs = addChunk(s.runs, i)
	s.job = s.w.newJob()
	return nil
}

// Close ends the stream and returns the stream to use in the savepoint that is
// passed to [Writer.Seal].
func (s *StreamWriter) Close() (*format.Chunks, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	if err := s.cut(); err != nil {
		return nil, err
	}
	s.closed = true
	s.w.stream = nil
	s.w.free = append(s.w.free, s.job)
	return s.w.addEntry(s.as, s.n, s.w.table.digest(s.runs), s.runs), nil
}

func (w *Writer) newJob() *job {
	if k := len(w.free) - 1; k >= 0 {
		j := w.free[k]
		w.free = w.free[:k]
		j.raw = j.raw[:0]
		return j
	}
	return &job{done: make(chan struct{}, 1)}
}

// store takes ownership of a job with the raw bytes of a chunk and returns the
// index of the chunk in the table. Content that is already stored is not stored
// again.
func (w *Writer) store(j *job) (uint32, error) {
	if w.err != nil {
		return 0, w.err
	}
	key := chunkKey{hash: hashOf(j.raw), n: uint32(len(j.raw))}
	if i, ok := w.known[key]; ok {
		w.free = append(w.free, j)
		return i, nil
	}
	i := len(w.table.hashes) / hashSize
	if i == math.MaxUint32 {
		return 0, w.fail(format.Errorf(format.ErrLimit, "more than %d chunks", i))
	}
	w.known[key] = uint32(i)
	w.table.hashes = append(w.table.hashes, key.hash[:]...)
	w.table.raw = append(w.table.raw, w.table.raw[i]+int64(len(j.raw)))
	w.queue = append(w.queue, j)
	if w.o.Compression == None {
		j.stored, j.kind = j.raw, storedPlain
		j.done <- struct{}{}
	} else {
		go func() {
			w.running <- struct{}{}
			w.compress(j)
			<-w.running
			j.done <- struct{}{}
		}()
	}
	return uint32(i), w.drain(2*w.o.Jobs - 1)
}

// compress compresses a job. Several goroutines call it, each with its own job.
func (w *Writer) compress(j *job) {
	var p []byte
	switch w.o.Compression {
	case Zstd:
		p, j.kind = w.zstd.EncodeAll(j.raw, j.buf[:0]), storedZstd
		j.buf = p
	case S2:
		if n := s2.MaxEncodedLen(len(j.raw)); cap(j.buf) < n {
			j.buf = make([]byte, n)
		}
		dst := j.buf[:cap(j.buf)]
		j.kind = storedS2
		switch w.o.Level {
		case 1:
			p = s2.Encode(dst, j.raw)
		case 2:
			p = s2.EncodeBetter(dst, j.raw)
		case 3:
			p = s2.EncodeBest(dst, j.raw)
		}
	}
	j.stored = p
	if len(p) >= len(j.raw) {
		j.stored, j.kind = j.raw, storedPlain
	}
}

// drain writes chunks, oldest first, until at most keep are being compressed.
func (w *Writer) drain(keep int) error {
	for w.err == nil && len(w.queue) > keep {
		j := w.queue[0]
		w.queue = append(w.queue[:0], w.queue[1:]...)
		<-j.done
		if _, err := w.out.Write(j.stored); err != nil {
			return w.fail(err)
		}
		end := w.table.stored[len(w.table.stored)-1]
		w.table.stored = append(w.table.stored, end+int64(len(j.stored)))
		w.table.kinds = append(w.table.kinds, j.kind)
		w.free = append(w.free, j)
	}
	return w.err
}

// Seal writes the manifest and the trailer. The streams of sp must be Chunks of
// this writer or references without bytes (File, Segment, EmptySegment). Offsets of
// another origin are stored now. Before it is written, the manifest is decoded
// again and compared with sp.
//
// The streams of sp cannot be read through sp: open the file for that.
func (w *Writer) Seal(ctx context.Context, sp *format.Savepoint) (Stats, error) {
	_, stats, err := w.seal(ctx, sp)
	return stats, err
}

// seal is Seal that also returns the savepoint as stored.
func (w *Writer) seal(ctx context.Context, sp *format.Savepoint) (*format.Savepoint, Stats, error) {
	fail := func(err error) (*format.Savepoint, Stats, error) { return nil, Stats{}, w.fail(err) }
	if err := w.ready(); err != nil {
		return fail(err)
	}
	if w.stream != nil || w.open > 0 {
		return fail(w.misuse("Seal while a stream or offsets are open"))
	}
	raw, offsets, err := w.manifest(ctx, sp)
	if err != nil {
		return fail(err)
	}
	enc := w.zstd
	if enc == nil {
		if enc, err = newZstdEncoder(3, 1); err != nil {
			return fail(err)
		}
	}
	stored := enc.EncodeAll(raw, nil)
	end := w.table.stored[w.table.len()]
	// A reader can raise the memory limit, but a manifest over the other limits
	// could not be opened.
	limits := format.Limits{Memory: math.MaxInt64}.WithDefaults(end + int64(len(stored)) + trailerSize)
	if int64(len(raw)) > limits.Manifest {
		return fail(format.Errorf(format.ErrLimit, "a manifest of %d bytes, the limit is %d", len(raw), limits.Manifest))
	}
	m, err := decodeManifest(raw, end, Minor, limits, 0)
	switch {
	case errors.Is(err, format.ErrLimit):
		return fail(err)
	case err != nil:
		return fail(fmt.Errorf("internal error: reading back the manifest: %w", err))
	}
	if at := difference(sp, m.savepoint, offsets); at != "" {
		return fail(fmt.Errorf("internal error: the manifest read back differs at %s", at))
	}
	t := trailer{manifest: end, stored: uint32(len(stored)), raw: uint32(len(raw)), hash: hashOf(stored)}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if _, err := w.out.Write(stored); err != nil {
		return fail(err)
	}
	if _, err := w.out.Write(t.append(nil)); err != nil {
		return fail(err)
	}
	if err := w.out.Flush(); err != nil {
		return fail(err)
	}
	w.closed = true
	return m.savepoint, m.stats(header{major: Major, minor: Minor}, t), nil
}

// Close ends the writer and returns the error that stopped it, if any. Without
// Seal, the bytes written are not a valid file.
func (w *Writer) Close() error {
	w.closed = true
	for _, j := range w.queue {
		<-j.done
	}
	w.queue, w.free, w.stream = nil, nil, nil
	return w.err
}
