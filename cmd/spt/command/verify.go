package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

type verifyOptions struct {
	read   bool
	deep   bool
	strict bool
}

func (o *verifyOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.read, "read", false, "read every byte of every file, and decode every element of operator state; Flink's files have no checksums")
	fs.BoolVar(&o.deep, "deep", false, "--read, and check every block of tables of RocksDB and every entry of keyed state")
	fs.BoolVar(&o.strict, "strict", false, "treat warnings as findings (exit 1)")
}

func newVerifyCommand(env *Env) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify SP...",
		Short: "Check that every byte a snapshot refers to is there",
		Long: `Checks that every file exists, has the expected length and can be read; that
offsets and key groups are inside their streams and in order; that the first
bytes of each stream of state describe what _metadata says of it; and every
checksum of an .spt file. Reports whether the snapshot can be moved as a whole.
All findings are reported, not only the first.

Of files that are not on this machine, only existence and length are checked,
by a list of each directory; it says so. With --read, they are read too.

With --read, every element of operator state is also decoded to its exact end.

With --deep, entries of keyed state are too, in every encoding, and every key is
compared with its key group, if its bytes determine its hash code: a key in
another key group is lost to the job, without a message (FLINK-40113). Of tables
of RocksDB it checks the checksum of every block, the order of the keys, and
what the MANIFEST records about them; and it reports column families without a
state, write-ahead logs that a restore ignores, and native savepoints without
timers. Files of keyed state are read twice.

It checks integrity, not whether a job would restore: spt check does that.
Commands that write a snapshot refuse what is an error here (--damaged).`,
		Example: `  spt verify sp-001
  spt verify --deep sp-001
  spt verify /data/flink/orders/chk-* -o jsonl`,
		Args: between(1, -1, "at least one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error { return runVerify(cmd.Context(), o, env, args) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runVerify(ctx context.Context, o verifyOptions, env *Env, locations []string) error {
	all := report.Verifies{}
	var failed several
	found := 0
	for _, location := range locations {
		v, err := verifyOne(ctx, o, env, location)
		if err != nil {
			if ctx.Err() != nil || len(locations) == 1 {
				return err
			}
			// Several were asked for: report this one and go on.
			v.Problem = env.run.Hide(err.Error())
			failed = append(failed, err)
		}
		if v.Errors > 0 || o.strict && v.Warnings > 0 {
			found++
		}
		all = append(all, v)
		if env.common.output == ui.OutputTable { // as soon as it is known
			if err := env.answer(all[len(all)-1:]); err != nil {
				return err
			}
		}
	}
	if env.common.output != ui.OutputTable {
		if err := env.answer(all); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return failed.err()
	}
	if found > 0 {
		return &findings{}
	}
	return nil
}

func verifyOne(ctx context.Context, o verifyOptions, env *Env, location string) (v *report.Verify, err error) {
	v = report.NewVerify(location)
	snap, err := env.open(ctx, location)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	return v, o.verify(ctx, env, location, snap, v)
}

// verify checks a snapshot and adds what it finds to v.
func (o verifyOptions) verify(ctx context.Context, env *Env, location string, snap *reader.Snapshot, v *report.Verify) error {
	opts := reader.VerifyOptions{Read: o.read || o.deep, Deep: o.deep, Jobs: env.readJobs(snap)}
	var stop func()
	if opts.Read || snap.Container.Family == reader.SPT {
		total := allState(snap)
		if o.deep {
			total = allState(snap, snap) // as files, and as entries
		}
		stop = env.reading("verifying", total)
		opts.Progress = env.hook().add
	} else if snap.Remote() { // it reads nothing of them
		stop = func() {}
	} else { // of each file it reads one byte
		p := env.progress()
		p.StartCount(countFiles(snap.Savepoint), "checking files")
		stop, opts.Progress = p.Stop, p.Add
	}
	var all []finding.Finding
	done, err := snap.Verify(ctx, opts, func(f finding.Finding) {
		v.Findings = append(v.Findings, env.run.NewFinding(f))
		all = append(all, f)
	})
	stop()
	v.Verified(&env.run, snap, done)
	if err != nil || env.common.output != ui.OutputTable {
		return err
	}
	shown, err := groupFiles(ctx, env, snap, location, all)
	v.Show(shown)
	return err
}

// countFiles is how many files a snapshot refers to.
func countFiles(sp *format.Savepoint) int64 {
	files := map[string]bool{}
	_ = sp.EachStream(func(_ format.Place, st format.Stream) error {
		if path, _, ok := format.Reference(st); ok {
			files[format.CanonicalURI(path.String())] = true
		}
		return nil
	})
	return int64(len(files))
}
