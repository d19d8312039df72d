package ranged

import (
	"context"
	"errors"
	"io"

	"github.com/savepoint-tools/spt/storage"
)

// copyBuffer is the size of the buffer for bytes copied through this process.
const copyBuffer = 1 << 20

// CopyRange appends a range of an object to w, a writer of dst, in the cheapest
// way that both stores support. off and n are as in ReadRange, but a range past
// the end is an error.
func CopyRange(ctx context.Context, dst storage.Storage, w storage.Writer, src storage.Storage, name string, off, n int64, pin storage.Version) error {
	if c, ok := dst.(storage.Copier); ok {
		if err := c.CopyRange(ctx, w, src, name, off, n, pin); !errors.Is(err, storage.ErrUnsupported) {
			return err
		}
	}
	body, info, err := NewReader(src, name, pin).Open(ctx, off, n)
	if err != nil {
		return err
	}
	defer body.Close()
	start, end, err := Span("copy", info, off, n)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, body, make([]byte, min(copyBuffer, 1+end-start)))
	return err
}
