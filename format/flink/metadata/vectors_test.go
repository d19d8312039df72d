package metadata_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/sptest"
)

func vector(t testing.TB, name string) string {
	t.Helper()
	h, ok := vectors[name]
	if !ok {
		t.Fatalf("no vector %q", name)
	}
	return string(sptest.Hex(h))
}

// The ingredients that the vectors share.
var (
	vF = &format.File{Path: format.NewText("s3://b/chk/1"), Length: 7}
	vR = &format.File{Relative: true, Path: format.NewText("u1"), Length: 9}
	vB = &format.Inline{Name: format.NewText("n"), Data: format.NewBytes([]byte{1, 2, 3})}
	vS = &format.Segment{Start: 16, Length: 32, Scope: format.ScopeShared, Path: format.NewText("s3://b/taskowned/m"), LogicalID: format.NewText("lf")}

	vRange   = format.KeyGroupRange{First: 2, Count: 2}
	vOffsets = format.OffsetSlice{10, 20}
	vKG12    = &format.KeyGroups{Codec: format.CodecFlink, Range: vRange, Offsets: vOffsets, Data: vF, HandleID: format.NewText("id")}
	vStates  = []format.NamedState{{Name: format.NewText("s"), Mode: format.ModeUnion, Offsets: format.OffsetSlice{0, 5}}}
	vOp4     = &format.OperatorHandle{Codec: format.CodecFlink, States: vStates, Data: vR}
	vInc11   = &format.Incremental{
		CheckpointID: 5, BackendID: format.NewText("00000000-0000-0001-0000-000000000002"), Range: format.KeyGroupRange{First: 0, Count: 2},
		CheckpointedSize: 77, Meta: vR, HandleID: format.NewText("hid"),
		Shared:  []format.NamedStream{{Name: format.NewText("000001.sst"), Data: vF}},
		Private: []format.NamedStream{{Name: format.NewText("CURRENT"), Data: vB}},
	}
	vStream13 = &format.ChangelogStream{
		Range: format.KeyGroupRange{First: 0, Count: 2}, Streams: []format.OffsetStream{{Offset: 55, Data: vF}},
		StateSize: 100, CheckpointedSize: 60, HandleID: format.NewText("c"), StorageID: format.NewText("filesystem"),
	}
	vIn  = format.Channel{First: 1, Second: 2, Size: 33, Offsets: format.OffsetSlice{11, 12}}
	vOut = format.Channel{First: 1, Second: 2, Size: 22, Offsets: format.OffsetSlice{11}}

	vInMerged = &format.ChannelHandle{Subtask: 4, Merged: true, Size: 77, Data: vF,
		Channels: []format.Channel{vIn, {First: 1, Second: 3, Size: 44, Offsets: format.OffsetSlice{13}}}}
	vOutMerged = &format.ChannelHandle{Subtask: 4, Merged: true, Size: 22, Data: vF, Channels: []format.Channel{vOut}}
	vInPlain   = &format.ChannelHandle{Subtask: 4, Size: 33, Data: vF, Channels: []format.Channel{vIn}}
	vOutPlain  = &format.ChannelHandle{Subtask: 4, Size: 22, Data: vF, Channels: []format.Channel{vOut}}
)

// fill is where a record goes in the smallest file; what is empty stands for
// nothing.
type fill struct{ coordinator, managed, raw, keyed, rawKeyed, input, output string }

// smallest is a file of one operator with one subtask that holds a record.
func smallest(version int, f fill) []byte {
	var b sptest.Buf
	b.I32(0x4960672d).I32(version).I64(1).I32(0).I32(1)
	if version >= 5 {
		b.UTF("").UTF("")
	}
	b.I64(1).I64(2).I32(1).I32(128)
	or := func(s, none string) string {
		if s == "" {
			return none
		}
		return s
	}
	if version == 2 {
		b.I32(1)
	} else {
		b.Raw(or(f.coordinator, "\x00"))
	}
	b.I32(1).I32(0)
	if version == 2 {
		b.I64(-1).I32(0)
	}
	for _, h := range []string{f.managed, f.raw} {
		if h == "" {
			b.I32(0)
		} else {
			b.I32(1).Raw(h)
		}
	}
	b.Raw(or(f.keyed, "\x00")).Raw(or(f.rawKeyed, "\x00"))
	if version >= 3 {
		for _, h := range []string{f.input, f.output} {
			if h == "" {
				b.I32(0)
			} else {
				b.I32(1).Raw(h)
			}
		}
	}
	if version >= 4 {
		b.Raw(nullTail)
	}
	return b.B
}

