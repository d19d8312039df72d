package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type verifyOptions struct {
	read   bool
	strict bool
}

func (o *verifyOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.read, "read", false, "read every byte of every file too; Flink's files have no checksums, so this shows only that they can be read")
	fs.BoolVar(&o.strict, "strict", false, "warnings count as findings (exit 1)")
}

// VerifyResult is the answer of verify for one snapshot.
type VerifyResult struct {
	Path        string          `json:"path"`
	Sound       bool            `json:"sound" jsonschema:"description=no finding of severity error"`
	Container   string          `json:"container,omitempty"`
	Streams     int             `json:"streams"`
	Files       int             `json:"files"`
	Chunks      int             `json:"chunks,omitempty" jsonschema:"description=of an .spt, each checked against its checksum"`
	BytesRead   int64           `json:"bytes_read,omitempty"`
	Errors      int             `json:"errors"`
	Warnings    int             `json:"warnings"`
	Notes       int             `json:"notes"`
	Relocatable bool            `json:"relocatable" jsonschema:"description=can be moved as a folder: names no absolute place"`
	Absolute    int             `json:"absolute_handles,omitempty"`
	AbsoluteIn  []string        `json:"absolute_examples,omitempty" jsonschema:"description=places of the first absolute handles and what they name"`
	Findings    []VerifyFinding `json:"findings"`
	Problem     string          `json:"problem,omitempty" jsonschema:"description=why it could not be verified at all"`

	single bool // it is one file
}

// VerifyFinding is one finding.
type VerifyFinding struct {
	Severity string `json:"severity" jsonschema:"enum=error,enum=warning,enum=note"`
	Code     string `json:"code"`
	Place    string `json:"place,omitempty"`
	File     string `json:"file,omitempty"`
	Message  string `json:"message"`
	Found    string `json:"found,omitempty" jsonschema:"description=of a file that is not where it is said to be: where it is"`
}

func newVerifyCommand(env *Env) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify SP...",
		Short: "Is every byte there that a snapshot promises?",
		Long: `Checks that every file is there, as long as promised and to be read, that
offsets and key groups lie inside and in order, and every checksum of an .spt
file; and says whether the snapshot can be moved as a folder. All findings are
reported, not only the first.

It does not look into state: whether the bytes of an element are what its
serializer wrote is not checked.`,
		Example: `  spt verify sp-001
  spt verify /data/flink/orders/chk-* -o jsonl`,
		Args: between(1, -1, "at least one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error { return runVerify(cmd.Context(), o, env, args) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runVerify(ctx context.Context, o verifyOptions, env *Env, locations []string) error {
	var all []VerifyResult
	var failed several
	found := 0
	for _, location := range locations {
		r, err := verifyOne(ctx, o, env, location)
		if err != nil {
			if ctx.Err() != nil || len(locations) == 1 {
				return err
			}
			// Several were asked for: say it of this one and go on.
			r.Problem = env.hide(err.Error())
			failed = append(failed, err)
		}
		if r.Errors > 0 || o.strict && r.Warnings > 0 {
			found++
		}
		if env.common.output == ui.OutputTable {
			if err := verifyText(env, env.Stdout, r); err != nil {
				return err
			}
			continue
		}
		all = append(all, r)
	}
	if err := verifyData(env, all); err != nil {
		return err
	}
	if len(failed) > 0 {
		return failed.err()
	}
	if found > 0 {
		return &findings{}
	}
	return nil
}

const absoluteExamples = 2

func verifyOne(ctx context.Context, o verifyOptions, env *Env, location string) (r VerifyResult, err error) {
	r = VerifyResult{Path: location, Findings: []VerifyFinding{}}
	snap, err := env.open(ctx, location)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	r.Container = snap.Container.Describe()
	opts := reader.VerifyOptions{Read: o.read}
	stop := func() {}
	if o.read || snap.Container.Family == reader.SPT {
		stop = env.reading("verifying", allState(snap))
		opts.Progress = env.hook().add
	} else { // of each file it reads one byte
		p := env.progress()
		p.StartCount(countFiles(snap.Savepoint), "checking files")
		stop, opts.Progress = p.Stop, p.Add
	}
	v, err := snap.Verify(ctx, opts, func(f reader.Finding) {
		r.Findings = append(r.Findings, VerifyFinding{string(f.Severity), f.Code, env.hide(f.Place), env.text(f.File), env.hide(f.Message), env.hide(f.Found)})
	})
	stop()
	r.Streams, r.Files, r.Chunks, r.BytesRead = v.Streams, v.Files, v.Chunks, v.BytesRead
	r.Errors, r.Warnings, r.Notes = v.Faults, v.Warnings, v.Notes
	r.Relocatable, r.Absolute = v.Relocatable(), v.Absolute
	r.single = snap.Container.Family == reader.SPT
	r.Sound = r.Errors == 0
	if err != nil {
		return r, err
	}
	reader.AbsoluteHandles(snap.Savepoint, func(p format.Place, path string) {
		if len(r.AbsoluteIn) < absoluteExamples {
			r.AbsoluteIn = append(r.AbsoluteIn, fmt.Sprintf("%s: %s", p, ui.Quote(env.text(path))))
		}
	})
	return r, nil
}

