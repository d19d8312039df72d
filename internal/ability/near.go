package ability

import "github.com/savepoint-tools/spt/storage"

// Near reports whether a store is the local file system: a request costs next to
// nothing, and content can change under its name while it is read. Any other store is
// called remote: a request to it takes a round trip, and its objects have versions, which
// reads are pinned to.
func Near(s storage.Storage) bool {
	_, ok := s.(Canonicalizer)
	return ok
}

// Flat reports whether a store has objects only, and no directories: listing a name
// shows no more than reading an object below it.
func Flat(s storage.Storage) bool {
	_, mover := s.(storage.Mover)
	return !mover && !Near(s)
}
