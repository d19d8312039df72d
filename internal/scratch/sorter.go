package scratch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
)

// Options are the options of a Sorter.
type Options struct {
	Dir string // of temporary files; "" means the system's
	// Memory is the size of a run in bytes; 0 means 64 MiB.
	Memory int64
}

// Keys are at least 0 and below Keys.
const Keys = 1 << 15

// Sorter sorts records by a key, and records with one key by their bytes. They may be
// added by one goroutine at a time and read by several, after all have been added.
type Sorter struct {
	o     Options
	file  *File
	size  int64 // of the file
	runs  []run
	data  []byte   // records that are not written
	index []record // of data
	mu    sync.Mutex
	done  bool // data is sorted
}

// run is a sorted part of the file: the position of the first record of each key, and
// the end.
type run struct {
	keys []int32 // that have records, ascending
	at   []int64 // one more than keys
}

type record struct {
	key    int32
	at, to int
}

// NewSorter returns a Sorter without records.
func NewSorter(o Options) *Sorter {
	if o.Memory <= 0 {
		o.Memory = 64 << 20
	}
	return &Sorter{o: o}
}

// Close removes the temporary file.
func (s *Sorter) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// Spilled reports whether records are in a temporary file.
func (s *Sorter) Spilled() bool { return s.file != nil }

// indexBytes is the memory of the index of a record.
const indexBytes = 24

// Add adds a record, which the caller may change afterwards.
func (s *Sorter) Add(key int32, p []byte) error {
	if key < 0 || key >= Keys || len(p) > math.MaxInt32 {
		return errors.New("internal error: a key or a record that is out of range")
	}
	if have := int64(len(s.data)) + indexBytes*int64(len(s.index)); have > 0 && have+int64(len(p))+indexBytes > s.o.Memory {
		if err := s.write(); err != nil {
			return err
		}
	}
	at := len(s.data)
	s.data = append(s.data, p...)
	s.index = append(s.index, record{key, at, len(s.data)})
	s.done = false
	return nil
}

func (s *Sorter) sort() {
	slices.SortFunc(s.index, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.key, b.key), bytes.Compare(s.data[a.at:a.to], s.data[b.at:b.to]))
	})
	s.done = true
}

const bufferSize = 256 << 10

// write writes the records in memory as a run: of each its length, and its bytes.
func (s *Sorter) write() (err error) {
	if s.file == nil {
		if s.file, err = Create(s.o.Dir, "spt-sort-*.tmp"); err != nil {
			return err
		}
	}
	s.sort()
	var r run
	buf := make([]byte, 0, bufferSize)
	flush := func() error {
		if _, err := s.file.Write(buf); err != nil {
			return &Error{err}
		}
		buf = buf[:0]
		return nil
	}
	for i, x := range s.index {
		if i == 0 || x.key != s.index[i-1].key {
			r.keys, r.at = append(r.keys, x.key), append(r.at, s.size)
		}
		p := s.data[x.at:x.to]
		if len(buf)+4+len(p) > cap(buf) {
			if err := flush(); err != nil {
				return err
			}
		}
		buf = append(binary.BigEndian.AppendUint32(buf, uint32(len(p))), p...)
		s.size += 4 + int64(len(p))
	}
	if err := flush(); err != nil {
		return err
	}
	r.at = append(r.at, s.size)
	s.runs = append(s.runs, r)
	s.data, s.index = s.data[:0], s.index[:0]
	return nil
}

// Records returns the records whose keys are between first and last. Its memory is a
// buffer for each run.
func (s *Sorter) Records(first, last int32) *Cursor {
	s.mu.Lock()
	if !s.done {
		s.sort()
	}
	s.mu.Unlock()
	c := &Cursor{}
	for i := range s.runs {
		r := &s.runs[i]
		lo, _ := slices.BinarySearch(r.keys, first)
		hi, found := slices.BinarySearch(r.keys, last)
		if found {
			hi++
		}
		if lo < hi {
			c.heads = append(c.heads, &head{s: s, run: r, k: lo, last: hi, off: r.at[lo]})
		}
	}
	lo, _ := slices.BinarySearchFunc(s.index, first, func(r record, key int32) int { return cmp.Compare(r.key, key) })
	hi, _ := slices.BinarySearchFunc(s.index, last+1, func(r record, key int32) int { return cmp.Compare(r.key, key) })
	if lo < hi {
		c.heads = append(c.heads, &head{s: s, records: s.index[lo:hi]})
	}
	return c
}

