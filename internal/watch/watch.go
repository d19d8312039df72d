package watch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/savepoint-tools/spt/internal/trend"
	"github.com/savepoint-tools/spt/reader"
)

// Options of a Watcher.
type Options struct {
	Roots  []string
	Reader reader.Options // how directories are listed
	Depth  int            // directories between a root and the checkpoints of a job
	Window int            // checkpoints of a job that growth is measured over; at least 1
	// Tries that find a damaged checkpoint before it is a problem: it may be one that
	// is being written. 0: 2.
	Tries int
	Rules []Rule
	// Read reads a checkpoint; see [Of]. It is called once for each that could be read.
	// If _metadata does not exist, the error is storage.ErrNotExist.
	Read func(ctx context.Context, path string) (*Checkpoint, error)
	// Orphans looks for files below a root that no snapshot refers to, at most once in
	// OrphansEvery. It may be nil.
	Orphans      func(ctx context.Context, root string) (Orphans, error)
	OrphansEvery time.Duration
	// Event and Problem are called one at a time, and may be nil.
	Event   func(Event)
	Problem func(Problem)
	Now     func() time.Time
	// Wait returns after a time, or with the error of the context; nil: a timer.
	Wait func(context.Context, time.Duration) error
}

// Rule is a condition on the newest checkpoint of each job.
type Rule struct {
	Name string
	// OlderThan: the rule holds if the newest complete checkpoint is older. If it is 0,
	// Read evaluates the rule; see Checkpoint.Holds.
	OlderThan time.Duration
}

// Event is a rule that began to hold, or that no longer holds.
type Event struct {
	Rule       string
	Firing     bool
	Root, Job  string
	Checkpoint *Checkpoint
	For        []string // what it holds for, or held for
	Time       time.Time
}

// Reason is the kind of a Problem.
type Reason string

// The reasons.
const (
	List    Reason = "list"    // directories could not be listed
	Read    Reason = "read"    // a store did not return a checkpoint
	Damaged Reason = "damaged" // a checkpoint cannot be read
	Search  Reason = "orphans" // orphans could not be counted
)

// Reasons returns all reasons.
func Reasons() []Reason { return []Reason{Damaged, List, Search, Read} }

// Problem is something that could not be done. The Watcher goes on. A problem that
// stays is reported once.
type Problem struct {
	Reason Reason
	Root   string
	Path   string // of the checkpoint; ""
	Err    error  // nil: the root can be looked at again
}

// Orphans is the files below a root that no snapshot refers to.
type Orphans struct{ Files, Bytes int64 }

// Watcher follows the checkpoints of jobs. It is safe for concurrent use.
type Watcher struct {
	o     Options
	roots []*root
	mu    sync.Mutex // of the roots, and while Event and Problem run
}

// root is what is known of one root.
type root struct {
	path     string
	jobs     map[string]*job
	errors   map[Reason]int64
	reads    int64
	success  time.Time
	failures int    // in a row
	problem  string // that was reported
	reported map[string]bool
	orphans  *Orphans
	searched time.Time
}

