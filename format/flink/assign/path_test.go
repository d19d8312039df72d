package assign

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"testing"
)

// Path.hashCode as the spec gives it, B3, and of other spellings of the places.
func TestPathHash(t *testing.T) {
	for path, want := range map[string]int32{
		"file:/tmp/cp/chk-1/aaaa":       1089070724,
		"file:///tmp//cp/./chk-1/aaaa/": 1089070724,
		`FILE:/tmp/cp/x/../chk-1\aaaa`:  1089070724,
		"hdfs://nn:8020/flink/x":        306240053,
		"HDFS://NN:8020/flink/x":        306240053,
		"s3://my-bucket/a/b":            -454477399,
		"s3://my_bucket/a/b":            -1733906216,
	} {
		u, err := parsePath(path)
		if err != nil || u.hash() != want {
			t.Errorf("%s: %d, %v, want %d", path, u.hash(), err, want)
		}
	}
}

// testdata/paths.txt is new Path(text).hashCode() of Flink 2.3.0, "x" for a
// path that it refuses.
func TestPathVectors(t *testing.T) {
	f, err := os.Open("testdata/paths.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var v [2]string
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		got := "x"
		if u, err := parsePath(v[0]); err == nil {
			got = strconv.Itoa(int(u.hash()))
		}
		if got != v[1] {
			t.Errorf("%q: %s, Flink has %s", v[0], got, v[1])
		}
	}
	if n < 90 {
		t.Errorf("%d paths", n)
	}
}

// Equal for Java, equal keys; else different ones.
func TestPathKey(t *testing.T) {
	key := func(path string) string {
		u, err := parsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		return u.key()
	}
	for _, same := range [][2]string{
		{"file:/a/b", "FILE:///a//b/"},
		{"hdfs://NN:8020/a", "hdfs://nn:08020/a"},
		{"s3://b/x/../y", "s3://B/y"},
		{"hdfs://nn:/a", "hdfs://nn/a"},
	} {
		if key(same[0]) != key(same[1]) {
			t.Errorf("%s and %s are equal for Java", same[0], same[1])
		}
	}
	for _, other := range [][2]string{
		{"file:/a/b", "file:/a/B"},
		{"s3://my_bucket/a", "s3://My_Bucket/a"}, // no host: as it stands
		{"hdfs://nn:8020/a", "hdfs://nn/a"},
		{"hdfs://u@nn/a", "hdfs://nn/a"},
		{"hdfs://@nn/a", "hdfs://nn/a"},
		{"/a", "file:/a"},
	} {
		if key(other[0]) == key(other[1]) {
			t.Errorf("%s and %s are two things for Java", other[0], other[1])
		}
	}
}
