package report

import (
	"iter"

	"github.com/savepoint-tools/spt/internal/ui"
)

// Hashes is the answer of hash.
type Hashes []Hash

// Hash is one uid and the id that Flink derives from it.
type Hash struct {
	UID    string `json:"uid" jsonschema:"description=empty if only the id is known"`
	ID     string `json:"id"`
	FromID bool   `json:"from_id,omitempty" jsonschema:"description=the argument was this id\\, not a uid"`
	Found  *bool  `json:"found,omitempty" jsonschema:"description=with --in: whether the snapshot has an operator with this id"`
}

// Document implements [Report].
func (all Hashes) Document() *ui.Document {
	t := ui.NewTable(ui.Column{}, ui.Column{}, ui.Column{})
	for i := range all {
		h := &all[i]
		uid := "–"
		if h.UID != "" {
			uid = ui.Quote(h.UID)
		}
		t.Row(h.ID, uid, h.found(ui.Proved("found"), ui.Look("not there")))
	}
	var d ui.Document
	d.Add(t)
	return &d
}

// Lines implements [Lines].
func (all Hashes) Lines() iter.Seq[any] { return each(all) }

// Header implements [Rows].
func (all Hashes) Header() []string { return []string{"id", "uid", "found"} }

// Rows implements [Rows].
func (all Hashes) Rows() iter.Seq[[]string] {
	return rows(all, func(h *Hash) []string { return []string{h.ID, h.UID, h.found("true", "false")} })
}

func (h *Hash) found(yes, no string) string {
	switch {
	case h.Found == nil:
		return ""
	case *h.Found:
		return yes
	}
	return no
}
