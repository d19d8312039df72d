package assign_test

import (
	"testing"

	"github.com/savepoint-tools/spt/format/flink/assign"
)

func TestParseRelease(t *testing.T) {
	for s, want := range map[string]assign.Release{
		"1.3": {Major: 1, Minor: 3}, "1.20": {Major: 1, Minor: 20}, "2.0": {Major: 2}, "2.3": {Major: 2, Minor: 3},
		"1.20.4": {Major: 1, Minor: 20}, "2.0.0": {Major: 2}, "1.9.10": {Major: 1, Minor: 9},
	} {
		if got, err := assign.ParseRelease(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1", "1.2", "1.21", "2.4", "3.0", "1.20.1.1", "1.20.x", "v1.20", "1.-3", "1.03", "1.20.01", "a.b", " 1.20", "0.9", "1.20."} {
		if r, err := assign.ParseRelease(s); err == nil {
			t.Errorf("%q is %v", s, r)
		}
	}
}
