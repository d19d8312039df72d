package report

import (
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// addFiles adds the files of the snapshot, and what deserves a look with them.
func (x *Inspect) addFiles(files []reader.FileState) {
	x.files, x.FileCount = files, len(files)
	for _, f := range files {
		switch f.Status() {
		case reader.FileNotChecked:
			x.NotChecked = append(x.NotChecked, x.missing(f.File, x.run.notCheckedReason(f.Err)))
		case reader.FileRefused:
			x.OutsideFiles = append(x.OutsideFiles, x.missing(f.File, x.run.Hide(f.Err.Error())))
		}
		switch {
		case f.Wrong != "":
			x.WrongFiles = append(x.WrongFiles, x.missing(f.File, f.Wrong))
		case f.Missing():
			x.Bytes.Unreachable += f.Bytes
			x.MissingFiles = append(x.MissingFiles, x.missing(f.File, f.Err.Error()))
		case f.Found.Instead != "":
			x.MovedFiles++
		}
	}
	if n := len(x.MissingFiles); n > 0 {
		x.Warnings = append(x.Warnings, InspectWarning{
			Code:    "missing_files",
			Message: fmt.Sprintf("%s (%s) cannot be found: the snapshot is not complete here", ui.Plural(int64(n), "file"), ui.Bytes(x.Bytes.Unreachable)),
			Command: "spt verify " + shell.Quote(x.Path),
			more:    "if files were moved, say where with --map OLD=NEW",
		})
	}
	if n := len(x.NotChecked); n > 0 {
		bytes := int64(0)
		for _, f := range x.NotChecked {
			bytes += f.Bytes
		}
		x.Warnings = append(x.Warnings, InspectWarning{
			Code:    "not_checked_files",
			Message: fmt.Sprintf("%s (%s) not checked: %s", ui.Plural(int64(n), "file"), ui.Bytes(bytes), reasons(x.NotChecked)),
			more:    "copies elsewhere are found with --map OLD=NEW",
		})
	}
	if n := len(x.OutsideFiles); n > 0 {
		var follow []string
		for _, f := range files {
			var out *reader.OutsideError
			if errors.As(f.Err, &out) && out.Follow != "" && !slices.Contains(follow, out.Follow) {
				follow = append(follow, out.Follow)
			}
		}
		x.Warnings = append(x.Warnings, InspectWarning{
			Code:    "outside_files",
			Message: fmt.Sprintf("%s outside the snapshot and its checkpoint directory, such as %s: commands that read state refuse them", ui.Plural(int64(n), "file"), ui.Quote(x.OutsideFiles[0].Path)),
			more:    x.run.Advice(fileref.AllowOutside(follow...)),
		})
	}
	if n := len(x.WrongFiles); n > 0 {
		w := x.WrongFiles[0]
		x.Warnings = append(x.Warnings, InspectWarning{
			Code:    "wrong_files",
			Message: fmt.Sprintf("%s not of the recorded length, such as %s: %s", ui.Plural(int64(n), "file"), ui.Quote(w.Path), w.Why),
			Command: "spt verify " + shell.Quote(x.Path),
		})
	}
}

// addUnchecked adds files that were not checked for one reason. A snapshot that was read
// from standard input can be given to no other command.
func (x *Inspect) addUnchecked(files []summary.File, why error) {
	x.FileCount = len(files)
	for i := range x.Warnings {
		if x.Path == "-" {
			x.Warnings[i].Command = ""
		}
	}
	for _, f := range files {
		x.files = append(x.files, reader.FileState{File: f, Err: &reader.NotCheckedError{Reference: f.Path, Err: why}})
		x.NotChecked = append(x.NotChecked, x.missing(f, why.Error()))
	}
}

func (x *Inspect) missing(f summary.File, why string) InspectMissing {
	return InspectMissing{x.run.Text(f.Path), f.Bytes, f.Handles, why}
}

// notCheckedReason returns why nobody looked for a file, without the file.
func (r *Run) notCheckedReason(err error) string {
	var e *reader.NotCheckedError
	if errors.As(err, &e) {
		return r.Hide(e.Reason())
	}
	return r.Hide(Reason(err))
}

// Reason returns what an error says of a file, without the file.
func Reason(err error) string {
	var s *storage.Error
	if errors.As(err, &s) && s.Err != nil {
		return s.Err.Error()
	}
	return err.Error()
}

// reasons returns why files were not checked, each reason once.
func reasons(files []InspectMissing) string {
	var all []string
	for _, f := range files {
		if !slices.Contains(all, f.Why) {
			all = append(all, f.Why)
		}
	}
	return Shorten(all)
}
