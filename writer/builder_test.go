package writer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/writer"
)

var ctx = context.Background()

// building calls a builder and fails the test where an error is not expected.
type building struct {
	t testing.TB
	b *writer.Builder
}

func startBuild(t testing.TB, store storage.Storage, target string, o writer.BuilderOptions) building {
	t.Helper()
	o.Stores = route.New(store)
	b, err := writer.NewBuilder(ctx, target, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return building{t, b}
}

func (b building) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b building) operator(uid string, p, max int32) *writer.OperatorBuilder {
	b.t.Helper()
	op := b.b.Operator(uid, p, max)
	b.ok(b.b.Err())
	return op
}

func (b building) subtask(op *writer.OperatorBuilder, i int32) *writer.SubtaskBuilder {
	b.t.Helper()
	s := op.Subtask(i)
	b.ok(b.b.Err())
	return s
}

func (b building) seal() *writer.Report {
	b.t.Helper()
	r, err := b.b.Seal(ctx)
	b.ok(err)
	b.ok(b.b.Close())
	return r
}

// list and the others give a started state of a subtask.
func (b building) list(s *writer.SubtaskBuilder, name string) *writer.ListBuilder {
	b.t.Helper()
	l := s.List(name)
	b.ok(b.b.Err())
	return l
}

func (b building) union(s *writer.SubtaskBuilder, name string) *writer.ListBuilder {
	b.t.Helper()
	l := s.Union(name)
	b.ok(b.b.Err())
	return l
}

func (b building) broadcast(s *writer.SubtaskBuilder, name string) *writer.BroadcastBuilder {
	b.t.Helper()
	m := s.Broadcast(name)
	b.ok(b.b.Err())
	return m
}

func (b building) keyed(s *writer.SubtaskBuilder, states ...native.KeyedState) *writer.KeyedBuilder {
	b.t.Helper()
	k := s.Keyed(states...)
	b.ok(b.b.Err())
	return k
}

func openSnapshot(t testing.TB, store storage.Storage, name string) *reader.Snapshot {
	t.Helper()
	snap, err := reader.Open(ctx, name, &reader.Options{Stores: route.New(store)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snap.Close() })
	return snap
}

func elements(t testing.TB, snap *reader.Snapshot, h *format.OperatorHandle, state string, from int64) [][]byte {
	t.Helper()
	cur, err := native.Codec{}.Elements(ctx, snap.Source(), h, state, from)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for e, err := range format.All(cur) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Clone().Value)
	}
	return all
}

func contents(t testing.TB, store storage.Storage, name string) []byte {
	t.Helper()
	body, _, err := store.ReadRange(ctx, name, 0, -1, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		t.Fatal(err)
	}
	return p
}

var counters = []native.KeyedState{{Name: "count", Kind: native.KindValue}, {Name: "seen", Kind: native.KindList}, {Name: "by", Kind: native.KindMap}}

// small builds all kinds of state; shuffle gives each subtask its entries in
// another order.
func small(t testing.TB, store storage.Storage, name string, shuffle uint64, o writer.BuilderOptions) *writer.Report {
	o.ID = 42
	b := startBuild(t, store, name, o)
	op := b.operator("sink", 2, 128)
	b.ok(op.SetName("Sink: numbers"))
	for i := range int32(2) {
		s := b.subtask(op, 1-i) // any order
		b.ok(b.list(s, "buffered").Add(1, "two", map[string]int{"x": int(i)}))
		b.list(s, "empty")
		b.ok(b.union(s, "seen").Add(int64(i), nil))
		m := b.broadcast(s, "rules")
		b.ok(m.Put("b", 1))
		b.ok(m.Put(7, []string{"x"}))
		b.ok(m.Put("a", nil))
		b.broadcast(s, "no rules")
	}
	op = b.operator("counter", 3, 128)
	type put struct {
		state               string
		key, namespace, val any
	}
	puts := make([][]put, 3)
	for i := range 200 {
		owner, err := op.SubtaskOf(i)
		b.ok(err)
		puts[owner] = append(puts[owner], put{"count", i, nil, i * i}, put{"seen", i, "ns", []int{i}}, put{"by", i, nil, map[int]bool{i: true, 1 - i: false}})
	}
	for i, all := range puts {
		rand.New(rand.NewPCG(1, shuffle)).Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
		s := b.subtask(op, int32(i))
		b.ok(b.list(s, "beside").Add(i))
		k := b.keyed(s, counters...)
		for _, p := range all {
			b.ok(k.Put(p.state, p.key, p.namespace, p.val))
		}
	}
	b.operator("none", 1, 1)
	return b.seal()
}

