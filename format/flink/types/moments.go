package types

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
)

// The values of java.time and java.sql (spec B5) and of SQL (B10). Each has a
// null of its own: the smallest number.

// readMillis reads long ms since 1970.
func readMillis(r *reader) any {
	ms := r.I64()
	if ms == math.MinInt64 {
		return nil
	}
	return time.UnixMilli(ms).UTC()
}

// readSQLTimestamp reads long ms since 1970 and int nanoseconds of the second,
// of which both have the milliseconds.
func readSQLTimestamp(r *reader) any {
	ms, off := r.I64(), r.Offset()
	nano := r.I32()
	if ms == math.MinInt64 {
		return nil
	}
	checkNano(r, off, nano)
	return time.Unix(floorDiv(ms, 1000), int64(nano)).UTC()
}

// maxSecond is how far from 1970 Java's Instant reaches.
const maxSecond = 31556889864403199

// readInstant reads long seconds since 1970 and int nanoseconds.
func readInstant(r *reader) any {
	off := r.Offset()
	s, nano := r.I64(), r.I32()
	if s == math.MinInt64 {
		return nil
	}
	if r.Err() == nil && (s > maxSecond || s < -maxSecond-1000) {
		r.Fail(off, format.ErrCorrupt, "a moment %d seconds from 1970", s)
	}
	checkNano(r, off+8, nano)
	return time.Unix(s, int64(nano)).UTC()
}

func checkNano(r *reader, off int, nano int32) {
	if r.Err() == nil && (nano < 0 || nano > 999_999_999) {
		r.Fail(off, format.ErrCorrupt, "%d nanoseconds of a second", nano)
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// readLocalDate reads int year, byte month, byte day; null: two smallest
// numbers of four and two bytes.
func readLocalDate(r *reader) any {
	off := r.Offset()
	year, month, day := r.I32(), r.U8(), r.U8()
	if year == math.MinInt32 && month == 0x80 && day == 0 {
		return nil
	}
	if r.Err() == nil && (month < 1 || month > 12 || day < 1 || day > 31) {
		r.Fail(off, format.ErrCorrupt, "a date of month %d and day %d", month, day)
	}
	sign := ""
	if year < 0 {
		sign, year = "-", -year
	}
	return fmt.Sprintf("%s%04d-%02d-%02d", sign, year, month, day)
}

// readLocalTime reads byte hour, byte minute, byte second, int nanoseconds;
// null: the smallest numbers of one, two and four bytes.
func readLocalTime(r *reader) any {
	off := r.Offset()
	h, m, s := r.U8(), r.U8(), r.U8()
	nano := r.I32()
	if h == 0x80 && m == 0x80 && s == 0 && nano == math.MinInt32 {
		return nil
	}
	if r.Err() == nil && (h > 23 || m > 59 || s > 59) {
		r.Fail(off, format.ErrCorrupt, "a time of day %d:%d:%d", h, m, s)
	}
	checkNano(r, off+3, nano)
	if r.Err() != nil {
		return nil
	}
	return time.Date(1, 1, 1, int(h), int(m), int(s), int(nano), time.UTC).Format("15:04:05.999999999")
}

// readLocalDateTime reads a date and a time of day, both null or none.
func readLocalDateTime(r *reader) any {
	off := r.Offset()
	d, t := readLocalDate(r), readLocalTime(r)
	switch {
	case r.Err() != nil, d == nil && t == nil:
		return nil
	case d == nil || t == nil:
		r.Fail(off, format.ErrCorrupt, "half a date with time")
		return nil
	}
	return d.(string) + "T" + t.(string)
}

// readTimeWindow reads long start, long end.
func readTimeWindow(r *reader) any {
	start := r.I64()
	return map[string]any{"start": start, "end": r.I64()}
}

// timer reads the time with its sign turned, a key and a namespace.
func timer(nested []decoder) decoder {
	return func(r *reader) any {
		at := int64(uint64(r.I64()) ^ 1<<63)
		key := nested[0](r)
		return map[string]any{"timestamp": at, "key": key, "namespace": nested[1](r)}
	}
}

// readStringData reads int length and UTF-8.
func readStringData(r *reader) any {
	off := r.Offset()
	p := r.Blob("a string")
	if r.Err() == nil && !utf8.Valid(p) {
		r.Fail(off, format.ErrUnsupported, "a string that is no UTF-8")
	}
	return string(p)
}

// timestampData reads long ms, and from precision 4 on int nanoseconds of the
// millisecond. It has no zone.
func timestampData(precision int32) decoder {
	return func(r *reader) any {
		ms := r.I64()
		nano := int32(0)
		if precision > 3 {
			off := r.Offset()
			if nano = r.I32(); r.Err() == nil && (nano < 0 || nano > 999_999) {
				r.Fail(off, format.ErrCorrupt, "%d nanoseconds of a millisecond", nano)
			}
		}
		return time.UnixMilli(ms).Add(time.Duration(nano)).UTC().Format("2006-01-02T15:04:05.999999999")
	}
}
