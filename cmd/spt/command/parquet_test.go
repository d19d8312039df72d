package command

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// parquetRows reads a Parquet file by the rules of its specification: each row as the
// JSON of spt would have it (docs/json.md), without nulls.
func parquetRows(t *testing.T, p string) (rows []map[string]any) {
	t.Helper()
	f, err := parquet.OpenFile(strings.NewReader(p), int64(len(p)))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range f.RowGroups() {
		r := g.Rows()
		for one := make([]parquet.Row, 1); ; {
			n, err := r.ReadRows(one)
			if n == 1 {
				a := assembler{leaves: make([][]parquet.Value, len(f.Schema().Columns()))}
				for _, v := range one[0] {
					a.leaves[v.Column()] = append(a.leaves[v.Column()], v)
				}
				rows = append(rows, a.node(f.Schema(), 0, 0, 0).(map[string]any))
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// assembler makes a row of the values of its leaves.
type assembler struct{ leaves [][]parquet.Value }

func leavesOf(n parquet.Node) (count int) {
	if n.Leaf() {
		return 1
	}
	for _, f := range n.Fields() {
		count += leavesOf(f)
	}
	return count
}

// absent drops the null that each leaf below a node has.
func (a *assembler) absent(n parquet.Node, leaf int) {
	for i := range leavesOf(n) {
		a.leaves[leaf+i] = a.leaves[leaf+i][1:]
	}
}

func (a *assembler) node(n parquet.Node, leaf, repetition, definition int) any {
	if !n.Optional() && !n.Repeated() {
		return a.required(n, leaf, repetition, definition)
	}
	definition++
	if a.leaves[leaf][0].DefinitionLevel() < definition {
		a.absent(n, leaf)
		if n.Repeated() {
			return []any{}
		}
		return nil
	}
	if n.Optional() {
		return a.required(n, leaf, repetition, definition)
	}
	repetition++
	all := []any{a.required(n, leaf, repetition, definition)}
	for len(a.leaves[leaf]) > 0 && a.leaves[leaf][0].RepetitionLevel() == repetition {
		all = append(all, a.required(n, leaf, repetition, definition))
	}
	return all
}

func (a *assembler) required(n parquet.Node, leaf, repetition, definition int) any {
	if n.Leaf() {
		v := a.leaves[leaf][0]
		a.leaves[leaf] = a.leaves[leaf][1:]
		return jsonOfLeaf(n, v)
	}
	fields := map[string]any{}
	var tuple []any
	for i, f := range n.Fields() {
		v := a.node(f, leaf, repetition, definition)
		leaf += leavesOf(f)
		fields[f.Name()] = v
		if f.Name() == fmt.Sprint("f", i) {
			tuple = append(tuple, v)
		}
	}
	switch {
	case len(tuple) == len(fields):
		return tuple
	case n.Type() != nil && n.Type().LogicalType() != nil && n.Type().LogicalType().String() == "LIST":
		elements := []any{}
		for _, e := range fields["list"].([]any) {
			elements = append(elements, e.(map[string]any)["element"])
		}
		return elements
	case n.Type() != nil && n.Type().LogicalType() != nil && n.Type().LogicalType().String() == "MAP":
		pairs := []any{}
		for _, e := range fields["key_value"].([]any) {
			pairs = append(pairs, []any{e.(map[string]any)["key"], e.(map[string]any)["value"]})
		}
		return pairs
	case definition > 0 || repetition > 0:
		return fields
	}
	for name, v := range fields { // of a row
		if v == nil {
			delete(fields, name)
		}
	}
	return fields
}

// jsonOfLeaf returns a leaf as JSON has it.
func jsonOfLeaf(n parquet.Node, v parquet.Value) any {
	logical := ""
	if l := n.Type().LogicalType(); l != nil {
		logical = l.String()
	}
	switch {
	case logical == "JSON":
		var out any
		d := json.NewDecoder(bytes.NewReader(v.ByteArray()))
		d.UseNumber()
		if err := d.Decode(&out); err != nil {
			panic(err)
		}
		return out
	case logical == "STRING":
		return string(v.ByteArray())
	case logical == "DATE":
		return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format("2006-01-02")
	case strings.HasPrefix(logical, "TIMESTAMP(isAdjustedToUTC=true"):
		unit := map[string]int64{"MILLIS": 1e6, "MICROS": 1e3, "NANOS": 1}[logical[strings.Index(logical, "unit=")+5:len(logical)-1]]
		return time.Unix(0, v.Int64()*unit).UTC().Format(time.RFC3339Nano)
	}
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean()
	case parquet.Float:
		return json.Number(strconv.FormatFloat(float64(v.Float()), 'f', -1, 32))
	case parquet.Double:
		return json.Number(strconv.FormatFloat(v.Double(), 'f', -1, 64))
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return map[string]any{"base64": base64.StdEncoding.EncodeToString(v.ByteArray())}
	}
	return json.Number(v.String())
}

// jsonRows are the lines of -o jsonl, with bytes as parquetRows has them, and records
// whose fields are like those of tuples as arrays.
func jsonRows(t *testing.T, p string) (rows []map[string]any) {
	t.Helper()
	for line := range strings.Lines(p) {
		row := map[string]any{}
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		for name, v := range row {
			if part, ok := strings.CutSuffix(name, "_base64"); ok {
				delete(row, name)
				if part != "stored" {
					part += "_stored"
				}
				row[part] = map[string]any{"base64": v}
			}
			if v == nil { // null as a value
				delete(row, name)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// TestParquetCat: of each state of each known snapshot, -o parquet has what -o jsonl has.
func TestParquetCat(t *testing.T) {
	rows, typed := 0, map[string]int{}
	for _, known := range testenv.KnownSnapshots(t) {
		dir := known.Location
		code, lines, errs := runAll(t, []string{"cat", dir, "-q", "-o", "jsonl"})
		if code != exitOK {
			t.Fatalf("%s: exit %d: %s", dir, code, errs)
		}
		byState := map[[2]string][]map[string]any{}
		for _, row := range jsonRows(t, lines) {
			at := [2]string{row["id"].(string), row["state"].(string)}
			byState[at] = append(byState[at], row)
		}
		for at, want := range byState {
			code, file, errs := runAll(t, []string{"cat", dir, "-q", "-o", "parquet", "--operator", at[0], "--state", at[1]})
			if code != exitOK {
				t.Errorf("%s %s: exit %d: %s", dir, at, code, errs)
				continue
			}
			got := parquetRows(t, file)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s: -o jsonl and -o parquet differ:\n%.3000s", dir, at, diff)
			}
			f, err := parquet.OpenFile(strings.NewReader(file), int64(len(file)))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range f.Schema().Fields() {
				if c.Name() == "value" {
					typed[strings.Join(strings.Fields(c.String()), " ")]++
				}
			}
			rows += len(got)
		}
	}
	testenv.Some(t, "rows", rows, true)
	t.Logf("compared %d rows; types of values: %d", rows, len(typed))
	for name, n := range typed {
		t.Logf("%5d %s", n, name)
	}
}
