package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ui"
)

// maxSideFile bounds what a person could have written.
const maxSideFile = 16 << 20

// sideFiles are the small files that flags name. Each is read once: what came
// out of a pipe does not come again.
type sideFiles struct {
	texts   map[string][]byte
	stdinOf string // the flag that has standard input
}

// readSide reads a file that a flag names, - being standard input.
func (e *Env) readSide(ctx context.Context, flag, name string) ([]byte, error) {
	if err := e.sides.claim(flag, name); err != nil {
		return nil, err
	}
	if text, done := e.sides.texts[name]; done {
		return text, nil
	}
	body, err := e.sideBody(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	text, err := io.ReadAll(io.LimitReader(body, maxSideFile+1))
	if err = errors.Join(err, body.Close()); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	case len(text) > maxSideFile:
		return nil, usagef("%s %s: more than %d bytes", flag, ui.Quote(name), maxSideFile)
	}
	if text, err = sideText(flag, name, text); err != nil {
		return nil, err
	}
	if e.sides.texts == nil {
		e.sides.texts = map[string][]byte{}
	}
	e.sides.texts[name] = text
	return text, nil
}

// claim notes which flag has standard input.
func (s *sideFiles) claim(flag, name string) error {
	if name != "-" {
		return nil
	}
	if s.stdinOf != "" && s.stdinOf != flag {
		return usagef("%s - and %s -: standard input is there once", s.stdinOf, flag)
	}
	s.stdinOf = flag
	return nil
}

// sideText returns the text of a side file, or of its beginning, without a mark that
// some editors put before UTF-8.
func sideText(flag, name string, text []byte) ([]byte, error) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, &usageError{fmt.Sprintf("%s %s: it is UTF-16 text", flag, ui.Quote(name)), "save it as UTF-8"}
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil
}

// sideBody opens a side file, or returns standard input. Opening and reading end with
// the context, also of a pipe that nobody writes to.
func (e *Env) sideBody(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == "-" {
		return &sideReader{ctx, io.NopCloser(e.Stdin)}, nil
	}
	store, at, err := e.Stores.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	body, err := interruptible(ctx, func() (io.ReadCloser, error) {
		if s, ok := store.(ability.Streamer); ok {
			return s.Stream(ctx, at)
		}
		body, _, err := store.ReadRange(ctx, at, 0, -1, "")
		return body, err
	})
	if err != nil {
		return nil, err
	}
	return &sideReader{ctx, body}, nil
}

// sideReader reads until its context ends. Its buffer must not be used after that,
// because the read goes on.
type sideReader struct {
	ctx context.Context
	io.ReadCloser
}

func (r *sideReader) Read(p []byte) (int, error) {
	return interruptible(r.ctx, func() (int, error) { return r.ReadCloser.Read(p) })
}

// interruptible calls f, and returns when the context ends: f is left to wait.
func interruptible[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := f()
		done <- answer{v, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case a := <-done:
		return a.value, a.err
	}
}

// readNames reads uids, one a line; empty lines and lines that start with # do
// not count.
func (e *Env) readNames(ctx context.Context, name string) ([]string, error) {
	text, err := e.readSide(ctx, "--names", name)
	if err != nil {
		return nil, err
	}
	var uids []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			uids = append(uids, strings.TrimSpace(line))
		}
	}
	return uids, nil
}
