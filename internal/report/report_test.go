package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

var now = time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)

// long is a path that no narrow terminal has room for.
const long = "/data/flink/checkpoints/0123456789abcdef0123456789abcdef/chk-1234567"

func testListings(run *Run) Listings {
	spt := reader.Entry{Path: long, State: reader.Complete, Newest: true, Time: now.Add(-time.Hour), Container: reader.Container{Family: reader.SPT}, Kind: summary.Kind{Type: "snapshot"}, ID: 1234, Operators: 2, Bytes: 1 << 20, Outside: 2}
	left := reader.Entry{Path: long + "/.spt-tmp-x", State: reader.Leftover, Reason: "an interrupted run left it \x1b[31m", Bytes: 10}
	return Listings{run.NewListing(spt, now), run.NewListing(left, now)}
}

func testCleaning() *Cleaning {
	c := NewCleaning(false, now)
	l := ability.Leftover{Name: "dir/.spt-tmp-1", Files: 2, Bytes: 2048, ModTime: now.Add(-49 * time.Hour)}
	c.Add(l, "", nil, "")
	l.Name, l.Displaced = "dir/.spt-old-2", "dir/it is"
	c.Add(l, KeepReason(l), nil, "")
	c.Add(ability.Leftover{Name: "dir/.spt-tmp-3", Files: 1}, "", errors.New("permission denied"), "try again")
	return c
}

func testTrend(run *Run) *Trend {
	t := run.NewTrend(TrendOptions{Limit: 1000, LimitElements: 25, Top: 1})
	all := func(*summary.Operator, *summary.State) bool { return true }
	for i, bytes := range []int64{100, 200, 400} {
		op := testOperator("sink", int64(10*i), bytes)
		snap := &reader.Snapshot{}
		snap.Savepoint = testSavepoint(int64(10 + 2*i))
		snap.Container = reader.Container{Size: 50, ModTime: now.Add(time.Duration(i) * time.Minute)}
		t.Add(fmt.Sprint("chk-", i), snap, &summary.Summary{Operators: []*summary.Operator{op}, Bytes: summary.Bytes{Inline: bytes}}, all)
	}
	t.LeaveOut("chk-9", "chk-9: it ends too early")
	t.Finish()
	return t
}

func testSavepoint(id int64) *format.Savepoint { return &format.Savepoint{ID: id} }

// testOperator has a union state.
func testOperator(uid string, elements, bytes int64) *summary.Operator {
	return &summary.Operator{
		Operator: &format.Operator{UID: format.NewText(uid), ID: format.OperatorIDOf(uid), Parallelism: 2, MaxParallelism: 128},
		States:   []*summary.State{{Name: "offsets", Kind: summary.Union, Elements: elements, Bytes: bytes, Stored: summary.Bytes{Inline: bytes}}},
		Bytes:    summary.Bytes{Inline: bytes},
	}
}

// TestCleaning: what becomes of leftovers, for a person.
func TestCleaning(t *testing.T) {
	want := `removed dir/.spt-tmp-1: 2 files, 2.0 KiB, last written 2 d ago
kept dir/.spt-old-2: 2 files, 2.0 KiB, last written 2 d ago: dir/it is is missing and this is its snapshot; rename it back:  mv dir/.spt-old-2 'dir/it is'
not removed dir/.spt-tmp-3: 1 file, 0 B: permission denied: try again
removed 1 leftover, 2.0 KiB; 2 kept
`
	if got := text(t, testCleaning().Document(), ui.Term{}); got != want {
		t.Errorf("%s\nnot %s", got, want)
	}
}

// TestTrend: growth is the difference of the first and the last by the difference of
// their ids, and limits are reached on the straight line through both.
func TestTrend(t *testing.T) {
	trend := testTrend(&Run{})
	if trend.Checkpoints != 4 || trend.Seconds != 120 || len(trend.All) != 3 {
		t.Fatalf("%+v", trend)
	}
	state := trend.All[2]
	if state.Growth != 300 || state.Per != 75 || state.More != 20 || state.MorePer != 5 {
		t.Errorf("%+v", state)
	}
	// 600 bytes are left of 1000, 5 elements of 25.
	if l := state.Limit; l.Reached || *l.Checkpoints != 8 || *l.Seconds != 240 {
		t.Errorf("%+v", l)
	}
	if l := state.LimitOf; l.Reached || *l.Checkpoints != 1 || *l.Seconds != 30 {
		t.Errorf("%+v", l)
	}
	if got := trend.Reasons(); got != "chk-9: it ends too early" {
		t.Error(got)
	}
	if got := text(t, trend.Document(), ui.Term{}); !strings.Contains(got, "3 snapshots · checkpoint 10 → 14 · 2 min\n") || !strings.Contains(got, "in 8 checkpoints, 4 min\n") {
		t.Error(got)
	}
}

// TestReports: at any width no line is wider than the terminal, no control character is
// printed, and rows have as many cells as their header.
func TestReports(t *testing.T) {
	run := &Run{}
	problem := run.NewUninspected(long, errors.New("it cannot be \x1bread"))
	x := run.NewUninspected(long, errors.New(""))
	x.Operators = []InspectOperator{run.inspectOperator(testOperator("an-operator-with-a-long-name", 12, 1<<30), nil)}
	inspects := Inspects{x, problem}
	for name, r := range map[string]interface {
		Report
		Rows
	}{
		"inspect": inspects, "inspect --by": NewInspectRows(ByState, 0, inspects), "ls": testListings(run), "clean": testCleaning(), "trend": testTrend(run),
		"cat --stats": CatStats{{Operator: "an-operator-with-a-long-name", State: "s", Kind: "list", Elements: 1 << 40, Bytes: 1 << 50}},
	} {
		for _, width := range []int{40, 60, 80, 120} {
			for line := range strings.Lines(text(t, r.Document(), ui.Term{IsTTY: true, Width: width})) {
				if n := ui.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: %d columns: a line of %d: %q", name, width, n, line)
				}
			}
		}
		if got := text(t, r.Document(), ui.Term{}); got == "" || strings.Contains(got, "\x1b") || strings.Contains(got, "…") {
			t.Errorf("%s: %q", name, got)
		}
		var b bytes.Buffer
		if err := Print(&b, ui.Term{}, ui.OutputCSV, r); err != nil {
			t.Fatal(err)
		}
		cells, err := csv.NewReader(&b).ReadAll() // all rows of one width
		if err != nil || len(cells) < 2 || !slices.Equal(cells[0], r.Header()) {
			t.Errorf("%s: %q, %v", name, cells, err)
		}
	}
}

// TestEmptyReports: a list without elements is a list in JSON, and prints nothing to a
// person.
func TestEmptyReports(t *testing.T) {
	empty := (&Run{}).NewUninspected("sp", errors.New(""))
	for name, r := range map[string]Report{"ls": Listings{}, "clean": NewCleaning(true, now), "cat --stats": CatStats{}, "inspect --by": NewInspectRows(ByFile, 0, Inspects{empty})} {
		var b bytes.Buffer
		if err := Print(&b, ui.Term{}, ui.OutputJSON, r); err != nil || b.String() != "[]\n" {
			t.Errorf("%s: %q, %v", name, b.String(), err)
		}
		if got := text(t, r.Document(), ui.Term{}); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
