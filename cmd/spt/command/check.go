package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
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
	fs.Int32Var(&o.parallelism, "parallelism", 0, "the job runs every operator with parallelism `N` (default: that of the plan, else that of the snapshot)")
	fs.Int32Var(&o.maxParallelism, "max-parallelism", 0, "the job sets max parallelism `N` (default: it sets none and uses that of the state)")
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
			return usagef("--%s %d: between 1 and %d", f.name, f.n, format.MaxKeyGroups)
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

// CheckResult is the answer of check.
type CheckResult struct {
	Path          string              `json:"path"`
	Restorable    bool                `json:"restorable" jsonschema:"description=no finding of severity error"`
	Container     string              `json:"container"`
	JobKnown      string              `json:"job_known" jsonschema:"description=no, or what says what the job has: names, plan, a snapshot like it, joined by 'and'"`
	Matched       []CheckOperator     `json:"matched,omitempty" jsonschema:"description=operators of the snapshot that the job has"`
	Errors        int                 `json:"errors"`
	Warnings      int                 `json:"warnings"`
	Notes         int                 `json:"notes"`
	NotChecked    int                 `json:"not_checked_files,omitempty" jsonschema:"description=files that nobody could look for, or that are not read because of where they are"`
	Findings      []report.Finding    `json:"findings"`
	Renames       []report.Rename     `json:"renames,omitempty" jsonschema:"description=operators that the older snapshot likely has, or may have, under another id"`
	NameChanges   []report.NameChange `json:"name_changes,omitempty" jsonschema:"description=operators of one id whose stored name changed: the id may be that of another operator now"`
	RenameCommand string              `json:"rename_command,omitempty" jsonschema:"description=gives the older snapshot the new uids of all that are likely; absent where a uid is not known"`

	suggested *report.Renames
}

// CheckOperator is an operator of the snapshot that the job has.
type CheckOperator struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	From     int32  `json:"from_parallelism"`
	To       int32  `json:"to_parallelism"`
	Max      int32  `json:"max_parallelism"`
}

func newCheckCommand(env *Env) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check SP",
		Short: "Predict whether a job would restore from a snapshot",
		Long: `Predicts whether a job would restore from a snapshot. An error is what Flink
refuses or cannot read; a warning restores, but something will differ; a note is
worth knowing. Exit 1 if there is an error, with --strict a warning too.

The job is described by --names FILE, a list of its uids (an id of 32 hex
digits stands for an operator without one), by --plan FILE, or by --like
SNAPSHOT. The ids in a plan are those of vertices, and a vertex has the id of
the first operator of its chain: operators chained behind it cannot be told by a
plan, and where the snapshot stores no names, what has no vertex is a warning.
Uids are certain, and both can be given: the plan adds parallelisms.

--like is a savepoint that the new version of the job took, in a test say: it
tells of operators, unless names do, and of the names, kinds and types of their
states. Types are compared by the rules of Flink's own serializers; your own
serializers decide themselves, which is a warning. Without any of the three,
what does not depend on the job is checked. SPT_NAMES is not taken for the job's
uids.

Checked are: state that no operator takes; operators that start empty;
parallelism and max parallelism; files that are not where they are said to be,
and those in the folder of another snapshot; union state that grows; broadcast
copies that differ; finished operators; in-flight data; the order in which
elements are handed out; incremental state that must not be claimed; native
savepoints without timers; state that cannot be read; values that Kryo wrote in
Flink 1 and Flink 2 misreads; with --flink, what that release cannot read and
serializers that it does not have; and with --like, names, kinds and types of
states, operators that the job likely has under another id, and ids that look
like those of other operators now, by stored names or by states.

Not checked: the entries of keyed state, and types of what is in a changelog.
spt verify checks every file that the snapshot refers to.`,
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

// job reads what is known of the job, nil where nothing is.
func (o *checkOptions) job(ctx context.Context, env *Env) (job *check.Job, known string, err error) {
	known = "no"
	if env.common.names != "" {
		uids, err := env.readNames(ctx, env.common.names)
		if err != nil {
			return nil, "", err
		}
		if len(uids) == 0 {
			return nil, "", usagef("--names %s: there is no uid in it", ui.Quote(env.common.names))
		}
		job, known = check.JobOfNames(uids), "names"
	}
	if o.plan == "" {
		return job, known, nil
	}
	text, err := env.readSide(ctx, "--plan", o.plan)
	if err != nil {
		return nil, "", err
	}
	plan, err := check.ParsePlan(text)
	if err != nil {
		return nil, "", &usageError{fmt.Sprintf("--plan %s: %v", ui.Quote(o.plan), err), "curl JOBMANAGER:8081/jobs/ID/plan gives one"}
	}
	if job == nil {
		return plan, "plan", nil
	}
	return job.WithPlan(plan), "names and plan", nil
}

