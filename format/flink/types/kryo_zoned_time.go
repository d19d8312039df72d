package types

import (
	"encoding/binary"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// Times with an offset or a zone, and parts of dates. In Kryo 2 they are the fields of
// their class by name, in Kryo 5 encodings of their own.

// byVersion is the codec of a class whose content differs between versions of Kryo.
func byVersion(two, five func(int) kryoBody) func(int) kryoBody {
	return func(version int) kryoBody {
		if version == kryo5 {
			return five(version)
		}
		return two(version)
	}
}

// inline is a field that is only the content of an object.
func inline(body func(int) kryoBody) kryoField {
	return kryoField{
		func(k *kryoState, r *reader) value.Value { return body(k.version).read(k, r) },
		func(k *kryoState, w *writer, v value.Value) { body(k.version).write(k, w, v) },
		func(k *kryoState, p *parser, n *node) value.Value { return body(k.version).parse(k, p, n) },
	}
}

// kryoVarint is the codec of an int as a varint without zigzag.
var kryoVarint = func() func(int) kryoBody {
	c := scalar{from: intCodec.from,
		get: func(r *reader) value.Value { return value.Int(int64(int32(r.uvarint()))) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindInt) {
				if v.Int() != int64(int32(v.Int())) {
					w.fail("%d does not fit into 32 bits", v.Int())
				}
				w.uvarint(uint32(v.Int()))
			}
		},
	}
	return kryoFunc(false, c.get, c.put, c.from)
}()

// maxOffset is the largest offset of a time zone, in seconds.
const maxOffset = 18 * 3600

// quarter are the seconds of the unit of most offsets in Kryo 5; noQuarters is the byte
// before another offset.
const (
	quarter    = 900
	noQuarters = 127
)

// kryoOffset is the codec of ZoneOffset: seconds.
func kryoOffset(version int) kryoBody {
	get, put := kryoInt.get, kryoInt.put
	if version == kryo5 {
		get = func(r *reader) value.Value {
			off := r.Offset()
			if q := int64(int8(r.U8())); q != noQuarters {
				return value.Int(q * quarter)
			}
			p := r.Bytes(4, "an offset")
			if r.Err() != nil {
				return value.Null()
			}
			n := int32(binary.LittleEndian.Uint32(p))
			if n%quarter == 0 {
				r.other(off, "an offset of another encoding")
			}
			return value.Int(int64(n))
		}
		put = func(w *writer, v value.Value) {
			switch n := v.Int(); {
			case !w.expects(v, value.KindInt):
			case n%quarter == 0:
				w.p = append(w.p, byte(n/quarter))
			default:
				w.p = binary.LittleEndian.AppendUint32(append(w.p, noQuarters), uint32(n))
			}
		}
	}
	return kryoFunc(false, func(r *reader) value.Value {
		off := r.Offset()
		v := get(r)
		if n := v.Int(); n < -maxOffset || n > maxOffset {
			r.Fail(off, format.ErrCorrupt, "an offset of %d seconds from UTC", n)
		}
		return v
	}, func(w *writer, v value.Value) {
		if n := v.Int(); n < -maxOffset || n > maxOffset {
			w.fail("an offset of %d seconds from UTC", n)
			return
		}
		put(w, v)
	}, intCodec.from)(version)
}

// kryoRegion is the codec of the names of time zones: in Kryo 2 an object with a string,
// which is not null or a reference.
func kryoRegion(version int) kryoBody {
	text := kryoString(version)
	if version == kryo5 {
		return text
	}
	return kryoBody{parse: text.parse,
		read: func(k *kryoState, r *reader) value.Value {
			k.marker(r, "the name of a time zone")
			return text.read(k, r)
		},
		write: func(k *kryoState, w *writer, v value.Value) {
			w.p = append(w.p, 1)
			k.objects++
			text.write(k, w, v)
		},
	}
}

// addTimes adds the classes of this file.
func addTimes(m map[string]func(version int) kryoBody) {
	at, clock, offset := m["java.time.LocalDateTime"], m["java.time.LocalTime"], kryoOffset
	final := func(class string) kryoField { return finalField("java.time."+class, m["java.time."+class]) }
	m["java.time.ZoneOffset"], m["java.time.ZoneRegion"] = offset, kryoRegion
	number, small := inline(kryoVarint), inline(kryoFunc(false, byteCodec.get, byteCodec.put, byteCodec.from))
	for class, body := range map[string]func(int) kryoBody{
		"OffsetDateTime": byVersion(
			kryoFields([]string{"dateTime", "offset"}, final("LocalDateTime"), final("ZoneOffset")),
			kryoFields([]string{"dateTime", "offset"}, inline(at), inline(offset))),
		"ZonedDateTime": byVersion(
			kryoFields([]string{"dateTime", "offset", "zone"}, final("LocalDateTime"), final("ZoneOffset"), anyField),
			kryoFields([]string{"dateTime", "zone"}, inline(at), inline(kryoString))),
		"OffsetTime": byVersion(
			kryoFields([]string{"offset", "time"}, final("ZoneOffset"), final("LocalTime")),
			kryoFields([]string{"time", "offset"}, inline(clock), inline(offset))),
		"Period": byVersion(
			kryoFields([]string{"days", "months", "years"}, intField, intField, intField),
			kryoFields([]string{"years", "months", "days"}, number, number, number)),
		"Year": byVersion(fieldBody(intField), fieldBody(number)),
		"YearMonth": byVersion(
			kryoFields([]string{"month", "year"}, intField, intField),
			kryoFields([]string{"year", "month"}, number, small)),
		"MonthDay": byVersion(
			kryoFields([]string{"day", "month"}, intField, intField),
			kryoFields([]string{"month", "day"}, small, small)),
	} {
		m["java.time."+class] = body
	}
}
