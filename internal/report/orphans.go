package report

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/columns"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform/orphans"
)

// Orphans is the answer of orphans.
type Orphans struct {
	Roots     []string      `json:"roots"`
	Also      []string      `json:"also,omitempty"`
	OlderThan int64         `json:"older_than_seconds"`
	DryRun    bool          `json:"dry_run"`
	Snapshots int           `json:"snapshots" jsonschema:"description=that were read"`
	Total     OrphanSum     `json:"total" jsonschema:"description=all files in directories in which Flink keeps state"`
	Orphaned  OrphanSum     `json:"unreferenced" jsonschema:"description=of these the files that no snapshot refers to"`
	Removable OrphanSum     `json:"removable" jsonschema:"description=unreferenced files that --delete deletes"`
	Removed   OrphanSum     `json:"removed" jsonschema:"description=deleted or moved to the archive"`
	Elsewhere OrphanSum     `json:"elsewhere" jsonschema:"description=files in other directories: left alone and not looked at"`
	By        string        `json:"by" jsonschema:"enum=directory,enum=job,enum=age,enum=file"`
	Groups    []OrphanGroup `json:"groups"`
	Leftovers []Leftover    `json:"leftovers,omitempty" jsonschema:"description=of interrupted runs of spt, and unfinished uploads; spt clean removes them"`
	// LeftoversUnread is why a store did not list them.
	LeftoversUnread string          `json:"leftovers_unread,omitempty" jsonschema:"description=why unfinished uploads could not be listed"`
	Refused         []OrphanProblem `json:"refused,omitempty" jsonschema:"description=why --delete deletes nothing"`
	Files           []Orphan        `json:"files,omitempty" jsonschema:"description=the unreferenced files; -o jsonl prints them one a line and then the rest without them"`

	run     *Run
	now     time.Time
	older   string
	command string // that deletes
	printed bool   // files that were removed are on stdout already
}

// OrphanSum counts files.
type OrphanSum struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

func (s *OrphanSum) add(bytes int64) {
	s.Files++
	s.Bytes += bytes
}

// String is "3 files, 1.2 KiB".
func (s OrphanSum) String() string {
	return ui.Plural(int64(s.Files), "file") + ", " + ui.Bytes(s.Bytes)
}

// Orphan is a file that no snapshot refers to, and what became of it.
type Orphan struct {
	Path      string     `json:"path"`
	Directory string     `json:"directory"`
	Kind      string     `json:"kind" jsonschema:"enum=shared,enum=taskowned,enum=checkpoint,enum=changelog,enum=snapshot,enum=working"`
	Job       string     `json:"job_id,omitempty" jsonschema:"description=as names of directories show it; of a savepoint the first six digits"`
	Bytes     int64      `json:"bytes"`
	Time      *time.Time `json:"time,omitempty" jsonschema:"description=when it was last written"`
	Result    string     `json:"result" jsonschema:"enum=removable,enum=kept,enum=deleted,enum=archived,enum=failed"`
	Kept      string     `json:"kept,omitempty" jsonschema:"enum=young,enum=unknown-age,enum=working,enum=other-name,enum=link,enum=job-unread,enum=wanted,enum=uncertain,description=why it is not deleted"`
	To        string     `json:"to,omitempty" jsonschema:"description=where the archive has it"`
	Problem   string     `json:"problem,omitempty" jsonschema:"description=why it could not be deleted or archived"`
}

// The values of [Orphan.Result].
const (
	orphanRemovable = "removable"
	orphanKept      = "kept"
	orphanDeleted   = "deleted"
	orphanArchived  = "archived"
	orphanFailed    = "failed"
)

// OrphanGroup is unreferenced files that have something in common.
type OrphanGroup struct {
	Directory string     `json:"directory,omitempty"`
	Kind      string     `json:"kind,omitempty"`
	Job       string     `json:"job_id,omitempty"`
	Age       string     `json:"age,omitempty"`
	File      string     `json:"file,omitempty"`
	Files     int        `json:"files"`
	Bytes     int64      `json:"bytes"`
	Removable OrphanSum  `json:"removable"`
	Oldest    *time.Time `json:"oldest,omitempty"`
	Newest    *time.Time `json:"newest,omitempty"`
}

