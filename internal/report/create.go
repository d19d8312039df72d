package report

import (
	"fmt"

	"github.com/savepoint-tools/spt/internal/ui"
)

// Create is the answer of create.
type Create struct {
	Flink     string            `json:"flink" jsonschema:"description=release that the savepoint is for"`
	Operators []CreatedOperator `json:"operators"`
	Write     *Write            `json:"write"`
}

// CreatedOperator is an operator of a savepoint that was created.
type CreatedOperator struct {
	UID            string         `json:"uid,omitempty"`
	Name           string         `json:"name,omitempty"`
	ID             string         `json:"id"`
	Parallelism    int32          `json:"parallelism"`
	MaxParallelism int32          `json:"max_parallelism"`
	Key            string         `json:"key,omitempty" jsonschema:"description=type of the keys of keyed state"`
	States         []CreatedState `json:"states"`
}

// CreatedState is one of its states.
type CreatedState struct {
	State   string `json:"state"`
	Kind    string `json:"kind"`
	Keyed   bool   `json:"keyed"`
	Type    string `json:"type,omitempty" jsonschema:"description=timers have none"`
	Entries int64  `json:"entries" jsonschema:"description=rows: elements or entries; replicas of broadcast state count each"`
}

// Document implements [Report].
func (c *Create) Document() *ui.Document {
	var d ui.Document
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16}, ui.Column{Header: "KIND"},
		ui.Column{Header: "TYPE", Shrink: 2, Min: 12}, ui.Column{Header: "PAR/MAX", Align: ui.Right}, ui.Column{Header: "ROWS", Align: ui.Right},
	)
	for _, op := range c.Operators {
		key := ""
		if op.Key != "" {
			key = "key: " + op.Key
		}
		name := op.UID
		if name == "" {
			name = op.ID
		}
		t.Row(ui.Quote(name), "", key, fmt.Sprintf("%d/%d", op.Parallelism, op.MaxParallelism))
		for _, s := range op.States {
			kind := s.Kind
			if s.Keyed {
				kind = "keyed " + kind
			}
			t.Child(1, ui.Quote(s.State), kind, s.Type, "", ui.Count(s.Entries))
		}
	}
	d.Add(t)
	c.Write.appendTo(&d)
	return &d
}