func TestBuilder(t *testing.T) {
	store := mem.New()
	report := small(t, store, "state.spt", 1, writer.BuilderOptions{})
	size := int64(len(contents(t, store, "state.spt")))
	if report.Written != size || report.SPT.FileBytes != size {
		t.Errorf("%d bytes, the report says %d and %d", size, report.Written, report.SPT.FileBytes)
	}
	snap := openSnapshot(t, store, "state.spt")
	if snap.ID != 42 || len(snap.Operators) != 3 {
		t.Fatalf("id %d, %d operators", snap.ID, len(snap.Operators))
	}
	op := snap.Operators[0]
	if op.UID.String() != "sink" || op.Name.String() != "Sink: numbers" || op.ID != format.OperatorIDOf("sink") || op.Parallelism != 2 || op.MaxParallelism != 128 {
		t.Errorf("%+v", op)
	}
	for i, sub := range op.Subtasks {
		if sub.Index != int32(1-i) || sub.Managed.Codec != format.CodecNative || sub.ManagedKeyed != nil {
			t.Errorf("subtask %d: %+v", i, sub)
		}
		for _, c := range []struct {
			state string
			mode  format.Mode
			want  []string
		}{
			{"buffered", format.ModeList, []string{"\x01", "\xa3two", fmt.Sprintf("\x81\xa1x%c", i)}},
			{"empty", format.ModeList, nil},
			{"seen", format.ModeUnion, []string{string(rune(i)), "\xc0"}},
			{"rules", format.ModeBroadcast, []string{"\x83\x07\x91\xa1x\xa1a\xc0\xa1b\x01"}},
			{"no rules", format.ModeBroadcast, []string{"\x80"}},
		} {
			at := slices.IndexFunc(sub.Managed.States, func(s format.NamedState) bool { return s.Name.String() == c.state })
			if at < 0 || sub.Managed.States[at].Mode != c.mode {
				t.Errorf("state %q is not there or of another mode", c.state)
			}
			var got []string
			for _, e := range elements(t, snap, sub.Managed, c.state, 0) {
				got = append(got, string(e))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("subtask %d, %q: %q, want %q", sub.Index, c.state, got, c.want)
			}
		}
	}

	found := map[string]int{}
	for _, sub := range snap.Operators[1].Subtasks {
		h := sub.ManagedKeyed.(*format.KeyGroups)
		if h.Range != format.KeyGroupsOf(sub.Index, 3, 128) || h.Codec != format.CodecNative {
			t.Errorf("%+v", h)
		}
		perGroup := map[int32]int{}
		for e, err := range mustEntries(t, snap, h, h.Range.First) {
			if err != nil {
				t.Fatal(err)
			}
			perGroup[e.KeyGroup]++
			var key int
			if err := msgpack.Unmarshal(e.Key, &key); err != nil {
				t.Fatal(err)
			}
			state := counters[e.State].Name
			found[state]++
			if g := native.KeyGroup(e.Key, 128); g != e.KeyGroup {
				t.Errorf("key %d of group %d stands in %d", key, g, e.KeyGroup)
			}
			want := map[string]any{"count": key * key, "seen": []int{key}, "by": map[int]bool{key: true, 1 - key: false}}[state]
			if p, _ := native.Marshal(want); !bytes.Equal(p, e.Value) || (state == "seen") != bytes.Equal(e.Namespace, []byte("\xa2ns")) {
				t.Errorf("%s[%d] in % x is % x, want % x", state, key, e.Namespace, e.Value, p)
			}
		}
		for g := h.Range.First; g <= h.Range.Last(); g++ { // each key group alone
			n := 0
			for e, err := range mustEntries(t, snap, h, g) {
				if err != nil {
					t.Fatal(err)
				}
				if e.KeyGroup != g {
					break
				}
				n++
			}
			if n != perGroup[g] {
				t.Errorf("key group %d: %d entries alone, %d among all", g, n, perGroup[g])
			}
		}
	}
	if !maps.Equal(found, map[string]int{"count": 200, "seen": 200, "by": 200}) {
		t.Errorf("%v", found)
	}
	if len(snap.Operators[2].Subtasks) != 0 {
		t.Error("an operator without subtasks has some")
	}
}

