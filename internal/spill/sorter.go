package spill

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Options are the options of a Sorter.
type Options struct {
	Memory int64  // for records, in bytes; 0 means 64 MiB
	Dir    string // for the temporary file; "" is the directory of the system
}

// Record is a record and the number of records that were added before it.
type Record struct {
	Key, Value []byte
	Number     int64
}

// Sorter sorts records by the bytes of their keys. Records with equal keys keep their
// order. When they exceed the memory, they are sorted and written to a temporary file as
// a run; at the end the runs are merged.
type Sorter struct {
	o       Options
	blocks  [][]byte // memory of records
	records []held
	used    int64
	n       int64
	file    *File // nil: nothing was written
	ends    []int64
}

// held is a record in memory.
type held struct {
	data   []byte
	key    int // length
	number int64
}

const (
	heldSize  = 48
	blockSize = 1 << 20

	minBuffer = 16 << 10 // of a run that is merged
)

// NewSorter returns a sorter. The caller must close it.
func NewSorter(o Options) *Sorter {
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}
	return &Sorter{o: o}
}

// Add adds a record. It copies both slices.
func (s *Sorter) Add(key, value []byte) error {
	n := len(key) + len(value)
	if n > math.MaxInt32 {
		return fmt.Errorf("a record of %d bytes", n)
	}
	if s.used > 0 && s.used+int64(n)+heldSize > s.o.Memory {
		if err := s.spill(); err != nil {
			return err
		}
	}
	data := append(append(s.space(n), key...), value...)
	s.records = append(s.records, held{data, len(key), s.n})
	s.used += int64(n) + heldSize
	s.n++
	return nil
}

// space returns an empty slice with a capacity of n bytes.
func (s *Sorter) space(n int) []byte {
	if n > blockSize/4 {
		return make([]byte, 0, n)
	}
	last := len(s.blocks) - 1
	if last < 0 || cap(s.blocks[last])-len(s.blocks[last]) < n {
		s.blocks = append(s.blocks, make([]byte, 0, blockSize))
		last++
	}
	at := len(s.blocks[last])
	s.blocks[last] = s.blocks[last][:at+n]
	return s.blocks[last][at : at : at+n]
}

func (s *Sorter) sort() {
	slices.SortFunc(s.records, func(a, b held) int {
		return cmp.Or(bytes.Compare(a.data[:a.key], b.data[:b.key]), cmp.Compare(a.number, b.number))
	})
}

// spill writes the records in memory as a run: int key length, int value length, long
// number, key, value.
func (s *Sorter) spill() error {
	if s.file == nil {
		var err error
		if s.file, err = NewFile(s.o.Dir); err != nil {
			return err
		}
	}
	s.sort()
	var head [16]byte
	for _, r := range s.records {
		binary.BigEndian.PutUint32(head[:], uint32(r.key))
		binary.BigEndian.PutUint32(head[4:], uint32(len(r.data)-r.key))
		binary.BigEndian.PutUint64(head[8:], uint64(r.number))
		if _, err := s.file.Write(head[:]); err != nil {
			return err
		}
		if _, err := s.file.Write(r.data); err != nil {
			return err
		}
	}
	s.ends = append(s.ends, s.file.Size())
	clear(s.records)
	s.blocks, s.records, s.used = nil, s.records[:0], 0
	return nil
}

// Each calls f with all records in order; they are valid until f returns. It stops at the
// first error of f and when ctx ends.
func (s *Sorter) Each(ctx context.Context, f func(Record) error) error {
	next := s.inMemory()
	if s.file != nil {
		if len(s.records) > 0 {
			if err := s.spill(); err != nil {
				return err
			}
		}
		var err error
		if next, err = s.merged(); err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && n%4096 == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = f(r)
		}
		if err != nil {
			return err
		}
	}
}

func (s *Sorter) inMemory() func() (Record, error) {
	s.sort()
	i := 0
	return func() (Record, error) {
		if i == len(s.records) {
			return Record{}, io.EOF
		}
		r := s.records[i]
		i++
		return Record{r.data[:r.key], r.data[r.key:], r.number}, nil
	}
}

// merged merges the runs.
func (s *Sorter) merged() (func() (Record, error), error) {
	if err := s.file.Flush(); err != nil {
		return nil, err
	}
	size := int(min(max(s.o.Memory/int64(len(s.ends)+1), minBuffer), blockSize))
	var runs mergeHeap
	start := int64(0)
	for _, end := range s.ends {
		r := &run{in: bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), size)}
		if err := r.read(); err != nil {
			return nil, err
		}
		runs, start = append(runs, r), end
	}
	heap.Init(&runs)
	var last *run // whose record was returned
	return func() (Record, error) {
		if last != nil {
			switch err := last.read(); {
			case errors.Is(err, io.EOF):
				heap.Pop(&runs)
			case err != nil:
				return Record{}, err
			default:
				heap.Fix(&runs, 0)
			}
		}
		if len(runs) == 0 {
			return Record{}, io.EOF
		}
		last = runs[0]
		return last.record, nil
	}, nil
}

// run reads a run.
type run struct {
	in     *bufio.Reader
	buf    []byte
	record Record
}

// read reads the next record. At the end it returns io.EOF.
func (r *run) read() error {
	var head [16]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return err
	}
	key := int(binary.BigEndian.Uint32(head[:]))
	n := key + int(binary.BigEndian.Uint32(head[4:]))
	r.buf = slices.Grow(r.buf[:0], n)[:n]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		return fmt.Errorf("internal error: a run ends within a record: %w", err)
	}
	r.record = Record{r.buf[:key], r.buf[key:], int64(binary.BigEndian.Uint64(head[8:]))}
	return nil
}

// mergeHeap has the run with the smallest record first.
type mergeHeap []*run

func (h mergeHeap) Len() int      { return len(h) }
func (h mergeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h mergeHeap) Less(i, j int) bool {
	a, b := &h[i].record, &h[j].record
	return cmp.Or(bytes.Compare(a.Key, b.Key), cmp.Compare(a.Number, b.Number)) < 0
}
func (h *mergeHeap) Push(x any) { *h = append(*h, x.(*run)) }
func (h *mergeHeap) Pop() any {
	old := *h
	r := old[len(old)-1]
	*h = old[:len(old)-1]
	return r
}

// Close releases the memory and removes the temporary file.
func (s *Sorter) Close() error {
	s.records, s.blocks = nil, nil
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
