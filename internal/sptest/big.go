package sptest

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
)

// UnionOptions describes a _metadata that consists mostly of inline operator
// state: one operator "union" with a state "elements" in union mode. The inline
// bytes are a valid operator-state stream of byte[] elements (spec
// flink-operator-state A3), so everything that reads state can read it.
type UnionOptions struct {
	Subtasks    int
	Elements    int // in each subtask
	ElementSize int // payload of an element, without its 4 bytes of length
	// Copies makes every subtask hold the same elements, like a union state that the
	// job wrote back after a restore. By default all differ.
	Copies bool
	Seed   uint64
}

// UnionOfSize describes a file of n bytes or slightly more: subtasks of 10,000
// elements and about a megabyte each, all different.
func UnionOfSize(n int64) UnionOptions {
	o := UnionOptions{Subtasks: 1, Elements: 10_000, ElementSize: 100, Seed: 1}
	if more := n - o.Size(); more > 0 {
		o.Subtasks += int((more + o.subtaskSize() - 1) / o.subtaskSize())
	}
	return o
}

// Size returns the exact number of bytes that WriteUnion writes.
func (o UnionOptions) Size() int64 {
	return int64(len(header(1))+operatorSize("union")+len(nullProperties)) + int64(o.Subtasks)*o.subtaskSize()
}

func (o UnionOptions) subtaskSize() int64 {
	return 4 + 4 + 1 + 4 + int64(2+len("elements")) + 1 + 4 + 8*int64(o.Elements) +
		1 + int64(2+inlineNameSize) + 4 + o.streamSize() + 4 + 2 + 8
}

func (o UnionOptions) streamSize() int64 {
	return int64(len(envelope("elements", "UNION"))) + int64(o.Elements)*int64(4+o.ElementSize)
}

// WriteUnion writes the file, metadata version 6, in pieces of at most a few
// dozen kilobytes, so that memory use does not grow with its size.
func WriteUnion(w io.Writer, o UnionOptions) error {
	if n := o.streamSize(); n > 1<<31-1 {
		return fmt.Errorf("%d bytes of state in a subtask, the format allows %d", n, 1<<31-1)
	}
	out := spiller{w: w}
	out.buf.Raw(header(1))
	operator(&out.buf, "union", o.Subtasks)
	env := envelope("elements", "UNION")
	for sub := range o.Subtasks {
		out.buf.I32(sub).I32(1).U8(4).I32(1).UTF("elements").U8(1).I32(o.Elements)
		at := int64(len(env))
		for range o.Elements {
			out.buf.I64(at)
			at += int64(4 + o.ElementSize)
			out.spill()
		}
		out.buf.U8(1).UTF(inlineName(0, sub)).I32(int(at)).Raw(env)
		seed := o.Seed
		if !o.Copies {
			seed += uint64(sub)
		}
		src := rand.New(rand.NewPCG(seed, 0x5eed))
		for i := range o.Elements {
			out.buf.I32(o.ElementSize)
			element(&out.buf, src, i, o.ElementSize)
			out.spill()
		}
		out.buf.I32(0).U8(0).U8(0).I32(0).I32(0)
		out.spill()
	}
	out.buf.Raw(nullProperties)
	return out.flush()
}

// element adds n bytes, half of them random, so that a compressor can halve them.
func element(b *Buf, src *rand.Rand, i, n int) {
	at := len(b.B)
	for len(b.B)-at < n {
		b.B = binary.BigEndian.AppendUint64(b.B, src.Uint64())
		b.B = binary.BigEndian.AppendUint64(b.B, uint64(i))
	}
	b.B = b.B[:at+n]
}

// SmallOptions describes a _metadata of many operators with little state each:
// two list states per subtask, held inline.
type SmallOptions struct {
	Operators, Subtasks int
	ElementSize         int // of the small elements
	Seed                uint64
}

