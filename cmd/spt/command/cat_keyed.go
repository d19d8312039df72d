package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/work"
)

// entryPick chooses entries of keyed state. The parts of an entry are given as JSON.
type entryPick struct {
	key, namespace, userKey string
	keys                    string // a file
	keyGroups               string
	keysOnly                bool

	groups format.KeyGroupRange // of keyGroups; empty: all
}

func (p *entryPick) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&p.key, "key", "", "only entries of keyed state with this key, in `JSON`: of one key group, if its hash can be computed")
	fs.StringVar(&p.keys, "keys", "", "only entries of keyed state whose key is in `FILE`: one a line, in JSON or as spt cat --keys-only prints it; - is standard input")
	fs.StringVar(&p.keyGroups, "key-group", "", "only entries of keyed state in these key groups: `N` or N-M")
	fs.StringVar(&p.namespace, "namespace", "", "only entries of keyed state in this namespace, such as a window, in `JSON`")
	fs.BoolVar(&p.keysOnly, "keys-only", false, "print the keys of keyed state, without values: entries with the same key and namespace that follow each other once")
}

func (p *entryPick) validate() error {
	switch {
	case p.key != "" && p.keys != "":
		return usagef("--key and --keys both choose keys")
	case p.keyGroups == "":
		return nil
	}
	lo, hi, isRange := strings.Cut(p.keyGroups, "-")
	if !isRange {
		hi = lo
	}
	first, err1 := strconv.ParseInt(lo, 10, 32)
	last, err2 := strconv.ParseInt(hi, 10, 32)
	if err1 != nil || err2 != nil || first < 0 || last < first || last >= format.MaxKeyGroups {
		return usagef("--key-group %s: expected a key group, 0 to %d, or a range such as 3-5", p.keyGroups, format.MaxKeyGroups-1)
	}
	p.groups = format.KeyGroupRange{First: int32(first), Count: int32(last - first + 1)}
	return nil
}

// entriesOnly reports whether only keyed state has what is chosen.
func (p *entryPick) entriesOnly() bool {
	return p.key != "" || p.keys != "" || p.namespace != "" || p.userKey != "" || p.keyGroups != "" || p.keysOnly
}

// parts returns the flags that choose a part of an entry, with the codec of the part.
func (p *entryPick) parts(c *value.EntryCodecs) []partPick {
	return []partPick{{"--key", p.key, c.Key}, {"--namespace", p.namespace, c.Namespace}, {"--user-key", p.userKey, c.UserKey}}
}

type partPick struct {
	flag, text string // JSON; "": not given
	codec      value.Codec
}

// bytes returns the bytes of the part that is chosen.
func (p *partPick) bytes() ([]byte, error) {
	if p.codec == nil {
		return nil, errors.New("the state has none, or it is not decoded")
	}
	return value.Part(p.codec, []byte(p.text), nil)
}

// keyedHandle is a handle of keyed state whose states are known.
type keyedHandle struct {
	place  format.Place
	at     work.Handle
	h      format.KeyedHandle
	codec  format.KeyedCodec
	schema format.KeyedSchema
	codecs []value.EntryCodecs // by state
	chosen []chosenEntries     // by state
	err    error               // instead: its states cannot be read
}

// chosenEntries are the entries of a state that are chosen; nil bytes choose all.
type chosenEntries struct {
	key, namespace, userKey []byte
	keys                    *keySet // instead of key
	groups                  format.KeyGroupRange
	none                    bool  // the state has no such entries
	problem                 error // why, if what is given does not fit its types
	notHashed               error // why all key groups are searched for the key
}

// keyedRead is the states that are read of a handle.
type keyedRead struct {
	*keyedHandle
	states []*catState // by state of the handle; nil: not read
}

