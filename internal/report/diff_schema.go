package report

import (
	"cmp"
	"iter"
	"slices"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform/diff"
)

// DiffSchema is the answer of diff --schema: how the types of states changed.
type DiffSchema struct {
	Compatibility string            `json:"compatibility" jsonschema:"enum=compatible as is,enum=compatible after migration,enum=undecided,enum=incompatible,description=the worst of all states that both snapshots have"`
	States        []DiffSchemaState `json:"states" jsonschema:"description=all states, those that differ first"`
	Unread        []string          `json:"unread,omitempty" jsonschema:"description=state whose types could not be read"`
	Same          bool              `json:"same" jsonschema:"description=no type differs and all were read"`
}

// DiffSchemaState is how the type of a state changed.
type DiffSchemaState struct {
	Operator      string     `json:"operator"`
	ID            string     `json:"id"`
	State         string     `json:"state,omitempty" jsonschema:"description=absent for the keys of an operator"`
	What          string     `json:"what,omitempty" jsonschema:"description=keys, values, namespaces, map keys or timers"`
	Kind          string     `json:"kind,omitempty"`
	Change        string     `json:"change" jsonschema:"enum=same,enum=changed,enum=added,enum=removed,enum=kind"`
	Compatibility string     `json:"compatibility,omitempty" jsonschema:"enum=compatible as is,enum=compatible after migration,enum=undecided,enum=incompatible"`
	OldKind       string     `json:"old_kind,omitempty"`
	Old           string     `json:"old,omitempty" jsonschema:"description=the type in the older snapshot"`
	New           string     `json:"new,omitempty"`
	Unnoticed     bool       `json:"unnoticed,omitempty" jsonschema:"description=Flink does not notice that it is incompatible"`
	Parts         []TypePart `json:"parts,omitempty" jsonschema:"description=all parts that differ"`

	worst types.Compatibility
}

// NewDiffSchema returns how types changed, as it is printed.
func (r *Run) NewDiffSchema(all *diff.SchemaReport) *DiffSchema {
	d := &DiffSchema{States: []DiffSchemaState{}}
	worst := types.CompatibleAsIs
	add := func(row DiffSchemaState) {
		if row.Change == "same" || row.Change == "changed" || row.Change == "kind" {
			worst = max(worst, row.worst)
		}
		d.States = append(d.States, row)
	}
	for i := range all.Operators {
		o := &all.Operators[i]
		op := o.New
		if op == nil {
			op = o.Old
		}
		base := DiffSchemaState{Operator: r.Label(op), ID: op.ID.String()}
		if o.Keys != nil {
			row := base
			row.changed(r, o.Keys, types.Timers) // keys are not migrated
			add(row)
		}
		for k := range o.States {
			st := &o.States[k]
			row := base
			row.State, row.Kind = r.Text(st.State().Name.String()), st.State().Kind()
			if st.Old != nil {
				row.Old = st.Old.TypeText(r.Text)
			}
			if st.New != nil {
				row.New = st.New.TypeText(r.Text)
			}
			switch {
			case st.Old == nil:
				row.Change = "added"
			case st.New == nil:
				row.Change = "removed"
			case st.Old.Kind() != st.New.Kind():
				row.Change, row.OldKind, row.worst = "kind", st.Old.Kind(), types.Incompatible
				row.Compatibility = row.worst.String()
			default:
				row.parts(r, st, add)
				continue
			}
			add(row)
		}
		for _, unread := range o.Unread {
			for _, err := range unread {
				d.Unread = append(d.Unread, r.Hide(err.Error()))
			}
		}
	}
	d.Compatibility = worst.String()
	d.Same = len(d.Unread) == 0 && !slices.ContainsFunc(d.States, func(s DiffSchemaState) bool { return s.Change != "same" })
	slices.SortStableFunc(d.States, func(a, b DiffSchemaState) int { return cmp.Compare(a.rank(), b.rank()) })
	return d
}

