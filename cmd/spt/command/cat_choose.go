package command

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/spf13/pflag"
)

// catChoice chooses some of the elements and entries that are read: at random, or the
// largest. It holds what it chose.
type catChoice struct {
	sample int64
	seed   uint64
	top    int64
	by     string
}

// maxChosen bounds what a choice holds.
const maxChosen = 100_000

func (o *catChoice) addFlags(fs *pflag.FlagSet) {
	fs.Int64Var(&o.sample, "sample", 0, "print `N` elements chosen at random: each as likely as any other, in their order")
	fs.Uint64Var(&o.seed, "seed", 0, "with --sample: another `NUMBER` chooses others; the same one chooses the same")
	fs.Int64Var(&o.top, "top", 0, "print the `N` largest elements, the largest first")
	fs.StringVar(&o.by, "by", "bytes", "with --top: compare by `MEASURE`: bytes")
}

func (o *catChoice) validate(given *pflag.FlagSet) error {
	switch {
	case o.sample < 0 || o.sample > maxChosen:
		return usagef("--sample %d: must be 1 to %d", o.sample, maxChosen)
	case o.top < 0 || o.top > maxChosen:
		return usagef("--top %d: must be 1 to %d", o.top, maxChosen)
	case o.sample > 0 && o.top > 0:
		return usagef("--sample and --top cannot be combined")
	case given.Changed("seed") && o.sample == 0:
		return usagef("--seed is for --sample")
	case given.Changed("by") && o.top == 0:
		return usagef("--by is for --top")
	case o.by != "bytes":
		return usagef("--by %s: must be bytes", o.by)
	}
	return nil
}

func (o *catChoice) chooses() bool { return o.sample > 0 || o.top > 0 }

// chosenItem is an element or entry that is kept.
type chosenItem struct {
	st     *catState
	it     catItem
	number int64 // in the order of reading
}

// choose calls f with what is chosen of all elements and entries.
func (c *catter) choose(ctx context.Context, states []*catState, f func(*catState, *catItem) error) error {
	var kept []chosenItem
	var n int64
	random := rand.New(rand.NewPCG(c.seed, 0)) //nolint:gosec // no secret
	err := c.each(ctx, states, func(st *catState, it *catItem) error {
		n++
		at := len(kept)
		switch {
		case c.sample > 0 && n > c.sample: // it replaces one of those that are kept, with the chance sample/n
			if at = int(random.Int64N(n)); int64(at) >= c.sample {
				return nil
			}
		case c.top > 0 && int64(len(kept)) == 2*c.top:
			kept = largest(kept, c.top)
			at = len(kept)
		}
		if at == len(kept) {
			kept = append(kept, chosenItem{})
		}
		kept[at] = chosenItem{st, it.clone(), n}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	if c.top > 0 {
		kept = largest(kept, c.top)
	} else {
		slices.SortFunc(kept, func(a, b chosenItem) int { return cmp.Compare(a.number, b.number) })
	}
	for i := range kept {
		if err := f(kept[i].st, &kept[i].it); err != nil {
			return err
		}
	}
	return nil
}

// largest returns the n largest items, the largest first.
func largest(all []chosenItem, n int64) []chosenItem {
	slices.SortFunc(all, func(a, b chosenItem) int {
		return cmp.Or(cmp.Compare(b.it.size(), a.it.size()), cmp.Compare(a.number, b.number))
	})
	return all[:min(n, int64(len(all)))]
}

// clone returns a copy whose bytes are its own.
func (it *catItem) clone() catItem {
	c := *it
	c.stored = slices.Clone(it.stored)
	if it.keyed != nil {
		k := it.keyed.Clone()
		c.keyed = &k
	}
	return c
}
