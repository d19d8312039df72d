package count

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// A key of a state is new once in each key group, however many keys the group before had.
func TestKeys(t *testing.T) {
	k := newKeys()
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1000, 0, 3, 200_000, 7, 7, 100, 50_000, 1} {
		k.clear()
		type pair struct {
			state int
			key   uint64
		}
		seen := map[pair]bool{}
		for range n {
			p := pair{r.IntN(3), r.Uint64N(uint64(n))}
			fresh, ok := k.add(p.state, binary.AppendUvarint(nil, p.key))
			if fresh == seen[p] || !ok {
				t.Fatalf("%d keys: %v: %v, %v", n, p, fresh, ok)
			}
			seen[p] = true
		}
	}
	for range 20 { // a key group without keys
		k.clear()
	}
	if len(k.slots) != minSlots {
		t.Errorf("%d slots for no keys", len(k.slots))
	}
}

// No more than a million keys are remembered; those are still found.
func TestKeysMost(t *testing.T) {
	k := newKeys()
	for i := range uint64(maxKeys + 2) {
		if fresh, ok := k.add(0, binary.AppendUvarint(nil, i)); fresh != (i < maxKeys) || ok != (i < maxKeys) {
			t.Fatalf("key %d: %v, %v", i, fresh, ok)
		}
	}
	if fresh, ok := k.add(0, binary.AppendUvarint(nil, 5)); fresh || !ok {
		t.Errorf("key 5 again: %v, %v", fresh, ok)
	}
	if len(k.slots) > 2*maxKeys {
		t.Errorf("%d slots", len(k.slots))
	}
}
