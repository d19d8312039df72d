package reader

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/storage"
)

// The content of a handle is checked at two depths. By default only the header of
// its stream is read, a few KiB regardless of its size, and nothing if that takes a
// request. With VerifyOptions.Read every element is read and decoded to its exact end.

// contentCheck checks the content of handles. Its units do not modify it.
type contentCheck struct {
	snap  *Snapshot
	sp    *format.Savepoint // the units name its handles
	o     VerifyOptions
	files bool // the files themselves are checked too

	opened sync.Map // work.Handle -> *keyed.Tables, of the handles that are being checked
}

// handleReport collects the findings of one handle.
type handleReport struct {
	*contentCheck
	ctx    context.Context
	unit   work.Unit
	place  format.Place
	file   string // reference of the stream
	own    bool   // in spt's own encoding
	found  []finding.Finding
	states []elementsResult // by state; nil if no elements are read

	decoded int64 // entries of keyed state
}

// elementsResult is the result of checking elements of a state.
type elementsResult struct {
	Elements   int64 // that were read
	NotDecoded int64
	Why        atElement[string] // elements not decoded
	Bad        int64             // elements that their serializer cannot have written
	FirstBad   atElement[[]finding.Finding]
	Stop       atElement[[]finding.Finding] // error that ended reading
}

// atElement is what is known of the range of elements that begins at At.
type atElement[T any] struct {
	Set bool
	At  int64
	Of  T
}

func (a atElement[T]) first(b atElement[T]) atElement[T] {
	if !a.Set || b.Set && b.At < a.At {
		return b
	}
	return a
}

// merge combines the results of two sets of elements. It is associative and
// commutative; the zero value is neutral.
func (a elementsResult) merge(b elementsResult) elementsResult {
	a.Elements += b.Elements
	a.NotDecoded += b.NotDecoded
	a.Bad += b.Bad
	a.Why, a.FirstBad, a.Stop = a.Why.first(b.Why), a.FirstBad.first(b.FirstBad), a.Stop.first(b.Stop)
	return a
}

// findings returns the findings of the state.
func (a elementsResult) findings() []finding.Finding {
	bad := slices.Clone(a.FirstBad.Of)
	if len(bad) > 0 && a.Bad > 1 {
		bad[0].Message += fmt.Sprintf("; %d more of its elements", a.Bad-1)
	}
	return append(bad, a.Stop.Of...)
}

const (
	// parallelReads is the default number of handles or files read at once.
	parallelReads = 8
	// batchSize is the number of handles or files whose findings are buffered to
	// report them in order.
	batchSize = 256
	// elementBytes and elementCount bound how much of a state one unit decodes.
	elementBytes = 4 << 20
	elementCount = 1 << 18
	// chunkCount is the number of chunks of an .spt file that one unit checks.
	chunkCount = 32
)

// options returns the work options of the verification.
func (o VerifyOptions) options() work.Options {
	if o.Jobs <= 0 {
		o.Jobs = parallelReads
	}
	return work.Options{Jobs: o.Jobs}
}

// content checks the handles of the operator with index at. Handles are read in
// parallel and reported in file order.
func (v *verifier) content(at int, op *format.Operator) error {
	for batch := range slices.Chunk(v.headerUnits(at, op), batchSize) {
		var reports []*handleReport
		err := work.Run(v.ctx, v.o.options(), slices.Values(batch), v.check.header, func(_ work.Unit, r *handleReport, err error) error {
			reports = append(reports, r)
			return err
		})
		if err != nil {
			return err
		}
		if v.o.Read {
			if err := v.elements(reports); err != nil {
				return err
			}
		}
		if v.o.Deep {
			if err := v.deep(reports); err != nil {
				return err
			}
		}
		for _, r := range reports {
			v.result.Entries += r.decoded
			for _, f := range r.found {
				v.emit(f)
			}
			for _, st := range r.states {
				v.result.Elements += st.Elements
				for _, f := range st.findings() {
					v.emit(f)
				}
			}
			for i, st := range r.states {
				h := r.handle()
				if st.NotDecoded > 0 && h.Codec != format.CodecRaw {
					v.notDecoded(op, r.place, h.States[i].Name.String(), st)
				}
			}
		}
	}
	return nil
}

