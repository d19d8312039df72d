package report

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/writer"
)

// Write is the answer of commands that write a snapshot, or would.
type Write struct {
	Input            string     `json:"input"`
	Output           string     `json:"output,omitempty"`
	Family           string     `json:"family" jsonschema:"enum=flink,enum=spt"`
	Written          bool       `json:"written" jsonschema:"description=false without OUT and with --dry-run"`
	Replaced         bool       `json:"replaced,omitempty"`
	Files            int        `json:"files" jsonschema:"description=state files next to _metadata"`
	Linked           int        `json:"linked,omitempty"`
	Copied           int        `json:"copied_by_service,omitempty" jsonschema:"description=files that the service of an object store copied by itself: their bytes were not read unless read_back is true"`
	ToFiles          int        `json:"handles_moved_to_files,omitempty" jsonschema:"description=whose state was inline in _metadata and is in files now"`
	ToFileBytes      int64      `json:"bytes_moved_to_files,omitempty"`
	Release          string     `json:"release,omitempty" jsonschema:"description=of Flink that it is written for, with --flink"`
	Rebuilt          int        `json:"rebuilt_handles,omitempty" jsonschema:"description=of operator state whose state meta info was rewritten for the release"`
	StateCompression string     `json:"state_compression,omitempty" jsonschema:"enum=none,enum=snappy,description=with --state-compression"`
	Recompressed     int        `json:"recompressed_handles,omitempty" jsonschema:"description=of state whose compression changes"`
	Keyed            string     `json:"keyed,omitempty" jsonschema:"enum=canonical,description=encoding of keyed state, with --keyed"`
	KeyedRebuilt     int        `json:"keyed_handles_rebuilt,omitempty" jsonschema:"description=handles of keyed state that are built again"`
	KeyedEntries     int64      `json:"keyed_entries,omitempty" jsonschema:"description=entries in them"`
	KeptKeyed        []Kept     `json:"kept_keyed,omitempty" jsonschema:"description=keyed state whose encoding cannot be changed"`
	KeptCompression  []Kept     `json:"kept_compression,omitempty" jsonschema:"description=state whose compression cannot be changed"`
	Redacted         *Redaction `json:"redacted,omitempty" jsonschema:"description=with --redact"`
	Lost             []string   `json:"lost,omitempty" jsonschema:"description=what the release or the version of _metadata cannot hold"`
	StateBytes       int64      `json:"state_bytes" jsonschema:"description=state that is read, before compression"`
	OutputBytes      int64      `json:"output_bytes,omitempty" jsonschema:"description=what OUT takes; linked files left out"`
	Metadata         int64      `json:"metadata_bytes,omitempty"`
	Chunks           int        `json:"chunks,omitempty"`
	Rewrites         []Rewrite  `json:"rewrites,omitempty" jsonschema:"description=references that become others"`
	Outside          []string   `json:"outside,omitempty" jsonschema:"description=files that are referred to where they are"`
	Missing          []string   `json:"missing,omitempty" jsonschema:"description=bare references that were kept"`
	Damaged          []Finding  `json:"damaged,omitempty" jsonschema:"description=with --damaged keep: errors that were passed on"`
	Moved            []Rewrite  `json:"moved,omitempty" jsonschema:"description=files found under the directory of the snapshot or its job instead of where the reference points"`
	ReadBack         bool       `json:"read_back,omitempty"`
	Remarks          []string   `json:"remarks,omitempty" jsonschema:"description=what to know before restoring the result"`

	DryRun bool `json:"-"`
}

// Kept is state that stays as it is.
type Kept struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	What     string `json:"what" jsonschema:"description=operator state, keyed state, raw operator state, raw keyed state"`
	Handles  int    `json:"handles"`
	Why      string `json:"why"`
}

