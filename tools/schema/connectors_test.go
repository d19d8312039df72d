package schema_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/schema"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// TestSchemasOfConnectors: the JSON of everything that the serializers of connectors
// wrote is as its JSON Schema says, and is not with another name of a member.
func TestSchemasOfConnectors(t *testing.T) {
	checked := map[string]int{}
	for _, file := range sptest.ConnectorVectorFiles(t) {
		for _, x := range sptest.ConnectorVectors(t, file) {
			codec, p := x.In(t)
			v, err := value.ReadAll(codec, p)
			if err != nil {
				t.Fatal(err)
			}
			s := compileTypes(t, x.Types(t))
			text := v.AppendJSON(nil, nil, nil)
			if err := s.Validate(unmarshal(t, text)); err != nil {
				t.Errorf("%s: %s: %v\n%s", file, x.Class, err, text)
			}
			if wrong := strings.Replace(string(text), `"version":`, `"verzion":`, 1); wrong != string(text) && s.Validate(unmarshal(t, []byte(wrong))) == nil {
				t.Errorf("%s: %s: a schema that holds for everything: %s", file, x.Class, wrong)
			}
			checked[x.Class]++
		}
	}
	t.Log(checked)
	if len(checked) < 20 {
		t.Error("not all structures were checked")
	}
}

func unmarshal(t *testing.T, text []byte) any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

var compiledTypes = map[string]*jsonschema.Schema{}

// compileTypes returns the schema of types.
func compileTypes(t *testing.T, types *connector.Types) *jsonschema.Schema {
	t.Helper()
	var d schema.JSONDocument
	for _, def := range types.Defs {
		d.Define(def.Name, def.Type)
	}
	text, err := json.Marshal(schema.Object{{Name: "$schema", Value: schema.Draft}, {Name: "allOf", Value: []any{d.Of(types.Of)}}, {Name: "$defs", Value: d.Defs()}})
	if err != nil {
		t.Fatal(err)
	}
	if s := compiledTypes[string(text)]; s != nil {
		return s
	}
	s := compile(t, "mem:connectors", text)
	compiledTypes[string(text)] = s
	return s
}

// compile returns a schema of JSON Schema.
func compile(t *testing.T, name string, text []byte) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(name, unmarshal(t, text)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}
