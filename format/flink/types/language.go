package types

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// Language is the type language: types as [Type.String] writes them, for values whose
// serializer a file does not record (docs/type-language.md).
type Language struct {
	// Formats are words of payloads with an argument, such as avro:FILE. Each has the
	// function that returns the codec. argument is the text after the colon.
	Formats map[string]func(argument string) (value.Codec, error)
}

// TypeError is the error for a text that is not a type. It matches format.ErrUnsupported.
type TypeError struct {
	Text    string // the whole text
	Offset  int    // in bytes
	Problem string
}

// Error implements error.
func (e *TypeError) Error() string {
	if e.Offset >= len(e.Text) {
		return "type " + strconv.Quote(e.Text) + ": at its end: " + e.Problem
	}
	rest := e.Text[e.Offset:]
	if len(rest) > 20 {
		rest = rest[:20] + "…"
	}
	return fmt.Sprintf("type %q: at %q: %s", e.Text, rest, e.Problem)
}

// Unwrap returns format.ErrUnsupported.
func (e *TypeError) Unwrap() error { return format.ErrUnsupported }

// Parse returns the serializer snapshot of a type. It has no Raw: no file contains it.
func (l *Language) Parse(text string) (*Snapshot, error) {
	p := &typeParser{text: text, formats: l.Formats}
	s := p.typ(0)
	if p.space(); p.err == nil && p.off < len(text) {
		p.fail(p.off, "unexpected text after the type")
	}
	if p.err != nil {
		return nil, p.err
	}
	if _, err := NewCodec(s, Options{Kryo: kryo5}); err != nil {
		return nil, &TypeError{text, 0, err.Error()}
	}
	return s, nil
}

// ParseState is Parse of the types of a state: "KEY → VALUE", or "KEY -> VALUE", are the
// types of a map, as [StateSchema.TypeText] writes them. key is nil without an arrow.
func (l *Language) ParseState(text string) (key, val *Snapshot, err error) {
	for _, arrow := range []string{"→", "->"} {
		for i := range text {
			if !strings.HasPrefix(text[i:], arrow) {
				continue
			}
			key, kerr := l.Parse(text[:i])
			val, verr := l.Parse(text[i+len(arrow):])
			if kerr == nil && verr == nil {
				return key, val, nil
			}
			if !strings.ContainsRune(text, '"') { // otherwise the arrow may be in quotes
				if kerr != nil {
					return nil, nil, kerr
				}
				return nil, nil, verr
			}
		}
	}
	val, err = l.Parse(text)
	return nil, val, err
}

// wordType is a word of the language with arguments.
type wordType struct {
	snapshot string // class, without "SerializerSnapshot"
	version  int32
	args     int  // number of types in <>; -1: one or more; -2: the last one
	mark     bool // Snapshot.mark
}

// wordTypes are the words with arguments.
var wordTypes = map[string]wordType{
	"list":         {snapshot: "List", args: 1},
	"set":          {snapshot: "Set", args: 1},
	"map":          {snapshot: "Map", args: 2},
	"nullawaremap": {snapshot: "NullAwareMap", args: 2},
	"array":        {snapshot: "GenericArray", args: 1},
	"linkedlist":   {snapshot: "LinkedList", version: 3, args: 1, mark: true},
	"traversable":  {snapshot: "Traversable", args: 1},
	"tuple":        {snapshot: "Tuple", args: -1},
	"row":          {snapshot: "Row", version: 4, args: -1, mark: true},
	"nullable":     {snapshot: "Nullable", args: 1},
	"option":       {snapshot: "ScalaOption", args: 1},
	"either":       {snapshot: "JavaEither", args: 2},
	"scalatry":     {snapshot: "ScalaTry", args: 2},
	"ttl":          {snapshot: "Ttl", args: -2},
	"timer":        {snapshot: "Timer", args: 2},
	"union":        {snapshot: "Union", args: 2},
	"bytes":        {snapshot: "RawValueData", args: 1},
	"bufferentry":  {snapshot: "BufferEntry", args: 1},
	"lockable":     {snapshot: "LockableType", args: 1},
	"windowkey":    {snapshot: "WindowKey", args: 1},
}

