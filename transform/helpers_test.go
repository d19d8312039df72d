package transform

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
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/writer"
)

// place is local files, and mem:// in memory, so that what is written costs no
// disk.
func place() storage.Resolver {
	r, m := route.New(local.New()), mem.New()
	r.Add("mem", func(_ context.Context, uri string) (storage.Storage, string, error) {
		_, name, _ := strings.Cut(uri, "://")
		return m, name, nil
	})
	return r
}

func openAt(t testing.TB, stores storage.Resolver, location string) *reader.Snapshot {
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

func inputOf(snap *reader.Snapshot) format.View {
	return format.View{Savepoint: snap.Savepoint, Source: snap.Source(), Codecs: snap}
}

// sealed writes a view of a snapshot and opens what was written.
func sealed(t testing.TB, stores storage.Resolver, snap *reader.Snapshot, v format.View, target string) *reader.Snapshot {
	t.Helper()
	if _, err := writer.Write(t.Context(), v, target, &writer.Options{Stores: stores}); err != nil {
		t.Fatal(err)
	}
	return openAt(t, stores, target)
}

// content is truth.json and restored-pN.json of the known corpus, as far as it
// matters here.
type content struct {
	Operators []struct {
		Name, ID    string
		Parallelism int32
		Subtasks    []struct {
			Index         int32
			OperatorState map[string]stateContent `json:"operator_state"`
			KeyGroups     []int32                 `json:"key_groups"`
			KeyedState    map[string]struct {
				Entries []map[string]any
			} `json:"keyed_state"`
		}
	}
}

type stateContent struct {
	Kind    string
	Raw     []string // of each element
	Entries [][2]any
}

// knownSnapshot is a folder of the known corpus.
type knownSnapshot struct {
	name, dir string
	snapshot  string // the directory of _metadata
	at        string // where Flink restored it from
	shape     string // of the job
	merging   bool   // state in merged files
	unaligned bool
	compress  bool // state, in snappy frames
	truth     content
}

func knownSnapshots(t testing.TB) (all []knownSnapshot) {
	t.Helper()
	for _, k := range testenv.KnownSnapshots(t) {
		known := knownSnapshot{name: k.Name, dir: k.Dir, snapshot: k.Location, at: k.At, shape: k.Shape, merging: k.FileMerging, unaligned: k.Unaligned, compress: k.Compress}
		load(t, filepath.Join(k.Dir, "truth.json"), &known.truth)
		all = append(all, known)
	}
	return all
}

// operatorStates counts the operator states of a kind that subtasks held, each
// once for an operator.
func operatorStates(all []knownSnapshot, kind string) int {
	states := map[string]bool{}
	for _, k := range all {
		for _, op := range k.truth.Operators {
			for _, s := range op.Subtasks {
				for name, st := range s.OperatorState {
					if st.Kind == kind {
						states[k.name+"/"+op.ID+"/"+name] = true
					}
				}
			}
		}
	}
	return len(states)
}

// ofShape returns the snapshots of jobs of a shape.
func ofShape(all []knownSnapshot, shape string) (some []knownSnapshot) {
	for _, k := range all {
		if k.shape == shape {
			some = append(some, k)
		}
	}
	return some
}

func (k *knownSnapshot) location() string { return k.snapshot }

func load(t testing.TB, file string, v any) {
	t.Helper()
	p, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(p, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// report is bytes as the reports of the known corpus have them.
func report(p []byte) string {
	if len(p) <= 512 {
		return hex.EncodeToString(p)
	}
	return fmt.Sprintf("%d bytes, sha256 %x", len(p), sha256.Sum256(p))
}

// elements reads a state of a handle, element by element.
func elements(t testing.TB, in format.View, h *format.OperatorHandle, state string) []string {
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

// stream reads all bytes of a stream.
func stream(t testing.TB, src format.Source, s format.Stream) []byte {
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

func offsetsOf(t testing.TB, o format.Offsets) []int64 {
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

// memory is a Source of inline streams and of ropes over them.
type memory struct{}

func (m memory) ReadAt(ctx context.Context, s format.Stream, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 || off+int64(len(p)) > s.Size() {
		return 0, format.Errorf(format.ErrTruncated, "bytes %d to %d of %d", off, off+int64(len(p)), s.Size())
	}
	switch s := s.(type) {
	case *format.Inline:
		return s.Data.ReadAt(p, off)
	case *format.Concat:
		n := 0
		for _, part := range s.Parts {
			if off >= part.N {
				off -= part.N
				continue
			}
			k := int(min(part.N-off, int64(len(p)-n)))
			if _, err := m.ReadAt(ctx, part.Of, p[n:n+k], part.Off+off); err != nil {
				return n, err
			}
			n, off = n+k, 0
		}
		return n, nil
	}
	return 0, fmt.Errorf("a stream of type %T", s)
}

// codecs are those that a reader would give.
func codecs() codecsFunc {
	var flink opstate.Codec
	return func(id format.CodecID) (format.OperatorCodec, error) {
		if id == format.CodecNative {
			return native.Codec{}, nil
		}
		return &flink, nil
	}
}

// codecsFunc is a function as format.Codecs.
type codecsFunc func(format.CodecID) (format.OperatorCodec, error)

// Codec calls the function.
func (f codecsFunc) Codec(id format.CodecID) (format.OperatorCodec, error) { return f(id) }

// memoryInput is a savepoint of operators whose streams are inline.
func memoryInput(ops ...*format.Operator) format.View {
	return format.View{Savepoint: &format.Savepoint{Location: "mem://in", Operators: ops}, Source: memory{}, Codecs: codecs()}
}

// st is one state of a made handle.
type st struct {
	name  string
	mode  format.Mode
	elems []string
}

// nativeHandle makes a handle of native state from elements that are short
// strings: their msgpack form is made by hand.
func nativeHandle(name string, states ...st) *format.OperatorHandle {
	h := &format.OperatorHandle{Codec: format.CodecNative}
	var p []byte
	for _, s := range states {
		offsets := format.OffsetSlice{}
		for _, e := range s.elems {
			offsets = append(offsets, int64(len(p)))
			p = append(p, packed(e)...)
		}
		h.States = append(h.States, format.NamedState{Name: format.NewText(s.name), Mode: s.mode, Offsets: offsets})
	}
	h.Data = &format.Inline{Name: format.NewText(name), Data: format.NewBytes(p)}
	return h
}

// packed is a msgpack string of up to 31 bytes.
func packed(s string) string {
	if len(s) > 31 {
		panic("too long")
	}
	return string([]byte{byte(0xa0 + len(s))}) + s
}

// operator makes an operator; a nil handle is a subtask without state.
func operator(uid string, handles ...*format.OperatorHandle) *format.Operator {
	op := &format.Operator{UID: format.NewText(uid), ID: format.OperatorIDOf(uid), Parallelism: int32(len(handles)), MaxParallelism: 128}
	for i, h := range handles {
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: h})
	}
	return op
}

func inlineOf(name, data string) *format.Inline { return sptest.Inline(name, data) }

func versioned(v uint32, rest string) *format.Inline { return sptest.Versioned(v, rest) }

func plain(uid string, p int) *format.Operator { return sptest.ListOperator(uid, p) }

func rocks(uid string, h *format.Incremental) *format.Operator {
	return sptest.IncrementalOperator(uid, h)
}

func rawStates(states ...st) *format.OperatorHandle {
	var all []sptest.State
	for _, s := range states {
		all = append(all, sptest.State{Name: s.name, Mode: s.mode, Elements: s.elems})
	}
	return sptest.RawHandle(all...)
}

// KeyedCodec has no codec.
func (f codecsFunc) KeyedCodec(format.KeyedHandle) (format.KeyedCodec, error) {
	return nil, format.ErrUnsupported
}
