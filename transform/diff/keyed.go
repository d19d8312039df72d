package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/transform/internal/keygroups"
)

// Keyed is the comparison of an operator's keyed state. Key groups of full streams are
// compared by their bytes, in any handle, and all other state by files. Where these
// differ, or cannot be compared, entries are.
type Keyed struct {
	// States are the states that have entries on either side, if entries were compared.
	States []*KeyedState
	// NotCompared is why entries were not compared, if the bytes differ.
	NotCompared error
	// Incomparable is why bytes were not compared: the sides store it differently.
	Incomparable string
	// Description is set if the headers before the key groups differ. OldDescribed
	// and NewDescribed are the subtasks whose header no subtask of the other side
	// has, if others have equal ones.
	Description                bool
	OldDescribed, NewDescribed []int32
	// Key groups with data.
	OldGroups, NewGroups                                  int64
	SameGroups, ChangedGroups, AddedGroups, RemovedGroups int64
	// Counts of distinct files. Files with equal references that lead to one file are
	// the same and were not read; nor were files that neither side has.
	SameFiles, AddedFiles, RemovedFiles int64
	SameBytes, AddedBytes, RemovedBytes int64
	ByReference                         int64 // of SameFiles
	Absent                              int64 // of SameFiles: on neither side, or not looked up
	// Groups are the numbers of key groups that differ, in order.
	Groups []int32
	// MovedGroups is the number of key groups covered by another subtask; -1 if not
	// compared.
	MovedGroups int64
}

// keyedSide is the keyed state of one side, by key group and file.
type keyedSide struct {
	in      format.View
	groups  map[int32][]rangeOf // one, unless handles hold parts of a group
	headers []keyedHeaderOf
	files   []rangeOf
	owner   map[int32]int32 // key group -> subtask
	full    []*format.KeyGroups
	subtask map[*format.KeyGroups]int32 // of full
}

// keyedHeaderOf is a header before key groups, and the subtasks that have it.
type keyedHeaderOf struct {
	rangeOf
	subtasks []int32
}

// keyed compares the keyed state of two operators.
func (d *differ) keyed(o *Operator, st *State) error {
	if d.o.Ignore[KindKeyed] {
		return nil
	}
	d.out.KeyedCompared = true
	r := &Keyed{MovedGroups: -1}
	st.Keyed = r
	if o.movedTimers {
		r.Incomparable = "timers are raw keyed state on one side: cannot be compared by its bytes"
		return d.keyedEntries(o, st, r)
	}
	if x, y := st.Old.Handles, st.New.Handles; x != y {
		r.Incomparable = fmt.Sprintf("stored as %s → %s: cannot be compared by its bytes", x, y)
		return d.keyedEntries(o, st, r)
	}
	slot := slotOf(st)
	a, err := d.keyedSide(d.a, o.oldRead, slot)
	if err != nil {
		return format.InFile(err, d.a.Location)
	}
	b, err := d.keyedSide(d.b, o.newRead, slot)
	if err != nil {
		return format.InFile(err, d.b.Location)
	}
	if err := d.groups(a, b, r); err != nil {
		return err
	}
	if err := d.files(a, b, r); err != nil {
		return err
	}
	if r.text() != "" {
		if err := d.keyedEntries(o, st, r); err != nil {
			return err
		}
	}
	if d.o.Placement && !d.o.Ignore[KindPlacement] {
		r.MovedGroups = 0
		for g, sub := range b.owner {
			if old, ok := a.owner[g]; ok && old != sub {
				r.MovedGroups++
			}
		}
		if r.MovedGroups > 0 {
			d.add(KindPlacement, o, st, "%d of %d key groups are in other subtasks", r.MovedGroups, len(b.owner))
		}
	}
	return nil
}

