package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// rescaleText is the plan for people: per state a small picture of who gets
// what, then what deserves a look.
func rescaleText(env *Env, o rescaleOptions, r *RescaleResult, refused error) error {
	term := env.term()
	for i := range r.Operators {
		op := &r.Operators[i]
		if op.Left != "" {
			continue
		}
		for k := range op.States {
			if err := op.stateText(env, o, &op.States[k], term); err != nil {
				return err
			}
		}
		for _, k := range op.Keyed {
			if err := op.keyedText(env, o, k, term); err != nil {
				return err
			}
		}
		if err := op.remarks(env); err != nil {
			return err
		}
	}
	if err := r.summary(env); err != nil {
		return err
	}
	return r.rescaleEnd(env, o, refused)
}

func (op *RescaleOperator) stateText(env *Env, o rescaleOptions, st *RescaleState, term ui.Term) error {
	kind := st.Kind
	if st.Raw {
		kind = "raw"
	}
	what := ui.Plural(st.Elements, "element")
	if st.Kind == "broadcast" {
		what = fmt.Sprintf("%d of %d subtasks with a copy", st.Elements, op.From)
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s\n", ui.Bold(fmt.Sprintf("%s · %s · %s · %s, %s", ui.Quote(op.label), ui.Quote(st.Name), kind, what, ui.Bytes(st.Bytes)))); err != nil {
		return err
	}
	if st.Kind == "union" && st.Elements > 0 {
		// Everyone gets the same: say it once.
		if st.Varies {
			if _, err := fmt.Fprintf(env.Stdout, "  %s in orders that differ between subtasks; this is the order of subtask 0, which OUT gives to all\n", ui.Look("!")); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(env.Stdout, "  every subtask gets all %s: %s\n  %s assigned in total; if the job adds them again, the next snapshots hold %s, %s, %s\n",
			ui.Count(st.Elements), sourcesText(st.Subtasks[0].Sources), ui.Count(st.Growth[0]), ui.Count(st.Growth[0]), ui.Count(st.Growth[1]), ui.Count(st.Growth[2]))
		return err
	}
	t := ui.NewTable(ui.Column{}, ui.Column{Align: ui.Right}, ui.Column{Align: ui.Right}, ui.Column{Shrink: 1, Min: 14, Wrap: true})
	shown, rest := showSubtasks(len(st.Subtasks), o.wide)
	var lo, hi int64 = 1<<63 - 1, 0
	for i, sub := range st.Subtasks {
		lo, hi = min(lo, sub.Elements), max(hi, sub.Elements)
		if i >= shown {
			continue
		}
		if sub.Elements == 0 {
			mark := ui.Look("! gets nothing")
			if st.Elements == 0 {
				mark = ""
			}
			t.Child(1, fmt.Sprintf("subtask %d", i), "–", "", mark)
			continue
		}
		t.Child(1, fmt.Sprintf("subtask %d", i), ui.Count(sub.Elements), ui.Bytes(sub.Bytes), sourcesText(sub.Sources))
	}
	if err := t.Write(env.Stdout, term); err != nil {
		return err
	}
	var b strings.Builder
	if rest > 0 {
		fmt.Fprintf(&b, "  … %d more subtasks, with %s to %s each (--wide shows them)\n", rest, ui.Count(lo), ui.Count(hi))
	}
	if st.Empty > 0 && st.Elements > 0 && rest > 0 {
		fmt.Fprintf(&b, "  %s %s get nothing\n", ui.Look("!"), ui.Plural(int64(st.Empty), "subtask"))
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}

func (op *RescaleOperator) keyedText(env *Env, o rescaleOptions, k RescaleKeyed, term ui.Term) error {
	kind := "keyed"
	if k.Raw {
		kind = "raw keyed"
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s\n", ui.Bold(fmt.Sprintf("%s · %s · %s", ui.Quote(op.label), kind, ui.Plural(int64(op.MaxParallelism), "key group")))); err != nil {
		return err
	}
	t := ui.NewTable(ui.Column{}, ui.Column{Align: ui.Right}, ui.Column{}, ui.Column{Shrink: 1, Min: 14, Wrap: true})
	shown, rest := showSubtasks(len(k.Subtasks), o.wide)
	var lo, hi int32 = 1<<31 - 1, 0
	for i, sub := range k.Subtasks {
		lo, hi = min(lo, sub.Count), max(hi, sub.Count)
		if i >= shown {
			continue
		}
		var from []string
		for _, s := range sub.Sources {
			part := fmt.Sprintf("old %d [%d..%d]", s.Old, s.First, s.First+s.Count-1)
			if s.Whole {
				part += " whole"
			}
			from = append(from, part)
		}
		t.Child(1, fmt.Sprintf("subtask %d", i), ui.Count(int64(sub.Count)), fmt.Sprintf("[%d..%d]", sub.First, sub.First+sub.Count-1), strings.Join(from, ", "))
	}
	if err := t.Write(env.Stdout, term); err != nil {
		return err
	}
	var b strings.Builder
	if rest > 0 {
		fmt.Fprintf(&b, "  … %d more subtasks (--wide shows them)\n", rest)
	}
	if hi > lo {
		fmt.Fprintf(&b, "  %d to %d key groups each: the busiest subtask has %.2f times the average\n", lo, hi, float64(hi)*float64(len(k.Subtasks))/float64(op.MaxParallelism))
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}

func (op *RescaleOperator) remarks(env *Env) error {
	var b strings.Builder
	if op.Order != "" {
		fmt.Fprintf(&b, "%s %s: the order of blocks within a subtask is not certain: %s\n", ui.Look("!"), ui.Quote(op.label), op.Order)
	}
	if op.InFlight {
		fmt.Fprintf(&b, "%s %s has in-flight data; where it goes depends on the job's graph and is not in this plan\n", ui.Look("!"), ui.Quote(op.label))
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}

// summary says which operators are rescaled, and which are left alone.
func (r *RescaleResult) summary(env *Env) error {
	var b strings.Builder
	highest := r.highest()
	rescaled := 0
	for _, ops := range highest {
		rescaled += len(ops)
	}
	fmt.Fprintf(&b, "%d of %s rescaled to %d.", rescaled, ui.Plural(int64(len(r.Operators)), "operator"), r.To)
	for _, limit := range slices.Sorted(maps.Keys(highest)) {
		fmt.Fprintf(&b, " Highest legal parallelism: %d (%s).", limit, report.Shorten(highest[limit]))
	}
	b.WriteByte('\n')
	var left []string
	for _, op := range r.Operators {
		if op.Left != "" {
			left = append(left, fmt.Sprintf("%s (%s)", ui.Quote(op.label), op.Left))
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(&b, "Left alone: %s.\n", report.Shorten(left))
	}
	for _, text := range r.Remarks {
		fmt.Fprintf(&b, "%s %s.\n", ui.Look("!"), text)
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}

// clipped says which operators' subtasks share whole handles.
func (r *RescaleResult) clipped() []string {
	var whole []string
	for _, op := range r.Operators {
		if op.Left == "" && slices.ContainsFunc(op.Keyed, RescaleKeyed.sharedWhole) {
			whole = append(whole, ui.Quote(op.label))
		}
	}
	if len(whole) == 0 {
		return nil
	}
	return []string{"several subtasks of " + report.Shorten(whole) + " get one incremental handle as a whole, and clip it: with state.backend.rocksdb.use-ingest-db-restore-mode, Flink 2 refuses to restore what is written at yet another parallelism"}
}

// highest gathers the operators that are rescaled by their max parallelism.
func (r *RescaleResult) highest() map[int32][]string {
	all := map[int32][]string{}
	for _, op := range r.Operators {
		if op.Left == "" {
			all[op.MaxParallelism] = append(all[op.MaxParallelism], ui.Quote(op.label))
		}
	}
	return all
}

// rescaleEnd says what the plan holds for, and how it is written, if it can be.
func (r *RescaleResult) rescaleEnd(env *Env, o rescaleOptions, refused error) error {
	var b strings.Builder
	if slices.ContainsFunc(r.Operators, func(op RescaleOperator) bool { return op.Left == "" && op.PlaceOrder }) {
		fmt.Fprintf(&b, "The order of blocks holds for a restore from %s; --at says another place.\n", ui.Quote(r.At))
	}
	if o.suggest {
		for _, limit := range slices.Sorted(maps.Keys(r.highest())) {
			fmt.Fprintf(&b, "With %d key groups, these parallelisms near %d give every subtask as many: %s.\n", limit, r.To, evenParallelisms(limit, r.To))
		}
	}
	flags := ""
	if o.from > 0 {
		flags = fmt.Sprintf(" --from %d", o.from)
	}
	for _, name := range o.pick.operators {
		flags += " --operator " + shell.Quote(name)
	}
	if o.strategy != string(transform.StrategyFlink) {
		flags += " --strategy " + o.strategy
	}
	if o.keyed == "leave" {
		flags += " --keyed leave"
	}
	if refused != nil {
		fmt.Fprintf(&b, "%s Flink can do this, spt cannot write it: %s\n", ui.Look("!"), printableLines(refused.Error()))
		if hint := hintOf(refused); hint != "" {
			fmt.Fprintf(&b, "  %s\n", printableLines(hint))
		}
	} else {
		fmt.Fprintf(&b, "%s To write it:  spt rescale %s %s --to %d%s\n", ui.Dim("Nothing written."), shell.Quote(r.Input), outLike(r.Input), r.To, flags)
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}

// evenParallelisms lists the divisors of the number of key groups around p.
func evenParallelisms(groups, p int32) string {
	var below, above []string
	for d := p; d >= 1 && len(below) < 3; d-- {
		if groups%d == 0 {
			below = append([]string{fmt.Sprint(d)}, below...)
		}
	}
	for d := p + 1; d <= groups && len(above) < 3; d++ {
		if groups%d == 0 {
			above = append(above, fmt.Sprint(d))
		}
	}
	return strings.Join(append(below, above...), ", ")
}

// outLike is the output that a command is shown with: of the form of the input,
// since state in spt's own encoding can be in nothing but an .spt file.
func outLike(in string) string {
	if strings.HasSuffix(in, ".spt") {
		return "OUT.spt"
	}
	return "OUT"
}
