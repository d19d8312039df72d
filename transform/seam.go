package transform

import (
	"context"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/summary"
)

// RenameOperator is an operator of either side of FindRenames.
type RenameOperator = renameOperator

// NewRenameOperator returns an operator for FindRenames.
func NewRenameOperator(op *format.Operator, sum *summary.Operator, schemas types.Schemas) *RenameOperator {
	return newRenameOperator(op, sum, Schemas(schemas))
}

// FindRenames finds operators that are likely one under two ids: gone are only on
// the older side, come only on the newer side, and kept on both.
func FindRenames(ctx context.Context, gone, come []*RenameOperator, kept [][2]*RenameOperator) (*Renames, error) {
	return findRenames(ctx, gone, come, kept)
}
