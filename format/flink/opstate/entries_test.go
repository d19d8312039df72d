package opstate_test

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// be32 is a number of four bytes.
func be32(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }

// endlessMap is a handle of a broadcast state with n equal entries. The entries of
// a compressed map reach from one chunk into the next.
func endlessMap(t testing.TB, w how, entry string, n int) (*endless, *format.OperatorHandle) {
	t.Helper()
	const marker = "the map"
	h := stream(w, state{name: "s", mode: format.ModeBroadcast, elements: []string{marker}})
	p := flatten(h.Data)
	first := find(h, "s").Offsets.(format.OffsetSlice)[0]
	e := &endless{head: string(p[:first]), n: int64(n)}
	if w.framed == "" {
		e.head += be32(n)
		e.element = entry
	} else {
		half := len(entry) / 2
		e.head += string(chunk(be32(n) + entry[:half]))
		e.element = string(chunk(entry[half:] + entry[:half]))
		e.n--
	}
	size := e.size()
	if w.framed != "" {
		e.tail = string(chunk(entry[len(entry)/2:]))
		size += int64(len(e.tail))
	}
	h.Data = &format.File{Length: size}
	return e, h
}

// TestEntriesConstantMemory walks a map of gigabytes in a few megabytes.
func TestEntriesConstantMemory(t *testing.T) {
	testenv.Long(t, "reads gigabytes")
	entry := be32(8) + "12345678" + be32(5000) + text(5000, 1)
	for _, x := range []struct {
		how
		n int
	}{{how{version: 6}, 400_000}, {how{version: 6, framed: "one header"}, 200_000}} { // 2 GB and 1 GB
		e, h := endlessMap(t, x.how, entry, x.n)
		before := heap()
		cur, err := (&opstate.Codec{}).Entries(t.Context(), e, h, "s")
		if err != nil {
			t.Fatal(err)
		}
		most, n := int64(0), 0
		for {
			m, err := cur.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(m.Stored) != entry || len(m.Key) != 12 || m.Index != int64(n) || m.Off != int64(4+n*len(entry)) {
				t.Fatalf("entry %d: %d bytes at %d, key % x", n, len(m.Stored), m.Off, m.Key)
			}
			if n++; n%50_000 == 1 {
				most = max(most, heap()-before)
			}
		}
		if n != x.n || most > 4<<20 {
			t.Errorf("%+v: %d of %d entries, %d bytes of heap", x.how, n, x.n, most)
		}
		if err := cur.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEntriesRefuses: maps that are not what they claim.
func TestEntriesRefuses(t *testing.T) {
	entry := be32(1) + "k" + be32(1) + "v"
	for _, w := range []how{{version: 6}, {version: 6, framed: "one header"}} {
		for _, x := range []struct {
			name, m string
			kind    error
			text    string
			n       int // entries before the error
		}{
			{"whole", be32(2) + entry + entry, io.EOF, "", 2},
			{"no entries", be32(0), io.EOF, "", 0},
			{"no count", "\x00\x00", format.ErrTruncated, "expected the number of entries", 0},
			{"a negative count", be32(-1), format.ErrCorrupt, "invalid count -1", 0},
			{"an entry less", be32(2) + entry, format.ErrTruncated, "entry 1", 1},
			{"half an entry", be32(1) + entry[:7], format.ErrTruncated, "entry 0", 0},
			{"more than there is", be32(1<<31-1) + entry, format.ErrTruncated, "entry 1", 1},
			{"a byte more", be32(1) + entry + "x", format.ErrCorrupt, "trailing bytes after the 1 entries", 1},
			{"a length that is negative", be32(1) + be32(-1), format.ErrCorrupt, "invalid length -1", 0},
		} {
			h := stream(w, state{name: "s", mode: format.ModeBroadcast, elements: []string{x.m}})
			cur, err := (&opstate.Codec{}).Entries(t.Context(), &memory{}, h, "s")
			n := 0
			for err == nil {
				if _, err = cur.Next(); err == nil {
					n++
				}
			}
			if !errors.Is(err, x.kind) || n != x.n || !strings.Contains(err.Error(), x.text) {
				t.Errorf("%+v, %s: %d entries, %v", w, x.name, n, err)
			}
		}
		limit := stream(w, state{name: "s", mode: format.ModeBroadcast, elements: []string{be32(1) + be32(1) + "k" + be32(5000) + text(5000, 1)}})
		cur, err := (&opstate.Codec{MaxElement: 4096}).Entries(t.Context(), &memory{}, limit, "s")
		if err == nil {
			_, err = cur.Next()
		}
		if !errors.Is(err, format.ErrLimit) {
			t.Errorf("%+v: an entry over the limit: %v", w, err)
		}
	}
	two := stream(how{version: 6}, state{name: "s", mode: format.ModeBroadcast, elements: []string{be32(1) + entry, be32(1) + entry}})
	if _, err := (&opstate.Codec{}).Entries(t.Context(), &memory{}, two, "s"); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("two maps, of which Flink would read one: %v", err)
	}
	list := stream(how{version: 6}, state{name: "s", elements: []string{"x"}})
	if _, err := (&opstate.Codec{}).Entries(t.Context(), &memory{}, list, "s"); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("a list state: %v", err)
	}
	kryo := stream(how{version: 6}, state{name: "s", mode: format.ModeBroadcast, class: "org.apache.flink.table.runtime.operators.sink.SortedLongSerializer$SortedLongSerializerSnapshot", elements: []string{be32(0)}})
	if _, err := (&opstate.Codec{}).Entries(t.Context(), &memory{}, kryo, "s"); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("a type that is not decoded: %v", err)
	}
	if _, err := (&opstate.Codec{}).Entries(t.Context(), &memory{}, list, "t"); err == nil {
		t.Error("a state that is not there")
	}
}
