package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Edit is the answer of commands that change something in a snapshot: what they
// change, and how the result is written.
type Edit struct {
	Changes []Change `json:"changes"`
	Remarks []string `json:"remarks,omitempty"`
	Steps   []Step   `json:"steps,omitempty" jsonschema:"description=of apply: each with its changes"`
	// Bytes of state before and after. Steps have their own.
	StateBefore int64 `json:"state_bytes_before,omitempty"`
	StateAfter  int64 `json:"state_bytes_after,omitempty"`
	// Sizes of _metadata, where IN and OUT have one.
	MetadataBefore int64  `json:"metadata_bytes_before,omitempty"`
	MetadataAfter  int64  `json:"metadata_bytes_after,omitempty"`
	Write          *Write `json:"write"`

	// Skipped names what was asked for and left as it is; Partial is what was not done,
	// or is wrong with the result. In both cases the result is partial.
	Skipped []string `json:"-"`
	Partial string   `json:"-"`

	run *Run
}

// Change is one change of a snapshot.
type Change struct {
	What      string `json:"what" jsonschema:"description=renamed, dropped, set, filtered, patched, relocated"`
	Operator  string `json:"operator,omitempty"`
	ID        string `json:"id,omitempty"`
	State     string `json:"state,omitempty"`
	Kind      string `json:"kind,omitempty" jsonschema:"description=of a filter or a patch: list, union, broadcast or raw, or that of a keyed state; of a broadcast state the entries of all replicas count as elements"`
	WholeMaps bool   `json:"whole_maps,omitempty" jsonschema:"description=of a filter: maps of this broadcast state are not decoded, so they stayed or went as a whole and count as one element each"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
	Partition string `json:"partition,omitempty" jsonschema:"description=of a source: TOPIC:PARTITION"`
	// Coordinator is set if a partition was changed in the coordinator's state too.
	Coordinator bool   `json:"coordinator,omitempty" jsonschema:"description=of a partition: changed in the state of the coordinator too"`
	Handles     int    `json:"handles,omitempty"`
	Elements    int64  `json:"elements,omitempty" jsonschema:"description=of the state; of a filter those that stay"`
	By          int64  `json:"shifted_by_ms,omitempty" jsonschema:"description=of timers: how much later they fire"`
	First       *int64 `json:"first_at_ms,omitempty" jsonschema:"description=of timers: when the first fires, in ms since 1970"`
	Entries     int64  `json:"entries,omitempty" jsonschema:"description=of keyed state; of a filter those that stay"`
	Bytes       int64  `json:"bytes,omitempty"`
	// Of a filter: what goes, next to Elements and Bytes, which stay.
	Dropped        *int64 `json:"dropped_elements,omitempty"`
	DroppedEntries *int64 `json:"dropped_entries,omitempty" jsonschema:"description=of keyed state"`
	DroppedBytes   int64  `json:"dropped_bytes,omitempty"`
	// Of a patch.
	Replaced int64 `json:"replaced,omitempty" jsonschema:"description=of a patch: elements or entries with another value; the entries of every replica count"`
	Added    int64 `json:"added,omitempty"`
	Removed  int64 `json:"removed,omitempty"`
}

// The values of [Change.What] that have a meaning to documents.
const (
	renamedOperator = "renamed operator" // with the new id
	relocated       = "relocated"
)

// Step is a step of a recipe.
type Step struct {
	Step            string   `json:"step"`
	Line            int      `json:"line" jsonschema:"description=of the recipe"`
	Changes         []Change `json:"changes"`
	Remarks         []string `json:"remarks,omitempty"`
	OperatorsBefore int      `json:"operators_before"`
	OperatorsAfter  int      `json:"operators_after"`
	BytesBefore     int64    `json:"bytes_before" jsonschema:"description=of state"`
	BytesAfter      int64    `json:"bytes_after"`
}

// Document implements [Report].
func (e *Edit) Document() *ui.Document {
	var d ui.Document
	if len(e.Steps) == 0 {
		appendChanges(&d, e.Changes, e.Remarks)
	}
	for i := range e.Steps {
		e.Steps[i].appendTo(&d, i+1)
	}
	if e.StateBefore != e.StateAfter {
		d.Line("state %s → %s (%s)", ui.Bytes(e.StateBefore), ui.Bytes(e.StateAfter), ui.Signed(e.StateAfter-e.StateBefore, ui.Bytes))
	}
	if e.MetadataBefore > 0 {
		d.Line("_metadata %s → %s", ui.Bytes(e.MetadataBefore), ui.Bytes(e.MetadataAfter))
	}
	e.Write.appendTo(&d)
	return &d
}

func (s *Step) appendTo(d *ui.Document, n int) {
	text := ui.Bytes(s.BytesAfter)
	if s.BytesBefore != s.BytesAfter {
		text = ui.Bytes(s.BytesBefore) + " → " + text
	}
	text += " of state"
	if s.OperatorsBefore != s.OperatorsAfter {
		text += fmt.Sprintf(", %d → %s", s.OperatorsBefore, ui.Plural(int64(s.OperatorsAfter), "operator"))
	}
	d.Line("%d. %s, line %d: %s", n, s.Step, s.Line, text)
	appendChanges(d, s.Changes, s.Remarks)
}

// appendChanges appends changes, one a line, and remarks.
func appendChanges(d *ui.Document, changes []Change, remarks []string) {
	var moved []Rewrite
	for _, c := range changes {
		if c.What == relocated {
			moved = append(moved, Rewrite{c.From, c.To})
			continue
		}
		d.Line("%s", c.text())
	}
	appendRewrites(d, moved)
	if len(changes) == 0 {
		d.Line("nothing changes")
	}
	for _, s := range remarks {
		d.Remark("%s", s)
	}
}

// text is a change in a line: "renamed operator a: a → b".
func (c *Change) text() string {
	text := c.What
	if c.Operator != "" {
		text += " " + ui.Quote(c.Operator)
	}
	if c.State != "" {
		text += "/" + ui.Quote(c.State)
	}
	switch {
	case c.From != "" && c.To != "" && c.From != c.State:
		text += fmt.Sprintf(" %s → %s", ui.Quote(c.From), ui.Quote(c.To))
	case c.To != "":
		text += " → " + ui.Quote(c.To)
	case c.From != "":
		text += " " + ui.Quote(c.From)
	}
	if c.What == renamedOperator {
		text += ", " + c.ID
	}
	if c.DroppedEntries != nil {
		return text + fmt.Sprintf(": %s kept (%s), %s dropped (%s)", ui.Plural(c.Entries, "entry"), ui.Bytes(c.Bytes), ui.Count(*c.DroppedEntries), ui.Bytes(c.DroppedBytes))
	}
	if c.Dropped != nil {
		what := "element"
		switch {
		case c.WholeMaps:
			what = "whole map"
		case c.Kind == format.ModeBroadcast.String():
			what = "entry"
		}
		return text + fmt.Sprintf(": %s kept (%s), %s dropped (%s)", ui.Plural(c.Elements, what), ui.Bytes(c.Bytes), ui.Count(*c.Dropped), ui.Bytes(c.DroppedBytes))
	}
	var more []string
	for _, n := range []struct {
		n    int64
		what string
	}{{c.Replaced, "replaced"}, {c.Added, "added"}, {c.Removed, "removed"}} {
		if n.n > 0 {
			more = append(more, ui.Count(n.n)+" "+n.what)
		}
	}
	if c.Handles > 0 {
		more = append(more, ui.Plural(int64(c.Handles), "handle"))
	}
	if c.Elements > 0 {
		more = append(more, ui.Plural(c.Elements, "element"))
	}
	if c.Entries > 0 {
		more = append(more, ui.Plural(c.Entries, "entry"))
	}
	if c.By != 0 {
		more = append(more, fmt.Sprintf("by %v", time.Duration(c.By)*time.Millisecond))
	}
	if c.First != nil {
		more = append(more, "the first fires at "+time.UnixMilli(*c.First).UTC().Format(time.RFC3339))
	}
	if c.Bytes > 0 {
		more = append(more, ui.Bytes(c.Bytes))
	}
	if c.Coordinator {
		more = append(more, "and in the coordinator")
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}
