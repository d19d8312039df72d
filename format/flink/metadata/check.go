package metadata

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/fingerprint"
)

// Check returns an error unless sp, which may come from another container than
// _metadata, can be written as _metadata and decodes to the same model. A hostile
// file can set a model, especially its Wire, to values that _metadata cannot store.
// Check reads no bytes of streams and no offsets. The error names the operator. It
// matches format.ErrCorrupt if sp claims to come from a _metadata, and
// format.ErrUnsupported otherwise.
//
// Streams without a tag in _metadata are checked as their origins, or as files.
// State in spt's own encoding is not checked.
func Check(ctx context.Context, sp *format.Savepoint) error {
	shell := *sp
	shell.Operators = nil
	if err := checkOne(ctx, &shell); err != nil {
		return err
	}
	version, ok := VersionOf(sp)
	if !ok {
		version = Latest
	}
	shell.Masters = nil
	for _, op := range sp.Operators {
		if err := ctx.Err(); err != nil {
			return err
		}
		shell.Operators = []*format.Operator{bare(op, version)}
		if err := checkOne(ctx, &shell); err != nil {
			return format.At(err, "operator %q", op.Label())
		}
	}
	return nil
}

// checkOne encodes and decodes a savepoint without content.
func checkOne(ctx context.Context, sp *format.Savepoint) error {
	sp, _ = Trim(sp) // callers of Trim report the loss
	var b bytes.Buffer
	err := Encode(ctx, &b, sp, nil)
	if err == nil {
		var back *format.Savepoint
		if back, err = Decode(format.NewBytes(b.Bytes()), Options{}); err == nil {
			var same bool
			if same, err = fingerprint.Same(ctx, sp, back, nil); err == nil && !same {
				err = errors.New("a field has a value that _metadata cannot store")
			}
		}
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	kind := format.ErrCorrupt
	version, ok := VersionOf(sp)
	if !ok { // no version: it does not claim to come from Flink
		version = Latest
	}
	if !ok || errors.Is(err, format.ErrUnsupported) {
		kind = format.ErrUnsupported
	}
	return format.Errorf(kind, "it cannot be written as Flink's metadata %s: %s", version, reason(err))
}

// reason returns the text of an error without its offset in the encoded bytes,
// which are not a file.
func reason(err error) string {
	var e *format.Error
	if errors.As(err, &e) && e.Msg != "" {
		if e.Path != "" {
			return fmt.Sprintf("%s: %s", e.Path, e.Msg)
		}
		return e.Msg
	}
	return err.Error()
}

// bare returns an operator without the content of streams and the offsets of
// elements.
func bare(op *format.Operator, version Version) *format.Operator {
	b := bareness{version}
	c := *op
	c.Coordinator = b.stream(op.Coordinator)
	c.Subtasks = make([]*format.Subtask, len(op.Subtasks))
	for i, s := range op.Subtasks {
		n := *s
		n.Managed, n.Raw = b.handle(s.Managed, format.CodecFlink), b.handle(s.Raw, format.CodecRaw)
		n.ManagedKeyed, n.RawKeyed = b.keyed(s.ManagedKeyed, format.CodecFlink), b.keyed(s.RawKeyed, format.CodecRaw)
		n.Input, n.Output = b.channels(s.Input), b.channels(s.Output)
		n.Legacy = nil
		for _, l := range s.Legacy {
			n.Legacy = append(n.Legacy, b.stream(l))
		}
		c.Subtasks[i] = &n
	}
	return &c
}

type bareness struct{ v Version }

var noOffsets format.Offsets = format.OffsetSlice{}

func (b bareness) stream(s format.Stream) format.Stream {
	switch s := s.(type) {
	case *format.Inline:
		return &format.Inline{Name: s.Name}
	case *format.File:
		if s.Relative && !b.v.HasRelativeFiles() { // writers make it absolute
			return &format.File{Path: s.Path, Length: s.Length}
		}
	case *format.KeyGroupStream:
		return &format.KeyGroupStream{Range: format.KeyGroupRange{First: s.Range.First}, Offsets: noOffsets, Data: b.stream(s.Data)}
	case *format.Chunks:
		return b.origin(s.As, s.Length)
	case *format.Concat:
		return b.origin(s.As, s.Size())
	}
	return s
}

// origin returns the stream as which bytes without a file of their own are written.
func (b bareness) origin(as format.Stream, size int64) format.Stream {
	if as == nil {
		return &format.File{Path: format.NewText("file:/f"), Length: size}
	}
	return b.stream(as)
}

// codec returns the codec of the handle, or the codec of its slot if the state is
// in spt's own encoding.
func (b bareness) codec(c, slot format.CodecID) format.CodecID {
	if c == format.CodecNative {
		return slot
	}
	return c
}

func (b bareness) handle(h *format.OperatorHandle, slot format.CodecID) *format.OperatorHandle {
	if h == nil {
		return nil
	}
	c := *h
	c.Codec, c.Data = b.codec(h.Codec, slot), b.stream(h.Data)
	c.States = make([]format.NamedState, len(h.States))
	for i, s := range h.States {
		c.States[i] = format.NamedState{Name: s.Name, Mode: s.Mode, Offsets: noOffsets}
	}
	return &c
}

func (b bareness) channels(all []*format.ChannelHandle) []*format.ChannelHandle {
	out := make([]*format.ChannelHandle, len(all))
	for i, h := range all {
		c := *h
		c.Data = b.stream(h.Data)
		c.Channels = make([]format.Channel, len(h.Channels))
		for k, ch := range h.Channels {
			ch.Offsets = noOffsets
			c.Channels[k] = ch
		}
		out[i] = &c
	}
	return out
}

func (b bareness) keyed(h format.KeyedHandle, slot format.CodecID) format.KeyedHandle {
	named := func(all []format.NamedStream) []format.NamedStream {
		out := make([]format.NamedStream, len(all))
		for i, n := range all {
			out[i] = format.NamedStream{Name: n.Name, Data: b.stream(n.Data)}
		}
		return out
	}
	list := func(all []format.KeyedHandle) []format.KeyedHandle {
		out := make([]format.KeyedHandle, len(all))
		for i, m := range all {
			out[i] = b.keyed(m, slot)
		}
		return out
	}
	switch h := h.(type) {
	case *format.KeyGroups:
		c := *h
		c.Codec, c.Data = b.codec(h.Codec, slot), b.stream(h.Data)
		c.Range.Count, c.Offsets = 0, noOffsets
		return &c
	case *format.Incremental:
		c := *h
		c.Meta, c.Shared, c.Private = b.stream(h.Meta), named(h.Shared), named(h.Private)
		return &c
	case *format.Changelog:
		c := *h
		c.Materialized, c.Changes = list(h.Materialized), list(h.Changes)
		return &c
	case *format.ChangelogMemory:
		return h
	case *format.ChangelogStream:
		c := *h
		c.Streams = make([]format.OffsetStream, len(h.Streams))
		for i, s := range h.Streams {
			c.Streams[i] = format.OffsetStream{Offset: s.Offset, Data: b.stream(s.Data)}
		}
		return &c
	}
	return h
}
