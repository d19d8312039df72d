package types_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// corpus is the folder of serializer snapshots that Flink's releases wrote,
// with a value each.
func corpus(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(testenv.Corpus(t), "serializers", "*"))
	if want := testenv.Manifest(t).Serializers; err != nil || len(all) != want {
		t.Fatalf("%d serializers, expected %d: %v", len(all), want, err)
	}
	if len(all) == 0 {
		testenv.NotTested(t, "NOT TESTED: this corpus has no serializers")
	}
	return all
}

// TestCorpusWalk walks each snapshot to its very end. Each value that is decoded is
// written back to the same bytes.
func TestCorpusWalk(t *testing.T) {
	all := corpus(t)
	walked, decoded := 0, 0
	kinds := map[string]bool{}
	opaque := map[string]bool{}
	for _, dir := range all {
		name := filepath.Base(dir)
		p, err := os.ReadFile(filepath.Join(dir, "serializer-snapshot"))
		if err != nil {
			t.Fatal(err)
		}
		s, end, err := types.Skip(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if end != len(p) || len(s.Raw) != len(p)-4 {
			t.Errorf("%s: %d bytes left", name, len(p)-end)
			continue
		}
		walked++
		each(s, func(s *types.Snapshot) {
			if s.Unknown {
				opaque[s.Class] = true
			}
		})
		if codec, ok := types.CodecOf(s); ok {
			v, err := os.ReadFile(filepath.Join(dir, "test-data"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := testenv.ReadBack(t, codec, v)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			text, err := json.Marshal(got)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			decoded++
			kind := version.ReplaceAllString(name, "")
			kinds[kind] = true
			if want, ok := wantValues[kind]; ok && want != string(text) {
				t.Errorf("%s: %s, want %s", name, text, want)
			}
			for n := range v {
				if _, _, err := codec.Read(v[:n]); !value.IsShort(err) {
					t.Errorf("%s: cut to %d of %d bytes: %v", name, n, len(v), err)
				}
				if _, err := codec.Skip(v[:n]); !value.IsShort(err) {
					t.Errorf("%s: cut to %d of %d bytes and skipped: %v", name, n, len(v), err)
				}
				for _, bit := range []byte{1, 0x80} {
					q := slices.Clone(v)
					q[n] ^= bit
					if err := testenv.Agree(codec, q); err != nil {
						t.Errorf("%s: byte %d flipped: %v", name, n, err)
					}
				}
			}
		}
	}
	t.Logf("%d of %d snapshots walked to their end; %d values of %d kinds decoded; inside frames not known: %q",
		walked, len(all), decoded, len(kinds), slices.Sorted(maps.Keys(opaque)))
	there := map[string]bool{}
	for _, dir := range all {
		there[version.ReplaceAllString(filepath.Base(dir), "")] = true
	}
	wanted := 0
	for kind := range wantValues {
		if !there[kind] {
			continue
		}
		wanted++
		if !kinds[kind] {
			t.Errorf("%s was not decoded", kind)
		}
	}
	if wanted < len(wantValues) {
		t.Logf("%d of %d kinds of values are in this corpus", wanted, len(wantValues))
	}
	if walked < len(all) {
		t.Errorf("%d walked", walked)
	}
}

var version = regexp.MustCompile(`-[0-9]+\.[0-9]+$`)

func each(s *types.Snapshot, f func(*types.Snapshot)) {
	if s == nil {
		return
	}
	f(s)
	for _, n := range append(slices.Clone(s.Nested), s.Subclasses...) {
		each(n, f)
	}
}

// wantValues are values that Flink's upgrade tests are known to have written,
// as JSON (spec flink-serializers B16, and the sources of those tests).
var wantValues = map[string]string{
	"arraylist-serializer":               `["Apache","Flink"]`,
	"list-serializer":                    `["Apache","Flink"]`,
	"set-serializer":                     `["Apache","Flink"]`,
	"generic-array-serializer":           `["Apache","Flink"]`,
	"map-serializer":                     `[[0,"0"],[1,"1"],[2,"2"]]`,
	"either-serializer":                  `{"left":"ApacheFlink"}`,
	"tuple-serializer":                   `["hello Gordon","ciao",14]`,
	"ttl-serializer":                     `[13,"hello Gordon"]`,
	"nullable-padded-serializer":         `null`,
	"nullable-not-padded-serializer":     `null`,
	"boolean-serializer":                 `true`,
	"byte-serializer":                    `42`,
	"short-serializer":                   `123`,
	"int-serializer":                     `123456`,
	"long-serializer":                    `1234567890`,
	"float-serializer":                   `123.456`,
	"double-serializer":                  `12345.6789`,
	"string-serializer":                  `"123456789012345678901234567890123456"`,
	"string-value-serializer":            `"123456789012345678901234567890123456"`,
	"big-int-serializer":                 `123456789012345678901234567890123456`,
	"big-dec-serializer":                 `123456789012345678901234567890123456.789`,
	"timer-serializer":                   `{"timestamp":12345,"key":"key","namespace":678}`,
	"row-serializer":                     `[null,42,"My string.",null]`,
	"byte-primitive-array-serializer":    `{"base64":"AAECAwQFBgcICQ=="}`,
	"boolean-primitive-array-serializer": `[true,false]`,
	"long-primitive-array-serializer":    `[0,1,2,3,4,5,6,7,8,9]`,
	"string-array-serializer":            `["0","1","2","3","4","5","6","7","8","9"]`,
	"enum-serializer":                    `"EMMA"`,
	"pojo-serializer-identical-schema":   `{"age":27,"favoriteColor":"BLUE","married":false,"name":"Gordon"}`,
	"void-namespace-serializer":          `null`,
	"scala-case-class-serializer":        `["flink",11]`,
	"scala-either-serializer":            `{"right":"Hello world"}`,
	"traversable-serializer-map":         `[["Apache",0],["Flink",1]]`,
	"traversable-serializer-with-pojo":   `[{"count":0,"name":"Apache"},{"count":1,"name":"Flink"}]`,
}

// TestCorpusDamage cuts a snapshot of each kind at each byte, and flips each.
func TestCorpusDamage(t *testing.T) {
	done := map[string]bool{}
	walks := 0
	for _, dir := range corpus(t) {
		kind := version.ReplaceAllString(filepath.Base(dir), "")
		p, err := os.ReadFile(filepath.Join(dir, "serializer-snapshot"))
		if err != nil {
			t.Fatal(err)
		}
		if done[kind] || len(p) > 20_000 {
			continue
		}
		done[kind] = true
		step := max(1, len(p)/1000)
		for n := 0; n < len(p); n += step {
			walks++
			if _, _, err := types.Skip(p[:n]); !errors.Is(err, format.ErrTruncated) {
				t.Errorf("%s cut to %d of %d: %v", kind, n, len(p), err)
			}
			for _, bit := range []byte{1, 0x80} {
				walks++
				q := slices.Clone(p)
				q[n] ^= bit
				s, end, err := types.Skip(q)
				if err != nil {
					if !ours(err) {
						t.Errorf("%s, byte %d: %v", kind, n, err)
					}
					continue
				}
				if string(s.Raw) != string(q[4:end]) {
					t.Errorf("%s, byte %d: not verbatim", kind, n)
				}
				if _, ok := types.CodecOf(s); ok && s.Class == "" {
					t.Errorf("%s, byte %d: decoded", kind, n)
				}
			}
		}
	}
	t.Logf("%d kinds, %d walks", len(done), walks)
}

func ours(err error) bool {
	return errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrLimit)
}
