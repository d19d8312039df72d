package summary_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
)

// union makes a handle of one union state from its elements, with bytes before
// the first one. stored makes the stream.
func union(before string, stored func(data []byte) format.Stream, elements ...string) *format.OperatorHandle {
	data := []byte(before)
	var offsets []int64
	for _, e := range elements {
		offsets = append(offsets, int64(len(data)))
		data = append(data, e...)
	}
	return handle(stored(data), named("u", format.ModeUnion, offsets...))
}

func inlined(data []byte) format.Stream { return &format.Inline{Data: format.NewBytes(data)} }

func inFile(data []byte) format.Stream { return file("f", true, int64(len(data))) }

func packed(data []byte) format.Stream { return &format.Chunks{Length: int64(len(data))} }

// shuffled is elements in an order of its own for each seed.
func shuffled(seed int, elements ...string) []string {
	all := append([]string(nil), elements...)
	rand.New(rand.NewPCG(uint64(seed), 3)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// strs makes n elements of the same length that differ, from a number on.
func strs(from, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("element-%06d", from+i))
	}
	return all
}

// lengthy makes n elements of different lengths.
func lengthy(n int) (all []string) {
	for i := range n {
		all = append(all, strings.Repeat("x", 5+i))
	}
	return all
}

// TestGuess: what lengths, and elements that are inline, show of restores.
func TestGuess(t *testing.T) {
	type list = []string
	lists := func(p int, of func(i int) list) (all []list) {
		for i := range p {
			all = append(all, of(i))
		}
		return all
	}
	share := func(n int) func(int) list { return func(i int) list { return strs(i*n, n) } } // of its own
	same := func(all list) func(int) list { return func(i int) list { return shuffled(i, all...) } }
	tests := []struct {
		name        string
		stored      func([]byte) format.Stream
		lists       []list
		guess       bool
		alike, sort bool // sort: the lengths are in one order
	}{
		{"multiplied at 12, several orders, one length", inlined, lists(12, same(strs(0, 40))), true, true, true},
		{"multiplied at 12, several orders, several lengths", inlined, lists(12, same(append(strs(0, 9), lengthy(7)...))), true, true, false},
		{"multiplied at 40, in files", inFile, lists(40, same(strs(0, 40))), true, true, true},
		{"multiplied at 40, in files, several lengths", inFile, lists(40, same(lengthy(4))), true, true, false},
		{"multiplied at 100, in an .spt file", packed, lists(100, same(strs(0, 10))), true, true, true},
		{"elements that repeat", inlined, lists(12, same(append(strs(0, 9), strs(0, 3)...))), true, true, true},
		{"a share of partitions each, inline", inlined, lists(4, share(3)), false, true, true},
		{"a share of many each, inline", inlined, lists(4, share(3000)), false, true, true},
		{"a share of partitions each, in files", inFile, lists(4, share(3)), false, true, true},
		{"a share of partitions each, in an .spt file", packed, lists(4, share(9)), false, true, true},
		{"a counter each", inlined, lists(12, share(1)), false, true, true},
		{"an equal counter each", inlined, lists(12, same(strs(0, 1))), false, true, true},
		{"an equal counter each, in files", inFile, lists(12, same(strs(0, 1))), false, true, true},
		{"all but one the same, inline", inlined, lists(12, func(i int) list {
			if i == 7 {
				return strs(1, 40)
			}
			return same(strs(0, 40))(i)
		}), false, true, true},
		{"an exclusive or would be equal", inlined, []list{{"aa", "aa", "bb"}, {"cc", "cc", "bb"}}, false, true, true},
		{"lengths that add up alike", inFile, []list{{"a", "bbb"}, {"aa", "bb"}}, false, false, false},
		{"a subtask lacks an element", inlined, lists(12, func(i int) list {
			if i == 3 {
				return strs(0, 39)
			}
			return strs(0, 40)
		}), false, false, false},
	}
	for _, tt := range tests {
		var handles []*format.OperatorHandle
		for i, l := range tt.lists {
			handles = append(handles, union(strings.Repeat("-", i%3), tt.stored, l...))
		}
		st := of(t, savepoint(operator(1, handles...))).Operators[0].States[0]
		if st.MayBeMultiplied != tt.guess || st.Alike != tt.alike || st.SameOrder != tt.sort {
			t.Errorf("%s: guess %t, alike %t, same order %t", tt.name, st.MayBeMultiplied, st.Alike, st.SameOrder)
		}
		if inline := tt.stored([]byte{1}); st.Compared != (st.Alike && format.Kind(inline) == format.KindInline) {
			t.Errorf("%s: compared %t", tt.name, st.Compared)
		}
	}
}

