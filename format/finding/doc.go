// Package finding is what spt reports about a snapshot: one type of finding,
// and one catalogue of codes.
//
// A finding is a pure value. Package reader makes those of verify, package
// transform those of check, and commands render both in the same way. A code
// means the same wherever it comes from; [Catalogue] says what.
//
//	for _, f := range report.Findings {
//		entry, _ := finding.Lookup(f.Code)
//		fmt.Println(f.Severity, f.Code, f.Message, entry.Flink)
//	}
package finding
