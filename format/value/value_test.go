package value_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// TestDecimal: all digits, as a JSON number, whatever the scale.
func TestDecimal(t *testing.T) {
	for _, x := range []struct {
		unscaled string // two's complement
		scale    int32
		want     string
	}{
		{"\x00", 0, "0"}, {"\x00", 2, "0.00"}, {"\x00", -2, "0e2"}, {"\x05", 0, "5"}, {"\xfb", 2, "-0.05"}, {"\x30\x39", 3, "12.345"}, {"\xcf\xc7", 5, "-0.12345"},
		{"\x30\x0c", 2, "123.00"}, {"\x07", -3, "7e3"}, {"\x07", -21, "7e21"}, {"\x07", 21, "7e-21"}, {"\x07", 1 << 30, "7e-1073741824"}, {"\x07", -1 << 31, "7e2147483648"}, {"\x00", 1 << 30, "0e-1073741824"},
	} {
		d := value.Decimal([]byte(x.unscaled), x.scale)
		if got := d.String(); got != x.want {
			t.Errorf("% x with scale %d: %s, want %s", x.unscaled, x.scale, got, x.want)
		}
		var v json.Number
		p, err := json.Marshal(d)
		if err != nil || json.Unmarshal(p, &v) != nil || v.String() != x.want {
			t.Errorf("%s is not a JSON number: %s, %v", x.want, p, err)
		}
	}
	if f := value.Decimal([]byte("\x30\x39"), 3).Float(); f != 12.345 {
		t.Error(f)
	}
}

// TestJSON: every kind of value, by hand.
func TestJSON(t *testing.T) {
	for _, x := range []struct {
		v    value.Value
		want string
	}{
		{value.Null(), `null`}, {value.Bool(true), `true`}, {value.Bool(false), `false`}, {value.Int(math.MinInt64), `-9223372036854775808`}, {value.Uint(math.MaxUint64), `18446744073709551615`}, {value.Uint(7), `7`},
		{value.Float64(math.Float64bits(1.5)), `1.5`}, {value.Float64(math.Float64bits(1e21)), `1e+21`}, {value.Float32(math.Float32bits(0.1)), `0.1`}, {value.Float32(0x7fc00000), `"NaN"`}, {value.Float64(0x7ff8000000000000), `"NaN"`}, {value.Float32(0x7fc00001), `"NaN(7fc00001)"`}, {value.Float64(0xfff8000000000000), `"NaN(fff8000000000000)"`}, {value.Float64(math.Float64bits(math.Inf(-1))), `"-Infinity"`},
		{value.String("a\"b"), `"a\"b"`}, {value.Bytes([]byte{0, 0xff}), `{"base64":"AP8="}`}, {value.BigInt([]byte("\xc0\x00\x00\x00\x00\x00\x00\x00\x00")), `-1180591620717411303424`},
		{value.Instant(1, 6), `"1970-01-01T00:00:01.000000006Z"`}, {value.Date(2024, 2, 29), `"2024-02-29"`}, {value.Date(math.MinInt32, 1, 2), `"-2147483648-01-02"`},
		{value.TimeOfDay(23, 59, 58, 7_000_000), `"23:59:58.007"`}, {value.DateTime(value.Civil{Year: -5, Month: 12, Day: 31}), `"-0005-12-31T00:00:00"`},
		{value.List([]value.Value{value.Int(1), value.List(nil)}), `[1,[]]`},
		{value.Record(&value.Shape{Names: []string{"z", "a"}}, []value.Value{value.Int(1), value.Null()}), `{"z":1,"a":null}`},
		{value.Record(&value.Shape{Names: []string{"z"}}, []value.Value{value.Int(1)}).WithClass("C"), `{"@class":"C","z":1}`},
		{value.Record(&value.Shape{}, nil).WithClass("C"), `{"@class":"C"}`},
		{value.Int(5).WithClass("L"), `{"@class":"L","@value":5}`}, {value.List(nil).WithClass("L"), `{"@class":"L","@value":[]}`}, {value.Null().WithClass("L"), `{"@class":"L","@value":null}`}, {value.Int(5).WithClass("L").WithClass(""), `5`},
		{value.Record(&value.Shape{Names: []string{"@class", "@@"}}, []value.Value{value.Int(1), value.Int(2)}), `{"@@class":1,"@@@":2}`},
		{value.Null().WithVariant(2), `{"@null":2}`}, {value.Null().WithVariant(value.EncodedNull), `null`}, {value.String("\xed\xa0\x80\x01é"), "\"\\ud800\\u0001é\""},
		{value.Map([]value.Value{value.Int(1), value.String("x"), value.Null(), value.Int(2)}), `[[1,"x"],[null,2]]`}, {value.Map(nil), `[]`},
	} {
		p, err := json.Marshal(x.v)
		if err != nil || string(p) != x.want {
			t.Errorf("%v: %s, want %s, %v", x.v.Kind(), p, x.want, err)
		}
	}
}

// TestCivil: the fields of dates and times, at their limits.
func TestCivil(t *testing.T) {
	for _, want := range []value.Civil{
		{Year: math.MaxInt32, Month: 12, Day: 31, Hour: 23, Minute: 59, Second: 59, Nano: 999_999_999},
		{Year: math.MinInt32, Month: 1, Day: 1}, {Year: -1, Month: 10, Day: 20, Hour: 1, Minute: 2, Second: 3, Nano: 4},
	} {
		if got := value.DateTime(want).Civil(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// byteCodec reads one byte.
type byteCodec struct{ value.Codec }

func (byteCodec) Read(p []byte) (value.Value, int, error) { return value.Int(int64(p[0])), 1, nil }

func TestReadAll(t *testing.T) {
	if v, err := value.ReadAll(byteCodec{}, []byte{7}); err != nil || v.Int() != 7 {
		t.Error(v, err)
	}
	var e *format.Error
	if _, err := value.ReadAll(byteCodec{}, []byte{7, 8, 9}); !errors.Is(err, format.ErrCorrupt) || value.IsShort(err) || !errors.As(err, &e) || e.Offset != 1 {
		t.Error(err)
	}
}