// TestGuessSubtasks: subtasks that hold nothing, because they are fully finished
// or because the snapshot does not name them.
func TestGuessSubtasks(t *testing.T) {
	make := func(change func(op *format.Operator)) *summary.State {
		var handles []*format.OperatorHandle
		for i := range 12 {
			handles = append(handles, union("", inlined, shuffled(i, strs(0, 5)...)...))
		}
		op := operator(1, handles...)
		change(op)
		return of(t, savepoint(op)).Operators[0].States[0]
	}
	if st := make(func(*format.Operator) {}); !st.MayBeMultiplied {
		t.Error("all hold the same")
	}
	if st := make(func(op *format.Operator) { op.Subtasks[4].Finished, op.Subtasks[4].Managed = true, nil }); !st.MayBeMultiplied {
		t.Error("one is finished, all others hold the same")
	}
	if st := make(func(op *format.Operator) { op.Subtasks[4].Managed = nil }); st.MayBeMultiplied || st.Alike {
		t.Error("one holds nothing")
	}
	if st := make(func(op *format.Operator) { op.Subtasks = op.Subtasks[:11] }); st.MayBeMultiplied || st.Alike {
		t.Error("one is not named")
	}
}

// TestGuessLarge: of much inline state two subtasks are compared, whatever the
// size, and of the others as many as a bound allows.
func TestGuessLarge(t *testing.T) {
	large := func(b byte) string { return string(bytes.Repeat([]byte{b}, 5<<20)) }
	for _, tt := range []struct {
		lists [][]string
		want  bool
	}{
		{[][]string{{large(1), large(2)}, {large(2), large(1)}}, true},
		{[][]string{{large(1), large(2)}, {large(2), large(3)}}, false},
	} {
		st := of(t, savepoint(operator(1, union("", inlined, tt.lists[0]...), union("", inlined, tt.lists[1]...)))).Operators[0].States[0]
		if st.MayBeMultiplied != tt.want {
			t.Errorf("%t, want %t", st.MayBeMultiplied, tt.want)
		}
	}
}

// TestGuessOneStream: subtasks that share one stream of an .spt file hold the same.
func TestGuessOneStream(t *testing.T) {
	of1 := func(digest string, offsets ...int64) *format.OperatorHandle {
		return handle(&format.Chunks{Length: 40, Digest: digest}, named("u", format.ModeUnion, offsets...))
	}
	for _, tt := range []struct {
		name string
		a, b *format.OperatorHandle
		want bool
		same bool // the elements are known to be the same
	}{
		{"one stream", of1("x", 0, 20), of1("x", 0, 20), true, true},
		{"one stream, cut otherwise", of1("x", 0, 30), of1("x", 0, 10), true, false}, // by the lengths alone
		{"two streams", of1("x", 0, 20), of1("y", 0, 20), false, false},
		{"digests that are not known", of1("", 0, 20), of1("", 0, 20), false, false},
		{"one stream, one element", of1("x", 0), of1("x", 0), false, true},
	} {
		if st := of(t, savepoint(operator(1, tt.a, tt.b))).Operators[0].States[0]; st.MayBeMultiplied != tt.want || st.Compared != tt.same {
			t.Errorf("%s: %t, compared %t", tt.name, st.MayBeMultiplied, st.Compared)
		}
	}
}

// TestGuessDamaged: offsets outside the bytes are no sign, and no error: verify
// and cat name them.
func TestGuessDamaged(t *testing.T) {
	u := func(offsets ...int64) *format.OperatorHandle {
		return handle(inline(40), named("u", format.ModeUnion, offsets...))
	}
	for _, offsets := range [][]int64{{10, 900}, {-5, 3}, {30, 10}, {900, 901}, {1 << 62, 1 << 61}} {
		op := operator(1, u(offsets...), u(offsets...))
		if st := of(t, savepoint(op)).Operators[0].States[0]; st.MayBeMultiplied {
			t.Errorf("%d: guessed", offsets)
		}
	}
}

// TestGuessReported: a savepoint of Flink 1.20.0 whose union state a restore
// multiplied at parallelism 12.
func TestGuessReported(t *testing.T) {
	for path, want := range map[string]bool{"reported/union-p12/savepoint": true, "reported/union-part-pruned": false, "union/restored-at-2-4-6": true} {
		found := 0
		for _, op := range of(t, decode(t, "../../testdata/"+path+"/_metadata")).Operators {
			for _, st := range op.States {
				if st.Kind != summary.Union {
					continue
				}
				found++
				if st.MayBeMultiplied != want {
					t.Errorf("%s: %t", path, st.MayBeMultiplied)
				}
			}
		}
		if found != 1 {
			t.Errorf("%s: %d union states", path, found)
		}
	}
}
