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
	if name == "-" {
		if of := e.sides.stdinOf; of != "" && of != flag {
			return nil, usagef("%s - and %s -: standard input is there once", of, flag)
		}
		e.sides.stdinOf = flag
	}
	if text, done := e.sides.texts[name]; done {
		return text, nil
	}
	type answer struct {
		text []byte
		err  error
	}
	// A pipe that nobody writes to cannot be interrupted: it is left to wait.
	read := make(chan answer, 1)
	go func() {
		text, err := e.sideText(ctx, name)
		read <- answer{text, err}
	}()
	var a answer
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a = <-read:
	}
	switch {
	case a.err != nil:
		return nil, fmt.Errorf("%s: %w", flag, a.err)
	case len(a.text) > maxSideFile:
		return nil, usagef("%s %s: more than %d bytes", flag, ui.Quote(name), maxSideFile)
	case bytes.HasPrefix(a.text, []byte("\xff\xfe")), bytes.HasPrefix(a.text, []byte("\xfe\xff")):
		return nil, &usageError{fmt.Sprintf("%s %s: it is UTF-16 text", flag, ui.Quote(name)), "save it as UTF-8"}
	}
	// Some editors put a byte order mark before UTF-8. It is not part of the text.
	text := bytes.TrimPrefix(a.text, []byte("\xef\xbb\xbf"))
	if e.sides.texts == nil {
		e.sides.texts = map[string][]byte{}
	}
	e.sides.texts[name] = text
	return text, nil
}

func (e *Env) sideText(ctx context.Context, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(e.Stdin, maxSideFile+1))
	}
	store, at, err := e.Stores.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	var body io.ReadCloser
	if s, ok := store.(ability.Streamer); ok {
		body, err = s.Stream(ctx, at)
	} else {
		body, _, err = store.ReadRange(ctx, at, 0, maxSideFile+1, "")
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(body, maxSideFile+1))
	return text, errors.Join(err, body.Close())
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
