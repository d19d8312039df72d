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

// elementEdit is a change of an element that is not the same as before.
type elementEdit struct {
	at   int64 // its index; PatchAdd: the index of the element that follows
	op   PatchOp
	data []byte // new, in the bytes of the codec
}

// order puts elements that are added before the element at their index.
func (e *elementEdit) order() int {
	if e.op == PatchAdd {
		return 0
	}
	return 1
}

// elements reads the elements that changes, ordered by index, name.
func (part *patchPart) elements(ctx context.Context, p *patch, all []located) error {
	if err := part.open(ctx, p); err != nil {
		return err
	}
	walk := &elementWalk{ctx: ctx, p: p, part: part}
	defer walk.close()
	for i := range all {
		c := &all[i].PatchChange
		if c.Op == PatchAdd {
			if c.Index == NoIndex {
				c.Index = part.n
			}
			if c.Index < 0 || c.Index > part.n {
				p.problem(c.Number, part.outside(c.Index))
				continue
			}
			like, err := part.like(ctx, p)
			if err != nil {
				return err
			}
			data, _, err := p.encode(part.values.Element, part.values.Why, nil, &like, c.Value)
			if err != nil {
				p.problem(c.Number, err)
				continue
			}
			part.Added++
			part.edits = append(part.edits, elementEdit{c.Index, PatchAdd, data})
			continue
		}
		if c.Index < 0 || c.Index >= part.n {
			p.problem(c.Number, part.outside(c.Index))
			continue
		}
		stored, err := walk.element(c.Index)
		if err != nil {
			return part.at(err)
		}
		if part.named.has(c.Index) {
			p.problem(c.Number, errTwice)
			continue
		}
		part.named.set(c.Index)
		data, same, err := p.change(part.values.Element, part.values.Why, stored, c)
		switch {
		case err != nil:
			p.problem(c.Number, err)
		case same:
			part.Same++
		default:
			if c.Op == PatchRemove {
				part.Removed++
			} else {
				part.Replaced++
			}
			part.edits = append(part.edits, elementEdit{c.Index, c.Op, data})
		}
	}
	return nil
}

var errTwice = errors.New("another change is for the same element")

// outside returns the error for an index out of range.
func (part *patchPart) outside(i int64) error {
	if part.n == 0 {
		return fmt.Errorf("index %d: the state has no element in subtask %d", i, part.subtask)
	}
	return fmt.Errorf("index %d: the state has the elements 0 to %d in subtask %d", i, part.n-1, part.subtask)
}

// like returns the value of the first element, whose type a new element has if its codec
// does not know the type; null without an element.
func (part *patchPart) like(ctx context.Context, p *patch) (value.Value, error) {
	if part.first != nil {
		return *part.first, nil
	}
	part.first = new(value.Value)
	if _, typed := part.values.Element.(value.JSONCodec); typed || part.values.Element == nil || part.n == 0 {
		return *part.first, nil
	}
	walk := &elementWalk{ctx: ctx, p: p, part: part}
	defer walk.close()
	stored, err := walk.element(0)
	if err != nil {
		return value.Null(), part.at(err)
	}
	if v, err := value.ReadAll(part.values.Element, stored); err == nil {
		*part.first = v
	}
	return *part.first, nil
}

// runs returns the elements of a part after its edits.
func (part *patchPart) runs() (all []format.ElementRun) {
	slices.SortStableFunc(part.edits, func(a, b elementEdit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order(), b.order()))
	})
	next := int64(0)
	keep := func(to int64) {
		if to > next {
			all = append(all, format.ElementRun{Handle: part.h, State: part.k, First: next, Count: to - next})
		}
		next = to
	}
	for _, e := range part.edits {
		keep(e.at)
		if e.op != PatchRemove {
			if k := len(all) - 1; k < 0 || all[k].New == nil {
				all = append(all, format.ElementRun{New: [][]byte{}})
			}
			run := &all[len(all)-1]
			run.New = append(run.New, e.data)
		}
		if e.op != PatchAdd {
			next++
		}
	}
	keep(part.n)
	return all
}

