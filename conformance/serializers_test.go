package conformance

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
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

var update = flag.Bool("update", false, "write the vectors of hash codes and of Kryo")

// TestHashesAreFlinks: the hash code of a key is computed from its bytes as Java
// computes it. The vectors that tests without a JVM use are those of a release.
func TestHashesAreFlinks(t *testing.T) {
	for _, version := range Versions() {
		t.Run(string(version), func(t *testing.T) {
			all, err := Use(t, version).Hashes()
			if err != nil {
				t.Fatal(err)
			}
			options := types.Options{Kryo: 5}
			if version == V1_20 {
				options.Kryo = 2
			}
			vectors := map[string]string{}
			for _, v := range all {
				vectors[string(v.Snapshot)] += fmt.Sprintf("%x %s\n", v.Bytes, v.Text)
				hash, err := types.KeyHasher(walked(t, v.Snapshot), options)
				if err != nil {
					t.Errorf("%x: %v", v.Snapshot, err)
					continue
				}
				if n, err := hash(v.Bytes); err != nil || fmt.Sprint(n) != v.Text {
					t.Errorf("%s %x: %d, not %s: %v", walked(t, v.Snapshot).Class, v.Bytes, n, v.Text, err)
				}
			}
			t.Logf("%d hash codes", len(all))
			if version != V2_3 {
				return
			}
			sameVectors(t, "hashes.txt", vectors)
		})
	}
}

// sameVectors compares the lines of snapshots with a file that tests without a JVM read.
func sameVectors(t *testing.T, name string, lines map[string]string) {
	t.Helper()
	var text strings.Builder
	for _, snapshot := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&text, "type %x\n%s", snapshot, lines[snapshot])
	}
	file := filepath.Join("..", "format", "flink", "types", "testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := os.ReadFile(file); err != nil || string(p) != text.String() {
		t.Errorf("%s has other vectors than Flink: %v", file, err)
	}
}

// TestValuesAreFlinks: values that Flink wrote are read as what they are. What spt
// writes from their JSON, and from other values of the same types, Flink reads and
// writes back.
func TestValuesAreFlinks(t *testing.T) {
	for _, version := range Versions() {
		t.Run(string(version), func(t *testing.T) {
			f := Use(t, version)
			all, err := f.Values()
			if err != nil {
				t.Fatal(err)
			}
			options := types.Options{Kryo: 5}
			if version == V1_20 {
				options.Kryo = 2
			}
			_, unread, err := f.Reread(all)
			if err != nil {
				t.Fatal(err)
			}
			notRead := 0
			var ours []SerializedValue
			kryo := map[string]string{}
			for i, v := range all {
				if bytes.Contains(v.Snapshot, []byte("KryoSerializerSnapshot")) {
					kryo[string(v.Snapshot)] += fmt.Sprintf("%x %s\n", v.Bytes, v.Text)
				}
				codec, err := types.NewCodec(walked(t, v.Snapshot), options)
				if err != nil {
					t.Errorf("%s is not decoded: %v", v.Text, err)
					continue
				}
				got, err := testenv.ReadBack(t, codec, v.Bytes)
				if err != nil {
					t.Errorf("%s: %v", v.Text, err)
					continue
				}
				text := got.String()
				if got.Kind() == value.KindBytes || got.Class() != "" {
					text = string(got.AppendJSON(nil, nil, nil))
				}
				if text != v.Text {
					t.Errorf("%s, not %s", text, v.Text)
				}
				again, err := value.FromJSON(codec, got.AppendJSON(nil, nil, nil))
				if err != nil {
					t.Errorf("%s: %v", v.Text, err)
					continue
				}
				if unread[i] != nil { // Kryo makes no immutable collections
					notRead++
					continue
				}
				more := 20
				for _, class := range formed {
					if bytes.Contains(v.Snapshot, []byte(class)) || strings.HasPrefix(again.Class(), class) {
						more = 1
					}
				}
				for n := range more {
					p, err := codec.Append(nil, again)
					if err != nil {
						t.Errorf("%s: %v", again, err)
						break
					}
					ours = append(ours, SerializedValue{v.Snapshot, p, string(again.AppendJSON(nil, nil, nil))})
					again = another(codec, got, uint64(n))
				}
			}
			if file := map[Version]string{V1_20: "kryo2.txt", V2_3: "kryo5.txt"}[version]; file != "" {
				sameVectors(t, file, kryo)
			}
			written, refused, err := f.Reread(ours)
			if err != nil {
				t.Fatal(err)
			}
			distinct := map[string]bool{}
			for i, v := range ours {
				distinct[string(v.Snapshot)+string(v.Bytes)] = true
				if refused[i] != nil {
					t.Errorf("%s: % x: %v", v.Text, v.Bytes, refused[i])
					continue
				}
				if bytes.Equal(written[i], v.Bytes) {
					continue
				}
				// A map in memory has no order, the constants of big numbers are objects
				// that are read as others, and in Kryo equal strings become references.
				codec, _ := types.NewCodec(walked(t, v.Snapshot), options)
				got, err := value.ReadAll(codec, written[i])
				want := must(value.ReadAll(codec, v.Bytes))
				same := fmt.Sprint(ordered(got)) == fmt.Sprint(ordered(want))
				if bytes.Contains(v.Snapshot, []byte("KryoSerializerSnapshot")) {
					same = slices.Equal(leaves(got), leaves(want))
				}
				if err != nil || !same {
					t.Errorf("%s: Flink reads %v, %v", v.Text, got, err)
				}
			}
			if t.Logf("%d values, of which Flink reads all but %d; %d that spt wrote, %d of them distinct", len(all), notRead, len(ours), len(distinct)); len(all) < 70 || len(distinct) < 500 || notRead > 2 {
				t.Error("that is less than there is")
			}
		})
	}
}

