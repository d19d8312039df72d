package spt

import (
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
)

// Verify reads the whole file. It decompresses every chunk and compares it with its
// checksum, and checks every array of offsets in chunks. It reports all problems in
// file order, and returns an error only if the file cannot be read or ctx ended.
func (f *File) Verify(ctx context.Context, report func(format.Error)) error {
	v := f.Verifier(report)
	return v.Chunks(ctx, 0, f.m.table.len(), report)
}

// Verifier checks the chunks of a file in parts. It is safe for concurrent use.
type Verifier struct {
	f      *File
	arrays map[uint32]int // number of offsets in each chunk of offsets
}

// Verifier returns a Verifier, and reports inconsistent arrays of offsets that
// share a chunk. It reads nothing.
func (f *File) Verifier(report func(format.Error)) *Verifier {
	arrays := make(map[uint32]int)
	for _, o := range f.m.arrays {
		list := int64(0)
		for _, r := range o.runs {
			for i := r.first; i < r.first+r.n; i++ {
				n := o.count(list)
				if before, ok := arrays[i]; ok && before != n {
					err := f.at(format.Errorf(format.ErrCorrupt, "arrays disagree about the number of offsets in it: %d and %d", before, n), i)
					report(*err.(*format.Error))
				}
				arrays[i] = n
				list++
			}
		}
	}
	return &Verifier{f, arrays}
}

// Chunks checks the chunks [first, end) as [File.Verify] does.
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

// owner returns the first use of a chunk in the savepoint, for messages. It
// searches, so it is called for findings only.
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
	f.m.savepoint.EachStream(func(p format.Place, s format.Stream) error { //nolint:errcheck // only errFound
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
	return " (unreferenced)"
}
