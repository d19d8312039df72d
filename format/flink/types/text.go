package types

import (
	"fmt"
	"strings"
)

// Text returns the type of the values of s for users: "long", "list<string>", "pojo
// com.acme.Profile". class returns the text for a class that is not Flink's; if
// class is nil, it is the name.
func (s *Snapshot) Text(class func(string) string) string {
	if class == nil {
		class = func(name string) string { return name }
	}
	return texts{class}.of(s, 0)
}

// TypeText returns the type of the values of a state for users: for a map "string →
// long", for a list the type of its elements, for timers the type of their keys. It
// is "" if the stream does not record it. See [Snapshot.Text] for class.
func (s *StateSchema) TypeText(class func(string) string) string {
	value := original(s.Serializer("VALUE_SERIALIZER"))
	switch {
	case value == nil:
		return ""
	case s.Keyed == Timers:
		return s.timersText(value, class)
	case s.Keyed == "list" && value.is("ListSerializerSnapshot", 1):
		return value.Nested[0].Text(class)
	}
	key := s.Serializer("USER_KEY_SERIALIZER")
	if s.Keyed == "" { // broadcast state
		key = s.Serializer("KEY_SERIALIZER")
	}
	if s.Keyed == "map" && key == nil && (value.is("MapSerializerSnapshot", 2) || value.is("NullAwareMapSerializerSnapshot", 2)) {
		key, value = value.Nested[0], value.Nested[1]
	}
	if key != nil {
		return key.Text(class) + " → " + value.Text(class)
	}
	return value.Text(class)
}

// timersText returns the type of the keys of timers, and the kind of time they use.
func (s *StateSchema) timersText(timer *Snapshot, class func(string) string) string {
	var parts []string
	if timer.is("TimerSerializerSnapshot", 2) {
		parts = append(parts, timer.Nested[0].Text(class))
	}
	switch name := s.Name.String(); {
	case strings.HasPrefix(name, "_timer_state/event_"):
		parts = append(parts, "event time")
	case strings.HasPrefix(name, "_timer_state/processing_"):
		parts = append(parts, "processing time")
	}
	return strings.Join(parts, ", ")
}

// NamespaceText returns the type of the namespaces of keyed state, or "".
func (s *StateSchema) NamespaceText(class func(string) string) string {
	ns := s.Serializer("NAMESPACE_SERIALIZER")
	if timer := s.Serializer("VALUE_SERIALIZER"); s.Keyed == Timers && timer.is("TimerSerializerSnapshot", 2) {
		ns = timer.Nested[1]
	}
	if ns == nil || strings.HasSuffix(ns.Class, "VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot") {
		return ""
	}
	if text := ns.Text(class); text != "void" {
		return text
	}
	return ""
}

// is reports whether s is of a class of Flink with n nested snapshots.
func (s *Snapshot) is(name string, n int) bool {
	return s != nil && !s.Old && strings.HasPrefix(s.Class, flinkPackage) && simpleName(s.Class) == name && len(s.Nested) == n
}

// texts formats types.
type texts struct{ class func(string) string }

const (
	textDepth = 6 // limit for the nesting of types
	textMost  = 8 // limit for the number of fields
)

// plainTexts are the names of simple types that differ from the names of their
// serializers.
var plainTexts = map[string]string{
	"Boolean": "boolean", "Byte": "byte", "Short": "short", "Int": "int", "Long": "long", "Float": "float", "Double": "double",
	"Char": "char", "String": "string", "StringData": "string", "Void": "void", "VoidNamespace": "void", "Null": "void", "Unit": "void",
	"BigInt": "BigInteger", "BigDec": "BigDecimal", "SqlDate": "date", "SqlTime": "time", "SqlTimestamp": "timestamp",
	"BytePrimitiveArray": "bytes", "StringArray": "string[]", "Java": "java object", "BinaryRowData": "row", "RowData": "row",
	"TimestampData": "timestamp", "Decimal": "decimal", "ArrayData": "array", "MapData": "map",
}

func (t texts) of(s *Snapshot, depth int) string {
	s = original(s)
	switch {
	case s == nil:
		return "?"
	case depth > textDepth:
		return "…"
	case !strings.HasPrefix(s.Class, flinkPackage):
		return t.class(strings.TrimRight(strings.TrimSuffix(s.Class, "Snapshot"), "$"))
	}
	name := simpleName(s.Class)
	if name == "ParameterlessTypeSerializerConfig" && s.Type != "" { // Flink 1.3 to 1.6: Type is the serializer itself
		if !strings.HasPrefix(s.Type, flinkPackage) {
			return t.class(s.Type)
		}
		name = simpleName(s.Type)
	}
	for _, end := range []string{"Snapshot", "Config", "Serializer"} {
		name = strings.TrimSuffix(name, end)
	}
	switch name {
	case "Pojo", "Enum", "Kryo", "Avro", "ScalaEnum", "AvroSchema":
		word := strings.ToLower(strings.TrimPrefix(strings.TrimSuffix(name, "Schema"), "Scala"))
		if s.Type == "" {
			return word
		}
		return word + " " + t.class(s.Type)
	case "Value", "CopyableValue", "Writable", "ScalaCaseClass", "Tuple2CaseClass":
		if s.Type != "" && (len(s.Nested) == 0 || !strings.HasPrefix(s.Type, "scala.")) {
			return t.class(s.Type)
		}
		name = "tuple" + fmt.Sprint(len(s.Nested))
	case "Tuple":
		name = fmt.Sprintf("tuple%d", len(s.Nested))
	case "Ttl":
		if len(s.Nested) == 2 {
			return t.of(s.Nested[1], depth+1) + " with TTL"
		}
	case "Timer", "External", "Nullable", "ScalaOption":
		if len(s.Nested) > 0 {
			return map[string]string{"Nullable": "nullable ", "ScalaOption": "option "}[name] + t.of(s.Nested[0], depth+1)
		}
	case "GenericArray":
		if len(s.Nested) == 1 {
			return t.of(s.Nested[0], depth+1) + "[]"
		}
	case "ArrayList", "Collection":
		name = "list"
	case "NullAwareMap":
		name = "map"
	case "JavaEither", "ScalaEither":
		name = "either"
	case "List", "Set", "Map", "Row", "Either":
		name = strings.ToLower(name)
	default:
		if plain, ok := plainTexts[name]; ok {
			name = plain
		} else if element, ok := strings.CutSuffix(name, "PrimitiveArray"); ok {
			name = strings.ToLower(element) + "[]"
		}
	}
	if len(s.Nested) == 0 {
		return name
	}
	var args []string
	for i, n := range s.Nested {
		if i == textMost {
			args = append(args, "…")
			break
		}
		args = append(args, t.of(n, depth+1))
	}
	return name + "<" + strings.Join(args, ", ") + ">"
}
