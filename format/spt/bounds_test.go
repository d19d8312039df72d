package spt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/limit"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// repeated is an array of n values, each the same bytes.
func repeated(n int, value []byte) msgpack.RawMessage {
	p := binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n))
	return append(p, bytes.Repeat(value, n)...)
}

// each is an array of n values.
func each(t *testing.T, n int, f func(i int) any) msgpack.RawMessage {
	t.Helper()
	p := binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n))
	for i := range n {
		p = append(p, marshal(t, f(i))...)
	}
	return p
}

// What opening allocates is within 64 MiB + 16 times the size of the file, whether
// the file is refused or not: manifests of few bytes, once compressed, and of
// everything that takes more memory than it has bytes.
func TestOpeningIsBounded(t *testing.T) {
	testenv.Long(t, "decodes large files in one goroutine")
	id := make([]byte, 16)
	numbered := func(i int) []byte { return binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i)) }
	managed := func(states any) m {
		return withOperator("id", id, "subtasks", arr{m{"managed", m{"codec", "flink", "data", 0, "states", states}}})
	}
	for _, c := range []struct {
		name    string
		v       any
		refused bool
	}{
		{"masters", withTree(m{"masters", repeated(15_000_000, []byte{0x80})}), true},
		{"masters that fit", withTree(m{"masters", repeated(400_000, []byte{0x80})}), false},
		{"operators", withTree(m{"operators", each(t, 600_000, func(i int) any { return m{"id", numbered(i)} })}), true},
		{"operators that fit", withTree(m{"operators", each(t, 100_000, func(i int) any { return m{"id", numbered(i)} })}), false},
		{"subtasks", withTree(m{"operators", each(t, 20, func(i int) any {
			return m{"id", numbered(i), "subtasks", each(t, 32_768, func(k int) any { return m{"index", k} })}
		})}), true},
		{"handles", withTree(m{"operators", each(t, 3, func(i int) any {
			return m{"id", numbered(i), "subtasks", each(t, 32_768, func(k int) any { return m{"index", k, "managed", m{}, "raw", m{}} })}
		})}), false},
		{"states", managed(each(t, 900_000, func(i int) any { return m{"name", fmt.Sprint(i)} })), true},
		{"states that fit", managed(each(t, 100_000, func(i int) any { return m{"name", fmt.Sprint(i)} })), false},
		{"names", withTree(m{"operators", each(t, 60_000, func(i int) any { return m{"id", numbered(i), "name", fmt.Sprintf("%0200d", i)} })}), false},
		{"long names", withTree(m{"operators", each(t, 2_000, func(i int) any { return m{"id", numbered(i), "name", fmt.Sprintf("%020000d", i)} })}), true},
		{"packed offsets", managed(arr{m{"offsets", make([]byte, 20<<20)}}), true},
		{"packed offsets that fit", managed(arr{m{"offsets", make([]byte, 4<<20)}}), false},
		{"many packed offsets", managed(each(t, 180_000, func(i int) any {
			return m{"name", fmt.Sprint(i), "offsets", append(make([]byte, 40), uvarints(uint64(i))...)}
		})), true},
		{"streams", m{"chunks", oneChunk(), "streams", repeated(400_000, marshal(t, m{"chunks", uvarints(0, 1), "size", 5})), "tree", m{}}, false},
		{"origins", m{"chunks", oneChunk(), "streams", repeated(500_000, marshal(t, m{"as", arr{"file", m{}}})), "tree", m{}}, false},
		{"chunk list", m{"chunks", oneChunk(), "streams", arr{m{"chunks", bytes.Repeat(uvarints(0, 1), 3<<20), "size", 5 * 3 << 20}}, "tree", m{}}, true},
		{"chunk list that fits", m{"chunks", oneChunk(), "streams", arr{m{"chunks", bytes.Repeat(uvarints(0, 1), 1<<20), "size", 5 << 20}}, "tree", m{}}, false},
		{"chunk lists", m{"chunks", oneChunk(), "streams", each(t, 1500, func(i int) any {
			return m{"chunks", bytes.Repeat(uvarints(0, 1), i+1), "size", 5 * (i + 1)}
		}), "tree", m{}}, false},
		{"offset arrays", managed(each(t, 100, func(i int) any {
			return m{"name", fmt.Sprint(i), "offsets", arr{32768 * (i + 1), bytes.Repeat(uvarints(0, 1), i+1)}}
		})), true},
		{"nil changes", withOperator("id", id, "subtasks", arr{m{"managed-keyed", arr{keyChangelog, m{"changes", repeated(3_000_000, []byte{0xc0})}}}}), false},
		{"wires", withTree(m{"operators", each(t, 100, func(i int) any { return m{"id", numbered(i), "wire", bytes.Repeat([]byte{byte(i)}, 300_000)} })}), false},
		{"hook data", withTree(m{"masters", each(t, 100, func(i int) any { return m{"data", make([]byte, 700_000)} })}), true},
		{"parallelism", withTree(m{"operators", each(t, 300, func(i int) any { return m{"id", numbered(i), "parallelism", 32768} })}), true},
		{"manifest", withTree(m{"location", string(make([]byte, 100<<20))}), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := sealRaw(t, header{major: Major}, []byte("chunk"), marshal(t, c.v))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := Open(context.Background(), p, int64(len(p)), format.Limits{})
			runtime.ReadMemStats(&after)
			if c.refused != (err != nil) || err != nil && !errors.Is(err, format.ErrLimit) {
				t.Fatalf("%d bytes: %v", len(p), err)
			}
			const decoders = 4 << 20 // of zstd, whatever the file
			most := uint64(64<<20+16*len(p)) + decoders
			if n := after.TotalAlloc - before.TotalAlloc; n > most {
				t.Errorf("a file of %d bytes: %d bytes were allocated, more than %d", len(p), n, most)
			} else {
				t.Logf("a file of %d bytes: %d bytes were allocated, %d%% of what is allowed; refused: %v", len(p), n, 100*n/most, err != nil)
			}
		})
	}
}

// A few bytes that promise a chunk larger than this module writes are refused, unless
// the file is large enough for it or the user allows it.
func TestChunksAreBoundedByTheFile(t *testing.T) {
	open := func(raw, stored uint64, limits format.Limits) error {
		p := sealRaw(t, header{major: Major}, make([]byte, stored), marshal(t, withTable("hashes", make([]byte, 16), "kinds", []byte{storedS2}, "raw", uvarints(raw), "stored", uvarints(stored))))
		_, err := Open(context.Background(), p, int64(len(p)), limits)
		return err
	}
	for _, c := range []struct {
		raw, stored uint64
		limits      format.Limits
		refused     bool
	}{
		{4 << 20, 5, format.Limits{}, false},
		{8 << 20, 5, format.Limits{}, false},
		{9 << 20, 5, format.Limits{}, true},
		{9 << 20, 1 << 16, format.Limits{}, false},
		{64 << 20, 5, format.Limits{}, true},
		{64 << 20, 5, format.Limits{Chunk: 64 << 20}, false},
		{64 << 20, 4 << 20, format.Limits{}, false},
		{64<<20 + 1, 4 << 20, format.Limits{}, true},
	} {
		if err := open(c.raw, c.stored, c.limits); c.refused != errors.Is(err, limit.Chunk) || !c.refused && err != nil {
			t.Errorf("a chunk of %d bytes in %d: %v", c.raw, c.stored, err)
		}
	}
}
