package command

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/writer"
	"github.com/spf13/cobra"
)

// Env is where a command reads, writes and looks: the only way to the outside.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	Stores         storage.Resolver

	// The files behind Stdout and Stderr, nil where they are none: for what
	// only a terminal can do.
	stdoutFile, stderrFile *os.File

	command   string      // that runs
	input     string      // IN of a command that writes, SP of check; else ""
	wrapped   *ui.Wrapper // Stdout, where that is a terminal; nil: it is not
	common    commonFlags
	maps      []reader.Mapping
	follow    []string
	mapUse    *mapUse           // of --map
	uids      map[string]string // id in hex -> uid, from --names
	earlier   []*earlierEdit    // of the recipe that is applied
	files     []string          // see learnFiles
	hideFiles *strings.Replacer // the same
	sides     sideFiles
	helpErr   error     // of printing help, which cobra cannot return
	reads     *readHook // see reading
}

// OSEnv is the environment of the process.
func OSEnv() *Env {
	return &Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, stdoutFile: os.Stdout, stderrFile: os.Stderr,
		Getenv: os.Getenv, Now: time.Now,
		Stores: route.New(local.New()),
	}
}

// Main runs a command line and returns its exit code.
func Main(ctx context.Context, args []string, env *Env) int {
	root := New(env)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		registerCompletions(env, root)
	}
	root.SetArgs(args)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if ferr := env.unwrap(); err == nil {
		err = ferr
	}
	if err == nil {
		err = env.helpErr
	}
	if rerr := env.unusedMaps(exitCode(err)); err == nil {
		err = rerr
	}
	if err == nil || brokenPipe(err) {
		return exitOK
	}
	var aside *writer.AsideError
	if ctx.Err() != nil && !errors.As(err, &aside) { // that has to be told
		err = context.Canceled
	}
	var flagErr *flagError
	if errors.As(err, &flagErr) {
		// The flags may not have been read to the end: find out whether JSON
		// was asked for.
		env.common.output = outputOf(args)
	}
	env.report(err)
	return exitCode(err)
}

// wrap breaks lines that are wider than the terminal that the answer goes to, if
// it is one for people.
func (e *Env) wrap() {
	if term := e.term(); term.IsTTY && e.common.output == ui.OutputTable {
		e.wrapped = ui.NewWrapper(e.Stdout, term.Width)
		e.Stdout = e.wrapped
	}
}

// unwrap writes what wrap holds back.
func (e *Env) unwrap() error {
	if e.wrapped == nil {
		return nil
	}
	return e.wrapped.Flush()
}

// complain writes lines to stderr, broken where that is a terminal.
func (e *Env) complain(text string) error {
	if term := ui.Detect(e.stderrFile, e.common.color, e.Getenv); term.IsTTY {
		w := ui.NewWrapper(e.Stderr, term.Width)
		if _, err := io.WriteString(w, text+"\n"); err != nil {
			return err
		}
		return w.Flush()
	}
	_, err := io.WriteString(e.Stderr, text+"\n")
	return err
}

// term is what is known of the place where the answer goes.
func (e *Env) term() ui.Term { return ui.Detect(e.stdoutFile, e.common.color, e.Getenv) }

// open opens a snapshot with the options of the command line.
func (e *Env) open(ctx context.Context, location string) (*reader.Snapshot, error) {
	snap, err := reader.Open(ctx, location, new(e.readerOptions()))
	if err != nil {
		return nil, e.suggestPath(ctx, location, err)
	}
	e.learnFiles(snap.Savepoint)
	return snap, nil
}

func (e *Env) readerOptions() reader.Options {
	o := reader.Options{Stores: e.Stores, Map: e.maps, Follow: e.follow, Limits: e.common.limits.Limits, Progress: e.hook().add}
	if e.mapUse != nil {
		o.Mapped = e.mapUse.note
	}
	if path := e.Getenv("SPT_PATH"); path != "" {
		o.Path = splitList(path)
	}
	return o
}

func splitList(s string) []string {
	var out []string
	for _, p := range splitPath(s) {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}
