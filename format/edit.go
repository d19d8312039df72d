package format

// The functions below copy the path to a change and share the rest of the tree. The
// callback f returns its argument to keep a node. If f changes nothing, the result
// is the receiver itself. The first error of f ends the edit.

// MapOperators returns the savepoint with each operator replaced by the result of
// f. An operator for which f returns nil is removed.
func (sp *Savepoint) MapOperators(f func(*Operator) (*Operator, error)) (*Savepoint, error) {
	ops, err := mapKept(sp.Operators, func(op *Operator) (*Operator, error) {
		out, err := f(op)
		return out, At(err, "operator %q", op.Label())
	})
	if err != nil {
		return nil, err
	}
	return sp.withOperators(ops), nil
}

// withOperators returns sp with the operators that mapSlice returned for
// sp.Operators: sp itself if nothing changed.
func (sp *Savepoint) withOperators(ops []*Operator) *Savepoint {
	if same(ops, sp.Operators) {
		return sp
	}
	c := *sp
	c.Operators = ops
	return &c
}

// MapSubtasks returns the operator with each subtask replaced by the result of f. A
// subtask for which f returns nil is removed.
func (op *Operator) MapSubtasks(f func(*Subtask) (*Subtask, error)) (*Operator, error) {
	subs, err := mapKept(op.Subtasks, func(sub *Subtask) (*Subtask, error) {
		out, err := f(sub)
		return out, At(err, "subtask %d", sub.Index)
	})
	if err != nil {
		return nil, err
	}
	if same(subs, op.Subtasks) {
		return op, nil
	}
	c := *op
	c.Subtasks = subs
	return &c, nil
}

// MapManaged returns the operator with each handle of managed operator state
// replaced by the result of f, which may be nil. f is not called for nil handles.
func (op *Operator) MapManaged(f func(*OperatorHandle) (*OperatorHandle, error)) (*Operator, error) {
	return op.MapSubtasks(func(sub *Subtask) (*Subtask, error) {
		if sub.Managed == nil {
			return sub, nil
		}
		h, err := f(sub.Managed)
		if err != nil || h == sub.Managed {
			return sub, err
		}
		c := *sub
		c.Managed = h
		return &c, nil
	})
}

// EachKeyed calls f with a keyed handle and then with the handles in it, such as
// the materialized state and the changes of a changelog. It skips nil handles.
func EachKeyed(h KeyedHandle, f func(KeyedHandle)) {
	if h == nil {
		return
	}
	f(h)
	if c, ok := h.(*Changelog); ok {
		for _, list := range [][]KeyedHandle{c.Materialized, c.Changes} {
			for _, inner := range list {
				EachKeyed(inner, f)
			}
		}
	}
}

// mapKept is mapSlice that removes the nodes for which f returns nil.
func mapKept[T any](in []*T, f func(*T) (*T, error)) ([]*T, error) {
	out, err := mapSlice(in, f)
	if err != nil || same(out, in) {
		return out, err
	}
	kept := out[:0]
	for _, x := range out {
		if x != nil {
			kept = append(kept, x)
		}
	}
	return kept, nil
}
