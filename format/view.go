package format

// View is a savepoint and access to its bytes: the argument and the result of every
// edit. Package reader opens one, package transform edits it, package writer writes
// it.
//
// An edit never changes the savepoint of its argument. The View it returns shares
// what it did not change and reads through the same Source, so edits can be chained
// in any order:
//
//	view, dropped, err := transform.Drop(ctx, view, transform.DropOptions{Operators: format.Selector{"debug-sink"}})
//	view, pruned, err := transform.PruneUnion(ctx, view, transform.PruneOptions{Keep: transform.KeepDistinct})
//
// A View is valid until the files of its Source are closed.
type View struct {
	*Savepoint
	Source
	Codecs
}

// Codecs returns the codec of each encoding of state. For an unknown encoding the
// error matches ErrUnsupported.
type Codecs interface {
	// Codec returns the codec of operator state.
	Codec(id CodecID) (OperatorCodec, error)
	// KeyedCodec returns the codec of a handle of keyed state of an operator, whose
	// max parallelism determines how keys are encoded.
	KeyedCodec(op *Operator, h KeyedHandle) (KeyedCodec, error)
}

// With returns a View of another savepoint with the Source and Codecs of v.
func (v View) With(sp *Savepoint) View {
	v.Savepoint = sp
	return v
}
