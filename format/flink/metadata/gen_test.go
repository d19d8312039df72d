package metadata_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// gen writes random _metadata files straight from the spec, with a writer of
// its own, and builds beside them what must be read: it uses nothing of the
// package under test. One method per structure; each writes it and returns it.
type gen struct {
	sptest.Buf
	r                          *rand.Rand
	version                    int
	noSubtask, shortChangelogs bool
	wantChannels, wantShortLog bool           // at least one, so that the layout can be told
	met                        map[string]int // what was written, by name
	depth                      int
	tail                       string
	kind                       format.SnapshotKind
}

// texts are texts with the bytes that stand for them in modified UTF-8.
var texts = []struct{ text, bytes string }{
	{"plain-uid", "plain-uid"},
	{"", ""},
	{"ünïcode-✓", "\xc3\xbcn\xc3\xafcode-\xe2\x9c\x93"},
	{"nul\x00inside", "nul\xc0\x80inside"},
	{"nul\x00plain", "nul\x00plain"}, // not how Java writes it, but it reads it
	{"smile\U0001f600", "smile\xed\xa0\xbd\xed\xb8\x80"},
	{"lone\xed\xa0\xbdhigh", "lone\xed\xa0\xbdhigh"},
	{"lone\xed\xb8\x80\xed\xa0\xbdswapped", "lone\xed\xb8\x80\xed\xa0\xbdswapped"},
	{"overlongA", "overlong\xc1\x81"},
	{"overlong/", "overlong\xe0\x80\xaf"},
	{"line\nbell\a\x1b[31mred \"quoted\"", "line\nbell\a\x1b[31mred \"quoted\""},
	{"file:/flink/x", "file:/flink/x"},
	{"\ufffd replaced", "\xef\xbf\xbd replaced"},
}

func (g *gen) text(suffix string) format.Text {
	t := texts[g.r.IntN(len(texts))]
	g.UTF(t.bytes + suffix)
	return format.NewText(t.text + suffix)
}

func (g *gen) some(most int) int { return g.r.IntN(most + 1) }

func (g *gen) i64() int64 {
	v := []int64{0, 1, -1, 1 << 40, -1 << 63, 1<<63 - 1, int64(g.r.Uint64() >> 20)}[g.r.IntN(7)]
	g.I64(v)
	return v
}

func (g *gen) i32() int32 {
	v := []int32{0, 1, -1, 128, -1 << 31, 1<<31 - 1, int32(g.r.Uint32() >> 8)}[g.r.IntN(7)]
	g.I32(int(v))
	return v
}

func (g *gen) blob() format.Bytes {
	p := make([]byte, g.some(20))
	for i := range p {
		p[i] = byte(g.r.Uint32())
	}
	g.Blob(string(p))
	return format.NewBytes(p)
}

func (g *gen) offsets(n int) format.Offsets {
	o := format.OffsetSlice{}
	for range n {
		o = append(o, g.i64())
	}
	return o
}

func (g *gen) saw(space string, tag int) int {
	g.met[fmt.Sprint(space, " ", tag)]++
	return tag
}

// file writes a whole file.
func (g *gen) file() *format.Savepoint {
	sp := &format.Savepoint{ID: g.r.Int64(), Kind: g.kind}
	g.I32(0x4960672d).I32(g.version).I64(sp.ID)
	masters := g.some(2)
	g.I32(masters)
	for range masters {
		m := format.MasterState{}
		var in gen
		in.r, in.met = g.r, g.met
		m.Version = in.i32()
		m.Name = in.text("")
		m.Data = in.blob()
		g.Hex("c96b1696").Blob(string(in.B))
		sp.Masters = append(sp.Masters, m)
	}
	operators := 1 + g.some(3)
	g.I32(operators)
	for i := range operators {
		sp.Operators = append(sp.Operators, g.operator(i))
	}
	g.Raw(g.tail)
	return sp
}

