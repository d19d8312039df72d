package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/writer"
)

func TestExitCode(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("outer: %w", err) }
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"nil", nil, 0},
		{"findings", &findings{}, 1},
		{"unknown", errors.New("something"), 2},
		{"no space", &storage.Error{Op: "write", Name: "x", Err: storage.ErrNoSpace}, 2},
		{"permission", fs.ErrPermission, 2},
		{"usage", usagef("bad"), 3},
		{"flag", &flagError{usageError{msg: "bad"}}, 3},
		{"target", &writer.TargetError{Target: "out", Why: "it exists"}, 3},
		{"missing", format.ErrMissing, 4},
		{"corrupt", &format.Error{File: "f", Err: format.ErrCorrupt}, 4},
		{"limit", format.ErrLimit, 4},
		{"cut", io.ErrUnexpectedEOF, 4},
		{"changed", format.ErrChanged, 4},
		{"changed in storage", storage.ErrChanged, 4},
		{"not there", fs.ErrNotExist, 4},
		{"unsupported", format.ErrUnsupported, 5},
		{"storage cannot", storage.ErrUnsupported, 5},
		{"cancelled", context.Canceled, 130},
		// Where several kinds come together.
		{"findings of a snapshot that changed", errors.Join(&findings{}, storage.ErrChanged), 4},
		{"cancelled while it changed", errors.Join(context.Canceled, format.ErrChanged), 130},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%s: %d, not %d", tt.name, got, tt.want)
		}
		if tt.err != nil {
			if got := exitCode(wrap(tt.err)); got != tt.want {
				t.Errorf("%s, wrapped: %d, not %d", tt.name, got, tt.want)
			}
		}
	}
}

// TestExitTableIsWhole: every code that an error can have stands in the table.
func TestExitTableIsWhole(t *testing.T) {
	var codes []int
	for _, e := range ExitCodes {
		codes = append(codes, e.Code)
	}
	if fmt.Sprint(codes) != "[0 1 2 3 4 5 130]" {
		t.Errorf("%v", codes)
	}
}

func TestReport(t *testing.T) {
	const evil = "a\x1b[2Jb\u202ec"
	reported := func(err error, change func(*Env)) string {
		var b bytes.Buffer
		env := &Env{Stderr: &b, Getenv: func(string) string { return "" }}
		if change != nil {
			change(env)
		}
		env.report(err)
		return b.String()
	}
	jsonOutput := func(e *Env) { e.common.output = ui.OutputJSON }
	quiet := func(e *Env) { e.common.quiet = true }

	if got := reported(&findings{"2 of 3"}, nil); got != "spt: 2 of 3\n" {
		t.Errorf("%q", got)
	}
	for _, change := range []func(*Env){jsonOutput, quiet} {
		if got := reported(&findings{"2 of 3"}, change); got != "" {
			t.Errorf("findings are on stdout already: %q", got)
		}
	}
	if got := reported(errors.Join(&findings{"2 of 3"}, storage.ErrChanged), nil); !strings.Contains(got, "changed while it was read") {
		t.Errorf("an input that changed was not said: %q", got)
	}
	if got := reported(fmt.Errorf("reading: %w", context.Canceled), nil); got != "spt: cancelled\n" {
		t.Errorf("%q", got)
	}
	got := reported(&usageError{"no " + evil, "not " + evil}, nil)
	if strings.ContainsAny(got, "\x1b\u202e") || strings.Count(got, "\n") != 2 || !strings.Contains(got, "\nhint: not a") {
		t.Errorf("%q", got)
	}
	got = reported(&format.Error{File: "f", Offset: 12, Path: "operator[1]", Err: format.ErrCorrupt}, jsonOutput)
	var e report.Error
	if err := json.Unmarshal([]byte(got), &e); err != nil || e.File != "f" || e.Offset == nil || *e.Offset != 12 || e.Path != "operator[1]" || e.Code != 4 {
		t.Errorf("%q, %v", got, err)
	}
	if got := reported(&advised{finding.Remedy{Words: "it is there", Action: finding.Open, Locations: []string{"a/chk-7"}}}, func(e *Env) { e.run.Command = "verify" }); !strings.Contains(got, "it is there:  spt verify a/chk-7\n") {
		t.Errorf("%q", got)
	}
}

// TestBrokenPipe: whoever read the answer has gone, and that is no failure.
func TestBrokenPipe(t *testing.T) {
	env := &Env{Stdout: failing{syscall.EPIPE}, Stderr: io.Discard, Getenv: func(string) string { return "" }}
	if code := Main(t.Context(), []string{"version"}, env); code != 0 {
		t.Errorf("exit %d", code)
	}
	env = &Env{Stdout: failing{syscall.ENOSPC}, Stderr: io.Discard, Getenv: func(string) string { return "" }}
	if code := Main(t.Context(), []string{"version"}, env); code != 2 {
		t.Errorf("stdout is full: exit %d", code)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// advised is an error with a remedy.
type advised struct{ finding.Remedy }

func (e *advised) Error() string              { return "x" }
func (e *advised) Remedies() []finding.Remedy { return []finding.Remedy{e.Remedy} }
