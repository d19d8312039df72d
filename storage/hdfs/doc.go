// Package hdfs stores objects as the files of HDFS, the file system of Hadoop: hdfs: URIs,
// and viewfs: URIs through their mount table. It speaks to the NameNode and the DataNodes
// themselves, with the protocols of Hadoop 2 and 3; no Java is needed.
//
//	store, err := hdfs.New(hdfs.Options{Getenv: os.Getenv}) // HADOOP_CONF_DIR, HADOOP_USER_NAME
//	s, name, err := store.Resolve(ctx, "hdfs:///flink/savepoints/sp/_metadata")
//
// # Names
//
// The name of a file is hdfs://AUTHORITY/PATH, where the authority is a nameservice of the
// configuration or a host with its port, which is left out if it is 8020. PATH is as
// HDFS has it: nothing is decoded. Directories without files are not objects; List with a
// delimiter yields them.
//
// # Versions
//
// A version is the inode of a file, its length and the time of its last change. HDFS cannot
// read a file at a version: the version is compared before the first byte and after the
// last.
//
// # What is atomic
//
// A file is written under a temporary name next to its own, and renamed when the DataNodes
// have all of it. The NameNode renames atomically, and refuses a rename onto an existing
// name if asked to: creating with IfAbsent, and Move of files and of directories, cannot
// replace what another program wrote. Replacing any version is atomic too. Replacing one
// version is not: the version is compared first, and what another program writes between
// this and the rename is replaced. HDFS cannot exchange two names.
//
// A commit is complete when as many DataNodes as the NameNode demands have the bytes in
// memory; HDFS flushes them to disk later.
//
// # Limits
//
// Files that are erasure coded or in an encryption zone are refused, before anything is
// read or written. A DataNode that fails while a file is written ends the write; one that
// fails while a file is read is replaced by another that has the block. The bytes of a
// copy within HDFS pass through this process: HDFS has no copy.
package hdfs
