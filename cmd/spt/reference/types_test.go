package reference

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestExceptions counts the values of Flink's upgrade tests that are not decoded.
func TestExceptions(t *testing.T) {
	all, err := filepath.Glob(filepath.Join(testenv.Corpus(t), "serializers", "*"))
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	counts := map[types.Reason]int{}
	for _, dir := range all {
		p, err := os.ReadFile(filepath.Join(dir, "serializer-snapshot"))
		if err != nil {
			t.Fatal(err)
		}
		s, _, err := types.Skip(p)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		o := types.Options{Kryo: 2}
		if v := dir[strings.LastIndexByte(dir, '-')+1:]; v >= "2" {
			o.Kryo = 5
		}
		c, err := types.NewCodec(s, o)
		var why *types.NotDecoded
		if errors.As(err, &why) {
			counts[why.Reason]++
			continue
		}
		v, err := os.ReadFile(filepath.Join(dir, "test-data"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := testenv.ReadBack(t, c, v); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	t.Logf("%d values; not decoded: %v", len(all), counts)
	if len(all) != UpgradeValues {
		t.Logf("another corpus: %d values", len(all))
		return
	}
	for _, e := range Exceptions {
		if counts[e.Reason] != e.Count {
			t.Errorf("%s: %d, docs/types.md says %d", e.Reason, counts[e.Reason], e.Count)
		}
		delete(counts, e.Reason)
	}
	if len(counts) > 0 {
		t.Errorf("docs/types.md lacks %v", counts)
	}
}