func mustEntries(t testing.TB, snap *reader.Snapshot, h *format.KeyGroups, from int32) iter.Seq2[format.KeyedEntry, error] {
	t.Helper()
	groups := format.KeyGroupRange{First: from, Count: h.Range.Last() - from + 1}
	return func(yield func(format.KeyedEntry, error) bool) {
		stop := errors.New("stop")
		err := format.EachKeyedEntry(ctx, snap.Source(), native.KeyedCodec{}, h, format.KeyedSelection{Groups: groups}, func(e format.KeyedEntry) error {
			if !yield(e, nil) {
				return stop
			}
			return nil
		})
		if err != nil && err != stop {
			yield(format.KeyedEntry{}, err)
		}
	}
}

// The order of entries, the number of jobs, and reading back do not change the
// bytes.
func TestBuilderIsDeterministic(t *testing.T) {
	store := mem.New()
	small(t, store, "a.spt", 1, writer.BuilderOptions{Jobs: 1})
	if r := small(t, store, "b.spt", 2, writer.BuilderOptions{Jobs: 3}); r.ReadBack {
		t.Error("it was not read back")
	}
	if !bytes.Equal(contents(t, store, "a.spt"), contents(t, store, "b.spt")) {
		t.Error("two builds differ")
	}
	dir := t.TempDir()
	for i, c := range []spt.Compression{spt.Zstd, spt.S2, spt.None} {
		name := fmt.Sprintf("%s/%d.spt", dir, i)
		if r := small(t, local.New(), name, 3, writer.BuilderOptions{Compression: c, ReadBack: true}); !r.ReadBack {
			t.Error("it was read back")
		}
		if same := bytes.Equal(contents(t, store, "a.spt"), contents(t, local.New(), name)); same != (c == spt.Zstd) {
			t.Errorf("%s: equal %v", c, same)
		}
	}
}

// Entries by key group give the same bytes as in any order.
func TestBuilderByKeyGroup(t *testing.T) {
	store := mem.New()
	keys := map[int32][]int{}
	for i := range 500 {
		p, _ := native.Marshal(i)
		g := native.KeyGroup(p, 64)
		keys[g] = append(keys[g], i)
	}
	delete(keys, 5)
	build := func(name string, byGroup bool) {
		b := startBuild(t, store, name, writer.BuilderOptions{SortBytes: 64 << 10})
		k := b.keyed(b.subtask(b.operator("op", 1, 64), 0), counters...)
		for _, g := range slices.Sorted(maps.Keys(keys)) {
			if byGroup {
				b.ok(k.StartKeyGroup(g))
			}
			for _, key := range keys[g] {
				b.ok(k.Put("count", key, nil, "a value"))
			}
		}
		b.seal()
	}
	build("any", false)
	build("groups", true)
	if !bytes.Equal(contents(t, store, "any"), contents(t, store, "groups")) {
		t.Error("the files differ")
	}
}

