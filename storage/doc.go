// Package storage is how spt reads and writes objects, on local disks and in object
// stores: the interface of a store, and the errors that all stores return.
//
// Names are opaque keys. Nothing above this package knows files, directories or
// URLs; "/" in a name only matters to callers that list with it as the delimiter.
// A store does what every object store can do: ranged reads pinned to a version,
// listing by prefix, atomic creation, and deletion by name. What only some can do
// (rename, copy on the server, report the free space) is an optional interface.
// Every optional method may return ErrUnsupported, and has then done nothing;
// callers fall back.
//
// It parses nothing and imports no other package of spt. Stores are below it: local,
// mem; route finds the store of a URI.
package storage
