package explain

// verdicts are what commands conclude: results, states of snapshots and files, and the
// codes of warnings.
var verdicts = []Entry{
	// check
	{Name: "no obstacle to a restore found", By: "check", Meaning: "Nothing that spt can check offline is against a restore.", Flink: "Restores, if the types that only the job's serializers can judge fit.", See: []string{"type-unsure"}},
	{Name: "would restore, with warnings", By: "check", Meaning: "No error was found, but something will differ after the restore.", Flink: "Restores.", Do: "Read the warnings: each names its code."},
	{Name: "would not restore", By: "check", Meaning: "At least one finding is an error.", Flink: "Refuses, fails when it reads the state, or loses state.", Do: "Each error names what helps; spt explain CODE says more."},
	{Name: "no error found, not checked", By: "check", Meaning: "Some files could not be looked for, so that the answer is not complete.", Do: "Run it where the files can be reached.", See: []string{"unchecked"}},

	// verify
	{Name: "sound", By: "verify", Meaning: "The description decodes without rest, all files exist with the recorded length, and all bytes that were read agree with checksums and offsets.", Do: "Whether Flink would restore it from where it is: spt check."},
	{Name: "sound, with warnings", By: "verify", Meaning: "The bytes are whole, but something is as no release of Flink writes it.", Do: "Read the warnings: each names its code."},
	{Name: "sound as far as it was read", By: "verify", Meaning: "Files that are not on this machine were only looked for; their bytes were not read.", Do: "spt verify --read reads them too."},
	{Name: "sound, but files not at the reference", By: "verify", Meaning: "All bytes are whole, but files were found in another directory than the snapshot says.", Flink: "Fails: it looks only at the reference.", Do: "spt relocate IN OUT writes the references.", See: []string{"file-elsewhere"}},

	// union state
	{Name: "duplicated by restores", By: "prune-union, inspect --deep", Meaning: "All subtasks hold the same elements: restores assigned all elements to every subtask, and each added them again.", Flink: "Assigns all elements to every subtask at the next restore, too.", Do: "spt prune-union IN OUT --state NAME --keep distinct keeps one of each. Then fix the job.", See: []string{"union-multiplied", "union state"}},
	{Name: "not sure", By: "prune-union, inspect --deep", Meaning: "Elements repeat, but not in the way that restores repeat them; the repetitions may be meant.", Do: "Look at them with spt cat --distinct. --accept-unproven lets prune-union remove them.", See: []string{"union-repeats"}},
	{Name: "nothing repeats", By: "prune-union, inspect --deep", Meaning: "Every element occurs once."},
	{Name: "replicas equal", By: "prune-union", Meaning: "Every subtask holds the same broadcast state, as it should be.", See: []string{"broadcast state"}},
	{Name: "replicas differ", By: "prune-union", Meaning: "Subtasks hold different versions of a broadcast state.", Flink: "Assigns one of them to each subtask, depending on the parallelism.", Do: "The job must update the state in the same way in all subtasks.", See: []string{"broadcast-differs"}},
	{Name: "may_be_multiplied", By: "inspect, watch", Meaning: "All subtasks hold as many elements of the same lengths. That restores multiplied them is a guess: elements in files were not read.", Do: "spt prune-union reads them and tells.", See: []string{"duplicated by restores", "union state"}},
	{Name: "union_multiplied", By: "inspect --deep", Meaning: "The elements were read: restores multiplied them.", Do: "spt prune-union IN OUT --state NAME --keep distinct.", See: []string{"duplicated by restores"}},
	{Name: "union_repeats", By: "inspect --deep", Meaning: "The elements were read: some repeat.", Do: "Look at them with spt cat --distinct.", See: []string{"not sure"}},
	{Name: "union_large", By: "inspect", Meaning: "A restore loads 64 MiB or more of this union state, into all subtasks together.", Flink: "Assigns all elements to every subtask.", See: []string{"union state"}},
	{Name: "union_not_read", By: "inspect --deep", Meaning: "The elements of a union state could not be read.", Do: "spt verify shows why."},

	// rescale
	{Name: "gets nothing", By: "rescale", Meaning: "At this parallelism the subtask receives no element of the state.", Flink: "Starts the subtask with an empty state.", Do: "Choose a lower parallelism if it should have work: each element goes to one subtask.", See: []string{"split redistribution"}},
	{Name: "everything", By: "rescale", Meaning: "Every subtask receives all elements: it is union state.", See: []string{"union state"}},

	// files
	{Name: "missing_files", By: "inspect, watch", Meaning: "Files that the snapshot refers to do not exist.", Flink: "Fails when it opens them.", Do: "spt verify names them; if they were moved, --map OLD=NEW says where.", See: []string{"file-missing"}},
	{Name: "not_checked_files", By: "inspect", Meaning: "Nobody looked for these files: their store is not supported, did not answer, or was not asked.", Do: "--check-files looks for files that are not on this machine.", See: []string{"file-not-checked"}},
	{Name: "outside_files", By: "inspect", Meaning: "Files are outside the directory of the snapshot and its checkpoint directory; spt does not read them unless it is allowed.", Flink: "Reads them.", Do: "--follow PREFIX allows it.", See: []string{"file-outside"}},
	{Name: "outside_description", By: "inspect", Meaning: "_metadata is a link that leads outside the directory.", Flink: "Reads it.", Do: "--follow PREFIX allows it, or name the file itself."},
	{Name: "wrong_files", By: "inspect, watch", Meaning: "The length of files is not the recorded one: they were cut, or replaced.", Flink: "Fails, or reads other bytes.", Do: "Copy them again; spt verify names them.", See: []string{"file-length"}},

	// ls
	{Name: "complete", By: "ls", Meaning: "The description decodes, and all files exist with the recorded length."},
	{Name: "incomplete", By: "ls", Meaning: "Files are missing, or _metadata does not exist: a checkpoint that is being written, or one that failed.", Flink: "Cannot restore it.", Do: "Take the newest complete one."},
	{Name: "unchecked", By: "ls", Meaning: "Complete as far as it was checked: nobody looked for some or all of its files.", Do: "--check-files looks for the files of snapshots that are not on this machine."},
	{Name: "damaged", By: "ls, watch", Meaning: "The description cannot be decoded.", Flink: "Cannot restore it.", Do: "Copy it again; spt inspect --salvage shows what precedes the damage."},
	{Name: "unreadable", By: "ls", Meaning: "The description may be whole: there was no permission or no answer, or its version is not known.", Do: "The message says what to change."},
	{Name: "leftover", By: "ls", Meaning: "An interrupted run of spt left it. It is not a snapshot.", Do: "spt clean removes it."},
	{Name: "displaced", By: "ls", Meaning: "A whole snapshot under a temporary name: a run that replaced it was interrupted.", Flink: "Does not find it.", Do: "Rename it back; the message has the command."},

	// orphans
	{Name: "young", By: "orphans", Meaning: "The file was written lately: a running job writes files before the checkpoint that refers to them is complete.", Do: "--older-than changes the age."},
	{Name: "unknown-age", By: "orphans", Meaning: "The store does not say when the file was written."},
	{Name: "working", By: "orphans", Meaning: "The file is in the directory in which a running subtask keeps its state (ForSt)."},
	{Name: "other-name", By: "orphans", Meaning: "The file is next to the files of a savepoint, and not named as Flink names files."},
	{Name: "link", By: "orphans", Meaning: "It is a symbolic link, which is never removed."},
	{Name: "job-unread", By: "orphans", Meaning: "The directory of the job, with its snapshots, was not read.", Do: "Name the directory above it, or add it with --also."},
	{Name: "wanted", By: "orphans", Meaning: "A snapshot misses a file of this name elsewhere: it may be the one.", Do: "spt verify shows the snapshot; --map says where files are."},
	{Name: "uncertain", By: "orphans", Meaning: "Which files are referenced is not known for certain, so that none is removed.", Do: "The reasons are listed: repair or move away what cannot be read."},

	// offsets, pending
	{Name: "twice in readers", By: "offsets", Meaning: "Several subtasks of the source hold the same partition.", Flink: "Reads it several times after a restore, from each position.", Do: "Restore from another snapshot, or remove the topic with spt set --drop-topic and start it again."},
	{Name: "in reader and unassigned", By: "offsets", Meaning: "A subtask holds the partition, and the coordinator has it as unassigned.", Flink: "Assigns it again, and reads it twice.", Do: "Restore from another snapshot, or remove the topic with spt set --drop-topic and start it again."},
	{Name: "in no reader", By: "offsets", Meaning: "The coordinator has assigned the partition, and no subtask holds it.", Flink: "Does not read it any more, without a message; that is right if the source had read it to its end.", Do: "If it should be read, start the source without its state, or from another snapshot."},
	{Name: "not in enumerator", By: "offsets", Meaning: "A subtask holds a partition that the coordinator does not know.", Flink: "Finds and assigns it again, and reads it twice.", Do: "Restore from another snapshot."},
	{Name: "commit", By: "pending", Meaning: "The transaction or the files were prepared with this snapshot.", Flink: "Commits them at a restore.", Do: "Dropping the state loses these records."},
	{Name: "abort", By: "pending", Meaning: "Transactions with this prefix were open, and not prepared.", Flink: "Aborts them at a restore."},
	{Name: "resume", By: "pending", Meaning: "A file that was being written.", Flink: "Goes on writing it after a restore, where the file system can."},

	// types
	{Name: "compatible as is", By: "check", Meaning: "The type of the job reads the state as it is stored.", Flink: "Restores."},
	{Name: "compatible after migration", By: "check", Meaning: "The type of the job reads the state with the old serializer, and writes it with the new one.", Flink: "Migrates the values when it restores or reads them.", See: []string{"type-migrates"}},
	{Name: "incompatible", By: "check", Meaning: "The type of the job cannot read the state.", Flink: "Refuses the restore, or fails when the state is used.", See: []string{"type"}},
}