// keyedHandles reads the headers of keyed state, several at once.
func (c *catter) keyedHandles(ctx context.Context, sp *format.Savepoint, positions map[*format.Subtask]work.Handle) (map[*format.Operator][]*keyedHandle, error) {
	all := map[*format.Operator][]*keyedHandle{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, c.env.readJobs(c.snap)))
	for _, op := range sp.Operators {
		groups := c.groups // that have entries that are chosen
		for _, sub := range bySubtask(op) {
			for _, slot := range []format.Slot{format.SlotManagedKeyed, format.SlotRawKeyed} {
				h := &keyedHandle{place: format.Place{Operator: op, Subtask: sub, Slot: slot}, at: positions[sub], h: sub.ManagedKeyed}
				if slot == format.SlotRawKeyed {
					h.h = sub.RawKeyed
				}
				h.at.Slot = slot
				if h.h == nil || groups.Count > 0 && h.h.KeyGroups().Intersect(groups).Count == 0 {
					continue
				}
				first := len(all[op]) == 0
				all[op] = append(all[op], h)
				if first && c.key != "" { // its type of keys tells where the key is in other subtasks
					c.describe(ctx, h)
					groups = h.keyGroups(groups)
					continue
				}
				g.Go(func() error {
					c.describe(gctx, h)
					return gctx.Err()
				})
			}
		}
	}
	return all, errors.Join(g.Wait(), ctx.Err())
}

// describe reads which states a handle has, and what is chosen of them.
func (c *catter) describe(ctx context.Context, h *keyedHandle) {
	if h.codec, h.err = c.snap.KeyedCodec(h.place.Operator, h.h); h.err != nil {
		return
	}
	if h.schema, h.err = h.codec.Describe(ctx, c.snap.Source(), h.h); h.err != nil {
		return
	}
	if h.codecs, h.err = value.EntryCodecsOf(ctx, c.snap.Source(), h.codec, h.h); h.err != nil {
		return
	}
	for i := range h.codecs {
		h.chosen = append(h.chosen, c.chooseEntries(&h.codecs[i], h.place.Operator.MaxParallelism))
	}
}

// chooseEntries returns which entries of a state are chosen.
func (p *entryPick) chooseEntries(c *value.EntryCodecs, maxParallelism int32) (e chosenEntries) {
	e.groups = p.groups
	to := []*[]byte{&e.key, &e.namespace, &e.userKey}
	for i, part := range p.parts(c) {
		if part.text == "" {
			continue
		}
		var err error
		if *to[i], err = part.bytes(); err != nil {
			e.none, e.problem = true, fmt.Errorf("%s %s: %w", part.flag, part.text, err)
			return e
		}
	}
	if e.key == nil {
		return e
	}
	if e.notHashed = c.WhyNoHash; c.KeyHash == nil {
		return e
	}
	hash, err := c.KeyHash(e.key)
	if err != nil {
		e.notHashed = err
		return e
	}
	group := format.KeyGroupRange{First: format.KeyGroupOfHash(hash, max(maxParallelism, 1)), Count: 1}
	e.none = e.groups.Count > 0 && e.groups.Intersect(group).Count == 0
	e.groups = group
	return e
}

// keyGroups returns the key groups that have the chosen entries of any state, out of
// groups; none if they are not known.
func (h *keyedHandle) keyGroups(groups format.KeyGroupRange) format.KeyGroupRange {
	for i := range h.chosen {
		if e := &h.chosen[i]; !e.none && e.groups.Count == 1 && e.key != nil && e.notHashed == nil {
			return e.groups
		}
	}
	return groups
}

// keyedStates returns the states of the handles of an operator that were picked, and
// adds the names of all to names. Handles that cannot be described are one state
// without a name: reading it fails.
func (c *catter) keyedStates(op *format.Operator, handles []*keyedHandle, names *[]string) (all []*catState) {
	type id struct{ name, kind string }
	byID := map[id]*catState{}
	state := func(k id, picked bool) *catState {
		s := byID[k]
		if s == nil {
			s = namedCatState(c.env, op, k.name, k.kind)
			byID[k] = s
			if picked {
				all = append(all, s)
			}
		}
		return s
	}
	for _, h := range handles {
		if h.err != nil {
			s := state(id{}, true)
			s.keyed = append(s.keyed, h)
			continue
		}
		for _, st := range h.schema.States {
			*names = append(*names, st.Name.String())
			s := state(id{st.Name.String(), st.Kind}, matches(c.states, st.Name.String()))
			s.keyed = append(s.keyed, h)
		}
	}
	return all
}

