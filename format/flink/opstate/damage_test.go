package opstate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
)

// cut is a source of one file that is shorter than its handle says.
type cut []byte

func (c cut) ReadAt(_ context.Context, _ format.Stream, p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(c)) || int64(len(p)) > int64(len(c))-off {
		return 0, format.Errorf(format.ErrTruncated, "bytes %d to %d of %d", off, off+int64(len(p)), len(c))
	}
	return copy(p, c[off:]), nil
}

// all is everything that a handle gives, and the first error.
func all(t testing.TB, src format.Source, h *format.OperatorHandle) (metas []format.StateMeta, got map[string][]string, err error) {
	codec := &opstate.Codec{}
	got = map[string][]string{}
	for _, s := range h.States {
		e, eerr := elements(t.Context(), codec, src, h, s.Name.String(), 0)
		got[s.Name.String()] = e
		err = errors.Join(err, eerr)
	}
	metas, derr := codec.Describe(t.Context(), src, h)
	if derr == nil {
		_, derr = codec.Schema(t.Context(), src, h)
	}
	if derr == nil {
		_, derr = codec.Build(t.Context(), src, runs(t, h, metas))
	}
	return metas, got, errors.Join(err, derr)
}

// TestCut: a stream that ends early is an error, wherever it ends.
func TestCut(t *testing.T) {
	for name, h := range vectors(t) {
		p := flatten(h.Data)
		h.Data = &format.File{Length: int64(len(p))}
		for n := range len(p) {
			if _, _, err := all(t, cut(p[:n]), h); !errors.Is(err, format.ErrTruncated) {
				t.Errorf("%s cut to %d bytes: %v", name, n, err)
			}
		}
		if _, _, err := all(t, cut(p), h); err != nil {
			t.Error(err)
		}
		// Where the handle knows of the cut, elements miss or differ.
		_, want, _ := all(t, cut(p), h)
		for n := range len(p) {
			h.Data = &format.File{Length: int64(n)}
			_, got, err := all(t, cut(p[:n]), h)
			if err == nil && slices.Equal(got["counts"], want["counts"]) && slices.Equal(got["rules"], want["rules"]) {
				t.Errorf("%s of %d bytes: nothing misses", name, n)
			}
			if err != nil && !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
				t.Errorf("%s of %d bytes: %v", name, n, err)
			}
		}
	}
}

// TestFlip: a flipped byte is an error of a kind, or leaves all elements but
// the one that it is in; in a compressed stream every element is checked.
func TestFlip(t *testing.T) {
	for name, h := range vectors(t) {
		p := flatten(h.Data)
		h.Data = &format.File{Length: int64(len(p))}
		wantMetas, want, err := all(t, cut(p), h)
		if err != nil {
			t.Fatal(err)
		}
		framed := p[3] == 6 && p[4] == 1
		noticed := 0
		for i := range p {
			for _, bit := range []byte{1, 0x10, 0x80, 0xff} {
				q := slices.Clone(p)
				q[i] ^= bit
				metas, got, err := all(t, cut(q), h)
				if err != nil {
					noticed++
					if !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
						t.Errorf("%s, byte %d ^ %02x: %v", name, i, bit, err)
					}
					continue
				}
				data := find(h, "counts").Offsets.(format.OffsetSlice)[0]
				if int64(i) < data && !framed {
					for k := range want {
						if !slices.Equal(got[k], want[k]) {
							t.Errorf("%s, byte %d ^ %02x: other elements", name, i, bit)
						}
					}
				}
				if framed && int64(i) >= data-10 {
					for k := range want {
						if !slices.Equal(got[k], want[k]) {
							t.Errorf("%s, byte %d ^ %02x: other elements, unnoticed", name, i, bit)
						}
					}
				}
				if int64(i) >= data && !slices.EqualFunc(metas, wantMetas, func(a, b format.StateMeta) bool { return string(a.Envelope) == string(b.Envelope) }) {
					t.Errorf("%s, byte %d ^ %02x: another description", name, i, bit)
				}
			}
		}
		if noticed < len(p) {
			t.Errorf("%s: %d flips noticed", name, noticed)
		}
	}
}

// TestOffsetsAnywhere: any offsets are an error of a kind, or cut something
// that is there.
func TestOffsetsAnywhere(t *testing.T) {
	for name, h := range vectors(t) {
		size := h.Data.Size()
		for a := int64(-1); a <= size+1; a += 3 {
			for b := a - 20; b <= a+40; b += 7 {
				find(h, "counts").Offsets = format.OffsetSlice{a, b}
				_, got, err := all(t, &memory{}, h)
				if err != nil && !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) {
					t.Errorf("%s, offsets %d and %d: %v", name, a, b, err)
				}
				for _, e := range got["counts"] {
					if int64(len(e)) > size {
						t.Errorf("%s, offsets %d and %d: an element of %d bytes", name, a, b, len(e))
					}
				}
			}
		}
	}
}
