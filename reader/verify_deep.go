package reader

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/work"
)

// With VerifyOptions.Deep the entries of keyed state are checked: tables of RocksDB
// table by table, with all that is stored in them; state in other encodings by ranges
// of key groups, and changelogs as their cursor returns them.

// entriesResult is what was found in entries of a handle.
type entriesResult struct {
	entries    int64
	outside    int64 // in key groups outside the range of the handle
	hashed     int64 // keys whose key group was computed
	misplaced  int64 // of them, stored in another one
	example    string
	notDecoded []reason // by state
	notHashed  []reason
	stop       []finding.Finding // errors that ended reading
}

// reason is why the entries of a state are not checked.
type reason struct{ state, why string }

// joined merges the results of the units of a handle, by what they begin with, in the
// order of the file.
func joined(byFirst map[int64]*entriesResult) *entriesResult {
	sum := &entriesResult{}
	for _, first := range slices.Sorted(maps.Keys(byFirst)) {
		sum.merge(byFirst[first])
	}
	return sum
}

// merge adds the result of a later unit.
func (r *entriesResult) merge(o *entriesResult) {
	r.entries += o.entries
	r.outside += o.outside
	r.hashed += o.hashed
	r.misplaced += o.misplaced
	if r.example == "" {
		r.example = o.example
	}
	for _, x := range o.notDecoded {
		r.notDecoded = addReason(r.notDecoded, x)
	}
	for _, x := range o.notHashed {
		r.notHashed = addReason(r.notHashed, x)
	}
	r.stop = append(r.stop, o.stop...)
}

func addReason(all []reason, x reason) []reason {
	if slices.Contains(all, x) {
		return all
	}
	return append(all, x)
}

// deepUnits yields the units that check the entries of a handle, if its header was read
// without an error.
func (v *verifier) deepUnits(r *handleReport, yield func(work.Unit) bool) bool {
	h, err := r.unit.KeyedHandle(v.check.sp)
	if err != nil || slices.ContainsFunc(r.found, func(f finding.Finding) bool { return f.Severity == finding.Error }) {
		return true
	}
	u := r.unit
	u.Job = work.CheckEntries
	switch h := h.(type) {
	case *format.KeyGroups:
		if h.Codec == format.CodecNative || !r.reachable(h.Data) {
			return true
		}
		return yieldAll(work.KeyGroups(u, h, entryBytes), yield)
	case *format.Changelog:
		if len(h.Changes) == 0 { // the materialized handles are checked themselves
			return true
		}
		return yieldAll(work.KeyGroups(u, h, entryBytes), yield)
	case *format.Incremental:
		if !r.reachable(h.Meta) {
			return true
		}
		t, err := v.check.tables(v.ctx, u)
		if err != nil {
			u.First, u.Count = 0, 0 // the unit reports the error
			return yield(u)
		}
		for _, i := range bySize(t.Live) {
			u.First, u.Count = int64(i), 1
			if !yield(u) {
				return false
			}
		}
	}
	return true
}

// bySize returns the indexes of tables, the largest first, so that the units of a handle
// end at about the same time; without a table the index 0.
func bySize(tables []keyed.LiveTable) []int {
	order := make([]int, max(len(tables), 1))
	for i := range order {
		order[i] = i
	}
	if len(tables) > 0 {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tables[b].Size, tables[a].Size) })
	}
	return order
}

const (
	// entryBytes is how many bytes of a handle of keyed state one unit reads, about.
	entryBytes = 16 << 20
	// deepAhead is how many units may wait for a larger one before them: their results
	// are small.
	deepAhead = 64
)

func yieldAll(units iter.Seq[work.Unit], yield func(work.Unit) bool) bool {
	for u := range units {
		if !yield(u) {
			return false
		}
	}
	return true
}

