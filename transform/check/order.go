package check

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/transform"
)

// maxAssigned bounds the work of order: handles times subtasks.
const maxAssigned = 2 << 20

// order reports that the order in which elements are assigned depends on the
// location of the snapshot, or is not defined.
func (c *checker) order(ctx context.Context, op *format.Operator, p int32) error {
	if n := int64(len(op.Subtasks)) * int64(p); n > maxAssigned {
		c.add(Finding{Severity: finding.Note, Code: "order-not-checked", Operator: op,
			Message: fmt.Sprintf("not checked whether the order of elements depends on the location of the snapshot: %d old subtasks and %d new ones are too many", len(op.Subtasks), p)})
		return nil
	}
	one := c.in
	one.Savepoint = &format.Savepoint{Location: c.in.Location, Operators: []*format.Operator{op}}
	plan, err := transform.PlanRescale(ctx, one, transform.RescaleOptions{To: p, At: c.o.At})
	if err != nil {
		return err
	}
	o := plan.Operators[0]
	if o.PlaceOrder {
		c.add(Finding{Severity: finding.Note, Code: "block-order", Operator: op,
			Message: "the order in which a subtask gets the elements of several old subtasks depends on the location of the snapshot: moving it changes the order",
			Advice:  finding.Words("restore it from its current location if the job depends on the order of list or union state")})
	}
	if o.Order != "" {
		c.add(Finding{Severity: finding.Note, Code: "order-undefined", Operator: op, Message: "the order in which elements are assigned is not certain: " + o.Order})
	}
	return nil
}
