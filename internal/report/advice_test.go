package report

import (
	"testing"

	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/ui"
)

// TestAdvice: a command that can be pasted ends its line; a flag, and a command that lacks
// something, is only mentioned; alternatives are told from what is to be done as well.
func TestAdvice(t *testing.T) {
	words := func(s string) finding.Remedy { return finding.Remedy{Words: s} }
	also := func(m finding.Remedy) finding.Remedy { m.Also = true; return m }
	maxParallelism := finding.Remedy{Words: "let it have more", Action: finding.SetMaxParallelism, Operator: "my op", To: "256"}
	for _, tt := range []struct {
		all  []finding.Remedy
		want string
	}{
		{nil, ""},
		{finding.Words("do this"), "do this"},
		{[]finding.Remedy{words("do this"), words("that")}, "do this, or that"},
		{[]finding.Remedy{words("do this"), words("that"), words("nothing")}, "do this, that, or nothing"},
		{[]finding.Remedy{words("do this, which helps"), words("that")}, "do this, which helps; or that"},
		{[]finding.Remedy{words("do this"), also(words("that")), words("nothing")}, "do this; that; or nothing"},
		{[]finding.Remedy{words("do this"), maxParallelism}, "do this, or let it have more:  spt set 'my sp' OUT --operator 'my op' --max-parallelism 256"},
		{[]finding.Remedy{maxParallelism, words("do this")}, "let it have more:  spt set 'my sp' OUT --operator 'my op' --max-parallelism 256\ndo this"},
		{[]finding.Remedy{{Words: "drop it", Action: finding.DropOperator}}, "drop it (spt drop)"},
		{[]finding.Remedy{{Words: "let it start empty", Action: finding.DropOperator, Operator: "a"}}, "let it start empty:  spt drop 'my sp' OUT --operator a"},
		{[]finding.Remedy{{Words: "rename it", Action: finding.RenameState, Operator: "a", State: "b c", To: "d"}}, "rename it:  spt rename 'my sp' OUT --operator a --state-name 'b c=d'"},
		{[]finding.Remedy{{Words: "change it", Action: finding.SetMode, Operator: "a", State: "b", To: "list"}}, "change it:  spt set 'my sp' OUT --operator a --state b --mode list"},
		{[]finding.Remedy{{Words: "count", Action: finding.CountElements, State: "b"}, {Words: "prune", Action: finding.KeepUnproven, State: "b"}},
			"count:  spt cat 'my sp' --state b --distinct\nprune:  spt prune-union 'my sp' OUT --state b --keep distinct --accept-unproven"},
		{[]finding.Remedy{{Words: "it is there", Action: finding.Open, Locations: []string{"my/chk-1"}}}, "it is there:  spt verify my/chk-1"},
		{[]finding.Remedy{{Words: "look", Action: finding.List, Locations: []string{"my jobs"}}}, "look:  spt ls 'my jobs'"},
		{[]finding.Remedy{words("write elsewhere"), {Words: "replace it", Action: finding.Overwrite}}, "write elsewhere, or add --overwrite to replace it"},
		{[]finding.Remedy{{Words: "say where they are", Action: finding.MapFiles}}, "say where they are with --map OLD=NEW"},
		{[]finding.Remedy{{Words: "look there", Action: finding.MapFiles, Locations: []string{"."}}}, "look there with --map .=DIR"},
		{[]finding.Remedy{{Words: "if it may", Action: finding.ReadOutside, Locations: []string{"/a", "/b c"}}}, "if it may, add --follow /a --follow '/b c'"},
		{[]finding.Remedy{{Words: "if it may", Action: finding.ReadOutside, Locations: []string{"1", "2", "3", "4", "5", "6"}}}, "if it may, add --follow 1 --follow 2 --follow 3 --follow 4 --follow 5 …"},
	} {
		r := Run{Command: "verify", Input: "my sp"}
		if got := r.Advice(tt.all); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.all, got, tt.want)
		}
	}
	if got, want := (&Run{}).Advice([]finding.Remedy{maxParallelism}), "let it have more:  spt set IN OUT --operator 'my op' --max-parallelism 256"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// Names of operators and states are secret; the beginning of an id is not a name.
	secret := Run{Format: ui.FormatRedacted}
	for operator, want := range map[string]string{"0123abcd": "x:  spt drop IN OUT --operator 0123abcd", "my-secret-op": "x:  spt drop IN OUT --operator " + shellQuoted(secret.Text("my-secret-op"))} {
		if got := secret.Advice([]finding.Remedy{{Words: "x", Action: finding.DropOperator, Operator: operator}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// shellQuoted is text in single quotes, where it holds none.
func shellQuoted(s string) string { return "'" + s + "'" }

// TestEveryActionIsWorded: an action that a library can advise has words for people.
func TestEveryActionIsWorded(t *testing.T) {
	r := Run{}
	for _, action := range []finding.Action{
		finding.Verify, finding.Salvage, finding.ShowElements, finding.CountElements, finding.FindDuplicates, finding.KeepOneOfEach, finding.KeepUnproven,
		finding.RenameOperator, finding.RenameState, finding.DropOperator, finding.DropInFlight, finding.SetMaxParallelism, finding.Regroup, finding.SetMode, finding.Copy,
		finding.RescaleOther, finding.WriteMapping, finding.Open, finding.List, finding.ReadOutside, finding.MapFiles, finding.SearchPath, finding.NameUIDs,
		finding.NameRelease, finding.KeepMissing, finding.LeaveOperator, finding.BuildCanonical, finding.Overwrite,
	} {
		m := finding.Remedy{Words: "x", Action: action, Operator: "a", State: "b", To: "c", Locations: []string{"d"}}
		if got := r.Advice([]finding.Remedy{m}); got == "x" {
			t.Errorf("%s has no words", action)
		}
	}
}
