package command

import (
	"context"
	"errors"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
)

const (
	stdinName  = "-"              // names standard input as a snapshot
	stdinTitle = "standard input" // how messages call it

	// maxStdin bounds what is read as a snapshot: it is held in memory.
	maxStdin = 4 << 30
)

// stdinStore resolves "-" to what standard input holds, and nothing else: what
// comes from a pipe has no directory in which its files could be.
type stdinStore struct{ *mem.Store }

// Resolve implements storage.Resolver.
func (s stdinStore) Resolve(_ context.Context, uri string) (storage.Storage, string, error) {
	if uri != stdinName {
		return nil, "", &storage.Error{Op: "resolve", Name: uri, Err: storage.ErrUnsupported}
	}
	return s.Store, stdinTitle, nil
}

// readStdin reads a snapshot from standard input.
func (e *Env) readStdin(ctx context.Context) (storage.Resolver, error) {
	if of := e.sides.stdinOf; of != "" {
		return nil, usagef("%s - and - as a snapshot: standard input can be read only once", of)
	}
	e.sides.stdinOf = "a snapshot"
	s := stdinStore{mem.New()}
	read := make(chan error, 1)
	// A pipe that nobody writes to cannot be interrupted: it is left to wait.
	go func() { read <- s.fill(ctx, e.Stdin) }()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case err := <-read:
		return s, err
	}
}

func (s stdinStore) fill(ctx context.Context, in io.Reader) error {
	w, err := s.Create(ctx, stdinTitle, storage.CreateOptions{})
	if err != nil {
		return err
	}
	n, err := io.Copy(w, io.LimitReader(in, maxStdin+1))
	if err == nil && n > maxStdin {
		err = format.InFile(format.Errorf(format.ErrLimit, "more than %s", ui.Bytes(maxStdin)), stdinTitle)
	}
	if err == nil {
		_, err = w.Commit(ctx)
		return err
	}
	return errors.Join(err, w.Abort(ctx))
}
