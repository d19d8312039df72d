package transform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/number"
)

// Severity is how bad a finding is.
type Severity = finding.Severity

// The severities.
const (
	SeverityError   = finding.Error
	SeverityWarning = finding.Warning
	SeverityNote    = finding.Note
)

// CheckFinding is something that matters for a restore.
type CheckFinding = finding.Finding

// CheckOptions say what the snapshot is to be restored into. What is not known
// is not checked.
type CheckOptions struct {
	// TempDir is the directory of temporary files; "": that of the system.
	TempDir string
	Job     *Job // nil: not known
	// Parallelism of every operator; 0: as the job says, else as it was.
	Parallelism int32
	// MaxParallelism that the job sets; 0: it sets none, and takes over what the
	// snapshot has.
	MaxParallelism int32
	// AllowNonRestored: state that no operator takes may be left behind.
	AllowNonRestored bool
	// Release is the release of Flink that restores; zero: any that can.
	Release flink.Release
	// Metadata is the version of _metadata, 0 where there is none.
	Metadata int32
	// At is where Flink will restore from, as in RescaleOptions.
	At string
	// Schema tells how the states of an operator are serialized; nil: types are
	// not looked at.
	Schema Schemas
	// Like is a snapshot that the job took as it will be; nil: there is none.
	Like *Like
	// Content finds what is wrong with an operator and the streams of its state
	// themselves, in the words of verify; nil: that is not looked at.
	Content func(ctx context.Context, op *format.Operator) ([]finding.Finding, error)
}

// CheckMatch is an operator of the snapshot that the job has too.
type CheckMatch struct {
	Operator *format.Operator
	Name     string // in the job
	To       int32  // parallelism
}

// CheckReport is what Check found.
type CheckReport struct {
	Findings []CheckFinding // worst first, then in the order of the snapshot
	Matched  []CheckMatch
	// Renames are the operators that the job likely has under other ids; nil where
	// that was not looked for.
	Renames *Renames
	// Restored are the operators whose state the job takes, or may take.
	Restored []*format.Operator
}

// Count returns the number of findings of a severity.
func (r *CheckReport) Count(s Severity) int { return finding.Count(r.Findings, s) }

// Sort puts the worst findings first and keeps the order of equal ones.
func (r *CheckReport) Sort() { finding.Sort(r.Findings) }

// Check says whether a job would restore from a snapshot, as far as that can be
// told without Flink. It reads the description of the snapshot, the first bytes
// of its streams, which describe the states in them, and the elements of union
// state: of up to 64 MiB, and of more where their lengths look as if it had been
// multiplied; no entry of keyed state.
func Check(ctx context.Context, in format.View, o CheckOptions) (*CheckReport, error) {
	c := &checker{in: in, o: o, report: &CheckReport{}, described: map[*format.Operator]*described{}}
	if o.Like != nil && (o.Job == nil || !o.Job.Whole) {
		c.o.Job = o.Like.job()
		if o.Job != nil {
			c.o.Job = c.o.Job.WithPlan(o.Job)
		}
	}
	if c.o.Job != nil {
		c.match()
		if err := c.renames(ctx); err != nil {
			return nil, err
		}
	}
	for _, op := range in.Operators {
		if c.o.Job == nil || c.taken[op] { // else its state is left behind, or the restore is refused
			c.report.Restored = append(c.report.Restored, op)
		}
	}
	if err := c.content(ctx); err != nil {
		return nil, err
	}
	if err := c.describe(ctx); err != nil {
		return nil, err
	}
	c.release(ctx)
	c.vertices()
	for _, op := range c.report.Restored {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.operator(ctx, op); err != nil {
			return nil, format.At(err, "operator %q", op.Label())
		}
	}
	c.report.Sort()
	return c.report, nil
}

