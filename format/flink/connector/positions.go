package connector

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// At is what a position says.
type At uint8

// The kinds of positions.
const (
	AtOffset    At = iota // Offset is the next record to read
	AtEarliest            // the first record that is there
	AtLatest              // only records that are written later
	AtCommitted           // where the consumer group has committed
	AtUnknown             // a connector of an older version stored no position
	AtText                // Text is the position
	AtFinished            // nothing is left to read
	AtNothing             // the partition is listed without a position
)

var atNames = [...]string{"offset", "earliest", "latest", "committed", "unknown", "text", "finished", "not stored"}

// String returns a word for the kind: "earliest".
func (a At) String() string { return atNames[a] }

// Markers in place of offsets. Wire format: never change.
var (
	kafkaMarkers  = map[At]int64{AtLatest: -1, AtEarliest: -2, AtCommitted: -3, AtUnknown: math.MinInt64}
	legacyMarkers = map[At]int64{AtUnknown: -915623761776, AtEarliest: -915623761775, AtLatest: -915623761774, AtCommitted: -915623761773}
)

// Position is a position of a source in one partition.
type Position struct {
	Connector string
	Cluster   string // of a dynamic Kafka source
	Topic     string // topic, stream, table, or path of a file; may be ""
	Partition string // number of a partition, or id of a shard or split
	At        At
	Offset    int64 // with AtOffset: the next record to read
	// Stored is the number that is stored: an offset, or the marker of another kind of
	// position. FlinkKafkaConsumer stores the last record that was read.
	Stored int64
	Text   string // with AtText
	Stop   *int64 // offset at which reading ends; nil: none
	// Status is the status in an enumerator: "assigned", "unassigned", or "" in a
	// reader.
	Status string
	// Settable is set if the offset can be changed.
	Settable bool
}

// Assigned reports whether an enumerator has given the partition to a reader.
func (p *Position) Assigned() bool { return p.Status == "assigned" }

// Positions returns the positions in a value that a codec of this package has read, in
// their order.
func Positions(v value.Value) (all []Position) {
	_, _, err := EditPositions(v, func(p Position) (Position, bool, error) {
		all = append(all, p)
		return p, true, nil
	})
	if err != nil {
		return nil // not reached: nothing was changed
	}
	return all
}

// PositionEdit returns what becomes of a position: another At and Offset, and whether
// the partition is kept.
type PositionEdit func(p Position) (to Position, keep bool, err error)

// EditPositions returns the value with its positions replaced by f, and whether it is
// kept: false if it is a split whose partition is removed. Other fields of a position
// do not change.
func EditPositions(v value.Value, f PositionEdit) (out value.Value, keep bool, err error) {
	switch v.Class() {
	case "KafkaPartitionSplit":
		return editKafkaSplit(v, "", "", f)
	case "DynamicKafkaSourceSplit":
		inner := get(v, "split")
		out, keep, err = editKafkaSplit(inner, "", get(v, "cluster").Text(), f)
		return with(v, "split", out), keep, err
	case "KafkaTopicPartition":
		return editLegacyKafka(v, f)
	case "KafkaSourceEnumState":
		return editKafkaEnumerator(v, "", f)
	case "DynamicKafkaSourceEnumState":
		return editDynamicKafka(v, f)
	case "HybridSourceSplit":
		out, keep, err = EditPositions(get(v, "split"), f)
		return with(v, "split", out), keep, err
	case "HybridSourceEnumeratorState":
		out, _, err = EditPositions(get(v, "enumerator"), f)
		return with(v, "enumerator", out), true, err
	case "SourceCoordinator":
		out, _, err = EditPositions(get(v, "enumerator"), f)
		return with(v, "enumerator", out), true, err
	}
	if p, ok := positionOf(v); ok {
		return fixed(v, p, f)
	}
	for _, list := range statusLists[v.Class()] {
		if out, err = editList(get(v, list), "unassigned", f); err != nil {
			return v, true, err
		}
		v = with(v, list, out)
	}
	return v, true, nil
}

// statusLists are the fields of enumerators with splits and their status.
var statusLists = map[string][]string{
	"KinesisStreamsSourceEnumeratorState":  {"splits"},
	"DynamoDbStreamsSourceEnumeratorState": {"splits"},
	"NumberSequenceSplits":                 {"splits"},
	"PendingSplitsCheckpoint":              {"pending"},
}

// fixed calls f with a position that cannot be set.
func fixed(v value.Value, p Position, f PositionEdit) (value.Value, bool, error) {
	to, keep, err := f(p)
	if err == nil && (to.At != p.At || to.Offset != p.Offset) {
		err = format.Errorf(format.ErrUnsupported, "positions of %s cannot be set", p.Connector)
	}
	return v, keep, err
}

