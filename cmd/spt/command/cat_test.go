package command

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/internal/ui"
)

// truth is what the subtasks of a job held, read from the running job.
type truth struct {
	Operators []struct {
		ID       string `json:"id"`
		Subtasks []struct {
			Index int32 `json:"index"`
			State map[string]struct {
				Kind     string   `json:"kind"`
				Elements []any    `json:"elements"`
				Raw      []string `json:"raw"`
				Entries  [][2]any `json:"entries"`
			} `json:"operator_state"`
			Keyed map[string]struct {
				Kind    string       `json:"kind"`
				TTL     any          `json:"ttl"`
				Entries []truthEntry `json:"entries"`
			} `json:"keyed_state"`
			Timers map[string]map[string][]truthEntry `json:"timers"`
		} `json:"subtasks"`
	} `json:"operators"`
}

// truthEntry is an entry of keyed state, or a timer. A map is one entry.
type truthEntry struct {
	KeyGroup  int32       `json:"key_group"`
	Key       any         `json:"key"`
	Namespace any         `json:"namespace"`
	Value     any         `json:"value"`
	Timestamp json.Number `json:"timestamp"`
}

// spot is a state in one subtask.
type spot struct {
	id, state string
	subtask   int32
}

type spotLines struct {
	kind  string
	lines []report.CatLine
}

// catAll runs cat and gathers its lines by the state and subtask they are of.
func catAll(t *testing.T, args ...string) map[spot]*spotLines {
	t.Helper()
	var out, errs bytes.Buffer
	env := OSEnv()
	env.Stdout, env.Stderr, env.Getenv = &out, &errs, func(string) string { return "" }
	if code := Main(t.Context(), append([]string{"cat"}, args...), env); code != 0 {
		t.Fatalf("%q: exit %d, %s", args, code, errs.String())
	}
	all := map[spot]*spotLines{}
	d := json.NewDecoder(&out)
	d.UseNumber()
	d.DisallowUnknownFields()
	for {
		var l report.CatLine
		if err := d.Decode(&l); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		at := spot{l.ID, l.State, l.Subtask}
		s := all[at]
		if s == nil {
			s = &spotLines{kind: l.Kind}
			all[at] = s
		}
		if l.KeyGroup == nil && l.Index != int64(len(s.lines)) || l.Kind != s.kind {
			t.Fatalf("%q: %v: line %d is index %d, of %s", args, at, len(s.lines), l.Index, l.Kind)
		}
		s.lines = append(s.lines, l)
	}
}

// same reports whether a value of cat is one of the truth, in which long byte arrays
// are digests and numbers may be written in another way.
func same(got, want any) bool {
	switch want := want.(type) {
	case json.Number:
		g, ok := got.(json.Number)
		if !ok {
			return false
		}
		a, ok1 := new(big.Rat).SetString(g.String())
		b, ok2 := new(big.Rat).SetString(want.String())
		return ok1 && ok2 && a.Cmp(b) == 0
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(g, want, same)
	case map[string]any:
		g, ok := got.(map[string]any)
		if digest, is := want["digest"].(string); ok && is {
			p, err := hex.DecodeString(fmt.Sprint(g["hex"]))
			return err == nil && len(g) == 1 && digestOf(p) == digest
		}
		if text, is := want["hex"].(string); ok && is && g["@class"] == "NumberSequenceSplit" {
			return splitBytes(g) == text
		}
		if !ok || len(g) != len(want) {
			return false
		}
		for k, v := range want {
			if e, ok := g[k]; !ok || !same(e, v) {
				return false
			}
		}
		return true
	}
	return got == want
}

// splitBytes returns in hexadecimal how Flink stores a split of a sequence of numbers,
// which the truth has as bytes: its version and length, and then the id and two longs.
func splitBytes(split map[string]any) string {
	id := fmt.Sprint(split["id"])
	p := binary.BigEndian.AppendUint16(nil, uint16(len(id)))
	p = append(p, id...)
	for _, name := range []string{"from", "to"} {
		n, err := strconv.ParseInt(fmt.Sprint(split[name]), 10, 64)
		if err != nil {
			return err.Error()
		}
		p = binary.BigEndian.AppendUint64(p, uint64(n))
	}
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 1), uint32(len(p)))
	return hex.EncodeToString(append(head, p...))
}

