package conformance

// snapshotCase is a job whose snapshot is looked at.
type snapshotCase struct {
	name     string
	options  Options
	restores []int // the parallelisms
	only     Version
	handle   string // that Flink's reader must see in _metadata: the option did what it is for
}

// cases are the jobs whose snapshots are restored and held against the truth,
// on every version, at the parallelisms given. Between them they take each
// shape and each option at least once. The parallelisms are those that other
// tests look at too: what was restored once is kept.
var cases = []snapshotCase{
	{name: "operator", options: Options{Shape: "operator"}, restores: []int{1, 2, 4}, handle: `ByteStreamStateHandle`},
	{name: "operator-files", options: Options{Shape: "operator", Parallelism: 4, States: 7, InlineThreshold: Bytes(0), Seed: 2}, restores: []int{2, 4}, handle: `RelativeFileStateHandle`},
	{name: "operator-13-states", options: Options{Shape: "operator", Parallelism: 5, States: 13, Elements: 4, InlineThreshold: Bytes(0), Seed: 3}, restores: []int{3, 5}, handle: `RelativeFileStateHandle`},
	{name: "operator-compressed", options: Options{Shape: "operator", Parallelism: 3, States: 4, Blob: 66000, Compress: true, InlineThreshold: Bytes(0), Seed: 4}, restores: []int{3, 5}, handle: `RelativeFileStateHandle`},
	{name: "operator-large-inline", options: Options{Shape: "operator", Blob: 66000, InlineThreshold: Bytes(1 << 20), Seed: 5}, restores: []int{3}, handle: `ByteStreamStateHandle`},
	{name: "operator-checkpoint", options: Options{Shape: "operator", Checkpoint: true, Checkpoints: 2, Seed: 6}, restores: []int{2, 3}},
	{name: "operator-file-merging", options: Options{Shape: "operator", Checkpoint: true, FileMerging: true, InlineThreshold: Bytes(0), Seed: 7}, restores: []int{2, 3}, handle: `"SegmentFileStateHandle"`},
	{name: "union-inflated", options: Options{Shape: "union-inflated", Elements: 10, Restores: 2, Seed: 8}, restores: []int{2, 4}},
	{name: "union-modulo", options: Options{Shape: "union-modulo", Parallelism: 4, Elements: 21, Restores: 2, Seed: 9}, restores: []int{4, 2}},
	{name: "tutorial", options: Options{Shape: "tutorial", Elements: 20}, restores: []int{2, 4}},
	{name: "source", options: Options{Shape: "source", Parallelism: 3, Elements: 7}, restores: []int{3, 5}},
	{name: "list-checkpointed", options: Options{Shape: "list-checkpointed"}, restores: []int{2, 3}, only: V1_20},
	{name: "keyed-heap", options: Options{Shape: "keyed", Seed: 10}, restores: []int{2, 4}, handle: `KeyGroupsSavepointStateHandle`},
	{name: "keyed-heap-native", options: Options{Shape: "keyed", Format: "native", KeyType: "string", InlineThreshold: Bytes(0)}, restores: []int{2, 4}, handle: `"KeyGroupsStateHandle"`},
	{name: "keyed-heap-compressed", options: Options{Shape: "keyed", Format: "native", KeyType: "tuple", Compress: true, Elements: 60, Keys: 30}, restores: []int{3}},
	{name: "keyed-rocksdb", options: Options{Shape: "keyed", Backend: "rocksdb", KeyType: "tuple"}, restores: []int{2, 4}, handle: `KeyGroupsSavepointStateHandle`},
	{name: "keyed-rocksdb-native", options: Options{Shape: "keyed", Backend: "rocksdb", Format: "native", KeyType: "pojo", Elements: 8}, restores: []int{2, 3, 4}, handle: `IncrementalRemoteKeyedStateHandle`},
	{name: "keyed-rocksdb-max-1000", options: Options{Shape: "keyed", Backend: "rocksdb", MaxParallelism: 1000, HeapTimers: true}, restores: []int{5}},
	{name: "keyed-changelog", options: Options{Shape: "keyed", Checkpoint: true, Changelog: true, Elements: 8}, restores: []int{2, 4}, handle: `ChangelogStateHandleStreamImpl`},
	{name: "keyed-unaligned", options: Options{Shape: "keyed", Checkpoint: true, Unaligned: true, Elements: 80, Keys: 1000}, restores: []int{2, 3}, handle: `ResultSubpartitionStateHandle`},
	{name: "counts-incremental", options: Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 3, InlineThreshold: Bytes(900)}, restores: []int{2, 4}, handle: `"FileStateHandle"`},
	{name: "counts-rescaled", options: Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Parallelism: 3, Via: []int{2}, KeyType: "string", InlineThreshold: Bytes(900)}, restores: []int{3, 2}, handle: `IncrementalRemoteKeyedStateHandle`},
	{name: "counts-file-merging", options: Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, FileMerging: true, Checkpoints: 2, InlineThreshold: Bytes(0)}, restores: []int{2, 4}, handle: `"SegmentFileStateHandle"`},
}
