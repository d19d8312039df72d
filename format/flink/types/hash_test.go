package types_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// hashVector is a key, its serializer snapshot and its hash code, all by Flink 2.3.
type hashVector struct {
	snapshot *types.Snapshot
	key      []byte
	hash     int32
}

// hashVectors are the vectors of TestHashesAreFlinks, which makes them.
func hashVectors(t testing.TB) (all []hashVector) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "hashes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	var s *types.Snapshot
	for lines := bufio.NewScanner(f); lines.Scan(); {
		left, right, _ := strings.Cut(lines.Text(), " ")
		if left == "type" {
			p, err := hex.DecodeString(right)
			if err != nil {
				t.Fatal(err)
			}
			if s, _, err = types.Skip(p); err != nil {
				t.Fatal(err)
			}
			continue
		}
		key, err := hex.DecodeString(left)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(right, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, hashVector{s, key, int32(n)})
	}
	if len(all) < 900 {
		t.Fatalf("%d vectors", len(all))
	}
	return all
}

func TestKeyHasher(t *testing.T) {
	for _, v := range hashVectors(t) {
		hash, err := types.KeyHasher(v.snapshot, types.Options{Kryo: 5})
		if err != nil {
			t.Errorf("%s: %v", v.snapshot.Class, err)
			continue
		}
		if n, err := hash(v.key); err != nil || n != v.hash {
			t.Errorf("%s %x: %d, expected %d: %v", v.snapshot.Class, v.key, n, v.hash, err)
		}
		for _, p := range [][]byte{append(bytes.Clone(v.key), 0), v.key[:len(v.key)-1]} {
			if n, err := hash(p); !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrTruncated) {
				t.Errorf("%s: %x of key %x: %d, %v", v.snapshot.Class, p, v.key, n, err)
			}
		}
	}
}

func TestKeyHasherRefuses(t *testing.T) {
	tuple := func(class string) string {
		return composite("org.apache.flink.api.java.typeutils.runtime.TupleSerializerSnapshot", 1, utf(class), simple("Int"), simple("Int"))
	}
	for _, c := range []struct {
		name, snapshot string
		want           types.HashReason
	}{
		{"a subclass of a tuple", tuple("com.acme.Pair"), types.HashByUser},
		{"a tuple of another size", tuple("org.apache.flink.api.java.tuple.Tuple3"), types.HashByUser},
		{"an array", simpleArray("LongPrimitiveArray"), types.HashByIdentity},
		{"a list of arrays", composite("org.apache.flink.api.common.typeutils.base.ListSerializerSnapshot", 1, "", simpleArray("LongPrimitiveArray")), types.HashByIdentity},
		{"a window", utf("org.apache.flink.streaming.api.windowing.windows.TimeWindow$Serializer$TimeWindowSerializerSnapshot") + i32(3), types.HashNotKnown},
	} {
		s, _, err := types.Skip([]byte(i32(2) + c.snapshot))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		_, err = types.KeyHasher(s, types.Options{})
		var why *types.NotHashed
		if !errors.As(err, &why) || why.Reason != c.want || !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := types.KeyHasher(nil, types.Options{}); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("no snapshot: %v", err)
	}
}

// TestKeyHasherNames: the error for a type whose hash codes its bytes do not determine
// names the type, so that who changes the max parallelism sees which keys are meant.
func TestKeyHasherNames(t *testing.T) {
	for name, want := range map[string]string{
		"pojo":        "PojoSerializer of P: user code computes the hash code",
		"enum":        "EnumSerializer of E: the hash code differs between JVMs",
		"avro 2":      "AvroSerializer of R: user code computes the hash code",
		"avro 3":      "AvroSerializer of R: user code computes the hash code",
		"value":       "ValueSerializer of V: user code computes the hash code",
		"kryo":        "KryoSerializer of K: user code computes the hash code",
		"scala enum":  "ScalaEnumSerializer of E: its hash code is not known",
		"old pojo":    "PojoSerializerConfig of P: user code computes the hash code",
		"old enum":    "EnumSerializerConfig of E: the hash code differs between JVMs",
		"old kryo":    "KryoSerializerConfig of K: user code computes the hash code",
		"array data":  "ArrayDataSerializer: its hash code is not known",
		"traversable": "TraversableSerializer: its hash code is not known",
	} {
		i := slices.IndexFunc(walks, func(x struct{ name, in, want string }) bool { return x.name == name })
		s, _, err := types.Skip([]byte(walks[i].in))
		if err != nil {
			t.Fatal(err)
		}
		for _, kryo := range []int{2, 5} {
			_, err = types.KeyHasher(s, types.Options{Kryo: kryo})
			var why *types.NotHashed
			if !errors.As(err, &why) || !errors.Is(err, format.ErrUnsupported) || err.Error() != want {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
	}
}

func simpleArray(name string) string {
	return utf("org.apache.flink.api.common.typeutils.base.array."+name+"Serializer$"+name+"SerializerSnapshot") + i32(3)
}

// FuzzKeyHasher hashes keys of all types of the vectors.
func FuzzKeyHasher(f *testing.F) {
	var all []func([]byte) (int32, error)
	seen := map[*types.Snapshot]bool{}
	for _, v := range hashVectors(f) {
		if !seen[v.snapshot] {
			seen[v.snapshot] = true
			hash, err := types.KeyHasher(v.snapshot, types.Options{Kryo: 5})
			if err != nil {
				f.Fatal(err)
			}
			all = append(all, hash)
		}
		f.Add(uint8(len(all)-1), v.key)
	}
	f.Fuzz(func(t *testing.T, i uint8, key []byte) {
		hash := all[int(i)%len(all)]
		a, err := hash(key)
		if err != nil && !ours(err) && !errors.Is(err, format.ErrTruncated) {
			t.Error(err)
		}
		if b, again := hash(key); a != b || (err == nil) != (again == nil) {
			t.Errorf("%d, then %d", a, b)
		}
	})
}
