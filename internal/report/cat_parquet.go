package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/columns"
	"github.com/savepoint-tools/spt/internal/ui"
)

// CatTypes are the types of the elements and entries of a state, or of several: of the
// columns that they are written in.
type CatTypes struct {
	Elements, Keyed, Timers        bool // what there is
	Key, Namespace, UserKey, Value CatType
	TTL                            CatType
}

// CatType is the type of a part of elements or entries.
type CatType struct {
	Has bool
	// Type is nil if the part is not decoded.
	Type *types.Type
}

// partOf returns the type of a part; t is nil if the state does not have it.
func partOf(t *types.Type) (c CatType) {
	if t == nil {
		return c
	}
	c = CatType{Has: true, Type: t}
	t.Each(func(p *types.Type) {
		if p.Kind == types.TypeNotDecoded { // then no part of it is
			c.Type = nil
		}
	})
	return c
}

// UnknownTypes are the types of a state that records none: its values are JSON.
func UnknownTypes(kind string, keyed bool) CatTypes {
	any := CatType{Has: true, Type: typeJSON}
	switch {
	case kind == "broadcast":
		return CatTypes{Elements: true, Key: any, Value: any}
	case !keyed:
		return CatTypes{Elements: true, Value: any}
	}
	t := CatTypes{Keyed: true, Timers: kind == types.Timers, Key: any, Namespace: any, UserKey: any}
	if !t.Timers {
		t.Value, t.TTL = any, any
	}
	return t
}

// Types returns the types of what cat prints of a state: several if they differ between
// subtasks.
func (st *SchemaState) Types(op *SchemaOperator) (all []CatTypes) {
	t := CatTypes{Elements: !st.Keyed, Keyed: st.Keyed, Timers: st.of.Keyed == types.Timers, Value: partOf(st.element())}
	if !st.Keyed {
		t.Key = partOf(st.of.UserKey)
		return append(all, t)
	}
	t.Key, t.Namespace, t.UserKey = CatType{true, typeJSON}, partOf(st.of.Namespace), partOf(st.of.UserKey)
	if st.of.Parts().Namespace == nil { // Flink before 1.8 does not record it with timers
		t.Namespace = CatType{true, typeJSON}
	}
	if st.TTL {
		t.TTL = partOf(typeNumber)
		if st.of.Keyed == "list" {
			t.TTL = partOf(&types.Type{Kind: types.TypeList, Parts: []*types.Type{typeNumber}})
		}
	}
	for _, k := range op.keys {
		t.Key = partOf(k)
		all = append(all, t)
	}
	if len(all) == 0 {
		all = append(all, t)
	}
	return all
}

// TypesDiffer is the error for a part that has two types.
type TypesDiffer struct {
	Part  string    // "values"
	Types [2]string // in the type language
}

// Error implements error.
func (e *TypesDiffer) Error() string {
	return "the types of " + e.Part + " differ: " + e.Types[0] + " and " + e.Types[1]
}

// Add adds the types of another state. If a part has another type there, it returns a
// *TypesDiffer, and t is as before.
func (t *CatTypes) Add(o CatTypes) error {
	sum := *t
	for _, p := range []struct {
		name string
		to   *CatType
		of   CatType
	}{
		{"keys", &sum.Key, o.Key}, {"namespaces", &sum.Namespace, o.Namespace}, {"map keys", &sum.UserKey, o.UserKey}, {"values", &sum.Value, o.Value}, {"times of update", &sum.TTL, o.TTL},
	} {
		switch {
		case p.to.Type == nil:
			p.to.Type = p.of.Type
		case p.of.Type != nil && !columns.Same(p.to.Type, p.of.Type):
			return &TypesDiffer{p.name, [2]string{p.to.Type.Short(nil), p.of.Type.Short(nil)}}
		}
		p.to.Has = p.to.Has || p.of.Has
	}
	sum.Elements, sum.Keyed, sum.Timers = t.Elements || o.Elements, t.Keyed || o.Keyed, t.Timers || o.Timers
	*t = sum
	return nil
}

// WithoutValues returns the types of keys.
func (t CatTypes) WithoutValues() CatTypes {
	t.UserKey, t.Value, t.TTL = CatType{}, CatType{}, CatType{}
	return t
}

