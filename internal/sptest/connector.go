package sptest

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// ConnectorVector is a structure as the serializer of a connector has written it, and
// what it says. See conformance/connectors.
type ConnectorVector struct {
	Class   string
	Version int32
	Bytes   []byte
	Text    string
}

// ConnectorVectors returns the vectors that are stored for a line of Flink.
func ConnectorVectors(t testing.TB, line string) []ConnectorVector {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.ModuleRoot(t), "format", "flink", "connector", "testdata", "vectors-"+line+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ParseConnectorVectors(string(text))
	if err != nil || len(all) < 20 {
		t.Fatalf("%d vectors: %v", len(all), err)
	}
	return all
}

// ParseConnectorVectors reads lines of class, version, bytes in hex, and text.
func ParseConnectorVectors(text string) (all []ConnectorVector, err error) {
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(parts) != 4 {
			return nil, fmt.Errorf("%d parts: %q", len(parts), line)
		}
		version, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			return nil, err
		}
		p, err := hex.DecodeString(parts[2])
		if err != nil {
			return nil, err
		}
		all = append(all, ConnectorVector{parts[0], int32(version), p, parts[3]})
	}
	return all, nil
}

// sized returns an int length and p.
func sized(p []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...) }

// Framed returns the bytes in the framing of SimpleVersionedSerialization.
func (v *ConnectorVector) Framed() []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(v.Version)), sized(v.Bytes)...)
}

// byteArrayMeta is enough of a state meta info for a state of byte arrays.
var byteArrayMeta = []byte("org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer")

// In returns the structure as Flink stores it, and the codec of that.
func (v *ConnectorVector) In(t testing.TB) (value.Codec, []byte) {
	t.Helper()
	state := "SourceReaderState"
	p := sized(v.Framed())
	switch v.Class {
	case "KafkaSourceEnumState", "NumberSequenceSplits", "PendingSplitsCheckpoint":
		return connector.Coordinator(""), append([]byte{0, 0, 0, 1}, v.Framed()...)
	case "KafkaWriterState":
		state = "writer_raw_states"
	case "KafkaCommittable":
		state = "streaming_committer_raw_states"
		// A collector of version 1: magic number, version, count, and each with its length.
		body := binary.BigEndian.AppendUint32([]byte{0xb9, 0x1f, 0x25, 0x2c}, uint32(v.Version))
		body = append(append(body, 0, 0, 0, 1), sized(v.Bytes)...)
		p = sized(append([]byte{0, 0, 0, 1}, sized(body)...))
	}
	c, ok := connector.Elements(state, byteArrayMeta)
	if !ok {
		t.Fatalf("no codec of %s", state)
	}
	return c, p
}

// ConnectorText returns what the structure of a class in v says, as the text of a
// vector. ok is false if v has no structure of the class.
func ConnectorText(v value.Value, class string) (text string, ok bool) {
	if v.Class() == class {
		return connectorTexts[class](v), true
	}
	for i := range v.Len() {
		if text, ok = ConnectorText(v.At(i), class); ok {
			return text, true
		}
	}
	return "", false
}

func field(v value.Value, name string) value.Value {
	f, _ := v.Field(name)
	return f
}

func texts(v value.Value, of func(value.Value) string) (all []string) {
	for i := range v.Len() {
		all = append(all, of(v.At(i)))
	}
	return all
}

var connectorTexts map[string]func(v value.Value) string

func init() { // the texts refer to each other
	num := func(v value.Value, name string) string { return field(v, name).String() }
	kafka := func(v value.Value) string {
		s := num(v, "topic") + "/" + num(v, "partition") + "@" + num(v, "offset")
		if stop := field(v, "stopping_offset"); !stop.IsNull() {
			s += ".." + stop.String()
		}
		return s
	}
	numbers := func(v value.Value) string { return num(v, "id") + " " + num(v, "from") + ".." + num(v, "to") }
	file := func(v value.Value) string {
		path := field(v, "path")
		uri := field(path, "path").Text()
		if host := field(path, "host"); !host.IsNull() {
			uri = "//" + host.Text() + ":" + num(path, "port") + uri
		}
		if scheme := field(path, "scheme"); !scheme.IsNull() {
			uri = scheme.Text() + ":" + uri
		}
		position := "-"
		if at := field(v, "position"); !at.IsNull() {
			position = num(at, "offset") + "+" + num(at, "records_after_offset")
		}
		return strings.Join([]string{num(v, "id"), uri, num(v, "offset"), num(v, "length"), num(v, "modification_time"), num(v, "file_size"),
			strings.Join(texts(field(v, "hosts"), value.Value.Text), "+"), position}, " ")
	}
	connectorTexts = map[string]func(v value.Value) string{
		"KafkaPartitionSplit":     kafka,
		"DynamicKafkaSourceSplit": func(v value.Value) string { return num(v, "cluster") + " " + kafka(field(v, "split")) },
		"KafkaSourceEnumState": func(v value.Value) string {
			by := map[string][]string{}
			all := field(v, "partitions")
			if all.IsNull() {
				all = field(field(v, "splits"), "splits")
			}
			for i := range all.Len() {
				e := all.At(i)
				text := num(e, "topic") + "/" + num(e, "partition")
				if split := field(e, "split"); !split.IsNull() {
					text = kafka(split)
				}
				by[num(e, "status")] = append(by[num(e, "status")], text)
			}
			list := func(status string) string {
				slices.Sort(by[status])
				return "[" + strings.Join(by[status], ", ") + "]"
			}
			return list("assigned") + " | " + list("unassigned") + " | " + num(v, "initial_discovery_finished")
		},
		"KafkaWriterState": func(v value.Value) string {
			s := num(v, "transactional_id_prefix")
			if field(v, "ownership").IsNull() {
				return s
			}
			s += " " + num(v, "owned_subtask") + "/" + num(v, "owned_subtasks") + " " + num(v, "ownership")
			for _, t := range texts(field(v, "precommitted"), func(v value.Value) string { return " " + num(v, "transactional_id") + "@" + num(v, "checkpoint") }) {
				s += t
			}
			return s
		},
		"KafkaCommittable": func(v value.Value) string {
			return num(v, "transactional_id") + " " + num(v, "producer_id") + " " + num(v, "epoch")
		},
		"NumberSequenceSplit":  numbers,
		"NumberSequenceSplits": func(v value.Value) string { return strings.Join(texts(field(v, "splits"), numbers), ", ") },
		"HybridSourceSplit": func(v value.Value) string {
			return num(v, "source") + " " + num(v, "id") + " " + kafka(field(v, "split"))
		},
		"FileSourceSplit": file,
		"PendingSplitsCheckpoint": func(v value.Value) string {
			p := field(v, "pending")
			return strings.Join(texts(field(p, "splits"), file), ", ") + " | " + strings.Join(texts(field(p, "processed_paths"), value.Value.Text), ", ")
		},
	}
}
