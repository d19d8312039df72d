package transform

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// patchedKey is an entry of a broadcast state that changes in at least one replica.
type patchedKey struct {
	stored  []byte                // the key in the bytes of the codec
	numbers []int64               // of the changes
	new     map[*patchPart][]byte // value; nil: removed
	adds    map[*patchPart]bool   // replicas that do not have it
	before  agreement
	after   agreement
}

// agreement reports whether replicas agree on the value of a key.
type agreement struct {
	n      int
	first  []byte
	absent bool // in the first
	differ bool
}

func (a *agreement) add(stored []byte, absent bool) {
	if a.n++; a.n == 1 {
		a.first, a.absent = bytes.Clone(stored), absent
	}
	a.differ = a.differ || a.absent != absent || !bytes.Equal(a.first, stored)
}

// entryChange is a change of an entry of broadcast state.
type entryChange struct {
	*PatchChange
	part  *patchPart // nil: all
	key   string     // JSON of the key, as the codec writes it; "" if none is given
	found bool       // in a replica
}

// entries finds the entries that changes name, in all replicas.
func (st *patchState) entries(ctx context.Context, p *patch, all []located) error {
	var changes []*entryChange
	stored := map[string][]byte{} // keys, by their JSON
	for i := range all {
		c := &entryChange{PatchChange: &all[i].PatchChange, part: all[i].part}
		of := c.part
		if of == nil {
			of = st.parts[0]
		}
		if err := of.open(ctx, p); err != nil {
			return err
		}
		if c.Key != nil {
			if of.values.Key == nil {
				p.problem(c.Number, fmt.Errorf("the map is not decoded: %s", of.values.Why))
				continue
			}
			key, err := value.FromJSONLike(of.values.Key, value.Null(), c.Key)
			if err != nil {
				p.problem(c.Number, fmt.Errorf("key: %w", err))
				continue
			}
			c.key = string(key.AppendJSON(nil, nil, nil))
			if stored[c.key], err = of.values.Key.Append(nil, key); err != nil {
				p.problem(c.Number, fmt.Errorf("key: %w", err))
				continue
			}
		}
		changes = append(changes, c)
	}
	for _, part := range st.parts {
		byIndex, byKey := map[int64][]*entryChange{}, map[string][]*entryChange{}
		for _, c := range changes {
			switch {
			case c.part != nil && c.part != part:
			case c.Index != NoIndex:
				byIndex[c.Index] = append(byIndex[c.Index], c)
			default:
				byKey[c.key] = append(byKey[c.key], c)
			}
		}
		if len(byIndex)+len(byKey) == 0 {
			continue
		}
		if err := part.open(ctx, p); err != nil {
			return err
		}
		if err := part.entries(ctx, p, byIndex, byKey); err != nil {
			return part.at(err)
		}
		for key, of := range byKey { // that this replica does not have
			for _, c := range of {
				if c.Op != PatchAdd {
					continue
				}
				data, _, err := p.encode(part.values.Value, part.values.Why, nil, new(value.Value), c.Value)
				if err != nil {
					p.problem(c.Number, err)
					break
				}
				part.set(p, c, key, stored[key], data, false)
			}
		}
	}
	for _, c := range changes {
		if c.Index == NoIndex && c.Op != PatchAdd && !c.found {
			p.problem(c.Number, fmt.Errorf("no entry has the key %s", short(c.key)))
		}
	}
	return nil
}

// short returns JSON for an error.
func short(text string) string {
	const most = 100
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// entries walks the map of a replica. It removes from byKey what it found.
func (part *patchPart) entries(ctx context.Context, p *patch, byIndex map[int64][]*entryChange, byKey map[string][]*entryChange) error {
	if part.values.Key == nil {
		return part.wholeMap(ctx, p, byIndex, nil)
	}
	n := int64(0)
	var whole []*entryChange // may be the whole map
	err := format.EachEntry(ctx, p.in.Source, part.codec, part.h, part.State, func(e format.MapEntry) error {
		n++
		indexed := byIndex[e.Index]
		if len(byKey) == 0 && indexed == nil {
			return nil
		}
		key := ""
		if v, err := value.ReadAll(part.values.Key, e.Key); err == nil {
			key = string(v.AppendJSON(nil, nil, nil))
		}
		keyed := byKey[key]
		delete(byKey, key)
		for _, c := range slices.Concat(indexed, keyed) {
			c.found = true
			switch {
			case c.Op == PatchAdd:
				p.problem(c.Number, fmt.Errorf("subtask %d has an entry with the key %s", part.subtask, short(key)))
			case c.Key == nil && c.Value.Stored != nil && bytes.Equal(c.Value.Stored, e.Stored):
				part.Same++
			case c.Key == nil && c.Value.Stored != nil:
				whole = append(whole, c)
			case c.Key != nil && c.key != key:
				p.problem(c.Number, fmt.Errorf("entry %d of subtask %d has the key %s, not %s: a new key is another entry, so remove this one and add one", e.Index, part.subtask, short(key), short(c.key)))
			default:
				data, same, err := p.change(part.values.Value, part.values.Why, e.Value, c.PatchChange)
				switch {
				case err != nil:
					p.problem(c.Number, err)
				case same:
					part.Same++
				default:
					part.set(p, c, key, bytes.Clone(e.Key), data, c.Op == PatchRemove)
				}
			}
		}
		delete(byIndex, e.Index)
		return nil
	})
	if errors.Is(err, format.ErrUnsupported) && n == 0 {
		return part.wholeMap(ctx, p, byIndex, whole)
	}
	if err != nil {
		return err
	}
	for _, of := range byIndex {
		for _, c := range of {
			if n == 0 && c.Index == 0 && c.Value.Stored != nil {
				whole = append(whole, c)
				continue
			}
			p.problem(c.Number, fmt.Errorf("index %d: the map of subtask %d has %d entries", c.Index, part.subtask, n))
		}
	}
	if len(whole) > 0 {
		return part.wholeMap(ctx, p, nil, whole)
	}
	return nil
}

// wholeMap compares changes that name a map as one element with the map.
func (part *patchPart) wholeMap(ctx context.Context, p *patch, byIndex map[int64][]*entryChange, all []*entryChange) error {
	for _, of := range byIndex {
		all = append(all, of...)
	}
	walk := &elementWalk{ctx: ctx, p: p, part: part}
	defer walk.close()
	stored, err := walk.element(0)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Index == 0 && c.Op == PatchReplace && c.Value.Stored != nil && bytes.Equal(stored, c.Value.Stored) {
			part.Same++
			continue
		}
		err := errors.New("a map is changed entry by entry, by the JSON of key and value")
		if part.values.Key == nil {
			err = fmt.Errorf("the map is not decoded, so it cannot be changed: %s", part.values.Why)
		}
		p.problem(c.Number, err)
	}
	return nil
}

