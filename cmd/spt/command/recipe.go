package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
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
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, next yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fail(1, "the recipe is empty: it begins with steps:")
		}
		line, problem := yamlProblem(text, err)
		return nil, fail(line, "%s", problem)
	}
	switch err := d.Decode(&next); {
	case err == nil:
		return nil, fail(next.Line, "more than one document")
	case !errors.Is(err, io.EOF):
		line, problem := yamlProblem(text, err)
		return nil, fail(line, "%s", problem)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fail(root.Line, "a recipe is a map with steps: in it")
	}
	var steps *yaml.Node
	err := eachKey(root, fail, func(key, value *yaml.Node) error {
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

// yamlProblem is what is wrong with a text that is no YAML, and the line. The
// library says of most errors where that began in which they stand, if it was
// not on the first line; where it is its parser that stops, it counts that line
// from 0.
func yamlProblem(text []byte, err error) (line int, problem string) {
	problem = strings.TrimPrefix(err.Error(), "yaml: ")
	if later := yamlError(slices.Concat([]byte("\n"), text)); strings.HasPrefix(later, "yaml: line ") {
		n, what, _ := strings.Cut(strings.TrimPrefix(later, "yaml: line "), ": ")
		line, _ = strconv.Atoi(n)
		problem = what
	}
	ends := lineEnds(text)
	switch problem {
	case "did not find expected ',' or '}'", "did not find expected ',' or ']'":
		return min(line, len(ends)), "what begins here does not go on or end: " + problem
	case "did not find expected node content":
		return min(line, len(ends)), problem
	case "did not find expected '-' indicator", "did not find expected key", "did not find expected <document start>":
		line = 0 // of a block that began long before
	}
	if line > 1 {
		return line - 1, problem
	}
	// The lines that it takes to run into it: a text that is merely cut short
	// has other problems.
	return 1 + sort.Search(len(ends)-1, func(i int) bool { return strings.HasSuffix(yamlError(text[:ends[i]]), problem) }), problem
}

// yamlError is what the library says of a text, "" if nothing.
func yamlError(text []byte) string {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return err.Error()
		}
	}
}

// lineEnds is where the lines of a text end, at least one.
func lineEnds(text []byte) []int {
	var ends []int
	n := 0
	for line := range bytes.Lines(text) {
		n += len(line)
		ends = append(ends, n)
	}
	if n == 0 {
		ends = []int{0}
	}
	return ends
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

// flagValues gives a value as it would stand on the command line: one, or
// several where a flag can be repeated; for flags of OLD=NEW a map too.
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
