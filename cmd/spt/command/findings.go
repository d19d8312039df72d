package command

import (
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/report"
)

// finding returns a finding as this run shows it.
func (e *Env) finding(f finding.Finding) report.Finding { return e.run.NewFinding(f) }
