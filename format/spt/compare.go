package spt

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// difference returns the path of the first field in which two savepoints differ, ""
// if they are equal. The offsets of want are compared with stored, which maps them
// to the offsets in the file. It compares by reflection, so the first Seal detects
// a field that the model has and the manifest lacks.
func difference(want, got *format.Savepoint, stored storedOffsets) string {
	c := comparer{stored: stored}
	return c.diff(reflect.ValueOf(want), reflect.ValueOf(got))
}

type comparer struct{ stored storedOffsets }

func (c comparer) diff(a, b reflect.Value) string {
	switch a.Type() {
	case reflect.TypeFor[format.Text](): // its fields are not exported
		return differ(a.Interface() != b.Interface())
	case reflect.TypeFor[format.Bytes]():
		return differ(!sameBytes(a.Interface().(format.Bytes), b.Interface().(format.Bytes)))
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.Type() == reflect.TypeFor[format.Offsets]() {
			got, _ := b.Interface().(format.Offsets)
			return differ(!c.sameOffsets(a.Addr().Interface().(*format.Offsets), got))
		}
		if a.IsNil() || b.IsNil() {
			return differ(a.IsNil() != b.IsNil())
		}
		if a.Elem().Type() != b.Elem().Type() {
			return differ(true)
		}
		return c.diff(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if at := c.diff(a.Field(i), b.Field(i)); at != "" {
				return a.Type().Field(i).Name + tail(at)
			}
		}
	case reflect.Slice: // nil equals empty
		if a.Len() != b.Len() {
			return "(length)"
		}
		for i := range a.Len() {
			if at := c.diff(a.Index(i), b.Index(i)); at != "" {
				return fmt.Sprint(i) + tail(at)
			}
		}
	default:
		return differ(!a.Equal(b))
	}
	return ""
}

// differ returns the path that ends here.
func differ(yes bool) string {
	if yes {
		return "."
	}
	return ""
}

func tail(at string) string {
	if at == "." {
		return ""
	}
	return "/" + at
}

func sameBytes(a, b format.Bytes) bool {
	same := false
	err := a.View(func(p []byte) error {
		return b.View(func(q []byte) error {
			same = bytes.Equal(p, q)
			return nil
		})
	})
	return err == nil && same
}

// sameOffsets reports whether got is what was stored for a field.
func (c comparer) sameOffsets(field *format.Offsets, got format.Offsets) bool {
	switch want := c.stored[field].(type) {
	case nil: // omitted: an empty array
		return *field == nil && offsetsLen(got) == 0
	case format.OffsetSlice:
		got, ok := got.(format.OffsetSlice)
		return ok && slices.Equal(want, got)
	case *offsets:
		got, ok := got.(*offsets)
		return ok && want.n == got.n && slices.EqualFunc(want.runs, got.runs, func(a, b run) bool {
			return a.first == b.first && a.n == b.n
		})
	}
	return false
}
