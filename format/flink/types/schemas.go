package types

import (
	"context"

	"github.com/savepoint-tools/spt/format"
)

// Schemas returns the serializers of the states of an operator, each distinct
// serializer snapshot of a state once. unread is the errors of state that could not
// be read or decoded.
type Schemas func(ctx context.Context, op *format.Operator) (schema Schema, unread []error, err error)
