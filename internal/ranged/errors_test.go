package ranged_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

func TestClassify(t *testing.T) {
	wrap := func(err error) error {
		return fmt.Errorf("x: %w", &storage.Error{Op: "read", Name: "x", Err: err})
	}
	for err, want := range map[error]ranged.Class{
		storage.ErrUnavailable:  ranged.Transient,
		storage.ErrChanged:      ranged.InputChanged,
		storage.ErrNotExist:     ranged.Permanent,
		storage.ErrNoSpace:      ranged.Permanent,
		io.ErrUnexpectedEOF:     ranged.Permanent, // decoders say so of a file that is too short
		context.Canceled:        ranged.Permanent,
		errors.New("of others"): ranged.Permanent,
		errors.Join(storage.ErrUnavailable, context.DeadlineExceeded): ranged.Permanent,
	} {
		if got := ranged.Classify(wrap(err)); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}
