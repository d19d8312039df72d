package keyed

import (
	"runtime"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// TestClaims: lengths and counts up to 2 GiB that the bytes do not have are errors, and
// take no memory.
func TestClaims(t *testing.T) {
	c := &Codec{MaxParallelism: 128}
	const most = "\x7f\xff\xff\xff"
	key := ba("\xa3" + hello + "\x00")
	_, raw := rawTimers()
	// A string of 2^31-1 characters, as Flink writes its length plus one.
	long := "\x80\x80\x80\x80\x08"
	for name, x := range map[string]struct {
		group string
		kind  string
	}{
		"a canonical key":         {i16(0) + most + "\x23", "canonical"},
		"a key of 1 GiB":          {i16(0) + i32(1<<30-16) + "\x23", "canonical"},
		"a key of -1 byte":        {i16(0) + i32(-1) + "\x23", "canonical"},
		"a canonical value":       {i16(0) + key + most + "x", "canonical"},
		"a value of -1 byte":      {i16(0) + key + i32(-1) + "x", "canonical"},
		"a canonical string":      {i16(0) + ba("\xa3"+long+"x\x00") + ba(i64(1)) + "\xff\xff", "canonical"},
		"entries of a heap state": {i32(35) + i16(0) + most + "\x00", "heap"},
		"a key of a heap state":   {i32(35) + i16(0) + i32(1) + "\x00" + long + "x", "heap"},
		"entries of a map":        {i32(35) + i16(1) + i32(1) + "\x00" + hello + most + "\x02a", "heap"},
		"elements of a list":      {i32(35) + i16(3) + i32(1) + "\x00" + hello + most + "\x02a", "heap"},
		"heap timers":             {i32(35) + i16(2) + most + "\x00", "heap"},
		"services":                {string(raw[:8]) + most + string(raw[12:]), "raw"},
		"raw timers":              {strings.Replace(string(raw), i32(1)+hello, most+hello, 1), "raw"},
	} {
		h, src := handleOf(exampleHeader("\x00"), x.group, "", x.kind == "canonical")
		h.Offsets.(format.OffsetSlice)[40] = 0
		if x.kind == "raw" {
			h, _ = rawTimers()
			h.Data = &format.File{Path: format.NewText("f"), Length: int64(len(x.group))}
			src = inMemory(x.group)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readAll(t, c, src, h, format.KeyedSelection{})
		runtime.ReadMemStats(&after)
		if err == nil || !isKind(err) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

// TestClaimsOfHeader: counts in a header, and in the changes of a changelog.
func TestClaimsOfHeader(t *testing.T) {
	const most = "\x7f\xff\xff\xff"
	for name, of := range map[string]func() error{
		"states": func() error {
			_, err := parse([]byte(i32(6) + "\x00" + i32(2) + simple("String") + i16(1<<15-1)))
			return err
		},
		"a list in a change": func() error {
			_, err := readAll(t, &Codec{MaxParallelism: 128}, inMemory(""), changelogOf("\x01\x00\x03"+hello+"\x00"+most), format.KeyedSelection{})
			return err
		},
		"a map in a change": func() error {
			_, err := readAll(t, &Codec{MaxParallelism: 128}, inMemory(""), changelogOf("\x01\x00\x01"+hello+"\x00"+most), format.KeyedSelection{})
			return err
		},
		"namespaces in a change": func() error {
			_, err := readAll(t, &Codec{MaxParallelism: 128}, inMemory(""), changelogOf("\x04\x00\x03"+hello+"\x00\x00"+most), format.KeyedSelection{})
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := of()
		runtime.ReadMemStats(&after)
		if err == nil || !isKind(err) {
			t.Errorf("%s: %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}
