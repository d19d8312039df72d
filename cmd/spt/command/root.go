package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// New is the whole command line.
func New(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "spt",
		Short: "Look into, check and convert savepoints of stream processors, offline",
		Long: `spt looks into, checks and converts savepoints and checkpoints, offline: those
of Apache Flink 1.3 to 2.3 (a folder with _metadata) and its own .spt files.
No JVM, no cluster, and an input is never opened for writing.

SP is the folder of a snapshot, its _metadata, or an .spt file. A bare name
that does not exist here is also tried with .spt and in the folders of SPT_PATH.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
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
		hint := "help:  spt --help"
		if s := cmd.SuggestionsFor(args[0]); len(s) > 0 {
			hint = "did you mean:  spt " + strings.Join(s, ", spt ")
		}
		return &flagError{usageError{msg: fmt.Sprintf("unknown command %q", args[0]), hint: hint}}
	}
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(
		newInspectCommand(env),
		newListCommand(env),
		newVerifyCommand(env),
		newConvertCommand(env),
		newHashCommand(env),
		newVersionCommand(env),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd))
		return err
	})
	completeValues(root)
	return root
}
