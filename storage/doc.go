// Package storage is the interface to stored bytes: a small interface that both
// local disks and object stores can implement, the errors they share, and a
// Reader that makes ranged reads reliable.
//
// Names are opaque keys. Nothing above this package knows files, directories or
// URLs; "/" in a name only matters to callers that list with it as the delimiter.
// A store does what every object store can do: ranged reads pinned to a version,
// listing by prefix, atomic creation, and deletion by name. What only some can do
// (map a file, link, rename, copy on the server, report the free space) is an
// optional interface. Every optional method may return ErrUnsupported, and has
// then done nothing; callers fall back.
//
// It parses nothing and imports no other package of spt. The stores are packages
// local and mem. The tests that each of them must pass, and wrappers that count
// or fail, are in storetest.
//
//	r := storage.NewReader(store, "sp/_metadata", "")
//	head, err := r.ReadRange(ctx, 0, 1<<20) // one request; the version is pinned now
//	info, err := r.Stat(ctx)                // no request: known from the read
package storage
