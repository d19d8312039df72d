package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
)

// Typed reading mirrors writer.Builder: each function takes the operator, as a
// format.Selector element, and the name of a state, and returns its values as Go
// values. Package msgpack decodes them into T, which truncates integers and
// fractions that do not fit. If no subtask has the state, the error is a
// *format.NoMatchError; if the state is not native, it matches
// format.ErrUnsupported. Iterators stop after the first error.

// List returns the elements of a list or union state, subtask by subtask.
func List[T any](ctx context.Context, v format.View, operator, state string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		err := eachManaged(v, operator, state, func(h *format.OperatorHandle, mode format.Mode) error {
			if mode == format.ModeBroadcast {
				return format.Errorf(format.ErrUnsupported, "state %q: expected list or union state, found broadcast state", state)
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

// Broadcast returns the map of a broadcast state, from the first subtask that has
// one; nil if none has.
func Broadcast[K comparable, V any](ctx context.Context, v format.View, operator, state string) (map[K]V, error) {
	var m map[K]V
	err := eachManaged(v, operator, state, func(h *format.OperatorHandle, mode format.Mode) error {
		if mode != format.ModeBroadcast {
			return format.Errorf(format.ErrUnsupported, "state %q: expected broadcast state, found %v state", state, mode)
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

// Keyed returns the entries of a keyed state, by key group and then by the bytes of
// their keys.
func Keyed[K, V any](ctx context.Context, v format.View, operator, state string) iter.Seq2[KeyedEntry[K, V], error] {
	return func(yield func(KeyedEntry[K, V], error) bool) {
		err := eachKeyed(ctx, v, operator, state, format.KeyedSelection{}, func(e format.KeyedEntry) error {
			entry, err := keyedEntry[K, V](e)
			if err == nil && !yield(entry, nil) {
				err = errStop
			}
			return err
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(KeyedEntry[K, V]{}, err)
		}
	}
}

// Get returns the value of a key without a namespace, and whether it exists. It
// reads only the key group of the key.
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
	group := format.KeyGroupRange{First: KeyGroup(p, op.MaxParallelism), Count: 1}
	err = eachKeyed(ctx, v, operator, state, format.KeyedSelection{Groups: group, Key: p}, func(e format.KeyedEntry) error {
		if e.Namespace != nil {
			return nil
		}
		entry, err := keyedEntry[K, V](e)
		if err == nil {
			value, found, err = entry.Value, true, errStop
		}
		return err
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return value, found, err
}

func keyedEntry[K, V any](e format.KeyedEntry) (KeyedEntry[K, V], error) {
	out := KeyedEntry[K, V]{KeyGroup: e.KeyGroup}
	if e.Namespace != nil {
		out.Namespace = append([]byte(nil), e.Namespace...)
	}
	if err := msgpack.Unmarshal(e.Key, &out.Key); err != nil {
		return out, format.At(mismatch(err), "key group %d/key", e.KeyGroup)
	}
	return out, format.At(mismatch(msgpack.Unmarshal(e.Value, &out.Value)), "key group %d/value", e.KeyGroup)
}

// mismatch returns the error for a value of another type than T.
func mismatch(err error) error {
	if err == nil {
		return nil
	}
	return format.Errorf(format.ErrUnsupported, "%v", err)
}

// errStop ends an iteration.
var errStop = fmt.Errorf("internal error: iteration stopped")

// eachManaged calls f with each handle that has the state.
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

// found returns an error unless names contains the state.
func found(op *format.Operator, state string, names []string) error {
	if slices.Contains(names, state) {
		return nil
	}
	slices.Sort(names)
	return format.At(&format.NoMatchError{What: "state", Want: state, Available: slices.Compact(names)}, "operator %q", op.Label())
}

// eachKeyed calls f with the selected entries of a state. All handles of an
// operator have the same states: if no handle has a selected key group, any handle
// shows whether the state exists.
func eachKeyed(ctx context.Context, v format.View, operator, state string, sel format.KeyedSelection, f func(format.KeyedEntry) error) error {
	op, err := format.Selector{operator}.Operator(v.Savepoint)
	if err != nil {
		return err
	}
	var names []string
	visit := func(h format.KeyedHandle, sel format.KeyedSelection, f func(format.KeyedEntry) error) error {
		cur, err := openKeyed(ctx, v.Source, h, sel)
		if err != nil {
			return err
		}
		defer cur.Close() //nolint:errcheck // nothing was written
		for i, st := range cur.states {
			names = append(names, st.Name)
			if st.Name == state {
				cur.sel.States = []int{i}
			}
		}
		if cur.sel.States == nil || f == nil {
			return nil
		}
		for n := 0; ; n++ {
			e, err := cur.Next()
			if err == io.EOF {
				return nil
			}
			if err == nil && n%4096 == 0 {
				err = ctx.Err()
			}
			if err == nil {
				err = f(e)
			}
			if err != nil {
				return err
			}
		}
	}
	var other *format.Subtask
	for _, sub := range op.Subtasks {
		if sub.ManagedKeyed == nil {
			continue
		}
		if r := sub.ManagedKeyed.KeyGroups(); sel.Groups.Count > 0 && (sel.Groups.Last() < r.First || sel.Groups.First > r.Last()) {
			other = sub
			continue
		}
		if err := visit(sub.ManagedKeyed, sel, f); err != nil {
			return within(op, sub, err)
		}
	}
	if names == nil && other != nil {
		if err := visit(other.ManagedKeyed, format.KeyedSelection{}, nil); err != nil {
			return within(op, other, err)
		}
	}
	return found(op, state, names)
}

// within returns err with the path of a subtask; errStop is returned unchanged.
func within(op *format.Operator, sub *format.Subtask, err error) error {
	if errors.Is(err, errStop) {
		return err
	}
	return format.At(err, "operator %q/subtask %d", op.Label(), sub.Index)
}
