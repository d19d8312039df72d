package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// The exit codes. Scripts depend on them: never change.
const (
	exitOK          = 0
	exitFindings    = 1
	exitFailed      = 2
	exitUsage       = 3
	exitInput       = 4
	exitUnsupported = 5
	exitCancelled   = 130
)

// ExitCodes is the one table of exit codes, shown in every help text and in
// the reference.
var ExitCodes = []struct {
	Code    int
	Meaning string
}{
	{exitOK, "done; for diff, verify and check: no difference, no finding"},
	{exitFindings, "done, and differences or findings exist, --fail-if holds, or the result is partial (what is left out is named)"},
	{exitFailed, "could not do it: I/O, no space, internal error"},
	{exitUsage, "wrong usage; a selector that matches nothing; a target that is refused; a parallelism or policy that cannot be"},
	{exitInput, "input corrupt, truncated, incomplete, not there, or changed while it was read"},
	{exitUnsupported, "a version, a feature, or this kind of input is not supported for this command"},
	{exitCancelled, "cancelled"},
}

func exitTable(width int) string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, c := range ExitCodes {
		entry(&b, width, 2, 7, fmt.Sprintf("%3d", c.Code), c.Meaning)
	}
	return strings.TrimRight(b.String(), "\n")
}

// usageError is wrong usage.
type usageError struct {
	msg, hint string
}

func (e *usageError) Error() string { return e.msg }
func (e *usageError) Hint() string  { return e.hint }

func usagef(format string, args ...any) error {
	return &usageError{msg: fmt.Sprintf(format, args...)}
}

// hintedError is an error and what can be done.
type hintedError struct {
	error
	hint string
}

func (e *hintedError) Unwrap() error { return e.error }
func (e *hintedError) Hint() string  { return e.hint }

// findings ends a command that did its work and found something: the answer is
// on stdout already.
type findings struct{ msg string }

func (e *findings) Error() string { return e.msg }

// several are the errors of a command that was asked for several things and
// went on. The exit code is the one of the first kind that any of them is.
type several []error

func (e several) Error() string   { return errors.Join(e...).Error() }
func (e several) Unwrap() []error { return e }

// err returns the errors, or nil.
func (e several) err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// exitCode maps an error to its code. The first kind that fits decides; what
// the input did comes before what the system said.
func exitCode(err error) int {
	var usage *usageError
	var flag *flagError
	var target *writer.TargetError
	var found *findings
	var parallelism *transform.ParallelismError
	var collision *transform.CollisionError
	var merge *transform.MergeError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		return exitCancelled
	case errors.Is(err, format.ErrChanged), errors.Is(err, storage.ErrChanged):
		return exitInput // before findings, which describe no snapshot that ever existed
	case errors.As(err, &found):
		return exitFindings
	case errors.As(err, &usage), errors.As(err, &flag), errors.As(err, &target), errors.As(err, &parallelism), errors.As(err, &collision), errors.As(err, &merge):
		return exitUsage
	case errors.Is(err, storage.ErrNoSpace):
		return exitFailed
	case format.NoFile(err), errors.Is(err, format.ErrCorrupt), errors.Is(err, format.ErrLimit), errors.Is(err, io.ErrUnexpectedEOF):
		return exitInput
	case errors.Is(err, format.ErrUnsupported), errors.Is(err, storage.ErrUnsupported):
		return exitUnsupported
	case errors.Is(err, fs.ErrNotExist):
		return exitInput
	}
	return exitFailed
}

// hintOf returns what can be done about an error, or "".
func (e *Env) hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) && h.Hint() != "" {
		return e.run.Hide(h.Hint())
	}
	if errors.As(err, new(*transform.TempError)) {
		return "--tmp DIR chooses another directory for temporary files"
	}
	if all := reader.Remedies(err); all != nil {
		advice := e.run.Advice(all)
		if how := report.Setting(err); how != "" {
			advice += " (" + how + ")"
		}
		return advice
	}
	if how := report.Setting(err); how != "" {
		return how
	}
	var limit format.Limit
	if errors.As(err, &limit) {
		return e.run.Hide(limitHint(limit))
	}
	return ""
}

// brokenPipe reports whether the reader closed the pipe, which is not an error of
// the command.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// report prints an error. No other function prints errors.
func (e *Env) report(err error) {
	if all, ok := err.(several); ok {
		for _, err := range all {
			e.report(err)
		}
		return
	}
	code := exitCode(err)
	var found *findings
	if code == exitFindings && errors.As(err, &found) {
		if found.msg != "" && !e.common.quiet && !e.common.output.JSON() {
			_ = e.complain("spt: " + found.msg) // if standard error fails too, nothing is left to write to
		}
		return
	}
	msg, hint := ui.PrintableLines(e.run.Hide(err.Error())), ui.PrintableLines(e.hintOf(err))
	if code == exitCancelled {
		msg, hint = "cancelled", ""
	}
	if e.common.output.JSON() {
		line, jerr := json.Marshal(e.run.NewError(err, msg, hint, code))
		if jerr == nil {
			fmt.Fprintf(e.Stderr, "%s\n", line)
			return
		}
	}
	_ = e.complain(ui.Bad("spt:") + " " + msg)
	if hint != "" {
		_ = e.complain("hint: " + hint)
	}
}
