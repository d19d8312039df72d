package opstate

import (
	"encoding/binary"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// NewState returns a state that no file has, for Build, in the encoding of a release.
// key is the serializer of the keys of broadcast state, otherwise nil. Both snapshots
// have Raw, as [types.Recorded] returns them.
func NewState(r flink.Release, name format.Text, mode format.Mode, key, val *types.Snapshot) (format.StateMeta, error) {
	version := int32(r.Facts().OperatorState.Newest())
	if version < minWritten {
		return format.StateMeta{}, format.Errorf(format.ErrUnsupported, "operator state of version %d, of Flink %v, contains serializers as Java objects", version, r)
	}
	w, err := encoding{version: version}.wire()
	if err != nil {
		return format.StateMeta{}, err
	}
	p, err := java.AppendText(nil, name)
	if err != nil {
		return format.StateMeta{}, err
	}
	text := func(s string) { // of constants
		p, _ = java.AppendText(p, format.NewText(s))
	}
	number := func(n int) { p = binary.BigEndian.AppendUint32(p, uint32(n)) }
	number(section(mode) + kindOperator)
	number(1)
	text(modeOption)
	text(optionOf(mode))
	number(1 + section(mode))
	text("VALUE_SERIALIZER") // first, as Flink writes them
	p = val.AppendWrapped(p)
	if mode == format.ModeBroadcast {
		text("KEY_SERIALIZER")
		p = key.AppendWrapped(p)
	}
	return format.StateMeta{Name: name, Mode: mode, Envelope: p, Encoding: w}, nil
}

// NewEnvelope returns the head of a stream with these states, list and union states
// before broadcast states. The elements of the states follow in this order; the map of a
// broadcast state is an int count, and its keys and values (spec flink-operator-state A6).
func NewEnvelope(states []format.StateMeta) ([]byte, error) {
	runs := make([]format.StateRuns, len(states))
	for i, s := range states {
		runs[i].StateMeta = s
		if i > 0 && section(s.Mode) < section(states[i-1].Mode) {
			return nil, fmt.Errorf("internal error: list state %q after a broadcast state", s.Name)
		}
	}
	f, err := commonEncoding(runs)
	if err != nil {
		return nil, err
	}
	return buildEnvelope(f, runs)
}
