package metadata

import (
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/internal/limit"
)

// Options are the options of Decode.
type Options struct {
	Limits format.Limits
}

// Decode decodes a whole _metadata file. The offsets and inline bytes of the result
// are views of p. Its Location is empty; the caller sets it.
//
// Errors match ErrTruncated, ErrCorrupt, ErrUnsupported or ErrLimit and carry
// offset and path. A fault on mapped bytes is ErrChanged.
func Decode(p format.Bytes, o Options) (*format.Savepoint, error) {
	sp, err := decode(p, o, false)
	if err != nil {
		return nil, err
	}
	return sp, nil
}

// Salvage decodes as much as possible: it returns the content before the first
// error, and that error. The last operator may lack subtasks. The savepoint is nil
// only if the header cannot be read.
func Salvage(p format.Bytes, o Options) (*format.Savepoint, error) { return decode(p, o, true) }

func decode(p format.Bytes, o Options, salvage bool) (sp *format.Savepoint, err error) {
	gerr := p.View(func(raw []byte) error {
		var v Version
		if v, err = decodeHeader(raw); err == nil {
			sp, err = decodeBody(p, raw, v, o.Limits.WithDefaults(int64(p.Len())), salvage)
		}
		return nil
	})
	if gerr != nil { // the file shrank: no result is valid
		return nil, gerr
	}
	return sp, err
}

// decodeBody tries the layouts that the version allows. The layout that reads the
// file to its end is right; if none does, it returns the result of the layout that
// read most subtasks, or of the common one.
func decodeBody(p format.Bytes, raw []byte, v Version, limits format.Limits, salvage bool) (sp *format.Savepoint, err error) {
	most := -1
	var met layout // layouts that differ in the records read
	for _, l := range layouts {
		if l.noSubtask && !met.noSubtask || l.shortChangelogs && !met.shortChangelogs {
			continue // same result
		}
		d := &decoder{Cursor: java.NewCursor(raw), bytes: p, v: v, layout: l, limits: limits, salvage: salvage}
		again, aerr := d.file()
		if aerr == nil || d.subtasks > most {
			sp, err, most = again, aerr, d.subtasks
		}
		if aerr == nil || !v.hasLayouts() {
			break
		}
		met.noSubtask = met.noSubtask || d.met.noSubtask
		met.shortChangelogs = met.shortChangelogs || d.met.shortChangelogs
	}
	return sp, err
}

func decodeHeader(raw []byte) (Version, error) {
	c := java.NewCursor(raw)
	if len(raw) == 0 {
		c.Fail(0, format.ErrTruncated, "the file is empty")
		return 0, c.Err()
	}
	magic := c.I32()
	if c.Err() == nil && magic != fileMagic {
		c.Fail(0, format.ErrCorrupt, "not a _metadata file: expected magic %08x, found %08x", uint32(fileMagic), uint32(magic))
	}
	v := Version(c.I32())
	if err := c.Err(); err != nil {
		return 0, err
	}
	if !v.Valid() {
		err := unsupported(v).(*format.Error)
		err.Offset = 4
		return 0, err
	}
	return v, nil
}

// decoder reads one file in one layout.
type decoder struct {
	*java.Cursor
	bytes    format.Bytes // the same bytes, for views
	v        Version
	layout   layout
	met      layout // layouts that differ in the records read
	limits   format.Limits
	salvage  bool // continue after a count that is too large
	nodes    int
	subtasks int // complete ones
	arena    arena
}

// node counts a node against the limit.
func (d *decoder) node() {
	if d.nodes++; d.nodes > d.limits.Nodes {
		d.Fail(d.Offset(), limit.Nodes, "more than %d operators, subtasks, handles and streams", d.limits.Nodes)
	}
}

// view returns a view, which outlives the decoder, of bytes just read.
func (d *decoder) view(p []byte) format.Bytes {
	end := d.Offset()
	if d.Err() != nil {
		return format.Bytes{}
	}
	return d.bytes.Slice(end-len(p), end)
}

