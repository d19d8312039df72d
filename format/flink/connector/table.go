package connector

import (
	"bytes"
	"slices"

	"github.com/savepoint-tools/spt/format/value"
)

// Wire names: never change.
const (
	sourceReaderState = "SourceReaderState"
	legacyKafkaState  = "topic-partition-offset-states"
	legacyKinesis     = "Kinesis-Stream-Shard-State"
	writerState       = "writer_raw_states"
	committerState    = "streaming_committer_raw_states"
	twoPhaseState     = "state"
	bucketStates      = "bucket-states"
	icebergState      = "iceberg-files-committer-state"
	debeziumState     = "offset-states"
	kafkaHintState    = "next-transactional-id-hint-v2"
)

// splits are the splits of sources of the FLIP-27 interface, in SourceReaderState.
var splits = concat(
	kafkaSplits,
	versions("Kafka (dynamic)", 1, 2, dynamicKafkaSplit),
	fileSplits,
	one("NumberSequenceSource", 1, numberSplit(1)),
	one("HybridSource", 0, hybridSplit(0)),
	kinesisSplits,
	dynamoSplits,
	versions("Pulsar", 0, 2, pulsarSplit),
	icebergSplits,
	one("Paimon", 1, paimonSplit(1)),
	mysqlSplits,
	baseSplits,
)

// enumerators are the states of the enumerators of these sources, in the state of the
// coordinator.
var enumerators = concat(
	kafkaEnumerators,
	versions("Kafka (dynamic)", 1, 3, dynamicKafkaEnumerator),
	one("FileSource", 1, fileEnumerator(1)),
	one("NumberSequenceSource", 1, numberEnumerator(1)),
	one("HybridSource", 0, hybridEnumerator(0)),
	versions("Kinesis", 0, 1, kinesisEnumerator),
	one("DynamoDB Streams", 0, dynamoEnumerator(0)),
	versions("Pulsar", 1, 3, pulsarEnumerator),
	versions("Iceberg", 1, 2, icebergEnumerator),
	one("Paimon", 1, paimonEnumerator(1)),
	versions(mysqlCDC.connector, 1, mysqlCDC.enumerator, mysqlCDC.enumeratorOf),
	versions(baseCDC.connector, 1, baseCDC.enumerator, baseCDC.enumeratorOf),
)

type (
	allSplits      struct{}
	allEnumerators struct{}
)

func (allSplits) candidates() candidates      { return splits }
func (allEnumerators) candidates() candidates { return enumerators }

// committers are the states of committers, in streaming_committer_raw_states. Paimon
// stores its committables without a collector.
var committers = concat(collectors, globalCollectors, versions("Paimon", 1, 5, paimonManifest), one("Paimon", 1, paimonWrapped))

// state is an operator state of a known name.
type state struct {
	name       string
	connector  string // of states with a name of their own; "": see known
	of         layout
	known      candidates // what of can hold, if it is a frame
	serializer string     // text in the serializer snapshots of the state
	what       string     // see What
	positions  bool       // of a source
	commits    bool       // transactions or committables that a restore commits or aborts
}

// byteArraySerializer writes the elements of states of bytes.
const byteArraySerializer = "BytePrimitiveArraySerializer"

// byteArray is an element that Flink stores as a byte array with its own length around
// a frame.
func byteArray(what string, known candidates) layout { return inBytes{frame{what, known}} }

