package command

import (
	"errors"
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
