package sptest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

// Stores returns a resolver for local files and for mem://, which is in memory.
func Stores() storage.Resolver {
	r, m := route.New(local.New()), mem.New()
	r.Add("mem", func(_ context.Context, uri string) (storage.Storage, string, error) {
		_, name, _ := strings.Cut(uri, "://")
		return m, name, nil
	})
	return r
}

// OpenIn opens a snapshot in any of the stores and closes it when the test ends.
func OpenIn(t testing.TB, stores storage.Resolver, location string) *reader.Snapshot {
	t.Helper()
	snap, err := reader.Open(t.Context(), location, &reader.Options{Stores: stores})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	})
	return snap
}

// Truth holds the fields of truth.json and restored-pN.json of the known corpus
// that tests use.
type Truth struct {
	Operators []struct {
		Name, ID    string
		Parallelism int32
		Subtasks    []struct {
			Index         int32
			OperatorState map[string]TruthState `json:"operator_state"`
			KeyGroups     []int32               `json:"key_groups"`
			KeyedState    map[string]struct {
				Entries []map[string]any
			} `json:"keyed_state"`
		}
	}
}

// TruthState holds the elements or entries of an operator state.
type TruthState struct {
	Kind    string
	Raw     []string // of each element
	Entries [][2]any
}

// TruthOf reads what Flink itself read from the snapshot of the known corpus in
// dir.
func TruthOf(t testing.TB, dir string) (truth Truth) {
	t.Helper()
	LoadJSON(t, filepath.Join(dir, "truth.json"), &truth)
	return truth
}

// LoadJSON reads a file.
func LoadJSON(t testing.TB, file string, v any) {
	t.Helper()
	p, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(p, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Reported returns bytes in the notation of the records of the known corpus.
func Reported(p []byte) string {
	if len(p) <= 512 {
		return hex.EncodeToString(p)
	}
	return fmt.Sprintf("%d bytes, sha256 %x", len(p), sha256.Sum256(p))
}

// Elements reads a state of a handle, element by element.
func Elements(t testing.TB, in format.View, h *format.OperatorHandle, state string) []string {
	t.Helper()
	codec, err := in.Codec(h.Codec)
	if err != nil {
		t.Fatal(err)
	}
	cur, err := codec.Elements(t.Context(), in.Source, h, state, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for e, err := range format.All(cur) {
		if err != nil {
			t.Fatalf("state %q: %v", state, err)
		}
		all = append(all, string(e.Value))
	}
	return all
}

// Bytes reads all bytes of a stream.
func Bytes(t testing.TB, src format.Source, s format.Stream) []byte {
	t.Helper()
	if s == nil {
		return nil
	}
	n := s.Size()
	if sizer, ok := src.(format.Sizer); ok {
		var err error
		if n, err = sizer.SizeOf(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	p := make([]byte, n)
	if _, err := src.ReadAt(t.Context(), s, p, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

// OffsetsOf reads all offsets.
func OffsetsOf(t testing.TB, o format.Offsets) []int64 {
	t.Helper()
	all := []int64{}
	err := format.EachOffset(t.Context(), o, func(_ int64, run []int64) error {
		all = append(all, run...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// KeyGroupStream makes a full keyed stream: a header, then the text of each key
// group; "" is a group without data. In the savepoint format, its offset is 0; in
// the others, it equals the offset of the next group.
func KeyGroupStream(savepoint bool, codec format.CodecID, header string, first int32, groups ...string) *format.KeyGroups {
	h := &format.KeyGroups{Codec: codec, Savepoint: savepoint, Range: format.KeyGroupRange{First: first, Count: int32(len(groups))}, HandleID: format.NewText("id")}
	p := header
	var offsets format.OffsetSlice
	for _, g := range groups {
		if g == "" && savepoint {
			offsets = append(offsets, 0)
			continue
		}
		offsets = append(offsets, int64(len(p)))
		p += g
	}
	h.Offsets = offsets
	h.Data = &format.Inline{Name: format.NewText(fmt.Sprint("h", first)), Data: format.NewBytes([]byte(p))}
	return h
}

// KeyedOperator returns an operator with the given keyed handles and number of
// key groups.
func KeyedOperator(max int32, handles ...format.KeyedHandle) *format.Operator {
	op := Operator("keyed", make([]*format.OperatorHandle, len(handles))...)
	op.MaxParallelism = max
	for i, h := range handles {
		op.Subtasks[i].ManagedKeyed = h
	}
	return op
}
