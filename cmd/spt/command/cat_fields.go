package command

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// fields makes an expression that asks for a field which a record does not have
// fail: the library takes a record for a map, and returns nil. A misspelled name
// would keep or drop everything. Maps of the job's own do give nil.
type fields struct {
	records map[uintptr]bool // the maps of this value that stand for records
	fixed   bool             // a record has all its fields
	patched map[ast.Node]*ast.MemberNode
}

const fetchField = "__field" // what an expression itself does not call

func (f *fields) options() []expr.Option {
	return []expr.Option{expr.Patch(f), expr.Function(fetchField, f.fetch, new(func(any, any) any))}
}

// Visit replaces members by fetch. One that is called is a method.
func (f *fields) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.CallNode:
		if m, ok := f.patched[n.Callee]; ok {
			n.Callee = m
		}
	case *ast.MemberNode:
		if base, ok := n.Node.(*ast.IdentifierNode); ok && base.Value == "$env" {
			return
		}
		if _, named := n.Property.(*ast.StringNode); !named || n.Optional || n.Method {
			return
		}
		call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: fetchField}, Arguments: []ast.Node{n.Node, n.Property}}
		f.patched[call] = n
		ast.Patch(node, call)
	}
}

func (f *fields) fetch(params ...any) (v any, err error) {
	from, name := params[0], params[1].(string)
	m, isMap := from.(map[string]any)
	if !isMap {
		defer func() { // as the library does where it fetches itself
			if e := recover(); e != nil {
				err = fmt.Errorf("%v", e)
			}
		}()
		return runtime.Fetch(from, name), nil
	}
	v, has := m[name]
	_, subclass := m["@class"]
	if has || subclass || !f.records[reflect.ValueOf(m).Pointer()] {
		return v, nil
	}
	if len(m) == 1 && (name == "left" || name == "right") { // the other side of an either
		return nil, nil
	}
	return nil, fmt.Errorf("no field %s; %s", name, oneOf(name, slices.Sorted(maps.Keys(m))))
}

// of is plain of a value, whose records are known then.
func (f *fields) of(v value.Value) any { return plain(v, f.record) }

// next turns to a value of a handle. Maps of Go programs have the fields that
// are set, so what one lacks, another may have.
func (f *fields) next(h *format.OperatorHandle) {
	clear(f.records)
	f.fixed = h.Codec == format.CodecFlink
}

func (f *fields) record(m map[string]any) {
	if f.fixed {
		f.records[reflect.ValueOf(m).Pointer()] = true
	}
}

// plain makes a value one that expressions compare and look into: integers are
// int, byte arrays text of their bytes, records and maps with text for keys are maps.
// record is called with the maps made of records.
func plain(v value.Value, record func(map[string]any)) any {
	switch v.Kind() {
	case value.KindNull:
		return nil
	case value.KindBool:
		return v.Bool()
	case value.KindInt:
		return int(v.Int())
	case value.KindUint, value.KindFloat32, value.KindFloat64, value.KindDecimal:
		return v.Float()
	case value.KindList:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.At(i), record)
		}
		return out
	case value.KindRecord:
		m := make(map[string]any, v.Len())
		if v.Class() != "" {
			m["@class"] = v.Class()
		}
		for i := range v.Len() {
			m[v.Name(i)] = plain(v.At(i), record)
		}
		record(m)
		return m
	case value.KindMap:
		m := make(map[string]any, v.Len())
		for i := range v.Len() {
			k := v.Key(i)
			if _, twice := m[k.Text()]; twice || k.Kind() != value.KindString {
				return plainPairs(v, record)
			}
			m[k.Text()] = plain(v.At(i), record)
		}
		return m
	}
	return v.String()
}

func plainPairs(v value.Value, record func(map[string]any)) []any {
	out := make([]any, v.Len())
	for i := range out {
		out[i] = []any{plain(v.Key(i), record), plain(v.At(i), record)}
	}
	return out
}
