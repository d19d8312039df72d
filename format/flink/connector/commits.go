package connector

import (
	"slices"

	"github.com/savepoint-tools/spt/format/value"
)

// Fate is what a restore does with a commit.
type Fate string

// The fates.
const (
	FateCommit Fate = "commit" // the sink commits it
	FateAbort  Fate = "abort"  // the sink aborts it
	FateResume Fate = "resume" // the sink goes on writing it
)

// Commit is a transaction, or files, that a restore commits, aborts or resumes.
type Commit struct {
	Connector  string
	Class      string // of what is stored: KafkaCommittable
	Fate       Fate
	Checkpoint *int64 // nil: not stored
	// A transaction of Kafka or Pulsar. Prefix is the prefix of transactional ids whose
	// open transactions a restore aborts.
	Prefix, TransactionalID string
	ProducerID              *int64
	Epoch                   *int64
	Topic                   string // of Pulsar
	// Files are the files or objects, as far as the connector names them.
	Files []string
	// Table is the table of a table format, and Job the job that wrote to it.
	Table, Job string
	// Undecoded is why it is not decoded; "" if it is.
	Undecoded string
}

// Commits returns what a restore would commit, abort or resume of a value that a codec
// of this package has read, in its order.
func Commits(v value.Value) []Commit {
	c := &commits{}
	c.walk(v)
	return c.all
}

type commits struct {
	all        []Commit
	checkpoint *int64
}

// classCommits has what each class is to a restore.
var classCommits = map[string]func(c *commits, v value.Value){
	"KafkaCommittable": func(c *commits, v value.Value) {
		c.add(Commit{Connector: "Kafka", Class: v.Class(), Fate: FateCommit, TransactionalID: get(v, "transactional_id").Text(), ProducerID: new(get(v, "producer_id").Int()), Epoch: new(get(v, "epoch").Int())})
	},
	"KafkaWriterState": (*commits).kafkaWriter,
	"PulsarCommittable": func(c *commits, v value.Value) {
		c.add(Commit{Connector: "Pulsar", Class: v.Class(), Fate: FateCommit, Topic: get(v, "topic").Text()})
	},
	"TwoPhaseCommitState": (*commits).twoPhase,
	"FileSinkCommittable": (*commits).fileCommittable,
	"FileWriterBucketState": func(c *commits, v value.Value) {
		c.bucket("FileSink", v)
	},
	"BucketState": func(c *commits, v value.Value) {
		c.bucket("StreamingFileSink", v)
	},
	"IcebergCommittable": (*commits).iceberg,
	"DynamicCommittable": (*commits).iceberg,
	"DynamicWriteResult": func(c *commits, v value.Value) {
		c.add(Commit{Connector: "Iceberg", Class: v.Class(), Fate: FateCommit, Table: get(v, "table").Text()})
	},
	"IcebergFilesCommitterState": func(c *commits, v value.Value) {
		all := get(v, "checkpoints")
		for i := range all.Len() {
			c.add(Commit{Connector: "Iceberg", Class: v.Class(), Fate: FateCommit, Checkpoint: new(get(all.At(i), "checkpoint").Int()), Files: texts(get(get(all.At(i), "manifests"), "referenced_data_files"))})
		}
	},
	"ManifestCommittable": func(c *commits, v value.Value) { c.paimon(v, "") },
	"WrappedManifestCommittable": func(c *commits, v value.Value) {
		tables := get(v, "tables")
		for i := range tables.Len() {
			c.paimon(get(tables.At(i), "committable"), get(tables.At(i), "table").Text())
		}
	},
}

func (c *commits) add(x Commit) {
	if x.Checkpoint == nil {
		x.Checkpoint = c.checkpoint
	}
	c.all = append(c.all, x)
}

// walk calls the function of each class in v.
func (c *commits) walk(v value.Value) {
	if isReason(v) {
		c.add(Commit{Fate: FateCommit, Undecoded: v.At(1).Text()})
		return
	}
	if f := classCommits[v.Class()]; f != nil {
		f(c, v)
		return
	}
	if v.Class() == "CheckpointCommittables" {
		c.checkpoint = new(get(v, "checkpoint").Int())
		defer func() { c.checkpoint = nil }()
	}
	for i := range v.Len() {
		c.walk(v.At(i))
	}
}

// kafkaWriter adds the prefix of transactional ids: a restore aborts open transactions
// that have it and were not prepared.
func (c *commits) kafkaWriter(v value.Value) {
	c.add(Commit{Connector: "Kafka", Class: v.Class(), Fate: FateAbort, Prefix: get(v, "transactional_id_prefix").Text()})
}

