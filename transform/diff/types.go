package diff

import (
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/number"
)

// types compares the serializer snapshots of a state in all subtasks, if both
// streams have the same encoding: another release or compression writes the same
// types as different bytes.
func (d *differ) types(o *Operator, st *State) error {
	if d.o.Ignore[KindTypes] || st.Old.Kind != st.New.Kind {
		return nil
	}
	old, err := d.envelopes(d.a, o.oldRead, st.Old)
	if err != nil {
		return format.InFile(err, d.a.Location)
	}
	now, err := d.envelopes(d.b, o.newRead, st.New)
	if err != nil {
		return format.InFile(err, d.b.Location)
	}
	gone, come := onlyIn(old, now), onlyIn(now, old)
	switch whole := old.whole || now.whole; {
	case len(gone)+len(come) == 0:
		return nil
	case whole && !sameStates(o):
		return nil // reported as a difference, which explains this one
	case whole && len(o.States) > 1:
		d.add(KindTypes, o, st, "the serializer snapshots of this and other states changed, and cannot be separated")
		return nil
	case len(gone) == old.handles() && len(come) == now.handles():
		gone, come = nil, nil
	}
	d.add(KindTypes, o, st, "its serializer snapshot changed%s", changedIn(gone, come))
	return nil
}

// changedIn names the subtasks in which a description is new, and the subtasks
// that no longer have it; "" if that is all of them.
func changedIn(gone, come []int32) string {
	var parts []string
	if len(come) > 0 {
		parts = append(parts, "new in "+number.Subtasks(come))
	}
	if len(gone) > 0 {
		parts = append(parts, "gone from "+number.Subtasks(gone))
	}
	if len(parts) == 0 {
		return ""
	}
	return " in some subtasks: " + strings.Join(parts, ", ")
}

// envelopesOf holds the distinct serializer snapshots of a state, by the encoding
// of their streams and a digest, with the subtasks that have them.
type envelopesOf struct {
	by    map[format.Wire]map[hash128.Digest][]int32
	whole bool // one covers all states of a handle and could not be separated
}

func (e *envelopesOf) handles() (n int) {
	for _, all := range e.by {
		for _, subtasks := range all {
			n += len(subtasks)
		}
	}
	return n
}

// onlyIn returns the subtasks, in ascending order, whose serializer snapshot the
// other side does not have, although it has some in that encoding.
func onlyIn(a, b *envelopesOf) (subtasks []int32) {
	for form, all := range a.by {
		other, ok := b.by[form]
		if !ok {
			continue
		}
		for sum, in := range all {
			if _, both := other[sum]; !both {
				subtasks = append(subtasks, in...)
			}
		}
	}
	slices.Sort(subtasks)
	return subtasks
}

// sameStates reports whether both operators have operator states of the same
// names.
func sameStates(o *Operator) bool {
	return !slices.ContainsFunc(o.States, func(st *State) bool {
		return (st.Old == nil || st.New == nil) && stateGroup(st.State().Kind) == summary.List
	})
}

// describedOf returns the managed or raw operator state handles of an operator.
type describedOf struct {
	op  *format.Operator
	raw bool
}

// envelopes returns the serializer snapshots of a state. It reads the snapshots
// of all states of the operator at once.
func (d *differ) envelopes(in format.View, op *format.Operator, st *summary.State) (*envelopesOf, error) {
	of := describedOf{op, st.Kind == summary.Raw}
	all, known := d.described[of]
	if !known {
		var err error
		if all, err = d.describe(in, of); err != nil {
			return nil, err
		}
		if d.described == nil {
			d.described = map[describedOf]map[string]*envelopesOf{}
		}
		d.described[of] = all
	}
	if e := all[st.Name]; e != nil {
		return e, nil
	}
	return &envelopesOf{}, nil
}

func (d *differ) describe(in format.View, of describedOf) (map[string]*envelopesOf, error) {
	all := map[string]*envelopesOf{}
	for _, sub := range of.op.Subtasks {
		h := operatorHandle(sub, of.raw)
		if h == nil || len(h.States) == 0 {
			continue
		}
		codec, err := in.Codec(h.Codec)
		if err != nil {
			return nil, err
		}
		metas, err := codec.Describe(d.ctx, in.Source, h)
		if err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
		splits, _ := codec.(interface {
			SplitEncoding(format.Wire) (format.Wire, []byte)
		})
		for _, m := range metas {
			e := all[m.Name.String()]
			if e == nil {
				e = &envelopesOf{by: map[format.Wire]map[hash128.Digest][]int32{}}
				all[m.Name.String()] = e
			}
			encoding, description := m.Encoding, m.Envelope
			if splits != nil {
				if other, whole := splits.SplitEncoding(m.Encoding); whole != nil {
					encoding, description, e.whole = other, whole, true
				}
			}
			if e.by[encoding] == nil {
				e.by[encoding] = map[hash128.Digest][]int32{}
			}
			sum := d.hash.Sum(description)
			e.by[encoding][sum] = append(e.by[encoding][sum], sub.Index)
		}
	}
	return all, nil
}
