package command

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
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
		return &usageError{"--map OLD=NEW, --relative or --absolute BASE is needed: what becomes of references", "to see absolute ones:  spt verify " + shell.Quote(in)}
	case ways > 1:
		return usagef("--map, --relative and --absolute: one of them at a time")
	}
	var maps []format.Mapping
	if !other {
		maps = env.maps
	}
	return errors.Join(o.locations(maps), o.writeOptions.validate(env))
}

// locations refuses what can be resolved from here, but not from _metadata.
func (o *relocateOptions) locations(maps []format.Mapping) error {
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
		Long: `Rewrites references. --map OLD=NEW replaces the beginning of absolute
references; it can be repeated, and the longest OLD that matches is used. Other
commands only look files up there; this one rewrites the references. A path
means a file: URI, as OLD, NEW and BASE. Every kind of handle is rewritten, and
the directories that file merging names; names of inline state look like paths
but are not.

OLD can also be the directory of the snapshot, or . for it: then a relative
reference whose file is not next to _metadata, and is in NEW, becomes absolute.
This repairs a checkpoint that names files of a savepoint the job was restored
from with CLAIM (FLINK-39964).

--absolute BASE does this for every file that is in BASE, and leaves the others.
--relative names files by their last element: they must be next to IN's
_metadata and are copied next to OUT's.

No state file is needed, and none is moved. To copy them next to a new _metadata
without absolute references, use spt convert.`,
		Example: `  spt relocate chk-4211 moved --map s3://old/flink=s3://new/flink
  spt relocate chk-7 repaired --map .=/data/savepoints/sp-1`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.keepReferences = true
			o.bare = !o.relative && !strings.HasSuffix(strings.TrimRight(args[len(args)-1], "/"), reader.Extension) // an .spt file holds the state
			if err := o.validate(env, args[0]); err != nil {
				return err
			}
			err := edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
				return o.relocate(cmd.Context(), env, snap)
			})
			return o.besides(err)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// besides adds what to do if files are not where --relative names them.
func (o *relocateOptions) besides(err error) error {
	if _, missing := errors.AsType[*writer.MissingError](err); missing && o.relative {
		return &hintedError{err, "with --relative they must be next to IN's _metadata; spt convert copies them there"}
	}
	return err
}

func (o *relocateOptions) relocate(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	base := o.absolute
	if strings.HasPrefix(base, "/") {
		base = "file:" + base // as for --map
	}
	s, err := summary.Of(ctx, snap.Savepoint)
	if err != nil {
		return nil, nil, err
	}
	m := &mover{ctx: ctx, env: env, snap: snap, all: o.missing == "keep", files: map[string]*summary.File{}}
	for i, f := range s.Files {
		if f.Relative {
			m.files[f.Path] = &s.Files[i]
		}
	}
	t := transform.RelocateOptions{Relative: o.relative, Absolute: base}
	switch {
	case base != "":
		t.Move = m.below(base)
	case !o.relative:
		t.Prefixes = env.maps
		t.Move = m.mapped
	}
	v, done, err := transform.Relocate(ctx, snap.View(), t)
	if err != nil {
		return nil, nil, err
	}
	if len(done.Changed) == 0 && (base != "" || len(t.Prefixes) > 0) {
		if err := o.nothing(env, done, t.Prefixes); err != nil {
			return nil, nil, err
		}
	}
	m.found.RelocateReport, m.found.Why = done, "not matched"
	switch {
	case o.relative:
		m.found.Why = "which cannot be relative"
	case base != "":
		m.found.Why = "not of files next to _metadata"
	}
	if err := m.look(done.Kept); err != nil {
		return nil, nil, err
	}
	r := env.run.NewEdit()
	r.Relocated(&m.found)
	return v.Savepoint, r, nil
}

// nothing is the error of a relocation that changes nothing, if it is one.
func (o *relocateOptions) nothing(env *Env, done *transform.RelocateReport, prefixes []format.Mapping) error {
	if len(done.Kept) > 0 {
		return &usageError{"no file of a relative reference is at the new location: " + env.run.References(done.Kept), "--missing keep rewrites the references anyway"}
	}
	if len(prefixes) == 0 {
		return nil
	}
	var available []string
	for _, u := range done.Unmatched {
		dir, _ := report.SplitName(u.From)
		available = append(available, ui.Quote(env.run.Text(dir)))
	}
	old := make([]string, len(prefixes))
	for i, m := range prefixes {
		old[i] = ui.Quote(m.Old)
	}
	return &usageError{"no absolute reference begins with " + strings.Join(old, ", "), "available: " + listOr(available, "no absolute reference")}
}
