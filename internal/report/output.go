package report

import "strings"

// OutLike returns the name of an output in a command that is shown: of the family of
// the input, because only an .spt file can hold state in spt's own encoding.
func OutLike(in string) string {
	if strings.HasSuffix(in, ".spt") {
		return "OUT.spt"
	}
	return "OUT"
}
