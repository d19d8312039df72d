package command

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/count"
)

// countOptions are how entries of keyed state are counted.
type countOptions struct {
	on          bool
	at          instant
	ttl         age
	parallelism int32
}

func (o *countOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.on, "count", false, "read all entries of keyed state, and report entries, keys, bytes, timers and their distribution")
	fs.Var(&o.at, "at", "with --count: the `TIME` to which timers and --ttl are relative, such as 2026-01-31T12:00:00Z, or ms since 1970 (default: when the snapshot was stored)")
	fs.Var(&o.ttl, "ttl", "with --count: count the entries of states with TTL that were not updated for `DURATION`, such as 12h or 7d")
	fs.Int32Var(&o.parallelism, "parallelism", 0, "with --count: report what each subtask holds at parallelism `N` (default: the operator's)")
}

func (o *countOptions) validate(given *pflag.FlagSet) error {
	if !o.on {
		return without("--count", given, "at", "ttl", "parallelism")
	}
	switch {
	case given.Changed("ttl") && o.ttl == 0:
		return usagef("--ttl 0: must be more than 0")
	case given.Changed("parallelism") && (o.parallelism < 1 || o.parallelism > format.MaxKeyGroups):
		return usagef("--parallelism %d: must be 1 to %d", o.parallelism, format.MaxKeyGroups)
	}
	return nil
}

// run counts the entries of the operators and states that were picked.
func (o *countOptions) run(ctx context.Context, env *Env, snap *reader.Snapshot, sp *format.Savepoint, states []string) (*report.Counted, error) {
	c := &report.Counted{At: o.at.Time, Origin: report.AtGiven, TTL: time.Duration(o.ttl), Parallelism: o.parallelism}
	if c.At.IsZero() {
		c.At, c.Origin = snap.Container.ModTime, report.AtSnapshot
	}
	if c.At.IsZero() {
		c.At, c.Origin = env.Now(), report.AtNow
	}
	defer env.reading("counting", allState(snap))()
	view := snap.View()
	view.Savepoint = sp
	var err error
	c.Report, err = count.Keyed(ctx, view, count.Options{At: c.At, TTL: c.TTL, Partial: true, Jobs: env.readJobs(snap), States: states})
	return c, inContainer(err, snap)
}
