package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// Like is a snapshot taken by the version of a job that will restore another one:
// it has the operators and states of the job, with their types.
type Like struct {
	*format.Savepoint
	Schema types.Schemas
	// Metadata is the version of its _metadata, or 0: it bounds the releases that the
	// job runs on.
	Metadata int32
}

// job returns the job that took the snapshot, without its parallelisms.
func (l *Like) job() *Job {
	j := &Job{Whole: true}
	for _, op := range l.Operators {
		j.Operators = append(j.Operators, JobOperator{ID: op.ID, Name: op.Label()})
	}
	return j
}

// described holds how the states of an operator are serialized.
type described struct {
	types.Schema
	unread []error
}

// describe reads how the states of the restored operators are serialized.
func (c *checker) describe(ctx context.Context) error {
	if c.o.Schema == nil {
		return nil
	}
	for _, op := range c.report.Restored {
		schema, unread, err := c.o.Schema(ctx, op)
		if err != nil {
			return err
		}
		c.described[op] = &described{schema, unread}
		for _, err := range unread {
			c.notDescribed(op, err)
		}
	}
	return nil
}

// notDescribed reports states whose types could not be determined.
func (c *checker) notDescribed(op *format.Operator, err error) {
	switch {
	case format.NoFile(err), c.damaged[op]: // reported by another finding
	case errors.Is(err, format.ErrUnsupported), errors.Is(err, format.ErrLimit):
		c.once(Finding{Severity: finding.Note, Code: "types-not-checked", Operator: op, Message: "the types of some or all of its states could not be determined: " + reason(err)})
	default:
		c.unreadable(op, err)
	}
}

// unreadable reports state that a restore would fail to read.
func (c *checker) unreadable(op *format.Operator, err error) {
	if c.damaged[op] {
		return
	}
	c.once(Finding{Severity: finding.Error, Code: "unreadable", Operator: op, Message: "its state cannot be read: " + err.Error(), Advice: []finding.Remedy{{Words: "find out what else is damaged", Action: finding.Verify}}})
}

// once adds a finding unless the operator already has one with its code, or an
// equal one.
func (c *checker) once(f Finding) {
	if !slices.ContainsFunc(c.report.Findings, func(o Finding) bool { return o.Code == f.Code && o.Operator == f.Operator }) {
		c.add(f)
	}
}

// reason returns an error without its location in the snapshot, which the finding
// has.
func reason(err error) string {
	var u *types.UnknownClass
	if errors.As(err, &u) {
		return u.Error()
	}
	return err.Error()
}

// lifetimeOf returns the feature of state written by a serializer that not every
// release has.
func lifetimeOf(class string) (s since, ok bool) {
	s.first, s.last, ok = flink.SerializerLifetime(class)
	if s.last != 0 {
		s.note, s.advice = true, fmt.Sprintf("a job on Flink %v must first copy the state to a state of another type", s.last)
	}
	return s, ok
}

// kryoSnapshot is the class of Kryo's serializer snapshots, for all versions of
// Kryo.
const kryoSnapshot = "org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializerSnapshot"

// serializersOf returns the serializers of an operator's states that not every
// release has or that releases read differently. metadata is the version of the
// _metadata that the job wrote, 0 if unknown.
func serializersOf(schema types.Schema, metadata int32) (all []since) {
	for _, v := range schema.Keyed {
		if s := streamOf("keyed state", v, keyedVersions); s.first != 0 {
			all = append(all, s)
		}
	}
	note := func(state string, snap *types.Snapshot) {
		old := false
		types.Each(snap, func(s *types.Snapshot) {
			switch x, ok := lifetimeOf(s.Class); {
			case s.Old && !old: // nested serializers are too
				old = true
				newer, _ := flink.Lifetime(func(f flink.Facts) bool { return f.Snapshots.Has(2) })
				all = append(all, lifetime(fmt.Sprintf("a serializer snapshot of %s from before Flink %v", state, newer), func(f flink.Facts) bool { return f.Snapshots.Has(1) }))
			case s.Old:
			case s.Class == kryoSnapshot && metadata > 0:
				all = append(all, kryo(state, s.Type, metadata))
			case ok:
				x.what = fmt.Sprintf("%s serialized by %s", state, s.Class)
				all = append(all, x)
			}
		})
	}
	for _, k := range schema.AllKeys() {
		note("keys", k.Snapshot)
	}
	for _, st := range schema.States {
		for _, k := range st.Serializers {
			note(fmt.Sprintf("state %q", st.Name), k.Snapshot)
		}
	}
	return all
}

