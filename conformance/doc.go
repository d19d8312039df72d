// Package conformance asks real Flink whether what spt reads and writes is right.
//
// It drives a small Java program (src/main/java, built by Maven for several
// Flink versions) that runs Flink in its own process: it makes snapshots whose
// content is known, restores snapshots and shows what every subtask was handed,
// and shows a _metadata file as Flink's own reader sees it. Go judges.
//
// The package is for tests, of this project only; nothing that is shipped
// imports it. Without a JDK and Maven its tests are skipped with one loud line;
// in CI (CI=true) they fail instead.
//
//	f := conformance.Use(t, conformance.V2_0)
//	snapshot := conformance.Make(t, f, conformance.Options{Shape: "tutorial", Elements: 20})
//	rewritten := snapshot.Rewritten(dir) // what the command under test wrote
//	conformance.JudgeEqual(t, f, snapshot, rewritten, 2)
//
// README.md tells how to run one case or all, and how fixtures are made.
package conformance
