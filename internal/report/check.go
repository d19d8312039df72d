package report

import (
	"fmt"
	"iter"
	"strings"

	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/check"
)

// Check is the answer of check.
type Check struct {
	Path          string          `json:"path"`
	Restorable    bool            `json:"restorable" jsonschema:"description=no finding of severity error"`
	Container     string          `json:"container"`
	JobKnown      string          `json:"job_known" jsonschema:"description=no, or what describes the job: names, plan, a snapshot like it, joined by 'and'"`
	Matched       []CheckOperator `json:"matched,omitempty" jsonschema:"description=operators of the snapshot that the job has"`
	Errors        int             `json:"errors"`
	Warnings      int             `json:"warnings"`
	Notes         int             `json:"notes"`
	NotChecked    int             `json:"not_checked_files,omitempty" jsonschema:"description=files that could not be looked for, or that are not read because of where they are"`
	Findings      []Finding       `json:"findings"`
	Renames       []Rename        `json:"renames,omitempty" jsonschema:"description=operators that the older snapshot likely has, or may have, under another id"`
	NameChanges   []NameChange    `json:"name_changes,omitempty" jsonschema:"description=operators of one id whose stored name changed: the id may be that of another operator now"`
	RenameCommand string          `json:"rename_command,omitempty" jsonschema:"description=renames all that are likely in the older snapshot; absent where a uid is not known"`

	suggested *renames
}

// CheckOperator is an operator of the snapshot that the job has.
type CheckOperator struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	From     int32  `json:"from_parallelism"`
	To       int32  `json:"to_parallelism"`
	Max      int32  `json:"max_parallelism"`
}

// jobUnknown is [Check.JobKnown] where nothing describes the job.
const jobUnknown = "no"

// NewCheck reports what a restore of the snapshot at path would meet. known are the
// descriptions of the job.
func (r *Run) NewCheck(path string, c reader.Container, known []string, found *check.Report, notChecked int) *Check {
	res := &Check{
		Path: path, Container: c.Describe(), JobKnown: jobUnknown, NotChecked: notChecked, Findings: []Finding{},
		Errors: found.Count(finding.Error), Warnings: found.Count(finding.Warning), Notes: found.Count(finding.Note),
	}
	if len(known) > 0 {
		res.JobKnown = strings.Join(known, " and ")
	}
	res.Restorable = res.Errors == 0
	res.suggested = r.newRenames(found.Renames, path)
	res.Renames, res.NameChanges, res.RenameCommand = res.suggested.list, res.suggested.names, res.suggested.command
	for _, m := range found.Matched {
		res.Matched = append(res.Matched, CheckOperator{r.Label(m.Operator), m.Operator.ID.String(), m.Operator.Parallelism, m.To, m.Operator.MaxParallelism})
	}
	return res
}

// Document implements [Report].
func (c *Check) Document() *ui.Document {
	var d ui.Document
	d.Line("%s: %s · %s", ui.Quote(c.Path), c.verdict(), c.Container)
	if c.JobKnown == jobUnknown {
		d.Line("The job is not known, so only job-independent checks were made; describe it with --names, --plan or --like.")
	}
	for _, m := range c.Matched {
		parallelism := fmt.Sprint(m.To)
		if m.From != m.To {
			parallelism = fmt.Sprintf("%d → %d", m.From, m.To)
		}
		d.Line("  %s  %s: parallelism %s of at most %d", ui.Dim("takes"), ui.Quote(m.Operator), parallelism, m.Max)
	}
	d.Add(Findings(c.Findings))
	c.suggested.appendTo(&d)
	return &d
}

func (c *Check) verdict() string {
	switch {
	case c.Errors > 0:
		return ui.Bad("would not restore: " + ui.Plural(int64(c.Errors), "error"))
	case c.NotChecked > 0:
		return ui.Look(fmt.Sprintf("no error found, %s not checked", ui.Plural(int64(c.NotChecked), "file")))
	case c.Warnings > 0:
		return ui.Look("would restore, with " + ui.Plural(int64(c.Warnings), "warning"))
	}
	return ui.Proved("no obstacle to a restore found")
}

// Lines implements [Lines]: a line for each finding.
func (c *Check) Lines() iter.Seq[any] { return each(c.Findings) }

// Header implements [Rows].
func (c *Check) Header() []string {
	return []string{"severity", "code", "operator", "id", "state", "message", "advice"}
}

// Rows implements [Rows]: a row for each finding.
func (c *Check) Rows() iter.Seq[[]string] {
	return rows(c.Findings, func(f *Finding) []string {
		return []string{f.Severity, f.Code, f.Operator, f.ID, f.State, f.Message, f.Advice}
	})
}