// openLike opens the snapshot that the job took.
func (o *checkOptions) openLike(ctx context.Context, env *Env) (*check.Like, func() error, error) {
	if o.like == "" {
		return nil, func() error { return nil }, nil
	}
	snap, err := env.open(ctx, o.like)
	if err != nil {
		return nil, nil, fmt.Errorf("--like: %w", err)
	}
	return &check.Like{Savepoint: snap.Savepoint, Schema: snap.Schema, Metadata: int32(snap.Container.Metadata)}, snap.Close, nil
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
		known = strings.TrimPrefix(known+" and a snapshot like it", "no and ")
	}
	progress := env.progress()
	progress.StartCount(int64(len(snap.Operators)), "checking operators")
	defer progress.Stop()
	schema := func(ctx context.Context, op *format.Operator) (types.Schema, []error, error) {
		defer progress.Add(1)
		return snap.Schema(ctx, op)
	}
	c, err := check.Run(ctx, snap.View(), check.Options{TempDir: env.common.tmp,
		Schema: schema, Like: like,
		Job: job, Parallelism: o.parallelism, MaxParallelism: o.maxParallelism, AllowNonRestored: o.allow,
		Release: o.release, Metadata: int32(snap.Container.Metadata), At: o.at,
		Content: func(ctx context.Context, op *format.Operator) (found []finding.Finding, err error) {
			err = snap.Examine(ctx, []*format.Operator{op}, reader.VerifyOptions{}, func(f finding.Finding) { found = append(found, f) })
			return found, err
		},
	})
	if err != nil {
		return inContainer(err, snap)
	}
	files, cut, notChecked, err := checkFiles(ctx, env, snap, location, c.Restored, o.at)
	progress.Stop()
	if err != nil {
		return inContainer(err, snap)
	}
	c.Findings = append(withoutCutShort(c.Findings, cut), files...)
	if snap.Container.Family == reader.SPT {
		advice := []finding.Remedy{{Words: "to make a Flink directory of it", Action: finding.Copy}}
		if slices.ContainsFunc(c.Findings, func(f check.Finding) bool { return f.Code == "not-flink" }) {
			advice = nil // which it cannot
		}
		c.Findings = append(c.Findings, check.Finding{Severity: finding.Note, Code: "spt-file", Message: "Flink reads no .spt file", Advice: advice})
	}
	c.Sort()
	r := &CheckResult{NotChecked: notChecked,
		Path: location, Restorable: c.Count(finding.Error) == 0, Container: snap.Container.Describe(), JobKnown: known,
		Errors: c.Count(finding.Error), Warnings: c.Count(finding.Warning), Notes: c.Count(finding.Note), Findings: []report.Finding{},
	}
	r.suggested = env.run.NewRenames(c.Renames, location)
	r.Renames, r.NameChanges, r.RenameCommand = r.suggested.List, r.suggested.Names, r.suggested.Command
	for _, m := range c.Matched {
		r.Matched = append(r.Matched, CheckOperator{env.run.Label(m.Operator), m.Operator.ID.String(), m.Operator.Parallelism, m.To, m.Operator.MaxParallelism})
	}
	for _, f := range c.Findings {
		r.Findings = append(r.Findings, env.finding(f))
	}
	if err := renderCheck(env, r); err != nil {
		return err
	}
	if r.Errors > 0 || o.strict && r.Warnings > 0 {
		return &findings{}
	}
	return nil
}

func renderCheck(env *Env, r *CheckResult) error {
	switch env.common.output {
	case ui.OutputJSON:
		return ui.JSON(env.Stdout, r)
	case ui.OutputJSONL:
		l := ui.NewJSONLines(env.Stdout)
		for i := range r.Findings {
			if err := l.Encode(&r.Findings[i]); err != nil {
				return err
			}
		}
		return l.Flush()
	case ui.OutputCSV:
		c := ui.NewCSV(env.Stdout, "severity", "code", "operator", "id", "state", "message", "advice")
		for _, f := range r.Findings {
			if err := c.Row(f.Severity, f.Code, f.Operator, f.ID, f.State, f.Message, f.Advice); err != nil {
				return err
			}
		}
		return c.Flush()
	}
	return checkText(env, r)
}

func checkText(env *Env, r *CheckResult) error {
	var b strings.Builder
	verdict := ui.Proved("no obstacle to a restore found")
	switch {
	case r.Errors > 0:
		verdict = ui.Bad("would not restore: " + ui.Plural(int64(r.Errors), "error"))
	case r.NotChecked > 0:
		verdict = ui.Look(fmt.Sprintf("no error found, %s not checked", ui.Plural(int64(r.NotChecked), "file")))
	case r.Warnings > 0:
		verdict = ui.Look("would restore, with " + ui.Plural(int64(r.Warnings), "warning"))
	}
	fmt.Fprintf(&b, "%s: %s · %s\n", ui.Quote(r.Path), verdict, r.Container)
	if r.JobKnown == "no" {
		b.WriteString("The job is not known, so only job-independent checks were made; describe it with --names, --plan or --like.\n")
	}
	for _, m := range r.Matched {
		fmt.Fprintf(&b, "  %s  %s: parallelism ", ui.Dim("takes"), ui.Quote(m.Operator))
		if m.From == m.To {
			fmt.Fprintf(&b, "%d of at most %d\n", m.To, m.Max)
		} else {
			fmt.Fprintf(&b, "%d → %d of at most %d\n", m.From, m.To, m.Max)
		}
	}
	var d ui.Document
	d.Add(report.Findings(r.Findings))
	if _, err := io.WriteString(env.Stdout, b.String()); err != nil {
		return err
	}
	r.suggested.AppendTo(&d)
	return d.Write(env.Stdout, env.term())
}
