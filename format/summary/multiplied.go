package summary

import (
	"bytes"
	"context"
	"encoding/binary"
	"reflect"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// This file guesses, from the lengths of elements, which union states were
// multiplied by restores: if every subtask received all elements and wrote them
// again, all subtasks hold equally many elements of the same lengths. Up to about 8
// subtasks the elements have the same order in all; from 10 on Flink assigns some
// subtasks another order, so lengths and elements are compared as multisets.
//
// Subtasks that each write an equal share of their own elements can have the same
// lengths, such as a Kafka consumer with 12 partitions at parallelism 4. So inline
// elements are compared too, which needs no file. If no element is inline and all
// have the same length, only long lists count as a sign.

// fewUnread is the number of elements per subtask from which equal lengths alone
// count as a sign. Shorter lists are often equal shares of partitions.
const fewUnread = 10

// maxCompared limits the bytes of inline elements of a state that are compared. The
// elements of at least two subtasks are compared, whatever their size.
const maxCompared = 16 << 20

// unions finds union states that a restore may have multiplied.
func (m *measure) unions(op *format.Operator, o *Operator) error {
	for _, st := range m.order {
		if st.Kind != Union || st.Subtasks < 2 || st.Subtasks != o.Present || o.Missing > 0 || st.Elements == 0 {
			continue
		}
		if err := st.guess(m.ctx, op); err != nil {
			return format.At(err, "state %q", st.Name)
		}
	}
	return nil
}

// held is the elements of a union state in one subtask.
type held struct {
	offsets format.Offsets
	size    int64
	data    format.Stream
}

// guess compares the lengths of the elements in all subtasks, and the elements
// themselves if they are inline. One element per subtask, such as a counter, does
// not count as a sign: many jobs have such state.
func (st *State) guess(ctx context.Context, op *format.Operator) error {
	var all []held
	for _, sub := range op.Subtasks {
		if sub.Finished || sub.Managed == nil {
			continue
		}
		for i, s := range sub.Managed.States {
			if s.Name.String() != st.Name || s.Mode != format.ModeUnion {
				continue
			}
			sizes, err := StateSizes(ctx, sub.Managed)
			if err != nil {
				return err
			}
			h := held{s.Offsets, sizes[i], sub.Managed.Data}
			if len(all) > 0 && (h.offsets.Len() != all[0].offsets.Len() || h.size != all[0].size) {
				return nil
			}
			all = append(all, h)
		}
	}
	if len(all) != st.Subtasks {
		return nil
	}
	c := comparison{ctx: ctx, hash: hash128.New()}
	alike, sameOrder, oneLength, err := c.lengths(all)
	if err != nil || !alike {
		return err
	}
	compared, equal, err := c.elementsOf(all, sameOrder)
	if err != nil {
		return err
	}
	n := all[0].offsets.Len()
	st.Alike, st.SameOrder, st.Compared = true, sameOrder, compared
	st.MayBeMultiplied = n > 1 && (compared && equal || !compared && (!oneLength || n >= fewUnread))
	return nil
}

// comparison compares the elements of subtasks.
type comparison struct {
	ctx  context.Context
	hash hash128.Hasher
}

// lengths compares the lengths of the elements.
func (c *comparison) lengths(all []held) (alike, sameOrder, oneLength bool, err error) {
	first, oneLength, err := c.lengthsOf(&all[0])
	if err != nil {
		return false, false, false, err
	}
	sameOrder = true
	for i := range all[1:] {
		h := &all[i+1]
		same, err := sameSteps(c.ctx, all[0].offsets, h.offsets)
		if err != nil {
			return false, false, false, err
		}
		if same {
			continue
		}
		sameOrder = false
		lengths, _, err := c.lengthsOf(h)
		if err != nil || lengths != first {
			return false, false, false, err
		}
	}
	return true, sameOrder, oneLength, nil
}

// lengthsOf returns the lengths of the elements in a subtask, and whether they are
// all equal.
func (c *comparison) lengthsOf(h *held) (lengths hash128.Multiset, one bool, err error) {
	one = true
	last := int64(-1)
	err = h.each(c.ctx, func(off, end int64) {
		n := end - off
		one = one && (last < 0 || n == last)
		last = n
		var p [8]byte
		binary.LittleEndian.PutUint64(p[:], uint64(n))
		lengths.Add(c.hash.Sum(p[:]))
	})
	return lengths, one, err
}

// each calls f with the start and end of each element.
func (h *held) each(ctx context.Context, f func(off, end int64)) error {
	var first, off int64
	err := format.EachOffset(ctx, h.offsets, func(at int64, run []int64) error {
		for i, next := range run {
			if at == 0 && i == 0 {
				first = next
			} else {
				f(off, next)
			}
			off = next
		}
		return nil
	})
	if err == nil && h.offsets.Len() > 0 {
		f(off, first+h.size)
	}
	return err
}

// elementsOf compares inline elements. compared is false if fewer than two subtasks
// have them.
func (c *comparison) elementsOf(all []held, sameOrder bool) (compared, equal bool, err error) {
	if sameOrder && oneStream(all) {
		return true, true, nil
	}
	var first hash128.Multiset
	read, subtasks := int64(0), 0
	for i := range all {
		data, ok := all[i].data.(*format.Inline)
		if !ok || subtasks >= 2 && read+all[i].size > maxCompared {
			continue
		}
		elements, sound, err := c.elements(&all[i], data)
		if err != nil || !sound {
			return true, false, err
		}
		if subtasks++; subtasks == 1 {
			first = elements
		} else if elements != first {
			return true, false, nil
		}
		read += all[i].size
	}
	return subtasks > 1, true, nil
}

// oneStream reports whether all subtasks have the same stream in an .spt file, and
// so the same bytes.
func oneStream(all []held) bool {
	var digest string
	for i := range all {
		c, ok := all[i].data.(*format.Chunks)
		if !ok || c.Digest == "" || i > 0 && c.Digest != digest {
			return false
		}
		digest = c.Digest
	}
	return true
}

// elements returns the elements of inline state. sound is false if an element is
// outside the inline bytes.
func (c *comparison) elements(h *held, data *format.Inline) (elements hash128.Multiset, sound bool, err error) {
	sound = true
	err = data.Data.View(func(p []byte) error {
		return h.each(c.ctx, func(off, end int64) {
			if off < 0 || end < off || end > int64(len(p)) {
				sound = false
				return
			}
			elements.Add(c.hash.Sum(p[off:end]))
		})
	})
	return elements, sound, err
}

// sameSteps reports whether two offset arrays of equal length differ by a constant.
func sameSteps(ctx context.Context, a, b format.Offsets) (bool, error) {
	if oneArray(a, b) {
		return true, nil
	}
	ab, aok := a.(*format.OffsetBytes)
	bb, bok := b.(*format.OffsetBytes)
	if aok && bok {
		equal := false
		err := ab.Data.View(func(p []byte) error {
			return bb.Data.View(func(q []byte) error {
				equal = bytes.Equal(p, q)
				return nil
			})
		})
		if err != nil || equal {
			return equal, err
		}
	}
	var shift int64
	buf := make([]int64, min(a.Len(), 4096))
	same := true
	err := format.EachOffset(ctx, a, func(at int64, run []int64) error {
		for len(run) > 0 && same {
			n, err := b.Read(ctx, buf[:min(len(run), len(buf))], at)
			if err != nil {
				return err
			}
			if at == 0 && n > 0 {
				shift = buf[0] - run[0]
			}
			for i, v := range buf[:n] {
				if v-run[i] != shift {
					same = false
				}
			}
			at += int64(n)
			run = run[n:]
		}
		return nil
	})
	return same, err
}

// oneArray reports whether a and b are the same array in memory, as copies of a
// state in an .spt file share theirs. It reads nothing: arrays that are equal may
// be two.
func oneArray(a, b format.Offsets) bool {
	if x, ok := a.(format.OffsetSlice); ok {
		y, ok := b.(format.OffsetSlice)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	return a != nil && reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Kind() == reflect.Pointer && a == b
}
