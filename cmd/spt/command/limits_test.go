package command

import (
	"math"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

func TestLimitsFlag(t *testing.T) {
	for _, tt := range []struct {
		text string
		want format.Limits
		err  string
	}{
		{"memory=1GiB", format.Limits{Memory: 1 << 30}, ""},
		{"memory=1GiB, depth=20,chunk-refs=7", format.Limits{Memory: 1 << 30, Depth: 20, ChunkRefs: 7}, ""},
		{"nodes=5000000000", format.Limits{Nodes: math.MaxInt32}, ""},
		{"manifest=2GiB,chunk=1KiB,offsets=1,operators=2,subtasks=3,value=2GiB", format.Limits{Manifest: 2 << 30, Chunk: 1024, Value: 2 << 30, Offsets: 1, Operators: 2, Subtasks: 3}, ""},
		{"none", format.Limits{Operators: math.MaxInt32, Subtasks: math.MaxInt32, Nodes: math.MaxInt32, Depth: 1000,
			Manifest: math.MaxInt64 / 2, Chunk: math.MaxInt64 / 2, Memory: math.MaxInt64 / 2, Offsets: math.MaxInt64 / 2, ChunkRefs: math.MaxInt64 / 2, Value: math.MaxInt64 / 2}, ""},
		{"", format.Limits{}, `"" is not NAME=N`},
		{"memory", format.Limits{}, `"memory" is not NAME=N`},
		{"memory=", format.Limits{}, "memory must be a size like 20000, 64KiB or 1.5GB"},
		{"memory=0", format.Limits{}, "memory must be at least 1"},
		{"depth=1001", format.Limits{}, "depth must be at most 1000"},
		{"speed=1", format.Limits{}, `unknown limit "speed"; available: memory, manifest, chunk, value, offsets, chunk-refs, nodes, operators, subtasks, depth`},
	} {
		var l limitsFlag
		err := l.Set(tt.text)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%q: error %v, want %s", tt.text, err, tt.err)
			}
			continue
		}
		if err != nil || l.Limits != tt.want {
			t.Errorf("%q: %+v, %v, want %+v", tt.text, l.Limits, err, tt.want)
		}
	}
	// Every limit that an error can name can be raised.
	for _, n := range limitNames {
		var l limitsFlag
		if err := l.Set(string(n.name) + "=9"); err != nil || l.Limits == (format.Limits{}) {
			t.Errorf("%s: %v, %+v", n.name, err, l.Limits)
		}
	}
}