// kryo returns the feature of values that Kryo wrote: Flink 1 has Kryo 2, Flink 2
// has Kryo 5, and each misreads the bytes of the other (docs/flink-notes.md).
func kryo(state, of string, metadata int32) since {
	writer, _ := flink.WritersOf(int(metadata))
	wrote := writer.Facts().Kryo
	s := lifetime(fmt.Sprintf("%s with values of %s written by Kryo", state, of), func(f flink.Facts) bool { return f.Kryo == wrote })
	s.note = true
	if s.last != 0 {
		s.advice = fmt.Sprintf("use a serializer of Flink or your own for the type and take a savepoint with Flink %v, or let this state start empty", s.last)
		s.why = "Flink 2 has Kryo 5, which misreads some bytes of Kryo 2: a restore fails, or continues with wrong values, such as lists with missing elements"
	} else {
		s.why = "Flink 1 has Kryo 2, which misreads the bytes of Kryo 5"
	}
	return s
}

// types compares the serializers of an operator's states with the serializers of
// the job.
func (c *checker) types(ctx context.Context, op *format.Operator) error {
	d := c.described[op]
	if c.o.Like == nil || d == nil {
		return nil
	}
	i := slices.IndexFunc(c.o.Like.Operators, func(o *format.Operator) bool { return o.ID == op.ID })
	if i < 0 {
		return nil
	}
	now, unread, err := c.o.Like.Schema(ctx, c.o.Like.Operators[i])
	if err != nil {
		return err
	}
	for _, err := range unread {
		c.once(Finding{Severity: finding.Warning, Code: "types-not-checked", Operator: op, Message: "the types of some or all states of the job could not be determined: " + reason(err)})
	}
	var keys []*types.Snapshot
	for _, k := range now.AllKeys() {
		keys = append(keys, k.Snapshot)
	}
	for _, k := range d.AllKeys() {
		if len(keys) > 0 {
			c.fit(op, "", "its keys"+inSubtasks(k.Subtasks, op), types.CompareBest(k.Snapshot, keys), false, false)
		}
	}
	var unasked, empty []*types.StateSchema
	for i := range d.States {
		was := &d.States[i]
		same := func(st types.StateSchema) bool { return st.Name == was.Name && st.Scope() == was.Scope() }
		if slices.ContainsFunc(now.States, same) {
			where := "" // all subtasks that have it agree
			if len(only(d.States, same)) > 1 {
				where = inSubtasks(was.Subtasks, op)
			}
			c.state(op, was, where, only(now.States, same))
		} else if !slices.ContainsFunc(unasked, func(st *types.StateSchema) bool { return same(*st) }) {
			unasked = append(unasked, was)
		}
	}
	for i := range now.States {
		st := &now.States[i]
		same := func(was types.StateSchema) bool { return st.Name == was.Name && st.Scope() == was.Scope() }
		if !slices.ContainsFunc(d.States, same) && !slices.ContainsFunc(empty, func(other *types.StateSchema) bool { return same(*other) }) {
			empty = append(empty, st)
		}
	}
	if len(unread) > 0 {
		unasked = nil // the job may register them
	}
	if len(d.unread) > 0 {
		empty = nil
	}
	c.otherStates(op, d.States, now.States, unasked, empty)
	return nil
}

