package report

import (
	"slices"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform/count"
)

// Counted is what counting the entries of a snapshot found.
type Counted struct {
	*count.Report
	At          time.Time
	Origin      AtOrigin
	TTL         time.Duration
	Parallelism int32 // to distribute bytes over; 0: of each operator
}

// AtOrigin is where the time of a count comes from.
type AtOrigin string

// The origins.
const (
	AtGiven    AtOrigin = "given"
	AtSnapshot AtOrigin = "snapshot" // when its description was stored
	AtNow      AtOrigin = "now"
)

// InspectCounted is to what the counts of entries are relative.
type InspectCounted struct {
	At     time.Time `json:"at" jsonschema:"description=to which timers and expired entries are relative"`
	Origin AtOrigin  `json:"at_origin" jsonschema:"enum=given,enum=snapshot,enum=now,description=given with --at, the time at which _metadata or the .spt file was stored, or the time of the command"`
	TTL    int64     `json:"ttl_ms,omitempty" jsonschema:"description=with --ttl: a snapshot does not record it"`
}

// InspectEntries is the entries of a keyed state, with --count.
type InspectEntries struct {
	Entries        int64          `json:"entries" jsonschema:"description=of a map, one for each map key"`
	Keys           *int64         `json:"keys,omitempty" jsonschema:"description=distinct keys; absent if they cannot be split from the entries, or if a key group of timers or of entries in no order has more than a million"`
	Bytes          int64          `json:"entry_bytes" jsonschema:"description=of stored keys and values, before compression, as in a canonical savepoint"`
	DeadEntries    int64          `json:"dead_entries,omitempty" jsonschema:"description=in tables of RocksDB: overwritten or deleted, or that delete"`
	DeadBytes      int64          `json:"dead_bytes,omitempty"`
	TTL            bool           `json:"ttl,omitempty" jsonschema:"description=the state has a time to live"`
	ExpiredEntries *int64         `json:"expired_entries,omitempty" jsonschema:"description=with --ttl, of a state with TTL: entries that have expired; a list has if all of its elements have"`
	ExpiredBytes   *int64         `json:"expired_bytes,omitempty"`
	Timers         *InspectTimers `json:"timers,omitempty"`
}

// InspectTimers is when the timers of a state fire.
type InspectTimers struct {
	Overdue  int64  `json:"overdue"`
	Hour     int64  `json:"next_hour"`
	Day      int64  `json:"next_day" jsonschema:"description=after the next hour"`
	Later    int64  `json:"later"`
	Far      int64  `json:"far_future" jsonschema:"description=in more than 100 years: Flink sets the largest time for never"`
	Earliest *int64 `json:"earliest_ms,omitempty" jsonschema:"description=in ms since 1970"`
	Latest   *int64 `json:"latest_ms,omitempty"`
}

// InspectSkew is how the entries of keyed state are distributed, with --count.
type InspectSkew struct {
	KeyGroups InspectSpread `json:"key_groups"`
	// Subtasks is the same at Parallelism.
	Parallelism int32         `json:"parallelism"`
	Subtasks    InspectSpread `json:"subtasks" jsonschema:"description=what each would hold at this parallelism"`

	groups []count.Group
}

// InspectSpread is a distribution of bytes of entries.
type InspectSpread struct {
	Count    int   `json:"count"`
	Bytes    int64 `json:"entry_bytes"`
	Largest  int64 `json:"largest"`
	At       int   `json:"largest_index" jsonschema:"description=the key group, or the subtask"`
	Median   int64 `json:"median"`
	Smallest int64 `json:"smallest"`
}

func newSpread(s count.Skew) InspectSpread {
	return InspectSpread{Count: s.Count, Bytes: s.Sum, Largest: s.Largest, At: s.Index, Median: s.Median, Smallest: s.Smallest}
}