// Every element of states of several chunks, opened at random: one read of the
// chunk with its offset and one of that with its bytes. Where its end stands in
// other offsets, which is so for the last of 32768 and the last of a state,
// those are read too.
func TestBuilderRandomAccess(t *testing.T) {
	store := storetest.NewCounting(mem.New())
	r := rand.New(rand.NewPCG(3, 4))
	want := map[string][][]byte{}
	b := startBuild(t, store, "state.spt", writer.BuilderOptions{})
	s := b.subtask(b.operator("op", 1, 1), 0)
	for name, sizes := range map[string][2]int{"small": {100_000, 40}, "large": {200, 30_000}, "larger": {5, 3 << 20}} {
		l := b.list(s, name)
		for range sizes[0] {
			p := make([]byte, sizes[1]/2+r.IntN(sizes[1]/2))
			for i := 0; i < len(p); i += 8 {
				p[i] = byte(r.Uint32())
			}
			b.ok(l.Add(p))
			e, _ := native.Marshal(p)
			want[name] = append(want[name], e)
		}
	}
	b.seal()
	snap := openSnapshot(t, store, "state.spt")
	if n := snap.Container.SPT.Chunks; n < 20 {
		t.Errorf("only %d chunks", n)
	}
	for name, all := range want {
		picks := []int{0, 32767, 32768, len(all) - 1}
		for range 100 {
			picks = append(picks, r.IntN(len(all)))
		}
		for _, i := range picks {
			if i >= len(all) {
				continue
			}
			snap := openSnapshot(t, store, "state.spt") // nothing cached
			before := store.Count("read")
			cur, err := native.Codec{}.Elements(ctx, snap.Source(), snap.Operators[0].Subtasks[0].Managed, name, int64(i))
			if err != nil {
				t.Fatal(err)
			}
			e, err := cur.Next()
			if err != nil || !bytes.Equal(e.Value, all[i]) || e.Index != int64(i) {
				t.Fatalf("%s/%d: %v", name, i, err)
			}
			most := 2
			if i%32768 == 32767 || i == len(all)-1 {
				most = 3
			}
			if n := store.Count("read") - before; n > most {
				t.Errorf("%s/%d: %d reads, want at most %d", name, i, n, most)
			}
		}
		if got := elements(t, snap, snap.Operators[0].Subtasks[0].Managed, name, 0); !slices.EqualFunc(got, all, bytes.Equal) {
			t.Errorf("%s: read in sequence it differs", name)
		}
	}
}

// A state that is the same in every subtask is stored once.
func TestBuilderDeduplicates(t *testing.T) {
	size := func(subtasks int32) int64 {
		store := mem.New()
		b := startBuild(t, store, "s", writer.BuilderOptions{})
		op := b.operator("op", subtasks, 128)
		for i := range subtasks {
			s := b.subtask(op, i)
			r := rand.New(rand.NewPCG(5, 6))
			l := b.union(s, "offsets")
			for range 20_000 {
				b.ok(l.Add(r.Uint64()))
			}
			m := b.broadcast(s, "rules")
			for range 10_000 {
				b.ok(m.Put(r.Uint64(), true))
			}
		}
		return b.seal().Written
	}
	if one, many := size(1), size(50); many > one+one/20 {
		t.Errorf("one subtask takes %d bytes, fifty %d", one, many)
	}
}

