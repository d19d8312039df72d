package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// Draft is the dialect of the schemas.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// JSONDocument is a schema under construction: the definitions that its parts refer to.
type JSONDocument struct {
	defs Object
	refs map[string]bool // classes that are referred to
}

// Defs returns the definitions of the records that the types refer to, or nil.
func (d *JSONDocument) Defs() Object { return d.defs }

// Define adds the definition of a record with a class, which the types refer to by name.
func (d *JSONDocument) Define(name string, t *types.Type) {
	d.defs = d.defs.With(name, nil)
	i := len(d.defs) - 1
	d.defs[i].Value = d.fields(t, t.Class)
}

// Of returns the schema of the JSON of a type, as docs/json.md describes it.
func (d *JSONDocument) Of(t *types.Type) any {
	if d.refs == nil {
		d.refs = map[string]bool{}
	}
	t.Each(func(p *types.Type) {
		if p.Kind == types.TypeRef {
			d.refs[p.Class] = true
		}
	})
	return d.of(t)
}

func (d *JSONDocument) of(t *types.Type) any {
	s := d.bare(t)
	if !t.Null && t.Kind != types.TypeOptional && len(t.Subclasses) == 0 {
		return s
	}
	any := []any{s}
	for _, sub := range t.Subclasses {
		any = append(any, d.subclass(sub))
	}
	if t.Null {
		any = append(any, typed("null"))
	}
	if len(any) == 1 {
		return s
	}
	return Object{{"anyOf", any}}
}

func typed(name string) Object { return Object{{"type", name}} }

// pattern returns the schema of strings that match a pattern.
func pattern(text string) Object { return Object{{"type", "string"}, {"pattern", text}} }

const (
	datePattern  = `-?[0-9]{4,10}-[0-9]{2}-[0-9]{2}`
	clockPattern = `[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?`
)

// numberOr returns the schema of a text, or of the number in place of a time that has
// none: see docs/json.md.
func numberOr(text Object) any { return Object{{"anyOf", []any{text, typed("integer")}}} }

func (d *JSONDocument) bare(t *types.Type) any {
	switch t.Kind {
	case types.TypeNull: // an ignored byte that is not the usual one has a mark
		return Object{{"anyOf", []any{typed("null"), markedNull()}}}
	case types.TypeBool:
		return typed("boolean")
	case types.TypeInt:
		s := typed("integer")
		if t.Bits < 64 {
			limit := int64(1) << (t.Bits - 1)
			return s.With("minimum", -limit).With("maximum", limit-1)
		}
		return s.With("minimum", int64(math.MinInt64)).With("maximum", int64(math.MaxInt64))
	case types.TypeBigInt:
		return typed("integer")
	case types.TypeFloat:
		digits := map[int]string{32: "8", 64: "16"}[t.Bits]
		return Object{{"anyOf", []any{typed("number"), pattern(`^(NaN(\([0-9a-f]{` + digits + `}\))?|-?Infinity)$`)}}}
	case types.TypeDecimal:
		return typed("number")
	case types.TypeString:
		return typed("string")
	case types.TypeBytes:
		return Object{{"type", "object"}, {"properties", Object{{"base64", Object{{"type", "string"}, {"contentEncoding", "base64"}}}}}, {"required", []string{"base64"}}, {"additionalProperties", false}}
	case types.TypeInstant:
		return pattern("^" + datePattern + "T" + clockPattern + "Z$")
	case types.TypeDate:
		return pattern("^" + datePattern + "$")
	case types.TypeTimeOfDay:
		return numberOr(pattern("^" + clockPattern + "$"))
	case types.TypeDateTime:
		return pattern("^" + datePattern + "T" + clockPattern + "$")
	case types.TypeEnum:
		return Object{{"enum", t.Names}}
	case types.TypeList:
		return Object{{"type", "array"}, {"items", d.of(t.Parts[0])}}
	case types.TypeMap:
		pair := tuple([]any{d.of(t.Parts[0]), d.of(t.Parts[1])})
		return Object{{"type", "array"}, {"items", pair}}
	case types.TypeTuple:
		return tuple(d.all(t.Parts))
	case types.TypeRow:
		return d.withKind(t, tuple(d.all(t.Parts)))
	case types.TypeRecord:
		return d.withKind(t, d.record(t))
	case types.TypeChoice:
		return Object{{"anyOf", d.all(t.Parts)}}
	case types.TypeOptional:
		return d.optional(t.Parts[0])
	case types.TypeRef:
		return Object{{"$ref", "#/$defs/" + pointer(t.Class)}}
	}
	return Object{} // anything
}

