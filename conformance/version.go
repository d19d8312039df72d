package conformance

// Version is a line of Flink that the Maven project has a profile for.
type Version string

// The versions that spt is compared with.
const (
	V1_20 Version = "1.20"
	V2_0  Version = "2.0"
	V2_3  Version = "2.3"
)

// Versions lists all versions, oldest first.
func Versions() []Version { return []Version{V1_20, V2_0, V2_3} }

// Next returns the following version, or the newest itself: snapshots are
// restored on the version that made them and on the next.
func (v Version) Next() Version {
	all := Versions()
	for i, w := range all[:len(all)-1] {
		if v == w {
			return all[i+1]
		}
	}
	return v
}
