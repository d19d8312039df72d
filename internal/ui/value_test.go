package ui

import (
	"bytes"
	"strings"
	"testing"
)

func TestValue(t *testing.T) {
	tests := []struct {
		name   string
		in     string
		format Format
		limit  int
		want   string
	}{
		{"auto text", "order-1", FormatAuto, 0, "order-1"},
		{"auto empty", "", FormatAuto, 0, `""`},
		{"auto wide", "注文", FormatAuto, 0, "注文"},
		{"auto control", "a\x1b", FormatAuto, 0, "0x611b"},
		{"auto line end", "a\n", FormatAuto, 0, "0x610a"},
		{"auto not UTF-8", "a\xff", FormatAuto, 0, "0x61ff"},
		{"auto bidi", "\u202e", FormatAuto, 0, "0xe280ae"},
		{"auto text like hex", "0x61ff", FormatAuto, 0, `"0x61ff"`},
		{"auto int64", "\x00\x00\x00\x00\x00\x00\x00\x07", FormatAuto, 0, "0x0000000000000007"},
		{"text", "a\xff\x1b", FormatText, 0, `"a\xff\x1b"`},
		{"hex", "order", FormatHex, 0, "6f72646572"},
		{"hex empty", "", FormatHex, 0, ""},
		{"base64", "order", FormatBase64, 0, "b3JkZXI="},
		// printf 'order-1' | sha256sum; the second is the well-known hash of nothing.
		{"redacted", "order-1", FormatRedacted, 0, "len=7 sha256=0bafe22156d2"},
		{"redacted empty", "", FormatRedacted, 3, "len=0 sha256=e3b0c44298fc"},

		{"text fits", "order-1", FormatAuto, 7, "order-1"},
		{"text cut", "order-1", FormatAuto, 6, "order…"},
		{"wide cut", "注文集計", FormatAuto, 6, "注文…"},
		{"quoted cut", "a\nbcdef", FormatText, 6, `"a\nb…`},
		{"one column", "order-1", FormatAuto, 1, "…"},
		{"hex fits", "abc", FormatHex, 6, "616263"},
		{"hex cut", "abcd", FormatHex, 6, "61626…"},
		{"auto hex cut", "\x00\x01\x02\x03", FormatAuto, 6, "0x000…"},
		{"base64 fits", "order", FormatBase64, 8, "b3JkZXI="},
		{"base64 cut", "orders", FormatBase64, 7, "b3JkZX…"},
		{"long text", strings.Repeat("a", 1<<20), FormatText, 4, "aaa…"},
		{"long wide", strings.Repeat("日", 1<<20), FormatText, 5, "日日…"},
		{"long hex", strings.Repeat("\x00", 1<<20), FormatAuto, 6, "0x000…"},
		{"long base64", strings.Repeat("\x00", 1<<20), FormatBase64, 6, "AAAAA…"},
		{"long marks", "e" + strings.Repeat("\u0301", 1000), FormatText, 4, "e" + strings.Repeat("\u0301", 31) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Value([]byte(tt.in), tt.format, tt.limit); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// A limit is only a cut: what is shown under it starts what is shown without it.
func TestValueLimit(t *testing.T) {
	inputs := [][]byte{nil, []byte("order-1"), bytes.Repeat([]byte("ab cd"), 40), bytes.Repeat([]byte{0, 0xfe}, 70)}
	for _, p := range inputs {
		for f := FormatAuto; f < FormatRedacted; f++ {
			whole := Value(p, f, 0)
			for limit := 1; limit < 300; limit++ {
				got := Value(p, f, limit)
				if Width(got) > limit {
					t.Fatalf("%v, limit %d: %d columns: %s", f, limit, Width(got), got)
				}
				start, cut := strings.CutSuffix(got, "…")
				if cut != (Width(whole) > limit) || !strings.HasPrefix(whole, strings.TrimPrefix(start, `"`)) && !strings.HasPrefix(whole, start) {
					t.Fatalf("%v, limit %d: %s of %s", f, limit, got, whole)
				}
			}
		}
	}
}
