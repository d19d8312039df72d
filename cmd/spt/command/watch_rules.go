package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/watch"
	"github.com/savepoint-tools/spt/internal/watch/notify"
)

// watchRules are the rules of a file, and where events are sent.
type watchRules struct {
	url, bearer string // secrets; "": no webhook, no token
	rules       []watchRule
}

// watchRule is a condition on the newest checkpoint of a job.
type watchRule struct {
	name, severity string
	condition      string
	guard          *guard // or
	olderThan      time.Duration
}

// engine returns the rules as package watch needs them.
func (r *watchRules) engine() (all []watch.Rule) {
	for _, rule := range r.rules {
		all = append(all, watch.Rule{Name: rule.name, OlderThan: rule.olderThan})
	}
	return all
}

func (r *watchRules) names() (all []string) {
	for _, rule := range r.rules {
		all = append(all, rule.name)
	}
	return all
}

// longestRuleName bounds a label of a metric.
const longestRuleName = 100

// parseRules reads the file of --rules. Errors name the line, and no value that can be
// a secret.
func parseRules(env *Env, name string, text []byte) (*watchRules, error) {
	fail := func(line int, format string, args ...any) error {
		return usagef("%s:%d: %s", ui.Quote(name), line, fmt.Sprintf(format, args...))
	}
	root, err := yamlRoot(text, fail, "the file is empty: it needs rules:")
	if err != nil {
		return nil, err
	}
	r := &watchRules{}
	err = eachOf(root, fail, "the file", map[string]func(*yaml.Node) error{
		"webhook": func(n *yaml.Node) error { return r.parseWebhook(env, n, fail) },
		"rules": func(n *yaml.Node) error {
			if n.Kind != yaml.SequenceNode {
				return fail(n.Line, "rules is a list, such as: - {name: large, fail-if: total_bytes > GiB}")
			}
			for _, item := range n.Content {
				rule, err := parseRule(item, fail)
				if err != nil {
					return err
				}
				if slices.Contains(r.names(), rule.name) {
					return fail(item.Line, "two rules have the name %s", ui.Quote(rule.name))
				}
				r.rules = append(r.rules, rule)
			}
			return nil
		},
	})
	if err == nil && len(r.rules) == 0 {
		err = fail(root.Line, "it has no rules")
	}
	return r, err
}

func (r *watchRules) parseWebhook(env *Env, n *yaml.Node, fail failure) error {
	variable := func(to *string) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			name := ""
			if err := text(&name, fail)(n); err != nil {
				return err
			}
			if *to = env.Getenv(name); *to == "" {
				return fail(n.Line, "the environment variable %s is not set", ui.Quote(name))
			}
			return nil
		}
	}
	var plain, ofEnv string
	err := eachOf(n, fail, "webhook", map[string]func(*yaml.Node) error{
		"url": text(&plain, fail), "url-env": variable(&ofEnv), "bearer-env": variable(&r.bearer),
	})
	if err != nil {
		return err
	}
	if (plain == "") == (ofEnv == "") {
		return fail(n.Line, "webhook needs either url or url-env")
	}
	r.url = cmp.Or(plain, ofEnv)
	if err := notify.CheckURL(r.url); err != nil {
		return fail(n.Line, "the URL of the webhook cannot be used: %v", err)
	}
	return nil
}

func parseRule(n *yaml.Node, fail failure) (r watchRule, err error) {
	var expression, old string
	err = eachOf(n, fail, "a rule", map[string]func(*yaml.Node) error{
		"name": text(&r.name, fail), "severity": text(&r.severity, fail), "fail-if": text(&expression, fail), "older-than": text(&old, fail),
	})
	switch {
	case err != nil:
		return r, err
	case r.name == "":
		return r, fail(n.Line, "a rule needs a name")
	case len(r.name) > longestRuleName:
		return r, fail(n.Line, "the name of a rule has %d bytes, expected at most %d", len(r.name), longestRuleName)
	case (expression == "") == (old == ""):
		return r, fail(n.Line, "rule %s needs either fail-if or older-than", ui.Quote(r.name))
	case old != "":
		var limit age
		if err := limit.Set(old); err != nil || limit == 0 {
			return r, fail(n.Line, "older-than %s: expected a duration such as 90m, 12h or 7d", ui.Quote(old))
		}
		r.olderThan, r.condition = time.Duration(limit), "older than "+limit.String()
		return r, nil
	}
	r.condition = expression
	if r.guard, err = newGuard("rule "+ui.Quote(r.name), expression); err != nil {
		hint := ""
		if e, ok := errors.AsType[*usageError](err); ok {
			hint = e.hint
		}
		return r, &usageError{fail(n.Line, "%v", err).Error(), hint}
	}
	if r.guard.counts {
		return r, &usageError{fail(n.Line, "rule %s names counts of entries of keyed state, which are not read", ui.Quote(r.name)).Error(), ""}
	}
	return r, nil
}

// text returns a function that reads a text.
func text(to *string, fail failure) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.Value == "" {
			return fail(n.Line, "expected a text that is not empty")
		}
		*to = n.Value
		return nil
	}
}

// eachOf calls a function for each key of a map, and refuses unknown keys.
func eachOf(n *yaml.Node, fail failure, what string, keys map[string]func(*yaml.Node) error) error {
	var known []string
	for key := range keys {
		known = append(known, key)
	}
	slices.Sort(known)
	if n.Kind != yaml.MappingNode {
		return fail(n.Line, "%s is a map; available: %s", what, strings.Join(known, ", "))
	}
	return eachKey(n, fail, func(key, value *yaml.Node) error {
		read, ok := keys[key.Value]
		if !ok {
			return fail(key.Line, "unknown key %s; %s", ui.Quote(key.Value), oneOf(key.Value, known))
		}
		return read(value)
	})
}
