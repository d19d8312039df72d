package types

import (
	"math"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// The codecs of java.time and java.sql (spec flink-serializers B5) and of SQL
// timestamps (B10). Each type has its own null: the smallest number.

// dateCodec reads long ms since 1970.
var dateCodec = scalar{size: 8, typ: &Type{Kind: TypeInstant, Word: "date", Null: true, Precision: 3}, from: nullableTimestamp(value.KindInstant),
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

// nullableTimestamp converts JSON to a value of a kind or null.
func nullableTimestamp(k value.Kind) func(p *parser, n *node) value.Value {
	return func(p *parser, n *node) value.Value {
		if n.Kind == jsontext.Null {
			return value.Null()
		}
		return p.timestamp(n, k)
	}
}

// instantOf returns an instant from milliseconds and nanoseconds of a millisecond.
func instantOf(ms int64, nano int32) value.Value {
	sec := floorDiv(ms, 1000)
	return value.Instant(sec, int32(ms-sec*1000)*1e6+nano)
}

// millis returns the milliseconds of an instant, and records an error if they do
// not fit.
func (w *writer) millis(v value.Value) int64 {
	sec, ms := v.Int(), int64(v.Nano()/1e6)
	if at := sec*1000 + ms; floorDiv(at, 1000) == sec {
		return at
	}
	w.fail("%v is too far from 1970 for milliseconds", v)
	return 0
}

// sqlTimestampCodec reads long ms since 1970 and int nanoseconds of the second,
// which both contain the milliseconds.
var sqlTimestampCodec = scalar{size: 12, typ: &Type{Kind: TypeInstant, Word: "timestamp", Null: true, Precision: 9}, from: nullableTimestamp(value.KindInstant),
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

// minSecond and maxSecond are the bounds of Java's Instant, in seconds since 1970.
const (
	minSecond = -31557014167219200
	maxSecond = 31556889864403199
)

// instantCodec reads long seconds since 1970 and int nanoseconds.
var instantCodec = scalar{size: 12, typ: &Type{Kind: TypeInstant, Word: "Instant", Null: true, Precision: 9}, from: nullableTimestamp(value.KindInstant),
	get: func(r *reader) value.Value {
		off := r.Offset()
		s, nano := r.I64(), r.I32()
		if s == math.MinInt64 {
			if nano != math.MinInt32 {
				r.other(off, "a null instant with nanoseconds")
			}
			return value.Null()
		}
		if r.Err() == nil && (s > maxSecond || s < minSecond) {
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
	if r.Err() == nil && (!jsontext.ValidDay(int64(c.Year), c.Month, c.Day)) {
		r.Fail(off, format.ErrCorrupt, "invalid date: year %d, month %d, day %d", c.Year, c.Month, c.Day)
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

var localDateCodec = scalar{size: 6, typ: &Type{Kind: TypeDate, Word: "LocalDate", Null: true}, from: nullableTimestamp(value.KindDate),
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

var localTimeCodec = scalar{size: 7, typ: &Type{Kind: TypeTimeOfDay, Word: "LocalTime", Null: true, Precision: 9}, from: nullableTimestamp(value.KindTimeOfDay),
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
var localDateTimeCodec = scalar{size: 13, typ: &Type{Kind: TypeDateTime, Word: "LocalDateTime", Null: true, Precision: 9}, from: nullableTimestamp(value.KindDateTime),
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

// timestampData is the codec of SQL timestamps: long ms, and from precision 4 on int
// nanoseconds of the millisecond. kind is KindDateTime, or KindInstant for timestamps
// with the local time zone.
func timestampData(precision int32, kind value.Kind) scalar {
	c := scalar{size: 8, typ: timestampType(precision, kind),
		get: func(r *reader) value.Value {
			ms := r.I64()
			nano := int32(0)
			if precision > 3 {
				off := r.Offset()
				if nano = r.I32(); r.Err() == nil && (nano < 0 || nano > 999_999) {
					r.Fail(off, format.ErrCorrupt, "invalid nanoseconds %d of a millisecond", nano)
				}
			}
			return timestampOf(kind, ms, nano)
		},
		put: func(w *writer, v value.Value) {
			if !w.expects(v, kind) {
				return
			}
			ms, nano := w.timestampMillis(v)
			if w.int(ms, 8); precision > 3 {
				w.int(int64(nano), 4)
			} else if nano != 0 {
				w.fail("%v is finer than a millisecond", v)
			}
		},
		from: func(p *parser, n *node) value.Value { return p.timestamp(n, kind) },
	}
	if precision > 3 {
		c.size = 12
	}
	return c
}

// timestampType returns the type of SQL timestamps.
func timestampType(precision int32, kind value.Kind) *Type {
	if kind == value.KindInstant {
		return &Type{Kind: TypeInstant, Word: "timestamp_ltz", Precision: precision}
	}
	return &Type{Kind: TypeDateTime, Word: "timestamp", Precision: precision}
}

// timestampOf returns a date with time or an instant from milliseconds and nanoseconds
// of a millisecond.
func timestampOf(kind value.Kind, ms int64, nano int32) value.Value {
	v := instantOf(ms, nano)
	if kind == value.KindInstant {
		return v
	}
	return dateTimeOf(v.Int(), v.Nano())
}

// timestampMillis is the inverse of timestampOf.
func (w *writer) timestampMillis(v value.Value) (ms int64, nano int32) {
	if v.Kind() == value.KindDateTime {
		v = instantIn(v)
	}
	return w.millis(v), v.Nano() % 1e6
}

// dateTimeOf returns the date with time in UTC of an instant within the years of 32
// bits.
func dateTimeOf(sec int64, nano int32) value.Value {
	t := time.Unix(sec, 0).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return value.DateTime(value.Civil{Year: int32(year), Month: uint8(month), Day: uint8(day),
		Hour: uint8(hour), Minute: uint8(minute), Second: uint8(second), Nano: nano})
}

// instantIn is the inverse of dateTimeOf.
func instantIn(v value.Value) value.Value {
	c := v.Civil()
	t := time.Date(int(c.Year), time.Month(c.Month), int(c.Day), int(c.Hour), int(c.Minute), int(c.Second), 0, time.UTC)
	return value.Instant(t.Unix(), c.Nano)
}

// dateOfDays returns a date from a number of days since 1970, of 32 bits.
func dateOfDays(n int64) value.Value {
	year, month, d := time.Unix(n*day, 0).UTC().Date()
	return value.Date(int32(year), uint8(month), uint8(d))
}

// daysOf is the inverse of dateOfDays.
func daysOf(v value.Value) int64 { return floorDiv(instantIn(v).Int(), day) }

// timeOfDay returns the time of day from a number of units of nanoseconds since
// midnight, or the number if the day has fewer.
func timeOfDay(n, unit int64) value.Value {
	if n < 0 || n >= day*second/unit {
		return value.Int(n)
	}
	sec := n / (second / unit)
	return value.TimeOfDay(uint8(sec/3600), uint8(sec/60%60), uint8(sec%60), int32(n*unit-sec*second))
}

// unitsOfDay is the inverse of timeOfDay. ok is false if v is not a whole number of
// units.
func unitsOfDay(v value.Value, unit int64) (n int64, ok bool) {
	c := v.Civil()
	sec := int64(c.Hour)*3600 + int64(c.Minute)*60 + int64(c.Second)
	return sec*(second/unit) + int64(c.Nano)/unit, int64(c.Nano)%unit == 0
}

// windowShape and timerShape are the fields of windows and timers.
var (
	windowShape = &value.Shape{Names: []string{"start", "end"}}
	timerShape  = &value.Shape{Names: []string{"timestamp", "key", "namespace"}}
)

var timeWindowCodec = record{windowShape, tupleOf(longCodec, longCodec)}

// timerTime reads a time whose sign is inverted, so that the order of bytes is the
// order of times.
var timerTime = scalar{size: 8, typ: longCodec.typ,
	get: func(r *reader) value.Value { return value.Int(r.I64() ^ math.MinInt64) },
	put: func(w *writer, v value.Value) {
		if w.expects(v, value.KindInt) {
			w.int(v.Int()^math.MinInt64, 8)
		}
	},
	from: func(p *parser, n *node) value.Value { return value.Int(p.integer(n, 8)) },
}
