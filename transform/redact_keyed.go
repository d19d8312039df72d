package transform

import (
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/transform/internal/scramble"
)

// stateRenamer is a codec that renames states of its schemas.
type stateRenamer interface {
	RenameState(s format.KeyedState, name string) (format.KeyedState, error)
}

// keyed returns the redacted keyed state of a subtask, or nil.
func (r *redaction) keyed(op *format.Operator, sub *format.Subtask, h format.KeyedHandle) (*format.KeyGroups, error) {
	if r.drops(partName(op, PartKeyed)) {
		return nil, nil
	}
	out, err := r.rebuildKeyed(op, sub, h)
	return out, r.unsupported(partName(op, PartKeyed), err)
}

func (r *redaction) rebuildKeyed(op *format.Operator, sub *format.Subtask, h format.KeyedHandle) (*format.KeyGroups, error) {
	if g, ok := h.(*format.KeyGroups); ok && g.Codec != format.CodecFlink {
		return nil, format.Errorf(format.ErrUnsupported, "keyed state that Flink did not write")
	}
	codec, err := r.in.Codecs.KeyedCodec(op, h)
	if err != nil {
		return nil, err
	}
	schema, err := codec.Describe(r.ctx, r.in.Source, h)
	if err != nil {
		return nil, err
	}
	codecs, err := value.EntryCodecsOf(r.ctx, r.in.Source, codec, h)
	if err != nil {
		return nil, err
	}
	e := &redactedEntries{r: r, op: op, sub: sub, codecs: codecs, index: make([]int, len(schema.States))}
	b := rekeyed{codec: codec, schema: format.KeyedSchema{Wire: schema.Wire}, of: h}
	for i, st := range schema.States {
		name := st.Name.String()
		e.parts = append(e.parts, partName(op, name))
		if r.drops(e.parts[i]) {
			continue
		}
		if to := r.stateName(name); to != name {
			c, ok := codec.(stateRenamer)
			if !ok {
				return nil, format.Errorf(format.ErrUnsupported, "states that cannot be renamed")
			}
			if st, err = c.RenameState(st, to); err != nil {
				return nil, format.At(err, "state %q", name)
			}
		}
		if codecs[i].KeyHash == nil { // the keys of all states are of one type
			return nil, format.Errorf(format.ErrUnsupported, "keys: %v", codecs[i].WhyNoHash)
		}
		e.index[i] = len(b.schema.States)
		b.schema.States = append(b.schema.States, st)
		b.sel.States = append(b.sel.States, i)
	}
	if len(b.schema.States) == 0 {
		return nil, nil
	}
	b.edit = e.edit
	out, entries, err := b.build(r.ctx, r.in.Source, fmt.Sprintf("redacted keyed %s %d", op.ID, sub.Index))
	if err != nil || len(r.refused) > 0 {
		return nil, err // with the error, nothing is written
	}
	r.report.Entries += entries
	r.report.KeptKeys += e.kept
	data := out.Data.(*format.Concat)
	out.Data = r.stored(data, streamOf(h))
	return out, nil
}

// streamOf returns a stream of a handle whose kind of storage the redacted state takes
// over, or nil.
func streamOf(h format.KeyedHandle) (s format.Stream) {
	format.EachKeyed(h, func(h format.KeyedHandle) {
		switch h := h.(type) {
		case *format.KeyGroups:
			s = h.Data
		case *format.Incremental:
			s = nil
		}
	})
	return s
}

// redactedEntries changes the entries of a handle.
type redactedEntries struct {
	r      *redaction
	op     *format.Operator
	sub    *format.Subtask
	parts  []string // names of the states
	index  []int    // of the states in the result
	codecs []value.EntryCodecs
	read   bool  // all entries were read once
	kept   int64 // keys that stay
}

// edit returns a function that changes the entries of one reading. The first reading
// finds out what cannot be redacted, and goes on with other states.
func (e *redactedEntries) edit() func(*format.KeyedEntry) error {
	first := !e.read
	e.read = true
	failed := make([]bool, len(e.codecs))
	w := &entryMask{e: e, first: first, keys: map[string]string{}}
	return func(en *format.KeyedEntry) error {
		state := en.State
		var err error
		if !failed[state] {
			err = w.entry(en)
		}
		if first && err != nil && errors.Is(err, format.ErrUnsupported) {
			failed[state] = true
			e.r.refuse(e.parts[state], format.At(err, "subtask %d", e.sub.Index).Error())
			err = nil
		}
		en.State = e.index[state]
		return format.At(err, "state %q", e.parts[state])
	}
}

