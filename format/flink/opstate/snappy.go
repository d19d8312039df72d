package opstate

import (
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/framed"
)

const snappyHeader = framed.Header

// chunk reads the head of the chunk at pos, which is before w.end.
func (w *window) chunk(pos int64) (kind byte, body int64, err error) {
	p, err := w.bytes(pos, framed.HeadSize)
	if err != nil {
		return 0, 0, err
	}
	kind, body = framed.Head(p)
	return kind, body, at(framed.Check(kind, body, w.end-pos-framed.HeadSize), pos)
}

// at adds a position to an error.
func at(err error, pos int64) error {
	if err == nil {
		return nil
	}
	var e *format.Error
	if errors.As(err, &e) && e.Offset < 0 && !errors.Is(err, format.ErrLimit) {
		e.Offset = pos
	}
	return err
}

func (w *window) corrupt(pos int64, msg string, args ...any) error {
	return at(format.Errorf(format.ErrCorrupt, msg, args...), pos)
}

// inflate appends the data of the chunks in [start, end).
func (w *window) inflate(dst []byte, start, end, limit int64) (_ []byte, err error) {
	for pos := start; pos < end && err == nil; {
		dst, pos, err = w.inflateChunk(dst, pos, end, limit)
	}
	return dst, err
}

// inflateChunk appends the data of the chunk at pos, and returns the start of the
// next chunk.
func (w *window) inflateChunk(dst []byte, pos, end, limit int64) (_ []byte, next int64, err error) {
	if end-pos < framed.HeadSize {
		return dst, pos, w.corrupt(pos, "expected a snappy chunk, found %d bytes", end-pos)
	}
	kind, body, err := w.chunk(pos)
	if err != nil {
		return dst, pos, err
	}
	if next = pos + framed.HeadSize + body; next > end {
		return dst, pos, w.corrupt(pos, "a snappy chunk extends %d bytes into the next element", next-end)
	}
	p, err := w.bytes(pos+framed.HeadSize, body)
	if err != nil {
		return dst, pos, err
	}
	dst, err = framed.Decode(dst, kind, p, limit)
	return dst, next, at(err, pos)
}
