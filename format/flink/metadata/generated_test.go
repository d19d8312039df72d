package metadata_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
)

// shapes of generated files: every version, and the layouts inside version 3.
var genShapes = []struct {
	name                       string
	version                    int
	noSubtask, shortChangelogs bool
}{
	{name: "v2", version: 2},
	{name: "v3", version: 3},
	{name: "v3 of 1.11", version: 3, noSubtask: true},
	{name: "v3 of 1.14", version: 3, shortChangelogs: true},
	{name: "v3 of both", version: 3, noSubtask: true, shortChangelogs: true},
	{name: "v4", version: 4},
	{name: "v5", version: 5},
	{name: "v6", version: 6},
}

const nullTail = "\xac\xed\x00\x05\x70"

func generate(shape int, seed uint64) (*gen, *format.Savepoint) {
	s := genShapes[shape]
	g := &gen{
		r: rand.New(rand.NewPCG(seed, uint64(shape))), version: s.version, met: map[string]int{},
		noSubtask: s.noSubtask, shortChangelogs: s.shortChangelogs, wantChannels: s.noSubtask, wantShortLog: s.shortChangelogs,
	}
	if s.version >= 4 {
		g.tail = []string{nullTail, vendorObject()}[seed%2]
	}
	sp := g.file()
	return g, sp
}

// TestGenerated: files of every version, layout and tag, written by a writer
// that knows only the spec, are read as what they hold and written again as
// they were.
func TestGenerated(t *testing.T) {
	met := map[string]int{}
	files := 0
	for shape, s := range genShapes {
		for seed := range uint64(40) {
			g, want := generate(shape, seed)
			if g.wantChannels || g.wantShortLog {
				continue // all subtasks had finished: no telling the layout
			}
			files++
			for k, n := range g.met {
				met[k] += n
			}
			got, err := metadata.Decode(format.NewBytes(g.B), metadata.Options{})
			if err != nil {
				t.Fatalf("%s, seed %d: %v", s.name, seed, err)
			}
			if d := cmp.Diff(want, got, sameModel); d != "" {
				t.Fatalf("%s, seed %d: written (-), read (+)\n%s", s.name, seed, d)
			}
			again, err := encode(got)
			if err != nil || !bytes.Equal(again, g.B) {
				t.Fatalf("%s, seed %d: written again: %v, differs at 0x%x", s.name, seed, err, differ(again, g.B))
			}
			if n, err := metadata.Size(got); err != nil || n != int64(len(g.B)) {
				t.Fatalf("%s, seed %d: size %d of %d, %v", s.name, seed, n, len(g.B), err)
			}
			if v, ok := metadata.VersionOf(got); !ok || int(v) != s.version {
				t.Fatalf("%s, seed %d: version %v", s.name, seed, v)
			}
			if known := metadata.KnownProperties(got); known == (g.tail == vendorObject()) {
				t.Fatalf("%s, seed %d: known properties %v", s.name, seed, known)
			}
		}
	}
	for _, must := range []string{
		"stream 0", "stream 1", "stream 2", "stream 3", "stream 6", "stream 15", "stream 16",
		"operator 0", "operator 4", "operator 17",
		"keyed 0", "keyed 3", "keyed 5", "keyed 7", "keyed 8", "keyed 9", "keyed 10", "keyed 11", "keyed 12", "keyed 13", "keyed 14",
		"keyed 8a", "keyed 9a", "keyed 10a",
		"channel 1", "channel 2", "channel 3", "channel 4", "channel plain, 1.11 true", "channel plain, 1.11 false",
		"finished operator", "finished subtask", "legacy handle",
	} {
		if met[must] < 10 {
			t.Errorf("%s: written only %d times", must, met[must])
		}
	}
	t.Logf("%d files, %d kinds of record", files, len(met))
}
