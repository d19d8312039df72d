package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/internal/report"
)

// Answer describes the JSON of a command: -o json prints one such value. If it is
// a list, -o jsonl prints its elements, one per line.
type Answer struct {
	Name    string // of the schema
	Command string // command that prints it; several separated by commas
	Help    string
	value   any // zero value of the printed type
}

// Answers returns all answers.
func Answers() []Answer {
	return []Answer{
		{"inspect", "spt inspect", "a snapshot, its operators and their states", report.Inspect{}},
		{"inspect-several", "spt inspect", "of several snapshots: a list, one for each", []report.Inspect{}},
		{"inspect-rows", "spt inspect", "with --by: a list of rows; which fields a row has depends on what the rows are", []report.InspectRow{}},
		{"ls", "spt ls", "a list of snapshots", report.Listings{}},
		{"clean", "spt clean", "a list of leftovers and what became of each", []report.Leftover{}},
		{"verify", "spt verify", "a list, one for each snapshot", report.Verifies{}},
		{"check", "spt check", "what a restore would meet; with -o jsonl its findings, one a line", report.Check{}},
		{"orphans", "spt orphans", "the files that no snapshot refers to, and what became of them; with -o jsonl the files, one a line, and then the rest", report.Orphans{}},
		{"cat", "spt cat", "a list of elements", []report.CatLine{}},
		{"cat-stats", "spt cat", "with --stats: a list of states", report.CatStats{}},
		{"diff", "spt diff", "how two snapshots differ", report.Diff{}},
		{"diff-lines", "spt diff", "with -o jsonl: a list of differences, and with -v of elements", []report.DiffLine{}},
		{"diff-schema", "spt diff", "with --schema: how the types of states changed; with -o jsonl the states, one a line", report.DiffSchema{}},
		{"schema", "spt schema", "the types of states; with -o jsonl the states, one a line", report.Schema{}},
		{"schema-as", "spt schema", "with --as: a list of schemas in another language", []report.StateSchema{}},
		{"offsets", "spt offsets", "the positions of sources; with -o jsonl the partitions, one a line", report.Offsets{}},
		{"pending", "spt pending", "what a restore would commit or abort; with -o jsonl one a line", report.Pending{}},
		{"trend", "spt trend", "several snapshots and how each state grew; with -o jsonl the rows, one a line", report.Trend{}},
		{"watch", "spt watch", "a rule that begins to hold, or no longer does: one line each", report.WatchEvent{}},
		{"convert", "spt convert", "what was written, or would be", report.Write{}},
		{"rescale", "spt rescale", "the plan; with OUT the answer of convert. With -o jsonl its operators, one a line", report.Rescale{}},
		{"prune-union-growth", "spt prune-union", "without IN: a list, one for each number of restores", report.Growth{}},
		{"prune-union-states", "spt prune-union", "with IN alone: a list of union states", report.Unions{}},
		{"prune-union", "spt prune-union", "with --keep: what stays of each state, and what was written, or would be", report.Prune{}},
		{"edit", "spt drop, spt rename, spt relocate, spt merge, spt set, spt patch, spt filter, spt apply", "what changes, and what was written, or would be", report.Edit{}},
		{"create", "spt create", "the operators and states of the new savepoint, and what was written, or would be", report.Create{}},
		{"doctor", "spt doctor", "how a store is reached, and what works there", report.Doctor{}},
		{"explain", "spt explain", "a list of words and what they mean", []report.Explanation{}},
		{"hash", "spt hash", "a list of uids and their ids", report.Hashes{}},
		{"version", "spt version", "the version of spt and of the formats", report.Version{}},
		{"error", "spt", "an error of any command, on stderr: one line", report.Error{}},
	}
}

const schemaDialect = "https://json-schema.org/draft/2020-12/schema"

// Schema returns the JSON Schema of the answer. It allows unknown properties,
// because later versions may add fields.
func (a Answer) Schema() ([]byte, error) {
	r := reflector{defs: map[string]*schema{}}
	s, err := r.of(reflect.TypeOf(a.value))
	if err != nil {
		return nil, err
	}
	s.Dialect, s.Title, s.Description, s.Defs = schemaDialect, a.Command+": "+a.Name, a.Help, r.defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// schema is the part of JSON Schema that answers need.
type schema struct {
	Dialect     string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Ref         string             `json:"$ref,omitempty"`
	Type        string             `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Defs        map[string]*schema `json:"$defs,omitempty"`
}

type reflector struct{ defs map[string]*schema }

// of returns the schema of a type. Nested structs become definitions.
func (r *reflector) of(t reflect.Type) (*schema, error) {
	switch {
	case t.Kind() == reflect.Pointer:
		return r.of(t.Elem())
	case t == reflect.TypeFor[time.Time]():
		return &schema{Type: "string", Format: "date-time"}, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.String:
		return &schema{Type: "string"}, nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &schema{Type: "integer"}, nil
	case reflect.Interface: // any value
		return &schema{}, nil
	case reflect.Slice:
		items, err := r.named(t.Elem())
		return &schema{Type: "array", Items: items}, err
	case reflect.Struct:
		return r.object(t)
	}
	return nil, fmt.Errorf("no schema for %s", t)
}

// named is like of, but returns a reference for structs.
func (r *reflector) named(t reflect.Type) (*schema, error) {
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return r.of(t)
	}
	if _, ok := r.defs[t.Name()]; !ok {
		r.defs[t.Name()] = &schema{} // ends a recursion
		s, err := r.object(t)
		if err != nil {
			return nil, err
		}
		r.defs[t.Name()] = s
	}
	return &schema{Ref: "#/$defs/" + t.Name()}, nil
}

func (r *reflector) object(t reflect.Type) (*schema, error) {
	s := &schema{Type: "object", Properties: map[string]*schema{}}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			return nil, fmt.Errorf("%s.%s has no name in JSON", t, f.Name)
		}
		p, err := r.named(f.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if err := p.annotate(f.Tag.Get("jsonschema")); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		s.Properties[name] = p
		if options != "omitempty" {
			s.Required = append(s.Required, name)
		}
	}
	return s, nil
}

// annotate parses a jsonschema tag: enum=WORD for each word, and last
// description=TEXT, which may contain commas.
func (s *schema) annotate(tag string) error {
	for tag != "" {
		if text, ok := strings.CutPrefix(tag, "description="); ok {
			s.Description = text
			return nil
		}
		word, rest, _ := strings.Cut(tag, ",")
		value, ok := strings.CutPrefix(word, "enum=")
		if !ok {
			return fmt.Errorf("jsonschema tag %q", word)
		}
		s.Enum = append(s.Enum, value)
		tag = rest
	}
	return nil
}
