package transform

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// PatchEntry is what a change of an entry of keyed state says more than its key. The key,
// the namespace, the key of a map and the time of a timer identify an entry.
type PatchEntry struct {
	Key       []byte     // as stored, instead of PatchChange.Key
	Stored    []byte     // instead of all parts, of an entry whose parts are not known
	Namespace PatchValue // if it is not given: null
	UserKey   PatchValue // of a map with one entry for each key
	Time      *int64     // of a timer, in ms since 1970
	KeyGroup  *int32     // if given, where the entry is
	// TTL is the JSON of when a value with a time to live was updated, in ms since 1970; of
	// list state an array. nil keeps what is stored.
	TTL []byte
}

// keyedPatch is the changes of the keyed state of an operator.
type keyedPatch struct {
	op      *format.Operator
	k       *keyedOperator
	sources []*patchSource
	states  map[string]*PatchedState
	// named is the entries that changes name.
	named map[hash128.Digest]bool
}

// patchSource is the keyed state of a subtask, and what changes in it.
type patchSource struct {
	*keyedSource
	sub    *format.Subtask
	codecs []value.EntryCodecs
	edits  map[string]entryEdit // by entryID
	groups map[int32]bool       // of edits
	added  []format.KeyedEntry
}

// entryEdit is a change of an entry of keyed state that is not the same as before.
type entryEdit struct {
	removed bool
	value   []byte
}

// keyedChange is a change of an entry of keyed state, and its identity.
type keyedChange struct {
	PatchChange
	of    *keyedPatch
	st    *PatchedState
	text  string            // see keyText
	entry format.KeyedEntry // the parts, without value, and its key group; -1: not known
	// hashed is the key group of the hash code of the key, if notHashed is nil.
	hashed    int32
	notHashed error
	found     bool
}

// keyedPatchOf returns the keyed state of an operator. wrong is what is wrong with a change of it.
func (p *patch) keyedPatchOf(ctx context.Context, id format.OperatorID) (of *keyedPatch, wrong, err error) {
	if of := p.keyed[id]; of != nil {
		return of, nil, nil
	}
	op := p.ops[id]
	if op == nil {
		return nil, &format.NoMatchError{What: "operator", Want: id.String()}, nil
	}
	of = &keyedPatch{op: op, states: map[string]*PatchedState{}, named: map[hash128.Digest]bool{}}
	if of.k, err = describeKeyed(ctx, p.in, op, rawRefused); err != nil {
		return nil, nil, format.At(err, "operator %q", op.Label())
	}
	for _, sub := range op.Subtasks {
		for _, s := range of.k.sources[sub] {
			source := &patchSource{keyedSource: s, sub: sub, edits: map[string]entryEdit{}, groups: map[int32]bool{}}
			if source.codecs, err = value.EntryCodecsOf(ctx, p.in.Source, s.codec, s.handle); err != nil {
				return nil, nil, format.At(format.At(err, "subtask %d", sub.Index), "operator %q", op.Label())
			}
			of.sources = append(of.sources, source)
		}
	}
	p.keyed[id] = of
	return of, nil, nil
}

// state returns the index of a state in the source; -1: it does not have the state.
func (s *patchSource) state(name string) int {
	return slices.IndexFunc(s.schema.States, func(st format.KeyedState) bool { return st.Name.String() == name })
}

// has reports whether a key group is one of the source; all have an unknown one, -1.
func (s *patchSource) has(group int32) bool {
	return group < 0 || group >= s.keyedSource.groups.First && group <= s.keyedSource.groups.Last()
}

// locate returns a change of keyed state with its identity. wrong is what is wrong with it.
func (p *patch) locate(ctx context.Context, c PatchChange) (located *keyedChange, wrong, err error) {
	if wrong := c.check(); wrong != nil {
		return nil, wrong, nil
	}
	of, wrong, err := p.keyedPatchOf(ctx, c.Operator)
	if of == nil {
		return nil, wrong, err
	}
	i := slices.IndexFunc(of.sources, func(s *patchSource) bool { return s.state(c.State) >= 0 })
	if i < 0 {
		names := of.k.names()
		slices.Sort(names)
		return nil, &format.NoMatchError{What: "keyed state", Want: c.State, Available: names}, nil
	}
	s := of.sources[i]
	k := s.state(c.State)
	st := of.states[c.State]
	if st == nil {
		st = &PatchedState{Operator: of.op, State: c.State, Keyed: s.schema.States[k].Kind}
		of.states[c.State] = st
		p.report.States = append(p.report.States, st)
	}
	located = &keyedChange{PatchChange: c, of: of, st: st}
	if wrong := located.identify(&s.codecs[k]); wrong != nil {
		return nil, wrong, nil
	}
	return located, nil, nil
}

