package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/savepoint-tools/spt/internal/number"
)

const nothing = "–" // where a number would say nothing

// Bytes returns n in the largest IEC unit that leaves a number of at least 1: "212 B", "95.4 MiB". From KiB on
// there is one decimal, rounded half up.
func Bytes(n int64) string { return number.Bytes(n) }

// Count returns n with its thousands separated: "1,000,000".
func Count(n int64) string { return number.Count(n) }

// Signed returns a difference with its sign: Signed(n, Bytes) is "+94.4 MiB". Zero has none.
func Signed(n int64, format func(int64) string) string {
	if n > 0 {
		return "+" + format(n)
	}
	return format(n)
}

// Percent returns the share of part in whole, without decimals. What is not all is never "100 %", and what is not
// nothing is never "0 %": those are ">99 %" and "<1 %". Without a whole, or below zero, there is no share: "–".
func Percent(part, whole int64) string {
	if whole <= 0 || part < 0 {
		return nothing
	}
	p := 100 * (float64(part) / float64(whole))
	switch {
	case part == 0:
		return "0 %"
	case part == whole:
		return "100 %"
	case p < 1:
		return "<1 %"
	case part < whole && p > 99:
		return ">99 %"
	case part > whole && p < 101:
		return ">100 %"
	}
	return strconv.FormatFloat(math.Round(p), 'f', 0, 64) + " %"
}

// Ratio returns how many times before went into now: "×1.3", "×100.0", "×1,000". Small ones, which one decimal
// cannot show, are "×<0.1". If before is not positive it is "–".
func Ratio(now, before int64) string {
	if before <= 0 || now < 0 {
		return nothing
	}
	r := float64(now) / float64(before)
	switch {
	case now == 0:
		return "×0"
	case r < 0.1:
		return "×<0.1"
	case r < 999.95:
		return "×" + strconv.FormatFloat(r, 'f', 1, 64)
	case r < math.MaxInt64:
		return "×" + Count(int64(math.Round(r)))
	}
	return "×" + Count(now) // before was 1, and float64 rounded up to 2^63
}

// Duration returns d in at most two units, rounded: "350 ms", "4.2 s", "42 s", "3 min 5 s", "2 h 14 min", "3 d 4 h".
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	if d < 0 {
		return "-" + Duration(-max(d, -math.MaxInt64))
	}
	// Each step rounds to what it would show and, where that reaches the next unit, leaves it to the next step.
	if r := d.Round(time.Millisecond); r < time.Second {
		if r == 0 && d > 0 {
			return "<1 ms"
		}
		return fmt.Sprintf("%d ms", r/time.Millisecond)
	}
	if r := d.Round(time.Second / 10); r < 10*time.Second {
		return strings.TrimSuffix(fmt.Sprintf("%d.%d", r/time.Second, r%time.Second/(time.Second/10)), ".0") + " s"
	}
	if r := d.Round(time.Second); r < time.Minute {
		return fmt.Sprintf("%d s", r/time.Second)
	} else if r < time.Hour {
		return pair(r, time.Minute, "min", time.Second, "s")
	}
	if r := d.Round(time.Minute); r < day {
		return pair(r, time.Hour, "h", time.Minute, "min")
	}
	return pair(d.Round(time.Hour), day, "d", time.Hour, "h")
}

func pair(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := fmt.Sprintf("%d %s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		s += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return s
}

// Ago returns when t was, seen from now: "now", "12 s ago", "5 min ago", "30 h ago", "12 d ago", and from 60 days on
// its date. A future time, as a wrong clock writes it, is "5 min from now". The zero time is "–".
func Ago(t, now time.Time) string {
	const day = 24 * time.Hour
	const dated = 60 * day
	switch d := now.Sub(t); {
	case t.IsZero():
		return nothing
	case d >= dated, d <= -dated:
		return t.Format(time.DateOnly)
	}
	return humanize.CustomRelTime(t, now, "ago", "from now", []humanize.RelTimeMagnitude{
		{D: time.Second, Format: "now", DivBy: 1},
		{D: time.Minute, Format: "%d s %s", DivBy: time.Second},
		{D: time.Hour, Format: "%d min %s", DivBy: time.Minute},
		{D: 2 * day, Format: "%d h %s", DivBy: time.Hour},
		{D: dated, Format: "%d d %s", DivBy: day},
	})
}

// Plural returns n with its noun, which is given in the singular and is a regular one: "1 operator", "3 operators",
// "2 entries".
func Plural(n int64, noun string) string {
	if n != 1 {
		noun = plural(noun)
	}
	return Count(n) + " " + noun
}

func plural(noun string) string {
	stem, y := strings.CutSuffix(noun, "y")
	switch {
	case y && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])):
		return stem + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"),
		strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "sh"):
		return noun + "es"
	}
	return noun + "s"
}

// Sparkline draws values as bars from zero up, "▁▂▅█": the largest is a full bar, and heights compare as the
// values do. Values below zero are drawn as zero.
func Sparkline(values []int64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	top := int64(1)
	for _, v := range values {
		top = max(top, v)
	}
	out := make([]rune, len(values))
	for i, v := range values {
		share := float64(max(v, 0)) / float64(top)
		out[i] = bars[int(math.Round(share*float64(len(bars)-1)))]
	}
	return string(out)
}
