package work

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
)

// golden are units and their encodings, annotated by hand from doc.go and the
// msgpack specification.
var golden = []struct {
	name string
	u    Unit
	hex  string
}{
	{"elements", Unit{Job: ReadElements, State: 2, First: 300, Count: 7,
		Handle: Handle{Operator: 1, Subtask: 3, ID: format.OperatorID{0: 0xab, 15: 0xcd}, Index: 130, Slot: format.SlotManaged},
		Parts:  []Part{{"relative:0+0:f", 70000, 5}}},
		"98" + // array of 8
			"01" + // version 1
			"ad 72656164 2d656c 656d656e7473" + // "read-elements"
			"96" + // handle
			"01 03" + // operator 1, subtask 3
			"c410 ab0000000000000000000000000000cd" + // id
			"cc82" + // index 130
			"01" + // managed
			"00" + // nested
			"02" + // state
			"cd012c" + // first 300
			"07" + // count
			"a0" + // target ""
			"91 93" + // one part
			"ae 72656c61746976653a302b303a66" + // "relative:0+0:f"
			"ce00011170 05"}, // offset 70000, size 5
	{"file", Unit{Job: CheckFile, State: All, Count: All, Target: "\xff/x", Parts: []Part{{"relative:0+0:\xff/x", 0, All}}},
		"98 01 aa 636865636b2d66696c65" + // "check-file"
			"c0" + // no handle
			"ff 00 ff" + // all states, from 0, all
			"a3 ff2f78" + // a name that is not UTF-8
			"91 93 b0 72656c61746976653a302b303aff2f78 00 ff"},
	{"nothing", Unit{}, "98 01 a0 c0 00 00 00 a0 90"},
	{"keyed", Unit{Job: CheckHeader, State: All, First: math.MaxInt64, Count: math.MinInt64, Handle: Handle{Slot: format.SlotRawKeyed, Nested: 9}},
		"98 01 ac 636865636b2d686561646572" +
			"96 00 00 c410 00000000000000000000000000000000 00 04 09" +
			"ff cf7fffffffffffffff d38000000000000000 a0 90"},
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	p, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEncoding: the bytes of units never change, and are read back.
func TestEncoding(t *testing.T) {
	keys := map[[32]byte]bool{}
	for _, g := range golden {
		want := unhex(t, g.hex)
		if got := g.u.Append(nil); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, expected %x", g.name, got, want)
		}
		u, err := Decode(want)
		if err != nil || fmt.Sprint(u) != fmt.Sprint(g.u) {
			t.Errorf("%s: decoded as %+v, %v", g.name, u, err)
		}
		keys[g.u.Key()] = true
		for n := range want {
			if _, err := Decode(want[:n]); !errors.Is(err, format.ErrCorrupt) {
				t.Errorf("%s: %d of %d bytes: %v", g.name, n, len(want), err)
			}
		}
		if _, err := Decode(append(slices.Clone(want), 0)); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%s: a byte after it: %v", g.name, err)
		}
	}
	if len(keys) != len(golden) {
		t.Errorf("%d keys of %d units", len(keys), len(golden))
	}
}

