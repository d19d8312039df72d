package command

import (
	"github.com/spf13/cobra"

	"github.com/savepoint-tools/spt/internal/explain"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
)

func newExplainCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [NAME...]",
		Short: "Explain a finding, a verdict or a term: what it means, and what to do",
		Long: `Explains words that spt prints: the codes of findings of spt verify and spt
check, the verdicts, states and warnings of other commands, and terms of Flink
and of spt. It prints what each means, what Flink does, and what to do. Without
NAME it lists them all. Case does not matter, and words can be separated by
spaces, hyphens or underscores. docs/findings.md has the same texts.`,
		Example: `  spt explain union-multiplied
  spt explain 'may be multiplied' 'claim mode'
  spt explain -o csv`,
		Args: between(0, -1, "names"),
		RunE: func(_ *cobra.Command, args []string) error { return runExplain(env, args) },
		ValidArgsFunction: func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return offer(explain.Names(), typed), noFiles
		},
	}
}

func runExplain(env *Env, names []string) error {
	if len(names) == 0 {
		return env.answer(report.NewExplanations(explain.All(), true))
	}
	var all []explain.Entry
	for _, name := range names {
		found := explain.Lookup(name)
		if len(found) == 0 {
			return &usageError{"nothing explains " + ui.Quote(name), didYouMean(name, explain.Names(), "spt explain ", "spt explain   lists all names")}
		}
		all = append(all, found...)
	}
	return env.answer(report.NewExplanations(all, false))
}
