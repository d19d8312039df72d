package transform

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
)

// ReencodeOptions are the options of Reencode.
type ReencodeOptions struct {
	// Release is the release of Flink that must read the state. It is required.
	Release flink.Release
}

// ReencodeReport describes what Reencode did.
type ReencodeReport struct {
	Handles int // handles whose encoding changed
}

// encodingFor is a codec with encodings that not every release reads.
type encodingFor interface {
	// EncodingFor returns an encoding that a release reads for streams of the
	// encoding w: w itself, or another that can hold the same elements.
	EncodingFor(w format.Wire, r flink.Release) (format.Wire, error)
}

// Reencode encodes managed operator state so that a release of Flink reads it.
// Elements are unchanged. State without such an encoding is an ErrUnsupported.
func Reencode(ctx context.Context, v format.View, o ReencodeOptions) (format.View, *ReencodeReport, error) {
	if o.Release == 0 {
		return v, nil, errors.New("Reencode needs Release, the release that reads the state")
	}
	r := &ReencodeReport{}
	sp, err := v.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		return op.MapManaged(func(h *format.OperatorHandle) (*format.OperatorHandle, error) { return r.handle(ctx, v, h, o.Release) })
	})
	if err != nil {
		return v, nil, err
	}
	return v.With(sp), r, nil
}

func (r *ReencodeReport) handle(ctx context.Context, v format.View, h *format.OperatorHandle, release flink.Release) (*format.OperatorHandle, error) {
	codec, err := v.Codec(h.Codec)
	if err != nil {
		return nil, err
	}
	encodings, ok := codec.(encodingFor)
	if !ok {
		return h, nil
	}
	metas, err := codec.Describe(ctx, v.Source, h)
	if err != nil {
		return nil, err
	}
	to := make(map[format.Wire]format.Wire, 1)
	same := true
	for _, m := range metas {
		if to[m.Encoding], err = encodings.EncodingFor(m.Encoding, release); err != nil {
			return nil, err
		}
		same = same && to[m.Encoding] == m.Encoding
	}
	if same {
		return h, nil
	}
	r.Handles++
	return rebuildStates(ctx, v, h, func(s *format.StateRuns) bool {
		s.Encoding = to[s.Encoding]
		return true
	})
}
