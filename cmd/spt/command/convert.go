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
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
	"github.com/savepoint-tools/spt/writer"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// writeOptions are those of every command that writes a snapshot.
type writeOptions struct {
	files          string
	missing        string
	damaged        string
	keepReferences bool
	inline         ui.Size
	compression    string
	level          int
	overwrite      bool
	dryRun         bool
	readBack       bool

	bare  bool           // only references are written: their files may be missing
	given *pflag.FlagSet // 0 that was given is not 0 for want of a flag
	opts  writer.Options
	note  func(*WriteResult) // what a command adds to the answer, or nil
}

func (o *writeOptions) addFlags(fs *pflag.FlagSet) {
	o.given = fs
	fs.StringVar(&o.files, "files", "copy", "`copy|link|reference`: how state files get into a Flink directory")
	fs.StringVar(&o.missing, "missing", "refuse", "`refuse|keep`: what to do if state files cannot be read; keep writes only their references")
	fs.StringVar(&o.damaged, "damaged", "refuse", "`refuse|keep`: what to do with state that spt verify calls an error; keep passes it on, names it and exits 1")
	fs.BoolVar(&o.keepReferences, "keep-references", false, "keep every reference, and so the same _metadata; files with absolute references are not written")
	fs.Var(&o.inline, "inline-threshold", "move inline state larger than `SIZE` out of _metadata into files; 0: all (default: none)")
	fs.StringVar(&o.compression, "compression", "zstd", "`zstd|s2|none`: compression of an .spt file")
	fs.IntVar(&o.level, "compression-level", 0, "zstd level `N`, 1 (fastest) to 4 (smallest)")
	fs.BoolVar(&o.overwrite, "overwrite", false, "replace OUT if it is a snapshot")
	fs.BoolVar(&o.dryRun, "dry-run", false, "report what would be done, and check OUT and the free space")
	fs.BoolVar(&o.readBack, "read-back", false, "read everything again before OUT becomes visible")
}

func (o *writeOptions) validate(env *Env) error {
	files, err := writer.ParseFiles(o.files)
	if err != nil {
		return usagef("--files: %v", err)
	}
	compression, err := spt.ParseCompression(o.compression)
	if err != nil {
		return usagef("--compression: %v", err)
	}
	if o.missing != "refuse" && o.missing != "keep" {
		return usagef("--missing %s: refuse or keep", o.missing)
	}
	if o.given.Changed("compression-level") && (o.level < 1 || o.level > 4) {
		return usagef("--compression-level %d: 1 to 4", o.level)
	}
	if o.damaged != "refuse" && o.damaged != "keep" {
		return usagef("--damaged %s: refuse or keep", o.damaged)
	}
	o.opts = writer.Options{
		Stores: env.Stores, Files: files, KeepReferences: o.keepReferences, KeepMissing: o.missing == "keep" || o.bare,
		Compression: compression, Level: o.level,
		Overwrite: o.overwrite, ReadBack: o.readBack, Jobs: env.common.jobs,
	}
	if o.given.Changed("inline-threshold") {
		o.opts.InlineThreshold = new(int64(o.inline))
	}
	return nil
}

type convertOptions struct {
	writeOptions
	to       string
	metadata string
	flink    string
	state    string // compression of state

	release assign.Release
}

func (o *convertOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.StringVar(&o.to, "to", "", "`spt|flink`: family of OUT (default: by its name)")
	fs.StringVar(&o.metadata, "metadata-version", "", "write version `2|3|4|5|6` of _metadata, that of IN or newer; --flink writes older ones")
	fs.StringVar(&o.state, "state-compression", "", "`none|snappy`: compress or decompress operator state and canonical keyed state, as Flink does (default: keep)")
	fs.StringVar(&o.flink, "flink", "", "write what Flink `RELEASE`, such as 1.20, can read, and report what is lost")
}

func (o *convertOptions) validate(env *Env) error {
	if o.to != "" && o.to != string(reader.SPT) && o.to != string(reader.Flink) {
		return usagef("--to %s: spt or flink", o.to)
	}
	if o.state != "" && o.state != "none" && o.state != snappyName {
		return usagef("--state-compression %s: none or snappy", o.state)
	}
	if err := o.writeOptions.validate(env); err != nil {
		return err
	}
	o.opts.Family = reader.Family(o.to)
	if o.metadata != "" {
		v, err := metadata.ParseVersion(o.metadata)
		if err != nil {
			return usagef("--metadata-version: %v", err)
		}
		o.opts.MetadataVersion = v
	}
	if o.flink != "" {
		if o.metadata != "" {
			return usagef("--flink says which --metadata-version it is")
		}
		r, err := assign.ParseRelease(o.flink)
		if err != nil {
			return usagef("--flink: %v", err)
		}
		o.release = r
	}
	return nil
}

