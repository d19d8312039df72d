// Package connector knows the names of the states in which Flink's connectors keep
// what they need after a restore. It does not decode them.
//
//	if connector.IsPositions(st.Name.String()) { … }
package connector

import "slices"

// positions are the operator states in which sources store their read positions.
var positions = []string{
	"SourceReaderState",             // all sources with the FLIP-27 interface
	"topic-partition-offset-states", // FlinkKafkaConsumer
	"Kinesis-Stream-Shard-State",    // FlinkKinesisConsumer
}

// IsPositions reports whether operator state with this name holds the read
// positions of a source in each of its splits.
func IsPositions(state string) bool { return slices.Contains(positions, state) }
