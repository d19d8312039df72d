package conformance

// Options select the job and how its snapshot is taken. The JSON names are as in
// about.json; zero values mean the defaults of the Java side.
type Options struct {
	Shape            string `json:"shape"`
	Parallelism      int    `json:"parallelism,omitempty"`
	MaxParallelism   int    `json:"max_parallelism,omitempty"`
	Backend          string `json:"backend,omitempty"` // hashmap, rocksdb; forst from 2.0 on, without canonical savepoints
	Format           string `json:"format,omitempty"`  // canonical, native
	Checkpoint       bool   `json:"checkpoint,omitempty"`
	Incremental      bool   `json:"incremental,omitempty"`
	Compress         bool   `json:"compress,omitempty"`
	Changelog        bool   `json:"changelog,omitempty"`
	Unaligned        bool   `json:"unaligned,omitempty"` // with in-flight data
	FileMerging      bool   `json:"file_merging,omitempty"`
	HeapTimers       bool   `json:"heap_timers,omitempty"`
	Asynchronous     bool   `json:"asynchronous,omitempty"` // the asynchronous state API, from 2.0 on
	Checkpoints      int    `json:"checkpoints,omitempty"`  // taken one after the other, with new elements before each
	Elements         int    `json:"elements,omitempty"`
	Keys             int    `json:"keys,omitempty"`
	States           int    `json:"states,omitempty"`
	Restores         int    `json:"restores,omitempty"` // before the snapshot under test
	StartParallelism int    `json:"start_parallelism,omitempty"`
	Via              []int  `json:"via,omitempty"` // parallelism of the runs before the last
	Blob             int    `json:"blob,omitempty"`
	InlineThreshold  *int   `json:"inline_threshold,omitempty"` // bytes; nil: Flink's default
	Seed             int    `json:"seed,omitempty"`
	KeyType          string `json:"key_type,omitempty"` // long, string, tuple, pojo, row, rowdata, avro
	At               string `json:"at,omitempty"`       // the directory that absolute paths in the files name

	Configuration map[string]string `json:"configuration,omitempty"` // more options of the job
}

// Bytes is for Options.InlineThreshold.
func Bytes(n int) *int { return &n }

// Choices select how the restoring job differs from the one that made the snapshot.
// The zero value is the same job.
type Choices struct {
	Parallelism      int  `json:"parallelism,omitempty"` // 0: as in the options
	AllowNonRestored bool `json:"allow_non_restored,omitempty"`

	// Claim makes the snapshot the job's own, so that later checkpoints may use
	// its files. Only Proceed uses it.
	Claim bool `json:"claim,omitempty"`

	// Ingest lets RocksDB import the files of several handles instead of copying
	// their entries, when it restores at another parallelism.
	Ingest bool `json:"ingest,omitempty"`

	// UIDs changes the uids of operators, by their uid in the shape.
	UIDs map[string]string `json:"uids,omitempty"`

	// Modes sets the mode in which the job registers operator states, "list" or
	// "union", by name.
	Modes map[string]string `json:"modes,omitempty"`

	// Register selects the states that the operator "lists" registers: "" for the
	// states of the shape, "none", or "found" for every state that its backend holds,
	// with the serializer that wrote it.
	Register string `json:"register,omitempty"`

	// Only, if not nil, lists all states that the job registers.
	Only []string `json:"only,omitempty"`
}
