package transform

import (
	"context"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
)

// formFor is a codec of whose streams releases read different forms.
type formFor interface {
	// FormFor gives the form in which a release reads streams of the form w: w
	// itself, or another that the codec builds of the same elements.
	FormFor(w format.Wire, r assign.Release) (format.Wire, error)
}

// OperatorStateFor gives the savepoint with managed operator state as a release
// of Flink reads it, and the number of handles that are described anew for it.
// Elements stay as they are. It is an ErrUnsupported where there is no such form.
func OperatorStateFor(ctx context.Context, in format.View, r assign.Release) (format.View, int, error) {
	n := 0
	handle := func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
		codec, err := in.Codec(h.Codec)
		if err != nil {
			return nil, err
		}
		forms, ok := codec.(formFor)
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
			if to[m.Form], err = forms.FormFor(m.Form, r); err != nil {
				return nil, err
			}
			same = same && to[m.Form] == m.Form
		}
		if same {
			return h, nil
		}
		n++
		return rebuildStates(ctx, in, h, func(s *format.StateRuns) bool {
			s.Form = to[s.Form]
			return true
		})
	}
	sp, err := in.MapOperators(func(op *format.Operator) (*format.Operator, error) { return op.MapManaged(handle) })
	if err != nil {
		return in, 0, err
	}
	return in.With(sp), n, nil
}
