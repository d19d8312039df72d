package transform

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
)

// recompressor is a codec that can compress and decompress streams.
type recompressor interface {
	// Recompress returns the handle with its elements compressed or decompressed, h
	// itself if nothing changes, or an ErrUnsupported.
	Recompress(ctx context.Context, src format.Source, h *format.OperatorHandle, compress bool) (*format.OperatorHandle, error)
}

// RecompressReport describes what Recompress did.
type RecompressReport struct {
	Handles int          // handles whose compression changed
	Same    int          // handles that already had the requested compression
	Kept    []KeptHandle // handles that could not be changed, by kind and reason
}

// KeptHandle is state that is kept unchanged.
type KeptHandle struct {
	Operator *format.Operator
	Slot     format.Slot
	Handles  int
	Why      string
}

// Recompress compresses the managed state of operators as Flink does, or
// decompresses it: operator state, and keyed state in the canonical format. Other
// state is kept unchanged and reported: files of a state backend, raw state,
// changes of a changelog.
//
// It reads all state that changes once, to compute the lengths of the result;
// reading the result reads it again.
func Recompress(ctx context.Context, v format.View, o RecompressOptions) (format.View, *RecompressReport, error) {
	r := &RecompressReport{}
	sp, err := v.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		e := compression{ctx: ctx, in: v, o: o, op: op, report: r}
		changed, err := op.MapManaged(e.managed)
		if err != nil {
			return nil, err
		}
		return e.others(changed)
	})
	if err != nil {
		return v, nil, err
	}
	return v.With(sp), r, nil
}

// RecompressOptions are the options of Recompress.
type RecompressOptions struct {
	Compress bool // false: decompress
	// Keyed recompresses keyed state of the canonical format; nil keeps it.
	Keyed func(ctx context.Context, src format.Source, h *format.KeyGroups, compress bool) (*format.KeyGroups, error)
}

// compression changes the compression of one operator.
type compression struct {
	ctx    context.Context
	in     format.View
	o      RecompressOptions
	op     *format.Operator
	report *RecompressReport
}

// outcome counts a handle. It returns err unless that means that the handle is
// kept.
func (e *compression) outcome(slot format.Slot, same bool, err error) error {
	switch {
	case errors.Is(err, format.ErrUnsupported):
		e.keep(slot, err.Error())
		return nil
	case err != nil:
		return err
	case same:
		e.report.Same++
	default:
		e.report.Handles++
	}
	return nil
}

func (e *compression) keep(slot format.Slot, why string) {
	e.report.Kept = addKept(e.report.Kept, e.op, slot, why)
}

// addKept adds a handle that is kept, to its kind and reason if there is one.
func addKept(all []KeptHandle, op *format.Operator, slot format.Slot, why string) []KeptHandle {
	for i := range all {
		if k := &all[i]; k.Operator == op && k.Slot == slot && k.Why == why {
			k.Handles++
			return all
		}
	}
	return append(all, KeptHandle{op, slot, 1, why})
}

func (e *compression) managed(h *format.OperatorHandle) (*format.OperatorHandle, error) {
	if format.SizeOf(h.Data) == 0 && len(h.States) == 0 { // a placeholder
		return h, nil
	}
	codec, err := e.in.Codec(h.Codec)
	if err != nil {
		return h, e.outcome(format.SlotManaged, true, err)
	}
	c, ok := codec.(recompressor)
	if !ok {
		e.keep(format.SlotManaged, "state of Go programs has no compression of its own")
		return h, nil
	}
	built, err := c.Recompress(e.ctx, e.in.Source, h, e.o.Compress)
	if err := e.outcome(format.SlotManaged, built == h, err); err != nil || built == nil || built == h {
		return h, err
	}
	return replaced(h, built, built.States)
}

// others changes keyed state and reports what is kept. changed is the operator
// with its operator state changed.
func (e *compression) others(changed *format.Operator) (*format.Operator, error) {
	return changed.MapSubtasks(func(sub *format.Subtask) (*format.Subtask, error) {
		if sub.Raw != nil && format.SizeOf(sub.Raw.Data) > 0 {
			e.keep(format.SlotRaw, "bytes of user code")
		}
		if sub.RawKeyed != nil {
			e.keep(format.SlotRawKeyed, "bytes of user code")
		}
		if sub.ManagedKeyed == nil {
			return sub, nil
		}
		h, err := e.keyedHandle(sub.ManagedKeyed)
		if err != nil {
			return nil, format.At(err, "%v", format.SlotManagedKeyed)
		}
		if h == sub.ManagedKeyed {
			return sub, nil
		}
		c := *sub
		c.ManagedKeyed = h
		return &c, nil
	})
}

func (e *compression) keyedHandle(h format.KeyedHandle) (format.KeyedHandle, error) {
	switch h := h.(type) {
	case *format.KeyGroups:
		if h.Codec != format.CodecFlink {
			e.keep(format.SlotManagedKeyed, "state of Go programs has no compression of its own")
			return h, nil
		}
		if e.o.Keyed == nil {
			e.keep(format.SlotManagedKeyed, "keyed state, which was not selected")
			return h, nil
		}
		built, err := e.o.Keyed(e.ctx, e.in.Source, h, e.o.Compress)
		if err := e.outcome(format.SlotManagedKeyed, built == h, err); err != nil || built == nil || built == h {
			return h, err
		}
		rope, ok := built.Data.(*format.Concat)
		if !ok {
			return nil, errors.New("internal error: a built handle whose stream is not a rope")
		}
		r := *rope
		r.As = storedLike(h.Data, r.Size())
		c := *built
		c.Data = &r
		return &c, nil
	case *format.Incremental:
		e.keep(format.SlotManagedKeyed, "files of RocksDB, which have their own compression")
	default:
		e.keep(format.SlotManagedKeyed, "changes of a changelog and what they apply to")
	}
	return h, nil
}
