package types

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// Names of Python.
const (
	builtins       = "builtins."
	encodeFunction = "_codecs.encode"
	zoneClass      = "datetime.timezone"
)

// pickleClasses are the types of Python whose values have a class: those that JSON does
// not tell apart from others.
var pickleClasses = map[string]pickleClass{
	"bytes": {
		build: func(args value.Value) (value.Value, bool) { return value.BytesOf(""), args.Len() == 0 },
		save:  (*pickler).saveBytes,
		parse: func(_ pickleCodec, p *parser, n *node) value.Value { return value.Bytes(p.bytes(n)) },
	},
	"float": {
		save:  (*pickler).saveFloat,
		parse: func(_ pickleCodec, p *parser, n *node) value.Value { return value.Float64(p.float(n, 8)) },
	},
	"tuple": {
		save:  (*pickler).saveTuple,
		parse: pickleCodec.list,
	},
	"set": {
		build: setOf,
		save:  func(k *pickler, v value.Value) { k.saveSet(v, "set", 0x90) },
		parse: pickleCodec.list,
	},
	"frozenset": {
		build: setOf,
		save:  func(k *pickler, v value.Value) { k.saveSet(v, "frozenset", 0x91) },
		parse: pickleCodec.list,
	},
	"dict": {
		save: func(k *pickler, v value.Value) {
			if k.expects(v, value.KindMap) {
				k.saveDict(v)
			}
		},
		parse: func(c pickleCodec, p *parser, n *node) value.Value {
			return mapOf{picklePart{c}, picklePart{c}}.parse(p, n)
		},
	},
	"decimal.Decimal": {
		build: func(args value.Value) (value.Value, bool) {
			if args.Len() != 1 || args.At(0).Kind() != value.KindString {
				return args, false
			}
			return pythonDecimal(args.At(0).Text())
		},
		save: func(k *pickler, v value.Value) {
			if k.expects(v, value.KindDecimal) {
				k.reduceOne("decimal.Decimal", func() { k.saveText(decimalText(v)) })
			}
		},
		parse: func(_ pickleCodec, p *parser, n *node) value.Value {
			unscaled, scale := p.decimal(n)
			return value.Decimal(twosComplement(unscaled), scale)
		},
	},
	"datetime.date": {
		build: func(args value.Value) (value.Value, bool) {
			c, ok := pythonTime(args, 4, 0)
			return dateOf(c), ok
		},
		save: func(k *pickler, v value.Value) {
			if k.expects(v, value.KindDate) {
				k.reducePacked("datetime.date", k.packDate(nil, v.Civil()))
			}
		},
		parse: timestampParser(value.KindDate),
	},
	"datetime.time": {
		build: func(args value.Value) (value.Value, bool) {
			c, ok := pythonTime(args, 0, 6)
			return timeOf(c), ok
		},
		save: func(k *pickler, v value.Value) {
			if k.expects(v, value.KindTimeOfDay) {
				k.reducePacked("datetime.time", k.packTime(nil, v.Civil()))
			}
		},
		parse: timestampParser(value.KindTimeOfDay),
	},
	"datetime.datetime": {
		build: pythonDateTime,
		save:  (*pickler).saveDateTime,
		parse: func(_ pickleCodec, p *parser, n *node) value.Value {
			if n.Kind == jsontext.String && strings.HasSuffix(n.Text, "Z") {
				return p.timestamp(n, value.KindInstant)
			}
			return p.timestamp(n, value.KindDateTime)
		},
	},
	"datetime.timedelta": {
		build: func(args value.Value) (value.Value, bool) {
			if args.Len() != len(deltaShape.Names) {
				return args, false
			}
			return value.Record(deltaShape, []value.Value{args.At(0), args.At(1), args.At(2)}), true
		},
		save: (*pickler).saveDelta,
		parse: func(_ pickleCodec, p *parser, n *node) value.Value {
			return record{deltaShape, tupleOf(intCodec, intCodec, intCodec)}.parse(p, n)
		},
	},
	zoneClass: {
		build: func(args value.Value) (value.Value, bool) {
			if args.Len() != 1 || args.At(0).Class() != "datetime.timedelta" {
				return args, false
			}
			for i := range deltaShape.Names {
				if d := args.At(0).At(i); d.Kind() != value.KindInt || d.Int() != 0 {
					return args, false
				}
			}
			return value.String("UTC"), true
		},
		save: func(k *pickler, v value.Value) {
			if k.expects(v, value.KindString) && v.Text() != "UTC" {
				k.fail("expected the time zone UTC, found %q", v.Text())
			}
			k.saveZone()
		},
		parse: func(_ pickleCodec, p *parser, n *node) value.Value { return value.String(p.str(n)) },
	},
}