func digestOf(p []byte) string {
	return fmt.Sprintf("%d bytes, sha256 %x", len(p), sha256.Sum256(p))
}

type catCounts struct{ snapshots, states, elements, entries, keyed, timers int }

// judgeCat holds all that cat prints of a snapshot against its truth.
func judgeCat(t *testing.T, n *catCounts, snapshot, truthFile string) {
	t.Helper()
	data, err := os.ReadFile(truthFile)
	if err != nil {
		t.Fatal(err)
	}
	var want truth
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		t.Fatal(err)
	}
	n.snapshots++
	values, stored := catAll(t, snapshot, "--format", "hex"), catAll(t, snapshot, "--format", "hex", "--raw")
	for _, op := range want.Operators {
		for _, sub := range op.Subtasks {
			for name, st := range sub.State {
				at := spot{op.ID, name, sub.Index}
				n.states++
				got, raw := values[at], stored[at]
				delete(values, at)
				delete(stored, at)
				if len(st.Elements)+len(st.Entries) == 0 {
					if got != nil {
						t.Errorf("%s: %v has lines, and no element", snapshot, at)
					}
					continue
				}
				if got == nil || raw == nil || got.kind != st.Kind {
					t.Errorf("%s: %v: %+v, of a %s", snapshot, at, got, st.Kind)
					continue
				}
				if st.Kind == "broadcast" {
					judgeEntries(t, n, snapshot, at, got.lines, st.Entries)
					if len(raw.lines) != 1 || raw.lines[0].Hex == "" {
						t.Errorf("%s: %v: with --raw %+v", snapshot, at, raw.lines)
					}
					continue
				}
				n.elements += len(st.Elements)
				if len(got.lines) != len(st.Elements) || len(raw.lines) != len(st.Raw) {
					t.Errorf("%s: %v: %d lines, %d with --raw, for %d elements", snapshot, at, len(got.lines), len(raw.lines), len(st.Elements))
					continue
				}
				for i, e := range st.Elements {
					if !same(got.lines[i].Value, e) {
						t.Errorf("%s: %v: element %d is %v, not %v", snapshot, at, i, got.lines[i].Value, e)
					}
					p, err := hex.DecodeString(raw.lines[i].Hex)
					if err != nil || int64(len(p)) != got.lines[i].Size || raw.lines[i].Hex != st.Raw[i] && digestOf(p) != st.Raw[i] {
						t.Errorf("%s: %v: element %d is stored as %s, %d bytes, not %s", snapshot, at, i, raw.lines[i].Hex, got.lines[i].Size, st.Raw[i])
					}
				}
			}
		}
	}
	for _, op := range want.Operators {
		for _, sub := range op.Subtasks {
			for name, st := range sub.Keyed {
				at := spot{op.ID, name, sub.Index}
				n.keyed += judgeKeyed(t, snapshot, at, values[at], st.Kind, st.Entries)
				delete(values, at)
			}
			for service, kinds := range sub.Timers {
				for kind, timers := range kinds {
					at := spot{op.ID, "_timer_state/" + kind + "_" + service, sub.Index}
					n.timers += judgeKeyed(t, snapshot, at, values[at], "timers", timers)
					delete(values, at)
				}
			}
		}
	}
	for at := range values {
		t.Errorf("%s: %v is printed, and was not there", snapshot, at)
	}
}

