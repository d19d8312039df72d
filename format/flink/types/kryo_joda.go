package types

import (
	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// Classes of Joda-Time: in the serializers of de.javakaffee's kryo-serializers, which a
// job registers, and otherwise as the fields of their class.

// jodaDateTime is the codec of DateTime: ms, the name of the chronology, which is empty
// for ISO, and of the time zone.
func jodaDateTime(version int) kryoBody {
	return kryoFields([]string{"time", "chronology", "zone"}, dateField, textInline, textInline)(version)
}

// jodaInterval is the codec of Interval: ms, ms, and the name of the chronology.
func jodaInterval(version int) kryoBody {
	return kryoFields([]string{"start", "end", "chronology"}, dateField, dateField, textInline)(version)
}

// isoChronology reads the name of the chronology of a date or time: byte b if it is ISO.
func (r *reader) isoChronology(b byte) {
	off := r.Offset()
	if c := r.U8(); r.Err() == nil && c != b {
		r.Fail(off, format.ErrUnsupported, "a date or time of Joda in a chronology other than ISO is not decoded")
	}
}

// Bytes of the name of the ISO chronology: an empty string, or null.
const (
	emptyName = 0x81
	nullName  = 0x80
)

const dayMillis = 24 * 3600 * 1000

// jodaDay returns the date of a number: (13*year + month)*32 + day.
func (r *reader) jodaDay(off int, n uint64) value.Civil {
	if n > (13*9999+12)*32+31 {
		r.Fail(off, format.ErrUnsupported, "a date of Joda before year 0 or after year 9999 is not decoded")
		return value.Civil{}
	}
	months := n / 32
	return r.kryoDay(off, int32(months/13), uint16(months%13), uint16(n%32))
}

func (w *writer) jodaDay(v value.Value) uint64 {
	c := v.Civil()
	if c.Year < 0 || c.Year > 9999 {
		w.fail("a date of Joda in year %d: expected 0 to 9999", c.Year)
	}
	return (13*uint64(c.Year)+uint64(c.Month))*32 + uint64(c.Day)
}

// jodaClock returns the time of day of ms.
func jodaClock(c value.Civil, ms uint64) value.Civil {
	c.Hour, c.Minute, c.Second, c.Nano = uint8(ms/3600000), uint8(ms/60000%60), uint8(ms/1000%60), int32(ms%1000)*1e6
	return c
}

func (w *writer) jodaClock(v value.Value) uint64 {
	c := v.Civil()
	if c.Nano%1e6 != 0 {
		w.fail("%v is finer than a millisecond", v)
	}
	return ((uint64(c.Hour)*60+uint64(c.Minute))*60+uint64(c.Second))*1000 + uint64(c.Nano)/1e6
}

func jodaTime(kind value.Kind, version int, get func(r *reader) value.Value, put func(w *writer, v value.Value)) kryoBody {
	return kryoTime(kind, get, get, put, put)(version)
}

// jodaLocalDate is the codec of LocalDate: uvarint date.
func jodaLocalDate(version int) kryoBody {
	return jodaTime(value.KindDate, version, func(r *reader) value.Value {
		off := r.Offset()
		c := r.jodaDay(off, uint64(r.uvarint()))
		r.isoChronology(emptyName)
		return dateOf(c)
	}, func(w *writer, v value.Value) {
		w.uvarint(uint32(w.jodaDay(v)))
		w.p = append(w.p, emptyName)
	})
}

// jodaLocalTime is the codec of LocalTime: uvarint ms of the day.
func jodaLocalTime(version int) kryoBody {
	return jodaTime(value.KindTimeOfDay, version, func(r *reader) value.Value {
		off := r.Offset()
		ms := uint64(r.uvarint())
		if ms >= dayMillis {
			r.Fail(off, format.ErrCorrupt, "invalid time of day of %d ms", ms)
			ms = 0
		}
		r.isoChronology(nullName)
		return timeOf(jodaClock(value.Civil{}, ms))
	}, func(w *writer, v value.Value) {
		w.uvarint(uint32(w.jodaClock(v)))
		w.p = append(w.p, nullName)
	})
}

// jodaLocalDateTime is the codec of LocalDateTime: varlong date * ms of a day + ms.
func jodaLocalDateTime(version int) kryoBody {
	return jodaTime(value.KindDateTime, version, func(r *reader) value.Value {
		off := r.Offset()
		n := r.varlong()
		c := r.jodaDay(off, n/dayMillis)
		r.isoChronology(emptyName)
		return value.DateTime(jodaClock(c, n%dayMillis))
	}, func(w *writer, v value.Value) {
		w.varlong(w.jodaDay(v)*dayMillis + w.jodaClock(v))
		w.p = append(w.p, emptyName)
	})
}

// jodaInstant is the codec of Instant: zigzag ms.
var jodaInstant = kryoFunc(false,
	func(r *reader) value.Value { return instantOf(kryoLong.get(r).Int(), 0) },
	func(w *writer, v value.Value) {
		if w.expects(v, value.KindInstant) {
			if v.Nano()%1e6 != 0 {
				w.fail("%v is finer than a millisecond", v)
			}
			kryoLong.put(w, value.Int(w.millis(v)))
		}
	}, kryoDate.from)

// addJoda adds the classes of this file, as the fields of a class. Times in a zone other
// than UTC have fields of the zone, and Flink does not read them.
func addJoda(m map[string]func(version int) kryoBody) {
	at := inline(jodaInstant)
	for class, body := range map[string]func(int) kryoBody{
		"Instant": jodaInstant, "Duration": fieldBody(longField),
		"DateTime": kryoFields([]string{"iChronology", "iMillis"}, anyField, at), "Interval": kryoFields([]string{"iChronology", "iEndMillis", "iStartMillis"}, anyField, at, at),
		"chrono.ISOChronology":       kryoFields([]string{"iBase", "iParam"}, anyField, anyField),
		"chrono.GregorianChronology": kryoFields([]string{"iBase", "iMinDaysInFirstWeek", "iParam"}, anyField, intField, anyField),
		"UTCDateTimeZone":            kryoFields([]string{"iID"}, textField),
		"tz.FixedDateTimeZone":       kryoFields([]string{"iID", "iNameKey", "iStandardOffset", "iWallOffset"}, textField, textField, intField, intField),
	} {
		m["org.joda.time."+class] = body
	}
	for _, class := range []string{"Years", "Months", "Weeks", "Days", "Hours", "Minutes", "Seconds"} {
		m["org.joda.time."+class] = fieldBody(intField)
	}
}
