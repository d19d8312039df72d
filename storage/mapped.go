package storage

// Mapped is an object mapped into memory. Data is read-only and invalid after
// Close. If the underlying file is truncated, an access to Data faults and would
// end the process: access it as format.MappedBytes.
type Mapped struct {
	Data []byte
	Info Info
	// Release unmaps. It returns ErrChanged if the file changed since Map.
	Release func() error
}

// Close unmaps, and returns ErrChanged if the object changed since it was mapped:
// then what was decoded from it must not be used. The second call does nothing.
func (m *Mapped) Close() error {
	f := m.Release
	m.Data, m.Release = nil, nil
	if f == nil {
		return nil
	}
	return f()
}