// Each misuse and each bad value is an error that says where, stays, and leaves
// nothing.
func TestBuilderRefuses(t *testing.T) {
	type place struct {
		building
		op *writer.OperatorBuilder
		s  *writer.SubtaskBuilder
	}
	key := func(group int32, max int32) int { // a key of a group
		for i := 0; ; i++ {
			if p, _ := native.Marshal(i); native.KeyGroup(p, max) == group {
				return i
			}
		}
	}
	for name, c := range map[string]struct {
		do   func(place) error
		want string
	}{
		"uid twice":            {func(p place) error { p.b.Operator("op", 1, 1); return p.b.Err() }, `duplicate operator "op"`},
		"no uid":               {func(p place) error { p.b.Operator("", 1, 1); return p.b.Err() }, `needs a uid`},
		"parallelism 0":        {func(p place) error { p.b.Operator("x", 0, 1); return p.b.Err() }, `parallelism 0 of at most 1`},
		"parallelism over max": {func(p place) error { p.b.Operator("x", 3, 2); return p.b.Err() }, `parallelism 3 of at most 2`},
		"max over the limit":   {func(p place) error { p.b.Operator("x", 3, 32769); return p.b.Err() }, `≤ 32768`},
		"subtask twice":        {func(p place) error { p.op.Subtask(1); return p.b.Err() }, `operator "op"/subtask 1: duplicate subtask`},
		"subtask too high":     {func(p place) error { p.op.Subtask(4); return p.b.Err() }, `operator "op"/subtask 4: the operator has subtasks 0 to 3`},
		"subtask negative":     {func(p place) error { p.op.Subtask(-1); return p.b.Err() }, `subtasks 0 to 3`},
		"state twice":          {func(p place) error { p.list(p.s, "a"); p.list(p.s, "b"); p.s.Union("a"); return p.b.Err() }, `subtask 1: duplicate state "a"`},
		"an ended operator":    {func(p place) error { p.operator("y", 1, 1); return p.op.SetName("n") }, `operator "op" was ended`},
		"an ended operator 2":  {func(p place) error { p.operator("y", 1, 1); p.op.Subtask(0); return p.b.Err() }, `operator "op" was ended`},
		"an ended subtask":     {func(p place) error { p.subtask(p.op, 0); p.s.List("l"); return p.b.Err() }, `operator "op"/subtask 1 was ended`},
		"an ended subtask 2":   {func(p place) error { p.subtask(p.op, 0); p.s.Keyed(); return p.b.Err() }, `operator "op"/subtask 1 was ended`},
		"an ended list":        {func(p place) error { l := p.list(p.s, "a"); p.list(p.s, "b"); return l.Add(1) }, `state "a" was ended`},
		"an ended broadcast":   {func(p place) error { m := p.broadcast(p.s, "a"); p.list(p.s, "b"); return m.Put(1, 1) }, `state "a" was ended`},
		"an ended keyed state": {func(p place) error {
			k := p.keyed(p.s, counters...)
			p.subtask(p.op, 0)
			return k.Put("count", 1, nil, 1)
		}, `keyed state of operator "op"/subtask 1 was ended`},
		"a list behind keyed": {func(p place) error { p.keyed(p.s, counters...); p.s.List("l"); return p.b.Err() }, `state "l" follows the keyed state`},
		"keyed twice":         {func(p place) error { p.keyed(p.s, counters...); p.s.Keyed(counters...); return p.b.Err() }, `it already has keyed state`},
		"keyed of another name": {func(p place) error {
			p.keyed(p.s, counters...)
			p.subtask(p.op, 0).Keyed(counters[:1]...)
			return p.b.Err()
		}, `as in another subtask`},
		"keyed name twice":    {func(p place) error { p.s.Keyed(counters[0], counters[0]); return p.b.Err() }, `state "count": two states`},
		"keyed kind":          {func(p place) error { p.s.Keyed(native.KeyedState{Name: "x", Kind: "set"}); return p.b.Err() }, `found "set"`},
		"no keyed state":      {func(p place) error { return p.keyed(p.s, counters...).Put("x", 1, nil, 1) }, `operator "op"/subtask 1/keyed state "x": expected one of`},
		"bad element":         {func(p place) error { return p.list(p.s, "a").Add(1, make(chan int)) }, `operator "op"/subtask 1/state "a": msgpack`},
		"bad raw element":     {func(p place) error { return p.union(p.s, "a").Add(msgpack.RawMessage{1, 1}) }, `state "a": 1 bytes after a msgpack value`},
		"bad broadcast value": {func(p place) error { return p.broadcast(p.s, "a").Put(1, make(chan int)) }, `state "a": the value: msgpack`},
		"bad broadcast key":   {func(p place) error { return p.broadcast(p.s, "a").Put(msgpack.RawMessage{0xc1}, 1) }, `state "a": the key: the byte 0xc1`},
		"broadcast key twice": {func(p place) error {
			m := p.broadcast(p.s, "a")
			p.ok(m.Put(uint8(200), 1))
			p.ok(m.Put(int64(200), 1))
			p.s.List("b")
			return p.b.Err()
		}, `operator "op"/subtask 1/state "a": duplicate key cc c8`},
		"broadcast over the limit": {func(p place) error {
			m := p.broadcast(p.s, "a")
			p.ok(m.Put(1, make([]byte, 400)))
			p.ok(m.Put(2, make([]byte, 400)))
			return m.Put(3, make([]byte, 400))
		}, `sorting 3 entries needs more than the 1000 bytes`},
		"no list":          {func(p place) error { return p.keyed(p.s, counters...).Put("seen", key(32, 128), nil, 1) }, `keyed state "seen": expected an array, found msgpack code`},
		"no map":           {func(p place) error { return p.keyed(p.s, counters...).Put("by", key(32, 128), nil, []int{1}) }, `keyed state "by": expected a map, found msgpack code`},
		"a nil list":       {func(p place) error { return p.keyed(p.s, counters...).Put("seen", key(32, 128), nil, []int(nil)) }, `expected an array, found msgpack code`},
		"bad namespace":    {func(p place) error { return p.keyed(p.s, counters...).Put("seen", 1, make(chan int), []int{}) }, `the namespace: msgpack`},
		"key of another":   {func(p place) error { return p.keyed(p.s, counters...).Put("count", key(96, 128), nil, 1) }, `belongs to key group 96 of subtask 3; this subtask has 32–63`},
		"key of another 2": {func(p place) error { return p.keyed(p.s, counters...).Put("count", key(31, 128), nil, 1) }, `belongs to key group 31 of subtask 0; this subtask has 32–63`},
		"key of the next":  {func(p place) error { return p.keyed(p.s, counters...).Put("count", key(64, 128), nil, 1) }, `belongs to key group 64 of subtask 2`},
		"key group before": {func(p place) error { return p.keyed(p.s, counters...).StartKeyGroup(31) }, `key group 31 belongs to subtask 0; this subtask has 32–63`},
		"key group behind": {func(p place) error { return p.keyed(p.s, counters...).StartKeyGroup(64) }, `key group 64 belongs to subtask 2`},
		"key group twice": {func(p place) error {
			k := p.keyed(p.s, counters...)
			p.ok(k.StartKeyGroup(40))
			return k.StartKeyGroup(40)
		}, `key group 40 started after 40`},
		"key group too late": {func(p place) error {
			k := p.keyed(p.s, counters...)
			p.ok(k.Put("count", key(32, 128), nil, 1))
			return k.StartKeyGroup(40)
		}, `started after entries of any key group were added`},
		"key of another group": {func(p place) error {
			k := p.keyed(p.s, counters...)
			p.ok(k.StartKeyGroup(40))
			return k.Put("count", key(41, 128), nil, 1)
		}, `belongs to key group 41, expected 40`},
		"keyed entry twice": {func(p place) error {
			k := p.keyed(p.s, counters...)
			p.ok(k.Put("count", key(40, 128), "w", 1))
			p.ok(k.Put("count", key(40, 128), "v", 1))
			p.ok(k.Put("count", key(40, 128), "w", 2))
			_, err := p.b.Seal(ctx)
			return err
		}, `duplicate key`},
		"keyed entry twice, by group": {func(p place) error {
			k := p.keyed(p.s, counters...)
			p.ok(k.StartKeyGroup(40))
			p.ok(k.Put("count", key(40, 128), nil, 1))
			p.ok(k.Put("count", key(40, 128), nil, 1))
			return k.StartKeyGroup(41)
		}, `duplicate key`},
		"a call after Close": {func(p place) error { p.ok(p.b.Close()); return p.op.SetName("x") }, `sealed or closed`},
	} {
		t.Run(name, func(t *testing.T) {
			store := mem.New()
			b := startBuild(t, store, "state.spt", writer.BuilderOptions{SortBytes: 1000})
			p := place{building: b, op: b.operator("op", 4, 128)}
			p.s = b.subtask(p.op, 1)
			err := c.do(p)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			for i, again := range []func() error{
				func() error { _, err := b.b.Seal(ctx); return err },
				func() error { b.b.Operator("z", 1, 1); return b.b.Err() },
				func() error { return p.op.SetName("z") },
				func() error { p.op.Subtask(0); return p.b.Err() },
				func() error { p.s.List("z"); return p.b.Err() },
			} {
				if got := again(); got == nil || got.Error() != err.Error() {
					t.Errorf("call %d afterwards: %v", i, got)
				}
			}
			b.ok(b.b.Close())
			if _, err := store.Stat(ctx, "state.spt"); !errors.Is(err, storage.ErrNotExist) {
				t.Errorf("something is left: %v", err)
			}
		})
	}
}

