package command

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/writer"
)

// writeOptions are the options of every command that writes a snapshot.
type writeOptions struct {
	files          string
	missing        string
	damaged        string
	keepReferences bool
	inline         ui.Size
	compression    string
	level          int
	overwrite      bool
	dryRun         bool
	readBack       bool

	bare  bool           // only references are written: their files may be missing
	given *pflag.FlagSet // 0 that was given is not 0 for want of a flag
	opts  writer.Options
	note  func(*report.Write) // what a command adds to the answer, or nil
}

func (o *writeOptions) addFlags(fs *pflag.FlagSet) {
	o.given = fs
	fs.StringVar(&o.files, "files", "copy", "`copy|link|reference`: how state files get into a Flink directory")
	fs.StringVar(&o.missing, "missing", "refuse", "`refuse|keep`: what to do if state files cannot be read; keep writes only their references")
	fs.StringVar(&o.damaged, "damaged", "refuse", "`refuse|keep`: what to do with state that spt verify calls an error; keep passes it on, names it and exits 1")
	fs.BoolVar(&o.keepReferences, "keep-references", false, "keep every reference, and so the same _metadata; files with absolute references are not written")
	fs.Var(&o.inline, "inline-threshold", "move inline state larger than `SIZE` out of _metadata into files; 0: all (default: none)")
	fs.StringVar(&o.compression, "compression", "zstd", "`zstd|s2|none`: compression of an .spt file")
	fs.IntVar(&o.level, "compression-level", 0, "zstd level `N`, 1 (fastest) to 4 (smallest)")
	fs.BoolVar(&o.overwrite, "overwrite", false, "replace OUT if it is a snapshot")
	fs.BoolVar(&o.dryRun, "dry-run", false, "report what would be done, and check OUT and the free space")
	fs.BoolVar(&o.readBack, "read-back", false, "read everything again before OUT becomes visible")
}

func (o *writeOptions) validate(env *Env) error {
	files, err := writer.ParseFiles(o.files)
	if err != nil {
		return usagef("--files: %v", err)
	}
	compression, err := spt.ParseCompression(o.compression)
	if err != nil {
		return usagef("--compression: %v", err)
	}
	if o.missing != "refuse" && o.missing != "keep" {
		return usagef("--missing %s: refuse or keep", o.missing)
	}
	if o.given.Changed("compression-level") && (o.level < 1 || o.level > 4) {
		return usagef("--compression-level %d: 1 to 4", o.level)
	}
	if o.damaged != "refuse" && o.damaged != "keep" {
		return usagef("--damaged %s: refuse or keep", o.damaged)
	}
	o.opts = writer.Options{
		Stores: env.Stores, Files: files, KeepReferences: o.keepReferences, KeepMissing: o.missing == "keep" || o.bare,
		Compression: compression, Level: o.level,
		Overwrite: o.overwrite, ReadBack: o.readBack, Jobs: env.common.jobs,
	}
	if o.given.Changed("inline-threshold") {
		o.opts.InlineThreshold = new(int64(o.inline))
	}
	return nil
}

// prepare plans how a snapshot is written to out, or would be.
func (o *writeOptions) prepare(ctx context.Context, snap *reader.Snapshot, out string) (*writer.Plan, error) {
	plan, err := writer.Prepare(ctx, snap.View(), out, &o.opts)
	switch {
	case err != nil || o.opts.Files != writer.Reference:
		return plan, err
	case plan.Family == reader.SPT:
		return nil, usagef("--files reference: an .spt file holds all state itself")
	case snap.Container.Family == reader.SPT:
		return nil, usagef("--files reference: %s is an .spt file, in which a _metadata cannot refer to state", ui.Quote(snap.Location))
	}
	return plan, nil
}

// write plans how a snapshot is written to out, and writes it unless it is a dry
// run or out is empty.
func (o *writeOptions) write(ctx context.Context, env *Env, snap *reader.Snapshot, in, out string) (*writer.Plan, *report.Write, error) {
	progress := env.progress()
	o.opts.Progress = progress.Add
	plan, err := o.prepare(ctx, snap, out)
	if err != nil {
		return nil, nil, err
	}
	damaged, err := o.examine(ctx, env, snap, in)
	if err != nil {
		return nil, nil, err
	}
	r := env.run.NewWrite(in, plan)
	r.Damaged, r.DryRun = damaged, o.dryRun
	if o.note != nil {
		o.note(r)
	}
	if err := env.warnConditions(ctx, out); err != nil {
		return nil, nil, err
	}
	if out == "" || o.dryRun {
		return plan, r, nil
	}
	total := plan.Bytes
	if o.readBack {
		total *= 2
	}
	progress.Start(total, "writing")
	done, err := plan.Write(ctx)
	progress.Stop()
	if err != nil {
		return nil, nil, inContainer(err, snap)
	}
	r.Wrote(done)
	return plan, r, nil
}

// seal plans, writes unless it is a dry run, and answers. Every command that
// writes ends in it.
func seal(ctx context.Context, env *Env, o writeOptions, snap *reader.Snapshot, in, out string) error {
	plan, r, err := o.write(ctx, env, snap, in, out)
	if err != nil {
		return err
	}
	if err := env.answer(r); err != nil {
		return err
	}
	return incomplete(plan, r)
}
