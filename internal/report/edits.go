package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// NewEdit returns an answer without changes.
func (r *Run) NewEdit() *Edit { return &Edit{Changes: []Change{}, run: r} }

// add adds a change of an operator, or of the snapshot if op is nil.
func (e *Edit) add(op *format.Operator, c Change) {
	if op != nil {
		c.Operator, c.ID = e.run.Label(op), op.ID.String()
	}
	e.Changes = append(e.Changes, c)
}

// Remark adds a remark.
func (e *Edit) Remark(format string, args ...any) {
	e.Remarks = append(e.Remarks, fmt.Sprintf(format, args...))
}

// stateName is a state in a remark: operator/state.
func (r *Run) stateName(op *format.Operator, state string) string {
	return ui.Quote(r.Label(op)) + "/" + ui.Quote(r.Text(state))
}

// Dropped adds what was dropped. sizes are the bytes of state of the operators.
func (e *Edit) Dropped(d *transform.DropReport, sizes []int64) {
	for i, op := range d.Operators {
		e.add(op, Change{What: "dropped operator", Bytes: sizes[i]})
	}
	for _, s := range d.States {
		e.add(s.Operator, counted(Change{What: "dropped state", State: e.run.Text(s.Name), Bytes: s.Bytes}, s.Keyed, s.Elements))
		if s.Elements < 0 {
			e.Remark("the entries of %s cannot be read, and are not counted", e.run.stateName(s.Operator, s.Name))
		}
	}
	e.rebuilt(d.Entries, d.Unread)
	for _, op := range d.Coordinators {
		e.add(op, Change{What: "dropped coordinator state of"})
	}
	for _, op := range d.Channels {
		e.add(op, Change{What: "dropped in-flight data of"})
	}
	if len(d.Channels) > 0 {
		e.Remark("in-flight data is lost: it is neither in the source's positions nor in state")
	}
	e.commits(d.Commits, "are gone with it: what was not committed is lost")
	e.splits(d.Splits)
}

// counted returns a change of a state, such as "dropped state", with its number of elements,
// or of entries of keyed state.
func counted(c Change, keyed bool, n int64) Change {
	if !keyed {
		c.Elements = n
		return c
	}
	c.What, c.Entries = strings.Replace(c.What, "state", "keyed state", 1), max(n, 0)
	return c
}

// rebuilt remarks that keyed state has another format now, and which state may have had
// something that an edit asks for and was not read.
func (e *Edit) rebuilt(entries int64, unread []transform.KeptHandle) {
	if entries > 0 {
		e.Remark("keyed state is built again in the canonical format, which any backend but ForSt restores: %s", ui.Plural(entries, "entry"))
	}
	for _, k := range unread {
		e.Remark("%s is not read, and stays as it is: %s", ui.Quote(e.run.Label(k.Operator)), e.run.Hide(k.Why))
	}
}

// commits remarks what a restore does with transactions and files that an edit removed
// or moved.
func (e *Edit) commits(all []*transform.SinkPending, what string) {
	for _, s := range all {
		name := ui.Quote(e.run.Label(s.Operator))
		var counts []string
		for _, f := range []connector.Fate{connector.FateCommit, connector.FateAbort, connector.FateResume} {
			if n := s.Count(f); n > 0 {
				counts = append(counts, fmt.Sprintf("%d that a restore %s", n, fates[f]))
			}
		}
		if len(counts) > 0 {
			e.Remark("%s: pending transactions or files %s; %s (spt pending lists them)", name, what, strings.Join(counts, ", "))
		}
		for _, u := range s.Undecoded {
			e.Remark("%s: state that a restore commits or aborts is not decoded, and %s: %s", name, what, e.run.Hide(u.Why))
		}
	}
}

var fates = map[connector.Fate]string{connector.FateCommit: "commits", connector.FateAbort: "aborts", connector.FateResume: "goes on writing"}

// splits remarks splits that were removed from readers, while the coordinator keeps its
// state.
func (e *Edit) splits(all []*transform.RemovedSplits) {
	for _, s := range all {
		name := ui.Quote(e.run.Label(s.Operator))
		var listed []string
		for _, p := range s.Listed {
			listed = append(listed, ui.Quote(e.run.Text(p.Topic))+"/"+ui.Quote(e.run.Text(p.Partition)))
		}
		if len(listed) > 0 {
			e.Remark("%s: the coordinator still has %s as assigned, and no reader has them: they are never read again, not even new records; spt set --drop-topic removes a topic from both", name, Shorten(listed))
		} else {
			e.Remark("%s: %s removed from the readers, and the coordinator does not assign them again: what was left of them is never read", name, ui.Plural(s.Removed, "split"))
		}
	}
}

