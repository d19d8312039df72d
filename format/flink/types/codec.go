package types

import (
	"slices"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/value"
)

// CodecOf returns the codec of the values written with the serializer that s
// describes. ok is false if such values are not decoded.
//
// Numbers are integers, floats, big integers and decimals; a char and a string are
// strings, byte[] is bytes, null and void are null. Tuples, lists, sets, arrays and
// rows are lists, maps are maps. A POJO is a record of its fields in the order of
// the serializer; an instance of a subclass has a class. An enum is the name of its
// constant. java.util.Date and Instant are instants; a date or time without a zone
// is of one of the kinds for those in package value. A value with a time to live is
// a list of the time (ms) and the value. Left or right of an either is a record
// with one field, "left" or "right"; a window is a record of "start" and "end"
// (ms), a timer of "timestamp", "key" and "namespace", and a row that is not an
// INSERT of its "kind" and "fields".
func CodecOf(s *Snapshot) (c value.Codec, ok bool) {
	inner := codecOf(s)
	if inner == nil {
		return nil, false
	}
	return exported{inner}, true
}

// codec reads and writes the values of one serializer. Readers and writers keep the
// first error. Every codec reads at least one byte per value, which bounds counts.
type codec interface {
	skip(r *reader)
	read(r *reader) value.Value
	write(w *writer, v value.Value)
}

// exported converts a codec to a value.Codec.
type exported struct{ codec }

// reader reads values.
type reader struct{ java.Cursor }

var readers = sync.Pool{New: func() any { return new(reader) }}

// Skip implements [value.Codec].
func (c exported) Skip(p []byte) (int, error) {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	r.Cursor = *java.NewCursor(p)
	c.skip(r)
	return r.Offset(), r.Err()
}

// Read implements [value.Codec].
func (c exported) Read(p []byte) (value.Value, int, error) {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	r.Cursor = *java.NewCursor(p)
	v := c.read(r)
	if r.Err() != nil {
		return value.Value{}, 0, r.Err()
	}
	return v, r.Offset(), nil
}

// Append implements [value.Codec].
func (c exported) Append(dst []byte, v value.Value) ([]byte, error) {
	w := &writer{p: dst}
	if c.write(w, v); w.err != nil {
		return dst, w.err
	}
	return w.p, nil
}

// other records an error for bytes that Flink reads but does not write.
func (r *reader) other(off int, what string) {
	r.Fail(off, format.ErrUnsupported, "%s, which Flink does not write, is not decoded", what)
}

// writer appends values.
type writer struct {
	p   []byte
	err error
}

func (w *writer) fail(msg string, args ...any) {
	if w.err == nil {
		w.err = format.Errorf(format.ErrUnsupported, msg, args...)
	}
}

// expects reports whether v is of a kind, and records an error if it is not.
func (w *writer) expects(v value.Value, k value.Kind) bool {
	if v.Kind() != k {
		w.fail("expected %v, found %v", k, v.Kind())
	}
	return v.Kind() == k
}

// parts reports whether v has n parts, the number of its type, and records an error
// if it does not.
func (w *writer) parts(v value.Value, n int) bool {
	if v.Len() != n {
		w.fail("expected %v of %d parts, found %d", v.Kind(), n, v.Len())
	}
	return v.Len() == n
}

// codecOf returns the codec of a snapshot, or nil.
func codecOf(s *Snapshot) codec {
	if s == nil || s.Unknown || s.Old {
		return nil
	}
	k, ok := lookup(known, s.Class)
	if !ok {
		return nil
	}
	if k.body == simple {
		return k.value
	}
	nested := make([]codec, len(s.Nested))
	for i, n := range s.Nested {
		if nested[i] = codecOf(n); nested[i] == nil {
			return nil
		}
	}
	switch simpleName(s.Class) {
	case "EnumSerializerSnapshot":
		if hasDuplicates(s.Names) {
			return nil
		}
		return enum(s.Names)
	case "ListSerializerSnapshot", "ArrayListSerializerSnapshot":
		return array{1, nested[0]}
	case "SetSerializerSnapshot":
		return array{1, nullIf{1, nested[0]}}
	case "GenericArraySerializerSnapshot", "GenericArraySerializerConfigSnapshot", "TraversableSerializerSnapshot":
		return array{1, nullIf{0, nested[0]}}
	case "MapSerializerSnapshot":
		return mapOf{nested[0], nullIf{1, nested[1]}}
	case "NullAwareMapSerializerSnapshot":
		return mapOf{nullIf{1, nested[0]}, nullIf{1, nested[1]}}
	case "ScalaOptionSerializerSnapshot":
		return nullIf{0, nested[0]}
	case "NullableSerializerSnapshot":
		if len(s.numbers) != 1 || s.numbers[0] < 0 {
			return nil
		}
		return nullable{int(s.numbers[0]), nested[0]}
	case "RowSerializerSnapshot":
		return rowOf(nested, s.Version == 3 || s.mark)
	case "TimerSerializerSnapshot":
		return record{timerShape, []codec{timerTime, nested[0], nested[1]}}
	case "DecimalSerializerSnapshot":
		if len(s.numbers) == 2 {
			return decimalData(s.numbers[0], s.numbers[1])
		}
	case "TimestampDataSerializerSnapshot":
		if len(s.numbers) == 1 {
			return timestampData(s.numbers[0])
		}
	case "TupleSerializerSnapshot", "ScalaCaseClassSerializerSnapshot", "Tuple2CaseClassSerializerSnapshot", "TtlSerializerSnapshot":
		if len(nested) == 0 {
			return nil
		}
		return tuple(nested)
	case "JavaEitherSerializerSnapshot", "EitherSerializerSnapshot", "ScalaEitherSerializerSnapshot":
		return either{nested[0], nested[1]}
	case "TtlAwareSerializerSnapshot":
		return nested[0]
	case "PojoSerializerSnapshot":
		return s.pojo(nested)
	}
	return nil
}

func hasDuplicates(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	return len(slices.Compact(sorted)) < len(names)
}