// headerUnits returns the handles of an operator whose content is checked.
func (v *verifier) headerUnits(at int, op *format.Operator) (all []work.Unit) {
	for i, sub := range op.Subtasks {
		u := work.Unit{Job: work.CheckHeader, State: work.All, Count: work.All,
			Handle: work.Handle{Operator: at, Subtask: i, ID: op.ID, Index: sub.Index}}
		for _, h := range []struct {
			slot format.Slot
			h    *format.OperatorHandle
		}{{format.SlotManaged, sub.Managed}, {format.SlotRaw, sub.Raw}} {
			if h.h != nil && !v.bad[h.h] && !v.wasRead(op, h.h) {
				u.Handle.Slot, u.Parts = h.slot, work.Whole(h.h.Data)
				all = append(all, u)
			}
		}
		u.Handle.Slot = format.SlotManagedKeyed
		nested := 0
		format.EachKeyed(sub.ManagedKeyed, func(h format.KeyedHandle) {
			if !v.bad[h] && !v.wasRead(op, h) {
				u.Handle.Nested, u.Parts = nested, work.Whole(work.Described(h))
				all = append(all, u)
			}
			nested++
		})
		if h := sub.RawKeyed; v.o.Deep && h != nil && !v.bad[h] && !v.wasRead(op, h) {
			u.Handle.Slot, u.Handle.Nested, u.Parts = format.SlotRawKeyed, 0, work.Whole(work.Described(h))
			all = append(all, u)
		}
	}
	return all
}

// elements reads the elements of handles and adds the results to their reports.
func (v *verifier) elements(reports []*handleReport) error {
	var broken error // of offsets
	units := func(yield func(work.Unit) bool) {
		for _, r := range reports {
			for i := range r.states {
				u := r.unit
				u.Job, u.State = work.CheckElements, i
				for u, err := range work.Elements(v.ctx, u, r.handle(), elementBytes, elementCount) {
					if err != nil {
						broken = err
						return
					}
					if !yield(u) {
						return
					}
				}
			}
		}
	}
	k := 0
	err := work.Run(v.ctx, v.o.options(), units, v.check.elements, func(u work.Unit, found elementsResult, err error) error {
		for reports[k].unit.Handle != u.Handle {
			k++
		}
		reports[k].states[u.State] = reports[k].states[u.State].merge(found)
		return err
	})
	return errors.Join(err, broken)
}

// report returns the empty report of a unit.
func (c *contentCheck) report(ctx context.Context, u work.Unit) (*handleReport, error) {
	place, err := u.Handle.Location(c.sp)
	return &handleReport{contentCheck: c, ctx: ctx, unit: u, place: place}, err
}

// handle returns the handle of operator state of the report; nil for keyed state.
func (r *handleReport) handle() *format.OperatorHandle {
	if r.place.Slot == format.SlotRaw {
		return r.place.Subtask.Raw
	}
	return r.place.Subtask.Managed
}

// header runs a unit that checks the header of a handle.
func (c *contentCheck) header(ctx context.Context, u work.Unit) (*handleReport, error) {
	r, err := c.report(ctx, u)
	if err != nil {
		return r, err
	}
	if u.Handle.Slot == format.SlotManagedKeyed || u.Handle.Slot == format.SlotRawKeyed {
		h, err := u.KeyedHandle(c.sp)
		if err != nil {
			return r, err
		}
		return r, r.keyed(h)
	}
	h, err := u.OperatorHandle(c.sp)
	if err != nil {
		return r, err
	}
	return r, r.operator(h)
}

// elements runs a unit that decodes elements of a state.
func (c *contentCheck) elements(ctx context.Context, u work.Unit) (elementsResult, error) {
	r, err := c.report(ctx, u)
	if err != nil {
		return elementsResult{}, err
	}
	h, err := u.OperatorHandle(c.sp)
	if err != nil {
		return elementsResult{}, err
	}
	r.own = h.Codec == format.CodecNative
	if path, _, ok := format.Reference(h.Data); ok {
		r.file = path.String()
	}
	return r.elements(h)
}

