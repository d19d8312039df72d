// Package finding defines the type of what spt reports about a snapshot, and the
// catalogue of its codes.
//
// A finding is a pure value. Package reader returns the findings of verify, package
// transform/check the findings of check. A code means the same in both; see
// [Catalogue]. The package does not check anything and does not know the flags of
// commands.
//
//	for _, f := range report.Findings {
//		entry, _ := finding.Lookup(f.Code)
//		fmt.Println(f.Severity, f.Code, f.Message, entry.Flink)
//	}
package finding
