//go:build unix

package rocksdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/savepoint-tools/spt/format"
)

// memory is a Source of inline streams.
type memory struct{}

func (memory) ReadAt(_ context.Context, s format.Stream, p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > s.Size() {
		return 0, format.Errorf(format.ErrTruncated, "past the end")
	}
	return s.(*format.Inline).Data.ReadAt(p, off)
}

func inlineStream(p []byte) format.Stream { return &format.Inline{Data: format.NewBytes(p)} }

// large makes a table like that of a value state: keys of 2 + 8 + 1 bytes, values of
// 8 to 40 bytes of which half compress.
func large(n int, compressed bool, checksum Checksum) []byte {
	b := newBuilder()
	b.snappy, b.checksum = compressed, checksum
	r := rand.New(rand.NewPCG(1, 2))
	key := make([]byte, 11)
	value := make([]byte, 40)
	for i := range n {
		binary.BigEndian.PutUint16(key, uint16(i*128/n))
		binary.BigEndian.PutUint64(key[2:], uint64(i)*77)
		for j := range value {
			value[j] = byte(j)
			if j%2 == 0 {
				value[j] = byte(r.Uint32())
			}
		}
		b.addInternal(internalKey(key, uint64(i), KindPut), value[:8+i%33])
	}
	return b.table()
}

// cpu returns the seconds that the process has computed.
func cpu(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkTable scans a table of a million entries; its unit is entries per second of
// computing.
// With SPT_BENCH_TABLES the tables are kept there for sst_dump.
func BenchmarkTable(b *testing.B) {
	const n = 1 << 20
	for _, x := range []struct {
		name       string
		compressed bool
		checksum   Checksum
	}{{"snappy-xxh3", true, ChecksumXXH3}, {"snappy-crc32c", true, ChecksumCRC32C}, {"none-xxh3", false, ChecksumXXH3}} {
		p := large(n, x.compressed, x.checksum)
		if dir := os.Getenv("SPT_BENCH_TABLES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, x.name+".sst"), p, 0o600); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(p)))
			start := cpu(b)
			for b.Loop() {
				t, err := OpenTable(b.Context(), memory{}, inlineStream(p), Options{})
				if err != nil {
					b.Fatal(err)
				}
				c := t.Scan(b.Context(), nil)
				entries := 0
				for ; ; entries++ {
					if _, err := c.Next(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
				if entries != n {
					b.Fatal(entries)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/(cpu(b)-start), "entries/cpu-s")
		})
	}
}

// BenchmarkScan merges a database: one level of four tables, and three tables of
// level 0 that overwrite a part of them.
func BenchmarkScan(b *testing.B) {
	const n = 1 << 18
	var tables []live
	add := func(level int, from, to, step int, seq uint64) {
		w := newBuilder()
		w.snappy = true
		l := live{number: uint64(len(tables) + 10), level: level, first: seq, last: seq}
		for i := from; i < to; i += step {
			k := internalKey(fmt.Appendf(nil, "key-%08d", i), seq, KindPut)
			if l.smallest == nil {
				l.smallest = k
			}
			l.largest = k
			w.addInternal(k, []byte("a value of some bytes"))
		}
		l.data = w.table()
		tables = append(tables, l)
	}
	for i := range 4 {
		add(1, i*n, (i+1)*n, 1, 1)
	}
	for i := range 3 {
		add(0, i, 4*n, 10, uint64(10+i))
	}
	files := []format.NamedStream{
		{Name: format.NewText("CURRENT"), Data: inlineStream([]byte("MANIFEST-000001\n"))},
		{Name: format.NewText("MANIFEST-000001"), Data: inlineStream(manifest("state", tables...))},
	}
	size := 0
	for _, t := range tables {
		files = append(files, format.NamedStream{Name: format.NewText(fmt.Sprintf("%06d.sst", t.number)), Data: inlineStream(t.data)})
		size += len(t.data)
	}
	b.ReportAllocs()
	b.SetBytes(int64(size))
	read, start := int64(0), cpu(b)
	for b.Loop() {
		db, err := Open(b.Context(), memory{}, files, Options{})
		if err != nil {
			b.Fatal(err)
		}
		c, err := db.Scan(b.Context(), db.Family("state"), Bounds{})
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := c.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		if c.Keys != 4*n {
			b.Fatalf("%+v", c.Counts)
		}
		read += c.Entries
	}
	b.ReportMetric(float64(read)/(cpu(b)-start), "entries/cpu-s")
}