// roundTrip decodes a file, checks that it is written again as it was, and
// gives the model.
func roundTrip(t *testing.T, file []byte) *format.Savepoint {
	t.Helper()
	sp, err := metadata.Decode(format.NewBytes(file), metadata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := encode(sp)
	if err != nil || !bytes.Equal(again, file) {
		t.Fatalf("written again: %v, differs at 0x%x", err, differ(again, file))
	}
	return sp
}

// TestVectors: each record of Flink's own serializers, in a file of every
// version that allows it, is read field by field as what it is.
func TestVectors(t *testing.T) {
	used := map[string]bool{"utf": true, "file.v3": true, "file.v6": true, "tail.savepoint": true}
	try := func(name string, versions []int, place func(string) fill, want any, got func(*format.Subtask) any) {
		t.Helper()
		used[name] = true
		for _, v := range versions {
			sp := roundTrip(t, smallest(v, place(vector(t, name))))
			if d := cmp.Diff(want, got(sp.Operators[0].Subtasks[0]), sameModel); d != "" {
				t.Errorf("%s in version %d: want (-), got (+)\n%s", name, v, d)
			}
		}
	}
	all, relative := []int{2, 3, 4, 5, 6}, []int{3, 4, 5, 6}

	// Streams, as the one of an operator handle without states.
	for _, x := range []struct {
		name     string
		versions []int
		want     format.Stream
	}{
		{"stream.null", all, nil},
		{"stream.byte", all, vB},
		{"stream.file", all, vF},
		{"stream.rel", relative, vR},
		{"stream.kg", all, &format.KeyGroupStream{Range: vRange, Offsets: vOffsets, Data: vF}},
		{"stream.seg", all, vS},
		{"stream.emptyseg", all, &format.EmptySegment{}},
	} {
		try(x.name, x.versions, func(h string) fill { return fill{managed: "\x04\x00\x00\x00\x00" + h} },
			x.want, func(s *format.Subtask) any { return s.Managed.Data })
	}
	used["stream.byte"] = true
	sp := roundTrip(t, smallest(4, fill{coordinator: vector(t, "stream.byte")}))
	if d := cmp.Diff(format.Stream(vB), sp.Operators[0].Coordinator, sameModel); d != "" {
		t.Errorf("coordinator:\n%s", d)
	}

	// Keyed handles, in both slots.
	kg7 := *vKG12
	kg7.Savepoint, kg7.HandleID = true, format.Text{}
	backend14 := &format.Changelog{Range: format.KeyGroupRange{First: 0, Count: 2}, CheckpointedSize: 160,
		Materialized: []format.KeyedHandle{vKG12}, Changes: []format.KeyedHandle{vStream13},
		MaterializationID: 4, CheckpointID: 6, HandleID: format.NewText("b")}
	mem9 := &format.ChangelogMemory{Range: format.KeyGroupRange{First: 0, Count: 2}, From: 3, To: 4, HandleID: format.NewText("m"),
		Changes: []format.Change{{KeyGroup: -1, Data: format.NewBytes([]byte{9})}, {KeyGroup: 1, Data: format.NewBytes([]byte{8, 7})}}}
	for _, x := range []struct {
		name     string
		versions []int
		want     format.KeyedHandle
	}{
		{"keyed.kg7", all, &kg7},
		{"keyed.kg12", all, vKG12},
		{"keyed.inc11", relative, vInc11}, // it names a relative file
		{"keyed.mem9", all, mem9},
		{"keyed.stream13", all, vStream13},
		{"keyed.backend14", all, backend14},
	} {
		try(x.name, x.versions, func(h string) fill { return fill{keyed: h} },
			x.want, func(s *format.Subtask) any { return s.ManagedKeyed })
	}
	raw := *vKG12
	raw.Codec = format.CodecRaw
	try("keyed.kg12", all, func(h string) fill { return fill{rawKeyed: h} }, &raw, func(s *format.Subtask) any { return s.RawKeyed })

	// Operator handles.
	dirs := format.FileMerging{TaskOwnedDir: format.NewText("s3://b/taskowned/d"), SharedDir: format.NewText("s3://b/shared/d")}
	empty := dirs
	empty.Placeholder = true
	for name, want := range map[string]*format.OperatorHandle{
		"op.4":       vOp4,
		"op.17":      {Codec: format.CodecFlink, States: vStates, Data: vS, Merging: &dirs},
		"op.17empty": {Codec: format.CodecFlink, Data: &format.EmptySegment{}, Merging: &empty},
	} {
		try(name, relative, func(h string) fill { return fill{managed: h} }, want, func(s *format.Subtask) any { return s.Managed })
		asRaw := *want
		asRaw.Codec = format.CodecRaw
		try(name, relative, func(h string) fill { return fill{raw: h} }, &asRaw, func(s *format.Subtask) any { return s.Raw })
	}

	// Channels.
	for _, x := range []struct {
		name     string
		versions []int
		input    bool
		want     *format.ChannelHandle
	}{
		{"chan.in.v1", []int{3, 4, 5}, true, vInPlain},
		{"chan.out.v1", []int{3, 4, 5}, false, vOutPlain},
		{"chan.in.v2", []int{6}, true, vInPlain},
		{"chan.out.v2", []int{6}, false, vOutPlain},
		{"chan.in.merged", []int{6}, true, vInMerged},
		{"chan.out.merged", []int{6}, false, vOutMerged},
	} {
		try(x.name, x.versions,
			func(h string) fill {
				if x.input {
					return fill{input: h}
				}
				return fill{output: h}
			},
			[]*format.ChannelHandle{x.want},
			func(s *format.Subtask) any {
				if x.input {
					return s.Input
				}
				return s.Output
			})
	}
	for name := range vectors {
		if !used[name] {
			t.Errorf("vector %s was not tried", name)
		}
	}
}

// TestVectorFiles: the whole files of appendix B, and the properties tails.
func TestVectorFiles(t *testing.T) {
	v6, v3 := vector(t, "file.v6"), vector(t, "file.v3")
	tail := v6[len(v6)-604:]
	v4 := "\x49\x60\x67\x2d\x00\x00\x00\x04" + v3[8:] + tail

	rawOp, rawKeyed := *vOp4, *vKG12
	rawOp.Codec, rawKeyed.Codec = format.CodecRaw, format.CodecRaw
	model := func(names, merged bool) *format.Savepoint {
		one := &format.Operator{
			ID:          format.OperatorID{1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18},
			Parallelism: 3, MaxParallelism: 128,
			Coordinator: &format.Inline{Name: format.NewText("coord"), Data: format.NewBytes([]byte{5})},
			Subtasks: []*format.Subtask{
				{Index: 0, Managed: vOp4, Raw: &rawOp, ManagedKeyed: vInc11, RawKeyed: &rawKeyed,
					Input: []*format.ChannelHandle{vInPlain}, Output: []*format.ChannelHandle{vOutPlain}},
				{Index: 1, Finished: true},
			},
		}
		two := &format.Operator{ID: format.OperatorID{7: 1, 15: 2}, Parallelism: 2, MaxParallelism: 128, Finished: true}
		if names {
			one.Name, one.UID = format.NewText("Name"), format.NewText("uid-1")
			two.Name = format.NewText("Fin")
		}
		if merged {
			one.Subtasks[0].Input = []*format.ChannelHandle{vInMerged}
			one.Subtasks[0].Output = []*format.ChannelHandle{vOutMerged}
		}
		return &format.Savepoint{
			ID:        42,
			Masters:   []format.MasterState{{Name: format.NewText("ms"), Version: 3, Data: format.NewBytes([]byte{1, 2})}},
			Operators: []*format.Operator{one, two},
		}
	}
	for _, x := range []struct {
		name, file    string
		size          int
		names, merged bool
		kind          format.SnapshotKind
	}{
		{"v3", v3, 538, false, false, format.SnapshotKind{}},
		{"v4", v4, 538 + 604, false, false, format.SnapshotKind{Type: format.TypeCheckpoint}},
		{"v6", v6, 1224, true, true, format.SnapshotKind{Type: format.TypeCheckpoint}},
	} {
		if len(x.file) != x.size {
			t.Fatalf("%s: the vector has %d bytes, not %d", x.name, len(x.file), x.size)
		}
		want := model(x.names, x.merged)
		want.Kind = x.kind
		if d := cmp.Diff(want, roundTrip(t, []byte(x.file)), sameModel); d != "" {
			t.Errorf("%s: want (-), got (+)\n%s", x.name, d)
		}
	}

	// A kind that comes without an object gets the one that Flink writes.
	savepoint := vector(t, "tail.savepoint")
	for _, x := range []struct {
		kind format.SnapshotKind
		tail string
		size int
	}{
		{format.SnapshotKind{}, nullTail, 5},
		{format.SnapshotKind{Type: format.TypeCheckpoint}, tail, 604},
		{format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatCanonical}, savepoint[:258] + "\x00\x00\x00\x00\x00\x00\x00" + savepoint[265:], 745},
		{format.SnapshotKind{Type: format.TypeFullCheckpoint}, "", 600},
		{format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatNative}, "", 742},
		{format.SnapshotKind{Type: format.TypeSuspendSavepoint, Format: format.FormatCanonical}, "", 756},
		{format.SnapshotKind{Type: format.TypeSuspendSavepoint, Format: format.FormatNative}, "", 753},
		{format.SnapshotKind{Type: format.TypeTerminateSavepoint, Format: format.FormatCanonical}, "", 760},
		{format.SnapshotKind{Type: format.TypeTerminateSavepoint, Format: format.FormatNative}, "", 757},
	} {
		file, err := encode(&format.Savepoint{ID: 1, Kind: x.kind})
		if err != nil {
			t.Fatal(err)
		}
		got := string(file[8+8+4+4:])
		if len(got) != x.size || x.tail != "" && got != x.tail {
			t.Errorf("%v: %d bytes of properties, want %d; differs at %d", x.kind, len(got), x.size, differ([]byte(got), []byte(x.tail)))
		}
		sp := roundTrip(t, file)
		if sp.Kind != x.kind || !metadata.KnownProperties(sp) {
			t.Errorf("%v is read as %v", x.kind, sp.Kind)
		}
	}
	// The flags are kept, whatever they are.
	for flags := range 1 << 7 {
		file := []byte(string(sptest.Hex("4960672d 00000004 0000000000000001 00000000 00000000")) + savepoint)
		for i := range 7 {
			file[24+258+i] = byte(flags >> i & 1)
		}
		if sp := roundTrip(t, file); sp.Kind != (format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatCanonical}) {
			t.Fatalf("flags %07b: %v", flags, sp.Kind)
		}
	}
}

