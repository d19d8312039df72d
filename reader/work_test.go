package reader

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/internal/work"
)

// elsewhere is a unit after the way to another process.
func elsewhere(t *testing.T, u work.Unit) work.Unit {
	t.Helper()
	u, err := work.Decode(u.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func checker(t *testing.T, dir string) (*verifier, *contentCheck) {
	t.Helper()
	snap, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = snap.Close() })
	v := newVerifier(t.Context(), snap, VerifyOptions{Read: true}, func(finding.Finding) {})
	return v, &contentCheck{snap: snap, sp: snap.Savepoint, o: v.o, files: false}
}

// TestUnitsRunElsewhere: units that were encoded, decoded and run on the snapshot
// opened again give the same results, and their results merge in any order to what
// one unit gives for the whole state.
func TestUnitsRunElsewhere(t *testing.T) {
	bad := t.TempDir() // an element that breaks its type
	if err := os.CopyFS(bad, os.DirFS(testenv.Fixture(t, "sp-001"))); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(bad, "_metadata")
	p, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	broken := 0
	for i := range p {
		if s := "\nelement-"; i+len(s) < len(p) && string(p[i:i+len(s)]) == s {
			p[i] = 0x7f
			broken++
		}
	}
	if err := os.WriteFile(name, p, 0o600); err != nil || broken == 0 {
		t.Fatal(broken, err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var headers, states, ranges, elements, wrong int64
	for _, dir := range append(testenv.Snapshots(t), bad) {
		v, here := checker(t, dir)
		_, there := checker(t, dir)
		for i, op := range v.snap.Operators {
			for _, u := range v.headerUnits(i, op) {
				headers++
				a, err1 := here.header(t.Context(), u)
				b, err2 := there.header(t.Context(), elsewhere(t, u))
				if fmt.Sprint(err1) != fmt.Sprint(err2) || err1 != nil || len(a.states) != len(b.states) || !reflect.DeepEqual(told(a.found), told(b.found)) {
					t.Fatalf("%s: %+v: %v, %v; %v, %v", dir, u, a.found, b.found, err1, err2)
				}
				for state := range a.states {
					u := u
					u.Job, u.State = work.CheckElements, state
					whole, err := here.elements(t.Context(), u)
					if err != nil {
						t.Fatal(err)
					}
					var parts []elementsResult
					for u, err := range work.Elements(t.Context(), u, a.handle(), 64, 3) {
						if err != nil {
							t.Fatal(err)
						}
						r, err := there.elements(t.Context(), elsewhere(t, u))
						if err != nil {
							t.Fatal(err)
						}
						parts = append(parts, r)
					}
					states, ranges, elements, wrong = states+1, ranges+int64(len(parts)), elements+whole.Elements, wrong+whole.Bad
					for range 3 {
						rnd.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
						got := merged(parts)
						if got.Elements != whole.Elements || got.Bad != whole.Bad || got.NotDecoded != whole.NotDecoded || got.Why.Of != whole.Why.Of || !reflect.DeepEqual(told(got.findings()), told(whole.findings())) {
							t.Fatalf("%s: %+v: %+v, whole %+v", dir, u, got, whole)
						}
					}
				}
			}
		}
	}
	t.Logf("%d headers, %d states in %d ranges, %d elements, %d of them wrong", headers, states, ranges, elements, wrong)
	if headers == 0 || ranges <= states || elements == 0 || wrong < 2 {
		t.Error("too little was compared")
	}
}

// merged merges results in groups, as several machines would.
func merged(parts []elementsResult) (all elementsResult) {
	for group := range slices.Chunk(parts, 2) {
		var some elementsResult
		for _, p := range group {
			some = some.merge(p)
		}
		all = all.merge(some)
	}
	return all
}

// told are findings without the pointers into the snapshot they are of.
func told(all []finding.Finding) (out []string) {
	for _, f := range all {
		id := ""
		if f.Operator != nil {
			id = f.Operator.ID.String()
			f.Operator = nil
		}
		out = append(out, fmt.Sprintf("%s %+v", id, f))
	}
	return out
}

// TestVerifyJobs: findings, their order and all counts are the same for any number
// of jobs.
func TestVerifyJobs(t *testing.T) {
	dirs := append(testenv.Snapshots(t), must(filepath.Glob("../testdata/reported/*.spt"))...)
	dirs = append(dirs, must(filepath.Glob("../testdata/hostile/*"))...)
	compared, findings := 0, 0
	for _, dir := range dirs {
		var want string
		for _, jobs := range []int{1, 8} {
			snap, err := Open(t.Context(), dir, nil)
			if err != nil {
				break // what cannot be opened has tests of its own
			}
			var all []finding.Finding
			v, err := snap.Verify(t.Context(), VerifyOptions{Read: true, Jobs: jobs}, func(f finding.Finding) { all = append(all, f) })
			got := fmt.Sprintf("%+v\n%q\n%v", *v, told(all), err)
			if jobs == 1 {
				want = got
			} else if compared++; got != want {
				t.Errorf("%s: with 8 jobs %s\nwith 1 %s", dir, got, want)
			}
			findings += len(all)
			if err := snap.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d snapshots, %d findings", compared, findings)
	if compared == 0 || findings == 0 {
		t.Error("too little was compared")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
