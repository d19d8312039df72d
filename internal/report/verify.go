package report

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// Verifies is the answer of verify.
type Verifies []*Verify

// Verify is what verify found in one snapshot.
type Verify struct {
	Path        string    `json:"path"`
	Sound       bool      `json:"sound" jsonschema:"description=no finding of severity error"`
	Container   string    `json:"container,omitempty"`
	Streams     int       `json:"streams"`
	Files       int       `json:"files"`
	Chunks      int       `json:"chunks,omitempty" jsonschema:"description=of an .spt, each checked against its checksum"`
	BytesRead   int64     `json:"bytes_read,omitempty"`
	Errors      int       `json:"errors"`
	Warnings    int       `json:"warnings"`
	Notes       int       `json:"notes"`
	Relocatable bool      `json:"relocatable" jsonschema:"description=can be moved as a directory: names no absolute location, and no file of a relative reference was found elsewhere"`
	Absolute    int       `json:"absolute_handles,omitempty"`
	AbsoluteIn  []string  `json:"absolute_examples,omitempty" jsonschema:"description=paths inside the snapshot of the first absolute handles and what they name"`
	Apart       int       `json:"relative_files_elsewhere,omitempty" jsonschema:"description=files of relative references that --map leads to: they are not next to _metadata"`
	NotChecked  int       `json:"not_checked_files,omitempty" jsonschema:"description=files that nobody could look for, such as those in another store than the snapshot"`
	Outside     int       `json:"outside_files,omitempty" jsonschema:"description=files that are not read because of where they are"`
	Elsewhere   int       `json:"elsewhere_files,omitempty" jsonschema:"description=files that are not at their references, and were found below the directory of the snapshot or its job"`
	Unread      int       `json:"unread_files,omitempty" jsonschema:"description=files that are not on this machine: they exist and have the recorded length, and nothing of them was read (--read)"`
	Elements    int64     `json:"elements_read,omitempty" jsonschema:"description=with --read: elements of operator and native keyed state"`
	Entries     int64     `json:"entries_read,omitempty" jsonschema:"description=with --deep: entries of keyed state, in tables also those that are overwritten"`
	Findings    []Finding `json:"findings"`
	Problem     string    `json:"problem,omitempty" jsonschema:"description=why it could not be verified at all"`

	single bool      // it is one file
	shown  []Finding // findings for a person
}

// absoluteExamples is how many absolute handles a report names.
const absoluteExamples = 2

// NewVerify returns a report of a snapshot before it is verified.
func NewVerify(path string) *Verify { return &Verify{Path: path, Findings: []Finding{}} }

// Verified adds what verifying a snapshot found besides findings.
func (v *Verify) Verified(r *Run, snap *reader.Snapshot, found *reader.Verification) {
	v.Container = snap.Container.Describe()
	v.Streams, v.Files, v.Chunks, v.BytesRead = found.Streams, found.Files, found.Chunks, found.BytesRead
	v.Errors, v.Warnings, v.Notes = found.Faults, found.Warnings, found.Notes
	v.NotChecked, v.Outside, v.Elsewhere, v.Elements = found.NotChecked, found.Outside, found.Elsewhere, found.Elements
	v.Unread, v.Entries = found.Unread, found.Entries
	v.Relocatable, v.Absolute, v.Apart = found.Relocatable(), found.Absolute, found.Apart
	v.single = snap.Container.Family == reader.SPT
	v.Sound = v.Errors == 0
	fileref.EachAbsolute(snap.Savepoint, func(p format.Place, path string) {
		if len(v.AbsoluteIn) < absoluteExamples {
			v.AbsoluteIn = append(v.AbsoluteIn, fmt.Sprintf("%s: %s", p, ui.Quote(r.Text(path))))
		}
	})
}

// Show sets the findings that a person is shown, if not all.
func (v *Verify) Show(shown []Finding) { v.shown = shown }

// Shown returns the findings that a person is shown.
func (v *Verify) Shown() []Finding { return v.shown }

// Document implements [Report].
func (all Verifies) Document() *ui.Document {
	var d ui.Document
	for _, v := range all {
		v.appendTo(&d)
	}
	return &d
}

// Lines implements [Lines].
func (all Verifies) Lines() iter.Seq[any] { return each(all) }

// Header implements [Rows].
func (all Verifies) Header() []string {
	return []string{"path", "severity", "code", "place", "file", "message"}
}

