package conformance

import (
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/reader"
)

// keyedReads are jobs whose keyed state is stored in ways that the snapshots of testdata and
// of the corpus do not have. Each part of stored must be in the facts of the snapshot: it
// shows that the options of the job did what they are for.
var keyedReads = []struct {
	name    string
	options Options
	since   Version
	stored  string
	// undecoded is why states are not decoded, if some are.
	undecoded map[Version]string
}{
	{name: "time to live, nulls, empty states, sessions, heap", options: Options{Shape: "keyed-more", Format: "native", Elements: 40, Seed: 501}, stored: "heap"},
	{name: "time to live, nulls, empty states, sessions, canonical", options: Options{Shape: "keyed-more", Backend: "rocksdb", Elements: 40, Seed: 502}, stored: "canonical"},
	{name: "time to live, nulls, empty states, sessions, rocksdb", options: Options{Shape: "keyed-more", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 2, Elements: 40, Seed: 503}, stored: "rocksdb"},
	{name: "lists over levels", options: Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 11, Keys: 5, Seed: 504}, stored: "level 0, level 1, operands above other entries"},
	{name: "2 to 3", options: Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 2, Parallelism: 3, Via: []int{2}, Elements: 60, Keys: 50, Seed: 505}, stored: "rocksdb"},
	{name: "2 to 4 to 2", options: Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 2, Via: []int{2, 4}, Elements: 60, Keys: 50, Seed: 506}, stored: "range deletions"},
	{name: "partitioned index, lz4", options: Options{
		Shape: "keyed", Backend: "rocksdb", Checkpoint: true, Incremental: true, Elements: 200, Keys: 150, KeyType: "string", Seed: 507,
		Configuration: tables("LZ4_COMPRESSION"),
	}, stored: "LZ4, partitions"},
	{name: "partitioned index, zstd", options: Options{
		Shape: "keyed", Backend: "rocksdb", Format: "native", Elements: 200, Keys: 150, KeyType: "pojo", Seed: 508,
		Configuration: tables("ZSTD_COMPRESSION"),
	}, stored: "ZSTD, partitions"},
	{name: "keys row", options: Options{Shape: "counts", Backend: "rocksdb", Format: "native", KeyType: "row", Elements: 30, Seed: 509}, stored: "rocksdb"},
	{name: "keys row of SQL", options: Options{Shape: "keyed", Backend: "rocksdb", Format: "native", KeyType: "rowdata", Elements: 30, Seed: 510}, stored: "rocksdb"},
	{name: "keys row of SQL, heap", options: Options{Shape: "counts", Format: "native", KeyType: "rowdata", Elements: 30, Seed: 511}, stored: "heap"},
	{name: "keys Avro", options: Options{Shape: "keyed", Backend: "rocksdb", KeyType: "avro", Elements: 30, Seed: 512}, stored: "canonical"},
	{name: "keys Avro, heap", options: Options{Shape: "counts", Format: "native", KeyType: "avro", Elements: 30, Seed: 513}, stored: "heap"},
	{name: "32768 key groups", options: Options{Shape: "keyed", Backend: "rocksdb", Format: "native", MaxParallelism: 32768, Elements: 30, Seed: 514}, stored: "rocksdb"},
	{name: "32768 key groups, canonical", options: Options{Shape: "keyed", Backend: "rocksdb", MaxParallelism: 32768, KeyType: "string", Elements: 30, Seed: 515}, stored: "canonical"},
	{name: "changelog", options: Options{Shape: "keyed", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 2, Changelog: true, HeapTimers: true, Seed: 516}, stored: "changelog, nothing materialized"},
	{name: "changelog, materialized", options: Options{
		Shape: "keyed", Checkpoint: true, Checkpoints: 9, Changelog: true, Seed: 517,
		Configuration: map[string]string{"state.backend.changelog.periodic-materialize.interval": "5 ms", "state.changelog.periodic-materialize.interval": "5 ms"},
	}, stored: "changelog, materialized"},
	{name: "asynchronous", since: V2_0, options: asynchronous, stored: "rocksdb, raw", undecoded: withoutMapKeys},
	{name: "asynchronous, savepoint", since: V2_0, options: Options{Shape: "keyed", Backend: "forst", Asynchronous: true, Format: "native", Seed: 519}, stored: "rocksdb, raw", undecoded: withoutMapKeys},
}

// withoutMapKeys: Flink 2.0 does not record the serializer of map keys of the asynchronous
// API.
var withoutMapKeys = map[Version]string{V2_0: "its serializer snapshot is missing"}

