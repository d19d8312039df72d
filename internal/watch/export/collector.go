package export

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/savepoint-tools/spt/internal/trend"
	"github.com/savepoint-tools/spt/internal/watch"
)

// Options of a Collector.
type Options struct {
	Status               func() []watch.Root
	Webhooks             func() map[string]int64 // by outcome; may be nil
	Rules                []string                // names of all rules
	Limit, LimitElements int64                   // 0: none
	MaxSeries            int
	Now                  func() time.Time
	// Cut is called when series begin to be left out, with their number. It may be nil.
	Cut func(n int)
}

// Collector implements prometheus.Collector. The number of its series is bounded: jobs
// with the newest checkpoints come first, and of their states the largest.
type Collector struct {
	o Options
	m *metrics

	mu  sync.Mutex
	cut bool // said
}

// New returns a collector.
func New(o Options) *Collector { return &Collector{o: o, m: newMetrics()} }

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.m.all {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	b := &batch{ch: ch, left: c.o.MaxSeries - 1, seen: map[string]bool{}} // one is dropped_series
	roots := c.o.Status()
	for i := range roots {
		c.root(b, &roots[i])
	}
	if c.o.Webhooks != nil {
		counts := c.o.Webhooks()
		for _, outcome := range slices.Sorted(maps.Keys(counts)) {
			b.add(c.m.webhooks, float64(counts[outcome]), outcome)
		}
		b.flush()
	}
	now := c.o.Now()
	for i := range roots {
		for k := range roots[i].Jobs {
			c.job(b, roots[i].Path, &roots[i].Jobs[k], now)
		}
	}
	for i := range roots {
		for k := range roots[i].Jobs {
			c.states(b, roots[i].Path, &roots[i].Jobs[k])
		}
	}
	ch <- prometheus.MustNewConstMetric(c.m.dropped.desc, prometheus.GaugeValue, float64(b.dropped))
	c.mu.Lock()
	begins := b.dropped > 0 && !c.cut
	c.cut = b.dropped > 0
	c.mu.Unlock()
	if begins && c.o.Cut != nil {
		c.o.Cut(b.dropped)
	}
}

// LeastSeries is the number of series that every state has.
const LeastSeries = 2

// batch collects series that belong together, and drops them together.
type batch struct {
	ch      chan<- prometheus.Metric
	next    []prometheus.Metric
	left    int
	dropped int
	seen    map[string]bool
}

func (b *batch) add(m *Metric, v float64, labels ...string) {
	kind := prometheus.GaugeValue
	if m.Type == "counter" {
		kind = prometheus.CounterValue
	}
	b.next = append(b.next, prometheus.MustNewConstMetric(m.desc, kind, v, labels...))
}

func (b *batch) flush() {
	if len(b.next) > b.left {
		b.dropped += len(b.next)
	} else {
		for _, m := range b.next {
			b.ch <- m
		}
		b.left -= len(b.next)
	}
	b.next = b.next[:0]
}

func (c *Collector) root(b *batch, r *watch.Root) {
	path := label(r.Path)
	b.add(c.m.reads, float64(r.Reads), path)
	for _, reason := range watch.Reasons() {
		b.add(c.m.errors, float64(r.Errors[reason]), path, string(reason))
	}
	b.add(c.m.success, seconds(r.LastSuccess), path)
	if r.Orphans != nil {
		b.add(c.m.orphanFiles, float64(r.Orphans.Files), path)
		b.add(c.m.orphanBytes, float64(r.Orphans.Bytes), path)
	}
	b.flush()
}