// addCount adds what was counted.
func (x *Inspect) addCount(c *Counted) {
	if c == nil {
		return
	}
	x.Counted = &InspectCounted{At: c.At.UTC(), Origin: c.Origin, TTL: c.TTL.Milliseconds()}
	for _, counted := range c.Operators {
		i := slices.IndexFunc(x.Operators, func(op InspectOperator) bool { return op.ID == counted.ID.String() })
		if i < 0 {
			continue
		}
		op := &x.Operators[i]
		for _, err := range counted.Unread {
			op.Uncounted = append(op.Uncounted, x.run.Hide(err.Error()))
		}
		if counted.UserCode {
			op.Uncounted = append(op.Uncounted, "raw keyed state of user code, whose entries only that code can read")
		}
		for _, st := range counted.States {
			op.addEntries(x.run, st, c.TTL)
		}
		if len(counted.Groups) == 0 {
			continue
		}
		p := c.Parallelism
		if p == 0 {
			p = op.Parallelism
		}
		p = max(1, min(p, int32(len(counted.Groups))))
		op.Skew = &InspectSkew{KeyGroups: newSpread(counted.Skew()), Parallelism: p, Subtasks: newSpread(counted.Subtasks(p)), groups: counted.Groups}
	}
}

// addEntries adds the entries of one state, and the state if no header names it:
// one that only the changes of a changelog register.
func (op *InspectOperator) addEntries(r *Run, st *count.State, ttl time.Duration) {
	kind := string(summary.Keyed)
	if st.Slot == format.SlotRawKeyed {
		kind = string(summary.RawKeyed)
	}
	i := slices.IndexFunc(op.States, func(s InspectState) bool { return s.Kind == kind })
	if i < 0 {
		return
	}
	in := &op.States[i]
	name := r.Text(st.Name)
	k := slices.IndexFunc(in.States, func(s InspectKeyed) bool { return s.Name == name && s.Kind == st.Kind })
	if k < 0 {
		k = len(in.States)
		in.States = append(in.States, InspectKeyed{Name: name, Kind: st.Kind})
	}
	in.States[k].Count = newEntries(st, ttl)
}

func newEntries(st *count.State, ttl time.Duration) *InspectEntries {
	e := &InspectEntries{Entries: st.Entries, Bytes: st.Bytes, DeadEntries: st.Dead.Entries, DeadBytes: st.Dead.Bytes, TTL: st.TTL}
	if st.Keys >= 0 {
		e.Keys = new(st.Keys)
	}
	if st.TTL && ttl > 0 {
		e.ExpiredEntries, e.ExpiredBytes = new(st.Expired.Entries), new(st.Expired.Bytes)
	}
	if st.Kind == count.Timers {
		h := st.Horizon
		e.Timers = &InspectTimers{Overdue: h.Overdue, Hour: h.Hour, Day: h.Day, Later: h.Later, Far: h.Far}
		if st.Entries > 0 {
			e.Timers.Earliest, e.Timers.Latest = new(h.Earliest), new(h.Latest)
		}
	}
	return e
}

// countCells returns the cells of the columns ENTRIES, KEYS, ENTRY BYTES, DEAD and
// EXPIRED.
func (e *InspectEntries) countCells() (entries, keys, bytes, dead, expired string) {
	if e == nil {
		return
	}
	entries, bytes = ui.Count(e.Entries), ui.Bytes(e.Bytes)
	if e.Keys != nil {
		keys = ui.Count(*e.Keys)
	}
	if e.DeadEntries > 0 {
		dead = ui.Bytes(e.DeadBytes)
	}
	if e.ExpiredEntries != nil {
		expired = ui.Count(*e.ExpiredEntries)
	}
	return
}

// countFields are the columns that counting adds.
var countFields = fields[InspectEntries]{
	numberField("entries", func(e *InspectEntries) int64 { return e.Entries }),
	maybeField("keys", func(e *InspectEntries) *int64 { return e.Keys }),
	numberField("entry_bytes", func(e *InspectEntries) int64 { return e.Bytes }),
	numberField("dead_entries", func(e *InspectEntries) int64 { return e.DeadEntries }),
	numberField("dead_bytes", func(e *InspectEntries) int64 { return e.DeadBytes }),
	maybeField("expired_entries", func(e *InspectEntries) *int64 { return e.ExpiredEntries }),
	maybeField("expired_bytes", func(e *InspectEntries) *int64 { return e.ExpiredBytes }),
}

// csv returns the cells of countFields.
func (e *InspectEntries) csv() []string {
	if e == nil {
		return make([]string, len(countFields))
	}
	return countFields.text(e)
}