// keyedEntries compares the entries of state whose bytes differ, and adds what differs.
func (d *differ) keyedEntries(o *Operator, st *State, r *Keyed) error {
	var groups []int32
	if r.Incomparable == "" && r.AddedFiles+r.RemovedFiles == 0 && len(r.Groups) > 0 && o.old.MaxParallelism == o.new.MaxParallelism {
		groups = r.Groups // the others are the same
	}
	slots := []format.Slot{slotOf(st)}
	if o.movedTimers {
		slots = []format.Slot{format.SlotManagedKeyed, format.SlotRawKeyed}
	}
	states, alike, why, err := d.entries(o, slots, groups)
	if err != nil {
		return err
	}
	if r.States, r.NotCompared = states, why; why != nil {
		d.add(KindKeyed, o, st, "%s", cmp.Or(r.Incomparable, r.text()))
		return nil //nolint:nilerr // it is in the report
	}
	if r.Description = !alike; !alike {
		d.add(KindKeyed, o, st, "the description of its states changed%s", changedIn(r.OldDescribed, r.NewDescribed))
	}
	for _, s := range r.States {
		if s.Added+s.Removed+s.Changed > 0 {
			d.out.Differences = append(d.out.Differences, Difference{Kind: KindKeyed, Operator: o, State: st, Keyed: s,
				Text: "entries: " + counted(s.Added, "added", s.Removed, "removed", s.Changed, "changed")})
		}
	}
	return nil
}

// text describes how the bytes differ; "" if they do not.
func (r *Keyed) text() string {
	var parts []string
	if r.Description {
		parts = append(parts, "the description of its states changed"+changedIn(r.OldDescribed, r.NewDescribed))
	}
	if n := r.ChangedGroups + r.AddedGroups + r.RemovedGroups; n > 0 {
		parts = append(parts, "key groups: "+counted(r.ChangedGroups, "changed", r.AddedGroups, "added", r.RemovedGroups, "removed", r.SameGroups, "same"))
	}
	if r.AddedFiles+r.RemovedFiles > 0 {
		parts = append(parts, "files: "+counted(r.AddedFiles, "added", r.RemovedFiles, "removed", r.SameFiles, "same"))
	}
	return strings.Join(parts, "; ")
}

// counted lists the numbers that are not zero, each with its unit.
func counted(pairs ...any) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		if n := pairs[i].(int64); n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, pairs[i+1]))
		}
	}
	return strings.Join(parts, ", ")
}

// slotOf returns where the keyed state of a subtask is.
func slotOf(st *State) format.Slot {
	if st.State().Kind == summary.RawKeyed {
		return format.SlotRawKeyed
	}
	return format.SlotManagedKeyed
}

// keyedIn returns the keyed state of a subtask in a slot, or nil.
func keyedIn(sub *format.Subtask, slot format.Slot) format.KeyedHandle {
	if slot == format.SlotRawKeyed {
		return sub.RawKeyed
	}
	return sub.ManagedKeyed
}

// timersMoved reports whether one side has timers as raw keyed state, where a backend
// keeps them on the heap, and the other side has them in managed keyed state. Then the
// managed and the raw keyed state are compared as one, by their entries.
func (d *differ) timersMoved(o *Operator) bool {
	var old, now, managed bool
	for _, st := range o.States {
		switch st.State().Kind {
		case summary.RawKeyed:
			old, now = old || st.Old != nil, now || st.New != nil
		case summary.Keyed:
			managed = true
		}
	}
	if !managed || old == now || d.o.Ignore[KindKeyed] {
		return false
	}
	in, op := d.a, o.oldRead
	if now {
		in, op = d.b, o.newRead
	}
	for _, sub := range op.Subtasks {
		if sub.RawKeyed == nil {
			continue
		}
		codec, err := in.KeyedCodec(op, sub.RawKeyed)
		if err != nil {
			return false
		}
		schema, err := codec.Describe(d.ctx, in.Source, sub.RawKeyed)
		if err != nil || slices.ContainsFunc(schema.States, func(s format.KeyedState) bool { return s.Kind != types.Timers }) {
			return false // raw state of user code
		}
	}
	return true
}

