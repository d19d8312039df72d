package conformance

import (
	"context"
	"fmt"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// State that spt compressed or decompressed is to Flink the state that it was, at
// the parallelism of the job and at another, on the version that made it.
func TestStateCompression(t *testing.T) {
	cases := []struct {
		name     string
		compress bool
		keyed    bool // too
	}{
		{"operator", true, false},
		{"operator-files", true, false},
		{"operator-compressed", false, false},
		{"keyed-rocksdb", true, true},
		{"keyed-heap", true, true},
		{"keyed-heap-compressed", false, true},
	}
	eachVersion(t, func(t *testing.T, version Version) {
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s/%v", c.name, c.compress), func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, compressionCase(t, c.name))
				snap := opened(t, s)
				out, rewritten := standsFor(t, s)
				sp, done, err := transform.Recompress(context.Background(), inputOf(snap), transform.RecompressOptions{Compress: c.compress, Keyed: keyed.Recompress})
				if err != nil {
					t.Fatal(err)
				}
				if done.Handles == 0 || len(done.Kept) > 0 {
					t.Fatalf("%+v", done)
				}
				seal(t, snap.With(sp.Savepoint), out, writer.Options{ReadBack: true})
				written := openedAt(t, out)
				judgeModel(t, f, rewritten, written)
				judgeSame(t, f, s, rewritten, false)

				// And at another parallelism: the offsets are right one by one.
				want := restoredOnce(t, f, s, Choices{Parallelism: 3})
				got := Restore(t, f, rewritten, Choices{Parallelism: 3})
				compareContent(t, f, s.Options, 3, withoutUnionOrder(want), withoutUnionOrder(got))

				headers, err := written.Headers(context.Background(), written.Operators)
				if err != nil {
					t.Fatal(err)
				}
				operator, inKeyed := 0, 0
				for _, h := range headers {
					if h.Compressed > 0 != c.compress && h.Read > 0 {
						t.Errorf("%d of %d streams are compressed", h.Compressed, h.Read)
					}
					for _, st := range h.States {
						if st.Keyed() {
							inKeyed++
						} else {
							operator++
						}
					}
				}
				if operator == 0 || inKeyed > 0 != c.keyed {
					t.Errorf("%d operator states, %d keyed states", operator, inKeyed)
				}
			})
		}
	})
}

// compressionCase is the options of a case, or of one that is only made here.
func compressionCase(t *testing.T, name string) Options {
	t.Helper()
	if name == "keyed-heap-compressed" {
		o := caseNamed(t, "keyed-heap").options
		o.Compress = true
		return o
	}
	return caseNamed(t, name).options
}