// Filtered adds what is left of states. empty says why nothing is left of one.
func (e *Edit) Filtered(d *transform.FilterReport, empty string) {
	e.commits(d.Commits, "are gone with what was filtered: what was not committed is lost")
	e.splits(d.Splits)
	for _, f := range d.States {
		what := "filtered"
		if f.Dropped == 0 {
			what = "kept whole"
		}
		e.add(f.Operator, e.filteredChange(what, f))
		if f.Kept == 0 && f.Dropped > 0 {
			e.Remark("nothing of %s is left: %s", e.run.stateName(f.Operator, f.State), empty)
		}
		if f.Diverged {
			e.Remark("the replicas of broadcast state %s were equal and are not any more: which of them a subtask gets depends on the parallelism of the restore", e.run.stateName(f.Operator, f.State))
		}
	}
	e.rebuilt(d.Entries, d.Unread)
}

// Expired adds what is left of states with a time to live.
func (e *Edit) Expired(d *transform.FilterReport) {
	for _, f := range d.States {
		what := "removed what has expired of"
		if f.Dropped+f.DroppedBytes == 0 {
			what = "kept whole"
		}
		e.add(f.Operator, e.filteredChange(what, f))
	}
	e.rebuilt(d.Entries, d.Unread)
}

// Shifted adds timers that fire at another time.
func (e *Edit) Shifted(d *transform.ShiftTimersReport, by time.Duration) {
	for _, s := range d.States {
		c := Change{What: "moved timers of", State: e.run.Text(s.State), By: by.Milliseconds(), Entries: s.Entries}
		if s.Entries > 0 {
			c.First = &s.First
		}
		e.add(s.Operator, c)
	}
	for _, op := range d.Windows {
		e.Remark("%s: timers that end windows stay, because a window is evaluated at its end only", ui.Quote(e.run.Label(op)))
	}
	e.rebuilt(d.Entries, d.Unread)
}

// filteredChange is what is left of a state.
func (e *Edit) filteredChange(what string, f *transform.FilteredState) Change {
	c := Change{What: what, State: e.run.Text(f.State), WholeMaps: f.Whole, Bytes: f.KeptBytes, DroppedBytes: f.DroppedBytes}
	if f.Keyed != "" {
		c.Kind, c.Entries, c.DroppedEntries = f.Keyed, f.Kept, &f.Dropped
	} else {
		c.Kind, c.Elements, c.Dropped = f.Mode.String(), f.Kept, &f.Dropped
	}
	return c
}

// Patched adds what was changed in states.
func (e *Edit) Patched(d *transform.PatchReport) {
	e.commits(d.Commits, "were in states that were patched")
	e.splits(d.Splits)
	same := int64(0)
	for _, s := range d.States {
		same += s.Same
		if !s.Changed() {
			continue
		}
		kind := s.Mode.String()
		switch {
		case s.Raw:
			kind = "raw"
		case s.Keyed != "":
			kind = s.Keyed
		case s.Coordinator:
			e.add(s.Operator, Change{What: "patched coordinator state of"})
			e.Remark("%s: the readers of a source keep the positions of the splits that they have; only splits that are not assigned yet are read from what the coordinator stores", ui.Quote(e.run.Label(s.Operator)))
			continue
		}
		e.add(s.Operator, Change{What: "patched", State: e.run.Text(s.State), Kind: kind, Replaced: s.Replaced, Added: s.Added, Removed: s.Removed})
		if s.Mode == format.ModeUnion && !s.Raw && s.Keyed == "" {
			e.Remark("%s is union state, which a restore assigns to every subtask: duplicates of a changed element in other subtasks stay as they are", e.run.stateName(s.Operator, s.State))
		}
	}
	if same > 0 {
		e.Remark("%s: the value was stored already", ui.Plural(same, "change"))
	}
	e.rebuilt(d.Entries, nil)
}

