package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/writer"
)

// examine refuses to pass on what verify calls an error of the state, except with
// --damaged keep: then it returns the errors. The plan checks files.
func (o *writeOptions) examine(ctx context.Context, env *Env, snap *reader.Snapshot, in string) ([]report.Finding, error) {
	var rows []report.Finding
	err := snap.Examine(ctx, snap.Operators, reader.VerifyOptions{DescriptionOnly: o.bare, ReadErrors: true}, func(f finding.Finding) {
		if f.Severity == finding.Error {
			rows = append(rows, env.finding(f))
		}
	})
	if err != nil {
		return nil, inContainer(err, snap)
	}
	if len(rows) == 0 || o.damaged == "keep" {
		return rows, nil
	}
	return nil, &damagedError{in, rows}
}

// damagedError is state that is not passed on. It is a format.ErrCorrupt.
type damagedError struct {
	in   string
	rows []report.Finding
}

func (e *damagedError) Error() string {
	const most = 3
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s in its state, which would be passed on; nothing was written:", ui.Quote(e.in), ui.Plural(int64(len(e.rows)), "error"))
	for _, r := range e.rows[:min(len(e.rows), most)] {
		fmt.Fprintf(&b, "\n  %s: %s", r.Place, r.Message)
	}
	if n := len(e.rows) - most; n > 0 {
		fmt.Fprintf(&b, "\n  … and %d more", n)
	}
	return b.String()
}

// Unwrap makes it a format.ErrCorrupt.
func (e *damagedError) Unwrap() error { return format.ErrCorrupt }

// Hint says what can be done.
func (e *damagedError) Hint() string {
	return "--damaged keep passes them on and names them; all of them:  spt verify " + shell.Quote(e.in)
}

// incomplete is the finding that something is wrong with what was written.
func incomplete(plan *writer.Plan, r *report.Write) error {
	if n := len(r.Damaged); n > 0 {
		return &findings{fmt.Sprintf("the result is not sound: %s passed on", ui.Plural(int64(n), "error"))}
	}
	if len(plan.Missing) > 0 {
		return &findings{fmt.Sprintf("the result is not complete: %s kept without their files", ui.Plural(int64(len(plan.Missing)), "reference"))}
	}
	return nil
}

// inContainer names the snapshot as the file of an error that has an offset or
// path in it and names no other file; errors of the target or the system have neither.
func inContainer(err error, snap *reader.Snapshot) error {
	var at *format.Error
	if errors.As(err, &at) && at.File == "" {
		return format.InFile(err, snap.Container.Name)
	}
	return err
}