// twoPhase adds the transactions of FlinkKafkaProducer.
func (c *commits) twoPhase(v value.Value) {
	transaction := func(holder value.Value, fate Fate) {
		t := get(holder, "transaction")
		if get(t, "transactional_id").IsNull() {
			return // of a producer without transactions
		}
		c.add(Commit{Connector: "FlinkKafkaProducer", Class: v.Class(), Fate: fate, TransactionalID: get(t, "transactional_id").Text(), ProducerID: new(get(t, "producer_id").Int()), Epoch: new(get(t, "epoch").Int())})
	}
	for _, holder := range parts(get(v, "pending_commit")) {
		transaction(holder, FateCommit)
	}
	if pending := get(v, "pending"); !pending.IsNull() {
		transaction(pending, FateAbort)
	}
}

func (c *commits) fileCommittable(v value.Value) {
	x := Commit{Connector: "FileSink", Class: v.Class(), Fate: FateCommit, Files: filesOf(get(get(v, "committable"), "pending"))}
	if len(x.Files) > 0 || isDecoded(v) && !get(get(v, "committable"), "pending").IsNull() {
		c.add(x)
	}
	for _, why := range reasons(v) {
		c.add(Commit{Connector: "FileSink", Class: v.Class(), Fate: FateCommit, Undecoded: why})
	}
}

func reasons(v value.Value) []string {
	if why, ok := NotDecoded(v); ok {
		return []string{why}
	}
	return nil
}

// bucket adds the files of a bucket: files of earlier checkpoints are committed, the
// current file goes on.
func (c *commits) bucket(connector string, v value.Value) {
	b := get(v, "bucket")
	for _, group := range parts(get(get(b, "pending"), "checkpoints")) {
		c.add(Commit{Connector: connector, Class: v.Class(), Fate: FateCommit, Checkpoint: new(get(group, "checkpoint").Int()), Files: filesOf(get(group, "files"))})
	}
	if now := get(b, "in_progress"); !now.IsNull() {
		c.add(Commit{Connector: connector, Class: v.Class(), Fate: FateResume, Files: filesOf(now)})
	}
}

// filesOf returns the targets of the recoverables in v.
func filesOf(v value.Value) (all []string) {
	switch v.Class() {
	case "LocalRecoverable", "HadoopFsRecoverable":
		return []string{get(get(v, "file"), "target").Text()}
	case "S3Recoverable", "OSSRecoverable":
		return []string{get(get(v, "upload"), "object").Text()}
	case "NativeS3Recoverable":
		return []string{get(v, "object").Text()}
	case "GSCommitRecoverable", "GSResumeRecoverable":
		return []string{"gs://" + get(v, "bucket").Text() + "/" + get(v, "object").Text()}
	}
	for i := range v.Len() {
		all = append(all, filesOf(v.At(i))...)
	}
	return all
}

func (c *commits) iceberg(v value.Value) {
	manifests := get(v, "manifests")
	files := texts(get(manifests, "referenced_data_files"))
	for i := range manifests.Len() {
		if manifests.Kind() == value.KindList {
			files = append(files, texts(get(manifests.At(i), "referenced_data_files"))...)
		}
	}
	table := get(v, "table").Text()
	if table == "" {
		table = get(get(v, "target"), "table").Text()
	}
	c.add(Commit{Connector: "Iceberg", Class: v.Class(), Fate: FateCommit, Checkpoint: new(get(v, "checkpoint").Int()), Table: table, Job: get(v, "job").Text(), Files: files})
}

func texts(v value.Value) (all []string) {
	for _, e := range parts(v) {
		all = append(all, e.Text())
	}
	return all
}

// paimon adds the files of a ManifestCommittable.
func (c *commits) paimon(v value.Value, table string) {
	x := Commit{Connector: "Paimon", Class: "ManifestCommittable", Fate: FateCommit, Checkpoint: new(get(v, "identifier").Int()), Table: table}
	for _, m := range parts(get(get(v, "messages"), "messages")) {
		for _, list := range []string{"new_files", "changelog_files", "compact_after", "compact_changelog"} {
			for _, row := range parts(get(m, list)) {
				if name, ok := paimonFileName(row.Text()); ok {
					x.Files = append(x.Files, name)
				}
			}
		}
	}
	slices.Sort(x.Files)
	x.Files = slices.Compact(x.Files)
	c.add(x)
}
