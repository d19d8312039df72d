package command

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/check"
)

type checkOptions struct {
	plan, like                  string
	parallelism, maxParallelism int32
	allow, strict               bool
	flink, at                   string

	release flink.Release
}

func (o *checkOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.plan, "plan", "", "`FILE` with the job's plan, as Flink's REST API returns it for /jobs/ID/plan; - is standard input")
	fs.StringVar(&o.like, "like", "", "`SNAPSHOT` taken by the new version of the job, anywhere: its operators, states and types are the job's")
	fs.Int32Var(&o.parallelism, "parallelism", 0, "the job runs every operator with parallelism `N` (default: the parallelism of the plan, else of the snapshot)")
	fs.Int32Var(&o.maxParallelism, "max-parallelism", 0, "the job sets max parallelism `N` (default: it sets none and uses the one of the state)")
	fs.BoolVar(&o.allow, "allow-non-restored", false, "the job is started with --allowNonRestoredState: state that no operator restores is a warning")
	fs.StringVar(&o.flink, "flink", "", "Flink `RELEASE` that restores the snapshot, such as 1.20")
	fs.StringVar(&o.at, "at", "", "`URI` from which Flink will restore the snapshot (default: its location)")
	fs.BoolVar(&o.strict, "strict", false, "treat warnings as findings (exit 1)")
}

func (o *checkOptions) validate(cmd *cobra.Command) error {
	for _, f := range []struct {
		name string
		n    int32
	}{{"parallelism", o.parallelism}, {"max-parallelism", o.maxParallelism}} {
		if cmd.Flags().Changed(f.name) && (f.n < 1 || f.n > format.MaxKeyGroups) {
			return usagef("--%s %d: must be 1 to %d", f.name, f.n, format.MaxKeyGroups)
		}
	}
	if o.flink == "" {
		return nil
	}
	r, err := flink.ParseRelease(o.flink)
	if err != nil {
		return usagef("--flink: %v", err)
	}
	o.release = r
	return nil
}

func newCheckCommand(env *Env) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check SP",
		Short: "Predict whether a job would restore from a snapshot",
		Long: `Predicts whether a job would restore from a snapshot. An error is what Flink
refuses or cannot read; a warning restores, but something will differ; a note is
worth knowing. Exit 1 if there is an error, with --strict a warning too.

Describe the job with --names FILE, a list of its uids (an id of 32 hex digits
is an operator without one), with --plan FILE, or with --like SNAPSHOT. The ids
in a plan are ids of vertices, and a vertex has the id of the first operator of
its chain: a plan does not show the operators chained after it, and where the
snapshot stores no names, an operator without a vertex is a warning. Uids are
definitive, and both can be given: the plan adds parallelisms.

--like is a savepoint that the new version of the job took, for example in a
test. It describes operators, unless names do, and the names, kinds and types of
their states. Types are compared by the rules of Flink's own serializers; your
own serializers decide themselves, which is a warning. Without any of the three,
only job-independent checks are made. The job does not get the uids of
SPT_NAMES.

Checked are: state that no operator takes; operators that start empty;
parallelism and max parallelism; files that are not at their references, and
files in the directory of another snapshot; union state that grows; replicas of
broadcast state that differ; finished operators; in-flight data; the order in
which elements are assigned; incremental state that must not be claimed; native
savepoints without timers; state that cannot be read; values that Kryo wrote in
Flink 1 and Flink 2 misreads; with --flink, what that release cannot read and
serializers that it does not have; and with --like, names, kinds and types of
states, operators that the job likely has under another id, and ids that look
like ids of other operators now, by stored names or by states.

Not checked: the entries of keyed state. spt verify checks every file that the
snapshot refers to, and with --deep every entry.`,
		Example: `  spt check sp-001 --names uids.txt --parallelism 8
  curl -s jobmanager:8081/jobs/$JOB/plan | spt check sp-001 --plan -
  spt check sp-001 --like savepoints/of-the-new-version
  spt check chk-4211 --flink 2.0 --strict`,
		Args: exactly(1, "a snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd); err != nil {
				return err
			}
			return runCheck(cmd.Context(), o, env, args[0])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runCheck(ctx context.Context, o checkOptions, env *Env, location string) (err error) {
	job, known, err := o.job(ctx, env)
	if err != nil {
		return err
	}
	snap, err := env.open(ctx, location)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	if o.at == "" {
		if o.at, err = snap.URI(ctx); err != nil {
			return err
		}
	}
	like, closeLike, err := o.openLike(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLike()) }()
	if like != nil {
		known = append(known, "a snapshot like it")
	}
	progress := env.progress()
	progress.StartCount(int64(len(snap.Operators)), "checking operators")
	defer progress.Stop()
	schema := func(ctx context.Context, op *format.Operator) (types.Schema, []error, error) {
		defer progress.Add(1)
		return snap.Schema(ctx, op)
	}
	c, err := check.Run(ctx, snap.View(), check.Options{TempDir: env.common.tmp, Jobs: env.readJobs(snap),
		Schema: schema, Like: like,
		Job: job, Parallelism: o.parallelism, MaxParallelism: o.maxParallelism, AllowNonRestored: o.allow,
		Release: o.release, Metadata: snap.Container.Metadata, At: o.at,
		Content: func(ctx context.Context, op *format.Operator) (found []finding.Finding, err error) {
			err = snap.Examine(ctx, []*format.Operator{op}, reader.VerifyOptions{}, func(f finding.Finding) { found = append(found, f) })
			return found, err
		},
	})
	if err != nil {
		return inContainer(err, snap)
	}
	files, err := checkFiles(ctx, env, snap, location, c.Restored, o.at)
	progress.Stop()
	if err != nil {
		return inContainer(err, snap)
	}
	c.Findings = append(files.withoutCutShort(c.Findings), files.found...)
	if snap.Container.Family == reader.SPT {
		advice := []finding.Remedy{{Words: "to make a Flink directory of it", Action: finding.Copy}}
		if slices.ContainsFunc(c.Findings, func(f check.Finding) bool { return f.Code == "not-flink" }) {
			advice = nil // which it cannot
		}
		c.Findings = append(c.Findings, check.Finding{Severity: finding.Note, Code: "spt-file", Message: "Flink reads no .spt file", Advice: advice})
	}
	c.Sort()
	r := env.run.NewCheck(location, snap.Container, known, c, files.notChecked)
	if err := env.answer(r); err != nil {
		return err
	}
	if r.Errors > 0 || o.strict && r.Warnings > 0 {
		return &findings{}
	}
	return nil
}
