package check

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// TestCheckUnreadStates: a job that asks for none of the states of an operator is
// a warning, and says what they look like; one that asks for some has notes, and
// a hint where a state was renamed.
func TestCheckUnreadStates(t *testing.T) {
	type ofStates = []types.StateSchema
	long := func(names ...string) (all ofStates) {
		for _, n := range names {
			all = append(all, sptest.StateSchema(n, format.ModeList, "Long"))
		}
		return all
	}
	keyedLong := func(names ...string) (all ofStates) {
		for _, n := range names {
			all = append(all, sptest.KeyedSchema(n, "value", "Long"))
		}
		return all
	}
	timers := sptest.KeyedSchema("_timer_state/event_user-timers", types.Timers, "Timer")
	for _, tt := range []struct {
		name     string
		was, now ofStates
		want     []string
		advice   string // of the first finding
	}{
		{"all of them", long("a", "b"), long("c"), []string{"warning all-state-unread a"}, `"c" of the job has the same type: if "a" was renamed, rename it here too (rename-state a a c)`},
		{"all of another type", long("a"), ofStates{sptest.StateSchema("c", 0, "Int")}, []string{"warning all-state-unread a"}, "if its uid was given to another operator, give the state its new uid (rename-operator)"},
		{"all but the timers, which many have", append(keyedLong("a"), timers), append(keyedLong("b"), timers), []string{"warning all-state-unread a"}, `if "a" was renamed, use the old name in the job`},
		{"only states that many have", ofStates{sptest.StateSchema("SourceReaderState", 0, "Long")}, ofStates{sptest.StateSchema("window-contents", 0, "Long")}, []string{"warning all-state-unread a"}, ""},
		{"none asked for", long("a"), nil, []string{"note state-not-asked a/a"}, ""},
		{"none there", nil, long("a"), []string{"note state-starts-empty a/a"}, ""},
		{"some", long("a", "b"), long("a", "c"), []string{"note state-not-asked a/b", "note state-starts-empty a/c"}, `"c" of the job has the same type: if "b" was renamed, rename it here too (rename-state a b c)`},
		{"some, keyed", keyedLong("a", "b"), keyedLong("a", "c"), []string{"note state-not-asked a/b", "note state-starts-empty a/c"}, `if "b" was renamed, use the old name in the job`},
		{"some, of another type", long("a", "b"), append(long("a"), sptest.StateSchema("c", 0, "Int")), []string{"note state-not-asked a/b", "note state-starts-empty a/c"}, ""},
		{"some, of another kind", keyedLong("a", "b"), append(keyedLong("a"), sptest.KeyedSchema("c", "list", "Long")), []string{"note state-not-asked a/b", "note state-starts-empty a/c"}, ""},
		{"two that look alike", long("a", "b"), long("a", "c", "d"), []string{"note state-not-asked a/b", "note state-starts-empty a/c", "note state-starts-empty a/d"}, `"c", "d" of the job have the same type: if "b" was renamed, it is one of these`},
		{"one more", long("a"), long("a", "b"), []string{"note state-starts-empty a/b"}, ""},
	} {
		r, err := Run(t.Context(), sptest.View(sptest.ListOperator("a", 1)), Options{Schema: schemas("", tt.was...), Like: &Like{Savepoint: &format.Savepoint{Operators: []*format.Operator{sptest.ListOperator("a", 1)}}, Schema: schemas("", tt.now...)}})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, codes(r)); d != "" {
			t.Errorf("%s: -want +got\n%s", tt.name, d)
			continue
		}
		if got := fmt.Sprint(r.Findings[0].Advice); !strings.Contains(got, tt.advice) || tt.advice == "" && strings.Contains(got, "same type") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.advice)
		}
	}
	// What could not be read may be asked for, and may be there.
	part := func(states ofStates) types.Schemas {
		return func(context.Context, *format.Operator) (types.Schema, []error, error) {
			return types.Schema{States: states}, []error{format.ErrUnsupported}, nil
		}
	}
	for name, o := range map[string]Options{
		"the job":      {Schema: schemas("", long("a")...), Like: &Like{Savepoint: &format.Savepoint{Operators: []*format.Operator{sptest.ListOperator("a", 1)}}, Schema: part(long("c"))}},
		"the snapshot": {Schema: part(long("a")), Like: &Like{Savepoint: &format.Savepoint{Operators: []*format.Operator{sptest.ListOperator("a", 1)}}, Schema: schemas("", long("c")...)}},
	} {
		r, err := Run(t.Context(), sptest.View(sptest.ListOperator("a", 1)), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range codes(r) {
			if strings.Contains(c, "all-state-unread") {
				t.Errorf("%s could not be read in part: %q", name, codes(r))
			}
		}
	}
}
