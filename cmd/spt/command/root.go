package command

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/savepoint-tools/spt/internal/ui"
)

// New is the whole command line.
func New(env *Env) *cobra.Command {
	version, _ := build()
	root := &cobra.Command{
		Version: version,
		Use:     "spt",
		Short:   "Inspect, compare, check and edit savepoints of stream processors, offline",
		Long: `spt inspects, compares, checks, edits and converts savepoints and checkpoints,
offline: snapshots of Apache Flink 1.3 to 2.3 (a directory with _metadata) and
its own .spt files. It needs no JVM and no cluster, and never opens an input for
writing.

SP is the directory of a snapshot, its _metadata, or an .spt file. A bare name
that does not exist here is also tried with .spt and in the directories of
SPT_PATH.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := env.hideSecrets(cmd, args); err != nil {
				return err
			}
			env.run.Command, env.reach = cmd.Name(), storeArguments(cmd.Flags())
			if strings.Contains(cmd.Use, "[OUT]") || cmd.Name() == "check" {
				env.run.Input = strings.Join(args[:min(len(args), 1)], "")
			}
			if err := errors.Join(emptyFlag(cmd.Flags()), env.checkCSV(cmd, args), env.checkParquet(cmd)); err != nil {
				return err
			}
			return env.prepare(cmd.Context())
		},
	}
	env.addCommonFlags(root.PersistentFlags())
	env.addStoreFlags(root.PersistentFlags())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &flagError{usageError{msg: err.Error(), hint: flagHint(cmd, err)}}
	})
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args[0])
	}
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Look", []*cobra.Command{
			isTable("--by", newInspectCommand(env)),
			newListCommand(env),
			isTable(always, newCatCommand(env)),
			newSchemaCommand(env),
			newGetCommand(env),
			isTable(always, newOffsetsCommand(env)),
			newPendingCommand(env),
			newTrendCommand(env),
			newReportCommand(env),
			noRows(newBrowseCommand(env)),
			noRows(newWatchCommand(env)),
		}},
		{"Compare", []*cobra.Command{
			isTable(always, noRows(newDiffCommand(env))),
		}},
		{"Check", []*cobra.Command{
			newVerifyCommand(env),
			newCheckCommand(env),
			isTable(always, newOrphansCommand(env)),
		}},
		{"Change", []*cobra.Command{
			noRows(newConvertCommand(env)),
			rowsWithout("OUT", newRescaleCommand(env)),
			rowsWithout("--keep", newPruneUnionCommand(env)),
			noRows(newDropCommand(env)),
			noRows(newRenameCommand(env)),
			noRows(newRelocateCommand(env)),
			noRows(newMergeCommand(env)),
			noRows(newApplyCommand(env)),
			noRows(newSetCommand(env)),
			noRows(newFilterCommand(env)),
			noRows(newPatchCommand(env)),
			noRows(newCreateCommand(env)),
		}},
		{"Tools", []*cobra.Command{
			newExplainCommand(env),
			newHashCommand(env),
			newDoctorCommand(env),
			newCleanCommand(env),
			noRows(newVersionCommand(env)),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, c := range group.commands {
			c.GroupID = group.title
			root.AddCommand(c)
		}
	}
	root.SetCompletionCommandGroupID("Tools")
	suggestFor(root)
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	completionNeedsShell(root)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, env.helpErr = io.WriteString(cmd.OutOrStdout(), helpFor(cmd, env.term().Width))
	})
	noVersionShorthand(root)
	return root
}

// rowsKey says of a command what it must be without for its answer to be a list
// of rows, which csv can give; if it is not there, the answer always is.
const rowsKey = "rows without"

// never is in place of that where the answer is one thing, or says what was
// written.
const never = "never"

func noRows(cmd *cobra.Command) *cobra.Command { return rowsWithout(never, cmd) }

func rowsWithout(what string, cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{rowsKey: what}
	return cmd
}

// checkCSV refuses -o csv for an answer that has no rows.
func (e *Env) checkCSV(cmd *cobra.Command, args []string) error {
	if e.common.output != ui.OutputCSV {
		return nil
	}
	with := ""
	switch what := cmd.Annotations[rowsKey]; what {
	case "":
		return nil
	case never:
	case "OUT":
		if len(args) < 2 {
			return nil
		}
		with = " with OUT"
	default: // a flag
		if !cmd.Flags().Changed(strings.TrimPrefix(what, "--")) {
			return nil
		}
		with = " with " + what
	}
	return usagef("-o csv: the result of %s%s is not a list of rows; use -o table, json or jsonl", cmd.CommandPath(), with)
}

// tableKey says of a command with which flag its answer has typed columns, which Parquet
// needs; if it is not there, the answer never has.
const tableKey = "table with"

// always is in place of the flag.
const always = "always"

func isTable(with string, cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[tableKey] = with
	return cmd
}

// outputsOf returns the outputs that a command has.
func outputsOf(cmd *cobra.Command) []string {
	return slices.DeleteFunc(ui.OutputNames(), func(name string) bool {
		switch name {
		case ui.OutputCSV.String():
			return cmd.Annotations[rowsKey] == never
		case ui.OutputParquet.String():
			return cmd.Annotations[tableKey] == ""
		}
		return false
	})
}

// checkParquet refuses -o parquet for an answer without typed columns, and on a terminal.
func (e *Env) checkParquet(cmd *cobra.Command) error {
	switch {
	case e.common.output != ui.OutputParquet:
		return nil
	case cmd.Annotations[tableKey] == "":
		return usagef("-o parquet: the result of %s has no typed columns; use -o table, json or jsonl", cmd.CommandPath())
	case e.term().IsTTY:
		return &usageError{"-o parquet: standard output is a terminal, and a Parquet file is not text", "write it to a file:  " + cmd.CommandPath() + " … -o parquet > FILE.parquet"}
	case e.run.Format != ui.FormatAuto && e.run.Format != ui.FormatRedacted:
		return usagef("--format %s cannot be combined with -o parquet, in which bytes are bytes", e.run.Format)
	}
	return nil
}

func unknownCommand(root *cobra.Command, name string) error {
	var names []string
	for _, c := range root.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		names = append(names, c.Name())
		if slices.Contains(c.SuggestFor, name) {
			return &flagError{usageError{msg: "unknown command " + ui.Quote(name), hint: "did you mean:  spt " + c.Name()}}
		}
	}
	return &flagError{usageError{msg: "unknown command " + ui.Quote(name), hint: didYouMean(name, names, "spt ", "help:  spt --help")}}
}

// suggestFor tells which command is meant by the names that other tools use.
func suggestFor(root *cobra.Command) {
	for name, others := range map[string][]string{
		"inspect":     {"show", "info", "summary", "stat", "analyze"},
		"browse":      {"tui", "explore", "ui"},
		"ls":          {"list", "find"},
		"cat":         {"dump", "print", "read", "export"},
		"diff":        {"compare", "cmp"},
		"trend":       {"history", "growth"},
		"report":      {"html", "visualize", "picture", "treemap"},
		"watch":       {"monitor", "follow", "guard", "exporter"},
		"verify":      {"validate", "fsck", "checksum"},
		"convert":     {"copy", "cp", "pack", "unpack", "compact", "move", "mv"},
		"drop":        {"remove", "rm", "delete", "del"},
		"prune-union": {"prune", "dedup", "dedupe", "deduplicate"},
		"rescale":     {"scale", "redistribute", "assign"},
		"create":      {"bootstrap", "new", "make", "import"},
		"orphans":     {"gc", "garbage", "unreferenced"},
		"schema":      {"describe", "types", "type", "ddl"},
		"explain":     {"why", "what", "glossary"},
		"hash":        {"id", "uid", "operator-id"},
	} {
		if c, _, err := root.Find([]string{name}); err == nil {
			c.SuggestFor = others
		}
	}
}

// noVersionShorthand keeps cobra from using v for --version, because it is
// --verbose in every command that has it.
func noVersionShorthand(root *cobra.Command) {
	root.Flags().Bool("version", false, "print the version of spt")
}

// newHelpCommand is cobra's own, but for names that there are not.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			target.InitDefaultHelpFlag()
			target.InitDefaultVersionFlag()
			return target.Help()
		},
	}
}

// completionNeedsShell makes a missing or unknown shell wrong usage, where
// cobra would print help and succeed.
func completionNeedsShell(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Use = "completion bash|zsh|fish|powershell"
		c.Short = "Print a script that lets a shell complete commands and flags"
		c.Args = exactly(1, "a shell: bash, zsh, fish or powershell")
		c.RunE = func(_ *cobra.Command, args []string) error {
			return &flagError{usageError{msg: "no completion for " + ui.Quote(args[0]), hint: "available: bash, zsh, fish, powershell"}}
		}
	}
}