type checker struct {
	in     format.View
	o      CheckOptions
	report *CheckReport
	taken  map[*format.Operator]bool
	to     map[*format.Operator]int32 // parallelism that the job's plan gives it
	unsure map[*format.Operator]bool  // without state, and perhaps not in the job
	// described is how the states of the restored operators are serialized.
	described map[*format.Operator]*described
	// damaged has the operators with state that Content calls wrong: what fails
	// for that reason is not said again.
	damaged map[*format.Operator]bool
}

// content adds what is wrong with the restored operators themselves.
func (c *checker) content(ctx context.Context) error {
	c.damaged = map[*format.Operator]bool{}
	if c.o.Content == nil {
		return nil
	}
	for _, op := range c.report.Restored {
		found, err := c.o.Content(ctx, op)
		if err != nil {
			return err
		}
		for _, f := range found {
			c.damaged[op] = c.damaged[op] || f.Severity == SeverityError
			c.add(f)
		}
	}
	return nil
}

func (c *checker) add(f CheckFinding) { c.report.Findings = append(c.report.Findings, f) }

// match finds the operators of the job in the snapshot, by id.
func (c *checker) match() {
	job := c.o.Job
	byID := map[format.OperatorID]JobOperator{}
	for _, j := range job.Operators {
		byID[j.ID] = j
	}
	c.taken, c.to, c.unsure = map[*format.Operator]bool{}, map[*format.Operator]int32{}, map[*format.Operator]bool{}
	for _, op := range c.in.Operators {
		j, ok := byID[op.ID]
		if ok {
			c.taken[op], c.to[op] = true, j.Parallelism
			c.report.Matched = append(c.report.Matched, CheckMatch{op, j.Name, c.parallelism(op)})
			continue
		}
		if !job.Whole {
			c.perhapsChained(op)
			continue
		}
		c.noTaker(op)
	}
}

// noTaker is state that the job has no operator for.
func (c *checker) noTaker(op *format.Operator) {
	if hasNoState(op) {
		c.add(CheckFinding{Severity: SeverityNote, Code: "not-in-job", Operator: op, Message: "the job has no such operator; it holds no state, so Flink skips it"})
		return
	}
	if c.o.AllowNonRestored {
		c.add(CheckFinding{Severity: SeverityWarning, Code: "no-taker", Operator: op, Message: "the job has no operator for this state: it is left behind"})
		return
	}
	c.add(CheckFinding{Severity: SeverityError, Code: "no-taker", Operator: op,
		Message: "the job has no operator for this state: Flink refuses the restore",
		Advice:  "give the operator its uid back, rename the state (spt rename), drop it (spt drop), or restore with --allowNonRestoredState"})
}

// perhapsChained is for a plan that names only the first operator of each
// chain: another one may or may not be in the job.
func (c *checker) perhapsChained(op *format.Operator) {
	c.taken[op] = true
	behind, parallelism := c.chainedIn(op)
	c.to[op] = parallelism
	switch {
	case hasNoState(op):
		c.unsure[op] = true // a name says little
	case behind != nil:
		c.add(CheckFinding{Severity: SeverityNote, Code: "chained", Operator: op,
			Message: fmt.Sprintf("no vertex of the plan has its id; by its name it is chained behind another in %q. A plan has ids of vertices only, so this is not certain", behind.Description),
			Advice:  "--names FILE with the job's uids tells for sure"})
	default:
		c.add(CheckFinding{Severity: SeverityWarning, Code: "not-in-plan", Operator: op,
			Message: "no vertex of the plan has its id. A vertex has the id of the first operator of its chain, so this one may be chained behind another, or it may be gone, and then Flink refuses the restore",
			Advice:  "--names FILE with the job's uids tells for sure"})
	}
}

// chainedIn is the first vertex that names an operator among those it chains, or
// nil. The parallelism is 0 where several do, with different ones.
func (c *checker) chainedIn(op *format.Operator) (behind *JobOperator, parallelism int32) {
	name := oneSpace(op.Name.String())
	if name == "" {
		return nil, 0
	}
	for i := range c.o.Job.Operators {
		j := &c.o.Job.Operators[i]
		switch {
		case !slices.Contains(j.chained, name):
		case behind == nil:
			behind, parallelism = j, j.Parallelism
		case j.Parallelism != parallelism:
			return behind, 0
		}
	}
	return behind, parallelism
}

