package types

import (
	"context"

	"github.com/savepoint-tools/spt/format"
)

// Schemas returns how the states of an operator are serialized: each different
// serializer snapshot of a state once. unread is what could not be read or decoded.
type Schemas func(ctx context.Context, op *format.Operator) (schema Schema, unread []error, err error)
