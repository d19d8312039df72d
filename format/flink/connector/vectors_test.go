package connector_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestVectors: what the serializers of connectors wrote is read as what it says, and
// written as the same bytes.
func TestVectors(t *testing.T) {
	classes := map[string]int{}
	for _, line := range sptest.ConnectorVectorFiles(t) {
		for _, x := range sptest.ConnectorVectors(t, line) {
			codec, p := x.In(t)
			v, err := testenv.ReadBack(t, codec, p)
			if err != nil {
				t.Errorf("%s %s %d: %v", line, x.Class, x.Version, err)
				continue
			}
			want := sptest.CanonicalJSON(t, x.Class, x.JSON)
			if text, ok := sptest.ConnectorJSON(t, v, x.Class); !ok || text != want {
				t.Errorf("%s %s %d:\n%s\nexpected\n%s", line, x.Class, x.Version, v, x.JSON)
				continue
			}
			if x.InCoordinator(t) {
				// Of any connector, it is the same structure, or one that several could have written.
				v, err := testenv.ReadBack(t, connector.Coordinator(""), p)
				if text, ok := sptest.ConnectorJSON(t, v, x.Class); err != nil || ok && text != want {
					t.Errorf("%s %s %d: %v: %s", line, x.Class, x.Version, err, v)
				} else if why, _ := connector.NotDecoded(v); !ok && !strings.Contains(why, x.Class) {
					t.Errorf("%s %s %d: not decoded: %s", line, x.Class, x.Version, why)
				}
			}
			classes[x.Class]++
		}
	}
	t.Log(classes)
	if len(classes) < 20 {
		t.Error("not all classes were read")
	}
}

// TestCut: a vector that ends anywhere is an error of the right kind, or bytes that are
// not decoded.
func TestCut(t *testing.T) {
	for _, x := range append(sptest.ConnectorVectors(t, "2.3"), sptest.ConnectorVectors(t, "other")...) {
		codec, p := x.In(t)
		for n := range p {
			v, err := value.ReadAll(codec, p[:n])
			if err == nil {
				t.Errorf("%s: %d of %d bytes are read: %s", x.Class, n, len(p), v)
			}
			if !errors.Is(err, format.ErrTruncated) {
				t.Errorf("%s: %d of %d bytes: %v", x.Class, n, len(p), err)
			}
		}
		if _, err := value.ReadAll(codec, append(bytes.Clone(p), 0)); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%s: a byte more: %v", x.Class, err)
		}
	}
}

// TestFlipped: a vector in which any bit is wrong is an error, or a value that is
// written as the bytes that were read. Of a long one, 128 bytes are tried.
func TestFlipped(t *testing.T) {
	same := 0
	for _, x := range append(sptest.ConnectorVectors(t, "2.0"), sptest.ConnectorVectors(t, "other")...) {
		codec, p := x.In(t)
		for i := 0; i < len(p); i += 1 + len(p)/128 {
			for bit := range 8 {
				q := bytes.Clone(p)
				q[i] ^= 1 << bit
				if err := testenv.Agree(codec, q); err != nil {
					t.Fatalf("%s, byte %d: %v", x.Class, i, err)
				}
				if _, err := value.ReadAll(codec, q); err == nil {
					same++
				}
			}
		}
	}
	if same == 0 {
		t.Error("no value with another bit was read")
	}
}

// legacy are elements of states with their own serializers, from public snapshots of
// Flink 1.9 and 1.14 (spec flink-connector-states 5.4, 5.5, 8.1).
var legacy = []struct{ state, meta, bytes, text string }{
	{"topic-partition-offset-states", "KafkaTopicPartition", "5701d6cfec021a016162e30000000000004180", `{"@class":"KafkaTopicPartition","topic":"abc","partition":13,"offset":16768}`},
	{"state", "FlinkKafkaProducer", "01" + "01000431323334" + "0000000000000d800315" + "0000000000000063" + "00000000" + "01" + "00000001" + "000161",
		`{"@class":"TwoPhaseCommitState","pending":{"transaction":{"transactional_id":"1234","producer_id":3456,"epoch":789},"start_ms":99},"pending_commit":[],"context":{"transactional_ids":["a"]}}`},
	{"next-transactional-id-hint-v2", "FlinkKafkaProducer", "000000000000000500000002", `{"@class":"NextTransactionalIdHint","next_free_transactional_id":5,"last_parallelism":2}`},
	{"Kinesis-Stream-Shard-State", "StreamShardMetadata", "020101010100" + "15" + strings.Repeat("78", 20) + "010100" + "0c" + strings.Repeat("79", 11) + "5701adc58bea0f013938373635343332b101",
		`{"@class":"StreamShardMetadata","adjacent_parent_shard":null,"ending_hash_key":null,"ending_sequence_number":null,"parent_shard":null,"shard":"` + strings.Repeat("x", 20) + `","starting_hash_key":null,"starting_sequence_number":null,"stream":"` + strings.Repeat("y", 11) + `","sequence_number":"987654321","sub_sequence_number":-1}`},
}

// TestLegacy: elements of the old consumers and producers.
func TestLegacy(t *testing.T) {
	for _, x := range legacy {
		codec, ok := connector.Elements(x.state, []byte(x.meta))
		if !ok {
			t.Fatal(x.state)
		}
		v, err := testenv.ReadBack(t, codec, unhex(t, x.bytes))
		if err != nil || v.String() != x.text {
			t.Errorf("%s: %v: %s, expected %s", x.state, err, v, x.text)
		}
	}
	if _, ok := connector.Elements("state", []byte("org.example.Other")); ok {
		t.Error("a state of the user that is named state")
	}
}
