package types

import (
	"encoding/binary"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// Times and dates without a zone, durations and instants.

// kryoTime is the codec of java.time: in Kryo 2 the fields of a class by name, in Kryo
// 5 an encoding of its own.
func kryoTime(kind value.Kind, two, five func(r *reader) value.Value, putTwo, putFive func(w *writer, v value.Value)) func(int) kryoBody {
	return func(version int) kryoBody {
		get, put := two, putTwo
		if version == kryo5 {
			get, put = five, putFive
		}
		return kryoFunc(false, get, func(w *writer, v value.Value) {
			if w.expects(v, kind) {
				put(w, v)
			}
		}, func(p *parser, n *node) value.Value { return p.timestamp(n, kind) })(version)
	}
}

func (r *reader) kryoInstant2() value.Value {
	off := r.Offset()
	nano := unzigzag32(r.uvarint())
	checkNano(r, off, nano)
	return value.Instant(unzigzag(r.varlong()), nano)
}

func (r *reader) kryoInstant5() value.Value {
	sec, off := int64(r.varlong()), r.Offset()
	nano := int32(r.uvarint())
	checkNano(r, off, nano)
	return value.Instant(sec, nano)
}

func (w *writer) kryoInstant2(v value.Value) {
	w.uvarint(zigzag32(v.Nano()))
	w.varlong(zigzag(v.Int()))
}

func (w *writer) kryoInstant5(v value.Value) {
	w.varlong(uint64(v.Int()))
	w.uvarint(uint32(v.Nano()))
}

// kryoDate2 reads short day, short month and year.
func (r *reader) kryoDate2() value.Civil {
	off := r.Offset()
	day, month := r.U16(), r.U16()
	return r.kryoDay(off, unzigzag32(r.uvarint()), month, day)
}

func (r *reader) kryoDate5() value.Civil {
	off := r.Offset()
	year := int32(r.uvarint())
	return r.kryoDay(off, year, uint16(r.U8()), uint16(r.U8()))
}

func (r *reader) kryoDay(off int, year int32, month, day uint16) value.Civil {
	if r.Err() == nil && (month > 12 || day > 31 || !jsontext.ValidDay(int64(year), uint8(month), uint8(day))) {
		r.Fail(off, format.ErrCorrupt, "invalid date: year %d, month %d, day %d", year, month, day)
	}
	return value.Civil{Year: year, Month: uint8(month), Day: uint8(day)}
}

func (w *writer) kryoDate2(v value.Value) {
	c := v.Civil()
	w.int(int64(c.Day), 2)
	w.int(int64(c.Month), 2)
	w.uvarint(zigzag32(c.Year))
}

func (w *writer) kryoDate5(v value.Value) {
	c := v.Civil()
	w.uvarint(uint32(c.Year))
	w.p = append(w.p, c.Month, c.Day)
}

// kryoClock2 reads byte hour, byte minute, nanoseconds and byte second.
func (r *reader) kryoClock2(c value.Civil) value.Civil {
	off := r.Offset()
	c.Hour, c.Minute = r.U8(), r.U8()
	c.Nano = unzigzag32(r.uvarint())
	c.Second = r.U8()
	return r.kryoClock(off, c)
}

// kryoClock5 reads hour, minute, second and nanoseconds up to the last that is not 0.
// The bits of the last are inverted unless it is the nanoseconds.
func (r *reader) kryoClock5(c value.Civil) value.Civil {
	off := r.Offset()
	for i, to := range []*uint8{&c.Hour, &c.Minute, &c.Second} {
		*to = r.U8()
		if *to >= 0x80 {
			if *to = ^*to; *to == 0 && i > 0 {
				r.other(off, "a time of day with zeros at its end")
			}
			return r.kryoClock(off, c)
		}
	}
	if c.Nano = int32(r.uvarint()); c.Nano == 0 {
		r.other(off, "a time of day with zeros at its end")
	}
	return r.kryoClock(off, c)
}

func (r *reader) kryoClock(off int, c value.Civil) value.Civil {
	if r.Err() == nil && (c.Hour > 23 || c.Minute > 59 || c.Second > 59) {
		r.Fail(off, format.ErrCorrupt, "invalid time of day %d:%d:%d", c.Hour, c.Minute, c.Second)
	}
	checkNano(r, off, c.Nano)
	return c
}

func (w *writer) kryoClock2(v value.Value) {
	c := v.Civil()
	w.p = append(w.p, c.Hour, c.Minute)
	w.uvarint(zigzag32(c.Nano))
	w.p = append(w.p, c.Second)
}

func (w *writer) kryoClock5(v value.Value) {
	c := v.Civil()
	switch {
	case c.Nano != 0:
		w.p = append(w.p, c.Hour, c.Minute, c.Second)
		w.uvarint(uint32(c.Nano))
	case c.Second != 0:
		w.p = append(w.p, c.Hour, c.Minute, ^c.Second)
	case c.Minute != 0:
		w.p = append(w.p, c.Hour, ^c.Minute)
	default:
		w.p = append(w.p, ^c.Hour)
	}
}

func timeOf(c value.Civil) value.Value { return value.TimeOfDay(c.Hour, c.Minute, c.Second, c.Nano) }
func dateOf(c value.Civil) value.Value { return value.Date(c.Year, c.Month, c.Day) }

// marker reads the marker of an object that is not null or a reference.
func (k *kryoState) marker(r *reader, what string) {
	off := r.Offset()
	if b := r.U8(); b != 1 {
		r.Fail(off, format.ErrUnsupported, "%s in Kryo that is null or a reference is not decoded", what)
	}
	k.objects++
}

// kryoDateTime2 is the codec of LocalDateTime in Kryo 2: two objects. References to
// them are not decoded.
func kryoDateTime2() kryoBody {
	return kryoBody{
		read: func(k *kryoState, r *reader) value.Value {
			k.marker(r, "a date or time")
			c := r.kryoDate2()
			k.marker(r, "a date or time")
			return value.DateTime(r.kryoClock2(c))
		},
		write: func(k *kryoState, w *writer, v value.Value) {
			if w.expects(v, value.KindDateTime) {
				w.p = append(w.p, 1)
				w.kryoDate2(v)
				w.p = append(w.p, 1)
				w.kryoClock2(v)
				k.objects += 2
			}
		},
		parse: func(_ *kryoState, p *parser, n *node) value.Value { return p.timestamp(n, value.KindDateTime) },
	}
}

func kryoDateTime(version int) kryoBody {
	if version == kryo2 {
		return kryoDateTime2()
	}
	return kryoTime(value.KindDateTime, nil, func(r *reader) value.Value { return value.DateTime(r.kryoClock5(r.kryoDate5())) },
		nil, func(w *writer, v value.Value) { w.kryoDate5(v); w.kryoClock5(v) })(version)
}

// kryoDuration is the codec of Duration: an object of seconds and nanos.
func kryoDuration(version int) kryoBody {
	shape := fieldsOf("seconds", "nanos")
	get, put := (*reader).kryoInstant2, (*writer).kryoInstant2
	if version == kryo5 {
		get = func(r *reader) value.Value {
			off, sec := r.Offset(), int64(0)
			if p := r.Bytes(8, "seconds"); p != nil {
				sec = int64(binary.LittleEndian.Uint64(p))
			}
			nano := int32(r.uvarint())
			checkNano(r, off, nano)
			return value.Instant(sec, nano)
		}
		put = func(w *writer, v value.Value) {
			w.p = binary.LittleEndian.AppendUint64(w.p, uint64(v.Int()))
			w.uvarint(uint32(v.Nano()))
		}
	}
	return kryoFunc(false, func(r *reader) value.Value {
		v := get(r)
		return value.Record(shape, []value.Value{value.Int(v.Int()), value.Int(int64(v.Nano()))})
	}, func(w *writer, v value.Value) {
		if w.fields(v, shape) {
			nano := v.At(1).Int()
			if nano < 0 || nano >= second {
				w.fail("invalid nanoseconds %d of a second", nano)
			}
			put(w, value.Instant(v.At(0).Int(), int32(nano)))
		}
	}, record{shape, tupleOf(longCodec, intCodec)}.parse)(version)
}
