package testenv

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/savepoint-tools/spt/format/value"
)

// Plain converts a value to Go values for comparison: records to maps by field,
// with their class under "@class"; maps to pairs; big numbers and times to text.
func Plain(v value.Value) any {
	switch v.Kind() {
	case value.KindNull:
		return nil
	case value.KindBool:
		return v.Bool()
	case value.KindInt:
		return v.Int()
	case value.KindUint:
		return v.Uint()
	case value.KindFloat32:
		return float32(v.Float())
	case value.KindFloat64:
		return v.Float()
	case value.KindBytes:
		return []byte(v.Text())
	case value.KindInstant:
		return v.Time()
	case value.KindList:
		all := make([]any, v.Len())
		for i := range all {
			all[i] = Plain(v.At(i))
		}
		return all
	case value.KindRecord:
		m := map[string]any{}
		if v.Class() != "" {
			m["@class"] = v.Class()
		}
		for i := range v.Len() {
			m[v.Name(i)] = Plain(v.At(i))
		}
		return m
	case value.KindMap:
		all := make([][2]any, v.Len())
		for i := range all {
			all[i] = [2]any{Plain(v.Key(i)), Plain(v.At(i))}
		}
		return all
	}
	return v.String()
}

// ReadBack reads a value that must take all of p. It fails unless Skip finds the
// same end and Append appends the same bytes.
func ReadBack(t testing.TB, c value.Codec, p []byte) (value.Value, error) {
	t.Helper()
	v, err := value.ReadAll(c, p)
	if err != nil {
		return v, err
	}
	if err := Agree(c, p); err != nil {
		t.Error(err)
	}
	if _, ok := c.(value.JSONCodec); ok {
		if err := AgreeJSON(c, v); err != nil {
			t.Error(err)
		}
	}
	return v, nil
}

// AgreeJSON returns an error unless the JSON of a value is read as the same value: it
// has the same JSON, and the bytes of the value in the encoding that is preferred.
func AgreeJSON(c value.Codec, v value.Value) error {
	text := v.AppendJSON(nil, nil, nil)
	back, err := value.FromJSON(c, text)
	if err != nil {
		return fmt.Errorf("%s: %w", cut(text), err)
	}
	if again := back.AppendJSON(nil, nil, nil); !bytes.Equal(text, again) {
		return fmt.Errorf("%s: read as %s", cut(text), cut(again))
	}
	p, err := c.Append(nil, back)
	if err != nil {
		return fmt.Errorf("%s: %w", cut(text), err)
	}
	v, err = value.ReadAll(c, p)
	if again := v.AppendJSON(nil, nil, nil); err != nil || !bytes.Equal(text, again) {
		return fmt.Errorf("%s: written as %s, %w", cut(text), cut(again), err)
	}
	return nil
}

// Agree returns an error if the methods of a codec disagree on the value at the
// start of p, unless Read rejects it.
func Agree(c value.Codec, p []byte) error {
	v, n, err := c.Read(p)
	skipped, serr := c.Skip(p)
	if err != nil {
		return nil //nolint:nilerr // Skip may accept what Read rejects
	}
	if serr != nil || skipped != n {
		return fmt.Errorf("% x: Skip ends at %d (%w), Read at %d", cut(p), skipped, serr, n)
	}
	for _, before := range []string{"", "before"} {
		got, err := c.Append([]byte(before), v)
		if want := append([]byte(before), p[:n]...); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("% x: appended as % x: %w", cut(want), cut(got), err)
		}
	}
	return nil
}

func cut(p []byte) []byte { return p[:min(len(p), 200)] }
