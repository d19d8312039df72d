package spt

import (
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
)

// Verify reads the whole file: every chunk is decompressed and compared with its
// checksum, and every array of offsets in chunks must be one. It reports all that
// is wrong, in the order of the file, and returns an error only if the file could
// not be read or ctx ended.
func (f *File) Verify(ctx context.Context, report func(format.Error)) error {
	v := f.Verifier(report)
	return v.Chunks(ctx, 0, f.m.table.len(), report)
}

// Verifier checks the chunks of a file in parts. It is safe for concurrent use.
type Verifier struct {
	f      *File
	arrays map[uint32]int // how many offsets a chunk holds that is part of an array of them
}

// Verifier returns a Verifier, and reports arrays of offsets that share a chunk and
// disagree about it. It reads nothing.
func (f *File) Verifier(report func(format.Error)) *Verifier {
	arrays := make(map[uint32]int)
	for _, o := range f.m.arrays {
		list := int64(0)
		for _, r := range o.runs {
			for i := r.first; i < r.first+r.n; i++ {
				n := o.count(list)
				if before, ok := arrays[i]; ok && before != n {
					err := f.at(format.Errorf(format.ErrCorrupt, "offsets that are %d here and %d there", before, n), i)
					report(*err.(*format.Error))
				}
				arrays[i] = n
				list++
			}
		}
	}
	return &Verifier{f, arrays}
}

// Chunks checks the chunks from first up to end, which is not included, as Verify
// does.
func (v *Verifier) Chunks(ctx context.Context, first, end int, report func(format.Error)) error {
	f, t, last := v.f, v.f.m.table, end
	var buf, raw []byte
	for first < last {
		end := first + 1
		for end < last && t.stored[end+1]-t.stored[first] <= bulkSize {
			end++
		}
		n := int(t.stored[end] - t.stored[first])
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		if err := readAt(ctx, f.r, buf, t.stored[first]); err != nil {
			return err
		}
		for i := first; i < end; i++ {
			m := int(t.rawLen(uint32(i)))
			if cap(raw) < m {
				raw = make([]byte, m)
			}
			raw = raw[:m:m]
			err := f.decode(uint32(i), buf[t.stored[i]-t.stored[first]:t.stored[i+1]-t.stored[first]], raw)
			if count, ok := v.arrays[uint32(i)]; ok && err == nil {
				err = f.at(eachBlock(raw, count, func(int, int, []byte, int) {}), uint32(i))
			}
			if err == nil {
				continue
			}
			var e *format.Error
			if !errors.As(err, &e) {
				return err
			}
			finding := *e
			finding.Path += f.owner(uint32(i))
			report(finding)
		}
		first = end
	}
	return nil
}

// owner says whose bytes a chunk holds, for a person: the first place in the
// savepoint. It searches; only findings need it.
func (f *File) owner(i uint32) string {
	holds := func(runs []run) bool {
		for _, r := range runs {
			if i-r.first < r.n {
				return true
			}
		}
		return false
	}
	errFound := errors.New("found")
	where := ""
	f.m.savepoint.EachStream(func(p format.Place, s format.Stream) error { //nolint:errcheck // only ours
		if c, ok := s.(*format.Chunks); ok && holds(f.m.streams[c.Index].runs) {
			where = fmt.Sprintf(" of %s", p)
			return errFound
		}
		return nil
	})
	if where != "" {
		return where
	}
	for _, o := range f.m.arrays {
		if holds(o.runs) {
			return " of offsets"
		}
	}
	return " of nothing"
}
