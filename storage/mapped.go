package storage

// Mapped is an object as memory. Data must not be written to, and is invalid after
// Close. If the file underneath becomes shorter, an access to Data is a fault that
// would end the process: access it as format.MappedBytes.
type Mapped struct {
	Data []byte
	Info Info
	// Release unmaps. It reports ErrChanged if the file changed since Map.
	Release func() error
}

// Close unmaps, and reports ErrChanged if the object is no longer what was
// mapped: then what was decoded from it must not be used. The second call does
// nothing.
func (m *Mapped) Close() error {
	f := m.Release
	m.Data, m.Release = nil, nil
	if f == nil {
		return nil
	}
	return f()
}
