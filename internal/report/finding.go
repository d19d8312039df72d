package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Finding is one finding: of verify, of check, or of a snapshot that a command was to
// write.
type Finding struct {
	Severity string `json:"severity" jsonschema:"enum=error,enum=warning,enum=note"`
	Code     string `json:"code" jsonschema:"description=stable; docs/findings.md says what each means"`
	Operator string `json:"operator,omitempty"`
	ID       string `json:"id,omitempty"`
	State    string `json:"state,omitempty"`
	Place    string `json:"place,omitempty" jsonschema:"description=path inside the snapshot"`
	File     string `json:"file,omitempty" jsonschema:"description=reference concerned"`
	Message  string `json:"message"`
	Found    string `json:"found,omitempty" jsonschema:"description=of a file that is not at its reference: where it was found"`
	Advice   string `json:"advice,omitempty"`
	// Parts are the parts of a type that differ, if there are several.
	Parts []TypePart `json:"parts,omitempty" jsonschema:"description=of a type: all parts that differ"`

	like string // what the advice shares with findings of the same kind
}

// NewFinding returns a finding with its names as the run shows them.
func (r *Run) NewFinding(f finding.Finding) Finding {
	row := Finding{Severity: string(f.Severity), Code: f.Code, Operator: f.UID, State: r.Text(f.State), Place: r.Hide(f.Place), File: r.Text(f.File),
		Message: r.Hide(f.Message), Found: r.Hide(f.Found), Advice: r.Advice(f.Advice), like: alike(f.Advice)}
	for _, p := range f.Parts {
		row.Parts = append(row.Parts, TypePart{Path: r.Text(p.Path), Compatibility: p.Verdict, Why: r.Hide(p.Why)})
	}
	if f.Operator != nil {
		row.Operator, row.ID = r.Label(f.Operator), f.Operator.ID.String()
	}
	return row
}

// TypePart is a part of a type that differs.
type TypePart struct {
	Path          string `json:"path,omitempty" jsonschema:"description=fields with dots, [] for an element; absent for the whole type"`
	Compatibility string `json:"compatibility" jsonschema:"enum=compatible as is,enum=compatible after migration,enum=undecided,enum=incompatible"`
	Why           string `json:"why"`
}

// text is the part in a sentence.
func (p *TypePart) text() string {
	return fmt.Sprintf("%s: %s (%s)", cmp.Or(p.Path, "the type"), p.Why, p.Compatibility)
}

// NewFindings returns findings with their names as the run shows them.
func (r *Run) NewFindings(all []finding.Finding) []Finding {
	rows := make([]Finding, len(all))
	for i, f := range all {
		rows[i] = r.NewFinding(f)
	}
	return rows
}

// Findings returns findings as a block of a document.
func Findings(rows []Finding) ui.Findings {
	all := make(ui.Findings, len(rows))
	for i, r := range rows {
		all[i] = ui.Finding{Level: ui.Level(r.Severity), Kind: r.Code, Place: r.Place, Text: r.Message, Advice: r.Advice, Like: r.like}
		for k := range r.Parts {
			all[i].Text += map[bool]string{true: ". All parts: ", false: "; "}[k == 0] + ui.Printable(r.Parts[k].text())
		}
		if r.Place == "" && r.Operator != "" {
			all[i].Place = ui.Quote(r.Operator)
			if r.State != "" {
				all[i].Place += "/" + ui.Quote(r.State)
			}
		}
		if r.File != "" && !strings.Contains(r.Message, r.File) && !strings.Contains(r.Message, ui.Quote(r.File)) {
			all[i].Detail = ui.Quote(r.File)
		}
	}
	return all
}
