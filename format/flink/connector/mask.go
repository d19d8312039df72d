package connector

import (
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// Mask implements [value.Masker]: names and positions are replaced, versions, indexes
// and states stay. Structures whose fields are not in the tables of this file, and those
// that are not decoded, are a format.ErrUnsupported.
func (c exported) Mask(v value.Value, m value.Mask) (value.Value, error) {
	return mask(v, m, "")
}

// Mask implements [value.Masker] for elements that the connector decodes: their bytes
// have a structure, which their serializer does not know.
func (e either) Mask(v value.Value, m value.Mask) (value.Value, error) {
	if c, ok := e.c.(value.Masker); ok && v.Kind() == value.KindRecord {
		return c.Mask(v, m)
	}
	return v, format.Errorf(format.ErrUnsupported, "state of a connector that is not decoded cannot be replaced")
}

// maskable are the structures whose fields are in maskedFields.
var maskable = map[string]bool{
	"SourceCoordinator": true, "KafkaPartitionSplit": true, "KafkaSourceEnumState": true, "KafkaTopicPartition": true,
	"DynamicKafkaSourceSplit": true, "NumberSequenceSplit": true, "NumberSequenceSplits": true, "FileSourceSplit": true, "PendingSplitsCheckpoint": true,
	"KafkaWriterState": true, "KafkaCommittable": true, "NextTransactionalIdHint": true, "TwoPhaseCommitState": true,
	"CommittableCollector": true, "CheckpointCommittables": true, "SubtaskCommittables": true, "CommitRequest": true,
	"HybridSourceSplit": true, "HybridSourceEnumeratorState": true,
}

// fieldMask is what becomes of a field without parts.
type fieldMask uint8

const (
	_          fieldMask = iota
	keepIt               // versions, indexes, counts, states: of the structure
	maskName             // names
	maskNumber           // positions and sizes; markers, which are negative, stay
)

var maskedFields = func() map[string]fieldMask {
	m := map[string]fieldMask{}
	for mask, names := range map[fieldMask][]string{
		keepIt: {"version", "coordinator_version", "partition", "status", "initial_discovery_finished", "subtask", "subtasks_of_checkpoint", "checkpoint", "retries", "state",
			"source", "owned_subtask", "owned_subtasks", "ownership", "last_parallelism", "epoch", "port", "scheme", "committables", "drained", "failed", "retained_until"},
		maskName: {"topic", "cluster", "id", "path", "user_info", "host", "hosts", "query", "fragment", "processed_paths", "transactional_id", "transactional_ids", "transactional_id_prefix"},
		maskNumber: {"offset", "stopping_offset", "from", "to", "length", "modification_time", "file_size", "records_after_offset", "producer_id", "next_free_transactional_id",
			"start_ms"},
	} {
		for _, name := range names {
			m[name] = mask
		}
	}
	return m
}()

// mask replaces the parts of a structure in a field.
func mask(v value.Value, m value.Mask, field string) (value.Value, error) {
	switch v.Kind() {
	case value.KindNull:
		return v, nil
	case value.KindList:
		return v.MapParts(func(_ int, p value.Value) (value.Value, error) { return mask(p, m, field) })
	case value.KindRecord:
		if IsEmpty(v) && isReason(v) {
			return v, nil
		}
		if class := v.Class(); isReason(v) || class != "" && !maskable[class] || class == "" && field == "" {
			return v, notMasked(v)
		}
		out, err := v.MapParts(func(i int, p value.Value) (value.Value, error) { return mask(p, m, v.Name(i)) })
		return ascending(out), err
	}
	switch how := maskedFields[field]; {
	case how == keepIt:
		return v, nil
	case how == maskName:
		return m.Name(v)
	case how == maskNumber && v.Kind() == value.KindInt && v.Int() < 0:
		return v, nil
	case how == maskNumber:
		return m.Leaf(v)
	}
	return v, format.Errorf(format.ErrUnsupported, "the field %q of a connector cannot be replaced", field)
}

// ascending exchanges the bounds of a range that would be empty, which
// NumberSequenceSource refuses.
func ascending(v value.Value) value.Value {
	from, to := slices.Index(v.Shape().Names, "from"), slices.Index(v.Shape().Names, "to")
	if from >= 0 && to >= 0 && v.At(from).Int() > v.At(to).Int() {
		return v.WithAt(from, v.At(to)).WithAt(to, v.At(from))
	}
	return v
}

func notMasked(v value.Value) error {
	if why, undecoded := NotDecoded(v); undecoded {
		return format.Errorf(format.ErrUnsupported, "state of a connector is not decoded: %s", why)
	}
	return format.Errorf(format.ErrUnsupported, "state of a connector, %q, cannot be replaced", v.Class())
}
