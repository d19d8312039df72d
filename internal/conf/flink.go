package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The names of Flink's configuration, the newer one first. Flink reads the first that
// exists.
const (
	flinkFile    = "config.yaml"
	flinkOldFile = "flink-conf.yaml"
)

// Flink reads the configuration of Flink, from a file or from the directory that has
// it, and returns the values by their full keys. A file config.yaml is YAML, with keys
// that are nested or full; flink-conf.yaml has a key and a value in each line.
// Errors have no text of the file, which can hold secrets.
func Flink(name string) (map[string]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		dir := name
		name = filepath.Join(dir, flinkFile)
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			name = filepath.Join(dir, flinkOldFile)
		}
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: expected a file %s or %s", dir, flinkFile, flinkOldFile)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if filepath.Base(name) == flinkOldFile {
		return lines(string(text)), nil
	}
	all, err := nested(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// lines reads flink-conf.yaml as Flink does: "key: value", with comments from "#" on.
// Other lines are ignored.
func lines(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ": ")
		if key, value = strings.TrimSpace(key), strings.TrimSpace(value); ok && key != "" && value != "" {
			all[key] = value
		}
	}
	return all
}

// nested reads config.yaml. Lists become one text, as Flink writes them in one line.
func nested(text []byte) (map[string]string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, errors.New("expected YAML, found something that cannot be parsed")
	}
	all := map[string]string{}
	for _, doc := range root.Content {
		if err := flatten(all, "", doc, 0); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// deepest is how far keys are nested at most.
const deepest = 100

func flatten(all map[string]string, key string, n *yaml.Node, depth int) error {
	if depth > deepest {
		return errors.New("keys are nested too deeply")
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			under := n.Content[i].Value
			if key != "" {
				under = key + "." + under
			}
			if err := flatten(all, under, n.Content[i+1], depth+1); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		var parts []string
		for _, c := range n.Content {
			parts = append(parts, c.Value)
		}
		all[key] = strings.Join(parts, ";")
	case yaml.ScalarNode:
		if key == "" {
			return errors.New("expected keys and values")
		}
		if n.Tag != "!!null" {
			all[key] = n.Value
		}
	case yaml.AliasNode:
		return flatten(all, key, n.Alias, depth+1)
	}
	return nil
}
