package rocksdb

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
)

// FuzzTable: blocks with any bytes, behind valid checksums. Whatever is accepted is
// in order, and a seek finds what a scan finds.
func FuzzTable(f *testing.F) {
	good := blockOf("k0", "a", "k0b", "b")
	next := blockOf("k1", "c")
	one := func(at []handle) []byte { return indexOf(at...) }
	f.Add(good, next, one([]handle{{0, uint64(len(good))}, {uint64(len(good)) + 5, uint64(len(next))}}), []byte{}, uint32(0), byte(0))
	f.Add(good, next, []byte{0, 3, 'k', '0', '~', 0, byte(len(good)), 0, 0, 0, 0, 1, 0, 0, 0}, good, uint32(0), byte(3))
	f.Add(good, next, one([]handle{{0, uint64(len(good))}}), []byte("\x00\x0a\x01a\x01\x02\x03\x04\x05\x06\x07\x0fb\x00\x00\x00\x00\x01\x00\x00\x00"), uint32(2), byte(0))
	f.Add(snappyOf(good), next, good, next, uint32(3), byte(0x1c))
	f.Fuzz(func(t *testing.T, one, two, index, ranges []byte, kind uint32, flags byte) {
		props := map[string]string{
			propIndexType:  string(binary.LittleEndian.AppendUint32(nil, kind%5)),
			propIndexUser:  string([]byte{flags & 1}),
			propIndexDelta: string([]byte{flags >> 1 & 1}),
		}
		b := newBuilder()
		for name, v := range props {
			b.props[name] = v
		}
		write := func(p []byte, c byte) handle {
			h := handle{uint64(len(b.p)), uint64(len(p))}
			b.p = append(append(b.p, p...), c)
			b.p = binary.LittleEndian.AppendUint32(b.p, checksums[b.checksum].of(b.p[h.off:]))
			return h
		}
		write(one, flags>>2&7)
		write(two, 0)
		values, list := blockBuilder{interval: 1}, blockBuilder{interval: 1}
		for _, name := range sortedKeys(b.props) {
			values.add([]byte(name), []byte(b.props[name]))
		}
		hp := write(values.end(), 0)
		hr := write(ranges, 0)
		list.add([]byte(metaProperties), hp.append(nil))
		if len(ranges) > 0 {
			list.add([]byte(metaRanges), hr.append(nil))
		}
		p := b.finish(write(list.end(), 0), write(index, 0))

		table, err := OpenTable(t.Context(), memory{}, inlineStream(p), Options{MaxBlock: 1 << 20})
		if err != nil {
			if !accepted(err) {
				t.Fatal(err)
			}
			return
		}
		all, err := table.Ranges(t.Context())
		if err != nil && !accepted(err) {
			t.Fatal(err)
		}
		flatten(slices.DeleteFunc(all, func(r Range) bool { return bytes.Compare(r.Start, r.End) >= 0 }))
		if _, err := Verify(t.Context(), table, nil); err != nil && !accepted(err) {
			t.Fatal(err)
		}
		var keys [][]byte
		c := table.Scan(t.Context(), nil)
		for c.next() {
			if n := len(keys); n > 0 && bytes.Compare(keys[n-1], c.key) > 0 {
				t.Fatalf("%x after %x", c.key, keys[n-1])
			}
			keys = append(keys, bytes.Clone(c.key))
			if len(keys) > len(p)*64 {
				t.Fatal("more entries than the table can hold")
			}
		}
		for _, k := range keys {
			c := table.Scan(t.Context(), k)
			if c.next() && bytes.Compare(c.key, k) < 0 {
				t.Fatalf("a scan from %x starts at %x", k, c.key)
			}
		}
	})
}

func snappyOf(p []byte) []byte {
	b := newBuilder()
	b.snappy = true
	h := b.write(p)
	return b.p[:h.size]
}

