// Package check predicts whether a job would restore from a snapshot, without
// running Flink. It changes nothing; package transform has the edits.
//
//	report, err := check.Run(ctx, view, check.Options{
//		Job:         check.JobOfNames([]string{"source", "counts"}),
//		Parallelism: 8,
//	})
//	for _, f := range report.Findings {
//		fmt.Println(f.Severity, f.Code, f.Message)
//	}
//
// Each file checks one aspect: operators by id and name, parallelisms, finished
// subtasks, the types and names of states, and what the release of Flink reads.
package check