// OrphanProblem is a reason to delete nothing.
type OrphanProblem struct {
	Kind    string `json:"kind" jsonschema:"enum=unreadable,enum=unlisted,enum=outside,enum=changed"`
	Path    string `json:"path" jsonschema:"description=of the snapshot or the directory"`
	File    string `json:"file,omitempty" jsonschema:"description=to which the snapshot refers"`
	Message string `json:"message"`
}

// OrphanGrouping are the values of [Orphans.By].
var OrphanGrouping = []string{"directory", "job", "age", "file"}

// OrphanOptions say how unreferenced files are reported.
type OrphanOptions struct {
	Roots, Also []string
	By          string
	OlderThan   time.Duration
	Older       string // OlderThan as the user can write it
	DryRun      bool
	Command     string // with which the user can delete them
	Now         time.Time
}

// NewOrphans reports what was found.
func (r *Run) NewOrphans(found *orphans.Result, o OrphanOptions) *Orphans {
	a := &Orphans{
		Roots: o.Roots, Also: o.Also, OlderThan: int64(o.OlderThan / time.Second), DryRun: o.DryRun, Snapshots: found.Snapshots, By: o.By, Groups: []OrphanGroup{},
		Total: OrphanSum(found.Total), Elsewhere: OrphanSum(found.Elsewhere), run: r, now: o.Now, older: o.Older, command: o.Command,
		Files: make([]Orphan, 0, len(found.Files)),
	}
	for i := range found.Files {
		f := &found.Files[i]
		row := Orphan{Path: f.Path, Directory: f.Dir.Path, Kind: string(f.Dir.Kind), Job: f.Dir.Job, Bytes: f.Bytes, Result: orphanRemovable, Kept: string(f.Kept)}
		if !f.Time.IsZero() {
			row.Time = new(f.Time)
		}
		a.Orphaned.add(f.Bytes)
		if row.Kept != "" {
			row.Result = orphanKept
		} else {
			a.Removable.add(f.Bytes)
		}
		a.Files = append(a.Files, row)
	}
	for _, l := range found.Leftovers {
		row := Leftover{Path: l.Name, Result: leftoverKept, Reason: KeepReason(l), Files: l.Files, Bytes: l.Bytes, Upload: l.Upload, Displaced: l.Displaced}
		if !l.ModTime.IsZero() {
			row.Time = new(l.ModTime.UTC())
		}
		a.Leftovers = append(a.Leftovers, row)
	}
	if found.Unlisted != nil {
		a.LeftoversUnread = r.Hide(Reason(found.Unlisted))
	}
	for _, p := range found.Problems {
		a.refuse(p)
	}
	a.group()
	return a
}

func (a *Orphans) refuse(p orphans.Problem) {
	row := OrphanProblem{Kind: string(p.Kind), Path: p.Path, File: a.run.Text(p.File), Message: a.run.Hide(p.Err.Error())}
	if p.File != "" {
		row.Message = strings.ReplaceAll(row.Message, p.File, row.File)
	}
	a.Refused = append(a.Refused, row)
}

// Refuse adds a reason to delete nothing, and then no file is removable.
func (a *Orphans) Refuse(p orphans.Problem) {
	a.refuse(p)
	for i := range a.Files {
		if f := &a.Files[i]; f.Result == orphanRemovable {
			f.Result, f.Kept = orphanKept, string(orphans.Uncertain)
		}
	}
	a.Removable, a.Groups = OrphanSum{}, []OrphanGroup{}
	a.group()
}

// Done records what became of file i, and returns it. It is reported once.
func (a *Orphans) Done(i int, to string, err error, hint string) *OrphanDone {
	f := &a.Files[i]
	switch {
	case err != nil:
		f.Result, f.Problem = orphanFailed, err.Error()
		if hint != "" {
			f.Problem += ": " + hint
		}
	case to != "":
		f.Result, f.To = orphanArchived, to
	default:
		f.Result = orphanDeleted
	}
	if err == nil {
		a.Removed.add(f.Bytes)
	}
	a.printed = true
	return &OrphanDone{f, a.now}
}

