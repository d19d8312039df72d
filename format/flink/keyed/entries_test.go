package keyed_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// known is a snapshot and the file that says what the job held.
type known struct{ name, dir, truth string }

// fixtures are the snapshots of testdata with a truth.
func fixtures(t *testing.T) (all []known) {
	t.Helper()
	root := filepath.Join(testenv.ModuleRoot(t), "testdata", "savepoints")
	one, err := filepath.Glob(filepath.Join(root, "*", "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := filepath.Glob(filepath.Join(root, "*.truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(one, two...) {
		name := strings.TrimSuffix(filepath.Base(file), ".truth.json")
		if name == "truth.json" {
			name = filepath.Base(filepath.Dir(file))
		}
		if name != "sp-005" { // unaligned: the truth is what the job held after it had processed in-flight data
			all = append(all, known{name, testenv.Fixture(t, name), file})
		}
	}
	return all
}

// TestTruth reads the entries of the snapshots of testdata, and compares them with
// what the running job held.
func TestTruth(t *testing.T) {
	if n := compareTruth(t, fixtures(t)); n < 1000 {
		t.Errorf("%d entries", n)
	}
}

// TestKnownTruth is TestTruth with the known snapshots of the corpus.
func TestKnownTruth(t *testing.T) {
	var all []known
	for _, k := range testenv.KnownSnapshots(t) {
		if !k.Unaligned {
			all = append(all, known{k.Name, k.Location, filepath.Join(k.Dir, "truth.json")})
		}
	}
	n := compareTruth(t, all)
	testenv.Some(t, "keyed entries of which the truth is known", n, n > 0)
}

func compareTruth(t *testing.T, all []known) int {
	t.Helper()
	snapshots, compared := 0, 0
	entries, groups, handles := map[string]int{}, map[string]int{}, map[string]int{}
	for _, k := range all {
		want := sptest.KeyedTruth(t, k.truth)
		snap := sptest.Open(t, k.dir)
		used := false
		for _, op := range snap.Operators {
			got := sptest.ReadKeyed(t, snap.View(), op)
			for enc, n := range got.Handles {
				used = true
				handles[enc] += n
				entries[enc] += got.Entries[enc]
				groups[enc] += got.Groups[enc]
			}
			for name, why := range got.Undecoded {
				t.Errorf("%s: operator %q: state %q: %v", k.name, op.Label(), name, why)
			}
			held := want[op.ID.String()]
			if held == nil {
				continue
			}
			if diff := sptest.DiffKeyed(held, got.States()); diff != "" {
				t.Errorf("%s: operator %q: %s", k.name, op.Label(), diff)
			}
			for _, list := range held {
				compared += len(list)
			}
		}
		if used {
			snapshots++
		}
	}
	t.Logf("%d snapshots with keyed state: handles %v, entries %v, key groups with entries %v; %d entries compared with the truth", snapshots, handles, entries, groups, compared)
	return compared
}
