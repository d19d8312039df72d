package tally

import (
	"io"

	"github.com/savepoint-tools/spt/internal/hash128"
	tempfile "github.com/savepoint-tools/spt/internal/scratch"
)

// parts is the number of parts into which a temporary file divides digests, by
// their first bits.
const (
	partBits = 10
	parts    = 1 << partBits
)

func partOf(d hash128.Digest) int { return int(d.Hi >> (64 - partBits)) }

// scratch is a temporary file of records, appended run by run. The records of a
// run are ordered by part.
type scratch struct {
	f    *tempfile.File
	size int64
	runs []run
	buf  []byte
}

// run holds the position at which the records of each part begin in the file, and
// the end of the last.
type run [parts + 1]int64

// TempError is an error of a temporary file.
type TempError = tempfile.Error

// newScratch creates the file.
func newScratch(dir string) (*scratch, error) {
	f, err := tempfile.Create(dir, "spt-tally-*.tmp")
	if err != nil {
		return nil, err
	}
	return &scratch{f: f, buf: make([]byte, 0, bufferSize)}, nil
}

const bufferSize = 1 << 20

// close closes and removes the file.
func (s *scratch) close() error { return s.f.Close() }

// append writes a run of n records ordered by the parts of their digests.
func (s *scratch) append(n, record int, digest func(i int) hash128.Digest, put func(i int, p []byte)) error {
	s.runs = append(s.runs, run{})
	r, part := &s.runs[len(s.runs)-1], 0
	r[0] = s.size
	for i := range n {
		for p := partOf(digest(i)); part < p; {
			part++
			r[part] = s.size
		}
		if len(s.buf)+record > cap(s.buf) {
			if err := s.flush(); err != nil {
				return err
			}
		}
		at := len(s.buf)
		s.buf = s.buf[:at+record]
		put(i, s.buf[at:])
		s.size += int64(record)
	}
	for part < parts {
		part++
		r[part] = s.size
	}
	return s.flush()
}

func (s *scratch) flush() error {
	_, err := s.f.Write(s.buf)
	s.buf = s.buf[:0]
	if err != nil {
		return &TempError{Err: err}
	}
	return nil
}

// read calls f with the records of the parts from lo to hi, a few at a time, in
// the order in which they were written.
func (s *scratch) read(lo, hi, record int, f func(p []byte) error) error {
	buf := s.buf[:bufferSize/record*record]
	for i := range s.runs {
		for at, end := s.runs[i][lo], s.runs[i][hi]; at < end; {
			p := buf[:min(int64(len(buf)), end-at)]
			if n, err := s.f.ReadAt(p, at); n < len(p) {
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return &TempError{Err: err}
			}
			if err := f(p); err != nil {
				return err
			}
			at += int64(len(p))
		}
	}
	return nil
}
