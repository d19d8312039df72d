package rocksdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// accepted reports whether an error is of one of the kinds of damaged or hostile
// input.
func accepted(err error) bool {
	var e *format.Error
	return errors.As(err, &e) && (errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrLimit) || errors.Is(err, format.ErrMissing))
}

// readTable opens, scans and verifies a table, and returns its entries as text.
func readTable(t testing.TB, p []byte) (all []string, err error) {
	t.Helper()
	table, err := OpenTable(t.Context(), memory{}, inlineStream(p), Options{MaxBlock: 1 << 20})
	if err != nil {
		return nil, err
	}
	if _, err := table.Ranges(t.Context()); err != nil {
		return nil, err
	}
	c := table.Scan(t.Context(), nil)
	for {
		e, err := c.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return all, err
		}
		if all = append(all, fmt.Sprintf("%x %d %d %x", e.Key, e.Sequence, e.Kind, e.Value)); len(all) > 1<<20 {
			t.Fatal("more entries than the table can hold")
		}
	}
	_, err = Verify(t.Context(), table, nil)
	return all, err
}

// small is a table with several blocks.
func small(checksum Checksum, snappy bool) []byte {
	b := newBuilder()
	b.block, b.checksum, b.snappy = 200, checksum, snappy
	for i := range 40 {
		b.add(fmt.Sprintf("key-%03d", i), uint64(i+1), Kind(i%3), strings.Repeat("v", i%3*10))
	}
	b.deleteRange("key-010", "key-012", 99)
	return b.table()
}

// TestFlips: every flipped bit of a table is detected.
func TestFlips(t *testing.T) {
	n := 0
	for _, checksum := range []Checksum{ChecksumCRC32C, ChecksumXXH32, ChecksumXXH64, ChecksumXXH3} {
		for _, snappy := range []bool{false, true} {
			p := small(checksum, snappy)
			want, err := readTable(t, p)
			if err != nil {
				t.Fatal(err)
			}
			for i := range p {
				for bit := range 8 {
					q := bytes.Clone(p)
					q[i] ^= 1 << bit
					n++
					got, err := readTable(t, q)
					if i >= len(p)-12 && i < len(p)-8 && err == nil && slices.Equal(got, want) {
						continue // the format version, which has no checksum: it reads the same
					}
					if err == nil {
						t.Errorf("%v: bit %d of byte %d of %d: not detected", checksum, bit, i, len(p))
					} else if !accepted(err) {
						t.Errorf("%v: bit %d of byte %d: %v", checksum, bit, i, err)
					}
				}
			}
		}
	}
	t.Logf("%d flips", n)
}

// TestCuts: a table that is cut short is an error.
func TestCuts(t *testing.T) {
	p := small(ChecksumXXH3, false)
	for n := range p {
		if _, err := readTable(t, p[:n]); !accepted(err) {
			t.Errorf("%d of %d bytes: %v", n, len(p), err)
		}
	}
}

// made is a table from parts with valid checksums.
func assemble(data [][]byte, index func(data []handle) []byte, meta map[string][]byte, props map[string]string) []byte {
	b := newBuilder()
	var at []handle
	for _, p := range data {
		at = append(at, b.write(p))
	}
	list := blockBuilder{interval: 1}
	values := blockBuilder{interval: 1}
	for k, v := range props {
		b.props[k] = v
	}
	for _, name := range sortedKeys(b.props) {
		values.add([]byte(name), []byte(b.props[name]))
	}
	blocks := map[string]handle{metaProperties: b.write(values.end())}
	for name, p := range meta {
		blocks[name] = b.write(p)
	}
	var names []string
	for name := range blocks {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list.add([]byte(name), blocks[name].append(nil))
	}
	m := b.write(list.end())
	return b.finish(m, b.write(index(at)))
}

func blockOf(entries ...string) []byte {
	b := blockBuilder{interval: 16}
	for i := 0; i < len(entries); i += 2 {
		b.add(internalKey([]byte(entries[i]), 1, KindPut), []byte(entries[i+1]))
	}
	return b.end()
}

func indexOf(handles ...handle) []byte {
	b := blockBuilder{interval: 1}
	for i, h := range handles {
		b.add(internalKey(fmt.Appendf(nil, "k%d~", i), 0, KindPut), h.append(nil))
	}
	return b.end()
}

