package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// duckdb runs a Python script that knows DuckDB and PyArrow in a directory, and decodes
// the JSON that it prints.
func duckdb(t *testing.T, dir string, to any, script string, args ...string) {
	t.Helper()
	const what = "DuckDB and PyArrow (pip install duckdb pyarrow)"
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import duckdb, pyarrow").Run()
	}
	if err != nil {
		testenv.Missing(t, what, err)
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-c", script}, args...)...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	if err := json.Unmarshal(out, to); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// countsScript prints, for each file, its rows as DuckDB and as PyArrow count them, and the
// types of its columns.
const countsScript = `
import json, sys, duckdb, pyarrow.parquet as pq
print(json.dumps([{
    "duckdb": duckdb.sql(f"select count(*) from '{f}'").fetchall()[0][0],
    "decoded": len(duckdb.sql(f"select * from '{f}'").fetchall()),
    "pyarrow": pq.read_table(f).num_rows,
    "types": {c.name: str(c.type) for c in pq.read_schema(f)},
} for f in sys.argv[1:]]))`

// TestParquetDuckDB: DuckDB and PyArrow read what each command writes and count as many
// rows as the other outputs have, and the columns have their types.
func TestParquetDuckDB(t *testing.T) {
	sp := func(name string) string { return testenv.Fixture(t, name) }
	jobs, _ := withOrphan(t)
	tests := []struct {
		args  []string
		lines string // the output that has a line for each row
		types map[string]string
	}{
		{[]string{"cat", sp("sp-001"), "--state", "even-ids"}, "jsonl", map[string]string{"operator": "string", "subtask": "int64", "index": "int64", "size": "int64", "value": "int64", "value_stored": "binary"}},
		{[]string{"cat", sp("sp-001"), "--state", "even-ids", "--distinct"}, "jsonl", map[string]string{"count": "int64"}},
		{[]string{"cat", sp("sp-001"), "--raw"}, "jsonl", map[string]string{"value": "", "value_stored": "binary"}},
		{[]string{"cat", sp("sp-001"), "--format", "redacted"}, "jsonl", map[string]string{"value": "", "value_stored": "", "value_redacted": "string"}},
		{[]string{"cat", sp("sp-002"), "--state", "item"}, "jsonl", map[string]string{"key_group": "int64", "key": "string", "namespace": "", "value": "struct<count: int32, flag: bool, id: int64, name: string>"}},
		{[]string{"cat", sp("sp-002"), "--state", "items"}, "jsonl", map[string]string{"user_key": "int64", "value": "struct<count: int32, flag: bool, id: int64, name: string>"}},
		{[]string{"cat", sp("sp-002"), "--state", "ttl-words"}, "jsonl", map[string]string{"ttl_timestamp": "list<element: int64>", "value": "list<element: string>"}},
		{[]string{"cat", sp("sp-002"), "--state", "window-contents"}, "jsonl", map[string]string{"namespace": "struct<start: int64, end: int64>", "value": "struct<f0: int64, f1: int64>"}},
		{[]string{"cat", sp("sp-002"), "--state", "_timer_state/event_user-timers"}, "jsonl", map[string]string{"key": "string", "time": "int64", "value": ""}},
		{[]string{"cat", sp("sp-011")}, "jsonl", map[string]string{"value": "extension<arrow.json>"}},
		{[]string{"cat", "../../../testdata/savepoints/sp-014.spt", "--state", "rules"}, "jsonl", nil},
		{[]string{"diff", "-v", sp("sp-001"), sp("sp-007")}, "jsonl", map[string]string{"kind": "string", "old_count": "int64", "value": "extension<arrow.json>", "old_values": "list<element: string>"}},
		{[]string{"inspect", "--by", "operator", sp("sp-002")}, "csv", map[string]string{"path": "", "bytes": "int64", "missing": "bool", "subtask": "int64", "key_group": ""}},
		{[]string{"inspect", "--by", "state", sp("sp-002"), sp("sp-001")}, "csv", map[string]string{"path": "string"}},
		{[]string{"inspect", "--by", "subtask", sp("sp-002")}, "csv", nil},
		{[]string{"inspect", "--by", "handle", sp("sp-002")}, "csv", nil},
		{[]string{"inspect", "--by", "file", sp("sp-002")}, "csv", nil},
		{[]string{"inspect", "--by", "key-group", "--count", sp("sp-002")}, "csv", map[string]string{"key_group": "int64", "entries": "int64", "keys": "int64"}},
		{[]string{"offsets", sp("sp-011")}, "csv", map[string]string{"partition": "string", "offset": "int64", "subtask": "int64", "trouble": "string"}},
		{[]string{"orphans", jobs}, "csv", map[string]string{"path": "string", "bytes": "int64", "time": "timestamp[us, tz=UTC]"}},
	}
	dir := t.TempDir()
	var files []string
	var rows []int
	for i, tt := range tests {
		code, file, errs := runAll(t, append(slices.Clone(tt.args), "-q", "-o", "parquet"))
		if code != exitOK && code != exitFindings {
			t.Fatalf("%v: exit %d: %s", tt.args, code, errs)
		}
		name := filepath.Join(dir, strconv.Itoa(i)+".parquet")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, text, _ := runAll(t, append(slices.Clone(tt.args), "-q", "-o", tt.lines))
		n := strings.Count(text, "\n")
		if tt.lines == "csv" {
			n-- // the header
		}
		if n == 0 {
			t.Errorf("%v prints nothing", tt.args)
		}
		files, rows = append(files, name), append(rows, n)
	}
	var got []struct {
		DuckDB, Decoded, PyArrow int
		Types                    map[string]string
	}
	duckdb(t, dir, &got, countsScript, files...)
	for i, tt := range tests {
		if g := got[i]; g.DuckDB != rows[i] || g.Decoded != rows[i] || g.PyArrow != rows[i] {
			t.Errorf("%v: %d rows, DuckDB counts %d and reads %d, PyArrow reads %d", tt.args, rows[i], g.DuckDB, g.Decoded, g.PyArrow)
		}
		for name, want := range tt.types {
			if typ := got[i].Types[name]; typ != want {
				t.Errorf("%v: column %s is %q, expected %q", tt.args, name, typ, want)
			}
		}
	}
}

// TestParquetHowTo runs the example of docs/howto.md that compares two snapshots in SQL.
func TestParquetHowTo(t *testing.T) {
	text, err := os.ReadFile("../../../docs/howto.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(spt cat [^\n]*-o parquet.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("docs/howto.md has no example with -o parquet")
	}
	shell, query, ok := strings.Cut(string(block[1]), "duckdb -c \"")
	if !ok {
		t.Fatalf("no query in\n%s", block[1])
	}
	query, _, _ = strings.Cut(query, "\"")
	snapshots := map[string]string{
		"chk-4100": testenv.Fixture(t, "flink-2.0-keyed-native"),
		"chk-4211": testenv.Fixture(t, "sp-005"),
	}
	dir := t.TempDir()
	var values []map[string]int // by key
	for line := range strings.Lines(strings.TrimSpace(shell)) {
		command, name, ok := strings.Cut(strings.TrimSpace(line), " > ")
		args := strings.Fields(command)
		if !ok || args[0] != "spt" || snapshots[args[2]] == "" {
			t.Fatalf("%q: expected spt cat SP … > FILE", line)
		}
		args[2] = snapshots[args[2]]
		code, file, errs := runAll(t, args[1:])
		if code != exitOK {
			t.Fatalf("%s: exit %d: %s", line, code, errs)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args[len(args)-1] = "jsonl"
		_, file, _ = runAll(t, args[1:])
		one := map[string]int{}
		for _, row := range jsonRows(t, file) {
			n, err := row["value"].(json.Number).Int64()
			if err != nil {
				t.Fatal(err)
			}
			one[row["key"].(json.Number).String()] = int(n)
		}
		values = append(values, one)
	}
	if len(values) != 2 {
		t.Fatalf("%d commands", len(values))
	}
	want := map[string]string{} // before and after, by key
	for key, n := range values[0] {
		if m, ok := values[1][key]; !ok {
			want[key] = fmt.Sprintf("%d None", n)
		} else if n != m {
			want[key] = fmt.Sprintf("%d %d", n, m)
		}
	}
	for key, m := range values[1] {
		if _, ok := values[0][key]; !ok {
			want[key] = fmt.Sprintf("None %d", m)
		}
	}
	if len(want) == 0 {
		t.Fatal("the snapshots do not differ")
	}
	got := map[string]string{}
	duckdb(t, dir, &got, "import json, sys, duckdb\nprint(json.dumps({str(k): f'{b} {a}' for k, b, a in duckdb.sql(sys.argv[1]).fetchall()}))", query)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("expected - and found +:\n%s", diff)
	}
}
