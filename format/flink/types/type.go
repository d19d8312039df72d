package types

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Type is the type of the values of a serializer: a tree that follows their JSON
// (docs/json.md), with the words of the type language. Types share parts; they must not
// be changed.
type Type struct {
	Kind  TypeKind
	Word  string // of the type language: "long", "list", "pojo"; "" for a part that has none
	Class string // of objects, constants and tuples, or the name in an Avro schema; "" if it is not recorded
	// Null: null is a value of the type, as it is of strings.
	Null      bool
	Bits      int   // of an integer or a float: 8, 16, 32 or 64
	Size      int   // of byte arrays of one length, 0: any; of an optional value, the bytes of an absent one
	Precision int32 // digits of a decimal, or of the fraction of a second; 0 of a decimal: any
	Scale     int32 // of a decimal with a precision
	// Names are the names of Parts of a record, or the constants of an enum.
	Names []string
	// Parts are the fields of a record, tuple or row, the element of a list, the key and
	// the value of a map, the alternatives of a choice, or the type of an optional value.
	Parts []*Type
	// Subclasses are the types of the subclasses of a POJO, each with its class.
	Subclasses []*Type
	Kinds      bool        // a row may have another kind than INSERT
	Schema     string      // the schema of an Avro serializer
	Why        *NotDecoded // of a type that is not decoded

	args []*Type // of Word, if they differ from Parts
}

// TypeKind is the kind of the values of a [Type], in JSON and in package value.
type TypeKind uint8

// The kinds.
const (
	TypeNotDecoded TypeKind = iota // bytes whose serializer is not decoded; see Type.Why
	TypeNull
	TypeBool
	TypeInt
	TypeFloat
	TypeBigInt
	TypeDecimal
	TypeString
	TypeBytes
	TypeInstant
	TypeDate
	TypeTimeOfDay
	TypeDateTime
	TypeEnum
	TypeList
	TypeMap
	TypeTuple
	TypeRow    // a tuple whose fields can be null
	TypeRecord // fields with names
	TypeChoice // one of several records
	TypeOptional
	TypeAny // depends on the value: objects of Java and Kryo, documents
	TypeRef // the record with its class, which is around it or before it
)

var typeKinds = [...]string{"not decoded", "null", "boolean", "integer", "float", "big integer", "decimal", "string", "bytes", "instant", "date", "time of day",
	"date with time", "enum", "list", "map", "tuple", "row", "record", "choice", "optional", "any", "reference"}

// String returns the name of the kind: "record".
func (k TypeKind) String() string { return typeKinds[k] }

// TypeOf returns the type of the values of a serializer. A part that is not decoded is
// TypeNotDecoded with the reason.
func TypeOf(s *Snapshot, o Options) *Type {
	m := &maker{options: o, described: map[*Snapshot]*described{}}
	m.of = func(s *Snapshot) codec { return codecOf(m, s) }
	return m.of(s).describe(&describer{})
}

// describer describes codecs. A record of Avro is described once.
type describer struct{ records map[*avroRecord]bool }

// described is a codec of a maker that describes: codec is nil if values are not
// decoded.
type described struct {
	codec
	s      *Snapshot
	nested []codec
	why    *NotDecoded
	typ    *Type
}

// describe adds to the type of a codec what its snapshot has.
func (c *described) describe(d *describer) *Type {
	if c.typ != nil {
		return c.typ
	}
	t := Type{Why: c.why}
	if c.codec != nil {
		t = *c.codec.describe(d)
	}
	if t.Word = typeWord(c.s); t.Kind != TypeRef {
		t.Class = typeClass(c.s)
	}
	if t.Word == "avro" {
		t.Schema = c.s.text
	}
	for _, n := range c.nested {
		t.args = append(t.args, n.describe(d))
	}
	c.typ = &t
	return c.typ
}

// String returns the type in the type language (docs/types.md), which [Parse] reads
// if all its words are of the language.
func (t *Type) String() string {
	w := typeWriter{fields: true, depth: maxDepth + 2, most: math.MaxInt, class: func(class string) string { return class }}
	w.write(t)
	return w.b.String()
}

