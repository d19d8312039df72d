package format

// Edits of the tree copy the path to what they change and share the rest. The
// functions below do that once for all of them: f returns its argument where
// nothing changes, and where f changes nothing at all, the result is the argument
// itself. The first error ends an edit.

// MapOperators returns the savepoint with the operators that f returns. Where f
// returns nil, the operator is left out.
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

// withOperators returns sp with operators that mapSlice made of its own: sp itself
// if nothing changed.
func (sp *Savepoint) withOperators(ops []*Operator) *Savepoint {
	if same(ops, sp.Operators) {
		return sp
	}
	c := *sp
	c.Operators = ops
	return &c
}

// MapSubtasks returns the operator with the subtasks that f returns. Where f
// returns nil, the subtask is left out.
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

// MapManaged returns the operator with the handles of managed operator state that
// f returns. f never sees nil, and may return it.
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

// EachKeyed calls f with a keyed handle and then with the handles inside it, such
// as the materialized state and the changes of a changelog. A nil handle is none.
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

// mapKept is mapSlice without the nodes that f made nil.
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
