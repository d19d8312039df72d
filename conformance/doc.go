// Package conformance compares what spt reads and writes with what Flink does.
//
// It drives a small Java program (src/main/java, built by Maven for several
// Flink versions) that runs Flink in its own process: it makes snapshots whose
// content is known, restores snapshots and reports what every subtask got, and
// prints a _metadata file as Flink's own reader sees it. The Go side compares.
//
// The package is for tests of this project only; no other package imports it.
// Without a JDK and Maven its tests are skipped with one line on standard error;
// with CI=true they fail.
//
//	f := conformance.Use(t, conformance.V2_0)
//	snapshot := conformance.Make(t, f, conformance.Options{Shape: "tutorial", Elements: 20})
//	rewritten := snapshot.Rewritten(dir) // what the command under test wrote
//	conformance.JudgeEqual(t, f, snapshot, rewritten, 2)
//
// README.md describes how to run one case or all, and how to make fixtures.
package conformance
