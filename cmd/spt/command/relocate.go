package command

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type relocateOptions struct {
	writeOptions
}

func (o *relocateOptions) addFlags(fs *pflag.FlagSet) { o.writeOptions.addFlags(fs) }

func newRelocateCommand(env *Env) *cobra.Command {
	var o relocateOptions
	cmd := &cobra.Command{
		Use:   "relocate IN [OUT] --map OLD=NEW",
		Short: "Rewrite the absolute references of a snapshot",
		Long: `Rewrites the beginning of absolute references: --map OLD=NEW, several times if
need be, the longest that fits first. What other commands only look up, this one
writes down. Every kind of handle is rewritten, and the folders that file
merging names; names of inline state look like paths and are none.

The files themselves are not moved. To copy them beside a new _metadata that
names no absolute place, use spt convert.`,
		Example: `  spt relocate chk-4211 moved --map s3://old/flink=s3://new/flink`,
		Args:    between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(env.maps) == 0 {
				return &usageError{"--map OLD=NEW is needed: what becomes of which references", "spt verify " + ui.Quote(args[0]) + "   names absolute ones"}
			}
			o.keepReferences = true
			if err := o.validate(env); err != nil {
				return err
			}
			return edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *EditResult, error) {
				return o.relocate(env, snap)
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *relocateOptions) relocate(env *Env, snap *reader.Snapshot) (*format.Savepoint, *EditResult, error) {
	prefixes := make([]transform.Prefix, len(env.maps))
	for i, m := range env.maps {
		prefixes[i] = transform.Prefix(m)
	}
	sp, done := transform.Relocate(snap.Savepoint, prefixes)
	r := &EditResult{Changes: []EditChange{}}
	for _, c := range done.Changed {
		r.Changes = append(r.Changes, EditChange{What: "relocated", From: env.text(c.From), To: env.text(c.To), Handles: c.Handles})
	}
	if len(done.Changed) == 0 {
		var there []string
		for _, u := range done.Unmatched {
			dir, _ := splitName(u.From)
			there = append(there, ui.Quote(env.text(dir)))
		}
		old := make([]string, len(env.maps))
		for i, m := range env.maps {
			old[i] = ui.Quote(m.Old)
		}
		return nil, nil, &usageError{"no absolute reference begins with " + strings.Join(old, ", "), "there is: " + listOr(there, "no absolute reference")}
	}
	if n := len(done.Unmatched); n > 0 {
		var left []string
		for _, u := range done.Unmatched {
			left = append(left, ui.Quote(env.text(u.From)))
		}
		r.Remarks = append(r.Remarks, fmt.Sprintf("%s not matched and left as they are: %s", ui.Plural(int64(n), "absolute reference"), shorten(left)))
	}
	return sp, r, nil
}
