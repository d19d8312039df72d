package connector_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// upper is a mask that makes names upper case and adds 1 to numbers.
type upper struct{}

func (upper) Leaf(v value.Value) (value.Value, error) { return value.Int(v.Int() + 1), nil }
func (upper) Choice(i, _ int) int                     { return i }

func (upper) Name(v value.Value) (value.Value, error) {
	return value.String(strings.ToUpper(v.Text())), nil
}

// TestMask: in what the serializers of connectors wrote, names and positions are replaced
// and nothing else; a structure that is not in the tables is refused as a whole.
func TestMask(t *testing.T) {
	masked, refused := map[string]int{}, map[string]int{}
	for _, line := range sptest.ConnectorVectorFiles(t) {
		for _, x := range sptest.ConnectorVectors(t, line) {
			codec, p := x.In(t)
			v, err := testenv.ReadBack(t, codec, p)
			if err != nil {
				t.Fatal(err)
			}
			out, err := value.Masked(codec, v, upper{})
			if errors.Is(err, format.ErrUnsupported) {
				refused[x.Class]++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			masked[x.Class]++
			if again, err := codec.Append(nil, out); err != nil || len(again) != len(p) {
				t.Errorf("%s %d: %d bytes, expected %d, %v", x.Class, x.Version, len(again), len(p), err)
			}
		}
	}
	t.Log(masked, refused)
	codec, _ := connector.Elements("SourceReaderState", []byte("BytePrimitiveArraySerializer"))
	for _, p := range []string{
		"\x00\x00\x00\x0a\x00\x00\x00\x63\x00\x00\x00\x02ab", // no known version
		"\x00\x00\x00\x02ab", // no frame
	} {
		for _, c := range []value.Codec{codec, connector.Or(codec, bytesCodec{})} {
			v, err := value.ReadAll(c, []byte(p))
			if err != nil {
				continue
			}
			if out, err := value.Masked(c, v, upper{}); !errors.Is(err, format.ErrUnsupported) {
				t.Errorf("%x: %v, %v", p, out, err)
			}
		}
	}
	for _, class := range []string{"KafkaPartitionSplit", "KafkaSourceEnumState", "KafkaWriterState", "KafkaCommittable", "FileSourceSplit"} {
		if masked[class] == 0 {
			t.Errorf("%s is refused, or has no vector", class)
		}
	}
}

// bytesCodec reads all bytes.
type bytesCodec struct{ value.Codec }

func (bytesCodec) Read(p []byte) (value.Value, int, error) { return value.Bytes(p), len(p), nil }

// TestMaskFields: field by field.
func TestMaskFields(t *testing.T) {
	for _, x := range sptest.ConnectorVectors(t, "2.0") {
		if x.Class != "KafkaPartitionSplit" {
			continue
		}
		codec, p := x.In(t)
		v, err := value.ReadAll(codec, p)
		if err != nil {
			t.Fatal(err)
		}
		out, err := value.Masked(codec, v, upper{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"topic", "partition", "offset", "stopping_offset", "version"} {
			was, ok := v.Field(name)
			is, _ := out.Field(name)
			want := was.String()
			switch {
			case name == "topic":
				want = strings.ToUpper(want)
			case strings.HasSuffix(name, "offset") && !was.IsNull() && was.Int() >= 0:
				want = value.Int(was.Int() + 1).String()
			}
			if !ok || is.String() != want {
				t.Errorf("%s: %s became %s", name, was, is)
			}
		}
	}
}
