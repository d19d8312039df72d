package reader

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/storage"
	"golang.org/x/sync/errgroup"
)

// Content of a handle is checked in two depths. By default the first bytes of
// its stream are read, which describe the states in it: a few KiB for each
// handle, whatever its size. With VerifyOptions.Read every element is read and
// decoded to its exact end.

// parallelHandles bounds how many handles are read at once.
const parallelHandles = 8

// handleCheck is one handle to read.
type handleCheck struct {
	place format.Place
	run   func(*handleReport) error
}

// handleReport collects what is found in one handle.
type handleReport struct {
	v     *verifier
	ctx   context.Context
	place format.Place
	file  string // reference of the stream that is read
	own   bool   // it is in spt's own encoding
	found []Finding
	// Not decoded: elements whose type spt does not know, by state.
	undecoded []undecoded
}

type undecoded struct {
	state string
	n     int64
	why   string
}

// content checks the handles of an operator. Handles are read in parallel and
// reported in file order.
func (v *verifier) content(op *format.Operator) error {
	var all []handleCheck
	for _, sub := range op.Subtasks {
		at := format.Place{Operator: op, Subtask: sub}
		for _, h := range []struct {
			slot format.Slot
			h    *format.OperatorHandle
		}{{format.SlotManaged, sub.Managed}, {format.SlotRaw, sub.Raw}} {
			if h.h != nil && !v.bad[h.h] && !v.wasRead(op, h.h) {
				at.Slot = h.slot
				all = append(all, handleCheck{at, func(r *handleReport) error { return r.operator(h.h) }})
			}
		}
		at.Slot = format.SlotManagedKeyed
		format.EachKeyed(sub.ManagedKeyed, func(h format.KeyedHandle) {
			if !v.bad[h] && !v.wasRead(op, h) {
				all = append(all, handleCheck{at, func(r *handleReport) error { return r.keyed(op, h) }})
			}
		})
	}
	reports := make([]handleReport, min(len(all), 256))
	for len(all) > 0 {
		batch := all[:min(len(all), len(reports))]
		all = all[len(batch):]
		g, ctx := errgroup.WithContext(v.ctx)
		g.SetLimit(parallelHandles)
		for i, c := range batch {
			reports[i] = handleReport{v: v, ctx: ctx, place: c.place}
			g.Go(func() error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return c.run(&reports[i])
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for i := range batch {
			for _, f := range reports[i].found {
				v.emit(f)
			}
			for _, u := range reports[i].undecoded {
				v.undecoded(op, reports[i].place, u)
			}
		}
	}
	return nil
}

// wasRead reports whether the content of a handle needs no look: a handle of an .spt
// file may share its stream and its offsets with many others, and is read once;
// and state in spt's own encoding is read by natives when files are looked at.
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

// add reports what err says of the handle. The error that is returned ends the
// work: it says nothing of the snapshot.
func (r *handleReport) add(err error) error {
	f := Finding{Severity: Fault, Code: "unreadable", Operator: r.place.Operator, Place: r.place.String(), File: r.file, Advice: "restore from another snapshot, or copy the file again if it was copied"}
	var class *types.UnknownClass
	switch err = storageKind(err); {
	case err == nil:
		return nil
	case r.ctx.Err() != nil, errors.Is(err, format.ErrChanged), storage.Classify(err) == storage.Transient:
		return err
	case format.NoFile(err), errors.As(err, &class):
		return nil // findings of their own: the file, the class
	case r.failed(err) && r.v.o.ReadErrors:
		return err
	case r.failed(err):
		if r.v.files != nil { // the files are read for themselves
			return nil
		}
		f.Code, f.Advice = "read", ""
		if errors.Is(err, spt.ErrChunk) {
			f.Code = "checksum"
		}
	case errors.Is(err, opstate.ErrSameOffset):
		f.Code, f.Advice = "same-offset", "take a new savepoint with a Flink that has the fix of FLINK-34063, or restore from another snapshot"
	case errors.Is(err, opstate.ErrStates):
		f.Code = "state-meta"
	case errors.Is(err, format.ErrVersion):
		f.Code = "state-version"
	case errors.Is(err, format.ErrLimit), errors.Is(err, format.ErrUnsupported):
		f.Severity, f.Code, f.Advice = Note, "not-checked", ""
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

// reachable reports whether a stream can be read at all, and is as long as
// promised: otherwise there is a finding of its own.
func (r *handleReport) reachable(st format.Stream) bool {
	path, _, ok := format.Reference(st)
	if !ok {
		return st != nil
	}
	r.file = path.String()
	found, err := r.v.snap.Locate(r.ctx, st)
	if err != nil {
		return false
	}
	if s, ok := st.(*format.Segment); ok {
		return s.Within(found.Info.Size)
	}
	return st.Size() < 0 || st.Size() == found.Info.Size
}

// operator checks operator state.
func (r *handleReport) operator(h *format.OperatorHandle) error {
	if !r.reachable(h.Data) {
		return nil
	}
	src := r.v.snap.src
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
	if err != nil && !errors.As(err, &class) || !r.v.o.Read {
		return r.add(err)
	}
	for i := range h.States {
		if err := r.elements(h, i); err != nil {
			return err
		}
	}
	return nil
}

// elements reads and decodes every element of a state.
func (r *handleReport) elements(h *format.OperatorHandle, i int) error {
	s := r.v.snap
	name := h.States[i].Name.String()
	values, err := s.Values(r.ctx, h, i)
	if err != nil {
		return r.add(format.At(err, "state %q", name))
	}
	codec, err := s.Codec(h.Codec)
	if err != nil {
		return r.add(err)
	}
	skipped := undecoded{state: name, why: values.Why}
	bad, first := 0, error(nil)
	note := func(err error, part string, index int64) {
		switch {
		case errors.Is(err, format.ErrUnsupported):
			skipped.n++
			skipped.why = err.Error()
		case err != nil:
			if bad++; bad == 1 {
				first = format.At(err, "state %q/%s %d", name, part, index)
			}
		}
	}
	if values.Key != nil {
		size := 0
		err = format.EachEntry(r.ctx, s.src, codec, h, name, func(e format.MapEntry) error {
			size = int(e.Off) + len(e.Stored)
			_, err := value.ReadAll(values.Key, e.Key)
			if err == nil {
				_, err = value.ReadAll(values.Value, e.Value)
			}
			note(err, "entry", e.Index)
			return nil
		})
		if r.v.element(size); errors.Is(err, format.ErrUnsupported) {
			skipped.n++
			skipped.why, err = err.Error(), nil
		}
	} else {
		err = format.EachElement(r.ctx, s.src, codec, h, name, func(e format.Element) error {
			r.v.element(len(e.Value))
			if values.Element == nil {
				skipped.n++
				return nil
			}
			_, err := value.ReadAll(values.Element, e.Value)
			note(err, "element", e.Index)
			return nil
		})
	}
	if skipped.n > 0 && h.Codec != format.CodecRaw {
		r.undecoded = append(r.undecoded, skipped)
	}
	if bad > 1 {
		first = fmt.Errorf("%w; %d more of its elements", first, bad-1)
	}
	return errors.Join(r.add(first), r.add(err))
}

// keyed checks what a stream of keyed state says of itself.
func (r *handleReport) keyed(op *format.Operator, h format.KeyedHandle) error {
	switch h := h.(type) {
	case *format.KeyGroups:
		if !r.reachable(h.Data) || h.Data.Size() == 0 {
			return nil
		}
		switch h.Codec {
		case format.CodecNative:
			r.own = true
			codec, err := r.v.snap.KeyedCodec(h)
			if err == nil {
				_, err = codec.Describe(r.ctx, r.v.snap.src, h)
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

// header reads the header of a keyed stream; nil where it has a class that
// cannot be walked.
func (r *handleReport) header(st format.Stream) (*keyed.Header, error) {
	header, err := keyed.ReadHeader(r.ctx, r.v.snap.src, st)
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
	size, err := format.StreamSize(r.ctx, r.v.snap.src, h.Data)
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
		r.found = append(r.found, Finding{Severity: Fault, Code: "key-groups", Operator: r.place.Operator, Place: r.place.String(),
			Message: fmt.Sprintf("%d of %d key groups start in the header of %d bytes or at the end of the stream of %d, the first is %d at %d",
				bad.count, h.Range.Count, header, size, int64(h.Range.First)+bad.index, bad.value)})
	}
	return err
}

// classes looks for serializer snapshots that no release of Flink has.
func (r *handleReport) classes(key *types.Snapshot, states []types.StateSchema, err error) {
	said := map[string]bool{}
	note := func(state, class string) {
		near, none := types.NoRelease(class)
		if !none || said[class] {
			return
		}
		said[class] = true
		f := Finding{Severity: Fault, Code: "serializer-class", Operator: r.place.Operator, State: state, Place: r.place.String(),
			Message: fmt.Sprintf("serializer snapshot %q is in no release of Flink up to 2.3", class)}
		if near != "" {
			f.Message += fmt.Sprintf("; it differs by a character or two from %q, so the state is probably damaged", near)
			f.Advice = "restore from another snapshot, or copy the file again if it was copied"
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

// undecoded reports elements that were read and not decoded.
func (v *verifier) undecoded(op *format.Operator, at format.Place, u undecoded) {
	v.emit(Finding{Severity: Note, Code: "not-decoded", Operator: op, State: u.state, Place: at.String(),
		Message: fmt.Sprintf("%s of state %q read and not decoded: %s", plural(int(u.n), "element"), u.state, u.why)})
}
