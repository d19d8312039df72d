// Package flink is the home of everything that knows Apache Flink's bytes: the
// _metadata file (metadata) and the Java encodings under it (java). Nothing in
// here knows of .spt files.
package flink
