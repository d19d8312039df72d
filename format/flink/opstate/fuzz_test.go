package opstate_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
)

// ours reports whether an error is of a kind that input can cause.
func ours(err error) bool {
	return errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrLimit)
}

// FuzzStream: any bytes with any offsets are refused, or what is built from
// all elements is the same bytes.
func FuzzStream(f *testing.F) {
	seeds := 0
	add := func(h *format.OperatorHandle) {
		var offs []byte
		for _, s := range h.States {
			o := s.Offsets.(format.OffsetSlice)
			offs = append(offs, byte(len(o)), byte(s.Mode))
			for _, v := range o {
				offs = binary.AppendVarint(offs, v)
			}
			offs = append(offs, byte(len(s.Name.String())))
			offs = append(offs, s.Name.String()...)
		}
		f.Add(flatten(h.Data), offs, h.Codec == format.CodecRaw)
		seeds++
	}
	for _, h := range vectors(f) {
		add(h)
	}
	for _, w := range forms {
		add(stream(w, state{name: "a", elements: []string{"x", "", "yz"}}, state{name: "b", class: "com.example.Snapshot", mode: format.ModeUnion, elements: []string{"q"}}))
		add(stream(w, state{name: "e"}))
	}
	if seeds == 0 {
		f.Fatal("no seeds")
	}
	f.Fuzz(func(t *testing.T, p, offs []byte, raw bool) {
		h := &format.OperatorHandle{Codec: format.CodecFlink, Data: &format.Inline{Data: format.NewBytes(p)}}
		if raw {
			h.Codec = format.CodecRaw
		}
		names := map[string]bool{}
		for len(offs) > 2 {
			n, mode := int(offs[0]), format.Mode(offs[1]%3)
			offs = offs[2:]
			o := format.OffsetSlice{}
			for range n {
				v, k := binary.Varint(offs)
				if k <= 0 {
					break
				}
				o, offs = append(o, v), offs[k:]
			}
			if len(offs) == 0 {
				break
			}
			k := min(int(offs[0]), len(offs)-1)
			name := string(offs[1 : 1+k])
			offs = offs[1+k:]
			if !names[name] {
				names[name] = true
				h.States = append(h.States, format.NamedState{Name: format.NewText(name), Mode: mode, Offsets: o})
			}
		}
		if len(h.States) == 0 {
			return
		}
		metas, got, err := all(t, &memory{}, h)
		if err != nil {
			if !ours(err) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		total := 0
		for _, e := range got {
			for _, v := range e {
				total += len(v)
			}
		}
		if limit := 64 * (len(p) + 1) * (1 + len(h.States)); total > limit {
			t.Fatalf("%d bytes of elements from %d", total, len(p))
		}
		if raw || len(metas) != len(h.States) {
			return
		}
		built, err := (&opstate.Codec{}).Build(t.Context(), &memory{}, runs(t, h, metas))
		if err != nil {
			t.Fatal(err)
		}
		_, again, err := all(t, &memory{}, built)
		if err != nil {
			t.Fatalf("what was built is refused: %v", err)
		}
		for name, want := range got {
			if len(again[name]) != len(want) {
				t.Fatalf("%q: %d elements became %d", name, len(want), len(again[name]))
			}
			for i := range want {
				if again[name][i] != want[i] {
					t.Fatalf("%q element %d differs", name, i)
				}
			}
		}
	})
}

// FuzzEnvelope: any bytes are refused, or put together again from what was
// said of the states.
func FuzzEnvelope(f *testing.F) {
	for _, w := range forms {
		if w.version > 1 {
			h := stream(w, sample(w)...)
			size, states, err := opstate.ParseEnvelope(flatten(h.Data))
			if err != nil || len(states) == 0 {
				f.Fatal(err)
			}
			f.Add(flatten(h.Data)[:size])
		}
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		size, states, err := opstate.ParseEnvelope(p)
		if err != nil {
			if !ours(err) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		// Versions before 3 count again behind the states, others before 6
		// have no mark of compression.
		left := p[:size]
		left = left[4:]
		if p[3] >= 6 {
			left = left[1:]
		}
		for i := 0; len(left) > 0; {
			lists := int(binary.BigEndian.Uint16(left))
			left = left[2:]
			for range lists {
				if i == len(states) || len(left) < len(states[i]) || string(left[:len(states[i])]) != string(states[i]) {
					t.Fatalf("state %d is not verbatim", i)
				}
				left = left[len(states[i]):]
				i++
			}
			if p[3] < 3 {
				left = left[4:]
			}
			if len(left) == 0 && i != len(states) {
				t.Fatalf("%d of %d states", i, len(states))
			}
		}
	})
}