// deep checks the entries of handles and adds the findings to their reports.
func (v *verifier) deep(reports []*handleReport) error {
	var keyedReports []*handleReport
	for _, r := range reports {
		if r.unit.Handle.Slot == format.SlotManagedKeyed || r.unit.Handle.Slot == format.SlotRawKeyed {
			keyedReports = append(keyedReports, r)
		}
	}
	units := func(yield func(work.Unit) bool) {
		for _, r := range keyedReports {
			if !v.deepUnits(r, yield) {
				return
			}
		}
	}
	parts := map[work.Handle]map[int64]*entriesResult{}
	o := v.o.options()
	o.Ahead = deepAhead
	err := work.Run(v.ctx, o, units, v.check.entries, func(u work.Unit, found *entriesResult, err error) error {
		if parts[u.Handle] == nil {
			parts[u.Handle] = map[int64]*entriesResult{}
		}
		if found != nil {
			parts[u.Handle][u.First] = found
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range keyedReports {
		var sum *entriesResult
		if p := parts[r.unit.Handle]; p != nil {
			sum = joined(p)
		}
		if err := r.deepFindings(v.ctx, sum); err != nil {
			return err
		}
		if err := v.cover(r, sum); err != nil {
			return err
		}
		v.check.opened.Delete(r.unit.Handle)
	}
	return nil
}

// cover notes which files of a handle were read as a whole, or all that belongs to its
// entries, when these were checked without an error.
func (v *verifier) cover(r *handleReport, sum *entriesResult) error {
	if v.files == nil || sum == nil || sum.entries == 0 || len(sum.stop) > 0 {
		return nil
	}
	h, err := r.unit.KeyedHandle(v.check.sp)
	if err != nil {
		return err
	}
	if v.covered == nil {
		v.covered = map[format.StreamKey]bool{}
	}
	switch h := h.(type) {
	case *format.KeyGroups:
		v.covered[h.Data.Key()] = true
	case *format.Incremental:
		t, err := v.check.tables(v.ctx, r.unit)
		if err != nil {
			return nil //nolint:nilerr // it is a finding already
		}
		live := map[string]bool{}
		for i := range t.Live {
			live[t.Live[i].Name] = true
		}
		for _, s := range slices.Concat(h.Shared, h.Private) {
			if live[s.Name.String()] {
				v.covered[s.Data.Key()] = true
			}
		}
	}
	return nil
}

// tables returns the tables of the handle of a unit. They are opened once.
func (c *contentCheck) tables(ctx context.Context, u work.Unit) (*keyed.Tables, error) {
	if t, ok := c.opened.Load(u.Handle); ok {
		return t.(*keyed.Tables), nil
	}
	h, err := u.KeyedHandle(c.sp)
	if err != nil {
		return nil, err
	}
	codec := c.snap.keyedCodec(c.sp.Operators[u.Handle.Operator])
	t, err := codec.OpenTables(ctx, c.snap.src, h.(*format.Incremental))
	if err == nil {
		c.opened.Store(u.Handle, t)
	}
	return t, err
}

// entries runs a unit that checks entries of keyed state.
func (c *contentCheck) entries(ctx context.Context, u work.Unit) (*entriesResult, error) {
	r, err := c.report(ctx, u)
	if err != nil {
		return nil, err
	}
	h, err := u.KeyedHandle(c.sp)
	if err != nil {
		return nil, err
	}
	d := &deepCheck{handleReport: r, groups: h.KeyGroups(), result: &entriesResult{}, arena: value.Arena{Views: true}}
	if _, ok := h.(*format.Incremental); ok {
		err = d.table(u)
	} else {
		err = d.groupsOf(u, h)
	}
	d.progress(0)
	if err != nil {
		err = r.add(err)
		d.result.stop = r.found
	}
	return d.result, err
}

// deepCheck checks entries of one handle.
type deepCheck struct {
	*handleReport
	groups format.KeyGroupRange
	names  []string
	codecs []value.EntryCodecs
	result *entriesResult
	bytes  int64 // checked and not reported as progress

	// The part of an entry that was decoded last: only that it can be decoded matters.
	arena value.Arena
	last  value.Value

	// Entries of a map share their key, and most entries their namespace, with the entry
	// before. hashGroup is the key group of the hash code of the key.
	key, namespace lastPart
	hashGroup      int32
}

// lastPart is a part of the entry before.
type lastPart struct {
	state int
	group int32
	p     []byte
}

// repeats reports whether p is the same part of an entry of the same state and key group,
// and keeps it otherwise.
func (l *lastPart) repeats(e *format.KeyedEntry, p []byte) bool {
	if len(p) > 0 && e.State == l.state && e.KeyGroup == l.group && bytes.Equal(p, l.p) {
		return true
	}
	l.state, l.group, l.p = e.State, e.KeyGroup, append(l.p[:0], p...)
	return false
}

func (d *deepCheck) progress(n int) {
	if d.bytes += int64(n); d.bytes >= 1<<20 || n == 0 {
		d.o.Progress(d.bytes)
		d.bytes = 0
	}
}

// groupsOf checks the entries of key groups.
func (d *deepCheck) groupsOf(u work.Unit, h format.KeyedHandle) error {
	src := d.snap.src
	codec, err := d.snap.KeyedCodec(d.place.Operator, h)
	if err != nil {
		return err
	}
	schema, err := codec.Describe(d.ctx, src, h)
	if err != nil {
		return err
	}
	if d.codecs, err = value.EntryCodecsOf(d.ctx, src, codec, h); err != nil {
		return err
	}
	for _, st := range schema.States {
		d.names = append(d.names, st.Name.String())
	}
	if u.Count == 0 {
		return nil
	}
	sel := format.KeyedSelection{Groups: format.KeyGroupRange{First: int32(u.First), Count: int32(u.Count)}}
	return format.EachKeyedEntry(d.ctx, src, codec, h, sel, func(e format.KeyedEntry) error {
		return d.entry(&e, true)
	})
}

// table checks all that is stored in one table.
func (d *deepCheck) table(u work.Unit) error {
	t, err := d.tables(d.ctx, u)
	if err != nil || u.First >= int64(len(t.Live)) {
		return err
	}
	d.codecs = t.Codecs
	l := &t.Live[u.First]
	d.names = slices.Repeat([]string{l.Family}, len(t.Codecs))
	_, err = t.Verify(d.ctx, l, func(e keyed.StoredEntry) error {
		if err := d.ctx.Err(); err != nil {
			return err
		}
		if e.State < 0 {
			return nil
		}
		if g := e.KeyGroup; g < d.groups.First || g > d.groups.Last() {
			d.result.outside++
			return nil
		}
		return d.entry(&e.KeyedEntry, e.Kind == rocksdb.KindPut || e.Kind == rocksdb.KindMerge)
	})
	return err
}

// entry decodes all parts of an entry, and compares the key group of its key.
func (d *deepCheck) entry(e *format.KeyedEntry, hasValue bool) error {
	d.result.entries++
	d.progress(len(e.Stored) + len(e.Value))
	c := &d.codecs[e.State]
	if c.Why != nil {
		d.notDecoded(e, c.Why)
	}
	d.arena.Reset()
	var err error
	sameKey := d.key.repeats(e, e.Key)
	if !sameKey {
		err = d.decode(e, "key", c.Key, e.Key)
	}
	if err == nil && !d.namespace.repeats(e, e.Namespace) {
		err = d.decode(e, "namespace", c.Namespace, e.Namespace)
	}
	if err == nil {
		err = d.decode(e, "map key", c.UserKey, e.UserKey)
	}
	if err == nil && hasValue {
		err = d.decode(e, "value", c.Value, e.Value)
	}
	if err == nil {
		err = d.placed(c, e, sameKey)
	}
	return err
}

// decode decodes a part of an entry to its end.
func (d *deepCheck) decode(e *format.KeyedEntry, what string, codec value.Codec, p []byte) error {
	if codec == nil || p == nil {
		return nil
	}
	switch err := value.ReadAllIn(&d.arena, codec, p, &d.last); {
	case err == nil:
	case errors.Is(err, format.ErrUnsupported):
		d.notDecoded(e, err)
	default:
		return format.At(err, "key group %d/state %q/%s", e.KeyGroup, d.names[e.State], what)
	}
	return nil
}

func (d *deepCheck) notDecoded(e *format.KeyedEntry, why error) {
	d.result.notDecoded = addReason(d.result.notDecoded, reason{d.names[e.State], why.Error()})
}

// placed compares the key group of an entry with the hash code of its key, which is the
// key of the entry before if sameKey is set.
func (d *deepCheck) placed(c *value.EntryCodecs, e *format.KeyedEntry, sameKey bool) error {
	if e.Key == nil {
		return nil
	}
	if c.KeyHash == nil {
		if c.WhyNoHash != nil {
			d.result.notHashed = addReason(d.result.notHashed, reason{"", c.WhyNoHash.Error()})
		}
		return nil
	}
	if !sameKey {
		hash, err := c.KeyHash(e.Key)
		if err != nil {
			return format.At(err, "key group %d/state %q/key", e.KeyGroup, d.names[e.State])
		}
		d.hashGroup = format.KeyGroupOfHash(hash, d.place.Operator.MaxParallelism)
	}
	d.result.hashed++
	if d.hashGroup != e.KeyGroup {
		if d.result.misplaced++; d.result.example == "" {
			d.result.example = fmt.Sprintf("a key of state %q is in key group %d instead of %d", d.names[e.State], e.KeyGroup, d.hashGroup)
		}
	}
	return nil
}

// deepFindings adds the findings of the entries of a handle; sum is nil if none were
// read.
func (r *handleReport) deepFindings(ctx context.Context, sum *entriesResult) error {
	if sum == nil {
		return nil
	}
	r.decoded = sum.entries
	add := func(severity finding.Severity, code, state, msg string, args ...any) {
		r.found = append(r.found, finding.Finding{Severity: severity, Code: code, Operator: r.place.Operator, State: state, Place: r.place.String(), Message: fmt.Sprintf(msg, args...)})
	}
	h, err := r.unit.KeyedHandle(r.sp)
	if err != nil {
		return err
	}
	if _, ok := h.(*format.Incremental); ok {
		if t, err := r.tables(ctx, r.unit); err == nil { // else it is in sum.stop
			r.tableFindings(t, add)
		}
	}
	r.found = append(r.found, sum.stop...)
	switch {
	case sum.misplaced == 0:
	case sum.misplaced*2 <= sum.hashed:
		add(finding.Error, "key-misplaced", "", "%d of %d keys are in another key group than their hash codes say, so the job does not find their state: %s", sum.misplaced, sum.hashed, sum.example)
	default:
		add(finding.Warning, "key-misplaced", "", "%d of %d keys are in another key group than the hash codes of their types say: the job computes other hash codes, or does not find their state: %s", sum.misplaced, sum.hashed, sum.example)
	}
	if sum.outside > 0 {
		add(finding.Note, "key-groups-outside", "", "%d entries of key groups outside its range, %v: a rescale leaves them, and a restore deletes them", sum.outside, h.KeyGroups())
	}
	for _, x := range sum.notDecoded {
		add(finding.Note, "not-decoded", x.state, "entries of state %q read and not decoded to their end: %s", x.state, x.why)
	}
	for _, x := range sum.notHashed {
		add(finding.Note, "not-checked", "", "whether its keys are in the key groups of their hash codes: %s", x.why)
	}
	return nil
}

// tableFindings adds what is wrong with the database of a handle as a whole.
func (r *handleReport) tableFindings(t *keyed.Tables, add func(severity finding.Severity, code, state, msg string, args ...any)) {
	for _, name := range t.Absent {
		add(finding.Error, "unreadable", "", "the database has a table %s, which is not among the files of its handle", name)
	}
	for _, name := range t.Missing {
		add(finding.Error, "unreadable", name.String(), "the database has no column family for state %q", name)
	}
	for _, name := range t.Families {
		add(finding.Warning, "column-family", "", "the database has a column family %q, and no state of this name is described", name)
	}
	for _, name := range t.Logs {
		add(finding.Warning, "wal", "", "the write-ahead log %s has bytes: what is only in it is not part of the state, because a restore ignores it", name)
	}
	if n := len(t.Unused); n > 0 {
		add(finding.Note, "table-unused", "", "%s in its handle that the database does not use, such as %s", plural(n, "table"), t.Unused[0])
	}
	if kind := r.snap.Kind; kind.Format == format.FormatNative && kind.Type.IsSavepoint() && r.place.Subtask.RawKeyed == nil && !t.Timers {
		r.found = append(r.found, finding.NoTimers(r.place.Operator))
	}
}