// formed are classes, and packages, of which not every text or number is a value.
var formed = []string{
	"java.net.URI", "java.time.ZoneRegion", "java.util.Currency", "java.util.Locale", "java.util.GregorianCalendar", "java.util.regex.Pattern", "java.util.RegularEnumSet", "java.net.InetSocketAddress",
	"java.util.concurrent.atomic.AtomicBoolean", "sun.", "org.joda.time.DateTime", "org.joda.time.Interval", "org.joda.time.UTCDateTimeZone", "org.apache.avro.generic.", "org.apache.flink.types.Row",
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ordered returns a value with its maps in the order of their keys' JSON.
func ordered(v value.Value) any {
	switch v.Kind() {
	case value.KindMap:
		m := map[string]any{}
		for i := range v.Len() {
			m[string(v.Key(i).AppendJSON(nil, nil, nil))] = ordered(v.At(i))
		}
		return m
	case value.KindList, value.KindRecord:
		var all []any
		for i := range v.Len() {
			all = append(all, ordered(v.At(i)))
		}
		return all
	}
	return string(v.AppendJSON(nil, nil, nil))
}

// leaves returns the parts of a value that have no parts, sorted, without references
// and the empty strings that may be references.
func leaves(v value.Value) (all []string) {
	if n := v.Len(); n > 0 {
		for i := range n {
			if v.Kind() == value.KindMap {
				all = append(all, leaves(v.Key(i))...)
			}
			all = append(all, leaves(v.At(i))...)
		}
	} else if text := string(v.AppendJSON(nil, nil, nil)); text != `""` && !strings.HasPrefix(v.Class(), "@reference ") {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// another returns another value of the type, by chance; v if no part of it can be
// another.
func another(c value.Codec, v value.Value, seed uint64) value.Value {
	r := rand.New(rand.NewPCG(seed, 1))
	changed := change(r, v)
	if p, err := c.Append(nil, changed); err == nil && testenv.Agree(c, p) == nil {
		return changed
	}
	return v
}

// change returns a value in which some parts are others of their kinds.
func change(r *rand.Rand, v value.Value) value.Value {
	switch v.Kind() {
	case value.KindInt:
		if bits := []int{7, 15, 31, 62}[r.IntN(4)]; r.IntN(3) == 0 {
			return value.Int(r.Int64N(1<<bits) - r.Int64N(1<<bits))
		}
	case value.KindBool:
		return value.Bool(r.IntN(2) == 0)
	case value.KindFloat32:
		return value.Float32(math.Float32bits(float32(r.NormFloat64())))
	case value.KindFloat64:
		return value.Float64(math.Float64bits(r.NormFloat64()))
	case value.KindString:
		text := []rune("abc é€𝄞\x00\"")
		var s []rune
		for range r.IntN(30) {
			s = append(s, text[r.IntN(len(text))])
		}
		if r.IntN(2) == 0 {
			return value.String(string(s)).WithClass(v.Class())
		}
	case value.KindBytes:
		p := []byte(v.Text())
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		if v.Class() == "" {
			return value.Bytes(p)
		}
	case value.KindDecimal:
		return value.Decimal([]byte{byte(1 + r.IntN(100)), byte(r.Uint32())}, v.Scale())
	case value.KindBigInt:
		return value.BigInt([]byte{byte(1 + r.IntN(100)), byte(r.Uint32())})
	case value.KindInstant:
		return value.Instant(v.Int()+int64(r.IntN(1e6)), v.Nano())
	case value.KindDateTime:
		c := v.Civil()
		c.Hour = uint8(r.IntN(24))
		return value.DateTime(c)
	case value.KindDate:
		return value.Date(int32(1900+r.IntN(300)), uint8(1+r.IntN(12)), uint8(1+r.IntN(28)))
	case value.KindTimeOfDay:
		return value.TimeOfDay(uint8(r.IntN(24)), uint8(r.IntN(60)), uint8(r.IntN(60)), v.Nano())
	case value.KindList:
		var all []value.Value
		for i := range v.Len() {
			all = append(all, change(r, v.At(i)))
		}
		return value.List(all)
	case value.KindRecord:
		var all []value.Value
		for i := range v.Len() {
			all = append(all, change(r, v.At(i)))
		}
		return value.Record(v.Shape(), all).WithClass(v.Class())
	case value.KindMap:
		var all []value.Value
		for i := range v.Len() {
			all = append(all, change(r, v.Key(i)), change(r, v.At(i)))
		}
		return value.Map(all)
	}
	return v
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
