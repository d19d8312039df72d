package report

import (
	"errors"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// FileGroups gathers findings. Files of one directory with the same fault are one
// finding, in the words of check.
type FileGroups struct {
	run   *Run
	order []*FileGroup
	found map[[3]string]*FileGroup // by code, directory and fault
}

// FileGroup is a finding on some files.
type FileGroup struct {
	finding.Finding
	Names []string // of the first files

	files        int
	fault, after string // "3 files FAULT, such as NAME; AFTER"
	dir          string // of the references; "" for files next to _metadata
}

// maxNames is how many names of files a group keeps.
const maxNames = 64

// NewFileGroups returns an empty list.
func (r *Run) NewFileGroups() *FileGroups {
	return &FileGroups{run: r, found: map[[3]string]*FileGroup{}}
}

// where says where the files of references in a directory should be.
func (r *Run) where(dir string) string {
	if dir == "" {
		return "next to _metadata"
	}
	return "in " + ui.Quote(r.Text(dir))
}

// add adds a file to the group of its directory and fault.
func (g *FileGroups) add(f finding.Finding, file, fault, after string) {
	dir, name := SplitName(file)
	key := [3]string{f.Code, dir, fault}
	group := g.found[key]
	if group == nil {
		group = &FileGroup{Finding: f, fault: fault, after: after, dir: dir}
		group.File, group.Found, group.Place = "", "", ""
		g.found[key] = group
		g.order = append(g.order, group)
	}
	if len(group.Names) < maxNames {
		group.Names = append(group.Names, name)
	}
	if group.files++; group.Operator != f.Operator {
		group.Operator = nil // several have the files
	}
}

// Findings returns all, each where the first of its files was added.
func (g *FileGroups) Findings() []finding.Finding {
	all := make([]finding.Finding, len(g.order))
	for i, group := range g.order {
		if group.files > 0 {
			group.Message = group.text(g.run)
		}
		all[i] = group.Finding
	}
	return all
}

func (f *FileGroup) text(r *Run) string {
	text := ui.Plural(int64(f.files), "file") + " " + f.fault + ", "
	if f.files > 1 {
		text += "such as "
	}
	text += ui.Quote(r.Text(f.Names[0]))
	if f.after != "" {
		text += "; " + f.after
	}
	return text
}

// Missing returns the groups whose files may be elsewhere.
func (g *FileGroups) Missing() []*FileGroup {
	var all []*FileGroup
	for _, group := range g.order {
		if group.Code == "file-missing" || group.Code == "claimed-native" {
			all = append(all, group)
		}
	}
	return all
}

// AdviseMissing adds how a command on the snapshot at location finds the files of a group:
// n of its names are in the directory found, which is "" if they were not seen.
func (g *FileGroups) AdviseMissing(f *FileGroup, command, location, found string, n int) {
	old := strings.TrimSuffix(f.dir, "/")
	if f.dir == "" {
		old = "."
	}
	words, dir := "if there is a copy in DIR", "DIR"
	if found != "" {
		dir = found
		switch {
		case len(f.Names) == 1:
			words = "it is"
		case n == len(f.Names):
			words = "all of them are"
		default:
			words = fmt.Sprintf("%d of them are", n)
		}
		words += " in " + ui.Quote(found)
	}
	in, option := shell.Quote(location), "--map "+shell.Quote(g.run.Text(old)+"="+dir)
	f.Advice = finding.Words(fmt.Sprintf("%s:  spt %s %s %s\nto write that down:  spt relocate %s OUT %s", words, command, in, option, in, option))
}

// AddVerified adds a finding of verify.
func (g *FileGroups) AddVerified(f finding.Finding) {
	dir, _ := SplitName(f.File)
	where := g.run.where(dir)
	switch f.Code {
	case "file-missing":
		fault := "missing " + where
		if !strings.HasSuffix(f.Message, " is missing") { // the store says more
			fault += ": " + f.Message
		}
		g.add(f, f.File, fault, "")
	case "claimed-native":
		g.add(f, f.File, "missing "+where, fileref.ClaimedNative)
	case "file-not-checked":
		_, why, _ := strings.Cut(f.Message, " was not checked: ")
		g.add(f, f.File, fmt.Sprintf("not checked %s (%s)", where, why), "")
	case "file-outside":
		g.add(f, f.File, where+" outside the snapshot and its checkpoint directory, so not read", "")
	case "file-elsewhere":
		to, _ := SplitName(f.Found)
		g.add(f, f.File, fmt.Sprintf("found in %s, not %s, where Flink looks", ui.Quote(to), where), "")
	default:
		g.order = append(g.order, &FileGroup{Finding: f})
	}
}

// RestoredFile is a file that a restore needs.
type RestoredFile struct {
	reader.FileState
	User    *format.Operator // nil: several
	Owner   string           // the directory of another snapshot, if the file is in one
	Claimed bool             // of a native savepoint whose files were claimed
	NoStore bool             // its reference is in a store that is not supported
}

// LeadsOutside reports whether the reference is relative and not a file name. Flink
// writes no such reference; the file was not looked for.
func LeadsOutside(f reader.FileState) bool {
	return f.Relative && errors.Is(f.Err, format.ErrOutside) && !fileref.IsPlain(f.Path)
}

// AddOutside adds that the content of a file was not looked at. A user of nil is several.
func (g *FileGroups) AddOutside(file string, user *format.Operator, out *reader.OutsideError) {
	dir, _ := SplitName(file)
	g.add(finding.Finding{Severity: finding.Note, Code: "file-outside", Operator: user, Advice: out.Remedies()}, file,
		g.run.where(dir), "that is outside the snapshot and its checkpoint directory, so their content was not checked")
}

// AddRestored adds what a restore would meet at a file.
func (g *FileGroups) AddRestored(f RestoredFile) {
	dir, _ := SplitName(f.Path)
	where, owner := g.run.where(dir), ui.Quote(g.run.Text(f.Owner))
	add := func(severity finding.Severity, code, fault, after string, advice ...finding.Remedy) {
		g.add(finding.Finding{Severity: severity, Code: code, Operator: f.User, Advice: advice}, f.Path, fault, after)
	}
	var unchecked *reader.NotCheckedError
	var outside *reader.OutsideError
	switch {
	case errors.As(f.Err, &unchecked) && unchecked.Scheme != "":
		add(finding.Note, "file-not-checked", fmt.Sprintf("not checked %s (%s)", where, unchecked.Reason()), "", unchecked.Remedies()...)
	case errors.As(f.Err, &unchecked):
		add(finding.Warning, "file-not-checked", fmt.Sprintf("not checked %s (%s)", where, unchecked.Reason()), "")
	case LeadsOutside(f.FileState):
		add(finding.Error, "path", "named by a relative reference that leads outside the snapshot and is not followed", "")
	case errors.As(f.Err, &outside):
		g.AddOutside(f.Path, f.User, outside)
	case errors.Is(f.Err, format.ErrOutside):
	case errors.Is(f.Err, storage.ErrNotExist) && f.Owner != "":
		add(finding.Error, "file-gone", "missing "+where, "that is the directory of another snapshot, which took them along when it was deleted",
			finding.Remedy{Words: "find a copy of " + owner + " and say where", Action: finding.MapFiles}, finding.Remedy{Words: "take another snapshot"})
	case errors.Is(f.Err, storage.ErrNotExist) && f.Claimed:
		add(finding.Error, "claimed-native", "missing "+where, fileref.ClaimedNative)
	case errors.Is(f.Err, storage.ErrNotExist):
		add(finding.Error, "file-missing", "missing "+where, "")
	case f.Err != nil:
		add(finding.Error, "path", where+" that Flink writes no reference to", Reason(f.Err))
	case f.Wrong != "":
		add(finding.Error, "file-length", where+" not of the recorded length", f.Wrong, finding.Remedy{Words: "it was cut, or is another file: copy it again"})
	case f.Found.Instead != "":
		severity := finding.Error
		if f.NoStore {
			severity = finding.Warning // the file may be at its reference as well
		}
		add(severity, "file-elsewhere", "not found "+where, "found below the directory of the snapshot or its job instead, where Flink does not look",
			finding.Remedy{Words: "to copy it with its files, without absolute references", Action: finding.Copy})
	case f.Owner != "":
		add(finding.Warning, "file-of-another", where, "that is the directory of another snapshot: when it is deleted, this one no longer restores",
			finding.Remedy{Words: "keep " + owner}, finding.Remedy{Words: "make a copy that needs no other snapshot", Action: finding.Copy})
	}
}
