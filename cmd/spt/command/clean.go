package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/storage"
)

type cleanOptions struct {
	older   age
	depth   int
	dryRun  bool
	uploads bool
}

func (o *cleanOptions) addFlags(fs *pflag.FlagSet) {
	o.older = age(24 * time.Hour)
	fs.Var(&o.older, "older-than", "remove only what was last written longer ago than `AGE`, such as 90m, 12h or 7d")
	fs.IntVar(&o.depth, "depth", 8, "search `N` levels of directories below DIR")
	fs.BoolVar(&o.uploads, "uploads", false, "also abort unfinished uploads in object stores, of spt and of other programs")
	fs.BoolVar(&o.dryRun, "dry-run", false, "report what would be removed, and remove nothing")
}

func (o *cleanOptions) validate() error {
	if o.depth < 1 {
		return usagef("--depth %d: must be 1 or more", o.depth)
	}
	return nil
}

func newCleanCommand(env *Env) *cobra.Command {
	var o cleanOptions
	cmd := &cobra.Command{
		Use:   "clean DIR...",
		Short: "Remove what interrupted runs of spt left",
		Long: `Removes the temporary files and directories that runs of spt left under the
directories given because they were killed, and names each. Only names that spt
itself makes are removed (.spt-tmp-… and .spt-old-…), with all in them. Links
are not followed, and a link is never removed.

What was written within --older-than is kept, and so is what a run of spt still
uses, where the system can tell (Linux and macOS). A run that takes long is safe
there at any age; elsewhere as long as it writes something within that age.

A run that was killed while it replaced a snapshot can have left the old one
under an .spt-old-… name and nothing under its own. That is never removed: spt
clean names it and prints the command that renames it back, and exits with 1.
spt ls shows the leftovers with their age.

In an object store, a run that was killed leaves unfinished uploads. They are
not listed as objects, and are billed. The service does not tell which program
began them: they are reported, and with --uploads aborted. A job that writes
files there with Flink's FileSink needs its own when it restores: do not abort
those.`,
		Example: `  spt clean /data/flink/orders
  spt clean --older-than 1h --dry-run /data/flink/orders`,
		Args: between(1, -1, "at least one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return runClean(cmd.Context(), o, env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runClean(ctx context.Context, o cleanOptions, env *Env, roots []string) error {
	var stores []ability.Cleaner
	var names []string
	for _, root := range roots { // all are looked at before anything is removed
		store, name, err := cleanable(ctx, env, root)
		if err != nil {
			return err
		}
		stores, names = append(stores, store), append(names, name)
	}
	done := report.NewCleaning(o.dryRun, env.Now())
	var failed several
	seen := map[string]bool{}
	for i, store := range stores {
		for l, err := range store.Leftovers(ctx, names[i], o.depth) {
			key := l.Name + "\x00" + l.Upload
			if ctx.Err() != nil {
				break
			}
			if err != nil && !tempname.IsOwn(l.Name) {
				failed = append(failed, err) // a directory that cannot be read
				continue
			}
			if seen[key] {
				continue
			}
			seen[key] = true
			kept := o.keep(env, l)
			if err == nil && kept == "" && !o.dryRun {
				err = store.RemoveLeftover(ctx, l)
			}
			if done.Add(l, kept, err, env.hintOf(err)); err != nil {
				failed = append(failed, err)
			}
		}
	}
	if ctx.Err() != nil {
		failed = append(failed, ctx.Err())
	}
	if err := env.answer(done); err != nil {
		return err
	}
	if len(done.Leftovers) == 0 {
		if err := env.remark("no leftover under %s", strings.Join(roots, ", ")); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return failed.err()
	}
	if slices.ContainsFunc(done.Leftovers, func(l report.Leftover) bool { return l.Displaced != "" }) {
		return &findings{}
	}
	return nil
}

// cleanable resolves a directory. It refuses links, and stores without leftovers.
func cleanable(ctx context.Context, env *Env, root string) (ability.Cleaner, string, error) {
	store, name, err := env.Stores.Resolve(ctx, root)
	if err != nil {
		return nil, "", err
	}
	name = objpath.Clean(name)
	c, ok := store.(ability.Cleaner)
	if !ok {
		return nil, "", &hintedError{&storage.Error{Op: "clean", Name: root, Err: storage.ErrUnsupported}, "spt leaves nothing under names of its own there"}
	}
	if l, ok := store.(ability.LinkReader); ok {
		to, err := l.ReadLink(ctx, name)
		if err != nil {
			return nil, "", err
		}
		if to != "" {
			return nil, "", &usageError{fmt.Sprintf("%s is a symbolic link to %s", ui.Quote(root), ui.Quote(to)), "give the directory that it leads to"}
		}
	}
	if _, err := store.Stat(ctx, name); err == nil && !tempname.IsOwn(name) {
		return nil, "", &usageError{ui.Quote(root) + " is a file", "give the directory that it is in"}
	}
	return c, name, nil
}

// keep returns why a leftover is not removed; "" if it is.
func (o *cleanOptions) keep(env *Env, l ability.Leftover) string {
	why := report.KeepReason(l)
	if why == "" && l.Upload != "" && !o.uploads {
		why = "it may be of another program; --uploads aborts it"
	}
	if why == "" && env.Now().Sub(l.ModTime) < time.Duration(o.older) {
		why = "younger than " + o.older.String()
	}
	return why
}