// entryMask replaces the parts of entries, in buffers that it uses again.
type entryMask struct {
	e     *redactedEntries
	first bool
	keys  map[string]string // replacements of keys
	size  int               // bytes of keys
	buf   []byte
}

// maxKeys is the number of bytes of replaced keys that are kept: several states have
// entries of one key, and finding its replacement takes a while.
const maxKeys = 8 << 20

func (w *entryMask) entry(en *format.KeyedEntry) (err error) {
	e, c := w.e, &w.e.codecs[en.State]
	switch {
	case c.Why != nil:
		return c.Why
	case en.Key == nil || en.Namespace == nil:
		return format.Errorf(format.ErrUnsupported, "keys that are not split from namespaces")
	}
	key, err := w.key(c, en)
	if err != nil {
		return format.At(err, "key")
	}
	w.buf = w.buf[:0]
	part := func(c value.Codec, p []byte, what string) []byte {
		if err != nil || p == nil || c == nil && len(p) == 0 {
			return p
		}
		at := len(w.buf)
		if c == nil {
			err = format.Errorf(format.ErrUnsupported, "it is not decoded")
		} else {
			w.buf, err = e.r.replace(w.buf, c, p, e.r.mask)
		}
		err = format.At(err, "%s", what)
		return w.buf[at:len(w.buf):len(w.buf)]
	}
	out := *en
	out.Stored, out.Key = nil, key
	out.Namespace = part(c.Namespace, en.Namespace, "namespace")
	out.UserKey = part(c.UserKey, en.UserKey, "map key")
	out.Value = part(c.Value, en.Value, "value")
	if err == nil {
		*en = out
	}
	return err
}

// key returns the replacement of a key, which is in the same key group.
func (w *entryMask) key(c *value.EntryCodecs, en *format.KeyedEntry) ([]byte, error) {
	if to, ok := w.keys[string(en.Key)]; ok {
		return []byte(to), nil
	}
	to, err := w.e.key(c, en)
	if err != nil {
		return nil, err
	}
	if w.first && string(to) == string(en.Key) {
		w.e.kept++
	}
	const perKey = 128 // of the map
	if w.size += 2*len(to) + perKey; w.size > maxKeys {
		clear(w.keys)
		w.size = 0
	}
	w.keys[string(en.Key)] = string(to)
	return to, nil
}

// keysPerGroup is the number of keys that are tried for each key group.
const keysPerGroup = 64

// key finds the replacement of a key: the keys of one length and key group replace each
// other.
func (e *redactedEntries) key(c *value.EntryCodecs, en *format.KeyedEntry) ([]byte, error) {
	p, group, groups := en.Key, en.KeyGroup, e.op.MaxParallelism
	if groups <= 0 {
		return nil, format.Errorf(format.ErrCorrupt, "a max parallelism of %d", groups)
	}
	in := func(p []byte) (bool, error) {
		hash, err := c.KeyHash(p)
		return err == nil && format.KeyGroupOfHash(hash, groups) == group, err
	}
	if ok, err := in(p); err != nil || !ok {
		if err == nil {
			err = format.Errorf(format.ErrUnsupported, "it is in key group %d, which is not the one of its hash code", group)
		}
		return nil, err
	}
	v, err := value.ReadAll(c.Key, p)
	if err != nil {
		return nil, err
	}
	m := scramble.Mask{Key: e.r.mask.Key, Wide: true}
	for range keysPerGroup * int(groups) {
		if v, err = value.Masked(c.Key, v, m); err != nil {
			return nil, err
		}
		out, err := c.Key.Append(nil, v)
		if err != nil || len(out) != len(p) {
			continue
		}
		if ok, err := in(out); err == nil && ok { // which reads it back
			return out, nil
		}
	}
	return nil, format.Errorf(format.ErrUnsupported, "no other key was found for key group %d", group)
}
