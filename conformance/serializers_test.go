package conformance

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/check"
	"github.com/savepoint-tools/spt/writer"
)

// TestCompareIsFlinks: what types.Compare says of a serializer that takes over
// from another one is what Flink says, for every pair of many; and for POJOs
// and enums that changed, which snapshots of others under their name stand for.
func TestCompareIsFlinks(t *testing.T) {
	for _, version := range Versions() {
		t.Run(string(version), func(t *testing.T) {
			f := Use(t, version)
			all, err := f.Serializers()
			if err != nil {
				t.Fatal(err)
			}
			pool := map[string][]byte{}
			for name, p := range all {
				pool[name] = p
			}
			// As what was written by the job before it changed.
			for name, p := range all {
				for _, kind := range []string{"Form", "Kind"} {
					for _, a := range "ABCD" {
						for _, b := range "ABCD" {
							was, now := kind+string(a), kind+string(b)
							if a != b && bytes.Contains(p, []byte(was)) && !bytes.Contains(p, []byte(now)) {
								pool[name+" as "+now] = bytes.ReplaceAll(p, []byte(was), []byte(now))
							}
						}
					}
				}
			}
			var pairs []Succession
			var names [][2]string
			for _, now := range slices.Sorted(maps.Keys(all)) {
				for _, was := range slices.Sorted(maps.Keys(pool)) {
					names = append(names, [2]string{was, now})
					pairs = append(pairs, Succession{pool[was], all[now]})
				}
			}
			answers, err := f.Compare(pairs)
			if err != nil {
				t.Fatal(err)
			}
			counts := map[string]int{}
			for i, p := range pairs {
				said, _, _ := strings.Cut(answers[i], ":")
				counts[said]++
				change := types.Compare(walked(t, p.Was), walked(t, p.Now))
				want := map[types.Compatibility]string{types.CompatibleAsIs: "fits", types.CompatibleAfterMigration: "migrates", types.Incompatible: "refused"}[change.Compatibility]
				switch {
				case change.Compatibility == types.Undecided:
					counts["unsure"]++
				case change.Unnoticed:
					if counts["unnoticed"]++; said == "refused" {
						t.Errorf("%s → %s: Flink notices: %s", names[i][0], names[i][1], answers[i])
					}
				case want != said:
					t.Errorf("%s → %s: spt says %q (%s), Flink %q", names[i][0], names[i][1], want, change.Why, answers[i])
				}
				if (change.Why == "") != (change.Compatibility == types.CompatibleAsIs) {
					t.Errorf("%s → %s: %q", names[i][0], names[i][1], change.Why)
				}
			}
			t.Logf("%d serializers, %d pairs: %s", len(all), len(pairs), fmt.Sprint(counts))
			if len(all) < 50 || counts["migrates"] < 3 || counts["fits"] < 50 || counts["unsure"] > 0 {
				t.Error("that shows too little")
			}
		})
	}
}

// TestValuesAreFlinks: values that Flink wrote are read as what they are.
func TestValuesAreFlinks(t *testing.T) {
	for _, version := range Versions() {
		t.Run(string(version), func(t *testing.T) {
			all, err := Use(t, version).Values()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range all {
				codec, ok := types.CodecOf(walked(t, v.Snapshot))
				if !ok {
					t.Errorf("%s is not decoded", v.Text)
					continue
				}
				got, err := testenv.ReadBack(t, codec, v.Bytes)
				if err != nil {
					t.Errorf("%s: %v", v.Text, err)
					continue
				}
				text := got.String()
				if got.Kind() == value.KindBytes {
					text = string(got.AppendJSON(nil, nil, nil))
				}
				if text != v.Text {
					t.Errorf("%s, not %s", text, v.Text)
				}
			}
			if t.Logf("%d values", len(all)); len(all) < 30 {
				t.Error("that is less than there is")
			}
		})
	}
}

// TestCheckLike: state whose type is not the job's, by a class of the same
// length in its description; Flink refuses what check calls an error.
func TestCheckLike(t *testing.T) {
	onlyOperatorState(t, func(t *testing.T, j *editJudge) {
		out, rewritten := standsFor(t, j.s)
		seal(t, opened(t, j.s), out, writer.Options{})
		changed := 0
		err := filepath.WalkDir(out, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			other := bytes.ReplaceAll(text, []byte("LongSerializer$LongSerializerSnapshot"), []byte("DateSerializer$DateSerializerSnapshot"))
			if !bytes.Equal(text, other) {
				changed++
			}
			return os.WriteFile(file, other, 0o644)
		})
		if err != nil || changed == 0 {
			t.Fatal(changed, err)
		}
		was, like := openedAt(t, out), opened(t, j.s)
		report := func(snap *reader.Snapshot) *check.Report {
			r, err := check.Run(t.Context(), inputOf(snap), check.Options{Schema: snap.Schema, Like: &check.Like{Savepoint: like.Savepoint, Schema: like.Schema}})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		types := 0
		for _, f := range report(was).Findings {
			if f.Severity == finding.Error {
				if types++; f.Code != "type" || !strings.Contains(f.Message, "DateSerializer → LongSerializer") {
					t.Errorf("%+v", f)
				}
			}
		}
		if types == 0 {
			t.Error("check finds nothing")
		}
		JudgeRefused(t, j.f, rewritten, Choices{}, "must not be incompatible")
		if r := report(like); r.Count(finding.Error) > 0 || r.Count(finding.Warning) > 0 {
			t.Errorf("of itself: %+v", r.Findings)
		}
	})
}

func walked(t *testing.T, p []byte) *types.Snapshot {
	t.Helper()
	s, n, err := types.Skip(p)
	if err != nil || n < len(p) {
		t.Fatalf("%q: %v, %d bytes left", p, err, len(p)-n)
	}
	return s
}
