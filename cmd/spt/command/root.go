package command

import (
	"errors"
	"io"
	"strings"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/spf13/cobra"
)

// New is the whole command line.
func New(env *Env) *cobra.Command {
	version, _ := build()
	root := &cobra.Command{
		Version: version,
		Use:     "spt",
		Short:   "Look into, check and convert savepoints of stream processors, offline",
		Long: `spt looks into, checks and converts savepoints and checkpoints, offline: those
of Apache Flink 1.3 to 2.3 (a folder with _metadata) and its own .spt files.
No JVM, no cluster, and an input is never opened for writing.

SP is the folder of a snapshot, its _metadata, or an .spt file. A bare name
that does not exist here is also tried with .spt and in the folders of SPT_PATH.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			env.command = cmd.Name()
			if err := errors.Join(emptyFlag(cmd.Flags()), env.checkCSV(cmd, args)); err != nil {
				return err
			}
			return env.prepare(cmd.Context())
		},
	}
	env.common.addFlags(root.PersistentFlags())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &flagError{usageError{msg: err.Error(), hint: "help:  " + cmd.CommandPath() + " --help"}}
	})
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args[0])
	}
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(
		newInspectCommand(env),
		newListCommand(env),
		newCatCommand(env),
		noRows(newDiffCommand(env)),
		newTrendCommand(env),
		newVerifyCommand(env),
		newCheckCommand(env),
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
		newHashCommand(env),
		newCleanCommand(env),
		noRows(newVersionCommand(env)),
	)
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	completionNeedsShell(root)
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd))
		return err
	})
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

// checkCSV refuses -o csv for what is no list of rows.
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
	return usagef("-o csv: the answer of %s%s is no list of rows; -o table, json or jsonl says it", cmd.CommandPath(), with)
}

func unknownCommand(root *cobra.Command, name string) error {
	hint := "help:  spt --help"
	if s := root.SuggestionsFor(name); len(s) > 0 {
		hint = "did you mean:  spt " + strings.Join(s, ", spt ")
	}
	return &flagError{usageError{msg: "unknown command " + ui.Quote(name), hint: hint}}
}

// newHelpCommand is cobra's own, but for names that there are not.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help for a command",
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
		c.Short = "A script that lets a shell complete commands and flags"
		c.Args = exactly(1, "a shell: bash, zsh, fish or powershell")
		c.RunE = func(_ *cobra.Command, args []string) error {
			return &flagError{usageError{msg: "no completion for " + ui.Quote(args[0]), hint: "there is: bash, zsh, fish, powershell"}}
		}
	}
}