// change returns the new bytes of a value that is stored, unless it stays the same.
func (p *patch) change(codec value.Codec, why string, stored []byte, c *PatchChange) (data []byte, same bool, err error) {
	if c.Was.given() {
		_, same, err := p.encode(codec, why, stored, nil, c.Was)
		if err != nil && !errors.Is(err, ErrNotChecked) {
			return nil, false, fmt.Errorf("was: %w", err)
		}
		if !same {
			return nil, false, errors.New("was: another value is stored")
		}
	}
	if c.Op == PatchRemove {
		return nil, false, nil
	}
	return p.encode(codec, why, stored, nil, c.Value)
}

// encode returns the bytes of a value, and whether it is the one that is stored. like,
// if nothing is stored, is a value of the type.
func (p *patch) encode(codec value.Codec, why string, stored []byte, like *value.Value, g PatchValue) (data []byte, same bool, err error) {
	has := like == nil
	if g.Stored != nil {
		switch {
		case has && bytes.Equal(g.Stored, stored):
			return nil, true, nil
		case codec == nil && !p.o.Unchecked:
			return nil, false, fmt.Errorf("%w: %s", ErrNotChecked, why)
		case codec == nil:
			return g.Stored, false, nil
		}
		if _, err := value.ReadAll(codec, g.Stored); err != nil {
			return nil, false, fmt.Errorf("the bytes are not a value of the state: %w", err)
		}
		return g.Stored, false, nil
	}
	if codec == nil {
		return nil, false, fmt.Errorf("the state is not decoded, so its values are bytes: %s", why)
	}
	var old value.Value
	var text []byte // its JSON
	if !has {
		old = *like
	} else if v, err := value.ReadAll(codec, stored); err == nil { // a broken value can be replaced
		old = v
		if text = v.AppendJSON(nil, nil, nil); bytes.Equal(text, g.JSON) {
			return nil, true, nil
		}
	}
	v, err := value.FromJSONLike(codec, old, g.JSON)
	if err != nil {
		return nil, false, err
	}
	again := v.AppendJSON(nil, nil, nil)
	if text != nil && bytes.Equal(again, text) {
		return nil, true, nil
	}
	if data, err = codec.Append(nil, v); err != nil {
		return nil, false, err
	}
	back, err := value.ReadAll(codec, data)
	if err != nil || !bytes.Equal(back.AppendJSON(nil, nil, nil), again) {
		return nil, false, format.Errorf(format.ErrUnsupported, "the value would be read back as another one")
	}
	return data, has && bytes.Equal(data, stored), nil
}

// maxSkip is the number of elements that are read to reach one, rather than opening a
// cursor there.
const maxSkip = 256

// elementWalk reads elements of a part by ascending index.
type elementWalk struct {
	ctx  context.Context
	p    *patch
	part *patchPart
	cur  format.Cursor
	next int64
	last format.Element
}

// element returns element i, valid until the next call.
func (w *elementWalk) element(i int64) ([]byte, error) {
	if w.cur != nil && i == w.next-1 {
		return w.last.Value, nil
	}
	if w.cur == nil || i < w.next || i > w.next+maxSkip {
		w.close()
		var err error
		if w.cur, err = w.part.codec.Elements(w.ctx, w.p.in.Source, w.part.h, w.part.State, i); err != nil {
			w.cur = nil
			return nil, err
		}
		w.next = i
	}
	for {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		e, err := w.cur.Next()
		if err != nil {
			return nil, err
		}
		w.next, w.last = e.Index+1, e
		if e.Index >= i {
			return e.Value, nil
		}
	}
}

func (w *elementWalk) close() {
	if w.cur != nil {
		_ = w.cur.Close() // nothing was written
		w.cur = nil
	}
}