// editList edits splits. Those without a status of their own have status.
func editList(v value.Value, status string, f PositionEdit) (value.Value, error) {
	if v.Kind() == value.KindRecord { // of a version and the splits
		out, err := editList(get(v, "splits"), status, f)
		return with(v, "splits", out), err
	}
	var kept []value.Value
	for i := range v.Len() {
		e := v.At(i)
		split, status := e, status
		if e.Len() == 2 && e.Name(0) == "split" {
			split, status = e.At(0), e.At(1).Text()
		}
		if split.Class() == "" && split.Kind() == value.KindRecord && get(split, "from").Kind() == value.KindInt {
			split = split.WithClass("NumberSequenceSplit")
		}
		out, keep, err := EditPositions(split, func(p Position) (Position, bool, error) {
			p.Status = status
			return f(p)
		})
		if err != nil {
			return v, err
		}
		if !keep {
			continue
		}
		if e.Len() == 2 && e.Name(0) == "split" {
			e = e.WithAt(0, out)
		}
		kept = append(kept, e)
	}
	if len(kept) == v.Len() && len(kept) > 0 {
		for i, e := range kept {
			v = v.WithAt(i, e)
		}
		return v, nil
	}
	return value.List(kept), nil
}

// get returns a field of a record by name; null if it has none.
func get(v value.Value, name string) value.Value {
	f, _ := v.Field(name)
	return f
}

// with returns v with a field replaced, if it has it.
func with(v value.Value, name string, to value.Value) value.Value {
	for i := range v.Len() {
		if v.Kind() == value.KindRecord && v.Name(i) == name {
			return v.WithAt(i, to)
		}
	}
	return v
}

// fromMarker returns what a stored offset says.
func fromMarker(n int64, markers map[At]int64) At {
	for at, marker := range markers {
		if n == marker {
			return at
		}
	}
	return AtOffset
}

// stored returns the number for a position.
func stored(p Position, markers map[At]int64) (int64, error) {
	if p.At == AtOffset {
		if p.Offset < 0 {
			return 0, format.Errorf(format.ErrUnsupported, "an offset is 0 or more, not %d", p.Offset)
		}
		return p.Offset, nil
	}
	n, ok := markers[p.At]
	if !ok {
		return 0, format.Errorf(format.ErrUnsupported, "%s has no position %q", p.Connector, p.At)
	}
	return n, nil
}

func editKafkaSplit(v value.Value, status, cluster string, f PositionEdit) (value.Value, bool, error) {
	n := get(v, "offset").Int()
	p := Position{Connector: kafkaConnector(cluster), Cluster: cluster, Topic: get(v, "topic").Text(), Partition: decimal(v, "partition"), At: fromMarker(n, kafkaMarkers), Offset: n, Stored: n, Status: status, Settable: true}
	if p.At != AtOffset {
		p.Offset = 0
	}
	if stop := get(v, "stopping_offset"); !stop.IsNull() {
		p.Stop = new(stop.Int())
	}
	to, keep, err := f(p)
	if err != nil || !keep || to.At == p.At && to.Offset == p.Offset {
		return v, keep, err
	}
	if n, err = stored(to, kafkaMarkers); err != nil {
		return v, keep, err
	}
	return with(v, "offset", value.Int(n)), true, nil
}

func decimal(v value.Value, name string) string { return strconv.FormatInt(get(v, name).Int(), 10) }

func kafkaConnector(cluster string) string {
	if cluster != "" {
		return "Kafka (dynamic)"
	}
	return "Kafka"
}

// editLegacyKafka edits an element of FlinkKafkaConsumer, which stores the offset of
// the last record that was read.
func editLegacyKafka(v value.Value, f PositionEdit) (value.Value, bool, error) {
	n := get(v, "offset").Int()
	p := Position{Connector: "FlinkKafkaConsumer", Topic: get(v, "topic").Text(), Partition: decimal(v, "partition"), At: fromMarker(n, legacyMarkers), Stored: n, Settable: true}
	if p.At == AtOffset && n < math.MaxInt64 {
		p.Offset = n + 1
	}
	to, keep, err := f(p)
	if err != nil || !keep || to.At == p.At && to.Offset == p.Offset {
		return v, keep, err
	}
	if n, err = stored(to, legacyMarkers); err != nil {
		return v, keep, err
	}
	if to.At == AtOffset {
		n--
	}
	return with(v, "offset", value.Int(n)), true, nil
}

