package native

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// Verify reads all operator state of a handle. It returns an error unless the
// elements fill the stream from the first byte to the last, and each is valid for
// the mode of its state.
func (c Codec) Verify(ctx context.Context, src format.Source, h *format.OperatorHandle) error {
	if err := checkHandle(h); err != nil {
		return err
	}
	if err := checkStart(ctx, h); err != nil {
		return err
	}
	for i := range h.States {
		err := format.EachElement(ctx, src, c, h, h.States[i].Name.String(), func(format.Element) error { return nil })
		if err != nil {
			return err // has the state
		}
	}
	return nil
}

// checkStart returns an error unless the first element of a handle starts at the
// first byte of the stream. An element extends to the next one, so every byte then
// belongs to an element.
func checkStart(ctx context.Context, h *format.OperatorHandle) error {
	if i := firstState(h); i >= 0 {
		first, err := format.OffsetAt(ctx, h.States[i].Offsets, 0)
		if err == nil && first > 0 { // a negative one is reported with its element
			err = errBefore(first)
		}
		return format.At(err, "state %q", h.States[i].Name)
	}
	if size := format.SizeOf(h.Data); size > 0 {
		return format.Errorf(format.ErrCorrupt, "the %d bytes of the stream do not belong to an element", size)
	}
	return nil
}

func errBefore(n int64) error {
	return format.Errorf(format.ErrCorrupt, "the first %d bytes of the stream do not belong to an element", n)
}

// firstState returns the index of the first state that has elements, or -1.
func firstState(h *format.OperatorHandle) int {
	return slices.IndexFunc(h.States, func(s format.NamedState) bool { return count(s.Offsets) > 0 })
}

// VerifyKeyed reads all keyed state of a handle of an operator with max parallelism
// max. It returns an error unless the key groups are valid for [KeyedCodec.Entries]
// and every key is in its own key group.
func VerifyKeyed(ctx context.Context, src format.Source, h *format.KeyGroups, max int32) error {
	schema, err := KeyedCodec{}.Describe(ctx, src, h)
	if err != nil {
		return err
	}
	return format.EachKeyedEntry(ctx, src, KeyedCodec{}, h, format.KeyedSelection{}, func(e format.KeyedEntry) error {
		if max < 1 {
			return nil // the max parallelism is unknown
		}
		if group := KeyGroup(e.Key, max); group != e.KeyGroup {
			return format.At(format.Errorf(format.ErrCorrupt, "a key of state %q belongs to key group %d of %d", schema.States[e.State].Name, group, max), "key group %d", e.KeyGroup)
		}
		return nil
	})
}
