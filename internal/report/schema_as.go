package report

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/schema"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Languages of schema --as.
const (
	AsAvro       = "avro"
	AsJSONSchema = "jsonschema"
	AsSQL        = "sql"
)

// SchemaText is the answer of schema --as: a schema for each state, or the statement for
// an operator.
type SchemaText struct {
	Schemas []StateSchema
}

// StateSchema is the schema of a state in another language.
type StateSchema struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	State    string `json:"state"`
	Schema   any    `json:"schema"`
}

// As returns the schemas of all states in Avro or JSON Schema.
func (s *Schema) As(language string) *SchemaText {
	out := &SchemaText{Schemas: []StateSchema{}}
	s.Each(func(op *SchemaOperator, st *SchemaState) {
		row := StateSchema{Operator: op.Operator, ID: op.ID, State: st.State}
		if language == AsAvro {
			row.Schema = st.avro(op)
		} else {
			row.Schema = st.jsonSchema(op)
		}
		out.Schemas = append(out.Schemas, row)
	})
	if language == AsJSONSchema {
		for _, op := range s.coordinators {
			out.Schemas = append(out.Schemas, StateSchema{Operator: op.Operator, ID: op.ID, Schema: coordinatorSchema(&op)})
		}
	}
	return out
}

// element returns the type of what cat prints as the value of the state: of keyed list
// state the whole list.
func (st *SchemaState) element() *types.Type {
	v := st.of.Value
	if st.Keyed { // the time is a member of its own
		v = userValue(v)
	}
	if st.Connector != "" {
		return &types.Type{Kind: types.TypeAny}
	}
	if v != nil && st.of.Keyed == "list" {
		return &types.Type{Kind: types.TypeList, Parts: []*types.Type{v}}
	}
	if v != nil && st.of.Keyed == "map" {
		return &types.Type{Kind: types.TypeOptional, Parts: []*types.Type{v}}
	}
	return v
}

// avro returns the schema of the elements of a state; of a state with keys, of records
// of key, namespace, map key and value.
func (st *SchemaState) avro(op *SchemaOperator) any {
	entry := &types.Type{Kind: types.TypeRecord}
	add := func(name string, t *types.Type) {
		if t != nil {
			entry.Names, entry.Parts = append(entry.Names, name), append(entry.Parts, t)
		}
	}
	if st.Keyed && len(op.keys) > 0 {
		add("key", op.keys[0])
	}
	add("namespace", st.of.Namespace)
	add("user_key", st.of.UserKey)
	if len(entry.Parts) == 0 && st.of.Value != nil && st.Connector == "" {
		return schema.Avro(st.of.Value, st.State)
	}
	if st.of.Keyed == types.Timers {
		add("timestamp", &types.Type{Kind: types.TypeInt, Bits: 64})
	}
	add("value", st.element())
	return schema.Avro(entry, st.State)
}

// jsonSchema returns the schema of the lines of cat for a state.
func (st *SchemaState) jsonSchema(op *SchemaOperator) any {
	l := newLineSchema(op, st.State, st.Kind)
	switch {
	case st.Keyed:
		if len(op.keys) == 1 {
			l.add("key", op.keys[0])
		}
		l.add("namespace", st.of.Namespace)
		l.add("user_key", st.of.UserKey)
	default:
		l.add("key", st.of.UserKey)
	}
	if structures, ok := connector.ElementTypes(st.of.Name.String()); ok && st.Connector != "" {
		return l.end(l.define(structures, st.of.Value))
	}
	return l.end(st.element())
}

// coordinatorSchema returns the schema of the line of cat for the state of a coordinator.
func coordinatorSchema(op *SchemaOperator) any {
	l := newLineSchema(op, "", "coordinator")
	return l.end(l.define(connector.CoordinatorTypes(""), nil))
}

// lineSchema is the schema of lines of cat under construction.
type lineSchema struct {
	title      string
	properties schema.Object
	values     schema.JSONDocument
}

func newLineSchema(op *SchemaOperator, state, kind string) *lineSchema {
	constant := func(v any) schema.Object { return schema.Object{{Name: "const", Value: v}} }
	return &lineSchema{title: op.Operator + "/" + state, properties: schema.Object{}.With("operator", constant(op.Operator)).With("id", constant(op.ID)).With("state", constant(state)).With("kind", constant(kind))}
}

