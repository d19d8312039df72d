package command

import (
	"errors"
	"strings"
	"testing"
)

// FuzzParseRecipe: whatever stands in a recipe, it is read or it is wrong usage.
func FuzzParseRecipe(f *testing.F) {
	for _, s := range []string{
		"", "# nothing\n", "---\n", "null\n", "~", "steps:\n", "steps: {}\n", "[]", "? [a]\n: b\n", "steps:\n  - drop: {operator: a}\n",
		"steps:\n  - drop:\n", "steps:\n  - 5\n", "steps:\n  - {drop: {operator: a}, rename: {uid: a=b}}\n",
		"steps:\n  - rename: {uid: {a: b, c: d}, state-name: [x=y]}\n", "steps: &a\n  - drop: *a\n", "steps:\n  - rename: {uid: {a=b: c}}\n",
		"steps:\n  - relocate: {map: {}}\n", "steps:\n  - drop: {operator: []}\n", "a: &a [*a]\n", "steps:\n  - !!binary drop: {}\n", "<<: {steps: []}\n",
		"steps:\n  - set: {checkpoint-id: 1e3}\n", "steps:\n  - drop: {channels: yes}\n", "\x00", "\xff\xfe",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRecipe(&Env{}, "recipe.yaml", []byte(text))
		var usage *usageError
		switch {
		case err == nil && len(r.steps) == 0:
			t.Error("a recipe without steps")
		case err != nil && !errors.As(err, &usage):
			t.Errorf("%T: %v", err, err)
		}
	})
}

// A syntax error names the line that one has to look at, and where that began in
// which it is.
func TestRecipeSyntaxLine(t *testing.T) {
	for text, want := range map[string]string{
		"steps:\n  - drop: {operator: a}\n  - drop:\n      operator: b\n  - rename: {uid: {a: b}\n": "5: did not find expected ',' or '}', while parsing a flow mapping that begins in line 5",
		"steps:\n  - rename: {uid: {a: b}\n  - drop: {operator: c}\n":                               "3: did not find expected ',' or '}', while parsing a flow mapping that begins in line 2",
		"steps: [\n":              "1: did not find expected node content",
		"{steps: [a],\n b: [c]\n": "2: did not find expected ',' or '}', while parsing a flow mapping that begins in line 1",
		"steps: 'a\n b\n":         "2: found unexpected end of stream, while scanning a quoted scalar that begins in line 1",
		"{steps: [a]":             "1: did not find expected ',' or '}'",
		"steps:\n  - drop: [a,\n      b\n  - x: y\n":                                            "4: did not find expected ',' or ']', while parsing a flow sequence that begins in line 2",
		"steps:\n  - drop: {operator: a}\n  - drop:\n   operator: b\n  - drop: {operator: c}\n": "4: did not find expected '-' indicator",
		"steps:\n  - drop: {operator: a}\n  - drop:\n   operator:\n  - drop: {operator: c}\n":   "4: did not find expected '-' indicator",
		"steps:\n  - drop: {operator: a}\n x:\n  - drop: {operator: c}\n":                       "3: did not find expected",
		"steps:\n  - drop:\n      operator: a\n     state: b\n":                                 "4: did not find expected",
		"steps:\n  - drop: {operator: a}\n- drop: {operator: b}\n":                              "3: did not find expected key",
		"steps:\n  - drop: {operator: ]}\n":                                                     "2: did not find expected node content",
		"steps: ]\n":                                                                            "1: did not find expected node content",
		"steps:\n  - drop:\n      operator: a: b\n":                                             "3: mapping values are not allowed",
		"steps:\n  - drop:\n      operator: a\n      state\n  - x: {}\n":                        "5: could not find expected ':', while scanning a simple key that begins in line 4",
		"steps:\n  - drop:\n      operator: 'a\n  - x\n":                                        "4: found unexpected end of stream, while scanning a quoted scalar that begins in line 3",
		"steps:\n  - drop:\n\t  operator: a\n":                                                  "3: found character that cannot start any token",
		"a: b: c\n":                                                                             "1: mapping values are not allowed",
		"steps:\n  - a: \x01\n":                                                                 "2: control characters are not allowed",
		"steps:\n  - a: \xff\n":                                                                 "2: ",
		"steps:\n  - a: *b\n":                                                                   "2: unknown anchor 'b' referenced",
		"steps: []\n---\nsteps:\n":                                                              "2: more than one document",
		"{a: b}\n{c: d}\n":                                                                      "2: did not find expected <document start>",
	} {
		_, err := parseRecipe(&Env{}, "r.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "r.yaml:"+want) {
			t.Errorf("%q: %v, want r.yaml:%s", text, err, want)
		}
	}
}
