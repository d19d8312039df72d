package format

// View is a savepoint and access to its bytes: what an edit takes and returns.
// Package reader opens one, package transform edits it, package writer writes it.
//
// An edit never changes the savepoint of its argument. The View it returns shares
// what it did not change, and reads through the same Source, so that edits can be
// chained in any order:
//
//	view, dropped, err := transform.Drop(ctx, view, transform.DropOptions{Operators: format.Selector{"debug-sink"}})
//	view, pruned, err := transform.PruneUnion(ctx, view, transform.PruneOptions{Keep: transform.KeepDistinct})
//
// A View is valid as long as what its Source reads is open.
type View struct {
	*Savepoint
	Source
	Codecs
}

// Codecs has the codec of each encoding of state. An encoding without a codec is an
// error that matches ErrUnsupported.
type Codecs interface {
	// Codec returns the codec of operator state.
	Codec(id CodecID) (OperatorCodec, error)
	// KeyedCodec returns the codec of a handle of keyed state.
	KeyedCodec(h KeyedHandle) (KeyedCodec, error)
}

// With returns a View of another savepoint, whose streams the Source of v reads.
func (v View) With(sp *Savepoint) View {
	v.Savepoint = sp
	return v
}