// TestHostileTables: valid checksums over what RocksDB would not write.
func TestHostileTables(t *testing.T) {
	one, two := blockOf("k0", "a", "k0b", "b"), blockOf("k1", "c")
	num := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	both := [][]byte{one, two}
	raw := func(p ...byte) []byte { return p }
	for name, x := range map[string]struct {
		data  [][]byte
		index func(at []handle) []byte
		meta  map[string][]byte
		props map[string]string
		text  string // of the error; "" for none
	}{
		"as it should be":            {data: both, index: func(at []handle) []byte { return indexOf(at...) }},
		"a block outside":            {both, func(at []handle) []byte { return indexOf(at[0], handle{1 << 40, 10}) }, nil, nil, "is outside the table"},
		"a block of all the bytes":   {both, func(at []handle) []byte { return indexOf(at[0], handle{at[1].off, 1<<63 + 5}) }, nil, nil, "outside the table"},
		"a handle that wraps":        {both, func(at []handle) []byte { return indexOf(at[0], handle{1<<64 - 3, 10}) }, nil, nil, "expected one at or after"},
		"a loop":                     {both, func(at []handle) []byte { return indexOf(at[0], at[1], at[0]) }, nil, nil, "expected one at or after"},
		"a block twice":              {both, func(at []handle) []byte { return indexOf(at[0], at[0]) }, nil, nil, "expected one at or after"},
		"blocks in reverse":          {both, func(at []handle) []byte { return indexOf(at[1], at[0]) }, nil, nil, "expected one at or after"},
		"an index that is itself":    {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propIndexType: "\x02\x00\x00\x00"}, "index"},
		"keys in reverse":            {[][]byte{two, one}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "keys are not in order"},
		"a key twice":                {[][]byte{one, one}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "keys are not in order"},
		"a greater key than its own": {[][]byte{blockOf("k5", "")}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "greater than its key in the index"},
		"an unknown index":           {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propIndexType: "\x09\x00\x00\x00"}, "an index of type 9"},
		"half an index type":         {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propIndexType: "\x00"}, "has 1 bytes"},
		"a comparator":               {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propComparator: "rocksdb.ReverseBytewiseComparator"}, "order of comparator"},
		"a count":                    {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propEntries: "\x05"}, "expected 5 entries, found 3"},
		"a huge count":               {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propEntries: "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}, "expected 18446744073709551615 entries"},
		"an invalid count":           {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propEntries: "\xff"}, "is not a number"},
		"a flag":                     {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propIndexUser: "\x02"}, "expected 0 or 1"},
		"restart points":             {[][]byte{append(slices.Clone(one[:len(one)-4]), num(1<<30)...)}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "restart points"},
		"a hash table":               {[][]byte{append(raw(0xff, 0xff), num(hashIndex)...)}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "hash table"},
		"an empty block":             {[][]byte{{}}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "a block of 0 bytes"},
		"lengths":                    {[][]byte{append(raw(0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f), num(0)...)}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "are left"},
		"a length of 70 bits":        {[][]byte{append(bytes.Repeat(raw(0xff), 12), num(0)...)}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "lengths of an entry"},
		"a shared prefix of nothing": {[][]byte{append(raw(5, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8), num(0)...)}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "shares 5 bytes"},
		"a short key":                {[][]byte{append(raw(0, 3, 0, 1, 2, 3), num(0)...)}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "a key of 3 bytes"},
		"an entry of another kind":   {[][]byte{append(append(raw(0, 9, 0, 'k'), binary.LittleEndian.AppendUint64(nil, 1<<8|0x11)...), num(0)...)}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "reference to a blob file"},
		"an unknown kind":            {[][]byte{append(append(raw(0, 9, 0, 'k'), binary.LittleEndian.AppendUint64(nil, 1<<8|0x70)...), num(0)...)}, func(at []handle) []byte { return indexOf(at...) }, nil, nil, "unknown kind 0x70"},
		"a range of another kind":    {both, func(at []handle) []byte { return indexOf(at...) }, map[string][]byte{metaRanges: blockOf("a", "b")}, nil, "an entry of kind 0x01"},
		"a half ingested table":      {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propGlobal: "12345678"}, "without a version"},
		"an ingested table":          {both, func(at []handle) []byte { return indexOf(at...) }, nil, map[string]string{propExternal: "\x02\x00\x00\x00", propGlobal: "\xff\xff\xff\xff\xff\xff\xff\xff"}, "sequence number"},
		"a dictionary outside":       {both, func(at []handle) []byte { return indexOf(at...) }, map[string][]byte{metaDictionary: {}}, nil, ""},
	} {
		all, err := readTable(t, assemble(x.data, x.index, x.meta, x.props))
		if x.text == "" {
			if err != nil && !strings.Contains(err.Error(), "entries") || len(all) != 3 {
				t.Errorf("%s: %v, %q", name, err, all)
			}
		} else if !accepted(err) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHostileCompression: a claimed size never allocates more than the limit.
func TestHostileCompression(t *testing.T) {
	for c := range Compression(10) {
		for _, version := range []uint32{0, 1, 2, 5} {
			for _, p := range []string{
				"", "\x00", "\xff", "\xff\xff\xff\xff\x0f", "\xff\xff\xff\xff\x0f\x00\x00\x00\x00", "\xff\xff\xff\x7f\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
				"\x80\x80\x80\x01\x28\xb5\x2f\xfd\x00\x58\x01\x00\x00", strings.Repeat("\xff", 100), strings.Repeat("\x00", 100),
			} {
				for _, dict := range []*dictionary{plain, {data: []byte("some text")}, {data: []byte("\x37\xa4\x30\xec and no dictionary")}} {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					out, err := inflateBlock(nil, []byte(p), c, version, dict, 1<<20)
					runtime.ReadMemStats(&after)
					if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
						t.Errorf("%v, version %d, %q: %d bytes allocated", c, version, p, n)
					}
					if err == nil && len(out) > 1<<20 || err != nil && !accepted(err) {
						t.Errorf("%v, version %d, %q: %d bytes, %v", c, version, p, len(out), err)
					}
				}
			}
		}
	}
}

