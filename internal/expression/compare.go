package expression

import (
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format/value"
)

// isTime reports whether values of a kind are compared with texts in ISO 8601.
func isTime(k value.Kind) bool { return k >= value.KindInstant && k <= value.KindDateTime }

// isText reports whether values of a kind are texts to an expression.
func isText(k value.Kind) bool {
	return k == value.KindString || k == value.KindBytes || isTime(k)
}

func textOf(v value.Value) string {
	if isTime(v.Kind()) {
		return v.String()
	}
	return v.Text()
}

// compareTexts compares texts and times. Times of different kinds are compared as texts.
func compareTexts(a, b value.Value) int {
	if isTime(a.Kind()) || isTime(b.Kind()) {
		if a.Kind() == b.Kind() {
			return compareTimes(a, b)
		}
		if x, ok := instant(a); ok {
			if y, ok := instant(b); ok {
				return x.Compare(y)
			}
		}
	}
	return strings.Compare(textOf(a), textOf(b))
}

// compareTimes compares times of the same kind.
func compareTimes(a, b value.Value) int {
	if a.Kind() == value.KindInstant {
		return a.Time().Compare(b.Time())
	}
	x, y := a.Civil(), b.Civil()
	for _, pair := range [...][2]int32{{x.Year, y.Year}, {int32(x.Month), int32(y.Month)}, {int32(x.Day), int32(y.Day)},
		{int32(x.Hour), int32(y.Hour)}, {int32(x.Minute), int32(y.Minute)}, {int32(x.Second), int32(y.Second)}, {x.Nano, y.Nano}} {
		switch {
		case pair[0] < pair[1]:
			return -1
		case pair[0] > pair[1]:
			return 1
		}
	}
	return 0
}

// instant returns an instant, or the one that a text is.
func instant(v value.Value) (time.Time, bool) {
	switch v.Kind() {
	case value.KindInstant:
		return v.Time(), true
	case value.KindString:
		t, err := time.Parse(time.RFC3339Nano, v.Text())
		return t, err == nil
	}
	return time.Time{}, false
}

// ordered compares what can be ordered: numbers with numbers, texts with texts.
func ordered(a, b value.Value) (c int, isOrdered bool, err *Error) {
	ka, kb := a.Kind(), b.Kind()
	switch {
	case isNumber(ka) && isNumber(kb):
		c, isOrdered = compareNumbers(a, b)
		return c, isOrdered, nil
	case isText(ka) && isText(kb):
		return compareTexts(a, b), true, nil
	}
	return 0, false, failf(0, "cannot compare %v with %v", ka, kb)
}

// equal reports whether values of any kinds are equal.
func (v *Vars) equal(a, b value.Value) (bool, *Error) {
	ka, kb := a.Kind(), b.Kind()
	switch {
	case isNumber(ka) && isNumber(kb):
		c, ordered := compareNumbers(a, b)
		return ordered && c == 0, v.exactly(a, b)
	case isText(ka) && isText(kb):
		if !isTime(ka) && !isTime(kb) {
			return a.Text() == b.Text(), nil
		}
		return compareTexts(a, b) == 0, nil
	case (ka == value.KindBigInt || ka == value.KindDecimal) && kb == value.KindString:
		return a.String() == b.Text(), nil
	case ka == value.KindString && (kb == value.KindBigInt || kb == value.KindDecimal):
		return b.String() == a.Text(), nil
	case ka != kb:
		return false, nil
	case ka == value.KindBool:
		return a.Bool() == b.Bool(), nil
	case ka == value.KindNull:
		return true, nil
	}
	return v.equalParts(a, b)
}

func (v *Vars) equalParts(a, b value.Value) (bool, *Error) {
	if a.Len() != b.Len() || a.Class() != b.Class() {
		return false, nil
	}
	if err := v.work(a.Len()); err != nil {
		return false, err
	}
	for i := range a.Len() {
		var other value.Value
		switch a.Kind() {
		case value.KindList:
			other = b.At(i)
		case value.KindRecord:
			var ok bool
			if other, ok = b.Field(a.Name(i)); !ok {
				return false, nil
			}
		default:
			k, err := v.find(b, a.Key(i))
			if err != nil || k < 0 {
				return false, err
			}
			other = b.At(k)
		}
		if same, err := v.equal(a.At(i), other); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// find returns the number of the entry of a map with a key, or -1.
func (v *Vars) find(m, key value.Value) (int, *Error) {
	if err := v.work(m.Len()); err != nil {
		return -1, err
	}
	for i := range m.Len() {
		if same, err := v.equal(m.Key(i), key); err != nil || same {
			return i, err
		}
	}
	return -1, nil
}

// in reports whether a list has an element, a map a key or a record a field.
func (v *Vars) in(a, b value.Value) (bool, *Error) {
	switch b.Kind() {
	case value.KindNull:
		return false, nil
	case value.KindList:
		if err := v.work(b.Len()); err != nil {
			return false, err
		}
		for i := range b.Len() {
			if same, err := v.equal(a, b.At(i)); err != nil || same {
				return same, err
			}
		}
		return false, nil
	case value.KindMap:
		i, err := v.find(b, a)
		return i >= 0, err
	case value.KindRecord:
		_, ok := b.Field(a.Text())
		return ok && a.Kind() == value.KindString, nil
	}
	return false, failf(0, "in needs a list, a map or a record after it, found %v", b.Kind())
}
