package orphans

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/reader"
)

// Share is what a snapshot shares with others.
type Share struct {
	Path string // as the user can write it
	// Real is the one name of the snapshot, with links resolved, as in a
	// reader.Entry.
	Real string

	Total  Sum // its files, with the one that describes it
	Shared Sum // to which another snapshot refers too
	Freed  Sum // to which no other snapshot refers: what removing this one frees
	// With are the first of the Others snapshots that refer to the same files.
	With   []string
	Others int
}

// maxWith bounds Share.With.
const maxWith = 100

// Shares returns what the snapshots below the roots that can be read share with each
// other, by path.
// Snapshots that cannot be read, or that refer to files elsewhere, are problems: what
// they share is not known.
func Shares(ctx context.Context, roots []string, o Options) ([]Share, []Problem, error) {
	o = o.orDefault()
	t := newTree(true, maphash.MakeSeed())
	for _, path := range roots {
		if err := t.resolve(ctx, o.Reader.Stores, path, true); err != nil {
			return nil, nil, err
		}
	}
	if err := t.walk(ctx); err != nil {
		return nil, nil, err
	}
	own := newOwners()
	problems, _, err := t.read(ctx, o, own)
	if err != nil {
		return nil, nil, err
	}
	all := slices.DeleteFunc(t.shares(own), func(s Share) bool {
		return slices.ContainsFunc(problems, func(p Problem) bool { return p.Kind == Unread && p.Path == s.Path })
	})
	return all, append(t.unlisted, problems...), nil
}

func (t *tree) shares(own *owners) []Share {
	all := make([]Share, len(t.snapshots))
	for i, e := range t.snapshots {
		all[i].Path, all[i].Real = e.path(), e.dir.Name
		if e.name != reader.MetadataName {
			all[i].Real = objpath.Join(e.dir.Name, e.name)
		}
	}
	sums := make([]Sum, len(own.nodes))
	for _, d := range t.dirs {
		for i := range d.files {
			sums[d.files[i].owners].add(&d.files[i])
		}
	}
	with := make([]bitset, len(all))
	for set := int32(1); set < int32(len(sums)); set++ {
		sum := sums[set]
		if sum.Files == 0 {
			continue
		}
		members := own.members(set)
		several := newBitset(len(all))
		for _, m := range members {
			several.add(m)
			to := &all[m].Shared
			if len(members) == 1 {
				to = &all[m].Freed
			}
			for _, s := range []*Sum{to, &all[m].Total} {
				s.Files += sum.Files
				s.Bytes += sum.Bytes
			}
		}
		if len(members) == 1 {
			continue
		}
		for _, m := range members {
			if with[m] == nil {
				with[m] = newBitset(len(all))
			}
			with[m].union(several)
		}
	}
	for i := range all {
		for _, m := range with[i].members() {
			if int(m) == i {
				continue
			}
			if all[i].Others++; all[i].Others <= maxWith {
				all[i].With = append(all[i].With, all[m].Path)
			}
		}
	}
	return all
}

// bitset is a set of snapshots.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) add(i int32) { b[i/64] |= 1 << (i % 64) }

func (b bitset) union(c bitset) {
	for i := range c {
		b[i] |= c[i]
	}
}

func (b bitset) members() []int32 {
	var all []int32
	for i, word := range b {
		for bit := range int32(64) {
			if word>>bit&1 != 0 {
				all = append(all, int32(i)*64+bit)
			}
		}
	}
	return slices.Clip(all)
}
