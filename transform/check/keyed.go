package check

import (
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// native reports state that only Go programs can read.
func (c *checker) native(op *format.Operator) {
	for _, s := range op.Subtasks {
		h, ok := s.ManagedKeyed.(*format.KeyGroups)
		if s.Managed != nil && s.Managed.Codec == format.CodecNative || ok && h.Codec == format.CodecNative {
			c.add(Finding{Severity: finding.Error, Code: "not-flink", Operator: op, Message: "its state is in spt's own encoding, which Flink cannot read", Advice: finding.Words("it belongs to a Go program, not to a Flink job")})
			return
		}
	}
}

// keyed reports problems of keyed state that Flink does not report.
func (c *checker) keyed(op *format.Operator) {
	relative, incremental := 0, (*format.Incremental)(nil)
	rawKeyed := false
	for _, s := range op.Subtasks {
		rawKeyed = rawKeyed || s.RawKeyed != nil
		format.EachKeyed(s.ManagedKeyed, func(h format.KeyedHandle) {
			i, ok := h.(*format.Incremental)
			if !ok {
				return
			}
			if incremental == nil {
				incremental = i
			}
			for _, f := range i.Shared {
				if _, rel, ok := format.Reference(f.Data); ok && rel {
					relative++
				}
			}
		})
	}
	if relative > 0 {
		c.add(Finding{Severity: finding.Warning, Code: "claim", Operator: op,
			Message: fmt.Sprintf("%d shared files of its incremental state are named relative to this snapshot. After a restore with CLAIM, the job's next checkpoint would complete but could not be restored (FLINK-39964)", relative),
			Advice:  finding.Words("restore it without claiming (NO_CLAIM)")})
	}
	if incremental == nil || rawKeyed || c.o.Schema == nil || c.in.Kind.Format != format.FormatNative || !c.in.Kind.Type.IsSavepoint() {
		return
	}
	// A native savepoint contains the timers stored in RocksDB, but not timers on the
	// heap (spec flink-keyed-state 5.7).
	d := c.described[op]
	switch {
	case slices.ContainsFunc(d.States, func(st types.StateSchema) bool { return st.Keyed == types.Timers }):
	case len(d.unread) > 0:
		c.add(Finding{Severity: finding.Note, Code: "timers-not-checked", Operator: op, Message: "could not determine whether its timers are in this native savepoint"})
	default:
		c.add(finding.NoTimers(op))
	}
}
