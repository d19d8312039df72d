package transform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// keyedBatch reads the entries that changes of keyed state name, and keeps what is new.
func (p *patch) keyedBatch(ctx context.Context, all []*keyedChange) error {
	byOperator := map[*keyedPatch][]*keyedChange{}
	for _, c := range all {
		id := p.hash.Sum(fmt.Appendf(nil, "%d %d %s %s", c.entry.KeyGroup, len(c.State), c.State, c.text))
		if c.of.named[id] {
			p.problem(c.Number, errEntryTwice)
			continue
		}
		c.of.named[id] = true
		byOperator[c.of] = append(byOperator[c.of], c)
	}
	for _, c := range all {
		changes := byOperator[c.of]
		if changes == nil {
			continue
		}
		delete(byOperator, c.of)
		for _, s := range c.of.sources {
			if err := s.find(ctx, p, changes); err != nil {
				return format.At(format.At(err, "subtask %d", s.sub.Index), "operator %q", c.of.op.Label())
			}
		}
		for _, c := range changes {
			if !c.found {
				if err := c.absent(p); err != nil {
					p.problem(c.Number, err)
				}
			}
		}
	}
	return nil
}

var errEntryTwice = errors.New("another change is for the same entry")

// find finds the entries that changes name in a source.
func (s *patchSource) find(ctx context.Context, p *patch, changes []*keyedChange) error {
	named := make([]map[string][]*keyedChange, len(s.schema.States)) // by keyText
	sel := format.KeyedSelection{States: []int{}}
	groups := map[int32]bool{}
	for _, c := range changes {
		k := s.state(c.State)
		if k < 0 || !s.has(c.entry.KeyGroup) {
			continue
		}
		if named[k] == nil {
			named[k] = map[string][]*keyedChange{}
			sel.States = append(sel.States, k)
		}
		named[k][c.text] = append(named[k][c.text], c)
		groups[c.entry.KeyGroup] = true
	}
	var text []byte
	for _, sel.Groups = range s.ranges(groups) {
		err := format.EachKeyedEntry(ctx, p.in.Source, s.codec, s.handle, sel, func(e format.KeyedEntry) error {
			text = keyText(text[:0], &s.codecs[e.State], &e)
			for _, c := range named[e.State][string(text)] {
				if c.entry.KeyGroup < 0 || c.entry.KeyGroup == e.KeyGroup {
					if err := s.change(p, c, &e); err != nil {
						p.problem(c.Number, err)
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ranges returns the ranges of the key groups of a set; -1 in it is all of the source.
func (s *patchSource) ranges(groups map[int32]bool) (all []format.KeyGroupRange) {
	if groups[-1] {
		return []format.KeyGroupRange{s.keyedSource.groups}
	}
	var sorted []int32
	for g := range groups {
		sorted = append(sorted, g)
	}
	slices.Sort(sorted)
	for _, g := range sorted {
		if k := len(all) - 1; k >= 0 && all[k].Last()+1 == g {
			all[k].Count++
		} else {
			all = append(all, format.KeyGroupRange{First: g, Count: 1})
		}
	}
	return all
}

// change keeps a change of an entry that is stored.
func (s *patchSource) change(p *patch, c *keyedChange, e *format.KeyedEntry) error {
	switch {
	case c.found:
		return errors.New("several entries have this key in other encodings, or key groups")
	case c.Op == PatchAdd:
		c.found = true
		return errors.New("the state has this entry already")
	}
	c.found = true
	if err := c.in(s, e.KeyGroup); err != nil {
		return err
	}
	var data []byte
	op := c.Op
	same := op != PatchRemove
	if c.st.Keyed != types.Timers {
		if same && s.empties(e.State, e.Value, c.Value.JSON) { // which is not stored
			op = PatchRemove
		}
		var err error
		if data, same, err = s.value(p, c, op, e.State, e.Value); err != nil {
			return err
		}
	}
	if same {
		c.st.Same++
		return nil
	}
	edit := entryEdit{removed: op == PatchRemove, value: data}
	id := string(entryID(nil, e))
	if _, twice := s.edits[id]; twice {
		return errEntryTwice
	}
	s.edits[id] = edit
	s.groups[e.KeyGroup] = true
	if edit.removed {
		c.st.Removed++
	} else {
		c.st.Replaced++
	}
	return nil
}

// in returns an error if a change names another subtask than the one of the source, which
// has its key group.
func (c *keyedChange) in(s *patchSource, group int32) error {
	if c.Subtask != AllSubtasks && c.Subtask != s.sub.Index {
		return fmt.Errorf("subtask %d: key group %d is in subtask %d", c.Subtask, group, s.sub.Index)
	}
	return nil
}

// empties reports whether the JSON of a new value removes all elements of a list.
func (s *patchSource) empties(state int, stored, js []byte) bool {
	c := &s.codecs[state]
	if !c.List || c.Value == nil || string(bytes.Join(bytes.Fields(js), nil)) != "[]" {
		return false
	}
	v, err := value.ReadAll(c.Value, stored)
	return err != nil || v.Len() > 0
}

// absent adds the entry of a change that no source has.
func (c *keyedChange) absent(p *patch) error {
	group := c.entry.KeyGroup
	switch {
	case c.notHashed == nil && group >= 0 && group != c.hashed:
		return fmt.Errorf("key group %d: the key belongs to key group %d", group, c.hashed)
	case c.Op == PatchAdd && c.notHashed != nil:
		return fmt.Errorf("the key group of a new key is not known: %w", c.notHashed)
	}
	i := slices.IndexFunc(c.of.sources, func(s *patchSource) bool { return s.has(group) && s.state(c.State) >= 0 })
	if i < 0 {
		return fmt.Errorf("key group %d: its subtask does not have the state %q", group, c.State)
	}
	s := c.of.sources[i]
	if group >= 0 {
		if err := c.in(s, group); err != nil {
			return err
		}
	}
	if c.Op != PatchAdd {
		if group < 0 {
			return errors.New("the state has no such entry")
		}
		return fmt.Errorf("the state has no such entry in key group %d", group)
	}
	e := c.entry
	e.State = s.state(c.State)
	if c.st.Keyed != types.Timers {
		var err error
		if e.Value, _, err = s.value(p, c, c.Op, e.State, nil); err != nil {
			return err
		}
	}
	s.added = append(s.added, e)
	c.st.Added++
	return nil
}

// value returns the new value of an entry whose value is stored, or of a new one, unless it
// stays the same. op is what the change does.
func (s *patchSource) value(p *patch, c *keyedChange, op PatchOp, state int, stored []byte) (data []byte, same bool, err error) {
	codecs := &s.codecs[state]
	why := ""
	if codecs.Why != nil {
		why = codecs.Why.Error()
	}
	like := value.Null() // what is stored
	if codecs.Value != nil && op != PatchAdd {
		if v, err := value.ReadAll(codecs.Value, stored); err == nil { // a broken value can be replaced
			like = v
		}
	}
	with := c.PatchChange
	if with.Op = op; op == PatchRemove {
		with.Value = PatchValue{}
	}
	for _, g := range []*PatchValue{&with.Value, &with.Was} {
		if codecs.TTL && g.JSON != nil {
			if g.JSON, err = withTimes(codecs.List, like, g.JSON, c.Entry.TTL); err != nil {
				return nil, false, err
			}
		}
	}
	if op == PatchAdd {
		return p.encode(codecs.Value, why, nil, &like, with.Value)
	}
	return p.change(codecs.Value, why, stored, &with)
}

var (
	errNoTime  = errors.New("ttl_timestamp is missing: when the value was updated")
	errNoTimes = errors.New("ttl_timestamp is missing: when each element was updated, because their number is another one than before")
)

// withTimes returns the JSON of a value with a time to live as it is stored: with the times
// ttl, or if it is nil those that were stored.
func withTimes(list bool, stored value.Value, user, ttl []byte) ([]byte, error) {
	if !list {
		switch {
		case ttl != nil:
		case stored.Len() == 2:
			ttl = stored.At(0).AppendJSON(nil, nil, nil)
		case string(user) == "null": // of a map, without a time
			return user, nil
		default:
			return nil, errNoTime
		}
		return fmt.Appendf(nil, "[%s,%s]", ttl, user), nil
	}
	var elements, times []json.RawMessage
	if json.Unmarshal(user, &elements) != nil {
		return nil, errors.New("expected an array of the elements of the list")
	}
	if ttl == nil {
		for i := range stored.Len() {
			t := value.Null()
			if stored.At(i).Len() == 2 {
				t = stored.At(i).At(0)
			}
			times = append(times, t.AppendJSON(nil, nil, nil))
		}
	} else if json.Unmarshal(ttl, &times) != nil {
		return nil, errors.New("ttl_timestamp: expected an array, with a time for each element")
	}
	switch {
	case len(elements) == 0 || len(times) == len(elements):
	case ttl == nil:
		return nil, errNoTimes
	default:
		return nil, fmt.Errorf("ttl_timestamp: expected %d times, one for each element, found %d", len(elements), len(times))
	}
	out := []byte{'['}
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		if string(times[i]) == "null" {
			out = append(out, e...)
		} else {
			out = fmt.Appendf(out, "[%s,%s]", times[i], e)
		}
	}
	return append(out, ']'), nil
}
