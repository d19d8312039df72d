package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/writer"
)

const examplePlan = `flink: "2.0"
operators:
  - uid: a
    key: string
    states:
      - {name: b, kind: broadcast, type: string -> long}
      - {name: l, kind: list, type: "tuple2<string, int>", rows: {from: rows, value: [k, n]}}
    keyed:
      - {name: v, kind: value, type: long, rows: {from: rows, key: k, value: n}}
      - {name: p, kind: value, type: "pojo a.B{x: int}", rows: {from: rows, key: k, value: {x: n}}}
      - {name: m, kind: map, type: string -> long, namespace: TimeWindow}
`

// Any plan with any rows is either refused or becomes a savepoint.
func FuzzCreate(f *testing.F) {
	f.Add(examplePlan, `{"k":"a","n":1}`+"\n"+`{"k":"b","n":"x"}`, false)
	f.Add(examplePlan, "k,n\na,1\n\"b\n\",2\n", true)
	f.Add(strings.ReplaceAll(examplePlan, "{from: rows, value: [k, n]}", "{from: rows, value: [[k], {a: n}]}"), "k,n\na,", true)
	f.Fuzz(func(t *testing.T, plan, rows string, table bool) {
		if strings.Contains(plan, "parallelism") { // each subtask takes memory, which is asked for
			return
		}
		p, err := parseCreatePlan("plan.yaml", []byte(plan))
		if err != nil {
			return
		}
		b, err := p.builder(writer.FlinkOptions{TempDir: t.TempDir()})
		if err != nil {
			return
		}
		defer b.Close() //nolint:errcheck // temporary files
		w := &lineProblems{what: "row", at: rowPlace([]rowFile{{path: "rows"}})}
		add := func(_ int64, r row) error {
			for _, s := range p.rowsFrom("rows") {
				if err := s.add(r, 1); err != nil && !errors.As(err, new(*rowError)) {
					t.Fatal(err)
				}
			}
			if s, err := p.named(r); err == nil {
				if err := s.add(r, 1); err != nil && !errors.As(err, new(*rowError)) {
					t.Fatal(err)
				}
			}
			return nil
		}
		if table {
			_ = eachRecord(strings.NewReader(rows), "rows.csv", add)
		} else {
			_ = eachLine(strings.NewReader(rows), "--from", "rows", func(n int64, text []byte) bool {
				r, err := rowOfJSON(text)
				if err != nil {
					w.add(n, err)
					return true
				}
				return add(n, r) == nil
			})
		}
		var twice *writer.DuplicateError
		if _, err := b.View(t.Context()); err != nil && !errors.As(err, &twice) {
			t.Fatal(err)
		}
	})
}

// A cell of CSV is JSON by its type.
func TestCellJSON(t *testing.T) {
	for _, tt := range []struct{ typ, cell, want string }{
		{"long", "7", "7"},
		{"long", "", "null"},
		{"long", "x", `"x"`},
		{"double", "NaN", `"NaN"`},
		{"string", "", `""`},
		{"string", "null", `"null"`},
		{"string", "7", `"7"`},
		{"instant", "2024-01-01T00:00:00Z", `"2024-01-01T00:00:00Z"`},
		{"instant", "", "null"},
		{"bytes", "AP8=", `{"base64":"AP8="}`},
		{"list<int>", "[1,2]", "[1,2]"},
		{"nullable<long>", "", "null"},
		{"nullable<long>", "7", "7"},
		{"boolean", "true", "true"},
		{"enum a.E{A}", "A", `"A"`},
	} {
		s, err := new(types.Language).Parse(tt.typ)
		if err != nil {
			t.Fatal(err)
		}
		if got := cellJSON(tt.cell, types.TypeOf(s, types.Options{})); string(got) != tt.want {
			t.Errorf("%s %q: expected %s, found %s", tt.typ, tt.cell, tt.want, got)
		}
	}
}

// A record of CSV that does not end takes bounded memory.
func TestLongRecord(t *testing.T) {
	testenv.Long(t, "reads more than a record may have")
	body := &endless{head: []byte("a,b\n\"")}
	err := eachRecord(body, "rows.csv", func(int64, row) error { return nil })
	if !errors.Is(err, errLongLine) || body.n > maxLine+1<<20 {
		t.Errorf("after %d bytes: %v", body.n, err)
	}
}

// endless is a head and then the same byte for ever.
type endless struct {
	head []byte
	n    int
}

func (r *endless) Read(p []byte) (int, error) {
	n := copy(p, r.head)
	r.head = r.head[n:]
	copy(p[n:], bytes.Repeat([]byte("x"), len(p)-n))
	r.n += len(p)
	return len(p), nil
}
