package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/twmb/avro"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// allSnapshots are the real savepoints of the corpus and of the repository.
func allSnapshots(t *testing.T) (all []string) {
	t.Helper()
	corpus := testenv.Corpus(t)
	for _, root := range []string{filepath.Join(product, "testdata/savepoints"), filepath.Join(corpus, "savepoints"), filepath.Join(corpus, "sql")} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "_metadata" {
				all = append(all, filepath.Dir(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 40 {
		t.Fatalf("%d snapshots: that is not all", len(all))
	}
	return all
}

// printed is a state with its schema.
type printed struct {
	Operator, ID, State string
	Schema              json.RawMessage
}

func schemasOf(t *testing.T, sp, language string) (all []printed) {
	t.Helper()
	out, stderr, code := run("schema", sp, "--as", language, "-o", "json")
	if code > 1 {
		t.Fatalf("%s: exit %d: %s", sp, code, stderr)
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatalf("%s: %v", sp, err)
	}
	return all
}

// TestTypesOfSnapshots: each state of real savepoints has a type; its Avro schema is one
// for an Avro library, and its JSON Schema holds for every line that cat prints.
func TestTypesOfSnapshots(t *testing.T) {
	states, lines, checked := 0, 0, map[string]int{}
	for _, sp := range allSnapshots(t) {
		var trees struct {
			Operators []struct {
				States []struct {
					State, Kind, Type string
				}
			}
		}
		out, stderr, code := run("schema", sp, "-o", "json")
		if code > 1 {
			t.Errorf("%s: exit %d: %s", sp, code, stderr)
			continue
		}
		if err := json.Unmarshal(out, &trees); err != nil {
			t.Fatal(err)
		}
		for _, op := range trees.Operators {
			for _, st := range op.States {
				if states++; st.Type == "" || st.Type == "?" {
					t.Errorf("%s: %s has the type %q", sp, st.State, st.Type)
				}
			}
		}
		for _, p := range schemasOf(t, sp, "avro") {
			if _, err := avro.Parse(string(p.Schema)); err != nil {
				t.Errorf("%s: %s: %v\n%s", sp, p.State, err, p.Schema)
			}
		}
		compiled := map[string][]*jsonschema.Schema{}
		for i, p := range schemasOf(t, sp, "jsonschema") {
			s := compile(t, fmt.Sprintf("mem:%d", i), p.Schema)
			key := p.ID + "/" + p.State
			compiled[key] = append(compiled[key], s)
		}
		out, stderr, code = run("cat", sp, "-o", "jsonl", "--limit", "3000")
		if code > 1 {
			t.Logf("%s: not printed by cat: %s", sp, stderr)
			continue
		}
		coordinators, stderr, code := run("cat", sp, "--coordinator", "-o", "jsonl")
		if code > 1 {
			t.Errorf("%s: exit %d: %s", sp, code, stderr)
		}
		for line := range bytes.Lines(append(out, coordinators...)) {
			var head struct{ ID, State, Kind string }
			if err := json.Unmarshal(line, &head); err != nil {
				t.Fatal(err)
			}
			doc := unmarshal(t, line)
			all := compiled[head.ID+"/"+head.State]
			if len(all) == 0 {
				continue // raw state, and state of Go programs
			}
			var first error
			for _, s := range all { // of one of the types that subtasks have
				if err := s.Validate(doc); err == nil {
					first = nil
					break
				} else if first == nil {
					first = err
				}
			}
			if lines++; first != nil {
				t.Errorf("%s: %v\n%s", sp, first, line)
			}
			checked[head.Kind]++
		}
	}
	t.Logf("%d states, %d lines: %v", states, lines, checked)
	if lines < 1000 || checked["value"] == 0 || checked["map"] == 0 || checked["broadcast"] == 0 || checked["coordinator"] == 0 {
		t.Error("that is less than there are")
	}
}

// TestAvroBinary reads what an Avro library wrote, and writes it back.
func TestAvroBinary(t *testing.T) {
	for _, x := range []struct {
		schema string
		value  any
		json   string
	}{
		{`"long"`, int64(-3), `-3`},
		{`"int"`, int32(1 << 30), `1073741824`},
		{`"double"`, 1.5, `1.5`},
		{`"float"`, float32(0.1), `0.1`},
		{`"string"`, "é", `"é"`},
		{`"bytes"`, []byte{0, 255}, `{"base64":"AP8="}`},
		{`{"type":"array","items":"long"}`, []int64{1, -1, 1 << 40}, `[1,-1,1099511627776]`},
		{`{"type":"map","values":"boolean"}`, map[string]bool{"k": true}, `[["k",true]]`},
		{`["null","string"]`, "x", `"x"`},
		{`{"type":"enum","name":"E","symbols":["A","B"]}`, "B", `"B"`},
		{`{"type":"int","logicalType":"date"}`, int32(19782), `"2024-02-29"`},
		{`{"type":"record","name":"R","fields":[{"name":"id","type":"long"},{"name":"tags","type":{"type":"array","items":"string"}},{"name":"next","type":["null","R"]}]}`,
			map[string]any{"id": int64(7), "tags": []string{"a"}, "next": map[string]any{"id": int64(8), "tags": []string{}, "next": nil}},
			`{"id":7,"tags":["a"],"next":{"id":8,"tags":[],"next":null}}`},
	} {
		p, err := avro.MustParse(x.schema).Encode(x.value)
		if err != nil {
			t.Fatalf("%s: %v", x.schema, err)
		}
		c, err := types.NewAvroCodec([]byte(x.schema))
		if err != nil {
			t.Fatal(err)
		}
		v, err := testenv.ReadBack(t, c, p)
		if got := string(v.AppendJSON(nil, nil, nil)); err != nil || got != x.json {
			t.Errorf("%s: %x is %s, %v; want %s", x.schema, p, got, err, x.json)
		}
	}
}
