package types_test

import (
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// TestListCodec: list state of any length, of lists of longs, in memory that is used again.
func TestListCodec(t *testing.T) {
	c, err := types.ListCodec(snapshot(t, list(simple("Long"))), types.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var a value.Arena
	for _, n := range []int{1, 2, 3, 4, 5, 9, 33, 200, 1} {
		var elements []string
		for i := range n { // [i], [i, -i], [i, -i, i]
			elements = append(elements, i32(1+i%3)+strings.Repeat(i64(int64(i))+i64(int64(-i)), 2)[:8+8*(i%3)])
		}
		p := []byte(strings.Join(elements, ","))
		var v value.Value
		a.Reset()
		if err := value.ReadAllIn(&a, c, p, &v); err != nil || v.Len() != n {
			t.Fatalf("%d elements: %d, %v", n, v.Len(), err)
		}
		for i := range n {
			if e := v.At(i); e.Len() != 1+i%3 || e.At(0).Int() != int64(i) || e.At(e.Len()-1).Int() != int64(i)*[]int64{1, -1, 1}[i%3] {
				t.Errorf("%d elements: element %d of %d values", n, i, e.Len())
			}
		}
		if q, err := c.Append(nil, v); err != nil || string(q) != string(p) {
			t.Errorf("%d elements: written as %x, %v", n, q, err)
		}
		if err := value.ReadAllIn(&a, c, append(p, ','), &v); err == nil {
			t.Errorf("%d elements and a comma", n)
		}
	}
}
