package check

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// since is the first release that reads a form of state; last, where it is not
// zero, the last one.
type since struct {
	what   string
	first  assign.Release
	last   assign.Release
	why    string // more of what other releases do with it
	advice string // where it is too new a release; "": restore with the last one first
	note   bool   // as long as no release is named it is no more than a note
}

// readBy reports whether a release reads it.
func (s since) readBy(r assign.Release) bool {
	return !before(r, s.first) && (s.last == assign.Release{} || !before(s.last, r))
}

// unread says that a release does not read it, and which does.
func (s since) unread(r assign.Release) string {
	text := fmt.Sprintf("%s, which Flink %s cannot read: ", s.what, r)
	if before(r, s.first) {
		text += fmt.Sprintf("%s is the first that can", s.first)
	} else {
		text += fmt.Sprintf("%s is the last that can", s.last)
	}
	if s.why != "" {
		text += "; " + s.why
	}
	return text
}

// metadataSince is by the version of _metadata (spec flink-metadata 3).
var metadataSince = map[int32]assign.Release{
	2: {Major: 1, Minor: 3}, 3: {Major: 1, Minor: 11}, 4: {Major: 1, Minor: 16}, 5: {Major: 2, Minor: 0}, 6: {Major: 2, Minor: 1},
}

// envelopeSince is by the version of the envelope of operator state (spec
// flink-operator-state A3): 1.17 and later read 5 and 6 only.
var envelopeSince = map[int32]assign.Release{
	1: {Major: 1, Minor: 2}, 2: {Major: 1, Minor: 3}, 3: {Major: 1, Minor: 5}, 4: {Major: 1, Minor: 6}, 5: {Major: 1, Minor: 7}, 6: {Major: 1, Minor: 18},
}

// keyedSince is by the version that a stream of keyed state begins with: 1.17 and
// later read 6 only (spec flink-keyed-state 2.1, 2.4, where 3 and 4 are a release
// late: snapshots of 1.3 hold 3, and those of 1.4 hold 4).
var keyedSince = map[int32]assign.Release{
	1: {Major: 1, Minor: 2}, 2: {Major: 1, Minor: 2}, 3: {Major: 1, Minor: 3}, 4: {Major: 1, Minor: 4}, 5: {Major: 1, Minor: 6}, 6: {Major: 1, Minor: 7},
}

// lastOldState is the last release that reads what 1.6 and before wrote.
var lastOldState = assign.Release{Major: 1, Minor: 16}

func before(a, b assign.Release) bool {
	return a.Major < b.Major || a.Major == b.Major && a.Minor < b.Minor
}

// release says what the release that restores cannot read. Without one, it
// names only what no current release reads.
func (c *checker) release(ctx context.Context) {
	if first, ok := metadataSince[c.o.Metadata]; ok {
		c.judge(nil, since{what: fmt.Sprintf("_metadata of version %d", c.o.Metadata), first: first})
	}
	for _, op := range c.report.Restored {
		for _, s := range c.formsOf(ctx, op) {
			c.judge(op, s)
		}
	}
}

// judge adds a finding where the release that restores does not read a form.
func (c *checker) judge(op *format.Operator, s since) {
	r := c.o.Release
	if like := c.o.Like; r == (assign.Release{}) && s.note && like != nil {
		r = metadataSince[like.Metadata] // that release or one of the next
	}
	advice := s.advice
	if advice == "" {
		advice = fmt.Sprintf("restore it with Flink %s first and take a new savepoint", s.last)
	}
	switch {
	case r == assign.Release{}:
		if s.last == r {
			return
		}
		f := Finding{Severity: finding.Warning, Code: "old-state", Operator: op,
			Message: fmt.Sprintf("it has %s, which Flink %s is the last to read", s.what, s.last), Advice: advice + "; --flink says which release is meant"}
		if s.why != "" {
			f.Message += "; " + s.why
		}
		if s.note {
			f.Severity = finding.Note
		}
		c.add(f)
	case s.readBy(r):
	case before(r, s.first):
		c.add(Finding{Severity: finding.Error, Code: "release", Operator: op, Message: "it has " + s.unread(r), Advice: "restore with a newer release"})
	default:
		c.add(Finding{Severity: finding.Error, Code: "release", Operator: op, Message: "it has " + s.unread(r), Advice: advice})
	}
}

// TypesFor fails with an ErrUnsupported where a release of Flink has not the
// serializers of some state, or misreads what they wrote. metadata is the
// version of the _metadata that the job wrote, 0 where that is not known. unread
// is what could not be told of types.
func TypesFor(ctx context.Context, sp *format.Savepoint, schema types.Schemas, metadata int32, r assign.Release) (unread []error, err error) {
	for _, op := range sp.Operators {
		d, not, err := schema(ctx, op)
		if err != nil {
			return nil, err
		}
		unread = append(unread, not...)
		for _, s := range serializersOf(d, metadata) {
			if !s.readBy(r) {
				return nil, format.At(format.Errorf(format.ErrUnsupported, "%s", s.unread(r)), "operator %q", op.Label())
			}
		}
	}
	return unread, nil
}

