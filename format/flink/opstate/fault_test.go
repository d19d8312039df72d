package opstate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
)

var errDisk = errors.New("the disk is gone")

// faults counts down to a failure, in reads of streams and of offsets.
type faults struct {
	src  format.Source
	left int
}

func (f *faults) fail() bool { f.left--; return f.left < 0 }

func (f *faults) ReadAt(ctx context.Context, s format.Stream, p []byte, off int64) (int, error) {
	if f.fail() {
		return 0, errDisk
	}
	return f.src.ReadAt(ctx, s, p, off)
}

type faultyOffsets struct {
	format.Offsets
	f *faults
}

func (o faultyOffsets) Read(ctx context.Context, dst []int64, from int64) (int, error) {
	if o.f.fail() {
		return 0, errDisk
	}
	return o.Offsets.Read(ctx, dst, from)
}

// TestFaults: whichever read fails, that is the error, and nothing else is
// taken for an answer.
func TestFaults(t *testing.T) {
	handles := map[string]*format.OperatorHandle{}
	for _, w := range forms {
		handles[w.String()] = stream(w, state{name: "a", elements: []string{"x", "y"}}, state{name: "b", mode: format.ModeUnion, elements: []string{"p", "q", header}}, state{name: "c"})
	}
	handles["unsplit"] = stream(how{version: 6, framed: "header per state"}, state{name: "a", class: "com.example.Mine", elements: []string{"x", "y"}}, state{name: "c"})
	inter := stream(how{version: 6}, state{name: "a", elements: []string{"x", "y", "z"}}, state{name: "b"})
	o := find(inter, "a").Offsets.(format.OffsetSlice)
	find(inter, "a").Offsets, find(inter, "b").Offsets = format.OffsetSlice{o[0], o[2]}, format.OffsetSlice{o[1], o[2] + 1}
	handles["interleaved"] = inter
	handles["one place"] = stream(how{version: 6}, state{name: "a", elements: []string{""}}, state{name: "b", elements: []string{"x"}})
	for name, h := range handles {
		f := &faults{src: &memory{}}
		for i := range h.States {
			h.States[i].Offsets = faultyOffsets{h.States[i].Offsets, f}
		}
		sure := 0
		for n := 0; ; n++ {
			f.left = n
			failed := false
			codec := &opstate.Codec{}
			for _, s := range h.States {
				if _, err := elements(t.Context(), codec, f, h, s.Name.String(), min(1, s.Offsets.Len())); errors.Is(err, errDisk) {
					failed = true
				} else if err != nil {
					t.Errorf("%s: read %d: %v", name, n, err)
				}
			}
			metas, err := codec.Describe(t.Context(), f, h)
			if err == nil {
				_, err = codec.Build(t.Context(), f, runs(t, h, metas))
			}
			if _, zerr := codec.Compressed(t.Context(), f, h); zerr != nil && !errors.Is(zerr, errDisk) {
				t.Error(zerr)
			}
			if errors.Is(err, errDisk) {
				failed = true
			} else if err != nil && (!errors.Is(err, format.ErrUnsupported) || !strings.HasPrefix(name, "version ")) {
				t.Errorf("%s: read %d: %v", name, n, err)
			}
			if f.left >= 0 {
				break
			}
			if !failed && metas == nil {
				t.Errorf("%s: read %d failed and nobody noticed", name, n)
			}
			sure++
		}
		if sure < 3 {
			t.Errorf("%s: %d reads", name, sure)
		}
	}
}