// SmallStates writes the file, metadata version 6.
func SmallStates(w io.Writer, o SmallOptions) error {
	out := spiller{w: w}
	out.buf.Raw(header(o.Operators))
	src := rand.New(rand.NewPCG(o.Seed, 0x5eed))
	env := envelope("buffer", "SPLIT_DISTRIBUTE")
	for op := range o.Operators {
		operator(&out.buf, fmt.Sprintf("op-%04d", op), o.Subtasks)
		for sub := range o.Subtasks {
			at := len(env)
			out.buf.I32(sub).I32(1).U8(4).I32(1).UTF("buffer").U8(0).I32(4)
			for i := range 4 {
				out.buf.I64(int64(at + i*(4+o.ElementSize)))
			}
			out.buf.U8(1).UTF(inlineName(op, sub)).I32(at + 4*(4+o.ElementSize)).Raw(env)
			for i := range 4 {
				out.buf.I32(o.ElementSize)
				element(&out.buf, src, i, o.ElementSize)
			}
			out.buf.I32(0).U8(0).U8(0).I32(0).I32(0)
			out.spill()
		}
	}
	out.buf.Raw(nullProperties)
	return out.flush()
}

// nullProperties is the properties object of the State Processor API.
const nullProperties = "\xac\xed\x00\x05\x70"

// header is magic, version 6, checkpoint id 7, no master states, operators.
func header(operators int) string {
	var b Buf
	return string(b.I32(0x4960672d).I32(6).I64(7).I32(0).I32(operators).B)
}

// operator adds name, uid, id, parallelism, max parallelism, no coordinator state
// and the number of subtasks. The id is arbitrary, not the uid's hash.
func operator(b *Buf, uid string, subtasks int) {
	id := make([]byte, 16)
	copy(id, uid)
	b.UTF("the " + uid).UTF(uid).Raw(string(id)).I32(subtasks).I32(max(128, subtasks)).U8(0).I32(subtasks)
}

func operatorSize(uid string) int {
	var b Buf
	operator(&b, uid, 1)
	return b.Len()
}

const inlineNameSize = len("file:/flink/savepoints/savepoint-5eed00-000000000000/00000000-0000-4000-8000-000000000000")

func inlineName(op, sub int) string {
	return fmt.Sprintf("file:/flink/savepoints/savepoint-5eed00-000000000000/%08x-0000-4000-8000-%012x", op, sub)
}

// envelope starts an operator-state stream with one list state of byte[]
// (proxy version 6, not compressed; meta format 7).
func envelope(state, mode string) string {
	var b Buf
	b.I32(6).U8(0)
	b.U8(0).U8(1).UTF(state).I32(1).I32(1).UTF("OPERATOR_STATE_DISTRIBUTION_MODE").UTF(mode)
	const pkg = "org.apache.flink.api.common.typeutils.base.array."
	b.I32(1).UTF("VALUE_SERIALIZER").I32(2).
		UTF(pkg + "BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot").I32(3)
	b.U8(0).U8(0) // no broadcast states
	return string(b.B)
}

// Blobs is a stream of operator state as Flink writes it, with one list state of byte
// arrays, and the offsets of its elements.
func Blobs(state string, elements ...string) (data []byte, offsets []int64) {
	var b Buf
	b.Raw(envelope(state, "SPLIT_DISTRIBUTE"))
	for _, e := range elements {
		offsets = append(offsets, int64(b.Len()))
		b.Blob(e)
	}
	return b.B, offsets
}

// spiller writes its buffer to w when it is large enough.
type spiller struct {
	w   io.Writer
	buf Buf
	err error
}

func (s *spiller) spill() {
	if s.buf.Len() >= 32<<10 {
		_ = s.flush() // returned by the last call
	}
}

func (s *spiller) flush() error {
	if s.err == nil {
		_, s.err = s.w.Write(s.buf.B)
	}
	s.buf.B = s.buf.B[:0]
	return s.err
}
