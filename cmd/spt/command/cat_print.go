package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/tally"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/reader"
)

// catter reads the states of a snapshot.
type catter struct {
	env *Env
	catOptions
	snap *reader.Snapshot
	// unknown is why values are not decoded, by state, in the order found.
	unknown []string
	// left is what keyed state cannot be read, once for an operator.
	left    []string
	leftOut map[*format.Operator]bool
	get     bool                       // of get, which reports itself that nothing was found
	printed int64                      // lines
	reading map[work.Handle]*keyedRead // what is read of keyed state
	list    *keyList                   // of --keys
	kept    *arena                     // where elements are kept; nil: they are valid until the next
	arena   value.Arena                // of values that are valid until the next
	from    int64                      // entry of a map that is read first
	piece   bool                       // reading ends after a piece of a map
	most    int64                      // elements that are looked at of a unit; 0: all
}

// bytesOf is how much is read of states.
func (c *catter) bytesOf(ctx context.Context, states []*catState) func() int64 {
	if slices.ContainsFunc(states, func(st *catState) bool { return st.keyed != nil }) {
		return nil // how much of a handle is read is not known
	}
	return someState(ctx, c.snap, func(yield func(*format.OperatorHandle, int) bool) {
		for _, st := range states {
			for _, part := range st.parts {
				if !yield(part.h, part.state) {
					return
				}
			}
		}
	})
}

// errEnough ends a walk that has all it wants.
var errEnough = errors.New("internal: enough")

// tableRows is how many elements a table shows unless --limit says.
const tableRows = 100

// print prints elements. What was printed before an error stays.
func (c *catter) print(ctx context.Context, states []*catState) error {
	limit := c.limit
	if limit == 0 && c.output == ui.OutputTable {
		limit = tableRows
	}
	stop := func() {}
	if !c.env.term().IsTTY || c.output == ui.OutputTable { // else elements and progress would be mixed
		stop = c.env.reading("reading", c.bytesOf(ctx, states))
	}
	defer func() { stop() }()
	out := c.env.Stdout
	if c.output.JSON() {
		out = c.env.dataOut()
	}
	shown := c.shown()
	if c.output == ui.OutputParquet {
		var err error
		if shown.Types, err = c.columnTypes(ctx, states); err != nil {
			return err
		}
	}
	w := report.NewCatWriter(out, c.env.term(), shown)
	if c.most = limit; c.chooses() {
		c.most, limit = 0, 0
	} else if limit > 0 && c.output == ui.OutputTable {
		c.most++ // to learn whether there is one more
	}
	var item report.CatItem
	var lines int64
	more := false
	each := func(st *catState, it *catItem) error {
		if limit > 0 && lines == limit {
			more = true
			return errEnough
		}
		lines++
		item = it.shown(st)
		if err := w.Item(&item); err != nil {
			return err
		}
		if lines == limit && c.output != ui.OutputTable {
			return errEnough // none is read to learn that there is one more
		}
		return nil
	}
	var err error
	if w, ok := w.(*report.CatJSON); ok && !c.chooses() && !c.distinct {
		err = c.each(ctx, states, nil, func(p []byte, n int64) error {
			lines += n
			err := w.Lines(p)
			if limit > 0 && err == nil {
				if c.most = limit - lines; c.most == 0 {
					err = errEnough
				}
			}
			return err
		})
	} else {
		err = c.items(ctx, states, each)
	}
	enough := errors.Is(err, errEnough)
	if enough {
		err = nil
	}
	stop()
	if cerr := w.End(err == nil); cerr != nil && err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if c.printed = lines; lines == 0 && c.get {
		return nil
	}
	if !enough {
		if err := c.sayMissing(); err != nil {
			return err
		}
	}
	return c.remark(len(states), lines, more)
}

// maxDistinct is how many different elements of a state --distinct prints: three
// million, which are counted in 160 MiB.
const maxDistinct = 3 << 20

// items calls f with what is printed, in order.
func (c *catter) items(ctx context.Context, states []*catState, f func(*catState, *catItem) error) error {
	if c.chooses() {
		return c.choose(ctx, states, f)
	}
	if !c.distinct {
		return c.each(ctx, states, f, nil)
	}
	for i, st := range states {
		one := states[i : i+1]
		hash, counter := hash128.New(), tally.New(tally.Options{Memory: tally.MemoryFor(maxDistinct), InMemory: true})
		err := c.each(ctx, one, func(_ *catState, it *catItem) error {
			err := counter.Add(tally.Element{Digest: hash.Sum(it.stored)})
			if errors.Is(err, tally.ErrFull) {
				return &usageError{fmt.Sprintf("--distinct: more than %s different elements in %s", ui.Count(maxDistinct), ui.Quote(st.name)),
					"--stats counts any number of them; --where and --subtask leave fewer"}
			}
			return err
		}, nil)
		if err != nil {
			return err
		}
		err = c.each(ctx, one, func(_ *catState, it *catItem) error {
			e := counter.Find(hash.Sum(it.stored))
			switch {
			case e == nil:
				return tally.ErrNotCounted
			case e.Size > 0: // printed
				return nil
			}
			e.Size, it.count = 1, int64(e.Count)
			return f(st, it)
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// sayMissing says on stderr which keys of --keys nothing that was read has.
func (c *catter) sayMissing() error {
	if c.list == nil {
		return nil
	}
	text, err := c.list.remark()
	if err != nil || text == "" {
		return err
	}
	return c.env.remark("%s", text)
}

// close removes temporary files.
func (c *catter) close() error {
	if c.list == nil {
		return nil
	}
	return c.list.close()
}

// remark says on stderr, once, what the lines do not.
func (c *catter) remark(states int, lines int64, more bool) error {
	var text []string
	switch {
	case states == 0:
		text = append(text, "no state: nothing to show")
	case lines == 0 && c.filter != nil:
		text = append(text, "--where is true for no element")
	case lines == 0 && c.entriesOnly():
		text = append(text, "no such entry")
	case lines == 0 && len(c.left) == 0:
		text = append(text, "the state has no element")
	case more && c.limit == 0:
		text = append(text, fmt.Sprintf("the first %d elements: --limit N shows more, -o jsonl all", lines))
	}
	if len(c.unknown) > 0 {
		text = append(text, "not decoded, shown as stored: "+report.ShortenLong(c.unknown))
	}
	for _, line := range text {
		if err := c.env.remark("%s", line); err != nil {
			return err
		}
	}
	if len(c.left) > 0 {
		return &findings{"not shown: " + report.ShortenLong(c.left)}
	}
	return nil
}

func (c *catter) printStats(ctx context.Context, states []*catState) error {
	c.raw = true // an element is its bytes
	stop := c.env.reading("reading", c.bytesOf(ctx, states))
	defer stop()
	stats := report.CatStats{}
	for i, st := range states {
		var s report.CatStat
		distinct, err := tally.Distinct(func(visit func(p []byte) error) error {
			s = report.NewCatStat(&st.shown)
			return c.each(ctx, states[i:i+1], func(_ *catState, it *catItem) error {
				s.Add(it.part.subtask, it.size())
				return visit(it.stored)
			}, nil)
		}, tally.Options{Dir: c.env.common.tmp})
		if err != nil {
			return err
		}
		s.Distinct = distinct
		s.Finish()
		stats = append(stats, s)
	}
	stop()
	stats.Sort()
	if err := c.env.answer(stats); err != nil {
		return err
	}
	if err := c.sayMissing(); err != nil {
		return err
	}
	if len(stats) > 0 && len(c.left) == 0 {
		return nil
	}
	return c.remark(len(stats), 0, false)
}