// parts calls add with the parts of a state that changed, or with one row if none did.
func (s *DiffSchemaState) parts(r *Run, st *diff.SchemaState, add func(DiffSchemaState)) {
	changed := false
	for i := range st.Parts {
		if p := &st.Parts[i]; p.Change.Compatibility != types.CompatibleAsIs {
			row := *s
			row.changed(r, p, st.New.Keyed)
			add(row)
			changed = true
		}
	}
	if changed {
		return
	}
	row := *s
	if row.Change, row.Compatibility = "same", types.CompatibleAsIs.String(); row.Old != row.New || slices.ContainsFunc(st.Parts, func(p diff.SchemaPart) bool { return !p.Same }) {
		row.Change = "changed"
	}
	add(row)
}

// changed sets what a part that changed has. Flink does not migrate keys, namespaces and
// timers.
func (s *DiffSchemaState) changed(r *Run, p *diff.SchemaPart, keyed string) {
	c := p.Change
	s.What, s.worst, s.Unnoticed = p.What, c.Compatibility, c.Unnoticed
	if s.Change = "changed"; c.Compatibility == types.CompatibleAsIs && p.Same {
		s.Change = "same"
	}
	if c.Compatibility == types.CompatibleAfterMigration && (keyed == types.Timers || p.What != "values") {
		s.worst = types.Incompatible
	}
	s.Compatibility = s.worst.String()
	for _, d := range c.Differences {
		s.Parts = append(s.Parts, TypePart{Path: r.Text(d.Path), Compatibility: d.Compatibility.String(), Why: r.Hide(d.Why)})
	}
}

// rank orders rows: incompatible ones first, what is the same last.
func (s *DiffSchemaState) rank() int {
	switch s.Change {
	case "same":
		return 10
	case "added", "removed":
		return 9
	}
	return int(types.Incompatible - s.worst)
}

// verdict is the compatibility in a table.
func (s *DiffSchemaState) verdict() string {
	switch {
	case s.Change == "added" || s.Change == "removed":
		return s.Change
	case s.Unnoticed:
		return ui.Bad(s.Compatibility) + " (Flink does not notice)"
	case s.worst == types.Incompatible:
		return ui.Bad(s.Compatibility)
	case s.worst != types.CompatibleAsIs:
		return ui.Look(s.Compatibility)
	}
	return s.Compatibility
}

// Document implements [Report].
func (d *DiffSchema) Document() *ui.Document {
	var doc ui.Document
	if len(d.States) == 0 {
		doc.Line("no managed state written by Flink: nothing to compare")
		return &doc
	}
	t := ui.NewTable(ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16}, ui.Column{Header: "CHANGE", Shrink: 2, Wrap: true, Min: 20}, ui.Column{Header: "RESTORE"})
	same := 0
	for i := range d.States {
		s := &d.States[i]
		if s.Change == "same" {
			same++
			continue
		}
		name := ui.Quote(s.Operator)
		if s.State != "" {
			name += "/" + ui.Quote(s.State)
		}
		whole := len(s.Parts) == 1 && s.Parts[0].Path == ""
		text := s.summary()
		if whole {
			text += ": " + s.Parts[0].Why
		}
		t.Row(name, ui.Printable(text), s.verdict())
		for k := range s.Parts {
			p := &s.Parts[k]
			if whole {
				break
			}
			t.Child(1, ui.Printable(cmp.Or(p.Path, "the type")), ui.Printable(p.Why), p.Compatibility)
		}
	}
	if len(d.States) > same {
		doc.Add(t)
	}
	if same > 0 {
		doc.Line("%s unchanged", ui.Plural(int64(same), "type"))
	}
	for _, err := range d.Unread {
		doc.Remark("types not read: %s", ui.Printable(err))
	}
	return &doc
}

// summary is what changed, in a line.
func (s *DiffSchemaState) summary() string {
	switch {
	case s.Change == "added":
		return s.Kind + ", " + s.New
	case s.Change == "removed":
		return s.Kind + ", " + s.Old
	case s.Change == "kind":
		return s.OldKind + " → " + s.Kind
	case s.What != "":
		return s.What
	}
	return "the serializer snapshot"
}

// Lines implements [Lines].
func (d *DiffSchema) Lines() iter.Seq[any] { return each(d.States) }
