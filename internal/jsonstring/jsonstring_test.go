package jsonstring_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/jsonstring"
)

// TestAppend: strings by hand, in both ways.
func TestAppend(t *testing.T) {
	for _, x := range []struct{ in, want, printable string }{
		{"", `""`, `""`},
		{`a"b\c/<&>`, `"a\"b\\c/<&>"`, `"a\"b\\c/<&>"`},
		{"\x00\b\t\n\f\r\x1f~\x7f", `"\u0000\u0008\u0009\u000a\u000c\u000d\u001f~` + "\x7f" + `"`, `"\u0000\u0008\t\n\u000c\r\u001f~\u007f"`},
		{"é✓𝄞\u009b\u202e\U000e0041\ufffd", "\"é✓𝄞\u009b\u202e\U000e0041\ufffd\"", `"é✓𝄞\u009b\u202e\udb40\udc41` + "\ufffd\""},
		{"a\xed\xa0\x80b\xed\xb0\x80", `"a\ud800b\udc00"`, `"a\ud800b\udc00"`},
		{"\xffx\xc3\xed\xa0", "\"\ufffdx\ufffd\ufffd\ufffd\"", `"\ufffdx\ufffd\ufffd\ufffd"`},
	} {
		for printable, want := range map[bool]string{false: x.want, true: x.printable} {
			got := string(jsonstring.Append([]byte("before"), x.in, printable))
			if got != "before"+want {
				t.Errorf("%q: %s, want %s", x.in, got, want)
			}
		}
	}
}

// FuzzAppend: encoding/json reads what is written, and it is the text, apart from bytes
// that are not UTF-8.
func FuzzAppend(f *testing.F) {
	for _, s := range []string{"plain", "\u2028\x00\"\\", "\xed\xa0\x80\xff", "𝄞\U000e0041"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, printable := range []bool{false, true} {
			p := jsonstring.Append(nil, s, printable)
			var back string
			if err := json.Unmarshal(p, &back); err != nil {
				t.Fatalf("%q: %s: %v", s, p, err)
			}
			if valid := strings.ToValidUTF8(s, ""); valid == s && back != s {
				t.Fatalf("%q: %s is read as %q", s, p, back)
			}
		}
	})
}
