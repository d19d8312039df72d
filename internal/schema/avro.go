package schema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format/flink/types"
)

// Avro returns the Avro schema of a type. name is the name of a record or enum that has
// no class. The state of an Avro serializer has its own schema. What Avro does not have
// is bytes (values that are not decoded, and objects of Java and Kryo), a string (big
// integers), a record (tuples and rows, whose fields are f0, f1, …), or an array of
// records (maps whose keys are not strings).
func Avro(t *types.Type, name string) any {
	if t.Schema != "" && json.Valid([]byte(t.Schema)) {
		return json.RawMessage(t.Schema)
	}
	a := avro{names: map[string]bool{}, classes: map[string]string{}}
	return a.of(t, avroName(name))
}

// avro keeps the names of a schema: each is defined once.
type avro struct {
	names   map[string]bool
	classes map[string]string // full names of records by their classes
}

func logical(typ, name string) Object { return Object{{"type", typ}, {"logicalType", name}} }

// union returns the schema of a value or null.
func union(s any) any {
	switch s := s.(type) {
	case string:
		if s == "null" {
			return s
		}
	case []any: // a union already
		if slices.Contains(s, any("null")) {
			return s
		}
		return append([]any{"null"}, s...)
	}
	return []any{"null", s}
}

func (a *avro) of(t *types.Type, path string) any {
	s := a.bare(t, path)
	if t.Null {
		return union(s)
	}
	return s
}

// fraction returns the unit of the fraction of a second in a logical type.
func fraction(precision int32) string {
	switch {
	case precision <= 3:
		return "millis"
	case precision <= 6:
		return "micros"
	}
	return "nanos"
}

func (a *avro) bare(t *types.Type, path string) any {
	switch t.Kind {
	case types.TypeNull:
		return "null"
	case types.TypeBool:
		return "boolean"
	case types.TypeInt:
		if t.Bits == 64 {
			return "long"
		}
		return "int"
	case types.TypeFloat:
		return map[int]string{32: "float", 64: "double"}[t.Bits]
	case types.TypeString, types.TypeBigInt:
		return "string"
	case types.TypeDecimal:
		if t.Precision == 0 {
			return logical("bytes", "big-decimal")
		}
		return logical("bytes", "decimal").With("precision", t.Precision).With("scale", t.Scale)
	case types.TypeBytes:
		if t.Size > 0 {
			return Object{{"type", "fixed"}, {"name", a.unique(path)}, {"size", t.Size}}
		}
		return "bytes"
	case types.TypeInstant:
		return logical("long", "timestamp-"+fraction(t.Precision))
	case types.TypeDateTime:
		return logical("long", "local-timestamp-"+fraction(t.Precision))
	case types.TypeDate:
		return logical("int", "date")
	case types.TypeTimeOfDay:
		if t.Precision <= 3 {
			return logical("int", "time-millis")
		}
		return logical("long", "time-micros")
	case types.TypeEnum:
		if len(t.Names) == 0 || slices.ContainsFunc(t.Names, func(n string) bool { return !avroNames.MatchString(n) }) {
			return "string"
		}
		return Object{{"type", "enum"}, {"name", a.unique(path)}, {"symbols", t.Names}}
	case types.TypeList:
		return Object{{"type", "array"}, {"items", a.of(t.Parts[0], path+"_element")}}
	case types.TypeMap:
		if t.Parts[0].Kind == types.TypeString {
			return Object{{"type", "map"}, {"values", a.of(t.Parts[1], path+"_value")}}
		}
		pair := &types.Type{Kind: types.TypeRecord, Names: []string{"key", "value"}, Parts: t.Parts}
		return Object{{"type", "array"}, {"items", a.record(pair, path+"_entry")}}
	case types.TypeTuple, types.TypeRow, types.TypeRecord:
		return a.record(t, path)
	case types.TypeChoice:
		var all []any
		for i, p := range t.Parts {
			all = append(all, a.record(p, path+"_"+strconv.Itoa(i)))
		}
		return all
	case types.TypeOptional:
		return union(a.of(t.Parts[0], path))
	case types.TypeRef:
		if full, ok := a.classes[t.Class]; ok {
			return full
		}
	}
	return "bytes"
}

// record returns the schema of a record.
func (a *avro) record(t *types.Type, path string) any {
	full := a.unique(path)
	if t.Class != "" {
		if done, ok := a.classes[t.Class]; ok && t.Word == "" { // a record of Avro, by its name
			return done
		}
		full = a.unique(avroClass(t.Class))
		a.classes[t.Class] = full
	}
	o := Object{{"type", "record"}}
	if i := strings.LastIndexByte(full, '.'); i >= 0 {
		o = o.With("name", full[i+1:]).With("namespace", full[:i])
	} else {
		o = o.With("name", full)
	}
	fields, taken := []any{}, map[string]bool{}
	for i, p := range t.Parts {
		name := "f" + strconv.Itoa(i)
		if t.Names != nil {
			name = avroName(t.Names[i])
		}
		for base, n := name, 2; taken[name]; n++ {
			name = base + "_" + strconv.Itoa(n)
		}
		taken[name] = true
		fields = append(fields, Object{{"name", name}, {"type", a.of(p, path+"_"+name)}})
	}
	return o.With("fields", fields)
}

var avroNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// avroName returns a name as Avro allows it.
func avroName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && avroNames.MatchString("_"+string(r)) {
			return r
		}
		return '_'
	}, name)
	if !avroNames.MatchString(name) {
		name = "_" + name
	}
	return name
}

// avroClass returns the full name of a class: inner classes are in a namespace with the
// name of the outer one.
func avroClass(class string) string {
	parts := strings.FieldsFunc(class, func(r rune) bool { return r == '.' || r == '$' })
	if len(parts) == 0 {
		return "_"
	}
	for i := range parts {
		parts[i] = avroName(parts[i])
	}
	return strings.Join(parts, ".")
}

// unique returns a name that is not used yet.
func (a *avro) unique(name string) string {
	base := name
	for n := 2; a.names[name]; n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	a.names[name] = true
	return name
}
