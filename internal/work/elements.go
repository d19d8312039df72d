package work

import (
	"context"
	"io"
	"iter"

	"github.com/savepoint-tools/spt/format"
)

// Elements yields the units of one state of a handle: consecutive ranges of at
// most size bytes and most elements, or of one element. The last has the count
// All, so that bytes after the last element are checked too, and can have one
// more element. It reads only offsets; an error is yielded last. Offsets that are
// out of order are not an error here.
func Elements(ctx context.Context, u Unit, h *format.OperatorHandle, size, most int64) iter.Seq2[Unit, error] {
	return func(yield func(Unit, error) bool) {
		offsets := h.States[u.State].Offsets
		identity := Identity(h.Data)
		stream := int64(All)
		if h.Data != nil {
			stream = h.Data.Size()
		}
		u.First, u.Count = 0, All
		var start, last, bytes int64 // of the range: first offset, latest offset, bytes in between
		unit := func(end int64) Unit {
			r := u
			r.Parts = nil
			if h.Data != nil {
				r.Parts = []Part{{identity, start, max(end-start, All)}}
			}
			return r
		}
		more := true
		err := format.EachOffset(ctx, offsets, func(first int64, run []int64) error {
			for i, off := range run {
				n := first + int64(i) // elements that end at or before off
				if n == 0 {
					start, last = off, off
					continue
				}
				element := max(off-last, 0)
				if n-1 > u.First && (bytes+element > size || n-u.First > most) {
					r := unit(last)
					r.Count = n - 1 - u.First
					if more = yield(r, nil); !more {
						return io.EOF
					}
					u.First, start, bytes = n-1, last, 0
				}
				bytes += element
				last = off
			}
			return nil
		})
		switch {
		case !more:
		case err != nil:
			yield(Unit{}, err)
		default:
			yield(unit(stream), nil)
		}
	}
}

// EachElement calls f with every element of the range of the unit, in order, until
// f fails or ctx ends. An element is valid until f returns.
func (u Unit) EachElement(ctx context.Context, src format.Source, codec format.OperatorCodec, h *format.OperatorHandle, f func(format.Element) error) (err error) {
	cur, err := codec.Elements(ctx, src, h, h.States[u.State].Name.String(), u.First)
	if err != nil {
		return err
	}
	if u.Count == All {
		return format.EachIn(ctx, cur, f)
	}
	return format.EachIn(ctx, &limited{cur, u.Count}, f)
}

// limited is a cursor over a limited number of elements.
type limited struct {
	format.Cursor
	left int64
}

func (c *limited) Next() (format.Element, error) {
	if c.left == 0 {
		return format.Element{}, io.EOF
	}
	c.left--
	return c.Cursor.Next()
}
