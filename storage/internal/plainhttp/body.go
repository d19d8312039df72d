package plainhttp

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/storage"
)

// Body is the range of an answer that was asked for.
type Body struct {
	ctx  context.Context
	name string
	rc   io.ReadCloser
	left int64
	err  error // sticky
}

// NewBody returns a body of n bytes, of an answer that may have more. Closing it
// early ends the transfer.
func NewBody(ctx context.Context, name string, rc io.ReadCloser, n int64) *Body {
	return &Body{ctx: ctx, name: name, rc: rc, left: n}
}

// Read implements io.Reader. A body that was cut off is storage.ErrUnavailable.
func (b *Body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		b.err = &storage.Error{Op: "read", Name: b.name, Err: err}
	}
	switch {
	case b.err != nil:
		return 0, b.err
	case b.left == 0:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	n, err := b.rc.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case b.left == 0:
		err = io.EOF
	case errors.Is(err, io.EOF):
		b.err = &storage.Error{Op: "read", Name: b.name, Err: fmt.Errorf("the answer ended %d bytes early: %w", b.left, storage.ErrUnavailable)}
		err = b.err
	case err != nil:
		b.err = Unreachable(b.ctx, "read", b.name, err)
		err = b.err
	}
	return n, err
}

// Close implements io.Closer.
func (b *Body) Close() error { return b.rc.Close() }