// TestDecodeRefuses: other versions and shapes are errors.
func TestDecodeRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		hex  string
		want error
	}{
		"version 2":        {"98 02 a0 c0 00 00 00 a0 90", format.ErrUnsupported},
		"seven fields":     {"97 01 a0 c0 00 00 00 a0", format.ErrCorrupt},
		"nine fields":      {"99 01 a0 c0 00 00 00 a0 90 00", format.ErrCorrupt},
		"a map":            {"81 01 01", format.ErrCorrupt},
		"slot 5":           {"98 01 a0 96 00 00 c410 00000000000000000000000000000000 00 05 00 00 00 00 a0 90", format.ErrCorrupt},
		"id of 15 bytes":   {"98 01 a0 96 00 00 c40f 000000000000000000000000000000 00 01 00 00 00 00 a0 90", format.ErrCorrupt},
		"index past int32": {"98 01 a0 96 00 00 c410 00000000000000000000000000000000 ce80000000 01 00 00 00 00 a0 90", format.ErrCorrupt},
		"4 Gi parts":       {"98 01 a0 c0 00 00 00 a0 ddffffffff", format.ErrCorrupt},
		"part of two":      {"98 01 a0 c0 00 00 00 a0 91 92 a0 00", format.ErrCorrupt},
	} {
		if u, err := Decode(unhex(t, tt.hex)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
}

func numbered(n int, size int64) iter.Seq[Unit] {
	return func(yield func(Unit) bool) {
		for i := range n {
			if !yield(Unit{First: int64(i), Parts: []Part{{Size: size}}}) {
				return
			}
		}
	}
}

// TestRunOrder: results are merged in the order of the units, although later units
// end first, and no more than 2*Jobs units are ahead of the merge.
func TestRunOrder(t *testing.T) {
	for _, jobs := range []int{1, 2, 3, 8} {
		const n = 50
		var done [n + 1]chan struct{}
		for i := range done {
			done[i] = make(chan struct{})
		}
		var started, merged, most atomic.Int64
		next := int64(0)
		err := Run(t.Context(), Options{Jobs: jobs}, numbered(n, 1), func(_ context.Context, u Unit) (int64, error) {
			ahead := started.Add(1) - merged.Load()
			for m := most.Load(); ahead > m && !most.CompareAndSwap(m, ahead); m = most.Load() {
			}
			// An even unit ends after the one that follows it, if that can run.
			if i := u.First; jobs > 1 && i%2 == 0 && i+1 < n {
				<-done[i+1]
			}
			close(done[u.First])
			return u.First * 10, nil
		}, func(u Unit, r int64, err error) error {
			merged.Add(1)
			if u.First != next || r != next*10 || err != nil {
				t.Fatalf("jobs %d: unit %d with %d, expected unit %d: %v", jobs, u.First, r, next, err)
			}
			next++
			return nil
		})
		if err != nil || next != n || most.Load() > int64(2*jobs)+1 {
			t.Errorf("jobs %d: %d merged, %d ahead: %v", jobs, next, most.Load(), err)
		}
	}
}

// TestRunAhead: while the first unit runs, as many as Ahead says are started.
func TestRunAhead(t *testing.T) {
	const ahead = 10
	var started, most atomic.Int64
	last := make(chan struct{})
	merged := int64(0)
	err := Run(t.Context(), Options{Jobs: 2, Ahead: ahead}, numbered(30, 0), func(ctx context.Context, u Unit) (int64, error) {
		started.Add(1)
		switch u.First {
		case 0:
			select {
			case <-last:
			case <-time.After(time.Minute):
				return 0, errors.New("unit 9 is not started")
			}
			most.Store(started.Load())
		case ahead - 1:
			close(last)
		}
		return 0, nil
	}, func(_ Unit, _ int64, err error) error {
		merged++
		return err
	})
	if err != nil || merged != 30 || most.Load() != ahead {
		t.Errorf("%d merged, %d started: %v", merged, most.Load(), err)
	}
}

// TestRunErrors: merge decides what an error ends.
func TestRunErrors(t *testing.T) {
	bad := errors.New("bad")
	run := func(_ context.Context, u Unit) (int64, error) {
		if u.First%3 == 2 {
			return 0, fmt.Errorf("%d: %w", u.First, bad)
		}
		return 1, nil
	}
	sum, failed := int64(0), 0
	all := func(_ Unit, r int64, err error) error {
		sum += r
		if err != nil {
			failed++
		}
		return nil
	}
	if err := Run(t.Context(), Options{Jobs: 3}, numbered(9, 0), run, all); err != nil || sum != 6 || failed != 3 {
		t.Errorf("all: sum %d, %d failed, %v", sum, failed, err)
	}
	sum = 0
	first := func(_ Unit, r int64, err error) error { sum += r; return err }
	if err := Run(t.Context(), Options{Jobs: 3}, numbered(9, 0), run, first); !errors.Is(err, bad) || err.Error() != "2: bad" || sum != 2 {
		t.Errorf("first: sum %d, %v", sum, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := 0
	err := Run(ctx, Options{Jobs: 2}, numbered(1000, 0), func(ctx context.Context, u Unit) (int64, error) {
		if u.First == 5 {
			cancel()
		}
		return 0, ctx.Err()
	}, func(_ Unit, _ int64, err error) error {
		ended++
		return err
	})
	if !errors.Is(err, context.Canceled) || ended > 12 {
		t.Errorf("cancelled: %v after %d units", err, ended)
	}
	if err := Run(ctx, Options{}, numbered(0, 0), run, first); !errors.Is(err, context.Canceled) {
		t.Errorf("no units, cancelled: %v", err)
	}
}

// TestRunBytes: large units do not run at the same time.
func TestRunBytes(t *testing.T) {
	var running, most atomic.Int64
	n := 0
	err := Run(t.Context(), Options{Jobs: 8, Bytes: 10}, numbered(40, 4), func(context.Context, Unit) (int, error) {
		now := running.Add(4)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		return 4, nil
	}, func(_ Unit, r int, err error) error {
		running.Add(int64(-r))
		n++
		return err
	})
	if err != nil || n != 40 || most.Load() > 8 || most.Load() == 0 {
		t.Errorf("%d units, %d bytes at once, %v", n, most.Load(), err)
	}
	n = 0
	err = Run(t.Context(), Options{Jobs: 8, Bytes: 10}, numbered(3, 40), func(context.Context, Unit) (int, error) { return 0, nil }, func(Unit, int, error) error { n++; return nil })
	if err != nil || n != 3 {
		t.Errorf("units over the bound: %d, %v", n, err)
	}
}

// TestElements: the ranges follow each other and cover all elements.
func TestElements(t *testing.T) {
	data := &format.Inline{Name: format.NewText("x"), Data: format.NewBytes(make([]byte, 100))}
	for _, tt := range []struct {
		offsets    format.OffsetSlice
		size, most int64
		want       string // first+count@offset+size
	}{
		{nil, 10, 10, "0+-1@0+100"},
		{format.OffsetSlice{5, 10, 15, 20, 90}, 10, 100, "0+2@5+10 2+1@15+5 3+-1@20+80"},
		{format.OffsetSlice{0, 0, 0, 0, 0}, 10, 2, "0+2@0+0 2+-1@0+100"},
		{format.OffsetSlice{50, 20, 90, 10}, 1000, 1000, "0+-1@50+50"},
		{format.OffsetSlice{50, -20, 1 << 40, 10}, 1, 1000, "0+1@50+-1 1+1@-20+1099511627796 2+-1@1099511627776+-1"},
	} {
		h := &format.OperatorHandle{Data: data, States: []format.NamedState{{Offsets: tt.offsets}}}
		var got []string
		for u, err := range Elements(t.Context(), Unit{Job: CheckElements, State: 0}, h, tt.size, tt.most) {
			if err != nil || len(u.Parts) != 1 || u.Parts[0].Stream != "inline:0+100:x" {
				t.Fatalf("%v: %+v, %v", tt.offsets, u, err)
			}
			got = append(got, fmt.Sprintf("%d+%d@%d+%d", u.First, u.Count, u.Parts[0].Off, u.Parts[0].Size))
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%v: %s, expected %s", tt.offsets, s, tt.want)
		}
	}
}

// TestOtherSnapshot: a unit of one snapshot does not run on another.
func TestOtherSnapshot(t *testing.T) {
	in := func(name string) format.Stream {
		return &format.Inline{Name: format.NewText(name), Data: format.NewBytes([]byte("12"))}
	}
	sp := func(id byte, index int32, name string) *format.Savepoint {
		h := &format.OperatorHandle{Data: in(name), States: make([]format.NamedState, 1)}
		keyed := &format.Changelog{Materialized: []format.KeyedHandle{&format.KeyGroups{Data: in(name)}}}
		return &format.Savepoint{Operators: []*format.Operator{{ID: format.OperatorID{id}, Subtasks: []*format.Subtask{{Index: index, Managed: h, ManagedKeyed: keyed}}}}}
	}
	u := Unit{Handle: Handle{ID: format.OperatorID{1}, Index: 4, Slot: format.SlotManaged}, Parts: Whole(in("a"))}
	k := u
	k.Handle.Slot, k.Handle.Nested = format.SlotManagedKeyed, 1
	if _, err := u.OperatorHandle(sp(1, 4, "a")); err != nil {
		t.Error(err)
	}
	if h, err := k.KeyedHandle(sp(1, 4, "a")); err != nil || fmt.Sprintf("%T", h) != "*format.KeyGroups" {
		t.Errorf("%T, %v", h, err)
	}
	for _, other := range []*format.Savepoint{sp(2, 4, "a"), sp(1, 5, "a"), sp(1, 4, "b"), {}} {
		if _, err := u.OperatorHandle(other); !errors.Is(err, format.ErrChanged) {
			t.Errorf("%v", err)
		}
		if _, err := k.KeyedHandle(other); !errors.Is(err, format.ErrChanged) {
			t.Errorf("%v", err)
		}
	}
	for _, wrong := range []Unit{{Handle: Handle{Operator: -1, Slot: format.SlotManaged}}, {State: 1, Handle: u.Handle, Parts: u.Parts}, {State: -2, Handle: u.Handle, Parts: u.Parts}} {
		if _, err := wrong.OperatorHandle(sp(1, 4, "a")); !errors.Is(err, format.ErrChanged) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	k.Handle.Nested = 2
	if _, err := k.KeyedHandle(sp(1, 4, "a")); !errors.Is(err, format.ErrChanged) {
		t.Error(err)
	}
}
