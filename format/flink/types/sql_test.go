package types_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// canonical calls f with the key and value of each entry of a stream of keyed state in
// the canonical format that is not compressed (spec flink-keyed-state 3).
func canonical(p []byte, offsets []int64, f func(state int, key, val []byte)) error {
	for _, off := range offsets {
		if off == 0 {
			continue
		}
		q := p[off:]
		next := func(n int) []byte {
			if n < 0 || n > len(q) {
				q = nil
				return nil
			}
			v := q[:n]
			q = q[n:]
			return v
		}
		blob := func() []byte {
			if n := next(4); n != nil {
				return next(int(binary.BigEndian.Uint32(n)))
			}
			return nil
		}
		for id := next(2); ; id = next(2) {
			if len(id) < 2 {
				return errors.New("not canonical")
			}
			state := int(binary.BigEndian.Uint16(id))
			if state == 0xffff {
				break
			}
			for last := false; !last; {
				key := slices.Clone(blob())
				val := blob()
				if len(key) == 0 || val == nil {
					return errors.New("not canonical")
				}
				last = key[0]&0x80 != 0
				key[0] &= 0x7f
				f(state, key, val)
			}
		}
	}
	return nil
}

// TestKeyedValues reads the keys and values of keyed state in the canonical format, and
// writes them back: what Flink SQL and jobs of many releases wrote.
func TestKeyedValues(t *testing.T) {
	type count struct{ values, bad int }
	counts := map[string]*count{}
	notDecoded := map[string]int{}
	examples := map[string]string{}
	streams, total, rows := 0, 0, 0
	for _, dir := range testenv.Snapshots(t) {
		snap := sptest.Open(t, dir)
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				h, ok := sub.ManagedKeyed.(*format.KeyGroups)
				if !ok || !h.Savepoint {
					continue
				}
				head, err := keyed.ReadHeader(t.Context(), snap.Source(), h.Data)
				if err != nil || head.Compressed || head.Version < 5 {
					continue
				}
				size, err := format.StreamSize(t.Context(), snap.Source(), h.Data)
				if err != nil || size > 16<<20 {
					continue
				}
				p := make([]byte, size)
				if _, err := snap.Source().ReadAt(t.Context(), h.Data, p, 0); err != nil {
					t.Fatal(err)
				}
				offsets := make([]int64, h.Offsets.Len())
				if _, err := h.Offsets.Read(t.Context(), offsets, 0); err != nil {
					t.Fatal(err)
				}
				streams++
				prefix := 1
				if op.MaxParallelism > 128 {
					prefix = 2
				}
				keys, keyErr := types.NewCodec(head.Key, types.Options{})
				values := make([]value.Codec, len(head.States))
				whys := make([]error, len(head.States))
				for i := range head.States {
					s := head.States[i].Serializer("VALUE_SERIALIZER")
					if st := head.States[i].Keyed; (st == "list" || st == "map") && s != nil && len(s.Nested) > 0 && !strings.Contains(s.Class, "TtlSerializer") {
						s = s.Nested[len(s.Nested)-1]
					}
					values[i], whys[i] = types.NewCodec(s, types.Options{})
				}
				err = canonical(p, offsets, func(state int, key, val []byte) {
					if state >= len(head.States) {
						t.Fatalf("%s: state %d", dir, state)
					}
					st := &head.States[state]
					check := func(c value.Codec, why error, p []byte, what string) int {
						if why != nil {
							notDecoded[why.Error()]++
							return 0
						}
						v, n, err := c.Read(p)
						if counts[what] == nil {
							counts[what] = &count{}
						}
						counts[what].values++
						total++
						if err != nil {
							counts[what].bad++
							examples[what] = fmt.Sprintf("%s: % x: %v", dir, p[:min(len(p), 300)], err)
							return 0
						}
						if strings.Contains(what, "RowData") {
							rows++
						}
						if err := testenv.Agree(c, p); err != nil {
							t.Errorf("%s, %s: %v", dir, what, err)
						}
						if err := testenv.AgreeJSON(c, v); err != nil {
							t.Errorf("%s, %s: %v", dir, what, err)
						}
						return n
					}
					if st.Keyed == types.Timers {
						if n := check(values[state], whys[state], key[prefix:], "timers"); n > 0 && n != len(key)-prefix {
							t.Errorf("%s: a timer of %d of %d bytes", dir, n, len(key)-prefix)
						}
						return
					}
					check(keys, keyErr, key[prefix:], "key "+head.Key.Text(nil))
					if st.Keyed == "map" {
						if val[0] == 1 {
							return
						}
						val = val[1:]
					}
					what := st.Keyed + " " + st.Serializer("VALUE_SERIALIZER").Text(nil)
					for len(val) > 0 {
						n := check(values[state], whys[state], val, what)
						if n == 0 {
							break
						}
						if val = val[n:]; st.Keyed != "list" && len(val) > 0 {
							t.Errorf("%s: %s: %d bytes left", dir, what, len(val))
							break
						}
						if len(val) > 0 {
							val = val[1:] // the delimiter
						}
					}
				})
				if err != nil {
					t.Errorf("%s: %v", dir, err)
				}
			}
		}
	}
	t.Logf("%d streams, %d values of %d types", streams, total, len(counts))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		c := counts[what]
		// Flink's upsert materializer wrote rows with writable metadata columns that
		// its serializer does not have.
		if strings.Contains(examples[what], "-writable-metadata-v1: ") && c.bad == 1 {
			continue
		}
		if c.bad > 0 {
			t.Errorf("%s: %d of %d not read: %s", what, c.bad, c.values, examples[what])
		}
	}
	for _, why := range slices.Sorted(maps.Keys(notDecoded)) {
		t.Logf("not decoded: %d × %s", notDecoded[why], why)
	}
}
