package metadata

import (
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
)

// ForRelease gives the savepoint as _metadata of a release of Flink holds it: in
// its version, with handles that it knows (spec flink-metadata 3.1). lost says
// what it has no place for; what a job would miss is not dropped but an
// ErrUnsupported. Only what stands in _metadata changes: streams are those of sp.
//
// Segments of merged files stay, though releases before 1.20 do not know them:
// see HoldsMerged. RocksDB's own files cannot be rewritten at all: those of Flink
// 2.0 and later, told by the version of _metadata, are refused for 1.x, which does
// not read their checksums.
func ForRelease(sp *format.Savepoint, r flink.Release) (out *format.Savepoint, lost []string, err error) {
	facts := r.Facts()
	v := Version(facts.Metadata.Newest())
	fw, ok := parseFileWire(sp.Wire)
	if ok && !fw.layout.readBy(facts) {
		return nil, nil, format.Errorf(format.ErrUnsupported, "the snapshot is in a layout that only Flink %v wrote and is not rewritten for Flink %v", fw.layout.writer(), r)
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
	return &c, t.said(), nil
}

const lostKind = "what kind of snapshot it is"

// retarget makes nodes what a release reads.
type retarget struct {
	r      flink.Release
	facts  flink.Facts // about r
	v      Version
	layout layout
	// rocksDB is the version of RocksDB's files.
	rocksDB int
	lost    []string

	names, ids, sizes int // what is lost, counted
}

// said is what is lost, in words.
func (t *retarget) said() []string {
	for _, l := range []struct {
		n                 int
		one, many, plural string
	}{
		{t.names, "name and uid of", "operator", "operators"},
		{t.ids, "the handle id of", "keyed handle", "keyed handles"},
		{t.sizes, "what the checkpoint uploaded, of", "keyed handle", "keyed handles"},
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

// needs refuses what came with a later release.
func (t *retarget) needs(has func(flink.Facts) bool, what string) error {
	if has(t.facts) {
		return nil
	}
	first, _ := flink.Lifetime(has)
	return format.Errorf(format.ErrUnsupported, "Flink %v does not know %s, which came with %v", t.r, what, first)
}

func (t *retarget) operator(op *format.Operator) (*format.Operator, error) {
	c := *op
	changed := false
	if op.Coordinator != nil {
		if err := t.needs(func(f flink.Facts) bool { return Version(f.Metadata.Newest()).hasCoordinator() }, "state of coordinators"); err != nil {
			return nil, err
		}
	}
	if op.Finished {
		if err := t.needs(hasFinished, "operators that have finished"); err != nil {
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

// unnamed is an operator without the names that the version has no place for.
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
		return sub, t.needs(hasFinished, "subtasks that have finished")
	}
	if len(sub.Legacy) > 0 && !t.facts.Legacy {
		_, last := flink.Lifetime(func(f flink.Facts) bool { return f.Legacy })
		return nil, format.Errorf(format.ErrUnsupported, "Flink %v refuses legacy operator state, which Flink %v is the last to read", t.r, last)
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

// split makes of each handle of several channels one for each, which share the
// stream: what Flink did before, and makes of it on a restore.
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

// keyed gives a keyed handle with a tag that the release knows.
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
			if err := t.needs(func(f flink.Facts) bool { return f.Streams.Has(streamKeyGroups) }, "key groups where a stream is expected"); err != nil {
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
		if t.layout.shortChangelogs { // of 1.14, for 1.14
			return h, nil
		}
		if h.Wire != tagWire(keyedChangelogV1, false) {
			if err := t.needs(knows(keyedChangelog), "changelog state in this layout"); err != nil {
				return nil, err
			}
		} else if err := t.needs(func(f flink.Facts) bool { return f.Changelogs.Has(2) }, "changelog state in this layout"); err != nil {
			return nil, err
		}
		for _, inner := range h.Materialized { // from 1.15 on, tags of these need no change
			if _, err := t.keyed(inner); err != nil {
				return nil, err
			}
		}
		return h, nil
	}
	return h, nil
}

func hasFinished(f flink.Facts) bool { return f.Finished }

// knows returns whether releases read a tag of keyed handles.
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

// HoldsMerged reports whether a savepoint refers to segments of merged files, or names
// the folders that file merging uses: what releases before 1.20 do not know.
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
