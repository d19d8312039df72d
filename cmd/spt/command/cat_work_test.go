package command

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/writer"
)

// TestCatJobs: what cat prints, and on which errors it ends, is the same for any
// number of jobs.
func TestCatJobs(t *testing.T) {
	dirs := append(testenv.Snapshots(t), bigKeyed(t, 9_000), bigSavepoint(t, 2))
	hostile, err := filepath.Glob("../../../testdata/hostile/*")
	if err != nil || len(hostile) == 0 {
		t.Fatal(hostile, err)
	}
	compared, bytesOf, failed := 0, 0, 0
	for i, dir := range append(dirs, hostile...) {
		for k, args := range [][]string{{}, {"-o", "json"}, {"--distinct"}, {"--stats"}, {"--where", "index % 3 == 1"}, {"-o", "csv", "--raw"}, {"--limit", "5000"}, {"-o", "table"}} {
			if i != len(dirs)-1 && i != len(dirs)-2 && k > 0 && i%8 != k { // each mode with some of them
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

// bigKeyed writes a savepoint with a value for each of n keys, in three key groups of one
// subtask, so that each has several batches.
func bigKeyed(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	var rows strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, `{"operator": "many", "state": "value", "key": "user-%05d", "value": %d}`+"\n", i, i)
	}
	plan := `{"flink": "2.0", "operators": [{"uid": "many", "parallelism": 1, "max_parallelism": 3, "key": "string", "keyed": [{"name": "value", "kind": "value", "type": "long"}]}]}`
	for name, text := range map[string]string{"rows.jsonl": rows.String(), "plan.yaml": plan} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "many")
	if code, _, errs := runAll(t, []string{"create", out, "--plan", filepath.Join(dir, "plan.yaml"), "--from", filepath.Join(dir, "rows.jsonl")}); code != 0 {
		t.Fatal(code, errs)
	}
	return out
}

// cat runs cat, which must exit with a code, and returns what it prints.
func cat(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out, errs := runAll(t, append([]string{"cat"}, args...))
	if code != want {
		t.Fatalf("cat %q: exit %d, expected %d: %s", args, code, want, errs)
	}
	return out
}

// TestCatEntriesInBatches: every entry of key groups of many batches is printed once, also
// with a limit, and errors come after the entries before them.
func TestCatEntriesInBatches(t *testing.T) {
	const n = 9_000
	dir := bigKeyed(t, n)
	for _, jobs := range []string{"1", "2", "8"} {
		var values []int
		var lines []string
		for line := range strings.Lines(cat(t, 0, dir, "--jobs", jobs)) {
			var e struct {
				Key   string
				Value int
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Key != fmt.Sprintf("user-%05d", e.Value) {
				t.Fatalf("%s: %v", line, err)
			}
			values, lines = append(values, e.Value), append(lines, line)
		}
		first := strings.Join(lines[:min(len(lines), 5000)], "")
		slices.Sort(values)
		if len(values) != n || values[0] != 0 || values[n-1] != n-1 || len(slices.Compact(values)) != n {
			t.Errorf("%s jobs: %d values", jobs, len(values))
		}
		if got := cat(t, 0, dir, "--jobs", jobs, "--limit", "5000"); got != first {
			t.Errorf("%s jobs: the first 5000 are others", jobs)
		}
		if got := strings.Count(cat(t, 0, dir, "--jobs", jobs, "--where", "value % 3 == 0"), "\n"); got != n/3 {
			t.Errorf("%s jobs: %d of %d values, expected a third", jobs, got, n)
		}
		// The expression fails at one value: what is in front of it was printed.
		at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"user-04500"`) })
		got := cat(t, exitUsage, dir, "--jobs", jobs, "--where", "5 % (value - 4500) < 9")
		if at < batchEntries || got != strings.Join(lines[:at], "") {
			t.Errorf("%s jobs: %d lines before an error at line %d", jobs, strings.Count(got, "\n"), at)
		}
	}
}

// TestCatUnitsRunElsewhere: units that were encoded, decoded and read from the
// snapshot opened again have the same lines.
func TestCatUnitsRunElsewhere(t *testing.T) {
	units, lines, keyed := 0, 0, 0
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
		states, err := both[0].catStates(t.Context(), sp)
		if err != nil {
			t.Fatal(err)
		}
		ignore := func([]byte, int64) error { return nil }
		here, there := both[0].readers(ignore), both[1].readers(ignore)
		compare := func(u work.Unit) {
			sent, err := work.Decode(u.Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			a, err1 := here.run(context.Background(), u)
			b, err2 := there.run(context.Background(), sent)
			var x, y catLines // an error of opening has none
			if a.lines != nil && b.lines != nil {
				x, y = *a.lines, *b.lines
			}
			if fmt.Sprint(err1) != fmt.Sprint(err2) || x.n != y.n || fmt.Sprint(a.unknown, a.notes) != fmt.Sprint(b.unknown, b.notes) || (a.lines == nil) != (b.lines == nil) {
				t.Fatalf("%s: %+v: %d lines, %v; elsewhere %d, %v", dir, u, x.n, err1, y.n, err2)
			}
			if !bytes.Equal(x.text, y.text) || int64(bytes.Count(x.text, []byte{'\n'})) != x.n {
				t.Fatalf("%s: %d lines: %s, elsewhere %s", dir, x.n, x.text, y.text)
			}
			units, lines = units+1, lines+int(x.n)
		}
		parts, _ := both[0].partsOf(states)
		for _, part := range parts {
			u := work.Unit{Job: work.ReadElements, Handle: part.handle, State: part.state}
			if part.keyed != nil {
				if part.keyed.err != nil {
					continue
				}
				keyed++
				for u := range work.KeyGroups(u, part.keyed.h, 1<<12) {
					compare(u)
				}
				continue
			}
			for u, err := range work.Elements(t.Context(), u, part.h, 1<<12, 50) {
				if err != nil {
					t.Fatal(err)
				}
				compare(u)
			}
		}
	}
	t.Logf("%d handles of keyed state", keyed)
	t.Logf("%d units, %d lines", units, lines)
	if units == 0 || keyed == 0 || lines <= keyed {
		t.Error("too little was compared")
	}
}

// bigMap copies a snapshot of real Flink whose broadcast map has its entries n times
// each, and returns how many these are.
func bigMap(t *testing.T, n int) (dir string, entries int) {
	t.Helper()
	snap := sptest.Open(t, testenv.Fixture(t, "sp-009"))
	sp, err := snap.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		return op.MapManaged(func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
			i := slices.IndexFunc(h.States, func(s format.NamedState) bool { return s.Mode == format.ModeBroadcast })
			if i < 0 || entries > 0 {
				return h, nil
			}
			// The map is the last of the stream: a count of 4 bytes, and the entries.
			p, off := sptest.Bytes(t, snap.Source(), h.Data), sptest.OffsetsOf(t, h.States[i].Offsets)[0]
			entries = int(binary.BigEndian.Uint32(p[off:])) * n
			head := binary.BigEndian.AppendUint32(bytes.Clone(p[:off]), uint32(entries))
			big := *h
			big.Data = sptest.Inline("big", string(append(head, bytes.Repeat(p[off+4:], n)...)))
			return &big, nil
		})
	})
	if err != nil || entries == 0 {
		t.Fatal(entries, err)
	}
	dir = filepath.Join(t.TempDir(), "big")
	if _, err := writer.Write(t.Context(), snap.View().With(sp), dir, nil); err != nil {
		t.Fatal(err)
	}
	return dir, entries
}

// TestCatMapIsStreamed: memory does not follow the number of entries of a broadcast
// map, and each is printed once, in order.
func TestCatMapIsStreamed(t *testing.T) {
	testenv.Long(t, "prints a million entries")
	dir, entries := bigMap(t, 400_000)
	for _, args := range [][]string{{"--jobs", "1"}, {"--jobs", "8"}, {"--jobs", "2", "--where", "value == 0"}, {"--jobs", "2", "-o", "csv"}} {
		expected := entries
		if args[len(args)-1] == "csv" {
			expected++ // names of columns
		}
		var peak uint64
		var writes, lines int
		var rest []byte
		wrong := ""
		env := OSEnv()
		env.Getenv = func(string) string { return "" }
		env.Stdout = writerFunc(func(p []byte) (int, error) {
			for line := range bytes.Lines(append(rest, p...)) {
				if rest = bytes.Clone(line); line[len(line)-1] != '\n' {
					break // the last one goes on in the next write
				}
				rest = nil
				if want := fmt.Sprintf(`"index":%d,`, lines); line[0] == '{' && !bytes.Contains(line, []byte(want)) && wrong == "" {
					wrong = string(line)
				}
				lines++
			}
			if writes++; writes%10 == 0 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
			return len(p), nil
		})
		code := Main(t.Context(), append([]string{"cat", dir, "--state", "owner", "--operator", "lists", "--subtask", "0"}, args...), env)
		t.Logf("%q: %d lines, at most %d MB in use", args, lines, peak>>20)
		if code != 0 || peak == 0 || peak > 24<<20 || lines != expected || wrong != "" {
			t.Errorf("%q: exit %d, %d lines of %d entries, %d bytes of heap, out of order: %s", args, code, lines, entries, peak, wrong)
		}
	}
}