// sqlWords are the words of Flink SQL in rowdata, arraydata and mapdata.
var sqlWords = map[string]string{
	"boolean": "BooleanType", "byte": "TinyIntType", "short": "SmallIntType", "int": "IntType", "long": "BigIntType", "float": "FloatType", "double": "DoubleType",
	"string": "VarCharType", "bytes": "VarBinaryType", "date": "DateType", "time": "TimeType", "timestamp": "TimestampType", "timestamp_ltz": "LocalZonedTimestampType",
	"decimal": "DecimalType", "list": "ArrayType", "map": "MapType", "multiset": "MultisetType", "row": "RowType", "rowdata": "RowType", "record": "RowType", "void": "NullType",
}

// scalarWords are the words of types without arguments, in small letters, with the
// names of their serializers.
var scalarWords = func() map[string]string {
	m := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(simples)) {
		if simples[name] != nil {
			m[strings.ToLower(name)] = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(typeWords)) {
		if _, ok := simples[name]; ok {
			m[strings.ToLower(typeWords[name])] = name
		}
	}
	for name := range simples {
		if element, ok := strings.CutSuffix(name, "PrimitiveArray"); ok {
			m[strings.ToLower(element)+"[]"] = name
		}
	}
	m["void"] = "Void"
	return m
}()

// maxTypeText limits the length of a type, and with it the memory that it takes.
const maxTypeText = 1 << 20

type typeParser struct {
	text    string
	off     int
	formats map[string]func(string) (value.Codec, error)
	err     error
}

func (p *typeParser) fail(off int, problem string, args ...any) *Snapshot {
	if p.err == nil {
		p.err = &TypeError{p.text, off, fmt.Sprintf(problem, args...)}
	}
	return nil
}

func (p *typeParser) space() {
	for p.off < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.off]) >= 0 {
		p.off++
	}
}

// next moves past c, after spaces, if it is next.
func (p *typeParser) next(c byte) bool {
	p.space()
	if p.err != nil || p.off >= len(p.text) || p.text[p.off] != c {
		return false
	}
	p.off++
	return true
}

// need is next for what must be next.
func (p *typeParser) need(c byte, after string) bool {
	if p.next(c) {
		return true
	}
	p.fail(p.off, "expected %q after %s", c, after)
	return false
}

// name reads a name, in quotes or without; "" if the next text is not one.
func (p *typeParser) name() string {
	p.space()
	rest := p.text[p.off:]
	if strings.HasPrefix(rest, `"`) {
		quoted, err := strconv.QuotedPrefix(rest)
		if err == nil {
			rest, err = strconv.Unquote(quoted)
		}
		if err != nil {
			p.fail(p.off, "a name in quotes that is not valid")
			return ""
		}
		p.off += len(quoted)
		return rest
	}
	n := strings.IndexFunc(rest, func(r rune) bool { return !nameRune(r) })
	if n < 0 {
		n = len(rest)
	}
	p.off += n
	return rest[:n]
}

// flink returns the snapshot of a serializer of Flink.
func flinkSnapshot(name string, version int32, nested ...*Snapshot) *Snapshot {
	return &Snapshot{Class: flinkPackage + name + "SerializerSnapshot", Version: version, Nested: nested}
}

// typ reads a type.
func (p *typeParser) typ(depth int) *Snapshot {
	switch {
	case p.err != nil:
		return nil
	case len(p.text) > maxTypeText:
		return p.fail(0, "longer than %d bytes", maxTypeText)
	case depth > maxLogicalDepth:
		return p.fail(p.off, "types nested more than %d deep", maxLogicalDepth)
	}
	s := p.base(depth)
	for p.err == nil {
		if from := p.off; p.next('[') {
			if !p.need(']', "[") {
				return nil
			}
			if s = arrayType(s); s == nil {
				return p.fail(from, "only primitives and strings have arrays; use array<…> or list<…>")
			}
			continue
		}
		from := p.off
		if strings.EqualFold(p.name(), "with") && strings.EqualFold(p.name(), "ttl") {
			s = ttlType(s)
			continue
		}
		p.off = from
		break
	}
	return s
}