// TestOffsetsOutside: a long run of offsets of which one is somewhere else is
// refused, at the latest when it is read.
func TestOffsetsOutside(t *testing.T) {
	var e []string
	for range 100 {
		e = append(e, "xyz")
	}
	for _, n := range []int64{3, 50} {
		h := stream(how{version: 6}, state{name: "s", elements: e})
		o := h.States[0].Offsets.(format.OffsetSlice)
		src, codec := &memory{}, &opstate.Codec{}
		metas, err := codec.Describe(t.Context(), src, h)
		if err != nil {
			t.Fatal(err)
		}
		o[11] = o[99]
		built, err := codec.Build(t.Context(), src, []format.StateRuns{{StateMeta: metas[0], Runs: []format.ElementRun{{Handle: h, First: 10, Count: n}}}})
		if err == nil {
			err = format.EachOffset(t.Context(), built.States[0].Offsets, func(int64, []int64) error { return nil })
		}
		if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "element 11") {
			t.Errorf("%d elements: %v", n, err)
		}
		o[11] = o[10] + 3
		o[9+n] = o[9]
		_, err = codec.Build(t.Context(), src, []format.StateRuns{{StateMeta: metas[0], Runs: []format.ElementRun{{Handle: h, First: 10, Count: n}}}})
		if !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("the last of %d goes back: %v", n, err)
		}
	}
}

// sized is a source that knows lengths.
type sized struct {
	cut
	n int64
}

func (s sized) SizeOf(context.Context, format.Stream) (int64, error) { return s.n, nil }

// TestSizer: where the handle does not say how long its stream is, the source
// does.
func TestSizer(t *testing.T) {
	h := stream(how{version: 6}, state{name: "s", elements: []string{"a", "last"}})
	p := flatten(h.Data)
	h.Data = &format.File{Length: -1}
	got, err := elements(t.Context(), &opstate.Codec{}, sized{p, int64(len(p))}, h, "s", 1)
	if err != nil || len(got) != 1 || got[0] != "last" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestCountAgain: the number of states that old releases wrote a second time.
func TestCountAgain(t *testing.T) {
	h := stream(how{version: 2}, state{name: "s", elements: []string{"a"}})
	set(h, int(h.Data.Size())-2, 2)
	if _, err := (&opstate.Codec{}).Describe(t.Context(), &memory{}, h); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "the count after it is 2") {
		t.Error(err)
	}
}

// TestEndlessEnvelope: a description that never ends is given up.
func TestEndlessEnvelope(t *testing.T) {
	const meta = "\x00\x01s\x00\x00\x00\x01\x00\x00\x00\x01"
	for _, tail := range []string{"", "com.example.Mine"} {
		e := &endless{head: "\x00\x00\x00\x06\x00\x00\x01" + meta, element: "\x00", n: 1 << 30}
		if tail == "" { // options, each of two empty strings
			e.head = e.head[:len(e.head)-4] + "\x10\x00\x00\x00"
		} else {
			e.head += "\x00\x20OPERATOR_STATE_DISTRIBUTION_MODE\x00\x10SPLIT_DISTRIBUTE\x00\x00\x00\x01\x00\x01V\x00\x00\x00\x02\x00\x10" + tail
		}
		h := &format.OperatorHandle{Codec: format.CodecFlink, Data: &format.File{Length: e.size()}, States: []format.NamedState{{Name: format.NewText("s")}}}
		if _, err := (&opstate.Codec{}).Describe(t.Context(), e, h); !errors.Is(err, format.ErrLimit) {
			t.Errorf("%q: %v", tail, err)
		}
		if e.bytes.Load() > 160<<20 {
			t.Errorf("%d bytes were read", e.bytes.Load())
		}
	}
}

// TestEndlessHeaders: no more snappy headers are read than there are states.
func TestEndlessHeaders(t *testing.T) {
	p := flatten(stream(how{version: 6, framed: "one header"}, state{name: "s"}).Data)
	e := &endless{head: string(p[:len(p)-len(header)]), element: header, n: 1 << 40}
	h := &format.OperatorHandle{Codec: format.CodecFlink, Data: &format.File{Length: e.size()}, States: []format.NamedState{{Name: format.NewText("s")}}}
	if _, err := (&opstate.Codec{}).Describe(t.Context(), e, h); !errors.Is(err, format.ErrCorrupt) || e.bytes.Load() > 8<<10 {
		t.Errorf("%v, %d bytes were read", err, e.bytes.Load())
	}
}
