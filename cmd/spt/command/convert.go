package command

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
)

type convertOptions struct {
	writeOptions
	to       string
	metadata string
	flink    string
	state    string // compression of state
	keyed    string // encoding of keyed state

	redacts   bool
	redaction redactOptions

	release flink.Release
}

func (o *convertOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.StringVar(&o.to, "to", "", "`spt|flink`: family of OUT (default: by its name)")
	fs.StringVar(&o.metadata, "metadata-version", "", "write version `2|3|4|5|6` of _metadata, not older than IN; --flink writes older ones")
	fs.StringVar(&o.state, "state-compression", "", "`none|snappy`: compress or decompress operator state and canonical keyed state, as Flink does (default: keep)")
	fs.StringVar(&o.keyed, "keyed", keepKeyed, "`keep|canonical`: keep the encoding of keyed state, or build it again in the format of canonical savepoints, which any backend but ForSt restores")
	fs.BoolVar(&o.redacts, "redact", false, "replace all values by others of the same type and length, and refuse what cannot be replaced")
	o.redaction.addRedactFlags(fs, "redact-")
	fs.StringVar(&o.flink, "flink", "", "write what Flink `RELEASE`, such as 1.20, can read, and report what is lost")
}

func (o *convertOptions) validate(env *Env) error {
	if o.to != "" && o.to != string(reader.SPT) && o.to != string(reader.Flink) {
		return usagef("--to %s: spt or flink", o.to)
	}
	if o.state != "" && o.state != "none" && o.state != report.Snappy {
		return usagef("--state-compression %s: none or snappy", o.state)
	}
	if o.keyed != keepKeyed && o.keyed != canonicalKeyed {
		return usagef("--keyed %s: must be keep or canonical", o.keyed)
	}
	if r := &o.redaction; !o.redacts && (r.names || r.key != "" || len(r.drop) > 0) {
		return usagef("--redact-names, --redact-key and --redact-drop need --redact")
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
		o.opts.MetadataVersion = int32(v)
	}
	if o.flink != "" {
		if o.metadata != "" {
			return usagef("--flink says which --metadata-version it is")
		}
		r, err := flink.ParseRelease(o.flink)
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
Flink directory. The result is self-contained: files that _metadata names by
absolute location are copied next to it and their references are rewritten;
segments of merged files become separate files. --keep-references writes the
identical _metadata instead.

Metadata version 2 (Flink 1.3 to 1.10) has no relative references: it names the
files next to it by the absolute location of OUT, which --metadata-version 3
avoids.

--flink writes what a release reads: _metadata in its version, with handles that
it knows, and operator state with the state meta info that it expects. What it
cannot hold, such as uids before Flink 2.0, is reported as lost. What a job
would miss is refused: compressed operator state before 1.18, changelog state
before 1.16, RocksDB files of Flink 2 before 2.0, types whose serializers it
lacks, and values of Kryo between Flink 1 and 2, which read them differently.
Elements, entries and serializer snapshots are not rewritten.

--state-compression rewrites state as a job writes it with or without snapshot
compression: operator state of Flink 1.18 and later, and keyed state in the
canonical format of savepoints. Elements and entries do not change. What cannot
be rewritten is kept and named (exit 1): keyed state in the format of a state
backend, RocksDB files, raw state, and older operator state.

--keyed canonical builds keyed state again, entry by entry, in the format of
canonical savepoints: state of heap and RocksDB backends, of incremental
checkpoints and of changelogs. All state backends but ForSt restore the result,
so this changes the state backend of a job, and makes a checkpoint a savepoint
of its own. State that was compressed with snapshot compression stays so, as
after all edits of keyed state; --state-compression chooses, also for RocksDB
files, which have a compression of their own and become uncompressed state.
Canonical state is copied byte for byte. A checkpoint with in-flight data is
refused. State that cannot be read is kept and named (exit 1).

--redact writes a snapshot that can be given away: values are replaced by others
of the same type and length, equal ones by equal ones, so structure, sizes and
duplicates stay. Keyed state is built in the canonical format, and each key
stays in its key group. --redact-names replaces the names of operators, states
and files too. What cannot be redacted, such as in-flight data and state of user
serializers, is refused and named; --redact-drop drops it. docs/redaction.md
lists what is replaced and what stays.

OUT becomes visible when it is complete. With --overwrite, an existing snapshot
is exchanged with the new one in one step on Linux and macOS. If another program
writes into it meanwhile, spt stops and removes nothing. An OUT that is a
symbolic link is refused. A run that is killed leaves files that begin with
.spt-tmp-: spt ls lists them, spt clean removes them. Where the system cannot
exchange two names, it can leave the old snapshot under a name that begins with
.spt-old-: every command that is given OUT reports it.

State stays in files or inline in _metadata as it was, also when it is rebuilt.
--inline-threshold moves inline state into files; spt reports what it moved.

Without OUT nothing is written; spt reports what it would write.`,
		Example: `  spt convert /data/flink/orders/chk-4211 orders.spt
  spt convert orders.spt restored/
  spt convert sp-2.3 sp-1.20 --flink 1.20
  spt convert sp-001 sp-snappy --state-compression snappy
  spt convert /data/flink/orders/chk-4211 savepoint --keyed canonical
  spt convert sp-001 ticket.spt --redact --redact-names
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
	var kept []string
	if o.state != "" {
		steps = append(steps, func(s *reader.Snapshot) (*reader.Snapshot, error) {
			s, k, err := o.recompress(ctx, env, s)
			if len(k) > 0 {
				kept = append(kept, "the compression of some state was left as it is")
			}
			return s, err
		})
		if o.state == "none" {
			slices.Reverse(steps)
		}
	}
	if o.keyed == canonicalKeyed { // first: canonical state can be compressed, and is read by all releases
		steps = append([]func(*reader.Snapshot) (*reader.Snapshot, error){func(s *reader.Snapshot) (*reader.Snapshot, error) {
			s, k, err := o.canonical(ctx, env, s)
			if len(k) > 0 {
				kept = append(kept, "some keyed state was left in its encoding")
			}
			return s, err
		}}, steps...)
	}
	if o.redacts { // before all others: they change neither values nor names
		steps = append([]func(*reader.Snapshot) (*reader.Snapshot, error){func(s *reader.Snapshot) (*reader.Snapshot, error) { return o.redacted(ctx, env, s, out) }}, steps...)
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
		return &findings{strings.Join(kept, ", and ")}
	}
	return nil
}