// Merged adds what was taken from the snapshot from into the snapshot to. sizes are the
// bytes of state of the operators.
func (e *Edit) Merged(m *transform.MergeReport, sizes []int64, from, to string) {
	for i, op := range m.Operators {
		e.add(op, Change{What: "took over operator", From: from, To: to, Bytes: sizes[i]})
	}
	e.commits(m.Commits, "were taken over: a restore handles them as if they were its own, also if the other job has done so already")
	for _, s := range m.States {
		e.add(s.Operator, counted(Change{What: "took over state", State: e.run.Text(s.Name), From: from, To: to, Bytes: s.Bytes}, s.Keyed, s.Elements))
	}
	e.rebuilt(0, m.Unread)
}

// MergedKinds remarks that two snapshots, at their locations, are of other kinds.
func (e *Edit) MergedKinds(a, b summary.Kind, locationA, locationB string) {
	if a.Type != b.Type || a.Format != b.Format {
		e.Remark("the result is recorded as %s is (%s); %s is recorded as %s", ui.Quote(locationA), kindText(a), ui.Quote(locationB), kindText(b))
	}
}

func kindText(k summary.Kind) string {
	if k.Format == "" {
		return k.Type
	}
	return k.Format + " " + k.Type
}

// Renamed adds new names of operators and states.
func (e *Edit) Renamed(d *transform.RenameReport) {
	for _, s := range d.States {
		e.add(s.Operator, counted(Change{What: "renamed state", State: e.run.Text(s.From), From: e.run.Text(s.From), To: s.To, Handles: s.Handles, Bytes: s.Bytes}, s.Keyed, s.Elements))
	}
	for _, op := range d.Operators {
		e.Changes = append(e.Changes, Change{What: renamedOperator, Operator: e.run.Label(op.Operator), ID: op.ID.String(), To: op.UID})
	}
	e.rebuilt(d.Entries, d.Unread)
	e.commits(d.Commits, "have another name now: only a job that uses the new name handles them")
}

// Set adds fields that were set to what o says.
func (e *Edit) Set(d *transform.SetReport, o transform.SetOptions) {
	duplicates := false
	for _, s := range d.Modes {
		e.add(s.Operator, Change{What: "set mode of state", State: e.run.Text(s.State), From: s.From.String(), To: o.Mode.String(), Handles: s.Handles, Elements: s.Elements})
		duplicates = duplicates || s.From == format.ModeUnion && s.Handles > 1
	}
	if duplicates {
		e.Remark("elements that were in the union state of several subtasks are in each of their lists now: run spt prune-union first to keep one of each")
	}
	for _, s := range d.MaxParallelism {
		e.add(s.Operator, Change{What: "set max parallelism of", From: fmt.Sprint(s.From), To: fmt.Sprint(o.MaxParallelism)})
	}
	if o.ID != nil && *o.ID != d.OldID {
		e.add(nil, Change{What: "set checkpoint id", From: fmt.Sprint(d.OldID), To: fmt.Sprint(*o.ID)})
	}
}

// Pruned adds a union state that was pruned by a policy.
func (e *Edit) Pruned(p *transform.PrunedState, keep transform.Keep) {
	gone := p.Elements - p.Kept
	e.add(p.Operator, Change{What: "pruned", State: e.run.Text(p.State), Elements: p.Kept, Bytes: p.BytesAfter, Dropped: &gone, DroppedBytes: p.Bytes - p.BytesAfter})
	if p.OneEach() {
		e.Remark("%s: %s", e.run.stateName(p.Operator, p.State), p.Why)
	}
	if why := remaining(p, keep); why != "" {
		e.Remark("%s: %s", e.run.stateName(p.Operator, p.State), why)
	}
}

// Rescaled adds the operators of a plan that were rescaled, and remarks which of those
// that asked for it were left.
func (e *Edit) Rescaled(p *transform.RescalePlan, asked func(*format.Operator) bool) {
	for _, op := range p.Operators {
		switch {
		case op.Left == "":
			e.add(op.Operator, Change{What: "rescaled operator", From: fmt.Sprint(op.From), To: fmt.Sprint(op.To)})
		case asked(op.Operator):
			e.Remark("%s is left as it is: %s", ui.Quote(e.run.Label(op.Operator)), op.Left)
		}
	}
}

