package transform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/transform/internal/scramble"
)

// RedactOptions are the options of Redact.
type RedactOptions struct {
	// Key determines the replacements: two snapshots that are redacted with the same
	// key have equal values where they had equal values. It is required, and must be
	// secret.
	Key []byte
	// Names also replaces uids, names and ids of operators, names of states, and names
	// of files.
	Names bool
	// Drop removes parts of the snapshot, which are matched as "OPERATOR/PART": PART is
	// the name of a state, or one of Parts. State of a hook of the checkpoint
	// coordinator is "master/NAME".
	Drop format.Globs
	// Values returns the codecs of an operator state of a handle of the snapshot. It is
	// required.
	Values func(ctx context.Context, h *format.OperatorHandle, state int) (value.ElementCodecs, error)
}

// The parts of an operator besides its states.
const (
	PartCoordinator = "coordinator"
	PartInFlight    = "in-flight data"
	PartRaw         = "raw operator state"
	PartKeyed       = "keyed state" // if its states are not known
	PartRawKeyed    = "raw keyed state"
	PartLegacy      = "legacy state"
)

// Parts returns the names of the parts of an operator besides its states.
func Parts() []string {
	return []string{PartCoordinator, PartInFlight, PartRaw, PartKeyed, PartRawKeyed, PartLegacy}
}

// masterPart is the prefix of state of a hook of the checkpoint coordinator.
const masterPart = "master/"

// RedactReport describes what Redact did.
type RedactReport struct {
	Elements int64    // of operator states
	Entries  int64    // of keyed states
	Dropped  []string // as in RedactOptions.Drop
	// KeptKeys is the number of keys that stay as they are: their length and their key
	// group allow no other.
	KeptKeys int64
}

// NotRedacted is a part of a snapshot that cannot be redacted.
type NotRedacted struct {
	Part string // as in RedactOptions.Drop
	Why  string
}

// NotRedactedError is the error for a snapshot that cannot be redacted. It matches
// format.ErrUnsupported.
type NotRedactedError struct{ Parts []NotRedacted }

func (e *NotRedactedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "what cannot be redacted must be dropped by name (%d):", len(e.Parts))
	for _, p := range e.Parts {
		fmt.Fprintf(&b, "\n  %q: %s", p.Part, p.Why)
	}
	return b.String()
}

// Is matches format.ErrUnsupported.
func (e *NotRedactedError) Is(target error) bool { return target == format.ErrUnsupported }

// Redact replaces the values of a snapshot by others of the same type and length, so
// that it can be given away: equal values become equal, different ones stay different.
// docs/redaction.md lists what is replaced, what stays, and what cannot be redacted.
// The last is a *NotRedactedError, unless Drop matches it.
//
// Keyed state is built in the canonical format, and compressed operator state is
// decompressed. A redacted key stays in the key group of the key.
//
// It reads all state once, to find what cannot be redacted; reading the result reads
// it again. Memory is bounded by the largest element or entry.
func Redact(ctx context.Context, v format.View, o RedactOptions) (format.View, *RedactReport, error) {
	if len(o.Key) == 0 || o.Values == nil {
		return v, nil, errors.New("Redact needs Key and Values")
	}
	r := &redaction{ctx: ctx, in: v, o: o, mask: scramble.Mask{Key: scramble.New(o.Key)}, report: &RedactReport{}, names: map[string]bool{}, ours: map[format.Stream]bool{}}
	sp, err := v.MapOperators(r.operator)
	if err != nil {
		return v, nil, err
	}
	c := *sp
	c.Masters = r.masters(sp.Masters)
	if !metadata.KnownProperties(v.Savepoint) {
		r.refuse("checkpoint properties", "no release of Flink writes them")
	}
	if err := r.o.Drop.Check("part", r.partNames()); err != nil {
		return v, nil, err
	}
	if len(r.refused) > 0 {
		return v, nil, &NotRedactedError{r.refused}
	}
	// What is not new would be a leak.
	err = c.EachStream(func(p format.Place, s format.Stream) error {
		if _, empty := s.(*format.EmptySegment); empty || r.ours[s] {
			return nil
		}
		return format.Errorf(format.ErrUnsupported, "%v would not be redacted", p)
	})
	if err != nil {
		return v, nil, err
	}
	return v.With(&c), r.report, nil
}

