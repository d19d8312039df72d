package storage

import (
	"runtime/debug"
	"unsafe"
)

// Mapping is an object as memory. Data must not be written to, and is invalid
// after Close. If the file underneath shrinks, touching Data is a fault that
// would end the process, so all use of it belongs inside Guard.
type Mapping struct {
	Data []byte
	Info Info
	// Release unmaps. It reports ErrChanged if the file changed since Map.
	Release func() error
}

// Close unmaps, and reports ErrChanged if the object is no longer what was
// mapped: then what was decoded from it must not be used. The second call does
// nothing.
func (m *Mapping) Close() error {
	f := m.Release
	m.Data, m.Release = nil, nil
	if f == nil {
		return nil
	}
	return f()
}

// Guard runs f, and turns a fault on Data into ErrChanged. It covers the calling
// goroutine only; one that f starts needs its own Guard. Locks that f holds
// without defer stay locked.
func (m *Mapping) Guard(f func() error) (err error) {
	if len(m.Data) == 0 {
		return f()
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(m.Data)))
	last := first + uintptr(len(m.Data)) - 1
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			if a := p.Addr(); a < first || a > last {
				panic(p) // not ours: a bug
			}
			err = &Error{Op: "read", Name: m.Info.Name, Err: ErrChanged, Hint: "the file became shorter while it was mapped"}
		default:
			panic(p)
		}
	}()
	return f()
}
