package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
	"github.com/savepoint-tools/spt/writer"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type convertOptions struct {
	writeOptions
	to       string
	metadata string
	flink    string
	state    string // compression of state

	release assign.Release
}

func (o *convertOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.StringVar(&o.to, "to", "", "`spt|flink`: family of OUT (default: by its name)")
	fs.StringVar(&o.metadata, "metadata-version", "", "write version `2|3|4|5|6` of _metadata, that of IN or newer; --flink writes older ones")
	fs.StringVar(&o.state, "state-compression", "", "`none|snappy`: compress or decompress operator state and canonical keyed state, as Flink does (default: keep)")
	fs.StringVar(&o.flink, "flink", "", "write what Flink `RELEASE`, such as 1.20, can read, and report what is lost")
}

func (o *convertOptions) validate(env *Env) error {
	if o.to != "" && o.to != string(reader.SPT) && o.to != string(reader.Flink) {
		return usagef("--to %s: spt or flink", o.to)
	}
	if o.state != "" && o.state != "none" && o.state != snappyName {
		return usagef("--state-compression %s: none or snappy", o.state)
	}
	if err := o.writeOptions.validate(env); err != nil {
		return err
	}
	o.opts.Family = reader.Family(o.to)
	if o.metadata != "" {
		v, err := metadata.ParseVersion(o.metadata)
		if err != nil {
			return usagef("--metadata-version: %v", err)
		}
		o.opts.MetadataVersion = v
	}
	if o.flink != "" {
		if o.metadata != "" {
			return usagef("--flink says which --metadata-version it is")
		}
		r, err := assign.ParseRelease(o.flink)
		if err != nil {
			return usagef("--flink: %v", err)
		}
		o.release = r
	}
	return nil
}

