// Package fingerprint compares what two savepoints say, whatever container holds them.
package fingerprint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/maphash"

	"github.com/savepoint-tools/spt/format"
)

// Of returns a digest of a savepoint without Location and Wire. Inline
// state is digested by its bytes, wherever they are stored; files by reference and
// length.
func Of(ctx context.Context, sp *format.Savepoint, src format.Source) ([32]byte, error) {
	f := fingerprint{ctx: ctx, src: src, h: sha256.New()}
	f.savepoint(sp)
	if f.err != nil { // a fault may have left the hash half way
		return [32]byte{}, f.err
	}
	return [32]byte(f.h.Sum(nil)), nil
}

// Same reports whether two savepoints have equal fingerprints. It is several times
// faster than comparing [Of] both: it uses a non-cryptographic hash with a
// random key, for which collisions cannot be constructed. It reads the streams of
// both savepoints from src.
func Same(ctx context.Context, a, b *format.Savepoint, src format.Source) (bool, error) {
	seed := maphash.MakeSeed()
	var sums [2]uint64
	for i, sp := range []*format.Savepoint{a, b} {
		h := &maphash.Hash{}
		h.SetSeed(seed)
		f := fingerprint{ctx: ctx, src: src, h: h}
		f.savepoint(sp)
		if f.err != nil {
			return false, f.err
		}
		sums[i] = h.Sum64()
	}
	return sums[0] == sums[1], nil
}

func (f *fingerprint) savepoint(sp *format.Savepoint) {
	f.i64(sp.ID)
	f.i64(int64(sp.Kind.Type), int64(sp.Kind.Format))
	f.i64(int64(len(sp.Masters)))
	for _, m := range sp.Masters {
		f.text(m.Name)
		f.i64(int64(m.Version))
		f.bytes(m.Data)
	}
	f.i64(int64(len(sp.Operators)))
	for _, op := range sp.Operators {
		f.operator(op)
	}
}

// fingerprint writes a savepoint to a hash. It keeps the first error.
type fingerprint struct {
	ctx context.Context
	src format.Source
	h   hash.Hash
	buf []byte
	err error
}

func (f *fingerprint) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fingerprint) i64(all ...int64) {
	var b [8]byte
	for _, v := range all {
		binary.LittleEndian.PutUint64(b[:], uint64(v))
		f.h.Write(b[:])
	}
}

func (f *fingerprint) bool(v bool) {
	if v {
		f.i64(1)
	} else {
		f.i64(0)
	}
}

func (f *fingerprint) str(s string) {
	f.i64(int64(len(s)))
	f.h.Write([]byte(s))
}

func (f *fingerprint) text(t format.Text) { raw, _ := t.Raw(); f.str(t.String()); f.str(raw) }

func (f *fingerprint) bytes(b format.Bytes) {
	f.i64(int64(b.Len()))
	f.fail(b.View(func(p []byte) error {
		f.h.Write(p)
		return nil
	}))
}

func (f *fingerprint) operator(op *format.Operator) {
	f.text(op.Name)
	f.text(op.UID)
	f.h.Write(op.ID[:])
	f.i64(int64(op.Parallelism), int64(op.MaxParallelism))
	f.bool(op.Finished)
	f.stream(op.Coordinator)
	f.i64(int64(len(op.Subtasks)))
	for _, s := range op.Subtasks {
		f.i64(int64(s.Index))
		f.bool(s.Finished)
		f.handle(s.Managed)
		f.handle(s.Raw)
		f.keyed(s.ManagedKeyed)
		f.keyed(s.RawKeyed)
		f.channels(s.Input)
		f.channels(s.Output)
		f.i64(int64(len(s.Legacy)))
		for _, st := range s.Legacy {
			f.stream(st)
		}
	}
}

func (f *fingerprint) handle(h *format.OperatorHandle) {
	if h == nil {
		f.i64(-1)
		return
	}
	f.str(string(h.Codec))
	f.i64(int64(len(h.States)))
	for i := range h.States {
		f.text(h.States[i].Name)
		f.i64(int64(h.States[i].Mode))
		f.offsets(h.States[i].Offsets)
	}
	f.stream(h.Data)
	f.bool(h.Merging != nil)
	if m := h.Merging; m != nil {
		f.text(m.TaskOwnedDir)
		f.text(m.SharedDir)
		f.bool(m.Placeholder)
	}
}

