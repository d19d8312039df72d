package check

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// since is the first release that reads a form of state; last, where it is not
// zero, the last one.
type since struct {
	what   string
	first  flink.Release
	last   flink.Release
	why    string // more of what other releases do with it
	advice string // where it is too new a release; "": restore with the last one first
	note   bool   // as long as no release is named it is no more than a note
}

// readBy reports whether a release reads it.
func (s since) readBy(r flink.Release) bool {
	return r >= s.first && (s.last == 0 || r <= s.last)
}

// unread says that a release does not read it, and which does.
func (s since) unread(r flink.Release) string {
	text := fmt.Sprintf("%s, which Flink %s cannot read: ", s.what, r)
	if r < s.first {
		text += fmt.Sprintf("%s is the first that can", s.first)
	} else {
		text += fmt.Sprintf("%s is the last that can", s.last)
	}
	if s.why != "" {
		text += "; " + s.why
	}
	return text
}

// lifetime is state that releases with some facts read.
func lifetime(what string, has func(flink.Facts) bool) since {
	s := since{what: what}
	s.first, s.last = flink.Lifetime(has)
	return s
}

func finished(f flink.Facts) bool { return f.Finished }

func operatorVersions(f flink.Facts) flink.Versions { return f.OperatorState }

func keyedVersions(f flink.Facts) flink.Versions { return f.KeyedState }

// streamOf is a stream that starts with a version.
func streamOf(what string, v int32, versions func(flink.Facts) flink.Versions) since {
	return lifetime(fmt.Sprintf("%s of version %d", what, v), func(f flink.Facts) bool { return versions(f).Has(int(v)) })
}

// release says what the release that restores cannot read. Without one, it
// names only what no current release reads.
func (c *checker) release(ctx context.Context) {
	if c.o.Metadata > 0 {
		c.judge(nil, lifetime(fmt.Sprintf("_metadata of version %d", c.o.Metadata), func(f flink.Facts) bool { return f.Metadata.Has(int(c.o.Metadata)) }))
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
	if like := c.o.Like; r == 0 && s.note && like != nil {
		r, _ = flink.WritersOf(int(like.Metadata)) // that release or one of the next
	}
	advice := s.advice
	if advice == "" {
		advice = fmt.Sprintf("restore it with Flink %s first and take a new savepoint", s.last)
	}
	switch {
	case r == 0:
		if s.last == r {
			return
		}
		f := Finding{Severity: finding.Warning, Code: "old-state", Operator: op,
			Message: fmt.Sprintf("it has %s, which Flink %s is the last to read", s.what, s.last),
			Advice:  []finding.Remedy{{Words: advice}, {Words: "say which release is meant", Also: true, Action: finding.NameRelease}}}
		if s.why != "" {
			f.Message += "; " + s.why
		}
		if s.note {
			f.Severity = finding.Note
		}
		c.add(f)
	case s.readBy(r):
	case r < s.first:
		c.add(Finding{Severity: finding.Error, Code: "release", Operator: op, Message: "it has " + s.unread(r), Advice: finding.Words("restore with a newer release")})
	default:
		c.add(Finding{Severity: finding.Error, Code: "release", Operator: op, Message: "it has " + s.unread(r), Advice: finding.Words(advice)})
	}
}

// TypesFor fails with an ErrUnsupported where a release of Flink has not the
// serializers of some state, or misreads what they wrote. metadata is the
// version of the _metadata that the job wrote, 0 where that is not known. unread
// is what could not be told of types.
func TypesFor(ctx context.Context, sp *format.Savepoint, schema types.Schemas, metadata int32, r flink.Release) (unread []error, err error) {
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
		f.add(lifetime("the mark of a finished operator", finished))
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
		f.add(lifetime("the mark of a finished subtask", finished))
	}
	if h := s.Managed; h != nil {
		if h.Merging != nil {
			f.add(lifetime("state of merged files", flink.Facts.MergedFiles))
		}
		if h.Codec == format.CodecFlink {
			f.version(h.Data, "operator state", operatorVersions)
		}
	}
	for _, h := range []format.KeyedHandle{s.ManagedKeyed, s.RawKeyed} {
		format.EachKeyed(h, func(h format.KeyedHandle) { f.keyed(h, s.RawKeyed == h) })
	}
	for _, list := range [][]*format.ChannelHandle{s.Input, s.Output} {
		for _, h := range list {
			if h.Merged {
				f.add(lifetime("merged in-flight data", flink.Facts.MergedChannels))
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
			f.add(lifetime("keyed state of a canonical savepoint", flink.Facts.CanonicalSavepoints))
		}
		if h.HandleID.String() != "" {
			f.add(lifetime("keyed state whose handles have ids", flink.Facts.HandleIDs))
		}
		f.segment(h.Data)
		if !raw && h.Codec == format.CodecFlink {
			f.version(h.Data, "keyed state", keyedVersions)
		}
	case *format.Incremental:
		if h.HandleID.String() != "" {
			f.add(lifetime("keyed state whose handles have ids", flink.Facts.HandleIDs))
		}
		for _, list := range [][]format.NamedStream{h.Shared, h.Private} {
			for _, s := range list {
				f.segment(s.Data)
			}
		}
		f.segment(h.Meta)
		f.version(h.Meta, "keyed state", keyedVersions)
	case *format.Changelog:
		f.add(lifetime("a changelog", func(f flink.Facts) bool { return f.Changelogs != 0 }))
	}
}

func (f *forms) segment(s format.Stream) {
	switch s.(type) {
	case *format.Segment, *format.EmptySegment:
		f.add(lifetime("state of merged files", flink.Facts.MergedFiles))
	}
}

// version reads the first four bytes of a stream: the version of what describes
// the state in it. A stream that cannot be had says nothing; that it is missing
// is a finding of its own.
func (f *forms) version(s format.Stream, what string, versions func(flink.Facts) flink.Versions) {
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
	form := streamOf(what, v, versions)
	if form.first == 0 {
		f.unread(what, fmt.Sprintf("it begins with version %d, which is not known", v))
		return
	}
	f.add(form)
}

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