// set records what becomes of an entry in a replica.
func (part *patchPart) set(p *patch, c *entryChange, key string, stored, data []byte, removed bool) {
	if part.keys == nil {
		part.keys = map[string]*patchedKey{}
	}
	k := part.keys[key]
	if k == nil {
		k = &patchedKey{stored: stored, new: map[*patchPart][]byte{}, adds: map[*patchPart]bool{}}
		part.keys[key] = k
	}
	if _, twice := k.new[part]; twice {
		p.problem(c.Number, errTwice)
		return
	}
	if n := len(k.numbers); n == 0 || k.numbers[n-1] != c.Number {
		k.numbers = append(k.numbers, c.Number)
	}
	switch {
	case removed:
		part.Removed++
		data = nil
	case c.Op == PatchAdd:
		part.Added++
		k.adds[part] = true
	default:
		part.Replaced++
	}
	if data == nil && !removed {
		data = []byte{}
	}
	k.new[part] = data
}

// finishMaps records the new maps of a broadcast state, unless replicas that agreed would
// differ.
func (st *patchState) finishMaps(ctx context.Context, p *patch, edits handleEdits) error {
	if len(st.keys) == 0 {
		return nil
	}
	for _, part := range st.parts {
		if err := part.open(ctx, p); err != nil {
			return err
		}
		cut, changed, err := part.newMap(ctx, p)
		if err != nil {
			return part.at(err)
		}
		if changed {
			edits.add(part.h, part.k, stateEdit{runs: []format.ElementRun{whole(part.h, part.k)}, cut: cut})
		}
	}
	for key, k := range st.keys {
		if k.before.differ || !k.after.differ {
			continue
		}
		for _, n := range k.numbers {
			p.problem(n, fmt.Errorf("%w: the entry with the key %s is the same in all %d of them, and a change of one must be a change of all", ErrDiverges, short(key), len(st.parts)))
		}
	}
	return nil
}

// newMap returns the new content of the map of a replica, and counts what replicas agree
// on.
func (part *patchPart) newMap(ctx context.Context, p *patch) (cut *format.MapCut, changed bool, err error) {
	cut = &format.MapCut{}
	keep := func(off, n int64) {
		cut.Count++
		if k := len(cut.Ranges) - 1; k >= 0 && cut.Ranges[k].New == nil && cut.Ranges[k].Off+cut.Ranges[k].N == off {
			cut.Ranges[k].N += n
		} else {
			cut.Ranges = append(cut.Ranges, format.MapRange{Off: off, N: n})
		}
	}
	add := func(key, value []byte) {
		cut.Count++
		changed = true
		cut.Ranges = append(cut.Ranges, format.MapRange{New: append(bytes.Clone(key), value...)})
	}
	added := part.added()
	ordered := part.h.Codec == format.CodecNative // whose keys ascend
	seen := map[string]bool{}
	err = format.EachEntry(ctx, p.in.Source, part.codec, part.h, part.State, func(e format.MapEntry) error {
		for ordered && len(added) > 0 && bytes.Compare(added[0].stored, e.Key) < 0 {
			add(added[0].stored, added[0].new[part])
			added = added[1:]
		}
		v, err := value.ReadAll(part.values.Key, e.Key)
		if err != nil {
			keep(e.Off, int64(len(e.Stored)))
			return nil //nolint:nilerr // it is kept
		}
		key := string(v.AppendJSON(nil, nil, nil))
		k := part.keys[key]
		if k == nil {
			keep(e.Off, int64(len(e.Stored)))
			return nil
		}
		seen[key] = true
		k.before.add(e.Value, false)
		data, ok := k.new[part]
		switch {
		case !ok:
			keep(e.Off, int64(len(e.Stored)))
			k.after.add(e.Value, false)
		case data == nil:
			changed = true
			k.after.add(nil, true)
		default:
			add(e.Key, data)
			k.after.add(data, false)
		}
		return nil
	})
	for _, k := range added {
		add(k.stored, k.new[part])
	}
	for key, k := range part.keys {
		if !seen[key] {
			k.before.add(nil, true)
			data, ok := k.new[part]
			k.after.add(data, !ok)
		}
	}
	return cut, changed, err
}

// added returns the entries that are added to a replica, by the number of the change; of
// native state in the order of their keys.
func (part *patchPart) added() (all []*patchedKey) {
	for _, k := range part.keys {
		if k.adds[part] {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b *patchedKey) int {
		if part.h.Codec == format.CodecNative {
			return bytes.Compare(a.stored, b.stored)
		}
		return cmp.Or(cmp.Compare(a.numbers[0], b.numbers[0]), bytes.Compare(a.stored, b.stored))
	})
	return all
}