// Rewrite is a reference and what it became.
type Rewrite struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// NewWrite reports what a plan would write.
func (r *Run) NewWrite(in string, p *writer.Plan) *Write {
	w := &Write{Input: in, Output: p.Target, Family: string(p.Family), Replaced: p.Replaces, Files: len(p.Files), StateBytes: p.Bytes, Metadata: p.MetadataBytes, Lost: p.Lost, Remarks: p.Remarks, ToFiles: p.ToFiles, ToFileBytes: p.ToFilesBytes}
	if p.Recovers != "" {
		w.Remarks = append(w.Remarks, fmt.Sprintf("an interrupted run had left the snapshot that is replaced under %s", r.Hide(ui.Quote(p.Recovers))))
	}
	for _, x := range p.Rewrites {
		w.Rewrites = append(w.Rewrites, Rewrite{r.Text(x.From), r.Text(x.To)})
	}
	for _, x := range p.Substituted {
		w.Moved = append(w.Moved, Rewrite{r.Text(x.From), x.To})
	}
	for _, s := range p.Outside {
		w.Outside = append(w.Outside, r.Text(s))
	}
	for _, s := range p.Missing {
		w.Missing = append(w.Missing, r.Text(s))
	}
	return w
}

// Wrote adds what was written.
func (w *Write) Wrote(done *writer.Report) {
	w.Copied = done.Copied
	w.Written, w.Linked, w.OutputBytes, w.Chunks, w.ReadBack = true, done.Linked, done.Written, done.SPT.Chunks, done.ReadBack
}

// Document implements [Report]. What was done and what would be done read alike.
func (w *Write) Document() *ui.Document {
	var d ui.Document
	w.appendTo(&d)
	return &d
}

func (w *Write) appendTo(d *ui.Document) {
	d.Line("%s", w.headline())
	if w.Redacted != nil {
		w.Redacted.appendTo(d)
	}
	if w.Release != "" {
		text := "for Flink " + w.Release
		if w.Rebuilt > 0 {
			text += fmt.Sprintf(", with %s of operator state rewritten for the release", ui.Plural(int64(w.Rebuilt), "handle"))
		}
		d.Line("%s", text)
	}
	if w.StateCompression != "" {
		word := "decompressed"
		if w.StateCompression == "snappy" {
			word = "compressed with snappy"
		}
		d.Line("%s of state %s", ui.Plural(int64(w.Recompressed), "handle"), word)
	}
	switch {
	case w.Keyed == "":
	case w.KeyedRebuilt == 0 && len(w.KeptKeyed) == 0:
		d.Line("no keyed state is in another format than the canonical one")
	default:
		d.Line("%s of keyed state built in the canonical format, %s", ui.Plural(int64(w.KeyedRebuilt), "handle"), ui.Plural(w.KeyedEntries, "entry"))
	}
	appendKept(d, w.KeptKeyed)
	appendKept(d, w.KeptCompression)
	if len(w.Lost) > 0 {
		d.Line("%s %s", ui.Look("lost, because the target cannot hold it:"), strings.Join(w.Lost, "; "))
	}
	for _, m := range movedDirs(w.Moved) {
		d.Line("%s taken from %s, because they are not in %s, where the references point", ui.Plural(int64(m.files), "file"), ui.Quote(m.to), ui.Quote(m.from))
	}
	appendRewrites(d, w.Rewrites)
	appendNames(d, fmt.Sprintf("%s referred to where they are, not written", ui.Plural(int64(len(w.Outside)), "file")), w.Outside)
	appendNames(d, ui.Bad(fmt.Sprintf("%s kept without their files", ui.Plural(int64(len(w.Missing)), "reference"))), w.Missing)
	if n := len(w.Damaged); n > 0 {
		d.Line("%s", ui.Bad(ui.Plural(int64(n), "error")+" passed on:"))
		d.Add(Findings(w.Damaged))
	}
	for _, m := range w.Remarks {
		d.Remark("%s.", m)
	}
	switch {
	case w.Output == "":
		d.Line("Nothing written. Add an output to write it.")
	case w.DryRun:
		d.Line("Nothing written: this was a dry run.")
	}
}