// tables are options of small blocks with an index of two levels.
func tables(compression string) map[string]string {
	return map[string]string{
		"state.backend.rocksdb.compression.per.level":                  compression,
		"state.backend.rocksdb.block.blocksize":                        "256 b",
		"state.backend.rocksdb.block.metadata-blocksize":               "128 b",
		"state.backend.rocksdb.memory.partitioned-index-filters":       "true",
		"state.backend.rocksdb.memory.fixed-per-slot":                  "16 mb",
		"state.backend.rocksdb.use-bloom-filter":                       "true",
		"state.backend.rocksdb.compaction.level.target-file-size-base": "64 kb",
	}
}

// The keyed state that spt reads is what the running job held, and it verifies: also every
// key is in the key group of its hash code. The log says what was read.
func TestKeyedReads(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		for _, c := range keyedReads {
			if version < c.since {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, c.options)
				want := sptest.KeyedTruth(t, filepath.Join(s.Known, "truth.json"))
				snap := opened(t, s)
				facts, handles, entries, compared, undecoded := storedFacts(t, snap), map[string]int{}, map[string]int{}, 0, 0
				for _, op := range snap.Operators {
					got := sptest.ReadKeyed(t, snap.View(), op)
					held := want[op.ID.String()]
					for name, why := range got.Undecoded {
						if !strings.Contains(why.Error(), c.undecoded[version]) || c.undecoded[version] == "" {
							t.Errorf("operator %q: state %q: %v", op.Label(), name, why)
						}
						delete(held, name)
						undecoded++
					}
					if diff := sptest.DiffKeyed(held, got.States()); diff != "" {
						t.Errorf("operator %q: %s", op.Label(), diff)
					}
					for encoding, n := range got.Handles {
						facts[encoding] = true
						handles[encoding] += n
						entries[encoding] += got.Entries[encoding]
					}
					for _, list := range held {
						compared += len(list)
					}
				}
				all := slices.Sorted(maps.Keys(facts))
				for part := range strings.SplitSeq(c.stored, ", ") {
					if !facts[part] {
						t.Errorf("the snapshot has %q, expected %q", all, part)
					}
				}
				if compared == 0 {
					t.Error("no entries were compared")
				}
				verified, err := snap.Verify(t.Context(), reader.VerifyOptions{Deep: true}, func(f finding.Finding) {
					if f.Severity != finding.Note {
						t.Errorf("%s: %s: %s", f.Severity, f.Place, f.Message)
					}
				})
				if err != nil || verified.Entries == 0 {
					t.Errorf("%+v: %v", verified, err)
				}
				if (undecoded > 0) != (c.undecoded[version] != "") {
					t.Errorf("%d states were not decoded", undecoded)
				}
				t.Logf("%s: handles %v, entries %v; %d compared with the job, %d states not decoded", strings.Join(all, ", "), handles, entries, compared, undecoded)
			})
		}
	})
}

// storedFacts are how the keyed state of a snapshot is stored.
func storedFacts(t *testing.T, snap *reader.Snapshot) map[string]bool {
	t.Helper()
	facts := map[string]bool{}
	for _, op := range snap.Operators {
		for _, sub := range op.Subtasks {
			switch h := sub.ManagedKeyed.(type) {
			case *format.Changelog:
				if len(h.Materialized) == 0 {
					facts["nothing materialized"] = true
				} else {
					facts["materialized"] = true
				}
			case *format.Incremental:
				tableFacts(t, snap, h, facts)
			}
		}
	}
	return facts
}

func tableFacts(t *testing.T, snap *reader.Snapshot, h *format.Incremental, facts map[string]bool) {
	t.Helper()
	db, err := rocksdb.Open(t.Context(), snap.Source(), slices.Concat(h.Shared, h.Private), rocksdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range db.Families {
		operands := 0 // above the table
		for _, l := range family.Tables {
			table, err := db.Table(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			facts[table.Compression] = true
			facts[fmt.Sprint("level ", l.Level)] = true
			if table.RangeDeletions > 0 {
				facts["range deletions"] = true
			}
			if n, _ := binary.Uvarint([]byte(table.All["rocksdb.index.partitions"])); n > 1 {
				facts["partitions"] = true
			}
			if operands > 0 && l.Level > 0 {
				facts["operands above other entries"] = true
			}
			operands += int(table.MergeOperands)
		}
	}
}
