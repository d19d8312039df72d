package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/orphans"
)

type listOptions struct {
	depth  int
	only   string
	shared bool
	files  bool
}

func (o *listOptions) addFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.depth, "depth", 8, "search `N` levels of directories below a root")
	fs.StringVar(&o.only, "only", "", "`complete|incomplete|unchecked|damaged|unreadable|leftover|displaced`: list only these")
	fs.BoolVar(&o.files, "check-files", false, "look for the files of snapshots that are not on this machine too")
	fs.BoolVar(&o.shared, "shared", false, "report which snapshots share files, and what removing each of them would free")
}

func (o *listOptions) validate() error {
	if o.depth < 1 {
		return usagef("--depth %d: must be 1 or more", o.depth)
	}
	states := []string{string(reader.Complete), string(reader.Incomplete), string(reader.Unchecked), string(reader.Damaged), string(reader.Unreadable), string(reader.Leftover), string(reader.Displaced)}
	if o.only != "" && !slices.Contains(states, o.only) {
		return usagef("--only %s: must be one of %s", o.only, strings.Join(states, ", "))
	}
	return nil
}

func newListCommand(env *Env) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "ls ROOT...",
		Short: "List the snapshots under a directory, newest first",
		Long: `Lists the savepoints, checkpoints and .spt files under the directories given,
newest first: what each is, how large, whether it is complete, and which is the
newest complete one. Directories of checkpoints that never finished, leftovers
of interrupted writers (with their age; spt clean removes them), and what cannot
be read, are listed as what they are. A directory given that cannot be listed
does not hide the others. Links to directories are followed; each snapshot is
listed once, however many links lead to it.

It opens each description and looks whether its files are there. It reads no
state. A snapshot is "unchecked" if nobody could look for some of its files,
such as files in another store than the snapshot.

The files of snapshots that are not on this machine are looked for only with
--check-files, which takes a list request or more for each directory that a
snapshot refers to. Without it, snapshots with files are "unchecked", their size
is what the description records, and the newest of them counts as complete. In
an object store, listing takes one request for 1,000 directories and one read
for each.

With --shared it also lists all files below the directories, and reports for
each snapshot how much of it other snapshots below them refer to as well, which
ones, and how many bytes no other refers to: removing the snapshot, and then
what spt orphans finds, frees those.`,
		Example: `  spt ls /data/flink/orders
  spt ls --only complete -o csv /data/flink
  spt ls --shared /data/flink/orders`,
		Args: between(1, -1, "at least one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return runList(cmd.Context(), o, env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runList(ctx context.Context, o listOptions, env *Env, roots []string) error {
	rows := report.Listings{}
	var failed several
	var looked []string
	others, notLooked := 0, 0
	seen := map[string]int{} // rows by the real name of what they show
	for _, root := range roots {
		entries, err := env.list(ctx, root, reader.ListOptions{Options: env.readerOptions(), Depth: o.depth, Jobs: env.common.jobs, Files: o.files})
		if err != nil {
			err = env.suggestPath(ctx, root, err)
			if ctx.Err() != nil || len(roots) == 1 {
				return err
			}
			failed = append(failed, err) // several were asked for: go on with the others
			continue
		}
		looked = append(looked, root)
		for _, e := range entries {
			if i, again := seen[e.Real]; again { // under another root
				if i >= 0 {
					rows[i].Newest = rows[i].Newest || e.Newest
				}
				continue
			}
			if o.only == "" || o.only == string(e.State) {
				seen[e.Real] = len(rows)
				row := env.run.NewListing(e, env.Now())
				row.Real = e.Real
				if e.NotLooked {
					notLooked++
				}
				rows = append(rows, row)
			} else {
				seen[e.Real] = -1
				others++
			}
		}
	}
	if o.shared && len(looked) > 0 {
		if err := env.addShares(ctx, rows, looked); err != nil {
			return err
		}
	}
	if err := o.print(env, rows, looked, others); err != nil {
		return err
	}
	if notLooked > 0 {
		if err := env.remark("%s unchecked: --check-files looks for their files", ui.Plural(int64(notLooked), "snapshot")); err != nil {
			return err
		}
	}
	return failed.err()
}

// addShares adds what the snapshots share with each other.
func (e *Env) addShares(ctx context.Context, rows report.Listings, roots []string) error {
	shares, problems, err := orphans.Shares(ctx, roots, e.orphansOptions(nil, 0))
	if err != nil {
		return rootHint(err)
	}
	rows.AddShares(shares)
	if len(problems) > 0 {
		return e.remark("%s could not be resolved, so that more may be shared: %s", ui.Plural(int64(len(problems)), "snapshot or reference"), e.run.Hide(problems[0].Error()))
	}
	return nil
}

// list lists snapshots, and shows how many it has opened.
func (e *Env) list(ctx context.Context, root string, o reader.ListOptions) ([]reader.Entry, error) {
	p := e.progress()
	defer p.Stop()
	var once sync.Once
	o.Opened = func(total int) {
		once.Do(func() { p.StartCount(int64(total), "opening snapshots") })
		p.Add(1)
	}
	return reader.List(ctx, root, o)
}

// print prints the rows, and says on stderr what they do not. others counts what
// --only left out.
func (o *listOptions) print(env *Env, rows report.Listings, roots []string, others int) error {
	if err := env.answer(rows); err != nil {
		return err
	}
	text := ""
	switch {
	case len(roots) == 0:
	case len(rows) == 0 && o.only == "":
		text = "no snapshot under " + strings.Join(roots, ", ")
	case len(rows) == 0:
		text = fmt.Sprintf("nothing %s under %s (%s)", o.only, strings.Join(roots, ", "), ui.Plural(int64(others), "other"))
	case env.common.output == ui.OutputTable:
		text = rows.Leftovers(roots)
	}
	if text == "" {
		return nil
	}
	return env.remark("%s", text)
}
