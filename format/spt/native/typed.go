package native

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
)

// Typed reading mirrors writer.Builder: each function names an operator, as
// format.Selector does, and a state, and returns its values as Go values. Values
// are decoded as package msgpack decodes them into T, which cuts off integers and
// fractions that T has no room for. A state that no subtask has is a
// *format.NoMatchError, state that no Go program wrote is format.ErrUnsupported. A
// range loop ends after the first error.

// List returns the elements of a list or union state, subtask by subtask, in
// their order.
func List[T any](ctx context.Context, v format.View, operator, state string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		err := eachManaged(v, operator, state, func(h *format.OperatorHandle, mode format.Mode) error {
			if mode == format.ModeBroadcast {
				return format.Errorf(format.ErrUnsupported, "state %q is broadcast state, which is one map", state)
			}
			return format.EachElement(ctx, v.Source, Codec{}, h, state, func(e format.Element) error {
				var value T
				if err := msgpack.Unmarshal(e.Value, &value); err != nil {
					return format.At(mismatch(err), "state %q/element %d", state, e.Index)
				}
				if !yield(value, nil) {
					return errStop
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(none, err)
		}
	}
}

// Broadcast returns the map of a broadcast state, as the first subtask that has
// one holds it; nil if none does.
func Broadcast[K comparable, V any](ctx context.Context, v format.View, operator, state string) (map[K]V, error) {
	var m map[K]V
	err := eachManaged(v, operator, state, func(h *format.OperatorHandle, mode format.Mode) error {
		if mode != format.ModeBroadcast {
			return format.Errorf(format.ErrUnsupported, "state %q is %v state, not broadcast state", state, mode)
		}
		err := format.EachElement(ctx, v.Source, Codec{}, h, state, func(e format.Element) error {
			return mismatch(msgpack.Unmarshal(e.Value, &m))
		})
		if err == nil {
			err = errStop
		}
		return err
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return m, err
}

// KeyedEntry is one entry of keyed state.
type KeyedEntry[K, V any] struct {
	KeyGroup  int32
	Key       K
	Namespace []byte // msgpack; nil: none
	Value     V
}

// Keyed returns the entries of a keyed state, by key group and then in the order
// of their keys' bytes.
func Keyed[K, V any](ctx context.Context, v format.View, operator, state string) iter.Seq2[KeyedEntry[K, V], error] {
	return func(yield func(KeyedEntry[K, V], error) bool) {
		err := eachKeyed(ctx, v, operator, state, func(h *format.KeyGroups) (int32, bool) { return h.Range.First, true }, func(cur *EntryCursor) error {
			for e, err := range cur.All() {
				if err != nil {
					return err
				}
				if e.State != state {
					continue
				}
				entry, err := keyedEntry[K, V](e)
				if err != nil {
					return err
				}
				if !yield(entry, nil) {
					return errStop
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(KeyedEntry[K, V]{}, err)
		}
	}
}

// Get returns the value of a key without a namespace, and whether there is one. It
// reads the key's group only.
func Get[K, V any](ctx context.Context, v format.View, operator, state string, key K) (value V, found bool, err error) {
	p, err := Marshal(key)
	if err != nil {
		return value, false, err
	}
	op, err := format.Selector{operator}.Operator(v.Savepoint)
	if err != nil {
		return value, false, err
	}
	if op.MaxParallelism < 1 {
		return value, false, format.Errorf(format.ErrCorrupt, "operator %q: max parallelism %d", op.Label(), op.MaxParallelism)
	}
	group := KeyGroup(p, op.MaxParallelism)
	contains := func(h *format.KeyGroups) (int32, bool) {
		return group, group >= h.Range.First && group <= h.Range.Last()
	}
	err = eachKeyed(ctx, v, operator, state, contains, func(cur *EntryCursor) error {
		for e, err := range cur.All() {
			if err != nil {
				return err
			}
			if e.KeyGroup != group {
				break
			}
			if e.State == state && e.Namespace == nil && string(e.Key) == string(p) {
				entry, err := keyedEntry[K, V](e)
				value, found = entry.Value, err == nil
				return err
			}
		}
		return nil
	})
	return value, found, err
}

func keyedEntry[K, V any](e Entry) (KeyedEntry[K, V], error) {
	out := KeyedEntry[K, V]{KeyGroup: e.KeyGroup}
	if e.Namespace != nil {
		out.Namespace = append([]byte(nil), e.Namespace...)
	}
	if err := msgpack.Unmarshal(e.Key, &out.Key); err != nil {
		return out, format.At(mismatch(err), "key group %d/key", e.KeyGroup)
	}
	return out, format.At(mismatch(msgpack.Unmarshal(e.Value, &out.Value)), "key group %d/value", e.KeyGroup)
}

// mismatch is a value of another type than the program expects.
func mismatch(err error) error {
	if err == nil {
		return nil
	}
	return format.Errorf(format.ErrUnsupported, "%v", err)
}

// errStop ends a loop.
var errStop = fmt.Errorf("internal error: a loop that ended")

// eachManaged calls f with every handle that has the state.
func eachManaged(v format.View, operator, state string, f func(*format.OperatorHandle, format.Mode) error) error {
	op, err := format.Selector{operator}.Operator(v.Savepoint)
	if err != nil {
		return err
	}
	var names []string
	for _, sub := range op.Subtasks {
		if sub.Managed == nil {
			continue
		}
		for i := range sub.Managed.States {
			st := &sub.Managed.States[i]
			names = append(names, st.Name.String())
			if st.Name.String() != state {
				continue
			}
			if err := f(sub.Managed, st.Mode); err != nil {
				return within(op, sub, err)
			}
		}
	}
	return found(op, state, names)
}

// found is an error unless a state is among names.
func found(op *format.Operator, state string, names []string) error {
	if slices.Contains(names, state) {
		return nil
	}
	slices.Sort(names)
	return format.At(&format.NoMatchError{What: "state", Want: state, Available: slices.Compact(names)}, "operator %q", op.Label())
}

// eachKeyed calls f with a cursor on every handle of native keyed state that from
// chooses, which also says at which key group it starts. All handles of an operator
// name the same states: where none is chosen, one says whether there is the state.
func eachKeyed(ctx context.Context, v format.View, operator, state string, from func(*format.KeyGroups) (group int32, ok bool), f func(*EntryCursor) error) error {
	op, err := format.Selector{operator}.Operator(v.Savepoint)
	if err != nil {
		return err
	}
	var names []string
	visit := func(h *format.KeyGroups, group int32, f func(*EntryCursor) error) error {
		cur, err := Entries(ctx, v.Source, h, group)
		if err != nil {
			return err
		}
		defer cur.Close() //nolint:errcheck // nothing was written
		for _, st := range cur.States() {
			names = append(names, st.Name)
		}
		return f(cur)
	}
	var other *format.Subtask
	for _, sub := range op.Subtasks {
		if sub.ManagedKeyed == nil {
			continue
		}
		h, ok := sub.ManagedKeyed.(*format.KeyGroups)
		if !ok {
			return within(op, sub, format.Errorf(format.ErrUnsupported, "keyed state that no Go program wrote"))
		}
		group, chosen := from(h)
		if !chosen {
			other = sub
			continue
		}
		if err := visit(h, group, f); err != nil {
			return within(op, sub, err)
		}
	}
	if names == nil && other != nil {
		h := other.ManagedKeyed.(*format.KeyGroups)
		if err := visit(h, h.Range.First, func(*EntryCursor) error { return nil }); err != nil {
			return within(op, other, err)
		}
	}
	return found(op, state, names)
}

// within says where an error is, but of the end of a loop.
func within(op *format.Operator, sub *format.Subtask, err error) error {
	if errors.Is(err, errStop) {
		return err
	}
	return format.At(err, "operator %q/subtask %d", op.Label(), sub.Index)
}
