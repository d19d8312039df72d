package sptest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
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

// ConnectorVectorFiles returns the names of the files of vectors: the lines of Flink whose
// own connectors wrote them, and "other" connectors. See conformance/connectors.
func ConnectorVectorFiles(t testing.TB) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(connectorVectorDir(t), "vectors-*.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimPrefix(filepath.Base(file), "vectors-")
		names = append(names, strings.TrimSuffix(name, ".tsv"))
	}
	if len(names) < 4 {
		t.Fatalf("files of vectors: %q", names)
	}
	return names
}

func connectorVectorDir(t testing.TB) string {
	t.Helper()
	root := testenv.ModuleRoot(t)
	if filepath.Base(root) == "tools" { // a module in the module
		root = filepath.Dir(root)
	}
	return filepath.Join(root, "format", "flink", "connector", "testdata")
}

// ConnectorVector is a structure as the serializer of a connector has written it, and
// what it says.
type ConnectorVector struct {
	Class    string
	Version  int32 // 0 if none is stored
	Bytes    []byte
	JSON     string // as the connector's getters state it
	Artifact string // the serializer's: flink-connector-kafka-3.4.0-1.20
}

// ConnectorVectors returns the vectors of a file.
func ConnectorVectors(t testing.TB, file string) []ConnectorVector {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(connectorVectorDir(t), "vectors-"+file+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := ParseConnectorVectors(string(text))
	if err != nil || len(all) < 20 {
		t.Fatalf("%d vectors: %v", len(all), err)
	}
	return all
}

// ParseConnectorVectors reads lines of class, version, bytes in hex, JSON, and artifact.
func ParseConnectorVectors(text string) (all []ConnectorVector, err error) {
	for line := range strings.Lines(text) {
		parts := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(parts) != 5 {
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
		all = append(all, ConnectorVector{parts[0], int32(version), p, parts[3], parts[4]})
	}
	return all, nil
}

// sized returns an int length and p.
func sized(p []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...) }

// Framed returns the bytes in the framing of SimpleVersionedSerialization.
func (v *ConnectorVector) Framed() []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(v.Version)), sized(v.Bytes)...)
}

// AllConnectorSerializers is a state meta info in which every state of a connector finds
// its serializer.
const AllConnectorSerializers = "BytePrimitiveArraySerializer KafkaTopicPartition StreamShardMetadata FlinkKafkaProducer SortedMapSerializer"

// structure returns the row of the vector in the table of connectors.
func (v *ConnectorVector) structure(t testing.TB) connector.Structure {
	t.Helper()
	all := connector.Structures()
	i := slices.IndexFunc(all, func(s connector.Structure) bool { return s.Class == v.Class })
	if i < 0 {
		t.Fatalf("the table has no %s", v.Class)
	}
	return all[i]
}

// InCoordinator reports whether the structure is stored in the state of a coordinator.
func (v *ConnectorVector) InCoordinator(t testing.TB) bool { return v.structure(t).State == "" }

// In returns the structure as Flink stores it, and the codec of that. The bytes of the
// structure are the last ones.
func (v *ConnectorVector) In(t testing.TB) (value.Codec, []byte) {
	t.Helper()
	s := v.structure(t)
	p := sized(v.Framed())
	name, committable := strings.CutSuffix(s.State, ", in a committer")
	switch {
	case s.State == "":
		return connector.Coordinator(s.Connector), append([]byte{0, 0, 0, 1}, v.Framed()...)
	case committable:
		// A collector of version 1: magic number, version, count, and each with its length.
		body := binary.BigEndian.AppendUint32([]byte{0xb9, 0x1f, 0x25, 0x2c}, uint32(v.Version))
		body = append(append(body, 0, 0, 0, 1), sized(v.Bytes)...)
		p = sized(append([]byte{0, 0, 0, 1}, sized(body)...))
	case len(s.Versions) == 0: // with a serializer of its own
		p = v.Bytes
	}
	c, ok := connector.Elements(name, []byte(AllConnectorSerializers))
	if !ok {
		t.Fatalf("no codec of %s", name)
	}
	return c, p
}

// Types returns the types of what the codec of In reads.
func (v *ConnectorVector) Types(t testing.TB) *connector.Types {
	t.Helper()
	s := v.structure(t)
	if s.State == "" {
		return connector.CoordinatorTypes(s.Connector)
	}
	name, _, _ := strings.Cut(s.State, ",")
	types, ok := connector.ElementTypes(name)
	if !ok {
		t.Fatalf("no types of %s", name)
	}
	return types
}

// ConnectorJSON returns the JSON of the structure of a class in v, as [CanonicalJSON]
// writes it. ok is false if v has no structure of the class.
func ConnectorJSON(t testing.TB, v value.Value, class string) (text string, ok bool) {
	t.Helper()
	if v.Class() == class {
		return CanonicalJSON(t, class, string(v.AppendJSON(nil, nil, nil))), true
	}
	for i := range v.Len() {
		if text, ok = ConnectorJSON(t, v.At(i), class); ok {
			return text, true
		}
	}
	return "", false
}

// unordered are the structures whose parts are sets and maps of Java: the order in which
// a serializer writes them is not the order in which it reads them.
var unordered = []string{"KafkaSourceEnumState", "DynamicKafkaSourceEnumState", "HybridSourceEnumeratorState", "PulsarSourceEnumState", "RemainingRequests", "BucketState",
	"DynamoDbWriterState", "DynamicCommittable", "DynamicWriteResult"}

// CanonicalJSON returns the JSON of a structure with sorted members; lists of structures
// that are unordered are sorted too.
func CanonicalJSON(t testing.TB, class, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if slices.Contains(unordered, class) {
		sortLists(t, v)
	}
	return marshal(t, v)
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(b.String(), "\n")
}

func sortLists(t testing.TB, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for _, m := range v {
			sortLists(t, m)
		}
	case []any:
		for _, e := range v {
			sortLists(t, e)
		}
		slices.SortFunc(v, func(a, b any) int { return cmp.Compare(marshal(t, a), marshal(t, b)) })
	}
}