// redaction redacts one snapshot.
type redaction struct {
	ctx     context.Context
	in      format.View
	o       RedactOptions
	mask    scramble.Mask
	report  *RedactReport
	refused []NotRedacted
	names   map[string]bool // of all parts
	ours    map[format.Stream]bool
	number  int // of the last new file
}

func (r *redaction) partNames() []string {
	var all []string
	for name := range r.names {
		all = append(all, name)
	}
	return all
}

// drops reports whether a part is dropped.
func (r *redaction) drops(part string) bool {
	r.names[part] = true
	if len(r.o.Drop) == 0 || !r.o.Drop.Match(part) {
		return false
	}
	if !slices.Contains(r.report.Dropped, part) {
		r.report.Dropped = append(r.report.Dropped, part)
	}
	return true
}

func (r *redaction) refuse(part, why string) {
	for _, p := range r.refused {
		if p.Part == part {
			return
		}
	}
	r.refused = append(r.refused, NotRedacted{part, why})
}

// unsupported refuses a part if that is what err means; otherwise it returns err.
func (r *redaction) unsupported(part string, err error) error {
	if err == nil || !errors.Is(err, format.ErrUnsupported) {
		return err
	}
	r.refuse(part, err.Error())
	return nil
}

// partName returns the name of a part of an operator.
func partName(op *format.Operator, part string) string { return op.Label() + "/" + part }

// masters returns the state of hooks without data.
func (r *redaction) masters(all []format.MasterState) (out []format.MasterState) {
	for _, m := range all {
		part := masterPart + m.Name.String()
		switch {
		case r.drops(part):
		case m.Data.Len() > 0:
			r.refuse(part, "bytes of user code")
		case r.o.Names:
			r.refuse(part, "the job looks up the hook by its name")
		default:
			out = append(out, m)
		}
	}
	return out
}

func (r *redaction) operator(op *format.Operator) (*format.Operator, error) {
	out := *op
	if op.Coordinator != nil {
		s, err := r.coordinator(op)
		if err != nil {
			return nil, format.At(err, "coordinator")
		}
		out.Coordinator = s
	}
	if r.o.Names {
		out.UID, out.Name, out.ID = r.identity(op)
	}
	return out.MapSubtasks(func(sub *format.Subtask) (*format.Subtask, error) {
		c := *sub
		if err := r.subtask(op, &c); err != nil {
			return nil, err
		}
		return &c, nil
	})
}

// identity returns the uid, name and id of a redacted operator. The id of a uid is
// Flink's hash of it, which would reveal the uid.
func (r *redaction) identity(op *format.Operator) (uid, name format.Text, id format.OperatorID) {
	id = r.mask.ID(op.ID)
	if op.UID.String() != "" {
		uid = format.NewText(r.name(op.UID.String()))
		if op.ID == format.OperatorIDOf(op.UID.String()) {
			id = format.OperatorIDOf(uid.String())
		}
	}
	if op.Name.String() != "" {
		name = format.NewText(r.name(op.Name.String()))
	}
	return uid, name, id
}

// name returns the redacted name of something.
func (r *redaction) name(s string) string {
	v, err := r.mask.Name(value.String(s))
	if err != nil { // not UTF-8, which Flink does not write
		id := r.mask.ID(format.OperatorIDOf(s))
		return fmt.Sprintf("%x", id[:])
	}
	return v.Text()
}

// flinkStates are the names of states of Flink itself.
var flinkStates = []string{
	"_default_", "_async_wait_operator_state_", "_timer_state/processing_user-timers", "_timer_state/event_user-timers", "_timer_state/processing_window-timers", "_timer_state/event_window-timers",
	"window-contents", "merging-window-set", "_op_state", "queryable-state",
}

// stateName returns the name of a redacted state.
func (r *redaction) stateName(name string) string {
	if !r.o.Names || connector.Knows(name) || slices.Contains(flinkStates, name) {
		return name
	}
	for _, prefix := range []string{"_timer_state/processing_", "_timer_state/event_"} {
		if service, ok := strings.CutPrefix(name, prefix); ok {
			return prefix + r.name(service)
		}
	}
	return r.name(name)
}

