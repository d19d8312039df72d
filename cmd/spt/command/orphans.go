package command

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/report"
)

// orphansAge is the age from which an unreferenced file is not kept, unless
// --older-than names another.
const orphansAge = 7 * 24 * time.Hour

type orphansOptions struct {
	also                []string
	by, archive         string
	older               age
	delete, dryRun, yes bool
}

func (o *orphansOptions) addFlags(fs *pflag.FlagSet) {
	o.older = age(orphansAge)
	fs.StringArrayVar(&o.also, "also", nil, "also read the snapshots below `DIR`, and remove nothing there; repeatable")
	fs.Var(&o.older, "older-than", "keep what was last written within `AGE`, such as 12h or 30d")
	fs.StringVar(&o.by, "by", "directory", "`directory|job|age|file`: what a row of the table is")
	fs.BoolVar(&o.delete, "delete", false, "delete the files, one by one")
	fs.StringVar(&o.archive, "archive", "", "move the files to `DIR` instead, below the name of their ROOT")
	fs.BoolVar(&o.dryRun, "dry-run", false, "report, and remove nothing (the default without --delete and --archive)")
	fs.BoolVar(&o.yes, "yes", false, "do not ask; needed to remove files without a terminal")
}

func (o *orphansOptions) validate(env *Env) error {
	switch {
	case !slices.Contains(report.OrphanGrouping, o.by):
		return usagef("--by %s: must be one of %s", o.by, strings.Join(report.OrphanGrouping, ", "))
	case o.removes() && !o.yes && !env.interactive():
		return &usageError{"removing files needs --yes, because standard input is not a terminal", "without --delete and --archive, spt orphans only reports"}
	}
	return nil
}

func (o *orphansOptions) removes() bool { return (o.delete || o.archive != "") && !o.dryRun }

func newOrphansCommand(env *Env) *cobra.Command {
	var o orphansOptions
	cmd := &cobra.Command{
		Use:   "orphans ROOT...",
		Short: "Find, and remove, files that no snapshot refers to",
		Long: `Lists everything below the directories given, reads all snapshots there and
below --also, and reports the files of state to which none of them refers. A
file that several handles share is referenced as long as one byte of it is. It
only reports, unless --delete or --archive is given.

Only files in directories in which Flink keeps state are candidates: chk-N,
shared and taskowned of a job, dstl of the changelog, and directories of
savepoints, where only files that are named as Flink names them count. Files of
high availability, results of jobs and all others are left alone, and so are the
working directories of running subtasks and leftovers of spt (see spt clean).

A running job writes files before the checkpoint that refers to them is
complete, and nothing but their age distinguishes them from garbage. Choose
--older-than longer than any checkpoint takes, also one that fails again and
again, and do not remove files while a directory is being copied. Files of
unknown age are kept. Name every directory with snapshots that may refer to
files below ROOT: a job that was restored from a checkpoint may use files of it.

Nothing is removed if a snapshot could not be read, if a reference or a link
leads outside the directories that were read, or if a directory of a job changed
meanwhile: then run it again. A removal that is refused ends with 4, a report
with such a reason with 1. Each file is compared with what was listed before it
is removed, links are neither followed nor removed, and each removal is a line
on standard output. --archive replaces nothing; a copy is read back and compared
before the file is deleted. Empty directories stay.`,
		Example: `  spt orphans /data/flink
  spt orphans --by job --older-than 30d --also /data/savepoints /data/flink
  spt orphans --archive /data/attic --yes /data/flink`,
		Args: between(1, -1, "at least one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			return runOrphans(cmd.Context(), o, env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}