func (d *decoder) file() (*format.Savepoint, error) {
	d.I32() // magic
	d.I32() // version
	w := fileWire{version: d.v, layout: d.layout}
	sp := &format.Savepoint{Wire: w.wire()}
	off := d.Offset()
	sp.ID = d.I64()
	if sp.ID < 0 {
		d.Fail(off, format.ErrCorrupt, "checkpoint id %d is negative", sp.ID)
	}
	n := d.Count("master states", 18)
	for i := range n {
		d.node()
		m, err := d.master()
		if err != nil {
			return sp, format.At(err, "master state[%d]", i)
		}
		sp.Masters = append(sp.Masters, m)
	}
	off = d.Offset()
	n, short := d.list(off, d.I32(), "operators", d.minOperator())
	if n > d.limits.Operators {
		d.Fail(off, limit.Operators, "%d operators, the limit is %d", n, d.limits.Operators)
	}
	if err := d.Err(); err != nil {
		return sp, err
	}
	sp.Operators = make([]*format.Operator, 0, min(n, 4096))
	for i := range n {
		op, err := d.operator()
		if op != nil {
			sp.Operators = append(sp.Operators, op)
		}
		if err != nil {
			if short != nil {
				return sp, short
			}
			if op != nil && op.Label() != op.ID.Short() {
				return sp, format.At(err, "operator[%d] %q", i, op.Label())
			}
			return sp, format.At(err, "operator[%d]", i)
		}
	}
	if short != nil {
		return sp, short
	}
	var err error
	if d.v.hasProperties() {
		sp.Kind, w.tail, err = decodeProperties(d.Cursor)
	} else if n := d.Remaining(); n > 0 {
		d.Fail(d.Offset(), format.ErrCorrupt, "%d bytes after the end of the snapshot", n)
		err = d.Err()
	}
	sp.Wire = w.wire()
	return sp, err
}

const masterMagic = 0xc96b1696

func (d *decoder) master() (m format.MasterState, err error) {
	off := d.Offset()
	if magic := uint32(d.I32()); d.Err() == nil && magic != masterMagic {
		d.Fail(off, format.ErrCorrupt, "expected magic %08x of a master state, found %08x", uint32(masterMagic), magic)
	}
	off = d.Offset()
	n := d.I32()
	if d.Err() == nil && (n <= 0 || int(n) > d.Remaining()) {
		kind := format.ErrTruncated
		if n <= 0 {
			kind = format.ErrCorrupt
		}
		d.Fail(off, kind, "expected a master state of %d bytes, found %d", n, d.Remaining())
	}
	start := d.Offset()
	m.Version = d.I32()
	m.Name = d.Text()
	m.Data = d.view(d.Blob("master state"))
	if used := d.Offset() - start; d.Err() == nil && used != int(n) {
		d.Fail(off, format.ErrCorrupt, "expected a master state of %[2]d bytes, found %[1]d", used, n)
	}
	return m, d.Err()
}

func (d *decoder) minOperator() int {
	switch {
	case d.v.hasNames():
		return 33
	case d.v.hasCoordinator():
		return 29
	}
	return 32
}

// operator returns an operator, even after an error, for Salvage; nil if the id
// cannot be read.
func (d *decoder) operator() (*format.Operator, error) {
	d.node()
	op := &format.Operator{}
	if d.v.hasNames() {
		op.Name = d.Text()
		op.UID = d.Text()
	}
	copy(op.ID[:], d.Bytes(16, "an operator id"))
	op.Parallelism = d.I32()
	op.MaxParallelism = d.I32()
	if d.Err() != nil {
		return nil, d.Err()
	}
	w := operatorWire{chainLength: 1, subtaskCount: -1}
	if d.v.hasDeadFields() {
		w.chainLength = d.I32()
	}
	if d.v.hasCoordinator() {
		off := d.Offset()
		op.Coordinator = d.stream(0)
		switch op.Coordinator.(type) {
		case nil, *format.Inline:
		default:
			d.Fail(off, format.ErrCorrupt, "coordinator state is not stored inline")
		}
	}
	off := d.Offset()
	count := d.I32()
	if count < 0 && d.v.hasFinished() {
		op.Finished = true
		w.subtaskCount = count
		if op.Coordinator != nil {
			d.Fail(off, format.ErrCorrupt, "finished operator with coordinator state")
		}
		op.Wire = w.wire()
		return op, d.Err()
	}
	op.Wire = w.wire()
	minSize := 4
	if !d.v.hasFinished() {
		minSize = 26
	}
	n, short := d.list(off, count, "subtasks", minSize)
	if n > d.limits.Subtasks {
		d.Fail(off, limit.Subtasks, "%d subtasks, the limit is %d", n, d.limits.Subtasks)
	}
	if err := d.Err(); err != nil {
		return op, err
	}
	op.Subtasks = make([]*format.Subtask, 0, n)
	ascending := true
	for i := range n {
		at := d.Offset()
		s, err := d.subtask()
		if err != nil {
			if short != nil {
				return op, short
			}
			if d.Offset() == at { // not even its index could be read
				return op, format.At(err, "subtask entry[%d]", i)
			}
			return op, format.At(err, "subtask %d", s.Index)
		}
		if i > 0 && s.Index <= op.Subtasks[i-1].Index {
			ascending = false
		}
		op.Subtasks = append(op.Subtasks, s)
		d.subtasks++
	}
	if !ascending {
		if twice, ok := repeated(op.Subtasks); ok {
			d.Fail(off, format.ErrCorrupt, "duplicate subtask %d", twice)
		}
	}
	if short != nil {
		return op, short
	}
	return op, d.Err()
}

