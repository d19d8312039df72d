package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/shell"
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
	fs.BoolVar(&o.read, "read", false, "read every byte of every file, and decode every element of operator state; Flink's files have no checksums")
	fs.BoolVar(&o.strict, "strict", false, "treat warnings as findings (exit 1)")
}

// VerifyResult is the answer of verify for one snapshot.
type VerifyResult struct {
	Path        string       `json:"path"`
	Sound       bool         `json:"sound" jsonschema:"description=no finding of severity error"`
	Container   string       `json:"container,omitempty"`
	Streams     int          `json:"streams"`
	Files       int          `json:"files"`
	Chunks      int          `json:"chunks,omitempty" jsonschema:"description=of an .spt, each checked against its checksum"`
	BytesRead   int64        `json:"bytes_read,omitempty"`
	Errors      int          `json:"errors"`
	Warnings    int          `json:"warnings"`
	Notes       int          `json:"notes"`
	Relocatable bool         `json:"relocatable" jsonschema:"description=can be moved as a folder: names no absolute place, and no file of a relative reference was found elsewhere"`
	Absolute    int          `json:"absolute_handles,omitempty"`
	AbsoluteIn  []string     `json:"absolute_examples,omitempty" jsonschema:"description=places of the first absolute handles and what they name"`
	Apart       int          `json:"relative_files_elsewhere,omitempty" jsonschema:"description=files of relative references that --map leads to: they are not next to _metadata"`
	NotChecked  int          `json:"not_checked_files,omitempty" jsonschema:"description=files that nobody could look for, such as those in a store that is not supported here"`
	Outside     int          `json:"outside_files,omitempty" jsonschema:"description=files that are not read because of where they are"`
	Elsewhere   int          `json:"elsewhere_files,omitempty" jsonschema:"description=files that are not at their references, and were found below the folder of the snapshot or its job"`
	Elements    int64        `json:"elements_read,omitempty" jsonschema:"description=with --read: elements of operator and native keyed state"`
	Findings    []FindingRow `json:"findings"`
	Problem     string       `json:"problem,omitempty" jsonschema:"description=why it could not be verified at all"`

	single bool         // it is one file
	shown  []FindingRow // findings for a person
}

