package command

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type listOptions struct {
	depth int
	only  string
}

func (o *listOptions) addFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.depth, "depth", 8, "search `N` levels of directories below a root")
	fs.StringVar(&o.only, "only", "", "`complete|incomplete|unchecked|damaged|unreadable|leftover|displaced`: list only these")
}

func (o *listOptions) validate() error {
	if o.depth < 1 {
		return usagef("--depth %d: at least 1", o.depth)
	}
	if o.only != "" && !matches([]string{string(reader.Complete), string(reader.Incomplete), string(reader.Unchecked), string(reader.Damaged), string(reader.Unreadable), string(reader.Leftover), string(reader.Displaced)}, o.only) {
		return usagef("--only %s: one of complete, incomplete, unchecked, damaged, unreadable, leftover, displaced", o.only)
	}
	return nil
}

// ListRow is one snapshot, or what is left of one.
type ListRow struct {
	Path         string     `json:"path"`
	State        string     `json:"state" jsonschema:"enum=complete,enum=incomplete,enum=unchecked,enum=damaged,enum=unreadable,enum=leftover,enum=displaced,description=displaced: whole but under a temporary name because a run that replaced it was interrupted; unchecked: what could be looked at is complete but nobody could look for some files; unreadable: its description may be whole but could not be read or is of a version that is not known"`
	Newest       bool       `json:"newest,omitempty" jsonschema:"description=the newest complete one under its root"`
	Problem      string     `json:"problem,omitempty"`
	Time         *time.Time `json:"time,omitempty"`
	Family       string     `json:"family,omitempty"`
	Type         string     `json:"type,omitempty"`
	Format       string     `json:"format,omitempty"`
	Changelog    bool       `json:"changelog,omitempty"`
	Unaligned    bool       `json:"unaligned,omitempty" jsonschema:"description=holds in-flight data"`
	Metadata     int        `json:"metadata_version,omitempty"`
	CheckpointID int64      `json:"checkpoint_id"`
	Operators    int        `json:"operator_count"`
	Bytes        int64      `json:"bytes" jsonschema:"description=description and state files as far as they are there; of a leftover all of it"`
	MissingFiles int        `json:"missing_files,omitempty"`
	NotChecked   int        `json:"not_checked_files,omitempty" jsonschema:"description=files that nobody could look for: they may be there"`
	OutsideFiles int        `json:"outside_files,omitempty" jsonschema:"description=files outside the snapshot and its checkpoint directory"`

	reason string // of the state, without the place in the snapshot
}

func newListCommand(env *Env) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "ls ROOT...",
		Short: "List the snapshots under a directory, newest first",
		Long: `Lists the savepoints, checkpoints and .spt files under the folders given, newest
first: what each is, how large, whether it is complete, and which is the newest
complete one. Folders of checkpoints that never finished, leftovers of
interrupted writers (with their age; spt clean removes them), and what cannot be
read, are listed as what they are. A folder given that cannot be listed does not
hide the others. Links to folders are followed; each snapshot is listed once,
however many links lead to it.

It opens each description and looks whether its files are there. It reads no
state. A snapshot is "unchecked" if nobody could look for some of its files,
such as files in a store that is not supported here.`,
		Example: `  spt ls /data/flink/orders
  spt ls --only complete -o csv /data/flink`,
		Args: between(1, -1, "at least one folder"),
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
	var rows []ListRow
	var failed several
	var looked []string
	others := 0
	seen := map[string]int{} // rows by the real name of what they show
	for _, root := range roots {
		entries, err := env.list(ctx, root, reader.ListOptions{Options: env.readerOptions(), Depth: o.depth, Jobs: env.common.jobs})
		if err != nil {
			err = env.suggestPath(ctx, root, err)
			if ctx.Err() != nil || len(roots) == 1 {
				return err
			}
			failed = append(failed, err) // Several were asked for: go on with the others.
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
				rows = append(rows, listRow(env, e))
			} else {
				seen[e.Real] = -1
				others++
			}
		}
	}
	if err := o.render(env, rows, looked, others); err != nil {
		return err
	}
	return failed.err()
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

func (o *listOptions) render(env *Env, rows []ListRow, roots []string, others int) error {
	done, err := renderRows(env, env.common.output, rows, listHeader(), listCells)
	if err != nil {
		return err
	}
	if len(rows) == 0 && len(roots) > 0 {
		return o.nothing(env, roots, others)
	}
	if done {
		return nil
	}
	if err := listTable(env, rows); err != nil {
		return err
	}
	return leftoverRemark(env, rows, roots)
}