// Cursor walks records in order.
type Cursor struct {
	heads   []*head // a heap, by next record
	started bool
}

// head is the next record of a run, or of those in memory.
type head struct {
	s   *Sorter
	key int32
	p   []byte

	records []record // those in memory that follow

	run     *run
	k, last int   // keys of the run that are read
	off     int64 // of buf in the file
	buf     []byte
	at      int // of the next record in buf
}

// Next returns the next record and its key, or io.EOF. The record is valid until the
// next call.
func (c *Cursor) Next() (key int32, p []byte, err error) {
	if !c.started {
		c.started = true
		heads := c.heads
		c.heads = nil
		for _, h := range heads {
			if err := h.next(); err != nil {
				return 0, nil, err
			}
			c.heads = append(c.heads, h)
			c.up(len(c.heads) - 1)
		}
	} else if len(c.heads) > 0 {
		err := c.heads[0].next()
		switch {
		case err == io.EOF:
			c.heads[0] = c.heads[len(c.heads)-1]
			c.heads = c.heads[:len(c.heads)-1]
		case err != nil:
			return 0, nil, err
		}
		c.down()
	}
	if len(c.heads) == 0 {
		return 0, nil, io.EOF
	}
	return c.heads[0].key, c.heads[0].p, nil
}

func (c *Cursor) less(i, j int) bool {
	a, b := c.heads[i], c.heads[j]
	return cmp.Or(cmp.Compare(a.key, b.key), bytes.Compare(a.p, b.p)) < 0
}

func (c *Cursor) up(i int) {
	for i > 0 && c.less(i, (i-1)/2) {
		c.heads[i], c.heads[(i-1)/2] = c.heads[(i-1)/2], c.heads[i]
		i = (i - 1) / 2
	}
}

func (c *Cursor) down() {
	for i := 0; ; {
		k := 2*i + 1
		if k >= len(c.heads) {
			return
		}
		if k+1 < len(c.heads) && c.less(k+1, k) {
			k++
		}
		if !c.less(k, i) {
			return
		}
		c.heads[i], c.heads[k] = c.heads[k], c.heads[i]
		i = k
	}
}

// next moves to the next record, or returns io.EOF.
func (h *head) next() error {
	if h.run == nil {
		if len(h.records) == 0 {
			return io.EOF
		}
		r := h.records[0]
		h.records = h.records[1:]
		h.key, h.p = r.key, h.s.data[r.at:r.to]
		return nil
	}
	pos := h.off + int64(h.at)
	for h.k < h.last && pos >= h.run.at[h.k+1] {
		h.k++
	}
	if h.k >= h.last {
		return io.EOF
	}
	head, err := h.need(4)
	if err != nil {
		return err
	}
	n := int(binary.BigEndian.Uint32(head))
	p, err := h.need(4 + n)
	if err != nil {
		return err
	}
	h.key, h.p = h.run.keys[h.k], p[4:]
	h.at += 4 + n
	return nil
}

// need returns n bytes from the next record on.
func (h *head) need(n int) ([]byte, error) {
	if len(h.buf)-h.at < n {
		end := h.run.at[h.last]
		h.off += int64(h.at)
		h.at = 0
		size := int(min(int64(max(n, bufferSize)), end-h.off))
		if cap(h.buf) < size {
			h.buf = make([]byte, size)
		}
		h.buf = h.buf[:size]
		if k, err := h.s.file.ReadAt(h.buf, h.off); k < size {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, &Error{err}
		}
		if size < n {
			return nil, &Error{io.ErrUnexpectedEOF}
		}
	}
	return h.buf[h.at : h.at+n], nil
}
