package metadata

import (
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
)

// ForRelease returns the savepoint as a release of Flink stores it in _metadata: in
// its version, with handles that it reads (spec flink-metadata 3.1). lost names
// what that version cannot store; if a job would miss it, the result is
// ErrUnsupported instead. Only _metadata changes; the streams stay the same.
//
// Segments of merged files are kept, even if the release does not read them: see
// HoldsMerged. RocksDB's files cannot be rewritten: if the release does not read
// the files of the release that wrote sp, according to its version of _metadata,
// the result is ErrUnsupported.
func ForRelease(sp *format.Savepoint, r flink.Release) (out *format.Savepoint, lost []string, err error) {
	facts := r.Facts()
	v := Version(facts.Metadata.Newest())
	fw, ok := parseFileWire(sp.Wire)
	if ok && !fw.layout.readBy(facts) {
		return nil, nil, format.Errorf(format.ErrUnsupported, "cannot rewrite a snapshot in a layout that only Flink %v wrote for Flink %v", fw.layout.writer(), r)
	}
	t := &retarget{r: r, facts: facts, v: v, layout: fw.layout, rocksDB: 1}
	if ok {
		writer, _ := flink.WritersOf(int(fw.version))
		t.rocksDB = writer.Facts().RocksDB.Newest()
	}
	c := *sp
	c.Operators = make([]*format.Operator, len(sp.Operators))
	changed := !ok || fw.version != v
	for i, op := range sp.Operators {
		if c.Operators[i], err = t.operator(op); err != nil {
			return nil, nil, format.At(err, "operator %q", op.Label())
		}
		changed = changed || c.Operators[i] != op
	}
	if !changed {
		return sp, nil, nil
	}
	if !ok || !fw.version.hasProperties() {
		fw.tail = propertiesFor(sp.Kind)
	}
	if !v.hasProperties() {
		fw.tail = ""
		if sp.Kind != (format.SnapshotKind{}) {
			c.Kind = format.SnapshotKind{}
			t.lost = append(t.lost, lostKind)
		}
	}
	fw.version = v
	c.Wire = fw.wire()
	return &c, t.report(), nil
}

const lostKind = "the kind of snapshot"

// retarget rewrites nodes for a release.
type retarget struct {
	r      flink.Release
	facts  flink.Facts // about r
	v      Version
	layout layout
	// rocksDB is the version of RocksDB's files.
	rocksDB int
	lost    []string

	names, ids, sizes int // counts of lost fields
}

// report returns the lost fields as texts.
func (t *retarget) report() []string {
	for _, l := range []struct {
		n                 int
		one, many, plural string
	}{
		{t.names, "name and uid of", "operator", "operators"},
		{t.ids, "the handle id of", "keyed handle", "keyed handles"},
		{t.sizes, "the checkpointed size of", "keyed handle", "keyed handles"},
	} {
		switch {
		case l.n == 1:
			t.lost = append(t.lost, fmt.Sprintf("%s 1 %s", l.one, l.many))
		case l.n > 1:
			t.lost = append(t.lost, fmt.Sprintf("%s %d %s", l.one, l.n, l.plural))
		}
	}
	return t.lost
}

// needs returns an error if the release does not read what.
func (t *retarget) needs(has func(flink.Facts) bool, what string) error {
	if has(t.facts) {
		return nil
	}
	first, _ := flink.Lifetime(has)
	return format.Errorf(format.ErrUnsupported, "Flink %v does not support %s, which Flink %v introduced", t.r, what, first)
}

func (t *retarget) operator(op *format.Operator) (*format.Operator, error) {
	c := *op
	changed := false
	if op.Coordinator != nil {
		if err := t.needs(func(f flink.Facts) bool { return Version(f.Metadata.Newest()).hasCoordinator() }, "coordinator state"); err != nil {
			return nil, err
		}
	}
	if op.Finished {
		if err := t.needs(hasFinished, "fully finished operators"); err != nil {
			return nil, err
		}
	}
	if named := t.unnamed(op); named != op {
		c = *named
		changed = true
	}
	c.Subtasks = make([]*format.Subtask, len(op.Subtasks))
	for i, sub := range op.Subtasks {
		s, err := t.subtask(sub)
		if err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
		c.Subtasks[i] = s
		changed = changed || s != sub
	}
	if !changed {
		return op, nil
	}
	return &c, nil
}

// unnamed returns an operator without the names that the version cannot store.
func (t *retarget) unnamed(op *format.Operator) *format.Operator {
	if t.v.hasNames() || op.Name == (format.Text{}) && op.UID == (format.Text{}) {
		return op
	}
	c := *op
	c.Name, c.UID = format.Text{}, format.Text{}
	t.names++
	return &c
}