func (c *Collector) job(b *batch, root string, j *watch.Job, now time.Time) {
	labels := []string{label(root), label(j.Name)}
	if b.again(labels) {
		return
	}
	add := func(m *Metric, v float64) { b.add(m, v, labels...) }
	add(c.m.directories, float64(j.Directories))
	add(c.m.damaged, float64(j.Damaged))
	if k := j.Complete; k != nil {
		add(c.m.completeID, float64(k.ID))
		if !k.Written.IsZero() {
			add(c.m.completeTime, seconds(k.Written))
			add(c.m.completeAge, max(now.Sub(k.Written).Seconds(), 0))
		}
	}
	if k := j.Newest; k != nil {
		add(c.m.stateBytes, float64(k.Bytes))
		add(c.m.inlineBytes, float64(k.InlineBytes))
		add(c.m.metadataBytes, float64(k.MetadataBytes))
		add(c.m.operators, float64(k.Operators))
		add(c.m.files, float64(k.Files))
		add(c.m.missing, float64(k.MissingFiles))
		add(c.m.wrong, float64(k.WrongFiles))
		add(c.m.unchecked, float64(k.UncheckedFiles))
		for _, q := range []struct {
			name        string
			first, last int64
		}{{"state_bytes", j.First.Bytes, k.Bytes}, {"metadata_bytes", j.First.MetadataBytes, k.MetadataBytes}} {
			if c.o.Limit > 0 {
				until := j.Span.Until(q.first, q.last, c.o.Limit)
				b.add(c.m.limit, distance(until, until.Checkpoints), append(slices.Clone(labels), q.name)...)
				b.add(c.m.limitSeconds, distance(until, until.Seconds), append(slices.Clone(labels), q.name)...)
			}
		}
		for _, rule := range c.o.Rules {
			b.add(c.m.firing, truth(slices.Contains(j.Firing, rule)), append(slices.Clone(labels), label(rule))...)
		}
	}
	b.flush()
}

func (c *Collector) states(b *batch, root string, j *watch.Job) {
	if j.Newest == nil {
		return
	}
	first := map[watch.StateID]*watch.State{}
	for i := range j.First.States {
		first[j.First.States[i].StateID] = &j.First.States[i]
	}
	for i := range j.Newest.States {
		st := &j.Newest.States[i]
		labels := []string{label(root), label(j.Name), label(st.Operator), label(st.StateID.Operator), label(st.Name), label(st.Kind)}
		if b.again(labels) {
			b.dropped++ // names that are equal where they are cut
			continue
		}
		add := func(m *Metric, v float64) { b.add(m, v, labels...) }
		limit := func(quantity string, first, last, limit int64) {
			if limit > 0 {
				until := j.Span.Until(first, last, limit)
				b.add(c.m.stateLimit, distance(until, until.Checkpoints), append(slices.Clone(labels), quantity)...)
			}
		}
		before := first[st.StateID]
		if before == nil {
			before = &watch.State{}
		}
		add(c.m.bytes, float64(st.Bytes))
		add(c.m.inline, float64(st.InlineBytes))
		limit("bytes", before.Bytes, st.Bytes, c.o.Limit)
		if st.Elements >= 0 {
			add(c.m.elements, float64(st.Elements))
			limit("elements", max(before.Elements, 0), st.Elements, c.o.LimitElements)
		}
		if st.Union() {
			add(c.m.unionRestore, float64(st.UnionRestoreBytes))
			add(c.m.unionDouble, truth(st.MayBeMultiplied))
			if before.Elements > 0 {
				add(c.m.unionGrowth, float64(st.Elements)/float64(before.Elements))
			}
		}
		b.flush()
	}
	b.dropped += LeastSeries * j.Newest.MoreStates
}

// again reports whether labels were used before, and notes them.
func (b *batch) again(labels []string) bool {
	key := strings.Join(labels, "\x00")
	before := b.seen[key]
	b.seen[key] = true
	return before
}

// distance is how far a limit is: 0 if it is reached, infinite if it never will be.
func distance(l trend.Limit, n *int64) float64 {
	switch {
	case l.Reached:
		return 0
	case n == nil:
		return math.Inf(1)
	}
	return float64(*n)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// longestLabel bounds the value of a label, in bytes: names come from files.
const longestLabel = 256

// label returns a name from a file as the value of a label: valid UTF-8, and not long.
func label(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= longestLabel {
		return s
	}
	n := longestLabel
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
