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

// since is a feature of state with the releases that read it: first, and last
// unless it is zero.
type since struct {
	what   string
	first  flink.Release
	last   flink.Release
	why    string // explanation of how other releases treat it
	advice string // advice if the release is too new; "": restore with the last one first
	note   bool   // if no release is named, it is only a note
}

// readBy reports whether a release reads the feature.
func (s since) readBy(r flink.Release) bool {
	return r >= s.first && (s.last == 0 || r <= s.last)
}

// unread returns the message that a release does not read it, and which release
// does.
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

// lifetime returns a feature that releases with a fact read.
func lifetime(what string, has func(flink.Facts) bool) since {
	s := since{what: what}
	s.first, s.last = flink.Lifetime(has)
	return s
}

func finished(f flink.Facts) bool { return f.Finished }

func operatorVersions(f flink.Facts) flink.Versions { return f.OperatorState }

func keyedVersions(f flink.Facts) flink.Versions { return f.KeyedState }

// streamOf returns the feature of a stream that begins with a version.
func streamOf(what string, v int32, versions func(flink.Facts) flink.Versions) since {
	return lifetime(fmt.Sprintf("%s of version %d", what, v), func(f flink.Facts) bool { return versions(f).Has(int(v)) })
}

// release reports what the restoring release cannot read. Without one, it reports
// only what no current release reads.
func (c *checker) release(ctx context.Context) {
	if c.o.Metadata > 0 {
		c.judge(nil, lifetime(fmt.Sprintf("_metadata of version %d", c.o.Metadata), func(f flink.Facts) bool { return f.Metadata.Has(int(c.o.Metadata)) }))
	}
	for _, op := range c.report.Restored {
		for _, s := range c.featuresOf(ctx, op) {
			c.judge(op, s)
		}
	}
}

// judge adds a finding if the restoring release does not read a feature.
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
			Advice:  []finding.Remedy{{Words: advice}, {Words: "name the release that restores", Also: true, Action: finding.NameRelease}}}
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

// TypesFor returns an ErrUnsupported if a release of Flink lacks the serializers
// of some state, or misreads what they wrote. metadata is the version of the
// _metadata that the job wrote, 0 if unknown. unread holds errors of types that
// could not be determined.
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

// featuresOf returns the distinct features of an operator's state that not every
// release reads.
func (c *checker) featuresOf(ctx context.Context, op *format.Operator) []since {
	f := features{c: c, ctx: ctx, op: op, seen: map[string]bool{}}
	if op.Finished {
		f.add(lifetime("a fully finished operator", finished))
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

type features struct {
	c    *checker
	ctx  context.Context
	op   *format.Operator
	seen map[string]bool
	all  []since
}

func (f *features) add(s since) {
	if !f.seen[s.what] {
		f.seen[s.what] = true
		f.all = append(f.all, s)
	}
}

func (f *features) subtask(s *format.Subtask) {
	if s.Finished {
		f.add(lifetime("a fully finished subtask", finished))
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

// keyed adds features by the tags of keyed handles (spec flink-metadata 3.1) and
// by the version that their streams begin with.
func (f *features) keyed(h format.KeyedHandle, raw bool) {
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

func (f *features) segment(s format.Stream) {
	switch s.(type) {
	case *format.Segment, *format.EmptySegment:
		f.add(lifetime("state of merged files", flink.Facts.MergedFiles))
	}
}

// version reads the first four bytes of a stream: the version of its header. A
// missing stream is ignored here: another finding reports it.
func (f *features) version(s format.Stream, what string, versions func(flink.Facts) flink.Versions) {
	if s == nil || s.Size() == 0 { // also a placeholder
		return
	}
	var p [4]byte
	n, err := f.c.in.Source.ReadAt(f.ctx, s, p[:], 0)
	if err != nil || n < len(p) {
		if (err == nil || !format.NoFile(err)) && f.c.o.Schema == nil { // otherwise already reported
			f.unread(what, "its first bytes cannot be read")
		}
		return
	}
	v := int32(binary.BigEndian.Uint32(p[:]))
	feature := streamOf(what, v, versions)
	if feature.first == 0 {
		f.unread(what, fmt.Sprintf("it begins with the unknown version %d", v))
		return
	}
	f.add(feature)
}

func (f *features) unread(what, why string) {
	if f.c.damaged[f.op] {
		return
	}
	key := "unread " + what
	if f.seen[key] {
		return
	}
	f.seen[key] = true
	f.c.add(Finding{Severity: finding.Warning, Code: "not-checked", Operator: f.op, Message: fmt.Sprintf("could not determine which releases read its %s: %s", what, why)})
}
