package ui

import (
	"strings"
	"testing"
)

func wrap(line string, width int) string {
	return fold(line, hangOf(line), Term{IsTTY: width > 0, Width: width, Color: true})
}

func TestWrap(t *testing.T) {
	for _, x := range []struct {
		name  string
		line  string
		width int
		want  string
	}{
		{"fits", "short", 5, "short"},
		{"no terminal", strings.Repeat("x ", 100), 0, strings.Repeat("x ", 100)},
		{"at blanks, further in", "one two three four", 10, "one two\n  three\n  four"},
		{"its blanks stay", "one   two three", 9, "one   two\n  three"},
		{"under the text of a mark", "! one two three", 9, "! one two\n  three"},
		{"under the text of a label", "  warning  the file is missing here", 24, "  warning  the file is\n           missing here"},
		{"a label that leaves no room", "  warning  the file is missing", 14, "  warning  the\n    file is\n    missing"},
		{"a long word", "! /data/flink/orders/chk-4211/_metadata is missing", 20, "! /data/flink/orders\n  /chk-4211/_metadat\n  a is missing"},
		{"a command", "  spt rename in out --operator \"a b\" --to c", 24, "  spt rename in out \\\n      --operator \"a b\" \\\n      --to c"},
		{"a quote in an argument", `  spt cat in --state 'it'\''s a b' --distinct`, 30, "  spt cat in --state \\\n      'it'\\''s a b' \\\n      --distinct"},
		{"an argument that is too long stays whole", "  spt verify /data/flink/orders/chk-4211", 20, "  spt verify \\\n      /data/flink/orders/chk-4211"},
		{"a command after text", "Nothing written. Add an output:  spt rename in OUT --to c", 30, "Nothing written. Add an\n  output:\n  spt rename in OUT --to c"},
		{"a number and its unit", "one two 16 KiB, 25 %)", 10, "one two\n  16 KiB,\n  25 %)"},
		{"not a command", "spt reads savepoints of all kinds", 20, "spt reads savepoints\n  of all kinds"},
		{"wide characters", "注文注文 注文", 5, "注文\n  注\n  文\n  注\n  文"},
	} {
		got := wrap(x.line, x.width)
		if got != x.want {
			t.Errorf("%s:\n%q, want\n%q", x.name, got, x.want)
		}
	}
}

// However narrow: no line of text is wider, and nothing but blanks is lost. A
// command is the same command.
func TestWrapKeepsAll(t *testing.T) {
	red := Bad
	for _, line := range []string{
		"  error  operator \"sink\"/subtask 1: 5,745 bytes expected, 0 found in file:/data/flink/orders/shared/9f58a777-2f55-43d7-8061-e8225175f39f",
		red("damaged:") + " only 12 of 30 " + red("operators 1 2 3 4 5 6") + " are shown",
		"! even-ids of 33fb6e3d may be multiplied: 10 elements, 5 in each of 2 subtasks",
		strings.Repeat("0123456789", 20),
		"", " ", "   x",
	} {
		for width := 2; width < 100; width++ {
			got := wrap(line, width)
			for part := range strings.SplitSeq(got, "\n") {
				if Width(part) > width {
					t.Errorf("width %d: %q", width, part)
				}
			}
			squeeze := func(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(s) }
			if squeeze(got) != squeeze(line) {
				t.Errorf("width %d: %q became %q", width, line, got)
			}
		}
	}
	const command = `  spt prune-union "a folder/sp-007" OUT --state 'x y' --keep distinct`
	for width := 2; width < 100; width++ {
		got := strings.ReplaceAll(wrap(command, width), " \\\n", " ")
		if strings.Join(strings.Fields(got), " ") != strings.TrimSpace(command) {
			t.Errorf("width %d: %q", width, got)
		}
	}
}

// A command that names an address in a store ends in the flags that reach it, and can
// still be broken.
func TestRepeat(t *testing.T) {
	for _, x := range []struct {
		line  string
		width int
		want  string
	}{
		{"to read them:  spt verify --read s3://b/sp", 0, "to read them:  spt verify --read s3://b/sp --profile prod"},
		{"  spt clean s3://b/sp", 0, "  spt clean s3://b/sp --profile prod"},
		{"  spt clean s3://b/sp", 24, "  spt clean s3://b/sp \\\n      --profile prod"},
		{"to read them:  spt verify --read sp", 0, "to read them:  spt verify --read sp"},
		{"s3://b/sp: sound", 0, "s3://b/sp: sound"},
		{"spt reads s3://b/sp", 0, "spt reads s3://b/sp"},
	} {
		if got := fold(x.line, hangOf(x.line), Term{IsTTY: x.width > 0, Width: x.width, Repeat: "--profile prod"}); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

func TestLineWriter(t *testing.T) {
	var b strings.Builder
	w := NewLineWriter(&b, Term{IsTTY: true, Width: 10})
	for _, p := range []string{"one tw", "o three\nfour", "\n\nfive six seven"} {
		if n, err := w.Write([]byte(p)); err != nil || n != len(p) {
			t.Fatal(n, err)
		}
	}
	if got := b.String(); got != "one two\n  three\nfour\n\n" {
		t.Errorf("%q", got)
	}
	for range 2 {
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.String(); !strings.HasSuffix(got, "\nfive six\n  seven") {
		t.Errorf("%q", got)
	}
	if _, err := NewLineWriter(&full{3}, Term{IsTTY: true, Width: 10}).Write([]byte("abcdef\n")); err == nil {
		t.Error("no error of the writer")
	}
}