func setOf(args value.Value) (value.Value, bool) {
	if args.Len() != 1 || args.At(0).Kind() != value.KindList || args.At(0).Class() != "" {
		return args, false
	}
	return args.At(0), true
}

// encoded returns bytes from a string with a character for each, and "latin1".
func encoded(args value.Value) (value.Value, bool) {
	if args.Len() != 2 || args.At(0).Kind() != value.KindString || args.At(1).Text() != "latin1" {
		return args, false
	}
	var p []byte
	for _, r := range args.At(0).Text() {
		if r > 0xff {
			return args, false
		}
		p = append(p, byte(r))
	}
	return value.Bytes(p), true
}

func timestampParser(kind value.Kind) func(pickleCodec, *parser, *node) value.Value {
	return func(_ pickleCodec, p *parser, n *node) value.Value { return p.timestamp(n, kind) }
}

// reduceOne writes an object of a class with one argument, which arg writes.
func (k *pickler) reduceOne(class string, arg func(), keys ...pickleKey) {
	k.reduce(class, func() {
		k.begin()
		arg()
		k.tuple(1)
	}, keys...)
}

// reducePacked writes an object of a class whose argument is bytes.
func (k *pickler) reducePacked(class, packed string) {
	k.reduceOne(class, func() { k.saveNewBytes(pickleKey{pickleBytes, packed}) })
}

// packDate appends a date: u16 year, month, day.
func (k *pickler) packDate(p []byte, c value.Civil) string {
	if c.Year < 1 || c.Year > 9999 || !jsontext.ValidDay(int64(c.Year), c.Month, c.Day) {
		k.fail("Python has no year %d, or no such day in it", c.Year)
	}
	return string(append(binary.BigEndian.AppendUint16(p, uint16(c.Year)), c.Month, c.Day))
}

// packTime appends a time of day: hour, minute, second and u24 microseconds.
func (k *pickler) packTime(p []byte, c value.Civil) string {
	if c.Nano%1000 != 0 || c.Nano < 0 || int64(c.Nano) >= second || c.Hour > 23 || c.Minute > 59 || c.Second > 59 {
		k.fail("%v is not a time of day in microseconds", timeOf(c))
	}
	us := c.Nano / 1000
	return string(append(p, c.Hour, c.Minute, c.Second, byte(us>>16), byte(us>>8), byte(us)))
}

// pythonTime reads the bytes of a date, of so many bytes, and a time of day, which are
// the first argument.
func pythonTime(args value.Value, date, clock int) (c value.Civil, ok bool) {
	if args.Len() == 0 || args.At(0).Kind() != value.KindBytes || len(args.At(0).Text()) != date+clock {
		return c, false
	}
	p := []byte(args.At(0).Text())
	if date > 0 {
		c.Year, c.Month, c.Day = int32(binary.BigEndian.Uint16(p)), p[2], p[3]
		if !jsontext.ValidDay(int64(c.Year), c.Month, c.Day) {
			return c, false
		}
		p = p[date:]
	}
	if clock > 0 {
		c.Hour, c.Minute, c.Second = p[0], p[1], p[2]
		c.Nano = (int32(p[3])<<16 | int32(p[4])<<8 | int32(p[5])) * 1000
		if c.Hour > 23 || c.Minute > 59 || c.Second > 59 || c.Nano < 0 || int64(c.Nano) >= second {
			return c, false
		}
	}
	return c, args.Len() == 1
}