func (g *gen) operator(i int) *format.Operator {
	op := &format.Operator{}
	if g.version >= 5 {
		op.Name, op.UID = g.text(""), g.text("")
	}
	op.ID = format.OperatorID{byte(i), 1, 2, 0xff, 15: byte(g.r.Uint32())}
	g.Raw(string(op.ID[:]))
	op.Parallelism, op.MaxParallelism = g.i32(), g.i32()
	if g.version == 2 {
		g.i32() // the dead chain length
	}
	op.Finished = g.version >= 3 && g.r.IntN(5) == 0
	if g.version >= 3 {
		if !op.Finished && g.r.IntN(2) == 0 {
			op.Coordinator = g.inline()
		} else {
			g.U8(g.saw("stream", 0))
		}
	}
	if op.Finished {
		g.I32([]int{-1, -1, -2, -1 << 31}[g.r.IntN(4)])
		g.met["finished operator"]++
		return op
	}
	subtasks := 1 + g.some(3)
	g.I32(subtasks)
	for _, index := range g.r.Perm(subtasks) {
		op.Subtasks = append(op.Subtasks, g.subtask(index))
	}
	return op
}

func (g *gen) subtask(index int) *format.Subtask {
	s := &format.Subtask{Index: int32(index)}
	if g.version >= 3 && g.r.IntN(5) == 0 {
		if index == 0 && g.r.IntN(2) == 0 {
			s.Index = 1<<31 - 1
		}
		s.Finished = true
		g.I32(int(-s.Index - 1))
		g.met["finished subtask"]++
		return s
	}
	g.I32(index)
	if g.version == 2 {
		g.I64([]int64{-1, 0, 12345}[g.r.IntN(3)]) // the dead duration
		n := g.some(2)
		g.I32(n)
		for range n {
			s.Legacy = append(s.Legacy, g.stream())
			g.met["legacy handle"]++
		}
	}
	if n := g.some(1); n == 1 {
		g.I32(1)
		s.Managed = g.operatorHandle(format.CodecFlink)
	} else {
		g.I32(0)
	}
	if n := g.some(1); n == 1 {
		g.I32(1)
		s.Raw = g.operatorHandle(format.CodecRaw)
	} else {
		g.I32(0)
	}
	if g.wantShortLog {
		g.wantShortLog = false
		s.ManagedKeyed = g.keyedTag([]int{8, 9, 10}[g.r.IntN(3)], format.CodecFlink)
	} else {
		s.ManagedKeyed = g.keyed(format.CodecFlink)
	}
	s.RawKeyed = g.keyed(format.CodecRaw)
	if g.version >= 3 {
		s.Input = g.channels(true)
		s.Output = g.channels(false)
	}
	return s
}

func (g *gen) inline() format.Stream {
	g.U8(g.saw("stream", 1))
	return &format.Inline{Name: g.text(""), Data: g.blob()}
}

func (g *gen) stream() format.Stream {
	tags := []int{0, 1, 2, 3, 15, 16}
	if g.version >= 3 {
		tags = append(tags, 6)
	}
	return g.streamTag(tags[g.r.IntN(len(tags))])
}

func (g *gen) streamTag(tag int) format.Stream {
	if tag == 1 {
		return g.inline()
	}
	g.U8(g.saw("stream", tag))
	switch tag {
	case 2:
		return &format.File{Length: g.i64(), Path: g.text("")}
	case 6:
		return &format.File{Relative: true, Path: g.text(""), Length: g.i64()}
	case 3:
		s := &format.KeyGroupStream{}
		n := g.some(3)
		s.Range = format.KeyGroupRange{First: g.i32(), Count: int32(n)}
		g.I32(n)
		s.Offsets = g.offsets(n)
		s.Data = g.stream()
		return s
	case 15:
		s := &format.Segment{Start: g.i64(), Length: g.i64(), Scope: format.Scope(g.some(1))}
		g.I32(int(s.Scope))
		s.Path, s.LogicalID = g.text(""), g.text("")
		return s
	case 16:
		return &format.EmptySegment{}
	}
	return nil
}

