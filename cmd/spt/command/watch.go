package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/ui"
)

type watchOptions struct {
	once          bool
	interval      age
	depth         int
	window        int
	files         bool
	orphansEvery  age
	limit         ui.Size
	limitElements int64
	rules         string
	listen        string
	textfile      string
	maxSeries     int
}

// watchAddress is the default of --listen. The port of Flink's own reporter is 9249.
const watchAddress = "127.0.0.1:9929"

func (o *watchOptions) addFlags(fs *pflag.FlagSet) {
	o.interval = age(30 * time.Second)
	fs.BoolVar(&o.once, "once", false, "look once and exit, for a scheduled job: needs --textfile or --rules")
	fs.Var(&o.interval, "interval", "look at each ROOT after about `DURATION`; after failures less and less often, up to 10m")
	fs.StringVar(&o.listen, "listen", watchAddress, "serve /metrics and /healthz at `ADDRESS`, HOST:PORT; with --textfile only if it is given")
	fs.StringVar(&o.textfile, "textfile", "", "write the metrics to `FILE` for the textfile collector of the node exporter, after each look; - is standard output, with --once")
	fs.StringVar(&o.rules, "rules", "", "`FILE` of rules: what begins to hold is printed as JSON, and sent to a webhook")
	fs.Var(&o.limit, "limit", "predict when the bytes of state, of _metadata and of each state reach `SIZE`, such as 1GiB")
	fs.Int64Var(&o.limitElements, "limit-elements", 0, "predict when the elements of each state reach `N`")
	fs.IntVar(&o.window, "window", 20, "measure growth over the last `N` checkpoints of a job")
	fs.BoolVar(&o.files, "check-files", false, "look for the files of checkpoints that are not on this machine too")
	fs.Var(&o.orphansEvery, "orphans-every", "count files that no snapshot refers to, each `DURATION`, such as 6h: lists all files below ROOT; 0: never")
	fs.IntVar(&o.depth, "depth", 2, "search `N` levels of directories below ROOT for the directories of jobs")
	fs.IntVar(&o.maxSeries, "max-series", 5000, "export at most `N` series, the largest states first")
}

func (o *watchOptions) validate(given *pflag.FlagSet) error {
	switch {
	case time.Duration(o.interval) < time.Second:
		return usagef("--interval %s: must be 1s or more", o.interval)
	case o.depth < 0:
		return usagef("--depth %d: must be 0 or more", o.depth)
	case o.window < 2 || o.window > 1000:
		return usagef("--window %d: must be 2 to 1000", o.window)
	case o.maxSeries < 100:
		return usagef("--max-series %d: must be 100 or more", o.maxSeries)
	case given.Changed("limit") && o.limit == 0:
		return usagef("--limit 0: must be 1 byte or more")
	case given.Changed("limit-elements") && o.limitElements < 1:
		return usagef("--limit-elements %d: must be 1 or more", o.limitElements)
	case o.once && o.textfile == "" && o.rules == "":
		return usagef("--once needs --textfile or --rules")
	case o.once && (given.Changed("listen") || given.Changed("interval")):
		return usagef("--once looks once: it does not take --listen and --interval")
	case o.textfile == "-" && !o.once:
		return usagef("--textfile -: only with --once")
	case strings.Contains(o.textfile, "://"):
		return usagef("--textfile: must be a file on this machine")
	}
	if o.once || o.textfile != "" && !given.Changed("listen") {
		o.listen = ""
	}
	return nil
}

func newWatchCommand(env *Env) *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch ROOT...",
		Short: "Follow the checkpoints of running jobs: Prometheus metrics, rules, webhooks",
		Long: `Follows the checkpoints of running jobs below the directories ROOT, as a
service next to them or, with --once, as a scheduled job. A ROOT is the
directory of one job, which has the directories chk-N, or a directory above
several jobs.

It lists the directories of jobs, reads the _metadata of each new checkpoint
once, and exports what it holds as Prometheus metrics: the newest complete
checkpoint and its age, bytes and elements of each state, how much union state
grew and what a restore loads of it, missing files, and when states reach a
limit, by a straight line through the oldest and the newest of the checkpoints
that it remembers. It reads no state. docs/watch.md lists the metrics, and has
manifests, alerts and a dashboard.

The files of checkpoints on this machine are looked for; of those in a store
only with --check-files, which lists their directories. A ROOT that does not
exist yet, a store that does not answer, and checkpoints that are being written
or removed are expected: it goes on. SIGTERM ends it with exit code 0.

--rules FILE names conditions on the newest checkpoint of each job: the
expressions of spt inspect --fail-if, or its age.

  webhook: {url-env: ALERT_URL}
  rules:
    - name: union state is large
      fail-if: union_elements > 100000 or may_be_multiplied
      severity: page
    - name: no new checkpoint
      older-than: 15m

When a rule begins to hold for a job, and when it no longer does, a line of
JSON is printed on standard output and sent to the webhook, several times if
that fails. The webhook has url or, to keep secrets out of the file, url-env,
the name of an environment variable; bearer-env names one with a token. With
--once, exit code 1 says that a rule holds.`,
		Example: `  spt watch s3://flink/checkpoints/orders --limit 1GiB
  spt watch /data/flink --rules rules.yaml --listen :9929
  spt watch --once s3://flink/checkpoints --rules rules.yaml --textfile /var/lib/node_exporter/spt.prom`,
		Args: between(1, -1, "at least one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			slices.Sort(args)
			return runWatch(cmd.Context(), o, env, slices.Compact(args))
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runWatch(ctx context.Context, o watchOptions, env *Env, roots []string) error {
	w, err := newWatching(ctx, o, env, roots)
	if err != nil {
		return err
	}
	if o.once {
		return w.lookOnce(ctx)
	}
	return w.serve(ctx)
}