// Rows implements [Rows]: a row for each finding.
func (all Verifies) Rows() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, v := range all {
			for _, f := range v.Findings {
				if !yield([]string{v.Path, f.Severity, f.Code, f.Place, f.File, f.Message}) {
					return
				}
			}
		}
	}
}

func (v *Verify) appendTo(d *ui.Document) {
	if v.Problem != "" {
		d.Line("%s: %s %s", ui.Quote(v.Path), ui.Bad("not verified:"), v.Problem)
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s · %s · %s, %s", ui.Quote(v.Path), v.verdict(), v.Container, ui.Plural(int64(v.Streams), "handle"), ui.Plural(int64(v.Files), "file"))
	if v.Chunks > 0 {
		fmt.Fprintf(&b, ", %s with their checksums", ui.Plural(int64(v.Chunks), "chunk"))
	}
	if v.BytesRead > 0 {
		fmt.Fprintf(&b, ", %s read", ui.Bytes(v.BytesRead))
	}
	if v.Elements > 0 {
		fmt.Fprintf(&b, ", %s decoded", ui.Plural(v.Elements, "element"))
	}
	if v.Entries > 0 {
		fmt.Fprintf(&b, ", %s of keyed state decoded", ui.Plural(v.Entries, "entry"))
	}
	d.Line("%s", b.String())
	d.Add(Findings(v.shown))
	v.appendMoving(d)
	if v.Unread > 0 {
		d.Line("Of %s that %s not on this machine, only existence and length were checked. To read them too:  spt verify --read %s", ui.Plural(int64(v.Unread), "file"), isAre(v.Unread), shell.Quote(v.Path))
	}
	d.Line("Integrity only. Whether Flink would restore it from where it is:  spt check %s", shell.Quote(v.Path))
}

// Soundness is what verify concludes.
type Soundness string

// The conclusions.
const (
	Sound     Soundness = "sound"
	Look      Soundness = "look" // sound as far as it was checked, with something to look at
	NotSound  Soundness = "not sound"
	NotJudged Soundness = "not judged" // it could not be verified at all
)

// Verdict returns what verify concludes, for a program and for a person.
func (v *Verify) Verdict() (Soundness, string) {
	switch unread := v.NotChecked + v.Outside; {
	case v.Problem != "":
		return NotJudged, "not verified: " + v.Problem
	case v.Errors > 0:
		return NotSound, ui.Plural(int64(v.Errors), "error")
	case unread > 0:
		return Look, fmt.Sprintf("sound as far as it was read, %s not checked", ui.Plural(int64(unread), "file"))
	case v.Unread > 0 && v.Warnings == 0:
		return Look, "sound as far as it was read"
	case v.Warnings > 0:
		return Look, "sound, with " + ui.Plural(int64(v.Warnings), "warning")
	case v.Elsewhere > 0:
		return Look, fmt.Sprintf("sound, but %s not at the reference", ui.Plural(int64(v.Elsewhere), "file"))
	}
	return Sound, "sound"
}

func (v *Verify) verdict() string {
	switch sound, text := v.Verdict(); sound {
	case Sound:
		return ui.Proved(text)
	case Look:
		return ui.Look(text)
	default:
		return ui.Bad(text)
	}
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// appendMoving says whether the snapshot can be moved. Where files are missing, the
// findings say what to do.
func (v *Verify) appendMoving(d *ui.Document) {
	missing := slices.ContainsFunc(v.Findings, func(f Finding) bool {
		return f.Code == "file-missing" || f.Code == "claimed-native" || f.Code == "path"
	})
	switch {
	case v.Relocatable && missing:
	case v.Relocatable && v.single:
		d.Line("It refers to no absolute location: it can be moved as one file.")
	case v.Relocatable:
		d.Line("It refers to no absolute location: it can be moved as a directory.")
	case v.Absolute == 0:
		verb := "are"
		if v.Apart == 1 {
			verb = "is"
		}
		d.Line("It cannot be moved as it is: %s of relative references %s not next to _metadata. A copy that can be moved:  spt convert", ui.Plural(int64(v.Apart), "file"), verb)
	default:
		verb := "refer to absolute locations, such as"
		if v.Absolute == 1 {
			verb = "refers to an absolute location"
		}
		d.Line("It cannot be moved as it is: %s %s", ui.Plural(int64(v.Absolute), "handle"), verb)
		for _, p := range v.AbsoluteIn {
			d.Line("  %s", p)
		}
	}
}
