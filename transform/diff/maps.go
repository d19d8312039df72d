package diff

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// Entries is the comparison of the entries of a broadcast state, in any of its
// maps.
type Entries struct {
	Old, New                int64 // different entries
	Added, Removed, Changed int64 // keys
	// AddedMaps and RemovedMaps count the maps that replicas hold on one side only,
	// compared by their entries in any order: a replica may lack entries that others
	// have.
	AddedMaps, RemovedMaps int64
	// Changes are the first changes, ordered by the text of the key.
	Changes []EntryChange
}

// EntryChange is a key whose entries differ. A key has several values if subtasks
// hold different maps.
type EntryChange struct {
	Key      string
	Old, New []string // values; empty if the key is missing
}

var errEnough = errors.New("internal error: enough was found")

// maxMaps is the number of bytes of distinct maps of a broadcast state up to
// which entries are compared; above it, whole maps are.
const maxMaps = 64 << 20

// byKey compares a broadcast state whose maps differ by key, if its types are
// known and its maps are not too large.
func (d *differ) byKey(a, b *elementSide, r *Elements) error {
	if d.o.EntryText == nil {
		return nil
	}
	var all [2]map[string][]string // values by key
	var copies [2]map[hash128.Multiset]bool
	for side, s := range []*elementSide{a, b} {
		entries, copiesOf, ok, err := d.entriesOf(side, s)
		if err != nil || !ok {
			return format.InFile(err, s.In.Location)
		}
		all[side], copies[side] = entries, copiesOf
	}
	e := &Entries{AddedMaps: without(copies[1], copies[0]), RemovedMaps: without(copies[0], copies[1])}
	keys := slices.Sorted(maps.Keys(all[0]))
	for k := range all[1] {
		if _, both := all[0][k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		old, now := all[0][k], all[1][k]
		e.Old += int64(len(old))
		e.New += int64(len(now))
		switch {
		case slices.Equal(old, now):
			continue
		case len(old) == 0:
			e.Added++
		case len(now) == 0:
			e.Removed++
		default:
			e.Changed++
		}
		if len(e.Changes) < d.o.List {
			e.Changes = append(e.Changes, EntryChange{k, old, now})
		}
	}
	r.Entries = e
	return nil
}

// without counts the members of one set that are not in the other.
func without(a, b map[hash128.Multiset]bool) (n int64) {
	for d := range a {
		if !b[d] {
			n++
		}
	}
	return n
}

// each calls f with every element, in the order of the subtasks.
func (s *elementSide) each(ctx context.Context, f func(part int, e format.Element) error) error {
	for i, p := range s.parts {
		codec, err := s.In.Codec(p.Handle.Codec)
		if err != nil {
			return err
		}
		if err := format.EachElement(ctx, s.In.Source, codec, p.Handle, p.Handle.States[p.State].Name.String(), func(e format.Element) error { return f(i, e) }); err != nil {
			return s.at(i, err)
		}
	}
	return nil
}

// entriesOf is the values of each key in any of the maps, sorted, and the
// different maps by the sums of their entries. It is not ok where the maps cannot
// be taken apart.
func (d *differ) entriesOf(side int, s *elementSide) (entries map[string][]string, copies map[hash128.Multiset]bool, ok bool, err error) {
	seen := map[hash128.Digest]bool{}
	copies = map[hash128.Multiset]bool{}
	entries = map[string][]string{}
	left := int64(maxMaps)
	texts := make([]func(format.MapEntry) (key, value string, err error), len(s.parts))
	for i, p := range s.parts {
		if texts[i], err = d.o.EntryText(d.ctx, side, p.Handle, p.State); err != nil || texts[i] == nil {
			return nil, nil, false, err
		}
	}
	err = s.each(d.ctx, func(part int, e format.Element) error {
		g := d.hash.Sum(e.Value)
		if seen[g] {
			return nil
		}
		seen[g] = true
		if left -= int64(len(e.Value)); left < 0 {
			return errEnough
		}
		p := s.parts[part]
		codec, err := s.In.Codec(p.Handle.Codec)
		if err != nil {
			return err
		}
		var sum hash128.Multiset
		err = format.EachEntry(d.ctx, s.In.Source, codec, p.Handle, p.Handle.States[p.State].Name.String(), func(m format.MapEntry) error {
			key, value, err := texts[part](m)
			if err != nil {
				return err
			}
			one := d.hash.Pieces()
			one.Add(strconv.AppendInt(nil, int64(len(key)), 10))
			one.Add([]byte(" " + key + value))
			g := one.Sum()
			sum.Add(g)
			if values := entries[key]; !slices.Contains(values, value) {
				entries[key] = append(values, value)
			}
			return nil
		})
		copies[sum] = true
		return err
	})
	if errors.Is(err, errEnough) || errors.Is(err, format.ErrUnsupported) {
		return nil, nil, false, nil
	}
	for _, values := range entries {
		slices.Sort(values)
	}
	return entries, copies, true, err
}