func editKafkaEnumerator(v value.Value, cluster string, f PositionEdit) (value.Value, bool, error) {
	if splits := get(v, "splits"); !splits.IsNull() { // version 3
		out, err := editList(splits, "", func(p Position) (Position, bool, error) {
			p.Cluster = cluster
			return f(p)
		})
		return with(v, "splits", out), true, err
	}
	var kept []value.Value
	all := get(v, "partitions")
	if all.IsNull() {
		return editAssignments(v, cluster, f)
	}
	for i := range all.Len() {
		e := all.At(i)
		status := get(e, "status").Text()
		if status == "" {
			status = "assigned"
		}
		_, keep, err := f(Position{Connector: kafkaConnector(cluster), Cluster: cluster, Topic: get(e, "topic").Text(), Partition: decimal(e, "partition"), At: AtNothing, Status: status})
		if err != nil {
			return v, true, err
		}
		if keep {
			kept = append(kept, e)
		}
	}
	if len(kept) < all.Len() {
		v = with(v, "partitions", value.List(kept))
	}
	return v, true, nil
}

// editAssignments edits version 0, the assignments of subtasks.
func editAssignments(v value.Value, cluster string, f PositionEdit) (value.Value, bool, error) {
	assignments := get(v, "assignments")
	subtasks := get(assignments, "subtasks")
	for i := range subtasks.Len() {
		s := subtasks.At(i)
		out, err := editList(get(s, "splits"), "assigned", func(p Position) (Position, bool, error) {
			p.Cluster = cluster
			return f(p)
		})
		if err != nil {
			return v, true, err
		}
		subtasks = subtasks.WithAt(i, with(s, "splits", out))
	}
	return with(v, "assignments", with(assignments, "subtasks", subtasks)), true, nil
}

// editDynamicKafka edits the enumerators of all clusters, and removes the topics that
// have no partition left.
func editDynamicKafka(v value.Value, f PositionEdit) (value.Value, bool, error) {
	clusters := get(v, "clusters")
	removed, kept := map[[2]string]bool{}, map[[2]string]bool{}
	for _, list := range []string{"active", "retained"} {
		all := get(clusters, list)
		for i := range all.Len() {
			c := all.At(i)
			name := get(c, "cluster").Text()
			out, _, err := editKafkaEnumerator(get(c, "enumerator"), name, func(p Position) (Position, bool, error) {
				to, keep, err := f(p)
				if keep {
					kept[[2]string{name, p.Topic}] = true
				} else {
					removed[[2]string{name, p.Topic}] = true
				}
				return to, keep, err
			})
			if err != nil {
				return v, true, err
			}
			all = all.WithAt(i, with(c, "enumerator", out))
		}
		clusters = with(clusters, list, all)
	}
	v = with(v, "clusters", clusters)
	if len(removed) == 0 {
		return v, true, nil
	}
	streams := get(v, "streams")
	for i := range streams.Len() {
		s := streams.At(i)
		of := get(s, "clusters")
		for k := range of.Len() {
			c := of.At(k)
			var topics []value.Value
			for _, topic := range parts(get(c, "topics")) {
				key := [2]string{get(c, "cluster").Text(), topic.Text()}
				if !removed[key] || kept[key] {
					topics = append(topics, topic)
				}
			}
			of = of.WithAt(k, with(c, "topics", value.List(topics)))
		}
		streams = streams.WithAt(i, with(s, "clusters", of))
	}
	return with(v, "streams", streams), true, nil
}

func parts(v value.Value) (all []value.Value) {
	for i := range v.Len() {
		all = append(all, v.At(i))
	}
	return all
}

