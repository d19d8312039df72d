package writer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/fingerprint"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
	"github.com/savepoint-tools/spt/transform/diff"
	"github.com/savepoint-tools/spt/writer"
)

// FuzzHostile builds .spt files behind their checksums: the input decides what
// the manifest says, and the sizes, hashes and frames around it are right. Then
// every reader of the model runs. What must hold is in hostile.run.
//
// It knows the format from docs/format.md and shares no code with package spt.
func FuzzHostile(f *testing.F) {
	for n := range 24 { // no byte, and bytes that take other ways
		f.Add(bytes.Repeat([]byte{byte(n * 11)}, n*20))
	}
	for n := range 16 {
		p := make([]byte, 300)
		for i := range p {
			p[i] = byte(i*(2*n+1) + n)
		}
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		hostile{t}.run(build(data))
	})
}

// TestHostileSeeds builds the same files from random input, so that the readers
// see thousands of manifests in every run of the tests, and counts what became of
// them: a generator that only makes files that are refused tests little.
func TestHostileSeeds(t *testing.T) {
	rounds := 1500
	if testing.Short() {
		rounds = 100
	}
	var count outcomes
	state := uint64(1)
	for range rounds {
		p := make([]byte, 400)
		state = state*6364136223846793005 + 1442695040888963407
		calm := byte(state >> 59) // how many bytes are 0, of 32
		for i := range p {
			state = state*6364136223846793005 + 1442695040888963407
			if byte(state>>59) >= calm {
				p[i] = byte(state >> 40)
			}
		}
		count.add(hostile{t}.run(build(p)))
		if t.Failed() {
			t.Fatalf("input %x", p)
		}
	}
	t.Logf("%d files: %d opened, %d sound, %d converted", rounds, count.opened, count.sound, count.converted)
	if count.opened < rounds/20 || count.sound < rounds/50 || count.converted < rounds/100 {
		t.Errorf("too few: %+v of %d", count, rounds)
	}
}

type outcomes struct{ opened, sound, converted int }

func (o *outcomes) add(n outcomes) {
	o.opened += n.opened
	o.sound += n.sound
	o.converted += n.converted
}

// hostile runs readers on a file and checks what must hold for every file.
type hostile struct{ t testing.TB }

// allowed fails unless an error is one that an input may cause.
func (h hostile) allowed(what string, err error) {
	h.t.Helper()
	if err == nil {
		return
	}
	if strings.Contains(err.Error(), "internal error") {
		h.t.Fatalf("%s: %v", what, err)
	}
	for _, kind := range []error{format.ErrCorrupt, format.ErrUnsupported, format.ErrLimit, format.ErrMissing, format.ErrOutside, format.ErrNotChecked, storage.ErrNotExist} {
		if errors.Is(err, kind) {
			return
		}
	}
	var parallelism *transform.ParallelismError
	var target *writer.TargetError
	if errors.As(err, &parallelism) || errors.As(err, &target) {
		return
	}
	h.t.Fatalf("%s: an error of no kind: %v", what, err)
}

func (h hostile) run(file []byte) (o outcomes) {
	ctx := h.t.Context()
	store := mem.New()
	h.put(store, "in.spt", file)
	options := reader.Options{Stores: route.New(store)}
	snap, err := reader.Open(ctx, "in.spt", &options)
	h.allowed("open", err)
	if _, lerr := reader.List(ctx, "", reader.ListOptions{Options: options}); lerr != nil {
		h.t.Fatalf("list: %v", lerr)
	}
	if err != nil {
		return o
	}
	defer snap.Close()
	o.opened++
	faults := h.verify(snap)
	if faults == 0 {
		o.sound++
	}
	h.model(ctx, snap)
	h.content(ctx, snap)
	h.transforms(ctx, snap)
	h.again(ctx, snap)
	for _, target := range []string{"out.spt", "out"} {
		_, err := writer.Write(ctx, snap.View(), target, &writer.Options{Stores: options.Stores, Jobs: 1})
		h.allowed("convert to "+target, err)
		if err != nil {
			continue
		}
		out, err := reader.Open(ctx, target, &options)
		if err != nil {
			h.t.Fatalf("%s does not open: %v", target, err)
		}
		if n := h.verify(out); n > 0 && faults == 0 {
			h.verifyLoud(out)
			h.t.Fatalf("sound, and converted to %s with %d faults", target, n)
		}
		if target == "out" {
			o.converted++
		}
		out.Close()
	}
	return o
}