// OrphanDone is one line about a file that was deleted, archived, or should have been.
type OrphanDone struct {
	*Orphan
	now time.Time
}

// JSON implements [JSON].
func (d *OrphanDone) JSON() any { return d.Orphan }

// Document implements [Report].
func (d *OrphanDone) Document() *ui.Document {
	var doc ui.Document
	doc.Line("%s", d.text(d.now))
	return &doc
}

func (f *Orphan) text(now time.Time) string {
	text := f.Result + " " + ui.Quote(f.Path)
	if f.Result == orphanFailed {
		text = ui.Look("not removed ") + ui.Quote(f.Path)
	}
	if f.To != "" {
		text += " as " + ui.Quote(f.To)
	}
	text += ": " + ui.Bytes(f.Bytes)
	if f.Time != nil {
		text += ", last written " + ui.Ago(*f.Time, now)
	}
	if f.Problem != "" {
		text += ": " + ui.PrintableLines(f.Problem)
	}
	return text
}

// ages are the groups of --by age, oldest last.
var ages = []struct {
	below time.Duration
	name  string
}{
	{0, "in the future"}, {time.Hour, "below 1 h"}, {24 * time.Hour, "1 h to 1 d"}, {7 * 24 * time.Hour, "1 d to 7 d"},
	{30 * 24 * time.Hour, "7 d to 30 d"}, {90 * 24 * time.Hour, "30 d to 90 d"}, {1<<63 - 1, "90 d and more"},
}

func (a *Orphans) ageOf(f *Orphan) string {
	if f.Time == nil {
		return "not known"
	}
	age := a.now.Sub(*f.Time)
	for _, g := range ages {
		if age < g.below {
			return g.name
		}
	}
	return ages[len(ages)-1].name
}

// group makes the groups: directories and files in the order of the files, jobs by
// bytes, ages by age.
func (a *Orphans) group() {
	index := map[OrphanGroup]int{}
	for i := range a.Files {
		f := &a.Files[i]
		var key OrphanGroup
		switch a.By {
		case "job":
			key.Job = f.Job
		case "age":
			key.Age = a.ageOf(f)
		case "file":
			key = OrphanGroup{File: f.Path, Kind: f.Kind, Job: f.Job}
		default:
			key = OrphanGroup{Directory: f.Directory, Kind: f.Kind, Job: f.Job}
		}
		at, known := index[key]
		if !known {
			at = len(a.Groups)
			index[key] = at
			a.Groups = append(a.Groups, key)
		}
		g := &a.Groups[at]
		g.Files++
		g.Bytes += f.Bytes
		if f.Kept == "" {
			g.Removable.add(f.Bytes)
		}
		if f.Time != nil && (g.Oldest == nil || f.Time.Before(*g.Oldest)) {
			g.Oldest = f.Time
		}
		if f.Time != nil && (g.Newest == nil || f.Time.After(*g.Newest)) {
			g.Newest = f.Time
		}
	}
	switch a.By {
	case "job":
		slices.SortStableFunc(a.Groups, func(x, y OrphanGroup) int { return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Job, y.Job)) })
	case "age":
		slices.SortStableFunc(a.Groups, func(x, y OrphanGroup) int { return compareTimes(y.Newest, x.Newest) })
	}
}

func compareTimes(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return a.Compare(*b)
}

// Lines implements [Lines]: the files, and then the rest.
func (a *Orphans) Lines() iter.Seq[any] {
	return func(yield func(any) bool) {
		for i := range a.Files {
			f := &a.Files[i]
			if a.printed && f.Result != orphanKept && f.Result != orphanRemovable {
				continue
			}
			if !yield(f) {
				return
			}
		}
		rest := *a
		rest.Files = nil
		yield(&rest)
	}
}

