package command

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/writer"
)

// Env is where a command reads, writes and looks: the only way to the outside.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Now            func() time.Time
	Stores         storage.Resolver

	// Stdin, Stdout and Stderr if they are files, else nil: to detect terminals.
	stdinFile, stdoutFile, stderrFile *os.File

	lines   *ui.LineWriter // Stdout, where the answer is for a person; else nil
	piped   io.Writer      // Stdout without lines
	common  commonFlags
	s3      s3Flags
	maps    []format.Mapping
	follow  []string
	mapUse  *mapUse // of --map
	run     report.Run
	earlier []*earlierEdit // of the recipe that is applied
	sides   sideFiles
	helpErr error       // of printing help, which cobra cannot return
	reads   *readHook   // see reading
	types   []givenType // of --type and --types
	reach   string      // see storeArguments
}

// OSEnv is the environment of the process.
func OSEnv() *Env {
	env := &Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, stdinFile: os.Stdin, stdoutFile: os.Stdout, stderrFile: os.Stderr,
		Getenv: os.Getenv, Now: time.Now,
	}
	env.Stores = newStores(env)
	return env
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
	if ctx.Err() != nil && !errors.As(err, &aside) { // which must be reported
		err = context.Canceled
	}
	if len(env.types) > 0 && errors.Is(err, format.ErrCorrupt) {
		err = &hintedError{err, "is the type of --type right? spt schema shows what is recorded, and cat --raw the bytes"}
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

// wrap makes Stdout fit for text, if the answer is for a person.
func (e *Env) wrap() {
	if e.common.output == ui.OutputTable {
		e.piped = e.Stdout
		e.lines = ui.NewLineWriter(e.Stdout, e.term())
		e.Stdout = e.lines
	}
}

// dataOut is where a command writes data although no -o was given: a pipe gets it as it
// is, and only a terminal gets lines as wrap makes them.
func (e *Env) dataOut() io.Writer {
	if e.piped != nil && !e.term().IsTTY {
		return e.piped
	}
	return e.Stdout
}

// unwrap writes what wrap holds back.
func (e *Env) unwrap() error {
	if e.lines == nil {
		return nil
	}
	return e.lines.Flush()
}

// complain writes lines to stderr.
func (e *Env) complain(text string) error {
	term := ui.Detect(e.stderrFile, e.common.color, e.Getenv)
	term.Repeat = e.reach
	w := ui.NewLineWriter(e.Stderr, term)
	if _, err := io.WriteString(w, text+"\n"); err != nil {
		return err
	}
	return w.Flush()
}

// term describes where the answer is written.
func (e *Env) term() ui.Term { return ui.Detect(e.stdoutFile, e.common.color, e.Getenv) }

// open opens a snapshot with the options of the command line.
func (e *Env) open(ctx context.Context, location string) (*reader.Snapshot, error) {
	snap, err := reader.Open(ctx, location, new(e.readerOptions()))
	if err != nil {
		return nil, e.suggestPath(ctx, location, err)
	}
	e.run.LearnFiles(snap.Savepoint)
	if err := e.checkTypes(ctx, snap); err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	return snap, nil
}

func (e *Env) readerOptions() reader.Options {
	o := reader.Options{Stores: e.Stores, Map: e.maps, Follow: e.follow, Limits: e.common.limits.Limits, Progress: e.hook().add}
	if len(e.types) > 0 {
		o.Types = e.typeOf
	}
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