// wasRead reports whether the content of a handle need not be read: handles of an
// .spt file may share a stream and offsets, and are read once; state in spt's own
// encoding is read by natives if files are checked.
func (v *verifier) wasRead(op *format.Operator, handle any) bool {
	if v.snap.Container.Family != SPT {
		return false
	}
	id := sha256.New() // a handle may have any number of states
	switch h := handle.(type) {
	case *format.OperatorHandle:
		if h.Codec == format.CodecNative && v.files != nil {
			return true
		}
		fmt.Fprintf(id, "%s %s", h.Codec, streamKey(h.Data))
		for i := range h.States {
			fmt.Fprintf(id, " %q %d %s", h.States[i].Name, h.States[i].Mode, v.array(h.States[i].Offsets))
		}
	case *format.KeyGroups:
		if h.Codec == format.CodecNative && v.files != nil {
			return true
		}
		fmt.Fprintf(id, "%s %s %d %v %s", h.Codec, streamKey(h.Data), op.MaxParallelism, h.Range, v.array(h.Offsets))
	default:
		return false
	}
	sum := [sha256.Size]byte(id.Sum(nil))
	if v.contents[sum] {
		return true
	}
	v.contents[sum] = true
	return false
}

// add reports err as a finding of the handle. If err is not about the snapshot,
// it is returned and ends the work.
func (r *handleReport) add(err error) error {
	f := finding.Finding{Severity: finding.Error, Code: "unreadable", Operator: r.place.Operator, Place: r.place.String(), File: r.file, Advice: finding.Words("restore from another snapshot, or copy the file again if it was copied")}
	var class *types.UnknownClass
	switch err = storageKind(err); {
	case err == nil:
		return nil
	case r.ctx.Err() != nil, errors.Is(err, format.ErrChanged), ranged.Classify(err) == ranged.Transient:
		return err
	case format.NoFile(err), errors.As(err, &class):
		return nil // reported by other findings: the file, the class
	case r.failed(err) && r.o.ReadErrors:
		return err
	case r.failed(err):
		if r.files { // the files themselves are read
			return nil
		}
		f.Code, f.Advice = "read", nil
		if errors.Is(err, spt.ErrChunk) {
			f.Code = "checksum"
		}
	case errors.Is(err, rocksdb.ErrChecksum):
		f.Code = "checksum"
	case errors.Is(err, opstate.ErrSameOffset):
		f.Code, f.Advice = "same-offset", finding.Words("take a new savepoint with a Flink that has the fix of FLINK-34063, or restore from another snapshot")
	case errors.Is(err, opstate.ErrStates):
		f.Code = "state-meta"
	case errors.Is(err, format.ErrVersion):
		f.Code = "state-version"
	case errors.Is(err, format.ErrLimit), errors.Is(err, format.ErrUnsupported):
		f.Severity, f.Code, f.Advice = finding.Note, "not-checked", nil
	}
	if r.own && f.Code == "unreadable" {
		f.Code = "native-state"
	}
	f.Message = err.Error()
	if f.Code == "unreadable" || f.Code == "read" || f.Code == "checksum" {
		f.Message = "its state cannot be read: " + f.Message
	}
	r.found = append(r.found, f)
	return nil
}

// failed reports whether err is of the storage or the container, not of the state.
func (r *handleReport) failed(err error) bool {
	var s *storage.Error
	return errors.As(err, &s) || errors.Is(err, spt.ErrChunk) || !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) && !errors.Is(err, format.ErrLimit)
}

// reachable reports whether the content of a stream is checked: it can be read and has
// the recorded length. If not, another finding reports it. Without VerifyOptions.Read,
// files in a remote store are not read.
func (r *handleReport) reachable(st format.Stream) bool {
	path, _, ok := format.Reference(st)
	if !ok {
		return st != nil && (r.o.Read || !r.snap.remoteRope(r.ctx, st))
	}
	r.file = path.String()
	found, err := r.snap.Locate(r.ctx, st)
	if err != nil || !r.o.Read && !ability.Near(found.Store) {
		return false
	}
	if s, ok := st.(*format.Segment); ok {
		return s.Within(found.Info.Size)
	}
	return st.Size() < 0 || st.Size() == found.Info.Size
}

