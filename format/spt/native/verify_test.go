package native_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
)

func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*format.OperatorHandle)
		want   string
	}{
		"good":                   {func(*format.OperatorHandle) {}, ""},
		"nothing":                {func(h *format.OperatorHandle) { h.States, h.Data = nil, nil }, ""},
		"bytes of no element":    {func(h *format.OperatorHandle) { h.States = nil }, "the 22 bytes of the stream do not belong to an element"},
		"bytes before the first": {func(h *format.OperatorHandle) { h.States[1].Offsets = format.OffsetSlice{1, 3, 4} }, "the first 1 bytes of the stream do not belong to an element"},
		"an element left out":    {func(h *format.OperatorHandle) { h.States[1].Offsets = format.OffsetSlice{0, 1} }, "after a msgpack value"},
		"the last state is long": {func(h *format.OperatorHandle) {
			p := make([]byte, h.Data.Size()+1)
			if _, err := (&memory{}).read(h.Data, p[:len(p)-1], 0); err != nil {
				t.Fatal(err)
			}
			h.Data = inline(p)
		}, "after a msgpack value"},
	} {
		h, _ := sample(t)
		c.change(h)
		err := native.Codec{}.Verify(t.Context(), &memory{}, h)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The key groups of the sample are those of the worked examples in
// docs/format.md.
func TestVerifyKeyed(t *testing.T) {
	data := func() ([]byte, *format.KeyGroups) {
		h := keyed(t)
		p := make([]byte, h.Data.Size())
		if _, err := (&memory{}).read(h.Data, p, 0); err != nil {
			t.Fatal(err)
		}
		return p, h
	}
	_, h := data()
	if err := native.VerifyKeyed(t.Context(), &memory{}, h, 128); err != nil {
		t.Errorf("the sample: %v", err)
	}
	if err := native.VerifyKeyed(t.Context(), &memory{}, h, 0); err != nil {
		t.Errorf("the sample, without a max parallelism: %v", err)
	}
	if err := native.VerifyKeyed(t.Context(), &memory{}, h, 4096); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "belongs to key group") {
		t.Errorf("another max parallelism: %v", err)
	}
	p, h := data()
	at := bytes.IndexByte(p, 0x2a) // the key 42, of group 37
	p[at] = 0x2b
	h.Data = inline(p)
	if err := native.VerifyKeyed(t.Context(), &memory{}, h, 128); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "key group 37: a key of state") {
		t.Errorf("a key in a group of others: %v", err)
	}
	p, h = data()
	h.Data = inline(append(p, 0))
	if err := native.VerifyKeyed(t.Context(), &memory{}, h, 128); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("a byte after the last entry: %v", err)
	}
}
