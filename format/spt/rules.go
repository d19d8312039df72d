package spt

import (
	"fmt"

	"github.com/savepoint-tools/spt/format"
)

// The invariants of the model of every .spt file: docs/format.md, "What a reader
// refuses". A file that violates one is not opened, and a savepoint that does is
// not written, so that users of the model need not check them again.

func corrupt(text string, args ...any) error {
	return format.Errorf(format.ErrCorrupt, text, args...)
}

func unsupported(text string, args ...any) error {
	return format.Errorf(format.ErrUnsupported, text, args...)
}

func checkSavepoint(sp *format.Savepoint) error {
	if int(sp.Kind.Type) >= len(snapshotTypes) || int(sp.Kind.Format) >= len(savepointFormats) {
		return fmt.Errorf("internal error: a snapshot of kind %d/%d", uint8(sp.Kind.Type), uint8(sp.Kind.Format)) // cannot be read from a file
	}
	if sp.ID < 0 {
		return corrupt("checkpoint id %d is negative", sp.ID)
	}
	return nil
}

func checkOperator(o *format.Operator) error {
	if o.Parallelism < 0 || o.Parallelism > format.MaxKeyGroups {
		return corrupt("parallelism %d is outside 0 to %d", o.Parallelism, format.MaxKeyGroups)
	}
	if o.MaxParallelism < 0 || o.MaxParallelism > format.MaxKeyGroups {
		return corrupt("max parallelism %d is outside 0 to %d", o.MaxParallelism, format.MaxKeyGroups)
	}
	if o.Finished && (o.Coordinator != nil || len(o.Subtasks) > 0) {
		return corrupt("a fully finished operator with state")
	}
	return checkSubtasks(o.Subtasks)
}

// checkSubtasks returns an error for a duplicate index. Lists that ascend, as most
// do, need no memory.
func checkSubtasks(all []*format.Subtask) error {
	ascending := true
	for i, s := range all {
		ascending = ascending && (i == 0 || all[i-1].Index < s.Index)
	}
	if ascending {
		return nil
	}
	seen := make([]uint64, (format.MaxKeyGroups+63)/64)
	for _, s := range all {
		word, bit := s.Index/64, uint64(1)<<(s.Index%64)
		if seen[word]&bit != 0 {
			return corrupt("duplicate subtask %d", s.Index)
		}
		seen[word] |= bit
	}
	return nil
}

func checkSubtask(s *format.Subtask) error {
	if s.Index < 0 || s.Index >= format.MaxKeyGroups {
		return corrupt("subtask index %d is outside 0 to %d", s.Index, format.MaxKeyGroups-1)
	}
	if s.Finished && (s.Managed != nil || s.Raw != nil || s.ManagedKeyed != nil || s.RawKeyed != nil || len(s.Input)+len(s.Output)+len(s.Legacy) > 0) {
		return corrupt("a finished subtask with state")
	}
	if h := s.Managed; h != nil && h.Codec == format.CodecRaw {
		return corrupt("codec %q in managed state", h.Codec)
	}
	if h := s.Raw; h != nil && h.Codec != format.CodecRaw && h.Codec != "" {
		return corrupt("codec %q in raw state", h.Codec)
	}
	if codec, ok := keyedCodec(s.ManagedKeyed, func(c format.CodecID) bool { return c == format.CodecRaw }); ok {
		return corrupt("codec %q in managed keyed state", codec)
	}
	if codec, ok := keyedCodec(s.RawKeyed, func(c format.CodecID) bool { return c != format.CodecRaw && c != "" }); ok {
		return corrupt("codec %q in raw keyed state", codec)
	}
	return nil
}

// keyedCodec returns the first codec in a keyed handle for which is returns true.
func keyedCodec(h format.KeyedHandle, is func(format.CodecID) bool) (format.CodecID, bool) {
	switch h := h.(type) {
	case *format.KeyGroups:
		return h.Codec, is(h.Codec)
	case *format.Changelog:
		for _, all := range [][]format.KeyedHandle{h.Materialized, h.Changes} {
			for _, m := range all {
				if codec, ok := keyedCodec(m, is); ok {
					return codec, ok
				}
			}
		}
	}
	return "", false
}

func checkCodec(c format.CodecID) error {
	switch c {
	case "", format.CodecFlink, format.CodecRaw, format.CodecNative:
		return nil
	}
	return unsupported("unknown codec %q", c)
}

