package connector_test

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// The bytes of the vectors below are put together as spec flink-connector-states
// describes them, field by field.

func cat(parts ...string) string { return strings.Join(parts, "") }

func i2(n int16) string           { return string(binary.BigEndian.AppendUint16(nil, uint16(n))) }
func i4(n int32) string           { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
func i8(n int64) string           { return string(binary.BigEndian.AppendUint64(nil, uint64(n))) }
func l4(n int32) string           { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
func l8(n int64) string           { return string(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
func u(s string) string           { return i2(int16(len(s))) + s } // UTF, ASCII only
func b4(s string) string          { return i4(int32(len(s))) + s } // int length, bytes
func lb(s string) string          { return l4(int32(len(s))) + s } // the same, little-endian
func sv(v int32, s string) string { return i4(v) + b4(s) }         // the framing
func b64(s string) string         { return base64.StdEncoding.EncodeToString([]byte(s)) }

const (
	yes, no = "\x01", "\x00"
	null    = "\xac\xed\x00\x05p" // a Java object stream with null
)

// Parts of the vectors.
var (
	localFile = cat("\x57\x4b\x74\x1e", l8(77), l4(2), l4(3), "/a", "/.a")
	localText = `{"@class":"LocalRecoverable","version":1,"file":{"offset":77,"target":"/a","temporary_file":"/.a"}}`
	s3File    = cat("\x32\x14\x76\x98", lb("k/o"), lb("up"), l4(1), l4(1), lb("etag"), l8(5), lb(""), l8(0))
	s3Text    = `{"@class":"S3Recoverable","version":1,"upload":{"object":"k/o","upload_id":"up","parts":[{"number":1,"etag":"etag"}],"bytes_in_parts":5,"incomplete_object":"","incomplete_length":0}}`
	bucket    = sv(1, lb("2024"))
	// A BinaryRow of 5 fields: null bits, then 8 bytes each. The name is 11 bytes behind them.
	paimonRow = cat(l8(0), string(binary.LittleEndian.AppendUint64(nil, 48<<32|11)), strings.Repeat(l8(0), 4), "data-1.parq")
	filesRow  = cat(i4(1), b4(paimonRow))
	noRows    = i4(0)
	binlog    = `{"file":"mysql-bin.000003","pos":"154"}`
	position  = cat(yes, b4(binlog))
)

// vector is a structure of a version, where it is stored, and what is read.
type vector struct {
	state   string // "": the coordinator
	version int32
	body    string
	json    string // of the frame
}

// stored returns the vector as Flink stores it.
func (x *vector) stored(testing.TB) []byte {
	if x.state == "" {
		return []byte(i4(1) + sv(x.version, x.body))
	}
	if x.state == "committable" {
		return []byte(b4(sv(2, cat("\xb9\x1f\x25\x2c", i4(1), i4(1), b4(cat(i8(7), i4(2), i4(2), i4(1), b4(cat(i4(0), i4(0), i4(1), b4(cat(sv(x.version, x.body), i4(1), i4(1))), i4(1), i4(0)))))))))
	}
	return []byte(b4(sv(x.version, x.body)))
}

// read returns the JSON of the frame.
func (x *vector) read(t *testing.T) (value.Value, string) {
	t.Helper()
	codec, name := connector.Coordinator(""), x.state
	if name != "" {
		if name == "committable" {
			name = "streaming_committer_raw_states"
		}
		var ok bool
		if codec, ok = connector.Elements(name, []byte(sptest.AllConnectorSerializers)); !ok {
			t.Fatal(name)
		}
	}
	v, err := testenv.ReadBack(t, codec, x.stored(t))
	if err != nil {
		t.Errorf("%s version %d: %v\n% x", x.state, x.version, err, x.stored(t))
		return v, ""
	}
	root := v
	switch x.state {
	case "":
		v, _ = v.Field("enumerator")
	case "committable": // the only request of the only subtask of the only checkpoint
		for _, path := range []string{"checkpoints", "checkpoints", "0", "subtasks", "subtasks", "0", "requests", "requests", "0", "committable"} {
			if path == "0" {
				v = v.At(0)
			} else if v, _ = v.Field(path); v.IsNull() {
				t.Fatalf("no %s in %s", path, root)
			}
		}
	}
	return root, string(v.AppendJSON(nil, nil, func(dst, p []byte) []byte { return append(dst, `"`+b64(string(p))+`"`...) })) // bytes as base64 alone
}

const (
	inReader, coordinator = "SourceReaderState", ""
	writer                = "writer_raw_states"
)

var described = []vector{
	{coordinator, 0, cat(i4(1), i4(0), i4(3), i4(1), b4(cat(u("t"), i4(1), i8(9), i8(-1<<63)))),
		`{"@class":"KafkaSourceEnumState","version":0,"assignments":{"version":0,"subtasks":[{"subtask":3,"splits":[{"@class":"KafkaPartitionSplit","version":0,"topic":"t","partition":1,"offset":9,"stopping_offset":null}]}]}}`},
	{coordinator, 1, cat(i4(2), u("t"), i4(0), u("t"), i4(1)), `{"@class":"KafkaSourceEnumState","version":1,"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":1}]}`},
	{inReader, 2, cat(u("c"), yes, i8(5), i4(0), u("t"), i4(1), i8(9), i8(20)),
		`{"@class":"DynamicKafkaSourceSplit","version":2,"cluster":"c","retained_until":5,"split":{"@class":"KafkaPartitionSplit","version":0,"topic":"t","partition":1,"offset":9,"stopping_offset":20}}`},
	{coordinator, 3, cat(i4(1), u("s"), i4(1), u("c"), i4(1), u("t"), u("host:9092"), no, no, i4(2), i4(1), u("c"), b4(cat(i4(1), u("t"), i4(4), i4(0), yes)), i4(1), u("old"), i8(6), b4(cat(i4(0), no))),
		`{"@class":"DynamicKafkaSourceEnumState","version":3,"streams":[{"stream":"s","clusters":[{"cluster":"c","topics":["t"],"bootstrap_servers":"host:9092","starting_offsets":null,"stopping_offsets":null}]}],"clusters":{"version":2,"active":[{"cluster":"c","enumerator":{"@class":"KafkaSourceEnumState","version":2,"partitions":[{"topic":"t","partition":4,"status":"assigned"}],"initial_discovery_finished":true}}],"retained":[{"cluster":"old","retained_until":6,"enumerator":{"@class":"KafkaSourceEnumState","version":2,"partitions":[],"initial_discovery_finished":false}}]}}`},
	{coordinator, 0, cat(i4(1), i4(2), b4(cat(i4(1), u("t"), i4(4), i4(1), yes))),
		`{"@class":"HybridSourceEnumeratorState","version":0,"source":1,"enumerator":{"@class":"KafkaSourceEnumState","version":2,"partitions":[{"topic":"t","partition":4,"status":"unassigned"}],"initial_discovery_finished":true}}`},
	{inReader, 0, cat(u("arn"), u("shard-1"), u("AFTER_SEQUENCE_NUMBER"), yes, no, yes, u("49")),
		`{"@class":"KinesisShardSplit","version":0,"stream":"arn","shard":"shard-1","iterator":"AFTER_SEQUENCE_NUMBER","marker":{"timestamp":null,"sequence_number":"49"}}`},
	{inReader, 2, cat(u("arn"), u("shard-1"), u("AT_TIMESTAMP"), yes, yes, i8(1000), no, i4(1), u("shard-0"), u("0"), u("9"), no),
		`{"@class":"KinesisShardSplit","version":2,"stream":"arn","shard":"shard-1","iterator":"AT_TIMESTAMP","marker":{"timestamp":1000,"sequence_number":null},"parents":["shard-0"],"start_hash_key":"0","end_hash_key":"9","finished":false}`},
	{coordinator, 1, cat(yes, u("shard-1"), i4(1), i4(1), b4(cat(u("arn"), u("shard-2"), u("TRIM_HORIZON"), no, i4(0), u("0"), u("9"))), i4(1)),
		`{"@class":"KinesisStreamsSourceEnumeratorState","version":1,"last_seen_shard":"shard-1","splits":{"version":1,"splits":[{"split":{"@class":"KinesisShardSplit","version":1,"stream":"arn","shard":"shard-2","iterator":"TRIM_HORIZON","marker":null,"parents":[],"start_hash_key":"0","end_hash_key":"9"},"status":"unassigned"}]}}`},
	{inReader, 2, cat(u("arn"), u("s1"), u("LATEST"), no, yes, u("s0"), no, i4(1), u("s2"), u("s1"), u("1"), yes, u("2")),
		`{"@class":"DynamoDbStreamsShardSplit","version":2,"stream":"arn","shard":"s1","iterator":"LATEST","marker":null,"parent":"s0","finished":false,"children":[{"shard":"s2","parent":"s1","starting_sequence_number":"1","ending_sequence_number":"2"}]}`},
	{coordinator, 0, cat(i4(1), i4(0), b4(cat(u("arn"), u("s1"), u("LATEST"), yes, yes, u("5"), no)), i4(2), i8(123)),
		`{"@class":"DynamoDbStreamsSourceEnumeratorState","version":0,"splits":{"version":0,"splits":[{"split":{"@class":"DynamoDbStreamsShardSplit","version":0,"stream":"arn","shard":"s1","iterator":"LATEST","marker":{"sequence_number":"5"},"parent":null},"status":"finished"}]},"start_timestamp":123}`},
	{inReader, 2, cat(u("persistent://a/b/c"), i4(3), i4(1), i4(0), i4(65535), b4(null), yes, b4("\x08\x01"), no),
		`{"@class":"PulsarPartitionSplit","version":2,"partition":{"topic":"persistent://a/b/c","partition":3,"ranges":[{"start":0,"end":65535}]},"stop_cursor":"` + b64(null) + `","message_id":"` + b64("\x08\x01") + `","transaction":null}`},
	{coordinator, 3, cat(i4(1), u("topic"), i4(3), i4(1), i4(0), i4(9)), `{"@class":"PulsarSourceEnumState","version":3,"partitions":[{"topic":"topic","partition":3,"ranges":[{"start":0,"end":9}]}]}`},
	{inReader, 1, null, `{"@class":"IcebergSourceSplit","version":1,"java":"` + b64(null) + `"}`},
	{inReader, 3, cat(i4(1), i8(20), i4(1), b4(`{"task":1}`)), `{"@class":"IcebergSourceSplit","version":3,"file_offset":1,"record_offset":20,"tasks":["{\"task\":1}"]}`},
	{coordinator, 2, cat(yes, i4(1), b4(cat(yes, i8(11), no)), i4(2), i4(1), b4(cat(i4(0), i8(0), i4(0))), u("UNASSIGNED"), i4(1), i4(6)),
		`{"@class":"IcebergEnumeratorState","version":2,"position":{"@class":"IcebergEnumeratorPosition","version":1,"snapshot":11,"timestamp_ms":null},"splits":{"version":2,"splits":[{"split":{"@class":"IcebergSourceSplit","version":2,"file_offset":0,"record_offset":0,"tasks":[]},"status":"UNASSIGNED"}]},"split_count_history":[6]}`},
	{inReader, 1, cat(u("id"), null, i8(3)), `{"@class":"FileStoreSourceSplit","version":1,"id":"id","split":"` + b64(null) + `","records_to_skip":3}`},
	{coordinator, 1, cat(i4(1), b4(cat(u("id"), null, i8(0))), i8(-1)), `{"@class":"PaimonPendingSplitsCheckpoint","version":1,"splits":[{"id":"id","split":"` + b64(null) + `","records_to_skip":0}],"snapshot":null}`},
	{inReader, 4, cat(i4(1), u("db.t"), u("db.t:0"), u("ROW<`id` BIGINT>"), u("aced"), u("aced"), no, i4(1), u(`"db"."t"`), b4(`{"x":1}`)),
		"{\"@class\":\"MySqlSplit\",\"version\":4,\"split\":{\"@class\":\"SnapshotSplit\",\"table\":\"db.t\",\"split\":\"db.t:0\",\"key_type\":\"ROW<`id` BIGINT>\",\"start\":\"aced\",\"end\":\"aced\",\"high_watermark\":null,\"schemas\":[{\"table\":\"\\\"db\\\".\\\"t\\\"\",\"schema\":\"{\\\"x\\\":1}\"}]}}"},
	{inReader, 4, cat(i4(2), u("binlog-split"), u(""), position, no, i4(1), u("db.t"), u("db.t:0"), u("aced"), u("aced"), position, i4(0), i4(1), no),
		`{"@class":"MySqlSplit","version":4,"split":{"@class":"ChangeLogSplit","id":"binlog-split","unused":"","start":` + quoted(binlog) + `,"end":null,"finished_splits":[{"table":"db.t","split":"db.t:0","start":"aced","end":"aced","position":` + quoted(binlog) + `}],"schemas":[],"total_finished_splits":1,"suspended":false}}`},
	{inReader, 6, cat(i4(2), u("stream-split"), u(""), position, no, i4(1), u("db.t"), u("db.t:0"), u("aced"), u("aced"), u("aced"), position, yes, i4(1), yes, u("db.t"), b4("{}"), i4(1), no, yes),
		`{"@class":"SourceSplitBase","version":6,"split":{"@class":"ChangeLogSplit","id":"stream-split","unused":"","start":` + quoted(binlog) + `,"end":null,"finished_splits":[{"table":"db.t","split":"db.t:0","start":"aced","end":"aced","offset_factory":"aced","position":` + quoted(binlog) + `,"catalog_before_schema":true}],"schemas":[{"catalog_before_schema":true,"table":"db.t","schema":"{}"}],"total_finished_splits":1,"suspended":false,"snapshot_completed":true}}`},
	{coordinator, 5, cat(i4(4), i4(3), i4(1), u("db.t"), i4(1), b4(cat(i4(1), u("db.t"), u("db.t:1"), u("k"), u("s"), u("e"), no, i4(0))), i4(0), i4(1), u("db.t:0"), position, i4(1), i4(1), u("db.u"), yes, i4(0), yes, u("db.v"), u("aced"), i4(7), yes),
		`{"@class":"MySqlPendingSplitsState","version":5,"split_version":4,"state":{"@class":"HybridPendingSplitsState","processed_tables":["db.t"],"remaining_splits":[{"@class":"MySqlSplit","version":4,"split":{"@class":"SnapshotSplit","table":"db.t","split":"db.t:1","key_type":"k","start":"s","end":"e","high_watermark":null,"schemas":[]}}],"assigned_splits":[],"finished_offsets":[{"split":"db.t:0","position":` + quoted(binlog) + `}],"status":"initial assigning finished","remaining_tables":["db.u"],"table_ids_case_sensitive":true,"schemas":[],"splitting_table":{"table":"db.v","next_chunk_start":"aced","next_chunk_id":7},"change_log_assigned":true}}`},
	{coordinator, 8, cat(i4(6), i4(1), i4(1), yes, u("db.t"), i4(0), i4(0), i4(0), i4(0), i4(0), no, i4(0), i4(1), u("x"), i8(4), no),
		`{"@class":"PendingSplitsState","version":8,"split_version":6,"state":{"@class":"SnapshotPendingSplitsState","processed_tables":[{"catalog_before_schema":true,"table":"db.t"}],"remaining_splits":[],"assigned_splits":[],"finished_offsets":[],"status":"initial assigning","remaining_tables":[],"table_ids_case_sensitive":false,"schemas":[],"finished_checkpoints":[{"split":"x","checkpoint":4}],"splitting_table":null}}`},

	{writer, 3, cat("\x1e\x76\x4b\x79", bucket, u("/out/2024"), i8(99), yes, sv(2, cat("\xb3\xa4\x07\x3d", no, sv(1, localFile)))),
		`{"@class":"FileWriterBucketState","version":3,"bucket":{"id":{"@class":"BucketId","version":1,"id":"2024"},"path":"/out/2024","creation_time":99,"in_progress":{"@class":"InProgressFile","version":2,"file":{"path":null,"resume":` + localText + `}}}}`},
	{"bucket-states", 2, cat("\x1e\x76\x4b\x79", bucket, u("/out/2024"), i8(99), no, i4(1), i4(1), i8(6), i4(1), b4(cat("\x2c\x85\x3c\x89", sv(1, s3File)))),
		`{"@class":"BucketState","version":2,"bucket":{"id":{"@class":"BucketId","version":1,"id":"2024"},"path":"/out/2024","creation_time":99,"in_progress":null,"pending":{"version":1,"checkpoints":[{"checkpoint":6,"files":[{"@class":"PendingFile","version":1,"file":{"commit":` + s3Text + `}}]}]}}}`},
	{writer, 1, cat(i8(-1), i4(1), i8(2), "hi", i4(3), "key"), `{"version":1,"not_decoded":"could be KinesisStreamsWriterState or SqsWriterState","bytes":"` + b64(cat(i8(-1), i4(1), i8(2), "hi", i4(3), "key")) + `"}`},
	{writer, 1, cat(i8(-1), i4(1), i8(9), no, i4(1), u("n"), "\x09", i4(1), u("m"), "\x03"), `{"@class":"DynamoDbWriterState","version":1,"requests":[{"size":9,"kind":"put","item":[{"name":"n","value":{"map":[{"name":"m","value":{"null":null}}]}}]}]}`},
	{writer, 0, cat(u("job"), u("op")), `{"@class":"IcebergWriterState","version":0,"job":"job","operator":"op"}`},
	{writer, 0, u("user"), `{"@class":"PaimonWriterState","version":0,"commit_user":"user"}`},
	{"committable", 2, cat("\x1e\x76\x5c\x80", u("2024"), yes, sv(2, cat("\x2c\x85\x3c\x89", yes, u("/a"), i8(77), sv(1, localFile))), no, no),
		`{"@class":"FileSinkCommittable","version":2,"committable":{"bucket":"2024","pending":{"@class":"PendingFile","version":2,"file":{"path":"/a","size":77,"commit":` + localText + `}},"in_progress_to_clean_up":null,"compacted_to_clean_up":null}}`},
	{"committable", 1, cat(i8(1), i8(2), u("t")), `{"@class":"PulsarCommittable","version":1,"most_bits":1,"least_bits":2,"topic":"t"}`},
	{"committable", 1, cat(u("db.t"), u("main"), i4(2), null), `{"@class":"DynamicWriteResult","version":1,"table":"db.t","branch":"main","partition_spec":2,"result":"` + b64(null) + `"}`},
	{"committable", 1, cat(u("job"), u("op"), i8(4), b4(sv(2, cat(b4("\xc2\x01"), b4(""), i4(1), u("f.parquet"))))),
		`{"@class":"IcebergCommittable","version":1,"job":"job","operator":"op","checkpoint":4,"manifests":{"@class":"DeltaManifests","version":2,"data":"` + b64("\xc2\x01") + `","deletes":"","referenced_data_files":["f.parquet"]}}`},
	{"streaming_committer_raw_states", 5, cat(i8(4), yes, i4(1), u("k"), u("v"), i4(13), i4(1), b4("row"), i4(0), yes, i4(2), filesRow, noRows, noRows, noRows, noRows, noRows, noRows, noRows, noRows, noRows),
		`{"@class":"ManifestCommittable","version":5,"identifier":4,"watermark":null,"properties":[{"key":"k","value":"v"}],"messages":{"version":13,"messages":[{"partition":"` + b64("row") + `","bucket":0,"total_buckets":2,"new_files":["` + b64(paimonRow) + `"],"deleted_files":[],"changelog_files":[],"new_index_files":[],"deleted_index_files":[],"compact_before":[],"compact_after":[],"compact_changelog":[],"compact_new_index_files":[],"compact_deleted_index_files":[]}]}}`},
	{"remaining_requests_raw_state", 1, cat("\xa9\x46\xbe\x83", i4(1), i8(3), i4(1), i4(1), b4(cat("\x2f\xc6\x1e\x19", u("2024"), i4(2), i4(0), i4(2), i4(0)))),
		`{"@class":"RemainingRequests","version":1,"requests":[{"checkpoint":3,"requests":{"version":1,"requests":[{"@class":"FileSinkCompactRequest","version":1,"request":{"bucket":"2024","compact":{"version":2,"committables":[]},"pass_through":{"version":2,"committables":[]}}}]}}]}`},
}

func quoted(s string) string { return string(value.String(s).AppendJSON(nil, nil, nil)) }

// TestDescribed: structures as the specification describes them.
func TestDescribed(t *testing.T) {
	for i := range described {
		x := &described[i]
		v, text := x.read(t)
		if text != x.json {
			t.Errorf("%q version %d:\n%s\nexpected\n%s", x.state, x.version, text, x.json)
		}
		if x.state == "committable" || x.state == "bucket-states" || x.state == "streaming_committer_raw_states" {
			if all := connector.Commits(v); len(all) != 1 || all[0].Undecoded != "" || all[0].Fate != connector.FateCommit {
				t.Errorf("%s: %+v", text, all)
			}
		}
	}
}

// TestCommits: files and checkpoints of commits.
func TestCommits(t *testing.T) {
	found := map[string]string{}
	for i := range described {
		v, _ := described[i].read(t)
		for _, c := range connector.Commits(v) {
			text := string(c.Fate) + " " + strings.Join(c.Files, ",")
			if c.Checkpoint != nil {
				text += " " + value.Int(*c.Checkpoint).String()
			}
			found[c.Class] = text
		}
	}
	for class, want := range map[string]string{
		"FileSinkCommittable": "commit /a 7", "PulsarCommittable": "commit  7", "IcebergCommittable": "commit f.parquet 4",
		"ManifestCommittable": "commit data-1.parq 4", "BucketState": "commit k/o 6", "FileWriterBucketState": "resume /a",
	} {
		if found[class] != want {
			t.Errorf("%s: %q, expected %q", class, found[class], want)
		}
	}
}

// TestUnknown: what is not known stays bytes, with the reason.
func TestUnknown(t *testing.T) {
	for _, x := range []vector{
		{inReader, 77, "abc", `{"version":77,"not_decoded":"no known split has version 77","bytes":"` + b64("abc") + `"}`},
		{coordinator, 1, i4(0), `{"version":1,"not_decoded":"could be KafkaSourceEnumState or NumberSequenceSplits or PulsarSourceEnumState","bytes":"AAAAAA=="}`},
		{"committable", 9, "x", `{"version":9,"not_decoded":"no known committable has version 9","bytes":"eA=="}`},
	} {
		if _, text := x.read(t); text != x.json {
			t.Errorf("%s, expected %s", text, x.json)
		}
	}
}
