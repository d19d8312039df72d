package report

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// Schema is the answer of schema: the types of the states of operators.
type Schema struct {
	Operators []SchemaOperator `json:"operators"`

	coordinators []SchemaOperator // operators whose coordinators have state
	run          *Run
}

// SchemaOperator is the types of the states of an operator.
type SchemaOperator struct {
	Operator string        `json:"operator"`
	ID       string        `json:"id"`
	Keys     []*SchemaType `json:"keys,omitempty" jsonschema:"description=the types of the keys of keyed state; several if subtasks differ"`
	States   []SchemaState `json:"states"`
	Unread   []string      `json:"unread,omitempty" jsonschema:"description=state whose types could not be read"`

	keys []*types.Type
}

// SchemaState is the types of a state.
type SchemaState struct {
	State     string      `json:"state"`
	Kind      string      `json:"kind" jsonschema:"description=list, union, broadcast; of keyed state value, list, map, reducing, aggregating, folding, timers"`
	Keyed     bool        `json:"keyed,omitempty"`
	TTL       bool        `json:"ttl,omitempty" jsonschema:"description=values have a time to live"`
	Type      string      `json:"type" jsonschema:"description=of the values, in the type language; of a map KEY → VALUE"`
	Namespace *SchemaType `json:"namespace,omitempty"`
	UserKey   *SchemaType `json:"user_key,omitempty" jsonschema:"description=of a map or of broadcast state"`
	Value     *SchemaType `json:"value,omitempty" jsonschema:"description=of a list the element; absent for timers"`
	Connector string      `json:"connector,omitempty" jsonschema:"description=what a connector stores in it; its elements are structures of the connector"`
	Subtasks  []int32     `json:"subtasks,omitempty" jsonschema:"description=that have these types, if subtasks differ"`

	of     reader.StateTypes
	differ bool
}

// Is reports whether it is the state of a name and a kind.
func (st *SchemaState) Is(name, kind string, keyed bool) bool {
	return st.Keyed == keyed && st.of.Name.String() == name && st.Kind == kind
}

// SchemaType is a type.
type SchemaType struct {
	Kind       string        `json:"kind" jsonschema:"description=of the JSON of its values"`
	Text       string        `json:"text" jsonschema:"description=in the type language"`
	Class      string        `json:"class,omitempty"`
	Null       bool          `json:"null,omitempty" jsonschema:"description=a value can be null"`
	Fields     []SchemaField `json:"fields,omitempty" jsonschema:"description=of a record, tuple or row; the alternatives of a choice"`
	Element    *SchemaType   `json:"element,omitempty" jsonschema:"description=of a list"`
	Key        *SchemaType   `json:"key,omitempty" jsonschema:"description=of a map"`
	Value      *SchemaType   `json:"value,omitempty" jsonschema:"description=of a map"`
	Constants  []string      `json:"constants,omitempty" jsonschema:"description=of an enum"`
	Subclasses []*SchemaType `json:"subclasses,omitempty"`
	NotDecoded string        `json:"not_decoded,omitempty" jsonschema:"description=why values are not decoded"`
}

// SchemaField is a part of a type.
type SchemaField struct {
	Name string      `json:"name"`
	Type *SchemaType `json:"type"`
}

// NewSchema returns an empty answer.
func (r *Run) NewSchema() *Schema { return &Schema{Operators: []SchemaOperator{}, run: r} }

// Add adds the types of an operator, of the states that keep picks. The state of a
// coordinator has the name "".
func (s *Schema) Add(op *format.Operator, all reader.OperatorTypes, keep func(state string) bool) {
	o := SchemaOperator{Operator: s.run.Label(op), ID: op.ID.String(), States: []SchemaState{}, keys: all.Keys}
	count := map[[2]string]int{}
	for _, st := range all.States {
		count[[2]string{st.Scope(), st.Name.String()}]++
	}
	for _, st := range all.States {
		name := st.Name.String()
		if !keep(name) {
			continue
		}
		row := SchemaState{State: s.run.Text(name), Kind: st.Kind(), Keyed: st.Keyed != "", TTL: st.TTL, Connector: st.Connector, of: st,
			Namespace: s.typ(st.Namespace), UserKey: s.typ(st.UserKey), Value: s.typ(st.Value), differ: count[[2]string{st.Scope(), name}] > 1}
		if row.differ {
			row.Subtasks = st.Subtasks
		}
		row.Type = s.stateText(st, s.text)
		o.States = append(o.States, row)
	}
	if len(o.States) > 0 {
		for _, k := range all.Keys {
			o.Keys = append(o.Keys, s.typ(k))
		}
	}
	for _, err := range all.Unread {
		o.Unread = append(o.Unread, s.run.Hide(err.Error()))
	}
	if len(o.States)+len(o.Unread) > 0 {
		s.Operators = append(s.Operators, o)
	}
	if op.Coordinator != nil && keep("") {
		s.coordinators = append(s.coordinators, o)
	}
}

