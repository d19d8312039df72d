package reader

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/ranged"
)

// Schema returns how the managed state of an operator is serialized, as recorded
// in the streams of all its subtasks: the distinct serializer snapshots of each
// state. What cannot be read or decoded is in unread, each with its location. err
// is not about the snapshot: ctx ended, a file changed, or a store is
// unreachable. The changes of a changelog are read to their end: they register states.
// State of Go programs, which has other descriptions, is left out.
func (s *Snapshot) Schema(ctx context.Context, op *format.Operator) (schema types.Schema, unread []error, err error) {
	m := schemaOf{s: s, ctx: ctx}
	for _, sub := range op.Subtasks {
		if err := ctx.Err(); err != nil {
			return m.schema, m.unread, err
		}
		if h := sub.Managed; h != nil && h.Codec == format.CodecFlink {
			states, err := s.src.operators.Schema(ctx, s.src, h)
			m.add(nil, states, err, format.Place{Operator: op, Subtask: sub, Slot: format.SlotManaged})
		}
		m.keyed(sub.ManagedKeyed, format.Place{Operator: op, Subtask: sub, Slot: format.SlotManagedKeyed})
		if m.err != nil {
			return m.schema, m.unread, m.err
		}
	}
	return m.schema, m.unread, ctx.Err()
}

type schemaOf struct {
	s      *Snapshot
	ctx    context.Context
	schema types.Schema
	keys   []types.KeySchema
	unread []error
	err    error
}

// keyed adds the headers of the streams of a keyed handle.
func (m *schemaOf) keyed(h format.KeyedHandle, at format.Place) {
	for _, stream := range keyedHeaders(nil, h) {
		header, err := keyed.ReadHeader(m.ctx, m.s.src, stream)
		if header == nil {
			header = &keyed.Header{}
		}
		if header.Version > 0 && !slices.Contains(m.schema.Keyed, header.Version) {
			m.schema.Keyed = append(m.schema.Keyed, header.Version)
		}
		m.add(header.Key, header.States, err, at)
	}
	if h, ok := h.(*format.Changelog); ok && len(h.Changes) > 0 {
		m.changes(h, at)
	}
}

// changes adds the states that the changes of a changelog register and that no stream
// has. The changes register again what is materialized.
func (m *schemaOf) changes(h *format.Changelog, at format.Place) {
	schema, err := m.s.keyedCodec(at.Operator).Registered(m.ctx, m.s.src, h)
	known := func(st types.StateSchema) bool {
		return slices.ContainsFunc(m.schema.States, func(o types.StateSchema) bool {
			return o.Name == st.Name && o.Keyed != "" && (o.Keyed == types.Timers) == (st.Keyed == types.Timers) && slices.Contains(o.Subtasks, at.Subtask.Index)
		})
	}
	if m.schema.Key != nil {
		schema.Key = nil
	}
	m.add(schema.Key, slices.DeleteFunc(schema.States, known), err, at)
}

func (m *schemaOf) add(key *types.Snapshot, states []types.StateSchema, err error, at format.Place) {
	index := int32(0)
	if at.Subtask != nil {
		index = at.Subtask.Index
	}
	if key != nil {
		m.key(key, index)
	}
	for _, st := range states {
		i := slices.IndexFunc(m.schema.States, func(other types.StateSchema) bool { return sameSchema(&st, &other) })
		if i < 0 {
			i = len(m.schema.States)
			m.schema.States = append(m.schema.States, st)
		}
		m.schema.States[i].Subtasks = addIndex(m.schema.States[i].Subtasks, index)
	}
	switch err = storageKind(err); {
	case err == nil, m.ctx.Err() != nil:
	case errors.Is(err, format.ErrChanged), ranged.Classify(err) == ranged.Transient:
		m.err = err
	default:
		m.unread = append(m.unread, format.At(err, "%v", at))
	}
}

// key adds the key serializer of a stream. Schema.Keys is filled only if there
// are several.
func (m *schemaOf) key(key *types.Snapshot, subtask int32) {
	i := slices.IndexFunc(m.keys, func(k types.KeySchema) bool { return k.Class == key.Class && bytes.Equal(k.Raw, key.Raw) })
	if i < 0 {
		i = len(m.keys)
		m.keys = append(m.keys, types.KeySchema{Snapshot: key})
	}
	m.keys[i].Subtasks = addIndex(m.keys[i].Subtasks, subtask)
	m.schema.Key = m.keys[0].Snapshot
	if len(m.keys) > 1 {
		m.schema.Keys = m.keys
	}
}

// addIndex adds a subtask; subtasks are added in the order of the snapshot.
func addIndex(all []int32, index int32) []int32 {
	if i, found := slices.BinarySearch(all, index); !found {
		return slices.Insert(all, i, index)
	}
	return all
}

func sameSchema(a, b *types.StateSchema) bool {
	return a.Name == b.Name && a.Kind() == b.Kind() && a.Asynchronous == b.Asynchronous && slices.EqualFunc(a.Serializers, b.Serializers, func(x, y types.Serializer) bool {
		if x.Snapshot == nil || y.Snapshot == nil {
			return x.Key == y.Key && x.Snapshot == y.Snapshot
		}
		return x.Key == y.Key && bytes.Equal(x.Snapshot.Raw, y.Snapshot.Raw)
	})
}
