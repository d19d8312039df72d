package summary

import (
	"testing"

	"github.com/savepoint-tools/spt/format"
)

func TestOneArray(t *testing.T) {
	a, b := format.OffsetSlice{1, 2}, format.OffsetSlice{1, 2}
	v := &format.OffsetBytes{}
	for i, c := range []struct {
		x, y format.Offsets
		want bool
	}{
		{a, a, true}, {a, b, false}, {a, a[:1], false}, {format.OffsetSlice{}, format.OffsetSlice{}, true},
		{v, v, true}, {v, &format.OffsetBytes{Data: format.NewBytes(make([]byte, 8))}, false}, {a, v, false}, {v, a, false}, {nil, nil, false},
		{format.OffsetBytes{}, format.OffsetBytes{}, false},
	} {
		if got := oneArray(c.x, c.y); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