// state compares a state with the job's, which may have several descriptions: the
// most compatible one decides.
func (c *checker) state(op *format.Operator, was *types.StateSchema, where string, all []types.StateSchema) {
	name := was.Name.String()
	now := only(all, func(st types.StateSchema) bool { return st.Kind() == was.Kind() })
	if len(now) == 0 {
		f := Finding{Severity: finding.Error, Code: "state-kind", Operator: op, State: name,
			Message: fmt.Sprintf("it is %s state, and the job registers %s state: Flink refuses", was.Kind(), all[0].Kind())}
		switch {
		case was.Keyed == "" && was.Kind() != "broadcast" && all[0].Kind() != "broadcast":
			f.Advice = []finding.Remedy{{Words: fmt.Sprintf("register it as %s state in the job", was.Kind())}, {Words: "change the kind of the state", Action: finding.SetMode, Operator: op.Label(), State: name, To: all[0].Kind()}}
		case was.Keyed == "":
			f.Advice = finding.Words(fmt.Sprintf("register it as %s state in the job", was.Kind()))
		}
		c.add(f)
		return
	}
	for _, k := range was.Serializers {
		// Flink names timers and the contents of windows.
		what, migrates, named := "its values", was.Keyed != types.Timers, was.Keyed != types.Timers
		switch {
		case was.Keyed == types.Timers:
			what = "its timers"
		case k.Key == "NAMESPACE_SERIALIZER":
			what, migrates, named = "its namespaces", false, false
		case k.Key == "KEY_SERIALIZER", k.Key == "USER_KEY_SERIALIZER":
			what = "the keys of its map"
		}
		var others []*types.Snapshot
		for i := range now {
			if b := now[i].Serializer(k.Key); b != nil {
				others = append(others, b)
			}
		}
		if len(others) > 0 {
			c.fit(op, name, what+where, types.CompareBest(k.Snapshot, others), migrates, named)
		}
	}
}

// only returns the states for which f is true.
func only(all []types.StateSchema, f func(types.StateSchema) bool) (some []types.StateSchema) {
	for _, st := range all {
		if f(st) {
			some = append(some, st)
		}
	}
	return some
}

// fit reports a change of types. Types that cannot be migrated must be compatible
// as is; a state that the user named can be renamed to start empty.
func (c *checker) fit(op *format.Operator, state, what string, change types.Change, migrates, named bool) {
	f := Finding{Operator: op, State: state, Code: "type", Parts: partsOf(change)}
	advice := []finding.Remedy{{Words: "restore the old type in the job"}}
	if named {
		advice = append(advice, finding.Remedy{Words: "give the state another name"})
	} else {
		advice = append(advice, finding.Remedy{Words: "let the operator start empty", Action: finding.DropOperator, Operator: op.Label()})
	}
	switch {
	case change.Compatibility == types.CompatibleAsIs:
		return
	case change.Unnoticed:
		f.Severity, f.Message = finding.Error, fmt.Sprintf("%s are of another type in the job: %s. Flink compares only nested types and does not notice: the job fails when it uses them", what, change.Why)
		f.Advice = advice
	case change.Compatibility == types.Incompatible:
		f.Severity, f.Message = finding.Error, fmt.Sprintf("%s are of another type in the job: %s. Flink refuses it", what, change.Why)
		f.Advice = advice
	case change.Compatibility == types.CompatibleAfterMigration && !migrates:
		f.Severity, f.Message = finding.Error, fmt.Sprintf("%s are of a changed type in the job: %s. Flink migrates only values, and refuses it", what, change.Why)
		f.Advice = advice
	case change.Compatibility == types.CompatibleAfterMigration:
		f.Severity, f.Code, f.Message = finding.Note, "type-migrates", fmt.Sprintf("%s are of a changed type in the job: %s. Flink migrates them", what, change.Why)
	default:
		f.Severity, f.Code, f.Message = finding.Warning, "type-unsure", fmt.Sprintf("whether %s are compatible with the job is not certain: %s", what, change.Why)
	}
	c.add(f)
}

// partsOf returns the parts that differ, if there are several.
func partsOf(change types.Change) (all []finding.Part) {
	if len(change.Differences) < 2 {
		return nil
	}
	for _, d := range change.Differences {
		all = append(all, finding.Part{Path: d.Path, Verdict: d.Compatibility.String(), Why: d.Why})
	}
	return all
}