func newConvertCommand(env *Env) *cobra.Command {
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert IN [OUT]",
		Short: "Write a snapshot as a Flink directory or an .spt file",
		Long: `Writes a snapshot at a new location: an .spt file if OUT ends in .spt, else a
Flink folder. The result is self-contained: files that _metadata names by
absolute location are copied next to it and their references are rewritten;
segments of merged files become files of their own. --keep-references gives the
identical _metadata instead.

Metadata version 2 (Flink 1.3 to 1.10) knows no relative references: the files
next to it get the absolute location of OUT, or use --metadata-version 3.

--flink writes what a release reads: _metadata in its version, with handles that
it knows, and operator state described as it expects. What it has no place for,
such as uids before Flink 2.0, is named as lost. What a job would miss is
refused: compressed operator state before 1.18, changelog state before 1.16,
RocksDB files of Flink 2 before 2.0, types whose serializers it lacks, and
values of Kryo between Flink 1 and 2, which read them differently. Elements,
entries and the descriptions of their types are not rewritten.

--state-compression rewrites state as a job writes it with, or without,
compression of snapshots: operator state of Flink 1.18 and later, and keyed
state in the canonical format of savepoints. Elements and entries stay as they
are. What cannot be rewritten is kept and named (exit 1):
keyed state in the format of a state backend, RocksDB files, raw state, and
older operator state.

OUT appears when it is whole. With --overwrite, a snapshot that is there is
exchanged with the new one in one step on Linux and macOS. What others write
into it meanwhile stops that and is never removed. An OUT that is a symbolic
link is refused. A run that is killed leaves files that begin with .spt-tmp-:
spt ls lists them, spt clean removes them. Where the system cannot exchange two
names, it can leave the old snapshot under a name that begins with .spt-old-:
every command that is given OUT says so.

State stays where it was, in files or inline in _metadata, also when it is
rebuilt. --inline-threshold moves inline state into files, and what moved is
reported.

Without OUT nothing is written; spt reports what it would write.`,
		Example: `  spt convert /data/flink/orders/chk-4211 orders.spt
  spt convert orders.spt restored/
  spt convert sp-2.3 sp-1.20 --flink 1.20
  spt convert sp-001 sp-snappy --state-compression snappy
  spt convert sp-001 sp-small --inline-threshold 20KiB`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			out := ""
			if len(args) == 2 {
				out = args[1]
			}
			return runConvert(cmd.Context(), o, env, args[0], out)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runConvert(ctx context.Context, o convertOptions, env *Env, in, out string) (err error) {
	snap, err := env.open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	if out == "" && o.opts.Family == "" { // the other family is what a conversion is for
		o.opts.Family = reader.SPT
		if snap.Container.Family == reader.SPT {
			o.opts.Family = reader.Flink
		}
	}
	view := snap
	// Older releases read no compressed state, and their state cannot be
	// compressed: what comes first depends on the direction.
	var steps []func(*reader.Snapshot) (*reader.Snapshot, error)
	if o.flink != "" {
		steps = append(steps, func(s *reader.Snapshot) (*reader.Snapshot, error) { return o.forRelease(ctx, env, s, out) })
	}
	var kept []transform.KeptHandle
	if o.state != "" {
		steps = append(steps, func(s *reader.Snapshot) (*reader.Snapshot, error) {
			s, k, err := o.recompress(ctx, env, s)
			kept = k
			return s, err
		})
		if o.state == "none" {
			slices.Reverse(steps)
		}
	}
	for _, step := range steps {
		view, err = step(view)
		if err != nil {
			return err
		}
	}
	if err := seal(ctx, env, o.writeOptions, view, in, out); err != nil {
		return err
	}
	if len(kept) > 0 {
		return &findings{"the compression of some state was left as it is"}
	}
	return nil
}

// recompress is the snapshot with state as --state-compression wants it.
func (o *convertOptions) recompress(ctx context.Context, env *Env, snap *reader.Snapshot) (*reader.Snapshot, []transform.KeptHandle, error) {
	stop := env.reading("reading", allState(snap))
	defer stop()
	v, done, err := transform.Recompress(ctx, snap.View(), transform.RecompressOptions{Compress: o.state == snappyName, Keyed: keyed.Recompress})
	if err != nil {
		return nil, nil, inContainer(err, snap)
	}
	more := o.note
	o.note = func(r *report.Write) {
		if more != nil {
			more(r)
		}
		r.StateCompression, r.Recompressed = o.state, done.Handles
		for _, k := range done.Kept {
			r.KeptCompression = append(r.KeptCompression, report.Kept{
				Operator: env.run.Label(k.Operator), ID: k.Operator.ID.String(), What: k.Slot.String(), Handles: k.Handles, Why: env.run.Hide(k.Why),
			})
		}
	}
	return snap.With(v.Savepoint), done.Kept, nil
}

// forRelease is the snapshot as the release of --flink reads it.
func (o *convertOptions) forRelease(ctx context.Context, env *Env, snap *reader.Snapshot, out string) (*reader.Snapshot, error) {
	if o.to == string(reader.SPT) || o.to == "" && strings.HasSuffix(strings.TrimRight(out, "/"), reader.Extension) {
		return nil, usagef("--flink is of a Flink folder: an .spt file is read by no release of Flink")
	}
	o.opts.Family = reader.Flink
	stop := env.reading("reading", nil)
	defer stop()
	unread, err := check.TypesFor(ctx, snap.Savepoint, snap.Schema, int32(snap.Container.Metadata), o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	v, rebuilt, err := transform.Reencode(ctx, snap.View(), transform.ReencodeOptions{Release: o.release})
	if err != nil {
		return nil, inContainer(err, snap)
	}
	sp, lost, err := metadata.ForRelease(v.Savepoint, o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	if !o.release.AtLeast(1, 20) && (o.keepReferences || o.opts.Files == writer.Reference) && metadata.HoldsMerged(sp) {
		return nil, format.Errorf(format.ErrUnsupported, "Flink %v does not know segments of merged files: --files copy makes files of them", o.release)
	}
	more := o.note
	o.note = func(r *report.Write) {
		if more != nil {
			more(r)
		}
		r.Release, r.Rebuilt, r.Lost = o.release.String(), rebuilt.Handles, append(lost, r.Lost...)
		if len(unread) > 0 {
			r.Remarks = append(r.Remarks, fmt.Sprintf("whether Flink %v has the types of all states could not be told: %s", o.release, env.run.Hide(unread[0].Error())))
		}
	}
	return snap.With(sp), nil
}
