package command

import (
	"context"
	"errors"
	"io"
	"testing"
)

// A pipe that nobody writes to does not keep spt from being interrupted.
func TestSideFileIsInterrupted(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := &Env{Stdin: r}
	if _, err := env.readSide(ctx, "--names", "-"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
