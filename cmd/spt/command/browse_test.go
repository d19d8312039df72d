package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/browse"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// browsed opens a snapshot as spt browse does.
func browsed(t *testing.T, location string) *browsing {
	t.Helper()
	env := OSEnv()
	env.Stdout, env.Stderr, env.Getenv = &bytes.Buffer{}, &bytes.Buffer{}, func(string) string { return "" }
	s := newBrowsing(t.Context(), env, location)
	snap, err := s.env.open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	s.snap = snap
	t.Cleanup(func() {
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// rowsOf reads a page in parts of n rows.
func rowsOf(t *testing.T, page *browse.Page, n int) (all []browse.Row) {
	t.Helper()
	for {
		rows, end, err := page.Rows(t.Context(), int64(len(all)), n)
		if err != nil {
			t.Fatalf("%s: %v", page.Title, err)
		}
		if all = append(all, rows...); end {
			return all
		}
		if len(rows) == 0 || len(rows) > n {
			t.Fatalf("%s: %d rows of %d, and not the end", page.Title, len(rows), n)
		}
	}
}

// open opens the row of a page whose text is one of names.
func open(t *testing.T, page *browse.Page, names ...string) *browse.Page {
	t.Helper()
	rows := rowsOf(t, page, 100)
	i := slices.IndexFunc(rows, func(r browse.Row) bool { return slices.Contains(names, r.Text) })
	if i < 0 {
		t.Fatalf("%s: no row %q in %+v", page.Title, names, rows)
	}
	opened, err := page.Open(t.Context(), int64(i))
	if err != nil || opened == nil {
		t.Fatalf("%s: %v, %v", names, opened, err)
	}
	return opened
}

// browseTruth is what the subtasks of a snapshot held, as Flink told.
type browseTruth struct {
	Operators []struct {
		UID, ID, Name string
		Subtasks      []struct {
			Index         int
			OperatorState map[string]struct {
				Kind     string
				Elements []json.RawMessage
			} `json:"operator_state"`
			KeyedState map[string]struct {
				Kind    string
				Entries []struct {
					KeyGroup int `json:"key_group"`
					Key      json.RawMessage
					Value    json.RawMessage
				}
			} `json:"keyed_state"`
		}
	}
}

// TestBrowseTruth: the pages of small snapshots have what their subtasks held.
func TestBrowseTruth(t *testing.T) {
	elements, entries := 0, 0
	for _, name := range []string{"sp-001", "sp-002", "sp-003", "sp-006", "sp-009", "sp-010"} {
		text, err := os.ReadFile("../../../testdata/savepoints/" + name + ".truth.json")
		if err != nil {
			t.Fatal(err)
		}
		var truth browseTruth
		if err := json.Unmarshal(text, &truth); err != nil {
			t.Fatal(err)
		}
		s := browsed(t, testenv.Fixture(t, name))
		for _, op := range truth.Operators {
			for _, sub := range op.Subtasks {
				for state, want := range sub.OperatorState {
					if len(want.Elements) == 0 || want.Kind == "broadcast" {
						continue
					}
					page := open(t, open(t, open(t, s.operators(), op.UID, op.Name, op.ID[:8]), state), fmt.Sprintf("subtask %d", sub.Index))
					if page.Total != int64(len(want.Elements)) {
						t.Errorf("%s/%s/%s/%d: %d elements, want %d", name, op.UID, state, sub.Index, page.Total, len(want.Elements))
					}
					for i, row := range rowsOf(t, page, 3) {
						elements++
						if w := fmt.Sprintf("%d  %s", i, want.Elements[i]); want.Elements[i][0] != '{' && !sameJSON(row.Text, w) {
							t.Errorf("%s/%s/%s: %q, want %q", name, op.UID, state, row.Text, w)
						}
					}
				}
				for state, want := range sub.KeyedState {
					if len(want.Entries) == 0 {
						continue
					}
					page := open(t, open(t, open(t, s.operators(), op.UID, op.Name, op.ID[:8]), state), fmt.Sprintf("subtask %d", sub.Index))
					var got, expected []string
					for _, row := range rowsOf(t, page, 2) {
						key, _, _ := strings.Cut(row.Text, " ")
						got = append(got, row.Cells[1]+" "+key)
					}
					for _, e := range want.Entries {
						n := 1
						if want.Kind == "map" {
							var pairs []json.RawMessage
							if err := json.Unmarshal(e.Value, &pairs); err != nil {
								t.Fatal(err)
							}
							n = len(pairs)
						}
						for range n {
							expected = append(expected, fmt.Sprintf("%d %s", e.KeyGroup, e.Key))
						}
					}
					slices.Sort(got)
					slices.Sort(expected)
					if !slices.Equal(got, expected) {
						t.Errorf("%s/%s/%s/%d: keys %q, want %q", name, op.UID, state, sub.Index, got, expected)
					}
					entries += len(got)
				}
			}
		}
	}
	if elements < 100 || entries < 100 {
		t.Errorf("%d elements and %d entries compared", elements, entries)
	}
}

// sameJSON compares a number and JSON behind it.
func sameJSON(a, b string) bool {
	at, av, _ := strings.Cut(a, "  ")
	bt, bv, _ := strings.Cut(b, "  ")
	var x, y any
	if json.Unmarshal([]byte(av), &x) != nil || json.Unmarshal([]byte(bv), &y) != nil {
		return false
	}
	return at == bt && reflect.DeepEqual(x, y)
}

// TestBrowsePages: rows are the same in any order and in parts of any size.
func TestBrowsePages(t *testing.T) {
	rows, pages := 0, 0
	locations := []string{"../../../testdata/savepoints/sp-014.spt"}
	for _, name := range []string{"sp-002", "sp-003", "sp-004", "sp-005", "sp-006", "sp-009"} {
		locations = append(locations, testenv.Fixture(t, name))
	}
	for _, location := range locations {
		s := browsed(t, location)
		top := s.operators()
		for i := range rowsOf(t, top, 100) {
			op, err := top.Open(t.Context(), int64(i))
			if err != nil {
				t.Fatal(err)
			}
			for k, row := range rowsOf(t, op, 100) {
				if !row.Opens {
					continue
				}
				state, err := op.Open(t.Context(), int64(k))
				if err != nil {
					t.Fatal(err)
				}
				for j := range rowsOf(t, state, 100) {
					page, err := state.Open(t.Context(), int64(j))
					if err != nil {
						t.Fatal(err)
					}
					want := rowsOf(t, page, 1000)
					if got := rowsOf(t, page, 1); !reflect.DeepEqual(got, want) {
						t.Errorf("%s: %v, want %v", page.Command, got, want)
					}
					for at := len(want) - 1; at >= 0; at -= 1 + at/50 { // backwards
						got, _, err := page.Rows(t.Context(), int64(at), 2)
						if err != nil || !reflect.DeepEqual(got, want[at:min(at+2, len(want))]) {
							t.Fatalf("%s: row %d is %v, want %v, %v", page.Command, at, got, want[at], err)
						}
					}
					if len(want) > 0 {
						if opened, err := page.Open(t.Context(), int64(len(want)/2)); err != nil || len(opened.Text(80, false)) < 5 {
							t.Errorf("%s: %v, %v", page.Command, opened, err)
						}
					}
					if page.Close != nil {
						page.Close()
					}
					rows, pages = rows+len(want), pages+1
				}
			}
		}
	}
	t.Logf("%d rows of %d pages", rows, pages)
	if rows < 500 || pages < 100 {
		t.Error("too few")
	}
}

// TestBrowseCancelled: a page can be read again after a read of it was cancelled.
func TestBrowseCancelled(t *testing.T) {
	s := browsed(t, testenv.Fixture(t, "sp-002"))
	page := open(t, open(t, open(t, s.operators(), "keyed"), "words"), "subtask 0")
	want := rowsOf(t, page, 100)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, first := range []int64{0, 1, 2} {
		if _, _, err := page.Rows(ctx, first, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("row %d: %v", first, err)
		}
		if got := rowsOf(t, page, 1); len(want) != 3 || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	page.Close()
}

// TestBrowseBrokenValue: an element whose value breaks its type is shown as it is stored,
// with the reason, between the others.
func TestBrowseBrokenValue(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(testenv.Fixture(t, "sp-001"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "_metadata")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("\nelement-3"), []byte("\x7felement-3")), 0o666); err != nil {
		t.Fatal(err)
	}
	s := browsed(t, dir)
	page := open(t, open(t, open(t, s.operators(), "9f58a777"), "buffered-elements"), "subtask 0")
	rows := rowsOf(t, page, 4)
	for i, row := range rows {
		if broken := strings.Contains(row.Problem, "element 3: "); broken != (i == 3) {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	if len(rows) != 10 || !strings.HasPrefix(rows[3].Text, "3  base64 ") {
		t.Errorf("%+v", rows)
	}
	if opened, err := page.Open(t.Context(), 3); err != nil || !strings.Contains(strings.Join(opened.Text(80, false), ""), "value_base64") {
		t.Errorf("%v, %v", opened, err)
	}
}

// TestBrowseLookup: the entries of a key, of one state and of all; and a text that is not a key.
func TestBrowseLookup(t *testing.T) {
	s := browsed(t, testenv.Fixture(t, "sp-002"))
	op := open(t, s.operators(), "keyed")
	all, err := op.Lookup(t.Context(), `"key-4"`)
	if err != nil {
		t.Fatal(err)
	}
	// 12 states with one entry each, and two timers, as in truth.json.
	if rows := rowsOf(t, all, 5); len(rows) != 14 || !slices.ContainsFunc(rows, func(r browse.Row) bool { return r.Text == `average: "key-4" → [20,2]` }) {
		t.Errorf("%+v", rows)
	}
	one, err := open(t, op, "average").Lookup(t.Context(), `"key-4"`)
	if err != nil {
		t.Fatal(err)
	}
	if rows := rowsOf(t, one, 5); len(rows) != 1 || rows[0].Text != `"key-4" → [20,2]` || rows[0].Cells[1] != "19" {
		t.Errorf("%+v", rows)
	}
	if want := " --operator keyed --state average --key '\"key-4\"'"; !strings.HasPrefix(one.Command, "spt get ") || !strings.HasSuffix(one.Command, want) {
		t.Errorf("%s", one.Command)
	}
	if _, err := op.Lookup(t.Context(), `key-4`); err == nil || !strings.Contains(s.explain(err), "JSON") {
		t.Errorf("a key without quotes: %v", err)
	}
}

// TestBrowseCompare: the snapshot with the lower checkpoint id is the older one.
func TestBrowseCompare(t *testing.T) {
	old, fresh := testenv.Fixture(t, "sp-001"), testenv.Fixture(t, "sp-007")
	for _, both := range [][2]string{{old, fresh}, {fresh, old}} {
		s := browsed(t, both[0])
		page, err := s.operators().Compare(t.Context(), both[1])
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("spt diff %s %s", old, fresh)
		if got := strings.Join(page.Text(80, false), "\n"); page.Command != want || !strings.Contains(got, "-1.1 KiB") || !strings.Contains(got, "different: ") || !strings.Contains(got, "9f58a777 ") {
			t.Errorf("%s, want %s\n%s", page.Command, want, got)
		}
		if _, err := s.operators().Compare(t.Context(), t.TempDir()); err == nil {
			t.Error("an empty directory is compared")
		}
	}
}
