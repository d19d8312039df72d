package writer

import (
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
)

// State that an edit put together stays where it was: in files, or inline.
func TestRebuilt(t *testing.T) {
	big := noise(7, 30<<10)
	dir := folderOf(t, map[string]string{"sp/small": noise(1, 100), "sp/other": noise(2, 200)})
	small, other := relative("small", 100), relative("other", 200)
	in, tiny := inlined(big), &format.Inline{Name: text("tiny"), Data: format.NewBytes([]byte("0123456789"))}
	inFiles := modelOf(handleOf(small, 0), handleOf(other, 0), handleOf(tiny, 0))
	sp := &format.Savepoint{ID: 7, Kind: inFiles.Kind, Operators: []*format.Operator{inFiles.Operators[0], modelOf(handleOf(in, 0)).Operators[0]}}
	sp.Operators[1].UID, sp.Operators[1].ID = text("second"), format.OperatorIDOf("second")
	putFile(t, dir+"/sp/_metadata", encoded(t, sp))
	sealAt(t, dir+"/sp", dir+"/x.spt", Options{Stores: stores(), Compression: spt.S2})

	head := format.Literal([]byte("header"))
	for from, location := range map[string]string{"a folder": dir + "/sp", "an .spt": dir + "/x.spt"} {
		snap := openAt(t, location, stores())
		data := func(op, sub int) format.Stream { return snap.Operators[op].Subtasks[sub].Managed.Data }
		part := func(s format.Stream, n int64) format.Part { return format.Part{Of: s, N: n} }
		rope := func(parts ...format.Part) format.Stream {
			return &format.Concat{Parts: append([]format.Part{head}, parts...)}
		}
		for name, tt := range map[string]struct {
			op        int
			data      format.Stream
			threshold *int64
			inFile    bool
			moved     int64 // bytes that were inline and are in a file now
		}{
			"of a file":                      {0, rope(part(data(0, 0), 50)), nil, true, 0},
			"of two files":                   {0, rope(part(data(0, 0), 50), part(data(0, 1), 5)), nil, true, 0},
			"of a rope of a file":            {0, rope(part(rope(part(data(0, 0), 50)), 56)), nil, true, 0},
			"of a file, small threshold":     {0, rope(part(data(0, 0), 50)), new(int64(1 << 20)), true, 0},
			"of a file and inline":           {0, rope(part(data(0, 0), 50), part(data(0, 2), 4)), nil, true, 4},
			"inline, small":                  {0, rope(part(data(0, 2), 4)), nil, false, 0},
			"inline, large":                  {1, rope(part(data(1, 0), 30<<10)), nil, false, 0},
			"inline, over the threshold":     {1, rope(part(data(1, 0), 30<<10)), new(int64(20 << 10)), true, 30 << 10},
			"inline, at the threshold":       {1, rope(part(data(1, 0), 994)), new(int64(1000)), false, 0},
			"inline, a byte over":            {1, rope(part(data(1, 0), 995)), new(int64(1000)), true, 995},
			"nothing, of one with files":     {0, rope(), nil, true, 0},
			"nothing, of one that is inline": {1, rope(), nil, false, 0},
		} {
			c := *snap.Savepoint
			c.Operators = append([]*format.Operator(nil), snap.Operators...)
			op := *c.Operators[tt.op]
			op.Subtasks = []*format.Subtask{{Index: 0, Managed: handleOf(tt.data, 0)}}
			op.Parallelism = 1
			c.Operators = []*format.Operator{&op}
			p, err := Prepare(background, snap.View().With(&c), "", &Options{Stores: stores(), InlineThreshold: tt.threshold, Family: "flink"})
			if err != nil {
				t.Errorf("%s, %s: %v", from, name, err)
				continue
			}
			handles := 0
			if tt.moved > 0 {
				handles = 1
			}
			if got := len(p.Files) == 1; got != tt.inFile || p.ToFiles != handles || p.ToFilesBytes != tt.moved {
				t.Errorf("%s, %s: %d files, %d handles of %d bytes moved", from, name, len(p.Files), p.ToFiles, p.ToFilesBytes)
			}
			if _, _, ref := format.Reference(p.view.Operators[0].Subtasks[0].Managed.Data); ref != tt.inFile {
				t.Errorf("%s, %s: its reference is to a file: %v", from, name, ref)
			}
		}
	}
}
