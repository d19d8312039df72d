package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/watch"
	"github.com/savepoint-tools/spt/internal/watch/export"
	"github.com/savepoint-tools/spt/internal/watch/notify"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/orphans"
)

// watching is a run of watch.
type watching struct {
	watchOptions
	env       *Env
	rules     *watchRules
	opts      reader.Options
	watcher   *watch.Watcher
	collector *export.Collector
	notifier  *notify.Notifier // nil: no webhook

	mu       sync.Mutex // of what is printed, and of:
	written  error      // the first error of printing
	unjudged error      // of a rule that does not fit a checkpoint
	notSent  several    // events, with --once

	saving  sync.Mutex // of the textfile, and of:
	textErr string     // of the last time that it was written
}

func newWatching(ctx context.Context, o watchOptions, env *Env, roots []string) (*watching, error) {
	w := &watching{watchOptions: o, env: env, rules: &watchRules{}, opts: env.readerOptions()}
	if o.rules != "" {
		text, err := env.readSide(ctx, "--rules", o.rules)
		if err != nil {
			return nil, err
		}
		if w.rules, err = parseRules(env, o.rules, text); err != nil {
			return nil, err
		}
	}
	options := watch.Options{
		Roots: roots, Reader: w.opts, Depth: o.depth, Window: o.window, Rules: w.rules.engine(),
		Read: w.read, Event: w.event, OrphansEvery: time.Duration(o.orphansEvery), Now: env.Now,
	}
	if o.orphansEvery > 0 {
		options.Orphans = w.orphans
	}
	if o.once {
		options.Tries = 1 // the program ends after the first
	} else {
		options.Problem = w.problem
	}
	w.watcher = watch.New(options)
	exported := export.Options{
		Status: w.watcher.Status, Rules: w.rules.names(), Limit: int64(o.limit), LimitElements: o.limitElements, MaxSeries: o.maxSeries, Now: env.Now,
		Cut: func(n int) {
			w.print(func() error {
				return env.complain(fmt.Sprintf("spt: more than %s series: %s left out; --max-series allows more", ui.Count(int64(o.maxSeries)), ui.Count(int64(n))))
			})
		},
	}
	if w.rules.url != "" {
		w.notifier = notify.New(notify.Options{URL: w.rules.url, Bearer: w.rules.bearer, Failed: w.unsent})
		exported.Webhooks = w.notifier.Counts
	}
	w.collector = export.New(exported)
	return w, nil
}

// print runs a function that prints, one at a time.
func (w *watching) print(f func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := f(); w.written == nil {
		w.written = err
	}
}

// read reads a checkpoint and evaluates the rules.
func (w *watching) read(ctx context.Context, path string) (*watch.Checkpoint, error) {
	snap, err := reader.OpenCheckpoint(ctx, path, &w.opts)
	if err != nil {
		return nil, err
	}
	c, err := w.look(ctx, snap, path)
	if err := errors.Join(err, snap.Close()); err != nil {
		return nil, err
	}
	return c, nil
}

func (w *watching) look(ctx context.Context, snap *reader.Snapshot, path string) (*watch.Checkpoint, error) {
	run := w.env.run // a copy: what it learns of files ends with this checkpoint
	run.LearnFiles(snap.Savepoint)
	in := report.Inspected{Location: path, Snapshot: snap, Savepoint: snap.Savepoint}
	var err error
	if in.Summary, err = summary.Of(ctx, snap.Savepoint); err != nil {
		return nil, format.InFile(err, snap.Container.Name)
	}
	looked := !snap.Remote() || w.files
	if !looked {
		in.Unchecked = errNotAsked
	} else if in.Files, err = snap.Files(ctx, in.Summary.Files); err != nil {
		return nil, err
	}
	r := run.NewInspect(in)
	if looked {
		// Flink removes _metadata first: files are not missing from a checkpoint that
		// is being removed.
		if err := snap.Unchanged(ctx); err != nil {
			return nil, err
		}
	}
	c := watch.Of(r, snap.Container.ModTime, w.maxSeries/export.LeastSeries)
	c.Holds = map[string][]string{}
	for _, rule := range w.rules.rules {
		if rule.guard == nil {
			continue
		}
		offenders, err := rule.guard.check(r)
		if err != nil {
			w.unfit(err)
		} else if len(offenders) > 0 {
			c.Holds[rule.name] = offenders
		}
	}
	return c, nil
}

// unfit notes that a rule does not fit the values of a checkpoint: the others go on.
func (w *watching) unfit(err error) {
	w.print(func() error {
		if w.unjudged == nil || w.unjudged.Error() != err.Error() {
			w.unjudged = err
			if !w.once {
				w.env.report(err)
			}
		}
		return nil
	})
}