// parallelism is that with which an operator will run.
func (c *checker) parallelism(op *format.Operator) int32 {
	switch {
	case c.o.Parallelism > 0:
		return c.o.Parallelism
	case c.to[op] > 0:
		return c.to[op]
	}
	return op.Parallelism
}

// operator checks what one operator's state will meet.
func (c *checker) operator(ctx context.Context, op *format.Operator) error {
	c.native(op)
	p := c.parallelism(op)
	c.limits(op, p)
	if hasNoState(op) {
		return nil
	}
	c.finished(op, p)
	if p != op.Parallelism && hasChannels(op) {
		c.add(CheckFinding{Severity: SeverityWarning, Code: "in-flight", Operator: op,
			Message: fmt.Sprintf("in-flight data is redistributed from parallelism %d to %d by the job's graph: after a partitioner that cannot be rescaled, such as forward, Flink refuses", op.Parallelism, p),
			Advice:  "restore at the same parallelism, or from a savepoint"})
	}
	if err := c.states(ctx, op, p); err != nil {
		return err
	}
	if err := c.idle(ctx, op, p); err != nil {
		return err
	}
	if p <= op.MaxParallelism && p > 0 {
		if err := c.order(ctx, op, p); err != nil {
			return err
		}
	}
	c.keyed(op)
	return c.types(ctx, op)
}

// limits compares parallelisms with the max parallelism that the snapshot has of
// an operator. Flink does so for each operator that the job has, with state or
// without (spec flink-operator-state B12).
func (c *checker) limits(op *format.Operator, p int32) {
	empty := hasNoState(op)
	of, whose, severity, refuses := "of its state", "its state", SeverityError, "Flink refuses the restore"
	if empty {
		of, whose = "that the snapshot has of it, though it holds no state", "it"
	}
	if c.unsure[op] {
		severity, refuses = SeverityWarning, "if the job has it, Flink refuses the restore"
	}
	free := &ParallelismError{Operator: op.Label(), To: p, Max: op.MaxParallelism, Free: !op.HasKeyed()}
	other := "" // another way out
	if free.Free {
		other = ", or give " + whose + " another max parallelism, as it has no keyed state:  " + free.set()
	}
	switch {
	case p > op.MaxParallelism && len(op.Subtasks) > 0: // else there is nothing to hand out
		c.add(CheckFinding{Severity: severity, Code: "parallelism", Operator: op,
			Message: fmt.Sprintf("it would run at parallelism %d, above the max parallelism %d %s: %s", p, op.MaxParallelism, of, refuses),
			Advice:  fmt.Sprintf("run it at parallelism %d or less", op.MaxParallelism) + other})
	case c.o.MaxParallelism > 0 && p > c.o.MaxParallelism:
		c.add(CheckFinding{Severity: severity, Code: "parallelism", Operator: op,
			Message: fmt.Sprintf("it would run at parallelism %d, above the max parallelism %d that the job sets", p, c.o.MaxParallelism),
			Advice:  "lower the parallelism of the job"})
	}
	m := c.o.MaxParallelism
	if m <= 0 || m == op.MaxParallelism {
		return
	}
	f := CheckFinding{Severity: severity, Code: "max-parallelism", Operator: op,
		Message: fmt.Sprintf("the job sets max parallelism %d, its state was written with %d: %s", m, op.MaxParallelism, refuses),
		Advice:  fmt.Sprintf("let the job set none, or %d", op.MaxParallelism)}
	if empty {
		f.Message = fmt.Sprintf("the job sets max parallelism %d, the snapshot has it with %d, which counts though it holds no state: %s", m, op.MaxParallelism, refuses)
	}
	if free.Free && p <= m {
		f.Advice += fmt.Sprintf(", or give it the job's, as it has no keyed state:  spt set IN OUT --operator %q --max-parallelism %d", op.Label(), m)
	}
	c.add(f)
}

