package ui

import (
	"io"
	"math"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// All flag values are what pflag wants.
var _ = []pflag.Value{new(Output), new(ColorMode), new(Format), new(Size)}

func TestFlags(t *testing.T) {
	tests := []struct {
		args    string
		want    [4]string // output, color, format, size
		problem string    // part of the error
	}{
		{"", [4]string{"table", "auto", "auto", "0"}, ""},
		{"-o table --color auto --format auto", [4]string{"table", "auto", "auto", "0"}, ""},
		{"-o json --color always --format text --size 64KiB", [4]string{"json", "always", "text", "64KiB"}, ""},
		{"-o jsonl --color never --format hex --size 20000", [4]string{"jsonl", "never", "hex", "20000"}, ""},
		{"-o csv --format base64 --size 1MB", [4]string{"csv", "auto", "base64", "1000000"}, ""},
		{"--format redacted", [4]string{"table", "auto", "redacted", "0"}, ""},
		{"-o yaml", [4]string{}, `invalid argument "yaml" for "-o, --output" flag: must be table, json, jsonl, csv or parquet`},
		{"-o JSON", [4]string{}, "must be table, json, jsonl, csv or parquet"},
		{"--output=", [4]string{}, "must be table, json, jsonl, csv or parquet"},
		{"--color yes", [4]string{}, "must be auto, always or never"},
		{"--format raw", [4]string{}, "must be auto, text, hex, base64 or redacted"},
		{"--size 64K", [4]string{}, "K could be KiB (1024) or KB (1000): say which"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var (
				o Output
				c ColorMode
				f Format
				s Size
			)
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			fs.SetOutput(io.Discard)
			fs.VarP(&o, "output", "o", "")
			fs.Var(&c, "color", "")
			fs.Var(&f, "format", "")
			fs.Var(&s, "size", "")
			err := fs.Parse(strings.Fields(tt.args))
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("got error %v, want %s", err, tt.problem)
				}
				return
			}
			if got := [4]string{o.String(), c.String(), f.String(), s.String()}; err != nil || got != tt.want {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

func TestFlagTypes(t *testing.T) {
	for v, want := range map[pflag.Value]string{
		new(Output):    "table|json|jsonl|csv|parquet",
		new(ColorMode): "auto|always|never",
		new(Format):    "auto|text|hex|base64|redacted",
		new(Size):      "size",
	} {
		if got := v.Type(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := Output(9).String(); got != "unknown (9)" {
		t.Errorf("got %s", got)
	}
	for o, want := range map[Output]bool{OutputTable: false, OutputJSON: true, OutputJSONL: true, OutputCSV: false, OutputParquet: false} {
		if o.JSON() != want {
			t.Errorf("%v: JSON is %v", o, !want)
		}
	}
}

func TestSize(t *testing.T) {
	good := map[string]Size{
		"0": 0, "20000": 20000, "007": 7, "5B": 5, "5 b": 5,
		"1KB": 1000, "1kB": 1000, "1KiB": 1024, "64kib": 65536, "64 KiB": 65536, " 1 MB ": 1_000_000,
		"1.5GiB": 1_610_612_736, "0.5KiB": 512, "1.5KB": 1500, "1TB": 1e12, "1TiB": 1 << 40, "1PB": 1e15, "1PiB": 1 << 50, "1EB": 1e18,
		"7EiB": 7 << 60, "7.5EiB": 15 << 59,
		"9223372036854775807": math.MaxInt64,
	}
	for in, want := range good {
		var got Size
		if err := got.Set(in); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", in, int64(got), err, int64(want))
		}
	}
	bad := map[string]string{
		"": "must be a size", "KiB": "must be a size", "-1": "must be a size", "+1": "must be a size", "1e3": "must be a size",
		"1/3": "must be a size", "0x10": "must be a size", "1.2.3": "must be a size", ".5KB": "must be a size", "5.KB": "must be a size",
		"64KiBs": "must be a size", "1 K iB": "must be a size", "1ZB": "must be a size", "1_000": "must be a size", "1,000": "must be a size",
		"١٢": "must be a size", "64\xff": "must be a size", strings.Repeat("1", 41): "must be a size",
		"1M": "M could be MiB", "2g": "G could be GiB",
		"0.3KiB": "whole bytes", "1.5": "whole bytes",
		"9223372036854775808": "at most 9223372036854775807 bytes", "8EiB": "at most", "10EB": "at most", strings.Repeat("9", 40) + "EiB": "at most",
	}
	for in, want := range bad {
		got := Size(7)
		if err := got.Set(in); err == nil || !strings.Contains(err.Error(), want) || got != 7 {
			t.Errorf("%q: got %d, %v, want an error with %q", in, int64(got), err, want)
		}
	}
}

func TestSizeString(t *testing.T) {
	for s, want := range map[Size]string{
		0: "0", 1: "1", 1000: "1000", 1023: "1023", 1024: "1KiB", 1536: "1536", 2048: "2KiB", 1 << 20: "1MiB", 3 << 30: "3GiB",
		1 << 40: "1TiB", 1 << 50: "1PiB", 1 << 60: "1EiB", math.MaxInt64: "9223372036854775807",
	} {
		if got := s.String(); got != want {
			t.Errorf("%d: got %s, want %s", int64(s), got, want)
		}
		var back Size
		if err := back.Set(want); err != nil || back != s {
			t.Errorf("%s read back as %d, %v", want, int64(back), err)
		}
	}
}
