package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type cleanOptions struct {
	older  age
	depth  int
	dryRun bool
}

func (o *cleanOptions) addFlags(fs *pflag.FlagSet) {
	o.older = age(24 * time.Hour)
	fs.Var(&o.older, "older-than", "remove only what was last written longer ago than `AGE`, such as 90m, 12h or 7d")
	fs.IntVar(&o.depth, "depth", 8, "look `N` folders below DIR")
	fs.BoolVar(&o.dryRun, "dry-run", false, "report what would be removed, and remove nothing")
}

func (o *cleanOptions) validate() error {
	if o.depth < 1 {
		return usagef("--depth must be >= 1")
	}
	return nil
}

// age is the value of a flag: a duration, also in days.
type age time.Duration

// Set implements pflag.Value.
func (a *age) Set(s string) error {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok && err != nil {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 16); err == nil {
			d = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || d < 0 {
		return fmt.Errorf("expected a duration such as 90m, 12h or 7d")
	}
	*a = age(d)
	return nil
}

// String implements pflag.Value.
func (a age) String() string {
	s := time.Duration(a).String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return s
}

// Type implements pflag.Value.
func (age) Type() string { return "duration" }

// CleanRow is one leftover, and what became of it.
type CleanRow struct {
	Path   string     `json:"path"`
	Result string     `json:"result" jsonschema:"enum=removed,enum=would_remove,enum=kept,enum=failed"`
	Reason string     `json:"reason,omitempty" jsonschema:"description=why it was kept or could not be removed"`
	Time   *time.Time `json:"time,omitempty" jsonschema:"description=when the newest file in it was last written"`
	Files  int        `json:"files"`
	Bytes  int64      `json:"bytes"`
	// Displaced holds the only copy of a snapshot.
	Displaced string `json:"displaced,omitempty" jsonschema:"description=the name of which this holds the snapshot: nothing is there and it should be renamed back"`
}

// What becomes of a leftover.
const (
	cleanRemoved     = "removed"
	cleanWouldRemove = "would_remove"
	cleanKept        = "kept"
	cleanFailed      = "failed"
)

func newCleanCommand(env *Env) *cobra.Command {
	var o cleanOptions
	cmd := &cobra.Command{
		Use:   "clean DIR...",
		Short: "Remove what interrupted runs of spt left",
		Long: `Removes the temporary files and folders that runs of spt left under the folders
given because they were killed, and names each. Only names that spt itself makes
are removed (.spt-tmp-… and .spt-old-…), with all in them. Links are not
followed, and a link is never removed.

What was written within --older-than is kept, and so is what a run of spt still
uses, where the system can tell (Linux and macOS). A run that writes for long is
safe at any age there; elsewhere as long as it writes something within that age.

A run that was killed while it replaced a snapshot can have left the old one
under an .spt-old-… name and nothing under its own. That is never removed: spt
clean names it and prints the command that renames it back, and exits with 1.
spt ls shows the leftovers with their age.`,
		Example: `  spt clean /data/flink/orders
  spt clean --older-than 1h --dry-run /data/flink/orders`,
		Args: between(1, -1, "at least one folder"),
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
	var stores []storage.Cleaner
	var names []string
	for _, root := range roots { // all are looked at before anything is removed
		store, name, err := cleanable(ctx, env, root)
		if err != nil {
			return err
		}
		stores, names = append(stores, store), append(names, name)
	}
	var rows []CleanRow
	var failed several
	seen := map[string]bool{}
	for i, store := range stores {
		for l, err := range store.Leftovers(ctx, names[i], o.depth) {
			if ctx.Err() != nil {
				break
			}
			if err != nil && !storage.IsOwn(l.Name) {
				failed = append(failed, err) // a folder that cannot be read
				continue
			}
			if seen[l.Name] {
				continue
			}
			seen[l.Name] = true
			if err == nil && o.keep(env, l) == "" && !o.dryRun {
				err = store.RemoveLeftover(ctx, l)
			}
			rows = append(rows, o.row(env, l, err))
			if err != nil {
				failed = append(failed, err)
			}
		}
	}
	if ctx.Err() != nil {
		failed = append(failed, ctx.Err())
	}
	if err := o.render(env, rows, roots); err != nil {
		return err
	}
	if len(failed) > 0 {
		return failed.err()
	}
	for _, r := range rows {
		if r.Displaced != "" {
			return &findings{}
		}
	}
	return nil
}

// cleanable resolves a folder, and refuses what has no leftovers and links.
func cleanable(ctx context.Context, env *Env, root string) (storage.Cleaner, string, error) {
	store, name, err := env.Stores.Resolve(ctx, root)
	if err != nil {
		return nil, "", err
	}
	name = route.Clean(name)
	c, ok := store.(storage.Cleaner)
	if !ok {
		return nil, "", &hintedError{&storage.Error{Op: "clean", Name: root, Err: storage.ErrUnsupported}, "spt leaves nothing under names of its own there"}
	}
	if l, ok := store.(storage.LinkReader); ok {
		to, err := l.ReadLink(ctx, name)
		if err != nil {
			return nil, "", err
		}
		if to != "" {
			return nil, "", &usageError{fmt.Sprintf("%s is a symbolic link to %s", ui.Quote(root), ui.Quote(to)), "give the folder that it leads to"}
		}
	}
	if _, err := store.Stat(ctx, name); err == nil && !storage.IsOwn(name) {
		return nil, "", &usageError{ui.Quote(root) + " is a file", "give the folder that it is in"}
	}
	return c, name, nil
}

// keep says why a leftover is not removed, "" where it is.
func (o *cleanOptions) keep(env *Env, l storage.Leftover) string {
	switch {
	case l.Foreign != "":
		return l.Foreign
	case l.InUse:
		return "a run of spt uses it"
	case l.Displaced != "":
		return fmt.Sprintf("%s is missing and this is its snapshot; rename it back:  mv %s %s", ui.Quote(l.Displaced), shell.Quote(l.Name), shell.Quote(l.Displaced))
	case env.Now().Sub(l.ModTime) < time.Duration(o.older):
		return "younger than " + o.older.String()
	}
	return ""
}

func (o *cleanOptions) row(env *Env, l storage.Leftover, err error) CleanRow {
	r := CleanRow{Path: l.Name, Result: cleanRemoved, Files: l.Files, Bytes: l.Bytes, Displaced: l.Displaced}
	if !l.ModTime.IsZero() {
		t := l.ModTime.UTC()
		r.Time = &t
	}
	r.Reason = o.keep(env, l)
	switch {
	case err != nil:
		r.Result, r.Reason = cleanFailed, err.Error()
		if h := reader.Hint(err); h != "" {
			r.Reason += ": " + h
		}
	case r.Reason != "":
		r.Result = cleanKept
	case o.dryRun:
		r.Result = cleanWouldRemove
	}
	return r
}

func (o *cleanOptions) render(env *Env, rows []CleanRow, roots []string) error {
	header := []string{"path", "result", "time", "files", "bytes", "displaced", "reason"}
	done, err := renderRows(env, env.common.output, rows, header, func(r *CleanRow) []string {
		when := ""
		if r.Time != nil {
			when = r.Time.Format(time.RFC3339)
		}
		return []string{r.Path, r.Result, when, strconv.Itoa(r.Files), strconv.FormatInt(r.Bytes, 10), r.Displaced, r.Reason}
	})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return env.remark("no leftover under %s", strings.Join(roots, ", "))
	}
	if done {
		return nil
	}
	var b strings.Builder
	var n int64
	var bytes int64
	for _, r := range rows {
		word := map[string]string{cleanRemoved: "removed", cleanWouldRemove: "would remove", cleanKept: "kept", cleanFailed: "not removed"}[r.Result]
		if r.Result == cleanRemoved || r.Result == cleanWouldRemove {
			n++
			bytes += r.Bytes
		} else {
			word = ui.Look(word)
		}
		fmt.Fprintf(&b, "%s %s: %s, %s", word, ui.Quote(r.Path), ui.Plural(int64(r.Files), "file"), ui.Bytes(r.Bytes))
		if r.Time != nil {
			fmt.Fprintf(&b, ", last written %s", ui.Ago(*r.Time, env.Now()))
		}
		if r.Reason != "" {
			fmt.Fprintf(&b, ": %s", printableLines(r.Reason))
		}
		b.WriteByte('\n')
	}
	word := "removed"
	if o.dryRun {
		word = "would remove"
	}
	fmt.Fprintf(&b, "%s %s, %s", word, ui.Plural(n, "leftover"), ui.Bytes(bytes))
	if kept := int64(len(rows)) - n; kept > 0 {
		fmt.Fprintf(&b, "; %s kept", ui.Count(kept))
	}
	b.WriteByte('\n')
	if o.dryRun {
		b.WriteString("Nothing removed: this was a dry run.\n")
	}
	_, err = fmt.Fprint(env.Stdout, b.String())
	return err
}