// WriteResult is the answer of commands that write a snapshot, or would.
type WriteResult struct {
	Input            string         `json:"input"`
	Output           string         `json:"output,omitempty"`
	Family           string         `json:"family" jsonschema:"enum=flink,enum=spt"`
	Written          bool           `json:"written" jsonschema:"description=false without OUT and with --dry-run"`
	Replaced         bool           `json:"replaced,omitempty"`
	Files            int            `json:"files" jsonschema:"description=state files next to _metadata"`
	Linked           int            `json:"linked,omitempty"`
	ToFiles          int            `json:"handles_moved_to_files,omitempty" jsonschema:"description=whose state was inline in _metadata and is in files now"`
	ToFileBytes      int64          `json:"bytes_moved_to_files,omitempty"`
	Release          string         `json:"release,omitempty" jsonschema:"description=of Flink that it is written for, with --flink"`
	Rebuilt          int            `json:"rebuilt_handles,omitempty" jsonschema:"description=of operator state whose description was rewritten for the release"`
	StateCompression string         `json:"state_compression,omitempty" jsonschema:"enum=none,enum=snappy,description=with --state-compression"`
	Recompressed     int            `json:"recompressed_handles,omitempty" jsonschema:"description=of state whose compression changes"`
	KeptCompression  []WriteKept    `json:"kept_compression,omitempty" jsonschema:"description=state whose compression cannot be changed"`
	Lost             []string       `json:"lost,omitempty" jsonschema:"description=what the release or the version of _metadata has no place for"`
	StateBytes       int64          `json:"state_bytes" jsonschema:"description=state that is read, before compression"`
	OutputBytes      int64          `json:"output_bytes,omitempty" jsonschema:"description=what OUT takes; linked files left out"`
	Metadata         int64          `json:"metadata_bytes,omitempty"`
	Chunks           int            `json:"chunks,omitempty"`
	Rewrites         []WriteRewrite `json:"rewrites,omitempty" jsonschema:"description=references that become others"`
	Outside          []string       `json:"outside,omitempty" jsonschema:"description=files that are referred to where they are"`
	Missing          []string       `json:"missing,omitempty" jsonschema:"description=bare references that were kept"`
	Damaged          []FindingRow   `json:"damaged,omitempty" jsonschema:"description=with --damaged keep: errors that were passed on"`
	Moved            []WriteRewrite `json:"moved,omitempty" jsonschema:"description=files found under the folder of the snapshot or its job instead of where the reference points"`
	ReadBack         bool           `json:"read_back,omitempty"`
	Remarks          []string       `json:"remarks,omitempty" jsonschema:"description=what to know before restoring the result"`
}

// WriteKept is state that stays as it is.
type WriteKept struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	What     string `json:"what" jsonschema:"description=operator state, keyed state, raw operator state, raw keyed state"`
	Handles  int    `json:"handles"`
	Why      string `json:"why"`
}

