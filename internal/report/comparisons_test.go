package report

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
)

const longPath = "/data/flink/savepoints/0123456789abcdef0123456789abcdef/savepoint-012345-0123456789ab"

// unionOperator is an operator whose long name no narrow terminal has room for.
func unionOperator(id string) *format.Operator {
	return &format.Operator{UID: format.NewText("a-rather-long-uid-of-an-operator-" + id), ID: format.OperatorIDOf(id), Parallelism: 4, MaxParallelism: 128}
}

func testUnions(run *Run) Unions {
	a, b := unionOperator("a"), unionOperator("b")
	return run.NewUnions(longPath, []*transform.UnionReport{
		{Operator: a, State: "offsets", Subtasks: 4, Elements: 160, Distinct: 10, MinCopies: 16, MaxCopies: 16, Bytes: 3200, DistinctBytes: 200, Equal: true, Factor: 4, MaxFactor: 16, Verdict: transform.VerdictProduct, Why: "all 4 subtasks hold the same elements"},
		{Operator: b, State: "offsets", Subtasks: 4, Elements: 1 << 40, Distinct: 1 << 40, MinCopies: 1, MaxCopies: 1, Bytes: 1 << 50, DistinctBytes: 1 << 50, Factor: 1, MaxFactor: 1, Verdict: transform.VerdictSound},
	}, []*transform.BroadcastReport{{Operator: a, State: "rules", Bytes: 30, Versions: []transform.BroadcastVersion{{Bytes: 10, Subtasks: []int32{0, 2}}, {Bytes: 10, Subtasks: []int32{1}}}}}, 0)
}

func testPrune(run *Run) *Prune {
	u := transform.UnionReport{Operator: unionOperator("a"), State: "offsets", Subtasks: 6, Elements: 480, Distinct: 10, MinCopies: 48, MaxCopies: 48, Bytes: 9600, Factor: 6, MaxFactor: 48, Verdict: transform.VerdictProduct}
	left := transform.UnionReport{Operator: unionOperator("b"), State: "offsets", Subtasks: 2, Elements: 20, Distinct: 10, Bytes: 1 << 40, Verdict: transform.VerdictNotSure}
	p := run.NewPrune([]*transform.PrunedState{
		{UnionReport: u, Kept: 80, BytesAfter: 1600, MinKept: 8, MaxKept: 8, Divided: 6},
		{UnionReport: left, Kept: 20, BytesAfter: 1 << 40, Skipped: "no element is in two subtasks, and elements repeat inside them"},
	}, transform.KeepCopies, 0)
	p.MetadataBefore, p.MetadataAfter, p.Write = 12345, 6789, &Write{Input: longPath, Family: "flink"}
	return p
}

func testRescale(t *testing.T, run *Run) (*Rescale, Simulation) {
	t.Helper()
	plan, err := transform.Simulate(context.Background(), 100_000, 3, 40, transform.StrategyFlink)
	if err != nil {
		t.Fatal(err)
	}
	plan.Operators[0].Order, plan.Operators[0].PlaceOrder, plan.Operators[0].InFlight = "handles are in one bucket", true, true
	r := run.NewRescale(plan, RescaleInput{In: longPath, Suggest: true, Multiplied: []StateOf{{unionOperator("a"), "offsets"}}})
	r.At = longPath
	return r, run.NewSimulation(plan, 100_000, 3, false)
}

func testCheck(run *Run) *Check {
	groups := run.NewFileGroups()
	for i := range 5 {
		groups.AddRestored(RestoredFile{FileState: reader.FileState{Err: nil, Wrong: "expected 10 bytes, it has 9"}, User: unionOperator("a")})
		groups.AddVerified(finding.Finding{Severity: finding.Error, Code: "file-missing", File: fmt.Sprint(longPath, "/", i), Message: "x is missing"})
	}
	for _, g := range groups.Missing() {
		groups.AdviseMissing(g, "check", longPath, "/elsewhere", 3)
	}
	return run.NewCheck(longPath, reader.Container{}, nil, &check.Report{Findings: groups.Findings(), Matched: []check.Match{{Operator: unionOperator("a"), To: 8}}}, 1)
}