func (l *lineSchema) add(name string, t *types.Type) {
	if t != nil {
		l.properties = l.properties.With(name, l.values.Of(t))
	}
}

// define adds the structures of a connector, and returns the type of an element of it or
// of another type, which may be nil.
func (l *lineSchema) define(structures *connector.Types, other *types.Type) *types.Type {
	for _, def := range structures.Defs {
		l.values.Define(def.Name, def.Type)
	}
	if other == nil {
		return structures.Of
	}
	return &types.Type{Kind: types.TypeChoice, Parts: []*types.Type{structures.Of, other}}
}

// end returns the schema of lines with values of a type, which is nil if they are not
// decoded.
func (l *lineSchema) end(value *types.Type) any {
	l.add("value", value)
	out := schema.Object{}.With("$schema", schema.Draft).With("title", l.title).With("type", "object")
	out = out.With("properties", l.properties.With("value_base64", schema.Object{{Name: "type", Value: "string"}})).With("required", []string{"operator", "id", "state", "kind"})
	if value != nil {
		need := func(name string) schema.Object { return schema.Object{{Name: "required", Value: []string{name}}} }
		out = out.With("oneOf", []any{need("value"), need("value_base64")})
	}
	if defs := l.values.Defs(); defs != nil {
		out = out.With("$defs", defs)
	}
	return out
}

// Document implements [Report].
func (s *SchemaText) Document() *ui.Document {
	var d ui.Document
	for i := range s.Schemas {
		if text, ok := s.Schemas[i].Schema.(string); ok {
			d.Line("%s", strings.TrimSuffix(text, "\n"))
			continue
		}
		text, err := json.MarshalIndent(s.Schemas[i].Schema, "", "  ")
		if err != nil {
			panic("internal error: " + err.Error()) // it is made of JSON
		}
		d.Line("%s", unescaped(text))
	}
	return &d
}

// unescaped returns JSON without the escapes of HTML that encoding/json adds.
func unescaped(text []byte) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(text))
}

// JSON implements [JSON].
func (s *SchemaText) JSON() any { return s.Schemas }

// Lines implements [Lines].
func (s *SchemaText) Lines() iter.Seq[any] { return each(s.Schemas) }

// SQL returns the statement that creates a table of the keyed states of the operator, or
// nil if it has none that a table can have. Path is the URI of the snapshot's directory,
// uid the uid of the operator, if it is known.
func (s *Schema) SQL(op *SchemaOperator, path, uid string) (*SchemaText, error) {
	t := schema.Table{Name: "state_of_" + op.Operator, Path: path, UID: uid, Hash: op.ID}
	if len(op.keys) == 1 {
		t.Key = op.keys[0]
	}
	for i := range op.States {
		st := &op.States[i]
		c := schema.Column{State: st.of.Name.String(), Kind: st.Kind, UserKey: st.of.UserKey, Value: userValue(st.of.Value), TTL: st.TTL}
		why := ""
		switch {
		case !st.Keyed:
			why = "it is operator state"
		case st.Kind == types.Timers:
			why = "the connector does not read timers"
		case st.Kind != "value" && st.Kind != "list" && st.Kind != "map":
			why = "the connector does not read " + st.Kind + " state"
		case st.of.Namespace != nil:
			why = "it has namespaces"
		case st.differ:
			why = "its type differs between subtasks"
		default:
			if err := c.Fits(); err != nil {
				why = err.Error()
			}
		}
		if why != "" {
			t.Left = append(t.Left, st.State+": "+why)
			continue
		}
		t.Columns = append(t.Columns, c)
	}
	if len(t.Columns) == 0 || t.Key == nil {
		return nil, nil
	}
	text, err := t.SQL()
	if err != nil {
		return nil, err
	}
	return &SchemaText{[]StateSchema{{Operator: op.Operator, ID: op.ID, Schema: text}}}, nil
}

// NoTable adds a comment: why an operator has no table.
func (s *SchemaText) NoTable(op *SchemaOperator, why error) {
	s.Schemas = append(s.Schemas, StateSchema{Operator: op.Operator, ID: op.ID, Schema: "-- not in a table: " + op.Operator + ": " + strings.ReplaceAll(why.Error(), "\n", " ") + "\n"})
}