// check returns what is wrong with a change of keyed state, whatever the state is.
func (c *PatchChange) check() error {
	e := c.Entry
	if err := c.checkOp(); err != nil {
		return err
	}
	keys := 0
	for _, p := range [][]byte{c.Key, e.Key, e.Stored} {
		if p != nil {
			keys++
		}
	}
	switch {
	case c.Raw:
		return errors.New("an entry of keyed state is not raw operator state")
	case c.Index != NoIndex:
		return errors.New("entries of keyed state have no index")
	case keys == 0:
		return errors.New("the key is missing")
	case keys > 1:
		return errors.New("the key is given twice")
	case e.Stored != nil && c.Op == PatchAdd:
		return errors.New("an entry that is added needs the parts of its key")
	case e.Namespace.twice() || e.UserKey.twice():
		return errors.New("a part of the key is given twice")
	case e.TTL != nil && c.Value.Stored != nil:
		return errors.New("ttl_timestamp: the bytes of the value include it")
	}
	return nil
}

// identify sets the identity of the entry and its key group.
func (c *keyedChange) identify(codecs *value.EntryCodecs) (err error) {
	e, timers := c.Entry, c.st.Keyed == types.Timers
	switch {
	case timers && (c.Value.given() || c.Was.given()):
		return errors.New("a timer has no value")
	case !timers && c.Op != PatchRemove && !c.Value.given():
		return errors.New("it has no value")
	case timers && e.Time == nil && e.Stored == nil:
		return errors.New("the time of the timer is missing")
	case !timers && e.Time != nil:
		return fmt.Errorf("entries of %s state have no time", c.st.Keyed)
	case codecs.UserKey == nil && e.UserKey.JSON != nil:
		return errors.New("user_key: the state has none, or it is not decoded")
	case codecs.UserKey != nil && !e.UserKey.given() && e.Stored == nil:
		return errors.New("the user_key is missing")
	case !codecs.TTL && e.TTL != nil:
		return errors.New("ttl_timestamp: the values have no time to live")
	}
	if e.Time != nil {
		c.entry.Time = *e.Time
	}
	c.entry.KeyGroup = -1
	most := max(c.of.op.MaxParallelism, 1)
	if e.KeyGroup != nil {
		if c.entry.KeyGroup = *e.KeyGroup; c.entry.KeyGroup < 0 || c.entry.KeyGroup >= most {
			return fmt.Errorf("key group %d: the operator has the key groups 0 to %d", c.entry.KeyGroup, most-1)
		}
	}
	if e.Stored != nil {
		c.entry.Stored = e.Stored
		c.text = string(keyText(nil, codecs, &c.entry))
		c.notHashed = errNoParts
		return nil
	}
	if c.entry.Key, err = value.Part(codecs.Key, c.Key, e.Key); err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if c.entry.Namespace, err = value.Part(codecs.Namespace, e.Namespace.JSON, e.Namespace.Stored); err != nil {
		if !e.Namespace.given() {
			return errors.New("the namespace is missing")
		}
		return fmt.Errorf("namespace: %w", err)
	}
	if e.UserKey.given() {
		if c.entry.UserKey, err = value.Part(codecs.UserKey, e.UserKey.JSON, e.UserKey.Stored); err != nil {
			return fmt.Errorf("user_key: %w", err)
		}
	}
	c.text = string(keyText(nil, codecs, &c.entry))
	if c.notHashed = codecs.WhyNoHash; codecs.KeyHash != nil {
		var hash int32
		hash, c.notHashed = codecs.KeyHash(c.entry.Key)
		c.hashed = format.KeyGroupOfHash(hash, most)
	}
	if e.KeyGroup == nil && c.notHashed == nil {
		c.entry.KeyGroup = c.hashed
	}
	return nil
}

var errNoParts = errors.New("the parts of the key are not known")

// keyText appends the identity of an entry within its state: the JSON of its parts, which
// is the same for all encodings of a part.
func keyText(dst []byte, codecs *value.EntryCodecs, e *format.KeyedEntry) []byte {
	if e.Key == nil {
		return fmt.Appendf(dst, "stored %x", e.Stored)
	}
	dst = appendPartText(dst, codecs.Key, e.Key)
	dst = appendPartText(dst, codecs.Namespace, e.Namespace)
	dst = appendPartText(dst, codecs.UserKey, e.UserKey)
	return fmt.Appendf(dst, "%d", e.Time)
}

// appendPartText appends the JSON of a part, or its bytes if it is not decoded.
func appendPartText(dst []byte, c value.Codec, p []byte) []byte {
	var v value.Value
	err := errNoParts
	switch {
	case p == nil:
		err = nil
	case c != nil:
		v, err = value.ReadAll(c, p)
	}
	if err != nil {
		dst = fmt.Appendf(dst, "bytes %x", p)
	} else {
		dst = v.AppendJSON(dst, nil, nil)
	}
	return append(dst, 0)
}

// entryID appends the identity of an entry of a source: its bytes.
func entryID(dst []byte, e *format.KeyedEntry) []byte {
	dst = fmt.Appendf(dst, "%d %d %d %d %d %d ", e.KeyGroup, e.State, e.Time, len(e.Key), len(e.Namespace), len(e.UserKey))
	if e.Key == nil {
		return append(dst, e.Stored...)
	}
	return append(append(append(dst, e.Key...), e.Namespace...), e.UserKey...)
}
