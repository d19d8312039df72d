package metadata_test

import (
	"bytes"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
)

// FuzzDecode: no panic; what is accepted is written again as the same bytes;
// salvaging tells the same error.
func FuzzDecode(f *testing.F) {
	seeds := specimens(f)
	if len(seeds) < 30 {
		f.Fatalf("only %d seeds", len(seeds))
	}
	for _, s := range seeds {
		f.Add(s.file)
	}
	limits := metadata.Options{Limits: format.Limits{Nodes: 100_000}}
	f.Fuzz(func(t *testing.T, file []byte) {
		sp, err := metadata.Decode(format.NewBytes(file), limits)
		part, perr := metadata.Salvage(format.NewBytes(file), limits)
		if err != nil {
			if perr == nil || perr.Error() != err.Error() {
				t.Fatalf("decoding says %v, salvaging %v", err, perr)
			}
			if part != nil {
				_, _ = encode(part) // whatever it is, no panic
			}
			return
		}
		again, err := encode(sp)
		if err != nil || !bytes.Equal(again, file) {
			t.Fatalf("accepted, but written again it differs at 0x%x, %v", differ(again, file), err)
		}
		if n, err := metadata.Size(sp); err != nil || n != int64(len(file)) {
			t.Fatalf("size %d of %d, %v", n, len(file), err)
		}
	})
}
