package command

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/reader"
)

// TestCatJobs: what cat prints, and on which errors it ends, is the same for any
// number of jobs.
func TestCatJobs(t *testing.T) {
	dirs := append(testenv.Snapshots(t), bigSavepoint(t, 2))
	hostile, err := filepath.Glob("../../../testdata/hostile/*")
	if err != nil || len(hostile) == 0 {
		t.Fatal(hostile, err)
	}
	compared, bytesOf, failed := 0, 0, 0
	for i, dir := range append(dirs, hostile...) {
		for k, args := range [][]string{{}, {"-o", "json"}, {"--distinct"}, {"--stats"}, {"--where", "index % 3 == 1"}, {"-o", "csv", "--raw"}, {"--limit", "5000"}, {"-o", "table"}} {
			if dir != dirs[len(dirs)-1] && k > 0 && i%8 != k { // each mode with some of them
				continue
			}
			var want string
			for _, jobs := range []string{"1", "2", "8"} {
				var out, errs bytes.Buffer
				env := OSEnv()
				env.Stdout, env.Stderr, env.Getenv = &out, &errs, func(string) string { return "" }
				code := Main(t.Context(), append([]string{"cat", dir, "--jobs", jobs}, args...), env)
				got := fmt.Sprintf("%s\n%s\nexit %d", out.String(), errs.String(), code)
				if jobs == "1" {
					want, compared, bytesOf = got, compared+1, bytesOf+out.Len()
					if code != 0 {
						failed++
					}
				} else if got != want {
					t.Errorf("%s %q: with %s jobs another output: %d bytes, with 1 job %d\n%.300s", dir, args, jobs, len(got), len(want), errs.String())
				}
			}
		}
	}
	t.Logf("%d runs compared, %d bytes, %d that failed", compared, bytesOf, failed)
	if compared == 0 || bytesOf == 0 || failed == 0 {
		t.Error("too little was compared")
	}
}

// TestCatUnitsRunElsewhere: units that were encoded, decoded and read from the
// snapshot opened again have the same lines.
func TestCatUnitsRunElsewhere(t *testing.T) {
	units, lines := 0, 0
	for _, dir := range append(testenv.Snapshots(t), bigSavepoint(t, 2)) {
		var both [2]*catter
		for i := range both {
			snap, err := reader.Open(t.Context(), dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close() //nolint:errcheck // only read
			env := OSEnv()
			both[i] = &catter{env: env, snap: snap}
		}
		sp := both[0].snap.Savepoint
		states, err := both[0].catStates(both[0].env, sp, sp)
		if err != nil {
			t.Fatal(err)
		}
		here, there := both[0].readers(true), both[1].readers(true)
		for _, st := range states {
			for i := range st.parts {
				part := &st.parts[i]
				for u, err := range work.Elements(t.Context(), work.Unit{Job: work.ReadElements, Handle: part.handle, State: part.state}, part.h, 1<<12, 50) {
					if err != nil {
						t.Fatal(err)
					}
					sent, err := work.Decode(u.Append(nil))
					if err != nil {
						t.Fatal(err)
					}
					a, err1 := here.run(context.Background(), u)
					b, err2 := there.run(context.Background(), sent)
					if fmt.Sprint(err1) != fmt.Sprint(err2) || len(a.lines) != len(b.lines) || fmt.Sprint(a.unknown) != fmt.Sprint(b.unknown) {
						t.Fatalf("%s: %+v: %d lines, %v; elsewhere %d, %v", dir, u, len(a.lines), err1, len(b.lines), err2)
					}
					for k := range a.lines {
						if !bytes.Equal(a.lines[k], b.lines[k]) {
							t.Fatalf("%s: %s, elsewhere %s", dir, a.lines[k], b.lines[k])
						}
					}
					units, lines = units+1, lines+len(a.lines)
				}
			}
		}
	}
	t.Logf("%d units, %d lines", units, lines)
	if units == 0 || lines <= units {
		t.Error("too little was compared")
	}
}