func newVerifyCommand(env *Env) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify SP...",
		Short: "Check that every byte a snapshot refers to is there",
		Long: `Checks that every file exists, has the expected length and can be read; that
offsets and key groups are inside their streams and in order; that the first
bytes of each stream of state describe what _metadata says of it; and every
checksum of an .spt file. Reports whether the snapshot can be moved as a folder.
All findings are reported, not only the first.

With --read, every element of operator state is also decoded to its exact end.
Entries of Flink's keyed state are not decoded.

It checks integrity, not whether a job would restore: spt check does that.
Commands that write a snapshot refuse what is an error here (--damaged).`,
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
	r = VerifyResult{Path: location, Findings: []FindingRow{}}
	snap, err := env.open(ctx, location)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	r.Container = snap.Container.Describe()
	opts := reader.VerifyOptions{Read: o.read, Jobs: env.common.jobs}
	var stop func()
	if o.read || snap.Container.Family == reader.SPT {
		stop = env.reading("verifying", allState(snap))
		opts.Progress = env.hook().add
	} else { // of each file it reads one byte
		p := env.progress()
		p.StartCount(countFiles(snap.Savepoint), "checking files")
		stop, opts.Progress = p.Stop, p.Add
	}
	var all []finding.Finding
	v, err := snap.Verify(ctx, opts, func(f reader.Finding) {
		r.Findings = append(r.Findings, env.findingRow(f))
		all = append(all, f)
	})
	stop()
	r.Streams, r.Files, r.Chunks, r.BytesRead = v.Streams, v.Files, v.Chunks, v.BytesRead
	r.Errors, r.Warnings, r.Notes = v.Faults, v.Warnings, v.Notes
	r.NotChecked, r.Outside, r.Elsewhere, r.Elements = v.NotChecked, v.Outside, v.Elsewhere, v.Elements
	r.Relocatable, r.Absolute = v.Relocatable(), v.Absolute
	r.Apart = v.Apart
	r.single = snap.Container.Family == reader.SPT
	r.Sound = r.Errors == 0
	if err != nil {
		return r, err
	}
	if env.common.output == ui.OutputTable {
		if r.shown, err = byFolder(ctx, env, snap, location, all); err != nil {
			return r, err
		}
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

func verifyText(env *Env, w io.Writer, r VerifyResult) error {
	term := env.term()
	style := term.Style()
	var b strings.Builder
	if r.Problem != "" {
		fmt.Fprintf(&b, "%s: %s %s\n", ui.Quote(r.Path), style.Bad("not verified:"), printableLines(r.Problem))
		_, err := io.WriteString(w, b.String())
		return err
	}
	verdict := style.Proved("sound")
	switch unread := r.NotChecked + r.Outside; {
	case r.Errors > 0:
		verdict = style.Bad(ui.Plural(int64(r.Errors), "error"))
	case unread > 0:
		verdict = style.Look(fmt.Sprintf("sound as far as it was read, %s not checked", ui.Plural(int64(unread), "file")))
	case r.Warnings > 0:
		verdict = style.Look("sound, with " + ui.Plural(int64(r.Warnings), "warning"))
	case r.Elsewhere > 0:
		verdict = style.Look(fmt.Sprintf("sound, but %s not at the reference", ui.Plural(int64(r.Elsewhere), "file")))
	}
	fmt.Fprintf(&b, "%s: %s · %s · %s, %s", ui.Quote(r.Path), verdict, r.Container, ui.Plural(int64(r.Streams), "handle"), ui.Plural(int64(r.Files), "file"))
	if r.Chunks > 0 {
		fmt.Fprintf(&b, ", %s with their checksums", ui.Plural(int64(r.Chunks), "chunk"))
	}
	if r.BytesRead > 0 {
		fmt.Fprintf(&b, ", %s read", ui.Bytes(r.BytesRead))
	}
	if r.Elements > 0 {
		fmt.Fprintf(&b, ", %s decoded", ui.Plural(r.Elements, "element"))
	}
	b.WriteByte('\n')
	appendFindings(&b, term, r.shown)
	verifyMoving(&b, &r)
	fmt.Fprintf(&b, "Integrity only. Whether Flink would restore it from where it is:  spt check %s\n", shell.Quote(r.Path))
	_, err := io.WriteString(w, b.String())
	return err
}

// verifyMoving says whether the snapshot can be moved.
func verifyMoving(b *strings.Builder, r *VerifyResult) {
	missing := slices.ContainsFunc(r.Findings, func(f FindingRow) bool {
		return f.Code == "file-missing" || f.Code == "claimed-native" || f.Code == "path"
	})
	switch {
	case r.Relocatable && missing:
		// Where files are missing it cannot be moved as it is: the findings say what to do.
	case r.Relocatable && r.single:
		b.WriteString("It refers to no absolute location: it can be moved as one file.\n")
	case r.Relocatable:
		b.WriteString("It refers to no absolute location: it can be moved as a folder.\n")
	case r.Absolute == 0:
		verb := "are"
		if r.Apart == 1 {
			verb = "is"
		}
		fmt.Fprintf(b, "It cannot be moved as it is: %s of relative references %s not next to _metadata. A copy that can be moved:  spt convert\n", ui.Plural(int64(r.Apart), "file"), verb)
	default:
		verb := "refer to absolute locations, such as"
		if r.Absolute == 1 {
			verb = "refers to an absolute location"
		}
		fmt.Fprintf(b, "It cannot be moved as it is: %s %s\n", ui.Plural(int64(r.Absolute), "handle"), verb)
		for _, p := range r.AbsoluteIn {
			fmt.Fprintf(b, "  %s\n", printableLines(p))
		}
	}
}
