package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/diff"
)

// DiffInput is what [Run.NewDiff] needs besides the comparison. Index 0 is the older
// snapshot.
type DiffInput struct {
	Paths     [2]string
	Snapshots [2]*reader.Snapshot
	Ignored   []string
	Verbose   bool // list key groups that differ
	// Element reads an element that differs and returns it as cat prints it, and in
	// which encoding.
	Element func(side int, c diff.ElementChange) (encoding, text string, err error)
	// Entry decodes an entry of keyed state that differs.
	Entry func(side int, at *diff.KeyedAt) (*CatItem, error)
	// Cat is how entries are printed.
	Cat CatOptions
}

type differ struct {
	*Run
	in      DiffInput
	changed map[*diff.Operator]bool
	texts   map[any][]string // what differs, by operator and state
}

// NewDiff reports a comparison.
func (r *Run) NewDiff(d *diff.Result, in DiffInput) (*Diff, error) {
	b := &differ{r, in, map[*diff.Operator]bool{}, map[any][]string{}}
	res := &Diff{Same: d.Same(), Differ: []string{}, Ignored: in.Ignored, Operators: []DiffOperator{}, Differences: []DiffLine{},
		KeyedByBytes: keyedByBytes(d), ByDigest: d.ByDigest, Absent: d.Absent, NotChecked: d.NotChecked}
	res.Old, res.New = b.snapshot(0, d), b.snapshot(1, d)
	kinds := map[diff.Kind]bool{}
	for _, x := range d.Differences {
		kinds[x.Kind] = true
		res.Differences = append(res.Differences, b.difference(x))
	}
	for _, k := range diff.Kinds {
		if kinds[k.Kind] {
			res.Differ = append(res.Differ, string(k.Kind))
		}
	}
	res.suggested = r.newRenames(d.Renames, in.Paths[0])
	res.Renames, res.NameChanges, res.RenameCommand = res.suggested.list, res.suggested.names, res.suggested.command
	for _, o := range d.Operators {
		op, err := b.operator(o, res.RenameCommand)
		if err != nil {
			return nil, err
		}
		if o.Renamed != nil {
			res.suggested.hideReasons(op.ID)
		}
		res.Counts.add(op.Change)
		res.Operators = append(res.Operators, op)
	}
	return res, nil
}

// keyedByBytes reports whether keyed state was compared, but no entries were.
func keyedByBytes(d *diff.Result) bool {
	for _, op := range d.Operators {
		for _, st := range op.States {
			if st.Keyed != nil && st.Keyed.States != nil {
				return false
			}
		}
	}
	return d.KeyedCompared
}

func (b *differ) snapshot(side int, d *diff.Result) DiffSnapshot {
	s, snap := d.Old, b.in.Snapshots[side]
	if side == 1 {
		s = d.New
	}
	return DiffSnapshot{
		Path: b.in.Paths[side], Family: string(snap.Container.Family), Type: s.Kind.Type, Format: s.Kind.Format, CheckpointID: snap.ID,
		Operators: len(s.Operators), Bytes: s.Bytes.State(),
	}
}

// difference returns the line of a difference, and notes its text for the document.
func (b *differ) difference(x diff.Difference) DiffLine {
	line := DiffLine{Kind: string(x.Kind), Text: b.text(x)}
	if x.Operator == nil {
		return line
	}
	op := x.Operator.Operator()
	line.Operator, line.ID = b.Label(op), op.ID.String()
	b.changed[x.Operator] = true
	if x.State == nil {
		b.texts[x.Operator] = append(b.texts[x.Operator], line.Text)
		return line
	}
	line.State = b.Text(x.State.State().Name)
	text := grouped(line.Text)
	if x.Keyed != nil {
		line.State = b.Text(x.Keyed.Name)
		text = ui.Quote(line.State) + " " + text
	}
	b.texts[x.State] = append(b.texts[x.State], text)
	return line
}