func (w *Write) headline() string {
	var b strings.Builder
	target := "a Flink directory"
	if w.Family == string(reader.SPT) {
		target = "an .spt file"
	}
	if w.Output != "" {
		target = ui.Quote(w.Output)
	}
	head := ui.Proved("written:")
	if !w.Written {
		head = ui.Look("would write:")
	}
	fmt.Fprintf(&b, "%s %s", head, target)
	if w.Written {
		fmt.Fprintf(&b, ", %s", ui.Bytes(w.OutputBytes))
	}
	if w.Family == string(reader.SPT) {
		fmt.Fprintf(&b, " for %s of state", ui.Bytes(w.StateBytes))
		if w.Chunks > 0 {
			fmt.Fprintf(&b, " in %s", ui.Plural(int64(w.Chunks), "chunk"))
		}
	} else {
		fmt.Fprintf(&b, ": _metadata of %s", ui.Bytes(w.Metadata))
		if w.Files > 0 {
			fmt.Fprintf(&b, " and %s", ui.Plural(int64(w.Files), "state file"))
		}
		if w.Linked > 0 {
			fmt.Fprintf(&b, ", %d of them hard links", w.Linked)
		}
		if w.Copied > 0 {
			fmt.Fprintf(&b, ", %d of them copied by the service", w.Copied)
		}
		if w.ToFiles > 0 {
			fmt.Fprintf(&b, "; %s of inline state moved into files (%s)", ui.Bytes(w.ToFileBytes), ui.Plural(int64(w.ToFiles), "handle"))
		}
	}
	if w.Replaced {
		b.WriteString(", in place of the snapshot there")
	}
	if w.ReadBack {
		b.WriteString(", read back and verified")
	}
	return b.String()
}

// appendNames appends a title and names below it, if there are any.
func appendNames(d *ui.Document, title string, names []string) {
	if len(names) == 0 {
		return
	}
	d.Line("%s:", title)
	for _, n := range names {
		d.Line("  %s", ui.Quote(n))
	}
}

// appendKept appends one line for each kind of state and reason.
func appendKept(d *ui.Document, all []Kept) {
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
		d.Line("%s %s of %s (%s): %s", ui.Look("kept as it is:"), of.what, text, ui.Plural(int64(handles[of]), "handle"), of.why)
	}
}

// movedDir is a directory that references point to, and the one where the files were
// found instead.
type movedDir struct {
	from, to string
	files    int
}

// movedDirs groups files by directory, in the order of their first file.
func movedDirs(all []Rewrite) []movedDir {
	var out []movedDir
	at := map[[2]string]int{}
	for _, m := range all {
		from, _ := SplitName(m.From)
		to, _ := SplitName(m.To)
		i, ok := at[[2]string{from, to}]
		if !ok {
			i = len(out)
			at[[2]string{from, to}] = i
			out = append(out, movedDir{from: from, to: to})
		}
		out[i].files++
	}
	return out
}

// SplitName divides the location of a file into its directory, with the last slash,
// and the name in it.
func SplitName(p string) (dir, name string) {
	i := strings.LastIndexByte(p, '/')
	return p[:i+1], p[i+1:]
}

// appendRewrites appends every reference that changes, under the directory it named.
func appendRewrites(d *ui.Document, all []Rewrite) {
	if len(all) == 0 {
		return
	}
	d.Line("%s rewritten:", ui.Plural(int64(len(all)), "reference"))
	last := [2]string{"", "-"}
	for _, r := range all {
		from, name := SplitName(r.From)
		to, newName := SplitName(r.To)
		if where := [2]string{from, to}; where != last {
			last = where
			d.Line("  %s → %s", dirName(from), dirName(to))
		}
		if name == newName {
			d.Line("    %s", ui.Quote(name))
		} else {
			d.Line("    %s → %s", ui.Quote(name), ui.Quote(newName))
		}
	}
}

// dirName is the directory of a reference, in words where it has none.
func dirName(dir string) string {
	if dir == "" {
		return "next to _metadata"
	}
	return ui.Quote(dir)
}