// subtask redacts the state of a subtask in place.
func (r *redaction) subtask(op *format.Operator, sub *format.Subtask) error {
	if len(sub.Input)+len(sub.Output) > 0 && r.goes(op, PartInFlight, "records, whose serializers are not in the snapshot") {
		sub.Input, sub.Output = nil, nil
	}
	if sub.Raw != nil && r.goes(op, PartRaw, "bytes of user code") {
		sub.Raw = nil
	}
	if sub.RawKeyed != nil && r.goes(op, PartRawKeyed, "bytes of user code, or timers on the heap of a backend of RocksDB") {
		sub.RawKeyed = nil
	}
	if len(sub.Legacy) > 0 && r.goes(op, PartLegacy, "bytes of user code") {
		sub.Legacy = nil
	}
	if h := sub.Managed; h != nil {
		out, err := r.managed(op, sub, h)
		if err != nil {
			return format.At(err, "%v", format.SlotManaged)
		}
		sub.Managed = out
	}
	if h := sub.ManagedKeyed; h != nil {
		out, err := r.keyed(op, sub, h)
		if err != nil {
			return format.At(err, "%v", format.SlotManagedKeyed)
		}
		sub.ManagedKeyed = nil
		if out != nil {
			sub.ManagedKeyed = out
		}
	}
	return nil
}

// goes reports whether a part that cannot be redacted is dropped, and refuses it
// otherwise.
func (r *redaction) goes(op *format.Operator, part, why string) bool {
	if r.drops(partName(op, part)) {
		return true
	}
	r.refuse(partName(op, part), why)
	return false
}

// coordinator returns the redacted state of a coordinator.
func (r *redaction) coordinator(op *format.Operator) (format.Stream, error) {
	part := partName(op, PartCoordinator)
	if r.drops(part) {
		return nil, nil
	}
	now, err := sourceOffsets(r.ctx, r.in, op)
	if err != nil {
		return nil, r.unsupported(part, err)
	}
	of := ""
	if now != nil {
		of = now.Connector
	}
	p, err := coordinatorBytes(r.ctx, r.in, op)
	if err != nil {
		return nil, err
	}
	p, err = r.replace(nil, connector.Coordinator(of), p, r.mask)
	if err != nil {
		return nil, r.unsupported(part, err)
	}
	s := &format.Inline{Data: format.NewBytes(p)}
	if old, ok := storedLike(op.Coordinator, int64(len(p))).(*format.Inline); ok {
		s.Name = old.Name
	}
	if r.o.Names {
		_, _, id := r.identity(op)
		s.Name = format.NewText(id.String())
	}
	r.ours[s] = true
	return s, nil
}

// stored returns a rope that is stored as an old stream was; see storedLike.
func (r *redaction) stored(c *format.Concat, old format.Stream) *format.Concat {
	c.As = storedLike(old, c.Size())
	if r.o.Names {
		r.number++
		name := format.NewText(fmt.Sprintf("state-%d", r.number))
		switch c.As.(type) {
		case *format.Inline:
			c.As = &format.Inline{Name: name}
		default:
			c.As = &format.File{Path: name, Relative: true, Length: c.Size()}
		}
	}
	r.ours[c] = true
	return c
}

// maxWalk is the number of values of a type that are tried for one with the same
// length.
const maxWalk = 1 << 10

// replace appends the replacement of a value, which is all of p. The values of one length
// replace each other: a replacement of another length is replaced again.
func (r *redaction) replace(dst []byte, c value.Codec, p []byte, m scramble.Mask) ([]byte, error) {
	v, err := value.ReadAll(c, p)
	if err != nil {
		return dst, err
	}
	for range maxWalk {
		if v, err = value.Masked(c, v, m); err != nil {
			return dst, err
		}
		out, ok := encoded(c, dst, v, len(p))
		if ok {
			return out, nil
		}
	}
	return dst, format.Errorf(format.ErrUnsupported, "%v, for which no value of the same length was found", v.Kind())
}

// encoded appends a value if it takes n bytes and is read back.
func encoded(c value.Codec, dst []byte, v value.Value, n int) ([]byte, bool) {
	out, err := c.Append(dst, v)
	if err != nil || len(out)-len(dst) != n {
		return dst, false
	}
	if _, err := value.ReadAll(c, out[len(dst):]); err != nil {
		return dst, false
	}
	return out, true
}
