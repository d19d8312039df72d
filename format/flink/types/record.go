package types

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// Recorded returns the snapshot of a type, which [Language.Parse] returned, as a release
// of Flink records it: Raw are its bytes. The fields of a POJO are in the order of their
// names, as Flink sorts them. A snapshot that has Raw is copied.
//
// The error is a *NotRecorded for a serializer whose snapshot is not written: what a type
// does not say, such as the class of a POJO, must be in the type.
func Recorded(s *Snapshot, r flink.Release) (*Snapshot, error) {
	w := recorder{release: r}
	p := w.versioned(nil, s)
	if w.err != nil {
		return nil, w.err
	}
	out, n, err := SkipVersioned(p)
	if err == nil && n < len(p) {
		err = fmt.Errorf("internal error: %d bytes after a serializer snapshot", len(p)-n)
	}
	return out, err
}

// Nesting returns the snapshot of one of Flink's serializers that contains others, by its
// name without "Serializer": "List", "Map" or "Timer". It has no Raw, see [Recorded].
func Nesting(name string, of ...*Snapshot) *Snapshot { return flinkSnapshot(name, 0, of...) }

// AppendWrapped appends a snapshot that has Raw in its wrapper, which [Skip] reads.
func (s *Snapshot) AppendWrapped(p []byte) []byte {
	return append(binary.BigEndian.AppendUint32(p, wrapperNew), s.Raw...)
}

// NotRecorded is the error for a type whose serializer snapshot is not written. It
// matches format.ErrUnsupported.
type NotRecorded struct {
	Serializer string // name of the serializer, or of the type
	Why        string
}

// Error implements error.
func (e *NotRecorded) Error() string {
	return fmt.Sprintf("the serializer snapshot of %s cannot be written: %s", e.Serializer, e.Why)
}

// Unwrap returns format.ErrUnsupported.
func (e *NotRecorded) Unwrap() error { return format.ErrUnsupported }

// recorder appends snapshots. It keeps the first error.
type recorder struct {
	release flink.Release
	err     error
}

func (w *recorder) fail(s *Snapshot, why string, args ...any) {
	if w.err == nil {
		w.err = &NotRecorded{serializerName(s.Class), fmt.Sprintf(why, args...)}
	}
}

func (w *recorder) text(p []byte, s string) []byte {
	p, err := java.AppendText(p, format.NewText(s))
	if w.err == nil && err != nil {
		w.err = err
	}
	return p
}

func number(p []byte, n int32) []byte { return binary.BigEndian.AppendUint32(p, uint32(n)) }

// notRecorded are serializers that are not written, and why.
var notRecorded = map[string]string{
	"KryoSerializerSnapshot":        "the bytes of values depend on the registrations of the job",
	"AvroSerializerSnapshot":        "the class of its values is not known",
	"RowDataSerializerSnapshot":     "it contains Java objects",
	"ArrayDataSerializerSnapshot":   "it contains Java objects",
	"MapDataSerializerSnapshot":     "it contains Java objects",
	"TtlSerializerSnapshot":         "state with a time to live is not written",
	"TraversableSerializerSnapshot": "it contains Scala source text",
}

// versioned appends class, version and body, see [walker.versioned].
func (w *recorder) versioned(p []byte, s *Snapshot) []byte {
	if w.err != nil {
		return p
	}
	if len(s.Raw) > 0 {
		return append(p, s.Raw...)
	}
	name := simpleName(s.Class)
	k, ok := known[name]
	if s.given != nil || !ok {
		w.fail(s, "it is not a type of Flink")
		return p
	}
	if why := notRecorded[name]; why != "" {
		w.fail(s, "%s", why)
		return p
	}
	class, ok := flink.SerializerClass(name, w.release)
	if !ok {
		w.fail(s, "Flink %v does not have it", w.release)
		return p
	}
	p = w.text(p, class)
	switch k.body {
	case simple:
		return number(p, 3)
	case composite:
		p = number(number(number(p, compositeVersion), compositeMagic), k.max)
		p = w.outer(p, s, k.outer)
		return w.nested(p, s)
	case fields:
		return w.outer(number(p, k.max), s, k.outer)
	case pojo:
		return w.pojo(number(p, k.max), s)
	}
	w.fail(s, "its layout depends on user code")
	return p
}

