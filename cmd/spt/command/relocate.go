package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type relocateOptions struct {
	writeOptions
	relative bool
	absolute string
}

func (o *relocateOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.BoolVar(&o.relative, "relative", false, "name every file by its last path element: the files are next to _metadata")
	fs.StringVar(&o.absolute, "absolute", "", "name the files that are next to _metadata below the URI `BASE`")
}

// validate wants exactly one way.
func (o *relocateOptions) validate(env *Env, in string) error {
	ways := 0
	other := o.relative || o.absolute != ""
	for _, given := range []bool{len(env.common.maps) > 0 || !other && len(env.maps) > 0, o.relative, o.absolute != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways == 0:
		return &usageError{"--map OLD=NEW, --relative or --absolute BASE is needed: what becomes of references", "spt verify " + ui.Quote(in) + "   names absolute ones"}
	case ways > 1:
		return usagef("--map, --relative and --absolute: one of them at a time")
	}
	var maps []reader.Mapping
	if !other {
		maps = env.maps
	}
	return errors.Join(o.places(maps), o.writeOptions.validate(env))
}

// places refuses what can be looked up from here, but not from _metadata.
func (o *relocateOptions) places(maps []reader.Mapping) error {
	from := func(place string) bool {
		return place == "" || strings.HasPrefix(place, "/") || strings.Contains(place, ":")
	}
	for i, m := range maps {
		for _, before := range maps[:i] {
			if before.Old == m.Old && before.New != m.New {
				return usagef("--map names %s twice", ui.Quote(m.Old))
			}
		}
		if !from(m.New) {
			return usagef("--map %s=%s: a reference needs a URI, or a path that begins with /", ui.Quote(m.Old), ui.Quote(m.New))
		}
	}
	if !from(o.absolute) {
		return usagef("--absolute %s: a reference needs a URI, or a path that begins with /", ui.Quote(o.absolute))
	}
	return nil
}

func newRelocateCommand(env *Env) *cobra.Command {
	var o relocateOptions
	cmd := &cobra.Command{
		Use:   "relocate IN [OUT]",
		Short: "Rewrite the absolute references of a snapshot",
		Long: `Rewrites the beginning of absolute references: --map OLD=NEW, several times if
need be, the longest that fits first. What other commands only look up, this one
writes down; a path stands for a file: URI, as OLD, NEW and BASE. Every kind of
handle is rewritten, and the folders that file merging names; names of inline
state look like paths and are none.

--relative names files by their last element: they must lie beside IN's
_metadata and go beside OUT's. --absolute BASE names the files beside _metadata
below BASE; they are not written.

The files themselves are not moved. To copy them beside a new _metadata that
names no absolute place, use spt convert.`,
		Example: `  spt relocate chk-4211 moved --map s3://old/flink=s3://new/flink`,
		Args:    between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.keepReferences = true
			if err := o.validate(env, args[0]); err != nil {
				return err
			}
			err := edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *EditResult, error) {
				return o.relocate(env, snap)
			})
			return o.besides(err)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// besides tells what to do where files do not lie where --relative names them.
func (o *relocateOptions) besides(err error) error {
	if _, missing := errors.AsType[*writer.MissingError](err); missing && o.relative {
		return &hintedError{err, "with --relative they must lie beside IN's _metadata; spt convert copies them there"}
	}
	return err
}

func (o *relocateOptions) relocate(env *Env, snap *reader.Snapshot) (*format.Savepoint, *EditResult, error) {
	var prefixes []transform.Prefix
	if !o.relative && o.absolute == "" {
		for _, m := range env.maps {
			prefixes = append(prefixes, transform.Prefix(m))
		}
	}
	base := o.absolute
	if strings.HasPrefix(base, "/") {
		base = "file:" + base // as for --map
	}
	sp, done, err := transform.RelocateAs(snap.Savepoint, transform.RelocateOptions{Prefixes: prefixes, Relative: o.relative, Absolute: base})
	if err != nil {
		return nil, nil, err
	}
	r := &EditResult{Changes: []EditChange{}}
	for _, c := range done.Changed {
		r.Changes = append(r.Changes, EditChange{What: "relocated", From: env.text(c.From), To: env.text(c.To), Handles: c.Handles})
	}
	if len(done.Changed) == 0 && len(prefixes) > 0 {
		var there []string
		for _, u := range done.Unmatched {
			dir, _ := splitName(u.From)
			there = append(there, ui.Quote(env.text(dir)))
		}
		old := make([]string, len(prefixes))
		for i, m := range prefixes {
			old[i] = ui.Quote(m.Old)
		}
		return nil, nil, &usageError{"no absolute reference begins with " + strings.Join(old, ", "), "available: " + listOr(there, "no absolute reference")}
	}
	if n := len(done.Unmatched); n > 0 {
		var left []string
		for _, u := range done.Unmatched {
			left = append(left, ui.Quote(env.text(u.From)))
		}
		why := "not matched"
		switch {
		case o.relative:
			why = "which cannot be relative"
		case base != "":
			why = "not of files beside _metadata"
		}
		r.Remarks = append(r.Remarks, fmt.Sprintf("%s left alone, %s: %s", ui.Plural(int64(n), "absolute reference"), why, shorten(left)))
	}
	return sp, r, nil
}
