package diff

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// rangeOf is n bytes of a stream; n < 0 if unknown.
type rangeOf struct {
	s      format.Stream
	off, n int64
}

// window reads a stream forward, in pieces large enough for a request.
type window struct {
	d   *differ
	in  format.View
	s   format.Stream
	off int64
	buf []byte
}

const windowSize = 256 << 10

// at returns up to n bytes at off, at least one.
func (w *window) at(s format.Stream, off, n int64) ([]byte, error) {
	if w.s != s || off < w.off || off >= w.off+int64(len(w.buf)) {
		size, err := w.d.size(w.in, s)
		if err != nil {
			return nil, err
		}
		k := min(size-off, windowSize)
		if k <= 0 {
			return nil, format.InFile(format.Errorf(format.ErrTruncated, "read at %d in a stream of %d bytes", off, size), w.in.Location)
		}
		if cap(w.buf) == 0 {
			w.buf = make([]byte, windowSize)
		}
		w.s = nil // until it is read
		w.buf = w.buf[:k]
		if _, err := w.in.Source.ReadAt(w.d.ctx, s, w.buf, off); err != nil {
			return nil, format.InFile(err, w.in.Location)
		}
		w.s, w.off = s, off
		w.d.progress(k)
	}
	p := w.buf[off-w.off:]
	return p[:min(int64(len(p)), n)], nil
}

// sameRange compares the bytes of x with as many bytes of y.
func sameRange(ra, rb *window, x, y rangeOf) (bool, error) {
	for i := int64(0); i < x.n; {
		p, err := ra.at(x.s, x.off+i, x.n-i)
		if err != nil {
			return false, err
		}
		q, err := rb.at(y.s, y.off+i, int64(len(p)))
		if err != nil {
			return false, err
		}
		if !bytes.Equal(p[:len(q)], q) {
			return false, nil
		}
		i += int64(len(q))
	}
	return true, nil
}

// size returns the actual length of a stream.
func (d *differ) size(in format.View, s format.Stream) (int64, error) {
	if z, ok := in.Source.(format.Sizer); ok {
		n, err := z.SizeOf(d.ctx, s)
		return n, format.InFile(err, in.Location)
	}
	return s.Size(), nil
}

// sameness is what the references of two streams say about the equality of their
// bytes.
type sameness int

const (
	perhaps   sameness = iota // must be read to compare
	oneFile                   // equal references that lead to one file
	absent                    // equal references without a file on either side
	unchecked                 // equal references that could not be looked up
	byDigest                  // chunks of equal digests
)

// sameReference compares two streams by their references.
func (d *differ) sameReference(x, y format.Stream) (sameness, error) {
	pair := [2]format.Stream{x, y} // a stream has many key groups
	same, known := d.sameStreams[pair]
	if known {
		return same, nil
	}
	same, err := d.lookUp(x, y)
	if err == nil {
		if d.sameStreams == nil {
			d.sameStreams = map[[2]format.Stream]sameness{}
		}
		d.sameStreams[pair] = same
		switch same {
		case byDigest:
			d.out.ByDigest += x.Size()
		case absent, unchecked:
			d.unread(x.Key().Name, same)
		}
	}
	return same, err
}

func (d *differ) lookUp(x, y format.Stream) (sameness, error) {
	if cx, ok := x.(*format.Chunks); ok {
		cy, ok := y.(*format.Chunks)
		if ok && cx.Digest != "" && cx.Key() == cy.Key() {
			return byDigest, nil
		}
		return perhaps, nil
	}
	kind := format.Kind(x)
	switch kind {
	case format.KindAbsolute, format.KindSegment, format.KindRelative:
	default:
		return perhaps, nil
	}
	relative := kind == format.KindRelative
	if x.Key() != y.Key() || relative && !d.sameName(x, y) {
		return perhaps, nil
	}
	p, err := d.locationOf(d.a, x)
	q, qerr := d.locationOf(d.b, y)
	switch {
	case notHere(err) && notHere(qerr):
		if errors.Is(err, format.ErrNotChecked) || errors.Is(qerr, format.ErrNotChecked) {
			return unchecked, nil
		}
		return absent, nil
	case relative: // each side has its own next to _metadata
		return perhaps, nil
	case err != nil || qerr != nil:
		return perhaps, cmp.Or(err, qerr)
	case p != "" && p == q:
		return oneFile, nil
	}
	return perhaps, nil
}

// notHere reports whether the file of a reference is missing or could not be
// looked up. A file outside the snapshot is neither: it remains an error until
// allowed.
func notHere(err error) bool {
	return errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrNotChecked)
}

// locationOf returns where a stream's bytes are stored, "" if unknown.
func (d *differ) locationOf(in format.View, s format.Stream) (string, error) {
	l, ok := in.Source.(fileref.Locator)
	if !ok {
		return "", nil
	}
	p, err := l.PlaceOf(d.ctx, s)
	return p, format.InFile(err, in.Location)
}

// sameBytes compares two streams.
func (d *differ) sameBytes(x, y format.Stream) (bool, error) {
	if same, err := d.sameReference(x, y); same != perhaps || err != nil {
		return same != perhaps, err
	}
	n, err := d.size(d.a, x)
	if err != nil {
		return false, err
	}
	m, err := d.size(d.b, y)
	if err != nil || n != m {
		return false, err
	}
	return sameRange(&window{d: d, in: d.a}, &window{d: d, in: d.b}, rangeOf{x, 0, n}, rangeOf{y, 0, n})
}

// fileContent identifies the bytes of a range of a stream.
type fileContent struct {
	n   int64
	sum hash128.Digest
}

// contentOf reads a range.
func (d *differ) contentOf(in format.View, r rangeOf) (fileContent, error) {
	h := d.hash.Pieces()
	w := &window{d: d, in: in}
	for i := int64(0); i < r.n; {
		p, err := w.at(r.s, r.off+i, r.n-i)
		if err != nil {
			return fileContent{}, err
		}
		h.Add(p)
		i += int64(len(p))
	}
	return fileContent{r.n, h.Sum()}, nil
}

// contents returns the set of the contents of ranges.
func (d *differ) contents(in format.View, all []rangeOf) (map[fileContent]bool, error) {
	set := map[fileContent]bool{}
	for _, r := range all {
		c, err := d.contentOf(in, r)
		if err != nil {
			return nil, err
		}
		set[c] = true
	}
	return set, nil
}