// text returns a type in the type language; with --format redacted without names.
func (s *Schema) text(t *types.Type) string {
	if s.run.Format == ui.FormatRedacted {
		return t.Short(s.run.Text)
	}
	return t.String()
}

func (s *Schema) short(t *types.Type) string { return t.Short(s.run.Text) }

// stateText returns the type of a state: of a map KEY → VALUE.
func (s *Schema) stateText(st reader.StateTypes, text func(*types.Type) string) string {
	switch {
	case st.Value == nil:
		return st.TypeText(s.run.Text)
	case st.UserKey != nil:
		return text(st.UserKey) + " → " + text(st.Value)
	}
	return text(st.Value)
}

// typ returns a type as it is printed in JSON.
func (s *Schema) typ(t *types.Type) *SchemaType {
	if t == nil {
		return nil
	}
	inner, null := t.Deref()
	out := &SchemaType{Kind: inner.Kind.String(), Text: s.text(t), Class: s.run.Text(inner.Class), Null: null}
	if inner.Why != nil {
		out.NotDecoded = s.run.Hide(inner.Why.Error())
	}
	switch inner.Kind {
	case types.TypeList:
		out.Element = s.typ(inner.Parts[0])
	case types.TypeMap:
		out.Key, out.Value = s.typ(inner.Parts[0]), s.typ(inner.Parts[1])
	case types.TypeEnum:
		for _, name := range inner.Names {
			out.Constants = append(out.Constants, s.run.Text(name))
		}
	default:
		for i, p := range inner.Parts {
			out.Fields = append(out.Fields, SchemaField{s.fieldName(inner, i), s.typ(p)})
		}
	}
	for _, sub := range inner.Subclasses {
		out.Subclasses = append(out.Subclasses, s.typ(sub))
	}
	return out
}

func (s *Schema) fieldName(t *types.Type, i int) string {
	if t.Names != nil {
		return s.run.Text(t.Names[i])
	}
	return strconv.Itoa(i)
}

// Each calls f with every state.
func (s *Schema) Each(f func(op *SchemaOperator, st *SchemaState)) {
	for i := range s.Operators {
		for k := range s.Operators[i].States {
			f(&s.Operators[i], &s.Operators[i].States[k])
		}
	}
}

// Document implements [Report].
func (s *Schema) Document() *ui.Document {
	var d ui.Document
	if len(s.Operators) == 0 {
		d.Line("no managed state written by Flink: nothing to show")
		return &d
	}
	t := ui.NewTable(ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16}, ui.Column{Header: "KIND"}, ui.Column{Header: "TYPE", Shrink: 2, Min: 20}, ui.Column{Header: ""})
	var remarks []string
	for i := range s.Operators {
		op := &s.Operators[i]
		key := ""
		for _, k := range op.keys {
			if len(op.Keys) > 0 {
				key += map[bool]string{true: "keyed by ", false: " or "}[key == ""] + s.short(k)
			}
		}
		t.Row(ui.Quote(op.Operator), "", ui.Printable(key), "")
		if len(op.Keys) > 0 {
			for _, k := range op.keys {
				s.fields(t, 1, k)
			}
		}
		for k := range op.States {
			st := &op.States[k]
			t.Child(1, ui.Quote(st.State), st.Kind, ui.Printable(s.stateShort(st)), st.note(s))
			for _, part := range []*types.Type{st.of.UserKey, userValue(st.of.Value)} {
				if part != nil && st.Connector == "" {
					s.fields(t, 2, part)
				}
			}
			if why := s.notDecoded(st); why != "" {
				remarks = append(remarks, fmt.Sprintf("%s/%s is not decoded: %s", ui.Quote(op.Operator), ui.Quote(st.State), ui.Printable(why)))
			}
		}
		for _, err := range op.Unread {
			remarks = append(remarks, fmt.Sprintf("types of %s not read: %s", ui.Quote(op.Operator), ui.Printable(err)))
		}
	}
	d.Add(t)
	for _, text := range remarks {
		d.Remark("%s", text)
	}
	return &d
}

