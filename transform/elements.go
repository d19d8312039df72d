package transform

import (
	"cmp"
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
)

// maxCoordinator bounds the state of a coordinator that is read.
const maxCoordinator = 256 << 20

// Undecoded is state of a connector that is not decoded.
type Undecoded struct {
	State    string // "": of the coordinator
	Subtask  int32  // -1: of the coordinator
	Index    int64
	Elements int64 // with the same reason in the same subtask
	Why      string
}

// connectorElement is an element of a state of a connector.
type connectorElement struct {
	Subtask *format.Subtask
	State   int // in the states of the managed handle
	Name    string
	Meta    []byte // state meta info
	format.Element
	Decoded value.Value
	Why     string // why it is not decoded; "": Decoded is set
}

// eachConnectorElement calls f with the elements of the states that pick selects, by
// subtask. It calls f only for states of connectors.
func eachConnectorElement(ctx context.Context, in format.View, op *format.Operator, pick func(name string) bool, f func(connectorElement) error) error {
	subs := slices.Clone(op.Subtasks)
	slices.SortStableFunc(subs, func(a, b *format.Subtask) int { return cmp.Compare(a.Index, b.Index) })
	for _, sub := range subs {
		h := sub.Managed
		if h == nil || h.Codec != format.CodecFlink {
			continue
		}
		if !slices.ContainsFunc(h.States, func(st format.NamedState) bool { return pick(st.Name.String()) }) {
			continue
		}
		codec, err := in.Codec(h.Codec)
		if err != nil {
			return err
		}
		metas, err := codec.Describe(ctx, in.Source, h)
		if err != nil {
			return format.At(format.At(err, "subtask %d", sub.Index), "operator %q", op.Label())
		}
		for _, m := range metas {
			name := m.Name.String()
			values, ok := connector.Elements(name, m.Envelope)
			k := stateIndex(h, m.Name, m.Mode)
			if !ok || !pick(name) || k < 0 || m.Mode == format.ModeBroadcast {
				continue
			}
			err = format.EachElement(ctx, in.Source, codec, h, name, func(e format.Element) error {
				c := connectorElement{Subtask: sub, State: k, Name: name, Meta: m.Envelope, Element: e}
				if c.Decoded, err = value.ReadAll(values, e.Value); err != nil {
					c.Why = err.Error()
				} else if why, ok := connector.NotDecoded(c.Decoded); ok {
					c.Why = why
				}
				return f(c)
			})
			if err != nil {
				return format.At(format.At(err, "subtask %d", sub.Index), "operator %q", op.Label())
			}
		}
	}
	return nil
}

// sourceCoordinator returns the decoded state of the coordinator of an operator, or why it
// is not decoded; null if it lists nothing. of is the connector, "" if unknown. ok is false if the operator has no
// coordinator state.
func sourceCoordinator(ctx context.Context, in format.View, op *format.Operator, of string) (v value.Value, why string, ok bool, err error) {
	if op.Coordinator == nil {
		return value.Null(), "", false, nil
	}
	p, err := coordinatorBytes(ctx, in, op)
	if err != nil {
		return value.Null(), "", true, format.At(format.At(err, "coordinator"), "operator %q", op.Label())
	}
	if v, err = value.ReadAll(connector.Coordinator(of), p); err != nil {
		return value.Null(), err.Error(), true, nil //nolint:nilerr // the reason
	}
	why, undecoded := connector.NotDecoded(v)
	switch {
	case undecoded && connector.IsEmpty(v):
		return value.Null(), "", true, nil
	case undecoded:
		return value.Null(), why, true, nil
	}
	return v, "", true, nil
}

func coordinatorBytes(ctx context.Context, in format.View, op *format.Operator) ([]byte, error) {
	n, err := format.StreamSize(ctx, in.Source, op.Coordinator)
	if err != nil {
		return nil, err
	}
	if n > maxCoordinator {
		return nil, format.Errorf(format.ErrLimit, "%d bytes, the limit is %d", n, maxCoordinator)
	}
	p := make([]byte, n)
	_, err = in.ReadAt(ctx, op.Coordinator, p, 0)
	return p, err
}