// leftoverRemark says how to remove what interrupted runs left.
func leftoverRemark(env *Env, rows []ListRow, roots []string) error {
	var n, bytes int64
	for _, r := range rows {
		if r.State == string(reader.Leftover) {
			n++
			bytes += r.Bytes
		}
	}
	if n == 0 {
		return nil
	}
	names := make([]string, len(roots))
	for i, root := range roots {
		names[i] = shell.Quote(root)
	}
	return env.remark("%s of interrupted runs, %s; to remove those older than a day:  spt clean %s", ui.Plural(n, "leftover"), ui.Bytes(bytes), strings.Join(names, " "))
}

func listRow(env *Env, e reader.Entry) ListRow {
	r := ListRow{
		reason: env.run.Hide(cmp.Or(e.Reason, e.Problem)),
		Path:   e.Path, State: string(e.State), Newest: e.Newest, Problem: env.run.Hide(e.Problem),
		Family: string(e.Container.Family), Type: e.Kind.Type, Format: e.Kind.Format, Changelog: e.Kind.Changelog, Unaligned: e.Kind.Unaligned, Metadata: int(e.Container.Metadata),
		CheckpointID: e.ID, Operators: e.Operators, Bytes: e.Bytes, MissingFiles: e.Missing, NotChecked: e.NotChecked, OutsideFiles: e.Outside,
	}
	if !e.Time.IsZero() {
		t := e.Time.UTC()
		r.Time = &t
	}
	return r
}

func listHeader() []string {
	return []string{"path", "state", "newest", "time", "family", "type", "format", "metadata_version", "checkpoint_id", "operator_count", "bytes", "missing_files", "problem", "not_checked_files", "outside_files"}
}

func listCells(r *ListRow) []string {
	when := ""
	if r.Time != nil {
		when = r.Time.Format(time.RFC3339)
	}
	return []string{r.Path, r.State, strconv.FormatBool(r.Newest), when, r.Family, r.Type, r.Format, strconv.Itoa(r.Metadata),
		strconv.FormatInt(r.CheckpointID, 10), strconv.Itoa(r.Operators), strconv.FormatInt(r.Bytes, 10), strconv.Itoa(r.MissingFiles), r.Problem, strconv.Itoa(r.NotChecked), strconv.Itoa(r.OutsideFiles)}
}

// nothing says that there is no row, and what was left out by --only.
func (o *listOptions) nothing(env *Env, roots []string, others int) error {
	what, rest := "no snapshot", ""
	if o.only != "" {
		what, rest = "nothing "+o.only, fmt.Sprintf(" (%s)", ui.Plural(int64(others), "other"))
	}
	return env.remark("%s under %s%s", what, strings.Join(roots, ", "), rest)
}

func listTable(env *Env, rows []ListRow) error {
	term := env.term()
	t := ui.NewTable(
		ui.Column{Header: "SNAPSHOT", Shrink: 1, Cut: ui.CutMiddle, Min: 20},
		ui.Column{Header: "KIND", Shrink: 3, Min: 10, Drop: 2},
		ui.Column{Header: "ID", Align: ui.Right, Drop: 1},
		ui.Column{Header: "TIME", Align: ui.Right, Drop: 3},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "STATE", Shrink: 2, Min: len("complete, newest"), Wrap: true},
	)
	for _, r := range rows {
		kind := r.Type
		if r.Format != "" {
			kind += ", " + r.Format
		}
		if r.Changelog {
			kind += ", changelog"
		}
		if r.Unaligned {
			kind += ", unaligned"
		}
		if r.Family == string(reader.SPT) {
			kind = strings.TrimSuffix("spt, "+kind, ", snapshot")
		}
		id, size, when := "", "", ""
		if r.Family != "" {
			id, size = ui.Count(r.CheckpointID), ui.Bytes(r.Bytes)
		} else if r.State == string(reader.Leftover) && r.Bytes > 0 {
			size = ui.Bytes(r.Bytes)
		}
		if r.Time != nil {
			when = ui.Ago(*r.Time, env.Now())
		}
		state := r.State
		switch reader.EntryState(r.State) {
		case reader.Complete:
			if r.Newest {
				state = ui.Proved("complete, newest")
			}
			if r.OutsideFiles > 0 {
				state += ", " + ui.Look(ui.Plural(int64(r.OutsideFiles), "file")+" outside the snapshot")
			}
		case reader.Incomplete, reader.Unchecked, reader.Leftover, reader.Displaced:
			state = ui.Look(state + ": " + ui.Printable(r.reason))
		case reader.Damaged, reader.Unreadable:
			state = ui.Bad(state + ": " + ui.Printable(r.reason))
		}
		t.Row(ui.Quote(r.Path), kind, id, when, size, state)
	}
	return t.Write(env.Stdout, term)
}