func checkHandle(h *format.OperatorHandle) error {
	if err := checkCodec(h.Codec); err != nil {
		return err
	}
	seen := make(map[string]bool, min(len(h.States), 64))
	var elements int64
	for i := range h.States {
		s := &h.States[i]
		if s.Mode > format.ModeBroadcast {
			return unsupported("state %q has mode %d; this program reads 0 to %d", s.Name, uint8(s.Mode), format.ModeBroadcast)
		}
		if seen[s.Name.String()] {
			return corrupt("duplicate state %q", s.Name)
		}
		seen[s.Name.String()] = true
		n := offsetsLen(s.Offsets)
		if n > 0 && h.Data == nil {
			return corrupt("state %q has %d elements, but the handle has no stream", s.Name, n)
		}
		if h.Codec == format.CodecNative && s.Mode == format.ModeBroadcast && n != 1 {
			return corrupt("expected 1 offset of native broadcast state %q, found %d", s.Name, n)
		}
		elements += min(n, 1<<40) // cannot overflow: a handle has fewer than 2^23 states
	}
	if size := format.SizeOf(h.Data); h.Codec == format.CodecNative && (h.Data == nil || h.Data.Size() >= 0) && (elements > size || elements == 0 && size > 0) {
		// Native elements are not empty, and every byte belongs to one.
		return corrupt("%d elements of native state in %d bytes", elements, size)
	}
	return nil
}

func offsetsLen(o format.Offsets) int64 {
	if o == nil {
		return 0
	}
	return o.Len()
}

func checkSegment(s *format.Segment) error {
	if s.Scope != format.ScopeExclusive && s.Scope != format.ScopeShared {
		return unsupported("scope %d of a segment; this program reads 0 and 1", s.Scope)
	}
	return nil
}

// checkRange checks a range of key groups. An operator has at most 32,768.
func checkRange(r format.KeyGroupRange) error {
	if r.First < 0 || r.Count < 0 || int64(r.First)+int64(r.Count) > format.MaxKeyGroups {
		return corrupt("range of %d key groups from %d is outside 0 to %d", r.Count, r.First, format.MaxKeyGroups-1)
	}
	return nil
}

func checkKeyGroups(r format.KeyGroupRange, o format.Offsets) error {
	if err := checkRange(r); err != nil {
		return err
	}
	if n := offsetsLen(o); n != int64(r.Count) {
		return corrupt("%d offsets for %d key groups", n, r.Count)
	}
	return nil
}

func checkKeyGroupsHandle(h *format.KeyGroups) error {
	if err := checkCodec(h.Codec); err != nil {
		return err
	}
	if h.Codec == format.CodecNative && h.Savepoint {
		return corrupt("native keyed state in the canonical savepoint format")
	}
	if h.Codec == format.CodecNative && h.Range.Count == 0 {
		return corrupt("native keyed state without key groups")
	}
	if h.Data == nil {
		return errNoStream("a keyed handle")
	}
	return checkKeyGroups(h.Range, h.Offsets)
}

func errNoStream(what string) error { return corrupt("%s without a stream", what) }

func checkKeyGroupStream(s *format.KeyGroupStream) error {
	if s.Data == nil {
		return errNoStream("a key-group stream")
	}
	return checkKeyGroups(s.Range, s.Offsets)
}

func checkIncremental(h *format.Incremental) error {
	if h.Meta == nil {
		return errNoStream("the metadata of a state backend")
	}
	return checkRange(h.Range)
}

func checkNamed(n *format.NamedStream) error {
	if n.Data == nil {
		return errNoStream("a file of a state backend")
	}
	return nil
}

func checkOffsetStream(s *format.OffsetStream) error {
	if s.Data == nil {
		return errNoStream("a changelog")
	}
	return nil
}

func checkChangelog(h *format.Changelog) error {
	for i, c := range h.Changes {
		switch c.(type) {
		case nil, *format.ChangelogMemory, *format.ChangelogStream:
		default:
			return corrupt("change %d is not a changelog", i)
		}
	}
	if _, ok := keyedCodec(h, func(c format.CodecID) bool { return c == format.CodecNative }); ok {
		return corrupt("native keyed state in a changelog")
	}
	return checkRange(h.Range)
}

func checkChannels(h *format.ChannelHandle) error {
	if !h.Merged && len(h.Channels) != 1 {
		return corrupt("expected one channel in a channel handle that is not merged, found %d", len(h.Channels))
	}
	if h.Data == nil {
		return errNoStream("a channel handle")
	}
	return nil
}