func (d *JSONDocument) all(parts []*types.Type) []any {
	all := make([]any, len(parts))
	for i, p := range parts {
		all[i] = d.of(p)
	}
	return all
}

// tuple returns the schema of an array of exactly these.
func tuple(parts []any) Object {
	s := typed("array")
	if len(parts) > 0 {
		s = s.With("prefixItems", parts)
	}
	return s.With("minItems", len(parts)).With("maxItems", len(parts))
}

// optional returns the schema of a value that can be absent. A null that is present has
// a mark.
func (d *JSONDocument) optional(t *types.Type) any {
	any := []any{d.of(t), typed("null")}
	if _, null := t.Deref(); null || t.Kind == types.TypeNull || t.Kind == types.TypeAny {
		any = append(any, markedNull())
	}
	return Object{{"anyOf", any}}
}

func markedNull() Object {
	return Object{{"type", "object"}, {"properties", Object{{value.NullMember, typed("integer")}}}, {"required", []string{value.NullMember}}, {"additionalProperties", false}}
}

// withKind returns the schema of rows that may have a kind.
func (d *JSONDocument) withKind(t *types.Type, fields Object) any {
	if !t.Kinds {
		return fields
	}
	changed := Object{{"type", "object"}, {"properties", Object{{"kind", Object{{"enum", []string{"UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"}}}}, {"fields", fields}}},
		{"required", []string{"kind", "fields"}}, {"additionalProperties", false}}
	return Object{{"anyOf", []any{fields, changed}}}
}

// record returns the schema of a record, or a reference to it if others refer to it.
func (d *JSONDocument) record(t *types.Type) Object {
	s := d.fields(t, "")
	if !d.refs[t.Class] || t.Class == "" {
		return s
	}
	if !slices.ContainsFunc(d.defs, func(m Member) bool { return m.Name == t.Class }) {
		d.defs = d.defs.With(t.Class, s)
	}
	return Object{{"$ref", "#/$defs/" + pointer(t.Class)}}
}

// fields returns the schema of the fields of a record with a class.
func (d *JSONDocument) fields(t *types.Type, class string) Object {
	properties, required := Object{}, []string{}
	if class != "" {
		properties, required = properties.With(value.ClassMember, Object{{"const", class}}), append(required, value.ClassMember)
	}
	for i, p := range t.Parts {
		name := value.FieldMember(t.Names[i])
		properties, required = properties.With(name, d.of(p)), append(required, name)
	}
	return Object{{"type", "object"}, {"properties", properties}, {"required", required}, {"additionalProperties", false}}
}

// subclass returns the schema of the values of a subclass.
func (d *JSONDocument) subclass(t *types.Type) any {
	if t.Kind == types.TypeRecord {
		return d.fields(t, t.Class)
	}
	return Object{{"type", "object"}, {"properties", Object{{value.ClassMember, Object{{"const", t.Class}}}}}, {"required", []string{value.ClassMember}}}
}

// pointer returns a name as a part of a JSON pointer in a URI.
func pointer(name string) string {
	var b strings.Builder
	for _, c := range []byte(strings.NewReplacer("~", "~0", "/", "~1").Replace(name)) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~$", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
