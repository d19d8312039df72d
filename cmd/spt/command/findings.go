package command

import (
	"strings"

	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/ui"
)

// FindingRow is one finding: of verify, of check, or of a snapshot that a command
// was to write.
type FindingRow struct {
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
	like     string // the advice before names in it were put as a shell reads them
}

// findingRow makes a finding fit to be shown.
func (e *Env) findingRow(f finding.Finding) FindingRow {
	row := FindingRow{Severity: string(f.Severity), Code: f.Code, Operator: f.UID, State: e.text(f.State), Place: e.hide(f.Place), File: e.text(f.File),
		Message: e.hide(f.Message), Found: e.hide(f.Found), Advice: e.paste(e.hide(f.Advice)), like: e.hide(f.Advice)}
	if f.Operator != nil {
		row.Operator, row.ID = e.label(f.Operator), f.Operator.ID.String()
	}
	return row
}

// appendFindings shows findings to a person.
func appendFindings(b *strings.Builder, term ui.Term, rows []FindingRow) {
	all := make([]ui.Finding, len(rows))
	for i, r := range rows {
		all[i] = ui.Finding{Level: ui.Level(r.Severity), Kind: r.Code, Place: r.Place, Text: r.Message, Advice: r.Advice, Like: r.like}
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
	ui.AppendFindings(b, term, all)
}