// pythonDateTime makes a date with time: an instant if it has the time zone UTC.
func pythonDateTime(args value.Value) (value.Value, bool) {
	if args.Len() != 2 {
		c, ok := pythonTime(args, 4, 6)
		return value.DateTime(c), ok
	}
	c, ok := pythonTime(value.List([]value.Value{args.At(0)}), 4, 6)
	if !ok || args.At(1).Class() != zoneClass {
		return args, false
	}
	at := time.Date(int(c.Year), time.Month(c.Month), int(c.Day), int(c.Hour), int(c.Minute), int(c.Second), 0, time.UTC)
	return value.Instant(at.Unix(), c.Nano), true
}

func (k *pickler) saveDateTime(v value.Value) {
	c := v.Civil()
	switch v.Kind() {
	case value.KindDateTime:
	case value.KindInstant:
		t := v.Time()
		c = value.Civil{Year: int32(max(math.MinInt32, min(t.Year(), math.MaxInt32))), Month: uint8(t.Month()), Day: uint8(t.Day()), Hour: uint8(t.Hour()), Minute: uint8(t.Minute()), Second: uint8(t.Second()), Nano: v.Nano()}
	default:
		k.fail("expected %v, found %v", value.KindDateTime, v.Kind())
		return
	}
	packed := k.packTime([]byte(k.packDate(nil, c)), c)
	if v.Kind() == value.KindDateTime {
		k.reducePacked("datetime.datetime", packed)
		return
	}
	k.reduce("datetime.datetime", func() {
		k.begin()
		k.saveNewBytes(pickleKey{pickleBytes, packed})
		k.begin()
		k.saveZone()
		k.tuple(2)
	})
}

// saveZone writes the time zone UTC: Python has one object of it.
func (k *pickler) saveZone() {
	if key := (pickleKey{kind: pickleZone}); !k.again(key) {
		zero := value.Int(0)
		k.reduceOne(zoneClass, func() { k.saveDelta(value.Record(deltaShape, []value.Value{zero, zero, zero})) }, key)
	}
}

var deltaShape = fieldsOf("days", "seconds", "microseconds")

func (k *pickler) saveDelta(v value.Value) {
	if !k.fields(v, deltaShape) {
		return
	}
	for i, within := range [][2]int64{{-999_999_999, 999_999_999}, {0, 86_399}, {0, 999_999}} {
		d := v.At(i)
		if k.expects(d, value.KindInt) && (d.Int() < within[0] || d.Int() > within[1]) {
			k.fail("%d %s are not within %d to %d", d.Int(), deltaShape.Names[i], within[0], within[1])
		}
	}
	k.reduce("datetime.timedelta", func() {
		for i := range deltaShape.Names {
			k.save(v.At(i))
		}
		k.tuple(3)
	})
}

// pythonDecimal reads the text of a decimal.
func pythonDecimal(s string) (v value.Value, ok bool) {
	digits, exponent, _ := strings.Cut(s, "E")
	whole, fraction, _ := strings.Cut(digits, ".")
	scale := int64(len(fraction))
	if exponent != "" {
		e, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return v, false
		}
		scale -= e
	}
	unscaled, ok := new(big.Int), len(digits) <= maxDigits && scale >= math.MinInt32 && scale <= math.MaxInt32
	if ok {
		unscaled, ok = unscaled.SetString(whole+fraction, 10)
	}
	if !ok {
		return v, false
	}
	return value.Decimal(twosComplement(unscaled), int32(scale)), true
}

// decimalText returns a decimal as Python writes it.
func decimalText(v value.Value) string {
	digits, sign := v.BigInt().String(), ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	point := len(digits) - int(v.Scale())
	if v.Scale() >= 0 && point > -6 {
		switch {
		case v.Scale() == 0:
			return sign + digits
		case point <= 0:
			return sign + "0." + strings.Repeat("0", -point) + digits
		}
		return sign + digits[:point] + "." + digits[point:]
	}
	fraction := ""
	if len(digits) > 1 {
		fraction = "." + digits[1:]
	}
	return fmt.Sprintf("%s%s%sE%+d", sign, digits[:1], fraction, point-1)
}
