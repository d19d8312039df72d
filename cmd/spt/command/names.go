package command

import (
	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
)

// text is foreign text as --format wants it: a name that a result shows. What
// goes to a table passes through ui.Quote on top.
func (e *Env) text(s string) string {
	if s == "" || e.common.format == ui.FormatAuto || e.common.format == ui.FormatText {
		return s
	}
	return ui.Value([]byte(s), e.common.format, 0)
}

// label is the best name of an operator: uid, else name, else a uid that
// --names gives its id, else the first digits of the id.
func (e *Env) label(op *format.Operator) string {
	if op.UID.String() != "" || op.Name.String() != "" {
		return e.text(op.Label())
	}
	if uid := e.uids[op.ID.String()]; uid != "" {
		return uid
	}
	return op.ID.Short()
}

// uid is an operator's uid, stored or known by --names; "" if neither.
func (e *Env) uid(op *format.Operator) string {
	if s := op.UID.String(); s != "" {
		return e.text(s)
	}
	return e.uids[op.ID.String()]
}
