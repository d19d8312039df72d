package transform

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/savepoint-tools/spt/format"
)

// sequence computes the bytes of a new stream from its start on: reading it in order is
// cheap, and each read of what was passed starts again. It implements format.Maker.
type sequence struct {
	size int64
	// open returns functions that return the next bytes, valid until the next call, or
	// io.EOF, and that end the reading. They are called with the context of the read.
	open func(ctx context.Context, src format.Source) (next func(context.Context) ([]byte, error), stop func() error, err error)

	mu   sync.Mutex // guards the fields below
	next func(context.Context) ([]byte, error)
	stop func() error
	have []byte // bytes from at on
	at   int64
}

// rope returns a stream of the bytes. Streams with equal names hold the same bytes.
func (m *sequence) rope(name string, before ...format.Part) *format.Concat {
	data := &format.Computed{Length: m.size, Name: name, Maker: m}
	return &format.Concat{Parts: append(before, format.Part{Of: data, N: m.size})}
}

// MakeAt implements format.Maker.
func (m *sequence) MakeAt(ctx context.Context, src format.Source, p []byte, off int64) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if err != nil || m.at == m.size {
			err = errors.Join(err, m.end())
		}
	}()
	if m.next == nil || off < m.at {
		if err := m.end(); err != nil {
			return err
		}
		// The reading outlives the call that started it.
		if m.next, m.stop, err = m.open(context.WithoutCancel(ctx), src); err != nil {
			m.next = nil
			return err
		}
	}
	for off > m.at || len(p) > 0 {
		if err := m.fill(ctx); err != nil {
			return err
		}
		n := int(min(off-m.at, int64(len(m.have)))) // to be passed
		if off == m.at {
			n = copy(p, m.have)
			p, off = p[n:], off+int64(n)
		}
		m.have = m.have[n:]
		m.at += int64(n)
	}
	return nil
}

// fill reads on until there are bytes.
func (m *sequence) fill(ctx context.Context) (err error) {
	for len(m.have) == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.have, err = m.next(ctx)
		if err == io.EOF {
			return format.Errorf(format.ErrChanged, "the stream takes %d bytes now, not %d", m.at, m.size)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// end stops the reading.
func (m *sequence) end() error {
	if m.next == nil {
		return nil
	}
	err := m.stop()
	m.next, m.stop, m.have, m.at = nil, nil, nil, 0
	return err
}
