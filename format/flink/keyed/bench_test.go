package keyed

import (
	"fmt"
	"io"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// BenchmarkEntries reads a million entries of 64 key groups: a value of 40 bytes and
// a map entry for each string key.
func BenchmarkEntries(b *testing.B) {
	const n = 1 << 20
	header := exampleHeader("\x00")
	canonical, heap := []byte(header), []byte(header)
	offsets, heapOffsets := make(format.OffsetSlice, 64), make(format.OffsetSlice, 64)
	key := func(i int) string { return fmt.Sprintf("\x09key-%04d", i%10000) }
	for g := range 64 {
		offsets[g], heapOffsets[g] = int64(len(canonical)), int64(len(heap))
		heap = append(heap, i32(g)+i16(2)+i32(0)+i16(3)+i32(0)+i16(0)+i32(n/128)...)
		canonical = append(canonical, i16(0)...)
		const per = n / 128
		for i := range per {
			first := byte(g)
			if i == per-1 {
				first |= lastOfRun
			}
			canonical = append(canonical, ba(string([]byte{first})+key(i)+"\x00")+ba(i64(int64(i)))...)
			heap = append(heap, "\x00"+key(i)+i64(int64(i))...)
		}
		heap = append(heap, i16(1)+i32(per)...)
		canonical = append(canonical, i16(1)...)
		for i := range per {
			first := byte(g)
			if i == per-1 {
				first |= lastOfRun
			}
			canonical = append(canonical, ba(string([]byte{first})+key(i)+"\x00\x02a")+ba("\x00"+i32(i))...)
			heap = append(heap, "\x00"+key(i)+i32(1)+"\x02a\x00"+i32(i)...)
		}
		canonical = append(canonical, "\xff\xff"...)
	}
	for _, x := range []struct {
		name      string
		p         []byte
		offsets   format.OffsetSlice
		savepoint bool
	}{{"canonical", canonical, offsets, true}, {"heap", heap, heapOffsets, false}} {
		b.Run(x.name, func(b *testing.B) {
			h := &format.KeyGroups{
				Codec: format.CodecFlink, Savepoint: x.savepoint, Range: format.KeyGroupRange{Count: 64}, Offsets: x.offsets,
				Data: &format.File{Path: format.NewText("f"), Length: int64(len(x.p))},
			}
			src := inMemory(x.p)
			b.ReportAllocs()
			b.SetBytes(int64(len(x.p)))
			for b.Loop() {
				cur, err := (&Codec{MaxParallelism: 128}).Entries(b.Context(), src, h, format.KeyedSelection{})
				if err != nil {
					b.Fatal(err)
				}
				entries := 0
				for ; ; entries++ {
					if _, err := cur.Next(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
				if entries != n {
					b.Fatal(entries)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}