func ttlType(s *Snapshot) *Snapshot {
	return flinkSnapshot("Ttl", 2, flinkSnapshot("Long", 3), s)
}

// arrayType returns the type of arrays of a primitive, or nil.
func arrayType(of *Snapshot) *Snapshot {
	name := strings.TrimSuffix(simpleName(of.Class), "SerializerSnapshot")
	if array, ok := scalarWords[strings.ToLower(name)+"[]"]; ok {
		return flinkSnapshot(array, 3)
	}
	return nil
}

// base reads a type without what follows it.
func (p *typeParser) base(depth int) *Snapshot {
	p.space()
	at := p.off
	word := p.name()
	if word == "" {
		return p.fail(at, "expected a type")
	}
	lower := strings.ToLower(word)
	if p.off < len(p.text) && p.text[p.off] == ':' {
		switch f := p.formats[lower]; {
		case f != nil:
			return p.format(at, lower, f)
		case p.formats == nil:
			return p.fail(at, "types that a file describes, such as %q, are not known here", word)
		}
	}
	if c := payloads[lower]; c != nil {
		return &Snapshot{Class: lower, given: c}
	}
	params := p.params()
	switch lower {
	case "pojo":
		return p.pojo(depth)
	case "enum":
		s := flinkSnapshot("Enum", 3)
		s.Type = p.class()
		s.Names, _ = p.members(depth, false, "enum")
		return s
	case "kryo":
		s := flinkSnapshot("Kryo", 2)
		s.Type = p.class()
		s.Names = []string{s.Type}
		return s
	case "decimal", "timestamp":
		if params != nil {
			return p.sqlScalar(at, lower, params)
		}
	case "rowdata", "arraydata", "mapdata":
		return p.sqlData(lower, depth)
	case "java":
		if p.class() == "object" { // as it is printed
			return flinkSnapshot("Java", 3)
		}
		return p.fail(at, `expected "java object"`)
	}
	k, ok := wordTypes[lower]
	if digits, tuple := strings.CutPrefix(lower, "tuple"); tuple && digits != "" && strings.Trim(digits, "0123456789") == "" && len(digits) <= 2 {
		k, ok = wordTypes["tuple"], true
		if k.args, _ = strconv.Atoi(digits); k.args == 0 {
			return p.one(at, params, flinkSnapshot("Tuple0", 3))
		}
	}
	if p.space(); ok && (lower != "bytes" || strings.HasPrefix(p.text[p.off:], "<")) {
		return p.composite(at, lower, k, params, depth)
	}
	if name, ok := scalarWords[lower]; ok {
		return p.one(at, params, flinkSnapshot(name, 3))
	}
	return p.fail(at, "unknown type %q", word)
}

// one returns the type of a word that has no parameters.
func (p *typeParser) one(at int, params []int32, s *Snapshot) *Snapshot {
	if params != nil {
		return p.fail(at, "this type has no parameters")
	}
	return s
}

// composite reads the arguments of a word.
func (p *typeParser) composite(at int, word string, k wordType, params []int32, depth int) *Snapshot {
	s := flinkSnapshot(k.snapshot, k.version, p.args(depth)...)
	s.mark = k.mark
	if p.err != nil {
		return nil
	}
	switch {
	case k.args == -2 && len(s.Nested) == 1:
		return p.one(at, params, ttlType(s.Nested[0]))
	case k.args == -1 && len(s.Nested) > 0, k.args == len(s.Nested):
	default:
		want := "one or more types"
		if k.args > 0 {
			want = strconv.Itoa(k.args)
		}
		return p.fail(at, "%s has %d types in <>, expected %s", word, len(s.Nested), want)
	}
	switch {
	case word == "nullable" && len(params) <= 1 && (len(params) == 0 || params[0] >= 0):
		s.numbers = append(params, 0)[:1]
	case word == "row" && len(params) == 1 && params[0] == 0: // without a kind
		s.Version, s.mark = 2, false
	case params != nil:
		return p.fail(at, "the parameters of %s are not valid", word)
	}
	return s
}