func TestBuilderTarget(t *testing.T) {
	dir := t.TempDir()
	left := func(want ...string) {
		t.Helper()
		var names []string
		for i, err := range local.New().List(ctx, dir+"/", "/") {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, strings.TrimPrefix(i.Name, dir+"/"))
		}
		if !slices.Equal(names, want) {
			t.Errorf("in the folder: %q, want %q", names, want)
		}
	}
	b := startBuild(t, local.New(), dir+"/a.spt", writer.BuilderOptions{})
	b.ok(b.list(b.subtask(b.operator("op", 1, 1), 0), "l").Add(1))
	b.ok(b.b.Close())
	left()

	// Of two that started, one wins.
	one := startBuild(t, local.New(), dir+"/a.spt", writer.BuilderOptions{})
	two := startBuild(t, local.New(), dir+"/a.spt", writer.BuilderOptions{ID: 2})
	one.seal()
	var target *writer.TargetError
	if _, err := two.b.Seal(ctx); !errors.As(err, &target) {
		t.Errorf("the second: %v", err)
	}
	two.ok(two.b.Close())
	left("a.spt")
	if snap := openSnapshot(t, local.New(), dir+"/a.spt"); snap.ID != 0 || len(snap.Operators) != 0 {
		t.Errorf("%+v", snap.Savepoint)
	}
	if _, err := one.b.Seal(ctx); err == nil {
		t.Error("it was sealed twice")
	}

	for _, name := range []string{dir + "/a.spt", dir, dir + "/"} {
		if _, err := writer.NewBuilder(ctx, name, &writer.BuilderOptions{Stores: route.New(local.New())}); !errors.As(err, &target) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, o := range []writer.BuilderOptions{{ID: -1}, {Compression: "lz"}, {Level: 99}} {
		o.Stores = route.New(local.New())
		if _, err := writer.NewBuilder(ctx, dir+"/b.spt", &o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	left("a.spt")

	cancelled, cancel := context.WithCancel(ctx)
	c := startBuild(t, local.New(), dir+"/c.spt", writer.BuilderOptions{})
	c.operator("op", 1, 1)
	cancel()
	if _, err := c.b.Seal(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	c.ok(c.b.Close())
	left("a.spt")
}

// A file that was cut or in which a bit is changed is never read as another.
func TestBuilderDamage(t *testing.T) {
	store := mem.New()
	b := startBuild(t, store, "ok", writer.BuilderOptions{})
	s := b.subtask(b.operator("op", 1, 4), 0)
	b.ok(b.list(s, "l").Add(1, "two"))
	k := b.keyed(s, counters...)
	b.ok(k.Put("count", "k", nil, 9))
	b.seal()
	whole := contents(t, store, "ok")
	read := func(p []byte) error {
		store := mem.New()
		w, err := store.Create(ctx, "x", storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(p)
		if _, err := w.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		snap, err := reader.Open(ctx, "x", &reader.Options{Stores: route.New(store)})
		if err != nil {
			return err
		}
		defer snap.Close()
		sub := snap.Operators[0].Subtasks[0]
		cur, err := native.Codec{}.Elements(ctx, snap.Source(), sub.Managed, "l", 0)
		if err != nil {
			return err
		}
		n := 0
		for _, err := range format.All(cur) {
			if err != nil {
				return err
			}
			n++
		}
		err = format.EachKeyedEntry(ctx, snap.Source(), native.KeyedCodec{}, sub.ManagedKeyed, format.KeyedSelection{}, func(format.KeyedEntry) error {
			n++
			return nil
		})
		if err != nil {
			return err
		}
		if n != 3 {
			return fmt.Errorf("%d elements and entries", n)
		}
		return nil
	}
	if err := read(whole); err != nil {
		t.Fatal(err)
	}
	bad := func(what string, err error) {
		t.Helper()
		for _, kind := range []error{format.ErrCorrupt, format.ErrUnsupported, format.ErrLimit} {
			if errors.Is(err, kind) {
				return
			}
		}
		t.Errorf("%s: %v", what, err)
	}
	for n := range whole {
		bad(fmt.Sprintf("cut to %d", n), read(whole[:n]))
	}
	for i := range whole {
		p := bytes.Clone(whole)
		p[i] ^= 1 << (i % 8)
		if i == 10 || i == 11 { // a later minor version is read
			continue
		}
		bad(fmt.Sprintf("byte %d changed", i), read(p))
	}
}

// A disk that fills up: the error stays, and nothing is there.
func TestBuilderFullDisk(t *testing.T) {
	full := &discard{Store: mem.New(), room: 1 << 20}
	b := startBuild(t, full, "s", writer.BuilderOptions{Compression: spt.None})
	l := b.list(b.subtask(b.operator("op", 1, 1), 0), "l")
	r := rand.New(rand.NewPCG(7, 8))
	var err error
	for i := 0; err == nil && i < 100_000; i++ {
		err = l.Add([]uint64{r.Uint64(), r.Uint64(), r.Uint64()})
	}
	if !errors.Is(err, storage.ErrNoSpace) || !strings.Contains(err.Error(), `operator "op"/subtask 0/state "l"`) {
		t.Errorf("%v", err)
	}
	if _, again := b.b.Seal(ctx); again != err {
		t.Errorf("Seal gives %v", again)
	}
}

// discard is a store that keeps nothing of what is written.
type discard struct {
	*mem.Store
	room int64
}

func (d *discard) Create(context.Context, string, storage.CreateOptions) (storage.Writer, error) {
	return &discarded{room: d.room}, nil
}

type discarded struct{ n, room int64 }

func (d *discarded) Write(p []byte) (int, error) {
	if d.n += int64(len(p)); d.room > 0 && d.n > d.room {
		return 0, &storage.Error{Op: "write", Err: storage.ErrNoSpace}
	}
	return len(p), nil
}
func (d *discarded) Commit(context.Context) (storage.Info, error) {
	return storage.Info{Size: d.n}, nil
}
func (d *discarded) Abort(context.Context) error { return nil }

// A gigabyte of elements and of keyed state passes through little memory.
func TestBuilderMemory(t *testing.T) {
	testenv.Long(t, "builds 1 GiB")
	const limit = 32 << 20
	store := &discard{Store: mem.New()}
	b := startBuild(t, store, "s", writer.BuilderOptions{Compression: spt.None, Jobs: 2})
	s := b.subtask(b.operator("op", 1, 128), 0)
	element := make([]byte, 1000)
	before := heap()
	check := func(i int) {
		if grown := heap() - before; grown > limit {
			t.Fatalf("%d bytes of heap at %d", grown, i)
		}
	}
	l := b.list(s, "l")
	for i := range 540_000 {
		for k := range 8 {
			element[k] = byte(i >> (8 * k))
		}
		b.ok(l.Add(element))
		if i%(128<<10) == 0 {
			check(i)
		}
	}
	k := b.keyed(s, counters...)
	value := make([]byte, 64<<10)
	for g := range int32(128) {
		b.ok(k.StartKeyGroup(g))
		for key, n := 0, 0; n < 64; key++ {
			if p, _ := native.Marshal(key); native.KeyGroup(p, 128) == g {
				value[0], value[1], value[2] = byte(g), byte(n), 1
				b.ok(k.Put("count", key, nil, value))
				n++
			}
		}
		if g%32 == 0 {
			check(int(g))
		}
	}
	if r := b.seal(); r.Written < 1<<30 {
		t.Errorf("%d bytes", r.Written)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
