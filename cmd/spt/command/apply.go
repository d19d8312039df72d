package command

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
)

type applyOptions struct {
	writeOptions
	recipe string
}

func (o *applyOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.StringVar(&o.recipe, "recipe", "", "`FILE` with the edits, in YAML; - is standard input")
}

func (o *applyOptions) validate(env *Env) error {
	if o.recipe == "" {
		return &usageError{"--recipe FILE is needed: which edits", "its format:  spt apply --help"}
	}
	return o.writeOptions.validate(env)
}

func newApplyCommand(env *Env) *cobra.Command {
	var o applyOptions
	cmd := &cobra.Command{
		Use:   "apply IN [OUT] --recipe FILE",
		Short: "Make several edits in one pass, from a recipe",
		Long: `Makes the edits of a recipe, one after another, and writes the result once. Each
step works on what the step before it made. Without OUT it says for each step
what it would touch, and how large the state is before and after it.

A recipe is a YAML file. Its words are the commands and their flags:
  steps:
    - drop: {operator: debug-sink}
    - prune-union: {state: offsets, keep: distinct}
    - filter: {operator: sink, state: buffered, where: 'value > 20'}
    - rename:
        uid: {old-uid: new-uid, other: another}
    - set: {operator: sink, state: buffered, mode: list}
    - relocate: {map: {'s3://old': 's3://new'}}
    - rescale: {to: 4}

A flag that can be repeated takes a list, one of OLD=NEW a map too. Steps are
drop, filter, patch, prune-union, redact, relocate, rename, rescale and set; the
help of each command says what its flags mean. redact has names, key and drop,
as convert has --redact-names, --redact-key and --redact-drop. A key that is not
known is an error that names its line, and nothing is written. An operator that
was renamed has its new uid in later steps.

A rescale orders blocks by the location of the snapshot, as Flink does: IN,
unless the step says at: URI. Run one by one, each command would use the
location of its own input.

Put prune-union before steps that move elements or change what a restore does
with them, such as rescale, set --mode and a filter on subtask or index: after
those nothing proves any more that restores multiplied a state. A recipe in
another order is refused where that makes a difference. Where prune-union leaves
a state that repeats elements as it is, the result is partial (exit 1).

With a relocate step references are kept as they are, as by --keep-references.
It belongs at the end: later steps look for files where it says they are.`,
		Example: `  spt apply sp-001 --recipe fix.yaml
  spt apply sp-001 fixed --recipe fix.yaml --read-back`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			return o.run(cmd.Context(), env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *applyOptions) run(ctx context.Context, env *Env, args []string) error {
	text, err := env.readSide(ctx, "--recipe", o.recipe)
	if err != nil {
		return err
	}
	name := o.recipe
	if name == "-" {
		name = "stdin"
	}
	r, err := parseRecipe(env, name, text)
	if err != nil {
		return err
	}
	besides := func(err error) error { return err }
	for _, s := range r.steps {
		relocates, ok := s.step.(*relocateStep)
		if ok && relocates.relative {
			besides = relocates.besides
		}
		if ok && !o.keepReferences {
			o.keepReferences = true
			if err := o.writeOptions.validate(env); err != nil {
				return err
			}
		}
	}
	var skipped []string
	err = edit(ctx, env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
		sp, res, err := r.apply(ctx, env, snap)
		if err == nil {
			skipped = res.Skipped
		}
		return sp, res, err
	})
	for _, s := range r.steps {
		if c, ok := s.step.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	if err == nil && len(skipped) > 0 {
		err = &findings{"left as it is: " + report.Shorten(skipped)}
	}
	return besides(err)
}

// apply makes the edits one after another.
func (r *recipe) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	own := *env // steps teach it uids, and what they changed
	res := env.run.NewEdit()
	before, err := summary.Of(ctx, snap.Savepoint)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range r.steps {
		sp, done, err := s.step.apply(ctx, &own, snap)
		if err != nil {
			return nil, nil, s.at(r.name, inContainer(err, snap))
		}
		after, err := summary.Of(ctx, sp)
		if err != nil {
			return nil, nil, s.at(r.name, err)
		}
		res.Steps = append(res.Steps, report.Step{
			Step: s.word, Line: s.line, Changes: done.Changes, Remarks: done.Remarks,
			OperatorsBefore: len(before.Operators), OperatorsAfter: len(after.Operators), BytesBefore: before.Bytes.State(), BytesAfter: after.Bytes.State(),
		})
		res.Skipped = append(res.Skipped, done.Skipped...)
		view := snap.With(sp)
		own.remember(s, snap, view)
		snap, before = view, after
	}
	return snap.Savepoint, res, nil
}