// orphanFields are the columns of a file.
var orphanFields = fields[Orphan]{
	textField("path", func(f *Orphan) string { return f.Path }),
	textField("directory", func(f *Orphan) string { return f.Directory }),
	textField("kind", func(f *Orphan) string { return f.Kind }),
	textField("job_id", func(f *Orphan) string { return f.Job }),
	numberField("bytes", func(f *Orphan) int64 { return f.Bytes }),
	timeField("time", func(f *Orphan) *time.Time { return f.Time }),
	textField("result", func(f *Orphan) string { return f.Result }),
	textField("kept", func(f *Orphan) string { return f.Kept }),
	textField("to", func(f *Orphan) string { return f.To }),
	textField("problem", func(f *Orphan) string { return f.Problem }),
}

// Header implements [Rows].
func (a *Orphans) Header() []string { return orphanFields.header() }

// Rows implements [Rows]: a row for each file.
func (a *Orphans) Rows() iter.Seq[[]string] { return orphanFields.texts(a.Files) }

// Columns implements [Table].
func (a *Orphans) Columns() []columns.Column { return orphanFields.columns() }

// Cells implements [Table].
func (a *Orphans) Cells() iter.Seq[[]value.Value] { return orphanFields.cells(a.Files) }

// Document implements [Report].
func (a *Orphans) Document() *ui.Document {
	var d ui.Document
	switch {
	case a.Orphaned.Files == 0:
		d.Line("%s: all are referenced (%s read)", a.Total, ui.Plural(int64(a.Snapshots), "snapshot"))
	default:
		d.Line("No snapshot refers to %s of %s, %s of %s (%s read)", ui.Count(int64(a.Orphaned.Files)), ui.Plural(int64(a.Total.Files), "file"),
			ui.Bytes(a.Orphaned.Bytes), ui.Bytes(a.Total.Bytes), ui.Plural(int64(a.Snapshots), "snapshot"))
	}
	if len(a.Groups) > 0 && !a.printed {
		d.Add(a.table())
	}
	a.appendKept(&d)
	if a.Elsewhere.Files > 0 {
		d.Line("%s elsewhere, not in a directory in which Flink keeps state: left alone", a.Elsewhere)
	}
	uploads, bytes := 0, int64(0)
	for _, l := range a.Leftovers {
		if l.Upload != "" {
			uploads++
			bytes += l.Bytes
		}
	}
	if n := len(a.Leftovers) - uploads; n > 0 {
		d.Line("%s of interrupted runs of spt, to look at and remove:  spt clean %s", ui.Plural(int64(n), "leftover"), shell.Quote(a.Roots[0]))
	}
	if uploads > 0 {
		d.Line("%s, %s, which no list of objects shows and the service keeps:  spt clean %s --uploads", ui.Plural(int64(uploads), "unfinished upload"), ui.Bytes(bytes), shell.Quote(a.Roots[0]))
	}
	if a.LeftoversUnread != "" {
		d.Remark("unfinished uploads were not looked for: %s", a.LeftoversUnread)
	}
	a.appendRefused(&d)
	switch {
	case a.printed:
		text := fmt.Sprintf("removed %s", a.Removed)
		if failed := a.Removable.Files - a.Removed.Files; failed > 0 {
			text += fmt.Sprintf("; %s not removed", ui.Count(int64(failed)))
		}
		d.Line("%s", text)
	case a.Removable.Files > 0 && len(a.Refused) == 0:
		d.Line("Nothing deleted. To delete %s older than %s:  %s", a.Removable, a.older, a.command)
	case a.Orphaned.Files > 0:
		d.Line("Nothing deleted.")
	}
	return &d
}