// remoteRope reports whether a stream is a rope with bytes of a file in a remote
// store.
func (s *Snapshot) remoteRope(ctx context.Context, st format.Stream) bool {
	rope, ok := st.(*format.Concat)
	if !ok {
		return false
	}
	var last format.Stream
	for _, p := range rope.Parts {
		if p.Of == last {
			continue
		}
		last = p.Of
		if _, _, ok := format.Reference(p.Of); ok {
			if found, err := s.Locate(ctx, p.Of); err == nil && !ability.Near(found.Store) {
				return true
			}
		} else if s.remoteRope(ctx, p.Of) {
			return true
		}
	}
	return false
}

// operator checks operator state.
func (r *handleReport) operator(h *format.OperatorHandle) error {
	if !r.reachable(h.Data) {
		return nil
	}
	src := r.snap.src
	var err error
	switch h.Codec {
	case format.CodecFlink, format.CodecRaw:
		var states []types.StateSchema
		var ended error
		report := func(e error) { ended = errors.Join(ended, r.add(e)) }
		if states, err = src.operators.Check(r.ctx, src, h, report); ended != nil {
			return ended
		}
		r.classes(nil, states, err)
	case format.CodecNative:
		r.own = true
		_, err = native.Codec{}.Describe(r.ctx, src, h)
	default:
		err = format.Errorf(format.ErrUnsupported, "operator state of codec %q", string(h.Codec))
	}
	var class *types.UnknownClass
	if err != nil && !errors.As(err, &class) || !r.o.Read {
		return r.add(err)
	}
	r.states = make([]elementsResult, len(h.States))
	return nil
}

// elements reads and decodes the elements of the unit.
func (r *handleReport) elements(h *format.OperatorHandle) (elementsResult, error) {
	var all elementsResult
	name := h.States[r.unit.State].Name.String()
	// added returns the findings for err, located at the start of the unit.
	added := func(err error) (atElement[[]finding.Finding], error) {
		r.found = nil
		err = r.add(err)
		return atElement[[]finding.Finding]{len(r.found) > 0, r.unit.First, r.found}, err
	}
	values, err := r.snap.Values(r.ctx, h, r.unit.State)
	if err == nil {
		var codec format.OperatorCodec
		if codec, err = r.snap.Codec(h.Codec); err == nil {
			return r.decode(h, codec, values, added)
		}
	} else {
		err = format.At(err, "state %q", name)
	}
	all.Stop, err = added(err)
	return all, err
}

func (r *handleReport) decode(h *format.OperatorHandle, codec format.OperatorCodec, values Values, added func(error) (atElement[[]finding.Finding], error)) (all elementsResult, _ error) {
	notDecoded := func(why string) {
		all.NotDecoded++
		all.Why = all.Why.first(atElement[string]{true, r.unit.First, why})
	}
	var bad error
	var bytes int64
	n := 0
	read := func(size int) {
		if n++; n%4096 == 0 {
			r.o.Progress(bytes)
			bytes = 0
		}
		bytes += int64(size)
	}
	name := h.States[r.unit.State].Name.String()
	note := func(err error, part string, index int64) {
		switch {
		case errors.Is(err, format.ErrUnsupported):
			notDecoded(err.Error())
		case err != nil:
			if all.Bad++; bad == nil {
				bad = format.At(err, "state %q/%s %d", name, part, index)
			}
		}
	}
	var stop error
	if values.Key != nil { // a map is a single element, read entry by entry
		all.Elements = 1
		stop = format.EachEntry(r.ctx, r.snap.src, codec, h, name, func(e format.MapEntry) error {
			read(len(e.Stored))
			_, err := value.ReadAll(values.Key, e.Key)
			if err == nil {
				_, err = value.ReadAll(values.Value, e.Value)
			}
			note(err, "entry", e.Index)
			return nil
		})
		if errors.Is(stop, format.ErrUnsupported) {
			notDecoded(stop.Error())
			stop = nil
		}
	} else {
		stop = r.unit.EachElement(r.ctx, r.snap.src, codec, h, func(e format.Element) error {
			all.Elements++
			read(len(e.Value))
			if values.Element == nil {
				notDecoded(values.Why)
				return nil
			}
			_, err := value.ReadAll(values.Element, e.Value)
			note(err, "element", e.Index)
			return nil
		})
	}
	r.o.Progress(bytes)
	if errors.Is(stop, opstate.ErrSameOffset) {
		stop = nil // the check of the offsets reports it
	}
	var err1, err2 error
	all.FirstBad, err1 = added(bad)
	all.Stop, err2 = added(stop)
	return all, errors.Join(err1, err2)
}