func (h hostile) put(store storage.Storage, name string, p []byte) {
	w, err := store.Create(h.t.Context(), name, storage.CreateOptions{})
	if err == nil {
		_, err = w.Write(p)
	}
	if err == nil {
		_, err = w.Commit(h.t.Context())
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h hostile) verify(snap *reader.Snapshot) int {
	v, err := snap.Verify(h.t.Context(), reader.VerifyOptions{Read: true}, func(f finding.Finding) {
		if strings.Contains(f.Message, "internal error") {
			h.t.Fatalf("verify: %+v", f)
		}
	})
	h.allowed("verify", err)
	if err != nil {
		return 1
	}
	return v.Faults
}

func (h hostile) verifyLoud(snap *reader.Snapshot) {
	_, _ = snap.Verify(h.t.Context(), reader.VerifyOptions{Read: true}, func(f finding.Finding) { h.t.Logf("%+v", f) })
}

// model looks at everything that is known without content.
func (h hostile) model(ctx context.Context, snap *reader.Snapshot) {
	_, err := summary.Of(ctx, snap.Savepoint)
	h.allowed("summary", err)
	_ = summary.KindOf(snap.Savepoint)
	_, err = fingerprint.Of(ctx, snap.Savepoint, snap.Source())
	h.allowed("fingerprint", err)
	for _, op := range snap.Operators {
		_, unread, err := snap.Schema(ctx, op)
		h.allowed("schema", err)
		for _, u := range unread {
			h.allowed("schema", u)
		}
		for _, sub := range op.Subtasks {
			for _, handle := range []*format.OperatorHandle{sub.Managed, sub.Raw} {
				if handle == nil {
					continue
				}
				_, err := summary.StateSizes(ctx, handle)
				h.allowed("sizes", err)
				for i := range handle.States {
					if handle.States[i].Offsets == nil {
						h.t.Fatal("a state without offsets")
					}
				}
			}
			if k, ok := sub.ManagedKeyed.(*format.KeyGroups); ok && (k.Offsets == nil || k.Offsets.Len() != int64(k.Range.Count)) {
				h.t.Fatalf("%v key groups with other offsets", k.Range)
			}
		}
	}
}

// content reads the first bytes of every stream, and every element and entry.
func (h hostile) content(ctx context.Context, snap *reader.Snapshot) {
	buf := make([]byte, 4096)
	err := snap.EachStream(func(_ format.Place, s format.Stream) error {
		n, err := format.StreamSize(ctx, snap.Source(), s)
		h.allowed("size", err)
		if n > 0 && err == nil {
			k := min(n, int64(len(buf)))
			_, err = snap.Source().ReadAt(ctx, s, buf[:k], n-k)
			h.allowed("read", err)
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	errEnough := format.Errorf(format.ErrLimit, "enough")
	for _, op := range snap.Operators {
		for _, sub := range op.Subtasks {
			for _, handle := range []*format.OperatorHandle{sub.Managed, sub.Raw} {
				if handle == nil {
					continue
				}
				codec, err := snap.Codec(handle.Codec)
				if h.allowed("codec", err); err != nil {
					continue
				}
				_, err = codec.Describe(ctx, snap.Source(), handle)
				h.allowed("describe", err)
				for i, st := range handle.States {
					n := 0
					err := format.EachElement(ctx, snap.Source(), codec, handle, st.Name.String(), func(format.Element) error {
						if n++; n > 300 {
							return errEnough
						}
						return nil
					})
					h.allowed("elements", err)
					_, err = snap.Values(ctx, handle, i)
					h.allowed("values", err)
				}
			}
			if k, ok := sub.ManagedKeyed.(*format.KeyGroups); ok && k.Codec == format.CodecNative {
				cur, err := native.KeyedCodec{}.Entries(ctx, snap.Source(), k, format.KeyedSelection{})
				h.allowed("entries", err)
				for n := 0; err == nil && n < 300; n++ {
					_, err = cur.Next()
					if err != io.EOF {
						h.allowed("entry", err)
					}
				}
			}
		}
	}
}

// transforms runs what reads or changes a savepoint.
func (h hostile) transforms(ctx context.Context, snap *reader.Snapshot) {
	in := snap.View()
	_, err := check.Run(ctx, in, check.Options{Parallelism: 3, Schema: snap.Schema})
	h.allowed("check", err)
	_, err = diff.Savepoints(ctx, in, in, diff.Options{})
	h.allowed("diff", err)
	_, err = transform.DiagnoseUnions(ctx, in, transform.UnionOptions{})
	h.allowed("unions", err)
	_, err = transform.DiagnoseBroadcasts(ctx, in, transform.UnionOptions{})
	h.allowed("broadcasts", err)
	for _, to := range []int32{1, 3} {
		plan, err := transform.PlanRescale(ctx, in, transform.RescaleOptions{To: to})
		h.allowed("plan", err)
		if err != nil {
			continue
		}
		sp, err := plan.Apply(ctx)
		h.allowed("rescale", err)
		if err == nil {
			_, err = summary.Of(ctx, sp.Savepoint)
			h.allowed("summary of the rescaled", err)
		}
	}
}

// again encodes the model and opens that: it must say the same.
func (h hostile) again(ctx context.Context, snap *reader.Snapshot) {
	bare := func(s format.Stream) bool { _, _, ok := format.Reference(s); return ok }
	var b bytes.Buffer
	_, _, err := spt.Write(ctx, &b, snap.Savepoint, snap.Source(), bare, spt.Options{Jobs: 1})
	h.allowed("encode", err)
	if err != nil {
		return
	}
	p := b.Bytes()
	f, err := spt.Open(ctx, inMemory(p), int64(len(p)), format.Limits{})
	if err != nil {
		h.t.Fatalf("encoded again it does not open: %v", err)
	}
	if err := f.Verify(ctx, func(e format.Error) { h.t.Errorf("encoded again: %v", &e) }); err != nil {
		h.t.Fatal(err)
	}
	was, err := fingerprint.Of(ctx, snap.Savepoint, snap.Source())
	if err != nil {
		return // allowed before
	}
	is, err := fingerprint.Of(ctx, f.Savepoint(), f)
	if err != nil || is != was {
		h.t.Fatalf("encoded again it says something else: %v", err)
	}
}

type inMemory []byte

func (m inMemory) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m)) || len(p) > len(m)-int(off) {
		return 0, format.Errorf(format.ErrTruncated, "%d bytes at %d of %d", len(p), off, len(m))
	}
	return copy(p, m[off:]), nil
}

// The generator. A byte of 0, and the end of the input, mean the ordinary case.

// piece is content that readers understand: a stream, and the handle around it.
type piece struct {
	data   []byte
	codec  string
	states []pieceState
	groups []int64 // of keyed state
	first  int64
}

type pieceState struct {
	name    string
	mode    int64
	offsets []int64
}

// pieces are streams of real snapshots and the examples of docs/format.md.
var pieces = sync.OnceValue(func() []piece {
	all := []piece{
		{data: []byte("\x01\xa2hi\x92\x01\xc0\x82\x01\xa1x\xa1k\x02"), codec: "native", states: []pieceState{{"list", 0, []int64{0, 1, 4}}, {"none", 1, nil}, {"rules", 2, []int64{7}}}},
		{data: []byte("\x93\x92\xa5count\xa5value\x92\xa4seen\xa4list\x92\xa2by\xa3map" +
			"\x94\x00\x01\xa1w\x0b\x94\x00\x01\xc0\x0a\x94\x01\x01\xc0\x91\x0c\x94\x00\x2a\xc0\x0d\x94\x00\xc3\xc0\x0e\x94\x02\xc3\xc0\x82\x01\xc0\xa1x\xc0"),
			codec: "native", groups: []int64{33, 50, 55, 55}, first: 36},
	}
	found, err := filepath.Glob("../testdata/savepoints/*/_metadata")
	if err != nil {
		panic(err)
	}
	for _, path := range found {
		p, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		sp, err := metadata.Decode(format.NewBytes(p), metadata.Options{})
		if err != nil {
			continue
		}
		for _, op := range sp.Operators {
			for _, s := range op.Subtasks[:min(len(op.Subtasks), 1)] {
				if h := s.Managed; h != nil && len(all) < 12 {
					if in, ok := h.Data.(*format.Inline); ok && in.Size() < 4000 {
						q := piece{data: bytesOf(in), codec: "flink"}
						for _, st := range h.States {
							q.states = append(q.states, pieceState{st.Name.String(), int64(st.Mode), offsetsOf(st.Offsets)})
						}
						all = append(all, q)
					}
				}
				if h, ok := s.ManagedKeyed.(*format.KeyGroups); ok && len(all) < 16 {
					if in, ok := h.Data.(*format.Inline); ok && in.Size() < 8000 {
						all = append(all, piece{data: bytesOf(in), codec: "flink", groups: offsetsOf(h.Offsets), first: int64(h.Range.First)})
					}
				}
			}
		}
	}
	if len(all) < 4 {
		panic("no streams of real snapshots")
	}
	return all
})

func bytesOf(in *format.Inline) []byte {
	p := make([]byte, in.Size())
	if _, err := in.Data.ReadAt(p, 0); err != nil {
		panic(err)
	}
	return p
}

func offsetsOf(o format.Offsets) []int64 {
	all := make([]int64, o.Len())
	if _, err := o.Read(context.Background(), all, 0); err != nil {
		panic(err)
	}
	return all
}

// kv is an entry of a map; maps are written in the order of their keys.
type kv struct {
	k string
	v any
}

type object []kv

// gen makes values of what an input says.
type gen struct {
	data    []byte
	streams int
	chunks  [][]byte
	depth   int
}

func (g *gen) byte() byte {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return b
}

// one in n is true, but for input 0.
func (g *gen) odd(n int) bool { return int(g.byte()) > 255-256/n }

func (g *gen) below(n int) int { return int(g.byte()) % n }

var numbers = []int64{0, 1, -1, 2, 127, 128, -128, 255, 256, 32767, 32768, 65535, 1 << 20, math.MaxInt32, math.MinInt32, math.MaxInt32 + 1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 7}

func (g *gen) number(ordinary int64) any {
	if g.odd(24) {
		return numbers[g.below(len(numbers))]
	}
	return ordinary
}

func (g *gen) text(ordinary string) any {
	switch {
	case !g.odd(24):
		return ordinary
	case g.odd(3):
		return []any{ordinary + "\x00", []byte(ordinary + "\xc0\x80")}
	case g.odd(3):
		return []any{ordinary, []byte("other")}
	}
	return []string{"", "x", "../up", "/etc/passwd", "s3://b/k", "\xff\xfe", "file:/a/b", "a/b", strings.Repeat("n", 300), strings.Repeat("n", 70000), "_metadata"}[g.below(11)]
}

// fields writes a map with some fields left out, and some that are not known.
func (g *gen) fields(all object) any {
	var out object
	for _, f := range all {
		if f.v != nil && !g.odd(40) {
			out = append(out, f)
		}
	}
	switch {
	case g.odd(200):
		return []any{1}
	case g.odd(100):
		out = append(out, kv{"zz-unknown", 1})
	}
	return out
}

func (g *gen) list(ordinary int, f func(i int) any) any {
	n := ordinary
	if g.odd(16) {
		n = g.below(6)
	}
	if n == 0 {
		return nil
	}
	all := make([]any, n)
	for i := range all {
		all[i] = f(i)
	}
	return all
}

func uvarints(all ...uint64) (p []byte) {
	for _, u := range all {
		p = binary.AppendUvarint(p, u)
	}
	return p
}

func packed(all []int64) []byte {
	p, last := []byte{}, int64(0)
	for _, v := range all {
		d := v - last
		p = binary.AppendUvarint(p, uint64(d)<<1^uint64(d>>63))
		last = v
	}
	return p
}

// offsets are those of a piece, or others.
func (g *gen) offsets(ordinary []int64) any {
	all := slices.Clone(ordinary)
	if g.odd(20) {
		for range 1 + g.below(3) {
			if i := g.below(len(all) + 1); i == len(all) {
				all = append(all, numbers[g.below(len(numbers))])
			} else {
				all[i] = numbers[g.below(len(numbers))]
			}
		}
	}
	if g.odd(30) && len(all) > 0 {
		all = all[:len(all)-1]
	}
	switch {
	case g.odd(60):
		return nil
	case g.odd(60):
		return []any{g.number(int64(len(all) + 1)), g.chunkList()}
	case g.odd(20) && len(all) > 0 && len(all) <= 1024:
		block := binary.LittleEndian.AppendUint64(nil, uint64(all[0]))
		block = append(block, 8)
		for i := 1; i < len(all); i++ {
			d := all[i] - all[i-1]
			block = binary.LittleEndian.AppendUint64(block, uint64(d)<<1^uint64(d>>63))
		}
		g.chunks = append(g.chunks, block)
		return []any{g.number(int64(len(all))), uvarints(uint64(len(g.chunks)-1), 1)}
	}
	return packed(all)
}

// chunkList is any list of chunks.
func (g *gen) chunkList() []byte {
	var p []byte
	for range g.below(4) {
		p = append(p, uvarints(uint64(g.below(len(g.chunks)+1)), uint64(1+g.below(2)))...)
	}
	return p
}

// stream is a number in the table, whose first entries are the pieces, or a
// key-group stream.
func (g *gen) stream(ordinary int) any {
	if g.odd(40) && g.depth < 6 {
		g.depth++
		defer func() { g.depth-- }()
		return g.fields(object{{"count", g.number(2)}, {"data", g.stream(ordinary)}, {"first", g.number(1)}, {"offsets", g.offsets([]int64{0, 1})}})
	}
	if g.odd(24) {
		return int64(g.below(g.streams + 2))
	}
	return g.number(int64(ordinary))
}

func (g *gen) codec(ordinary string) any {
	if g.odd(24) {
		return []string{"flink", "raw", "native", "x", ""}[g.below(5)]
	}
	return ordinary
}

func (g *gen) wire(ordinary string) any {
	if g.odd(24) {
		return g.bytes()
	}
	if ordinary == "" {
		return nil
	}
	return []byte(ordinary)
}

func (g *gen) bytes() []byte {
	n := min(g.below(20), len(g.data))
	p := slices.Clone(g.data[:n])
	g.data = g.data[n:]
	return append(p, 0)[:n:n]
}

func (g *gen) handle(raw bool) any {
	all := pieces()
	i := (2 + g.below(len(all))) % len(all)
	for all[i].groups != nil || raw && all[i].codec == "native" {
		i = (i + 1) % len(all)
	}
	codec := all[i].codec
	if raw {
		codec = "raw"
	}
	states := g.list(len(all[i].states), func(k int) any {
		st := pieceState{"extra", 0, []int64{0}}
		if k < len(all[i].states) {
			st = all[i].states[k]
		}
		return g.fields(object{{"mode", g.number(st.mode)}, {"name", g.text(st.name)}, {"offsets", g.offsets(st.offsets)}})
	})
	var merging any
	if g.odd(40) {
		merging = g.fields(object{{"placeholder", g.odd(2)}, {"shared", g.text("file:/shared")}, {"task-owned", g.text("file:/owned")}})
	}
	return g.fields(object{{"codec", g.codec(codec)}, {"data", g.stream(i)}, {"merging", merging}, {"states", states}, {"wire", g.wire("")}})
}

func (g *gen) keyed(raw, change bool) any {
	if g.depth > 8 {
		return nil
	}
	g.depth++
	defer func() { g.depth-- }()
	kind := 0
	if g.odd(3) {
		kind = g.below(5)
	}
	if change {
		kind = 3 + g.below(2)
	}
	orNil := func(f func() any) any {
		if g.odd(10) {
			return nil
		}
		return f()
	}
	named := func(int) any {
		return g.fields(object{{"data", g.stream(g.below(g.streams))}, {"name", g.text("000012.sst")}})
	}
	id, count, first := g.text("id"), g.number(4), g.number(36)
	switch kind {
	case 1:
		return []any{"incremental", g.fields(object{{"backend-id", g.text("be")}, {"checkpoint-id", g.number(1)}, {"checkpointed-size", g.number(-1)}, {"count", count}, {"first", first},
			{"handle-id", id}, {"meta", g.stream(0)}, {"private", g.list(1, named)}, {"shared", g.list(2, named)}, {"wire", g.wire("\x0b")}})}
	case 2:
		return []any{"changelog", g.fields(object{{"changes", g.list(1, func(int) any { return orNil(func() any { return g.keyed(raw, !g.odd(10)) }) })},
			{"checkpoint-id", g.number(1)}, {"checkpointed-size", g.number(5)}, {"count", count}, {"first", first}, {"handle-id", id}, {"materialization-id", g.number(1)},
			{"materialized", g.list(1, func(int) any { return orNil(func() any { return g.keyed(raw, false) }) })}, {"wire", g.wire("\x0e")}})}
	case 3:
		return []any{"changelog-memory", g.fields(object{{"changes", g.list(1, func(int) any {
			return g.fields(object{{"data", g.bytes()}, {"key-group", g.number(36)}})
		})}, {"count", count}, {"first", first}, {"from", g.number(1)}, {"handle-id", id}, {"to", g.number(2)}, {"wire", g.wire("\x09")}})}
	case 4:
		return []any{"changelog-stream", g.fields(object{{"checkpointed-size", g.number(5)}, {"count", count}, {"first", first}, {"handle-id", id}, {"state-size", g.number(5)},
			{"storage-id", g.text("filesystem")}, {"streams", g.list(1, func(int) any {
				return g.fields(object{{"data", g.stream(g.below(g.streams))}, {"offset", g.number(0)}})
			})}, {"wire", g.wire("\x0d")}})}
	}
	all := pieces()
	i := 1 + g.below(len(all)-1)
	for all[i].groups == nil || raw && all[i].codec == "native" {
		i = i%(len(all)-1) + 1
		if raw && all[i].codec != "native" && all[i].groups == nil {
			return []any{"changelog-memory", object{}}
		}
	}
	codec := all[i].codec
	if raw {
		codec = "raw"
	}
	var savepoint any
	if g.odd(20) {
		savepoint = true
	}
	return []any{"key-groups", g.fields(object{{"codec", g.codec(codec)}, {"count", g.number(int64(len(all[i].groups)))}, {"data", g.stream(i)}, {"first", g.number(all[i].first)},
		{"handle-id", nil}, {"offsets", g.offsets(all[i].groups)}, {"savepoint", savepoint}, {"wire", g.wire("")}})}
}

func (g *gen) channel(int) any {
	return g.fields(object{{"channels", g.list(1, func(int) any {
		return g.fields(object{{"first", g.number(0)}, {"offsets", g.offsets([]int64{0, 1})}, {"second", g.number(0)}, {"size", g.number(14)}})
	})}, {"data", g.stream(0)}, {"merged", g.odd(4)}, {"size", g.number(14)}, {"subtask", g.number(-1)}, {"wire", g.wire("")}})
}

func (g *gen) subtask(i int) any {
	s := object{{"finished", nil}, {"index", g.number(int64(i))}, {"input", nil}, {"legacy", nil}, {"managed", nil}, {"managed-keyed", nil}, {"output", nil}, {"raw", nil}, {"raw-keyed", nil}, {"wire", g.wire("")}}
	if g.odd(24) {
		s[0].v = true
	}
	if g.odd(10) {
		s[2].v = g.list(1, g.channel)
	}
	if g.odd(24) {
		s[3].v = g.list(1, func(int) any { return g.stream(0) })
	}
	if !g.odd(4) {
		s[4].v = g.handle(false)
	}
	if g.odd(2) {
		s[5].v = g.keyed(false, false)
	}
	if g.odd(16) {
		s[6].v = g.list(1, g.channel)
	}
	if g.odd(16) {
		s[7].v = g.handle(true)
	}
	if g.odd(16) {
		s[8].v = g.keyed(true, false)
	}
	return g.fields(s)
}

func (g *gen) operator(i int) any {
	id := make([]byte, 16)
	id[0] = byte(i)
	if g.odd(20) {
		id[0] = 0
	}
	o := object{{"coordinator", nil}, {"finished", nil}, {"id", id}, {"max-parallelism", g.number(128)}, {"name", g.text("op")}, {"parallelism", g.number(2)},
		{"subtasks", g.list(2, g.subtask)}, {"uid", g.text("uid")}, {"wire", g.wire("")}}
	if g.odd(12) {
		o[0].v = g.stream(0)
	}
	if g.odd(30) {
		o[1].v = true
	}
	return g.fields(o)
}

// origin is what a stream says of where its bytes came from.
func (g *gen) origin(i int) any {
	name := "f" + string(rune('a'+i))
	kind := g.below(12)
	switch kind {
	case 1:
		return []any{"file", g.fields(object{{"length", g.number(14)}, {"path", g.text(name)}, {"relative", true}})}
	case 2:
		return []any{"file", g.fields(object{{"length", g.number(14)}, {"path", g.text("file:/x/" + name)}})}
	case 3:
		return []any{"segment", g.fields(object{{"length", g.number(4)}, {"logical-id", g.text("l")}, {"path", g.text("file:/x/" + name)}, {"scope", g.number(1)}, {"start", g.number(2)}})}
	case 4:
		if g.odd(3) {
			return []any{"empty", object{}}
		}
	}
	return []any{"inline", g.fields(object{{"name", g.text("file:/sp/" + name)}})}
}

// wellMade is an origin without anything wrong.
func (g *gen) wellMade(i int, b byte, size int) any {
	name := "f" + string(rune('a'+i))
	switch b % 4 {
	case 0:
		return []any{"file", object{{"length", size}, {"path", name}, {"relative", true}}}
	case 1:
		return []any{"file", object{{"length", -1}, {"path", "file:/x/" + name}}}
	case 2:
		return []any{"segment", object{{"length", size}, {"logical-id", "l"}, {"path", "file:/x/one"}, {"scope", 1}, {"start", 2}}}
	}
	return nil
}

// build makes a file of an input.
func build(data []byte) []byte {
	g := &gen{data: data}
	all := pieces()
	for _, p := range all {
		g.chunks = append(g.chunks, p.data)
	}
	extra := g.bytes()
	if len(extra) > 0 {
		g.chunks = append(g.chunks, extra)
	}
	var table []any
	rest := g.data
	if !g.odd(8) {
		g.data = nil // most tables have nothing wrong, or few would be read to the end
	}
	for i := range len(g.chunks) + 2 {
		s := object{{"as", nil}, {"chunks", nil}, {"size", nil}}
		if !g.odd(6) {
			s[0].v = g.origin(i)
		}
		if i < len(g.chunks) {
			s[1].v, s[2].v = uvarints(uint64(i), 1), g.number(int64(len(g.chunks[i])))
			if i > 0 && len(rest) > 30 && rest[i] > 128 { // well made, and not inline
				s[0].v = g.wellMade(i, rest[i], len(g.chunks[i]))
			}
		} else {
			s[0].v = []any{"file", g.fields(object{{"length", g.number(3)}, {"path", g.text("gone")}, {"relative", g.odd(2)}})}
		}
		if g.odd(30) && i < len(g.chunks) {
			list := g.chunkList()
			var size int64
			for p := list; len(p) > 0; {
				first, k := binary.Uvarint(p)
				n, m := binary.Uvarint(p[k:])
				for c := first; c < first+n && c < uint64(len(g.chunks)); c++ {
					size += int64(len(g.chunks[c]))
				}
				p = p[k+m:]
			}
			s[1].v, s[2].v = list, size
		}
		table = append(table, g.fields(s))
	}
	if g.data == nil {
		g.data = rest[min(len(rest), len(table)):]
	}
	g.streams = len(table)
	tree := object{{"format", nil}, {"id", g.number(7)}, {"location", nil}, {"masters", nil}, {"operators", g.list(1, g.operator)}, {"type", nil}, {"wire", g.wire("")}}
	if g.odd(8) {
		tree[0].v = []string{"canonical", "native", "x", ""}[g.below(4)]
		tree[5].v = []string{"savepoint", "checkpoint", "snapshot", "suspend-savepoint"}[g.below(4)]
	}
	if g.odd(20) {
		tree[3].v = g.list(1, func(int) any {
			return g.fields(object{{"data", g.bytes()}, {"name", g.text("m")}, {"version", g.number(1)}})
		})
	}
	if g.odd(2) { // it says that it came from Flink
		tree[6].v = []byte{'F', byte(2 + g.below(5)), 0}
	}
	root := g.fields(tree)

	file := []byte("\x89SPT\r\n\x1a\n\x01\x00\x00\x00\x00\x00\x00\x00")
	if g.odd(40) {
		file[10] = 1 // a newer minor version
	}
	var hashes, kinds, raw, stored []byte
	for _, c := range g.chunks {
		sum := sha256.Sum256(c)
		if g.odd(200) {
			sum[0]++
		}
		p, kind := c, byte(0)
		if g.odd(12) {
			if z := compress(c); len(z) < len(c) {
				p, kind = z, 1
			}
		}
		hashes, kinds = append(hashes, sum[:16]...), append(kinds, kind)
		raw, stored = append(raw, uvarints(uint64(len(c)))...), append(stored, uvarints(uint64(len(p)))...)
		file = append(file, p...)
	}
	manifest := appendValue(nil, object{{"chunks", object{{"hashes", hashes}, {"kinds", kinds}, {"raw", raw}, {"stored", stored}}}, {"streams", table}, {"tree", root}, {"writer", "fuzz"}})
	z := compress(manifest)
	sum := sha256.Sum256(z)
	at := len(file)
	file = append(file, z...)
	file = binary.LittleEndian.AppendUint64(file, uint64(at))
	file = binary.LittleEndian.AppendUint32(file, uint32(len(z)))
	file = binary.LittleEndian.AppendUint32(file, uint32(len(manifest)))
	file = append(file, sum[:16]...)
	return append(file, "\x1aSPT\r\nE\x89"...)
}

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	if err != nil {
		panic(err)
	}
	return e
})