// FuzzManifest: edits with any bytes, with valid checksums. What is accepted is in
// order.
func FuzzManifest(f *testing.F) {
	good := manifest("f", tableOf(5, 1, "a 1 put x"), tableOf(6, 0, "b 1 put x"))
	var records [][]byte
	if err := eachRecord(good, func(r []byte) error {
		records = append(records, bytes.Clone(r))
		return nil
	}); err != nil {
		f.Fatal(err)
	}
	f.Add(records[0], records[1], records[2], false)
	f.Add(records[1], records[2], records[3], true)
	f.Add([]byte{tagAtomicGroup & 0x7f, 2, 1}, []byte{0xac, 0x02, 0}, []byte{}, false)
	f.Fuzz(func(t *testing.T, a, b, c []byte, raw bool) {
		p := appendRecord(appendRecord(appendRecord(nil, a), b), c)
		if raw {
			p = a
		}
		families, err := readManifest(p)
		if err != nil {
			if !accepted(err) {
				t.Fatal(err)
			}
			return
		}
		for _, f := range families {
			for i, l := range f.Tables {
				if i > 0 && l.Level < f.Tables[i-1].Level {
					t.Fatalf("%+v", f.Tables)
				}
			}
		}
	})
}

// FuzzDatabase: tables with any bytes in their blocks, merged. Keys ascend and are
// within the bounds.
func FuzzDatabase(f *testing.F) {
	l := tableOf(5, 1, "a 1 put x", "b 7 merge x", "b 2 put z")
	over := tableOf(6, 0, "a 9 merge x", "b 12 del ")
	ranges := blockBuilder{interval: 1}
	ranges.add(internalKey([]byte("a"), 20, kindRange), []byte("bb"))
	f.Add(blockOf("a", "x", "b", "y"), blockOf("a", "z"), ranges.end(), []byte("a"), []byte("c"))
	f.Fuzz(func(t *testing.T, a, b, ranges, from, to []byte) {
		one, two := l, over
		index := func(at []handle) []byte {
			x := blockBuilder{interval: 1}
			x.add(internalKey([]byte("zzzz"), 0, KindPut), at[0].append(nil))
			return x.end()
		}
		one.data = assemble([][]byte{a}, index, nil, nil)
		two.data = assemble([][]byte{b}, index, map[string][]byte{metaRanges: ranges}, nil)
		db, err := Open(t.Context(), memory{}, filesOf(manifest("f", one, two), one, two), Options{MaxBlock: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		bounds := Bounds{From: from}
		if len(to) > 0 {
			bounds.To = to
		}
		c, err := db.Scan(t.Context(), db.Family("f"), bounds)
		if err != nil {
			t.Fatal(err)
		}
		var last []byte
		for {
			e, err := c.Next()
			if err != nil {
				if err != io.EOF && !accepted(err) {
					t.Fatal(err)
				}
				return
			}
			if last != nil && bytes.Compare(e.Key, last) <= 0 || bytes.Compare(e.Key, from) < 0 || bounds.To != nil && bytes.Compare(e.Key, to) >= 0 {
				t.Fatalf("%x after %x, in %x", e.Key, last, bounds)
			}
			if last = append(last[:0], e.Key...); last == nil {
				last = []byte{}
			}
		}
	})
}

// FuzzDecompress: any bytes in any compression, within a limit.
func FuzzDecompress(f *testing.F) {
	for c := range byte(8) {
		f.Add([]byte("\x05\x10hello"), c, uint32(5), []byte{})
	}
	f.Add([]byte("\x05\x28\xb5\x2f\xfd\x04\x00\x29\x00\x00hello"), byte(7), uint32(5), []byte("a dictionary"))
	f.Fuzz(func(t *testing.T, p []byte, c byte, version uint32, dict []byte) {
		d := plain
		if len(dict) > 0 {
			d = &dictionary{data: dict}
		}
		out, err := inflateBlock(nil, p, Compression(c), version%8, d, 1<<20)
		if len(out) > 1<<20 || err != nil && !accepted(err) {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
	})
}