// Regrouped adds operators with another max parallelism.
func (e *Edit) Regrouped(d *transform.RegroupReport, max int32) {
	entries := int64(0)
	for _, op := range d.Operators {
		e.add(op.Operator, Change{What: "set max parallelism of", From: fmt.Sprint(op.Operator.MaxParallelism), To: fmt.Sprint(max), Entries: op.Entries})
		entries += op.Entries
	}
	e.rebuilt(entries, nil)
	if entries > 0 {
		e.Remark("the job must be started with max parallelism %d: Flink refuses keyed state of another", max)
	}
}

// Relocation is what became of references, with what was found out about the files at
// their new locations.
type Relocation struct {
	*transform.RelocateReport
	// Why says why absolute references were left: "not matched".
	Why string
	// Unchecked is the number of files at the new location that could not be looked
	// for, and Unreached the error of its store.
	Unchecked int
	Unreached error
	// Gone are new locations without a file. Wrong are new locations of files whose length
	// is not the recorded one.
	Gone, Wrong []string
	// Right are relative references that were kept, next to whose _metadata the file is;
	// Broken those whose file was found nowhere.
	Right, Broken []transform.Relocated
}

// Relocated adds references that changed.
func (e *Edit) Relocated(d *Relocation) {
	for _, c := range d.Changed {
		e.add(nil, Change{What: relocated, From: e.run.Text(c.From), To: e.run.Text(c.To), Handles: c.Handles})
	}
	count := func(n int, what string) string { return ui.Plural(int64(n), what) }
	if n := len(d.Unmatched); n > 0 {
		e.Remark("%s left unchanged, %s: %s", count(n, "absolute reference"), d.Why, e.run.References(d.Unmatched))
	}
	if d.Unchecked > 0 {
		e.Remark("%s at the new location not checked: %s", count(d.Unchecked, "file"), Reason(d.Unreached))
	}
	if n := len(d.Gone); n > 0 {
		e.Remark("%s rewritten, and the file is not there: %s", count(n, "reference"), Shorten(d.Gone))
		e.Partial = count(n, "reference") + " to a file that is not there"
	}
	if n := len(d.Wrong); n > 0 {
		e.Remark("%s rewritten, and the file is not of the recorded length: %s", count(n, "reference"), Shorten(d.Wrong))
		e.Partial = count(n, "reference") + " to a file that is not of the recorded length"
	}
	if n := len(d.Right); n > 0 {
		e.Remark("%s left unchanged: not at the new location, and next to _metadata: %s", count(n, "relative reference"), e.run.References(d.Right))
	}
	if n := len(d.Broken); n > 0 {
		e.Remark("%s left unchanged: the file is neither next to _metadata nor at the new location: %s", count(n, "relative reference"), e.run.References(d.Broken))
		e.Partial = count(n, "reference") + " to a file that was not found"
	}
}

// References lists what references were, the first dozen of them.
func (r *Run) References(all []transform.Relocated) string {
	var list []string
	for _, u := range all {
		list = append(list, ui.Quote(r.Text(u.From)))
	}
	return Shorten(list)
}

// newPosition returns a position that was set, whose stored number is the writer's.
func newPosition(p connector.Position) string {
	p.Settable = false
	return positionText(&p)
}

// SetOffsets adds positions of sources that were set, and partitions that were removed.
func (e *Edit) SetOffsets(d *transform.SetOffsetsReport) {
	partition := func(p connector.Position) string {
		return e.run.Text(strings.TrimPrefix(p.Cluster+"/"+p.Topic, "/")) + ":" + p.Partition
	}
	offsets := false
	for _, s := range d.Set {
		e.add(s.Operator, Change{What: "set position of " + partition(s.From) + " in", From: positionText(&s.From), To: newPosition(s.To), Partition: partition(s.From), Elements: int64(s.Readers), Coordinator: s.Coordinator})
		offsets = offsets || s.To.At == connector.AtOffset
	}
	if offsets {
		e.Remark("only the broker knows the first and the last record of a partition: an offset that is not there restarts the partition where the job's reset policy says, without a word")
	}
	for _, s := range d.Dropped {
		e.add(s.Operator, Change{What: "dropped partition " + partition(s.From) + " of", From: positionText(&s.From), Partition: partition(s.From), Elements: int64(s.Readers), Coordinator: s.Coordinator})
	}
	if len(d.Dropped) > 0 {
		e.Remark("a job that still subscribes to the topic finds its partitions again, and reads them as new ones: since version 3.1 of the connector from the earliest record")
	}
}
