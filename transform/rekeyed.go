package transform

import (
	"bytes"
	"context"
	"io"

	"github.com/savepoint-tools/spt/format"
)

// rekeyed builds keyed state again from its entries.
type rekeyed struct {
	codec  format.KeyedCodec
	schema format.KeyedSchema // of the result
	of     format.KeyedHandle
	sel    format.KeyedSelection
	// edit returns a function that changes the entries of one reading.
	edit func() func(e *format.KeyedEntry) error
}

// counter counts bytes and discards them.
type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

// build reads all entries once and returns the handle of the result, whose bytes are
// computed again when they are read, and the number of entries.
func (r *rekeyed) build(ctx context.Context, src format.Source, name string) (*format.KeyGroups, int64, error) {
	var size counter
	b, err := r.codec.Build(ctx, r.schema, r.of.KeyGroups(), &size)
	if err != nil {
		return nil, 0, err
	}
	entries, edit := int64(0), r.edit()
	err = format.EachKeyedEntry(ctx, src, r.codec, r.of, r.sel, func(e format.KeyedEntry) error {
		entries++
		if err := edit(&e); err != nil {
			return err
		}
		return b.Add(e)
	})
	if err != nil {
		return nil, 0, err
	}
	h, err := b.Handle()
	if err != nil {
		return nil, 0, err
	}
	h.Data = (&sequence{size: int64(size), open: r.open}).rope(name)
	return h, entries, nil
}

// open implements the open of a sequence.
func (r *rekeyed) open(ctx context.Context, src format.Source) (func(context.Context) ([]byte, error), func() error, error) {
	cursor, err := r.codec.Entries(ctx, src, r.of, r.sel)
	if err != nil {
		return nil, nil, err
	}
	var built bytes.Buffer
	builder, err := r.codec.Build(ctx, r.schema, r.of.KeyGroups(), &built)
	if err != nil {
		return nil, nil, err
	}
	edit := r.edit()
	given := 0 // bytes of built that the last call returned; at first it has the header
	next := func(ctx context.Context) ([]byte, error) {
		built.Next(given)
		for built.Len() == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if builder == nil {
				return nil, io.EOF
			}
			e, err := cursor.Next()
			switch {
			case err == io.EOF:
				_, err = builder.Handle()
				builder = nil
			case err == nil:
				if err = edit(&e); err == nil {
					err = builder.Add(e)
				}
			}
			if err != nil {
				return nil, err
			}
		}
		given = built.Len()
		return built.Bytes(), nil
	}
	return next, cursor.Close, nil
}
