package reader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/work"
)

// This file checks what only an .spt file can hold: state in spt's own encoding,
// and a model that falsely claims to come from Flink.

// wires checks that a file made from a Flink snapshot can become one again.
func (v *verifier) wires() error {
	if _, ok := metadata.VersionOf(v.snap.Savepoint); !ok {
		return nil // it does not claim to come from Flink
	}
	err := metadata.Check(v.ctx, v.snap.Savepoint)
	var e *format.Error
	if err == nil || v.ctx.Err() != nil || !errors.As(err, &e) {
		return err
	}
	v.report(finding.Error, "flink", e.Path, "", "the file claims to be made from a Flink snapshot, but holds what no Flink snapshot can: %s", e.Msg)
	return nil
}

// packed compares the recorded size of a packed stream with the bytes in the
// file: unpacking it restores the recorded reference.
func (v *verifier) packed(p format.Place, st format.Stream) {
	c, ok := st.(*format.Chunks)
	if !ok {
		return
	}
	if f, ok := c.As.(*format.File); ok && f.Length >= 0 && !fileref.LengthFits(f.Length, c.Length, p.Changelog) {
		v.report(finding.Error, "file-length", p.String(), f.Path.String(), "expected %d bytes, the file has %d", f.Length, c.Length)
	}
}

// natives reads all state in spt's own encoding; identical handles once.
func (v *verifier) natives() error {
	check := &contentCheck{snap: v.snap, sp: v.snap.Savepoint, o: v.o, files: true}
	defer func() { v.op = nil }()
	return work.Run(v.ctx, v.o.options(), v.nativeUnits(), check.native, func(u work.Unit, _ struct{}, err error) error {
		var e *format.Error
		switch {
		case err == nil:
			return nil
		case v.ctx.Err() != nil, errors.Is(err, format.ErrChanged), ranged.Classify(err) == ranged.Transient, !errors.As(err, &e):
			return storageKind(err)
		}
		place, perr := u.Handle.Location(v.snap.Savepoint)
		if perr != nil {
			return perr
		}
		v.op = place.Operator
		v.report(finding.Error, "native-state", place.String(), "", "%s", err)
		return nil
	})
}

// nativeUnits yields the distinct handles in spt's own encoding.
func (v *verifier) nativeUnits() iter.Seq[work.Unit] {
	seen := map[string]bool{}
	first := func(identity string) bool {
		before := seen[identity]
		seen[identity] = true
		return !before
	}
	return func(yield func(work.Unit) bool) {
		for i, op := range v.snap.Operators {
			for k, sub := range op.Subtasks {
				u := work.Unit{Job: work.CheckNative, State: work.All, Count: work.All,
					Handle: work.Handle{Operator: i, Subtask: k, ID: op.ID, Index: sub.Index, Slot: format.SlotManaged}}
				if h := sub.Managed; h != nil && h.Codec == format.CodecNative {
					var id strings.Builder
					fmt.Fprintf(&id, "%s", streamKey(h.Data))
					for i := range h.States {
						fmt.Fprintf(&id, " %d:%v", h.States[i].Mode, v.array(h.States[i].Offsets))
					}
					u.Parts = work.Whole(h.Data)
					if first(id.String()) && !yield(u) {
						return
					}
				}
				if h, ok := sub.ManagedKeyed.(*format.KeyGroups); ok && h.Codec == format.CodecNative {
					id := fmt.Sprintf("%s %d %d+%d %v", streamKey(h.Data), op.MaxParallelism, h.Range.First, h.Range.Count, v.array(h.Offsets))
					u.Handle.Slot, u.Parts = format.SlotManagedKeyed, work.Whole(h.Data)
					if first(id) && !yield(u) {
						return
					}
				}
			}
		}
	}
}

// native runs a unit that reads all of a handle in spt's own encoding.
func (c *contentCheck) native(ctx context.Context, u work.Unit) (_ struct{}, err error) {
	if u.Handle.Slot == format.SlotManaged {
		h, err := u.OperatorHandle(c.sp)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, native.Codec{}.Verify(ctx, c.snap.src, h)
	}
	h, err := u.KeyedHandle(c.sp)
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, native.VerifyKeyed(ctx, c.snap.src, h.(*format.KeyGroups), c.sp.Operators[u.Handle.Operator].MaxParallelism)
}

func streamKey(s format.Stream) string {
	if s == nil {
		return ""
	}
	return s.Key().String()
}

// array is the identity of an array of offsets: equal arrays of an .spt file
// share memory. Different arrays have different identities.
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
