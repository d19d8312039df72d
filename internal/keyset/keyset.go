// Package keyset finds out which of many byte strings are in a list, in bounded memory.
//
//	b := keyset.NewBuilder(dir)
//	defer b.Close()
//	err := b.Add(key, 1) // in any order
//	s, err := b.Set()
//	defer s.Close()
//	line, ok, err := s.Find(key)
//
// A key is identified by a digest of 128 bits with random keys (package hash128). The
// digests are sorted, if there are many of them with temporary files (package scratch).
// A list of a million keys is held in memory. A longer one is a temporary file; then memory
// holds where each of 32,768 ranges of digests starts in it.
package keyset

import (
	"encoding/binary"
	"io"
	"sort"

	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/scratch"
)

const (
	// recordSize is the size of a record: a digest, and the line of the key.
	recordSize = 24
	// readRecords is how many records of a file are read at once.
	readRecords = 128
)

// Builder collects keys. It is used by one goroutine.
type Builder struct {
	dir    string
	hash   hash128.Hasher
	sorter *scratch.Sorter
}

// NewBuilder returns a Builder whose temporary files are in dir; "" means the directory
// of the system.
func NewBuilder(dir string) *Builder {
	return &Builder{dir: dir, hash: hash128.New(), sorter: scratch.NewSorter(scratch.Options{Dir: dir})}
}

// Close removes the temporary file.
func (b *Builder) Close() error { return b.sorter.Close() }

// Add adds a key and its line, which is at least 0.
func (b *Builder) Add(key []byte, line int64) error {
	d := b.hash.Sum(key)
	var p [recordSize]byte
	binary.BigEndian.PutUint64(p[:], d.Hi)
	binary.BigEndian.PutUint64(p[8:], d.Lo)
	binary.BigEndian.PutUint64(p[16:], uint64(line))
	return b.sorter.Add(rangeOf(d), p[:])
}

// rangeOf returns the range that has a digest: its first bits.
func rangeOf(d hash128.Digest) int32 { return int32(d.Hi >> 49) }

// Set returns the keys that were added, each with its first line.
func (b *Builder) Set() (*Set, error) {
	s := &Set{hash: b.hash, starts: make([]int64, 0, scratch.Keys+1)}
	if b.sorter.Spilled() {
		var err error
		if s.file, err = scratch.Create(b.dir, "spt-keys-*.tmp"); err != nil {
			return nil, err
		}
	}
	records := b.sorter.Records(0, scratch.Keys-1)
	var last [16]byte
	for {
		k, p, err := records.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, s.failed(err)
		}
		if s.n > 0 && string(last[:]) == string(p[:16]) {
			continue
		}
		copy(last[:], p)
		for len(s.starts) <= int(k) {
			s.starts = append(s.starts, s.n)
		}
		s.n++
		s.data = append(s.data, p...)
		if s.file != nil && len(s.data) >= recordSize<<12 {
			if err := s.flush(); err != nil {
				return nil, s.failed(err)
			}
		}
	}
	for len(s.starts) <= scratch.Keys {
		s.starts = append(s.starts, s.n)
	}
	if s.file != nil {
		if err := s.flush(); err != nil {
			return nil, s.failed(err)
		}
		s.data = nil
	}
	return s, nil
}

// Set is a set of keys. It is safe for concurrent use.
type Set struct {
	hash   hash128.Hasher
	n      int64
	starts []int64       // the number of the first record of each range, and the end
	data   []byte        // the records, in order
	file   *scratch.File // has them instead
}

// Len returns the number of different keys.
func (s *Set) Len() int64 { return s.n }

// Close removes the temporary file.
func (s *Set) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// failed closes a set that could not be made.
func (s *Set) failed(err error) error {
	_ = s.Close() // err says what went wrong
	return err
}

func (s *Set) flush() error {
	if _, err := s.file.Write(s.data); err != nil {
		return &scratch.Error{Err: err}
	}
	s.data = s.data[:0]
	return nil
}

// Find reports whether a key is in the set, and its first line. The error is one of a
// temporary file.
func (s *Set) Find(key []byte) (line int64, ok bool, err error) {
	d := s.hash.Sum(key)
	var want [16]byte
	binary.BigEndian.PutUint64(want[:], d.Hi)
	binary.BigEndian.PutUint64(want[8:], d.Lo)
	lo, hi := s.starts[rangeOf(d)], s.starts[rangeOf(d)+1]
	data := s.data
	if s.file != nil {
		var buf [readRecords * recordSize]byte
		for hi-lo > readRecords {
			mid := (lo + hi) / 2
			if err := s.read(buf[:recordSize], mid); err != nil {
				return 0, false, err
			}
			if string(buf[:16]) <= string(want[:]) {
				lo = mid
			} else {
				hi = mid
			}
		}
		data = buf[:(hi-lo)*recordSize]
		if err := s.read(data, lo); err != nil {
			return 0, false, err
		}
		lo, hi = 0, hi-lo
	}
	i := lo + int64(sort.Search(int(hi-lo), func(i int) bool {
		at := (lo + int64(i)) * recordSize
		return string(data[at:at+16]) >= string(want[:])
	}))
	if i == hi || string(data[i*recordSize:i*recordSize+16]) != string(want[:]) {
		return 0, false, nil
	}
	return int64(binary.BigEndian.Uint64(data[i*recordSize+16:])), true, nil
}

// Each calls f with the first line of each key, in no order.
func (s *Set) Each(f func(line int64)) error {
	data := s.data
	if s.file != nil {
		data = make([]byte, recordSize<<12)
	}
	for i := int64(0); i < s.n; {
		if s.file != nil {
			data = data[:min(int64(cap(data)), (s.n-i)*recordSize)]
			if err := s.read(data, i); err != nil {
				return err
			}
		}
		for at := 0; at < len(data); at += recordSize {
			f(int64(binary.BigEndian.Uint64(data[at+16:])))
			i++
		}
	}
	return nil
}

// read reads records of the file, from number i on.
func (s *Set) read(p []byte, i int64) error {
	if n, err := s.file.ReadAt(p, i*recordSize); n < len(p) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return &scratch.Error{Err: err}
	}
	return nil
}