// Short is String without the fields of objects, and with at most six levels and eight
// parts of each: "list<pojo com.acme.Order>". class returns the text for a class; if it
// is nil, that is the class.
func (t *Type) Short(class func(string) string) string {
	w := typeWriter{depth: 6, most: 8, class: class}
	if class == nil {
		w.class = func(class string) string { return class }
	}
	w.write(t)
	return w.b.String()
}

// typeWriter writes types.
type typeWriter struct {
	b           strings.Builder
	class       func(string) string
	fields      bool // of objects
	depth, most int  // levels that are left, and parts of one
}

// word returns the word of the type with its parameters.
func (t *Type) word() string {
	word := t.Word
	switch {
	case t.Kind == TypeDecimal && t.Precision > 0 && (word == "decimal" || word == ""):
		return "decimal(" + strconv.Itoa(int(t.Precision)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case word == "timestamp" && t.Kind == TypeDateTime, word == "timestamp_ltz":
		return word + "(" + strconv.Itoa(int(t.Precision)) + ")"
	case word == "" && t.Kind == TypeNotDecoded:
		return ""
	case word == "":
		return strings.ReplaceAll(t.Kind.String(), " ", "_")
	}
	return word
}

func (w *typeWriter) write(t *Type) {
	if w.depth--; w.depth < 0 {
		w.b.WriteString("…")
		w.depth++
		return
	}
	defer func() { w.depth++ }()
	word := t.word()
	switch {
	case t.Kind == TypeRef:
		w.b.WriteString(w.class(t.Class))
		return
	case t.Kind == TypeOptional && t.Word == "":
		w.depth++
		w.write(t.Parts[0])
		w.depth--
		return
	case word == "ttl" && len(t.args) == 2:
		w.write(t.args[1])
		w.b.WriteString(" with TTL")
		return
	case word == "timer" && !w.fields && len(t.args) == 2:
		w.write(t.args[0])
		return
	case word == "external" && len(t.args) == 1:
		w.write(t.args[0])
		return
	case word == "tuple":
		word += strconv.Itoa(len(t.args))
	case word == "row" && t.Kind == TypeRow && !t.Kinds && w.fields:
		word += "(0)"
	case word == "nullable" && t.Size > 0 && w.fields:
		word += "(" + strconv.Itoa(t.Size) + ")"
	}
	w.b.WriteString(word)
	if t.Class != "" && word != "array" && word != "set" && !strings.HasPrefix(word, "tuple") {
		if word != "" {
			w.b.WriteString(" ")
		}
		w.b.WriteString(w.class(t.Class))
	}
	named := t.Kind == TypeRecord && (t.Word == "" || t.Word == "pojo" || t.Word == "avro" || t.Word == "rowdata")
	switch args := t.parts(); {
	case t.Kind == TypeEnum || named:
		if w.fields {
			w.list("{", "}", t.Names, t.Parts)
		}
	case len(args) > 0:
		w.list("<", ">", nil, args)
	}
}

// parts returns the arguments of the word.
func (t *Type) parts() []*Type {
	switch t.Word {
	case "rowdata", "arraydata", "mapdata", "": // of SQL, or of Avro
		return t.Parts
	}
	return t.args
}

// list writes parts, with names if there are some.
func (w *typeWriter) list(open, end string, names []string, parts []*Type) {
	w.b.WriteString(open)
	for i := range max(len(names), len(parts)) {
		if i > 0 {
			w.b.WriteString(", ")
		}
		if i == w.most {
			w.b.WriteString("…")
			break
		}
		if names != nil {
			w.b.WriteString(nameText(names[i]))
		}
		if names != nil && parts != nil {
			w.b.WriteString(": ")
		}
		if parts != nil {
			w.write(parts[i])
		}
	}
	w.b.WriteString(end)
}

// nameText returns a name of the type language, in quotes if it needs them.
func nameText(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !nameRune(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// nameRune reports whether a name of the type language may have r without quotes.
func nameRune(r rune) bool {
	return r == '_' || r == '$' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// Deref returns the type of an optional value, with null.
func (t *Type) Deref() (inner *Type, null bool) {
	for null = t.Null; t.Kind == TypeOptional; null = true {
		t = t.Parts[0]
	}
	return t, null || t.Null
}

// Each calls f with a type and then with all its parts and subclasses.
func (t *Type) Each(f func(*Type)) {
	f(t)
	for _, p := range slices.Concat(t.Parts, t.Subclasses) {
		p.Each(f)
	}
}
