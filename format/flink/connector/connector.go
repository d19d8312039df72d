// Package connector knows the states in which connectors of Flink keep what they
// need after a restore.
package connector

import "slices"

// positions are the operator states in which sources keep how far they have read.
var positions = []string{
	"SourceReaderState",             // every source of the interface of FLIP-27
	"topic-partition-offset-states", // FlinkKafkaConsumer
	"Kinesis-Stream-Shard-State",    // FlinkKinesisConsumer
}

// IsPositions reports whether an operator state of this name holds the positions
// of a source: how far it has read of each of its splits.
func IsPositions(state string) bool { return slices.Contains(positions, state) }
