package tally

import (
	"encoding/binary"

	"github.com/savepoint-tools/spt/internal/hash128"
)

// record is one element of a replay.
type record struct {
	hash128.Digest
	number int64
}

const (
	recordSize = 24
	// replayed is the number of elements that are sorted and written at once: 12 MiB,
	// and again as much for the sorted ones.
	replayed = 1 << 19
)

// replay writes the elements of a replay to a temporary file, and then matches
// the elements of each part with its entries.
func (c *Counter) replay(s *scratch, each func(visit func(d hash128.Digest, number int64) error) error, prepare func(e *Entry), f func(number int64, e *Entry)) error {
	batch, sorted := make([]record, 0, replayed), make([]record, replayed)
	write := func() error {
		byPart(sorted, batch)
		err := s.append(len(batch), recordSize, func(i int) hash128.Digest { return sorted[i].Digest }, func(i int, p []byte) {
			binary.LittleEndian.PutUint64(p, sorted[i].Hi)
			binary.LittleEndian.PutUint64(p[8:], sorted[i].Lo)
			binary.LittleEndian.PutUint64(p[16:], uint64(sorted[i].number))
		})
		batch = batch[:0]
		return err
	}
	err := each(func(d hash128.Digest, number int64) error {
		if batch = append(batch, record{d, number}); len(batch) < cap(batch) {
			return nil
		}
		return write()
	})
	if err == nil {
		err = write()
	}
	if err != nil {
		return err
	}
	return c.tables(func(t *table, lo, hi int) error {
		for i := range t.slots {
			if e := &t.slots[i]; e.Count > 0 {
				prepare(e)
			}
		}
		return s.read(lo, hi, recordSize, func(p []byte) error {
			for ; len(p) > 0; p = p[recordSize:] {
				d := hash128.Digest{Hi: binary.LittleEndian.Uint64(p), Lo: binary.LittleEndian.Uint64(p[8:])}
				if err := t.visit(d, int64(binary.LittleEndian.Uint64(p[16:])), f); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// byPart copies records to sorted, ordered by part; the sort is stable.
func byPart(sorted, all []record) {
	var at [parts + 1]int32
	for i := range all {
		at[partOf(all[i].Digest)+1]++
	}
	for p := range parts {
		at[p+1] += at[p]
	}
	for i := range all {
		p := partOf(all[i].Digest)
		sorted[at[p]] = all[i]
		at[p]++
	}
}
