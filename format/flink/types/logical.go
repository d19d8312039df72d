package types

import (
	"strings"

	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/value"
)

// logical is a SQL type, as Flink's snapshots record it: a serialized object of the
// class org.apache.flink.table.types.logical.… (spec flink-serializers A8.3).
type logical struct {
	class            string // simple name: "VarCharType"
	precision, scale int32
	names            []string // of the fields of a row
	parts            []*logical
	raw              *java.Object // the serializer of a raw type
}

const logicalPackage = flinkPackage + "table.types.logical."

// maxLogicalDepth limits the nesting of SQL types.
const maxLogicalDepth = 32

// logicalOf reads a serialized SQL type. It returns nil if the object is not one.
func logicalOf(stream []byte) *logical {
	c := java.NewCursor(stream)
	o := java.ReadObject(c)
	if c.Err() != nil {
		return nil
	}
	return logicalType(o, 0)
}

func logicalType(o *java.Object, depth int) *logical {
	if o == nil || depth > maxLogicalDepth || !strings.HasPrefix(o.Class, logicalPackage) {
		return nil
	}
	t := &logical{class: strings.TrimPrefix(o.Class, logicalPackage)}
	precision, _ := o.Int("precision")
	scale, _ := o.Int("scale")
	t.precision, t.scale = int32(precision), int32(scale)
	part := func(names ...string) bool {
		for _, name := range names {
			p := logicalType(o.Object(name), depth+1)
			if p == nil {
				return false
			}
			t.parts = append(t.parts, p)
		}
		return true
	}
	ok := true
	switch t.class {
	case "ArrayType", "MultisetType":
		ok = part("elementType")
	case "MapType":
		ok = part("keyType", "valueType")
	case "DistinctType":
		if !part("sourceType") {
			return nil
		}
		return t.parts[0]
	case "RowType", "StructuredType":
		var super *java.Object
		list := "fields"
		if t.class == "StructuredType" {
			list, super = "attributes", o.Object("superType")
		}
		if super != nil { // the attributes of its ancestors come first
			s := logicalType(super, depth+1)
			if s == nil {
				return nil
			}
			t.names, t.parts = s.names, s.parts
		}
		ok = t.fields(javaList(o.Object(list)), depth)
	case "RawType":
		t.raw = o.Object("serializer")
	}
	if !ok {
		return nil
	}
	return t
}

// scalarTypes are the types of the values of SQL types without parts.
var scalarTypes = map[string]*Type{
	"BooleanType": boolCodec.typ, "TinyIntType": byteCodec.typ, "SmallIntType": shortCodec.typ,
	"IntType": intCodec.typ, "YearMonthIntervalType": intCodec.typ, "BigIntType": longCodec.typ, "DayTimeIntervalType": longCodec.typ,
	"FloatType": floatCodec.typ, "DoubleType": doubleCodec.typ,
	"CharType": stringDataCodec.typ, "VarCharType": stringDataCodec.typ, "BinaryType": bytesCodec.typ, "VarBinaryType": bytesCodec.typ,
	"DateType": {Kind: TypeDate, Word: "date"}, "TimeType": {Kind: TypeTimeOfDay, Word: "time", Precision: 3},
	"NullType": {Kind: TypeNull, Word: "void"},
}

// typeOf returns the type of the values of a SQL type without parts.
func (t *logical) typeOf() *Type {
	switch t.class {
	case "DecimalType":
		return &Type{Kind: TypeDecimal, Word: "decimal", Precision: t.precision, Scale: t.scale}
	case "TimestampType":
		return timestampType(t.precision, value.KindDateTime)
	case "LocalZonedTimestampType":
		return timestampType(t.precision, value.KindInstant)
	}
	return scalarTypes[t.class]
}

// fields adds the fields of a row or the attributes of a structured type.
func (t *logical) fields(all []*java.Object, depth int) bool {
	for _, f := range all {
		name, typ := f.Object("name"), logicalType(f.Object("type"), depth+1)
		if name == nil || typ == nil {
			return false
		}
		t.names, t.parts = append(t.names, name.Text), append(t.parts, typ)
	}
	return true
}

// javaList returns the elements of a list of the JDK: an ArrayList, Arrays.asList, an
// immutable list, or one of them in a wrapper.
func javaList(o *java.Object) []*java.Object {
	for depth := 0; o != nil && depth < 8; depth++ {
		switch {
		case o.Kind == java.ObjectArray:
			return o.Parts
		case o.Object("list") != nil: // Collections.unmodifiableList
			o = o.Object("list")
		case o.Object("c") != nil:
			o = o.Object("c")
		case o.Object("a") != nil: // Arrays.asList
			o = o.Object("a")
		case o.Object("element") != nil: // Collections.singletonList
			return []*java.Object{o.Object("element")}
		default:
			var all []*java.Object
			for _, p := range o.Parts { // written by the class: block data is the capacity
				if p == nil || p.Kind != java.ObjectBlock {
					all = append(all, p)
				}
			}
			return all
		}
	}
	return nil
}