func (g *gen) operatorHandle(codec format.CodecID) *format.OperatorHandle {
	h := &format.OperatorHandle{Codec: codec}
	tag := g.saw("operator", []int{0, 4, 4, 17}[g.r.IntN(4)])
	g.U8(tag)
	if tag == 0 {
		return h
	}
	n := g.some(3)
	g.I32(n)
	for i := range n {
		st := format.NamedState{Name: g.text(fmt.Sprint(i)), Mode: format.Mode(g.some(2))}
		g.U8(int(st.Mode))
		k := g.some(4)
		g.I32(k)
		st.Offsets = g.offsets(k)
		h.States = append(h.States, st)
	}
	if tag == 17 {
		h.Merging = &format.FileMerging{TaskOwnedDir: g.text(""), SharedDir: g.text(""), Placeholder: g.some(1) == 1}
		g.U8(map[bool]int{false: 0, true: 1}[h.Merging.Placeholder])
		h.Data = g.streamTag(15 + g.some(1))
		return h
	}
	h.Data = g.stream()
	return h
}

func (g *gen) keyRange() format.KeyGroupRange {
	return format.KeyGroupRange{First: g.i32(), Count: g.count31()}
}

func (g *gen) count31() int32 {
	v := []int32{0, 1, 128, 1<<31 - 1}[g.r.IntN(4)]
	g.I32(int(v))
	return v
}

func (g *gen) keyed(codec format.CodecID) format.KeyedHandle {
	tags := []int{0, 0, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14}
	if g.depth > 2 {
		tags = []int{0, 3, 9, 13}
	}
	return g.keyedTag(tags[g.r.IntN(len(tags))], codec)
}

func (g *gen) keyedTag(tag int, codec format.CodecID) format.KeyedHandle {
	g.U8(g.saw("keyed", tag))
	if short := g.shortChangelogs && tag >= 8 && tag <= 10; short {
		g.met[fmt.Sprint("keyed ", tag, "a")]++
	}
	switch tag {
	case 3, 7, 12:
		h := &format.KeyGroups{Codec: codec, Savepoint: tag == 7}
		n := g.some(3)
		h.Range = format.KeyGroupRange{First: g.i32(), Count: int32(n)}
		g.I32(n)
		h.Offsets = g.offsets(n)
		h.Data = g.stream()
		if tag == 12 {
			h.HandleID = g.text("")
		}
		return h
	case 5, 11:
		h := &format.Incremental{CheckpointID: g.i64(), BackendID: g.text(""), Range: g.keyRange(), CheckpointedSize: -1}
		if tag == 11 {
			h.CheckpointedSize = g.i64()
		}
		h.Meta = g.stream()
		h.Shared, h.Private = g.named(), g.named()
		if tag == 11 {
			h.HandleID = g.text("")
		}
		return h
	case 8, 14:
		short := tag == 8 && g.shortChangelogs
		h := &format.Changelog{Range: g.keyRange(), CheckpointedSize: -1}
		if !short {
			h.CheckpointedSize = g.i64()
		}
		g.depth++
		n := g.some(2)
		g.I32(n)
		for range n {
			h.Materialized = append(h.Materialized, g.keyed(codec))
		}
		n = g.some(2)
		g.I32(n)
		for range n {
			h.Changes = append(h.Changes, g.keyedTag([]int{9, 10, 13, 0}[g.r.IntN(4)], codec))
		}
		g.depth--
		if !short {
			h.MaterializationID = g.i64()
			h.CheckpointID = h.MaterializationID
			if tag == 14 {
				h.CheckpointID = g.i64()
			}
			h.HandleID = g.text("")
		}
		return h
	case 9:
		h := &format.ChangelogMemory{Range: g.keyRange(), From: g.i64(), To: g.i64()}
		n := g.some(3)
		g.I32(n)
		for range n {
			h.Changes = append(h.Changes, format.Change{KeyGroup: g.i32(), Data: g.blob()})
		}
		if !g.shortChangelogs {
			h.HandleID = g.text("")
		}
		return h
	case 10, 13:
		h := &format.ChangelogStream{Range: g.keyRange(), CheckpointedSize: -1}
		n := g.some(3)
		g.I32(n)
		for range n {
			h.Streams = append(h.Streams, format.OffsetStream{Offset: g.i64(), Data: g.stream()})
		}
		h.StateSize = g.i64()
		if tag == 13 || !g.shortChangelogs {
			h.CheckpointedSize = g.i64()
			h.HandleID = g.text("")
		}
		if tag == 13 {
			h.StorageID = g.text("")
		}
		return h
	}
	return nil
}

