package diff

import (
	"regexp"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// generatedName matches the unique names that Flink generates for files.
var generatedName = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// sameName reports whether two equal relative references mean one file or a copy
// of it: they are in one directory, or Flink generated the name.
func (d *differ) sameName(x, y format.Stream) bool {
	path, _, _ := format.Reference(x)
	return x.Size() == y.Size() && (d.a.Location != "" && d.a.Location == d.b.Location || generatedName.MatchString(path.String()))
}

// unread counts, once, a file that both sides name and neither has.
func (d *differ) unread(name string, why sameness) {
	if d.counted == nil {
		d.counted = map[string]bool{}
	}
	switch {
	case d.counted[name]:
	case why == unchecked:
		d.out.NotChecked++
	default:
		d.out.Absent++
	}
	d.counted[name] = true
}

// readable returns the operators of both sides without the handles of a subtask
// that are equal on both sides and whose file neither side has or could be looked
// up: their content is unknown, and Absent and NotChecked count them.
func (d *differ) readable(o *Operator) (old, now *format.Operator, err error) {
	old, now = o.old, o.new
	bySubtask := map[int32]int{}
	for i, sub := range now.Subtasks {
		bySubtask[sub.Index] = i
	}
	cloned := false
	for i, x := range o.old.Subtasks {
		j, ok := bySubtask[x.Index]
		if !ok {
			continue
		}
		y := o.new.Subtasks[j]
		a, b := *x, *y
		if ok, err = d.absentHandle(x.Managed, y.Managed); err != nil {
			return nil, nil, err
		} else if ok {
			a.Managed, b.Managed = nil, nil
		}
		if ok, err = d.absentHandle(x.Raw, y.Raw); err != nil {
			return nil, nil, err
		} else if ok {
			a.Raw, b.Raw = nil, nil
		}
		if ok, err = d.absentGroups(x.ManagedKeyed, y.ManagedKeyed); err != nil {
			return nil, nil, err
		} else if ok {
			a.ManagedKeyed, b.ManagedKeyed = nil, nil
		}
		if ok, err = d.absentGroups(x.RawKeyed, y.RawKeyed); err != nil {
			return nil, nil, err
		} else if ok {
			a.RawKeyed, b.RawKeyed = nil, nil
		}
		if a.Managed == x.Managed && a.Raw == x.Raw && a.ManagedKeyed == x.ManagedKeyed && a.RawKeyed == x.RawKeyed {
			continue
		}
		if !cloned {
			cloned = true
			p, q := *old, *now
			p.Subtasks, q.Subtasks = slices.Clone(p.Subtasks), slices.Clone(q.Subtasks)
			old, now = &p, &q
		}
		old.Subtasks[i], now.Subtasks[j] = &a, &b
	}
	return old, now, nil
}

// absentHandle reports whether two handles have equal references to a file that
// neither side has.
func (d *differ) absentHandle(x, y *format.OperatorHandle) (bool, error) {
	if x == nil || y == nil || x.Data == nil || y.Data == nil || x.Codec != y.Codec || len(x.States) != len(y.States) {
		return false, nil
	}
	if same, err := d.sameReference(x.Data, y.Data); same != absent && same != unchecked || err != nil {
		return false, err
	}
	for i := range x.States {
		a, b := &x.States[i], &y.States[i]
		if a.Name.String() != b.Name.String() || a.Mode != b.Mode {
			return false, nil
		}
		if same, err := d.sameOffsets(a.Offsets, b.Offsets); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// absentGroups is absentHandle for key groups.
func (d *differ) absentGroups(a, b format.KeyedHandle) (bool, error) {
	x, ok := a.(*format.KeyGroups)
	y, both := b.(*format.KeyGroups)
	if !ok || !both || x.Data == nil || y.Data == nil || x.Codec != y.Codec || x.Range != y.Range {
		return false, nil
	}
	if same, err := d.sameReference(x.Data, y.Data); same != absent && same != unchecked || err != nil {
		return false, err
	}
	return d.sameOffsets(x.Offsets, y.Offsets)
}

func (d *differ) sameOffsets(a, b format.Offsets) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	if a.Len() != b.Len() {
		return false, nil
	}
	same := true
	err := format.EachOffset(d.ctx, a, func(first int64, run []int64) error {
		other := make([]int64, len(run))
		for n := 0; n < len(run); {
			k, err := b.Read(d.ctx, other[n:], first+int64(n))
			if err != nil {
				return err
			}
			if k == 0 {
				same = false
				return nil
			}
			n += k
		}
		same = same && slices.Equal(run, other)
		return nil
	})
	return same && err == nil, err
}