// appendCounts appends how entries are distributed and when timers fire.
func (x *Inspect) appendCounts(d *ui.Document) {
	if x.Counted == nil {
		return
	}
	shown := x.Operators
	if x.top > 0 {
		shown = shown[:min(x.top, len(shown))]
	}
	for i := range shown {
		if s := shown[i].Skew; s != nil && s.KeyGroups.Bytes > 0 {
			d.Blank()
			s.appendTo(d, ui.Quote(shown[i].label))
		}
	}
	if t := timersTable(shown); t != nil {
		d.Blank()
		d.Line("Timers at %s%s:", x.Counted.At.Format(time.RFC3339), x.Counted.Origin.text())
		d.Add(t)
	}
	if x.Counted.TTL > 0 {
		d.Line("EXPIRED: not updated in the %s before %s%s.", ui.Duration(time.Duration(x.Counted.TTL)*time.Millisecond), x.Counted.At.Format(time.RFC3339), x.Counted.Origin.text())
	} else if slices.ContainsFunc(shown, InspectOperator.expires) {
		d.Line("A snapshot does not record how long entries live: --ttl DURATION counts those that have expired.")
	}
	for i := range shown {
		for _, why := range shown[i].Uncounted {
			d.Line("%s %s: not counted: %s", ui.Look("!"), ui.Quote(shown[i].label), ui.Printable(why))
		}
	}
}

// text says where a time comes from, unless it was given.
func (o AtOrigin) text() string {
	switch o {
	case AtSnapshot:
		return ", when the snapshot was stored"
	case AtNow:
		return ", now"
	}
	return ""
}

// expires reports whether the operator has a state with TTL that was counted.
func (op InspectOperator) expires() bool {
	return slices.ContainsFunc(op.States, func(st InspectState) bool {
		return slices.ContainsFunc(st.States, func(k InspectKeyed) bool { return k.Count != nil && k.Count.TTL })
	})
}

// appendTo appends the distribution of an operator's keyed state.
func (s *InspectSkew) appendTo(d *ui.Document, label string) {
	g := s.KeyGroups
	d.Line("%s: %s of entries in %s: largest %s (key group %d), median %s, smallest %s", label, ui.Bytes(g.Bytes), ui.Plural(int64(g.Count), "key group"), ui.Bytes(g.Largest), g.At, ui.Bytes(g.Median), ui.Bytes(g.Smallest))
	values := make([]int64, len(s.groups))
	for i, g := range s.groups {
		values[i] = g.Bytes
	}
	d.Line("  %s", sparkOf(values, sparkGroups))
	t := s.Subtasks
	d.Line("  at parallelism %d: largest subtask %s (%d), median %s, smallest %s", s.Parallelism, ui.Bytes(t.Largest), t.At, ui.Bytes(t.Median), ui.Bytes(t.Smallest))
}

// sparkGroups is the number of bars of a distribution over key groups at most.
const sparkGroups = 64

// timersTable returns when timers fire, or nil without timers.
func timersTable(ops []InspectOperator) *ui.Table {
	t := ui.NewTable(
		ui.Column{Header: "TIMERS", Shrink: 1, Cut: ui.CutMiddle, Min: 16},
		ui.Column{Header: "OVERDUE", Align: ui.Right}, ui.Column{Header: "NEXT HOUR", Align: ui.Right}, ui.Column{Header: "NEXT DAY", Align: ui.Right},
		ui.Column{Header: "LATER", Align: ui.Right}, ui.Column{Header: "FAR FUTURE", Align: ui.Right},
		ui.Column{Header: "EARLIEST", Drop: 2}, ui.Column{Header: "LATEST", Drop: 1},
	)
	none := true
	for i := range ops {
		for _, st := range ops[i].States {
			for _, k := range st.States {
				if k.Count == nil || k.Count.Timers == nil || k.Count.Entries == 0 {
					continue
				}
				none = false
				m := k.Count.Timers
				t.Row(ui.Quote(ops[i].label)+"/"+ui.Quote(strings.TrimPrefix(k.Name, "_timer_state/")), ui.Count(m.Overdue), ui.Count(m.Hour), ui.Count(m.Day), ui.Count(m.Later), ui.Count(m.Far),
					timerText(*m.Earliest), timerText(*m.Latest))
			}
		}
	}
	if none {
		return nil
	}
	return t
}

// timerText returns the time of a timer, in ms.
func timerText(ms int64) string {
	t := time.UnixMilli(ms).UTC()
	switch {
	case ms < 0:
		return "before 1970"
	case t.Year() > 9999:
		return "after 9999"
	}
	return t.Format("2006-01-02T15:04:05Z")
}