// countFiles is how many files a snapshot refers to.
func countFiles(sp *format.Savepoint) int64 {
	files := map[string]bool{}
	_ = sp.EachStream(func(_ format.Place, st format.Stream) error {
		if path, _, ok := format.Reference(st); ok {
			files[format.CanonicalURI(path.String())] = true
		}
		return nil
	})
	return int64(len(files))
}

func verifyData(env *Env, all []VerifyResult) error {
	switch env.common.output {
	case ui.OutputJSON:
		return ui.JSON(env.Stdout, all)
	case ui.OutputJSONL:
		l := ui.NewJSONLines(env.Stdout)
		for i := range all {
			if err := l.Encode(&all[i]); err != nil {
				return err
			}
		}
		return l.Flush()
	case ui.OutputCSV:
		c := ui.NewCSV(env.Stdout, "path", "severity", "code", "place", "file", "message")
		for _, r := range all {
			for _, f := range r.Findings {
				if err := c.Row(r.Path, f.Severity, f.Code, f.Place, f.File, f.Message); err != nil {
					return err
				}
			}
		}
		return c.Flush()
	}
	return nil
}

// notesShown is how many notes of one kind a person is shown.
const notesShown = 2

func verifyText(env *Env, w io.Writer, r VerifyResult) error {
	style := env.term().Style()
	var b strings.Builder
	if r.Problem != "" {
		fmt.Fprintf(&b, "%s: %s %s\n", ui.Quote(r.Path), style.Bad("not verified:"), printableLines(r.Problem))
		_, err := io.WriteString(w, b.String())
		return err
	}
	verdict := style.Proved("sound")
	switch {
	case r.Errors > 0:
		verdict = style.Bad(ui.Plural(int64(r.Errors), "error"))
	case r.Warnings > 0:
		verdict = style.Look("sound, with " + ui.Plural(int64(r.Warnings), "warning"))
	}
	fmt.Fprintf(&b, "%s: %s · %s · %s, %s", ui.Quote(r.Path), verdict, r.Container, ui.Plural(int64(r.Streams), "handle"), ui.Plural(int64(r.Files), "file"))
	if r.Chunks > 0 {
		fmt.Fprintf(&b, ", %s with their checksums", ui.Plural(int64(r.Chunks), "chunk"))
	}
	if r.BytesRead > 0 {
		fmt.Fprintf(&b, ", %s read", ui.Bytes(r.BytesRead))
	}
	b.WriteByte('\n')
	notes := map[string]int{}
	var moved []WriteRewrite
	for _, f := range r.Findings {
		if f.Found != "" {
			moved = append(moved, WriteRewrite{f.File, f.Found})
			continue
		}
		mark := style.Dim("note")
		switch reader.Severity(f.Severity) {
		case reader.Fault:
			mark = style.Bad("error")
		case reader.Warning:
			mark = style.Look("warning")
		default:
			if notes[f.Code]++; notes[f.Code] > notesShown {
				continue
			}
		}
		place := f.Place
		if place != "" {
			place += ": "
		}
		fmt.Fprintf(&b, "  %s  %s%s\n", mark, printableLines(place), printableLines(f.Message))
		if f.File != "" && !strings.Contains(f.Message, f.File) {
			fmt.Fprintf(&b, "        %s\n", ui.Quote(f.File))
		}
	}
	for _, code := range slices.Sorted(maps.Keys(notes)) {
		if more := notes[code] - notesShown; more > 0 {
			fmt.Fprintf(&b, "  %s  and %d more of this kind (%s); -o json has them all\n", style.Dim("note"), more, code)
		}
	}
	for _, m := range movedFolders(moved) {
		fmt.Fprintf(&b, "  %s  %s found in %s\n        not in %s, where the references point\n", style.Dim("note"), ui.Plural(int64(m.files), "file"), ui.Quote(m.to), ui.Quote(m.from))
	}
	if r.Relocatable {
		what := "a folder"
		if r.single {
			what = "one file"
		}
		fmt.Fprintf(&b, "It names no absolute place: it can be moved as %s.\n", what)
	} else {
		verb := "name absolute places, such as"
		if r.Absolute == 1 {
			verb = "names an absolute place"
		}
		fmt.Fprintf(&b, "It cannot simply be moved: %s %s\n", ui.Plural(int64(r.Absolute), "handle"), verb)
		for _, p := range r.AbsoluteIn {
			fmt.Fprintf(&b, "  %s\n", printableLines(p))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