// keyed checks the header of a stream of keyed state.
func (r *handleReport) keyed(h format.KeyedHandle) error {
	switch h := h.(type) {
	case *format.KeyGroups:
		if !r.reachable(h.Data) || h.Data.Size() == 0 {
			return nil
		}
		switch h.Codec {
		case format.CodecNative:
			r.own = true
			codec, err := r.snap.KeyedCodec(r.place.Operator, h)
			if err == nil {
				_, err = codec.Describe(r.ctx, r.snap.src, h)
			}
			return r.add(err)
		case format.CodecFlink:
			header, err := r.header(h.Data)
			if err == nil && header != nil {
				err = r.groupsAfter(h, header.Size)
			}
			return r.add(err)
		}
	case *format.Incremental:
		if h.Meta != nil && r.reachable(h.Meta) && h.Meta.Size() != 0 {
			_, err := r.header(h.Meta)
			return r.add(err)
		}
	}
	return nil
}

// header reads the header of a keyed stream; nil if it has a class that cannot be
// walked.
func (r *handleReport) header(st format.Stream) (*keyed.Header, error) {
	header, err := keyed.ReadHeader(r.ctx, r.snap.src, st)
	if header != nil {
		r.classes(header.Key, header.States, err)
	}
	var class *types.UnknownClass
	if errors.As(err, &class) {
		return nil, nil
	}
	return header, err
}

// groupsAfter checks that key groups with data start after the header and before
// the end.
func (r *handleReport) groupsAfter(h *format.KeyGroups, header int64) error {
	size, err := format.StreamSize(r.ctx, r.snap.src, h.Data)
	if err != nil {
		return err
	}
	var bad firstOf
	err = format.EachOffset(r.ctx, h.Offsets, func(first int64, run []int64) error {
		for i, off := range run {
			if off > 0 && (off < header || off == size) {
				bad.add(first+int64(i), off)
			}
		}
		return nil
	})
	if err == nil && bad.count > 0 {
		r.found = append(r.found, finding.Finding{Severity: finding.Error, Code: "key-groups", Operator: r.place.Operator, Place: r.place.String(),
			Message: fmt.Sprintf("%d of %d key groups start in the header of %d bytes or at the end of the stream of %d, the first is %d at %d",
				bad.count, h.Range.Count, header, size, int64(h.Range.First)+bad.index, bad.value)})
	}
	return err
}

// classes looks for serializer snapshots that no release of Flink has.
func (r *handleReport) classes(key *types.Snapshot, states []types.StateSchema, err error) {
	said := map[string]bool{}
	note := func(state, class string) {
		near, none := flink.UnknownSerializer(class)
		if !none || said[class] {
			return
		}
		said[class] = true
		f := finding.Finding{Severity: finding.Error, Code: "serializer-class", Operator: r.place.Operator, State: state, Place: r.place.String(),
			Message: fmt.Sprintf("serializer snapshot %q is in no release of Flink up to %v", class, flink.Latest())}
		if near != "" {
			f.Message += fmt.Sprintf("; it differs by a character or two from %q, so the state is probably damaged", near)
			f.Advice = finding.Words("restore from another snapshot, or copy the file again if it was copied")
		}
		r.found = append(r.found, f)
	}
	walk := func(state string, s *types.Snapshot) {
		types.Each(s, func(s *types.Snapshot) { note(state, s.Class) })
	}
	walk("", key)
	for _, st := range states {
		for _, s := range st.Serializers {
			walk(st.Name.String(), s.Snapshot)
		}
	}
	var u *types.UnknownClass
	if errors.As(err, &u) {
		note("", u.Class)
	}
}

// notDecoded reports elements that were read but not decoded.
func (v *verifier) notDecoded(op *format.Operator, place format.Place, state string, r elementsResult) {
	v.emit(finding.Finding{Severity: finding.Note, Code: "not-decoded", Operator: op, State: state, Place: place.String(),
		Message: fmt.Sprintf("%s of state %q read and not decoded: %s", plural(int(r.NotDecoded), "element"), state, r.Why.Of)})
}