func (g *gen) named() (all []format.NamedStream) {
	n := g.some(3)
	g.I32(n)
	for range n {
		all = append(all, format.NamedStream{Name: g.text(""), Data: g.stream()})
	}
	return all
}

func (g *gen) channels(input bool) (all []*format.ChannelHandle) {
	n := g.some(2)
	if g.wantChannels {
		n, g.wantChannels = n+1, false
	}
	g.I32(n)
	for range n {
		all = append(all, g.channel(input))
	}
	return all
}

func (g *gen) channel(input bool) *format.ChannelHandle {
	h := &format.ChannelHandle{Subtask: -1}
	if g.version >= 6 {
		h.Merged = g.some(1) == 1
		tag := map[[2]bool]int{{true, false}: 1, {false, false}: 2, {true, true}: 3, {false, true}: 4}[[2]bool{input, h.Merged}]
		g.U8(g.saw("channel", tag))
	} else {
		g.met[fmt.Sprint("channel plain, 1.11 ", g.noSubtask)]++
	}
	if !g.noSubtask {
		h.Subtask = g.i32()
	}
	if h.Merged {
		h.Size = g.i64()
		h.Data = g.stream()
		var in gen
		in.r, in.met = g.r, g.met
		n := g.some(3)
		in.I32(n)
		for range n {
			c := format.Channel{First: in.i32(), Second: in.i32(), Size: in.i64()}
			k := g.some(3)
			in.I32(k)
			c.Offsets = in.offsets(k)
			h.Channels = append(h.Channels, c)
		}
		g.Blob(string(in.B))
		return h
	}
	c := format.Channel{First: g.i32(), Second: g.i32()}
	k := g.some(3)
	if g.noSubtask {
		// The layouts are told apart by reading to the exact end (spec 3.2).
		// Without offsets and with null for a stream, which nobody writes, a
		// record of 1.11 can pass for one of 1.12.
		k++
	}
	g.I32(k)
	c.Offsets = g.offsets(k)
	c.Size = g.i64()
	h.Size, h.Channels = c.Size, []format.Channel{c}
	if g.version == 3 {
		h.Data = g.streamTag([]int{1, 2, 6}[g.some(2)])
	} else {
		h.Data = g.stream()
	}
	return h
}

// sameModel compares what two savepoints say. Wire is left out: that it is
// right is shown by writing the same bytes again.
var sameModel = cmp.Options{
	cmp.Comparer(func(a, b format.Text) bool { return a.String() == b.String() }),
	cmp.Comparer(func(a, b format.Bytes) bool { return bytes.Equal(content(a), content(b)) }),
	cmp.Comparer(func(a, b format.Offsets) bool { return fmt.Sprint(offsets(a)) == fmt.Sprint(offsets(b)) }),
	cmpopts.IgnoreTypes(format.Wire("")),
	cmpopts.EquateEmpty(),
}

func content(b format.Bytes) []byte {
	p := make([]byte, b.Len())
	if _, err := b.ReadAt(p, 0); err != nil {
		panic(err)
	}
	return p
}

// vendorObject is a properties object that no release of Flink writes: class
// Custom { int[] a; String s; Object self } with a block of its own data.
func vendorObject() string {
	var b sptest.Buf
	b.Hex("aced0005 73 72").UTF("com.example.CustomProperties").I64(77).Hex("03 0003")
	b.Raw("[").UTF("a").Hex("74").UTF("[I").Raw("L").UTF("s").Hex("74").UTF("Ljava/lang/String;").Raw("L").UTF("self").Hex("74").UTF("Ljava/lang/Object;")
	b.Hex("78 70")                                                    // no annotation, no super class
	b.Hex("75 72").UTF("[I").I64(5).Hex("02 0000 78 70")              // int[]
	b.I32(2).I32(7).I32(-1)                                           // its elements
	b.Hex("74").UTF("hello").Hex("71 007e0004")                       // s, and self: the object itself
	b.Hex("77 03 010203").Hex("7a 00000002 ffff").Hex("70").Hex("78") // blocks, null, end of the class's own data
	return string(b.B)
}
