package check

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/transform"
)

// maxDealt bounds what is dealt out to find that out: handles times subtasks.
const maxDealt = 2 << 20

// order says where the order in which elements are handed out hangs on the place
// of the snapshot, or is not defined.
func (c *checker) order(ctx context.Context, op *format.Operator, p int32) error {
	if n := int64(len(op.Subtasks)) * int64(p); n > maxDealt {
		c.add(Finding{Severity: finding.Note, Code: "order-not-checked", Operator: op,
			Message: fmt.Sprintf("whether the order of elements depends on the location of the snapshot was not checked, because there are %d subtasks and %d", len(op.Subtasks), p)})
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
			Advice:  finding.Words("restore it from where it is, if the job depends on the order of list or union state")})
	}
	if o.Order != "" {
		c.add(Finding{Severity: finding.Note, Code: "order-undefined", Operator: op, Message: "the order in which elements are assigned is not certain: " + o.Order})
	}
	return nil
}
