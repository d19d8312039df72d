package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// writeOptions are those of every command that writes a snapshot.
type writeOptions struct {
	files          string
	missing        string
	keepReferences bool
	inline         ui.Size
	compression    string
	level          int
	overwrite      bool
	dryRun         bool
	readBack       bool

	given *pflag.FlagSet // 0 that was given is not 0 for want of a flag
	opts  writer.Options
	note  func(*WriteResult) // what a command adds to the answer, or nil
}

func (o *writeOptions) addFlags(fs *pflag.FlagSet) {
	o.given = fs
	fs.StringVar(&o.files, "files", "copy", "state files of a Flink folder: `copy|link|reference`")
	fs.StringVar(&o.missing, "missing", "refuse", "what to do where files cannot be had; keep leaves their bare references: `refuse|keep`")
	fs.BoolVar(&o.keepReferences, "keep-references", false, "leave every reference as it is: the same _metadata; files in absolute places are not written")
	fs.Var(&o.inline, "inline-threshold", "move inline state larger than `SIZE` out of _metadata into files; 0: all of it (default: leave it)")
	fs.StringVar(&o.compression, "compression", "zstd", "of an .spt file: `zstd|s2|none`")
	fs.IntVar(&o.level, "compression-level", 0, "of zstd, `N` from 1 (fast) to 4 (best)")
	fs.BoolVar(&o.overwrite, "overwrite", false, "replace OUT if it is a snapshot")
	fs.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and check OUT and the free space")
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
	o.opts = writer.Options{
		Stores: env.Stores, Files: files, KeepReferences: o.keepReferences, KeepMissing: o.missing == "keep",
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

	release assign.Release
}

func (o *convertOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.StringVar(&o.to, "to", "", "family of the result: `spt|flink` (default: by OUT's name)")
	fs.StringVar(&o.metadata, "metadata-version", "", "of a Flink folder: that of IN or a newer one, `2…6`; --flink writes older ones")
	fs.StringVar(&o.flink, "flink", "", "write what this `RELEASE` of Flink reads, such as 1.20, and say what is lost")
}

func (o *convertOptions) validate(env *Env) error {
	if o.to != "" && o.to != string(reader.SPT) && o.to != string(reader.Flink) {
		return usagef("--to %s: spt or flink", o.to)
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
	Input       string         `json:"input"`
	Output      string         `json:"output,omitempty"`
	Family      string         `json:"family" jsonschema:"enum=flink,enum=spt"`
	Written     bool           `json:"written" jsonschema:"description=false without OUT and with --dry-run"`
	Replaced    bool           `json:"replaced,omitempty"`
	Files       int            `json:"files" jsonschema:"description=state files beside _metadata"`
	Linked      int            `json:"linked,omitempty"`
	ToFiles     int            `json:"handles_moved_to_files,omitempty" jsonschema:"description=whose state was inline in _metadata and is in files now"`
	ToFileBytes int64          `json:"bytes_moved_to_files,omitempty"`
	Release     string         `json:"release,omitempty" jsonschema:"description=of Flink that it is written for, with --flink"`
	Rebuilt     int            `json:"rebuilt_handles,omitempty" jsonschema:"description=of operator state that were described anew for the release"`
	Lost        []string       `json:"lost,omitempty" jsonschema:"description=what the release or the version of _metadata has no place for"`
	StateBytes  int64          `json:"state_bytes" jsonschema:"description=state that is read, before compression"`
	OutputBytes int64          `json:"output_bytes,omitempty" jsonschema:"description=what OUT takes; linked files left out"`
	Metadata    int64          `json:"metadata_bytes,omitempty"`
	Chunks      int            `json:"chunks,omitempty"`
	Rewrites    []WriteRewrite `json:"rewrites,omitempty" jsonschema:"description=references that become others"`
	Outside     []string       `json:"outside,omitempty" jsonschema:"description=files that are referred to where they are"`
	Missing     []string       `json:"missing,omitempty" jsonschema:"description=bare references that were kept"`
	Moved       []WriteRewrite `json:"moved,omitempty" jsonschema:"description=files found under the folder of the snapshot or its job instead of where the reference points"`
	ReadBack    bool           `json:"read_back,omitempty"`
	Remarks     []string       `json:"remarks,omitempty" jsonschema:"description=what whoever restores the result has to know"`
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
		Short: "Write a snapshot at a new place, as a Flink folder or an .spt file",
		Long: `Writes a snapshot at a new place: as an .spt file if OUT ends in .spt, else as a
Flink folder. The result is self-contained: files that _metadata names by
absolute places are copied beside it and their references rewritten, each said;
segments of merged files become files of their own. --keep-references gives the
identical _metadata instead.

Metadata version 2 (Flink 1.3 to 1.10) knows no relative references: the files
beside it are named by the absolute place of OUT, or take --metadata-version 3.

--flink writes what a release reads: _metadata in its version, with handles that
it knows, and operator state described as it expects. What it has no place for,
such as uids before Flink 2.0, is named as lost. What a job would miss is
refused: compressed operator state before 1.18, changelog state before 1.16,
RocksDB files of Flink 2 before 2.0, types whose serializers it has not, and
values of Kryo between Flink 1 and 2, which read them differently. Elements,
entries and the descriptions of their types are not rewritten.

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

Without OUT nothing is written, and spt says what would be.`,
		Example: `  spt convert /data/flink/orders/chk-4211 orders.spt
  spt convert orders.spt restored/
  spt convert sp-2.3 sp-1.20 --flink 1.20
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
	if o.flink != "" {
		view, err := o.forRelease(ctx, env, snap, out)
		if err != nil {
			return err
		}
		return seal(ctx, env, o.writeOptions, view, in, out)
	}
	return seal(ctx, env, o.writeOptions, snap, in, out)
}

// forRelease is the snapshot as the release of --flink reads it.
func (o *convertOptions) forRelease(ctx context.Context, env *Env, snap *reader.Snapshot, out string) (*reader.Snapshot, error) {
	if o.to == string(reader.SPT) || o.to == "" && strings.HasSuffix(strings.TrimRight(out, "/"), reader.Extension) {
		return nil, usagef("--flink is of a Flink folder: an .spt file is read by no release of Flink")
	}
	o.opts.Family = reader.Flink
	unread, err := transform.TypesFor(ctx, snap.Savepoint, snap.Schema, int32(snap.Container.Metadata), o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	sp, rebuilt, err := transform.OperatorStateFor(ctx, env.input(snap), o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	sp, lost, err := metadata.ForRelease(sp, o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	if !o.release.AtLeast(1, 20) && (o.keepReferences || o.opts.Files == writer.Reference) && metadata.HoldsMerged(sp) {
		return nil, format.Errorf(format.ErrUnsupported, "Flink %v does not know segments of merged files: --files copy makes files of them", o.release)
	}
	o.note = func(r *WriteResult) {
		r.Release, r.Rebuilt, r.Lost = o.release.String(), rebuilt, append(lost, r.Lost...)
		if len(unread) > 0 {
			r.Remarks = append(r.Remarks, fmt.Sprintf("whether Flink %v has the types of all states could not be told: %s", o.release, env.hide(unread[0].Error())))
		}
	}
	return snap.View(sp), nil
}

// prepare plans how a snapshot is written to out, or would be.
func (o *writeOptions) prepare(ctx context.Context, snap *reader.Snapshot, out string) (*writer.Plan, error) {
	plan, err := writer.Prepare(ctx, snap, out, o.opts)
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
	r := newWriteResult(env, in, plan)
	if o.note != nil {
		o.note(r)
	}
	if out == "" || o.dryRun {
		return plan, r, nil
	}
	progress.Start(plan.Bytes, "writing")
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
	return incomplete(plan)
}

// incomplete is the finding that references were kept without their files.
func incomplete(plan *writer.Plan) error {
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
			fmt.Fprintf(&b, ", with %s of operator state described anew", ui.Plural(int64(r.Rebuilt), "handle"))
		}
		b.WriteByte('\n')
	}
	if len(r.Lost) > 0 {
		fmt.Fprintf(&b, "%s %s\n", style.Look("lost, for it has no place there:"), strings.Join(r.Lost, "; "))
	}
	for _, m := range movedFolders(r.Moved) {
		fmt.Fprintf(&b, "%s taken from %s, for they are not in %s, where the references point\n", ui.Plural(int64(m.files), "file"), ui.Quote(m.to), ui.Quote(m.from))
	}
	rewrittenText(&b, r.Rewrites)
	list(r.Outside, fmt.Sprintf("%s referred to where they are, not written", ui.Plural(int64(len(r.Outside)), "file")))
	list(r.Missing, style.Bad(fmt.Sprintf("%s kept without their files", ui.Plural(int64(len(r.Missing)), "reference"))))
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
		return "beside _metadata"
	}
	return ui.Quote(dir)
}