// native refuses state that only Go programs read.
func (c *checker) native(op *format.Operator) {
	for _, s := range op.Subtasks {
		h, ok := s.ManagedKeyed.(*format.KeyGroups)
		if s.Managed != nil && s.Managed.Codec == format.CodecNative || ok && h.Codec == format.CodecNative {
			c.add(CheckFinding{Severity: SeverityError, Code: "not-flink", Operator: op, Message: "its state is in spt's own encoding, which Flink cannot read", Advice: "it is of a Go program, not of a Flink job"})
			return
		}
	}
}

func hasChannels(op *format.Operator) bool {
	return slices.ContainsFunc(op.Subtasks, func(s *format.Subtask) bool { return len(s.Input)+len(s.Output) > 0 })
}

// finished: what had ended when the snapshot was taken is restored as ended
// (spec flink-operator-state B6).
func (c *checker) finished(op *format.Operator, p int32) {
	n := 0
	for _, s := range op.Subtasks {
		if s.Finished {
			n++
		}
	}
	switch {
	case op.Finished || n > 0 && n == int(op.Parallelism):
		c.add(CheckFinding{Severity: SeverityNote, Code: "finished", Operator: op,
			Message: "it had finished: it will not run again, at any parallelism, and Flink refuses a job in which an unfinished operator is upstream of it",
			Advice:  "leave the job's graph before this operator as it was"})
	case n > 0:
		message := fmt.Sprintf("%d of its %d subtasks had finished and hold no state; Flink refuses some changes of the graph around it", n, op.Parallelism)
		if p != op.Parallelism {
			message += fmt.Sprintf(", and at parallelism %d the state of the others is redistributed to all", p)
		}
		c.add(CheckFinding{Severity: SeverityNote, Code: "partly-finished", Operator: op, Message: message, Advice: "leave the job's graph around this operator as it was"})
	}
}

// LargeUnion is from how many bytes on a restore that hands out a union state is
// worth a warning: those that all subtasks are handed together.
const LargeUnion = 64 << 20

// maxUnionRead is how many bytes of a union state a check reads whose lengths do
// not show that restores may have multiplied it.
const maxUnionRead = 64 << 20

// states looks at operator states: union state that grows, broadcast copies
// that differ.
func (c *checker) states(ctx context.Context, op *format.Operator, p int32) error {
	s, err := summary.Of(ctx, &format.Savepoint{Operators: []*format.Operator{op}})
	if err != nil {
		return err
	}
	for _, st := range s.Operators[0].States {
		if st.Kind != summary.Union || st.Elements == 0 || p < 2 {
			continue
		}
		if err := c.union(ctx, op, st, p); err != nil {
			return err
		}
	}
	return c.broadcast(ctx, op)
}

