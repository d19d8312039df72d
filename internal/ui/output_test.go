package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

type item struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func TestJSON(t *testing.T) {
	tests := []struct {
		name string
		in   any
		want string
	}{
		{"indented, no html", item{"a<b>&c", math.MaxInt64}, "{\n  \"name\": \"a<b>&c\",\n  \"size\": 9223372036854775807\n}\n"},
		{"empty list", []item{}, "[]\n"},
		{"wide", "注文", "\"注文\"\n"},
		{"controls", "\x1b[2J\x7f\u009b\u202e\u2028\ufeff", `"\u001b[2J\u007f\u009b\u202e\u2028\ufeff"` + "\n"},
		{"beyond 16 bits", "\U000e0041😀", `"\udb40\udc41😀"` + "\n"},
		{"key", map[string]int{"a\u009b": 1}, "{\n  \"a\\u009b\": 1\n}\n"},
		{"raw, not UTF-8", json.RawMessage("\"a\xffb\""), `"a\ufffdb"` + "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := JSON(&b, tt.in); err != nil {
				t.Fatal(err)
			}
			if b.String() != tt.want {
				t.Errorf("got %s, want %s", b.String(), tt.want)
			}
		})
	}
}

// Escaping is for the eye: the value that is read back is the one that was written.
func TestJSONKeepsValues(t *testing.T) {
	var all strings.Builder
	for r := rune(0); r < 0x3100; r++ {
		all.WriteRune(r)
	}
	all.WriteString("\U000e0041\U0010ffff\\\"")
	var b strings.Builder
	if err := JSON(&b, all.String()); err != nil {
		t.Fatal(err)
	}
	if !isClean(strings.TrimSuffix(b.String(), "\n")) {
		t.Error("something that is not printable was written")
	}
	var back string
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back != all.String() {
		t.Errorf("read back differently: %v", err)
	}
}

func TestJSONFails(t *testing.T) {
	var b strings.Builder
	if err := JSON(&b, math.NaN()); err == nil || b.Len() > 0 {
		t.Errorf("NaN: got %v and %q", err, b.String())
	}
	if err := JSON(&full{1}, "abc"); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

func TestJSONLines(t *testing.T) {
	var b strings.Builder
	j := NewJSONLines(&b)
	if err := errors.Join(j.Encode(item{"<a>\n\u009b", 1}), j.Encode([]int{1, 2})); err != nil {
		t.Fatal(err)
	}
	if err := j.Encode(math.Inf(1)); err == nil {
		t.Error("infinity was encoded")
	}
	if err := errors.Join(j.Encode(nil), j.Flush()); err != nil {
		t.Fatal(err)
	}
	want := `{"name":"<a>\n\u009b","size":1}` + "\n[1,2]\nnull\n"
	if b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}

func TestJSONLinesStaysFailed(t *testing.T) {
	j := NewJSONLines(&full{10})
	if err := j.Encode(strings.Repeat("a", 1<<20)); !errors.Is(err, errFull) {
		t.Errorf("Encode: got %v, want %v", err, errFull)
	}
	if err := j.Encode(1); !errors.Is(err, errFull) {
		t.Errorf("Encode again: got %v, want %v", err, errFull)
	}
	if err := j.Flush(); !errors.Is(err, errFull) {
		t.Errorf("Flush: got %v, want %v", err, errFull)
	}
}

func TestCSV(t *testing.T) {
	var b strings.Builder
	c := NewCSV(&b, "name", "bytes")
	err := errors.Join(c.Row("plain", "1"), c.Row(`a,"b"`, "2"), c.Row("a\nb\x1b\u202e\xff", ""), c.Row("注文", "-1"), c.Flush())
	if err != nil {
		t.Fatal(err)
	}
	want := "name,bytes\nplain,1\n\"a,\"\"b\"\"\",2\n" + `a\nb\x1b\u202e\xff,` + "\n注文,-1\n"
	if b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}

func TestCSVFails(t *testing.T) {
	c := NewCSV(&full{5}, "name", "bytes")
	if err := c.Flush(); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
	if err := c.Row("a", "b"); !errors.Is(err, errFull) {
		t.Errorf("row after a failure: got %v, want %v", err, errFull)
	}

	var b strings.Builder
	c = NewCSV(&b, "name", "bytes")
	if err := c.Row("a"); err == nil {
		t.Error("a short row was taken")
	}
	if err := c.Flush(); err == nil {
		t.Error("Flush forgot the short row")
	}
}

// TestAppendJSON: strings written by hand are those that JSON writes, character by character.
func TestAppendJSON(t *testing.T) {
	all := []string{"", "plain", `a"b\c`, "tab\tline\nreturn\r", "\x00\x1f\x7f\x80\xff", "é✓𝄞", "\u009b[2J", "\u202e\u200b\U000e0041", "<&>", "\ufffd", "\xc3", "x\xc3"}
	for r := rune(0); r < 0x3000; r++ {
		all = append(all, string(r))
	}
	if got := string(AppendJSON(nil, "a\xed\xa0\x80b\xed\xb0\x80")); got != `"a\ud800b\udc00"` {
		t.Errorf("halves of surrogate pairs: %s", got)
	}
	for _, s := range all {
		var want bytes.Buffer
		if err := JSON(&want, s); err != nil {
			t.Fatal(err)
		}
		got := AppendJSON([]byte("x"), s)
		// encoding/json has short forms that hardly anyone else writes.
		short := strings.NewReplacer(`\b`, `\u0008`, `\f`, `\u000c`)
		if w := "x" + strings.TrimSuffix(short.Replace(want.String()), "\n"); string(got) != w && !strings.Contains(s, `\`) {
			t.Errorf("%q: %s, not %s", s, got, w)
		}
		var back, exact string
		if json.Unmarshal(got[1:], &back) != nil || json.Unmarshal(want.Bytes(), &exact) != nil || back != exact {
			t.Errorf("%q read back as %q", s, back)
		}
	}
}
