package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// TestCheckFinishedVertices checks what Flink's VertexFinishedStateChecker
// refuses: vertices that mix finished and running operators, and finished
// vertices that read from ones that are not. The expectations are those of its
// own tests.
func TestCheckFinishedVertices(t *testing.T) {
	running := func(uid, name string) *format.Operator {
		op := sptest.ListOperator(uid, 4)
		op.Name = format.NewText(name)
		return op
	}
	partly := func(uid, name string) *format.Operator {
		op := running(uid, name)
		op.Subtasks[3] = &format.Subtask{Index: 3, Finished: true}
		return op
	}
	fully := func(uid, name string) *format.Operator {
		op := running(uid, name)
		op.Subtasks, op.Finished = nil, true
		return op
	}
	node := func(uid, description string, inputs ...string) string {
		var in []string
		for i := 0; i < len(inputs); i += 2 {
			in = append(in, fmt.Sprintf(`{"id":%q,"ship_strategy":%q}`, format.OperatorIDOf(inputs[i]), inputs[i+1]))
		}
		return fmt.Sprintf(`{"id":%q,"parallelism":4,"description":%q,"inputs":[%s]}`, format.OperatorIDOf(uid), description, strings.Join(in, ","))
	}
	tests := []struct {
		name string
		ops  []*format.Operator
		plan []string
		o    Options
		want []string
	}{
		{"alike", []*format.Operator{partly("a", "A"), partly("b", "B")}, []string{node("a", "A -> B")}, Options{}, nil},
		{"all running", []*format.Operator{running("a", "A"), running("b", "")}, []string{node("a", "A -> B")}, Options{}, nil},
		{"partly and running, by name", []*format.Operator{partly("a", "A"), running("b", "B")}, []string{node("a", "A -> B"), node("c", "C")}, Options{}, []string{"error finished-mixed a"}},
		{"fully and running, by name", []*format.Operator{running("a", "A"), fully("b", "B")}, []string{node("a", "A -> B")}, Options{}, []string{"error finished-mixed a"}},
		{"fully and partly, without names", []*format.Operator{partly("a", ""), fully("b", "")}, []string{node("a", "A -> B")}, Options{}, []string{"error finished-mixed a"}},
		{"without names it may be gone", []*format.Operator{partly("a", ""), running("b", "")}, []string{node("a", "A -> B")}, Options{AllowNonRestored: true}, []string{"warning finished-mixed b"}},
		{"it fits another vertex", []*format.Operator{partly("a", ""), running("b", ""), running("c", "")}, []string{node("a", "A"), node("c", "C -> B")}, Options{}, nil},
		{"it fits no vertex", []*format.Operator{partly("a", ""), fully("b", ""), running("c", "")}, []string{node("a", "A"), node("c", "C -> B")}, Options{}, []string{"error finished-mixed b"}},
		{"vertices of their own may differ", []*format.Operator{fully("a", "A"), running("b", "B")}, []string{node("a", "A"), node("b", "B", "a", "HASH")}, Options{}, nil},
		{"running before fully finished", []*format.Operator{running("a", "A"), fully("b", "B")}, []string{node("a", "A"), node("b", "B", "a", "FORWARD")}, Options{}, []string{"error finished-upstream b"}},
		{"partly before fully finished", []*format.Operator{partly("a", "A"), fully("b", "B")}, []string{node("a", "A"), node("b", "B", "a", "FORWARD")}, Options{}, []string{"error finished-upstream b"}},
		{"running before partly finished", []*format.Operator{running("a", "A"), partly("b", "B")}, []string{node("a", "A"), node("b", "B", "a", "FORWARD")}, Options{}, []string{"error finished-upstream b"}},
		{"partly before partly, all to all", []*format.Operator{partly("a", "A"), partly("b", "B")}, []string{node("a", "A"), node("b", "B", "a", "HASH")}, Options{}, []string{"error finished-upstream b"}},
		{"partly before partly, pointwise", []*format.Operator{partly("a", "A"), partly("b", "B")}, []string{node("a", "A"), node("b", "B", "a", "RESCALE")}, Options{}, nil},
		{"a new operator before a finished one", []*format.Operator{fully("b", "B")}, []string{node("new", "N"), node("b", "B", "new", "FORWARD")}, Options{}, []string{"error finished-upstream b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, err := ParsePlan([]byte(`{"nodes":[` + strings.Join(tt.plan, ",") + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			tt.o.Job = plan
			r, err := Run(t.Context(), sptest.View(tt.ops...), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range codes(r) {
				if strings.Contains(c, " finished-") {
					got = append(got, c)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestCheckIdle counts the subtasks that get nothing at another parallelism.
func TestCheckIdle(t *testing.T) {
	message := func(t *testing.T, op *format.Operator, p int32) (texts []string) {
		t.Helper()
		r, err := Run(t.Context(), sptest.View(op), Options{Parallelism: p})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			if f.Code == "subtasks-without-state" {
				texts = append(texts, string(f.Severity)+" "+f.State+" "+f.Message)
			}
		}
		return texts
	}
	// plain has one element in each subtask.
	if got := message(t, sptest.ListOperator("a", 3), 8); !slices.Equal(got, []string{"note l 3 elements of a list state for 8 subtasks: none for 5 of them"}) {
		t.Errorf("%v", got)
	}
	for _, p := range []int32{2, 3} {
		if got := message(t, sptest.ListOperator("a", 3), p); got != nil {
			t.Errorf("parallelism %d: %v", p, got)
		}
	}
	// 128 key groups, of which 0, 1 and 127 have entries: subtasks 0 and 3 of 4.
	keyed := sptest.Operator("k", nil)
	keyed.Subtasks[0].Managed = nil
	offsets := make(format.OffsetSlice, 128)
	offsets[0], offsets[1], offsets[127] = 4, 6, 8
	keyed.Subtasks[0].ManagedKeyed = &format.KeyGroups{Codec: format.CodecFlink, Savepoint: true, Range: format.KeyGroupRange{Count: 128}, Offsets: offsets, Data: sptest.Versioned(6, "......")}
	if got := message(t, keyed, 4); !slices.Equal(got, []string{"note  3 of 128 key groups have entries: 2 of 4 subtasks get no keyed state"}) {
		t.Errorf("%v", got)
	}
}

// TestCheckContent: what Content finds is said once, and what fails for that
// reason is not said again.
func TestCheckContent(t *testing.T) {
	op := sptest.ListOperator("a", 2)
	for _, sub := range op.Subtasks {
		sub.Managed.Data = sptest.Versioned(99, "x")
	}
	o := Options{Content: func(_ context.Context, op *format.Operator) ([]finding.Finding, error) {
		return []finding.Finding{{Severity: finding.Error, Code: "state-version", Operator: op}}, nil
	}}
	r, err := Run(t.Context(), sptest.View(op), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := codes(r); !slices.Equal(got, []string{"error state-version a"}) {
		t.Errorf("%v", got)
	}
}