// WriteRewrite is a reference and what it became.
type WriteRewrite struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func newConvertCommand(env *Env) *cobra.Command {
	var o convertOptions
	cmd := &cobra.Command{
		Use:   "convert IN [OUT]",
		Short: "Write a snapshot as a Flink directory or an .spt file",
		Long: `Writes a snapshot at a new location: an .spt file if OUT ends in .spt, else a
Flink folder. The result is self-contained: files that _metadata names by
absolute location are copied next to it and their references are rewritten;
segments of merged files become files of their own. --keep-references gives the
identical _metadata instead.

Metadata version 2 (Flink 1.3 to 1.10) knows no relative references: the files
next to it get the absolute location of OUT, or use --metadata-version 3.

--flink writes what a release reads: _metadata in its version, with handles that
it knows, and operator state described as it expects. What it has no place for,
such as uids before Flink 2.0, is named as lost. What a job would miss is
refused: compressed operator state before 1.18, changelog state before 1.16,
RocksDB files of Flink 2 before 2.0, types whose serializers it lacks, and
values of Kryo between Flink 1 and 2, which read them differently. Elements,
entries and the descriptions of their types are not rewritten.

--state-compression rewrites state as a job writes it with, or without,
compression of snapshots: operator state of Flink 1.18 and later, and keyed
state in the canonical format of savepoints. Elements and entries stay as they
are. What cannot be rewritten is kept and named (exit 1):
keyed state in the format of a state backend, RocksDB files, raw state, and
older operator state.

OUT appears when it is whole. With --overwrite, a snapshot that is there is
exchanged with the new one in one step on Linux and macOS. What others write
into it meanwhile stops that and is never removed. An OUT that is a symbolic
link is refused. A run that is killed leaves files that begin with .spt-tmp-:
spt ls lists them, spt clean removes them. Where the system cannot exchange two
names, it can leave the old snapshot under a name that begins with .spt-old-:
every command that is given OUT says so.

State stays where it was, in files or inline in _metadata, also when it is
rebuilt. --inline-threshold moves inline state into files, and what moved is
reported.

Without OUT nothing is written; spt reports what it would write.`,
		Example: `  spt convert /data/flink/orders/chk-4211 orders.spt
  spt convert orders.spt restored/
  spt convert sp-2.3 sp-1.20 --flink 1.20
  spt convert sp-001 sp-snappy --state-compression snappy
  spt convert sp-001 sp-small --inline-threshold 20KiB`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			out := ""
			if len(args) == 2 {
				out = args[1]
			}
			return runConvert(cmd.Context(), o, env, args[0], out)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runConvert(ctx context.Context, o convertOptions, env *Env, in, out string) (err error) {
	snap, err := env.open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	if out == "" && o.opts.Family == "" { // the other family is what a conversion is for
		o.opts.Family = reader.SPT
		if snap.Container.Family == reader.SPT {
			o.opts.Family = reader.Flink
		}
	}
	view := snap
	// Older releases read no compressed state, and their state cannot be
	// compressed: what comes first depends on the direction.
	var steps []func(*reader.Snapshot) (*reader.Snapshot, error)
	if o.flink != "" {
		steps = append(steps, func(s *reader.Snapshot) (*reader.Snapshot, error) { return o.forRelease(ctx, env, s, out) })
	}
	var kept []transform.KeptHandle
	if o.state != "" {
		steps = append(steps, func(s *reader.Snapshot) (*reader.Snapshot, error) {
			s, k, err := o.recompress(ctx, env, s)
			kept = k
			return s, err
		})
		if o.state == "none" {
			slices.Reverse(steps)
		}
	}
	for _, step := range steps {
		view, err = step(view)
		if err != nil {
			return err
		}
	}
	if err := seal(ctx, env, o.writeOptions, view, in, out); err != nil {
		return err
	}
	if len(kept) > 0 {
		return &findings{"the compression of some state was left as it is"}
	}
	return nil
}

// recompress is the snapshot with state as --state-compression wants it.
func (o *convertOptions) recompress(ctx context.Context, env *Env, snap *reader.Snapshot) (*reader.Snapshot, []transform.KeptHandle, error) {
	stop := env.reading("reading", allState(snap))
	defer stop()
	v, done, err := transform.SetStateCompression(ctx, snap.View(), transform.CompressionOptions{Compress: o.state == snappyName, Keyed: keyed.Recompress})
	if err != nil {
		return nil, nil, inContainer(err, snap)
	}
	more := o.note
	o.note = func(r *WriteResult) {
		if more != nil {
			more(r)
		}
		r.StateCompression, r.Recompressed = o.state, done.Handles
		for _, k := range done.Kept {
			r.KeptCompression = append(r.KeptCompression, WriteKept{
				Operator: env.label(k.Operator), ID: k.Operator.ID.String(), What: k.Slot.String(), Handles: k.Handles, Why: env.hide(k.Why),
			})
		}
	}
	return snap.With(v.Savepoint), done.Kept, nil
}

// forRelease is the snapshot as the release of --flink reads it.
func (o *convertOptions) forRelease(ctx context.Context, env *Env, snap *reader.Snapshot, out string) (*reader.Snapshot, error) {
	if o.to == string(reader.SPT) || o.to == "" && strings.HasSuffix(strings.TrimRight(out, "/"), reader.Extension) {
		return nil, usagef("--flink is of a Flink folder: an .spt file is read by no release of Flink")
	}
	o.opts.Family = reader.Flink
	stop := env.reading("reading", nil)
	defer stop()
	unread, err := check.TypesFor(ctx, snap.Savepoint, snap.Schema, int32(snap.Container.Metadata), o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	v, rebuilt, err := transform.OperatorStateFor(ctx, snap.View(), o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	sp, lost, err := metadata.ForRelease(v.Savepoint, o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	if !o.release.AtLeast(1, 20) && (o.keepReferences || o.opts.Files == writer.Reference) && metadata.HoldsMerged(sp) {
		return nil, format.Errorf(format.ErrUnsupported, "Flink %v does not know segments of merged files: --files copy makes files of them", o.release)
	}
	more := o.note
	o.note = func(r *WriteResult) {
		if more != nil {
			more(r)
		}
		r.Release, r.Rebuilt, r.Lost = o.release.String(), rebuilt, append(lost, r.Lost...)
		if len(unread) > 0 {
			r.Remarks = append(r.Remarks, fmt.Sprintf("whether Flink %v has the types of all states could not be told: %s", o.release, env.hide(unread[0].Error())))
		}
	}
	return snap.With(sp), nil
}

// prepare plans how a snapshot is written to out, or would be.
func (o *writeOptions) prepare(ctx context.Context, snap *reader.Snapshot, out string) (*writer.Plan, error) {
	plan, err := writer.Prepare(ctx, snap.View(), out, &o.opts)
	switch {
	case err != nil || o.opts.Files != writer.Reference:
		return plan, err
	case plan.Family == reader.SPT:
		return nil, usagef("--files reference: an .spt file holds all state itself")
	case snap.Container.Family == reader.SPT:
		return nil, usagef("--files reference: %s is an .spt file, in which a _metadata cannot refer to state", ui.Quote(snap.Location))
	}
	return plan, nil
}

// write plans how a snapshot is written to out, and writes it unless it is a dry
// run or there is no out.
func (o *writeOptions) write(ctx context.Context, env *Env, snap *reader.Snapshot, in, out string) (*writer.Plan, *WriteResult, error) {
	progress := env.progress()
	o.opts.Progress = progress.Add
	plan, err := o.prepare(ctx, snap, out)
	if err != nil {
		return nil, nil, err
	}
	damaged, err := o.examine(ctx, env, snap, in)
	if err != nil {
		return nil, nil, err
	}
	r := newWriteResult(env, in, plan)
	r.Damaged = damaged
	if o.note != nil {
		o.note(r)
	}
	if out == "" || o.dryRun {
		return plan, r, nil
	}
	total := plan.Bytes
	if o.readBack {
		total *= 2
	}
	progress.Start(total, "writing")
	report, err := plan.Write(ctx)
	progress.Stop()
	if err != nil {
		return nil, nil, inContainer(err, snap)
	}
	r.wrote(report)
	return plan, r, nil
}

// seal plans, writes unless it is a dry run, and answers. Every command that
// writes ends in it.
func seal(ctx context.Context, env *Env, o writeOptions, snap *reader.Snapshot, in, out string) error {
	plan, r, err := o.write(ctx, env, snap, in, out)
	if err != nil {
		return err
	}
	if err := renderWrite(env, r, o.dryRun); err != nil {
		return err
	}
	return incomplete(plan, r)
}

// examine refuses to pass on what verify calls an error of the state, unless it is
// told to: then it returns the errors. Files are the business of the plan.
func (o *writeOptions) examine(ctx context.Context, env *Env, snap *reader.Snapshot, in string) ([]FindingRow, error) {
	var rows []FindingRow
	err := snap.Examine(ctx, snap.Operators, reader.VerifyOptions{DescriptionOnly: o.bare, ReadErrors: true}, func(f finding.Finding) {
		if f.Severity == finding.Error {
			rows = append(rows, env.findingRow(f))
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
	rows []FindingRow
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
func incomplete(plan *writer.Plan, r *WriteResult) error {
	if n := len(r.Damaged); n > 0 {
		return &findings{fmt.Sprintf("the result is not sound: %s passed on", ui.Plural(int64(n), "error"))}
	}
	if len(plan.Missing) > 0 {
		return &findings{fmt.Sprintf("the result is not complete: %s kept without their files", ui.Plural(int64(len(plan.Missing)), "reference"))}
	}
	return nil
}

// inContainer names the snapshot as the file of an error that has a place in it
// and names no other; what the target or the system did has none.
func inContainer(err error, snap *reader.Snapshot) error {
	var at *format.Error
	if errors.As(err, &at) && at.File == "" {
		return format.InFile(err, snap.Container.Name)
	}
	return err
}

// wrote notes what was written.
func (r *WriteResult) wrote(report *writer.Report) {
	r.Written, r.Linked, r.OutputBytes, r.Chunks, r.ReadBack = true, report.Linked, report.Written, report.SPT.Chunks, report.ReadBack
}

func newWriteResult(env *Env, in string, p *writer.Plan) *WriteResult {
	r := &WriteResult{Input: in, Output: p.Target, Family: string(p.Family), Replaced: p.Replaces, Files: len(p.Files), StateBytes: p.Bytes, Metadata: p.MetadataBytes, Lost: p.Lost, Remarks: p.Remarks, ToFiles: p.ToFiles, ToFileBytes: p.ToFilesBytes}
	if p.Recovers != "" {
		r.Remarks = append(r.Remarks, fmt.Sprintf("an interrupted run had left the snapshot that is replaced under %s", env.hide(ui.Quote(p.Recovers))))
	}
	for _, w := range p.Rewrites {
		r.Rewrites = append(r.Rewrites, WriteRewrite{env.text(w.From), env.text(w.To)})
	}
	for _, w := range p.Substituted {
		r.Moved = append(r.Moved, WriteRewrite{env.text(w.From), w.To})
	}
	for _, s := range p.Outside {
		r.Outside = append(r.Outside, env.text(s))
	}
	for _, s := range p.Missing {
		r.Missing = append(r.Missing, env.text(s))
	}
	return r
}

func renderWrite(env *Env, r *WriteResult, dryRun bool) error {
	if done, err := renderValue(env, r); done {
		return err
	}
	return writeText(env, env.Stdout, r, dryRun)
}

// writeText says what was done, or would be, in the same words.
func writeText(env *Env, w io.Writer, r *WriteResult, dryRun bool) error {
	style := env.term().Style()
	var b strings.Builder
	target := "a Flink folder"
	if r.Family == string(reader.SPT) {
		target = "an .spt file"
	}
	if r.Output != "" {
		target = ui.Quote(r.Output)
	}
	head := style.Proved("written:")
	if !r.Written {
		head = style.Look("would write:")
	}
	fmt.Fprintf(&b, "%s %s", head, target)
	if r.Written {
		fmt.Fprintf(&b, ", %s", ui.Bytes(r.OutputBytes))
	}
	if r.Family == string(reader.SPT) {
		fmt.Fprintf(&b, " for %s of state", ui.Bytes(r.StateBytes))
		if r.Chunks > 0 {
			fmt.Fprintf(&b, " in %s", ui.Plural(int64(r.Chunks), "chunk"))
		}
	} else {
		fmt.Fprintf(&b, ": _metadata of %s", ui.Bytes(r.Metadata))
		if r.Files > 0 {
			fmt.Fprintf(&b, " and %s", ui.Plural(int64(r.Files), "state file"))
		}
		if r.Linked > 0 {
			fmt.Fprintf(&b, ", %d of them hard links", r.Linked)
		}
		if r.ToFiles > 0 {
			fmt.Fprintf(&b, "; %s of inline state moved into files (%s)", ui.Bytes(r.ToFileBytes), ui.Plural(int64(r.ToFiles), "handle"))
		}
	}
	if r.Replaced {
		b.WriteString(", in place of the snapshot there")
	}
	if r.ReadBack {
		b.WriteString(", read back and right")
	}
	b.WriteByte('\n')
	list := func(all []string, title string) {
		if len(all) == 0 {
			return
		}
		fmt.Fprintf(&b, "%s:\n", title)
		for _, p := range all {
			fmt.Fprintf(&b, "  %s\n", ui.Quote(p))
		}
	}
	if r.Release != "" {
		fmt.Fprintf(&b, "for Flink %s", r.Release)
		if r.Rebuilt > 0 {
			fmt.Fprintf(&b, ", with %s of operator state rewritten for the release", ui.Plural(int64(r.Rebuilt), "handle"))
		}
		b.WriteByte('\n')
	}
	if r.StateCompression != "" {
		word := "decompressed"
		if r.StateCompression == snappyName {
			word = "compressed with snappy"
		}
		fmt.Fprintf(&b, "%s of state %s\n", ui.Plural(int64(r.Recompressed), "handle"), word)
	}
	keptText(&b, style, r.KeptCompression)
	if len(r.Lost) > 0 {
		fmt.Fprintf(&b, "%s %s\n", style.Look("lost, because the target cannot hold it:"), strings.Join(r.Lost, "; "))
	}
	for _, m := range movedFolders(r.Moved) {
		fmt.Fprintf(&b, "%s taken from %s, because they are not in %s, where the references point\n", ui.Plural(int64(m.files), "file"), ui.Quote(m.to), ui.Quote(m.from))
	}
	rewrittenText(&b, r.Rewrites)
	list(r.Outside, fmt.Sprintf("%s referred to where they are, not written", ui.Plural(int64(len(r.Outside)), "file")))
	list(r.Missing, style.Bad(fmt.Sprintf("%s kept without their files", ui.Plural(int64(len(r.Missing)), "reference"))))
	if n := len(r.Damaged); n > 0 {
		fmt.Fprintf(&b, "%s\n", style.Bad(ui.Plural(int64(n), "error")+" passed on:"))
		appendFindings(&b, env.term(), r.Damaged)
	}
	for _, m := range r.Remarks {
		fmt.Fprintf(&b, "%s %s.\n", style.Look("!"), m)
	}
	switch {
	case r.Output == "":
		b.WriteString("Nothing written. Add an output to write it.\n")
	case dryRun:
		b.WriteString("Nothing written: this was a dry run.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// keptText is one line for each kind of state and reason.
func keptText(b *strings.Builder, style ui.Style, all []WriteKept) {
	type kind struct{ what, why string }
	var order []kind
	operators, handles := map[kind][]string{}, map[kind]int{}
	for _, k := range all {
		of := kind{k.What, k.Why}
		if handles[of] == 0 {
			order = append(order, of)
		}
		operators[of] = append(operators[of], ui.Quote(k.Operator))
		handles[of] += k.Handles
	}
	const examples = 3
	for _, of := range order {
		names := operators[of]
		text := strings.Join(names[:min(len(names), examples)], ", ")
		if more := len(names) - examples; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(b, "%s %s of %s (%s): %s\n", style.Look("kept as it is:"), of.what, text, ui.Plural(int64(handles[of]), "handle"), printableLines(of.why))
	}
}

// movedFolder is a folder that references point to, and the one where the files
// were found instead.
type movedFolder struct {
	from, to string
	files    int
}

// movedFolders gathers files by folder, in the order they come.
func movedFolders(all []WriteRewrite) []movedFolder {
	var out []movedFolder
	at := map[[2]string]int{}
	for _, m := range all {
		from, _ := splitName(m.From)
		to, _ := splitName(m.To)
		i, ok := at[[2]string{from, to}]
		if !ok {
			i = len(out)
			at[[2]string{from, to}] = i
			out = append(out, movedFolder{from: from, to: to})
		}
		out[i].files++
	}
	return out
}

// splitName divides a path into its folder and the name in it.
func splitName(p string) (dir, name string) {
	i := strings.LastIndexByte(p, '/')
	return p[:i+1], p[i+1:]
}

// rewrittenText lists every reference that changes, under the folder it named.
func rewrittenText(b *strings.Builder, all []WriteRewrite) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "%s rewritten:\n", ui.Plural(int64(len(all)), "reference"))
	last := [2]string{"", "-"}
	for _, r := range all {
		from, name := splitName(r.From)
		to, newName := splitName(r.To)
		if where := [2]string{from, to}; where != last {
			last = where
			fmt.Fprintf(b, "  %s → %s\n", folderName(from), folderName(to))
		}
		if name == newName {
			fmt.Fprintf(b, "    %s\n", ui.Quote(name))
		} else {
			fmt.Fprintf(b, "    %s → %s\n", ui.Quote(name), ui.Quote(newName))
		}
	}
}

// folderName is the folder of a reference, in words where it has none.
func folderName(dir string) string {
	if dir == "" {
		return "next to _metadata"
	}
	return ui.Quote(dir)
}