// filesOf are the files of a database.
func filesOf(manifest []byte, tables ...live) []format.NamedStream {
	files := []format.NamedStream{
		{Name: format.NewText("CURRENT"), Data: inlineStream([]byte("MANIFEST-000001\n"))},
		{Name: format.NewText("MANIFEST-000001"), Data: inlineStream(manifest)},
	}
	for _, t := range tables {
		files = append(files, format.NamedStream{Name: format.NewText(fmt.Sprintf("%06d.sst", t.number)), Data: inlineStream(t.data)})
	}
	return files
}

// scanAll returns the keys and values of a family.
func scanAll(t testing.TB, files []format.NamedStream, family string, b Bounds) (all []string, c Counts, err error) {
	t.Helper()
	db, err := Open(t.Context(), memory{}, files, Options{MaxBlock: 1 << 26})
	if err != nil {
		return nil, c, err
	}
	cur, err := db.Scan(t.Context(), db.Family(family), b)
	if err != nil {
		return nil, c, err
	}
	for {
		e, err := cur.Next()
		if err == io.EOF {
			return all, cur.Counts, nil
		}
		if err != nil {
			return all, cur.Counts, err
		}
		all = append(all, string(e.Key)+"="+string(e.Value))
	}
}

// tableOf makes a table of entries "key sequence kind value", with its bounds.
func tableOf(number uint64, level int, entries ...string) live {
	b := newBuilder()
	l := live{number: number, level: level, first: 1, last: 1000}
	bound := func(k []byte) {
		if l.smallest == nil || bytes.Compare(k[:len(k)-8], l.smallest[:len(l.smallest)-8]) < 0 {
			l.smallest = k
		}
		if l.largest == nil || bytes.Compare(k[:len(k)-8], l.largest[:len(l.largest)-8]) > 0 {
			l.largest = k
		}
	}
	for _, e := range entries {
		f := strings.Split(e, " ")
		var seq uint64
		fmt.Sscan(f[1], &seq) //nolint:errcheck // test data
		if f[2] == "range" {
			b.deleteRange(f[0], f[3], seq)
			bound(internalKey([]byte(f[0]), seq, kindRange))
			end := binary.LittleEndian.AppendUint64([]byte(f[3]), rangeSentinelTrail)
			bound(end)
			continue
		}
		k := map[string]Kind{"put": KindPut, "del": KindDelete, "single": KindSingleDelete, "merge": KindMerge}[f[2]]
		b.add(f[0], seq, k, f[3])
		bound(internalKey([]byte(f[0]), seq, k))
	}
	l.data = b.table()
	return l
}

