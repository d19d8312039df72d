package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// asynchronous is a job with the asynchronous state API, whose state only ForSt stores in a
// form of its own.
var asynchronous = Options{
	Shape: "keyed", Backend: "forst", Asynchronous: true, Checkpoint: true, Incremental: true, Checkpoints: 2, KeyType: "string", Seed: 518,
}

// State of the asynchronous API becomes classic state, which jobs with the classic API
// restore with each backend but ForSt; and jobs with the asynchronous one too, except state
// with a time to live, which they have with ForSt only. Flink itself restores the state of
// ForSt only into jobs with the same API, and canonical state into none with ForSt.
func TestAsynchronous(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		if version == V1_20 {
			return // it does not have this API
		}
		f := Use(t, version)
		s := madeOnce(t, f, asynchronous)
		v := opened(t, s).View()
		var drop []string
		if version == V2_0 { // it does not record the serializers of map keys
			drop = []string{"counts", "items", "ttl-counts"}
			_, done, err := transform.Canonical(t.Context(), v, transform.CanonicalOptions{})
			if err != nil || len(done.Kept) != 1 || !strings.Contains(done.Kept[0].Why, `state "counts": the serializer of its map keys is not recorded`) {
				t.Errorf("%+v, %v", done, err)
			}
		}
		classic := canonicalWithout(t, s, v, drop)
		restoresAs(t, f, s, classic, drop, "hashmap", false)
		restoresAs(t, f, s, classic, drop, "rocksdb", false)

		drop = append(drop, "ttl-last", "ttl-words", "ttl-counts")
		mortal := canonicalWithout(t, s, v, drop)
		restoresAs(t, f, s, mortal, drop, "hashmap", true)
		restoresAs(t, f, s, mortal, drop, "rocksdb", true)

		with := func(s Snapshot, backend string, asynchronous bool) Snapshot {
			s.Options.Backend, s.Options.Asynchronous = backend, asynchronous
			return s
		}
		for _, api := range []bool{false, true} {
			JudgeRefused(t, f, with(classic, "forst", api), Choices{}, "Not support restoring yet for ForStStateBackend")
		}
		JudgeRefused(t, f, with(s, "rocksdb", false), Choices{}, "v2.RegisteredKeyValueStateBackendMetaInfo cannot be cast")
		JudgeRefused(t, f, with(s, "forst", false), Choices{}, map[Version]string{
			V2_0: "v2.RegisteredKeyValueStateBackendMetaInfo cannot be cast",
			V2_3: "must not be incompatible with the old state serializer (org.apache.flink.runtime.state.v2.ttl.TtlStateFactory$TtlSerializer",
		}[version])
		restoresAs(t, f, s, s, nil, "forst", true)
	})
}

// canonicalWithout drops keyed states, and writes the rest as canonical state.
func canonicalWithout(t *testing.T, s Snapshot, v format.View, drop []string) Snapshot {
	t.Helper()
	var err error
	if len(drop) > 0 {
		v, _, err = transform.Drop(t.Context(), v, transform.DropOptions{Operators: format.Selector{"keyed"}, States: drop})
	}
	if err == nil {
		v, _, err = transform.Canonical(t.Context(), v, transform.CanonicalOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	out, rewritten := standsFor(t, s)
	seal(t, opened(t, s).With(v.Savepoint), out, writer.Options{ReadBack: true})
	return rewritten
}

// restoresAs fails the test unless a job with a backend holds what the job of the original
// held, without the states that were dropped.
func restoresAs(t *testing.T, f *Flink, original, rewritten Snapshot, dropped []string, backend string, asynchronous bool) {
	t.Helper()
	rewritten.Options.Backend, rewritten.Options.Asynchronous = backend, asynchronous
	edit := keyedRewrite{entry: func(state string, e Entry) (Entry, bool) { return e, !slices.Contains(dropped, state) }}
	want := edit.keyedLinesOf(t, mustTruth(t, original), true)
	got := edit.keyedLinesOf(t, Restore(t, f, rewritten, Choices{Parallelism: 3}), false)
	if len(want) == 0 || !slices.Equal(want, got) {
		t.Errorf("restored into %s, asynchronous %v (-expected +Flink):\n%s", backend, asynchronous, cmp.Diff(want, got))
	}
}