// fields are the columns of elements and entries.
func (o *CatOptions) fields() fields[CatItem] {
	type item = CatItem
	t := &o.Types
	all := fields[item]{
		textField("operator", func(it *item) string { return it.State.Operator }),
		textField("id", func(it *item) string { return it.State.ID }),
		textField("state", func(it *item) string { return it.State.Name }),
		textField("kind", func(it *item) string { return it.State.Kind }),
		numberField("subtask", func(it *item) int32 { return it.Subtask }),
	}
	if t.Elements {
		all = append(all, maybeField("index", func(it *item) *int64 {
			if it.Keyed != nil {
				return nil
			}
			return &it.Index
		}))
	}
	all = append(all, numberField("size", (*item).size))
	if o.Distinct {
		all = append(all, numberField("count", func(it *item) int64 { return it.Count }))
	}
	if t.Keyed {
		all = append(all, maybeField("key_group", func(it *item) *int32 {
			if it.Keyed == nil {
				return nil
			}
			return &it.Keyed.KeyGroup
		}))
		all = append(all, o.storedField("stored", func(it *item) CatPart {
			if it.Keyed == nil {
				return CatPart{}
			}
			return CatPart{Has: it.Keyed.Stored != nil, Stored: it.Keyed.Stored}
		}))
	}
	parts := o.parts()
	for _, p := range parts[:3] {
		all = append(all, o.partFields(p)...)
	}
	if t.Timers {
		all = append(all, maybeField("time", func(it *item) *int64 {
			if !it.keyed().Timer {
				return nil
			}
			return &it.Keyed.Time
		}))
	}
	if t.TTL.Has && o.Decode() {
		all = append(all, field[item]{"ttl_timestamp", t.TTL.Type, func(it *item) value.Value { return it.keyed().ttl }})
	}
	return append(all, o.partFields(parts[3])...)
}

// catPart is a part of elements and entries, and where it is.
type catPart struct {
	CatType
	name string
	of   func(*CatItem) CatPart
}

// parts are the parts that are columns: key, namespace, map key and value.
func (o *CatOptions) parts() [4]catPart {
	t := &o.Types
	return [4]catPart{
		{t.Key, "key", (*CatItem).key},
		{t.Namespace, "namespace", func(it *CatItem) CatPart { return it.keyed().Namespace }},
		{t.UserKey, "user_key", func(it *CatItem) CatPart { return it.keyed().UserKey }},
		{t.Value, "value", (*CatItem).value},
	}
}

// noEntry is in place of what an element does not have.
var noEntry CatKeyed

func (it *CatItem) keyed() *CatKeyed {
	if it.Keyed == nil {
		return &noEntry
	}
	return it.Keyed
}

func (it *CatItem) key() CatPart {
	if it.Keyed != nil {
		return it.Keyed.Key
	}
	return CatPart{Has: it.Entry, Decoded: true, Value: it.Key}
}

func (it *CatItem) value() CatPart {
	if it.Keyed != nil {
		return it.Keyed.Value
	}
	return CatPart{Has: true, Decoded: it.Decoded, Stored: it.Stored, Value: it.Value}
}

// partFields are the columns of a part: one with the value, if it is decoded, and one
// with the bytes where it is not.
func (o *CatOptions) partFields(part catPart) (all fields[CatItem]) {
	if !part.Has {
		return nil
	}
	if part.Type != nil && o.Decode() {
		all = append(all, field[CatItem]{part.name, part.Type, func(it *CatItem) value.Value {
			if p := part.of(it); p.Has && p.Decoded {
				return p.Value
			}
			return value.Null()
		}})
	}
	return append(all, o.storedField(part.name, part.of))
}

// storedField is the column of a part as it is stored; with --format redacted, of its
// length and hash.
func (o *CatOptions) storedField(name string, part func(*CatItem) CatPart) field[CatItem] {
	redacted := o.Format == ui.FormatRedacted
	f := field[CatItem]{name, typeBytes, func(it *CatItem) value.Value {
		switch p := part(it); {
		case !p.Has || p.Decoded && o.Decode():
			return value.Null()
		case redacted:
			return value.String(ui.Value(p.Stored, ui.FormatRedacted, 0))
		default:
			return value.Bytes(p.Stored)
		}
	}}
	switch {
	case redacted:
		f.name, f.typ = name+"_redacted", typeText
	case name != "stored":
		f.name += "_stored"
	}
	return f
}

// catParquet writes a Parquet file.
type catParquet struct {
	CatOptions
	all   fields[CatItem]
	parts [4]catPart
	cells []value.Value
	out   *bufio.Writer
	w     *columns.Writer
	err   error // of making w
}

func newCatParquet(w io.Writer, o CatOptions) *catParquet {
	t := &catParquet{CatOptions: o, all: o.fields(), parts: o.parts(), out: bufio.NewWriterSize(w, 64<<10)}
	all := t.all.columns()
	for i := range all {
		switch all[i].Name {
		case "operator", "id", "state", "kind":
			all[i].Few = true
		}
	}
	t.cells = make([]value.Value, len(all))
	t.w, t.err = columns.NewWriter(t.out, all)
	return t
}

func (t *catParquet) Item(it *CatItem) error {
	if t.err != nil {
		return t.err
	}
	for _, part := range t.parts {
		if p := part.of(it); p.Has && p.Decoded && t.Decode() && part.Type == nil && !p.Value.IsNull() {
			return fmt.Errorf("internal error: the %s of an entry of %q is decoded, and its type is not known", part.name, it.State.Name)
		}
	}
	for i := range t.all {
		t.cells[i] = t.all[i].cell(it)
	}
	err := t.w.Row(t.cells)
	if it.Keyed == nil {
		err = format.At(err, "%d", it.Index)
	}
	return format.At(format.At(err, "subtask %d", it.Subtask), "state %q", it.State.Name)
}

func (t *catParquet) End(whole bool) error {
	if t.err != nil || !whole {
		return t.err
	}
	if err := t.w.Close(); err != nil {
		return err
	}
	return t.out.Flush()
}