func (f *fingerprint) offsets(o format.Offsets) {
	if o == nil {
		f.i64(0)
		return
	}
	f.i64(o.Len())
	f.fail(format.EachOffset(f.ctx, o, func(_ int64, run []int64) error {
		f.buf = f.buf[:0]
		for _, v := range run {
			f.buf = binary.LittleEndian.AppendUint64(f.buf, uint64(v))
		}
		f.h.Write(f.buf)
		return nil
	}))
}

func (f *fingerprint) stream(s format.Stream) {
	switch s := s.(type) {
	case nil:
		f.i64(-1)
	case *format.Inline:
		f.i64(int64(format.KindInline))
		f.text(s.Name)
		f.bytes(s.Data)
	case *format.File:
		f.i64(int64(format.Kind(s)), s.Length)
		f.text(s.Path)
	case *format.Segment:
		f.i64(int64(format.KindSegment), s.Start, s.Length, int64(s.Scope))
		f.text(s.Path)
		f.text(s.LogicalID)
	case *format.EmptySegment:
		f.i64(int64(format.KindEmpty))
	case *format.KeyGroupStream:
		f.i64(-2)
		f.keyGroups(s.Range, s.Offsets)
		f.stream(s.Data)
	case *format.Chunks:
		f.packed(s, s.As)
	case *format.Concat:
		f.packed(s, s.As)
	}
}

// packed writes s as a stream like as: inline with its bytes, otherwise by
// reference.
func (f *fingerprint) packed(s, as format.Stream) {
	in, ok := as.(*format.Inline)
	if !ok {
		f.i64(int64(format.Kind(s)), s.Size())
		f.stream(as)
		return
	}
	f.i64(int64(format.KindInline))
	f.text(in.Name)
	f.i64(s.Size())
	buf := make([]byte, min(s.Size(), 256<<10))
	for off := int64(0); off < s.Size() && f.err == nil; off += int64(len(buf)) {
		p := buf[:min(s.Size()-off, int64(len(buf)))]
		_, err := f.src.ReadAt(f.ctx, s, p, off)
		f.fail(err)
		f.h.Write(p)
	}
}

func (f *fingerprint) keyGroups(r format.KeyGroupRange, o format.Offsets) {
	f.i64(int64(r.First), int64(r.Count))
	f.offsets(o)
}

func (f *fingerprint) keyed(h format.KeyedHandle) {
	switch h := h.(type) {
	case nil:
		f.i64(-1)
	case *format.KeyGroups:
		f.i64(1)
		f.str(string(h.Codec))
		f.bool(h.Savepoint)
		f.keyGroups(h.Range, h.Offsets)
		f.stream(h.Data)
		f.text(h.HandleID)
	case *format.Incremental:
		f.i64(2, h.CheckpointID, h.CheckpointedSize)
		f.text(h.BackendID)
		f.keyGroups(h.Range, nil)
		f.stream(h.Meta)
		f.named(h.Shared)
		f.named(h.Private)
		f.text(h.HandleID)
	case *format.Changelog:
		f.i64(3, h.CheckpointedSize, h.MaterializationID, h.CheckpointID)
		f.keyGroups(h.Range, nil)
		for _, all := range [][]format.KeyedHandle{h.Materialized, h.Changes} {
			f.i64(int64(len(all)))
			for _, c := range all {
				f.keyed(c)
			}
		}
		f.text(h.HandleID)
	case *format.ChangelogMemory:
		f.i64(4, h.From, h.To, int64(len(h.Changes)))
		f.keyGroups(h.Range, nil)
		for _, c := range h.Changes {
			f.i64(int64(c.KeyGroup))
			f.bytes(c.Data)
		}
		f.text(h.HandleID)
	case *format.ChangelogStream:
		f.i64(5, h.StateSize, h.CheckpointedSize, int64(len(h.Streams)))
		f.keyGroups(h.Range, nil)
		for _, s := range h.Streams {
			f.i64(s.Offset)
			f.stream(s.Data)
		}
		f.text(h.HandleID)
		f.text(h.StorageID)
	}
}

func (f *fingerprint) named(all []format.NamedStream) {
	f.i64(int64(len(all)))
	for _, s := range all {
		f.text(s.Name)
		f.stream(s.Data)
	}
}

func (f *fingerprint) channels(all []*format.ChannelHandle) {
	f.i64(int64(len(all)))
	for _, h := range all {
		f.i64(int64(h.Subtask), h.Size, int64(len(h.Channels)))
		f.bool(h.Merged)
		f.stream(h.Data)
		for _, c := range h.Channels {
			f.i64(int64(c.First), int64(c.Second), c.Size)
			f.offsets(c.Offsets)
		}
	}
}