// New returns a Watcher that has not looked at anything.
func New(o Options) *Watcher {
	o.Window = max(o.Window, 1)
	if o.Tries == 0 {
		o.Tries = 2
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	w := &Watcher{o: o}
	for _, path := range o.Roots {
		w.roots = append(w.roots, &root{path: path, jobs: map[string]*job{}, errors: map[Reason]int64{}, reported: map[string]bool{}})
	}
	return w
}

// Look looks at all roots once, one after another. It returns the problems, and the
// error of a context that ended.
func (w *Watcher) Look(ctx context.Context) ([]Problem, error) {
	var all []Problem
	for _, r := range w.roots {
		all = append(all, w.look(ctx, r)...)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
	return all, nil
}

// look looks at one root.
func (w *Watcher) look(ctx context.Context, r *root) (problems []Problem) {
	listed, err := reader.Checkpoints(ctx, r.path, w.o.Depth, w.o.Reader)
	if err != nil {
		return w.failed(ctx, r, Problem{List, r.path, "", err})
	}
	byJob := map[string][]reader.Checkpoint{}
	for _, c := range listed {
		byJob[c.Job] = append(byJob[c.Job], c)
	}
	w.mu.Lock()
	maps.DeleteFunc(r.jobs, func(name string, _ *job) bool { return byJob[name] == nil })
	w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(byJob)) {
		if p := w.lookAt(ctx, r, name, byJob[name]); p != nil {
			problems = append(problems, w.failed(ctx, r, *p)...)
			return problems
		}
		problems = append(problems, w.damage(r, name)...)
	}
	problems = append(problems, w.search(ctx, r)...)
	w.succeeded(r)
	return problems
}

// lookAt reads what is new of a job. Only one look at a root runs at a time, so that
// the job is locked only while it changes.
func (w *Watcher) lookAt(ctx context.Context, r *root, name string, listed []reader.Checkpoint) *Problem {
	w.mu.Lock()
	j := r.jobs[name]
	if j == nil {
		j = &job{name: name, patience: w.o.Tries, seen: map[string]*directory{}, firing: map[string][]string{}}
		r.jobs[name] = j
	}
	due := j.due(listed, w.o.Window)
	w.mu.Unlock()
	for _, path := range due {
		c, err := w.o.Read(ctx, path)
		w.mu.Lock()
		err = j.take(path, c, err, w.o.Window)
		if err == nil && c != nil {
			r.reads++
		}
		w.mu.Unlock()
		if err != nil {
			return &Problem{Read, r.path, path, err}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range j.judge(w.o.Rules, w.o.Now()) {
		e.Root = r.path
		if w.o.Event != nil {
			w.o.Event(e)
		}
	}
	return nil
}

// judge returns the rules that began or ceased to hold.
func (j *job) judge(rules []Rule, now time.Time) (events []Event) {
	c := j.newest(anyCheckpoint)
	if c == nil {
		return nil
	}
	for _, rule := range rules {
		holds := c.Holds[rule.Name]
		if rule.OlderThan > 0 {
			holds = nil
			if last := j.newest((*Checkpoint).Complete); last == nil || !last.Written.IsZero() && now.Sub(last.Written) > rule.OlderThan {
				holds = []string{c.Path}
			}
		}
		before, fired := j.firing[rule.Name]
		e := Event{Rule: rule.Name, Firing: holds != nil, Job: j.name, Checkpoint: c, For: holds, Time: now}
		switch {
		case holds != nil:
			j.firing[rule.Name] = holds
			if !fired {
				events = append(events, e)
			}
		case fired:
			delete(j.firing, rule.Name)
			e.For = before
			events = append(events, e)
		}
	}
	return events
}

// damage returns the damaged checkpoints of a job, and reports those that are new.
func (w *Watcher) damage(r *root, name string) (all []Problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := r.jobs[name]
	for _, path := range j.damaged() {
		all = append(all, Problem{Damaged, r.path, path, j.seen[path].damaged})
		if !r.reported[path] {
			r.reported[path] = true
			r.errors[Damaged]++
			w.report(all[len(all)-1])
		}
	}
	return all
}

func (w *Watcher) report(p Problem) {
	if w.o.Problem != nil {
		w.o.Problem(p)
	}
}

// failed counts a failed look. It is reported if the one before did not fail in the
// same way.
func (w *Watcher) failed(ctx context.Context, r *root, p Problem) []Problem {
	if ctx.Err() != nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.failures++
	r.errors[p.Reason]++
	if text := string(p.Reason) + p.Err.Error(); text != r.problem {
		r.problem = text
		w.report(p)
	}
	return []Problem{p}
}

func (w *Watcher) succeeded(r *root) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.problem != "" {
		r.problem = ""
		w.report(Problem{Root: r.path, Reason: List})
	}
	r.failures, r.success = 0, w.o.Now()
	maps.DeleteFunc(r.reported, func(path string, _ bool) bool {
		for _, j := range r.jobs {
			if j.seen[path] != nil {
				return false
			}
		}
		return true
	})
}

// search counts orphans, if it is time.
func (w *Watcher) search(ctx context.Context, r *root) []Problem {
	now := w.o.Now()
	if passed := now.Sub(r.searched); w.o.Orphans == nil || !r.searched.IsZero() && passed >= 0 && passed < w.o.OrphansEvery {
		return nil
	}
	found, err := w.o.Orphans(ctx, r.path)
	if ctx.Err() != nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.searched = now
	if err != nil {
		r.orphans = nil // what was counted before may be far from true
		r.errors[Search]++
		p := Problem{Search, r.path, "", err}
		w.report(p)
		return []Problem{p}
	}
	r.orphans = &found
	return nil
}

// Root is what is known of a root.
type Root struct {
	Path        string
	Jobs        []Job // newest checkpoint first
	Errors      map[Reason]int64
	Reads       int64     // checkpoints that were read
	LastSuccess time.Time // zero: none yet
	Orphans     *Orphans  // nil: not counted
}

// Job is what is known of a job with checkpoints.
type Job struct {
	Name        string // its directory below the root; "" if it is the root
	Directories int    // chk-N that are listed
	Damaged     int    // of them, those that cannot be read
	// Newest is the newest checkpoint that was read, and Complete the newest without
	// missing files, or nil. First is the oldest that growth is
	// measured from, over Span.
	Newest, Complete, First *Checkpoint
	Span                    trend.Span
	Firing                  []string // rules that hold
}

// Status returns what is known of each root, in their order.
func (w *Watcher) Status() []Root {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []Root
	for _, r := range w.roots {
		s := Root{Path: r.path, Errors: maps.Clone(r.errors), Reads: r.reads, LastSuccess: r.success, Orphans: r.orphans}
		for _, j := range r.jobs {
			s.Jobs = append(s.Jobs, j.status())
		}
		slices.SortFunc(s.Jobs, func(a, b Job) int {
			switch {
			case a.Newest == nil || b.Newest == nil:
				return cmp.Or(cmp.Compare(rank(a.Newest), rank(b.Newest)), cmp.Compare(a.Name, b.Name))
			}
			return cmp.Or(older(b.Newest, a.Newest), cmp.Compare(a.Name, b.Name))
		})
		all = append(all, s)
	}
	return all
}

func rank(c *Checkpoint) int {
	if c == nil {
		return 1
	}
	return 0
}

func (j *job) status() Job {
	s := Job{Name: j.name, Directories: len(j.seen), Damaged: len(j.damaged()), Newest: j.newest(anyCheckpoint), Complete: j.newest((*Checkpoint).Complete), Firing: slices.Sorted(maps.Keys(j.firing))}
	if s.Newest == nil {
		return s
	}
	past := j.past(s.Newest)
	if len(past) == 0 {
		past = []*Checkpoint{s.Newest} // older than all that the window has
	}
	s.First = past[0]
	var points []trend.Point
	for _, c := range past {
		points = append(points, c.point())
	}
	s.Span = trend.SpanOf(points)
	return s
}
