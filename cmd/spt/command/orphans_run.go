package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform/orphans"
)

func runOrphans(ctx context.Context, o orphansOptions, env *Env, roots []string) error {
	found, err := orphans.Find(ctx, roots, env.orphansOptions(o.also, time.Duration(o.older)))
	if err != nil {
		return rootHint(err)
	}
	answer := env.run.NewOrphans(found, report.OrphanOptions{
		Roots: roots, Also: o.also, By: o.by, OlderThan: time.Duration(o.older), Older: o.older.String(),
		DryRun: !o.removes(), Command: o.command(roots), Now: env.Now(),
	})
	var archive *orphans.Archive
	if o.archive != "" {
		if archive, err = found.NewArchive(ctx, o.archive); err != nil {
			return rootHint(err)
		}
	}
	files := found.Removable()
	if !o.removes() || len(found.Problems) > 0 || len(files) == 0 {
		return o.finish(env, answer, found.Problems, nil)
	}
	if !o.yes {
		if ok, err := env.confirm(answer.Question(o.archive)); err != nil || !ok {
			return err
		}
	}
	if err := found.Unchanged(ctx); err != nil {
		p, ok := errors.AsType[*orphans.Problem](err)
		if !ok {
			return err
		}
		answer.Refuse(*p)
		return o.finish(env, answer, []orphans.Problem{*p}, nil)
	}
	var failed several
	stream := env.common.output == ui.OutputTable || env.common.output == ui.OutputJSONL
	err = found.Remove(ctx, files, archive, func(f *orphans.File, err error) error {
		to := ""
		if archive != nil {
			to = archive.Path(f)
		}
		if err != nil {
			failed = append(failed, err)
		}
		if line := answer.Done(f.Index, to, err, env.hintOf(err)); stream {
			return env.answer(line)
		}
		return nil
	})
	return o.finish(env, answer, nil, append(failed, err))
}

// finish prints the answer and returns how the command ends.
func (o *orphansOptions) finish(env *Env, answer *report.Orphans, refused []orphans.Problem, failed several) error {
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if err := env.answer(answer); err != nil {
		return err
	}
	switch {
	case len(refused) > 0 && o.removes():
		return &refusedError{refused}
	case len(refused) > 0:
		return &findings{}
	}
	return failed.err()
}

// command is the command line that deletes what was reported.
func (o *orphansOptions) command(roots []string) string {
	text := "spt orphans --delete"
	if o.older != age(orphansAge) {
		text += " --older-than " + o.older.String()
	}
	for _, dir := range o.also {
		text += " --also " + shell.Quote(dir)
	}
	for _, root := range roots {
		text += " " + shell.Quote(root)
	}
	return text
}

// refusedError is why nothing was removed: the reasons are in the answer.
type refusedError struct{ reasons []orphans.Problem }

func (e *refusedError) Error() string {
	return "nothing was removed: what is referenced is not known for certain"
}

// Is makes it an error of the input.
func (e *refusedError) Is(target error) bool { return target == format.ErrNotChecked }

// Hint says what to do about the first kind of reason.
func (e *refusedError) Hint() string {
	switch e.reasons[0].Kind {
	case orphans.Unread, orphans.Unlisted:
		return "repair, or move away, what cannot be read: files that only it refers to would be lost"
	case orphans.Outside:
		return "--also DIR reads more directories, --map OLD=NEW says where files are now"
	case orphans.Changed:
		return "run it again, best while no job writes there"
	}
	return ""
}

// rootHint makes a directory that cannot be searched wrong usage.
func rootHint(err error) error {
	root, ok := errors.AsType[*orphans.RootError](err)
	if !ok {
		return err
	}
	hint := ""
	if root.Instead != "" {
		hint = "give " + ui.Quote(root.Instead)
	}
	return &usageError{ui.Printable(root.Error()), hint}
}

// orphansOptions are the options of package orphans; they show how many snapshots were
// opened.
func (e *Env) orphansOptions(also []string, older time.Duration) orphans.Options {
	p := e.progress()
	var mu sync.Mutex
	done := 0
	return orphans.Options{Reader: e.readerOptions(), Also: also, OlderThan: older, Now: e.Now(), Jobs: e.common.jobs, Opened: func(total int) {
		mu.Lock()
		defer mu.Unlock()
		if done == 0 {
			p.StartCount(int64(total), "opening snapshots")
		}
		p.Add(1)
		if done++; done == total {
			p.Stop()
		}
	}}
}

// interactive reports whether there is somebody to ask.
func (e *Env) interactive() bool {
	return ui.Detect(e.stdinFile, e.common.color, e.Getenv).IsTTY && ui.Detect(e.stderrFile, e.common.color, e.Getenv).IsTTY
}

// confirm asks a question on stderr.
func (e *Env) confirm(question string) (bool, error) {
	if _, err := io.WriteString(e.Stderr, question); err != nil {
		return false, err
	}
	line, err := bufio.NewReader(e.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes", nil
}