// formsOf lists the forms of an operator's state that not every release reads,
// each once.
func (c *checker) formsOf(ctx context.Context, op *format.Operator) []since {
	f := forms{c: c, ctx: ctx, op: op, seen: map[string]bool{}}
	if op.Finished {
		f.add(since{what: "the mark of a finished operator", first: assign.Release{Major: 1, Minor: 14}})
	}
	for _, s := range op.Subtasks {
		f.subtask(s)
	}
	if d := c.described[op]; d != nil {
		for _, s := range serializersOf(d.Schema, c.o.Metadata) {
			f.add(s)
		}
	}
	return f.all
}

type forms struct {
	c    *checker
	ctx  context.Context
	op   *format.Operator
	seen map[string]bool
	all  []since
}

func (f *forms) add(s since) {
	if !f.seen[s.what] {
		f.seen[s.what] = true
		f.all = append(f.all, s)
	}
}

func (f *forms) subtask(s *format.Subtask) {
	if s.Finished {
		f.add(since{what: "the mark of a finished subtask", first: assign.Release{Major: 1, Minor: 14}})
	}
	if h := s.Managed; h != nil {
		if h.Merging != nil {
			f.add(since{what: "state of merged files", first: assign.Release{Major: 1, Minor: 20}})
		}
		if h.Codec == format.CodecFlink {
			f.version(h.Data, "operator state", envelopeSince, currentEnvelope)
		}
	}
	for _, h := range []format.KeyedHandle{s.ManagedKeyed, s.RawKeyed} {
		format.EachKeyed(h, func(h format.KeyedHandle) { f.keyed(h, s.RawKeyed == h) })
	}
	for _, list := range [][]*format.ChannelHandle{s.Input, s.Output} {
		for _, h := range list {
			if h.Merged {
				f.add(since{what: "merged in-flight data", first: assign.Release{Major: 2, Minor: 1}})
			}
		}
	}
}

// keyed looks at the tags of keyed handles (spec flink-metadata 3.1) and at the
// version that their streams begin with.
func (f *forms) keyed(h format.KeyedHandle, raw bool) {
	switch h := h.(type) {
	case *format.KeyGroups:
		if h.Savepoint {
			f.add(since{what: "keyed state of a canonical savepoint", first: assign.Release{Major: 1, Minor: 13}})
		}
		if h.HandleID.String() != "" {
			f.add(since{what: "keyed state whose handles have ids", first: assign.Release{Major: 1, Minor: 15}})
		}
		f.segment(h.Data)
		if !raw && h.Codec == format.CodecFlink {
			f.version(h.Data, "keyed state", keyedSince, currentKeyed)
		}
	case *format.Incremental:
		if h.HandleID.String() != "" {
			f.add(since{what: "keyed state whose handles have ids", first: assign.Release{Major: 1, Minor: 15}})
		}
		for _, list := range [][]format.NamedStream{h.Shared, h.Private} {
			for _, s := range list {
				f.segment(s.Data)
			}
		}
		f.segment(h.Meta)
		f.version(h.Meta, "keyed state", keyedSince, currentKeyed)
	case *format.Changelog:
		f.add(since{what: "a changelog", first: assign.Release{Major: 1, Minor: 14}})
	}
}

func (f *forms) segment(s format.Stream) {
	switch s.(type) {
	case *format.Segment, *format.EmptySegment:
		f.add(since{what: "state of merged files", first: assign.Release{Major: 1, Minor: 20}})
	}
}

// version reads the first four bytes of a stream: the version of what describes
// the state in it. A stream that cannot be had says nothing; that it is missing
// is a finding of its own.
func (f *forms) version(s format.Stream, what string, table map[int32]assign.Release, current int32) {
	if s == nil || s.Size() == 0 { // or a placeholder
		return
	}
	var p [4]byte
	n, err := f.c.in.Source.ReadAt(f.ctx, s, p[:], 0)
	if err != nil || n < len(p) {
		if (err == nil || !format.NoFile(err)) && f.c.o.Schema == nil { // else it was said
			f.unread(what, "its first bytes cannot be read")
		}
		return
	}
	v := int32(binary.BigEndian.Uint32(p[:]))
	first, known := table[v]
	if !known {
		f.unread(what, fmt.Sprintf("it begins with version %d, which is not known", v))
		return
	}
	f.add(formOf(what, v, first, current))
}

// formOf is a stream that begins with a version; releases after lastOldState read
// the current ones only.
func formOf(what string, v int32, first assign.Release, current int32) since {
	s := since{what: fmt.Sprintf("%s of version %d", what, v), first: first}
	if v < current {
		s.last = lastOldState
	}
	return s
}

// keyedForm is a stream of keyed state of a version, where that is known.
func keyedForm(v int32) (since, bool) {
	first, known := keyedSince[v]
	return formOf("keyed state", v, first, currentKeyed), known
}

// The versions from which on streams are read by the releases of today.
const (
	currentEnvelope = 5
	currentKeyed    = 6
)

func (f *forms) unread(what, why string) {
	if f.c.damaged[f.op] {
		return
	}
	key := "unread " + what
	if f.seen[key] {
		return
	}
	f.seen[key] = true
	f.c.add(Finding{Severity: finding.Warning, Code: "not-checked", Operator: f.op, Message: fmt.Sprintf("which releases read its %s could not be told: %s", what, why)})
}
