package finding

// Entry says what a code means.
type Entry struct {
	Code    string
	Meaning string // in one sentence
	Flink   string // what Flink does
}

// catalogue has every code once, in the order of the alphabet.
var catalogue = []Entry{
	{"all-state-unread", "The job asks for no state of an operator, and all that it asks for starts empty.", "Restores without the state."},
	{"block-order", "The order in which a subtask is given the elements of several old subtasks depends on the location of the snapshot.", "Restores; the order of list and union elements can differ after the snapshot is moved."},
	{"broadcast", "A broadcast state has another number of offsets than one.", "Reads one map at the first offset and ignores the others."},
	{"broadcast-differs", "The copies of a broadcast state differ between subtasks.", "Restores; which copy a subtask gets depends on the parallelism."},
	{"broadcast-partial", "Some subtasks hold no copy of a broadcast state.", "Gives them a copy of another subtask from 1.14 on; before, they start with an empty map."},
	{"chained", "No vertex of the plan has the id of the operator, but one chains an operator of its name.", "Restores if the operator is in that chain with its uid."},
	{"checksum", "A chunk of an .spt file does not match its checksum.", "Does not read .spt files; the bytes of the chunk are lost."},
	{"claim", "Shared files of incremental state have relative references.", "Restores; with CLAIM, the next checkpoint completes and cannot be restored (FLINK-39964)."},
	{"claimed-native", "A checkpoint refers to files of the native savepoint that its job was restored from with CLAIM as if they were next to it (FLINK-39964).", "Fails when it opens the files."},
	{"file-elsewhere", "A file is not at its reference and was found below the folder of the snapshot or its job.", "Looks only at the reference, and fails."},
	{"file-gone", "A file is missing from the folder of another snapshot, which was deleted.", "Fails when it opens the file."},
	{"file-length", "A file is shorter or longer than the snapshot says.", "Fails when it reads past the end, or reads other bytes."},
	{"file-missing", "A file is not at its reference.", "Fails when it opens the file."},
	{"file-not-checked", "Nobody could look for a file, such as one in a store that is not supported here.", "Restores if the file is there."},
	{"file-of-another", "A file is in the folder of another snapshot.", "Restores until that snapshot is deleted."},
	{"file-outside", "A file is outside the snapshot and its checkpoint directory, and is not read unless that is allowed.", "Reads it wherever it is."},
	{"finished", "An operator had finished when the snapshot was taken.", "Does not run it again; refuses a job in which an unfinished operator is upstream of it."},
	{"finished-mixed", "Operators of one vertex of the job disagree about finished subtasks.", "Refuses the restore: the vertex contains mixed operator finished state."},
	{"finished-upstream", "A finished operator reads from one that had not finished as far, by the plan.", "Refuses the restore: illegal job graph modification."},
	{"flink", "An .spt file says that it was made from a Flink snapshot, and holds what no Flink snapshot does.", "Does not read .spt files."},
	{"in-flight", "In-flight data is redistributed to another parallelism.", "Redistributes it by the job graph; refuses for partitioners that cannot be rescaled, such as forward."},
	{"key-groups", "A key group, or its offset, is outside the range or the stream.", "Fails when it reads the key group."},
	{"max-parallelism", "The job sets another max parallelism than the snapshot has.", "Refuses the restore."},
	{"name-changed", "An operator of the job has another name than the one of its id in the snapshot, so ids may have shifted.", "Goes by the id alone."},
	{"native-state", "State in spt's own encoding is damaged.", "Does not read it."},
	{"no-taker", "The job has no operator for some state.", "Refuses the restore unless --allowNonRestoredState is given."},
	{"no-timers", "Keyed state of a native savepoint has no timers.", "Restores; timers that were on the heap are lost."},
	{"not-checked", "Something could not be checked, and nothing is known of it.", "Depends on what was not checked."},
	{"not-decoded", "Elements were read and not decoded, because spt does not know their type.", "Reads them with the serializer of the job."},
	{"not-flink", "State has spt's own encoding.", "Cannot read it."},
	{"not-in-job", "The job has no such operator, which holds no state.", "Ignores it."},
	{"not-in-plan", "No vertex of the plan has the id of the operator.", "Refuses the restore if the operator is not in the job."},
	{"offsets", "Offsets of elements are outside the stream or out of order.", "Fails, or reads other bytes as elements."},
	{"old-state", "State is in a version that current releases do not read.", "1.16 is the last release that reads state of 1.6 and before."},
	{"operator-id", "Two operators have one id.", "Keeps one of them."},
	{"order-not-checked", "Whether the order of elements depends on the location was not checked, because there are too many subtasks.", "Restores."},
	{"order-undefined", "The order in which elements are assigned is not defined.", "Restores; the order can differ between two restores."},
	{"orphan", "There are files next to _metadata that no handle refers to.", "Ignores them."},
	{"parallelism", "A parallelism or max parallelism is impossible.", "Refuses the restore."},
	{"partly-finished", "Some subtasks of an operator had finished when the snapshot was taken.", "Restores; refuses some changes of the job graph around the operator."},
	{"path", "A relative reference leads outside the folder of the snapshot.", "Flink writes no such reference."},
	{"properties", "The properties object has a shape that no release of Flink writes.", "Not known."},
	{"read", "A file cannot be read to its end.", "Fails in the same way."},
	{"release", "The release cannot read some state or _metadata.", "Fails."},
	{"same-offset", "All elements of a compressed state have one offset, so their ends are not known (FLINK-34063).", "Fails, or reads other values."},
	{"serializer-class", "A serializer snapshot class is in no release of Flink.", "Fails with a class that is not found."},
	{"spt-file", "The snapshot is an .spt file.", "Does not read .spt files."},
	{"starts-empty", "The snapshot has no state for an operator of the job.", "Starts the operator empty."},
	{"state-kind", "The job asks for another kind of state.", "Refuses the restore."},
	{"state-meta", "A stream describes other states, or other modes, than _metadata has.", "Fails, or drops the state."},
	{"state-not-asked", "The job does not ask for a state of the snapshot.", "Leaves it unread, and writes it again into later snapshots."},
	{"state-starts-empty", "The snapshot does not have a state that the job asks for.", "Starts it empty."},
	{"state-version", "A stream begins with a version that no release of Flink has.", "Fails."},
	{"subtask", "A subtask has an index outside the parallelism.", "Fails when it reads _metadata, or drops the state."},
	{"subtasks-without-state", "At this parallelism some subtasks get nothing of a state.", "Restores."},
	{"timers-not-checked", "Whether a native savepoint has timers could not be determined.", "Restores; timers that were on the heap are lost."},
	{"type", "A type of the job is incompatible with that of the state.", "Refuses the restore, or fails when the state is used."},
	{"type-migrates", "A type of the job is compatible after migration.", "Migrates the state."},
	{"type-unsure", "Whether a type of the job fits cannot be determined offline.", "The job's own serializer decides."},
	{"types-not-checked", "Types could not be determined, or not all of them.", "Compares them during the restore."},
	{"union", "Every subtask is given all elements of a union state.", "Restores."},
	{"union-large", "A restore hands out a very large union state.", "Restores if the memory suffices."},
	{"union-multiplied", "Restores have multiplied the elements of a union state.", "Restores; every subtask is given all copies."},
	{"union-repeats", "Elements of a union state repeat, and whether restores did that is not proven.", "Restores; every subtask is given all of them."},
	{"unreadable", "State cannot be read.", "Fails when it reads the state."},
}

// Catalogue returns every code that spt reports, in the order of the alphabet.
func Catalogue() []Entry { return append([]Entry(nil), catalogue...) }

// Lookup returns the entry of a code.
func Lookup(code string) (Entry, bool) {
	for _, e := range catalogue {
		if e.Code == code {
			return e, true
		}
	}
	return Entry{}, false
}