// userValue returns the type of the value of the user, without the time of its last
// access.
func userValue(t *types.Type) *types.Type {
	if t != nil && t.Word == "ttl" && len(t.Parts) == 2 {
		return t.Parts[1]
	}
	return t
}

// stateShort returns the type of a state for a table.
func (s *Schema) stateShort(st *SchemaState) string {
	of := st.of
	if of.Value = userValue(of.Value); st.Connector != "" {
		return st.Connector
	}
	return s.stateText(of, s.short)
}

// note returns what else is known about a state.
func (st *SchemaState) note(s *Schema) string {
	var all []string
	if st.TTL {
		all = append(all, "TTL")
	}
	if st.of.Namespace != nil {
		all = append(all, "namespace "+ui.Printable(s.short(st.of.Namespace)))
	}
	if st.differ {
		all = append(all, "in "+number.Subtasks(st.of.Subtasks))
	}
	return strings.Join(all, ", ")
}

// notDecoded returns why the values of a state are not decoded, or "".
func (s *Schema) notDecoded(st *SchemaState) (why string) {
	if st.Connector != "" {
		return ""
	}
	for _, t := range []*types.Type{st.of.UserKey, st.of.Value} {
		if t == nil {
			continue
		}
		t.Each(func(p *types.Type) {
			if p.Kind == types.TypeNotDecoded && why == "" {
				why = s.run.Hide(p.Why.Error())
			}
		})
	}
	return why
}

// fields adds rows for the fields of the objects in a type.
func (s *Schema) fields(t *ui.Table, level int, of *types.Type) {
	of, _ = of.Deref()
	row := func(name string, p *types.Type) {
		t.Child(level, ui.Printable(name), "", ui.Printable(s.short(p)), "")
		s.fields(t, level+1, p)
	}
	switch of.Kind {
	case types.TypeRecord:
		if of.Word != "" && of.Word != "pojo" && of.Word != "avro" && of.Word != "rowdata" {
			break // of Flink: its word says what it is
		}
		for i, p := range of.Parts {
			row(s.fieldName(of, i), p)
		}
	case types.TypeList:
		s.fields(t, level, of.Parts[0])
	case types.TypeMap, types.TypeTuple, types.TypeRow, types.TypeChoice:
		if !hasFields(of) {
			break
		}
		for i, p := range of.Parts {
			name := strconv.Itoa(i)
			if of.Kind == types.TypeMap {
				name = []string{"key", "value"}[i]
			}
			row(name, p)
		}
	}
	for _, sub := range of.Subclasses {
		t.Child(level, "subclass", "", ui.Printable(s.short(sub)), "")
		s.fields(t, level+1, sub)
	}
}

// hasFields reports whether a type contains an object.
func hasFields(t *types.Type) (yes bool) {
	t.Each(func(p *types.Type) {
		yes = yes || p.Kind == types.TypeRecord && (p.Word == "pojo" || p.Word == "avro" || p.Word == "rowdata")
	})
	return yes
}

// schemaLine is a state as a line of JSON.
type schemaLine struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	*SchemaState
}

// Lines implements [Lines].
func (s *Schema) Lines() iter.Seq[any] {
	return func(yield func(any) bool) {
		for i := range s.Operators {
			op := &s.Operators[i]
			for k := range op.States {
				if !yield(schemaLine{op.Operator, op.ID, &op.States[k]}) {
					return
				}
			}
		}
	}
}

// Header implements [Rows].
func (s *Schema) Header() []string {
	return []string{"operator", "id", "state", "kind", "ttl", "key", "namespace", "type", "connector", "subtasks"}
}

// Rows implements [Rows].
func (s *Schema) Rows() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for i := range s.Operators {
			op := &s.Operators[i]
			for k := range op.States {
				st := &op.States[k]
				key, namespace, subtasks := "", "", ""
				if st.Keyed && len(op.keys) > 0 {
					key = s.text(op.keys[0])
				}
				if st.of.Namespace != nil {
					namespace = s.text(st.of.Namespace)
				}
				if st.differ {
					subtasks = number.Subtasks(st.of.Subtasks)
				}
				if !yield([]string{op.Operator, op.ID, st.State, st.Kind, strconv.FormatBool(st.TTL), key, namespace, st.Type, st.Connector, subtasks}) {
					return
				}
			}
		}
	}
}