func testDiff() *Diff {
	n, k := int64(1<<40), int64(10)
	return &Diff{
		Old: DiffSnapshot{Path: longPath, CheckpointID: 4100, Bytes: 1 << 30}, New: DiffSnapshot{Path: longPath, CheckpointID: 4211, Bytes: 1 << 40},
		Differ: []string{"id", "elements"}, Counts: DiffCounts{Changed: 1, Renamed: 2}, Absent: 12, ByDigest: 1 << 30, KeyedByBytes: true,
		Operators: []DiffOperator{{label: "a-rather-long-uid-of-an-operator", Change: operatorChanged, States: []DiffState{{
			Name: "offsets", OldKind: "union", NewKind: "union", OldBytes: 1, NewBytes: 1 << 30, OldElements: &k, NewElements: &n, MultipliedBy: 100, texts: []string{"10 → 1,099,511,627,776 elements, none new"},
			Elements: []DiffElement{{Change: "added", NewCount: 2, Subtask: new(int32), shown: strings.Repeat("value ", 50)}}, Keyed: &DiffKeyed{Groups: []int32{1, 2, 3, 9}},
		}}}},
		suggested: &renames{list: []Rename{{Operator: "new", Likely: true, From: []RenameFrom{{Operator: "old", Reasons: []string{"the same name", "the same states"}}}}}, names: []NameChange{{"op", "id", "old name", "new name"}}, command: "spt rename " + longPath + " OUT --uid 0=new"},
	}
}

// TestComparisons: at any width no line is wider than the terminal but for an argument
// of a command, elsewhere nothing is cut but values, and rows have as many cells as
// their header.
func TestComparisons(t *testing.T) {
	run := &Run{}
	plan, simulation := testRescale(t, run)
	refused, _ := testRescale(t, run)
	refused.Refuse("it cannot be written", "rescale a savepoint")
	for name, x := range map[string]struct {
		r    Report
		want string // in a pipe
	}{
		"diff":             {testDiff(), "! offsets of a-rather-long-uid-of-an-operator was multiplied: every element comes 100 times as often as before, and none is new.\n  spt prune-union " + longPath + "\n"},
		"check":            {testCheck(run), "\n        3 of them are in /elsewhere:  spt check " + longPath + " --map " + longPath + "=/elsewhere\n"},
		"rescale":          {plan, "Nothing written. To write it:  spt rescale " + longPath + " OUT --to 40\n"},
		"rescale, refused": {refused, "! Flink can do this, spt cannot write it: it cannot be written\n  rescale a savepoint\n"},
		"rescale summary":  {plan.Summary(), "1 of 1 operator rescaled to 40."},
		"simulation":       {simulation, "100,000 elements in 3 subtasks of 33,333 or 33,334, restored with 40\n"},
		"unions":           {testUnions(run), "Nothing written. Add an output to write it:  spt prune-union " + longPath + " OUT --operator "},
		"prune":            {testPrune(run), "a restore loads 2,000 → 400 elements, "},
		"growth":           {NewGrowth(10_000, 100, 20), "9,223,372,036,854,775,807"},
	} {
		for _, width := range []int{40, 60, 80, 120} {
			for line := range strings.Lines(text(t, x.r.Document(), ui.Term{IsTTY: true, Width: width})) {
				line = strings.TrimSuffix(line, "\n")
				if n := ui.Width(line); n > width && strings.Contains(strings.TrimRight(strings.TrimSpace(line), ` \`), " ") {
					t.Errorf("%s: %d columns: a line of %d: %q", name, width, n, line)
				}
			}
		}
		if got := text(t, x.r.Document(), ui.Term{}); !strings.Contains(got, x.want) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: no %q in\n%s", name, x.want, got)
		}
		list, ok := x.r.(Rows)
		if !ok {
			continue
		}
		var b bytes.Buffer
		if err := Print(&b, ui.Term{}, ui.OutputCSV, x.r); err != nil {
			t.Fatal(err)
		}
		cells, err := csv.NewReader(&b).ReadAll() // refuses rows of different lengths
		if err != nil || len(cells) < 2 || !slices.Equal(cells[0], list.Header()) {
			t.Errorf("%s: %q, %v", name, cells, err)
		}
	}
}
