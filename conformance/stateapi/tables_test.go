package stateapi

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/cmd/spt/command"
	"github.com/savepoint-tools/spt/conformance"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// spt runs a command line and returns what it prints and its exit code.
func spt(t *testing.T, args ...string) (stdout string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command.Main(t.Context(), args, &command.Env{
		Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }, Now: time.Now, Stores: sptest.Stores(),
	})
	t.Logf("spt %s: exit code %d\n%s", strings.Join(args, " "), code, &errs)
	return out.String(), code
}

// table is a table whose statement spt prints, and the rows that Flink must select by
// their keys and columns. Keys and values are JSON with sorted fields.
type table struct {
	name, statement, key string
	rows                 map[string]map[string]string
}

// TestTables: Flink 2.3 runs the statements that schema --as sql prints, and their rows
// are what the states held.
func TestTables(t *testing.T) {
	cmd := conformance.Command(t, "stateapi", "flink-2.3", "spt.stateapi.Tables")
	tables := []table{createdTable(t)}
	for _, x := range []struct {
		fixture, uid string
		native       bool // files of RocksDB, which the connector does not read
	}{
		{fixture: "flink-1.20-keyed-native", uid: "keyed"}, // heap
		{fixture: "flink-2.3-keyed-native", uid: "keyed"},
		{fixture: "flink-2.0-keyed-rocksdb", uid: "keyed"}, // canonical, keyed by a POJO
		{fixture: "flink-2.3-keyed-rocksdb", uid: "keyed"},
		{fixture: "flink-2.3-counts-incremental", uid: "counts", native: true},
	} {
		s, err := conformance.OpenSnapshot(filepath.Join(testenv.ModuleRoot(t), "testdata", "savepoints", x.fixture))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(s.Dir, s.Path)
		names := filepath.Join(t.TempDir(), "names") // Flink 1 stores no uids
		if err := os.WriteFile(names, []byte(x.uid+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		flags := []string{"--names", names, "--map", "file:" + s.At + "=" + s.Dir}
		if x.native {
			text, code := spt(t, append([]string{"schema", dir, "--as", "sql", "--operator", x.uid}, flags...)...)
			if code != 5 {
				t.Errorf("%s: exit code %d\n%s", x.fixture, code, text)
			}
			out := filepath.Join(t.TempDir(), "canonical")
			if text, code := spt(t, append([]string{"convert", dir, out, "--keyed", "canonical"}, flags...)...); code != 0 {
				t.Fatal(text)
			}
			dir = out
		}
		tables = append(tables, table{x.fixture, printed(t, dir, append(flags, "--operator", x.uid)...), "k", heldIn(t, s, x.uid)})
	}
	var statements []string
	for _, x := range tables {
		statements = append(statements, x.statement)
	}
	input, err := json.Marshal(statements)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = bytes.NewReader(input)
	lines := strings.Split(strings.TrimSpace(conformance.Output(t, cmd)), "\n")
	if len(lines) != len(tables) {
		t.Fatalf("%d answers for %d tables", len(lines), len(tables))
	}
	for i, x := range tables {
		var answer struct {
			Rows    []map[string]json.RawMessage
			Refused string
		}
		if err := json.Unmarshal([]byte(lines[i]), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Refused != "" {
			t.Errorf("%s: Flink does not run it: %s\n%s", x.name, answer.Refused, x.statement)
			continue
		}
		got := map[string]map[string]string{}
		columns := 0
		for _, row := range answer.Rows {
			key := sortedJSON(t, row[x.key])
			if got[key] != nil {
				t.Errorf("%s: two rows of key %s", x.name, key)
			}
			got[key] = map[string]string{}
			columns = max(columns, len(row)-1)
			for name, v := range row {
				if text := sortedJSON(t, v); name != x.key && text != "null" && text != "[]" {
					got[key][name] = text
				}
			}
		}
		if diff := cmp.Diff(x.rows, got); diff != "" || len(got) == 0 {
			t.Errorf("%s: rows (-held +selected):\n%s", x.name, diff)
		}
		t.Logf("%s: %d rows of %d states", x.name, len(got), columns)
	}
}

// printed returns the statement that spt prints for a snapshot.
func printed(t *testing.T, dir string, flags ...string) string {
	t.Helper()
	text, code := spt(t, append([]string{"schema", dir, "--as", "sql"}, flags...)...)
	if code != 0 {
		t.Fatalf("%s: no table", dir)
	}
	return text
}

// heldIn returns the values, lists and maps of an operator of a fixture.
func heldIn(t *testing.T, s conformance.Snapshot, uid string) map[string]map[string]string {
	t.Helper()
	truth, err := s.Truth()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]string{}
	for _, op := range truth.Operators {
		if op.UID != uid {
			continue
		}
		for _, sub := range op.Subtasks {
			for name, state := range sub.KeyedState {
				if !slices.Contains([]string{"value", "list", "map"}, state.Kind) {
					continue
				}
				for _, e := range state.Entries {
					key := sortedJSON(t, []byte(e.Key))
					if rows[key] == nil {
						rows[key] = map[string]string{}
					}
					rows[key][name] = sortedJSON(t, []byte(e.Value))
				}
			}
		}
	}
	return rows
}

// sortedJSON returns JSON with sorted fields, values with a time to live without their
// time, and the entries of maps in the order of their text.
func sortedJSON(t *testing.T, text []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(withoutTTL(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func withoutTTL(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["ttl_timestamp"]; ok {
			return v["value"]
		}
	case []any:
		for i := range v {
			v[i] = withoutTTL(v[i])
		}
	}
	return v
}

// columnsOfTypes are states of many types: their types, one value each in the JSON of
// spt, and what Flink selects; "" if a table cannot have it.
var columnsOfTypes = []struct{ name, kind, typ, value, selected string }{
	{"k", "value", "boolean", `true`, `true`}, // the name of the column of the keys otherwise
	{"byte", "value", "byte", `-7`, `-7`},
	{"short", "value", "short", `300`, `300`},
	{"int", "value", "int", `70000`, `70000`},
	{"float", "value", "float", `1.5`, `1.5`},
	{"double", "value", "double", `0.1`, `0.1`},
	{"char", "value", "char", `"x"`, `"x"`},
	{"bytes", "value", "bytes", `{"base64":"AQID"}`, `"AQID"`},
	{"big.integer", "value", "BigInteger", `123456789012345678901234567890`, `"123456789012345678901234567890"`},
	{"decimal", "value", "BigDecimal", `12345678901234567890123.4567890123456789012`, `"12345678901234567890123.4567890123456789012"`},
	{"instant", "value", "Instant", `"2024-02-29T01:02:03.004Z"`, `"2024-02-29T01:02:03.004Z"`},
	{"it's a date", "value", "LocalDate", `"2024-02-29"`, `"2024-02-29"`},
	{"times `of` day", "list", "LocalTime", `["23:59:58.000000001","01:02:03"]`, `["23:59:58.000000001","01:02:03"]`},
	{"date-times", "map", "Instant -> LocalDateTime", `["1970-01-01T00:00:00Z","2024-02-29T01:02:03"]`, `[["1970-01-01T00:00:00Z","2024-02-29T01:02:03"]]`},
	{"unit", "value", "enum java.util.concurrent.TimeUnit{NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS}", `"HOURS"`, `"HOURS"`},
	{"pair", "value", "tuple2<string, long>", `["a",9007199254740993]`, `["a",9007199254740993]`},
	{"pairs", "list", "tuple2<string, tuple2<int, Instant>>", `[["b",[1,"1970-01-01T00:00:00Z"]]]`, `[["b",[1,"1970-01-01T00:00:00Z"]]]`},
	{"lists", "map", "long -> list<tuple2<int, string>>", `[5,[[1,"c"],[2,"d"]]]`, `[[5,[[1,"c"],[2,"d"]]]]`},
	{"list", "value", "list<long>", `[1]`, ""},
	{"map", "value", "map<string, long>", `[["a",1]]`, ""},
	{"row", "value", "row<string, long>", `["a",1]`, ""},
	{"array", "value", "long[]", `[1]`, ""},
}

// createdTable returns the table of a savepoint that spt creates.
func createdTable(t *testing.T) table {
	t.Helper()
	dir := t.TempDir()
	var plan, rows bytes.Buffer
	plan.WriteString("flink: \"2.3\"\noperators:\n  - uid: all\n    key: string\n    keyed:\n")
	held := map[string]string{}
	for _, c := range columnsOfTypes {
		state, err := json.Marshal(map[string]string{"name": c.name, "kind": c.kind, "type": c.typ}) // JSON is YAML
		if err != nil {
			t.Fatal(err)
		}
		plan.WriteString("      - " + string(state) + "\n")
		row := map[string]any{"operator": "all", "state": c.name, "key": "one", "value": json.RawMessage(c.value)}
		if c.kind == "map" {
			var entry [2]json.RawMessage
			if err := json.Unmarshal([]byte(c.value), &entry); err != nil {
				t.Fatal(err)
			}
			row["user_key"], row["value"] = entry[0], entry[1]
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(append(line, '\n'))
		if c.selected != "" {
			held[c.name] = c.selected
		}
	}
	for name, text := range map[string][]byte{"plan.yaml": plan.Bytes(), "rows.jsonl": rows.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	created := filepath.Join(dir, "created")
	if text, code := spt(t, "create", created, "--plan", filepath.Join(dir, "plan.yaml"), "--from", filepath.Join(dir, "rows.jsonl")); code != 0 {
		t.Fatal(text)
	}
	x := table{name: "all types", key: "k_2", statement: printed(t, created), rows: map[string]map[string]string{`"one"`: held}}
	for _, c := range columnsOfTypes {
		left := strings.Contains(x.statement, "-- not in the table: "+c.name+": ")
		if (c.selected == "") != left {
			t.Errorf("%s: left out of the table: %v\n%s", c.name, left, x.statement)
		}
	}
	return x
}