// params reads numbers in parentheses; nil if the next text is not one.
func (p *typeParser) params() (all []int32) {
	if !p.next('(') {
		return nil
	}
	for p.err == nil {
		p.space()
		at := p.off
		n, err := strconv.ParseInt(p.name(), 10, 32)
		if err != nil {
			p.fail(at, "expected a number")
			return nil
		}
		if all = append(all, int32(n)); !p.next(',') {
			break
		}
	}
	p.need(')', "the parameters of a type")
	return all
}

// args reads types in <>.
func (p *typeParser) args(depth int) (all []*Snapshot) {
	if !p.next('<') {
		return nil
	}
	for p.err == nil {
		if all = append(all, p.typ(depth+1)); !p.next(',') {
			break
		}
	}
	p.need('>', "a type")
	return all
}

// class reads a class, which can be left out.
func (p *typeParser) class() string { return p.name() }

// members reads names in {}, with types or without.
func (p *typeParser) members(depth int, typed bool, what string) (names []string, parts []*Snapshot) {
	at := p.off
	if !p.need('{', what) {
		return nil, nil
	}
	for p.err == nil && !p.next('}') {
		p.space()
		from := p.off
		name := p.name()
		if name == "" && p.off == from {
			p.fail(p.off, "expected a name")
			return nil, nil
		}
		names = append(names, name)
		if typed {
			if p.need(':', "the name of a field") {
				parts = append(parts, p.typ(depth+1))
			}
		}
		if !p.next(',') {
			p.need('}', "the members of "+what)
			break
		}
	}
	if hasDuplicates(names) {
		p.fail(at, "a name occurs twice")
	}
	return names, parts
}

func (p *typeParser) pojo(depth int) *Snapshot {
	s := flinkSnapshot("Pojo", 2)
	s.Type = p.class()
	s.Names, s.Nested = p.members(depth, true, "pojo")
	return s
}

// format reads what follows the word of a format.
func (p *typeParser) format(at int, word string, f func(string) (value.Codec, error)) *Snapshot {
	var argument string
	if p.off++; p.off < len(p.text) && p.text[p.off] == '"' {
		argument = p.name()
	} else {
		rest := p.text[p.off:]
		n := strings.IndexFunc(rest, endsArgument)
		if n < 0 {
			n = len(rest)
		}
		argument = rest[:n]
		p.off += n
	}
	if p.err != nil {
		return nil
	}
	c, err := f(argument)
	switch {
	case err == nil:
	case errors.Is(err, format.ErrUnsupported):
		return p.fail(at, "%v", err)
	default: // of a file
		p.err = err
		return nil
	}
	if strings.ContainsFunc(argument, endsArgument) || strings.HasPrefix(argument, `"`) {
		argument = strconv.Quote(argument)
	}
	return Given(word+":"+argument, c)
}

// endsArgument reports whether an argument without quotes ends at r.
func endsArgument(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(",<>{}()", r)
}

// Given returns the serializer snapshot of values that a codec which is not Flink's
// reads. name is the name of the type. The values are a payload: they take all bytes
// that they are given.
func Given(name string, c value.Codec) *Snapshot {
	if own, ok := c.(exported); ok {
		return &Snapshot{Class: name, given: own.codec}
	}
	return &Snapshot{Class: name, given: foreign{c}}
}

// IsPayload reports whether values take all bytes that they are given.
func (s *Snapshot) IsPayload() bool { return s.given != nil }

// InBytes returns the serializer snapshot of byte arrays of Flink that contain a value
// of s each.
func InBytes(s *Snapshot) *Snapshot { return flinkSnapshot("RawValueData", 0, s) }

