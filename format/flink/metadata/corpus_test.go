package metadata_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestCorpus: every _metadata that a real Flink wrote is written again as the
// same bytes.
func TestCorpus(t *testing.T) {
	root := testenv.Corpus(t)
	count := map[metadata.Version]int{}
	total := 0
	for _, dir := range testenv.Snapshots(t) {
		path := filepath.Join(dir, "_metadata")
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(root, path)
		sp, err := metadata.Decode(format.NewBytes(file), metadata.Options{})
		if err != nil {
			t.Errorf("%s: %v", rel, err)
			continue
		}
		if again, err := encode(sp); err != nil || !bytes.Equal(again, file) {
			t.Errorf("%s: written again it is %d bytes of %d, %v; first difference at 0x%x", rel, len(again), len(file), err, differ(again, file))
		}
		if n, err := metadata.Size(sp); err != nil || n != int64(len(file)) {
			t.Errorf("%s: size %d of %d, %v", rel, n, len(file), err)
		}
		if !metadata.KnownProperties(sp) {
			t.Errorf("%s: properties that no release writes", rel)
		}
		v, ok := metadata.VersionOf(sp)
		if want := metadata.Version(file[7]); !ok || v != want {
			t.Errorf("%s: version %v, the file says %v", rel, v, want)
		}
		isNull := bytes.HasSuffix(file, []byte("\xac\xed\x00\x05\x70")) // the State Processor API's
		if known := sp.Kind.Type != format.TypeUnknown; known != (v >= metadata.V4 && !isNull) {
			t.Errorf("%s: kind %v", rel, sp.Kind)
		}
		count[v]++
		total++
	}
	line := fmt.Sprintf("proved %d files:", total)
	for v := metadata.V2; v <= metadata.Latest; v++ {
		line += fmt.Sprintf(" %s %d,", v, count[v])
	}
	t.Log(strings.TrimSuffix(line, ","))
	fmt.Println("corpus: " + strings.TrimSuffix(line, ","))
}

func encode(sp *format.Savepoint) ([]byte, error) {
	var b bytes.Buffer
	err := metadata.Encode(context.Background(), &b, sp, nil)
	return b.Bytes(), err
}

// differ is the first index at which two files differ, or -1.
func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}
