package types

import (
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// kept is a codec whose values have a meaning for Flink: a [value.Mask] keeps them. They
// are the times of timers, windows and times to live.
type kept struct{ codec }

// structured is a codec of bytes with a structure that is not decoded: a [value.Mask]
// cannot replace them.
type structured struct{ codec }

// Mask implements [value.Masker]. It keeps times of timers, windows and times to live,
// kinds of rows, and the classes of values.
func (c exported) Mask(v value.Value, m value.Mask) (value.Value, error) {
	return masking{m}.of(c.codec, v)
}

// masking replaces the parts of values of this package's codecs. What it does not know
// it replaces as a whole: then the codec refuses what is not a value of its type.
type masking struct{ value.Mask }

func notMasked(what string) error {
	return format.Errorf(format.ErrUnsupported, "%s cannot be replaced", what)
}

func (m masking) of(c codec, v value.Value) (value.Value, error) {
	if v.IsNull() {
		return v, nil
	}
	one := func(c codec) (value.Value, error) {
		return v.MapParts(func(_ int, p value.Value) (value.Value, error) { return m.of(c, p) })
	}
	switch c := c.(type) {
	case kept:
		return v, nil
	case structured, variantCodec, pickleCodec:
		return v, notMasked("bytes with a structure of their own")
	case javaStream:
		if v.Kind() == value.KindBytes {
			return v, notMasked("a Java object")
		}
	case enum:
		return m.constant(c, v)
	case scalaEnum:
		return m.constant(c.names, v)
	case nullIf:
		return m.of(c.one, v)
	case nullable:
		return m.of(c.one, v)
	case sized:
		return m.of(c.one, v)
	case mapValue:
		return m.of(c.one, v)
	case array:
		return one(c.one)
	case joined:
		return one(c.one)
	case linkedList:
		return one(c.one)
	case *avroBlocks:
		if !c.isMap {
			return one(c.one)
		}
		return m.entries(stringDataCodec, c.one, v)
	case mapOf:
		return m.entries(c.key, c.value, v)
	case tuple:
		return m.fields(c, v)
	case record:
		return m.fields(c.fields, v)
	case *avroRecord:
		return m.fields(c.fields, v)
	case avroUnion:
		if i := c.find(v); i >= 0 && c.bare {
			return m.of(c.of[i], v)
		} else if i >= 0 {
			return one(c.of[i])
		}
	case pojoOf:
		return m.pojo(c, v)
	case row:
		return m.changed(v, func(v value.Value) (value.Value, error) { return m.fields(stepsOf(c.fields), v) })
	case framedLayout:
		return m.layout(c.of, v)
	case either:
		if slices.Equal(v.Shape().Names, leftShape.Names) {
			return one(c.left)
		}
		return one(c.right)
	case choice:
		for _, of := range c.of {
			if slices.Equal(of.shape.Names, v.Shape().Names) {
				return m.fields(of.fields, v)
			}
		}
	case kryoCodec:
		return m.kryo(c.own, &c, v)
	}
	return v.MapLeaves(m.Leaf)
}

func (m masking) constant(names []string, v value.Value) (value.Value, error) {
	i := slices.Index(names, v.Text())
	if i < 0 {
		return v, notMasked("a constant that is not of its enum")
	}
	return value.String(names[m.Choice(i, len(names))]), nil
}

func (m masking) fields(of []step, v value.Value) (value.Value, error) {
	if v.Len() != len(of) {
		return v, notMasked("a value with another number of fields than its type")
	}
	return v.MapParts(func(i int, p value.Value) (value.Value, error) { return m.of(of[i].codec, p) })
}

func (m masking) entries(key, val codec, v value.Value) (value.Value, error) {
	return v.MapParts(func(i int, p value.Value) (value.Value, error) {
		if i%2 == 0 {
			return m.of(key, p)
		}
		return m.of(val, p)
	})
}

func (m masking) pojo(c pojoOf, v value.Value) (value.Value, error) {
	class := v.Class()
	if class == "" {
		return m.fields(c.steps, v)
	}
	sub := slices.Index(c.subclasses, class)
	if sub < 0 || sub >= len(c.subs) || c.subs[sub] == nil {
		return v, notMasked("an object of an unknown subclass")
	}
	out, err := m.of(c.subs[sub], v.WithClass(""))
	return out.WithClass(class), err
}

// changed replaces the fields of a row, whatever its kind.
func (m masking) changed(v value.Value, fields func(value.Value) (value.Value, error)) (value.Value, error) {
	if v.Shape() == nil || v.Shape() != changedRow && !slices.Equal(v.Shape().Names, changedRow.Names) {
		return fields(v)
	}
	out, err := fields(v.At(1))
	return v.WithAt(1, out), err
}

// layout replaces the parts of a row, an array, a map or a raw value of SQL.
func (m masking) layout(l layout, v value.Value) (value.Value, error) {
	if v.IsNull() {
		return v, nil
	}
	cell := func(c *cell, v value.Value) (value.Value, error) {
		if c.of != nil {
			return m.layout(c.of, v)
		}
		return v.MapLeaves(m.Leaf)
	}
	switch l := l.(type) {
	case binaryRow:
		return m.changed(v, func(v value.Value) (value.Value, error) {
			return v.MapParts(func(i int, p value.Value) (value.Value, error) { return cell(l.fields[i], p) })
		})
	case binaryArray:
		return v.MapParts(func(_ int, p value.Value) (value.Value, error) { return cell(l.one, p) })
	case binaryMap:
		return v.MapParts(func(i int, p value.Value) (value.Value, error) {
			if i%2 == 0 {
				return cell(l.keys.one, p)
			}
			return cell(l.values.one, p)
		})
	case rawValue:
		return m.of(l.one, v)
	}
	return v, notMasked("a value of a RAW type")
}

// kryoZones are classes whose values say nothing of their own: they are kept. kryoChoices
// are classes with few values, or with values that have a form.
var (
	kryoZones   = []string{"java.time.ZoneOffset", "java.time.ZoneRegion", "sun.util.calendar.ZoneInfo", "org.joda.time.UTCDateTimeZone", "org.joda.time.tz.FixedDateTimeZone", "org.joda.time.chrono.ISOChronology"}
	kryoChoices = []string{"java.time.Year", "java.time.YearMonth", "java.time.MonthDay", "java.util.Currency", "java.util.Locale", "java.util.BitSet", "java.util.RegularEnumSet", "java.util.JumboEnumSet",
		"java.util.regex.Pattern", "scala.util.matching.Regex", "java.util.GregorianCalendar", "java.net.InetSocketAddress", "java.util.concurrent.atomic.AtomicBoolean"}
)

// keptFields are fields that say nothing of their own, of the records of some classes.
var keptFields = map[string][]string{
	asList: {"type"}, "org.joda.time.DateTime": {"chronology", "zone", "iChronology"}, "org.joda.time.Interval": {"chronology", "iChronology"}, "org.apache.flink.types.Row": {"kind"},
}

// kryo replaces the parts of an object of Kryo.
func (m masking) kryo(declared string, c *kryoCodec, v value.Value) (value.Value, error) {
	if _, ok := referenced(v); ok || v.IsNull() {
		return v, nil
	}
	class := v.Class()
	if class == "" {
		class = declared
	}
	_, known := c.body(class)
	kept := keptFields[class]
	switch {
	case strings.HasPrefix(class, "java.time."):
		kept = []string{"offset", "zone"}
	case v.Kind() == value.KindRecord && slices.Equal(v.Shape().Names, sortedShape.Names):
		kept = sortedShape.Names[:1]
	}
	switch {
	case v.Kind() == value.KindBytes && class != "[B", c.own == "java.lang.Throwable", class != "" && !known && !kryoOpen[class]:
		return v, notMasked("an object of class " + class)
	case class == "java.net.URI", class == "java.net.URL":
		return m.named(v)
	case slices.Contains(kryoChoices, class), strings.HasPrefix(class, "sun.nio.cs."):
		return v, notMasked("an object of class " + class)
	case slices.Contains(kryoZones, class):
		return v, nil
	case v.Kind() == value.KindString && enumConstants[class] != nil:
		out, err := m.constant(enumConstants[class], v.WithClass(""))
		return out.WithClass(v.Class()), err
	case v.Kind() == value.KindRecord && len(kept) > 0:
		return v.MapParts(func(i int, p value.Value) (value.Value, error) {
			if slices.Contains(kept, v.Name(i)) {
				return p, nil
			}
			return m.kryo("", c, p)
		})
	case v.Len() > 0:
		return v.MapParts(func(_ int, p value.Value) (value.Value, error) { return m.kryo("", c, p) })
	}
	return v.MapLeaves(m.Leaf)
}

func (m masking) named(v value.Value) (value.Value, error) {
	out, err := m.Name(value.String(v.Text()))
	return out.WithClass(v.Class()), err
}