// list checks a count that was read at off. When salvaging, it reduces a count that
// is too large for the input, and returns the error for the end of the list;
// otherwise it records the error.
func (d *decoder) list(off int, count int32, what string, minSize int) (n int, short error) {
	n = int(count)
	if most := d.Remaining() / minSize; d.salvage && d.Err() == nil && n > most {
		probe := *d.Cursor
		probe.CheckCount(off, n, what, minSize)
		return most, probe.Err()
	}
	d.CheckCount(off, n, what, minSize)
	return n, nil
}

// repeated returns an index that occurs twice in the subtasks.
func repeated(subtasks []*format.Subtask) (index int32, ok bool) {
	all := make([]int32, len(subtasks))
	for i, s := range subtasks {
		all[i] = s.Index
	}
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			return all[i], true
		}
	}
	return 0, false
}

func (d *decoder) subtask() (*format.Subtask, error) {
	d.node()
	s := d.arena.subtask()
	off := d.Offset()
	s.Index = d.I32()
	if s.Index < 0 {
		if !d.v.hasFinished() {
			d.Fail(off, format.ErrCorrupt, "invalid subtask index %d", s.Index)
			return s, d.Err()
		}
		s.Finished = true
		s.Index = -s.Index - 1
		return s, d.Err()
	}
	if d.v.hasDeadFields() {
		if duration := d.I64(); duration != -1 {
			s.Wire = durationWire(duration)
		}
		n := d.Count("legacy handles", 1)
		for range n {
			st := d.stream(0)
			if d.Err() != nil {
				break
			}
			s.Legacy = append(s.Legacy, st)
		}
		if err := d.Err(); err != nil {
			return s, format.At(err, "legacy state")
		}
	}
	var err error
	if s.Managed, err = d.oneOperatorHandle(format.CodecFlink); err != nil {
		return s, format.At(err, "operator state")
	}
	if s.Raw, err = d.oneOperatorHandle(format.CodecRaw); err != nil {
		return s, format.At(err, "raw operator state")
	}
	if s.ManagedKeyed, err = d.keyed(format.CodecFlink, 0); err != nil {
		return s, format.At(err, "keyed state")
	}
	if s.RawKeyed, err = d.keyed(format.CodecRaw, 0); err != nil {
		return s, format.At(err, "raw keyed state")
	}
	if d.v.hasChannels() {
		if s.Input, err = d.channels(true); err != nil {
			return s, format.At(err, "input channels")
		}
		if s.Output, err = d.channels(false); err != nil {
			return s, format.At(err, "output channels")
		}
	}
	return s, d.Err()
}

// oneOperatorHandle reads a list to which Flink writes at most one handle.
func (d *decoder) oneOperatorHandle(codec format.CodecID) (*format.OperatorHandle, error) {
	off := d.Offset()
	n := d.I32()
	if n != 0 && n != 1 {
		d.Fail(off, format.ErrCorrupt, "expected at most one handle, found %d", n)
	}
	if err := d.Err(); err != nil || n == 0 {
		return nil, err
	}
	return d.operatorHandle(codec)
}