// union says what a restore hands out of a union state, and what its elements
// show of restores before.
func (c *checker) union(ctx context.Context, op *format.Operator, st *summary.State, p int32) error {
	bytes := Capped(st.Bytes, int64(p))
	f := CheckFinding{Severity: SeverityNote, Code: "union", Operator: op, State: st.Name,
		Message: fmt.Sprintf("a restore hands each of %d subtasks all %s elements (%s): %s elements, %s in total",
			p, number.Count(st.Elements), number.Bytes(st.Bytes), number.Count(Capped(st.Elements, int64(p))), number.Bytes(bytes))}
	name := strconv.Quote(st.Name)
	r, err := c.unionReport(ctx, op, st)
	if err != nil {
		return err
	}
	switch {
	case r == nil && st.MayBeMultiplied:
		f.Severity, f.Code = SeverityWarning, "union-multiplied"
		f.Message = fmt.Sprintf("its %d subtasks hold elements of the same lengths, so a restore may have multiplied them; %s, which the next snapshot will hold if the job adds them again", st.Subtasks, f.Message)
		f.Advice = "to find and remove duplicates:  spt prune-union IN"
	case r != nil && r.OneEach():
		f.Message = fmt.Sprintf("%s; %s", r.Why, f.Message)
		f.Advice = "if restores did that, spt prune-union --keep distinct keeps one"
	case r != nil && r.Verdict == VerdictProduct:
		times := number.Count(r.MinCopies) + " times"
		if r.MinCopies != r.MaxCopies {
			times = fmt.Sprintf("%s to %s times", number.Count(r.MinCopies), number.Count(r.MaxCopies))
		}
		f.Severity, f.Code = SeverityWarning, "union-multiplied"
		f.Message = fmt.Sprintf("restores multiplied it: each of its %s different elements comes %s; %s, which the next snapshot will hold if the job adds them again", number.Count(r.Distinct), times, f.Message)
		f.Advice = "to list and remove the duplicates:  spt prune-union IN"
	case r != nil && r.Suspicious():
		f.Severity, f.Code = SeverityWarning, "union-repeats"
		f.Message = fmt.Sprintf("restores may have multiplied it, which is not proven because %s: %s; %s", r.Why, r.Numbers(), f.Message)
		f.Advice = "how often each element occurs:  spt cat IN --state " + name + " --distinct\nto keep one of each:  spt prune-union IN OUT --state " + name + " --keep distinct --accept-unproven"
	case r != nil && r.Repeats():
		f.Message = fmt.Sprintf("elements repeat: %s; %s", r.Numbers(), f.Message)
		f.Advice = "how often each element occurs:  spt cat IN --state " + name + " --distinct"
	}
	if bytes >= LargeUnion && f.Severity == SeverityNote {
		f.Severity, f.Code = SeverityWarning, "union-large"
		f.Advice = "every subtask loads all of it; list state would be redistributed instead. Whether duplicates can be removed:  spt prune-union IN"
	}
	c.add(f)
	return nil
}

// unionReport reads the elements of a union state, or returns nil where they are
// not read: they cannot be, or nothing asks for it.
func (c *checker) unionReport(ctx context.Context, op *format.Operator, st *summary.State) (*UnionReport, error) {
	if !st.Alike && st.Bytes > maxUnionRead {
		return nil, nil
	}
	one := c.in
	one.Savepoint = &format.Savepoint{Operators: []*format.Operator{op}}
	var temp *TempError
	reports, err := DiagnoseUnions(ctx, one, UnionOptions{States: format.ByName(st.Name), TempDir: c.o.TempDir})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, format.ErrChanged):
		return nil, err
	case errors.As(err, &temp):
		return nil, temp // says nothing of the state
	case err != nil:
		if !format.NoFile(err) && !errors.Is(err, format.ErrUnsupported) && !errors.Is(err, format.ErrLimit) {
			c.unreadable(op, err)
		}
		return nil, nil
	case len(reports) != 1:
		return nil, nil
	}
	return reports[0], nil
}

