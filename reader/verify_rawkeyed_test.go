package reader_test

import (
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
)

// TestVerifyRawKeyGroups: raw keyed state has -1 for a key group that was not
// written, and 0 is its first byte (spec flink-keyed-state 10.1).
func TestVerifyRawKeyGroups(t *testing.T) {
	raw := func(offsets ...int64) *format.Savepoint {
		sp := keyed(nil, 0, int32(len(offsets)), inline("hello"), offsets...)
		sub := sp.Operators[0].Subtasks[0]
		h := sub.ManagedKeyed.(*format.KeyGroups)
		h.Codec, sub.ManagedKeyed, sub.RawKeyed = format.CodecRaw, nil, h
		return sp
	}
	for _, tt := range []struct {
		sp       *format.Savepoint
		severity finding.Severity // "" if sound
	}{
		{raw(-1, 0, -1, 3, -1), ""},
		{raw(0, -1), ""},
		{raw(0, -2), finding.Error},
		{raw(0, 9), finding.Error},
		{raw(3, 0), finding.Warning}, // 0 is a position here
	} {
		_, found := verify(t, open(t, write(t, map[string]string{"_metadata": string(encode(t, tt.sp))}), options()))
		if tt.severity == "" && len(found) > 0 || tt.severity != "" && (len(found) != 1 || found[0].Severity != tt.severity || found[0].Code != "key-groups") {
			t.Errorf("%v: %+v", tt.sp.Operators[0].Subtasks[0].RawKeyed.(*format.KeyGroups).Offsets, found)
		}
	}
}
