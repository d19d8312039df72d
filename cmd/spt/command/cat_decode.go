package command

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/report"
)

// entryNote is why values of a state are not decoded.
type entryNote struct {
	state int // of the handle
	why   string
}

// entryDecoder decodes entries of a handle of keyed state.
type entryDecoder struct {
	c    *catter
	part *catPart
	// once says that an entry is used until the next one is decoded; otherwise it is valid
	// as long as the bytes of the stored entry.
	once  bool
	arena value.Arena     // of values, with once
	keyed report.CatKeyed // with once
	notes []entryNote
	noted []bool       // by state
	parts []entryParts // by state
}

// newEntryDecoder returns a decoder of the entries of a part. Values that are used once
// refer to the stored bytes.
func newEntryDecoder(c *catter, part *catPart, once bool) *entryDecoder {
	return &entryDecoder{c: c, part: part, once: once, arena: value.Arena{Views: true}}
}

// entryParts is how the entries of a state are decoded.
type entryParts struct {
	known                          bool
	key, namespace, userKey, value partDecoder
	timer, list, ttl               bool
	why                            error // why a part has no codec
}

// partDecoder is how a part of entries is decoded.
type partDecoder struct {
	name   string
	codec  value.Codec // nil: its type is not known
	left   bool        // it is left out
	decode bool        // its value is asked for
}

// partsOf returns how the entries of a state are decoded.
func (d *entryDecoder) partsOf(state int) *entryParts {
	if d.parts == nil {
		d.parts = make([]entryParts, len(d.part.keyed.codecs))
		d.noted = make([]bool, len(d.parts))
	}
	p := &d.parts[state]
	if p.known {
		return p
	}
	codecs := &d.part.keyed.codecs[state]
	kind := d.part.keyed.schema.States[state].Kind
	decodes := func(names ...int) bool {
		ok := d.c.decodes()
		for _, n := range names {
			ok = ok || d.c.filter != nil && d.c.filter.program.Uses(n)
		}
		return ok
	}
	*p = entryParts{known: true, timer: kind == kindOfTimers, list: kind == "list", ttl: codecs.TTL, why: codecs.Why,
		key:       partDecoder{"key", codecs.Key, false, decodes(catKey)},
		namespace: partDecoder{"namespace", codecs.Namespace, false, decodes(catNamespace)},
		userKey:   partDecoder{"map key", codecs.UserKey, d.c.keysOnly, decodes(catUserKey)},
		value:     partDecoder{"value", codecs.Value, d.c.keysOnly || kind == kindOfTimers, decodes(catValue, catTTL)},
	}
	return p
}

// chosen is decode, and reports whether --where is true for the entry.
func (d *entryDecoder) chosen(it *catItem, x *format.KeyedEntry) (bool, error) {
	if err := d.decode(it, x); err != nil {
		return false, d.c.placed(err, d.part)
	}
	if d.c.filter == nil {
		return true, nil
	}
	return d.c.filter.holds(d.c, d.part.keyed.states[x.State], it)
}

// decode makes it an entry.
func (d *entryDecoder) decode(it *catItem, x *format.KeyedEntry) error {
	p := d.partsOf(x.State)
	k := &d.keyed
	if !d.once {
		k = new(report.CatKeyed)
	}
	*k = report.CatKeyed{KeyGroup: x.KeyGroup, Size: x.Size()}
	*it = catItem{part: d.part, state: x.State, keyed: k, stored: x.Value}
	d.arena.Reset()
	if p.timer {
		k.Timer, k.Time = true, x.Time
		it.stored = x.Key
	}
	if x.Key == nil && x.Stored != nil { // its parts are not known
		k.Stored = x.Stored
		d.note(x.State, p.why)
	}
	if err := d.read(&k.Key, &p.key, x.Key, x); err != nil {
		return err
	}
	if err := d.read(&k.Namespace, &p.namespace, x.Namespace, x); err != nil {
		return err
	}
	if err := d.read(&k.UserKey, &p.userKey, x.UserKey, x); err != nil {
		return err
	}
	if err := d.read(&k.Value, &p.value, x.Value, x); err != nil {
		return err
	}
	if p.ttl {
		k.SplitTTL(p.list)
	}
	it.key, it.value, it.decoded = k.Key.Value, k.Value.Value, k.Value.Decoded || k.Timer
	return nil
}

// read decodes a part of an entry, if its value is asked for.
func (d *entryDecoder) read(to *report.CatPart, p *partDecoder, stored []byte, x *format.KeyedEntry) (err error) {
	if stored == nil || p.left {
		return nil
	}
	to.Has, to.Stored = true, stored
	if !p.decode {
		return nil
	}
	if p.codec == nil {
		d.note(x.State, d.parts[x.State].why)
		return nil
	}
	if d.once {
		err = value.ReadAllIn(&d.arena, p.codec, stored, &to.Value)
	} else {
		to.Value, err = value.ReadAll(p.codec, stored)
	}
	switch {
	case errors.Is(err, format.ErrUnsupported):
		d.note(x.State, err)
		return nil
	case err != nil:
		return &notReadable{format.At(err, "key group %d/state %q/%s", x.KeyGroup, d.part.keyed.states[x.State].name, p.name)}
	}
	to.Decoded = true
	return nil
}

// note notes once why parts of a state are not decoded.
func (d *entryDecoder) note(state int, why error) {
	if d.noted[state] || why == nil || !d.c.decodes() {
		return
	}
	d.noted[state] = true
	d.notes = append(d.notes, entryNote{state, why.Error()})
}

// entryReader reads and decodes the chosen entries of a part. An entry is valid until the
// next one is read.
type entryReader struct {
	scan *entryScan
	dec  *entryDecoder
}

func newEntryReader(ctx context.Context, c *catter, part *catPart, groups format.KeyGroupRange) *entryReader {
	return &entryReader{newEntryScan(ctx, c, part, groups), newEntryDecoder(c, part, true)}
}

// next sets it to the next entry that --where is true for, or returns io.EOF.
func (r *entryReader) next(it *catItem) error {
	for {
		x, err := r.scan.next()
		if err != nil {
			return err
		}
		if ok, err := r.dec.chosen(it, &x); ok || err != nil {
			return err
		}
	}
}
