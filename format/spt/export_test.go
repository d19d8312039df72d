package spt

// ChunkLengths gives the raw lengths of all chunks, for tests of where they
// are cut.
func ChunkLengths(f *File) []int {
	n := []int{}
	for i := range f.m.table.len() {
		n = append(n, int(f.m.table.rawLen(uint32(i))))
	}
	return n
}

// CacheSize is how many bytes of decompressed chunks a file may hold.
const CacheSize = cacheSize

// Held is how many it holds.
func Held(f *File) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held
}
