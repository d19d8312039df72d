package types

import (
	"math"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// The codecs of java.time and java.sql (spec flink-serializers B5) and of SQL
// timestamps (B10). Each type has its own null: the smallest number.

// dateCodec reads long ms since 1970.
var dateCodec = scalar{size: 8,
	get: func(r *reader) value.Value {
		ms := r.I64()
		if ms == math.MinInt64 {
			return value.Null()
		}
		return instantOf(ms, 0)
	},
	put: func(w *writer, v value.Value) {
		if v.IsNull() {
			w.int(math.MinInt64, 8)
		} else if w.expects(v, value.KindInstant) {
			if v.Nano()%1e6 != 0 {
				w.fail("%v is finer than a millisecond", v)
			}
			w.int(w.millis(v), 8)
		}
	},
}

// instantOf returns an instant from milliseconds and nanoseconds of a millisecond.
func instantOf(ms int64, nano int32) value.Value {
	sec := floorDiv(ms, 1000)
	return value.Instant(sec, int32(ms-sec*1000)*1e6+nano)
}

// millis returns the milliseconds of an instant, and records an error if they do
// not fit.
func (w *writer) millis(v value.Value) int64 {
	if sec := v.Int(); sec > math.MaxInt64/1000 || sec < floorDiv(math.MinInt64, 1000) {
		w.fail("%v is too far from 1970 for milliseconds", v)
		return 0
	}
	return v.Int()*1000 + int64(v.Nano()/1e6)
}

// sqlTimestampCodec reads long ms since 1970 and int nanoseconds of the second,
// which both contain the milliseconds.
var sqlTimestampCodec = scalar{size: 12,
	get: func(r *reader) value.Value {
		ms, off := r.I64(), r.Offset()
		nano := r.I32()
		if ms == math.MinInt64 {
			if nano != 0 {
				r.other(off, "a null timestamp with nanoseconds")
			}
			return value.Null()
		}
		checkNano(r, off, nano)
		sec := floorDiv(ms, 1000)
		if r.Err() == nil && int64(nano/1e6) != ms-sec*1000 {
			r.other(off, "a timestamp with two different values of milliseconds")
		}
		return value.Instant(sec, nano)
	},
	put: func(w *writer, v value.Value) {
		if v.IsNull() {
			w.int(math.MinInt64, 8)
			w.int(0, 4)
		} else if w.expects(v, value.KindInstant) {
			w.int(w.millis(v), 8)
			w.int(int64(v.Nano()), 4)
		}
	},
}

// maxSecond is the largest distance of Java's Instant from 1970.
const maxSecond = 31556889864403199

// instantCodec reads long seconds since 1970 and int nanoseconds.
var instantCodec = scalar{size: 12,
	get: func(r *reader) value.Value {
		off := r.Offset()
		s, nano := r.I64(), r.I32()
		if s == math.MinInt64 {
			if nano != math.MinInt32 {
				r.other(off, "a null instant with nanoseconds")
			}
			return value.Null()
		}
		if r.Err() == nil && (s > maxSecond || s < -maxSecond-1000) {
			r.Fail(off, format.ErrCorrupt, "an instant out of range, %d seconds from 1970", s)
		}
		checkNano(r, off+8, nano)
		return value.Instant(s, nano)
	},
	put: func(w *writer, v value.Value) {
		if v.IsNull() {
			w.int(math.MinInt64, 8)
			w.int(math.MinInt32, 4)
		} else if w.expects(v, value.KindInstant) {
			w.int(v.Int(), 8)
			w.int(int64(v.Nano()), 4)
		}
	},
}

func checkNano(r *reader, off int, nano int32) {
	if r.Err() == nil && (nano < 0 || nano > 999_999_999) {
		r.Fail(off, format.ErrCorrupt, "invalid nanoseconds %d of a second", nano)
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// date reads int year, byte month, byte day; null: the smallest numbers of four and
// two bytes.
func (r *reader) date() (c value.Civil, null bool) {
	off := r.Offset()
	c.Year, c.Month, c.Day = r.I32(), r.U8(), r.U8()
	if c.Year == math.MinInt32 && c.Month == 0x80 && c.Day == 0 {
		return c, true
	}
	if r.Err() == nil && (c.Month < 1 || c.Month > 12 || c.Day < 1 || c.Day > 31) {
		r.Fail(off, format.ErrCorrupt, "invalid date with month %d and day %d", c.Month, c.Day)
	}
	return c, false
}

func (w *writer) date(v value.Value) {
	if v.IsNull() {
		w.int(math.MinInt32, 4)
		w.int(math.MinInt16, 2)
		return
	}
	c := v.Civil()
	w.int(int64(c.Year), 4)
	w.p = append(w.p, c.Month, c.Day)
}

// timeOfDay reads byte hour, byte minute, byte second, int nanoseconds; null: the
// smallest numbers of one, two and four bytes.
func (r *reader) timeOfDay() (c value.Civil, null bool) {
	off := r.Offset()
	c.Hour, c.Minute, c.Second = r.U8(), r.U8(), r.U8()
	c.Nano = r.I32()
	if c.Hour == 0x80 && c.Minute == 0x80 && c.Second == 0 && c.Nano == math.MinInt32 {
		return c, true
	}
	if r.Err() == nil && (c.Hour > 23 || c.Minute > 59 || c.Second > 59) {
		r.Fail(off, format.ErrCorrupt, "invalid time of day %d:%d:%d", c.Hour, c.Minute, c.Second)
	}
	checkNano(r, off+3, c.Nano)
	return c, false
}

func (w *writer) timeOfDay(v value.Value) {
	if v.IsNull() {
		w.int(math.MinInt8, 1)
		w.int(math.MinInt16, 2)
		w.int(math.MinInt32, 4)
		return
	}
	c := v.Civil()
	w.p = append(w.p, c.Hour, c.Minute, c.Second)
	w.int(int64(c.Nano), 4)
}

var localDateCodec = scalar{size: 6,
	get: func(r *reader) value.Value {
		c, null := r.date()
		if null {
			return value.Null()
		}
		return value.Date(c.Year, c.Month, c.Day)
	},
	put: func(w *writer, v value.Value) {
		if v.IsNull() || w.expects(v, value.KindDate) {
			w.date(v)
		}
	},
}

var localTimeCodec = scalar{size: 7,
	get: func(r *reader) value.Value {
		c, null := r.timeOfDay()
		if null {
			return value.Null()
		}
		return value.TimeOfDay(c.Hour, c.Minute, c.Second, c.Nano)
	},
	put: func(w *writer, v value.Value) {
		if v.IsNull() || w.expects(v, value.KindTimeOfDay) {
			w.timeOfDay(v)
		}
	},
}

// localDateTimeCodec reads a date and a time of day, which are both null or both
// not.
var localDateTimeCodec = scalar{size: 13,
	get: func(r *reader) value.Value {
		off := r.Offset()
		date, noDate := r.date()
		clock, noClock := r.timeOfDay()
		if noDate != noClock {
			r.Fail(off, format.ErrCorrupt, "only one of date and time is null")
		}
		if noDate || r.Err() != nil {
			return value.Null()
		}
		clock.Year, clock.Month, clock.Day = date.Year, date.Month, date.Day
		return value.DateTime(clock)
	},
	put: func(w *writer, v value.Value) {
		if v.IsNull() || w.expects(v, value.KindDateTime) {
			w.date(v)
			w.timeOfDay(v)
		}
	},
}

// timestampData is the codec of SQL timestamps, which have no zone: long ms, and
// from precision 4 on int nanoseconds of the millisecond.
func timestampData(precision int32) scalar {
	c := scalar{size: 8,
		get: func(r *reader) value.Value {
			ms := r.I64()
			nano := int32(0)
			if precision > 3 {
				off := r.Offset()
				if nano = r.I32(); r.Err() == nil && (nano < 0 || nano > 999_999) {
					r.Fail(off, format.ErrCorrupt, "invalid nanoseconds %d of a millisecond", nano)
				}
			}
			t := time.UnixMilli(ms).UTC()
			year, month, day := t.Date()
			hour, minute, second := t.Clock()
			return value.DateTime(value.Civil{Year: int32(year), Month: uint8(month), Day: uint8(day),
				Hour: uint8(hour), Minute: uint8(minute), Second: uint8(second), Nano: int32(t.Nanosecond()) + nano})
		},
		put: func(w *writer, v value.Value) {
			if !w.expects(v, value.KindDateTime) {
				return
			}
			c := v.Civil()
			t := time.Date(int(c.Year), time.Month(c.Month), int(c.Day), int(c.Hour), int(c.Minute), int(c.Second), 0, time.UTC)
			ms := w.millis(value.Instant(t.Unix(), c.Nano))
			if w.int(ms, 8); precision > 3 {
				w.int(int64(c.Nano%1e6), 4)
			} else if c.Nano%1e6 != 0 {
				w.fail("%v is finer than a millisecond", v)
			}
		},
	}
	if precision > 3 {
		c.size = 12
	}
	return c
}

// windowShape and timerShape are the fields of windows and timers.
var (
	windowShape = &value.Shape{Names: []string{"start", "end"}}
	timerShape  = &value.Shape{Names: []string{"timestamp", "key", "namespace"}}
)

var timeWindowCodec = record{windowShape, []codec{longCodec, longCodec}}

// timerTime reads a time whose sign is inverted, so that the order of bytes is the
// order of times.
var timerTime = scalar{size: 8,
	get: func(r *reader) value.Value { return value.Int(r.I64() ^ math.MinInt64) },
	put: func(w *writer, v value.Value) {
		if w.expects(v, value.KindInt) {
			w.int(v.Int()^math.MinInt64, 8)
		}
	},
}