// text returns a difference in words, with names as the run shows them.
func (b *differ) text(x diff.Difference) string {
	switch {
	case x.Kind == diff.KindNames:
		old, now := x.Operator.Old, x.Operator.New
		var parts []string
		for _, n := range [][3]string{{"uid", old.UID.String(), now.UID.String()}, {"name", old.Name.String(), now.Name.String()}} {
			if n[1] != "" && n[2] != "" && n[1] != n[2] {
				parts = append(parts, fmt.Sprintf("%s %s → %s", n[0], ui.Quote(b.Text(n[1])), ui.Quote(b.Text(n[2]))))
			}
		}
		return strings.Join(parts, ", ")
	case x.Kind == diff.KindOperators && x.Operator.Renamed != nil:
		return fmt.Sprintf("likely renamed from %s: %s", ui.Quote(b.Label(x.Operator.Old.Operator)), strings.Join(b.reasons(x.Operator.Renamed), ", "))
	}
	return x.Text
}

// The values of [DiffOperator.Change].
const (
	operatorSame    = "same"
	operatorChanged = "changed"
	operatorAdded   = "added"
	operatorRemoved = "removed"
	operatorRenamed = "renamed"
)

func (b *differ) change(o *diff.Operator) string {
	switch {
	case o.Old == nil:
		return operatorAdded
	case o.New == nil:
		return operatorRemoved
	case o.Renamed != nil:
		return operatorRenamed
	case b.changed[o]:
		return operatorChanged
	}
	return operatorSame
}

func (c *DiffCounts) add(change string) {
	switch change {
	case operatorSame:
		c.Same++
	case operatorChanged:
		c.Changed++
	case operatorAdded:
		c.Added++
	case operatorRemoved:
		c.Removed++
	case operatorRenamed:
		c.Renamed++
	}
}

func (b *differ) operator(o *diff.Operator, renameCommand string) (DiffOperator, error) {
	op := o.Operator()
	old, now := o.Bytes()
	res := DiffOperator{
		UID: b.UID(op), Name: b.Text(op.Name.String()), ID: op.ID.String(), label: b.Label(op), Change: b.change(o),
		OldBytes: old, NewBytes: now, Difference: now - old, States: []DiffState{}, texts: b.texts[o],
	}
	if o.Old != nil {
		res.OldParallelism, res.OldMaxParallelism = o.Old.Parallelism, o.Old.MaxParallelism
	}
	if o.New != nil {
		res.NewParallelism, res.NewMaxParallelism = o.New.Parallelism, o.New.MaxParallelism
	}
	if o.Renamed != nil {
		res.OldID, res.Reasons, res.RenameCommand = o.Old.ID.String(), b.reasons(o.Renamed), renameCommand
	}
	for _, st := range o.States {
		s, err := b.state(st)
		if err != nil {
			return res, err
		}
		res.States = append(res.States, s)
	}
	return res, nil
}

// known returns nil for a number that was not counted.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func (b *differ) state(st *diff.State) (DiffState, error) {
	old, now := st.Bytes()
	s := DiffState{Name: b.Text(st.State().Name), OldBytes: old, NewBytes: now, Difference: now - old, texts: b.texts[st]}
	if st.Old != nil {
		s.OldKind, s.OldElements = string(st.Old.Kind), known(st.Old.Elements)
	}
	if st.New != nil {
		s.NewKind, s.NewElements = string(st.New.Kind), known(st.New.Elements)
	}
	if k := st.Keyed; k != nil {
		s.Keyed = &DiffKeyed{
			Incomparable: k.Incomparable, GroupsSame: k.SameGroups, GroupsChanged: k.ChangedGroups, GroupsAdded: k.AddedGroups, GroupsRemoved: k.RemovedGroups,
			FilesSame: k.SameFiles, ByReference: k.ByReference, FilesAdded: k.AddedFiles, FilesRemoved: k.RemovedFiles, BytesAdded: k.AddedBytes, BytesRemoved: k.RemovedBytes,
		}
		if b.in.Verbose {
			s.Keyed.Groups = k.Groups
		}
		if k.NotCompared != nil {
			s.Keyed.NotCompared = ui.Printable(k.NotCompared.Error())
		}
		for _, st := range k.States {
			entries, err := b.keyedState(st)
			if err != nil {
				return s, err
			}
			s.Keyed.Entries = append(s.Keyed.Entries, entries)
		}
	}
	if st.Elements == nil {
		return s, nil
	}
	return s, b.elements(&s, st.Elements)
}

