package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/savepoint-tools/spt/internal/ui"
)

// recipe is several edits, one after another.
type recipe struct {
	name  string // of its file
	steps []*recipeStep
}

// recipeStep is one edit: a command and its flags, by the names that they have
// on the command line.
type recipeStep struct {
	line int
	word string
	step
}

// parseRecipe reads a recipe:
//
//	steps:
//	  - drop: {operator: sink, state: [buffered, pending]}
//	  - rename: {uid: {old: new}}
//
// A key that is not known, one that comes twice and a value of the wrong kind
// are errors that name the line. Flags are checked as the commands check them.
func parseRecipe(env *Env, name string, text []byte) (*recipe, error) {
	r := &recipe{name: name}
	fail := func(line int, format string, args ...any) error {
		return usagef("%s:%d: %s", ui.Quote(name), line, fmt.Sprintf(format, args...))
	}
	root, err := yamlRoot(text, fail, "the recipe is empty: it begins with steps:")
	if err != nil {
		return nil, err
	}
	if root.Kind != yaml.MappingNode {
		return nil, fail(root.Line, "a recipe is a map with steps: in it")
	}
	var steps *yaml.Node
	err = eachKey(root, fail, func(key, value *yaml.Node) error {
		if key.Value != "steps" {
			return fail(key.Line, "unknown key %s; available: steps", ui.Quote(key.Value))
		}
		steps = value
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case steps == nil:
		return nil, fail(root.Line, "there are no steps: in it")
	case steps.Kind != yaml.SequenceNode || len(steps.Content) == 0:
		return nil, fail(steps.Line, "steps is a list of edits, such as: - drop: {operator: sink}")
	}
	for _, n := range steps.Content {
		if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
			return nil, fail(n.Line, "a step is one edit and its flags, such as: - drop: {operator: sink}")
		}
		word := n.Content[0]
		made, known := steppers[word.Value]
		if !known {
			return nil, fail(word.Line, "unknown step %s; %s", ui.Quote(word.Value), oneOf(word.Value, stepWords()))
		}
		s := &recipeStep{line: word.Line, word: word.Value, step: made()}
		if err := s.read(n.Content[1], fail); err != nil {
			return nil, err
		}
		if err := s.step.validate(env); err != nil {
			return nil, s.at(name, err)
		}
		r.steps = append(r.steps, s)
	}
	return r, nil
}

// yamlRoot returns the only document of a YAML text.
func yamlRoot(text []byte, fail failure, empty string) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, next yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fail(1, "%s", empty)
		}
		return nil, notYAML(text, err, fail)
	}
	switch err := d.Decode(&next); {
	case err == nil:
		return nil, fail(next.Line, "more than one document")
	case !errors.Is(err, io.EOF):
		return nil, notYAML(text, err, fail)
	}
	return doc.Content[0], nil
}

// notYAML is the error of a text that is not YAML.
func notYAML(text []byte, err error, fail failure) error {
	var at *yaml.LoadError
	if !errors.As(err, &at) {
		return fail(1, "%v", err)
	}
	line, problem := at.Mark.Line, at.Message
	if line == 0 { // the reader, which knows no lines, met a byte that YAML does not have
		line = 1 + bytes.Count(text[:badByte(text)], []byte("\n"))
	}
	if began := at.ContextMark.Line; began > 0 && began < line {
		problem += fmt.Sprintf(", %s that begins in line %d", at.ContextMsg, began)
	}
	return fail(min(line, max(bytes.Count(text, []byte("\n")), 1)), "%s", problem)
}

// badByte is where the first control character of a text is, or the first byte that is
// not UTF-8.
func badByte(text []byte) int {
	for i, r := range string(text) {
		if r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r) {
			return i
		}
	}
	return 0
}

// at says in which step something went wrong.
func (s *recipeStep) at(name string, err error) error {
	return fmt.Errorf("%s:%d: %s: %w", ui.Quote(name), s.line, s.word, err)
}

type failure func(line int, format string, args ...any) error

// eachKey goes through a map. Aliases are refused: a recipe that repeats itself
// is not short.
func eachKey(n *yaml.Node, fail failure, f func(key, value *yaml.Node) error) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			return fail(key.Line, "a key is a word")
		case seen[key.Value]:
			return fail(key.Line, "%s comes twice", ui.Quote(key.Value))
		}
		seen[key.Value] = true
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

// read sets the flags of a step.
func (s *recipeStep) read(n *yaml.Node, fail failure) error {
	flags := pflag.NewFlagSet(s.word, pflag.ContinueOnError)
	s.step.addFlags(flags)
	hidden := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(writeOptions).addFlags(hidden)
	var there []string
	flags.VisitAll(func(f *pflag.Flag) {
		if hidden.Lookup(f.Name) == nil && !slices.Contains(notInRecipes[s.word], f.Name) {
			there = append(there, f.Name)
		}
	})
	if n.Kind != yaml.MappingNode {
		return fail(n.Line, "%s needs its flags as a map; available: %s", s.word, strings.Join(there, ", "))
	}
	return eachKey(n, fail, func(key, value *yaml.Node) error {
		if !slices.Contains(there, key.Value) {
			hint := oneOf(key.Value, there)
			if hidden.Lookup(key.Value) != nil {
				hint = "options for writing belong on the command line"
			}
			return fail(key.Line, "unknown key %s of %s; %s", ui.Quote(key.Value), s.word, hint)
		}
		flag := flags.Lookup(key.Value)
		values, err := flagValues(flag, value, fail)
		if err != nil {
			return err
		}
		for _, v := range values {
			if v == "" {
				return fail(value.Line, "%s is empty", key.Value)
			}
			if err := flags.Set(key.Value, v); err != nil {
				return fail(value.Line, "%s: %s is not what it takes", key.Value, ui.Quote(v))
			}
		}
		return nil
	})
}

// flagValues returns a value as the command line would have it: one, or several for a
// flag that can be repeated. For flags of OLD=NEW it can be a map.
func flagValues(flag *pflag.Flag, n *yaml.Node, fail failure) ([]string, error) {
	scalar := func(n *yaml.Node) (string, error) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return "", fail(n.Line, "%s: a single value is needed", flag.Name)
		}
		return n.Value, nil
	}
	repeatable := flag.Value.Type() == "stringArray"
	what, _ := pflag.UnquoteUsage(flag)
	var all []string
	switch {
	case n.Kind == yaml.SequenceNode && repeatable:
		for _, e := range n.Content {
			v, err := scalar(e)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		if len(all) == 0 {
			return nil, fail(n.Line, "%s: the list is empty", flag.Name)
		}
		return all, nil
	case n.Kind == yaml.MappingNode && what == "OLD=NEW":
		err := eachKey(n, fail, func(key, value *yaml.Node) error {
			v, err := scalar(value)
			if err == nil && strings.Contains(key.Value, "=") {
				err = fail(key.Line, "%s: %s: what is replaced cannot hold a =", flag.Name, ui.Quote(key.Value))
			}
			all = append(all, key.Value+"="+v)
			return err
		})
		if err == nil && len(all) == 0 {
			err = fail(n.Line, "%s: the map is empty", flag.Name)
		}
		return all, err
	}
	v, err := scalar(n)
	return []string{v}, err
}
