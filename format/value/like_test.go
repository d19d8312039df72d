package value_test

import (
	"errors"
	"math"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// anyCodec appends any value.
type anyCodec struct{ value.Codec }

func (anyCodec) Append(dst []byte, _ value.Value) ([]byte, error) { return dst, nil }

func like(v value.Value, text string) (value.Value, error) {
	return value.FromJSONLike(anyCodec{}, v, []byte(text))
}

// TestFromJSONLike: parts have the kinds and encodings of the parts in their place.
func TestFromJSONLike(t *testing.T) {
	split := value.Record(&value.Shape{Names: []string{"topic", "offset", "@at", "tags"}}, []value.Value{
		value.String("a").WithVariant(3), value.Int(7).WithVariant(4), value.Instant(1, 5), value.List([]value.Value{value.Float32(math.Float32bits(0.5))}),
	}).WithClass("Split").WithVariant(9)
	for _, x := range []struct {
		like       value.Value
		text, want string
	}{
		{split, `{"@class":"Split","topic":"a","offset":7,"@@at":"1970-01-01T00:00:01.000000005Z","tags":[0.5]}`, `{"@class":"Split","topic":"a","offset":7,"@@at":"1970-01-01T00:00:01.000000005Z","tags":[0.5]}`},
		{split, ` { "tags" : [1, 2], "offset" : 8, "more" : [1, 2.5, "x", null, {"base64":"AP8="}], "@@at":"1970-01-01T00:00:02Z", "topic":"a" } `,
			`{"@class":"Split","topic":"a","offset":8,"@@at":"1970-01-01T00:00:02Z","tags":[1,2],"more":[1,2.5,"x",null,{"base64":"AP8="}]}`},
		{split, `{"offset":null}`, `{"@class":"Split","offset":null}`},
		{value.Int(5), `18446744073709551615`, `18446744073709551615`}, {value.Int(5), `-1`, `-1`}, {value.Float64(0), `3`, `3`}, {value.Float64(0), `"NaN"`, `"NaN"`},
		{value.Null(), `{"a":{"b":true}}`, `{"a":{"b":true}}`}, {value.Bytes(nil), `{"hex":"00ff"}`, `{"base64":"AP8="}`},
		{value.Map([]value.Value{value.Int(1), value.String("x")}), `[[1,"x"],[2,"y"]]`, `[[1,"x"],[2,"y"]]`},
		{value.List(nil), `[[], {}]`, `[[],{}]`},
	} {
		v, err := like(x.like, x.text)
		if got := string(v.AppendJSON(nil, nil, nil)); err != nil || got != x.want {
			t.Errorf("%s: %s, want %s, %v", x.text, got, x.want, err)
		}
		if !x.like.IsNull() && !v.IsNull() && v.Kind() != x.like.Kind() && v.Kind() != value.KindUint {
			t.Errorf("%s: %v", x.text, v.Kind())
		}
	}
	v, err := like(split, `{"topic":"b","offset":7,"@@at":"1970-01-01T00:00:01.000000005Z","tags":[0.5]}`)
	if err != nil || v.Variant() != 9 || v.At(0).Variant() != 3 || v.At(1).Variant() != 4 || v.At(3).At(0).Kind() != value.KindFloat32 {
		t.Errorf("%v: an encoding was lost: %v", v, err)
	}
}

func TestFromJSONLikeRefuses(t *testing.T) {
	record := value.Record(&value.Shape{Names: []string{"n", "s"}}, []value.Value{value.Int(1), value.List([]value.Value{value.String("x")})}).WithClass("C")
	for _, x := range []struct {
		like       value.Value
		text, want string
	}{
		{record, `{"n":1.5}`, `.n: expected an integer, found 1.5`}, {record, `{"s":["a",7]}`, `.s[1]: expected a string, found 7`}, {record, `{"@class":"D"}`, `expected the class "C", found the string "D"`},
		{record, `{"n":1,"n":2}`, `field "n" is given twice`}, {record, `[1]`, `expected an object, found an array`}, {value.Bool(true), `1`, `expected true or false, found 1`},
		{value.Map(nil), `{"a":1}`, `expected an array of pairs, found an object`}, {value.Map(nil), `[[1]]`, `[0]: expected [key, value], found an array`}, {value.Instant(1, 1), `"yesterday"`, `expected an instant such as "2024-02-29T23:59:58.123Z", found the string "yesterday"`},
		{value.Null(), `1e999`, `1e999 is out of range`},
	} {
		_, err := like(x.like, x.text)
		var e *value.JSONError
		if !errors.As(err, &e) || err.Error() != x.want || !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%s: %v, want %s", x.text, err, x.want)
		}
	}
	if _, err := like(record, `{"n":`); !errors.Is(err, format.ErrCorrupt) {
		t.Error(err)
	}
}

// FuzzFromJSONLike: any JSON becomes a value with the same JSON in place of null, or an
// error.
func FuzzFromJSONLike(f *testing.F) {
	for _, text := range []string{`{"a":[1,2.5,null,"x",true,{"base64":"AA=="}]}`, `[[1,2],[3]]`, `{"@class":"x"}`, `-0`, `18446744073709551616`, `"\ud800"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		v, err := like(value.Null(), string(p))
		if err != nil {
			return
		}
		text := v.AppendJSON(nil, nil, nil)
		again, err := like(v, string(text))
		if got := again.AppendJSON(nil, nil, nil); err != nil || string(got) != string(text) {
			t.Errorf("%s: read as %s, %v", text, got, err)
		}
	})
}