// TestMerge: which entries of several tables make up the values.
func TestMerge(t *testing.T) {
	for name, x := range map[string]struct {
		tables []live
		want   string
	}{
		"newer over older":         {[]live{tableOf(1, 1, "a 1 put x", "b 2 put x"), tableOf(2, 0, "a 5 put y")}, "a=y b=x"},
		"deleted":                  {[]live{tableOf(1, 1, "a 1 put x", "b 2 put x"), tableOf(2, 0, "a 5 del "), tableOf(3, 0, "b 6 single ")}, ""},
		"deleted and written":      {[]live{tableOf(1, 1, "a 7 put z", "a 5 del ", "a 1 put x")}, "a=z"},
		"operands alone":           {[]live{tableOf(1, 1, "a 1 merge x"), tableOf(2, 0, "a 5 merge y"), tableOf(3, 0, "a 6 merge z,w")}, "a=x,y,z,w"},
		"operands on a value":      {[]live{tableOf(1, 2, "a 1 put old"), tableOf(2, 1, "a 2 put base"), tableOf(3, 0, "a 5 merge y", "a 4 merge x")}, "a=base,x,y"},
		"operands on nothing":      {[]live{tableOf(1, 1, "a 1 put old"), tableOf(2, 0, "a 5 merge y", "a 4 del ")}, "a=y"},
		"an empty value as base":   {[]live{tableOf(1, 1, "a 1 put "), tableOf(2, 0, "a 5 merge y")}, "a=,y"},
		"a range":                  {[]live{tableOf(1, 1, "a 1 put x", "b 2 put x", "c 3 put x", "d 4 put x"), tableOf(2, 0, "b 9 range d")}, "a=x d=x"},
		"a range and newer":        {[]live{tableOf(1, 1, "b 2 put x", "c 3 put x"), tableOf(2, 0, "b 5 range d"), tableOf(3, 0, "c 8 put new")}, "c=new"},
		"a range of its own table": {[]live{tableOf(1, 1, "b 12 put y", "b 2 put x", "c 3 put x", "a 5 range d")}, "b=y"},
		"a range under operands":   {[]live{tableOf(1, 1, "b 2 put x", "b 1 merge w"), tableOf(2, 0, "b 9 merge z", "b 3 merge y", "a 5 range d")}, "b=z"},
		"ranges that overlap":      {[]live{tableOf(1, 2, "a 1 put x", "b 6 put x", "c 6 put x", "d 9 put x", "e 6 put x"), tableOf(2, 1, "a 5 range d", "b 7 range c", "c 3 range f"), tableOf(3, 0, "d 8 range e")}, "c=x d=x e=x"},
		"a range before its keys":  {[]live{tableOf(1, 1, "m 1 put x"), tableOf(2, 0, "z 3 put y", "a 5 range n")}, "z=y"},
		"an equal sequence number": {[]live{tableOf(1, 0, "b 5 put x", "a 5 range d")}, "b=x"},
		"tables of a level":        {[]live{tableOf(1, 1, "a 1 put x", "b 2 put x"), tableOf(2, 1, "c 3 put x"), tableOf(3, 1, "d 1 put x", "e 1 put x")}, "a=x b=x c=x d=x e=x"},
	} {
		all, n, err := scanAll(t, filesOf(manifest("f", x.tables...), x.tables...), "f", Bounds{})
		if got := strings.Join(all, " "); err != nil || got != x.want {
			t.Errorf("%s: %q, expected %q: %v", name, got, x.want, err)
		}
		if n.Keys != int64(len(all)) {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

// TestHostileDatabases: what is wrong about a database is said.
func TestHostileDatabases(t *testing.T) {
	good := tableOf(7, 1, "b 1 put x", "c 2 put x")
	wrong := func(change func(l *live)) live {
		l := good
		change(&l)
		return l
	}
	for name, x := range map[string]struct {
		files []format.NamedStream
		text  string
	}{
		"no CURRENT":        {filesOf(manifest("f", good), good)[1:], "CURRENT: expected a file with this name"},
		"no MANIFEST":       {filesOf(nil)[:1], "MANIFEST-000001: expected a file with this name"},
		"no table":          {filesOf(manifest("f", good)), "000007.sst: the MANIFEST lists this table"},
		"a file twice":      {append(filesOf(manifest("f", good), good), filesOf(nil, good)[2:]...), "two files with the name"},
		"a size":            {filesOf(manifest("f", wrong(func(l *live) { l.data = l.data[1:] })), good), "expected a table of"},
		"a smaller key":     {filesOf(manifest("f", wrong(func(l *live) { l.smallest = internalKey([]byte("bb"), 1, KindPut) })), good), "outside the range"},
		"a greater key":     {filesOf(manifest("f", wrong(func(l *live) { l.largest = internalKey([]byte("bb"), 1, KindPut) })), good), "outside the range"},
		"bounds in reverse": {filesOf(manifest("f", wrong(func(l *live) { l.smallest = internalKey([]byte("d"), 1, KindPut) })), good), "greater than its largest"},
		"a table twice":     {filesOf(manifest("f", good, good), good), "added twice"},
		"overlap":           {filesOf(manifest("f", good, wrong(func(l *live) { l.number = 8 })), good), "have keys in common"},
		"a merge operator":  {nil, "values of merge operator \"max\""},
		"a family":          {nil, "expected a table of column family \"f\", found one of \"g\""},
	} {
		if x.files == nil {
			b := newBuilder()
			if name == "a family" {
				b.props[propFamily] = "g"
			} else {
				b.props[propMerge] = "max"
			}
			b.add("b", 1, KindMerge, "")
			l := good
			l.data, l.largest = b.table(), l.smallest
			x.files = filesOf(manifest("f", l), l)
		}
		if _, _, err := scanAll(t, x.files, "f", Bounds{}); !accepted(err) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := scanAll(t, filesOf(manifest("f", good), good), "g", Bounds{}); !errors.Is(err, format.ErrMissing) {
		t.Error(err)
	}
	for _, current := range []string{"", "MANIFEST-000001", "manifest\n", "../MANIFEST-000001\n", strings.Repeat("M", 2000)} {
		files := filesOf(manifest("f", good), good)
		files[0].Data = inlineStream([]byte(current))
		if _, _, err := scanAll(t, files, "f", Bounds{}); !accepted(err) {
			t.Errorf("CURRENT %q: %v", current, err)
		}
	}
}

// TestHostileEdits: edits that RocksDB refuses, and ones that it skips.
func TestHostileEdits(t *testing.T) {
	num := binary.AppendUvarint
	str := func(p []byte, s string) []byte { return append(num(p, uint64(len(s))), s...) }
	tags := func(n ...uint64) (p []byte) {
		for _, x := range n {
			p = num(p, x)
		}
		return p
	}
	add := tags(tagFamily, 1, tagFamilyAdd)
	add = str(add, "f")
	file := func(number uint64, custom ...uint64) []byte {
		p := tags(tagFamily, 1, tagNewFile4, 1, number, 100)
		p = str(str(p, "a12345678"), "b12345678")
		p = append(p, tags(1, 2)...)
		return append(append(p, tags(custom...)...), tags(customEnd)...)
	}
	for name, x := range map[string]struct {
		edits [][]byte
		text  string
	}{
		"nothing":                {nil, ""},
		"a family":               {[][]byte{add}, ""},
		"a field to skip":        {[][]byte{str(tags(tagIgnore|5), "whatever")}, ""},
		"a field to know":        {[][]byte{str(tags(500), "whatever")}, "unknown field 500"},
		"a field of 64 bits":     {[][]byte{str(tags(1<<40|tagIgnore), "whatever")}, "unknown field"},
		"a field of a table":     {[][]byte{add, file(5, 7, 0)}, ""},
		"a must of a table":      {[][]byte{add, file(5, 66, 0)}, "unknown field 66 of a table"},
		"a path":                 {[][]byte{add, file(5, 65, 0)}, ""},
		"blob files":             {[][]byte{tags(tagBlobAddition)}, "blob files"},
		"a comparator":           {[][]byte{str(tags(tagComparator), "mine")}, "comparator \"mine\""},
		"a family twice":         {[][]byte{add, add}, "added twice"},
		"a name twice":           {[][]byte{add, str(tags(tagFamily, 2, tagFamilyAdd), "f")}, "two column families with the name"},
		"no family":              {[][]byte{file(5)}, "which was not added"},
		"a file twice":           {[][]byte{add, file(5), file(5)}, "added twice"},
		"a file deleted":         {[][]byte{add, file(5), tags(tagFamily, 1, tagDeletedFile, 1, 5)}, ""},
		"a file of no level":     {[][]byte{add, file(5), tags(tagFamily, 1, tagDeletedFile, 2, 5)}, "was not added"},
		"no file":                {[][]byte{add, tags(tagFamily, 1, tagDeletedFile, 2, 5)}, "was not added"},
		"a level":                {[][]byte{tags(tagDeletedFile, 1<<40, 5)}, "level"},
		"a dropped family":       {[][]byte{add, tags(tagFamily, 1, tagFamilyDrop), add}, ""},
		"the default family":     {[][]byte{tags(tagFamilyDrop)}, "default"},
		"a length":               {[][]byte{tags(tagComparator, 1<<50)}, "are left"},
		"a number":               {[][]byte{{tagLogNumber, 0xff}}, "is not a number"},
		"a short key":            {[][]byte{add, str(str(tags(tagFamily, 1, tagNewFile, 1, 5, 100), "a"), "b")}, "has 1 bytes"},
		"a group":                {[][]byte{append(tags(tagAtomicGroup, 1), add...), append(tags(tagAtomicGroup, 0), file(5)...)}, ""},
		"half a group":           {[][]byte{append(tags(tagAtomicGroup, 1), str(tags(tagFamily, 1, tagFamilyAdd), "g")...)}, ""},
		"a group with a gap":     {[][]byte{tags(tagAtomicGroup, 5), tags(tagAtomicGroup, 3)}, "atomic group"},
		"a group that is broken": {[][]byte{tags(tagAtomicGroup, 5), add}, "atomic group"},
	} {
		var p []byte
		for _, e := range x.edits {
			p = appendRecord(p, e)
		}
		families, err := readManifest(p)
		if x.text == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if name == "half a group" && len(families) != 1 || name == "a group" && (len(families) != 2 || len(families[1].Tables) != 1) {
				t.Errorf("%s: %+v", name, families)
			}
		} else if !accepted(err) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLog: records of every length, over several blocks, cut and flipped.
func TestLog(t *testing.T) {
	var want [][]byte
	var p []byte
	for _, n := range []int{0, 1, 100, logBlock - 3*logHeader - 108, 5, 3 * logBlock, logBlock - logHeader, 2, 70000} {
		r := bytes.Repeat([]byte{byte(n)}, n)
		want, p = append(want, r), appendRecord(p, r)
	}
	read := func(p []byte) (all [][]byte, err error) {
		err = eachRecord(p, func(r []byte) error {
			all = append(all, bytes.Clone(r))
			return nil
		})
		return all, err
	}
	if got, err := read(p); err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("%d records: %v", len(got), err)
	}
	for n := 0; n < len(p); n += 1 + n/50 {
		if got, err := read(p[:n]); err == nil && len(got) >= len(want) || err != nil && !errors.Is(err, format.ErrTruncated) {
			t.Errorf("%d of %d bytes: %d records, %v", n, len(p), len(got), err)
		}
	}
	for i := 0; i < len(p); i += 1 + i/100 {
		q := bytes.Clone(p)
		q[i] ^= 0x10
		if _, err := read(q); !accepted(err) {
			t.Errorf("byte %d of %d flipped: %v", i, len(p), err)
		}
	}
}

// TestManyTombstones: a million tombstones over each other.
func TestManyTombstones(t *testing.T) {
	testenv.Long(t, "builds a table of a million tombstones")
	const n = 1 << 20
	b := newBuilder()
	b.props[propRanges] = string(binary.AppendUvarint(nil, n))
	last := internalKey([]byte("zz"), 1, KindPut)
	b.addInternal(internalKey([]byte("k5"), n+10, KindPut), []byte("kept"))
	b.addInternal(last, []byte("kept"))
	for i := range n {
		// Each within the one before it.
		b.ranges.add(internalKey(fmt.Appendf(nil, "k%07d", i), uint64(i+2), kindRange), fmt.Appendf(nil, "m%07d", n-i))
	}
	l := live{number: 5, level: 1, smallest: internalKey([]byte("k0000000"), 2, kindRange), largest: last, first: 1, last: n + 10}
	l.data = b.table()
	under := tableOf(4, 2, "k0000005x 6 put x", "k5 3 put x", "l 5 put x", "m0000009 1 put x", "z 1 put y")
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all, c, err := scanAll(t, filesOf(manifest("f", l, under), l, under), "f", Bounds{})
	runtime.ReadMemStats(&after)
	if got := strings.Join(all, " "); err != nil || got != "k5=kept z=y zz=kept" {
		t.Errorf("%q, %+v: %v", got, c, err)
	}
	t.Logf("a table of %d bytes: %d bytes allocated", len(l.data), after.TotalAlloc-before.TotalAlloc)
	if got := after.TotalAlloc - before.TotalAlloc; got > 16*uint64(len(l.data)) {
		t.Errorf("%d bytes allocated for a table of %d", got, len(l.data))
	}
}

// TestFlatten compares with a tombstone by tombstone search.
func TestFlatten(t *testing.T) {
	seed := uint32(1)
	rnd := func(n int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>8) % n
	}
	for range 300 {
		var all []Range
		for range rnd(20) {
			a, b := rnd(30), rnd(30)
			if a < b {
				all = append(all, Range{[]byte{byte(a)}, []byte{byte(b)}, uint64(rnd(10) + 1)})
			}
		}
		flat := flatten(slices.Clone(all))
		for i := range flat {
			if i > 0 && (bytes.Compare(flat[i-1].key, flat[i].key) >= 0 || flat[i-1].seq == flat[i].seq) || i == len(flat)-1 && flat[i].seq != 0 {
				t.Fatalf("%v: %v", all, flat)
			}
		}
		c := cover{}
		c.add(flat)
		for k := range 31 {
			want := uint64(0)
			for _, r := range all {
				if k >= int(r.Start[0]) && k < int(r.End[0]) {
					want = max(want, r.Sequence)
				}
			}
			got := uint64(0)
			for s := uint64(1); s < 12; s++ {
				if c.deletes([]byte{byte(k)}, s-1) {
					got = s
				}
			}
			if got != want {
				t.Fatalf("%v, key %d: %d, expected %d (%v)", all, k, got, want, flat)
			}
		}
	}
}

// TestMemory: a scan takes memory for blocks, not for the table.
func TestMemory(t *testing.T) {
	b := newBuilder()
	b.snappy = true
	for i := range 1 << 17 {
		b.add(fmt.Sprintf("key-%08d", i), 1, KindPut, strings.Repeat(fmt.Sprint(i), 20))
	}
	p := b.table()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	table, err := OpenTable(t.Context(), memory{}, inlineStream(p), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := table.Scan(t.Context(), nil)
	n, size := 0, 0
	for c.next() {
		n++
		size += len(c.key) + len(c.value)
	}
	runtime.ReadMemStats(&after)
	got := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d entries of %d bytes in a table of %d: %d bytes allocated, %d of them for the index", n, size, len(p), got, len(table.index))
	if n != 1<<17 || c.err != io.EOF || got > 2<<20+4*uint64(len(table.index)) {
		t.Errorf("%d entries, %v, %d bytes allocated", n, c.err, got)
	}
}

// TestOrder compares the order of keys that share bytes with the order of whole keys.
func TestOrder(t *testing.T) {
	parts := []string{"", "a", "b", "ab", "aa", "\x01", "a\x01", "\x01\x01"}
	n := 0
	for _, tail := range []int{0, trailer} {
		var keys [][]byte
		for _, p := range parts {
			if tail == 0 {
				keys = append(keys, []byte(p))
				continue
			}
			for _, seq := range []uint64{1, 2, 1 << 40} {
				keys = append(keys, internalKey([]byte(p), seq, KindPut))
			}
		}
		for _, x := range keys {
			for _, y := range keys {
				want := bytes.Compare(x[:len(x)-tail], y[:len(y)-tail])
				if want == 0 && tail > 0 && trailerOf(x) != trailerOf(y) {
					want = 1
					if trailerOf(x) > trailerOf(y) {
						want = -1
					}
				}
				for shared := 0; shared <= min(len(x), len(y)) && bytes.Equal(x[:shared], y[:shared]); shared++ {
					b := block{tail: tail, off: 1}
					b.key = append(b.key, x...)
					n++
					if got := b.setKey(shared, y[shared:]); got != (want < 0) && len(x) > 0 {
						t.Errorf("%x after %x, %d bytes shared: %v", y, x, shared, got)
					}
				}
			}
		}
	}
	t.Logf("%d pairs", n)
}