// judgeKeyed compares the entries of a keyed state in a subtask, which are in any order.
// In unaligned checkpoints the truth is what a job held after it had processed in-flight
// data.
func judgeKeyed(t *testing.T, snapshot string, at spot, got *spotLines, kind string, want []truthEntry) int {
	t.Helper()
	if strings.Contains(snapshot, "unaligned") || strings.Contains(snapshot, "sp-005") {
		return 0
	}
	var left []truthEntry
	if got != nil {
		left = gathered(got.lines)
		if got.kind != kind {
			t.Errorf("%s: %v: kind %s, not %s", snapshot, at, got.kind, kind)
		}
	}
	for _, e := range want {
		i := slices.IndexFunc(left, func(l truthEntry) bool {
			return l.KeyGroup == e.KeyGroup && same(l.Key, e.Key) && same(l.Namespace, e.Namespace) && l.Timestamp == e.Timestamp && sameEntries(kind, l.Value, e.Value)
		})
		if i < 0 {
			t.Errorf("%s: %v: no entry %v", snapshot, at, e)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		t.Errorf("%s: %v: entries that were not there: %v", snapshot, at, left)
	}
	return len(want)
}

// gathered returns lines as truth.json has them: the entries of a map are one.
func gathered(lines []report.CatLine) (all []truthEntry) {
	maps := map[string]int{}
	for _, l := range lines {
		v := withTTL(l.TTL, l.Value)
		if times, ok := l.TTL.([]any); ok {
			list := slices.Clone(l.Value.([]any))
			for i := range list {
				list[i] = withTTL(times[i], list[i])
			}
			v = list
		}
		e := truthEntry{KeyGroup: *l.KeyGroup, Key: l.Key, Namespace: l.Namespace, Value: v}
		if l.Time != nil {
			e.Timestamp, e.Value = json.Number(strconv.FormatInt(*l.Time, 10)), nil
		}
		if l.Kind == "map" {
			of := fmt.Sprint(l.Key, l.Namespace)
			if i, ok := maps[of]; ok {
				all[i].Value = append(all[i].Value.([]any), []any{l.UserKey, v})
				continue
			}
			maps[of] = len(all)
			e.Value = []any{[]any{l.UserKey, v}}
		}
		all = append(all, e)
	}
	return all
}

// withTTL returns a value with the time of its last update, as truth.json has it.
func withTTL(at, v any) any {
	if null, ok := v.(map[string]any); ok && len(null) == 1 && null["@null"] != nil {
		v = nil
	}
	if at == nil {
		return v
	}
	return map[string]any{"ttl_timestamp": at, "value": v}
}

// sameEntries is same, but the entries of a map have no order.
func sameEntries(kind string, got, want any) bool {
	g, ok1 := got.([]any)
	w, ok2 := want.([]any)
	if kind != "map" || !ok1 || !ok2 || len(g) != len(w) {
		return same(got, want)
	}
	left := slices.Clone(g)
	for _, e := range w {
		i := slices.IndexFunc(left, func(l any) bool { return same(l, e) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

// judgeEntries compares the entries of a map, which have no order.
func judgeEntries(t *testing.T, n *catCounts, snapshot string, at spot, lines []report.CatLine, want [][2]any) {
	t.Helper()
	n.entries += len(want)
	left := slices.Clone(lines)
	for _, e := range want {
		i := slices.IndexFunc(left, func(l report.CatLine) bool { return same(l.Key, e[0]) && same(l.Value, e[1]) })
		if i < 0 {
			t.Errorf("%s: %v: no entry %v", snapshot, at, e)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		t.Errorf("%s: %v: entries that are not in the map: %v", snapshot, at, left)
	}
}

// description finds the _metadata below a folder.
func description(t *testing.T, dir string) string {
	t.Helper()
	found := ""
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "_metadata" {
			found = p
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("no _metadata in %s: %v", dir, err)
	}
	return found
}

// TestCatTellsTheTruth: of every small savepoint cat prints what its subtasks
// held: the same states, elements and bytes, in order.
func TestCatTellsTheTruth(t *testing.T) {
	const dir = "../../../testdata/savepoints"
	files, err := filepath.Glob(filepath.Join(dir, "*.truth.json"))
	if err != nil || len(files) < 11 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var n catCounts
	for _, f := range files {
		judgeCat(t, &n, description(t, strings.TrimSuffix(f, ".truth.json")), f)
	}
	// The same as .spt files.
	judgeCat(t, &n, filepath.Join(dir, "sp-012.spt"), filepath.Join(dir, "sp-001.truth.json"))
	judgeCat(t, &n, filepath.Join(dir, "sp-013.spt"), filepath.Join(dir, "sp-003.truth.json"))
	t.Logf("%+v", n)
	if n.elements < 500 || n.entries < 20 || n.keyed < 100 || n.timers < 20 {
		t.Errorf("%+v: hardly anything was compared", n)
	}
}

// TestCatTellsTheTruthOfTheCorpus does so for all snapshots of known content.
func TestCatTellsTheTruthOfTheCorpus(t *testing.T) {
	var n catCounts
	for _, dir := range testenv.KnownDirectories(t) {
		judgeCat(t, &n, description(t, filepath.Join(dir, "savepoint")), filepath.Join(dir, "truth.json"))
	}
	t.Logf("%+v", n)
}

// TestValuesAsJSON: strings and bytes are safe to print; the rest is for package
// value to test.
func TestValuesAsJSON(t *testing.T) {
	pair := value.List([]value.Value{value.Null(), value.Bytes([]byte{0, 0xff})})
	for _, tt := range []struct {
		v    value.Value
		want string
	}{
		{value.String("a\"b\x1b\u202e"), `"a\"b\u001b\u202e"`}, {value.Bytes([]byte{0, 0xff}), `{"base64":"AP8="}`}, {value.Bytes(nil), `{"base64":""}`},
		{pair, `[null,{"base64":"AP8="}]`}, {record("b", value.Int(1), "a\n", pair), `{"b":1,"a\n":[null,{"base64":"AP8="}]}`},
		{value.Map([]value.Value{value.Int(1), value.String("x"), value.Null(), value.Bytes([]byte("a"))}), `[[1,"x"],[null,{"base64":"YQ=="}]]`},
	} {
		got := string(report.AppendValue(nil, tt.v, ui.FormatAuto))
		if got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("%v: %s, not %s", tt.v, got, tt.want)
		}
	}
	for f, want := range map[ui.Format]string{ui.FormatHex: `{"hex":"41ff"}`, ui.FormatText: `{"text":"A\\xff"}`, ui.FormatBase64: `{"base64":"Qf8="}`} {
		if got := string(report.AppendValue(nil, value.Bytes([]byte("A\xff")), f)); got != want {
			t.Errorf("%v: %s, not %s", f, got, want)
		}
	}
}

// record makes a record of names and values.
func record(fields ...any) value.Value {
	shape, values := &value.Shape{}, []value.Value(nil)
	for i := 0; i < len(fields); i += 2 {
		shape.Names, values = append(shape.Names, fields[i].(string)), append(values, fields[i+1].(value.Value))
	}
	return value.Record(shape, values)
}

// TestCatFilter: what --where can ask of values.
func TestCatFilter(t *testing.T) {
	st := &catState{op: &format.Operator{}, label: "sink", name: "s", kind: "list"}
	holds := func(expression string, it *catItem) (bool, error) {
		t.Helper()
		f, err := newCatFilter(expression)
		if err != nil {
			t.Fatal(err)
		}
		it.part = &catPart{subtask: 3, h: &format.OperatorHandle{Codec: format.CodecFlink}}
		return f.holds(&catter{env: OSEnv()}, st, it)
	}
	for _, tt := range []struct {
		expression string
		it         catItem
		want       bool
	}{
		{`operator == "sink" and state == "s" and kind == "list" and subtask == 3 and index == 7 and size == 2`, catItem{index: 7, stored: []byte("xx")}, true},
		{`size < 1 * KiB and id startsWith "00"`, catItem{}, true},
		{`value > 5`, catItem{value: value.Int(6)}, true}, {`value > 5`, catItem{value: value.Int(5)}, false}, {`value == 6`, catItem{value: value.Int(6)}, true},
		{`value in [1, 6]`, catItem{value: value.Int(6)}, true}, {`value in ["a"]`, catItem{value: value.String("a")}, true},
		{`value > 1.25`, catItem{value: value.Float32(math.Float32bits(1.5))}, true}, {`value == nil`, catItem{}, true}, {`value == nil`, catItem{value: value.Int(0)}, false},
		{`value[0] == "k" and value[1] == 2`, catItem{value: value.List([]value.Value{value.String("k"), value.Int(2)})}, true},
		{`value.name == "x"`, catItem{value: record("name", value.String("x"))}, true},
		{`value.a == 1 and value["b c"] == 2`, catItem{value: value.Map([]value.Value{value.String("a"), value.Int(1), value.String("b c"), value.Int(2)})}, true},
		{`value.none == nil`, catItem{value: value.Map([]value.Value{value.String("a"), value.Int(1)})}, true}, {`value?.none == nil and not ("none" in value)`, catItem{value: record("name", value.String("x"))}, true},
		{`value.right == nil`, catItem{value: record("left", value.String("x"))}, true}, {`value.extra == nil`, catItem{value: record("name", value.String("x")).WithClass("Sub")}, true},
		{`value[0].name == "x" and any(value, .name == "y")`, catItem{value: value.List([]value.Value{record("name", value.String("x")), record("name", value.String("y"))})}, true},
		{`value[0][1] == "x"`, catItem{value: value.Map([]value.Value{value.Int(1), value.String("x")})}, true},
		{`value contains "\xff"`, catItem{value: value.Bytes([]byte("a\xffb"))}, false}, {`len(value) == 3 and value contains "a"`, catItem{value: value.Bytes([]byte("a\xffb"))}, true},
		{`value == 18446744073709551615 and value > 18446744073709551614`, catItem{value: value.Uint(math.MaxUint64)}, true}, {`value == 9007199254740993`, catItem{value: value.Int(9007199254740992)}, false},
		{`value == 19.9 and value < 19.90000000000000000001`, catItem{value: value.Decimal([]byte{0x07, 0xc6}, 2)}, true},
		{`key == "owner" and value == 0`, catItem{key: value.String("owner"), value: value.Int(0)}, true},
		{`value == "1180591620717411303424"`, catItem{value: value.BigInt([]byte("\x40\x00\x00\x00\x00\x00\x00\x00\x00"))}, true},
	} {
		if got, err := holds(tt.expression, &tt.it); err != nil || got != tt.want {
			t.Errorf("%s of %v: %v, %v", tt.expression, tt.it.value, got, err)
		}
	}
	if _, err := holds(`value > 5`, &catItem{value: value.String("six")}); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "sink/s, subtask 3, index 0") {
		t.Errorf("%v", err)
	}
	// A field that a record has not is a misspelled one.
	for _, wrong := range []string{`value.nope == "x"`, `value.nope != "x"`, `value["nope"] == nil`, `any([value], .nope == nil)`, `not (value.inner.nope == 1)`} {
		object := record("name", value.String("x"), "inner", record("name", value.String("x")))
		if _, err := holds(wrong, &catItem{value: object}); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "no field nope; available: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	for _, bad := range []string{"", "size >", "size", "nothing == 1", `size == "a"`} {
		if _, err := newCatFilter(bad); exitCode(err) != exitUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestCatIsStreamed: memory does not follow the number of elements.
func TestCatIsStreamed(t *testing.T) {
	testenv.Long(t, "writes 100 MB")
	file := bigSavepoint(t, 100)
	var peak uint64
	var writes, lines int
	env := OSEnv()
	env.Getenv = func(string) string { return "" }
	env.Stdout = writerFunc(func(p []byte) (int, error) {
		lines += bytes.Count(p, []byte("\n"))
		if writes++; writes%20 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
		return len(p), nil
	})
	if code := Main(t.Context(), []string{"cat", file, "--where", "size > 0"}, env); code != 0 || lines != 1_000_000 || peak == 0 || peak > 16<<20 {
		t.Errorf("exit %d, %d lines, %d bytes of heap", code, lines, peak)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// bigSavepoint writes a savepoint of 10,000 elements of 100 bytes a subtask.
func bigSavepoint(t testing.TB, subtasks int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "_metadata")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := sptest.WriteUnion(w, sptest.UnionOptions{Subtasks: subtasks, Elements: 10_000, ElementSize: 100, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}