func (a *Orphans) table() *ui.Table {
	by := ui.Column{Header: "DIRECTORY", Shrink: 1, Cut: ui.CutMiddle, Min: 20}
	switch a.By {
	case "job":
		by = ui.Column{Header: "JOB", Min: 20}
	case "age":
		by = ui.Column{Header: "AGE"}
	case "file":
		return a.fileTable()
	}
	t := ui.NewTable(by,
		ui.Column{Header: "FILES", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "OLDEST", Align: ui.Right, Drop: 1},
		ui.Column{Header: "NEWEST", Align: ui.Right, Drop: 2},
		ui.Column{Header: "REMOVABLE", Align: ui.Right},
	)
	ago := func(when *time.Time) string {
		if when == nil {
			return "not known"
		}
		return ui.Ago(*when, a.now)
	}
	for i := range a.Groups {
		g := &a.Groups[i]
		name := cmp.Or(g.Directory, g.Job, g.Age)
		if a.By == "job" {
			name = cmp.Or(g.Job, "not known")
			if len(g.Job) == len("7f3a2c") {
				name += "…"
			}
		}
		removable := "–"
		if g.Removable.Files > 0 {
			removable = ui.Bytes(g.Removable.Bytes)
		}
		t.Row(ui.Quote(name), ui.Count(int64(g.Files)), ui.Bytes(g.Bytes), ago(g.Oldest), ago(g.Newest), removable)
	}
	return t
}

// fileTable has a row for each file.
func (a *Orphans) fileTable() *ui.Table {
	t := ui.NewTable(
		ui.Column{Header: "FILE", Shrink: 1, Cut: ui.CutMiddle, Min: 20},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "WRITTEN", Align: ui.Right, Drop: 1},
		ui.Column{Header: "RESULT"},
	)
	for i := range a.Files {
		f := &a.Files[i]
		written, result := "not known", f.Result
		if f.Time != nil {
			written = ui.Ago(*f.Time, a.now)
		}
		if f.Kept != "" {
			result += ": " + f.Kept
		}
		t.Row(ui.Quote(f.Path), ui.Bytes(f.Bytes), written, result)
	}
	return t
}

// appendKept says why files are kept.
func (a *Orphans) appendKept(d *ui.Document) {
	sums := map[string]*OrphanSum{}
	for i := range a.Files {
		if f := &a.Files[i]; f.Kept != "" {
			if sums[f.Kept] == nil {
				sums[f.Kept] = &OrphanSum{}
			}
			sums[f.Kept].add(f.Bytes)
		}
	}
	for _, k := range []struct {
		reason orphans.Reason
		text   string
	}{
		{orphans.Young, "last written within " + a.older + ": a running job may need them for a checkpoint that is not complete yet"},
		{orphans.UnknownAge, "it is not known when they were last written"},
		{orphans.InUse, "in the working directory of a running subtask"},
		{orphans.OtherName, "next to the files of a savepoint, but not named as Flink names files of state"},
		{orphans.Link, "symbolic links"},
		{orphans.JobUnread, "changelog of a job whose checkpoints are not below the directories given"},
		{orphans.Wanted, "a snapshot misses a file of that name somewhere else"},
	} {
		if s := sums[string(k.reason)]; s != nil {
			d.Remark("%s, kept: %s", s, k.text)
		}
	}
}

// maxRefused is how many reasons to delete nothing a document names.
const maxRefused = 5

func (a *Orphans) appendRefused(d *ui.Document) {
	if len(a.Refused) == 0 {
		return
	}
	d.Line("%s", ui.Bad("! nothing can be deleted, because what is referenced is not known for certain:"))
	for i, p := range a.Refused {
		if i == maxRefused {
			d.Line("  and %s more", ui.Count(int64(len(a.Refused)-i)))
			break
		}
		d.Line("  %s: %s", ui.Quote(p.Path), ui.PrintableLines(p.Message))
	}
	if slices.ContainsFunc(a.Refused, func(p OrphanProblem) bool { return p.Kind == string(orphans.Outside) }) {
		d.Line("  to read more directories:  --also DIR; where files of a reference are now:  --map OLD=NEW")
	}
}

// Question asks whether to go on.
func (a *Orphans) Question(to string) string {
	verb := "Delete "
	if to != "" {
		verb = "Move to " + ui.Quote(to) + " "
	}
	quoted := make([]string, len(a.Roots))
	for i, root := range a.Roots {
		quoted[i] = ui.Quote(root)
	}
	return fmt.Sprintf("%s%s below %s? [y/N] ", verb, a.Removable, strings.Join(quoted, ", "))
}