// nested appends the snapshots in a composite, see [walker.delegate].
func (w *recorder) nested(p []byte, s *Snapshot) []byte {
	p = number(number(number(p, delegateMagic), delegateVersion), int32(len(s.Nested)))
	for _, n := range s.Nested {
		p = w.versioned(p, n)
	}
	return p
}

// outer appends items by their letters, see [outer].
func (w *recorder) outer(p []byte, s *Snapshot, items outer) []byte {
	numbers := s.numbers
	for _, item := range items {
		switch item {
		case 't':
			p = w.text(p, w.classOf(s))
		case 'n':
			if len(numbers) == 0 {
				w.fail(s, "a parameter is missing")
				return p
			}
			p, numbers = number(p, numbers[0]), numbers[1:]
		case 'b':
			p = append(p, 0)
			if s.mark {
				p[len(p)-1] = 1
			}
		case 'e':
			p = number(p, int32(len(s.Names)))
			for _, name := range s.Names {
				p = w.text(p, name)
			}
		default:
			w.fail(s, "it contains more than its type says")
		}
	}
	return p
}

// pojo appends class, fields and two empty tables of subclasses, see [walker.pojo].
func (w *recorder) pojo(p []byte, s *Snapshot) []byte {
	class := w.classOf(s)
	p = w.text(p, class)
	order := make([]int, len(s.Names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(s.Names[a], s.Names[b]) })
	p = number(binary.BigEndian.AppendUint64(p, optionalMapMagic), int32(len(order)))
	for _, i := range order {
		p = w.text(p, s.Names[i])
		p = frame(p, w.text(w.text(nil, class), s.Names[i]))
		p = frame(p, w.versioned(nil, s.Nested[i]))
	}
	for range 2 {
		p = number(binary.BigEndian.AppendUint64(p, optionalMapMagic), 0)
	}
	return p
}

// frame appends a part of an optional entry, which is present.
func frame(p, part []byte) []byte {
	return append(number(append(p, 1), int32(len(part))), part...)
}

// classOf returns the class of values, or of the elements of an array.
func (w *recorder) classOf(s *Snapshot) string {
	switch name := simpleName(s.Class); {
	case name == "TupleSerializerSnapshot":
		if len(s.Nested) > maxTuple {
			w.fail(s, "%d fields, a tuple has at most %d", len(s.Nested), maxTuple)
		}
		return flinkPackage + "api.java.tuple.Tuple" + strconv.Itoa(len(s.Nested))
	case name == "GenericArraySerializerSnapshot":
		return w.boxed(s.Nested[0])
	case s.Type == "":
		w.fail(s, "the type must name its class, such as %s com.example.Name{…}", strings.ToLower(strings.TrimSuffix(name, "SerializerSnapshot")))
	}
	return s.Type
}

// maxTuple is the largest number of fields of Flink's tuples.
const maxTuple = 25

// javaClasses are the classes of values by the name of their serializer.
var javaClasses = map[string]string{
	"Boolean": "java.lang.Boolean", "Byte": "java.lang.Byte", "Short": "java.lang.Short", "Int": "java.lang.Integer", "Long": "java.lang.Long",
	"Float": "java.lang.Float", "Double": "java.lang.Double", "Char": "java.lang.Character", "String": "java.lang.String",
	"BigInt": "java.math.BigInteger", "BigDec": "java.math.BigDecimal", "Date": "java.util.Date", "SqlDate": "java.sql.Date", "SqlTime": "java.sql.Time",
	"SqlTimestamp": "java.sql.Timestamp", "Instant": "java.time.Instant", "LocalDate": "java.time.LocalDate", "LocalTime": "java.time.LocalTime",
	"LocalDateTime": "java.time.LocalDateTime", "Row": flinkPackage + "types.Row", "List": "java.util.List", "Map": "java.util.Map",
}

// boxed returns the class of the values of a serializer.
func (w *recorder) boxed(s *Snapshot) string {
	switch name := strings.TrimSuffix(simpleName(s.Class), "SerializerSnapshot"); name {
	case "Pojo", "Enum", "Tuple":
		return w.classOf(s)
	default:
		if class := javaClasses[name]; class != "" {
			return class
		}
		w.fail(s, "the class of the elements of an array is not known; known: %s", strings.Join(slices.Sorted(maps.Keys(javaClasses)), ", "))
		return ""
	}
}
