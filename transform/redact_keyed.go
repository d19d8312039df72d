package transform

import (
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/transform/internal/scramble"
)

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
	source, err := keyedSourceOf(r.ctx, r.in, op, h, h.KeyGroups())
	if err != nil {
		return nil, err
	}
	codecs, err := value.EntryCodecsOf(r.ctx, r.in.Source, source.codec, h)
	if err != nil {
		return nil, err
	}
	e := &redactedEntries{r: r, op: op, sub: sub, codecs: codecs, first: true}
	for i, st := range source.schema.States {
		e.parts = append(e.parts, partName(op, st.Name.String()))
		if !r.drops(e.parts[i]) && codecs[i].KeyHash == nil {
			return nil, format.Errorf(format.ErrUnsupported, "keys: %v", codecs[i].WhyNoHash)
		}
	}
	source.edit = keyedEdit{
		state: func(st format.KeyedState) (format.KeyedState, bool) {
			name := st.Name.String()
			st.Name = format.NewText(r.stateName(name))
			return st, !r.drops(partName(op, name))
		},
		change: e.edit(),
	}
	out, entries, err := buildKeyed(r.ctx, r.in.Source, source.codec, h.KeyGroups(), []*keyedSource{source})
	e.first = false
	if err != nil || out == nil || len(r.refused) > 0 {
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
	codecs []value.EntryCodecs
	first  bool  // the first reading, which finds out what cannot be redacted
	kept   int64 // keys that stay
}

// edit returns a function that changes entries. The first reading goes on with other
// states after one that cannot be redacted.
func (e *redactedEntries) edit() func(*format.KeyedEntry) error {
	failed := make([]bool, len(e.codecs))
	w := &entryMask{e: e, keys: map[string]string{}}
	return func(en *format.KeyedEntry) error {
		var err error
		if !failed[en.State] {
			err = w.entry(en)
		}
		if e.first && err != nil && errors.Is(err, format.ErrUnsupported) {
			failed[en.State] = true
			e.r.refuse(e.parts[en.State], format.At(err, "subtask %d", e.sub.Index).Error())
			err = nil
		}
		return format.At(err, "state %q", e.parts[en.State])
	}
}

// entryMask replaces the parts of entries, in buffers that it uses again.
type entryMask struct {
	e    *redactedEntries
	keys map[string]string // replacements of keys
	size int               // bytes of keys
	buf  []byte
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
	if w.e.first && string(to) == string(en.Key) {
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
