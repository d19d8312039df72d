package types_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/types"
)

// TestDecimal: all digits, as a JSON number, whatever the scale.
func TestDecimal(t *testing.T) {
	for _, x := range []struct {
		unscaled string
		scale    int32
		want     string
	}{
		{"0", 0, "0"}, {"0", 2, "0.00"}, {"0", -2, "0"}, {"5", 0, "5"}, {"-5", 2, "-0.05"}, {"12345", 3, "12.345"}, {"-12345", 5, "-0.12345"},
		{"12300", 2, "123.00"}, {"7", -3, "7000"}, {"7", -21, "7e21"}, {"7", 21, "7e-21"}, {"7", 1 << 30, "7e-1073741824"}, {"7", -1 << 31, "7e2147483648"}, {"0", 1 << 30, "0e-1073741824"},
	} {
		n, _ := new(big.Int).SetString(x.unscaled, 10)
		d := types.Decimal{Unscaled: n, Scale: x.scale}
		if got := d.String(); got != x.want {
			t.Errorf("%s with scale %d: %s, want %s", x.unscaled, x.scale, got, x.want)
		}
		var v json.Number
		p, err := json.Marshal(d)
		if err != nil || json.Unmarshal(p, &v) != nil || v.String() != x.want {
			t.Errorf("%s is no JSON number: %s, %v", x.want, p, err)
		}
	}
	if f := (types.Decimal{Unscaled: big.NewInt(12345), Scale: 3}).Float(); f != 12.345 {
		t.Error(f)
	}
}
