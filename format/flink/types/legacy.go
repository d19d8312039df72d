package types

import (
	"strings"

	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// The serializers of Flink 1.2 to 1.6, which are Java objects. From 1.3 on a config
// snapshot follows each, which usually has all that is needed (spec flink-serializers
// A10). Values have the same bytes as in later releases.

// legacyCodec returns the codec for a config snapshot, or nil.
func legacyCodec(m *maker, s *Snapshot) codec {
	k, ok := lookup(legacy, s.Class)
	switch {
	case !ok:
		return javaSerializer(m, s, s.object())
	case k.codec == nil:
		return m.fail(s, k.why)
	}
	var nested []codec
	if !k.alone {
		if nested, ok = m.nested(s.Nested); !ok {
			return nil
		}
	}
	c := k.codec(m, s, nested)
	if c == nil {
		m.fail(s, Damaged)
	}
	return c
}

// nested returns the codecs of snapshots; ok is false if there is not one for each.
func (m *maker) nested(all []*Snapshot) (codecs []codec, ok bool) {
	codecs = make([]codec, len(all))
	for i, n := range all {
		if codecs[i] = m.of(n); codecs[i] == nil {
			return nil, false
		}
	}
	return codecs, true
}

// object returns the serializer, if the file has it.
func (s *Snapshot) object() *java.Object {
	if s.serializer == nil {
		return s.parsed
	}
	c := java.NewCursor(s.serializer)
	o := java.ReadObject(c)
	if c.Err() != nil {
		return nil
	}
	return o
}

// parameterlessOf is the codec of a serializer that has no parameters, by its class.
func parameterlessOf(m *maker, s *Snapshot, _ []codec) codec {
	if c := simpleSerializer(s.Type); c != nil {
		return c
	}
	if strings.HasPrefix(s.Type, flinkPackage) {
		return javaSerializer(m, s, s.object())
	}
	return m.fail(s, UserCode)
}

// simpleSerializer returns the codec of a class of Flink's serializers without
// parameters, or nil.
func simpleSerializer(class string) codec {
	if !strings.HasPrefix(class, flinkPackage) {
		return nil
	}
	return simples[SerializerName(class)]
}

// SerializerName returns the simple name of a class of serializers without its end:
// "Long" for LongSerializer, and "TimeWindow" for TimeWindow$Serializer, which Flink 1.3
// to 1.6 wrote as TimeWindow.Serializer.
func SerializerName(class string) string {
	name := simpleName(class)
	if name == "Serializer" {
		name = simpleName(strings.TrimRight(strings.TrimSuffix(class, name), ".$"))
	}
	return strings.TrimSuffix(name, "Serializer")
}

// pojoConfig is the codec of a POJO: numbers are the sizes of the tables of fields, of
// registered subclasses and of others.
func pojoConfig(m *maker, s *Snapshot, _ []codec) codec {
	if len(s.numbers) != 3 {
		return nil
	}
	fields, registered := int(s.numbers[0]), int(s.numbers[1])
	if len(s.Names) != len(s.Nested) || fields+registered > len(s.Names) {
		return nil
	}
	codecs, ok := m.nested(s.Nested[:fields])
	if !ok {
		return nil
	}
	like := &Snapshot{Type: s.Type, Names: s.Names[:fields], Subclasses: s.Nested[fields:], subclasses: s.Names[fields:], registered: registered}
	return like.pojo(m, codecs)
}

func nullableConfig(_ *maker, s *Snapshot, n []codec) codec {
	o := s.object()
	if o == nil || len(n) != 1 {
		return nil
	}
	padding := 0
	if p := o.Object("padding"); p != nil {
		padding = len(p.Data)
	}
	return nullable{padding, n[0]}
}

// javaSerializers are serializers with parameters, by their simple names: the fields
// that hold nested serializers, and the codec.
var javaSerializers = map[string]struct {
	fields []string
	of     func(nested []codec) codec
}{
	"ListSerializer":          {[]string{"elementSerializer"}, collectionOf},
	"ArrayListSerializer":     {[]string{"elementSerializer"}, collectionOf},
	"MapSerializer":           {[]string{"keySerializer", "valueSerializer"}, mapCodec},
	"GenericArraySerializer":  {[]string{"componentSerializer"}, optionsOf},
	"TupleSerializer":         {[]string{"fieldSerializers"}, fieldsAsTuple},
	"CaseClassSerializer":     {[]string{"fieldSerializers"}, fieldsAsTuple},
	"RowSerializer":           {[]string{"fieldSerializers"}, func(n []codec) codec { return rowOf(n, false) }},
	"EitherSerializer":        {[]string{"leftSerializer", "rightSerializer"}, eitherOf},
	"TtlSerializer":           {[]string{"fieldSerializers"}, fieldsAsTuple},
	"TimerSerializer":         {[]string{"keySerializer", "namespaceSerializer"}, timerOf},
	"UnionSerializer":         {[]string{"oneSerializer", "twoSerializer"}, unionOf},
	"BufferEntrySerializer":   {[]string{"elementSerializer"}, bufferEntryOf},
	"StreamElementSerializer": {[]string{"typeSerializer"}, streamElementOf},
}

// nestedSerializers returns the serializers in a field: one, or all of an array.
func nestedSerializers(o *java.Object, field string) []*java.Object {
	n := o.Object(field)
	if n != nil && n.Kind == java.ObjectArray {
		return n.Parts
	}
	return []*java.Object{n}
}

// serializerOf returns a serializer without a snapshot, with the nested ones.
func serializerOf(o *java.Object, depth int) *Snapshot {
	s := &Snapshot{Old: true, parsed: o}
	if o == nil || depth > maxDepth {
		return s
	}
	s.Class = o.Class
	if class := o.Object("tupleClass"); class != nil {
		s.Type = class.Class
	}
	if strings.HasPrefix(o.Class, flinkPackage) {
		for _, field := range javaSerializers[simpleName(o.Class)].fields {
			for _, n := range nestedSerializers(o, field) {
				s.Nested = append(s.Nested, serializerOf(n, depth+1))
			}
		}
	}
	return s
}

// javaSerializer returns the codec of a serialized serializer, or nil. s is the
// snapshot that has it.
func javaSerializer(m *maker, s *Snapshot, o *java.Object) codec {
	return m.ofObject(s, o, 0)
}

func (m *maker) ofObject(s *Snapshot, o *java.Object, depth int) codec {
	switch {
	case o == nil || o.Kind != java.ObjectPlain || depth > maxDepth:
		return m.fail(s, NoSnapshot)
	case !strings.HasPrefix(o.Class, flinkPackage):
		return m.fail(s, UserCode)
	}
	if c := simpleSerializer(o.Class); c != nil {
		return c
	}
	k, ok := javaSerializers[simpleName(o.Class)]
	if !ok {
		return m.fail(s, NoLayout)
	}
	var nested []codec
	for _, name := range k.fields {
		for _, n := range nestedSerializers(o, name) {
			c := m.ofObject(s, n, depth+1)
			if c == nil {
				return nil
			}
			nested = append(nested, c)
		}
	}
	return k.of(nested)
}
