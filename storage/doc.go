// Package storage is how spt reaches bytes, wherever they lie: a small
// interface that local disks and object stores can both keep, the errors they
// share, and a Reader that turns ranged reads into reliable ones.
//
// Names are opaque keys. Nothing above this package knows files, directories or
// URLs; "/" in a name only matters to the one that lists with it as the delimiter.
// A store does what every object store can do: ranged reads pinned to a
// version, listing by prefix, creation that becomes visible all at once, and
// deletion by name. What only some can do (map a file, link, rename, copy on
// the server, tell the free space) is an optional one-method interface beside
// it. Every optional method may answer ErrUnsupported, and has then done
// nothing; callers fall back.
//
// It is not for parsing anything and imports no other package of spt. Stores
// live below it: local, mem. The tests that each of them must pass, and
// wrappers that count or fail, are in storetest.
//
//	r := storage.NewReader(store, "sp/_metadata", "")
//	head, err := r.ReadRange(ctx, 0, 1<<20) // one request; the version is pinned now
//	info, err := r.Stat(ctx)                // no request: known from the read
package storage
