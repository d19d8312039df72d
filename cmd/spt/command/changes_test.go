package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestReadChanges: lines are numbered, and what is wrong with one does not end the file.
func TestReadChanges(t *testing.T) {
	env := &Env{Stdin: strings.NewReader("\ufeff{\"operator\":\"a\",\"state\":\"s\",\"value\":null}\r\n\n{\n" + `{"operator":"a","state":"s","key":[1, 2],"value_hex":""}`)}
	var got []string
	for l, err := range env.readChanges(t.Context(), "--changes", "-") {
		var wrong *lineError
		switch {
		case errors.As(err, &wrong) && wrong.line == 3:
			got = append(got, "wrong")
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, string('0'+rune(l.number))+string(l.Key)+string(l.Value))
		}
	}
	if want := "1null wrong 4[1, 2]"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	env = &Env{Stdin: strings.NewReader("\xff\xfe{\x00")}
	for _, err := range env.readChanges(t.Context(), "--changes", "-") {
		if err == nil || !strings.Contains(err.Error(), "UTF-16") {
			t.Error(err)
		}
	}
	// A pipe that nobody writes to ends with the context.
	r, w := io.Pipe()
	defer w.Close() //nolint:errcheck // nothing is written
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env = &Env{Stdin: r}
	for _, err := range env.readChanges(ctx, "--changes", "-") {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestParseValue(t *testing.T) {
	for _, x := range []struct{ text, operator, state, at, value string }{
		{`sink/buffer[0,3]=17`, "sink", "buffer", "0,3", "17"},
		{`a/b/c[1, 2]= {"x":"]=1"} `, "a/b", "c", "1,2", `{"x":"]=1"}`},
		{`Source: [x]/s[0][0,1]=[[1]]`, "Source: [x]", "s[0]", "0,1", "[[1]]"},
		{`rules/rules["a]=b"]="x"`, "rules", "rules", `"a]=b"`, `"x"`},
		{`a/b["k", {"id":1}]=1`, "a", "b", `"k",{"id":1}`, "1"},
		{`rules/rules[[1,2]]=null`, "rules", "rules", `[1,2]`, `null`},
		{`a/b`, "", "", "", ""}, {`a/b[0,1]`, "", "", "", ""}, {`a/b[0,1]=`, "", "", "", ""}, {`a/b[0,1]=x`, "", "", "", ""}, {`/b[0,1]=1`, "", "", "", ""}, {`a/[0,1]=1`, "", "", "", ""}, {`b[0,1]=1`, "", "", "", ""}, {`a/b[0,1,2]=1`, "", "", "", ""},
	} {
		l, err := parseValue(x.text)
		if x.state == "" {
			if err == nil {
				t.Errorf("%s: %+v", x.text, l)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", x.text, err)
			continue
		}
		at := string(l.Key)
		if len(l.pair) == 2 {
			at = string(l.pair[0]) + "," + string(l.pair[1])
		}
		if l.Operator != x.operator || l.State != x.state || at != x.at || string(l.Value) != x.value {
			t.Errorf("%s: %s, %s, %s, %s", x.text, l.Operator, l.State, at, l.Value)
		}
	}
}

// A pair of --value is a subtask and an index if the state is not keyed.
func TestSetIndex(t *testing.T) {
	for text, want := range map[string]string{`a/b[2,3]=1`: "2 3", `a/b[0,"x"]=1`: "", `a/b[-1,1]=1`: "", `a/b["k","x"]=1`: ""} {
		l, err := parseValue(text)
		if err != nil {
			t.Fatal(err)
		}
		switch err := l.setIndex(); {
		case (err == nil) != (want != ""):
			t.Errorf("%s: %v", text, err)
		case err == nil && fmt.Sprint(*l.Subtask, *l.Index) != want:
			t.Errorf("%s: %d, %d", text, *l.Subtask, *l.Index)
		}
	}
}

// FuzzParseChange: a line is a change with an operator and a state, or an error.
func FuzzParseChange(f *testing.F) {
	for _, text := range []string{`{"operator":"a","state":"s","subtask":0,"index":3,"value":{"x":[1,null]},"was":1}`, `{"id":"a","state":"s","key":"k","op":"remove"}`, `[]`, `{"operator":1}`, `{}{}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		l, err := parseChange(p)
		if err == nil && (l.State == "" || l.Operator+l.ID == "" || l.Subtask != nil && *l.Subtask < 0) {
			t.Errorf("%+v", l)
		}
		if l, err := parseValue(string(p)); err == nil && (l.State == "" || l.Operator == "" || !json.Valid(l.Value)) {
			t.Errorf("%+v", l)
		}
	})
}
