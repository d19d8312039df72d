package ui

import (
	"math"
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0:                   "0 B",
		1:                   "1 B",
		212:                 "212 B",
		1023:                "1023 B",
		1024:                "1.0 KiB",
		1075:                "1.0 KiB",
		1076:                "1.1 KiB",
		100_000_000:         "95.4 MiB",
		1<<20 - 52:          "1023.9 KiB",
		1<<20 - 51:          "1.0 MiB",
		1<<20 - 1:           "1.0 MiB",
		1 << 20:             "1.0 MiB",
		1<<30 - 1:           "1.0 GiB",
		1 << 40:             "1.0 TiB",
		1 << 50:             "1.0 PiB",
		1<<60 - 1:           "1.0 EiB",
		1 << 60:             "1.0 EiB",
		math.MaxInt64:       "8.0 EiB",
		-1:                  "-1 B",
		-1536:               "-1.5 KiB",
		math.MinInt64:       "-8.0 EiB",
		1<<60 + 1<<59:       "1.5 EiB",
		1<<62 + 1<<60 - 100: "5.0 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d): got %s, want %s", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 1_000_000: "1,000,000", -999: "-999", -1000: "-1,000",
		math.MaxInt64: "9,223,372,036,854,775,807", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d): got %s, want %s", n, got, want)
		}
	}
}

func TestSigned(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 98_985_574: "+94.4 MiB", -2048: "-2.0 KiB", math.MinInt64: "-8.0 EiB"} {
		if got := Signed(n, Bytes); got != want {
			t.Errorf("Signed(%d): got %s, want %s", n, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	tests := []struct {
		part, whole int64
		want        string
	}{
		{0, 0, "–"}, {5, 0, "–"}, {1, -1, "–"}, {-1, 10, "–"},
		{0, 10, "0 %"}, {10, 10, "100 %"}, {1, 3, "33 %"}, {2, 3, "67 %"},
		{1, 101, "<1 %"}, {1, 100, "1 %"}, {1, math.MaxInt64, "<1 %"},
		{99, 100, "99 %"}, {198, 200, "99 %"}, {991, 1000, ">99 %"}, {999_999, 1_000_000, ">99 %"},
		{math.MaxInt64 - 1, math.MaxInt64, ">99 %"}, {math.MaxInt64, math.MaxInt64, "100 %"},
		{1001, 1000, ">100 %"}, {101, 100, "101 %"}, {300, 100, "300 %"}, {math.MaxInt64, math.MaxInt64 - 1, ">100 %"},
	}
	for _, tt := range tests {
		if got := Percent(tt.part, tt.whole); got != tt.want {
			t.Errorf("Percent(%d, %d): got %s, want %s", tt.part, tt.whole, got, tt.want)
		}
	}
}

func TestRatio(t *testing.T) {
	tests := []struct {
		now, before int64
		want        string
	}{
		{1_000_000, 10_000, "×100.0"}, {5852, 4498, "×1.3"}, {1, 1, "×1.0"}, {0, 5, "×0"}, {1, 10, "×0.1"}, {1, 100, "×<0.1"},
		{9994, 10, "×999.4"}, {99_996, 100, "×1,000"}, {1_000_000, 1, "×1,000,000"},
		{math.MaxInt64, 1, "×9,223,372,036,854,775,807"}, {1, math.MaxInt64, "×<0.1"},
		{5, 0, "–"}, {5, -1, "–"}, {-1, 5, "–"},
	}
	for _, tt := range tests {
		if got := Ratio(tt.now, tt.before); got != tt.want {
			t.Errorf("Ratio(%d, %d): got %s, want %s", tt.now, tt.before, got, tt.want)
		}
	}
}

func TestDuration(t *testing.T) {
	const ms, s, m, h = time.Millisecond, time.Second, time.Minute, time.Hour
	for d, want := range map[time.Duration]string{
		0: "0 ms", 1: "<1 ms", ms / 2: "1 ms", 350 * ms: "350 ms", s - 1: "1 s", s: "1 s",
		4200 * ms: "4.2 s", 4960 * ms: "5 s", 9960 * ms: "10 s", 42 * s: "42 s", 59*s + 600*ms: "1 min",
		3*m + 5*s: "3 min 5 s", 3 * m: "3 min", h - 1: "1 h", 2*h + 14*m + 29*s: "2 h 14 min", 24*h - s: "1 d",
		76 * h: "3 d 4 h", -42 * s: "-42 s", math.MaxInt64: "106751 d 23 h", math.MinInt64: "-106751 d 23 h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d): got %s, want %s", d, got, want)
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2024, 5, 31, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		t    time.Time
		want string
	}{
		{time.Time{}, "–"},
		{now, "now"},
		{now.Add(-999 * time.Millisecond), "now"},
		{now.Add(-12 * time.Second), "12 s ago"},
		{now.Add(-59*time.Minute - 59*time.Second), "59 min ago"},
		{now.Add(-30 * time.Hour), "30 h ago"},
		{now.Add(-48 * time.Hour), "2 d ago"},
		{now.AddDate(0, 0, -59), "59 d ago"},
		{now.AddDate(0, 0, -60), "2024-04-01"},
		{now.Add(5 * time.Minute), "5 min from now"},
		{time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), "0001-01-02"},
		{time.Date(9999, 1, 2, 0, 0, 0, 0, time.UTC), "9999-01-02"},
	}
	for _, tt := range tests {
		if got := Ago(tt.t, now); got != tt.want {
			t.Errorf("Ago(%v): got %s, want %s", tt.t, got, tt.want)
		}
	}
}

func TestPlural(t *testing.T) {
	tests := []struct {
		n    int64
		noun string
		want string
	}{
		{0, "operator", "0 operators"}, {1, "operator", "1 operator"}, {3, "operator", "3 operators"},
		{180_000, "key group", "180,000 key groups"}, {2, "entry", "2 entries"}, {2, "key", "2 keys"}, {1, "entry", "1 entry"},
		{2, "hash", "2 hashes"}, {2, "batch", "2 batches"}, {2, "prefix", "2 prefixes"}, {2, "class", "2 classes"}, {2, "y", "2 ys"},
	}
	for _, tt := range tests {
		if got := Plural(tt.n, tt.noun); got != tt.want {
			t.Errorf("Plural(%d, %s): got %s, want %s", tt.n, tt.noun, got, tt.want)
		}
	}
}

func TestSparkline(t *testing.T) {
	tests := []struct {
		in   []int64
		want string
	}{
		{nil, ""}, {[]int64{0, 0}, "▁▁"}, {[]int64{5, 5}, "██"}, {[]int64{0, 1, 2, 3, 4, 5, 6, 7}, "▁▂▃▄▅▆▇█"},
		{[]int64{-5, 100, 50}, "▁█▅"}, {[]int64{math.MinInt64, math.MaxInt64}, "▁█"},
	}
	for _, tt := range tests {
		if got := Sparkline(tt.in); got != tt.want {
			t.Errorf("Sparkline(%v): got %s, want %s", tt.in, got, tt.want)
		}
	}
}