// unsent notes an event that the webhook did not accept.
func (w *watching) unsent(err error) {
	w.print(func() error {
		if w.once {
			w.notSent = append(w.notSent, err)
		} else {
			w.env.report(err)
		}
		return nil
	})
}

func (w *watching) orphans(ctx context.Context, root string) (watch.Orphans, error) {
	found, err := orphans.Find(ctx, []string{root}, orphans.Options{Reader: w.opts, OlderThan: orphansAge, Now: w.env.Now(), Jobs: w.env.common.jobs})
	if err != nil {
		return watch.Orphans{}, rootHint(err)
	}
	if len(found.Problems) > 0 {
		return watch.Orphans{}, fmt.Errorf("which files are referenced is not known for certain: %w", &found.Problems[0])
	}
	var n watch.Orphans
	for _, f := range found.Removable() {
		n.Files++
		n.Bytes += f.Bytes
	}
	return n, nil
}

// event prints an event, and sends it.
func (w *watching) event(e watch.Event) {
	i := slices.IndexFunc(w.rules.rules, func(r watchRule) bool { return r.name == e.Rule })
	rule := &w.rules.rules[i]
	out := &report.WatchEvent{
		Time: e.Time.UTC(), Rule: e.Rule, Severity: rule.severity, State: report.Resolved, Root: e.Root, Job: e.Job,
		Path: e.Checkpoint.Path, CheckpointID: e.Checkpoint.ID, Condition: rule.condition, For: e.For,
	}
	if e.Firing {
		out.State = report.Firing
	}
	var line bytes.Buffer
	err := report.Print(&line, ui.Term{}, ui.OutputJSONL, out)
	w.print(func() error {
		_, werr := w.env.dataOut().Write(line.Bytes())
		return errors.Join(err, werr)
	})
	if w.notifier != nil && err == nil {
		w.notifier.Send(bytes.TrimSpace(line.Bytes()))
	}
}

// problem prints what could not be done, or that it can be done again.
func (w *watching) problem(p watch.Problem) {
	w.print(func() error {
		if p.Err == nil {
			return w.env.remark("%s can be read again", ui.Quote(p.Root))
		}
		w.env.report(problemError(p))
		return nil
	})
}

// problemError returns the error of a problem, which names where it is.
func problemError(p watch.Problem) error {
	at := cmp.Or(p.Path, p.Root)
	if strings.Contains(p.Err.Error(), at) {
		return p.Err
	}
	return fmt.Errorf("%s: %w", ui.Quote(at), p.Err)
}

// save writes the textfile.
func (w *watching) save() error {
	switch w.textfile {
	case "":
		return nil
	case "-":
		text, err := export.Text(w.collector)
		if err != nil {
			return err
		}
		_, err = w.env.dataOut().Write(text)
		return err
	}
	return export.WriteFile(w.textfile, w.collector)
}

// lookOnce looks once. Problems do not hide rules that hold.
func (w *watching) lookOnce(ctx context.Context) error {
	problems, err := w.watcher.Look(ctx)
	if w.notifier != nil {
		w.notifier.Close(ctx)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(w.written, w.save()); err != nil {
		return err
	}
	var failed several
	for _, p := range problems {
		failed = append(failed, problemError(p))
	}
	if w.unjudged != nil {
		failed = append(failed, w.unjudged)
	}
	var holds []string
	for _, root := range w.watcher.Status() {
		if len(root.Jobs) == 0 && len(problems) == 0 {
			failed = append(failed, format.Errorf(format.ErrMissing, "%s: no checkpoint", ui.Quote(root.Path)))
		}
		for _, j := range root.Jobs {
			holds = append(holds, j.Firing...)
		}
	}
	failed = append(failed, w.notSent...)
	if len(holds) > 0 {
		slices.Sort(holds)
		failed = append(failed, &findings{"holds: " + report.ShortenQuoted(slices.Compact(holds))})
	}
	return failed.err()
}

// stopping is how long events may take to be sent after the end.
const stopping = 2 * time.Second

// serve looks until the context ends, which is a success.
func (w *watching) serve(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	if w.listen != "" {
		server, err := export.Listen(ctx, w.listen, w.collector)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		if err := w.env.remark("metrics at http://%s/metrics", server.Address()); err != nil {
			return err
		}
		g.Go(func() error { return server.Serve(gctx) })
	}
	g.Go(func() error {
		w.watcher.Run(gctx, time.Duration(w.interval), w.looked)
		return nil
	})
	err := g.Wait()
	if w.notifier != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
		defer cancel()
		w.notifier.Close(ending)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// looked writes the textfile after a look. If that fails, it is reported once.
func (w *watching) looked() {
	w.saving.Lock()
	defer w.saving.Unlock()
	text := ""
	if err := w.save(); err != nil {
		if text = err.Error(); text != w.textErr {
			w.print(func() error { w.env.report(fmt.Errorf("--textfile: %w", err)); return nil })
		}
	}
	w.textErr = text
}
