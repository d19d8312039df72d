package transform

import (
	"fmt"
	"maps"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
)

// renamed pairs operators that are likely one under two ids: of the same states
// and types, and of similar size. A pair is taken only where neither has another
// partner that fits as well.
func (d *differ) renamed() error {
	var gone, come []*OperatorDiff
	for _, o := range d.out.Operators {
		switch {
		case o.New == nil:
			gone = append(gone, o)
		case o.Old == nil:
			come = append(come, o)
		}
	}
	fits := map[*OperatorDiff]map[*OperatorDiff]likeness{}
	for _, x := range gone {
		fits[x] = map[*OperatorDiff]likeness{}
		for _, y := range come {
			l, err := d.alike(x, y)
			if err != nil {
				return err
			}
			if l.score > 0 {
				fits[x][y] = l
			}
		}
	}
	for _, x := range gone {
		for _, y := range come {
			l, ok := fits[x][y]
			if !ok || rivals(fits, x, y, l.score) {
				continue
			}
			x.New, x.new, x.Renamed = y.New, y.new, l.reasons
			y.New = nil // is gone from the list
		}
	}
	d.out.Operators = slices.DeleteFunc(d.out.Operators, func(o *OperatorDiff) bool { return o.Old == nil && o.New == nil })
	return nil
}

// rivals is whether x or y fits another as well as they fit each other.
func rivals(fits map[*OperatorDiff]map[*OperatorDiff]likeness, x, y *OperatorDiff, score int) bool {
	for other, l := range fits[x] {
		if other != y && l.score >= score {
			return true
		}
	}
	for other, all := range fits {
		if l, ok := all[y]; ok && other != x && l.score >= score {
			return true
		}
	}
	return false
}

// likeness is how well two operators fit; score 0: not at all.
type likeness struct {
	score   int
	reasons []string
}

func (d *differ) alike(x, y *OperatorDiff) (likeness, error) {
	old, now := signature(x.Old), signature(y.New)
	if len(old) == 0 || !maps.Equal(old, now) {
		return likeness{}, nil
	}
	sizeOld, sizeNow := x.Old.Bytes.State(), y.New.Bytes.State()
	named := 0
	for k := range old {
		if k.name != "" {
			named++
		}
	}
	switch {
	case max(sizeOld, sizeNow) <= 2*min(sizeOld, sizeNow)+1024 && named > 0:
	case max(sizeOld, sizeNow)*4 <= min(sizeOld, sizeNow)*5 && min(sizeOld, sizeNow) > 0:
		// Without names to tell by, sizes must be closer.
	default:
		return likeness{}, nil
	}
	l := likeness{score: 1}
	because := func(score int, format string, args ...any) {
		l.score += score
		l.reasons = append(l.reasons, fmt.Sprintf(format, args...))
	}
	switch {
	case named == 0:
		because(0, "the same kinds of state")
	case named == 1:
		because(0, "the same state")
	default:
		because(0, "the same %d states", named)
	}
	same, known, err := d.sameTypes(x, y)
	if err != nil || known && !same {
		return likeness{}, err
	}
	if known {
		because(1, "the same types")
	}
	if n := x.old.Name.String(); n != "" && n == y.new.Name.String() {
		because(8, "the same name %q", n)
	}
	if sizeOld == sizeNow {
		because(2, "the same size")
	} else {
		because(0, "of similar size")
	}
	if x.old.MaxParallelism == y.new.MaxParallelism {
		l.score++
	}
	if x.old.Parallelism == y.new.Parallelism {
		because(1, "the same parallelism")
	}
	return l, nil
}

// signature is the states of an operator, as far as they have anything to tell.
func signature(op *summary.Operator) map[stateKey]string {
	all := map[stateKey]string{}
	for _, st := range op.States {
		if st.Kind != summary.InFlight && (st.Name != "" || st.Bytes > 0) {
			all[stateKey{st.Kind, st.Name}] = st.Handles
		}
	}
	return all
}

// sameTypes compares how the operator states of two operators describe
// themselves; known where one of them does.
func (d *differ) sameTypes(x, y *OperatorDiff) (same, known bool, err error) {
	same = true
	for _, st := range x.Old.States {
		if st.Name == "" || st.Kind == summary.Raw {
			continue
		}
		old, err := d.envelopes(d.a, x.old, st)
		if err != nil {
			return false, false, format.InFile(err, d.a.Location)
		}
		now, err := d.envelopes(d.b, y.new, st)
		if err != nil {
			return false, false, format.InFile(err, d.b.Location)
		}
		for form, e := range old {
			if f, ok := now[form]; ok && len(e)+len(f) > 0 {
				known = true
				same = same && e == f
			}
		}
	}
	return same, known, nil
}