// positionOf returns the position of a split whose position cannot be set.
func positionOf(v value.Value) (Position, bool) {
	text := func(name string) string { return get(v, name).Text() }
	switch v.Class() {
	case "NumberSequenceSplit":
		return Position{Connector: "NumberSequenceSource", Partition: text("id"), Offset: get(v, "from").Int(), Stop: new(get(v, "to").Int())}, true
	case "FileSourceSplit":
		p := Position{Connector: "FileSource", Topic: pathText(get(v, "path")), Partition: text("id")}
		p.Offset, p.Stop = get(v, "offset").Int(), new(get(v, "offset").Int()+get(v, "length").Int())
		if at := get(v, "position"); !at.IsNull() {
			p.At, p.Text = AtText, fmt.Sprintf("%d records after byte %d", get(at, "records_after_offset").Int(), get(at, "offset").Int())
			if get(at, "offset").Int() < 0 { // CheckpointedPosition.NO_OFFSET
				p.Text = fmt.Sprintf("%d records after the start", get(at, "records_after_offset").Int())
			}
		}
		return p, true
	case "KinesisShardSplit", "DynamoDbStreamsShardSplit":
		p := Position{Connector: "Kinesis", Topic: text("stream"), Partition: text("shard")}
		if v.Class() != "KinesisShardSplit" {
			p.Connector = "DynamoDB Streams"
		}
		marker := get(v, "marker")
		switch iterator := text("iterator"); {
		case get(v, "finished").Bool():
			p.At = AtFinished
		case !get(marker, "sequence_number").IsNull():
			p.At, p.Text = AtText, get(marker, "sequence_number").Text()
			if iterator != "AFTER_SEQUENCE_NUMBER" {
				p.Text = iterator + " " + p.Text
			}
		case !get(marker, "timestamp").IsNull():
			p.At, p.Text = AtText, fmt.Sprintf("%s %d", iterator, get(marker, "timestamp").Int())
		case iterator == "TRIM_HORIZON":
			p.At = AtEarliest
		case iterator == "LATEST":
			p.At = AtLatest
		default:
			p.At, p.Text = AtText, iterator
		}
		return p, true
	case "StreamShardMetadata":
		p := Position{Connector: "FlinkKinesisConsumer", Topic: text("stream"), Partition: text("shard"), At: AtText, Text: text("sequence_number")}
		if sub := get(v, "sub_sequence_number").Int(); sub >= 0 {
			p.Text += "/" + strconv.FormatInt(sub, 10)
		}
		if at, ok := kinesisMarkers[p.Text]; ok {
			p.At, p.Text = at, ""
		}
		return p, true
	case "PulsarPartitionSplit":
		partition := get(v, "partition")
		p := Position{Connector: "Pulsar", Topic: get(partition, "topic").Text(), Partition: decimal(partition, "partition"), At: AtUnknown}
		if id := get(v, "message_id"); !id.IsNull() {
			p.At, p.Text = AtText, hex.EncodeToString([]byte(id.Text()))
		}
		return p, true
	case "MySqlSplit", "SourceSplitBase":
		return cdcPosition(v), true
	case "DebeziumOffset":
		return Position{Connector: "DebeziumSourceFunction", At: AtText, Text: text("offset")}, true
	case "FileStoreSourceSplit":
		return Position{Connector: "Paimon", Partition: text("id"), Offset: get(v, "records_to_skip").Int()}, true
	}
	return Position{}, false
}

var kinesisMarkers = map[string]At{"LATEST_SEQUENCE_NUM": AtLatest, "EARLIEST_SEQUENCE_NUM": AtEarliest, "SHARD_ENDING_SEQUENCE_NUM": AtFinished}

// cdcPosition returns the position of a split of Flink CDC.
func cdcPosition(v value.Value) Position {
	p := Position{Connector: baseCDC.connector, At: AtText}
	if v.Class() == "MySqlSplit" {
		p.Connector = mysqlCDC.connector
	}
	split := get(v, "split")
	if split.Class() == "SnapshotSplit" {
		p.Topic, p.Partition, p.Text = get(split, "table").Text(), get(split, "split").Text(), "snapshot"
		if high := get(split, "high_watermark"); !high.IsNull() {
			p.Text = "snapshot, read up to " + logPosition(high)
		}
		return p
	}
	p.Partition, p.Text = get(split, "id").Text(), logPosition(get(split, "start"))
	if n := get(split, "finished_splits").Len(); n > 0 {
		p.Text += fmt.Sprintf("; %d finished snapshot splits", n)
	}
	return p
}

// logPosition returns a position in a change log: of MySQL file:position, of others
// the JSON that is stored.
func logPosition(v value.Value) string {
	if v.Kind() == value.KindRecord {
		return get(v, "file").Text() + ":" + decimal(v, "position")
	}
	var at struct{ File, Pos string }
	if json.Unmarshal([]byte(v.Text()), &at) == nil && at.File != "" && at.Pos != "" {
		return at.File + ":" + at.Pos
	}
	return v.Text()
}

// pathText returns a path as a URI.
func pathText(v value.Value) string {
	text := func(name string) string { return get(v, name).Text() }
	s := ""
	if text("scheme") != "" {
		s = text("scheme") + ":"
	}
	if text("host") != "" {
		s += "//" + text("host")
	}
	return s + text("path")
}

// Ats returns all kinds of positions.
func Ats() (all []At) {
	for i := range atNames {
		all = append(all, At(i))
	}
	return all
}
