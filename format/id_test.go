package format_test

import (
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// TestOperatorIDOf: spec flink-operator-state C1.
func TestOperatorIDOf(t *testing.T) {
	for uid, want := range map[string]string{
		"":             "00000000000000000000000000000000",
		"uid":          "0e1febe90327d1cea326114660ec1de8",
		"op1":          "feccfb8648621345be01b71938abfb72",
		"my-uid":       "8409efe6adc6d20787611f16017c808f",
		"map-id":       "dfb9fc19542b088ce12ddd140eb8d369",
		"source":       "e5a72f353fc1e6bbf3bd96a41384998c",
		"kafka-source": "61252f73469d3ffba207c548d29a0267",
		"ünïcode-✓":    "6ce73b3f286cf8cdebcc897ec427fad4",
		// From savepoints of real Flink: the ids in their _metadata.
		"slow":           "59fa767824610e31f4a11d6125e09bf4",
		"keyed":          "e7beec23fd9f6ed5e1b8395129d43728",
		"window":         "01203aa9a12dc1ec725e03853dd7c8f2",
		"numbers":        "ca88eee0095684d687a1b6495617f957",
		"window-sink":    "cccaf1a1165643cad1451c17dcc4b990",
		"rule-numbers":   "0fd831f2dbbb63f35b486d1f572d529e",
		"buffering-sink": "9f58a7772f5543d78061e8225175f39f",
		"even-id-logger": "33fb6e3d2ef4674d3687e1f6564b35ca",
	} {
		if got := format.OperatorIDOf(uid).String(); got != want {
			t.Errorf("%q: %s, want %s", uid, got, want)
		}
	}
}

func TestParseOperatorID(t *testing.T) {
	const s = "000102030405060708090a0b0c0d0eff"
	id, ok := format.ParseOperatorID(s)
	if !ok || id[0] != 0 || id[15] != 0xff || id.String() != s || id.Short() != "00010203" {
		t.Errorf("%v, %v", id, ok)
	}
	for _, bad := range []string{"", s[1:], s + "0", strings.Repeat("g", 32), s[:31] + "ö"} {
		if id, ok := format.ParseOperatorID(bad); ok {
			t.Errorf("%q: %v", bad, id)
		}
	}
}