// states is the table: the operator states of connectors.
var states = []state{
	{name: sourceReaderState, what: "splits of a source", serializer: byteArraySerializer, of: byteArray("split", splits), known: splits, positions: true},
	{name: legacyKafkaState, what: "positions of FlinkKafkaConsumer", connector: "FlinkKafkaConsumer", serializer: "KafkaTopicPartition", of: legacyKafkaPosition{}, positions: true},
	{name: legacyKinesis, what: "positions of FlinkKinesisConsumer", connector: "FlinkKinesisConsumer", serializer: "StreamShardMetadata", of: legacyKinesisPosition{}, positions: true},
	{name: debeziumState, what: "position of DebeziumSourceFunction", connector: "DebeziumSourceFunction", serializer: byteArraySerializer, of: debeziumOffset, positions: true},
	{name: writerState, what: "writer state of a sink", serializer: byteArraySerializer, of: byteArray("writer state", writers), known: writers, commits: true},
	{name: committerState, what: "committables of a sink", serializer: byteArraySerializer, of: byteArray("committer state", committers), known: committers, commits: true},
	{name: twoPhaseState, what: "transactions of FlinkKafkaProducer", connector: "FlinkKafkaProducer", serializer: "FlinkKafkaProducer", of: kafkaTransactionsEither{}, commits: true},
	{name: kafkaHintState, what: "next transactional id of FlinkKafkaProducer", connector: "FlinkKafkaProducer", serializer: "FlinkKafkaProducer", of: kafkaHint},
	{name: bucketStates, what: "buckets of StreamingFileSink", serializer: byteArraySerializer, of: byteArray("bucket state", buckets), known: buckets, commits: true},
	{name: "remaining_requests_raw_state", what: "compaction requests of a file sink", serializer: byteArraySerializer, of: byteArray("requests", requests), known: requests, commits: true},
	{name: "remaining_compact_commit_raw_state", what: "committables of a file sink", serializer: byteArraySerializer, of: byteArray("committable", fileCommittables), known: fileCommittables, commits: true},
	{name: icebergState, what: "files of an Iceberg sink", connector: "Iceberg (FlinkSink)", serializer: "SortedMapSerializer", of: icebergCheckpoints, commits: true},
}

var (
	buckets  = versions("StreamingFileSink", 1, 2, fileBucket("BucketState"))
	requests = one("FileSink", 1, remainingRequests(1))

	debeziumOffset = fields("DebeziumOffset", field{"offset", textOf})
)

func stateOf(name string) *state {
	i := slices.IndexFunc(states, func(s state) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return &states[i]
}

// Knows reports whether a state of a connector has this name.
func Knows(name string) bool { return stateOf(name) != nil }

// IsPositions reports whether operator state with this name holds the read positions
// of a source.
func IsPositions(name string) bool {
	s := stateOf(name)
	return s != nil && s.positions
}

// IsCommits reports whether operator state with this name holds transactions or files
// that a restore commits or aborts.
func IsCommits(name string) bool {
	s := stateOf(name)
	return s != nil && s.commits
}

// Elements returns the codec of the stored elements of the operator state with this
// name, and whether it is a state of a connector: meta is the state meta info with its
// serializer snapshots, which differ for a state of the user that has the same name.
//
// A value is a record with the class of what the connector stores, such as
// KafkaPartitionSplit. A structure of an unknown connector or version, or one that
// several connectors could have written, is a record of its version, the reason why it
// is not decoded, and its bytes.
func Elements(name string, meta []byte) (c value.Codec, ok bool) {
	s := stateOf(name)
	if s == nil || !bytes.Contains(meta, []byte(s.serializer)) {
		return nil, false
	}
	return exported{s.of}, true
}

// What returns what a state of a connector holds, for users: "splits of a source". It is
// "" for a state that is not one of a connector; see [Elements].
func What(name string, meta []byte) string {
	s := stateOf(name)
	if s == nil || !bytes.Contains(meta, []byte(s.serializer)) {
		return ""
	}
	return s.what
}

// Structure is a row of the table of connectors: a structure and its versions.
type Structure struct {
	Connector string
	Class     string
	State     string // operator state that holds it; "": state of the coordinator
	Versions  []int32
}

// Structures returns the table of connectors, in a fixed order. Each structure is read
// and written.
func Structures() (all []Structure) {
	add := func(state string, known candidates) {
		for _, c := range known {
			i := slices.IndexFunc(all, func(s Structure) bool {
				return s.Connector == c.connector && s.Class == c.body.class && s.State == state
			})
			if i < 0 {
				i = len(all)
				all = append(all, Structure{Connector: c.connector, Class: c.body.class, State: state})
			}
			if !slices.Contains(all[i].Versions, c.version) {
				all[i].Versions = append(all[i].Versions, c.version)
			}
		}
	}
	for _, s := range states {
		if s.connector == "" {
			add(s.name, s.known)
			continue
		}
		class := map[string]string{legacyKafkaState: "KafkaTopicPartition", legacyKinesis: "StreamShardMetadata"}[s.name]
		if r, ok := s.of.(record); ok {
			class = r.class
		}
		if s.name == twoPhaseState {
			class = kafkaTransactionsNew.class
		}
		all = append(all, Structure{Connector: s.connector, Class: class, State: s.name})
	}
	add("", enumerators)
	add(committerState+", in a committer", committables)
	return all
}

// States returns the names of the states of connectors.
func States() (all []string) {
	for _, s := range states {
		all = append(all, s.name)
	}
	return all
}