func compress(p []byte) []byte { return encoder().EncodeAll(p, nil) }

// appendValue is msgpack, as far as manifests go.
func appendValue(p []byte, v any) []byte {
	sized := func(n int, codes ...byte) {
		switch {
		case n < 256 && codes[0] != 0:
			p = append(p, codes[0], byte(n))
		case n < 1<<16:
			p = binary.BigEndian.AppendUint16(append(p, codes[1]), uint16(n))
		default:
			p = binary.BigEndian.AppendUint32(append(p, codes[2]), uint32(n))
		}
	}
	switch v := v.(type) {
	case nil:
		return append(p, 0xc0)
	case bool:
		if v {
			return append(p, 0xc3)
		}
		return append(p, 0xc2)
	case int:
		return appendValue(p, int64(v))
	case int64:
		if v >= 0 && v < 128 || v < 0 && v >= -32 {
			return append(p, byte(v))
		}
		return binary.BigEndian.AppendUint64(append(p, 0xd3), uint64(v))
	case string:
		sized(len(v), 0xd9, 0xda, 0xdb)
		return append(p, v...)
	case []byte:
		sized(len(v), 0xc4, 0xc5, 0xc6)
		return append(p, v...)
	case []any:
		sized(len(v), 0, 0xdc, 0xdd)
		for _, x := range v {
			p = appendValue(p, x)
		}
		return p
	case object:
		sized(len(v), 0, 0xde, 0xdf)
		for _, f := range v {
			p = appendValue(appendValue(p, f.k), f.v)
		}
		return p
	}
	panic(v)
}
