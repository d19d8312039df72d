package types_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/java"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// corpus is the folder of serializer snapshots that Flink's releases wrote,
// with a value each.
func corpus(t *testing.T) []string {
	t.Helper()
	root := os.Getenv("SPT_CORPUS")
	if root == "" {
		root = "../../../../shared/corpus"
	}
	all, err := filepath.Glob(filepath.Join(root, "serializers", "*"))
	if err != nil || len(all) == 0 {
		t.Skipf("NO CORPUS: nothing was proved on snapshots of real releases; set SPT_CORPUS (%v)", err)
	}
	return all
}

// TestCorpusWalk walks each snapshot to its very end, and decodes each value
// that can be.
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
		c := java.NewCursor(p)
		s, err := types.Skip(c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Remaining() != 0 || len(s.Raw) != len(p)-4 {
			t.Errorf("%s: %d bytes left", name, c.Remaining())
			continue
		}
		walked++
		each(s, func(s *types.Snapshot) {
			if s.Unknown {
				opaque[s.Class] = true
			}
		})
		if decode, ok := types.Decoder(s); ok {
			v, err := os.ReadFile(filepath.Join(dir, "test-data"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode(v)
			if err != nil {
				if !subclass.MatchString(err.Error()) {
					t.Errorf("%s: %v", name, err)
				}
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
				if _, err := decode(v[:n]); err == nil {
					t.Errorf("%s: cut to %d of %d bytes and accepted", name, n, len(v))
				}
			}
		}
	}
	t.Logf("%d of %d snapshots walked to their end; %d values of %d kinds decoded; inside frames not known: %q",
		walked, len(all), decoded, len(kinds), slices.Sorted(maps.Keys(opaque)))
	for kind := range wantValues {
		if !kinds[kind] {
			t.Errorf("%s was not decoded", kind)
		}
	}
	if walked < 885 {
		t.Errorf("%d walked", walked)
	}
}

var (
	version  = regexp.MustCompile(`-[0-9]+\.[0-9]+$`)
	subclass = regexp.MustCompile("of a subclass")
)

func each(s *types.Snapshot, f func(*types.Snapshot)) {
	if s == nil {
		return
	}
	f(s)
	for _, n := range append(slices.Clone(s.Nested), s.Subclasses...) {
		each(n, f)
	}
}

var wantValues = map[string]string{}