// broadcast compares the copies of broadcast states: who restores at another
// parallelism is handed any of them.
func (c *checker) broadcast(ctx context.Context, op *format.Operator) error {
	type copies struct {
		n        int
		min, max int64
	}
	found := map[string]*copies{}
	var names []string
	present := 0
	for _, sub := range op.Subtasks {
		if sub.Finished {
			continue
		}
		present++
		if sub.Managed == nil {
			continue
		}
		var sizes []int64
		for k, st := range sub.Managed.States {
			if st.Mode != format.ModeBroadcast {
				continue
			}
			if sizes == nil {
				var err error
				if sizes, err = summary.StateSizes(ctx, sub.Managed); err != nil {
					return err
				}
			}
			name := st.Name.String()
			b := found[name]
			if b == nil {
				b = &copies{min: sizes[k]}
				found[name] = b
				names = append(names, name)
			}
			b.n++
			b.min, b.max = min(b.min, sizes[k]), max(b.max, sizes[k])
		}
	}
	for _, name := range names {
		b := found[name]
		if b.min != b.max {
			c.add(CheckFinding{Severity: SeverityWarning, Code: "broadcast-differs", Operator: op, State: name,
				Message: fmt.Sprintf("its copies in %d subtasks differ, from %d to %d bytes: which one a subtask gets depends on the parallelism", b.n, b.min, b.max),
				Advice:  "spt cat shows them; broadcast state must be changed alike in all subtasks"})
		}
		if b.n < present {
			c.add(CheckFinding{Severity: SeverityNote, Code: "broadcast-partial", Operator: op, State: name,
				Message: fmt.Sprintf("%d of %d subtasks hold a copy; Flink 1.14 and later gives the others one of those", b.n, present)})
		}
	}
	return nil
}

// maxDealt bounds what is dealt out to find that out: handles times subtasks.
const maxDealt = 2 << 20

// order says where the order in which elements are handed out hangs on the place
// of the snapshot, or is not defined.
func (c *checker) order(ctx context.Context, op *format.Operator, p int32) error {
	if n := int64(len(op.Subtasks)) * int64(p); n > maxDealt {
		c.add(CheckFinding{Severity: SeverityNote, Code: "order-not-checked", Operator: op,
			Message: fmt.Sprintf("whether the order of elements depends on the location of the snapshot was not checked, because there are %d subtasks and %d", len(op.Subtasks), p)})
		return nil
	}
	one := c.in
	one.Savepoint = &format.Savepoint{Location: c.in.Location, Operators: []*format.Operator{op}}
	plan, err := PlanRescale(ctx, one, RescaleOptions{To: p, At: c.o.At})
	if err != nil {
		return err
	}
	o := plan.Operators[0]
	if o.PlaceOrder {
		c.add(CheckFinding{Severity: SeverityNote, Code: "block-order", Operator: op,
			Message: "the order in which a subtask gets the elements of several old subtasks depends on the location of the snapshot: moving it changes the order",
			Advice:  "restore it from where it is, if the job depends on the order of list or union state"})
	}
	if o.Order != "" {
		c.add(CheckFinding{Severity: SeverityNote, Code: "order-undefined", Operator: op, Message: "the order in which elements are assigned is not certain: " + o.Order})
	}
	return nil
}

// keyed looks for what Flink does not say of keyed state.
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
		c.add(CheckFinding{Severity: SeverityWarning, Code: "claim", Operator: op,
			Message: fmt.Sprintf("%d shared files of its incremental state are named relative to this snapshot. Restored with CLAIM, the job's next checkpoint would complete and not be restorable (FLINK-39964)", relative),
			Advice:  "restore it without claiming (NO_CLAIM)"})
	}
	if incremental == nil || rawKeyed || c.o.Schema == nil || c.in.Kind.Format != format.FormatNative || !c.in.Kind.Type.IsSavepoint() {
		return
	}
	// A native savepoint has the timers that RocksDB keeps, and loses those that
	// are kept on the heap (spec flink-keyed-state 5.7).
	d := c.described[op]
	switch {
	case slices.ContainsFunc(d.States, func(st types.StateSchema) bool { return st.Keyed == types.Timers }):
	case len(d.unread) > 0:
		c.add(CheckFinding{Severity: SeverityNote, Code: "timers-not-checked", Operator: op, Message: "whether its timers are in this native savepoint could not be told"})
	default:
		c.add(CheckFinding{Severity: SeverityNote, Code: "no-timers", Operator: op,
			Message: "there are no timers in its state. If the operator has timers and keeps them on the heap, this native savepoint has lost them: Flink writes them nowhere",
			Advice:  "if the job sets state.backend.rocksdb.timer-service.factory: HEAP, take a canonical savepoint"})
	}
}