// readKeys reads the file of --keys, and chooses its keys in the states that were picked.
func (c *catter) readKeys(ctx context.Context, states []*catState) error {
	if c.catOptions.keys == "" {
		return nil
	}
	c.list = newKeyList(c.env, c.catOptions.keys)
	type of struct {
		h *keyedHandle
		i int
	}
	var chosen []of
	for _, part := range keyedParts(states) {
		for i, st := range part.keyed.states {
			if st != nil && part.keyed.err == nil {
				c.list.wants(part.keyed.keyedHandle, i)
				chosen = append(chosen, of{part.keyed.keyedHandle, i})
			}
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	if err := c.list.read(ctx, false); err != nil {
		return err
	}
	for _, x := range chosen {
		e := &x.h.chosen[x.i]
		e.keys = c.list.wants(x.h, x.i)
		e.none = e.none || !e.keys.usable()
	}
	return nil
}

// checkEntries returns an error if what is given of an entry fits none of the states. It
// reports if all key groups are searched.
func (c *catter) checkEntries(states []*catState) error {
	if !c.entriesOnly() {
		return nil
	}
	var problem, notHashed error
	fits := false
	for _, part := range keyedParts(states) {
		r := part.keyed
		if r.err != nil {
			return nil //nolint:nilerr // reading it fails, and it may have what is asked for
		}
		for i, st := range r.states {
			switch e := &r.chosen[i]; {
			case st == nil:
			case e.problem == nil:
				fits = true
				notHashed = cmp.Or(notHashed, e.notHashed)
			case problem == nil:
				problem = format.At(e.problem, "%s/%s", ui.Quote(c.env.hidden(st.label)), ui.Quote(c.env.hidden(st.name)))
			}
		}
	}
	switch {
	case fits && notHashed != nil:
		return c.env.remark("all key groups are searched: %s", ui.Printable(notHashed.Error()))
	case fits || problem == nil:
		return nil
	}
	return &usageError{ui.Printable(problem.Error()), "keys, namespaces and map keys are given in JSON, as spt cat prints them"}
}

// partsOf returns what is read of states, in order, and the state of each part. The
// keyed states of an operator are read together; such a part has no state of its own.
func (c *catter) partsOf(states []*catState) (parts []*catPart, of []*catState) {
	c.reading = map[work.Handle]*keyedRead{}
	for i := 0; i < len(states); i++ {
		st := states[i]
		if st.keyed == nil {
			for k := range st.parts {
				parts, of = append(parts, &st.parts[k]), append(of, st)
			}
			continue
		}
		end := i + 1
		for end < len(states) && states[end].keyed != nil && states[end].op == st.op {
			end++
		}
		for _, p := range keyedParts(states[i:end]) {
			c.reading[p.handle] = p.keyed
			parts, of = append(parts, p), append(of, nil)
		}
		i = end - 1
	}
	return parts, of
}

// keyedParts returns the handles of the keyed states of an operator, by subtask.
func keyedParts(states []*catState) (parts []*catPart) {
	byHandle := map[*keyedHandle]*keyedRead{}
	for _, st := range states {
		for _, h := range st.keyed {
			r := byHandle[h]
			if r == nil {
				r = &keyedRead{h, make([]*catState, len(h.schema.States))}
				byHandle[h] = r
				parts = append(parts, &catPart{place: h.place, subtask: h.at.Index, state: work.All, handle: h.at, keyed: r})
			}
			for k, s := range h.schema.States {
				if s.Name.String() == st.name && s.Kind == st.kind {
					r.states[k] = st
				}
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b *catPart) int {
		return cmp.Or(cmp.Compare(a.subtask, b.subtask), cmp.Compare(a.handle.Slot, b.handle.Slot))
	})
	return parts
}
