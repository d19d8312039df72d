package command

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// maxCoordinator bounds the state of a coordinator that is printed.
const maxCoordinator = 256 << 20

// printCoordinators prints the state of the coordinators of the operators of sp.
func (o *catOptions) printCoordinators(ctx context.Context, env *Env, snap *reader.Snapshot, sp *format.Savepoint) error {
	c := &catter{env: env, catOptions: *o, snap: snap}
	out := env.Stdout
	if o.output.JSON() {
		out = env.dataOut()
	}
	w := report.NewCatWriter(out, env.term(), c.shown())
	codec := connector.Coordinator("")
	printed := int64(0)
	for _, op := range sp.Operators {
		if op.Coordinator == nil || o.limit > 0 && printed == o.limit {
			continue
		}
		p, err := coordinatorBytes(ctx, snap, op)
		if err != nil {
			return inContainer(format.At(format.At(err, "coordinator"), "operator %q", op.Label()), snap)
		}
		label := operatorName(env, op)
		it := report.CatItem{State: &report.CatState{Operator: env.hidden(label), ID: op.ID.String(), Name: "", Kind: coordinatorKind}, Subtask: -1, Stored: p}
		if c.decodes() {
			if it.Value, err = value.ReadAll(codec, p); err == nil {
				it.Decoded = true
			} else {
				c.unknown = append(c.unknown, fmt.Sprintf("coordinator of %s (%s)", ui.Quote(env.hidden(label)), ui.Printable(err.Error())))
			}
		}
		if err := w.Item(&it); err != nil {
			return err
		}
		printed++
	}
	if err := w.End(true); err != nil {
		return err
	}
	if printed == 0 {
		return env.remark("no operator has coordinator state")
	}
	if len(c.unknown) > 0 {
		return env.remark("not decoded, shown as stored: %s", report.ShortenLong(c.unknown))
	}
	return nil
}

func coordinatorBytes(ctx context.Context, snap *reader.Snapshot, op *format.Operator) ([]byte, error) {
	n, err := format.StreamSize(ctx, snap.Source(), op.Coordinator)
	if err != nil {
		return nil, err
	}
	if n > maxCoordinator {
		return nil, format.Errorf(format.ErrLimit, "%d bytes, the limit is %d", n, maxCoordinator)
	}
	p := make([]byte, n)
	_, err = snap.Source().ReadAt(ctx, op.Coordinator, p, 0)
	return p, err
}
