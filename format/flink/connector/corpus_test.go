package connector_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
)

// TestCorpus: the states of connectors in real snapshots are read, and written as the
// same bytes.
func TestCorpus(t *testing.T) {
	counts := map[string]int{}
	files, kafka, present := 0, false, false
	for _, dir := range testenv.Snapshots(t) {
		snap, err := reader.Open(t.Context(), dir, nil)
		if err != nil {
			continue
		}
		found := false
		present = present || strings.Contains(filepath.Base(dir), "kafka-source")
		for _, op := range snap.Operators {
			if op.Coordinator != nil {
				found = true
				p := sptest.Bytes(t, snap.Source(), op.Coordinator)
				v, err := testenv.ReadBack(t, connector.Coordinator(""), p)
				if err != nil {
					t.Errorf("%s: coordinator % x: %v", dir, p, err)
					continue
				}
				if class := v.At(1).Class(); class != "" {
					counts[class]++
				} else {
					if !connector.IsEmpty(v) {
						t.Errorf("%s: %s", dir, v.At(1))
					}
					counts["coordinators without a split"]++
				}
			}
			for _, sub := range op.Subtasks {
				if sub.Managed == nil {
					continue
				}
				flink, err := snap.Codec(sub.Managed.Codec)
				if err != nil {
					t.Fatal(err)
				}
				metas, err := flink.Describe(t.Context(), snap.Source(), sub.Managed)
				if err != nil {
					continue // of another test
				}
				for _, st := range metas {
					codec, ok := connector.Elements(st.Name.String(), st.Envelope)
					if !ok {
						continue
					}
					err = format.EachElement(t.Context(), snap.Source(), flink, sub.Managed, st.Name.String(), func(e format.Element) error {
						found = true
						v, err := testenv.ReadBack(t, codec, e.Value)
						if err != nil {
							t.Errorf("%s: %s: % x: %v", dir, st.Name, e.Value, err)
							return nil
						}
						if why, undecoded := connector.NotDecoded(v); undecoded && !connector.IsCommits(st.Name.String()) {
							t.Errorf("%s: %s: %s: %s", dir, st.Name, why, v)
						} // sinks of Flink's own tests have committables of their own
						kafka = kafka || v.Class() == "KafkaPartitionSplit"
						counts[st.Name.String()+" "+v.Class()]++
						return nil
					})
					if err != nil {
						t.Errorf("%s: %s: %v", dir, st.Name, err)
					}
				}
			}
		}
		if found {
			files++
		}
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
	if kafka != present {
		t.Errorf("Kafka splits found: %v, snapshots of Kafka sources in the corpus: %v", kafka, present)
	}
	t.Logf("%d real snapshots with states of connectors: %v", files, counts)
}

// TestLegacyCorpus: elements of the old Kafka and Kinesis consumers in the states of
// single operators, which are not snapshots: wherever the bytes of an element begin, its
// cached hash proves it.
func TestLegacyCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Corpus(t), "operator-snapshots", "*"))
	if err != nil {
		t.Fatal(err)
	}
	testenv.Found(t, "operator snapshots", len(files), testenv.Manifest(t).OperatorSnapshots)
	counts := map[string]int{}
	kafka, kinesis := 0, 0
	for _, file := range files {
		name := filepath.Base(file)
		var state, meta string
		switch {
		case strings.HasPrefix(name, "kafka-consumer"):
			state, meta = "topic-partition-offset-states", "KafkaTopicPartition"
			kafka++
		case strings.HasPrefix(name, "kinesis"):
			state, meta = "Kinesis-Stream-Shard-State", "StreamShardMetadata"
			kinesis++
		default:
			continue
		}
		codec, ok := connector.Elements(state, []byte(meta))
		if !ok {
			t.Fatal(state)
		}
		p, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for at := range p {
			v, n, err := codec.Read(p[at:])
			if err != nil || len(connector.Positions(v)) != 1 {
				continue
			}
			if err := testenv.Agree(codec, p[at:at+n]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			counts[state]++
		}
	}
	t.Logf("%d states of the Kafka consumer, %d of the Kinesis consumer: %v", kafka, kinesis, counts)
	testenv.Some(t, "elements of FlinkKafkaConsumer", counts["topic-partition-offset-states"], kafka > 0)
	testenv.Some(t, "elements of FlinkKinesisConsumer", counts["Kinesis-Stream-Shard-State"], kinesis > 0)
}
