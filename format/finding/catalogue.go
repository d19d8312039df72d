package finding

// Entry documents a code.
type Entry struct {
	Code    string
	Meaning string // one sentence
	Flink   string // what Flink does
}

// catalogue has one entry per code, sorted by code.
var catalogue = []Entry{
	{"all-state-unread", "The job asks for no state of an operator, and all that it asks for starts empty.", "Restores without the state."},
	{"block-order", "The order in which a subtask receives the elements of several old subtasks depends on the location of the snapshot.", "Restores; the order of list and union elements can differ after the snapshot is moved."},
	{"broadcast", "A broadcast state does not have exactly one offset.", "Reads one map at the first offset and ignores the others."},
	{"broadcast-differs", "The replicas of a broadcast state differ between subtasks.", "Restores; which replica a subtask receives depends on the parallelism."},
	{"broadcast-partial", "Some subtasks hold no replica of a broadcast state.", "From 1.14 on, assigns them another subtask's replica; before, they start with an empty map."},
	{"chained", "No vertex of the plan has the id of the operator, but one chains an operator of its name.", "Restores if the operator is in that chain with its uid."},
	{"checksum", "A chunk of an .spt file, or a block of a table of RocksDB, does not match its checksum.", "Fails when RocksDB reads the block, which can be long after the restore. It does not read .spt files."},
	{"claim", "Shared files of incremental state have relative references.", "Restores; with CLAIM, the next checkpoint completes and cannot be restored (FLINK-39964)."},
	{"claimed-native", "A checkpoint refers to files of the native savepoint that its job was restored from with CLAIM as if they were next to it (FLINK-39964).", "Fails when it opens the files."},
	{"column-family", "A database has a column family that belongs to no state.", "Opens only the column families of the states it knows, which RocksDB refuses."},
	{"file-elsewhere", "A file is not at its reference and was found below the directory of the snapshot or its job.", "Looks only at the reference, and fails."},
	{"file-gone", "A file is missing from the directory of another snapshot, which was deleted.", "Fails when it opens the file."},
	{"file-length", "The length of a file differs from the length that the snapshot records.", "Fails when it reads past the end, or reads other bytes."},
	{"file-missing", "A file is not at its reference.", "Fails when it opens the file."},
	{"file-not-checked", "A file could not be looked for, for example because it is in another store than the snapshot.", "Restores if the file is there."},
	{"file-of-another", "A file is in the directory of another snapshot.", "Restores until that snapshot is deleted."},
	{"file-outside", "A file is outside the snapshot and its checkpoint directory, and is not read unless the user allows it.", "Reads it anyway."},
	{"finished", "An operator had finished when the snapshot was taken.", "Does not run it again; refuses a job in which an unfinished operator is upstream of it."},
	{"finished-mixed", "The operators of one job vertex have different finished subtasks.", "Refuses the restore: the vertex contains mixed operator finished state."},
	{"finished-upstream", "By the plan, a finished operator reads from an operator that was less finished.", "Refuses the restore: illegal job graph modification."},
	{"flink", "An .spt file that records a Flink snapshot as its source has content that no Flink snapshot has.", "Does not read .spt files."},
	{"in-flight", "In-flight data is redistributed to another parallelism.", "Redistributes it by the job graph; refuses for partitioners that cannot be rescaled, such as forward."},
	{"key-groups", "A key group, or its offset, is outside the range or the stream.", "Fails when it reads the key group."},
	{"key-groups-outside", "Tables hold entries of key groups outside the range of their handle, as they do after a rescale.", "Restores, and deletes them."},
	{"key-misplaced", "Keys are stored in other key groups than their hash codes say (FLINK-40113).", "Restores; the job does not find the state of these keys."},
	{"max-parallelism", "The job sets a max parallelism that differs from the snapshot's.", "Refuses the restore."},
	{"name-changed", "An operator of the job and the operator with its id in the snapshot have different names, so ids may have shifted.", "Uses only the id."},
	{"native-state", "State in spt's own encoding is damaged.", "Does not read it."},
	{"no-taker", "The snapshot has state of an operator that the job does not have.", "Refuses the restore unless --allowNonRestoredState is given."},
	{"no-timers", "Keyed state of a native savepoint has no timers.", "Restores; timers that were on the heap are lost."},
	{"not-checked", "Something could not be checked.", "Depends on what was not checked."},
	{"not-decoded", "Elements or entries were read but not decoded, because spt does not support their type.", "Reads them with the serializer of the job."},
	{"not-flink", "State is in spt's own encoding.", "Cannot read it."},
	{"not-in-job", "The job does not have an operator of the snapshot that holds no state.", "Ignores it."},
	{"not-in-plan", "No vertex of the plan has the id of the operator.", "Refuses the restore if the operator is not in the job."},
	{"offsets", "Offsets of elements are outside the stream or out of order.", "Fails, or reads other bytes as elements."},
	{"old-state", "State is in a version that current releases do not read.", "1.16 is the last release that reads state of 1.6 and before."},
	{"operator-id", "Two operators have the same id.", "Keeps one of them."},
	{"order-not-checked", "Whether the order of elements depends on the location was not checked: too many subtasks.", "Restores."},
	{"order-undefined", "The order in which elements are assigned is not defined.", "Restores; the order can differ between two restores."},
	{"orphan", "Files next to _metadata are not referred to by any handle.", "Ignores them."},
	{"parallelism", "A parallelism or max parallelism is out of range.", "Refuses the restore."},
	{"partly-finished", "Some subtasks of an operator had finished when the snapshot was taken.", "Restores; refuses some changes of the job graph around the operator."},
	{"path", "A relative reference leads outside the directory of the snapshot.", "Flink writes no such reference."},
	{"properties", "The properties object has a shape that no release of Flink writes.", "Not known."},
	{"read", "A file cannot be read to its end.", "Fails too."},
	{"release", "The release cannot read some state or _metadata.", "Fails."},
	{"same-offset", "All elements of a compressed state have the same offset, so their ends are unknown (FLINK-34063).", "Fails, or reads other values."},
	{"serializer-class", "No release of Flink has a serializer snapshot class.", "Fails: class not found."},
	{"spt-file", "The snapshot is an .spt file.", "Does not read .spt files."},
	{"starts-empty", "The snapshot has no state for an operator of the job.", "Starts the operator empty."},
	{"state-kind", "The job asks for a state as a different kind.", "Refuses the restore."},
	{"state-meta", "The states or modes in a stream differ from those in _metadata.", "Fails, or drops the state."},
	{"state-not-asked", "The job does not ask for a state of the snapshot.", "Does not read it, and writes it into later snapshots."},
	{"state-starts-empty", "The snapshot does not have a state that the job asks for.", "Starts it empty."},
	{"state-version", "A stream begins with a version that no release of Flink has.", "Fails."},
	{"subtask", "A subtask has an index outside the parallelism.", "Fails when it reads _metadata, or drops the state."},
	{"subtasks-without-state", "At this parallelism some subtasks receive no element of a state.", "Restores."},
	{"table-unused", "A handle has tables that its database does not use.", "Ignores them."},
	{"timers-not-checked", "Whether a native savepoint has timers could not be determined.", "Restores; timers that were on the heap are lost."},
	{"type", "A type of the job is incompatible with the type of the state.", "Refuses the restore, or fails when the state is used."},
	{"type-migrates", "A type of the job is compatible after migration.", "Migrates the state."},
	{"type-unsure", "Whether a type of the job is compatible cannot be determined offline.", "The job's own serializer decides."},
	{"types-not-checked", "Some or all types could not be determined.", "Compares them during the restore."},
	{"union", "Every subtask receives all elements of a union state.", "Restores."},
	{"union-large", "A restore sends a very large union state to every subtask.", "Restores if memory suffices."},
	{"union-multiplied", "Restores have multiplied the elements of a union state.", "Restores; every subtask receives all duplicates."},
	{"union-repeats", "Elements of a union state repeat, but it is not proven that restores duplicated them.", "Restores; every subtask receives all of them."},
	{"unreadable", "State cannot be read.", "Fails when it reads the state."},
	{"wal", "A write-ahead log among the files of a database has bytes.", "Ignores it: what is only in the log is lost."},
}

// Catalogue returns the entries of all codes that spt reports, sorted by code.
func Catalogue() []Entry { return append([]Entry(nil), catalogue...) }

// Lookup returns the entry of a code, and whether there is one.
func Lookup(code string) (Entry, bool) {
	for _, e := range catalogue {
		if e.Code == code {
			return e, true
		}
	}
	return Entry{}, false
}
