package types

import "strings"

// Text returns the type of the values of s for users: "long", "list<string>", "pojo
// com.acme.Profile". class returns the text for a class that is not Flink's; if
// class is nil, it is the name.
func (s *Snapshot) Text(class func(string) string) string {
	return TypeOf(s, Options{}).Short(class)
}

// TypeText returns the type of the values of a state for users: for a map "string →
// long", for a list the type of its elements, for timers the type of their keys. It
// is "" if the stream does not record it. See [Snapshot.Text] for class.
func (s *StateSchema) TypeText(class func(string) string) string {
	p := s.Parts()
	switch {
	case p.Value == nil:
		return ""
	case s.Keyed == Timers:
		return s.timersText(p.Value, class)
	case p.UserKey != nil:
		return p.UserKey.Text(class) + " → " + p.Value.Text(class)
	}
	return p.Value.Text(class)
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
	ns := s.Parts().Namespace
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

// isConfig is is for a config snapshot, as Flink 1.3 to 1.6 wrote them.
func (s *Snapshot) isConfig(name string, n int) bool {
	return s != nil && s.Old && strings.HasPrefix(s.Class, flinkPackage) && simpleName(s.Class) == name && len(s.Nested) == n
}

// typeWords are the words of types by the names of their serializers. The word of
// another one is its name in small letters.
var typeWords = map[string]string{
	"StringData": "stringdata", "Void": "void", "VoidNamespace": "void", "Null": "void", "Unit": "void", "GlobalWindow": "void",
	"BigInt": "BigInteger", "BigDec": "BigDecimal", "Date": "date", "SqlDate": "date", "SqlTime": "time", "SqlTimestamp": "timestamp",
	"Instant": "Instant", "LocalDate": "LocalDate", "LocalTime": "LocalTime", "LocalDateTime": "LocalDateTime", "TimeWindow": "TimeWindow", "CountWindow": "CountWindow",
	"BytePrimitiveArray": "bytes", "RawValueData": "bytes", "StringArray": "string[]", "Java": "java object", "TimestampData": "timestamp",
	"GenericArray": "array", "ArrayList": "list", "Collection": "list", "SortedMap": "map",
	"JavaEither": "either", "ScalaEither": "either", "ScalaOption": "option", "ScalaEnum": "scalaenum", "LockableType": "lockable", "AvroSchema": "avro",
	"ScalaCaseClass": "tuple", "Tuple2CaseClass": "tuple", "Value": "", "CopyableValue": "", "Writable": "",
}

// typeWord returns the word of a type; "" for the values of user code, whose class is
// their type.
func typeWord(s *Snapshot) string {
	if s == nil {
		return "?"
	}
	class := s.Class
	if strings.HasPrefix(class, flinkPackage) && simpleName(class) == "ParameterlessTypeSerializerConfig" && s.Type != "" {
		class = s.Type // Flink 1.3 to 1.6: the serializer itself
	}
	if s.given != nil {
		return class
	}
	if !strings.HasPrefix(class, flinkPackage) {
		return ""
	}
	name := SerializerName(class)
	for _, end := range []string{"Snapshot", "Config", "Serializer"} {
		name = strings.TrimSuffix(name, end)
	}
	if name == "LinkedList" && s.Version != 2 && !s.mark { // without a mask of nulls
		return "list"
	}
	word, ok := typeWords[name]
	if !ok {
		word = strings.ToLower(name)
		if element, ok := strings.CutSuffix(word, "primitivearray"); ok {
			word = element + "[]"
		}
	}
	return word
}

// typeClass returns the class of the values of a serializer, or the class of a
// serializer of the user.
func typeClass(s *Snapshot) string {
	switch {
	case s == nil, s.given != nil:
		return ""
	case !strings.HasPrefix(s.Class, flinkPackage):
		return strings.TrimRight(strings.TrimSuffix(s.Class, "Snapshot"), "$")
	case simpleName(s.Class) == "ParameterlessTypeSerializerConfig" && strings.HasPrefix(s.Type, flinkPackage):
		return ""
	}
	return s.Type
}
