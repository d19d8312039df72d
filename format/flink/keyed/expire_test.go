package keyed_test

import (
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/reader"
)

// Elements of lists and values of maps expire one by one; a time at which something ends
// counts as over, as Flink counts it.
func TestExpire(t *testing.T) {
	snap, err := reader.Open(t.Context(), "../../../testdata/savepoints/flink-2.0-keyed-rocksdb/savepoint", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close() //nolint:errcheck // nothing was written
	op, err := format.Selector{"keyed"}.Operator(snap.Savepoint)
	if err != nil {
		t.Fatal(err)
	}
	h := op.Subtasks[0].ManagedKeyed
	codec, err := snap.KeyedCodec(op, h)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := codec.Describe(t.Context(), snap.Source(), h)
	if err != nil {
		t.Fatal(err)
	}
	codecs, err := value.EntryCodecsOf(t.Context(), snap.Source(), codec, h)
	if err != nil {
		t.Fatal(err)
	}
	ms := func(n byte) string { return "\x00\x00\x00\x00\x00\x00\x00" + string([]byte{n}) }
	for _, x := range []struct {
		state, value, left string // "" if nothing is left
		until              int64
	}{
		{"ttl-last", ms(5) + ms(1), "", 5},
		{"ttl-last", ms(5) + ms(1), ms(5) + ms(1), 4},
		{"ttl-words", ms(1) + "\x02a," + ms(9) + "\x02,," + ms(3) + "\x02c", ms(9) + "\x02,", 3},
		{"ttl-words", ms(1) + "\x02a," + ms(9) + "\x02b", "", 9},
		{"ttl-words", ms(1) + "\x02a," + ms(9) + "\x02b", ms(1) + "\x02a," + ms(9) + "\x02b", 0},
		{"ttl-counts", "\x00" + ms(5) + ms(7), "", 7},
		{"ttl-counts", "\x00" + ms(5) + ms(7), "\x00" + ms(5) + ms(7), 3},
		{"ttl-counts", "\x01", "\x01", 3}, // null has no time
	} {
		for i, st := range schema.States {
			if st.Name.String() != x.state {
				continue
			}
			got, left, err := codecs[i].Expire([]byte(x.value), x.until)
			if err != nil || left != (x.left != "") || left && string(got) != x.left {
				t.Errorf("%s until %d of %x: got %x, %v, %v, expected %x", x.state, x.until, x.value, got, left, err, x.left)
			}
			// Times are read without a codec of the values, too.
			if c := codecs[i]; !c.List {
				c.Value = nil
				if _, again, err := c.Expire([]byte(x.value), x.until); err != nil || again != left {
					t.Errorf("%s without a codec: %v, %v", x.state, again, err)
				}
				if _, _, err := c.Expire([]byte(x.value[:min(1, len(x.value)-1)]), x.until); err == nil && x.value[0] == 0 {
					t.Errorf("%s: a value that is cut short has a time", x.state)
				}
			}
		}
	}
}
