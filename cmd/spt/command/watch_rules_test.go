package command

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// FuzzParseRules: whatever is in a file of rules, it is read or it is wrong usage, and
// no error shows what an environment variable holds.
func FuzzParseRules(f *testing.F) {
	example, err := os.ReadFile("../../../docs/watch/rules.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		string(example), "", "~", "[]", "rules:\n", "rules: {}\n", "rules: [5]\n", "rules: [{name: a}]\n", "rules: &a [*a]\n", "webhook: 5\nrules: []\n",
		"webhook: {url: 'http://[::1'}\nrules: [{name: a, older-than: 5m}]\n", "webhook: {url-env: X, bearer-env: Y}\nrules: [{name: a, older-than: 1d}]\n",
		"rules: [{name: a, fail-if: '('}]\n", "rules: [{name: a, older-than: -5m}]\n", "rules: [{name: [a]}]\n", "rules: [{name: a, name: b}]\n", "\x00", "\xff\xfe",
	} {
		f.Add(s)
	}
	const secret = "ftp://hunter2"
	env := &Env{Getenv: func(string) string { return secret }}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRules(env, "rules.yaml", []byte(text))
		var usage *usageError
		switch {
		case err == nil && len(r.rules) == 0:
			t.Error("a file without rules")
		case err != nil && !errors.As(err, &usage):
			t.Errorf("%T: %v", err, err)
		case err != nil && !strings.Contains(text, "hunter2") && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%v", err)
		}
	})
}