// sqlScalar reads decimal(10,2) or timestamp(3) as serializers of Flink SQL.
func (p *typeParser) sqlScalar(at int, word string, params []int32) *Snapshot {
	t := p.sqlParams(at, &logical{class: sqlWords[word]}, params)
	if t == nil {
		return nil
	}
	if word == "decimal" {
		s := flinkSnapshot("Decimal", 3)
		s.numbers = []int32{t.precision, t.scale}
		return s
	}
	s := flinkSnapshot("TimestampData", 1)
	s.numbers = []int32{t.precision}
	return s
}

// sqlParams adds the parameters of a type of SQL.
func (p *typeParser) sqlParams(at int, t *logical, params []int32) *logical {
	within := func(n, low, high int32) bool {
		if n < low || n > high {
			p.fail(at, "%d is not within %d to %d", n, low, high)
			return false
		}
		return true
	}
	switch {
	case t.class == "DecimalType" && len(params) == 2:
		if !within(params[0], 1, maxPrecision) || !within(params[1], 0, params[0]) {
			return nil
		}
		t.precision, t.scale = params[0], params[1]
	case t.class == "DecimalType":
		p.fail(at, "expected decimal(PRECISION, SCALE)")
		return nil
	case strings.Contains(t.class, "Timestamp"):
		if t.precision = 6; len(params) > 1 || len(params) == 1 && !within(params[0], 0, 9) {
			p.fail(at, "expected one precision")
			return nil
		}
		if len(params) == 1 {
			t.precision = params[0]
		}
	case params != nil:
		p.fail(at, "this type has no parameters")
		return nil
	}
	return t
}

// sqlData reads the arguments of rowdata, arraydata or mapdata.
func (p *typeParser) sqlData(word string, depth int) *Snapshot {
	class := map[string]string{"rowdata": "RowData", "arraydata": "ArrayData", "mapdata": "MapData"}[word]
	at := p.off
	t := p.sqlParts(&logical{class: map[string]string{"rowdata": "RowType", "arraydata": "ArrayType", "mapdata": "MapType"}[word]}, at, depth)
	if t == nil {
		return nil
	}
	s := flinkSnapshot(class, 3)
	s.sql, s.Names = t.parts, t.names
	return s
}

// sqlParts reads the parts of a type of SQL.
func (p *typeParser) sqlParts(t *logical, at, depth int) *logical {
	want := map[string]int{"ArrayType": 1, "MultisetType": 1, "MapType": 2}[t.class]
	switch p.space(); {
	case t.class == "RowType" && strings.HasPrefix(p.text[p.off:], "{"):
		p.off++
		for p.err == nil && !p.next('}') {
			name := p.name()
			if !p.need(':', "the name of a field") {
				return nil
			}
			t.names, t.parts = append(t.names, name), append(t.parts, p.sql(depth+1))
			if !p.next(',') {
				p.need('}', "the fields of a row")
				break
			}
		}
		if hasDuplicates(t.names) {
			p.fail(at, "a name occurs twice")
		}
	case p.next('<'):
		for p.err == nil {
			if t.parts = append(t.parts, p.sql(depth+1)); !p.next(',') {
				break
			}
		}
		p.need('>', "a type")
	}
	if p.err == nil && (want > 0 && len(t.parts) != want || len(t.parts) == 0) {
		p.fail(at, "expected %s types, found %d", map[int]string{0: "one or more", 1: "1", 2: "2"}[want], len(t.parts))
	}
	if p.err != nil {
		return nil
	}
	return t
}

// sql reads a type of SQL.
func (p *typeParser) sql(depth int) *logical {
	if depth > maxLogicalDepth {
		p.fail(p.off, "types nested more than %d deep", maxLogicalDepth)
	}
	if p.err != nil {
		return nil
	}
	p.space()
	at := p.off
	word := p.name()
	class, ok := sqlWords[strings.ToLower(word)]
	if !ok {
		p.fail(at, "unknown SQL type %q; known: %s", word, strings.Join(slices.Sorted(maps.Keys(sqlWords)), ", "))
		return nil
	}
	t := p.sqlParams(at, &logical{class: class}, p.params())
	if t == nil || scalarTypes[class] != nil || t.typeOf() != nil {
		return t
	}
	return p.sqlParts(t, at, depth)
}