// TestAppendixA: the example that the spec spells out.
func TestAppendixA(t *testing.T) {
	sp := roundTrip(t, sptest.Hex(`
		4960672d 00000003   0000000000000001
		00000000 00000001   0000000000000001 0000000000000002
		00000002 00000080   00 ffffffff`))
	want := &format.Savepoint{ID: 1, Operators: []*format.Operator{
		{ID: format.OperatorID{7: 1, 15: 2}, Parallelism: 2, MaxParallelism: 128, Finished: true}}}
	if d := cmp.Diff(want, sp, sameModel); d != "" {
		t.Error(d)
	}
	if id := sp.Operators[0].ID.String(); id != "00000000000000010000000000000002" {
		t.Errorf("id %s", id)
	}
}

// TestUTFVector: the sample of modified UTF-8 that Java wrote.
func TestUTFVector(t *testing.T) {
	file := smallest(3, fill{managed: "\x04" + "\x00\x00\x00\x01" + vector(t, "utf") + "\x00\x00\x00\x00\x00" + "\x00"})
	name := roundTrip(t, file).Operators[0].Subtasks[0].Managed.States[0].Name
	if name.String() != "a\x00é€\U0001f600" {
		t.Errorf("read as %q", name)
	}
	if _, raw := name.Raw(); raw {
		t.Error("raw bytes are kept where encoding gives them again")
	}
}
