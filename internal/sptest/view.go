package sptest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
)

// View returns a savepoint of operators whose streams are inline.
func View(ops ...*format.Operator) format.View {
	return format.View{Savepoint: &format.Savepoint{Location: "mem://in", Operators: ops}, Source: Memory{}, Codecs: Codecs()}
}

// Memory is a Source of inline streams and of ropes over them.
type Memory struct{}

// ReadAt reads from an inline stream or a rope.
func (m Memory) ReadAt(ctx context.Context, s format.Stream, p []byte, off int64) (int, error) {
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

// CodecsFunc makes a function a format.Codecs.
type CodecsFunc func(format.CodecID) (format.OperatorCodec, error)

// Codec calls the function.
func (f CodecsFunc) Codec(id format.CodecID) (format.OperatorCodec, error) { return f(id) }

// Codecs returns the codecs that a reader uses.
func Codecs() CodecsFunc {
	var flink opstate.Codec
	return func(id format.CodecID) (format.OperatorCodec, error) {
		if id == format.CodecNative {
			return native.Codec{}, nil
		}
		return &flink, nil
	}
}

// State is one operator state of a handle that a test makes.
type State struct {
	Name     string
	Mode     format.Mode
	Elements []string
}

// NativeHandle makes a handle of native state whose elements are strings of up to
// 31 bytes, without using the product's encoder.
func NativeHandle(name string, states ...State) *format.OperatorHandle {
	h := handleOf(format.CodecNative, states, func(e string) string {
		if len(e) > 31 {
			panic("too long")
		}
		return string([]byte{byte(0xa0 + len(e))}) + e
	})
	h.Data = inline(name, h.Data)
	return h
}

// RawHandle makes a handle whose elements are raw bytes.
func RawHandle(states ...State) *format.OperatorHandle {
	return handleOf(format.CodecRaw, states, func(e string) string { return e })
}

func handleOf(codec format.CodecID, states []State, encode func(string) string) *format.OperatorHandle {
	h := &format.OperatorHandle{Codec: codec}
	var data []byte
	for _, s := range states {
		offsets := format.OffsetSlice{}
		for _, e := range s.Elements {
			offsets = append(offsets, int64(len(data)))
			data = append(data, encode(e)...)
		}
		h.States = append(h.States, format.NamedState{Name: format.NewText(s.Name), Mode: s.Mode, Offsets: offsets})
	}
	h.Data = &format.Inline{Data: format.NewBytes(data)}
	return h
}

func inline(name string, s format.Stream) format.Stream {
	return &format.Inline{Name: format.NewText(name), Data: s.(*format.Inline).Data}
}

// Inline returns an inline stream.
func Inline(name, data string) *format.Inline {
	return &format.Inline{Name: format.NewText(name), Data: format.NewBytes([]byte(data))}
}

// Operator makes an operator. A nil handle is a subtask without state.
func Operator(uid string, handles ...*format.OperatorHandle) *format.Operator {
	op := &format.Operator{UID: format.NewText(uid), ID: format.OperatorIDOf(uid), Parallelism: int32(len(handles)), MaxParallelism: 128}
	for i, h := range handles {
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: h})
	}
	return op
}

// Versioned returns a stream that begins with a version.
func Versioned(v uint32, rest string) *format.Inline {
	return Inline("x", string(binary.BigEndian.AppendUint32(nil, v))+rest)
}

// ListOperator makes an operator whose subtasks each hold one Flink list state
// with one element.
func ListOperator(uid string, p int) *format.Operator {
	op := Operator(uid)
	op.Parallelism = int32(p)
	for i := range p {
		data := Versioned(6, "....a")
		data.Name = format.NewText(fmt.Sprint(uid, i))
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: &format.OperatorHandle{
			Codec: format.CodecFlink, Data: data,
			States: []format.NamedState{{Name: format.NewText("l"), Offsets: format.OffsetSlice{8}}},
		}})
	}
	return op
}

// IncrementalOperator makes an operator whose state is one incremental handle.
func IncrementalOperator(uid string, h *format.Incremental) *format.Operator {
	op := Operator(uid, nil)
	h.Range = format.KeyGroupRange{Count: 128}
	op.Subtasks[0].ManagedKeyed = h
	return op
}

// WithClass opens a copy of a snapshot of testdata in whose _metadata the class
// name of Flink's serializer of longs is replaced by another of the same length:
// by all everywhere, and by last in the last subtask.
func WithClass(t *testing.T, name, all, last string) *reader.Snapshot {
	t.Helper()
	const long = "LongSerializer$LongSerializerSnapshot"
	p, err := os.ReadFile(filepath.Join(testenv.Fixture(t, name), "_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(p, []byte(long)); n < 2 || len(all) != len(long) || len(last) != len(long) {
		t.Fatalf("%s occurs %d times", long, n)
	}
	at := bytes.LastIndex(p, []byte(long))
	p = bytes.ReplaceAll(p, []byte(long), []byte(all))
	copy(p[at:], last)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "_metadata"), p, 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(t, dir)
}

// KeyedCodec returns an error: keyed state has no codec here.
func (f CodecsFunc) KeyedCodec(*format.Operator, format.KeyedHandle) (format.KeyedCodec, error) {
	return nil, format.ErrUnsupported
}
