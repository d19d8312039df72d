package report

import (
	"time"

	"github.com/savepoint-tools/spt/internal/ui"
)

// WatchEvent is a line of watch, and what it sends to a webhook.
type WatchEvent struct {
	Time         time.Time `json:"time"`
	Rule         string    `json:"rule"`
	Severity     string    `json:"severity,omitempty" jsonschema:"description=as the rule names it"`
	State        string    `json:"state" jsonschema:"enum=firing,enum=resolved"`
	Root         string    `json:"root"`
	Job          string    `json:"job" jsonschema:"description=directory of the job below root; empty if it is the root"`
	Path         string    `json:"path" jsonschema:"description=the newest checkpoint"`
	CheckpointID int64     `json:"checkpoint_id"`
	Condition    string    `json:"condition" jsonschema:"description=of the rule"`
	For          []string  `json:"for" jsonschema:"description=what it holds for\\, or held for: states as operator/state\\, or the checkpoint"`
}

// The states of a rule.
const (
	Firing   = "firing"
	Resolved = "resolved"
)

// Document implements [Report].
func (e *WatchEvent) Document() *ui.Document {
	var d ui.Document
	d.Line("%s %s: %s", ui.Quote(e.Rule), e.State, ShortenQuoted(e.For))
	return &d
}