// keyedState returns the entries of a keyed state that differ.
func (b *differ) keyedState(st *diff.KeyedState) (DiffKeyedState, error) {
	s := DiffKeyedState{Name: b.Text(st.Name), Kind: st.Kind, Added: st.Added, Removed: st.Removed, Changed: st.Changed}
	w := NewCatEncoder(b.in.Cat)
	for _, c := range st.Changes {
		e := DiffEntry{Change: "changed"}
		var texts [2]catTexts
		for side, at := range []*diff.KeyedAt{c.Old, c.New} {
			if at == nil {
				e.Change = []string{"added", "removed"}[side]
				continue
			}
			it, err := b.in.Entry(side, at)
			if err != nil {
				return s, format.InFile(err, b.in.Snapshots[side].Container.Name)
			}
			texts[side] = b.in.Cat.rowOf(it)
			if it.Keyed.Timer {
				texts[side].value = timeOfMillis(it.Keyed.Time)
			}
			to := &e.Before
			if side == 1 {
				to = &e.After
			}
			*to = json.RawMessage(w.entry(it))
		}
		t := &texts[1]
		if c.New == nil {
			t = &texts[0]
		}
		e.shown = strings.Join(slices.DeleteFunc([]string{s.Name + " " + t.key, t.namespace, t.userKey}, func(s string) bool { return s == "" }), " ") + ": "
		if e.Change == "changed" {
			e.shown += texts[0].value + " → "
		}
		e.shown += t.value
		s.Changes = append(s.Changes, e)
	}
	return s, nil
}

// elements adds what differs in operator state.
func (b *differ) elements(s *DiffState, e *diff.Elements) error {
	s.OldDistinct, s.NewDistinct = known(e.OldDistinct), known(e.NewDistinct)
	s.Added, s.Removed, s.Moved = known(e.Added), known(e.Removed), known(e.Moved)
	if e.Factor > 1 {
		s.MultipliedBy = e.Factor
	}
	if e.Divided > 1 {
		s.DividedBy = e.Divided
	}
	if k := e.Entries; k != nil {
		s.KeysAdded, s.KeysRemoved, s.KeysChanged = &k.Added, &k.Removed, &k.Changed
		s.MapsAdded, s.MapsRemoved = &k.AddedMaps, &k.RemovedMaps
		for _, c := range k.Changes {
			s.Elements = append(s.Elements, b.entry(c))
		}
		return nil
	}
	for side, list := range [][]diff.ElementChange{e.RemovedList, e.AddedList} {
		for _, c := range list {
			item, err := b.element(side, c)
			if err != nil {
				return format.InFile(err, b.in.Snapshots[side].Container.Name)
			}
			s.Elements = append(s.Elements, item)
		}
	}
	return nil
}

func (b *differ) element(side int, c diff.ElementChange) (DiffElement, error) {
	e := DiffElement{Change: "removed", OldCount: c.Old, NewCount: c.New, Subtask: &c.Subtask, Index: &c.Index}
	if side == 1 {
		e.Change = "added"
	}
	encoding, text, err := b.in.Element(side, c)
	if err != nil {
		return e, err
	}
	e.shown = encoding + " " + text
	switch encoding {
	case "json":
		e.Value, e.shown = json.RawMessage(text), text
	case "hex":
		e.Hex = text
	case "text":
		e.Text = text
	case "redacted":
		e.Redacted, e.shown = text, text
	default:
		e.Base64 = text
	}
	return e, nil
}

// entry returns an entry of a broadcast state that differs. Its texts are JSON.
func (b *differ) entry(c diff.EntryChange) DiffElement {
	e := DiffElement{Change: "changed", OldCount: int64(len(c.Old)), NewCount: int64(len(c.New)), Key: json.RawMessage(c.Key), Old: c.Old, New: c.New}
	key := c.Key
	if b.Format == ui.FormatRedacted {
		hide := func(s string) string { return ui.Value([]byte(s), ui.FormatRedacted, 0) }
		key = hide(c.Key)
		e.Key, e.Old, e.New = key, nil, nil
		for _, v := range c.Old {
			e.Old = append(e.Old, hide(v))
		}
		for _, v := range c.New {
			e.New = append(e.New, hide(v))
		}
	}
	old, now := strings.Join(e.Old, " or "), strings.Join(e.New, " or ")
	switch {
	case len(c.Old) == 0:
		e.Change = "added"
		e.shown = key + ": " + now
	case len(c.New) == 0:
		e.Change = "removed"
		e.shown = key + ": " + old
	default:
		e.shown = key + ": " + old + " → " + now
	}
	return e
}
