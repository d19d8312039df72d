package rocksdb_test

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/rocksdb"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestMadeFlips: a flipped bit in any byte of a table that RocksDB made is detected, for
// each format version and each type of checksum. Two parts of a table have no checksum:
// the footer up to format 5, where a flip may leave the table the same, and the sequence
// number of an ingested table, which the database compares (TestHostileTables).
func TestMadeFlips(t *testing.T) {
	testenv.Long(t, "flips every bit of tables in one goroutine")
	type variant struct {
		format   uint32
		checksum rocksdb.Checksum
	}
	smallest := map[variant]string{}
	files := made(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".sst" {
			continue
		}
		table := open(t, files[name])
		if _, ingested := table.All["rocksdb.external_sst_file.global_seqno"]; ingested {
			continue
		}
		v := variant{table.Format, table.Checksum}
		if old, ok := smallest[v]; table.Checksum > 0 && (!ok || len(files[name]) < len(files[old])) {
			smallest[v] = name
		}
	}
	flips, same := 0, 0
	for v, name := range smallest {
		p := files[name]
		want, err := digest(t, p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range p {
			q := bytes.Clone(p)
			q[i] ^= 1 << (i % 8)
			flips++
			got, err := digest(t, q)
			switch {
			case err != nil:
			case i >= len(p)-53 && got == want:
				same++
			default:
				t.Errorf("format %d, %v: byte %d of %d of %s is not detected", v.format, v.checksum, i, len(p), name)
			}
		}
	}
	t.Logf("%d variants, %d flips, %d of them in a footer that reads the same", len(smallest), flips, same)
	if len(smallest) < 12 {
		t.Errorf("only %d variants", len(smallest))
	}
}

// digest reads all of a table.
func digest(t *testing.T, p []byte) (string, error) {
	t.Helper()
	table, err := rocksdb.OpenTable(t.Context(), sptest.Memory{}, stream(p), rocksdb.Options{})
	if err != nil {
		return "", err
	}
	n := 0
	content, err := rocksdb.Verify(t.Context(), table, func(e rocksdb.TableEntry) error {
		n += len(e.Key)*3 + len(e.Value)*5 + int(e.Kind)
		return nil
	})
	return fmt.Sprintf("%d %+v", n, content), err
}