func (t *retarget) subtask(sub *format.Subtask) (*format.Subtask, error) {
	if sub.Finished {
		return sub, t.needs(hasFinished, "finished subtasks")
	}
	if len(sub.Legacy) > 0 && !t.facts.Legacy {
		_, last := flink.Lifetime(func(f flink.Facts) bool { return f.Legacy })
		return nil, format.Errorf(format.ErrUnsupported, "Flink %v does not read legacy operator state; Flink %v is the last release that does", t.r, last)
	}
	c := *sub
	var err error
	if c.ManagedKeyed, err = t.keyed(sub.ManagedKeyed); err != nil {
		return nil, err
	}
	if c.RawKeyed, err = t.keyed(sub.RawKeyed); err != nil {
		return nil, err
	}
	if len(sub.Input)+len(sub.Output) > 0 && !t.layout.noSubtask {
		if err := t.needs(func(f flink.Facts) bool { return f.Channels.Has(2) }, "in-flight data in this layout"); err != nil {
			return nil, err
		}
	}
	merged := false
	if !t.v.hasChannelTypes() {
		c.Input, merged = split(sub.Input)
		var more bool
		c.Output, more = split(sub.Output)
		merged = merged || more
	}
	if c.ManagedKeyed == sub.ManagedKeyed && c.RawKeyed == sub.RawKeyed && !merged {
		return sub, nil
	}
	return &c, nil
}

// split replaces each handle of several channels by one handle per channel, which
// share the stream, as older releases wrote them.
func split(all []*format.ChannelHandle) (out []*format.ChannelHandle, changed bool) {
	for _, h := range all {
		if !h.Merged {
			out = append(out, h)
			continue
		}
		changed = true
		for _, c := range h.Channels {
			out = append(out, &format.ChannelHandle{Subtask: h.Subtask, Channels: []format.Channel{c}, Size: c.Size, Data: h.Data})
		}
	}
	if !changed {
		return all, false
	}
	return out, true
}

// keyed returns a keyed handle with a tag that the release reads.
func (t *retarget) keyed(h format.KeyedHandle) (format.KeyedHandle, error) {
	switch h := h.(type) {
	case *format.KeyGroups:
		if h.Savepoint {
			return h, t.needs(knows(keyedSavepoint), "keyed state in the canonical savepoint format")
		}
		if t.facts.KeyedHandles.Has(keyedGroups) || h.Wire == tagWire(keyedGroupsV1, false) {
			return h, nil
		}
		c := *h
		c.Wire, c.HandleID = tagWire(keyedGroupsV1, false), format.Text{}
		t.ids++
		return &c, nil
	case *format.Incremental:
		if !t.facts.RocksDB.Has(t.rocksDB) {
			first, _ := flink.Lifetime(func(f flink.Facts) bool { return f.RocksDB.Has(t.rocksDB) })
			return nil, format.Errorf(format.ErrUnsupported, "Flink %v does not read the RocksDB files of Flink %v and later; a canonical savepoint holds the same state for both", t.r, first)
		}
		if holdsKeyGroupStream(h) {
			if err := t.needs(func(f flink.Facts) bool { return f.Streams.Has(streamKeyGroups) }, "a key-group handle as a stream"); err != nil {
				return nil, err
			}
		}
		if t.facts.KeyedHandles.Has(keyedIncremental) || h.Wire == tagWire(keyedIncrementalV1, false) {
			return h, nil
		}
		c := *h
		c.Wire, c.HandleID, c.CheckpointedSize = tagWire(keyedIncrementalV1, false), format.Text{}, -1
		t.ids++
		t.sizes++
		return &c, nil
	case *format.Changelog:
		if t.layout.shortChangelogs { // a layout that the release reads
			return h, nil
		}
		if h.Wire != tagWire(keyedChangelogV1, false) {
			if err := t.needs(knows(keyedChangelog), "changelog state in this layout"); err != nil {
				return nil, err
			}
		} else if err := t.needs(func(f flink.Facts) bool { return f.Changelogs.Has(2) }, "changelog state in this layout"); err != nil {
			return nil, err
		}
		for _, inner := range h.Materialized { // releases with long changelogs read all tags in them
			if _, err := t.keyed(inner); err != nil {
				return nil, err
			}
		}
		return h, nil
	}
	return h, nil
}

func hasFinished(f flink.Facts) bool { return f.Finished }

// knows returns a function that reports whether a release reads a tag of keyed
// handles.
func knows(tag int) func(flink.Facts) bool {
	return func(f flink.Facts) bool { return f.KeyedHandles.Has(tag) }
}

func holdsKeyGroupStream(h *format.Incremental) bool {
	for _, all := range [][]format.NamedStream{h.Shared, h.Private} {
		for _, s := range all {
			if _, ok := s.Data.(*format.KeyGroupStream); ok {
				return true
			}
		}
	}
	_, ok := h.Meta.(*format.KeyGroupStream)
	return ok
}

// HoldsMerged reports whether a savepoint refers to segments of merged files or to
// the directories of file merging. Only releases with flink.Facts.MergedFiles read
// it.
func HoldsMerged(sp *format.Savepoint) bool {
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			if sub.Managed != nil && sub.Managed.Merging != nil {
				return true
			}
		}
	}
	found := false
	_ = sp.EachStream(func(_ format.Place, s format.Stream) error {
		if c, ok := s.(*format.Chunks); ok {
			s = c.As
		}
		if _, ok := s.(*format.Segment); ok {
			found = true
		}
		return nil
	})
	return found
}
