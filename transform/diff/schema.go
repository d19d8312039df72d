package diff

import (
	"bytes"
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// SchemaReport is how the types of states changed from one snapshot to another.
type SchemaReport struct {
	Operators []SchemaOperator // in the order of the new snapshot, then those that were removed
}

// SchemaOperator is how the types of the states of an operator changed. Old or New is nil
// if only one snapshot has the operator.
type SchemaOperator struct {
	Old, New *format.Operator
	Keys     *SchemaPart // nil without keyed state on both sides
	States   []SchemaState
	Unread   [2][]error // see [types.Schemas]
}

// SchemaState is how the types of a state changed. Old or New is nil if only one snapshot
// has the state.
type SchemaState struct {
	Old, New *types.StateSchema
	Parts    []SchemaPart // in the order of the file
}

// State returns the state in the new snapshot, or in the old one.
func (s *SchemaState) State() *types.StateSchema {
	if s.New != nil {
		return s.New
	}
	return s.Old
}

// SchemaPart is how one serializer of a state changed.
type SchemaPart struct {
	What   string // keys, values, namespaces, map keys or timers
	Change types.Change
	Same   bool // the serializer snapshots have the same bytes
}

// Schemas compares the types of the states of two snapshots: whether a job with the types
// of the new one can restore the old one, by the rules of Flink's serializers. Operators
// are matched by id, states by name. If the subtasks of the old snapshot have several
// types, the least compatible one counts.
func Schemas(ctx context.Context, old, now *format.Savepoint, schemas [2]types.Schemas) (*SchemaReport, error) {
	r := &SchemaReport{}
	find := func(sp *format.Savepoint, id format.OperatorID) *format.Operator {
		if i := slices.IndexFunc(sp.Operators, func(op *format.Operator) bool { return op.ID == id }); i >= 0 {
			return sp.Operators[i]
		}
		return nil
	}
	add := func(a, b *format.Operator) error {
		o := SchemaOperator{Old: a, New: b}
		var sides [2]types.Schema
		for i, op := range []*format.Operator{a, b} {
			if op == nil {
				continue
			}
			var err error
			if sides[i], o.Unread[i], err = schemas[i](ctx, op); err != nil {
				return err
			}
		}
		o.compare(sides[0], sides[1])
		r.Operators = append(r.Operators, o)
		return nil
	}
	for _, op := range now.Operators {
		if err := add(find(old, op.ID), op); err != nil {
			return nil, err
		}
	}
	for _, op := range old.Operators {
		if find(now, op.ID) == nil {
			if err := add(op, nil); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// compare compares the states of both sides.
func (o *SchemaOperator) compare(was, now types.Schema) {
	var keys []*types.Snapshot
	for _, k := range now.AllKeys() {
		keys = append(keys, k.Snapshot)
	}
	var old []*types.Snapshot
	for _, k := range was.AllKeys() {
		old = append(old, k.Snapshot)
	}
	if len(old) > 0 && len(keys) > 0 {
		p := comparePart("keys", old, keys)
		o.Keys = &p
	}
	same := func(a, b *types.StateSchema) bool { return a.Name == b.Name && a.Scope() == b.Scope() }
	pick := func(all []types.StateSchema, st *types.StateSchema) (some []*types.StateSchema) {
		for i := range all {
			if same(&all[i], st) {
				some = append(some, &all[i])
			}
		}
		return some
	}
	done := func(st *types.StateSchema) bool {
		return slices.ContainsFunc(o.States, func(s SchemaState) bool { return same(s.State(), st) })
	}
	for _, all := range [][]types.StateSchema{now.States, was.States} {
		for i := range all {
			if st := &all[i]; !done(st) {
				o.States = append(o.States, compareState(pick(was.States, st), pick(now.States, st)))
			}
		}
	}
}

// compareState compares the serializers of a state on both sides.
func compareState(old, now []*types.StateSchema) (s SchemaState) {
	if len(old) > 0 {
		s.Old = old[0]
	}
	if len(now) > 0 {
		s.New = now[0]
	}
	if s.Old == nil || s.New == nil || s.Old.Kind() != s.New.Kind() {
		return s
	}
	for _, k := range s.New.Serializers {
		of := func(all []*types.StateSchema) (some []*types.Snapshot) {
			for _, st := range all {
				some = append(some, st.Serializer(k.Key))
			}
			return some
		}
		s.Parts = append(s.Parts, comparePart(s.New.What(k.Key), of(old), of(now)))
	}
	return s
}

// comparePart compares the serializers of a part on both sides.
func comparePart(what string, old, now []*types.Snapshot) SchemaPart {
	p := SchemaPart{What: what, Same: true}
	for i, was := range old {
		if c := types.CompareBest(was, now); i == 0 || c.Compatibility > p.Change.Compatibility {
			p.Change = c
		}
		p.Same = p.Same && was != nil && slices.ContainsFunc(now, func(n *types.Snapshot) bool { return n != nil && bytes.Equal(n.Raw, was.Raw) })
	}
	return p
}
