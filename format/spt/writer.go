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

// Where chunks are cut. Readers do not depend on it.
const (
	softCut = 256 << 10 // after so much, at the next boundary
	hardCut = 4 << 20   // where no boundary comes
)

// Writer writes an .spt file step by step: streams and offsets, then
// [Writer.Seal]. After an error, and a call out of order is one, every call
// fails. It is not safe for concurrent use; inside, chunks are compressed
// concurrently.
type Writer struct {
	o      Options
	out    *bufio.Writer
	zstd   *zstd.Encoder // nil unless chunks are stored with it
	err    error         // the first one; every call gives it
	closed bool
	stream *StreamWriter // the open one
	open   int           // open offsets

	table   table
	known   map[chunkKey]uint32
	entries []entry

	// Chunks whose compression is under way, in file order. Each holds up to
	// two chunks of memory, and there are at most 2*Jobs of them.
	queue   []*job
	running chan struct{} // a place for each compression
	free    []*job
}

// chunkKey is the identity of a chunk's content.
type chunkKey struct {
	hash [hashSize]byte
	n    uint32
}

// entry is one stream of the stream table.
type entry struct {
	as     format.Stream  // where the bytes came from; a bare reference itself
	chunks *format.Chunks // nil: a bare reference
	runs   []run
}

// job is one chunk on its way: raw bytes in, stored bytes out.
type job struct {
	raw, buf []byte
	stored   []byte // in raw or buf
	kind     byte
	done     chan struct{}
}

// NewWriter starts a file. It writes the header with the first chunks; w is
// not closed by it.
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

// fail keeps the first error and gives it.
func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}

// misuse is a call out of order: a mistake of the program.
func (w *Writer) misuse(what string) error {
	return w.fail(errors.New("internal error: spt.Writer: " + what))
}

// ready is the error that stands against another call.
func (w *Writer) ready() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return w.misuse("a call after Seal or Close")
	}
	return nil
}

// Stream starts a stream; one is open at a time. as says where the bytes came
// from: an Inline (its data is ignored), a File, a Segment; of Chunks and a
// Concat what they say themselves; nil for state that never was Flink's.
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

// origin is what a stream's As becomes.
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
	return nil, fmt.Errorf("internal error: spt.Writer: bytes cannot come from %T", s)
}

// alias is another stream with the bytes of c, which this writer made.
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

// StreamWriter takes the bytes of one stream.
type StreamWriter struct {
	w       *Writer
	as      format.Stream
	job     *job // holds the bytes of the chunk being filled
	runs    []run
	n       int64
	bounded bool // somebody told of a boundary
	closed  bool
}

// Write adds bytes to the stream.
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

// MustCut says that something starts here that deserves its own chunks: a
// named state. What comes next starts a new chunk.
func (s *StreamWriter) MustCut() {
	s.bounded = true
	if !s.closed {
		s.cut() //nolint:errcheck // sticky: Close gives it
	}
}

// MayCut says that an element or key group starts here. A new chunk starts if
// the present one is large enough.
func (s *StreamWriter) MayCut() {
	s.bounded = true
	if !s.closed && len(s.job.raw) >= softCut {
		s.cut() //nolint:errcheck // sticky: Close gives it
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

// Close ends the stream and gives what stands for it in the savepoint to be
// sealed.
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

// store takes over a job with the raw bytes of a chunk and gives its place in
// the table. Content that is there already is not stored again.
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

// compress is run by several goroutines, each with its own job.
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

// drain writes chunks, oldest first, until no more than keep are under way.
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

// Seal writes the manifest and the trailer. The streams of sp must be Chunks
// of this writer or references without bytes (File, Segment, EmptySegment);
// offsets that this writer did not make are stored now. The manifest is
// decoded again and compared with sp before it is written.
//
// What sp holds is not readable through it: open the file for that.
func (w *Writer) Seal(ctx context.Context, sp *format.Savepoint) (Stats, error) {
	_, stats, err := w.seal(ctx, sp)
	return stats, err
}

// seal gives the savepoint as it stands in the file, too.
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
	// Memory is that of readers, who can allow more; what no reader opens is not
	// written.
	limits := format.Limits{Memory: math.MaxInt64}.WithDefaults(end + int64(len(stored)) + trailerSize)
	if int64(len(raw)) > limits.Manifest {
		return fail(format.Errorf(format.ErrLimit, "a manifest of %d bytes, over the limit of %d", len(raw), limits.Manifest))
	}
	m, err := decodeManifest(raw, end, Minor, limits, 0)
	switch {
	case errors.Is(err, format.ErrLimit):
		return fail(err)
	case err != nil:
		return fail(fmt.Errorf("internal error: the manifest does not read back: %w", err))
	}
	if at := difference(sp, m.savepoint, offsets); at != "" {
		return fail(fmt.Errorf("internal error: the manifest reads back differently at %s", at))
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

// Close ends the writer. Without Seal, what was written is not a valid file.
// It gives the error that stopped the writer, if there was one.
func (w *Writer) Close() error {
	w.closed = true
	for _, j := range w.queue {
		<-j.done
	}
	w.queue, w.free, w.stream = nil, nil, nil
	return w.err
}
