package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// step is an edit that a recipe can have: the options of its command, and
// what it makes of a snapshot.
type step interface {
	addFlags(fs *pflag.FlagSet)
	validate(env *Env) error
	apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error)
}

// steppers are the steps that there are.
var steppers = map[string]func() step{
	"drop":        func() step { return &dropStep{} },
	"filter":      func() step { return &filterStep{} },
	"patch":       func() step { return &patchStep{} },
	"prune-union": func() step { return &pruneStep{} },
	"redact":      func() step { return &redactStep{} },
	"relocate":    func() step { return &relocateStep{} },
	"rename":      func() step { return &renameStep{} },
	"rescale":     func() step { return &rescaleStep{} },
	"set":         func() step { return &setStep{} },
}

func stepWords() []string { return slices.Sorted(maps.Keys(steppers)) }

// notInRecipes are flags that do not change a snapshot.
var notInRecipes = map[string][]string{
	"filter":      {"type", "types"},
	"patch":       {"type", "types"},
	"prune-union": {"elements", "parallelism", "restores"},
	"rescale":     {"elements", "suggest", "wide"},
}

type dropStep struct{ dropOptions }

func (s *dropStep) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	return s.drop(ctx, env, snap)
}

type filterStep struct{ filterOptions }

func (s *filterStep) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	return s.keep(ctx, env, snap)
}

type patchStep struct{ patchOptions }

func (s *patchStep) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	return s.patch(ctx, env, snap)
}

type renameStep struct{ renameOptions }

// apply renames. Later steps know an operator by its new uid, also in snapshots
// that store none.
func (s *renameStep) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	sp, r, err := s.rename(ctx, env, snap)
	if err != nil {
		return nil, nil, err
	}
	for _, pair := range s.uidPairs {
		env.run.LearnUID(pair[1])
	}
	return sp, r, nil
}

type setStep struct {
	setOptions
	given *pflag.FlagSet
}

func (s *setStep) addFlags(fs *pflag.FlagSet) {
	s.setOptions.addFlags(fs)
	s.given = fs
}

func (s *setStep) validate(env *Env) error { return s.setOptions.validate(env, s.given) }

func (s *setStep) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	return s.set(ctx, env, snap)
}

// relocateStep has its own --map, because the one of the command line says where files
// are looked for.
type relocateStep struct {
	relocateOptions
	texts []string
	maps  []format.Mapping
	given *pflag.FlagSet
}

func (s *relocateStep) addFlags(fs *pflag.FlagSet) {
	s.relocateOptions.addFlags(fs)
	fs.StringArrayVar(&s.texts, "map", nil, "`OLD=NEW`: references that begin with OLD begin with NEW; repeatable, the longest OLD wins")
	s.given = fs
}

func (s *relocateStep) validate(env *Env) error {
	ways := 0
	for _, way := range []string{"map", "relative", "absolute"} {
		if s.given.Changed(way) {
			ways++
		}
	}
	switch {
	case ways == 0:
		return usagef("it needs map, relative or absolute: what becomes of references")
	case ways > 1:
		return usagef("map, relative and absolute: one of them at a time")
	}
	for _, text := range s.texts {
		m, err := format.ParseMapping(text)
		if err != nil {
			return usagef("map: %v", err)
		}
		s.maps = append(s.maps, m)
	}
	return errors.Join(s.locations(s.maps), s.writeOptions.validate(env))
}

func (s *relocateStep) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	mapped := *env
	mapped.maps = s.maps
	return s.relocate(ctx, &mapped, snap)
}

type rescaleStep struct {
	rescaleOptions
	done closers
}

// Close removes temporary files, after the result was written.
func (s *rescaleStep) Close() error { return s.done.Close() }

func (s *rescaleStep) validate(env *Env) error {
	return s.rescaleOptions.validate(env, []string{""})
}

func (s *rescaleStep) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	if s.max > 0 {
		return s.regroup(ctx, env, snap, &s.done)
	}
	chosen, err := env.chooseOperators(s.pick.operators, snap.Operators)
	if err != nil {
		return nil, nil, err
	}
	at := s.at
	if at == "" {
		if at, err = snap.URI(ctx); err != nil {
			return nil, nil, err
		}
	}
	plan, err := transform.PlanRescale(ctx, snap.View(), transform.RescaleOptions{
		To: s.to, From: s.from, Operators: selectorOf(snap.Operators, chosen), At: at, Strategy: transform.Strategy(s.strategy), Keyed: keyedPolicies[s.keyed], Jobs: env.readJobs(snap),
	})
	if err != nil {
		return nil, nil, err
	}
	if plan.Rescaled() == 0 {
		return nil, nil, s.nothing(env, snap.Operators)
	}
	v, err := plan.Apply(ctx)
	if err != nil {
		return nil, nil, err
	}
	r := env.run.NewEdit()
	r.Rescaled(plan, chosen)
	return v.Savepoint, r, nil
}

type pruneStep struct {
	pruneOptions
	given *pflag.FlagSet
}

func (s *pruneStep) addFlags(fs *pflag.FlagSet) {
	s.pruneOptions.addFlags(fs)
	s.given = fs
}

func (s *pruneStep) validate(env *Env) error {
	if s.keep == "" {
		return usagef("keep is needed: which duplicates stay")
	}
	return s.pruneOptions.validate(env, []string{"", ""}, s.given)
}

func (s *pruneStep) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	choose, err := s.picked(env, snap)
	if err != nil {
		return nil, nil, err
	}
	v, pruned, err := transform.PruneUnion(ctx, snap.View(), s.policy(env, snap, choose))
	if err != nil {
		return nil, nil, err
	}
	left := listNow(snap.Savepoint, s.chooses(choose))
	for _, p := range pruned.States {
		if p.Skipped != "" && p.Verdict != transform.VerdictSound {
			left[stateID{p.Operator.ID, p.State}] = true
		}
	}
	if err := env.wrongOrder(ctx, func(id format.OperatorID, state string) bool { return left[stateID{id, state}] }); err != nil {
		return nil, nil, err
	}
	r := env.run.NewEdit()
	for _, p := range pruned.States {
		name := ui.Quote(env.run.Label(p.Operator)) + "/" + ui.Quote(env.run.Text(p.State))
		switch {
		case p.Skipped == "":
			r.Pruned(p, transform.Keep(s.keep))
		case len(s.states) > 0 && p.Verdict != transform.VerdictSound:
			return nil, nil, &usageError{fmt.Sprintf("%s is not pruned: %s", name, p.Skipped), "accept-unproven: true prunes it anyway; look at its elements first"}
		default:
			r.Remarks = append(r.Remarks, fmt.Sprintf("%s is left as it is: %s", name, p.Skipped))
			if p.Verdict != transform.VerdictSound {
				r.Skipped = append(r.Skipped, fmt.Sprintf("%s (%s)", name, p.Skipped))
			}
		}
	}
	return v.Savepoint, r, nil
}
