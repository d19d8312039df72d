package transform

import (
	"context"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
)

// encodingFor is a codec of whose streams releases read different forms.
type encodingFor interface {
	// FormFor gives the form in which a release reads streams of the form w: w
	// itself, or another that the codec builds of the same elements.
	EncodingFor(w format.Wire, r flink.Release) (format.Wire, error)
}

// OperatorStateFor gives the savepoint with managed operator state as a release
// of Flink reads it, and the number of handles that are described anew for it.
// Elements stay as they are. It is an ErrUnsupported where there is no such form.
func OperatorStateFor(ctx context.Context, in format.View, r flink.Release) (format.View, int, error) {
	n := 0
	handle := func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
		codec, err := in.Codec(h.Codec)
		if err != nil {
			return nil, err
		}
		encodings, ok := codec.(encodingFor)
		if !ok {
			return h, nil
		}
		metas, err := codec.Describe(ctx, in.Source, h)
		if err != nil {
			return nil, err
		}
		to := make(map[format.Wire]format.Wire, 1)
		same := true
		for _, m := range metas {
			if to[m.Encoding], err = encodings.EncodingFor(m.Encoding, r); err != nil {
				return nil, err
			}
			same = same && to[m.Encoding] == m.Encoding
		}
		if same {
			return h, nil
		}
		n++
		return rebuildStates(ctx, in, h, func(s *format.StateRuns) bool {
			s.Encoding = to[s.Encoding]
			return true
		})
	}
	sp, err := in.MapOperators(func(op *format.Operator) (*format.Operator, error) { return op.MapManaged(handle) })
	if err != nil {
		return in, 0, err
	}
	return in.With(sp), n, nil
}