func (d *differ) keyedSide(in format.View, op *format.Operator, slot format.Slot) (*keyedSide, error) {
	s := &keyedSide{in: in, groups: map[int32][]rangeOf{}, owner: map[int32]int32{}, subtask: map[*format.KeyGroups]int32{}}
	for _, sub := range op.Subtasks {
		h := keyedIn(sub, slot)
		if h == nil {
			continue
		}
		first := len(s.full)
		if err := s.handle(h); err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
		for _, h := range s.full[first:] {
			s.subtask[h] = sub.Index
		}
		if r := h.KeyGroups(); r.Count <= format.MaxKeyGroups {
			for i := range r.Count {
				s.owner[r.First+i] = sub.Index
			}
		}
	}
	return s, d.extents(s)
}

// extents finds the bytes of the key groups and of the header.
func (d *differ) extents(s *keyedSide) error {
	streams, err := keygroups.Locate(d.ctx, s.full, func(st format.Stream) (int64, error) { return d.size(s.in, st) })
	if err != nil {
		return err
	}
	headers := map[format.StreamKey]int{}
	for _, h := range s.full {
		if key := streams.Key(h); h.Codec != format.CodecRaw {
			i, ok := headers[key]
			if !ok {
				i = len(s.headers)
				headers[key] = i
				s.headers = append(s.headers, keyedHeaderOf{rangeOf: rangeOf{h.Data, 0, max(streams.Header(h), 0)}})
			}
			s.headers[i].subtasks = append(s.headers[i].subtasks, s.subtask[h])
		}
		err := h.EachKeyGroup(d.ctx, func(group int32, _ int64) error {
			e, _, err := streams.Extent(h, group)
			if g := (rangeOf{h.Data, e.Start, e.End - e.Start}); err == nil && g.n > 0 && !slices.Contains(s.groups[group], g) {
				s.groups[group] = append(s.groups[group], g)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *keyedSide) file(st format.Stream) {
	if st != nil && format.Kind(st) != format.KindEmpty {
		s.files = append(s.files, rangeOf{st, 0, st.Size()})
	}
}

func (s *keyedSide) handle(h format.KeyedHandle) error {
	switch h := h.(type) {
	case *format.KeyGroups:
		if h.Offsets == nil || h.Data == nil {
			s.file(h.Data)
			return nil
		}
		s.full = append(s.full, h)
	case *format.Incremental:
		s.file(h.Meta)
		for _, f := range slices.Concat(h.Shared, h.Private) {
			s.file(f.Data)
		}
	case *format.Changelog:
		for _, c := range slices.Concat(h.Materialized, h.Changes) {
			if c != nil {
				if err := s.handle(c); err != nil {
					return err
				}
			}
		}
	case *format.ChangelogMemory:
		for _, c := range h.Changes {
			s.file(&format.Inline{Data: c.Data})
		}
	case *format.ChangelogStream:
		for _, f := range h.Streams {
			if f.Data != nil {
				// The file is a byte longer than its handle records, as an .spt file
				// can tell.
				s.files = append(s.files, rangeOf{f.Data, f.Offset, -1})
			}
		}
	}
	return nil
}

// groups compares key groups and headers by their bytes.
func (d *differ) groups(a, b *keyedSide, r *Keyed) error {
	r.OldGroups, r.NewGroups = int64(len(a.groups)), int64(len(b.groups))
	if err := d.descriptions(a, b, r); err != nil {
		return err
	}
	all := slices.Collect(maps.Keys(a.groups))
	for g := range b.groups {
		if _, both := a.groups[g]; !both {
			all = append(all, g)
		}
	}
	slices.Sort(all)
	ra, rb := &window{d: d, in: a.in}, &window{d: d, in: b.in}
	for _, g := range all {
		old, now := a.groups[g], b.groups[g]
		switch {
		case len(now) == 0:
			r.RemovedGroups++
		case len(old) == 0:
			r.AddedGroups++
		default:
			same, err := sameGroup(ra, rb, old, now)
			if err != nil {
				return format.At(err, "key group %d", g)
			}
			if same {
				r.SameGroups++
				continue
			}
			r.ChangedGroups++
		}
		r.Groups = append(r.Groups, g)
	}
	return nil
}

// descriptions compares the headers of all subtasks.
func (d *differ) descriptions(a, b *keyedSide, r *Keyed) error {
	var all [2]map[fileContent][]int32
	for i, s := range []*keyedSide{a, b} {
		all[i] = map[fileContent][]int32{}
		for _, h := range s.headers {
			c, err := d.contentOf(s.in, h.rangeOf)
			if err != nil {
				return err
			}
			all[i][c] = append(all[i][c], h.subtasks...)
		}
	}
	if len(all[0]) == 0 || len(all[1]) == 0 {
		return nil
	}
	same := 0
	for i, to := range []*[]int32{&r.OldDescribed, &r.NewDescribed} {
		for c, subtasks := range all[i] {
			if _, both := all[1-i][c]; both {
				same++
			} else {
				*to = append(*to, subtasks...)
			}
		}
		slices.Sort(*to)
		*to = slices.Compact(*to)
	}
	r.Description = len(r.OldDescribed)+len(r.NewDescribed) > 0
	if same == 0 {
		r.OldDescribed, r.NewDescribed = nil, nil
	}
	return nil
}

// sameGroup compares a key group: one range, unless several handles of a snapshot
// hold parts of it.
func sameGroup(ra, rb *window, old, now []rangeOf) (bool, error) {
	if len(old) != len(now) {
		return false, nil
	}
	for i, x := range old {
		y := now[i]
		if x.n != y.n {
			return false, nil
		}
		if x.off == y.off {
			same, err := ra.d.sameReference(x.s, y.s)
			if err != nil {
				return false, err
			}
			if same != perhaps {
				continue
			}
		}
		if same, err := sameRange(ra, rb, x, y); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// files compares the files of backends and changelogs as sets, because several
// handles may name one file. Files of equal references are the same; others are
// read only if a file on the other side has the same length.
func (d *differ) files(a, b *keyedSide, r *Keyed) error {
	type place struct {
		key format.StreamKey
		off int64
	}
	var left [2]map[place]rangeOf
	var order [2][]place
	for i, s := range []*keyedSide{a, b} {
		left[i] = map[place]rangeOf{}
		for _, f := range s.files {
			p := place{writtenAs(f.s).Key(), f.off}
			if _, twice := left[i][p]; !twice {
				left[i][p] = f
				order[i] = append(order[i], p)
			}
		}
	}
	same := map[place]bool{}
	for _, p := range order[0] {
		f := left[0][p]
		g, both := left[1][p]
		if !both {
			continue
		}
		how, err := d.sameReference(f.s, g.s)
		if err != nil {
			return err
		}
		if same[p] = how != perhaps; same[p] {
			r.SameFiles++
			r.SameBytes += max(writtenAs(f.s).Size(), 0)
		}
		switch how {
		case oneFile, byDigest:
			r.ByReference++
		case absent, unchecked:
			r.Absent++
		}
	}
	var sizes [2]map[int64]bool
	for i, s := range []*keyedSide{a, b} {
		sizes[i] = map[int64]bool{}
		for _, p := range order[i] {
			f := left[i][p]
			if same[p] {
				continue
			}
			if f.n < 0 {
				n, err := d.size(s.in, f.s)
				if err != nil {
					return err
				}
				f.n = max(n-f.off, 0)
				left[i][p] = f
			}
			sizes[i][f.n] = true
		}
	}
	var sets [2]map[fileContent]bool
	for i, s := range []*keyedSide{a, b} {
		sets[i] = map[fileContent]bool{}
		for _, p := range order[i] {
			f := left[i][p]
			if same[p] {
				continue
			}
			if !sizes[1-i][f.n] {
				// No file on the other side has this length: no need to read it.
				n, only := &r.RemovedFiles, &r.RemovedBytes
				if i == 1 {
					n, only = &r.AddedFiles, &r.AddedBytes
				}
				*n++
				*only += f.n
				continue
			}
			c, err := d.contentOf(s.in, f)
			if err != nil {
				return err
			}
			sets[i][c] = true
		}
	}
	for c := range sets[0] {
		if sets[1][c] {
			r.SameFiles++
			r.SameBytes += c.n
		} else {
			r.RemovedFiles++
			r.RemovedBytes += c.n
		}
	}
	for c := range sets[1] {
		if !sets[0][c] {
			r.AddedFiles++
			r.AddedBytes += c.n
		}
	}
	return nil
}
