package ui

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// The types in this file are flag values: with Set, String and Type they are what pflag calls a Value. Their zero
// values are the defaults.

// Output is the value of --output: how the answer is printed.
type Output uint8

// The outputs: for people, one JSON value, one JSON value a line, comma-separated, a Parquet file.
const (
	OutputTable Output = iota
	OutputJSON
	OutputJSONL
	OutputCSV
	OutputParquet
)

// OutputNames returns the words that --output takes, in their order.
func OutputNames() []string { return []string{"table", "json", "jsonl", "csv", "parquet"} }

// Set takes one of [OutputNames].
func (o *Output) Set(s string) error { return choose(o, s, OutputNames()) }
func (o Output) String() string      { return name(o, OutputNames()) }

// Type is what --help shows for the value.
func (o Output) Type() string { return strings.Join(OutputNames(), "|") }

// JSON says whether the answer is for a program that reads JSON; then errors are JSON too, and nothing is drawn.
func (o Output) JSON() bool { return o == OutputJSON || o == OutputJSONL }

// ColorMode is the value of --color.
type ColorMode uint8

// When to colour; [Detect] says what auto means.
const (
	ColorAuto ColorMode = iota
	ColorAlways
	ColorNever
)

// ColorNames returns the words that --color takes, in their order.
func ColorNames() []string { return []string{"auto", "always", "never"} }

// Set takes one of [ColorNames].
func (c *ColorMode) Set(s string) error { return choose(c, s, ColorNames()) }
func (c ColorMode) String() string      { return name(c, ColorNames()) }

// Type is what --help shows for the value.
func (c ColorMode) Type() string { return strings.Join(ColorNames(), "|") }

// Format is the value of --format: how bytes from a file are shown.
type Format uint8

// The ways to show bytes; [Value] says what they mean.
const (
	FormatAuto Format = iota
	FormatText
	FormatHex
	FormatBase64
	FormatRedacted
)

// FormatNames returns the words that --format takes, in their order.
func FormatNames() []string { return []string{"auto", "text", "hex", "base64", "redacted"} }

// Set takes one of [FormatNames].
func (f *Format) Set(s string) error { return choose(f, s, FormatNames()) }
func (f Format) String() string      { return name(f, FormatNames()) }

// Type is what --help shows for the value.
func (f Format) Type() string { return strings.Join(FormatNames(), "|") }

func choose[T ~uint8](to *T, s string, names []string) error {
	for i, n := range names {
		if n == s {
			*to = T(i)
			return nil
		}
	}
	last := len(names) - 1
	return fmt.Errorf("must be %s or %s", strings.Join(names[:last], ", "), names[last])
}

func name[T ~uint8](v T, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("unknown (%d)", uint8(v))
}

// Size is a flag value in bytes: "20000", "64KiB", "1MB", "1.5 GiB". Case does not matter; KB is 1000 bytes, KiB is
// 1024. A bare K, M or G is refused, because tools do not agree on it.
type Size int64

// Set takes a number that is not negative and comes out at whole bytes, and a unit.
func (s *Size) Set(text string) error {
	const want = "must be a size like 20000, 64KiB or 1.5GB"
	number := strings.TrimSpace(text)
	unit := strings.TrimLeft(number, "0123456789.")
	number = strings.TrimSpace(number[:len(number)-len(unit)])
	unit = strings.ToLower(strings.TrimSpace(unit))
	scale, ok := unitSize(unit)
	if !ok {
		if len(unit) == 1 && strings.Contains("kmgtpe", unit) {
			unit = strings.ToUpper(unit)
			return fmt.Errorf("%s could be %siB (1024) or %sB (1000): say which", unit, unit, unit)
		}
		return errors.New(want)
	}
	// The length is bounded for the sake of the exact arithmetic. The syntax is checked because Rat takes more: "1/3".
	const longest = 40
	whole, fraction, point := strings.Cut(number, ".")
	if len(number) > longest || !digits(whole) || point && !digits(fraction) {
		return errors.New(want)
	}
	n, _ := new(big.Rat).SetString(number)
	n.Mul(n, new(big.Rat).SetInt64(scale))
	switch {
	case !n.IsInt():
		return errors.New("must come out at whole bytes")
	case !n.Num().IsInt64():
		return fmt.Errorf("must be at most %d bytes", int64(math.MaxInt64))
	}
	*s = Size(n.Num().Int64())
	return nil
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// unitSize returns what a unit, in lower case, multiplies by.
func unitSize(unit string) (int64, bool) {
	if unit == "" || unit == "b" {
		return 1, true
	}
	power := 1 + strings.IndexByte("kmgtpe", unit[0])
	base := int64(0)
	switch unit[1:] {
	case "b":
		base = 1000
	case "ib":
		base = 1024
	}
	if power == 0 || base == 0 {
		return 0, false
	}
	n := int64(1)
	for range power {
		n *= base // 1024^6 is 2^60
	}
	return n, true
}

// String returns s exactly, in the largest IEC unit that divides it. [Size.Set] reads it back.
func (s Size) String() string {
	const units = "KMGTPE"
	n, i := int64(s), 0
	for n != 0 && n%1024 == 0 && i < len(units) {
		n, i = n/1024, i+1
	}
	if i == 0 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%d%ciB", n, units[i-1])
}

// Type is what --help shows for the value.
func (s Size) Type() string { return "size" }
