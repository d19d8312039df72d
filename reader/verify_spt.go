package reader

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/storage"
)

// This file checks what only an .spt file can hold: state in spt's own encoding,
// and a model that says that it came from Flink without having done so.

// wires checks that a file made from a Flink snapshot can become one again.
func (v *verifier) wires() error {
	if _, ok := metadata.VersionOf(v.snap.Savepoint); !ok {
		return nil // it does not say that it was one
	}
	err := metadata.Check(v.ctx, v.snap.Savepoint)
	var e *format.Error
	if err == nil || v.ctx.Err() != nil || !errors.As(err, &e) {
		return err
	}
	v.report(Fault, "flink", e.Path, "", "the file says that it was made from a Flink snapshot, and holds what no Flink snapshot does: %s", e.Msg)
	return nil
}

// packed compares what a stream was with the bytes that the file has of it: what
// it becomes again is described by the former.
func (v *verifier) packed(p format.Place, st format.Stream) {
	c, ok := st.(*format.Chunks)
	if !ok {
		return
	}
	if f, ok := c.As.(*format.File); ok && f.Length >= 0 && !format.LengthFits(f.Length, c.Length, p.Changelog) {
		v.report(Fault, "file-length", p.String(), f.Path.String(), "%d bytes are recorded, the file has %d of it", f.Length, c.Length)
	}
}

// natives reads all state in spt's own encoding. Copies are read once.
func (v *verifier) natives() error {
	src := v.snap.Source()
	seen := map[string]bool{}
	check := func(place, identity string, f func(context.Context) error) error {
		if seen[identity] {
			return nil
		}
		seen[identity] = true
		err := f(v.ctx)
		var e *format.Error
		switch {
		case err == nil:
			return nil
		case v.ctx.Err() != nil, errors.Is(err, format.ErrChanged), storage.Classify(err) == storage.Transient, !errors.As(err, &e):
			return storageKind(err)
		}
		v.report(Fault, "native-state", place, "", "%s", err)
		return nil
	}
	defer func() { v.op = nil }()
	for _, op := range v.snap.Operators {
		v.op = op
		for _, sub := range op.Subtasks {
			place := fmt.Sprintf("operator %q/subtask %d", op.Label(), sub.Index)
			if h := sub.Managed; h != nil && h.Codec == format.CodecNative {
				var id strings.Builder
				fmt.Fprintf(&id, "%s", streamKey(h.Data))
				for i := range h.States {
					fmt.Fprintf(&id, " %d:%v", h.States[i].Mode, v.array(h.States[i].Offsets))
				}
				if err := check(place+"/"+format.SlotManaged.String(), id.String(), func(ctx context.Context) error {
					return native.Codec{}.Verify(ctx, src, h)
				}); err != nil {
					return err
				}
			}
			if h, ok := sub.ManagedKeyed.(*format.KeyGroups); ok && h.Codec == format.CodecNative {
				id := fmt.Sprintf("%s %d %d+%d %v", streamKey(h.Data), op.MaxParallelism, h.Range.First, h.Range.Count, v.array(h.Offsets))
				if err := check(place+"/keyed state", id, func(ctx context.Context) error {
					return native.VerifyKeyed(ctx, src, h, op.MaxParallelism)
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func streamKey(s format.Stream) string {
	if s == nil {
		return ""
	}
	return s.Key().String()
}

// array is the identity of an array of offsets: equal arrays of an .spt file share
// their memory. Different arrays never have one identity.
func (v *verifier) array(o format.Offsets) string {
	if s, ok := o.(format.OffsetSlice); ok {
		if len(s) == 0 {
			return "none"
		}
		return fmt.Sprintf("%p+%d", &s[0], len(s))
	}
	if reflect.ValueOf(o).Kind() == reflect.Pointer {
		return fmt.Sprintf("%p", o)
	}
	v.unique++
	return fmt.Sprint(v.unique)
}
