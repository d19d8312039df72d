package jsontext

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// plain converts a node as encoding/json would.
func plain(n Node) any {
	switch n.Kind {
	case Null:
		return nil
	case Bool:
		return n.Text == "true"
	case Number:
		return json.Number(n.Text)
	case String:
		return n.Text
	case Array:
		all := []any{}
		for _, p := range n.Parts {
			all = append(all, plain(p))
		}
		return all
	}
	m := map[string]any{}
	for i, name := range n.Names {
		m[name] = plain(n.Parts[i])
	}
	return m
}

var texts = []string{
	`null`, ` true `, `false`, `-0`, `12.50e+7`, `""`, `"a\"\\\/\b\f\n\r\té\u00e9\ud834\udd1e"`, `[]`, `{}`, `[1,"x",[null]]`, "{ \"b\" : 1 ,\n\"a\" : { \"\\u0062\" : [ ] } }",
}

// TestParse compares with encoding/json.
func TestParse(t *testing.T) {
	for _, text := range texts {
		n, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var want any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(plain(n))
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Errorf("%s: %s, want %s", text, a, b)
		}
	}
	n, err := Parse([]byte(`"\ud800x\udc00\ud800\u0041"`))
	if want := "\xed\xa0\x80x\xed\xb0\x80\xed\xa0\x80A"; err != nil || n.Text != want {
		t.Errorf("%q, %v", n.Text, err)
	}
	n, err = Parse([]byte(`{"b":1,"a":2,"b":3}`))
	if err != nil || strings.Join(n.Names, "") != "bab" || n.Parts[2].Text != "3" {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestRefuses(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	for _, x := range []struct {
		in   []byte
		kind error
	}{
		{nil, format.ErrCorrupt}, {[]byte(`1 2`), format.ErrCorrupt}, {[]byte(`{a:1}`), format.ErrCorrupt}, {[]byte(`"`), format.ErrCorrupt}, {[]byte("\"\xff\""), format.ErrCorrupt}, {[]byte(`[1,]`), format.ErrCorrupt}, {[]byte(`01`), format.ErrCorrupt},
		{deep(1002), format.ErrLimit}, {deep(100_000), format.ErrCorrupt},
	} {
		if _, err := Parse(x.in); !errors.Is(err, x.kind) {
			t.Errorf("%.20s: %v", x.in, err)
		}
	}
	if _, err := Parse(deep(1001)); err != nil {
		t.Error(err)
	}
}

// FuzzParse: no panic, and the same values as encoding/json.
func FuzzParse(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		n, err := Parse(p)
		if err != nil {
			return
		}
		a, err := json.Marshal(plain(n))
		if err != nil {
			return // numbers that are too large
		}
		var want any
		d := json.NewDecoder(strings.NewReader(string(p)))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if b, _ := json.Marshal(want); string(a) != string(b) && !strings.Contains(string(b), "\ufffd") {
			t.Errorf("%s: %s, want %s", p, a, b)
		}
	})
}
