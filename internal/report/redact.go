package report

import (
	"fmt"

	"github.com/savepoint-tools/spt/internal/ui"
)

// Redaction is what was redacted of a snapshot.
type Redaction struct {
	Names    bool     `json:"names,omitempty" jsonschema:"description=names of operators, states and files too"`
	Elements int64    `json:"elements" jsonschema:"description=of operator state whose values were replaced"`
	Entries  int64    `json:"entries" jsonschema:"description=of keyed state whose keys and values were replaced"`
	KeptKeys int64    `json:"kept_keys,omitempty" jsonschema:"description=keys that stay as they are: their length and key group allow no other"`
	Dropped  []string `json:"dropped,omitempty" jsonschema:"description=parts that were dropped"`
}

func (r *Redaction) text() string {
	return fmt.Sprintf("redacted %s of operator state and %s of keyed state", ui.Plural(r.Elements, "element"), ui.Plural(r.Entries, "entry"))
}

// remarks are what to know before the result is given away.
func (r *Redaction) remarks() (all []string) {
	if r.KeptKeys > 0 {
		all = append(all, fmt.Sprintf("unchanged: %s, whose length and key group allow no other", ui.Plural(r.KeptKeys, "key")))
	}
	if r.Names {
		all = append(all, "names in serializer snapshots stay: classes, fields, constants of enums, schemas")
	} else {
		all = append(all, "names stay: operators, states, files and their locations, and those in serializer snapshots")
	}
	return all
}

func (r *Redaction) appendTo(d *ui.Document) {
	d.Line("%s", r.text())
	appendNames(d, "dropped", r.Dropped)
	for _, s := range r.remarks() {
		d.Remark("%s.", s)
	}
}

// Redacted adds what was redacted.
func (e *Edit) Redacted(r *Redaction) {
	e.add(nil, Change{What: r.text()})
	for _, part := range r.Dropped {
		e.add(nil, Change{What: "dropped", From: part})
	}
	for _, s := range r.remarks() {
		e.Remark("%s", s)
	}
}
